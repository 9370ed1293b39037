/* SPDX-License-Identifier: Apache-2.0
 * A miss: what it maps, in which order it looks for memory, and what a failure says and leaves. */
#include <check.h>
#include <string.h>

#include "heap/heap.h"
#include "support/fixture.h"

static granary *g;

static void of_64_mib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 64 * GR_MIB;
}
static void of_64_mib_classic(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 64 * GR_MIB;
    options->expandable_segments = 0;
}
static void with_a_handle_cache(struct granary_sim_config *sim, struct granary_options *options) {
    (void)sim;
    options->handle_cache_bytes = 64 * GR_MIB;
}

static int try_alloc(size_t size, granary_stream stream) {
    void *ptr = &ptr;
    int status = granary_alloc(g, size, stream, &ptr);
    if (status != GRANARY_OK) ck_assert_ptr_null(ptr);
    return status;
}

static int64_t reserved(void) {
    return fixture_stats(g).reserved_bytes.all.current;
}

static uint64_t calls(enum gr_entry entry) {
    return gr_tap_count(&g->driver.tap, entry);
}

/* ---- growing ---------------------------------------------------------------------------------- */

START_TEST(a_miss_maps_only_the_shortfall) {
    g = fixture_open(NULL);
    void *p = fixture_alloc(g, 8 * GR_MIB, NULL);
    fixture_free(g, p);
    ck_assert_ptr_eq(fixture_alloc(g, 12 * GR_MIB, NULL), p); /* in place, at the same address */
    ck_assert_int_eq(reserved(), 12 * GR_MIB);
    fixture_close(g);
}
END_TEST

START_TEST(a_small_request_takes_one_granule) {
    g = fixture_open(NULL);
    (void)fixture_alloc(g, 1, NULL);
    ck_assert_int_eq(reserved(), 2 * GR_MIB);
    for (int i = 0; i < 4095; i++) (void)fixture_alloc(g, 512, NULL);
    ck_assert_int_eq(reserved(), 2 * GR_MIB); /* to its last byte */
    (void)fixture_alloc(g, 512, NULL);
    ck_assert_int_eq(reserved(), 4 * GR_MIB);
    fixture_close(g);
}
END_TEST

START_TEST(classic_misses_take_segments_as_pytorch_does) {
    static const size_t rows[][2] = {{1, 2},         {1024, 2},       {1025, 20},
                                     {9 * 1024, 20}, {10 * 1024, 10}, {11 * 1024, 12}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        g = fixture_open(of_64_mib_classic);
        (void)fixture_alloc(g, rows[i][0] * GR_KIB, NULL);
        ck_assert_int_eq(reserved(), (int64_t)(rows[i][1] * GR_MIB));
        ck_assert_int_eq(fixture_stats(g).segments.all.current, 1);
        ck_assert_uint_eq(calls(GR_ENTRY_cuMemAlloc), 1);
        fixture_close(g);
    }
}
END_TEST

static void of_64_mib_split_20(struct granary_sim_config *sim, struct granary_options *options) {
    of_64_mib_classic(sim, options);
    options->max_split_size = 20 * GR_MIB;
}

/* A fresh segment of 20 MiB counts as oversize here, and best fit would refuse it for the very request
 * that it was made for. */
START_TEST(a_fresh_classic_segment_serves_the_request_that_it_was_made_for) {
    g = fixture_open(of_64_mib_split_20);
    fixture_watchdog(3);
    (void)fixture_alloc(g, 2 * GR_MIB, NULL);
    fixture_watchdog(0);
    fixture_close(g);
}
END_TEST

/* ---- the order -------------------------------------------------------------------------------- */

START_TEST(cached_handles_serve_before_new_ones_are_created) {
    g = fixture_open(with_a_handle_cache);
    ck_assert_ptr_null(granary_verify(g));
    struct gr_extent *extent; /* put there by hand: what fills the cache is not this test's business */
    gr_lock_take(&g->miss);
    ck_assert(gr_extents_reserve(&g->extents, 1));
    ck_assert_int_eq(gr_extents_get(&g->extents, 3, &extent), GRANARY_OK);
    gr_extents_put(&g->extents, extent);
    gr_lock_give(&g->miss);
    ck_assert_int_eq(fixture_stats(g).handle_cache_bytes, 6 * GR_MIB);
    uint64_t creates = calls(GR_ENTRY_cuMemCreate);
    (void)fixture_alloc(g, 6 * GR_MIB, NULL);
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemCreate), creates);
    ck_assert_int_eq(fixture_stats(g).handle_cache_bytes, 0);
    fixture_close(g);
}
END_TEST

