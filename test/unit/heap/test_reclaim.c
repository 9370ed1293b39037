/* SPDX-License-Identifier: Apache-2.0
 * Memory is taken from where it is idle, never before an event has proved it, and trimming gives
 * back what can be given back. The device's clock is the test's: work stays pending until it is run. */
#include <check.h>
#include <pthread.h>

#include "base/clock.h"
#include "heap/heap.h"
#include "support/rng.h"
#include "support/two_streams.h"

static void of_64_gib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = (size_t)64 << 30;
}
static void in_granules_of_64_kib(struct granary_sim_config *sim, struct granary_options *options) {
    of_64_mib(sim, options);
    sim->granule_bytes = 64 * GR_KIB;
}
static void manual_classic(struct granary_sim_config *sim, struct granary_options *options) {
    manual_64_mib(sim, options);
    options->expandable_segments = 0;
}

static int64_t reserved(void) {
    return fixture_stats(g).reserved_bytes.all.current;
}

static uint64_t calls(enum gr_entry entry) {
    return gr_tap_count(&g->driver.tap, entry);
}

/* ---- reclaim ---------------------------------------------------------------------------------- */

/* The oracle of the simulation, strict, aborts if memory goes before the host saw its work end. */
START_TEST(memory_under_pending_work_is_waited_for_and_only_then_moved) {
    open_with(manual_64_mib);
    void *p = fixture_alloc(g, 60 * GR_MIB, a);
    use(a, p, 60 * GR_MIB, 1);
    fixture_free(g, p);
    void *q = fixture_alloc(g, 60 * GR_MIB, b);
    use(b, q, 60 * GR_MIB, 2);
    ck_assert_uint_eq(calls(GR_ENTRY_cuCtxSynchronize), 0);
    ck_assert_uint_eq(calls(GR_ENTRY_cuStreamSynchronize), 0);
    ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
    close_all();
}
END_TEST

static void *release_later(void *stream) {
    nanosleep(&(struct timespec){.tv_nsec = 300 * 1000 * 1000}, NULL);
    return granary_sim_release(stream) == GRANARY_OK ? NULL : "release";
}

/* Else a job that waits near the limit would earn room, as if moving itself were slow. */
START_TEST(time_that_is_spent_waiting_is_no_time_of_moving) {
    pthread_t thread;
    void *complaint;
    open_with(of_64_mib);
    void *p = fixture_alloc(g, 60 * GR_MIB, a);
    ck_assert_int_eq(granary_sim_hold(a), GRANARY_OK);
    use(a, p, 60 * GR_MIB, 1);
    fixture_free(g, p);
    ck_assert_int_eq(pthread_create(&thread, NULL, release_later, a), 0);
    uint64_t began = gr_clock_ns();
    (void)fixture_alloc(g, 60 * GR_MIB, b);
    uint64_t took = gr_clock_ns() - began;
    pthread_join(thread, &complaint);
    ck_assert_ptr_null(complaint);
    ck_assert_int_gt(fixture_stats(g).moving_ns, 0);
    ck_assert_uint_lt((uint64_t)fixture_stats(g).moving_ns + 200 * 1000 * 1000, took);
    close_all();
}
END_TEST

START_TEST(memory_that_is_known_idle_goes_before_memory_that_must_be_waited_for) {
    open_with(of_64_mib);
    granary_stream c = fixture_stream(g);
    ck_assert_int_eq(granary_sim_hold(a), GRANARY_OK);
    void *p = fixture_alloc(g, 20 * GR_MIB, a), *q = fixture_alloc(g, 20 * GR_MIB, b);
    use(a, p, 4096, 1);
    fixture_free(g, p);                     /* busy */
    fixture_free(g, q);                     /* never used */
    (void)fixture_alloc(g, 40 * GR_MIB, c); /* 24 are there, 16 are to be found */
    ck_assert_uint_eq(calls(GR_ENTRY_cuEventSynchronize), 0);
    ck_assert_uint_gt(fixture_held().pending_work, 0);
    ck_assert_ptr_eq(fixture_alloc(g, 20 * GR_MIB, a), p); /* untouched */
    ck_assert_int_eq(granary_sim_release(a), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, c), GRANARY_OK);
    close_all();
}
END_TEST

