/* SPDX-License-Identifier: Apache-2.0
 * Stream capture of the simulated driver, answer for answer as measured on a real one. */
#include <pthread.h>

#include "test_sim_support.h"

static void setup(void) {
    up(defaults());
}
static void setup_faithful(void) {
    up_faithful(defaults());
}

/* ---- which calls a capture allows ---------------------------------------------------------- */

struct scene {
    gr_cu_stream s, o;     /* s captures */
    gr_cu_event before, e; /* before was recorded on o */
    gr_cu_ptr spare, va, classic;
    gr_cu_handle h, h2;
};

enum which {
    RESERVE,
    CREATE,
    MAP,
    ACCESS,
    RETAIN,
    RANGE,
    UNMAP,
    RELEASE,
    ADDRESS_FREE,
    INFO,
    EVENT_CREATE,
    QUERY_BEFORE,
    RECORD_OTHER,
    QUERY_RECORDED,
    EVENT_DESTROY,
    STREAM_CREATE,
    QUERY_OTHER,
    SYNC_OTHER,
    CTX_SYNC,
    ALLOC,
    STREAM_ID,
    STREAM_DESTROY,
    QUERY_CAPTURING,
    WAIT_UNCAPTURED,
    IS_LEGACY,
    SYNC_BEFORE,
    MEM_FREE,
    CALLS
};

static gr_cu_result call(enum which which, struct scene *c) {
    gr_cu_ptr ptr;
    gr_cu_handle handle;
    gr_cu_stream s;
    size_t a, b;
    unsigned long long id;
    int value;
    gr_cu_event e;
    gr_cu_result code;
    switch (which) {
    case RESERVE:
        code = cu.cuMemAddressReserve(&ptr, G, 0, 0, 0);
        return code ? code : cu.cuMemAddressFree(ptr, G);
    case CREATE: code = cu.cuMemCreate(&handle, G, &PROP, 0); return code ? code : cu.cuMemRelease(handle);
    case MAP: return cu.cuMemMap(c->va, G, 0, c->h, 0);
    case ACCESS: return cu.cuMemSetAccess(c->va, G, &BOTH, 1);
    case RETAIN:
        code = cu.cuMemRetainAllocationHandle(&handle, at(c->va));
        return code ? code : cu.cuMemRelease(handle);
    case RANGE: return cu.cuMemGetAddressRange(&ptr, &a, c->va);
    case UNMAP: return cu.cuMemUnmap(c->va, G);
    case RELEASE: return cu.cuMemRelease(c->h2);
    case ADDRESS_FREE: return cu.cuMemAddressFree(c->spare, G);
    case INFO: return cu.cuMemGetInfo(&a, &b);
    case EVENT_CREATE: code = cu.cuEventCreate(&e, 2); return code ? code : cu.cuEventDestroy(e);
    case QUERY_BEFORE: return cu.cuEventQuery(c->before);
    case RECORD_OTHER: return cu.cuEventRecord(c->e, c->o);
    case QUERY_RECORDED: return cu.cuEventQuery(c->e);
    case EVENT_DESTROY: return cu.cuEventDestroy(c->e);
    case STREAM_CREATE: code = cu.cuStreamCreate(&s, 1); return code ? code : cu.cuStreamDestroy(s);
    case QUERY_OTHER: return cu.cuStreamQuery(c->o);
    case SYNC_OTHER: return cu.cuStreamSynchronize(c->o);
    case CTX_SYNC: return cu.cuCtxSynchronize();
    case ALLOC: code = cu.cuMemAlloc(&ptr, G); return code ? code : cu.cuMemFree(ptr);
    case STREAM_ID: return cu.cuStreamGetId(c->s, &id);
    case STREAM_DESTROY: return cu.cuStreamDestroy(c->o);
    case QUERY_CAPTURING: return cu.cuStreamQuery(c->s);
    case WAIT_UNCAPTURED: return cu.cuStreamWaitEvent(c->s, c->before, 0);
    case IS_LEGACY: return cu.cuStreamIsCapturing(GR_CU_STREAM_LEGACY, &value);
    case SYNC_BEFORE: return cu.cuEventSynchronize(c->before);
    case MEM_FREE: return cu.cuMemFree(c->classic);
    case CALLS: break;
    }
    return GR_CU_UNKNOWN;
}

