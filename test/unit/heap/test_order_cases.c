/* SPDX-License-Identifier: Apache-2.0
 * Public reports about stream order, capture and pools, as small inputs: the case as reported, and
 * its kind. Numbers are those of the collection of cases. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "support/captures.h"

static granary_stream a, b, c;
static size_t card;
static bool at_once, classic;

static void change(struct granary_sim_config *sim, struct granary_options *options) {
    sim->clock = at_once ? GRANARY_SIM_AT_ONCE : GRANARY_SIM_MANUAL;
    sim->hang_ms = 4000;
    if (card) sim->memory_bytes = card;
    options->expandable_segments = !classic;
    if (classic) options->max_split_size = 500 * GR_MIB;
}

static void open_card(size_t bytes, bool work_at_once) {
    card = bytes;
    at_once = work_at_once;
    captures_open(change);
    a = captures_stream();
    b = captures_stream();
    c = captures_stream();
}

static void *pend(size_t size, granary_stream owner, granary_stream user) {
    static uint64_t ids;
    void *p = fixture_alloc(g, size, owner);
    captures_link(owner, user);
    RAN(granary_record_stream(g, p, user));
    captures_use(user, p, size, ++ids);
    fixture_free(g, p);
    return p;
}

static int64_t pending(void) {
    return fixture_stats(g).pending_blocks;
}

static size_t reserved(void) {
    return (size_t)fixture_stats(g).reserved_bytes.all.current;
}

/* ---- 1: a request fails although the block it needs is about to be free ------------------------ */

static void *release_soon(void *stream) {
    usleep(50000);
    granary_sim_release(stream);
    return NULL;
}

/* Case 1. Kind: a rung of the ladder changes the pool and the pool is not searched again. */
START_TEST(case_1_a_pending_block_is_waited_for_at_the_first_call) {
    static struct gr_tap_record log[4096];
    pthread_t thread;
    open_card(4 * GR_GIB, _i == 1);
    granary_sim_hold(b);
    void *p = pend((size_t)3 * GR_GIB, a, b);
    ck_assert_int_eq(pthread_create(&thread, NULL, release_soon, b), 0);
    (void)gr_tap_log(&g->driver.tap, log, GR_COUNT(log));
    void *q = fixture_alloc(g, (size_t)3 * GR_GIB, a);
    size_t count = gr_tap_log(&g->driver.tap, NULL, 0);
    pthread_join(thread, NULL);
    ck_assert_uint_lt(count, GR_COUNT(log));
    ck_assert_ptr_eq(q, p);
    ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
    ck_assert_uint_le(reserved(), (size_t)3 * GR_GIB);
    bool waited = false;
    for (size_t i = 0; i < count; i++) { /* after the wait: the pool, and no memory from the driver */
        waited |= log[i].entry == GR_ENTRY_cuEventSynchronize;
        ck_assert(!waited || (log[i].entry != GR_ENTRY_cuMemCreate && log[i].entry != GR_ENTRY_cuMemMap));
    }
    ck_assert(waited);
    captures_close();
}
END_TEST

/* ---- 5: memory cached on a stream that is never used again ------------------------------------ */

/* Case 5. Kind: free memory is bound to the stream that freed it. */
START_TEST(case_5_memory_of_a_stream_that_fell_silent_moves) {
    open_card(1536 * GR_MIB, true);
    void *p = fixture_alloc(g, GR_GIB, a);
    captures_use(a, p, GR_GIB, 1);
    fixture_free(g, p);
    void *q = fixture_alloc(g, GR_GIB, NULL);
    captures_use(NULL, q, GR_GIB, 2);
    ck_assert_int_le(fixture_stats(g).reserved_bytes.all.peak, (int64_t)(GR_GIB + 512 * GR_MIB));
    ck_assert_int_gt(fixture_stats(g).moved_bytes, 0);
    captures_close();
}
END_TEST

/* ---- 8, 9: pending blocks -------------------------------------------------------------------- */