START_TEST(moving_stops_when_enough_is_free) {
    open_with(of_64_gib);
    void *p = fixture_alloc(g, 100 * GR_MIB, a), *q, *r;
    fixture_free(g, p);
    p = fixture_alloc(g, 60 * GR_MIB, a); /* one extent with two blocks, which keep it where it is */
    (void)fixture_alloc(g, 30 * GR_MIB, a);
    (void)fixture_alloc(g, 50 * GR_MIB, b);
    q = fixture_alloc(g, 100 * GR_MIB, b);
    r = fixture_alloc(g, 100 * GR_MIB, b); /* the peak is 340 MiB */
    ck_assert_int_eq(reserved(), 350 * (int64_t)GR_MIB);
    fixture_free(g, p);
    fixture_free(g, q);
    fixture_free(g, r);
    const uint64_t unmaps = calls(GR_ENTRY_cuMemUnmap);
    (void)fixture_alloc(g, 90 * GR_MIB,
                        a); /* 80 are missing: 52 of b serve, and 48 go, which are too many for the rest */
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemUnmap), unmaps + 2);
    ck_assert_int_eq(reserved(), 330 * (int64_t)GR_MIB); /* the other 100 stay */
    close_all();
}
END_TEST

/* Misses of so many replacements of a random block by one of random size. */
static int64_t misses_of(struct rng *rng, void **ptr, size_t blocks, int times) {
    const int64_t before = fixture_stats(g).misses;
    for (int i = 0; i < times; i++) {
        size_t at = rng_below(rng, blocks);
        if (ptr[at]) fixture_free(g, ptr[at]);
        ptr[at] = fixture_alloc(g, rng_between(rng, 1, 256 * GR_MIB), a);
    }
    return fixture_stats(g).misses - before;
}

START_TEST(large_blocks_of_random_sizes_cease_to_move_where_there_is_room) {
    enum { BLOCKS = 40, TIMES = 1000 };
    void *ptr[BLOCKS] = {NULL};
    struct rng rng = {11};
    open_with(of_64_gib);
    const int64_t first = misses_of(&rng, ptr, BLOCKS, TIMES);
    for (int round = 0; round < 3; round++) (void)misses_of(&rng, ptr, BLOCKS, TIMES);
    ck_assert_int_lt(misses_of(&rng, ptr, BLOCKS, TIMES) * 10, first);
    struct granary_stats s = fixture_stats(g);
    ck_assert_int_gt(s.moved_bytes, s.active_bytes.all.peak); /* it did move, */
    ck_assert_int_lt(s.reserved_bytes.all.peak * 2, s.active_bytes.all.peak * 3);
    for (int i = 0; i < BLOCKS; i++) fixture_free(g, ptr[i]);
    close_all();
}
END_TEST

/* What is idle on one stream serves the other, and once more back. */
static void move_to_and_fro(void) {
    fixture_free(g, fixture_alloc(g, 200 * GR_MIB, b));
    fixture_free(g, fixture_alloc(g, 200 * GR_MIB, a));
}

START_TEST(moving_earns_more_room_only_when_it_takes_too_much_of_the_time) {
    open_with(of_64_gib);
    fixture_free(g, fixture_alloc(g, 200 * GR_MIB, a));
    move_to_and_fro();
    ck_assert_int_gt(fixture_stats(g).moved_bytes, 0);
    ck_assert_uint_eq(g->restless, 0);
    for (int tries = 0; tries < 1000 && g->restless == 0; tries++) {
        g->allowance = (struct gr_allowance){.at = gr_clock_ns(), .credit = 0};
        move_to_and_fro();
    }
    ck_assert_uint_gt(g->restless, 0);
    ck_assert_uint_le(g->restless, (size_t)fixture_stats(g).moved_bytes);
    ck_assert_uint_eq(g->hasty, 0); /* no block fitted */
    close_all();
}
END_TEST

/* Bytes held when 200 MiB lie idle on one stream and another asks for 50. */
static int64_t held_after_another_asks(size_t restless) {
    open_with(of_64_gib);
    g->restless = restless;
    fixture_free(g, fixture_alloc(g, 200 * GR_MIB, a));
    fixture_free(g, fixture_alloc(g, 50 * GR_MIB, b));
    const int64_t held = reserved();
    close_all();
    return held;
}

START_TEST(what_moved_too_fast_is_room_for_new_memory_instead_of_moves) {
    ck_assert_int_le(held_after_another_asks(0), 200 * (int64_t)GR_MIB);
    ck_assert_int_eq(held_after_another_asks(200 * GR_MIB), 250 * (int64_t)GR_MIB);
}
END_TEST

