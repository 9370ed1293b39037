/* SPDX-License-Identifier: Apache-2.0
 * Scopes: which pool serves which thread and stream, and bad use of scopes and captures: an error
 * code each, and nothing changed. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support/captures.h"

static granary_stream a, b;
static granary_pool pools[3];

static void setup(void) {
    captures_open(NULL);
    a = captures_stream();
    b = captures_stream();
    for (int i = 0; i < 3; i++) pools[i] = captures_pool();
}

static void teardown(void) {
    for (int i = 0; i < 3; i++)
        if (pools[i]) RAN(granary_pool_release(g, pools[i]));
    captures_close();
}

static granary_scope begin(granary_pool pool) {
    granary_scope scope;
    RAN(granary_scope_begin(g, pool, NULL, NULL, &scope));
    return scope;
}

static int64_t allocated(granary_pool pool) {
    return captures_stats(pool).allocated_bytes;
}

static void *alloc_there(void *stream) {
    return fixture_alloc(g, GR_MIB, stream);
}

static void on_another_thread(granary_stream stream) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, alloc_there, stream), 0);
    pthread_join(thread, NULL);
}

START_TEST(the_innermost_scope_wins) {
    granary_scope outer = begin(pools[0]);
    (void)fixture_alloc(g, GR_MIB, a);
    granary_scope inner = begin(pools[1]);
    (void)fixture_alloc(g, GR_MIB, a);
    ck_assert_int_eq(granary_scope_end(g, outer), GRANARY_ORDER);
    (void)fixture_alloc(g, GR_MIB, a);
    RAN(granary_scope_end(g, inner));
    (void)fixture_alloc(g, GR_MIB, a);
    RAN(granary_scope_end(g, outer));
    (void)fixture_alloc(g, GR_MIB, a);
    ck_assert_int_eq(allocated(pools[0]), 2 * GR_MIB);
    ck_assert_int_eq(allocated(pools[1]), 2 * GR_MIB);
    ck_assert_int_eq(allocated(0), GR_MIB);
}
END_TEST

START_TEST(a_scope_in_the_default_pool_gets_out_of_the_one_around_it) {
    granary_scope outer = begin(pools[0]), inner = begin(0);
    (void)fixture_alloc(g, GR_MIB, a);
    ck_assert_int_eq(allocated(0), GR_MIB);
    RAN(granary_scope_end(g, inner));
    RAN(granary_scope_end(g, outer));
}
END_TEST

START_TEST(other_threads_are_untouched) {
    granary_scope scope = begin(pools[0]);
    on_another_thread(a);
    ck_assert_int_eq(allocated(pools[0]), 0);
    ck_assert_int_eq(allocated(0), GR_MIB);
    RAN(granary_scope_end(g, scope));
}
END_TEST

static void *begin_and_leave(void *out) {
    RAN(granary_scope_begin(g, pools[0], NULL, NULL, out));
    return NULL;
}

START_TEST(a_thread_that_comes_after_another_is_not_taken_for_it) {
    pthread_t thread;
    granary_scope scope;
    ck_assert_int_eq(pthread_create(&thread, NULL, begin_and_leave, &scope), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++) on_another_thread(a); /* likely with the same pthread_t */
    ck_assert_int_eq(allocated(pools[0]), 0);
    RAN(granary_scope_end(g, scope)); /* by whoever has its name */
}
END_TEST

static int is_b(granary_stream stream, void *context) {
    ck_assert_ptr_eq(context, pools);
    void *p; /* no lock is held: the callback may allocate itself, on a stream it does not match */
    if (stream == b) {
        RAN(granary_alloc(g, 512, a, &p));
        RAN(granary_free(g, p));
    }
    return stream == b;
}