static gr_cu_result expected(enum which which, int how) {
    switch (which) {
    case QUERY_BEFORE:
    case QUERY_RECORDED:
    case QUERY_OTHER:
    case SYNC_OTHER:
    case SYNC_BEFORE:
    case ALLOC:
    case MEM_FREE: return how == RELAXED ? GR_CU_SUCCESS : GR_CU_STREAM_CAPTURE_UNSUPPORTED;
    case CTX_SYNC:
    case STREAM_ID:
    case QUERY_CAPTURING: return GR_CU_STREAM_CAPTURE_UNSUPPORTED;
    case WAIT_UNCAPTURED: return GR_CU_STREAM_CAPTURE_ISOLATION;
    default: return GR_CU_SUCCESS;
    }
}

struct elsewhere {
    enum which which;
    struct scene *scene;
    gr_cu_result code;
};

static void *call_elsewhere(void *data) {
    struct elsewhere *e = data;
    OK(cu.cuCtxPushCurrent(context));
    e->code = call(e->which, e->scene);
    OK(cu.cuCtxPopCurrent(NULL));
    return NULL;
}

START_TEST(each_call_during_a_capture_answers_as_measured) {
    enum which which = (enum which)(_i % CALLS);
    int how = _i / CALLS;
    struct scene c = {stream(), stream(), event(), event(), reserve(G), reserve(G), 0, create(G), create(G)};
    OK(cu.cuMemAlloc(&c.classic, G));
    OK(cu.cuEventRecord(c.before, c.o));
    OK(cu.cuStreamSynchronize(c.o));
    bool mapped = which >= ACCESS && which <= UNMAP;
    if (mapped) OK(cu.cuMemMap(c.va, G, 0, c.h, 0));
    if (which == QUERY_RECORDED) OK(cu.cuEventRecord(c.e, c.o));
    OK(cu.cuStreamBeginCapture(c.s, how == ELSEWHERE ? GLOBAL : how));
    struct elsewhere e = {which, &c, GR_CU_UNKNOWN};
    if (how == ELSEWHERE) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, call_elsewhere, &e), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    } else {
        e.code = call(which, &c);
    }
    gr_cu_result code = expected(which, how);
    ck_assert_msg(e.code == code, "call %d, mode %d: %d, not %d", (int)which, how, e.code, code);
    ck_assert_int_eq(status_of(c.s), code ? GR_CU_CAPTURE_INVALIDATED : GR_CU_CAPTURE_ACTIVE);
    end_with(c.s, code ? GR_CU_STREAM_CAPTURE_INVALIDATED : GR_CU_SUCCESS);
    /* What the call gave back is not given back again. */
    if (which == MAP || (mapped && which != UNMAP)) OK(cu.cuMemUnmap(c.va, G));
    if (which != MEM_FREE || code) OK(cu.cuMemFree(c.classic));
    if (which != RELEASE) OK(cu.cuMemRelease(c.h2));
    if (which != ADDRESS_FREE) OK(cu.cuMemAddressFree(c.spare, G));
    if (which != EVENT_DESTROY) OK(cu.cuEventDestroy(c.e));
    if (which != STREAM_DESTROY) OK(cu.cuStreamDestroy(c.o));
    OK(cu.cuMemRelease(c.h));
    OK(cu.cuMemAddressFree(c.va, G));
    OK(cu.cuEventDestroy(c.before));
    OK(cu.cuStreamDestroy(c.s));
    down();
}
END_TEST

static void *query_elsewhere(void *e) {
    OK(cu.cuCtxPushCurrent(context));
    OK(cu.cuEventQuery(e));
    OK(cu.cuCtxPopCurrent(NULL));
    return NULL;
}

