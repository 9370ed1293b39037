/* SPDX-License-Identifier: Apache-2.0
 * Memory of one device that another may touch: all of it from the call on, and nothing of it after a refusal.
 * A fill that a device may not do is refused by the driver with 1. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "heap/heap.h"
#include "support/fixture.h"

#define RAN(call) ck_assert_int_eq((call), GRANARY_OK)

static granary *g, *peer;
static granary_stream own, far; /* a stream of each */

static void two_devices(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->devices = 2;
    sim->memory_bytes = 256 * GR_MIB;
}
static void two_islands(struct granary_sim_config *sim, struct granary_options *options) {
    two_devices(sim, options);
    sim->peers = 0;
}
static void two_small(struct granary_sim_config *sim, struct granary_options *options) {
    two_devices(sim, options);
    sim->memory_bytes = 64 * GR_MIB;
}
static void two_classic(struct granary_sim_config *sim, struct granary_options *options) {
    two_devices(sim, options);
    options->expandable_segments = 0;
}

static void open_with(fixture_change *change) {
    struct granary_options options;
    fixture_open_sim(change, &options);
    g = fixture_open_handle(&options, 0);
    peer = fixture_open_handle(&options, 1);
    own = fixture_stream(g);
    far = fixture_stream(peer);
}

static void close_all(void) {
    granary_sim_run_all();
    ck_assert_ptr_null(granary_verify(g));
    ck_assert_ptr_null(granary_verify(peer));
    RAN(granary_stream_destroy(g, own));
    RAN(granary_stream_destroy(peer, far));
    fixture_close_handle(peer);
    fixture_close_handle(g);
    fixture_close_sim();
}

/* May the peer write there? The host waits, so that whatever comes after is in order. */
static bool reaches(void *ptr) {
    gr_cu_result code = peer->driver.call.cuMemsetD8Async((gr_cu_ptr)(uintptr_t)ptr, 1, 512, far);
    ck_assert(code == GR_CU_SUCCESS || code == GR_CU_INVALID_VALUE);
    ck_assert_int_eq(peer->driver.call.cuStreamSynchronize(far), GR_CU_SUCCESS);
    return code == GR_CU_SUCCESS;
}

static uint64_t told(void) {
    return gr_tap_count(&g->driver.tap, GR_ENTRY_cuMemSetAccess);
}

START_TEST(a_peer_may_touch_what_is_mapped_and_what_will_be) {
    open_with(two_devices);
    void *small = fixture_alloc(g, 1000, own), *large = fixture_alloc(g, 30 * GR_MIB, own);
    ck_assert(!reaches(small) && !reaches(large));
    RAN(granary_allow_peer(g, 1));
    ck_assert(reaches(small) && reaches(large));
    void *grown = fixture_alloc(g, 50 * GR_MIB, own);
    ck_assert(reaches(grown));
    fixture_free(g, small);
    fixture_free(g, large);
    fixture_free(g, grown);
    close_all();
}
END_TEST

START_TEST(access_is_one_way) {
    open_with(two_devices);
    RAN(granary_allow_peer(peer, 0)); /* the other way round */
    void *ptr = fixture_alloc(g, 4 * GR_MIB, own);
    ck_assert(!reaches(ptr));
    fixture_free(g, ptr);
    close_all();
}
END_TEST

START_TEST(memory_that_moves_and_memory_of_private_pools_is_open_too) {
    granary_pool pool;
    uint64_t scope;
    open_with(two_small);
    RAN(granary_allow_peer(g, 1));
    fixture_free(g, fixture_alloc(g, 60 * GR_MIB, own));
    RAN(granary_pool_create(g, NULL, &pool));
    RAN(granary_scope_begin(g, pool, NULL, NULL, &scope));
    void *moved = fixture_alloc(g, 50 * GR_MIB, own);
    RAN(granary_scope_end(g, scope));
    ck_assert_int_gt(fixture_stats(g).moved_bytes, 0);
    ck_assert(reaches(moved));
    fixture_free(g, moved);
    RAN(granary_pool_release(g, pool));
    close_all();
}
END_TEST

START_TEST(the_device_itself_and_one_that_may_already_take_no_driver_call) {
    open_with(two_devices);
    void *ptr = fixture_alloc(g, 4 * GR_MIB, own);
    RAN(granary_allow_peer(g, 1));
    const uint64_t before = gr_tap_total(&g->driver.tap);
    RAN(granary_allow_peer(g, 1));
    RAN(granary_allow_peer(g, 0));
    ck_assert_uint_eq(gr_tap_total(&g->driver.tap), before);
    fixture_free(g, ptr);
    close_all();
}
END_TEST

