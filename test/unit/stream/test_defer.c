/* SPDX-License-Identifier: Apache-2.0
 * Deferral outside of captures, and what frees and requests of other threads and streams do while one
 * is open. */
#include <check.h>
#include <pthread.h>

#include "support/captures.h"

static granary_stream a, b, c;

static void manual(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->clock = GRANARY_SIM_MANUAL;
    sim->hang_ms = 500;
}

static void setup(void) {
    captures_open(manual);
    a = captures_stream();
    b = captures_stream();
    c = captures_stream();
}

static void teardown(void) {
    captures_close();
}

static uint64_t ids;

/* Used on another stream, and freed. */
static void *pend(size_t size, granary_stream owner, granary_stream user) {
    char *p = fixture_alloc(g, size, owner);
    captures_link(owner, user);
    RAN(granary_record_stream(g, p, user));
    captures_use(user, p, size, ++ids);
    fixture_free(g, p);
    return p;
}

static int64_t pending(void) {
    return fixture_stats(g).pending_blocks;
}

static uint64_t calls(enum gr_entry entry) {
    return gr_tap_count(&g->driver.tap, entry);
}

START_TEST(a_block_is_pending_until_its_other_stream_is_done) {
    void *p = pend(4 * GR_MIB, a, b);
    ck_assert_int_eq(pending(), 1);
    ck_assert_int_eq(fixture_stats(g).active_bytes.all.current, 4 * GR_MIB);
    ck_assert_int_eq(fixture_stats(g).allocated_bytes.all.current, 0);
    ck_assert_ptr_ne(fixture_alloc(g, 4 * GR_MIB, a), p);
    granary_sim_run_all();
    ck_assert_int_eq(pending(), 0);
    ck_assert_ptr_eq(fixture_alloc(g, 4 * GR_MIB, a), p);
}
END_TEST

START_TEST(record_stream_of_the_own_stream_does_nothing) {
    char *p = fixture_alloc(g, GR_MIB, a);
    uint64_t before = gr_tap_total(&g->driver.tap);
    RAN(granary_record_stream(g, p, a));
    ck_assert_uint_eq(gr_tap_total(&g->driver.tap), before);
    fixture_free(g, p);
    ck_assert_uint_eq(gr_tap_total(&g->driver.tap), before);
    ck_assert_int_eq(pending(), 0);
    char *q = fixture_alloc(g, GR_MIB, NULL);
    RAN(granary_record_stream(g, q, GR_CU_STREAM_LEGACY)); /* one stream with two names */
    fixture_free(g, q);
    ck_assert_int_eq(pending(), 0);
}
END_TEST

START_TEST(a_block_used_by_two_streams_waits_for_both) {
    char *p = fixture_alloc(g, GR_MIB, a);
    captures_link(a, b);
    captures_link(a, c);
    RAN(granary_record_stream(g, p, b));
    RAN(granary_record_stream(g, p, c));
    RAN(granary_record_stream(g, p, c)); /* once more is the same */
    granary_sim_run_all();
    captures_use(b, p, GR_MIB, 1);
    captures_use(c, p, GR_MIB, 1);
    uint64_t before = calls(GR_ENTRY_cuEventRecord);
    fixture_free(g, p);
    ck_assert_uint_eq(calls(GR_ENTRY_cuEventRecord) - before, 2);
    granary_sim_run(b, 100);
    ck_assert_int_eq(pending(), 1);
    granary_sim_run(c, 100);
    ck_assert_int_eq(pending(), 0);
}
END_TEST

START_TEST(a_free_with_no_other_stream_calls_no_driver) {
    uint64_t before = 0;
    for (int i = 0; i < 100; i++) {
        void *p = fixture_alloc(g, GR_MIB, a);
        if (i == 1) before = gr_tap_total(&g->driver.tap);
        captures_use(a, p, GR_MIB, ++ids);
        fixture_free(g, p);
    }
    ck_assert_uint_eq(gr_tap_total(&g->driver.tap), before);
}
END_TEST

START_TEST(blocks_that_wait_on_a_stuck_stream_cost_other_streams_no_call) {
    enum { STUCK = 10000 };
    for (int i = 0; i < STUCK; i++) {
        void *p = fixture_alloc(g, 512, a);
        RAN(granary_record_stream(g, p, b));
        captures_use(b, p, 512, 0);
        fixture_free(g, p);
    }
    ck_assert_int_eq(pending(), STUCK);
    fixture_free(g, fixture_alloc(g, GR_MIB, c));
    uint64_t before = gr_tap_total(&g->driver.tap);
    for (int i = 0; i < 1000; i++) fixture_free(g, fixture_alloc(g, GR_MIB, c));
    ck_assert_uint_eq(gr_tap_total(&g->driver.tap), before);
    /* A miss asks for the head of the queue, not for its 10,000 blocks. */
    before = calls(GR_ENTRY_cuEventQuery);
    (void)fixture_alloc(g, 64 * GR_MIB, c);
    ck_assert_uint_le(calls(GR_ENTRY_cuEventQuery) - before, 2);
}
END_TEST

