/* SPDX-License-Identifier: Apache-2.0
 * Thinning: which lives of a long history are told one by one, and the sum of the others.
 *
 * The largest are kept, and whatever was there when it matters: at the peak, when memory last ran out,
 * and at the end. The sum of the others is a curve with a bounded number of steps; each holds the sum at that
 * moment of its stretch at which most memory was active, so that the peak stays exact. */
#ifndef TOOL_THIN_H
#define TOOL_THIN_H

#include "tool/array.h"
#include "tool/snapshot.h"

/* Bytes from an entry on, up to the next point. */
struct thin_point {
    size_t entry;
    uint64_t bytes;
};

struct thin {
    unsigned char *keep; /* for each life; NULL: all are kept */
    size_t kept;
    uint64_t below; /* the largest size among the others */
    struct thin_point *points;
    size_t point_count;
};

/* Returns false when the host has no memory; thin_free either way. */
bool thin_lives(const struct snapshot_device *device, size_t most, size_t points, struct thin *out);
void thin_free(struct thin *thin);

static inline bool thin_keeps(const struct thin *thin, size_t life) {
    return thin->keep == NULL || thin->keep[life] != 0;
}

#endif