START_TEST(a_scope_by_streams_holds_on_every_thread) {
    granary_scope scope;
    RAN(granary_scope_begin(g, pools[0], is_b, pools, &scope));
    (void)fixture_alloc(g, GR_MIB, a);
    (void)fixture_alloc(g, GR_MIB, b);
    on_another_thread(b);
    on_another_thread(a);
    ck_assert_int_eq(allocated(pools[0]), 2 * GR_MIB);
    RAN(granary_scope_end(g, scope));
}
END_TEST

static atomic_bool stop;

static int is_any(granary_stream stream, void *context) {
    (void)stream;
    (void)context;
    return 1;
}

static void *alloc_all_the_time(void *argument) {
    (void)argument;
    while (!atomic_load(&stop)) fixture_free(g, fixture_alloc(g, 512, b));
    return NULL;
}

START_TEST(a_pool_may_end_while_another_thread_allocates_by_its_scope) {
    pthread_t thread;
    atomic_store(&stop, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, alloc_all_the_time, NULL), 0);
    for (int i = 0; i < 300; i++) {
        granary_scope scope;
        granary_pool brief = captures_pool();
        RAN(granary_scope_begin(g, brief, is_any, NULL, &scope));
        sched_yield();
        RAN(granary_scope_end(g, scope));
        RAN(granary_pool_release(g, brief));
        if (i % 50 == 0) (void)fixture_trim(g, 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    (void)fixture_trim(g, 0);
}
END_TEST

START_TEST(blocks_go_back_to_the_pool_they_came_from) {
    granary_scope scope = begin(pools[0]);
    void *p = fixture_alloc(g, GR_MIB, a);
    RAN(granary_scope_end(g, scope));
    fixture_free(g, p);
    ck_assert_int_eq(captures_stats(pools[0]).reserved_bytes, 2 * GR_MIB);
    ck_assert_ptr_ne(fixture_alloc(g, GR_MIB, a), p);
    scope = begin(pools[0]);
    ck_assert_ptr_eq(fixture_alloc(g, GR_MIB, a), p);
    RAN(granary_scope_end(g, scope));
}
END_TEST

START_TEST(a_capture_routes_its_streams_and_no_others) {
    struct capture capture = captures_begin(pools[0], a, RELAXED);
    (void)fixture_alloc(g, GR_MIB, a);
    (void)fixture_alloc(g, GR_MIB, b);
    ck_assert_int_eq(allocated(pools[0]), GR_MIB);
    captures_use(a, &capture, 0, 0);
    captures_link(a, b);
    (void)fixture_alloc(g, GR_MIB, b); /* it has joined */
    ck_assert_int_eq(allocated(pools[0]), 2 * GR_MIB);
    captures_link(b, a);
    on_another_thread(a); /* whatever the thread */
    ck_assert_int_eq(allocated(pools[0]), 3 * GR_MIB);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    (void)fixture_alloc(g, GR_MIB, a);
    ck_assert_int_eq(allocated(pools[0]), 3 * GR_MIB);
}
END_TEST

START_TEST(two_captures_into_one_pool_and_one_into_another) {
    granary_stream c = captures_stream();
    struct capture first = captures_begin(pools[0], a, RELAXED),
                   second = captures_begin(pools[0], b, RELAXED),
                   third = captures_begin(pools[1], c, RELAXED);
    (void)fixture_alloc(g, GR_MIB, a);
    (void)fixture_alloc(g, GR_MIB, b);
    (void)fixture_alloc(g, GR_MIB, c);
    struct granary_pool_stats stats = captures_stats(pools[0]);
    ck_assert_int_eq(stats.captures, 2);
    ck_assert_int_eq(stats.scopes, 2);
    ck_assert_int_eq(stats.live_blocks, 2);
    ck_assert_int_eq(allocated(pools[1]), GR_MIB);
    (void)captures_end(&first, GR_CU_SUCCESS); /* captures may overlap */
    ck_assert_int_eq(captures_stats(pools[0]).captures, 1);
    (void)captures_end(&third, GR_CU_SUCCESS);
    (void)captures_end(&second, GR_CU_SUCCESS);
}
END_TEST

/* ---- bad use ---------------------------------------------------------------------------------- */

static struct fixture_state state;
static struct granary_pool_stats pool_state;

static void remember(void) {
    state = fixture_state(g);
    pool_state = captures_stats(pools[0]);
}

static void nothing_changed(void) {
    char words[128];
    struct fixture_state now = fixture_state(g);
    ck_assert_msg(fixture_same(&state, &now, false, words), "%s", words);
    struct granary_pool_stats pool_now = captures_stats(pools[0]);
    ck_assert_mem_eq(&pool_now, &pool_state, sizeof pool_now);
    ck_assert_ptr_null(granary_verify(g));
}

START_TEST(a_scope_that_ends_twice_or_never_began_is_refused) {
    granary_scope scope = begin(pools[0]);
    RAN(granary_scope_end(g, scope));
    remember();
    ck_assert_int_eq(granary_scope_end(g, scope), GRANARY_INVALID);
    ck_assert_int_eq(granary_scope_end(g, 0), GRANARY_INVALID);
    ck_assert_int_eq(granary_scope_end(g, 999), GRANARY_INVALID);
    ck_assert_int_eq(granary_capture_end(g, 999), GRANARY_INVALID);
    ck_assert_int_eq(granary_scope_end(NULL, scope), GRANARY_INVALID);
    nothing_changed();
}
END_TEST

START_TEST(scopes_and_captures_are_not_ended_as_each_other) {
    granary_scope scope = begin(pools[1]);
    struct capture capture = captures_begin(pools[0], a, RELAXED);
    remember();
    ck_assert_int_eq(granary_scope_end(g, capture.name), GRANARY_INVALID);
    ck_assert_int_eq(granary_capture_end(g, scope), GRANARY_INVALID);
    nothing_changed();
    (void)captures_end(&capture, GR_CU_SUCCESS);
    RAN(granary_scope_end(g, scope));
}
END_TEST

START_TEST(a_pool_that_was_released_serves_nobody) {
    granary_scope scope;
    granary_capture capture;
    granary_pool gone = pools[1];
    RAN(granary_pool_release(g, gone));
    pools[1] = 0;
    remember();
    struct granary_pool_stats stats = {.struct_size = sizeof stats};
    granary_pool names[] = {gone, 999};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(granary_pool_release(g, names[i]), GRANARY_UNKNOWN_POOL);
        ck_assert_int_eq(granary_pool_retain(g, names[i]), GRANARY_UNKNOWN_POOL);
        ck_assert_int_eq(granary_pool_get_stats(g, names[i], &stats), GRANARY_UNKNOWN_POOL);
        ck_assert_int_eq(granary_scope_begin(g, names[i], NULL, NULL, &scope), GRANARY_UNKNOWN_POOL);
        ck_assert_int_eq(granary_capture_begin(g, names[i], a, &capture), GRANARY_UNKNOWN_POOL);
    }
    nothing_changed();
}
END_TEST