START_TEST(only_a_global_capture_reaches_into_other_threads) {
    gr_cu_stream s = stream();
    gr_cu_event e = event();
    pthread_t thread;
    for (int mode = THREAD_LOCAL; mode <= RELAXED; mode++) {
        OK(cu.cuStreamBeginCapture(s, mode));
        ck_assert_int_eq(pthread_create(&thread, NULL, query_elsewhere, e), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        end_with(s, GR_CU_SUCCESS);
    }
    OK(cu.cuEventDestroy(e));
    OK(cu.cuStreamDestroy(s));
    down();
}
END_TEST

START_TEST(a_relaxed_thread_may_do_what_is_unsafe) {
    gr_cu_stream s = stream();
    gr_cu_ptr ptr;
    int mode = RELAXED;
    OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, GLOBAL);
    OK(cu.cuStreamBeginCapture(s, GLOBAL));
    OK(cu.cuMemAlloc(&ptr, G));
    ck_assert_int_eq(status_of(s), GR_CU_CAPTURE_ACTIVE);
    OK(cu.cuMemFree(ptr));
    OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, RELAXED);
    CODE(cu.cuMemAlloc(&ptr, G), 900);
    end_with(s, GR_CU_STREAM_CAPTURE_INVALIDATED);
    CODE(cu.cuThreadExchangeStreamCaptureMode(NULL), 1);
    OK(cu.cuStreamDestroy(s));
    down();
}
END_TEST

START_TEST(the_real_driver_takes_any_number_for_a_mode) {
    int mode = 7;
    OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, GLOBAL);
    ck_assert_uint_eq(findings().by_kind[GRANARY_SIM_MISUSE], 1);
    OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, 7);
    down();
}
END_TEST

static void a_mode_that_is_none(void) {
    int mode = 7;
    up(defaults());
    (void)cu.cuThreadExchangeStreamCaptureMode(&mode);
}

START_TEST(strict_mode_stops_a_mode_that_is_none) {
    stops(a_mode_that_is_none);
}
END_TEST

/* ---- terminals ---------------------------------------------------------------------------- */

START_TEST(terminals_grow_and_join_as_measured) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_event e = event(), f = event();
    gr_cu_ptr p = ready(G);
    struct look l;
    const gr_cu_stream idle[] = {a, NULL, GR_CU_STREAM_LEGACY, GR_CU_STREAM_PER_THREAD};
    for (size_t i = 0; i < GR_COUNT(idle); i++) {
        l = look(idle[i]);
        ck_assert(l.status == GR_CU_CAPTURE_NONE && l.id == 0 && l.graph == NULL && l.count == 99);
    }
    OK(cu.cuStreamBeginCapture(a, THREAD_LOCAL));
    l = look(a);
    ck_assert(l.status == GR_CU_CAPTURE_ACTIVE && l.id != 0 && l.graph != NULL && l.count == 0);
    OK(cu.cuMemsetD8Async(p, 1, 16, a));
    gr_cu_node one = look(a).nodes[0];
    ck_assert_uint_eq(look(a).count, 1);
    OK(cu.cuEventRecord(e, a));
    ck_assert(look(a).count == 1 && look(a).nodes[0] == one);
    OK(cu.cuStreamWaitEvent(b, e, 0));
    ck_assert(look(b).count == 1 && look(b).nodes[0] == one && look(b).id == l.id &&
              look(b).graph == l.graph);
    OK(cu.cuMemsetD8Async(p, 2, 16, b));
    gr_cu_node two = look(b).nodes[0];
    ck_assert(look(b).count == 1 && two != one);
    OK(cu.cuEventRecord(f, b));
    for (int i = 0; i < 3; i++) { /* an ancestor stays, a repetition does not come twice, nor a stale event */
        OK(cu.cuStreamWaitEvent(a, i < 2 ? f : e, 0));
        l = look(a);
        ck_assert(l.count == 2 && l.nodes[0] == one && l.nodes[1] == two);
    }
    OK(cu.cuMemsetD8Async(p, 3, 16, b));
    OK(cu.cuMemsetD8Async(p, 4, 16, a));
    OK(cu.cuEventRecord(f, b));
    OK(cu.cuStreamWaitEvent(a, f, 0));
    l = look(a);
    ck_assert_uint_eq(l.count, 2);
    gr_cu_node empty;
    OK(cu.cuGraphAddEmptyNode(&empty, l.graph, l.nodes, l.count));
    ck_assert(look(a).count == 2 && look(a).nodes[1] == l.nodes[1]);
    OK(cu.cuStreamUpdateCaptureDependencies(a, &empty, NULL, 1, GR_CU_DEPENDENCIES_SET));
    ck_assert(look(a).count == 1 && look(a).nodes[0] == empty);
    OK(cu.cuStreamUpdateCaptureDependencies(a, NULL, NULL, 0, GR_CU_DEPENDENCIES_SET));
    ck_assert_uint_eq(look(a).count, 0);
    gr_cu_graph graph;
    OK(cu.cuStreamEndCapture(a, &graph)); /* b counts as joined, although a's terminals are gone */
    size_t count = 0;
    OK(cu.cuGraphGetNodes(graph, NULL, &count));
    ck_assert_uint_eq(count, 5);

    CODE(cu.cuEventQuery(e), 1);
    CODE(cu.cuEventSynchronize(e), 1);
    CODE(cu.cuStreamWaitEvent(b, e, 0), 1);
    OK(cu.cuEventRecord(e, b));
    OK(cu.cuEventQuery(e));
    OK(cu.cuGraphDestroy(graph));
    OK(cu.cuEventDestroy(e));
    OK(cu.cuEventDestroy(f));
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    give(p, G);
    down();
}
END_TEST