START_TEST(a_small_growth_brings_more_and_if_it_cannot_what_is_asked_for) {
    open_with(of_64_gib);
    (void)fixture_alloc(g, (size_t)4 << 30, a);
    ck_assert_int_eq(reserved(), (int64_t)4 << 30);
    (void)fixture_alloc(g, 2 * GR_MIB, a);
    ck_assert_int_eq(reserved(), ((int64_t)4 << 30) + 8 * (int64_t)GR_MIB);
    uint64_t creates = calls(GR_ENTRY_cuMemCreate);
    for (int i = 0; i < 3; i++) (void)fixture_alloc(g, 2 * GR_MIB, a);
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemCreate), creates);
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuMemCreate, 1, 1, GR_CU_OUT_OF_MEMORY);
    (void)fixture_alloc(g, 2 * GR_MIB, a);
    ck_assert_int_eq(reserved(), ((int64_t)4 << 30) + 10 * (int64_t)GR_MIB);
    ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
    close_all();
}
END_TEST

START_TEST(holes_between_live_blocks_of_the_pool_itself_are_used_first) {
    open_with(manual_64_mib);
    void *p[6], *other = fixture_alloc(g, 8 * GR_MIB, b);
    fixture_free(g, other);
    for (int i = 0; i < 6; i++) p[i] = fixture_alloc(g, i % 2 ? 2 * GR_MIB : 16 * GR_MIB, a);
    for (int i = 0; i < 6; i += 2) fixture_free(g, p[i]);
    ck_assert_int_eq(reserved(), 62 * GR_MIB);
    (void)fixture_alloc(g, 50 * GR_MIB, a); /* 48 lie in three pieces, 2 the device still has */
    ck_assert_ptr_eq(fixture_alloc(g, 8 * GR_MIB, b), other);
    for (int i = 1; i < 6; i += 2) fixture_free(g, p[i]); /* their addresses stayed valid */
    close_all();
}
END_TEST

/* The card is full, and stream a has a piece of a granule beside a hole, and what is returned: 4 MiB, which
 * are to be freed. */
static void *lay_piece(void **piece) {
    void *p = fixture_alloc(g, 4 * GR_MIB, a), *q;
    (void)fixture_alloc(g, 2 * GR_MIB, a);
    q = fixture_alloc(g, 4 * GR_MIB, a);
    (void)fixture_alloc(g, 54 * GR_MIB, a);
    fixture_free(g, q);
    *piece = (char *)fixture_alloc(g, 1408 * 1024, a) + 1408 * 1024;
    (void)fixture_alloc(g, 2 * GR_MIB, b);
    ck_assert_int_eq(fixture_stats(g).moved_bytes, 2 * GR_MIB);
    return p;
}

START_TEST(a_block_that_fits_is_passed_over_where_growing_keeps_more_from_moving) {
    void *piece, *p;
    open_with(of_64_mib);
    p = lay_piece(&piece);
    fixture_free(g, p); /* would lose two granules to the request, and loses one to the place */
    ck_assert_ptr_eq(fixture_alloc(g, 5 * GR_MIB / 2, a), piece);
    ck_assert_int_eq(fixture_stats(g).moved_bytes, 4 * GR_MIB);
    (void)fixture_alloc(g, 2 * GR_MIB, b);
    ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
    close_all();
}
END_TEST

START_TEST(a_block_that_fits_is_taken_where_what_fits_moves_too_often) {
    void *piece, *p;
    open_with(of_64_mib);
    p = lay_piece(&piece);
    g->hasty = 128 * GR_MIB;
    fixture_free(g, p);
    ck_assert_ptr_eq(fixture_alloc(g, 5 * GR_MIB / 2, a), p);
    ck_assert_int_eq(fixture_stats(g).moved_bytes, 2 * GR_MIB);
    close_all();
}
END_TEST

START_TEST(a_block_that_fits_is_taken_rather_than_waiting_for_memory_to_grow_with) {
    void *piece, *p;
    open_with(of_64_mib);
    p = lay_piece(&piece);
    ck_assert_int_eq(granary_sim_hold(a), GRANARY_OK);
    use(a, p, 4096, 1);
    fixture_free(g, p);
    ck_assert_ptr_eq(fixture_alloc(g, 5 * GR_MIB / 2, a), p);
    ck_assert_uint_eq(calls(GR_ENTRY_cuEventSynchronize), 0);
    ck_assert_int_eq(fixture_stats(g).moved_bytes, 2 * GR_MIB);
    ck_assert_int_eq(granary_sim_release(a), GRANARY_OK);
    close_all();
}
END_TEST