START_TEST(the_default_pool_cannot_be_retained_or_released) {
    remember();
    ck_assert_int_eq(granary_pool_retain(g, 0), GRANARY_UNKNOWN_POOL);
    ck_assert_int_eq(granary_pool_release(g, 0), GRANARY_UNKNOWN_POOL);
    nothing_changed();
}
END_TEST

START_TEST(a_pool_in_use_is_not_released) {
    granary_scope scope = begin(pools[0]);
    remember();
    ck_assert_int_eq(granary_pool_release(g, pools[0]), GRANARY_BUSY);
    nothing_changed();
    RAN(granary_scope_end(g, scope));
    struct capture capture = captures_begin(pools[0], a, GLOBAL);
    ck_assert_int_eq(granary_pool_release(g, pools[0]), GRANARY_BUSY);
    RAN(granary_pool_retain(g, pools[0]));
    RAN(granary_pool_release(g, pools[0])); /* not the last user */
    (void)captures_end(&capture, GR_CU_SUCCESS);
}
END_TEST

START_TEST(a_capture_that_still_runs_does_not_end) {
    struct capture capture = captures_begin(pools[0], a, GLOBAL);
    remember();
    ck_assert_int_eq(granary_capture_end(g, capture.name), GRANARY_BUSY);
    nothing_changed();
    captures_is_valid(&capture);
    (void)captures_end(&capture, GR_CU_SUCCESS);
}
END_TEST

