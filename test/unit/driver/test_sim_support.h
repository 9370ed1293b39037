/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the simulated driver share: opening one, asserting codes, memory in one line. */
#ifndef TEST_SIM_SUPPORT_H
#define TEST_SIM_SUPPORT_H

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/driver.h"
#include "granary/sim.h"

/* The code that a call answers. */
#define CODE(call, code) \
    ck_assert_msg((got = (call)) == (code), "%s answered %d, not %d", #call, got, (int)(code))
#define OK(call) CODE(call, GR_CU_SUCCESS)
/* Calls on a stream of work that tests submit. */
#define USE(stream, ptr, size, id) granary_sim_use(stream, at(ptr), size, 1, id, GRANARY_SIM_SITE)

#define G (2 * GR_MIB)

/* Modes of a capture. */
enum { GLOBAL, THREAD_LOCAL, RELAXED, ELSEWHERE /* a GLOBAL capture, the call from another thread */ };

__attribute__((unused)) static int got;
static struct gr_table cu;
static gr_cu_context context;
__attribute__((unused)) static const struct gr_cu_mem_prop PROP = {.type = GR_CU_MEM_TYPE_PINNED,
                                                                   .location = {GR_CU_LOCATION_DEVICE, 0}};
__attribute__((unused)) static const struct gr_cu_access BOTH = {{GR_CU_LOCATION_DEVICE, 0},
                                                                 GR_CU_ACCESS_READWRITE};

static inline struct granary_sim_config defaults(void) {
    struct granary_sim_config config;
    granary_sim_config_init(&config);
    return config;
}

/* Opens with the config and makes the primary context current. */
static inline void up(struct granary_sim_config config) {
    ck_assert_int_eq(granary_sim_open(&config), GRANARY_OK);
    gr_sim_table(&cu);
    OK(cu.cuInit(0));
    OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cu.cuCtxPushCurrent(context));
}

/* As up, with the real driver's codes where strict mode would abort. */
static inline void up_faithful(struct granary_sim_config config) {
    config.strict = 0;
    up(config);
}

static inline void down(void) {
    OK(cu.cuCtxPopCurrent(NULL));
    OK(cu.cuDevicePrimaryCtxRelease(0));
    ck_assert_int_eq(granary_sim_close(), GRANARY_OK);
}

/* The misuse ends its process, with a report. It opens a simulation of its own: one that was open
 * before the fork would answer 3. */
static inline void stops(void (*misuse)(void)) {
    int ends[2], status = 0;
    char text[64] = "";
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        /* A failed assertion would go on with the runner's next test, in the child. */
        if (granary_sim_open(NULL) != GRANARY_OK || granary_sim_close() != GRANARY_OK) _exit(1);
        misuse();
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "the misuse was let through");
    ck_assert_msg(length > 0 && strncmp(text, "granary sim: ", 13) == 0, "no report but '%s'", text);
}

static inline struct granary_sim_held held(void) {
    struct granary_sim_held out = {.struct_size = sizeof out};
    granary_sim_get_held(&out);
    return out;
}

static inline struct granary_sim_findings findings(void) {
    struct granary_sim_findings out = {.struct_size = sizeof out};
    granary_sim_get_findings(&out);
    return out;
}

static inline void *at(gr_cu_ptr ptr) {
    return (void *)(uintptr_t)ptr;
}

static inline gr_cu_ptr reserve(size_t size) {
    gr_cu_ptr ptr = 0;
    OK(cu.cuMemAddressReserve(&ptr, size, 0, 0, 0));
    return ptr;
}

static inline gr_cu_handle create(size_t size) {
    gr_cu_handle handle = 0;
    OK(cu.cuMemCreate(&handle, size, &PROP, 0));
    return handle;
}

/* Mapped memory with access, of one handle that is released already. */
static inline gr_cu_ptr ready(size_t size) {
    gr_cu_ptr ptr = reserve(size);
    gr_cu_handle handle = create(size);
    OK(cu.cuMemMap(ptr, size, 0, handle, 0));
    OK(cu.cuMemRelease(handle));
    OK(cu.cuMemSetAccess(ptr, size, &BOTH, 1));
    return ptr;
}

static inline void give(gr_cu_ptr ptr, size_t size) {
    OK(cu.cuMemUnmap(ptr, size));
    OK(cu.cuMemAddressFree(ptr, size));
}

static inline gr_cu_stream stream(void) {
    gr_cu_stream out = NULL;
    OK(cu.cuStreamCreate(&out, GR_CU_STREAM_NON_BLOCKING));
    return out;
}

static inline gr_cu_event event(void) {
    gr_cu_event out = NULL;
    OK(cu.cuEventCreate(&out, GR_CU_EVENT_DISABLE_TIMING));
    return out;
}

static inline int status_of(gr_cu_stream s) {
    int status = 99;
    OK(cu.cuStreamIsCapturing(s, &status));
    return status;
}

/* What a stream's capture looks like, copied before the next call on it. */
struct look {
    int status;
    unsigned long long id;
    gr_cu_graph graph;
    gr_cu_node nodes[16];
    struct gr_cu_edge edges[16];
    size_t count;
};

static inline struct look look(gr_cu_stream s) {
    struct look l = {.status = 9, .count = 99};
    const gr_cu_node *nodes = NULL;
    const struct gr_cu_edge *edges = NULL;
    OK(cu.cuStreamGetCaptureInfo(s, &l.status, &l.id, &l.graph, &nodes, &edges, &l.count));
    for (size_t i = 0; l.status == GR_CU_CAPTURE_ACTIVE && i < l.count; i++)
        l.nodes[i] = nodes[i], l.edges[i] = edges[i];
    return l;
}

/* Ends the capture with this code, and destroys its graph when there is one. */
static inline void end_with(gr_cu_stream s, gr_cu_result code) {
    gr_cu_graph graph = (gr_cu_graph)1;
    CODE(cu.cuStreamEndCapture(s, &graph), code);
    ck_assert_int_eq(graph != NULL, code == GR_CU_SUCCESS);
    if (graph) OK(cu.cuGraphDestroy(graph));
    ck_assert_int_eq(status_of(s), GR_CU_CAPTURE_NONE);
}

#endif