START_TEST(small_blocks_give_their_idle_granules_to_large_ones) {
    enum { COUNT = 32 * 4096 / 16 }; /* 64 MiB in pieces of 8 KiB */
    static void *p[COUNT];
    open_with(manual_64_mib);
    for (int i = 0; i < COUNT; i++) p[i] = fixture_alloc(g, 8192, a);
    ck_assert_int_eq(reserved(), 64 * GR_MIB);
    for (int i = 0; i < COUNT; i++) fixture_free(g, p[i]);
    (void)fixture_alloc(g, 64 * GR_MIB, a);
    ck_assert_int_eq(reserved(), 64 * GR_MIB);
    close_all();
}
END_TEST

START_TEST(a_live_byte_pins_its_granule_and_no_more) {
    open_with(manual_64_mib);
    void *whole = fixture_alloc(g, 64 * GR_MIB, a);
    fixture_free(g, whole);
    ck_assert_int_eq(fixture_trim(g, 0), 64 * GR_MIB);
    void *p[32], *tiny[32];
    for (int i = 0; i < 31; i++) {
        tiny[i] = fixture_alloc(g, GR_MIB, b); /* two to a granule */
        p[i] = fixture_alloc(g, GR_MIB, b);
    }
    for (int i = 0; i < 31; i++) fixture_free(g, p[i]);
    for (int i = 0; i < 31; i++)
        if (i != 15) fixture_free(g, tiny[i]);
    (void)fixture_alloc(g, 62 * GR_MIB, a);
    fixture_free(g, tiny[15]);
    close_all();
}
END_TEST

START_TEST(classic_segments_of_other_streams_are_given_back_before_failure) {
    open_with(manual_classic);
    void *p = fixture_alloc(g, 60 * GR_MIB, a);
    use(a, p, 4096, 1);
    fixture_free(g, p);
    void *q = fixture_alloc(g, 60 * GR_MIB, b); /* cuMemFree waits for the work by itself */
    use(b, q, 4096, 2);
    ck_assert_int_eq(fixture_stats(g).segments.all.current, 1);
    close_all();
}
END_TEST

/* ---- trim ------------------------------------------------------------------------------------- */

START_TEST(trimming_gives_all_idle_memory_back_and_keeps_a_range_for_each_pool) {
    open_with(manual_64_mib);
    void *p = fixture_alloc(g, 20 * GR_MIB, a), *q = fixture_alloc(g, 1000, b);
    use(a, p, 20 * GR_MIB, 1);
    fixture_free(g, p);
    ck_assert_uint_eq(fixture_trim(g, 0), 20 * GR_MIB);
    struct granary_stats s = fixture_stats(g);
    ck_assert_int_eq(s.reserved_bytes.all.current, 2 * GR_MIB);
    ck_assert_int_eq(s.ranges, 2);
    ck_assert_uint_eq(fixture_held().reservations, 2);
    ck_assert_uint_eq(fixture_held().handle_bytes, 2 * GR_MIB);
    fixture_free(g, q);
    ck_assert_uint_eq(fixture_trim(g, 0), 2 * GR_MIB);
    ck_assert_uint_eq(fixture_held().handles + fixture_held().mappings, 0);
    ck_assert_int_eq(fixture_stats(g).reserved_address_bytes, s.reserved_address_bytes);
    ck_assert_uint_eq(fixture_trim(g, 0), 0);
    uint64_t reserves = calls(GR_ENTRY_cuMemAddressReserve);
    ck_assert_ptr_eq(fixture_alloc(g, 20 * GR_MIB, a), p); /* and it can begin again, where it was */
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemAddressReserve), reserves);
    close_all();
}
END_TEST

START_TEST(trimming_leaves_no_range_to_a_stream_that_is_gone) {
    open_with(of_64_mib);
    granary_stream gone = fixture_stream(g);
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, gone));
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, a));
    ck_assert_int_eq(granary_stream_destroy(g, gone), GRANARY_OK);
    (void)fixture_trim(g, 0);
    ck_assert_int_eq(fixture_stats(g).ranges, 1);
    close_all();
}
END_TEST