START_TEST(asking_a_captured_event_breaks_its_capture) {
    gr_cu_stream a = stream();
    gr_cu_event e = event();
    for (int i = 0; i < 2; i++) {
        OK(cu.cuStreamBeginCapture(a, RELAXED));
        OK(cu.cuEventRecord(e, a));
        CODE(i ? cu.cuEventSynchronize(e) : cu.cuEventQuery(e), 907);
        ck_assert_int_eq(status_of(a), GR_CU_CAPTURE_INVALIDATED);
        CODE(cu.cuEventQuery(e), 1);
        end_with(a, GR_CU_STREAM_CAPTURE_INVALIDATED);
    }
    OK(cu.cuEventDestroy(e));
    OK(cu.cuStreamDestroy(a));
    down();
}
END_TEST

START_TEST(an_invalidated_capture_answers_as_measured) {
    gr_cu_stream a = stream();
    gr_cu_event e = event(), ended = event();
    gr_cu_graph graph;
    gr_cu_ptr p = ready(G);
    OK(cu.cuStreamBeginCapture(a, RELAXED));
    OK(cu.cuEventRecord(ended, a));
    end_with(a, GR_CU_SUCCESS);
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    CODE(cu.cuStreamQuery(a), 900);
    struct look l = look(a);
    ck_assert(l.status == GR_CU_CAPTURE_INVALIDATED && l.id == 0 && l.graph == NULL && l.count == 99);
    CODE(cu.cuMemsetD8Async(p, 1, 16, a), 901);
    CODE(cu.cuEventRecord(e, a), 901);
    CODE(cu.cuEventQuery(ended), 1);
    CODE(cu.cuStreamWaitEvent(a, e, 0), 901);
    CODE(cu.cuStreamUpdateCaptureDependencies(a, NULL, NULL, 0, GR_CU_DEPENDENCIES_SET), 901);
    end_with(a, GR_CU_STREAM_CAPTURE_INVALIDATED);
    l = look(a);
    ck_assert(l.status == GR_CU_CAPTURE_NONE && l.id == 0 && l.count == 99);
    CODE(cu.cuStreamEndCapture(a, &graph), 401);
    give(p, G);
    OK(cu.cuEventDestroy(e));
    OK(cu.cuEventDestroy(ended));
    OK(cu.cuStreamDestroy(a));
    down();
}
END_TEST

/* ---- begin, end, join --------------------------------------------------------------------- */