START_TEST(idle_memory_of_another_stream_serves_before_failure_and_is_counted_as_moved) {
    g = fixture_open(of_64_mib);
    granary_stream a = fixture_stream(g), b = fixture_stream(g);
    fixture_free(g, fixture_alloc(g, 60 * GR_MIB, a));
    (void)fixture_alloc(g, 60 * GR_MIB, b);
    struct granary_stats s = fixture_stats(g);
    ck_assert_int_ge(s.moved_bytes, 56 * GR_MIB);
    ck_assert_int_gt(s.moving_ns, 0);
    ck_assert_int_le(s.reserved_bytes.all.peak, 64 * GR_MIB);
    ck_assert_int_eq(s.out_of_memory, 0);
    ck_assert_int_eq(granary_stream_destroy(g, a), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, b), GRANARY_OK);
    fixture_close(g);
}
END_TEST

START_TEST(a_request_larger_than_the_device_makes_no_device_call) {
    g = fixture_open(of_64_mib);
    fixture_free(g, fixture_alloc(g, 512, NULL));
    uint64_t before = calls(GR_ENTRY_cuMemCreate) + calls(GR_ENTRY_cuMemAddressReserve) +
                      calls(GR_ENTRY_cuMemAlloc);
    ck_assert_int_eq(try_alloc(64 * GR_MIB + 1, NULL), GRANARY_OUT_OF_MEMORY);
    ck_assert_int_eq(try_alloc(GR_GIB, NULL), GRANARY_OUT_OF_MEMORY);
    ck_assert_int_eq(try_alloc(SIZE_MAX, NULL), GRANARY_INVALID);
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemCreate) + calls(GR_ENTRY_cuMemAddressReserve) +
                          calls(GR_ENTRY_cuMemAlloc),
                      before);
    fixture_close(g);
}
END_TEST

/* ---- failures --------------------------------------------------------------------------------- */

START_TEST(a_device_that_is_full_is_out_of_memory_with_its_figures) {
    g = fixture_open(_i == 0 ? of_64_mib : of_64_mib_classic);
    void *p = fixture_alloc(g, 40 * GR_MIB, NULL);
    struct fixture_state before = fixture_state(g);
    ck_assert_int_eq(try_alloc(30 * GR_MIB, NULL), GRANARY_OUT_OF_MEMORY);
    struct fixture_state after = fixture_state(g);
    char words[128];
    ck_assert_msg(fixture_same(&before, &after, false, words), "%s", words);
    ck_assert_int_eq(after.stats.out_of_memory, 1);
    struct granary_fault fault = fixture_fault(g);
    const struct granary_shortfall *s = &fault.shortfall;
    ck_assert_int_eq(fault.status, GRANARY_OUT_OF_MEMORY);
    ck_assert_str_eq(fault.call, "granary_alloc");
    ck_assert_uint_eq(s->requested_bytes, 30 * GR_MIB);
    ck_assert_uint_eq(s->rounded_bytes, 30 * GR_MIB);
    ck_assert_uint_eq(s->grow_bytes, 30 * GR_MIB);
    ck_assert_uint_eq(s->allocated_bytes, 40 * GR_MIB);
    ck_assert_uint_eq(s->active_bytes, 40 * GR_MIB);
    ck_assert_uint_eq(s->reserved_bytes, 40 * GR_MIB);
    ck_assert_uint_eq(s->device_free_bytes, 24 * GR_MIB);
    ck_assert_uint_eq(s->device_total_bytes, 64 * GR_MIB);
    ck_assert_uint_eq(s->limit_bytes, GRANARY_UNLIMITED);
    ck_assert_uint_eq(s->largest_free_bytes, 0);
    ck_assert_msg(strstr(fault.text, "30.00 MiB") && strstr(fault.text, "40.00 MiB"), "%s", fault.text);
    fixture_free(g, p);
    (void)fixture_alloc(g, 30 * GR_MIB, NULL);
    fixture_close(g);
}
END_TEST

