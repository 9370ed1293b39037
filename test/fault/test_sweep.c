/* SPDX-License-Identifier: Apache-2.0
 * Every driver call and every host allocation of every scenario is refused once. A call that fails
 * leaves figures, live blocks and memory as they were, breaks no invariant and loses nothing, and
 * the next attempt succeeds. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/host_wrap.h"
#include "fault/scenario.h"

#if defined(__SANITIZE_THREAD__)
static const gr_cu_result codes[] = {
    GR_CU_OUT_OF_MEMORY}; /* one thread: there is little to be seen, slowly */
#else
static const gr_cu_result codes[] = {GR_CU_OUT_OF_MEMORY, GR_CU_UNKNOWN, GR_CU_NOT_SUPPORTED};
#endif

/* Sanitizers look at every third place; the plain builds at all of them. */
#ifdef GR_SANITIZED
enum { STRIDE = 3 };
#else
enum { STRIDE = 1 };
#endif

enum kind { DRIVER_CALL, HOST_ALLOCATION };

/* Shared by the runner and the children that it forks for the tests. */
static struct { uint64_t pairs, runs; } * totals;

/* One refusal in one scenario, in words. */
static char where[256];

#define COMPLAIN_UNLESS(condition, ...)                           \
    do {                                                          \
        if (!(condition)) {                                       \
            char complaint_[512];                                 \
            snprintf(complaint_, sizeof complaint_, __VA_ARGS__); \
            ck_abort_msg("%s: %s", where, complaint_);            \
        }                                                         \
    } while (0)

static void open_world(const struct scenario *s, struct world *w) {
    *w = (struct world){.g = fixture_open(s->change)};
    w->a = fixture_stream(w->g);
    w->b = fixture_stream(w->g);
    s->prepare(w);
}

static void check_world(struct world *w) {
    const char *broken = granary_verify(w->g);
    COMPLAIN_UNLESS(broken == NULL, "%s is broken", broken);
    for (size_t i = 0; i < w->live.count; i++)
        COMPLAIN_UNLESS(model_intact(&w->live.blocks[i]), "a live block has lost its contents");
}

/* Frees everything, and finds nothing left in the driver or on the host. */
static void close_world(struct world *w, int64_t host_before) {
    check_world(w);
    for (size_t i = 0; i < w->live.count; i++) fixture_free(w->g, (void *)(uintptr_t)w->live.blocks[i].addr);
    w->live.count = 0; /* their contents may be gone */
    for (int i = 0; i < 2; i++)
        if (w->spare[i]) fixture_free(w->g, w->spare[i]);
    check_world(w);
    if (w->pool) ck_assert_int_eq(granary_pool_release(w->g, w->pool), GRANARY_OK);
    granary_stream streams[] = {w->a, w->b, w->made};
    for (int i = 0; i < 3; i++)
        if (streams[i]) ck_assert_int_eq(granary_stream_destroy(w->g, streams[i]), GRANARY_OK);
    granary_close(w->g);
    model_fini(&w->live);
    const char *leak = fixture_leak();
    COMPLAIN_UNLESS(leak == NULL, "%s are left behind", leak);
    COMPLAIN_UNLESS(host_wrap_live() == host_before, "%lld host allocations are left behind",
                    (long long)(host_wrap_live() - host_before));
    fixture_close_sim();
}

static void arm(struct world *w, enum kind kind, uint64_t k, uint64_t times, gr_cu_result code) {
    if (kind == DRIVER_CALL)
        gr_tap_fail(&w->g->driver.tap, GR_TAP_ANY, k, times, code);
    else
        host_wrap_fail(k, times);
}

static uint64_t disarm(struct world *w, enum kind kind) {
    uint64_t refused = kind == DRIVER_CALL ? gr_tap_refusals(&w->g->driver.tap) : host_wrap_refused();
    gr_tap_clear(&w->g->driver.tap);
    host_wrap_fail(0, 0);
    return refused;
}

/* ---- one refusal ------------------------------------------------------------------------------ */

/* The entry that was refused, from the log. */
static const char *refused_entry(const struct gr_tap_record *log, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (log[i].refused) return gr_driver_entry_name(log[i].entry);
    return "";
}

/* Extents that were made for a request which then failed may wait in the handle cache for the next
 * attempt, within the limit that the user has set for it. */
static void allow_cached(struct fixture_state *before, const struct fixture_state *after) {
    int64_t more = after->stats.handle_cache_bytes - before->stats.handle_cache_bytes;
    if (more <= 0) return;
    before->stats.handle_cache_bytes += more;
    before->held.handle_bytes += (uint64_t)more;
    before->stats.extents = after->stats.extents;
    before->held.handles = after->held.handles;
}

