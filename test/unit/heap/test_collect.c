/* SPDX-License-Identifier: Apache-2.0
 * Garbage collection: what goes, counted by hand; what stays; and what it never does. */
#include <string.h>

#include "support/captures.h"

static granary_stream a, b;
static double threshold;
static size_t limit, cache;
static bool classic, manual;

static void change(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 1000 * GR_MIB;
    sim->clock = manual ? GRANARY_SIM_MANUAL : GRANARY_SIM_AT_ONCE;
    options->expandable_segments = !classic;
    options->garbage_collection_threshold = threshold;
    options->limit_bytes = limit ? limit : GRANARY_UNLIMITED;
    options->handle_cache_bytes = cache;
    options->reclaim = GRANARY_RECLAIM_OFF; /* so that nothing else gives memory back */
}

static void open_card(double at, bool is_classic, bool is_manual) {
    threshold = at;
    classic = is_classic;
    manual = is_manual;
    captures_open(change);
    a = captures_stream();
    b = captures_stream();
}

static size_t reserved(void) {
    return (size_t)fixture_stats(g).reserved_bytes.all.current;
}
static size_t collected(void) {
    return (size_t)fixture_stats(g).collected_bytes;
}

static uint64_t waits(void) {
    return gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventSynchronize) +
           gr_tap_count(&g->driver.tap, GR_ENTRY_cuStreamSynchronize) +
           gr_tap_count(&g->driver.tap, GR_ENTRY_cuCtxSynchronize);
}

/* Allocates blocks of so many MiB, with a live one between every two, and frees them in order. */
enum { MOST = 8 };
static void *wall[MOST];
static void idle_blocks(const size_t *mib, size_t count) {
    void *p[MOST];
    for (size_t i = 0; i < count; i++) {
        p[i] = fixture_alloc(g, mib[i] * GR_MIB, a);
        wall[i] = classic ? NULL : fixture_alloc(g, 2 * GR_MIB, a);
    }
    for (size_t i = 0; i < count; i++) fixture_free(g, p[i]);
}
static void drop_walls(void) {
    for (size_t i = 0; i < MOST; i++)
        if (wall[i]) fixture_free(g, wall[i]);
    memset(wall, 0, sizeof wall);
}

/* Calls it for each free block of large pools; how many there are. */
static size_t each_free(void (*look)(const struct gr_block *)) {
    size_t blocks = 0;
    GR_ROUTE_FOR(route, &g->own) {
        struct gr_pool *pool = gr_heap_pool(route, GR_LARGE);
        if (!pool) continue;
        gr_pool_lock(pool);
        gr_pool_settle(pool);
        for (struct gr_block *f = gr_index_find(&pool->free, 1); f;
             f = gr_index_next(&pool->free, f), blocks++)
            look(f);
        gr_pool_unlock(pool);
    }
    return blocks;
}

static void freed_at_the_start(const struct gr_block *b) {
    ck_assert_uint_eq(b->freed, 0);
}
static void freed_at_tick_3(const struct gr_block *b) {
    ck_assert_uint_eq(b->freed, 3);
}

START_TEST(what_others_used_is_freed_when_they_are_done) {
    open_card(0.9, _i, true);
    void *p = fixture_alloc(g, 100 * GR_MIB, a);
    ck_assert_int_eq(granary_record_stream(g, p, b), GRANARY_OK);
    captures_use(b, p, 4096, 1);
    fixture_free(g, p);
    void *q = fixture_alloc(g, 50 * GR_MIB, b), *r = fixture_alloc(g, 50 * GR_MIB, b);
    ck_assert_uint_eq(each_free(freed_at_tick_3), 0);
    granary_sim_run_all();
    ck_assert_int_eq(fixture_stats(g).pending_blocks, 0);
    ck_assert_uint_eq(each_free(freed_at_tick_3), 1);
    fixture_free(g, q);
    fixture_free(g, r);
    captures_close();
}
END_TEST

/* When a block was handed out lies where it will say when it was freed. */
START_TEST(what_is_freed_while_nothing_counts_requests_is_freed_at_the_start_of_the_count) {
    static const size_t mib[] = {40, 50, 60};
    open_card(0, _i, false);
    void *first = fixture_alloc(g, 30 * GR_MIB, a); /* handed out after none */
    idle_blocks(mib, 3);
    ck_assert_uint_ge(each_free(freed_at_the_start), 3);
    fixture_free(g, first);
    drop_walls();
    captures_close();
}
END_TEST

/* pytorch/pytorch#106660, #76648. Kind: without a limit the threshold is 0, or never reached. */
START_TEST(case_66_without_a_limit_the_device_is_the_measure) {
    static const size_t mib[] = {90, 96, 100, 106, 110, 120};
    open_card(0.6, _i, false);
    idle_blocks(mib, 6); /* 622, and in the expandable mode 12 of walls */
    uint64_t waited = waits();
    void *p = fixture_alloc(g, 200 * GR_MIB, a);
    /* All six were freed at the same tick of the clock: all are as old as the mean. Ranges stop when
     * enough has gone. */
    size_t walls = classic ? 0 : 12 * GR_MIB;
    if (classic)
        ck_assert_uint_eq(collected(), 622 * GR_MIB);
    else
        ck_assert_uint_ge(collected(), 34 * GR_MIB);
    ck_assert_uint_eq(reserved(), 622 * GR_MIB + walls - collected() + 200 * GR_MIB);
    ck_assert_uint_eq(waits(), waited);
    fixture_free(g, p);
    drop_walls();
    captures_close();
}
END_TEST