/* Ends the capture of s on another thread; whatever it answers, the capture is over. */
static gr_cu_result code_elsewhere;
static void *end_here(void *s) {
    gr_cu_graph graph = NULL;
    OK(cu.cuCtxPushCurrent(context));
    code_elsewhere = cu.cuStreamEndCapture(s, &graph);
    ck_assert_int_eq(graph != NULL, code_elsewhere == GR_CU_SUCCESS);
    if (graph) OK(cu.cuGraphDestroy(graph));
    OK(cu.cuCtxPopCurrent(NULL));
    return NULL;
}
static void end_elsewhere(gr_cu_stream s, gr_cu_result code) {
    pthread_t thread;
    gr_cu_graph graph;
    ck_assert_int_eq(pthread_create(&thread, NULL, end_here, s), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(code_elsewhere, code);
    ck_assert_int_eq(status_of(s), GR_CU_CAPTURE_NONE);
    CODE(cu.cuStreamEndCapture(s, &graph), 401);
}

/* A capture of a that b joined, with work on b that a does not wait for. */
static void fork_capture(gr_cu_stream a, gr_cu_stream b, gr_cu_ptr p, int mode) {
    gr_cu_event e = event();
    OK(cu.cuStreamBeginCapture(a, mode));
    OK(cu.cuEventRecord(e, a));
    OK(cu.cuStreamWaitEvent(b, e, 0));
    OK(cu.cuMemsetD8Async(p, 1, 16, b));
    OK(cu.cuEventDestroy(e));
}

START_TEST(begin_and_end_refuse_what_is_wrong) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_event e = event();
    gr_cu_graph graph;
    CODE(cu.cuStreamBeginCapture(NULL, GLOBAL), 900);
    CODE(cu.cuStreamBeginCapture(GR_CU_STREAM_LEGACY, GLOBAL), 900);
    CODE(cu.cuStreamBeginCapture(a, 3), 1);
    CODE(cu.cuStreamEndCapture(a, &graph), 401);
    CODE(cu.cuStreamEndCapture(NULL, &graph), 401);
    OK(cu.cuStreamBeginCapture(a, THREAD_LOCAL));
    CODE(cu.cuStreamBeginCapture(a, GLOBAL), 401);
    CODE(cu.cuStreamEndCapture(a, NULL), 1);
    OK(cu.cuEventRecord(e, a));
    OK(cu.cuStreamWaitEvent(b, e, 0)); /* joins, with no terminals */
    ck_assert_int_eq(status_of(b), GR_CU_CAPTURE_ACTIVE);
    CODE(cu.cuStreamBeginCapture(b, GLOBAL), 401);
    end_with(a, GR_CU_SUCCESS);
    OK(cu.cuEventDestroy(e));
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    down();
}
END_TEST

START_TEST(an_unjoined_fork_fails_the_end) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_ptr p = ready(G);
    fork_capture(a, b, p, THREAD_LOCAL);
    end_with(a, GR_CU_STREAM_CAPTURE_UNJOINED);
    ck_assert_int_eq(status_of(b), GR_CU_CAPTURE_NONE);
    give(p, G);
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    down();
}
END_TEST

START_TEST(an_end_on_a_joined_stream_breaks_the_capture) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_ptr p = ready(G);
    gr_cu_graph graph;
    fork_capture(a, b, p, THREAD_LOCAL);
    CODE(cu.cuStreamEndCapture(b, &graph), 903);
    ck_assert_int_eq(status_of(a), GR_CU_CAPTURE_INVALIDATED);
    ck_assert_int_eq(status_of(b), GR_CU_CAPTURE_INVALIDATED);
    end_with(a, GR_CU_STREAM_CAPTURE_INVALIDATED);
    ck_assert_int_eq(status_of(b), GR_CU_CAPTURE_NONE);
    give(p, G);
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    down();
}
END_TEST

START_TEST(an_end_on_another_thread_fails_and_ends_the_capture) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_ptr p = ready(G);
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        OK(cu.cuStreamBeginCapture(a, mode));
        OK(cu.cuMemsetD8Async(p, 1, 16, a));
        end_elsewhere(a, mode == RELAXED ? GR_CU_SUCCESS : GR_CU_STREAM_CAPTURE_WRONG_THREAD);
        fork_capture(a, b, p, mode);
        end_elsewhere(a, GR_CU_STREAM_CAPTURE_UNJOINED);
        ck_assert_int_eq(status_of(b), GR_CU_CAPTURE_NONE);
    }
    give(p, G);
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    down();
}
END_TEST

