/* SPDX-License-Identifier: Apache-2.0
 * Diagnosis: which kind it is, on a card of what size, and what replays say of other settings. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "support/history.h"
#include "tool/explain.h"

#define MIB ((uint64_t)1 << 20)

static const uint64_t A = 0x100000000;
enum { PIN = 11, BATCH = 12 };

static struct history h;
static struct snapshot s;
static struct explain x;
static struct problem problem;

static void setup(void) {
    history_begin(&h);
}

static void teardown(void) {
    explain_free(&x);
    snapshot_free(&s);
}

static void explain(uint64_t card) {
    history_read(&h, &s);
    if (explain_make(&s, &s.devices[0], card, &x, &problem) != 0) ck_abort_msg("%s", problem.text);
}

/* So many segments of 64 MiB on a stream; of each the first 16 MiB are live and the rest is `state`. */
static void segments(int count, uint64_t stream, char state) {
    for (int i = 0; i < count; i++) {
        history_segment(&h, A + (uint64_t)i * 64 * MIB, 64 * MIB, stream, HISTORY_CLASSIC);
        history_block(&h, 'L', 16 * MIB, 16 * MIB, PIN);
        history_block(&h, state, 48 * MIB, state == 'F' ? 0 : 48 * MIB, BATCH);
    }
}

/* How they came to be. */
static void traffic(int count, uint64_t stream, char state) {
    for (int i = 0; i < count; i++) {
        history_entry(&h, "segment_alloc", A + (uint64_t)i * 64 * MIB, 64 * MIB, stream, PIN);
        history_entry(&h, "alloc", A + (uint64_t)i * 64 * MIB, 64 * MIB, stream, BATCH);
        history_entry(&h, "free_requested", A + (uint64_t)i * 64 * MIB, 64 * MIB, stream, BATCH);
        history_entry(&h, "free_completed", A + (uint64_t)i * 64 * MIB, 64 * MIB, stream, BATCH);
        history_entry(&h, "alloc", A + (uint64_t)i * 64 * MIB, 16 * MIB, stream, PIN);
        history_entry(&h, "alloc", A + (uint64_t)i * 64 * MIB + 16 * MIB, 48 * MIB, stream, BATCH);
    }
    for (int i = 0; i < count && state != 'L'; i++) {
        history_entry(&h, "free_requested", A + (uint64_t)i * 64 * MIB + 16 * MIB, 48 * MIB, stream, BATCH);
        if (state == 'F')
            history_entry(&h, "free_completed", A + (uint64_t)i * 64 * MIB + 16 * MIB, 48 * MIB, stream,
                          BATCH);
    }
}

START_TEST(free_memory_in_pieces_is_fragmentation) {
    segments(10, 0, 'F');
    traffic(10, 0, 'F');
    history_oom(&h, 100 * MIB, 32 * MIB, 0, BATCH);
    explain(0);
    ck_assert_int_eq(x.kind, EXPLAIN_FRAGMENTATION);
    ck_assert_int_eq(x.card.source, WHATIF_DEVICE);
    ck_assert_uint_eq(x.card.guess, 672 * MIB);
    ck_assert_uint_eq(x.live, 160 * MIB);
    ck_assert_uint_eq(x.free, 480 * MIB);
    ck_assert_uint_eq(x.largest, 48 * MIB);
    ck_assert_uint_eq(x.pieces, 10);
    ck_assert_uint_eq(x.partly, 10);
    ck_assert_uint_eq(snapshot_line(&s, x.pins[0].stack)->line, PIN);
    ck_assert_uint_eq(x.pins[0].bytes, 480 * MIB);
    ck_assert_uint_eq(snapshot_line(&s, x.request_stack)->line, BATCH);
    ck_assert_str_eq(x.own.conf, "expandable_segments:False");
    ck_assert(!x.own.fits);
    ck_assert_int_ge(x.best, 0);
    ck_assert_str_eq(x.trials[x.best].conf, "expandable_segments:True");
    ck_assert_uint_le(x.trials[x.best].smallest, 672 * MIB);
}
END_TEST

