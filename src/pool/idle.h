/* SPDX-License-Identifier: Apache-2.0
 * Giving memory up: finding whole extents under FREE blocks and claiming them.
 *
 *      before   | LIVE |      FREE  [ext][ext]  | LIVE |
 *      claim    | LIVE | FREE | MOVING [..][..] | LIVE |      lock released, driver works
 *      finish   | LIVE | FREE |      HOLE       | LIVE |
 *
 * FREE neighbours are always joined, so an extent that no block uses lies inside one FREE block.
 * Whether work of the stream may still touch it is told by the block's epoch; the caller proves it
 * before it unmaps. A classic segment is one piece: it is idle when one FREE block covers it.
 *
 * Locks: the miss lock from claim to finish; the pool's lock in each call, not in between. */
#ifndef GR_POOL_IDLE_H
#define GR_POOL_IDLE_H

#include "pool/pool.h"

struct gr_idle {
    struct gr_segment *segment;
    struct gr_block *block; /* MOVING; covers whole extents, or a whole classic segment */
    size_t bytes;
    uint32_t epoch;         /* when its newest part was freed */
    struct gr_block *spare; /* for the cut when unmapping stops half way; NULL for a classic segment */
};

/* Claims idle memory that was freed in the given epoch or before: about `want` bytes from the block
 * that fits it best, else what the largest has. False when there is none (or no host memory for the
 * tiles that cutting needs). */
GR_MUST bool gr_idle_claim(struct gr_pool *pool, size_t want, uint32_t epoch, struct gr_idle *out);

/* Idle bytes of the pool, all epochs; stops counting at enough. */
size_t gr_idle_total(struct gr_pool *pool, size_t enough);

/* How old idle memory is, by the clock of requests; block by block, for garbage collection. */
struct gr_idle_ages {
    uint64_t sum;    /* of the ages of blocks freed up to the epoch that was asked for, */
    size_t count;    /* and how many those are */
    uint32_t newest; /* epoch of the newest block of all */
};
/* Adds the blocks of the pool that have idle memory. */
void gr_idle_ages(struct gr_pool *pool, uint32_t clock, uint32_t epoch, struct gr_idle_ages *out);
/* Like gr_idle_claim, from a block that is at least so old. */
GR_MUST bool gr_idle_claim_old(struct gr_pool *pool, uint32_t clock, uint64_t age, size_t want,
                               uint32_t epoch, struct gr_idle *out);

/* What still has memory behind it becomes FREE again, the rest a HOLE. (A classic segment whose
 * memory goes is taken out of the pool by the caller instead.) */
void gr_idle_finish(struct gr_pool *pool, struct gr_idle *idle);

#endif
