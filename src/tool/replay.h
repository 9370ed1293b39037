/* SPDX-License-Identifier: Apache-2.0
 * Replaying a trace through the allocator, and what it took. */
#ifndef TOOL_REPLAY_H
#define TOOL_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <granary/granary.h>

#include "tool/trace.h"

enum replay_driver { REPLAY_AUTO, REPLAY_CUDA, REPLAY_SIM };

struct replay_setup {
    enum replay_driver driver; /* AUTO: CUDA where it opens, else the simulation */
    const char *conf;          /* an option string, or "" */
    size_t memory;             /* the most that may be held; 0: what the device has */
    unsigned repeat;           /* warm passes, of which the fastest counts */
};

struct replay_result {
    const char *trace, *conf, *driver; /* driver: "cuda" or "sim" */
    char device[96];
    size_t ops, allocs; /* that were tried, in the cold pass */
    bool out_of_memory;
    size_t oom_at;      /* from 0, when out_of_memory */
    int oom_status;     /* the library's code for it */
    char oom_text[256]; /* the library's words for it */
    uint64_t peak_allocated, peak_active, peak_reserved;
    uint64_t extents; /* physical allocations mapped at the end of the cold pass */
    uint64_t misses, moved_extents, moved_bytes, moving_ns;
    struct granary_driver_calls calls; /* by the traffic of the cold pass */
    double cold_ns, warm_ns; /* per call of alloc and free; warm_ns is negative when there was no such pass */
    uint64_t warm_reserved;  /* peak of all passes */
};

/* Bytes at their most within a stretch of operations that ends before op. */
struct replay_point {
    size_t op;
    uint64_t active, reserved;
};

/* Turns AUTO into what this machine has. */
enum replay_driver replay_resolve(enum replay_driver driver);

/* Checks an option string without replaying. Returns 0, or -1 with the problem. */
int replay_check_conf(const char *conf, struct problem *problem);

/* One cold pass on a fresh handle, then the warm ones on the same handle, each after everything was
 * freed. Running out of memory is a result; anything else that fails is a problem: -1. */
int replay_run(const struct trace *trace, const struct replay_setup *setup, struct replay_result *out,
               struct problem *problem);

/* Replays once more, untimed, for a curve of at most room points. *count is how many there are. */
int replay_series(const struct trace *trace, const struct replay_setup *setup, struct replay_point *points,
                  size_t room, size_t *count, struct problem *problem);

/* All calls into the driver together. */
uint64_t replay_calls(const struct granary_driver_calls *calls);

#endif