START_TEST(a_trim_during_a_capture_is_refused) {
    fixture_free(g, fixture_alloc(g, 8 * GR_MIB, b));
    struct capture capture = captures_begin(pools[0], a, GLOBAL);
    remember();
    ck_assert_int_eq(granary_trim(g, 0, NULL), GRANARY_BUSY);
    nothing_changed();
    (void)captures_end(&capture, GR_CU_SUCCESS);
    ck_assert_uint_gt(fixture_trim(g, 0), 0);
}
END_TEST

START_TEST(a_capture_into_the_default_pool_is_refused) {
    granary_capture capture;
    remember();
    ck_assert_int_eq(granary_capture_begin(g, 0, a, &capture), GRANARY_INVALID);
    nothing_changed();
}
END_TEST

/* A graph may hold addresses of every pool that served its capture, not only of the capture's own. */
START_TEST(memory_of_a_scope_begun_inside_a_capture_stays_mapped) {
    struct capture capture = captures_begin(pools[0], a, GLOBAL);
    granary_scope scope = begin(pools[1]);
    fixture_free(g, fixture_alloc(g, 8 * GR_MIB, a));
    RAN(granary_scope_end(g, scope));
    (void)captures_end(&capture, GR_CU_SUCCESS);
    size_t held = captures_reserved(pools[1]);
    ck_assert_uint_ge(held, 8 * GR_MIB);
    (void)fixture_trim(g, 0);
    ck_assert_uint_eq(captures_reserved(pools[1]), held);
}
END_TEST

START_TEST(record_stream_on_a_foreign_pointer_is_refused) {
    char *p = fixture_alloc(g, GR_MIB, a);
    int on_the_host;
    RAN(granary_record_stream(g, NULL, b));
    remember();
    ck_assert_int_eq(granary_record_stream(g, &on_the_host, b), GRANARY_UNKNOWN_POINTER);
    ck_assert_int_eq(granary_record_stream(g, p + 512, b), GRANARY_UNKNOWN_POINTER);
    nothing_changed();
    fixture_free(g, p);
    ck_assert_int_eq(granary_record_stream(g, p, b), GRANARY_UNKNOWN_POINTER);
}
END_TEST

static void *captures_there(void *argument) {
    (void)argument;
    struct capture capture = captures_begin(pools[1], b, RELAXED);
    return (void *)(uintptr_t)capture.name;
}

static void *ends_there(void *name) {
    struct capture capture = {
        .origin = b, .name = (granary_capture)(uintptr_t)name, .before = captures_forbidden()};
    (void)captures_end(&capture, GR_CU_SUCCESS);
    return NULL;
}

START_TEST(a_block_in_another_capture_is_not_freed) {
    pthread_t thread;
    void *name;
    ck_assert_int_eq(pthread_create(&thread, NULL, captures_there, NULL), 0);
    pthread_join(thread, &name);
    char *p = fixture_alloc(g, GR_MIB, b); /* of that capture, whoever asks */
    struct capture mine = captures_begin(pools[0], a, RELAXED);
    remember();
    ck_assert_int_eq(granary_free(g, p), GRANARY_WRONG_CAPTURE);
    ck_assert_int_eq(granary_record_stream(g, p, a), GRANARY_WRONG_CAPTURE);
    nothing_changed();
    (void)captures_end(&mine, GR_CU_SUCCESS);
    ck_assert_int_eq(pthread_create(&thread, NULL, ends_there, name), 0);
    pthread_join(thread, NULL);
    fixture_free(g, p);
}
END_TEST

