/* SPDX-License-Identifier: Apache-2.0
 * What most tests stand on: a simulated device and a handle, and nothing left behind at the end. */
#include "support/fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/heap.h"

/* ---- opening and closing ---------------------------------------------------------------------- */

void fixture_open_sim(fixture_change *change, struct granary_options *options) {
    struct granary_sim_config config;
    granary_sim_config_init(&config);
    granary_options_init(options);
    config.memory_bytes = GR_GIB;
    config.backing = GRANARY_SIM_MEMORY;
    options->driver = GRANARY_DRIVER_SIM;
    if (change != NULL) change(&config, options);
    ck_assert_int_eq(granary_sim_open(&config), GRANARY_OK);
}

granary *fixture_open_handle(const struct granary_options *options, int device) {
    struct granary_options copy = *options;
    struct granary_fault fault = {.struct_size = sizeof fault};
    granary *g;
    copy.fault = &fault;
    int status = granary_open(device, &copy, &g);
    ck_assert_msg(status == GRANARY_OK, "open: %d %s", status, fault.text);
    g->allowance.credit = UINT64_MAX / 2; /* how long a move takes here says nothing */
    return g;
}

granary *fixture_open(fixture_change *change) {
    struct granary_options options;
    fixture_open_sim(change, &options);
    return fixture_open_handle(&options, 0);
}

void fixture_close_handle(granary *g) {
    const char *broken = granary_verify(g);
    ck_assert_msg(broken == NULL, "invariant %s is broken", broken);
    granary_close(g);
}

const char *fixture_leak(void) {
    struct granary_sim_held held = fixture_held();
    return held.handles        ? "handles"
           : held.mappings     ? "mappings"
           : held.reservations ? "reservations"
           : held.allocations  ? "allocations"
           : held.events       ? "events"
           : held.streams      ? "streams"
           : held.graphs       ? "graphs"
           : held.contexts     ? "contexts"
                               : NULL;
}

void fixture_close_sim(void) {
    const char *leak = fixture_leak();
    struct granary_sim_findings findings = {.struct_size = sizeof findings};
    ck_assert_msg(leak == NULL, "%s are left behind", leak);
    granary_sim_run_all();
    granary_sim_get_findings(&findings);
    ck_assert_msg(findings.count == 0, "%s", findings.first);
    ck_assert_int_eq(granary_sim_close(), GRANARY_OK);
}

void fixture_close(granary *g) {
    fixture_close_handle(g);
    fixture_close_sim();
}

/* ---- looking ---------------------------------------------------------------------------------- */

struct granary_stats fixture_stats(granary *g) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    ck_assert_int_eq(granary_get_stats(g, &stats), GRANARY_OK);
    return stats;
}

struct granary_fault fixture_fault(granary *g) {
    struct granary_fault fault = {.struct_size = sizeof fault};
    ck_assert_int_eq(granary_last_fault(g, &fault), GRANARY_OK);
    return fault;
}

struct granary_sim_held fixture_held(void) {
    struct granary_sim_held held = {.struct_size = sizeof held};
    granary_sim_get_held(&held);
    return held;
}

/* ---- doing ------------------------------------------------------------------------------------ */

granary_stream fixture_stream(granary *g) {
    granary_stream stream;
    ck_assert_int_eq(granary_stream_create(g, &stream), GRANARY_OK);
    return stream;
}

void *fixture_alloc(granary *g, size_t size, granary_stream stream) {
    void *ptr = NULL;
    int status = granary_alloc(g, size, stream, &ptr);
    ck_assert_msg(status == GRANARY_OK, "alloc of %zu: %d %s", size, status, fixture_fault(g).text);
    ck_assert_ptr_nonnull(ptr);
    return ptr;
}

void fixture_free(granary *g, void *ptr) {
    int status = granary_free(g, ptr);
    ck_assert_msg(status == GRANARY_OK, "free of %p: %d", ptr, status);
}

size_t fixture_trim(granary *g, size_t keep) {
    size_t released = 0;
    ck_assert_int_eq(granary_trim(g, keep, &released), GRANARY_OK);
    return released;
}

/* ---- comparing -------------------------------------------------------------------------------- */

struct fixture_state fixture_state(granary *g) {
    return (struct fixture_state){.stats = fixture_stats(g), .held = fixture_held()};
}

static bool differs(const char *name, int64_t before, int64_t after, bool may_fall, char words[128]) {
    if (before == after || (may_fall && after < before)) return false;
    snprintf(words, 128, "%s was %lld and is %lld", name, (long long)before, (long long)after);
    return true;
}

static bool stat_differs(const char *name, const struct granary_stat_by_class *before,
                         const struct granary_stat_by_class *after, bool may_fall, char words[128]) {
    static const char *const classes[] = {"all", "small", "large"};
    const struct granary_stat *b[] = {&before->all, &before->small, &before->large};
    const struct granary_stat *a[] = {&after->all, &after->small, &after->large};
    for (int c = 0; c < 3; c++) {
        char what[64];
        snprintf(what, sizeof what, "%s.%s.current", name, classes[c]);
        if (differs(what, b[c]->current, a[c]->current, may_fall, words)) return true;
        snprintf(what, sizeof what, "%s.%s.peak", name, classes[c]);
        if (differs(what, b[c]->peak, a[c]->peak, false, words)) return true;
    }
    return false;
}

bool fixture_same(const struct fixture_state *before, const struct fixture_state *after,
                  bool reserved_may_fall, char words[128]) {
    const struct granary_stats *b = &before->stats, *a = &after->stats;
    const struct granary_sim_held *h = &before->held, *i = &after->held;
    bool fall = reserved_may_fall;
    words[0] = '\0';
#define STAT(field, may_fall) stat_differs(#field, &b->field, &a->field, may_fall, words)
#define FIGURE(field, may_fall) differs(#field, (int64_t)b->field, (int64_t)a->field, may_fall, words)
#define HELD(field, may_fall) differs("held " #field, (int64_t)h->field, (int64_t)i->field, may_fall, words)
    return !(STAT(allocated_bytes, false) || STAT(active_bytes, false) || STAT(requested_bytes, false) ||
             STAT(allocations, false) || STAT(active_blocks, false) || STAT(reserved_bytes, fall) ||
             STAT(segments, fall) || FIGURE(handle_cache_bytes, fall) || FIGURE(extents, fall) ||
             FIGURE(reserved_address_bytes, fall) || FIGURE(ranges, fall) || HELD(handles, fall) ||
             HELD(handle_bytes, fall) || HELD(mappings, fall) || HELD(mapped_bytes, fall) ||
             HELD(allocated_bytes, fall) || HELD(reservations, fall) || HELD(reserved_bytes, fall) ||
             HELD(streams, false) || HELD(contexts, false));
#undef STAT
#undef FIGURE
#undef HELD
}

/* ---- children --------------------------------------------------------------------------------- */

bool fixture_aborts(void (*function)(void *argument), void *argument) {
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* sanitizers may have a handler that exits */
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
        function(argument);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

void fixture_watchdog(unsigned seconds) {
    alarm(seconds); /* 0 disarms; SIGALRM ends the process, and Check reports it */
}