START_TEST(more_in_use_than_the_card_has_is_a_peak) {
    segments(10, 0, 'L');
    traffic(10, 0, 'L');
    history_oom(&h, 100 * MIB, 32 * MIB, 0, BATCH);
    explain(0);
    ck_assert_int_eq(x.kind, EXPLAIN_PEAK);
    ck_assert_uint_eq(x.live + x.request - x.card.guess, 68 * MIB);
    ck_assert_int_eq(x.best, -1);
    ck_assert_uint_eq(snapshot_line(&s, x.holders[0].stack)->line, BATCH);
    ck_assert_uint_eq(x.holders[0].blocks, 10);
}
END_TEST

START_TEST(freed_memory_that_waits_is_pending) {
    segments(10, 0, 'P');
    traffic(10, 0, 'P');
    history_oom(&h, 100 * MIB, 32 * MIB, 0, BATCH);
    explain(0);
    ck_assert_int_eq(x.kind, EXPLAIN_PENDING);
    ck_assert_uint_eq(x.pending, 480 * MIB);
    ck_assert_uint_eq(x.waiting[0].bytes, 480 * MIB);
}
END_TEST

START_TEST(free_memory_of_other_streams_is_stranded) {
    segments(10, 5, 'F');
    traffic(10, 5, 'F');
    history_oom(&h, 100 * MIB, 32 * MIB, 0, BATCH);
    explain(0);
    ck_assert_int_eq(x.kind, EXPLAIN_STRANDED);
    ck_assert_uint_eq(x.free_streams, 480 * MIB);
    ck_assert_uint_eq(x.pins_elsewhere[0].bytes, 480 * MIB);
    ck_assert_uint_eq(x.free, 0);
    ck_assert_str_eq(x.trials[x.best].conf, "expandable_segments:True");
}
END_TEST

START_TEST(a_job_that_did_not_fail_is_looked_at_where_it_was_fullest) {
    segments(10, 0, 'F');
    traffic(10, 0, 'F');
    explain(0);
    ck_assert_int_eq(x.kind, EXPLAIN_NOTHING);
    ck_assert(!x.failed);
    ck_assert_int_eq(x.card.source, WHATIF_UNKNOWN);
    ck_assert_uint_eq(x.entry, 56); /* the last 64 MiB are in use and not yet in pieces */
    ck_assert_uint_eq(x.live, 640 * MIB);
}
END_TEST

START_TEST(a_snapshot_without_history_tells_what_it_holds) {
    segments(3, 0, 'L');
    explain(0);
    ck_assert_int_eq(x.kind, EXPLAIN_NOTHING);
    ck_assert_uint_eq(x.live, 192 * MIB);
    ck_assert_uint_eq(x.own.smallest, 192 * MIB);
}
END_TEST

START_TEST(a_limit_of_the_process_is_only_bounded) {
    segments(10, 0, 'F');
    traffic(10, 0, 'F');
    history_entry(&h, "segment_alloc", A + 1000 * MIB, 40 * MIB, 0, 0);
    history_entry(&h, "segment_free", A + 1000 * MIB, 40 * MIB, 0, 0);
    history_oom(&h, 100 * MIB, 9000 * MIB, 0, BATCH);
    history_read(&h, &s);
    whatif_card(&s, &s.devices[0], s.devices[0].last_oom, 0, &x.card);
    ck_assert_int_eq(x.card.source, WHATIF_BOUNDS);
    ck_assert_uint_eq(x.card.low, 680 * MIB);
    ck_assert_uint_eq(x.card.high, 740 * MIB - 1);
    ck_assert_uint_eq(x.card.guess, 710 * MIB);
    whatif_card(&s, &s.devices[0], s.devices[0].last_oom, 700 * MIB, &x.card);
    ck_assert_int_eq(x.card.source, WHATIF_ASKED);
    ck_assert_uint_eq(x.card.low, 700 * MIB);
    ck_assert_uint_eq(x.card.high, 700 * MIB);
    ck_assert_uint_eq(x.card.had, 740 * MIB - 1);
}
END_TEST

START_TEST(a_card_that_somebody_knows_decides) {
    segments(10, 0, 'F');
    traffic(10, 0, 'F');
    history_oom(&h, 100 * MIB, 32 * MIB, 0, BATCH);
    explain(256 * MIB);
    ck_assert_int_eq(x.kind, EXPLAIN_PEAK); /* 160 + 100 */
    ck_assert_int_eq(x.best, -1);
}
END_TEST