START_TEST(a_shortage_waits_for_the_one_event_that_helps) {
    granary_set_limit(g, 64 * GR_MIB);
    void *small = pend(8 * GR_MIB, a, b), *right = pend(24 * GR_MIB, a, c), *large = pend(32 * GR_MIB, a, b);
    uint64_t before = calls(GR_ENTRY_cuEventSynchronize), context = calls(GR_ENTRY_cuCtxSynchronize);
    void *q = fixture_alloc(g, 20 * GR_MIB, a);
    ck_assert_ptr_eq(q, right);
    ck_assert_uint_eq(calls(GR_ENTRY_cuEventSynchronize) - before, 1);
    ck_assert_uint_eq(calls(GR_ENTRY_cuCtxSynchronize), context);
    ck_assert_int_eq(pending(), 2); /* b was not waited for */
    (void)small;
    (void)large;
}
END_TEST

START_TEST(pending_memory_of_another_stream_is_waited_for_and_moved) {
    granary_set_limit(g, 64 * GR_MIB);
    (void)pend(60 * GR_MIB, a, b);
    void *q = fixture_alloc(g, 40 * GR_MIB, c);
    captures_use(c, q, 40 * GR_MIB, ++ids);
    ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
}
END_TEST

START_TEST(a_trim_reaps_what_is_complete) {
    (void)pend(16 * GR_MIB, a, b);
    granary_sim_run_all();
    ck_assert_uint_eq(fixture_trim(g, 0), 16 * GR_MIB);
}
END_TEST

START_TEST(closing_with_pending_blocks_waits_and_loses_nothing) {
    for (int i = 0; i < 10; i++) (void)pend(GR_MIB, a, b);
}
END_TEST

START_TEST(a_refused_event_makes_record_stream_fail_and_changes_nothing) {
    char words[128];
    void *p = fixture_alloc(g, GR_MIB, a);
    struct fixture_state before = fixture_state(g);
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuEventCreate, 1, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_ne(granary_record_stream(g, p, b), GRANARY_OK);
    struct fixture_state after = fixture_state(g);
    ck_assert_msg(fixture_same(&before, &after, false, words), "%s", words);
    fixture_free(g, p);
    ck_assert_int_eq(pending(), 0);
}
END_TEST

START_TEST(an_event_that_cannot_be_recorded_at_a_free_is_recorded_later) {
    char *p = fixture_alloc(g, GR_MIB, a);
    RAN(granary_record_stream(g, p, b));
    captures_use(b, p, GR_MIB, 1);
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuEventRecord, 1, 2, GR_CU_UNKNOWN);
    fixture_free(g, p); /* a free cannot fail */
    gr_tap_clear(&g->driver.tap);
    granary_sim_run_all();
    ck_assert_int_eq(pending(), 1); /* recorded just now */
    granary_sim_run_all();
    ck_assert_int_eq(pending(), 0);
}
END_TEST

/* ---- streams that go -------------------------------------------------------------------------- */

START_TEST(a_stream_may_go_while_a_live_block_counts_on_it) {
    granary_stream user = fixture_stream(g);
    char *p = fixture_alloc(g, GR_MIB, a);
    captures_link(a, user);
    RAN(granary_record_stream(g, p, user));
    captures_use(user, p, GR_MIB, 1);
    RAN(granary_stream_destroyed(g, user));
    RAN(cu.cuStreamDestroy(user));
    fixture_free(g, p);
    ck_assert_int_eq(pending(), 1);
    granary_sim_run_all();
    ck_assert_int_eq(pending(), 0);
}
END_TEST

START_TEST(a_stream_that_could_not_go_may_work_on) {
    granary_stream user = captures_stream();
    char *p = fixture_alloc(g, GR_MIB, a);
    captures_link(a, user);
    RAN(granary_record_stream(g, p, user));
    /* The event of the use is recorded, that of the stream is refused: the call fails as a whole. */
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuEventRecord, 2, 1, GR_CU_UNKNOWN);
    ck_assert_int_ne(granary_stream_destroyed(g, user), GRANARY_OK);
    ck_assert_uint_eq(gr_tap_refusals(&g->driver.tap), 1);
    granary_sim_run_all();
    captures_use(user, p, GR_MIB, 1);
    fixture_free(g, p);
    ck_assert_int_eq(pending(), 1); /* not taken for complete by the event from before */
    granary_sim_run_all();
    ck_assert_int_eq(pending(), 0);
}
END_TEST

