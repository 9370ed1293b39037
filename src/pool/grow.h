/* SPDX-License-Identifier: Apache-2.0
 * Growing a pool in place: where new memory goes.
 *
 *      before   | LIVE | FREE |   HOLE            | LIVE |      request = FREE + part of HOLE
 *      plan     | LIVE |     MOVING    |   HOLE   | LIVE |      lock released, driver works
 *      commit   | LIVE |     FREE      |   HOLE   | LIVE |
 *
 * Of all runs of FREE and HOLE blocks the plan takes the place that misses the fewest granules, the
 * lowest address of several. The planned blocks are in no index, so hits of the pool go on meanwhile and
 * cannot take them.
 *
 * Where the pool is sparing (pool.h), granules that the place would pin count like missing ones, and of places
 * that cost as much the one in the youngest company (pin.h) is taken. And it grows though a block fits, when
 * that costs fewer granules:
 *
 *      granules |         |         |         |         |         |
 *      block    | L ][            F           ][ L               |    pins 2 if cut for 4 MiB from its left
 *      place              | L       ][ F ][   H         |              misses 1: the piece F saves the other
 *
 * The memory for it can come out of the block that fits. Pieces below a granule between live blocks are
 * all that is lost when memory moves; this is what keeps them few. While memory is tight, it grows when that costs
 * as much, too, if the place is in the company of a block handed out lately and what fits is not.
 *
 * Locks: the miss lock from plan to commit or abort; the pool's lock in each call, not in between. */
#ifndef GR_POOL_GROW_H
#define GR_POOL_GROW_H

#include "pool/pool.h"

struct gr_growth {
    struct gr_segment *segment;
    struct gr_block *first, *last; /* MOVING, neighbours */
    size_t missing;                /* granules to map; 0: nothing was claimed */
    struct gr_block *spare;        /* a tile, should only a part of a block get its memory */
};

/* OK; OUT_OF_MEMORY when no run is long enough (the pool needs another range); HOST_MEMORY. OK with
 * nothing missing: a FREE block fits by now, given back by another thread since the pool was asked, and
 * growing does not pay. */
GR_MUST int gr_grow_plan(struct gr_pool *pool, size_t rounded, struct gr_growth *out);

/* Is there a place that is better than the block that fits, and is so little to be moved that it is worth its
 * time? The recent block was settled. */
GR_MUST bool gr_grow_pays(const struct gr_pool *pool, size_t rounded, const struct gr_fit *fit);

/* Walks the places to map: from NULL on, the next block of the plan with nothing behind it, or NULL. */
struct gr_block *gr_grow_next(const struct gr_growth *growth, const struct gr_block *after);

/* What has memory behind it becomes FREE, what has not becomes a HOLE: after success that is all of
 * it, after a failure the state before the plan. */
void gr_grow_finish(struct gr_pool *pool, struct gr_growth *growth);

#endif