START_TEST(a_device_that_is_not_there_is_named) {
    static const int wrong[] = {2, -1, INT32_MAX, INT32_MIN};
    open_with(two_devices);
    const uint64_t before = told();
    for (size_t i = 0; i < GR_COUNT(wrong); i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", wrong[i]);
        ck_assert_int_eq(granary_allow_peer(g, wrong[i]), GRANARY_NO_DEVICE);
        ck_assert_ptr_nonnull(strstr(fixture_fault(g).text, number));
    }
    ck_assert_int_eq(granary_allow_peer(NULL, 1), GRANARY_INVALID);
    ck_assert_uint_eq(told(), before);
    close_all();
}
END_TEST

START_TEST(a_device_that_cannot_reach_is_refused_and_nothing_changes) {
    open_with(two_islands);
    void *ptr = fixture_alloc(g, 4 * GR_MIB, own);
    const uint64_t before = told();
    ck_assert_int_eq(granary_allow_peer(g, 1), GRANARY_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fixture_fault(g).text, "device 1 cannot reach"));
    ck_assert_uint_eq(told(), before);
    void *grown = fixture_alloc(g, 30 * GR_MIB, own);
    ck_assert(!reaches(ptr) && !reaches(grown));
    fixture_free(g, ptr);
    fixture_free(g, grown);
    close_all();
}
END_TEST

START_TEST(a_driver_that_cannot_be_asked_gives_no_access) {
    open_with(two_devices);
    g->driver.call.cuDeviceCanAccessPeer = NULL;
    ck_assert_int_eq(granary_allow_peer(g, 1), GRANARY_UNSUPPORTED);
    close_all();
}
END_TEST

START_TEST(a_refusal_half_way_takes_back_what_was_told) {
    open_with(two_devices);
    void *small = fixture_alloc(g, 1000, own), *large = fixture_alloc(g, 30 * GR_MIB, own);
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuMemSetAccess, 2, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(granary_allow_peer(g, 1), GRANARY_OUT_OF_MEMORY);
    gr_tap_clear(&g->driver.tap);
    ck_assert(!reaches(small) && !reaches(large));
    void *grown = fixture_alloc(g, 50 * GR_MIB, own);
    ck_assert(!reaches(grown));
    RAN(granary_allow_peer(g, 1));
    ck_assert(reaches(small) && reaches(large) && reaches(grown));
    fixture_free(g, small);
    fixture_free(g, large);
    fixture_free(g, grown);
    close_all();
}
END_TEST

START_TEST(a_lost_device_is_not_asked) {
    open_with(two_devices);
    atomic_store(&g->driver.lost, 1);
    const uint64_t before = gr_tap_total(&g->driver.tap);
    ck_assert_int_eq(granary_allow_peer(g, 1), GRANARY_LOST);
    ck_assert_uint_eq(gr_tap_total(&g->driver.tap), before);
    atomic_store(&g->driver.lost, 0);
    close_all();
}
END_TEST

START_TEST(classic_segments_are_left_to_the_context) {
    open_with(two_classic);
    void *ptr = fixture_alloc(g, 4 * GR_MIB, own);
    RAN(granary_allow_peer(g, 1));
    ck_assert_uint_eq(told(), 1); /* the attempt at opening */
    ck_assert(reaches(ptr));
    fixture_free(g, ptr);
    close_all();
}
END_TEST

/* ---- streams of a peer ------------------------------------------------------------------------ */

/* An event belongs to the context of its stream. */
START_TEST(a_block_that_a_stream_of_a_peer_used_waits_for_that_stream) {
    open_with(two_devices);
    RAN(granary_allow_peer(g, 1));
    for (int round = 0; round < 3; round++) { /* with new events, and with the same again */
        void *ptr = fixture_alloc(g, 4 * GR_MIB, own);
        RAN(granary_sim_hold(far));
        ck_assert_int_eq(granary_sim_use(far, ptr, 512, 1, 0, GRANARY_SIM_SITE), 0);
        RAN(granary_record_stream(g, ptr, far));
        if (round == 1) RAN(granary_record_stream(g, ptr, NULL)); /* a stream of its own device beside it */
        fixture_free(g, ptr);
        ck_assert_int_eq(fixture_stats(g).pending_blocks, 1);
        RAN(granary_sim_release(far));
        granary_sim_run_all();
        ck_assert_int_eq(fixture_stats(g).pending_blocks, 0);
    }
    close_all();
}
END_TEST