START_TEST(a_handle_that_closes_ends_what_began_and_never_ended) {
    granary_capture capture;
    granary *second;
    granary_pool pool;
    granary_scope scope;
    struct granary_options options;
    granary_options_init(&options);
    options.driver = GRANARY_DRIVER_SIM;
    RAN(granary_open(0, &options, &second));
    RAN(granary_pool_create(second, NULL, &pool));
    RAN(granary_scope_begin(second, pool, NULL, NULL, &scope));
    void *p;
    RAN(granary_alloc(second, GR_MIB, a, &p));
    RAN(granary_capture_begin(second, pool, b, &capture)); /* begun, and the driver's never */
    RAN(granary_record_stream(second, p, b));
    RAN(granary_free(second, p));
    ck_assert_ptr_null(granary_verify(second));
    granary_close(second);
}
END_TEST

START_TEST(a_capture_that_never_began_in_the_driver_ends_cleanly) {
    granary_capture capture;
    RAN(granary_capture_begin(g, pools[0], a, &capture));
    void *p = fixture_alloc(g, GR_MIB, a); /* not captured: own memory */
    RAN(granary_record_stream(g, p, b));
    fixture_free(g, p);
    ck_assert_int_eq(allocated(pools[0]), 0);
    RAN(granary_capture_end(g, capture));
    ck_assert_int_eq(fixture_stats(g).pending_blocks, 0);
    ck_assert_int_eq(granary_capture_end(g, capture), GRANARY_INVALID);
}
END_TEST

Suite *suite_scope(void);
Suite *suite_scope(void) {
    Suite *suite = suite_create("scope");
    TCase *routing = tcase_create("routing"), *bad = tcase_create("bad use");
    tcase_add_checked_fixture(routing, setup, teardown);
    tcase_add_test(routing, the_innermost_scope_wins);
    tcase_add_test(routing, a_scope_in_the_default_pool_gets_out_of_the_one_around_it);
    tcase_add_test(routing, other_threads_are_untouched);
    tcase_add_test(routing, a_thread_that_comes_after_another_is_not_taken_for_it);
    tcase_add_test(routing, a_scope_by_streams_holds_on_every_thread);
    tcase_add_test(routing, a_pool_may_end_while_another_thread_allocates_by_its_scope);
    tcase_add_test(routing, blocks_go_back_to_the_pool_they_came_from);
    tcase_add_test(routing, a_capture_routes_its_streams_and_no_others);
    tcase_add_test(routing, two_captures_into_one_pool_and_one_into_another);
    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_test(bad, a_scope_that_ends_twice_or_never_began_is_refused);
    tcase_add_test(bad, scopes_and_captures_are_not_ended_as_each_other);
    tcase_add_test(bad, a_pool_that_was_released_serves_nobody);
    tcase_add_test(bad, the_default_pool_cannot_be_retained_or_released);
    tcase_add_test(bad, a_pool_in_use_is_not_released);
    tcase_add_test(bad, a_capture_that_still_runs_does_not_end);
    tcase_add_test(bad, a_trim_during_a_capture_is_refused);
    tcase_add_test(bad, a_capture_into_the_default_pool_is_refused);
    tcase_add_test(routing, memory_of_a_scope_begun_inside_a_capture_stays_mapped);
    tcase_add_test(bad, record_stream_on_a_foreign_pointer_is_refused);
    tcase_add_test(bad, a_block_in_another_capture_is_not_freed);
    tcase_add_test(bad, a_handle_that_closes_ends_what_began_and_never_ended);
    tcase_add_test(bad, a_capture_that_never_began_in_the_driver_ends_cleanly);
    suite_add_tcase(suite, routing);
    suite_add_tcase(suite, bad);
    return suite;
}