/* False when there is no k-th call. */
static bool refuse(const struct scenario *s, enum kind kind, uint64_t k, gr_cu_result code) {
    enum { ROOM = 4096 };
    static struct gr_tap_record log[ROOM];
    int64_t host_before = host_wrap_live();
    struct world w;
    char words[128];
    snprintf(where, sizeof where, "%s, before the call", s->name);
    open_world(s, &w);
    struct fixture_state before = fixture_state(w.g);
    uint64_t blocks_before = w.live.count;

    (void)gr_tap_log(&w.g->driver.tap, log, ROOM);
    arm(&w, kind, k, 1, code);
    int status = s->act(&w);
    bool reached = disarm(&w, kind) > 0;
    size_t seen = gr_tap_log(&w.g->driver.tap, NULL, 0);
    snprintf(where, sizeof where, "%s, %s %llu%s%s answers %d", s->name,
             kind == DRIVER_CALL ? "call" : "host allocation", (unsigned long long)k,
             kind == DRIVER_CALL ? " " : "",
             kind == DRIVER_CALL ? refused_entry(log, gr_min(seen, ROOM)) : "",
             kind == DRIVER_CALL ? (int)code : 0);

    if (status != GRANARY_OK) {
        struct fixture_state after = fixture_state(w.g);
        COMPLAIN_UNLESS(reached && !s->never_fails, "fails with %d", status);
        COMPLAIN_UNLESS(status < 0 && status != GRANARY_INVALID && status != GRANARY_LOST, "status %d",
                        status);
        COMPLAIN_UNLESS(kind == DRIVER_CALL || status == GRANARY_HOST_MEMORY || s->idle_may_go, "status %d",
                        status);
        /* What the call did before it failed stays, when it is a series of calls. */
        bool single = w.live.count == blocks_before;
        allow_cached(&before, &after);
        COMPLAIN_UNLESS(!single || fixture_same(&before, &after, s->idle_may_go, words), "%s", words);
    }
    check_world(&w);
    if (status != GRANARY_OK) {
        int again = s->act(&w);
        COMPLAIN_UNLESS(again == GRANARY_OK, "the next attempt fails too: %d %s", again,
                        fixture_fault(w.g).text);
        check_world(&w);
    }
    totals->runs++;
    totals->pairs += reached;
    close_world(&w, host_before);
    return reached;
}

/* Calls that the scenario makes when nothing is refused. */
static uint64_t dry_run(const struct scenario *s, enum kind kind) {
    struct world w;
    int64_t host_before = host_wrap_live();
    snprintf(where, sizeof where, "%s, dry run", s->name);
    open_world(s, &w);
    uint64_t calls = gr_tap_total(&w.g->driver.tap), taken = host_wrap_taken();
    int status = s->act(&w);
    COMPLAIN_UNLESS(status == GRANARY_OK, "fails with %d %s", status, fixture_fault(w.g).text);
    calls = gr_tap_total(&w.g->driver.tap) - calls;
    taken = host_wrap_taken() - taken;
    check_world(&w);
    close_world(&w, host_before);
    return kind == DRIVER_CALL ? calls : taken;
}

START_TEST(a_refused_driver_call_changes_nothing) {
    const struct scenario *s = &scenarios[_i];
    uint64_t calls = dry_run(s, DRIVER_CALL);
    for (size_t c = 0; c < GR_COUNT(codes); c++) {
        uint64_t met = 0;
        while (refuse(s, DRIVER_CALL, met + 1, codes[c])) met += STRIDE;
        ck_assert_msg(met >= calls, "%s: met %llu of %llu calls", s->name, (unsigned long long)met,
                      (unsigned long long)calls);
    }
}
END_TEST

START_TEST(a_refused_host_allocation_changes_nothing) {
    const struct scenario *s = &scenarios[_i];
    uint64_t taken = dry_run(s, HOST_ALLOCATION), met = 0;
    while (refuse(s, HOST_ALLOCATION, met + 1, 0)) met += STRIDE;
    /* Leaves of the address table come with the addresses, which differ from run to run. */
    ck_assert_msg(met + 2 >= taken, "%s: met %llu of %llu host allocations", s->name, (unsigned long long)met,
                  (unsigned long long)taken);
}
END_TEST

/* ---- refusals without end --------------------------------------------------------------------- */

/* From the k-th call on the driver refuses everything: that may lose memory, but not the process, not
 * a live block and not what we know of ourselves. Case 55: and nobody hangs. */
static void harm(const struct scenario *s, uint64_t k) {
    struct world w;
    fixture_watchdog(10);
    open_world(s, &w);
    arm(&w, DRIVER_CALL, k, UINT64_MAX, GR_CU_UNKNOWN);
    int status = s->act(&w);
    COMPLAIN_UNLESS(status <= 0 && status != GRANARY_INVALID, "status %d", status);
    (void)disarm(&w, DRIVER_CALL);
    check_world(&w);
    for (size_t i = 0; i < w.live.count; i++) fixture_free(w.g, (void *)(uintptr_t)w.live.blocks[i].addr);
    w.live.count = 0;
    check_world(&w);
    granary_close(w.g);
}

START_TEST(a_driver_that_refuses_everything_from_some_call_on_does_no_harm) {
    const struct scenario *s = &scenarios[_i];
    uint64_t calls = dry_run(s, DRIVER_CALL);
    for (uint64_t k = 1; k <= calls; k += 2 * STRIDE - 1) {
        snprintf(where, sizeof where, "%s, calls from %llu on are refused", s->name, (unsigned long long)k);
        fflush(NULL);
        pid_t child = fork(); /* one each: the simulation may hold what was lost, and then does not close */
        if (child == 0) {
            harm(s, k);
            _exit(0);
        }
        int ended = 0;
        ck_assert_int_eq(waitpid(child, &ended, 0), child);
        COMPLAIN_UNLESS(ended == 0, "ends with %#x", (unsigned)ended);
        totals->pairs++;
        totals->runs++;
    }
}
END_TEST