START_TEST(events_are_made_anew_when_a_use_passes_from_one_device_to_the_other) {
    open_with(two_devices);
    RAN(granary_allow_peer(g, 1));
    granary_stream streams[] = {NULL, far, NULL, far};
    const uint64_t made = gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventCreate);
    for (size_t i = 0; i < GR_COUNT(streams); i++) {
        void *ptr = fixture_alloc(g, 1000, own);
        RAN(granary_record_stream(g, ptr, streams[i]));
        fixture_free(g, ptr);
        granary_sim_run_all();
        ck_assert_int_eq(fixture_stats(g).pending_blocks, 0);
    }
    ck_assert_uint_eq(gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventCreate) - made, GR_COUNT(streams));
    ck_assert_uint_eq(fixture_held().events, 1);
    close_all();
}
END_TEST

START_TEST(an_event_that_cannot_be_made_for_a_peer_leaves_the_block_as_it_was) {
    open_with(two_devices);
    void *ptr = fixture_alloc(g, 1000, own);
    RAN(granary_record_stream(g, ptr, NULL)); /* leaves an object when it is freed */
    fixture_free(g, ptr);
    ptr = fixture_alloc(g, 1000, own);
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuEventCreate, 1, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(granary_record_stream(g, ptr, far), GRANARY_OUT_OF_MEMORY);
    gr_tap_clear(&g->driver.tap);
    ck_assert_ptr_null(granary_verify(g));
    fixture_free(g, ptr);
    ck_assert_int_eq(fixture_stats(g).pending_blocks, 0);
    close_all();
}
END_TEST

START_TEST(memory_that_a_stream_of_a_peer_was_given_moves_once_that_stream_has_passed) {
    open_with(two_small);
    RAN(granary_allow_peer(g, 1));
    void *ptr = fixture_alloc(g, 60 * GR_MIB, far);
    RAN(granary_sim_hold(far));
    ck_assert_int_eq(granary_sim_use(far, ptr, 512, 1, 1, GRANARY_SIM_SITE), 0);
    fixture_free(g, ptr);
    RAN(granary_sim_release(far));
    ptr = fixture_alloc(g, 50 * GR_MIB, own);
    ck_assert_int_eq(granary_sim_use(own, ptr, 512, 1, 2, GRANARY_SIM_SITE), 0);
    ck_assert_int_gt(fixture_stats(g).moved_bytes, 0);
    fixture_free(g, ptr);
    close_all();
}
END_TEST

/* 60 of 64 MiB freed on the stream serve another, which takes an event on it. */
static void pass_from(granary_stream stream) {
    const int64_t moved = fixture_stats(g).moved_bytes;
    fixture_free(g, fixture_alloc(g, 60 * GR_MIB, stream));
    void *ptr = fixture_alloc(g, 50 * GR_MIB, own);
    ck_assert_int_gt(fixture_stats(g).moved_bytes, moved);
    fixture_free(g, ptr);
    (void)fixture_trim(g, 0);
}

START_TEST(what_a_stream_of_a_peer_has_left_serves_one_of_the_device_and_back) {
    open_with(two_small);
    for (int round = 0; round < 4; round++) {
        granary *of = round % 2 ? g : peer;
        granary_stream stream = fixture_stream(of);
        pass_from(stream);
        if (of == peer) RAN(granary_stream_destroyed(g, stream));
        RAN(granary_stream_destroy(of, stream));
    }
    close_all();
}
END_TEST

Suite *suite_peer(void) {
    Suite *suite = suite_create("peer");
    TCase *cases = tcase_create("peer");
    tcase_add_test(cases, a_peer_may_touch_what_is_mapped_and_what_will_be);
    tcase_add_test(cases, access_is_one_way);
    tcase_add_test(cases, memory_that_moves_and_memory_of_private_pools_is_open_too);
    tcase_add_test(cases, the_device_itself_and_one_that_may_already_take_no_driver_call);
    tcase_add_test(cases, a_device_that_is_not_there_is_named);
    tcase_add_test(cases, a_device_that_cannot_reach_is_refused_and_nothing_changes);
    tcase_add_test(cases, a_driver_that_cannot_be_asked_gives_no_access);
    tcase_add_test(cases, a_refusal_half_way_takes_back_what_was_told);
    tcase_add_test(cases, a_lost_device_is_not_asked);
    tcase_add_test(cases, classic_segments_are_left_to_the_context);
    tcase_add_test(cases, a_block_that_a_stream_of_a_peer_used_waits_for_that_stream);
    tcase_add_test(cases, events_are_made_anew_when_a_use_passes_from_one_device_to_the_other);
    tcase_add_test(cases, an_event_that_cannot_be_made_for_a_peer_leaves_the_block_as_it_was);
    tcase_add_test(cases, memory_that_a_stream_of_a_peer_was_given_moves_once_that_stream_has_passed);
    tcase_add_test(cases, what_a_stream_of_a_peer_has_left_serves_one_of_the_device_and_back);
    suite_add_tcase(suite, cases);
    return suite;
}
