/* SPDX-License-Identifier: Apache-2.0
 * Streams and events of the simulated driver: when work runs, who waits for whom, and what a hold or
 * a stale handle does. */
#include <pthread.h>
#include <time.h>

#include "test_sim_support.h"

static struct granary_sim_config manual(void) {
    struct granary_sim_config config = defaults();
    config.clock = GRANARY_SIM_MANUAL;
    return config;
}

static gr_cu_ptr p;
static gr_cu_stream s, o;
static gr_cu_event e;

static void begin(struct granary_sim_config config) {
    up(config);
    p = ready(G);
    s = stream();
    o = stream();
    e = event();
}
static void begin_manual(void) {
    begin(manual());
}
static void begin_at_once(void) {
    begin(defaults());
}
static void begin_memory(void) {
    struct granary_sim_config config = manual();
    config.backing = GRANARY_SIM_MEMORY;
    config.memory_bytes = 64 * GR_MIB;
    begin(config);
}

static void end(void) {
    OK(cu.cuCtxSynchronize());
    OK(cu.cuEventDestroy(e));
    OK(cu.cuStreamDestroy(s));
    OK(cu.cuStreamDestroy(o));
    give(p, G);
    down();
}

static void pause_ms(int ms) {
    struct timespec t = {0, ms * 1000000L};
    nanosleep(&t, NULL);
}

/* ---- clocks ------------------------------------------------------------------------------- */

START_TEST(at_once_work_is_complete_when_its_submission_returns) {
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuEventQuery(e));
    OK(cu.cuStreamQuery(s));
    ck_assert_uint_eq(held().pending_work, 0);
    end();
}
END_TEST

START_TEST(manual_work_waits_to_be_run) {
    OK(cu.cuEventQuery(e)); /* never recorded */
    OK(USE(s, p, 100, 1));
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    CODE(cu.cuEventQuery(e), 600);
    CODE(cu.cuStreamQuery(s), 600);
    OK(cu.cuStreamQuery(o));
    ck_assert_uint_eq(held().pending_work, 3);
    ck_assert_uint_eq(granary_sim_run(s, 2), 2);
    CODE(cu.cuEventQuery(e), 600);
    ck_assert_uint_eq(granary_sim_run(s, 9), 1);
    OK(cu.cuEventQuery(e));
    end();
}
END_TEST

START_TEST(synchronising_runs_what_it_waits_for_and_no_more) {
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    OK(USE(s, p, 100, 1));
    OK(USE(o, p, 100, 1));
    OK(cu.cuEventSynchronize(e));
    ck_assert_uint_eq(held().pending_work, 2);
    OK(cu.cuStreamSynchronize(s));
    ck_assert_uint_eq(held().pending_work, 1);
    OK(cu.cuCtxSynchronize());
    ck_assert_uint_eq(held().pending_work, 0);
    end();
}
END_TEST

START_TEST(a_wait_holds_its_stream_back_until_the_event_is_reached) {
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    OK(USE(o, p, 100, 1));
    ck_assert_uint_eq(granary_sim_run(o, 9), 0);
    ck_assert_uint_eq(granary_sim_run(s, 1), 1);
    ck_assert_uint_eq(granary_sim_run(o, 9), 0);
    ck_assert_uint_eq(granary_sim_run(s, 1), 1);
    ck_assert_uint_eq(granary_sim_run(o, 9), 2);
    end();
}
END_TEST

START_TEST(a_wait_takes_the_record_as_it_was_when_it_was_called) {
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    ck_assert_uint_eq(granary_sim_run(s, 1), 1);
    ck_assert_uint_eq(granary_sim_run(o, 9), 1);
    CODE(cu.cuEventQuery(e), 600);
    end();
}
END_TEST

START_TEST(synchronising_follows_waits_into_other_streams) {
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    OK(cu.cuStreamSynchronize(o));
    OK(cu.cuEventQuery(e));
    end();
}
END_TEST

static char order[32];
static size_t ran;
static void note_s(void *unused) {
    (void)unused;
    order[ran++] = 's';
}
static void note_o(void *unused) {
    (void)unused;
    order[ran++] = 'o';
}

