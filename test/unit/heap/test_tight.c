/* SPDX-License-Identifier: Apache-2.0
 * A pool of a card that is nearly full: what it moves for the company of a block, how much of that, and that it
 * grows once for a request. And one with room: what small blocks hold beyond what is in use. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "heap/heap.h"
#include "support/rng.h"
#include "support/two_streams.h"

static void at_most_32_mib(struct granary_sim_config *sim, struct granary_options *options) {
    of_64_mib(sim, options);
    options->limit_bytes = 32 * GR_MIB;
}
static void at_most_200_mib_in_small_extents(struct granary_sim_config *sim,
                                             struct granary_options *options) {
    sim->memory_bytes = 256 * GR_MIB;
    options->limit_bytes = 200 * GR_MIB;
    options->extent_bytes = 2 * GR_MIB;
}

static const struct gr_pool *large_pool(granary_stream stream) {
    return gr_heap_pool(gr_route_find(&g->own.routes, (gr_cu_stream)stream), GR_LARGE);
}

/* A block of 2 MiB, given back and asked for again until the pool has handed out so many. */
static void *alloc_until(uint32_t blocks) {
    void *ptr = fixture_alloc(g, 2 * GR_MIB, a);
    while (gr_pool_now(large_pool(a)) < blocks) {
        fixture_free(g, ptr);
        ptr = fixture_alloc(g, 2 * GR_MIB, a);
    }
    return ptr;
}

/* Of tight memory 4 MiB are free beside blocks handed out so many ago. Bytes that move when they are asked for, to lie
 * beside one handed out just now; and in too_fast, whether that took more time than it may. Without credit it
 * does, unless the test itself is interrupted just then. */
static bool too_fast;
static int64_t moved_for_company(uint32_t ago, size_t hasty, bool overspent) {
    open_with(at_most_32_mib);
    g->hasty = hasty;
    (void)fixture_alloc(g, 20 * GR_MIB, a);
    void *fits = fixture_alloc(g, 4 * GR_MIB, a), *young;
    (void)fixture_alloc(g, 2 * GR_MIB, a);
    young = alloc_until(ago);
    fixture_free(g, fits);
    fixture_free(g, young);
    young = fixture_alloc(g, 2 * GR_MIB, a);
    if (overspent) g->allowance = (struct gr_allowance){.at = gr_clock_ns(), .credit = 0};
    void *ptr = fixture_alloc(g, 4 * GR_MIB, a);
    const int64_t moved = fixture_stats(g).moved_bytes;
    ck_assert_int_eq(ptr == fits, moved == 0);
    if (!overspent || g->hasty != hasty) ck_assert_uint_eq(g->hasty, hasty + (overspent ? (size_t)moved : 0));
    too_fast = g->hasty != hasty;
    close_all();
    return moved;
}

START_TEST(tight_memory_moves_for_company_as_long_as_that_takes_not_too_much) {
    ck_assert_int_eq(moved_for_company(100, 0, false), 4 * (int64_t)GR_MIB);
    ck_assert_int_eq(moved_for_company(60, 0, false), 0); /* what fits is in company enough */
    for (int tries = 0; tries < 100 && !too_fast; tries++)
        ck_assert_int_eq(moved_for_company(100, 0, true), 4 * (int64_t)GR_MIB);
    ck_assert(too_fast);
    ck_assert_int_eq(moved_for_company(100, 20 * GR_MIB, false),
                     4 * (int64_t)GR_MIB); /* less than what is in use */
    ck_assert_int_eq(moved_for_company(100, 40 * GR_MIB, false), 0);
}
END_TEST

/* 18 + 2 + 2 MiB are in use and 4 are asked for, of 32; but 28 are held. */
START_TEST(memory_that_is_held_and_not_in_use_does_not_make_it_tight) {
    open_with(at_most_32_mib);
    (void)fixture_alloc(g, 18 * GR_MIB, a);
    void *fits = fixture_alloc(g, 4 * GR_MIB, a), *last;
    (void)fixture_alloc(g, 2 * GR_MIB, a);
    (void)alloc_until(100);
    last = fixture_alloc(g, 2 * GR_MIB, a);
    ck_assert_uint_gt(large_pool(a)->sparing, 1);
    fixture_free(g, fits);
    fixture_free(g, last);
    ck_assert_ptr_eq(fixture_alloc(g, 4 * GR_MIB, a), fits);
    close_all();
}
END_TEST

