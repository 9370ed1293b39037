/* SPDX-License-Identifier: Apache-2.0
 * The naive allocator that tells the truth: a list of live intervals, and totals counted one by one. */
#ifndef SUPPORT_MODEL_H
#define SUPPORT_MODEL_H

#include <granary/granary.h>

#include "base/base.h"

struct model_block {
    gr_addr addr;
    size_t size, requested;
    uint64_t pattern; /* what its bytes were filled with */
    granary_stream stream;
};

struct model_figure {
    int64_t now, peak, up, down;
};

enum { MODEL_ALL, MODEL_SMALL, MODEL_LARGE, MODEL_CLASSES };

struct model {
    struct model_block *blocks; /* live, in no order */
    size_t count, room;
    struct model_figure allocated[MODEL_CLASSES], requested[MODEL_CLASSES], blocks_live[MODEL_CLASSES];
};

void model_fini(struct model *model);

/* A block came. Returns NULL, or the live block that it overlaps (and takes nothing in). */
const struct model_block *model_add(struct model *model, const struct model_block *block);
/* The block at this place of the list goes. */
void model_remove(struct model *model, size_t index);
/* Peaks start again from the current values. */
void model_reset_peaks(struct model *model);

/* NULL when the figures of blocks agree to the byte, peaks included; else the name of one that does
 * not, with both values, in words. */
const char *model_compare(const struct model *model, const struct granary_stats *stats, char words[128]);

/* Writes the pattern at every 64 KiB of the block and at its end; and looks whether
 * it is still there. The addresses must be real memory (GRANARY_SIM_MEMORY). */
void model_fill(const struct model_block *block);
bool model_intact(const struct model_block *block);

#endif