/* Case 8. Kind: one event that does not come holds back all that were recorded after it. */
START_TEST(case_8_no_block_waits_behind_another_streams_event) {
    open_card(GR_GIB, false);
    void *x = pend(GR_MIB, a, b);
    for (int i = 0; i < 1000; i++) {
        (void)pend(2560 * GR_KIB, a, c);
        uint64_t before = gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventQuery);
        granary_sim_run(a, 100);
        granary_sim_run(c, 100);
        void *next = fixture_alloc(g, 2560 * GR_KIB, a);
        ck_assert_uint_le(gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventQuery) - before, 4); /* bounded */
        fixture_free(g, next);
    }
    ck_assert_uint_le(reserved(), 3 * 4 * GR_MIB);
    ck_assert_int_le(fixture_stats(g).active_bytes.all.current, (int64_t)(4 * GR_MIB));
    ck_assert_int_ge(pending(), 1);
    ck_assert_ptr_ne(fixture_alloc(g, GR_MIB, a), x);
    captures_close();
}
END_TEST

/* Case 9. Kind: a host that runs ahead piles up blocks; under a limit it has to wait, not to fail. */
START_TEST(case_9_a_host_that_runs_ahead_is_made_to_wait_by_a_limit) {
    enum { STEPS = 10 };
    void *seen[STEPS];
    open_card(2 * GR_GIB, false);
    for (int i = 0; i < STEPS; i++) {
        seen[i] = pend(100 * GR_MIB, a, b);
        for (int j = 0; j < i; j++) ck_assert_ptr_ne(seen[i], seen[j]);
    }
    ck_assert_int_eq(pending(), STEPS);
    ck_assert_int_eq(fixture_stats(g).allocated_bytes.all.current, 0);
    ck_assert_int_eq(fixture_stats(g).active_bytes.all.current, (int64_t)(1000 * GR_MIB));
    granary_sim_run_all();
    void *q = fixture_alloc(g, 100 * GR_MIB, a);
    bool one_of_them = false;
    for (int i = 0; i < STEPS; i++) one_of_them |= q == seen[i];
    ck_assert(one_of_them);
    ck_assert_uint_eq(reserved(), 1000 * GR_MIB);
    fixture_free(g, q);
    (void)fixture_trim(g, 0);
    granary_set_limit(g, 500 * GR_MIB);
    for (int i = 0; i < STEPS; i++) (void)pend(100 * GR_MIB, a, b);
    ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
    ck_assert_uint_le(reserved(), 500 * GR_MIB);
    captures_close();
}
END_TEST

/* ---- 39, 40, 41: record_stream in a capture ---------------------------------------------------- */

/* Case 39. Kind: a capture's pool grows with the number of blocks that went through another stream.
 * With blocks of 4 MiB, two at a time: the exact floor is 8 MiB. */