static void small_ranges(struct granary_sim_config *sim, struct granary_options *options) {
    of_64_mib(sim, options);
    sim->max_reserve_bytes = 16 * GR_MIB;
}

START_TEST(trimming_leaves_one_empty_range_of_several) {
    open_with(small_ranges);
    void *p[3];
    for (int i = 0; i < 3; i++) p[i] = fixture_alloc(g, 12 * GR_MIB, a);
    ck_assert_int_eq(fixture_stats(g).ranges, 3);
    for (int i = 0; i < 3; i++) fixture_free(g, p[i]);
    ck_assert_uint_eq(fixture_trim(g, 0), 36 * GR_MIB);
    ck_assert_int_eq(fixture_stats(g).ranges, 1);
    close_all();
}
END_TEST

static void addresses_for_two(struct granary_sim_config *sim, struct granary_options *options) {
    of_64_mib(sim, options);
    sim->address_bytes = 2 * (64 + 8) * GR_MIB + GR_MIB; /* a range holds an eighth more than the card */
}

START_TEST(kept_ranges_go_when_addresses_run_out) {
    open_with(addresses_for_two);
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, a));
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, b));
    (void)fixture_trim(g, 0);
    ck_assert_int_eq(fixture_stats(g).ranges, 2);
    void *p = fixture_alloc(g, 20 * GR_MIB, NULL); /* with nothing held, and no addresses left */
    ck_assert_int_eq(fixture_stats(g).ranges, 1);
    fixture_free(g, p);
    close_all();
}
END_TEST

START_TEST(trimming_to_an_amount_gives_back_no_more_than_it_must) {
    open_with(manual_64_mib);
    void *p[10];
    for (int i = 0; i < 10; i++) p[i] = fixture_alloc(g, 3 * GR_MIB, a); /* 30 MiB */
    for (int i = 0; i < 10; i++) fixture_free(g, p[i]);
    ck_assert_uint_eq(fixture_trim(g, 64 * GR_MIB), 0);
    ck_assert_int_eq(reserved(), 30 * GR_MIB);
    ck_assert_uint_gt(fixture_trim(g, 13 * GR_MIB), 0);
    ck_assert_int_le(reserved(), 13 * GR_MIB);
    close_all();
}
END_TEST

START_TEST(trimming_classic_segments_leaves_those_in_use) {
    open_with(manual_classic);
    void *p = fixture_alloc(g, 2 * GR_MIB, a), *q = fixture_alloc(g, 30 * GR_MIB, b),
         *small = fixture_alloc(g, 1, a);
    use(b, q, 4096, 1);
    fixture_free(g, q);
    fixture_free(g, small);
    ck_assert_uint_eq(fixture_trim(g, 0), 32 * GR_MIB);
    ck_assert_int_eq(reserved(), 20 * GR_MIB);
    fixture_free(g, p);
    ck_assert_uint_eq(fixture_trim(g, 0), 20 * GR_MIB);
    ck_assert_uint_eq(fixture_held().allocations, 0);
    close_all();
}
END_TEST

START_TEST(trimming_while_a_stream_is_captured_spares_its_memory_and_its_capture) {
    gr_cu_graph graph = NULL;
    open_with(manual_64_mib);
    fixture_free(g, fixture_alloc(g, 10 * GR_MIB, b));
    void *p = fixture_alloc(g, 20 * GR_MIB, a);
    fixture_free(g, p); /* with no event behind it when the capture begins */
    if (g->driver.call.cuStreamBeginCapture(a, GR_CU_CAPTURE_MODE_RELAXED) == GR_CU_NOT_SUPPORTED) return;
    size_t released = 0;
    (void)granary_trim(g, 0, &released);
    ck_assert_uint_eq(released, 10 * GR_MIB);
    ck_assert_int_eq(g->driver.call.cuStreamEndCapture(a, &graph), GR_CU_SUCCESS);
    ck_assert_int_eq(g->driver.call.cuGraphDestroy(graph), GR_CU_SUCCESS);
    ck_assert_uint_eq(fixture_trim(g, 0), 20 * GR_MIB);
    close_all();
}
END_TEST

