/* SPDX-License-Identifier: Apache-2.0
 * A pool without a heap: one device, one stream, one pool, and memory put behind it by hand. */
#ifndef SUPPORT_LONE_POOL_H
#define SUPPORT_LONE_POOL_H

#include "pool/grow.h"
#include "pool/idle.h"

struct lone_pool {
    struct gr_driver driver;
    struct gr_extents extents;
    struct gr_ledger ledger;
    struct gr_sizing sizing;
    struct gr_stream stream;
    struct gr_account account;
    struct gr_pool pool;
    struct gr_tally other; /* of a pool of the other class, which is not there */
};

/* On a simulated device of 1 GiB with granules of 2 MiB. */
void lone_pool_open(struct lone_pool *lone, enum gr_class class, bool expandable);
/* Unmaps everything, gives everything back, and asserts that nothing is held. */
void lone_pool_close(struct lone_pool *lone);

/* Adds a range of so many granules, or a classic segment of so many bytes. */
struct gr_segment *lone_pool_add_range(struct lone_pool *lone, size_t granules);
struct gr_segment *lone_pool_add_classic(struct lone_pool *lone, size_t bytes);

/* Backs every hole of a planned growth with extents of at most `piece` granules. */
void lone_pool_back(struct lone_pool *lone, struct gr_growth *growth, size_t piece);

/* Grows as a miss would until the pool serves the request, in pieces of so many granules. */
struct gr_block *lone_pool_take(struct lone_pool *lone, size_t size, size_t piece);
/* Frees as the heap does. */
void lone_pool_put(struct lone_pool *lone, struct gr_block *b);

/* Unmaps about so many idle bytes, where there are any, and releases what lay there. */
void lone_pool_evict(struct lone_pool *lone, size_t want);

/* Nothing of it is live, and it has ranges: they go, and the pool serves anew, as it would another stream. */
void lone_pool_hand_on(struct lone_pool *lone, bool expandable, bool no_split);

/* gr_pool_check with nothing on the move. */
const char *lone_pool_check(struct lone_pool *lone);

/* The tiles of a segment in words: "L2 F1 H5", in granules; "l512" in bytes where it is no whole
 * granule. Lives until the next call. */
const char *lone_pool_tiles(const struct gr_segment *segment);

#endif
