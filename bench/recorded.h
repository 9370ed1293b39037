/* SPDX-License-Identifier: Apache-2.0
 * Figures of another allocator on the same traces, measured elsewhere and kept in a file. */
#ifndef BENCH_RECORDED_H
#define BENCH_RECORDED_H

#include <stddef.h>

#include "tool/source.h"

enum mode { CLASSIC, EXPANDABLE, MODES };

extern const char *const recorded_mode_names[MODES];

struct recorded_figures {
    char trace[64], what[96];
    int mode;
    double ratio;          /* peak reserved by peak active */
    double reserved_bytes; /* where only the ratio was recorded: computed from it */
    double ns_cold, ns_warm;
};

struct recorded {
    char source[128]; /* what was measured where and when */
    struct recorded_figures rows[128];
    size_t count;
};

/* Returns 0, or -1 with the problem. */
int recorded_read(const char *path, struct recorded *out, struct problem *problem);

/* NULL when there is nothing recorded. */
const struct recorded_figures *recorded_find(const struct recorded *r, const char *trace, int mode);

/* A sentence about the trace, or "". */
const char *recorded_what(const struct recorded *r, const char *trace);

/* Place of the trace in the file; unknown ones come last. */
size_t recorded_rank(const struct recorded *r, const char *trace);

#endif