START_TEST(free_memory_that_did_not_help_is_told_by_where_it_lies) {
    g = fixture_open(of_64_mib);
    static const size_t others[] = {GR_MIB, GR_MIB / 2, GR_MIB};
    granary_stream stream[GR_COUNT(others)];
    void *p[4], *q[GR_COUNT(others)];
    for (int i = 0; i < 4; i++) p[i] = fixture_alloc(g, 3 * GR_MIB, NULL); /* 6 granules */
    for (size_t i = 0; i < GR_COUNT(others); i++) {
        stream[i] = fixture_stream(g);
        q[i] = fixture_alloc(g, others[i], stream[i]);
    }
    fixture_free(g, p[1]);
    ck_assert_int_eq(try_alloc(60 * GR_MIB, NULL), GRANARY_OUT_OF_MEMORY);
    struct granary_shortfall s = fixture_fault(g).shortfall;
    ck_assert_uint_eq(s.free_same_pool_bytes, 3 * GR_MIB);
    ck_assert_uint_eq(s.largest_free_bytes, 3 * GR_MIB);
    ck_assert_uint_eq(s.free_other_stream_bytes,
                      7 * GR_MIB / 2); /* the rests of the other streams' granules */
    ck_assert_uint_eq(s.largest_free_other_bytes, 3 * GR_MIB / 2);
    ck_assert_uint_eq(s.active_bytes, 9 * GR_MIB + 5 * GR_MIB / 2);
    for (size_t i = 0; i < GR_COUNT(others); i++) {
        fixture_free(g, q[i]);
        ck_assert_int_eq(granary_stream_destroy(g, stream[i]), GRANARY_OK);
    }
    fixture_close(g);
}
END_TEST

START_TEST(memory_of_other_processes_counts) {
    g = fixture_open(of_64_mib);
    ck_assert_int_eq(granary_sim_set_foreign(0, 50 * GR_MIB), GRANARY_OK);
    ck_assert_int_eq(try_alloc(20 * GR_MIB, NULL), GRANARY_OUT_OF_MEMORY);
    ck_assert_uint_eq(fixture_fault(g).shortfall.device_free_bytes, 14 * GR_MIB);
    (void)fixture_alloc(g, 14 * GR_MIB, NULL);
    ck_assert_int_eq(granary_sim_set_foreign(0, 0), GRANARY_OK);
    (void)fixture_alloc(g, 20 * GR_MIB, NULL);
    fixture_close(g);
}
END_TEST

START_TEST(a_request_that_must_fail_does_not_empty_the_pools) {
    g = fixture_open(of_64_mib);
    granary_stream other = fixture_stream(g);
    (void)fixture_alloc(g, 30 * GR_MIB, NULL);
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, other));
    struct fixture_state before = fixture_state(g);
    ck_assert_int_eq(try_alloc(50 * GR_MIB, NULL), GRANARY_OUT_OF_MEMORY);
    struct fixture_state after = fixture_state(g);
    char words[128];
    ck_assert_msg(fixture_same(&before, &after, false, words), "%s", words);
    ck_assert_int_eq(granary_stream_destroy(g, other), GRANARY_OK);
    fixture_close(g);
}
END_TEST

/* ---- limits ----------------------------------------------------------------------------------- */

START_TEST(a_limit_holds_to_the_byte_and_its_refusal_has_a_name_of_its_own) {
    g = fixture_open(_i == 0 ? of_64_mib : of_64_mib_classic);
    ck_assert_int_eq(granary_set_limit(g, 24 * GR_MIB), GRANARY_OK);
    (void)fixture_alloc(g, 12 * GR_MIB, NULL);
    void *p = fixture_alloc(g, 12 * GR_MIB, NULL);
    ck_assert_int_eq(try_alloc(1, NULL), GRANARY_OVER_LIMIT);
    struct granary_fault fault = fixture_fault(g);
    ck_assert_uint_eq(fault.shortfall.limit_bytes, 24 * GR_MIB);
    ck_assert_msg(strstr(fault.text, "limit") && strstr(fault.text, "24.00 MiB"), "%s", fault.text);
    ck_assert_int_eq(reserved(), 24 * GR_MIB);
    ck_assert_int_eq(granary_set_limit(g, GRANARY_UNLIMITED), GRANARY_OK);
    (void)fixture_alloc(g, 1, NULL);
    fixture_free(g, p);
    fixture_close(g);
}
END_TEST

