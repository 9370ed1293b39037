/* SPDX-License-Identifier: Apache-2.0
 * The picture of the fragmentation benchmark: reserved and active memory over the operations. */
#ifndef BENCH_SVG_H
#define BENCH_SVG_H

#include <stddef.h>

#include "tool/replay.h"

/* A curve of one mode, and what PyTorch's allocator peaked at in that mode (0: not recorded). */
struct svg_curve {
    struct replay_point *points;
    size_t count;
    double ratio; /* peak reserved by peak active */
    double pytorch_bytes, pytorch_ratio;
};

struct svg_panel {
    const char *title, *what;
    size_t ops;
    struct svg_curve classic, expandable;
};

/* Writes the panels in two columns. source says what was measured where. Returns 0, or -1 with errno. */
int svg_write(const char *path, const char *source, const char *recorded, const struct svg_panel *panels,
              size_t count);

#endif