START_TEST(case_66_below_the_threshold_nothing_goes) {
    static const size_t mib[] = {90, 100, 110};
    open_card(0.6, _i, false);
    idle_blocks(mib, 3);
    void *p = fixture_alloc(g, 200 * GR_MIB, a);
    ck_assert_uint_eq(collected(), 0);
    fixture_free(g, p);
    drop_walls();
    captures_close();
}
END_TEST

/* The clock ticks once for each request of a large block; the age of a block is the ticks since its free.
 *
 *      tick      1        2        3              4              5                 6
 *      request   x 100    y 102    z 104          w 106          v 108             200 or 300
 *      freed                         x: 3 old       y: 2 old       z, w: 1 old
 *
 * At tick 6 v is live and 520 MiB are held. The mean age is 7 / 4: x and y are older. */
static void *six_ticks(void) {
    void *x = fixture_alloc(g, 100 * GR_MIB, a), *y = fixture_alloc(g, 102 * GR_MIB, a), *z, *w, *v;
    z = fixture_alloc(g, 104 * GR_MIB, b); /* the clock is one for all streams */
    fixture_free(g, x);
    w = fixture_alloc(g, 106 * GR_MIB, a);
    fixture_free(g, y);
    v = fixture_alloc(g, 108 * GR_MIB, a);
    fixture_free(g, z);
    fixture_free(g, w);
    ck_assert_uint_eq(reserved(), 520 * GR_MIB);
    ck_assert_uint_eq(collected(), 0);
    return v;
}

START_TEST(what_is_at_least_as_old_as_the_mean_goes) {
    open_card(0.5, true, false);
    void *v = six_ticks(), *p;
    p = fixture_alloc(g, 200 * GR_MIB, a); /* 20 are too many; all that is old enough goes */
    ck_assert_uint_eq(collected(), 202 * GR_MIB);
    ck_assert_uint_eq(reserved(), 518 * GR_MIB);
    fixture_free(g, p);
    /* Two ticks old are z and w by now, and the one just freed is 1: the mean is 5 / 3. */
    p = fixture_alloc(g, 300 * GR_MIB, a);
    ck_assert_uint_eq(collected(), 412 * GR_MIB);
    ck_assert_uint_eq(reserved(), 608 * GR_MIB);
    fixture_free(g, p);
    fixture_free(g, v);
    captures_close();
}
END_TEST

START_TEST(a_second_pass_takes_the_younger_ones_when_the_first_was_not_enough) {
    open_card(0.5, true, false);
    void *v = six_ticks(), *p;
    RAN(granary_set_limit(g, 600 * GR_MIB)); /* 300 may be held: 220 are too many */
    p = fixture_alloc(g, 200 * GR_MIB, a);
    ck_assert_uint_eq(collected(), 412 * GR_MIB);
    ck_assert_uint_eq(reserved(), 308 * GR_MIB);
    fixture_free(g, p);
    fixture_free(g, v);
    captures_close();
}
END_TEST

START_TEST(small_blocks_live_ones_and_hits_collect_nothing) {
    open_card(0.5, true, false);
    void *v = six_ticks();
    fixture_free(g, fixture_alloc(g, 104 * GR_MIB, b)); /* hits: z, and then w */
    fixture_free(g, fixture_alloc(g, 106 * GR_MIB, a));
    ck_assert_uint_eq(collected(), 0);
    void *small = fixture_alloc(g, 1000, b); /* a miss, of a small block */
    ck_assert_uint_ge(collected(), 202 * GR_MIB);
    ck_assert_uint_ge(reserved(), 108 * GR_MIB);
    fixture_free(g, small);
    fixture_free(g, v);
    captures_close();
}
END_TEST

START_TEST(on_ranges_the_oldest_goes_and_the_rest_stays) {
    static const size_t mib[] = {100};
    open_card(0.25, false, false);
    idle_blocks(mib, 1);
    for (size_t size = 60; size <= 160; size += 50) /* grown in place */
        fixture_free(g, fixture_alloc(g, size * GR_MIB, b));
    ck_assert_uint_eq(reserved(), 262 * GR_MIB);
    void *p = fixture_alloc(g, 1000, b); /* 12 are too many */
    ck_assert_uint_eq(collected(), 12 * GR_MIB);
    ck_assert_uint_eq(reserved(), 252 * GR_MIB);
    ck_assert_uint_eq(gr_tap_count(&g->driver.tap, GR_ENTRY_cuMemFree), 0);
    fixture_free(g, p);
    drop_walls();
    captures_close();
}
END_TEST