/* Memory is unmapped to be mapped elsewhere: what is unmapped after that belongs to another growth. */
static void count_growths(const struct gr_event *events, size_t count, size_t *growths, size_t *again) {
    bool mapped = false;
    for (size_t i = 0; i < count; i++) {
        bool unmap = events[i].action == GR_SEGMENT_UNMAP, map = events[i].action == GR_SEGMENT_MAP;
        if (unmap && mapped) *again += 1;
        if (map && !mapped) *growths += 1;
        mapped = (mapped || map) && !unmap && events[i].action != GR_ALLOC;
    }
}

START_TEST(a_request_grows_its_pool_once) {
    enum { BLOCKS = 200, EVENTS = 20000 };
    struct granary_history_options history;
    struct rng rng = {5};
    void *ptr[BLOCKS];
    size_t size[BLOCKS], live = 0, used = 0, growths = 0, again = 0;
    open_with(at_most_200_mib_in_small_extents);
    granary_history_options_init(&history);
    history.stacks = 0;
    history.entries = EVENTS;
    ck_assert_int_eq(granary_record_history(g, &history), GRANARY_OK);
    for (int i = 0; i < 4000; i++) {
        size_t bytes = rng_between(&rng, 2048, 12 * 1024) * GR_KIB;
        while (live == BLOCKS || used + bytes > 188 * GR_MIB) {
            size_t at = rng_below(&rng, live);
            fixture_free(g, ptr[at]);
            used -= size[at];
            ptr[at] = ptr[--live];
            size[at] = size[live];
        }
        if (granary_alloc(g, bytes, a, &ptr[live]) != GRANARY_OK) continue;
        size[live++] = bytes;
        used += bytes;
    }
    struct gr_event *events = calloc(EVENTS, sizeof *events);
    const struct gr_span span = gr_history_span(g->ledger.history);
    ck_assert_ptr_nonnull(events);
    count_growths(events, gr_history_copy(g->ledger.history, &span, events), &growths, &again);
    ck_assert_uint_gt(growths, 500);
    ck_assert_uint_eq(again, 0);
    free(events);
    close_all();
}
END_TEST

static void with_room(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 16 * GR_GIB;
    sim->oracle = 0;
}

/* Nine of ten go where a tenth of them lives. Held by active bytes, in the mean of the second half, in thousandths. */
static unsigned small_blocks_of_mixed_lifetimes(void) {
    enum { SLOTS = 20000, STEPS = 400000, LOOKS = 100 };
    static void *slot[SLOTS];
    struct rng rng = {1};
    double sum = 0;
    open_with(with_room);
    memset(slot, 0, sizeof slot);
    for (int i = 0; i < STEPS; i++) {
        void **at = &slot[rng_below(&rng, rng_once_in(&rng, 10) ? SLOTS : SLOTS / 10)];
        const size_t least = (size_t)512 << rng_below(&rng, 9);
        if (*at) fixture_free(g, *at);
        *at = fixture_alloc(g, least + rng_below(&rng, least), a);
        if (i < STEPS / 2 || i % (STEPS / 2 / LOOKS) != 0) continue;
        const struct granary_stats stats = fixture_stats(g);
        sum += (double)stats.reserved_bytes.all.current / (double)stats.active_bytes.all.current;
    }
    for (size_t i = 0; i < SLOTS; i++)
        if (slot[i]) fixture_free(g, slot[i]);
    close_all();
    return (unsigned)(sum / LOOKS * 1000 + 0.5);
}

START_TEST(small_blocks_of_mixed_lifetimes_hold_little_more_than_is_in_use) {
    const unsigned held = small_blocks_of_mixed_lifetimes();
    ck_assert_msg(held <= 1038, "%u / 1000", held); /* 1030 with sorted bins, 1050 if what came last served */
}
END_TEST

Suite *suite_tight(void) {
    Suite *suite = suite_create("tight");
    TCase *cases = tcase_create("tight"), *large = tcase_create("large");
    tcase_add_test(cases, tight_memory_moves_for_company_as_long_as_that_takes_not_too_much);
    tcase_add_test(cases, memory_that_is_held_and_not_in_use_does_not_make_it_tight);
    tcase_add_test(cases, a_request_grows_its_pool_once);
    suite_add_tcase(suite, cases);
    tcase_set_tags(large, "large");
    tcase_add_test(large, small_blocks_of_mixed_lifetimes_hold_little_more_than_is_in_use);
    suite_add_tcase(suite, large);
    return suite;
}
