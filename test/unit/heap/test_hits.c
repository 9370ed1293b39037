/* SPDX-License-Identifier: Apache-2.0
 * A hit touches one pool: no driver call, no device-wide lock; and freed memory comes back to the
 * next request of its stream. */
#include <check.h>
#include <pthread.h>

#include <granary/history.h>

#include "heap/heap.h"
#include "support/fixture.h"

static granary *g;

static void classic_or_not(struct granary_sim_config *sim, struct granary_options *options) {
    (void)sim;
    options->expandable_segments = 0;
}

/* Each test runs in both modes. */
static void open_mode(int mode) {
    g = fixture_open(mode == 0 ? NULL : classic_or_not);
}

START_TEST(ten_thousand_pairs_make_no_driver_call) {
    static const size_t sizes[] = {1, 512, 100000, GR_MIB, GR_MIB + 1, 5 * GR_MIB, 30 * GR_MIB};
    open_mode(_i);
    granary_stream stream = fixture_stream(g);
    void *warm[GR_COUNT(sizes)]; /* all at once, so that each of them finds room later */
    for (size_t i = 0; i < GR_COUNT(sizes); i++) warm[i] = fixture_alloc(g, sizes[i], stream);
    for (size_t i = 0; i < GR_COUNT(sizes); i++) fixture_free(g, warm[i]);
    uint64_t calls = gr_tap_total(&g->driver.tap);
    struct granary_stats before = fixture_stats(g);
    for (int pair = 0; pair < 10000; pair++)
        fixture_free(g, fixture_alloc(g, sizes[pair % GR_COUNT(sizes)], stream));
    ck_assert_uint_eq(gr_tap_total(&g->driver.tap), calls);
    struct granary_stats after = fixture_stats(g);
    ck_assert_int_eq(after.misses, before.misses);
    ck_assert_int_eq(after.reserved_bytes.all.current, before.reserved_bytes.all.current);
    ck_assert_int_eq(after.allocations.all.total_up, before.allocations.all.total_up + 10000);
    ck_assert_int_eq(granary_stream_destroy(g, stream), GRANARY_OK);
    fixture_close(g);
}
END_TEST

static void *make_hits(void *stream) {
    for (int pair = 0; pair < 2000; pair++) {
        void *ptr;
        if (granary_alloc(g, 4096, stream, &ptr) != GRANARY_OK) return "alloc";
        if (granary_free(g, ptr) != GRANARY_OK) return "free";
    }
    return NULL;
}

START_TEST(hits_go_on_while_a_miss_and_the_ledger_are_under_way) {
    pthread_t thread;
    void *complaint = NULL;
    open_mode(_i);
    granary_stream stream = fixture_stream(g);
    void *first = fixture_alloc(g, 4096, stream), *second = fixture_alloc(g, 4096, stream);
    fixture_free(g, first);
    fixture_free(g, second);
    /* The peak is above what the hits reach, and so is the pool's ceiling: no hit settles. */
    ck_assert_int_eq(make_hits(stream) == NULL, 1);
    fixture_watchdog(20);
    gr_lock_take(&g->miss);
    gr_lock_take(&g->ledger.lock);
    gr_lock_take(&g->fault_lock);
    ck_assert_int_eq(pthread_create(&thread, NULL, make_hits, stream), 0);
    pthread_join(thread, &complaint); /* a hit that wanted one of the three would hang here */
    gr_lock_give(&g->fault_lock);
    gr_lock_give(&g->ledger.lock);
    gr_lock_give(&g->miss);
    fixture_watchdog(0);
    ck_assert_msg(complaint == NULL, "%s", (const char *)complaint);
    ck_assert_int_eq(granary_stream_destroy(g, stream), GRANARY_OK);
    fixture_close(g);
}
END_TEST

START_TEST(hits_of_one_stream_go_on_while_the_pools_of_another_are_held) {
    pthread_t thread;
    void *complaint = NULL;
    open_mode(_i);
    granary_stream stream = fixture_stream(g);
    fixture_free(g, fixture_alloc(g, 2 * 4096, stream));
    fixture_free(g, fixture_alloc(g, 2 * GR_MIB, stream));
    fixture_free(g, fixture_alloc(g, 4096, NULL));
    fixture_free(g, fixture_alloc(g, 2 * GR_MIB, NULL));
    ck_assert_int_eq(make_hits(stream) == NULL, 1);
    struct gr_route *other = gr_route_find(&g->own.routes, GR_CU_STREAM_LEGACY);
    fixture_watchdog(20);
    gr_lock_take(&g->miss);
    gr_lock_take(&g->ledger.lock);
    gr_pool_lock(gr_heap_pool(other, GR_SMALL));
    ck_assert_int_eq(pthread_create(&thread, NULL, make_hits, stream), 0);
    pthread_join(thread, &complaint);
    gr_pool_unlock(gr_heap_pool(other, GR_SMALL));
    gr_lock_give(&g->ledger.lock);
    gr_lock_give(&g->miss);
    fixture_watchdog(0);
    ck_assert_msg(complaint == NULL, "%s", (const char *)complaint);
    ck_assert_int_eq(granary_stream_destroy(g, stream), GRANARY_OK);
    fixture_close(g);
}
END_TEST