START_TEST(a_stream_that_goes_during_a_capture_asks_for_no_event) {
    granary_stream last = fixture_stream(g);
    granary_pool pool = captures_pool();
    for (int i = 0; i < 6; i++) { /* every event of its epochs is in flight */
        void *p = fixture_alloc(g, 2 * GR_MIB, last);
        captures_use(last, p, GR_MIB, ++ids);
        fixture_free(g, p);
        (void)gr_stream_idle(gr_route_find(&g->own.routes, last)->stream, &g->driver,
                             gr_stream_epoch(gr_route_find(&g->own.routes, last)->stream));
    }
    struct capture capture = captures_begin(pool, a, GLOBAL);
    RAN(granary_stream_destroyed(g, last));
    RAN(cu.cuStreamDestroy(last));
    captures_is_valid(&capture);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    RAN(granary_pool_release(g, pool));
}
END_TEST

/* ---- while a capture is open ------------------------------------------------------------------ */

struct job { /* what another thread does */
    void *p;
    granary_stream stream;
};

static void *free_there(void *argument) {
    struct job *job = argument;
    fixture_free(g, job->p);
    job->p = fixture_alloc(g, 256 * GR_MIB, job->stream); /* growth */
    fixture_free(g, job->p);
    return NULL;
}

START_TEST(frees_of_another_thread_wait_for_the_end_of_the_capture) {
    pthread_t thread;
    granary_pool pool = captures_pool();
    char *p = fixture_alloc(g, GR_MIB, b);
    captures_link(b, c);
    RAN(granary_record_stream(g, p, c));
    captures_use(c, p, GR_MIB, 1);
    struct capture capture = captures_begin(pool, a, _i);
    struct job job = {.p = p, .stream = b};
    uint64_t before = calls(GR_ENTRY_cuEventRecord);
    ck_assert_int_eq(pthread_create(&thread, NULL, free_there, &job), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(calls(GR_ENTRY_cuEventRecord), before); /* none is recorded either */
    granary_sim_run_all();
    ck_assert_int_eq(pending(), 1);
    captures_is_valid(&capture);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    granary_sim_run_all();
    ck_assert_int_eq(pending(), 0);
    RAN(granary_pool_release(g, pool));
}
END_TEST

START_TEST(growth_works_in_every_mode) {
    struct granary_pool_options options = {.struct_size = sizeof options, .no_split = _i / MODES};
    granary_pool pool;
    RAN(granary_pool_create(g, &options, &pool));
    struct capture capture = captures_begin(pool, a, _i % MODES);
    void *p = fixture_alloc(g, 100 * GR_MIB, a), *q = fixture_alloc(g, 100 * GR_MIB, b);
    captures_use(a, p, 100 * GR_MIB, ++ids);
    captures_is_valid(&capture);
    ck_assert_int_eq(captures_stats(pool).allocated_bytes, 100 * GR_MIB); /* b is no part of it */
    fixture_free(g, p);
    fixture_free(g, q);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    RAN(granary_pool_release(g, pool));
}
END_TEST

Suite *suite_defer(void);
Suite *suite_defer(void) {
    Suite *suite = suite_create("defer");
    TCase *outside = tcase_create("outside"), *streams = tcase_create("streams"),
          *open = tcase_create("open");
    tcase_add_checked_fixture(outside, setup, teardown);
    tcase_add_test(outside, a_block_is_pending_until_its_other_stream_is_done);
    tcase_add_test(outside, record_stream_of_the_own_stream_does_nothing);
    tcase_add_test(outside, a_block_used_by_two_streams_waits_for_both);
    tcase_add_test(outside, a_free_with_no_other_stream_calls_no_driver);
    tcase_add_test(outside, blocks_that_wait_on_a_stuck_stream_cost_other_streams_no_call);
    tcase_add_test(outside, a_shortage_waits_for_the_one_event_that_helps);
    tcase_add_test(outside, pending_memory_of_another_stream_is_waited_for_and_moved);
    tcase_add_test(outside, a_trim_reaps_what_is_complete);
    tcase_add_test(outside, closing_with_pending_blocks_waits_and_loses_nothing);
    tcase_add_test(outside, a_refused_event_makes_record_stream_fail_and_changes_nothing);
    tcase_add_test(outside, an_event_that_cannot_be_recorded_at_a_free_is_recorded_later);
    tcase_add_checked_fixture(streams, setup, teardown);
    tcase_add_test(streams, a_stream_may_go_while_a_live_block_counts_on_it);
    tcase_add_test(streams, a_stream_that_could_not_go_may_work_on);
    tcase_add_test(streams, a_stream_that_goes_during_a_capture_asks_for_no_event);
    tcase_add_checked_fixture(open, setup, teardown);
    tcase_add_loop_test(open, frees_of_another_thread_wait_for_the_end_of_the_capture, 0, MODES);
    tcase_add_loop_test(open, growth_works_in_every_mode, 0, 2 * MODES);
    suite_add_tcase(suite, outside);
    suite_add_tcase(suite, streams);
    suite_add_tcase(suite, open);
    return suite;
}