START_TEST(a_smallest_card_is_the_smallest) {
    struct trace trace;
    struct whatif_trial trial, again;
    struct replay_result result;
    struct replay_setup setup = {.driver = REPLAY_SIM, .conf = "expandable_segments:False"};
    static const char text[] = "a 0 40000000 0\na 1 70000000 0\nf 0\na 2 90000000 0\nf 1\na 3 50000000 0\n";
    ck_assert_int_eq(trace_parse("t", text, sizeof text - 1, &trace, &problem), 0);
    ck_assert_int_eq(whatif_try(&trace, setup.conf, 0, &trial, &problem), 0);
    setup.memory = trial.smallest;
    ck_assert_int_eq(replay_run(&trace, &setup, &result, &problem), 0);
    ck_assert(!result.out_of_memory);
    setup.memory = trial.smallest - 2 * MIB;
    ck_assert_int_eq(replay_run(&trace, &setup, &result, &problem), 0);
    ck_assert(result.out_of_memory);
    ck_assert_int_eq(whatif_try(&trace, setup.conf, trial.smallest, &again, &problem), 0);
    ck_assert(again.fits);
    ck_assert_int_eq(whatif_try(&trace, setup.conf, trial.smallest - 2 * MIB, &again, &problem), 0);
    ck_assert(!again.fits);
    trace_free(&trace);
}
END_TEST

START_TEST(the_settings_of_the_job_become_an_option_string) {
    char text[96];
    strcpy(h.settings, "\"expandable_segments\":true,\"max_split_size\":-1");
    history_read(&h, &s);
    ck_assert_str_eq(whatif_settings(&s, text, sizeof text), "expandable_segments:True");
    snapshot_free(&s);
    history_begin(&h);
    strcpy(h.settings, "\"expandable_segments\":false,\"max_split_size\":134217728");
    history_read(&h, &s);
    ck_assert_str_eq(whatif_settings(&s, text, sizeof text),
                     "expandable_segments:False,max_split_size_mb:128");
}
END_TEST

/* It shows that the model of the classic mode is PyTorch's to the granule. */
START_TEST(the_real_failure_needs_just_more_than_its_card_could_have_been) {
    const struct snapshot_device *d;
    struct whatif_card card;
    struct whatif_trial classic, expandable;
    struct trace trace;
    ck_assert_int_eq(snapshot_read(golden_path("oom_fragmentation.pickle.gz"), &s, &problem), 0);
    d = &s.devices[0];
    whatif_card(&s, d, d->last_oom, 0, &card);
    ck_assert_int_eq(card.source, WHATIF_BOUNDS);
    ck_assert_uint_eq(card.low, 10162 * MIB);
    ck_assert_uint_eq(card.high, 11124 * MIB - 1);
    ck_assert_int_eq(snapshot_to_trace(&s, d, d->last_oom, &trace, NULL, &problem), 0);
    ck_assert_int_eq(whatif_try(&trace, "expandable_segments:False", card.guess, &classic, &problem), 0);
    ck_assert_uint_eq(classic.smallest, 11124 * MIB);
    ck_assert_int_eq(whatif_try(&trace, "expandable_segments:True", card.guess, &expandable, &problem), 0);
    ck_assert(expandable.fits && !classic.fits);
    trace_free(&trace);
}
END_TEST

Suite *suite_explain_file(void) {
    Suite *suite = suite_create("explain_file");
    TCase *tcase = tcase_create("kinds");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, free_memory_in_pieces_is_fragmentation);
    tcase_add_test(tcase, more_in_use_than_the_card_has_is_a_peak);
    tcase_add_test(tcase, freed_memory_that_waits_is_pending);
    tcase_add_test(tcase, free_memory_of_other_streams_is_stranded);
    tcase_add_test(tcase, a_job_that_did_not_fail_is_looked_at_where_it_was_fullest);
    tcase_add_test(tcase, a_snapshot_without_history_tells_what_it_holds);
    tcase_add_test(tcase, a_limit_of_the_process_is_only_bounded);
    tcase_add_test(tcase, a_card_that_somebody_knows_decides);
    tcase_add_test(tcase, the_settings_of_the_job_become_an_option_string);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("files");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, a_smallest_card_is_the_smallest);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("replays");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_set_tags(tcase, "large");
    tcase_add_test(tcase, the_real_failure_needs_just_more_than_its_card_could_have_been);
    suite_add_tcase(suite, tcase);
    return suite;
}