START_TEST(a_freed_block_serves_the_next_request_of_its_stream_and_of_no_other) {
    open_mode(_i);
    granary_stream a = fixture_stream(g), b = fixture_stream(g);
    void *p = fixture_alloc(g, 3 * GR_MIB, a);
    fixture_free(g, p);
    void *other = fixture_alloc(g, 3 * GR_MIB, b);
    ck_assert_ptr_ne(other, p);
    ck_assert_ptr_eq(fixture_alloc(g, 3 * GR_MIB, a), p);
    ck_assert_int_eq(granary_stream_destroy(g, a), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, b), GRANARY_OK);
    fixture_close(g);
}
END_TEST

static void record(int level) {
    struct granary_history_options options;
    granary_history_options_init(&options);
    options.level = level;
    options.stacks = GRANARY_STACKS_NONE;
    ck_assert_int_eq(granary_record_history(g, &options), GRANARY_OK);
}

static int64_t recorded(void) {
    struct granary_history history = {.struct_size = sizeof history};
    ck_assert_int_eq(granary_get_history(g, &history), GRANARY_OK);
    return history.recorded;
}

/* Peaks are reset, so that the allocation of each second pair rises above a ceiling. */
START_TEST(hits_tell_of_what_they_do_while_events_are_kept_and_else_not) {
    static const int each[] = {[GRANARY_HISTORY_OFF] = 0,
                               [GRANARY_HISTORY_STATE] = 0,
                               [GRANARY_HISTORY_ALLOC] = 3,
                               [GRANARY_HISTORY_ALL] = 3};
    open_mode(_i);
    fixture_free(g, fixture_alloc(g, 4096, NULL));
    for (int level = GRANARY_HISTORY_ALL; level >= GRANARY_HISTORY_OFF; level--) {
        record(level);
        const int64_t before = recorded();
        for (int pair = 0; pair < 1000; pair++) {
            if (pair % 2 == 0) ck_assert_int_eq(granary_reset_peaks(g), GRANARY_OK);
            fixture_free(g, fixture_alloc(g, 4096, NULL));
        }
        ck_assert_int_eq(recorded() - before, 1000 * each[level]);
    }
    fixture_close(g);
}
END_TEST

START_TEST(the_null_stream_and_the_legacy_handle_share_their_pools) {
    open_mode(_i);
    void *p = fixture_alloc(g, 1000, NULL);
    fixture_free(g, p);
    ck_assert_ptr_eq(fixture_alloc(g, 1000, (granary_stream)GR_CU_STREAM_LEGACY), p);
    fixture_close(g);
}
END_TEST

START_TEST(live_blocks_go_with_the_handle) {
    open_mode(_i);
    granary_stream stream = fixture_stream(g);
    for (int i = 0; i < 50; i++) (void)fixture_alloc(g, (size_t)(1 + i) * 100000, i % 2 ? stream : NULL);
    ck_assert_int_eq(granary_stream_destroy(g, stream), GRANARY_OK);
    fixture_close(g); /* and nothing is held afterwards */
}
END_TEST

START_TEST(the_thread_that_calls_keeps_its_current_context) {
    gr_cu_context current = NULL;
    open_mode(_i);
    fixture_free(g, fixture_alloc(g, 50 * GR_MIB, NULL));
    (void)fixture_trim(g, 0);
    ck_assert_int_eq(g->driver.call.cuCtxGetCurrent(&current), GR_CU_SUCCESS);
    ck_assert_ptr_null(current);
    fixture_close(g);
}
END_TEST

/* H1, H2: what the ledger says is what is there. */
START_TEST(memory_that_the_ledger_does_not_know_breaks_h1) {
    open_mode(_i);
    (void)fixture_alloc(g, 5 * GR_MIB, NULL);
    ck_assert_ptr_null(granary_verify(g));
    g->ledger.memory_up[GR_LARGE][GR_RESERVED_BYTES] += 512;
    ck_assert_str_eq(granary_verify(g), "H1");
    g->ledger.memory_up[GR_LARGE][GR_RESERVED_BYTES] -= 512;
    g->classic_bytes += 512;
    ck_assert_str_eq(granary_verify(g), "H1");
    g->classic_bytes -= 512;
    fixture_close(g);
}
END_TEST

START_TEST(an_extent_that_is_nowhere_breaks_h2) {
    open_mode(0);
    (void)fixture_alloc(g, 5 * GR_MIB, NULL);
    g->extents.held++;
    ck_assert_str_eq(granary_verify(g), "H2");
    g->extents.held--;
    fixture_close(g);
}
END_TEST

