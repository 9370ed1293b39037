/* SPDX-License-Identifier: Apache-2.0
 * Segments: what blocks tile. Two kinds, told apart by an enum:
 *
 *      EXPANDABLE   a range; HOLE blocks where nothing is mapped. Born as one HOLE over all of it
 *      CLASSIC      one cuMemAlloc; never a HOLE. Born as one MOVING block, ready for its pool
 *
 * An expandable segment is the whole range with its holes; what people call segments in snapshots,
 * the runs of mapped memory in it, are read off its tiles.
 *
 * Invariants (gr_segment_check): B1..B4 of its tiles; R1, R2 of its range; and
 *      M1  the tiles cover the segment exactly
 *      M2  a slot has an extent iff no HOLE covers it (while no miss is under way)
 *
 * Locks: opening and closing under the miss lock; tiles under the pool's. */
#ifndef GR_MEMORY_SEGMENT_H
#define GR_MEMORY_SEGMENT_H

#include "block/block.h"
#include "memory/range.h"

enum gr_segment_kind { GR_SEGMENT_EXPANDABLE, GR_SEGMENT_CLASSIC };

struct gr_segment {
    enum gr_segment_kind kind; /* constant */
    gr_addr base;              /* constant */
    size_t size;               /* constant */
    struct gr_range range;     /* EXPANDABLE */
    struct gr_block *first;    /* under the pool's lock */
    uint32_t label;            /* CLASSIC: who asked for it, while history is kept; else 0 */
};

/* Both make `first` the only tile; it was taken from the pool's slab before, under the pool's lock, since
 * the driver is called without it. On failure the tile is still the caller's. */
GR_MUST int gr_segment_open_expandable(struct gr_segment *segment, struct gr_driver *driver,
                                       struct gr_block *first, size_t bytes, size_t need);
GR_MUST int gr_segment_open_classic(struct gr_segment *segment, struct gr_driver *driver,
                                    struct gr_block *first, size_t bytes);
/* Gives the addresses (and a classic segment's memory) back. An expandable segment has nothing mapped
 * any more; the tiles are the caller's to give back. */
void gr_segment_close(struct gr_segment *segment, struct gr_driver *driver);

static inline bool gr_segment_holds(const struct gr_segment *segment, gr_addr addr) {
    return addr >= segment->base && addr - segment->base < segment->size;
}

const char *gr_segment_check(const struct gr_segment *segment, bool moving_allowed);

#endif
