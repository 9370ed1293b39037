/* SPDX-License-Identifier: Apache-2.0
 * Times in a snapshot say how far off they may be where that is a microsecond or more. */
#include <check.h>

#include "base/clock.h"
#include "heap/heap.h"
#include "support/fixture.h"
#include "support/written.h"

enum { EARN = 64, MANY = 320, SILENCES = 8, SILENCE = 2000 /* us */ };

static void all_history(struct granary_sim_config *sim, struct granary_options *options) {
    (void)sim;
    options->history = GRANARY_HISTORY_ALL;
    options->history_stacks = GRANARY_STACKS_NONE;
}

static void pairs(granary *g, int count) {
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(granary_free(g, fixture_alloc(g, 1000, NULL)), GRANARY_OK);
}

static void be_silent(void) {
    const uint64_t until = gr_clock_ns() + SILENCE * 1000;
    while (gr_clock_ns() < until) {}
}

/* Entries that are off by at least a silence, perhaps. The machine may make silences of its own. */
static size_t count_doubts(const struct value *trace) {
    size_t doubts = 0;
    for (size_t i = 0; i < trace->items.count; i++) {
        const struct value *error = value_get(trace->items.at[i], "time_error_us");
        if (error) ck_assert_int_gt(error->number, 0);
        doubts += error && error->number >= SILENCE;
    }
    return doubts;
}

/* _i: events that come densely share readings of the clock. */
START_TEST(an_entry_says_how_far_off_its_time_may_be) {
    struct written written = {0};
    granary *g = fixture_open(all_history);
    struct gr_history *history = g->ledger.history;
    history->pace.dense = _i ? (uint64_t)1 << 56 : 0;
    if (history->tickets.earn != UINT64_MAX) history->tickets.earn = EARN;
    pairs(g, MANY);
    for (int i = 0; i < SILENCES; i++) { /* each at another distance from the last reading */
        be_silent();
        pairs(g, MANY / GR_PACE_SHARE * GR_PACE_SHARE + 1);
    }
    const struct value *top = written_snapshot(&written, g, GRANARY_PICKLE);
    size_t doubts = count_doubts(value_get(top, "device_traces")->items.at[0]);
    if (_i && history->tickets.earn != UINT64_MAX)
        ck_assert_uint_ge(doubts, SILENCES);
    else
        ck_assert_uint_eq(doubts, 0);
    fixture_close(g);
    written_free(&written);
}
END_TEST

Suite *suite_snapshot_time(void) {
    Suite *suite = suite_create("snapshot_time");
    TCase *cases = tcase_create("snapshot_time");
    tcase_add_loop_test(cases, an_entry_says_how_far_off_its_time_may_be, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
