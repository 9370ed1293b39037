/* SPDX-License-Identifier: Apache-2.0
 * The latency benchmark: its shapes, and the rows that they fill. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include "device.h"
#include "measure.h"

struct latency_row {
    char shape[24], detail[32];
    double param;            /* bytes, live blocks, holes, threads or operations, as the shape says */
    struct figures figures;  /* nanoseconds an operation: a pair, a replacement, or a call */
    double glibc;            /* the yardstick, measured just before */
    double wall, glibc_wall; /* of several threads, from the first start to the last end; else 0 */
    double misses;           /* share of the allocations that the pool could not serve */
    double ratio;            /* trace_warm: reserved bytes by active ones, at their most; 0: not looked at */
};

/* Host memory of a handle. */
struct latency_host {
    double handle_bytes, block_bytes, small_block_bytes, gib_bytes; /* taken from the C library */
    double block_rss, small_block_rss, gib_rss;                     /* really touched */
};

struct latency {
    struct device device;
    bool quick;         /* a smoke test: short, figures mean nothing */
    const char *only;   /* a shape, or NULL for all */
    const char *conf;   /* option string of every handle */
    const char *traces; /* folder */
    double until;       /* no shape begins after this moment */
    struct latency_row *rows;
    size_t count, room;
    struct latency_host host;
};

/* Is the shape wanted? */
bool latency_wants(const struct latency *l, const char *shape);
/* Less of n in a smoke test. */
size_t latency_scale(const struct latency *l, size_t n);
granary *latency_handle(const struct latency *l);
double latency_misses(granary *g);
struct latency_row *latency_add(struct latency *l, const char *shape, const char *detail, double param,
                                struct figures figures, double glibc, double misses);

/* shapes_one.c: one thread */
void shape_pair(struct latency *l);
void shape_replace(struct latency *l);
void shape_holes(struct latency *l);
void shape_rmm(struct latency *l);
/* shapes_many.c: several threads */
void shape_threads(struct latency *l);
void shape_handoff(struct latency *l);
/* shapes_trace.c: recorded traffic */
void shape_traces(struct latency *l);
/* shapes_host.c: opening, and host memory */
void shape_open(struct latency *l);
void shape_host(struct latency *l);

#endif
