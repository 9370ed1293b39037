/* SPDX-License-Identifier: Apache-2.0
 * Growth: allocations of one place in the program that are made again and again and never freed.
 *
 * What is alive at a moment is grouped by stack (by size where no stack was recorded), and each group's
 * births are held against the program's own rhythm. A cycle is a fall of all live memory by a fifth of its
 * range and a rise after it: a training step, a request.
 *
 *      live    /\    /\    /\    /\         weights are born before the first cycle,
 *      bytes  /  \  /  \  /  \  /           activations in the last, and what grows in most of them
 *            /    \/    \/    \/
 *
 * Without five cycles there is only one sign left: one place and size that makes up most of all growth, born
 * evenly over the whole history. What replaces its elders (as many bytes of its size freed as born) does not
 * grow. */
#ifndef TOOL_GROWTH_H
#define TOOL_GROWTH_H

#include "tool/snapshot.h"

enum { GROWTH_GROUPS = 4 };

struct growth_group {
    uint32_t stack; /* 0: not recorded, then blocks are alike in size */
    uint64_t size;  /* of the block that takes most bytes */
    const char *note;
    uint64_t bytes; /* born in the history and alive at the moment */
    size_t blocks;
    size_t cycles; /* in which at least one of them was born */
    /* Alive since before the history, of the same size, and of this stack or of an unknown one. */
    uint64_t older_bytes;
    size_t older_blocks;
};

struct growth {
    size_t count; /* of groups, the largest first */
    struct growth_group groups[GROWTH_GROUPS];
    uint64_t bytes, older_bytes; /* of all groups, also of those that found no place above */
    size_t cycles;               /* complete ones in the history */
    double seconds;              /* that the history spans; 0 for a trace */
    bool *lives;                 /* for each life: does it belong to a group? NULL when none does */
};

/* Looks at a device as it was before an entry. Returns 0, or -1 with the problem. */
int growth_find(const struct snapshot *snapshot, const struct snapshot_device *device, size_t entry,
                struct growth *out, struct problem *problem);
void growth_free(struct growth *growth);

#endif