START_TEST(addresses_that_pass_to_another_pool_are_freed_there_and_the_old_pointer_is_unknown) {
    open_mode(1); /* classic segments, whose addresses the driver hands out again */
    const granary_stream streams[2] = {NULL, fixture_stream(g)};
    void *old = fixture_alloc(g, 3000, streams[0]), *ptr = NULL;
    size_t released;
    for (int turn = 1; turn <= 16 && ptr != old;
         turn++) { /* mostly at once; the host has other uses for addresses */
        if (ptr) old = ptr;
        fixture_free(g, old);
        ck_assert_int_eq(granary_trim(g, 0, &released), GRANARY_OK);
        ck_assert_uint_gt(released, 0);
        ck_assert_int_eq(granary_free(g, old), GRANARY_UNKNOWN_POINTER);
        ptr = fixture_alloc(g, 3000, streams[turn % 2]);
    }
    ck_assert_ptr_eq(ptr, old);
    size_t size;
    ck_assert_int_eq(granary_size_of(g, ptr, &size), GRANARY_OK);
    ck_assert_uint_eq(size, 3072);
    fixture_free(g, ptr);
    ck_assert_int_eq(granary_free(g, ptr), GRANARY_UNKNOWN_POINTER);
    ck_assert_int_eq(granary_free(g, (char *)ptr + 512), GRANARY_UNKNOWN_POINTER);
    ck_assert_int_eq(granary_stream_destroy(g, streams[1]), GRANARY_OK);
    fixture_close(g);
}
END_TEST

START_TEST(the_check_of_the_handle_asks_every_module) {
    open_mode(0);
    void *p = fixture_alloc(g, 5 * GR_MIB, NULL);
    struct gr_route *route = gr_route_find(&g->own.routes, GR_CU_STREAM_LEGACY);
    struct gr_block *b = gr_live_find(&gr_heap_pool(route, GR_LARGE)->live, (gr_addr)(uintptr_t)p);
    b->state = GR_BLOCK_MOVING;
    ck_assert_str_eq(granary_verify(g), "B4");
    b->state = GR_BLOCK_LIVE;
    route->stream->done = 99;
    ck_assert_str_eq(granary_verify(g), "S2");
    route->stream->done = 0;
    g->extents.cached = 1;
    ck_assert_str_ne(granary_verify(g), "");
    g->extents.cached = 0;
    gr_heap_pool(route, GR_LARGE)->tally.room.left[GR_BLOCKS]++;
    ck_assert_str_eq(granary_verify(g), "P3");
    gr_heap_pool(route, GR_LARGE)->tally.room.left[GR_BLOCKS]--;
    fixture_close(g);
}
END_TEST

/* Else the small and the large pool of one stream take one granule from each other for ever, where
 * idle memory is moved before any is made. */
START_TEST(traffic_that_repeats_itself_stops_missing) {
    static const size_t sizes[] = {GR_MIB, 5 * GR_MIB, 30 * GR_MIB};
    open_mode(_i);
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i < GR_COUNT(sizes); i++) fixture_free(g, fixture_alloc(g, sizes[i], NULL));
    int64_t misses = fixture_stats(g).misses;
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i < GR_COUNT(sizes); i++) fixture_free(g, fixture_alloc(g, sizes[i], NULL));
    ck_assert_int_eq(fixture_stats(g).misses, misses);
    fixture_close(g);
}
END_TEST

Suite *suite_hits(void) {
    Suite *suite = suite_create("hits");
    TCase *cases = tcase_create("hits");
    tcase_add_loop_test(cases, ten_thousand_pairs_make_no_driver_call, 0, 2);
    tcase_add_loop_test(cases, hits_go_on_while_a_miss_and_the_ledger_are_under_way, 0, 2);
    tcase_add_loop_test(cases, hits_of_one_stream_go_on_while_the_pools_of_another_are_held, 0, 2);
    tcase_add_loop_test(cases, a_freed_block_serves_the_next_request_of_its_stream_and_of_no_other, 0, 2);
    tcase_add_loop_test(cases, hits_tell_of_what_they_do_while_events_are_kept_and_else_not, 0, 2);
    tcase_add_loop_test(cases, the_null_stream_and_the_legacy_handle_share_their_pools, 0, 2);
    tcase_add_loop_test(cases, live_blocks_go_with_the_handle, 0, 2);
    tcase_add_loop_test(cases, the_thread_that_calls_keeps_its_current_context, 0, 2);
    tcase_add_loop_test(cases, memory_that_the_ledger_does_not_know_breaks_h1, 0, 2);
    tcase_add_test(cases, an_extent_that_is_nowhere_breaks_h2);
    tcase_add_test(cases, addresses_that_pass_to_another_pool_are_freed_there_and_the_old_pointer_is_unknown);
    tcase_add_test(cases, the_check_of_the_handle_asks_every_module);
    tcase_add_loop_test(cases, traffic_that_repeats_itself_stops_missing, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