START_TEST(a_limit_below_what_is_held_lets_hits_through_and_takes_nothing_new) {
    g = fixture_open(of_64_mib);
    void *p = fixture_alloc(g, 20 * GR_MIB, NULL);
    ck_assert_int_eq(granary_set_limit(g, 4 * GR_MIB), GRANARY_OK);
    ck_assert_ptr_null(granary_verify(g));
    ck_assert_int_eq(try_alloc(2 * GR_MIB, NULL), GRANARY_OVER_LIMIT);
    fixture_free(g, p);
    ck_assert_ptr_eq(fixture_alloc(g, 20 * GR_MIB, NULL), p);
    ck_assert_int_eq(reserved(), 20 * GR_MIB);
    fixture_close(g);
}
END_TEST

static void with_a_fraction(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 64 * GR_MIB;
    options->limit_fraction = 0.5;
    options->limit_bytes = 40 * GR_MIB;
}

START_TEST(of_a_fraction_and_a_size_the_lower_limit_holds) {
    g = fixture_open(with_a_fraction);
    ck_assert_int_eq(try_alloc(34 * GR_MIB, NULL), GRANARY_OVER_LIMIT);
    ck_assert_uint_eq(fixture_fault(g).shortfall.limit_bytes, 32 * GR_MIB);
    (void)fixture_alloc(g, 32 * GR_MIB, NULL);
    fixture_close(g);
}
END_TEST

/* ---- lost ------------------------------------------------------------------------------------- */

START_TEST(a_context_that_is_lost_can_only_be_closed) {
    g = fixture_open(of_64_mib);
    void *p = fixture_alloc(g, 4 * GR_MIB, NULL);
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuMemCreate, 1, 1, GR_CU_ILLEGAL_ADDRESS);
    ck_assert_int_eq(try_alloc(8 * GR_MIB, NULL), GRANARY_LOST);
    struct granary_fault fault = fixture_fault(g);
    ck_assert_str_eq(fault.driver_call, "cuMemCreate");
    ck_assert_int_eq(fault.driver_code, GR_CU_ILLEGAL_ADDRESS);
    fixture_free(g, p); /* host state alone */
    ck_assert_ptr_null(granary_verify(g));
    atomic_store(&g->driver.lost, 0); /* for the proof that nothing else was wrong */
    fixture_close(g);
}
END_TEST

Suite *suite_ladder(void) {
    Suite *suite = suite_create("ladder");
    TCase *cases = tcase_create("ladder");
    tcase_add_test(cases, a_miss_maps_only_the_shortfall);
    tcase_add_test(cases, a_small_request_takes_one_granule);
    tcase_add_test(cases, classic_misses_take_segments_as_pytorch_does);
    tcase_add_test(cases, a_fresh_classic_segment_serves_the_request_that_it_was_made_for);
    tcase_add_test(cases, cached_handles_serve_before_new_ones_are_created);
    tcase_add_test(cases, idle_memory_of_another_stream_serves_before_failure_and_is_counted_as_moved);
    tcase_add_test(cases, a_request_larger_than_the_device_makes_no_device_call);
    tcase_add_loop_test(cases, a_device_that_is_full_is_out_of_memory_with_its_figures, 0, 2);
    tcase_add_test(cases, free_memory_that_did_not_help_is_told_by_where_it_lies);
    tcase_add_test(cases, memory_of_other_processes_counts);
    tcase_add_test(cases, a_request_that_must_fail_does_not_empty_the_pools);
    tcase_add_loop_test(cases, a_limit_holds_to_the_byte_and_its_refusal_has_a_name_of_its_own, 0, 2);
    tcase_add_test(cases, a_limit_below_what_is_held_lets_hits_through_and_takes_nothing_new);
    tcase_add_test(cases, of_a_fraction_and_a_size_the_lower_limit_holds);
    tcase_add_test(cases, a_context_that_is_lost_can_only_be_closed);
    suite_add_tcase(suite, cases);
    return suite;
}