/* ---- opening and closing ---------------------------------------------------------------------- */

START_TEST(a_refused_host_allocation_of_opening_leaves_nothing_open) {
    struct granary_options options;
    granary *g = NULL;
    int status = GRANARY_HOST_MEMORY;
    uint64_t met = 0;
    for (uint64_t k = 1; status != GRANARY_OK; k++) {
        struct granary_fault fault = {.struct_size = sizeof fault};
        int64_t host_before = host_wrap_live();
        fixture_open_sim(NULL, &options);
        options.fault = &fault;
        host_wrap_fail(k, 1);
        status = granary_open(0, &options, &g);
        host_wrap_fail(0, 0);
        if (status == GRANARY_OK)
            granary_close(g);
        else
            met++;
        ck_assert_msg(status == GRANARY_OK || status == GRANARY_HOST_MEMORY, "allocation %d: %d", (int)k,
                      status);
        ck_assert_int_eq(fault.status, status);
        ck_assert(status == GRANARY_OK || (g == NULL && fault.text[0] != '\0'));
        ck_assert_int_eq(host_wrap_live(), host_before);
        fixture_close_sim();
    }
    ck_assert_uint_ge(met, 3); /* the handle, the routes, the address table */
    totals->pairs += met;
    totals->runs += met;
}
END_TEST

static void fill(struct world *w, int mode) {
    world_live(w, 3000, w->a);
    world_live(w, 30 * GR_MIB, w->b);
    world_idle(w, 10 * GR_MIB, w->a);
    if (mode == 0) (void)fixture_trim(w->g, 44 * GR_MIB); /* so that there are events */
}

/* granary_close cannot fail: what is refused once is asked for once more. */
START_TEST(a_refused_call_of_closing_leaves_nothing_behind) {
    const struct scenario *s = &scenarios[_i == 0 ? 0 : 2];
    uint64_t calls = UINT64_MAX;
    for (size_t c = 0; c < GR_COUNT(codes); c++)
        for (uint64_t k = 0; k <= calls; k++) { /* 0: the dry run */
            struct world w = {.g = fixture_open(s->change)};
            int64_t host_before = 0;
            w.a = fixture_stream(w.g);
            w.b = fixture_stream(w.g);
            fill(&w, _i);
            snprintf(where, sizeof where, "closing, %s, call %llu answers %d", _i == 0 ? "ranges" : "classic",
                     (unsigned long long)k, codes[c]);
            ck_assert_int_eq(granary_stream_destroy(w.g, w.a), GRANARY_OK);
            ck_assert_int_eq(granary_stream_destroy(w.g, w.b), GRANARY_OK);
            struct gr_tap_record log[512];
            (void)gr_tap_log(&w.g->driver.tap, log, GR_COUNT(log));
            if (k > 0) gr_tap_fail(&w.g->driver.tap, GR_TAP_ANY, k, 1, codes[c]);
            memset(log, 0xFF, sizeof log);
            granary_close(w.g);
            model_fini(&w.live);
            size_t seen = 0;
            while (seen < GR_COUNT(log) && log[seen].entry >= 0) seen++;
            if (k == 0) calls = seen;
            const char *leak = fixture_leak();
            COMPLAIN_UNLESS(leak == NULL, "%s was refused, %s are left behind", refused_entry(log, seen),
                            leak);
            COMPLAIN_UNLESS(host_wrap_live() == host_before, "host memory is left behind");
            fixture_close_sim();
            totals->pairs += k > 0;
            totals->runs++;
        }
}
END_TEST

/* ---- the report ------------------------------------------------------------------------------- */

static pid_t runner;

static void report(void) {
    if (getpid() != runner) return; /* a child that ends is no end of the sweep */
    printf("sweep: %llu pairs of scenario and refused call, %llu runs\n", (unsigned long long)totals->pairs,
           (unsigned long long)totals->runs);
}

Suite *suite_sweep(void) {
    Suite *suite = suite_create("sweep");
    TCase *cases = tcase_create("sweep");
    int count = 0;
    while (scenarios[count].name != NULL) count++;
    runner = getpid();
    totals = mmap(NULL, sizeof *totals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    atexit(report);
    tcase_set_timeout(cases, 30);
    tcase_add_loop_test(cases, a_refused_driver_call_changes_nothing, 0, count);
    tcase_add_loop_test(cases, a_refused_host_allocation_changes_nothing, 0, count);
    tcase_add_loop_test(cases, a_driver_that_refuses_everything_from_some_call_on_does_no_harm, 0, count);
    tcase_add_test(cases, a_refused_host_allocation_of_opening_leaves_nothing_open);
    tcase_add_loop_test(cases, a_refused_call_of_closing_leaves_nothing_behind, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