START_TEST(two_captures_cannot_meet) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_event e = event();
    OK(cu.cuStreamBeginCapture(a, RELAXED));
    OK(cu.cuStreamBeginCapture(b, RELAXED));
    ck_assert_uint_ne(look(a).id, look(b).id);
    OK(cu.cuEventRecord(e, a));
    CODE(cu.cuStreamWaitEvent(b, e, 0), 902);
    end_with(a, GR_CU_STREAM_CAPTURE_INVALIDATED);
    end_with(b, GR_CU_STREAM_CAPTURE_INVALIDATED);
    OK(cu.cuEventDestroy(e));
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    down();
}
END_TEST

START_TEST(the_legacy_stream_collides_with_a_blocking_capture) {
    gr_cu_stream a;
    gr_cu_ptr p = ready(G);
    int status;
    OK(cu.cuStreamCreate(&a, 0));
    OK(cu.cuStreamBeginCapture(a, RELAXED));
    CODE(cu.cuStreamIsCapturing(GR_CU_STREAM_LEGACY, &status), 906);
    CODE(cu.cuStreamGetCaptureInfo(NULL, &status, NULL, NULL, NULL, NULL, NULL), 906);
    ck_assert_int_eq(status_of(a), GR_CU_CAPTURE_ACTIVE); /* looking harms nothing */
    CODE(cu.cuMemsetD8Async(p, 1, 16, NULL), 906);
    end_with(a, GR_CU_STREAM_CAPTURE_INVALIDATED);
    give(p, G);
    OK(cu.cuStreamDestroy(a));
    down();
}
END_TEST

START_TEST(destroying_the_origin_ends_its_capture) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_event e = event();
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    OK(cu.cuEventRecord(e, a));
    OK(cu.cuStreamWaitEvent(b, e, 0));
    OK(cu.cuStreamDestroy(a));
    ck_assert_int_eq(status_of(b), GR_CU_CAPTURE_NONE);
    OK(cu.cuStreamQuery(b));
    OK(cu.cuEventDestroy(e));
    OK(cu.cuStreamDestroy(b));
    down();
}
END_TEST

Suite *suite_sim_capture(void);
Suite *suite_sim_capture(void) {
    Suite *suite = suite_create("sim_capture");
    TCase *plain = tcase_create("plain");
    tcase_add_checked_fixture(plain, setup, NULL);
    tcase_add_loop_test(plain, each_call_during_a_capture_answers_as_measured, 0, 4 * CALLS);
    tcase_add_test(plain, only_a_global_capture_reaches_into_other_threads);
    tcase_add_test(plain, a_relaxed_thread_may_do_what_is_unsafe);
    tcase_add_test(plain, terminals_grow_and_join_as_measured);
    tcase_add_test(plain, asking_a_captured_event_breaks_its_capture);
    tcase_add_test(plain, an_invalidated_capture_answers_as_measured);
    tcase_add_test(plain, begin_and_end_refuse_what_is_wrong);
    tcase_add_test(plain, an_unjoined_fork_fails_the_end);
    tcase_add_test(plain, an_end_on_a_joined_stream_breaks_the_capture);
    tcase_add_test(plain, an_end_on_another_thread_fails_and_ends_the_capture);
    tcase_add_test(plain, two_captures_cannot_meet);
    tcase_add_test(plain, the_legacy_stream_collides_with_a_blocking_capture);
    tcase_add_test(plain, destroying_the_origin_ends_its_capture);
    suite_add_tcase(suite, plain);
    TCase *faithful = tcase_create("faithful");
    tcase_add_checked_fixture(faithful, setup_faithful, NULL);
    tcase_add_test(faithful, the_real_driver_takes_any_number_for_a_mode);
    suite_add_tcase(suite, faithful);
    TCase *strict = tcase_create("strict");
    tcase_add_test(strict, strict_mode_stops_a_mode_that_is_none);
    suite_add_tcase(suite, strict);
    return suite;
}