START_TEST(what_is_not_known_idle_stays_and_nothing_is_waited_for) {
    open_card(0.1, _i, true);
    void *p = fixture_alloc(g, 120 * GR_MIB, a), *q;
    captures_use(a, p, 120 * GR_MIB, 1);
    fixture_free(g, p);
    uint64_t waited = waits();
    q = fixture_alloc(g, 20 * GR_MIB, b);
    ck_assert_uint_eq(collected(), 0);
    ck_assert_uint_eq(waits(), waited);
    granary_sim_run_all();
    p = fixture_alloc(g, 22 * GR_MIB, b);
    ck_assert_uint_gt(collected(), 0); /* the event that was recorded then has told */
    ck_assert_uint_eq(waits(), waited);
    fixture_free(g, p);
    fixture_free(g, q);
    captures_close();
}
END_TEST

START_TEST(while_a_capture_is_open_nothing_is_collected) {
    open_card(0.1, _i, false);
    fixture_free(g, fixture_alloc(g, 120 * GR_MIB, b));
    granary_pool pool = captures_pool();
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = fixture_alloc(g, 20 * GR_MIB, a);
    ck_assert_uint_eq(collected(), 0);
    fixture_free(g, p);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, a));
    ck_assert_uint_gt(collected(), 0);
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

START_TEST(handles_that_nobody_uses_go_first) {
    struct gr_extent *extent;
    cache = 64 * GR_MIB;
    open_card(0.1, false, false);
    cache = 0;
    fixture_free(g, fixture_alloc(g, 90 * GR_MIB, a));
    gr_lock_take(&g->miss);
    ck_assert(gr_extents_reserve(&g->extents, 1));
    ck_assert_int_eq(gr_extents_get(&g->extents, 10, &extent), GRANARY_OK);
    gr_extents_put(&g->extents, extent);
    gr_lock_give(&g->miss);
    RAN(granary_set_limit(g, 900 * GR_MIB));
    void *p = fixture_alloc(g, 2 * GR_MIB, b);
    ck_assert_int_eq(fixture_stats(g).handle_cache_bytes, 0);
    ck_assert_uint_eq(collected(), 20 * GR_MIB);
    fixture_free(g, p);
    captures_close();
}
END_TEST

/* pytorch/pytorch#123548, #119452, #134338. Kind: what is meant for classic segments is done to mapped
 * memory. As reported, scaled. */
START_TEST(case_65_classic_options_do_no_harm_on_ranges) {
    struct granary_options options;
    void *p[11];
    granary_options_init(&options);
    ck_assert_int_eq(granary_options_parse(&options,
                                           "max_split_size_mb:500,expandable_segments:True,"
                                           "garbage_collection_threshold:0.6",
                                           NULL, NULL),
                     GRANARY_OK);
    struct granary_sim_config sim;
    granary_sim_config_init(&sim);
    sim.memory_bytes = 1200 * GR_MIB;
    ck_assert_int_eq(granary_sim_open(&sim), GRANARY_OK);
    options.driver = GRANARY_DRIVER_SIM;
    g = fixture_open_handle(&options, 0);
    fixture_free(g, fixture_alloc(g, 550 * GR_MIB, NULL));
    for (int i = 0; i < 10; i++) p[i] = fixture_alloc(g, 110 * GR_MIB, NULL);
    ck_assert_int_eq(granary_alloc(g, 110 * GR_MIB, NULL, &p[10]), GRANARY_OUT_OF_MEMORY);
    ck_assert_uint_eq(gr_tap_count(&g->driver.tap, GR_ENTRY_cuMemFree), 0);
    for (int i = 0; i < 10; i++) fixture_free(g, p[i]);
    fixture_close(g);
}
END_TEST

Suite *suite_collect(void) {
    Suite *suite = suite_create("collect");
    TCase *cases = tcase_create("collect");
    tcase_add_loop_test(cases, what_others_used_is_freed_when_they_are_done, 0, 2);
    tcase_add_loop_test(cases, what_is_freed_while_nothing_counts_requests_is_freed_at_the_start_of_the_count,
                        0, 2);
    tcase_add_loop_test(cases, case_66_without_a_limit_the_device_is_the_measure, 0, 2);
    tcase_add_loop_test(cases, case_66_below_the_threshold_nothing_goes, 0, 2);
    tcase_add_test(cases, what_is_at_least_as_old_as_the_mean_goes);
    tcase_add_test(cases, a_second_pass_takes_the_younger_ones_when_the_first_was_not_enough);
    tcase_add_test(cases, small_blocks_live_ones_and_hits_collect_nothing);
    tcase_add_test(cases, on_ranges_the_oldest_goes_and_the_rest_stays);
    tcase_add_loop_test(cases, what_is_not_known_idle_stays_and_nothing_is_waited_for, 0, 2);
    tcase_add_loop_test(cases, while_a_capture_is_open_nothing_is_collected, 0, 2);
    tcase_add_test(cases, handles_that_nobody_uses_go_first);
    tcase_add_test(cases, case_65_classic_options_do_no_harm_on_ranges);
    suite_add_tcase(suite, cases);
    return suite;
}