START_TEST(the_random_scheduler_is_repeatable_and_keeps_the_order_of_events) {
    char first[32] = "";
    for (int round = 0; round < 3; round++) {
        memset(order, 0, sizeof order);
        ran = 0;
        for (int i = 0; i < 10; i++) OK(cu.cuLaunchHostFunc(i % 2 ? s : o, i % 2 ? note_s : note_o, NULL));
        OK(cu.cuEventRecord(e, s));
        OK(cu.cuStreamWaitEvent(o, e, 0));
        OK(cu.cuLaunchHostFunc(o, note_o, NULL));
        ck_assert_uint_eq(granary_sim_run_random(round == 2 ? 1 : 42, 99), 13);
        ck_assert_uint_eq(strlen(order), 11);
        ck_assert_int_eq(order[10], 'o'); /* after all of s */
        if (round == 0) memcpy(first, order, sizeof first);
        if (round == 1) ck_assert_str_eq(order, first);
        if (round == 2) ck_assert_str_ne(order, first);
    }
    ck_assert_uint_eq(granary_sim_run_random(1, 5), 0);
    end();
}
END_TEST

START_TEST(the_legacy_stream_and_blocking_streams_wait_for_each_other) {
    gr_cu_stream blocking;
    OK(cu.cuStreamCreate(&blocking, 0));
    OK(USE(blocking, p, 100, 1));
    OK(USE(NULL, p, 100, 1));
    OK(USE(blocking, p, 100, 1));
    ck_assert_uint_eq(granary_sim_run(GR_CU_STREAM_LEGACY, 9), 0);
    ck_assert_uint_eq(granary_sim_run(blocking, 9), 1);
    ck_assert_uint_eq(granary_sim_run(NULL, 9), 2);
    ck_assert_uint_eq(granary_sim_run(blocking, 9), 2);
    OK(USE(s, p, 100, 1)); /* a non-blocking one does not take part */
    OK(USE(NULL, p, 100, 1));
    ck_assert_uint_eq(granary_sim_run(NULL, 9), 1);
    OK(cu.cuStreamDestroy(blocking));
    end();
}
END_TEST

START_TEST(work_outlives_its_stream) {
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamDestroy(s));
    CODE(cu.cuEventQuery(e), 600);
    ck_assert_uint_eq(granary_sim_run_all(), 2);
    OK(cu.cuEventQuery(e));
    s = stream();
    end();
}
END_TEST

START_TEST(freeing_classic_memory_drains_the_device_and_unmapping_does_not) {
    gr_cu_ptr q, classic;
    OK(cu.cuMemAlloc(&classic, G));
    q = ready(G);
    OK(USE(s, p, 100, 1));
    give(q, G);
    ck_assert_uint_eq(held().pending_work, 1);
    OK(cu.cuMemFree(classic));
    ck_assert_uint_eq(held().pending_work, 0);
    end();
}
END_TEST

/* ---- bytes at execution ------------------------------------------------------------------- */

START_TEST(bytes_change_when_work_runs_not_when_it_is_submitted) {
    const volatile unsigned char *byte = at(p);
    OK(cu.cuMemsetD8Async(p, 1, 10, s));
    OK(cu.cuMemsetD8Async(p, 2, 10, s));
    ck_assert_uint_eq(*byte, 0);
    ck_assert_uint_eq(granary_sim_run(s, 1), 1);
    ck_assert_uint_eq(*byte, 1);
    ck_assert_uint_eq(granary_sim_run(s, 1), 1);
    ck_assert_uint_eq(*byte, 2);
    end();
}
END_TEST

static void count(void *data) {
    ++*(int *)data;
}

START_TEST(a_host_function_runs_in_its_turn) {
    int calls = 0;
    OK(USE(s, p, 1, 1));
    OK(cu.cuLaunchHostFunc(s, count, &calls));
    ck_assert_uint_eq(granary_sim_run(s, 1), 1);
    ck_assert_int_eq(calls, 0);
    ck_assert_uint_eq(granary_sim_run(s, 1), 1);
    ck_assert_int_eq(calls, 1);
    CODE(cu.cuLaunchHostFunc(s, NULL, NULL), 1);
    end();
}
END_TEST