/* One that belongs to another device, or to somebody else's code on this thread. */
START_TEST(classic_segments_go_back_without_harm_to_a_capture_that_nobody_told_of) {
    for (int mode = 0; mode < 3; mode++) { /* GLOBAL, THREAD_LOCAL, RELAXED */
        gr_cu_graph graph = NULL;
        open_with(manual_classic);
        fixture_free(g, fixture_alloc(g, 10 * GR_MIB, a));
        ck_assert_int_eq(g->driver.call.cuStreamBeginCapture(b, mode), GR_CU_SUCCESS);
        ck_assert_uint_eq(fixture_trim(g, 0), 10 * GR_MIB);
        ck_assert_uint_eq(calls(GR_ENTRY_cuMemFree), 1);
        ck_assert_int_eq(g->driver.call.cuStreamEndCapture(b, &graph), GR_CU_SUCCESS);
        ck_assert_int_eq(g->driver.call.cuGraphDestroy(graph), GR_CU_SUCCESS);
        close_all();
    }
}
END_TEST

/* What is free is less than the 2 MiB that a granule has on every device so far. */
START_TEST(idle_memory_goes_back_in_whatever_granules_the_device_has) {
    open_with(in_granules_of_64_kib);
    void *low = fixture_alloc(g, 64 * GR_KIB, a), *middle = fixture_alloc(g, 512 * GR_KIB, a),
         *high = fixture_alloc(g, 64 * GR_KIB, a);
    fixture_free(g, middle);
    ck_assert_uint_eq(fixture_trim(g, 0), 512 * GR_KIB);
    fixture_free(g, low);
    fixture_free(g, high);
    fixture_trim(g, 0);
    ck_assert_int_eq(reserved(), 0);
    close_all();
}
END_TEST

Suite *suite_reclaim(void) {
    Suite *suite = suite_create("reclaim");
    TCase *cases = tcase_create("reclaim");
    tcase_add_test(cases, memory_under_pending_work_is_waited_for_and_only_then_moved);
    tcase_add_test(cases, time_that_is_spent_waiting_is_no_time_of_moving);
    tcase_add_test(cases, memory_that_is_known_idle_goes_before_memory_that_must_be_waited_for);
    tcase_add_test(cases, moving_stops_when_enough_is_free);
    tcase_add_test(cases, a_small_growth_brings_more_and_if_it_cannot_what_is_asked_for);
    tcase_add_test(cases, holes_between_live_blocks_of_the_pool_itself_are_used_first);
    tcase_add_test(cases, a_block_that_fits_is_passed_over_where_growing_keeps_more_from_moving);
    tcase_add_test(cases, a_block_that_fits_is_taken_where_what_fits_moves_too_often);
    tcase_add_test(cases, a_block_that_fits_is_taken_rather_than_waiting_for_memory_to_grow_with);
    tcase_add_test(cases, small_blocks_give_their_idle_granules_to_large_ones);
    tcase_add_test(cases, a_live_byte_pins_its_granule_and_no_more);
    tcase_add_test(cases, classic_segments_of_other_streams_are_given_back_before_failure);
    tcase_add_test(cases, trimming_gives_all_idle_memory_back_and_keeps_a_range_for_each_pool);
    tcase_add_test(cases, trimming_leaves_no_range_to_a_stream_that_is_gone);
    tcase_add_test(cases, trimming_leaves_one_empty_range_of_several);
    tcase_add_test(cases, kept_ranges_go_when_addresses_run_out);
    tcase_add_test(cases, trimming_to_an_amount_gives_back_no_more_than_it_must);
    tcase_add_test(cases, idle_memory_goes_back_in_whatever_granules_the_device_has);
    tcase_add_test(cases, trimming_classic_segments_leaves_those_in_use);
    tcase_add_test(cases, trimming_while_a_stream_is_captured_spares_its_memory_and_its_capture);
    tcase_add_test(cases, classic_segments_go_back_without_harm_to_a_capture_that_nobody_told_of);
    suite_add_tcase(suite, cases);
    TCase *large = tcase_create("much traffic");
    tcase_set_tags(large, "large");
    tcase_add_test(large, large_blocks_of_random_sizes_cease_to_move_where_there_is_room);
    tcase_add_test(cases, moving_earns_more_room_only_when_it_takes_too_much_of_the_time);
    tcase_add_test(cases, what_moved_too_fast_is_room_for_new_memory_instead_of_moves);
    suite_add_tcase(suite, large);
    return suite;
}