START_TEST(case_39_the_pool_of_a_capture_stays_at_its_floor) {
    static const int counts[] = {100, 400, 1600, 10000};
    open_card(GR_GIB, true);
    granary_pool pool = captures_pool();
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *before = NULL;
    for (int i = 0; i < counts[_i]; i++) {
        void *p = fixture_alloc(g, 4 * GR_MIB, a);
        captures_use(a, p, 4 * GR_MIB, 0);
        captures_link(a, b);
        RAN(granary_record_stream(g, p, b));
        captures_use(b, p, 4 * GR_MIB, 0);
        captures_link(b, a);
        if (before) fixture_free(g, before);
        before = p;
    }
    fixture_free(g, before);
    ck_assert_uint_eq(captures_reserved(pool), 8 * GR_MIB);
    captures_is_valid(&capture);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

/* As reported: 96 blocks of 10 MiB, each joined before its free. */
START_TEST(case_39_as_reported) {
    open_card(2 * GR_GIB, true);
    granary_pool pool = captures_pool();
    struct capture capture = captures_begin(pool, a, GLOBAL);
    for (uint64_t i = 1; i <= 96; i++) {
        void *p = fixture_alloc(g, 10 * GR_MIB, a);
        captures_use(a, p, GR_MIB, i);
        captures_link(a, b);
        RAN(granary_record_stream(g, p, b));
        captures_use(b, p, GR_MIB, i);
        captures_link(b, a);
        fixture_free(g, p);
    }
    ck_assert_uint_le(captures_reserved(pool), 30 * GR_MIB);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

/* Case 40. Kind: what was put off until the end of a capture is not looked at when it ends. */
START_TEST(case_40_deferred_blocks_are_there_when_the_capture_ends) {
    open_card(GR_GIB, _i);
    granary_pool pool = captures_pool();
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = fixture_alloc(g, 20 * GR_MIB, a);
    captures_use(a, p, GR_MIB, 1);
    captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    captures_use(b, p, GR_MIB, 1);
    captures_link(b, a);
    fixture_free(g, p);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    ck_assert_int_eq(captures_pending(pool), 0);
    capture = captures_begin(pool, a, GLOBAL);
    ck_assert_ptr_eq(fixture_alloc(g, 20 * GR_MIB, a), p);
    captures_use(a, p, GR_MIB, 2);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    ck_assert_uint_eq(captures_reserved(pool), 20 * GR_MIB);
    ck_assert_int_eq(captures_pending(pool), 0);
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

/* Case 41. Kind: an event that was recorded into a capture is asked from outside. */
START_TEST(case_41_nothing_of_a_capture_is_asked_from_outside) {
    open_card(GR_GIB, true);
    granary_pool pool = captures_pool();
    void *d = fixture_alloc(g, 512, a);
    fixture_free(g, fixture_alloc(g, GR_MIB, a));
    struct capture capture = captures_begin(pool, c, _i);
    captures_use(c, &card, 0, 0);
    RAN(granary_record_stream(g, d, c));
    uint64_t records = gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventRecord);
    fixture_free(g, d);
    void *other = fixture_alloc(g, 512, a);
    ck_assert_ptr_ne(other, d);
    ck_assert_uint_eq(gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventRecord), records);
    captures_is_valid(&capture);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    ck_assert_ptr_eq(fixture_alloc(g, 512, a), d);
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

/* ---- 42, 43: captures that run out of memory or fail ------------------------------------------- */

/* Case 42. Kind: the ladder of a miss does what a capture forbids. */
static void run_out_in_capture(bool cached_before) {
    void *q;
    open_card(700 * GR_MIB, true);
    granary_pool pool = captures_pool();
    if (cached_before) fixture_free(g, fixture_alloc(g, 600 * GR_MIB, a));
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = NULL;
    if (!cached_before) {
        p = fixture_alloc(g, 600 * GR_MIB, a);
        captures_use(a, p, GR_MIB, 1);
        fixture_free(g, p);
    }
    int status = granary_alloc(g, 650 * GR_MIB, a, &q);
    if (classic || cached_before)
        ck_assert_int_eq(status, GRANARY_OUT_OF_MEMORY);
    else
        ck_assert_ptr_eq(q, p); /* in place: there is room for 50 MiB more */
    captures_is_valid(&capture);
    gr_cu_graph graph = captures_end(&capture, GR_CU_SUCCESS);
    ck_assert_ptr_nonnull(graph);
    if (!cached_before) { /* its address is in the graph */
        gr_cu_graph_exec exec;
        RAN(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
        RAN(cu.cuGraphLaunch(exec, a));
        RAN(cu.cuGraphExecDestroy(exec));
        RAN(cu.cuStreamSynchronize(a));
    }
    RAN(granary_pool_release(g, pool));
    captures_close();
}

START_TEST(case_42_running_out_of_memory_leaves_the_capture_valid) {
    classic = _i / 2;
    run_out_in_capture(_i % 2);
}
END_TEST

/* Case 43. Kind: the end of a capture cleans up only when all went well. */
START_TEST(case_43_a_failed_capture_gives_its_pool_back) {
    open_card(GR_GIB, true);
    size_t baseline = reserved();
    granary_pool pool = captures_pool();
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = _i > 0 ? fixture_alloc(g, 40 * GR_MIB, a) : NULL;
    if (_i == 2) { /* freed in it, with another user */
        captures_use(a, p, GR_MIB, 1);
        captures_link(a, b);
        RAN(granary_record_stream(g, p, b));
        fixture_free(g, p);
        p = NULL;
    }
    ck_assert_int_ne(cu.cuStreamSynchronize(a), 0); /* it fails */
    if (_i == 3) {                                  /* freed before its end */
        fixture_free(g, p);
        p = NULL;
    }
    ck_assert_ptr_null(captures_end(&capture, GR_CU_STREAM_CAPTURE_INVALIDATED));
    if (p) fixture_free(g, p);
    RAN(granary_pool_release(g, pool));
    (void)fixture_trim(g, 0);
    ck_assert_uint_eq(reserved(), baseline);
    ck_assert_uint_eq(atomic_load(&g->defer.captures), 0);
    ck_assert(gr_list_empty(&g->heaps));
    pool = captures_pool();
    capture = captures_begin(pool, a, GLOBAL); /* a fresh one works */
    p = fixture_alloc(g, 40 * GR_MIB, a);
    captures_use(a, p, GR_MIB, 2);
    fixture_free(g, p);
    ck_assert_ptr_nonnull(captures_end(&capture, GR_CU_SUCCESS));
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

/* ---- 44, 56: threads --------------------------------------------------------------------------- */

static atomic_bool stop;

static void *free_all_the_time(void *argument) {
    (void)argument;
    while (!atomic_load(&stop)) {
        void *p = fixture_alloc(g, 4096, b);
        RAN(granary_record_stream(g, p, c));
        fixture_free(g, p);
    }
    return NULL;
}

/* Case 44. Kind: the library believes a capture is over a moment before it is. */
START_TEST(case_44_frees_of_another_thread_never_break_a_capture) {
    enum { ROUNDS = 1000 };
    pthread_t thread;
    open_card(GR_GIB, true);
    granary_pool pool = captures_pool();
    fixture_watchdog(100);
    atomic_store(&stop, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, free_all_the_time, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        granary_capture capture;
        gr_cu_graph graph = NULL;
        RAN(granary_capture_begin(g, pool, a, &capture));
        RAN(cu.cuStreamBeginCapture(a, GLOBAL));
        uint64_t before = captures_forbidden();
        void *p = fixture_alloc(g, 4096, a);
        captures_use(a, p, 4096, 0);
        fixture_free(g, p);
        if (i % 100 == 0) usleep(1000);
        ck_assert_uint_eq(captures_forbidden(), before);
        ck_assert_int_eq(cu.cuStreamEndCapture(a, &graph), 0);
        if (i % 10 == 0) usleep(100); /* between the two ends */
        ck_assert_uint_eq(captures_forbidden(), before);
        RAN(granary_capture_end(g, capture));
        RAN(cu.cuGraphDestroy(graph));
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    fixture_watchdog(0);
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

static pthread_mutex_t users = PTHREAD_MUTEX_INITIALIZER; /* the user's own lock */

static int match_under_the_users_lock(granary_stream stream, void *context) {
    (void)context;
    void *p;
    pthread_mutex_lock(&users);
    if (stream == a) { /* and it allocates again, on a stream that is not matched so deep */
        RAN(granary_alloc(g, 512, b, &p));
        RAN(granary_free(g, p));
    }
    pthread_mutex_unlock(&users);
    return stream == a;
}

static void *alloc_under_the_users_lock(void *argument) {
    (void)argument;
    granary *handle = g;
    while (!atomic_load(&stop)) {
        void *p;
        pthread_mutex_lock(&users);
        struct granary_stats stats = {.struct_size = sizeof stats};
        RAN(granary_get_stats(handle, &stats));
        pthread_mutex_unlock(&users);
        RAN(granary_alloc(handle, 1024, c, &p));
        RAN(granary_free(handle, p));
    }
    return NULL;
}

/* Case 56. Kind: the caller's code runs while a lock of the library is held. */
START_TEST(case_56_callbacks_run_without_our_locks) {
    enum { ROUNDS = 3000 };
    pthread_t thread;
    granary_scope scope;
    pthread_mutexattr_t recursive;
    open_card(GR_GIB, true);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&users, &recursive);
    granary_pool pool = captures_pool();
    RAN(granary_scope_begin(g, pool, match_under_the_users_lock, NULL, &scope));
    fixture_watchdog(100);
    atomic_store(&stop, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, alloc_under_the_users_lock, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) fixture_free(g, fixture_alloc(g, 2048, a));
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    fixture_watchdog(0);
    RAN(granary_scope_end(g, scope));
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

/* ---- 46, 48: pools ----------------------------------------------------------------------------- */

/* Case 46. Kind: of nested scopes the outer one wins. */
START_TEST(case_46_the_inner_scope_gets_its_blocks) {
    granary_scope outer, inner;
    open_card(GR_GIB, true);
    granary_pool p1 = captures_pool(), p2 = captures_pool();
    RAN(granary_scope_begin(g, p1, NULL, NULL, &outer));
    (void)fixture_alloc(g, GR_MIB, a);
    RAN(granary_scope_begin(g, p2, NULL, NULL, &inner));
    (void)fixture_alloc(g, GR_MIB, a);
    ck_assert_int_eq(granary_scope_end(g, outer), GRANARY_ORDER);
    RAN(granary_scope_end(g, inner));
    (void)fixture_alloc(g, GR_MIB, a);
    RAN(granary_scope_end(g, outer));
    ck_assert_int_eq(captures_stats(p1).live_blocks, 2);
    ck_assert_int_eq(captures_stats(p2).live_blocks, 1);
    RAN(granary_pool_release(g, p1));
    RAN(granary_pool_release(g, p2));
    captures_close();
}
END_TEST

/* Case 48. Kind: a pool of the user's is treated as if it were being captured. */
START_TEST(case_48_a_plain_pool_is_no_capture) {
    granary_scope scope;
    open_card((size_t)80 * GR_GIB, true);
    granary_pool pool = captures_pool();
    RAN(granary_scope_begin(g, pool, NULL, NULL, &scope));
    void *p = pend(GR_MIB, a, b); /* (a) */
    ck_assert_ptr_eq(fixture_alloc(g, GR_MIB, a), p);
    p = fixture_alloc(g, (size_t)60 * GR_GIB, a); /* (b) */
    fixture_free(g, p);
    void *q = fixture_alloc(g, (size_t)70 * GR_GIB, a);
    ck_assert_uint_le(captures_reserved(pool), (size_t)70 * GR_GIB + 4 * GR_MIB);
    fixture_free(g, q);
    ck_assert_uint_gt(fixture_trim(g, 0), 0); /* emptied inside of the scope */
    RAN(granary_scope_end(g, scope));
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

/* ---- 51, 52, 53: streams ----------------------------------------------------------------------- */

/* Case 51. Kind: memory that passes through a second stream loses the work of the first. */
START_TEST(case_51_a_third_stream_comes_after_the_first) {
    open_card(8 * GR_MIB, false);
    void *x = fixture_alloc(g, 6 * GR_MIB, a);
    captures_use(a, x, 6 * GR_MIB, 1);
    fixture_free(g, x);
    captures_link(a, b);
    void *y = fixture_alloc(g, 6 * GR_MIB, b);
    captures_use(b, y, 6 * GR_MIB, 2);
    fixture_free(g, y);
    void *z = fixture_alloc(g, 6 * GR_MIB, c);
    captures_use(c, z, 6 * GR_MIB, 3); /* the oracle looks at all three */
    captures_close();
}
END_TEST

/* Case 52. Kind: a new stream with an old handle value is taken for the old one. */
START_TEST(case_52_a_handle_value_that_comes_back_is_another_stream) {
    open_card(GR_GIB, false);
    granary_stream s = fixture_stream(g), t = fixture_stream(g);
    void *p = fixture_alloc(g, GR_MIB, s);
    captures_use(s, p, GR_MIB, 1);
    captures_link(s, t);
    RAN(granary_record_stream(g, p, t));
    captures_use(t, p, GR_MIB, 1);
    fixture_free(g, p);
    RAN(granary_stream_destroyed(g, s));
    RAN(cu.cuStreamDestroy(s));
    granary_stream again = fixture_stream(g);
    ck_assert_ptr_eq(again, s); /* the simulation prefers to give it again */
    RAN(granary_stream_destroy(g, t));
    granary_stream other = fixture_stream(g);
    ck_assert_ptr_eq(other, t);
    void *q = fixture_alloc(g, GR_MIB, again);
    ck_assert_ptr_ne(q, p);
    captures_use(again, q, GR_MIB, 2);
    granary_sim_run_all();
    ck_assert_int_eq(pending(), 0);
    void *r = fixture_alloc(g, GR_GIB - 2 * GR_MIB, again); /* the old memory comes back */
    captures_use(again, r, GR_MIB, 3);
    RAN(cu.cuStreamDestroy(again));
    RAN(cu.cuStreamDestroy(other));
    captures_close();
}
END_TEST

struct visit {
    void *ptr, *to_free;
    bool work, leave;
};

static void *visit(void *argument) {
    struct visit *visit = argument;
    RAN(cu.cuCtxPushCurrent(g->driver.context));
    if (visit->to_free) fixture_free(g, visit->to_free);
    visit->ptr = fixture_alloc(g, 4096, GR_CU_STREAM_PER_THREAD);
    captures_use(GR_CU_STREAM_PER_THREAD, visit->ptr, 4096, visit->work ? 1 : 2);
    if (visit->work) fixture_free(g, visit->ptr);
    if (visit->leave) RAN(granary_stream_destroyed(g, GR_CU_STREAM_PER_THREAD));
    RAN(cu.cuCtxPopCurrent(NULL));
    return NULL;
}

/* Case 53. Kind: one value stands for a stream of each thread; also of threads that come later. */
START_TEST(case_53_the_default_stream_of_a_thread_is_its_own) {
    pthread_t thread;
    open_card(GR_GIB, false);
    void *own = fixture_alloc(g, 4096, GR_CU_STREAM_PER_THREAD);
    struct visit first = {.work = true, .leave = _i}, second = {.to_free = own};
    ck_assert_int_eq(pthread_create(&thread, NULL, visit, &first), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, visit, &second), 0); /* pthread_t is likely the same */
    pthread_join(thread, NULL);
    ck_assert_ptr_ne(second.ptr, first.ptr);
    void *legacy = fixture_alloc(g, 4096, NULL);
    fixture_free(g, legacy);
    ck_assert_ptr_eq(fixture_alloc(g, 4096, GR_CU_STREAM_LEGACY), legacy);
    fixture_free(g, second.ptr); /* by a thread that did not make it */
    captures_close();
}
END_TEST

Suite *suite_order_cases(void);
Suite *suite_order_cases(void) {
    Suite *suite = suite_create("order_cases");
    TCase *quick = tcase_create("quick"), *threads = tcase_create("threads");
    TCase *large = tcase_create("addresses");
    tcase_set_tags(large, "large"); /* more addresses than valgrind has */
    tcase_add_loop_test(quick, case_1_a_pending_block_is_waited_for_at_the_first_call, 0, 2);
    tcase_add_test(quick, case_5_memory_of_a_stream_that_fell_silent_moves);
    tcase_add_test(quick, case_8_no_block_waits_behind_another_streams_event);
    tcase_add_test(quick, case_9_a_host_that_runs_ahead_is_made_to_wait_by_a_limit);
    tcase_add_loop_test(quick, case_39_the_pool_of_a_capture_stays_at_its_floor, 0, 4);
    tcase_add_test(quick, case_39_as_reported);
    tcase_add_loop_test(quick, case_40_deferred_blocks_are_there_when_the_capture_ends, 0, 2);
    tcase_add_loop_test(quick, case_41_nothing_of_a_capture_is_asked_from_outside, 0, MODES);
    tcase_add_loop_test(quick, case_42_running_out_of_memory_leaves_the_capture_valid, 0, 4);
    tcase_add_loop_test(quick, case_43_a_failed_capture_gives_its_pool_back, 0, 4);
    tcase_add_test(quick, case_46_the_inner_scope_gets_its_blocks);
    tcase_add_test(large, case_48_a_plain_pool_is_no_capture);
    tcase_add_test(quick, case_51_a_third_stream_comes_after_the_first);
    tcase_add_test(quick, case_52_a_handle_value_that_comes_back_is_another_stream);
    tcase_add_loop_test(quick, case_53_the_default_stream_of_a_thread_is_its_own, 0, 2);
    tcase_set_timeout(threads, 30);
    tcase_add_test(threads, case_44_frees_of_another_thread_never_break_a_capture);
    tcase_add_test(threads, case_56_callbacks_run_without_our_locks);
    suite_add_tcase(suite, quick);
    suite_add_tcase(suite, large);
    suite_add_tcase(suite, threads);
    return suite;
}