/* ---- holds -------------------------------------------------------------------------------- */

START_TEST(a_held_stream_runs_nothing_with_either_clock) {
    ck_assert_int_eq(granary_sim_hold(s), GRANARY_OK);
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    OK(USE(o, p, 100, 1));
    CODE(cu.cuEventQuery(e), 600);
    CODE(cu.cuStreamQuery(o), 600);
    ck_assert_uint_eq(granary_sim_run(s, 9) + granary_sim_run_all(), 0);
    ck_assert_int_eq(granary_sim_release(s), GRANARY_OK);
    OK(cu.cuEventQuery(e)); /* at once again, and what waited for it too */
    OK(cu.cuStreamQuery(o));
    ck_assert_int_eq(granary_sim_release(s), GRANARY_INVALID);
    end();
}
END_TEST

static void *release_later(void *unused) {
    (void)unused;
    pause_ms(30);
    ck_assert_int_eq(granary_sim_release(s), GRANARY_OK);
    return NULL;
}

START_TEST(a_synchronisation_sleeps_until_another_thread_lets_the_stream_go) {
    pthread_t thread;
    ck_assert_int_eq(granary_sim_hold(s), GRANARY_OK);
    OK(USE(s, p, 100, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    ck_assert_int_eq(pthread_create(&thread, NULL, release_later, NULL), 0);
    OK(cu.cuStreamSynchronize(o));
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    OK(cu.cuEventQuery(e));
    end();
}
END_TEST

START_TEST(a_hold_that_nobody_lifts_is_a_deadlock) {
    struct granary_sim_config config = manual();
    config.strict = 0;
    config.hang_ms = 20;
    begin(config);
    ck_assert_int_eq(granary_sim_hold(s), GRANARY_OK);
    OK(USE(s, p, 100, 1));
    CODE(cu.cuStreamSynchronize(s), 702);
    ck_assert_uint_eq(findings().by_kind[GRANARY_SIM_DEADLOCK], 1);
    ck_assert_int_eq(granary_sim_release(s), GRANARY_OK);
    end();
}
END_TEST

static void a_deadlock(void) {
    struct granary_sim_config config = manual();
    config.hang_ms = 20;
    begin(config);
    ck_assert_int_eq(granary_sim_hold(s), GRANARY_OK);
    OK(USE(s, p, 100, 1));
    (void)cu.cuStreamSynchronize(s);
}

START_TEST(strict_mode_stops_a_deadlock) {
    stops(a_deadlock);
}
END_TEST

/* ---- handles ------------------------------------------------------------------------------ */

START_TEST(default_streams_are_resolved) {
    unsigned long long null, legacy, own, created;
    gr_cu_context c;
    OK(cu.cuStreamGetId(NULL, &null));
    OK(cu.cuStreamGetId(GR_CU_STREAM_LEGACY, &legacy));
    OK(cu.cuStreamGetId(GR_CU_STREAM_PER_THREAD, &own));
    OK(cu.cuStreamGetId(s, &created));
    ck_assert_uint_eq(null, legacy);
    ck_assert(own != legacy && created != own && created != legacy);
    OK(cu.cuStreamGetCtx(GR_CU_STREAM_PER_THREAD, &c));
    ck_assert_ptr_eq(c, context);
    end();
}
END_TEST

static void *own_id(void *out) {
    OK(cu.cuCtxPushCurrent(context));
    OK(cu.cuStreamGetId(GR_CU_STREAM_PER_THREAD, out));
    return NULL;
}

START_TEST(each_thread_has_a_default_stream_of_its_own) {
    unsigned long long mine, again, other;
    pthread_t thread;
    OK(cu.cuStreamGetId(GR_CU_STREAM_PER_THREAD, &mine));
    ck_assert_int_eq(pthread_create(&thread, NULL, own_id, &other), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    OK(cu.cuStreamGetId(GR_CU_STREAM_PER_THREAD, &again));
    ck_assert_uint_eq(mine, again);
    ck_assert_uint_ne(mine, other);
    end();
}
END_TEST

START_TEST(a_stream_value_comes_again_with_another_id) {
    unsigned long long before, after;
    gr_cu_stream old = s;
    OK(cu.cuStreamGetId(s, &before));
    OK(cu.cuStreamDestroy(s));
    s = stream();
    ck_assert_ptr_eq(s, old);
    OK(cu.cuStreamGetId(s, &after));
    ck_assert_uint_ne(before, after);
    end();
}
END_TEST

START_TEST(stream_values_can_be_kept_apart) {
    struct granary_sim_config config = defaults();
    config.reuse_stream_handles = 0;
    begin(config);
    gr_cu_stream old = s;
    OK(cu.cuStreamDestroy(s));
    s = stream();
    ck_assert_ptr_ne(s, old);
    end();
}
END_TEST

START_TEST(bad_handles_are_refused_as_the_real_driver_does) {
    struct granary_sim_config config = defaults();
    config.strict = 0;
    begin(config);
    gr_cu_stream dead = stream();
    gr_cu_event gone = event();
    OK(cu.cuStreamDestroy(dead));
    OK(cu.cuEventDestroy(gone));
    CODE(cu.cuStreamDestroy(NULL), 400);
    CODE(cu.cuStreamDestroy(dead), 709);
    CODE(cu.cuEventDestroy(NULL), 400);
    CODE(cu.cuEventRecord(NULL, s), 400);
    CODE(cu.cuStreamWaitEvent(s, NULL, 0), 400);
    CODE(cu.cuStreamWaitEvent(s, e, 4), 1);
    CODE(cu.cuEventQuery(gone), 709);
    CODE(cu.cuEventRecord(e, dead), 709);
    CODE(cu.cuStreamCreate(&dead, 4), 1);
    CODE(cu.cuEventCreate(&gone, 4), 1);
    ck_assert_uint_eq(findings().by_kind[GRANARY_SIM_MISUSE], 3);
    end();
}
END_TEST

START_TEST(an_event_belongs_to_its_context) {
    struct granary_sim_config config = defaults();
    gr_cu_context second;
    config.devices = 2;
    begin(config);
    OK(cu.cuDevicePrimaryCtxRetain(&second, 1));
    OK(cu.cuCtxPushCurrent(second));
    gr_cu_event foreign = event();
    gr_cu_stream far = stream();
    CODE(cu.cuEventRecord(foreign, s), 400);
    OK(cu.cuEventRecord(foreign, far));
    OK(cu.cuStreamWaitEvent(s, foreign, 0));
    OK(cu.cuEventDestroy(foreign));
    OK(cu.cuStreamDestroy(far));
    OK(cu.cuCtxPopCurrent(NULL));
    OK(cu.cuDevicePrimaryCtxRelease(1));
    end();
}
END_TEST

static void the_use_of_a_destroyed_stream(void) {
    begin(defaults());
    OK(cu.cuStreamDestroy(s));
    (void)cu.cuEventRecord(e, s);
}

START_TEST(strict_mode_stops_the_use_of_a_destroyed_stream) {
    stops(the_use_of_a_destroyed_stream);
}
END_TEST

static void the_use_of_a_destroyed_event(void) {
    begin(defaults());
    OK(cu.cuEventDestroy(e));
    (void)cu.cuEventQuery(e);
}

START_TEST(strict_mode_stops_the_use_of_a_destroyed_event) {
    stops(the_use_of_a_destroyed_event);
}
END_TEST

static void call_the_driver(void *unused) {
    (void)unused;
    (void)cu.cuStreamQuery(s);
}

static void a_driver_call_in_a_host_function(void) {
    begin(defaults());
    (void)cu.cuLaunchHostFunc(s, call_the_driver, NULL);
}

START_TEST(strict_mode_stops_a_driver_call_in_a_host_function) {
    stops(a_driver_call_in_a_host_function);
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------ */

static void *many_records(void *unused) {
    (void)unused;
    OK(cu.cuCtxPushCurrent(context));
    gr_cu_stream mine = stream();
    gr_cu_event done = event();
    int calls = 0;
    for (int i = 0; i < 300; i++) {
        OK(USE(mine, p, 64, 1));
        if (i % 10 == 0) OK(cu.cuLaunchHostFunc(mine, count, &calls));
        OK(cu.cuEventRecord(done, mine));
        OK(cu.cuStreamWaitEvent(o, done, 0));
        if (i % 3 == 0) OK(cu.cuEventSynchronize(done));
        if (i % 7 == 0) (void)granary_sim_run_random((uint64_t)i, 20);
    }
    OK(cu.cuStreamSynchronize(mine));
    ck_assert_int_eq(calls, 30);
    OK(cu.cuEventDestroy(done));
    OK(cu.cuStreamDestroy(mine));
    OK(cu.cuCtxPopCurrent(NULL));
    return NULL;
}

START_TEST(threads_may_submit_wait_and_run_at_the_same_time) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, many_records, NULL), 0);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    end();
}
END_TEST

Suite *suite_sim_stream(void);
Suite *suite_sim_stream(void) {
    Suite *suite = suite_create("sim_stream");
    TCase *by_hand = tcase_create("manual");
    tcase_add_checked_fixture(by_hand, begin_manual, NULL);
    tcase_add_test(by_hand, manual_work_waits_to_be_run);
    tcase_add_test(by_hand, synchronising_runs_what_it_waits_for_and_no_more);
    tcase_add_test(by_hand, a_wait_holds_its_stream_back_until_the_event_is_reached);
    tcase_add_test(by_hand, a_wait_takes_the_record_as_it_was_when_it_was_called);
    tcase_add_test(by_hand, synchronising_follows_waits_into_other_streams);
    tcase_add_test(by_hand, the_random_scheduler_is_repeatable_and_keeps_the_order_of_events);
    tcase_add_test(by_hand, the_legacy_stream_and_blocking_streams_wait_for_each_other);
    tcase_add_test(by_hand, work_outlives_its_stream);
    tcase_add_test(by_hand, freeing_classic_memory_drains_the_device_and_unmapping_does_not);
    tcase_add_test(by_hand, a_host_function_runs_in_its_turn);
    tcase_add_test(by_hand, a_synchronisation_sleeps_until_another_thread_lets_the_stream_go);
    tcase_add_test(by_hand, threads_may_submit_wait_and_run_at_the_same_time);
    suite_add_tcase(suite, by_hand);
    TCase *at_once = tcase_create("at_once");
    tcase_add_checked_fixture(at_once, begin_at_once, NULL);
    tcase_add_test(at_once, at_once_work_is_complete_when_its_submission_returns);
    tcase_add_test(at_once, a_held_stream_runs_nothing_with_either_clock);
    tcase_add_test(at_once, default_streams_are_resolved);
    tcase_add_test(at_once, each_thread_has_a_default_stream_of_its_own);
    tcase_add_test(at_once, a_stream_value_comes_again_with_another_id);
    tcase_add_test(at_once, threads_may_submit_wait_and_run_at_the_same_time);
    suite_add_tcase(suite, at_once);
    TCase *memory = tcase_create("memory");
    tcase_add_checked_fixture(memory, begin_memory, NULL);
    tcase_add_test(memory, bytes_change_when_work_runs_not_when_it_is_submitted);
    suite_add_tcase(suite, memory);
    TCase *configured = tcase_create("configured");
    tcase_add_test(configured, a_hold_that_nobody_lifts_is_a_deadlock);
    tcase_add_test(configured, stream_values_can_be_kept_apart);
    tcase_add_test(configured, bad_handles_are_refused_as_the_real_driver_does);
    tcase_add_test(configured, an_event_belongs_to_its_context);
    suite_add_tcase(suite, configured);
    TCase *strict = tcase_create("strict");
    tcase_add_test(strict, strict_mode_stops_the_use_of_a_destroyed_stream);
    tcase_add_test(strict, strict_mode_stops_the_use_of_a_destroyed_event);
    tcase_add_test(strict, strict_mode_stops_a_driver_call_in_a_host_function);
    tcase_add_test(strict, strict_mode_stops_a_deadlock);
    suite_add_tcase(suite, strict);
    return suite;
}
