/* SPDX-License-Identifier: Apache-2.0
 * The live blocks of a pool, found by their address.
 *
 *      bucket[hash of addr]  ->  block  ->  block        linked through u.live.chain
 *
 * There are at least twice as many buckets as blocks: a chain is hardly ever longer than one, which matters as whether
 * the first block is the right one is a branch that cannot be foreseen. A block costs 16 to 32 bytes here. A set that
 * becomes too small gets twice the buckets; the old ones move over a few at a time, with each block that is added, so
 * that no call pauses. When the host has no memory the chains are longer for a while: adding and removing never fail.
 *
 *      growing      bucket[0 .. 2n)   takes old[i] over as [2i] and [2i + 1]
 *                   old[moved .. n)   still in use
 *
 * Invariants (gr_live_check):
 *      A1  every block in the set is LIVE and in the bucket of its address
 *      A2  count is that of the blocks in it
 *
 * Locks: the caller's (the pool's). */
#ifndef GR_BLOCK_LIVE_H
#define GR_BLOCK_LIVE_H

#include "block/block.h"

enum { GR_LIVE_FEW_LOG2 = 4, GR_LIVE_FEW = 1 << GR_LIVE_FEW_LOG2 };

struct gr_live {
    struct gr_block **bucket;
    unsigned shift; /* 64 - log2 of the number of buckets */
    size_t count;   /* of blocks */
    size_t due;     /* the count from which on there is something to do; 0 while growing */
    struct gr_block **old;
    size_t moved;
    struct gr_block *few[GR_LIVE_FEW]; /* the first buckets */
};

static inline size_t gr_live_buckets(const struct gr_live *live) {
    return (size_t)1 << (64 - live->shift);
}

void gr_live_init(struct gr_live *live);
void gr_live_fini(struct gr_live *live);

/* The rare half of add: grows, or goes on with it. */
void gr_live_grow(struct gr_live *live);

static inline struct gr_block **gr_live_bucket(struct gr_live *live, gr_addr addr) {
    /* Units folded once: else a few of all even distances, times 2^64 by the golden ratio, fall into few buckets. */
    uint64_t units = addr / GR_BLOCK_UNIT, hash = (units ^ units >> 7) * UINT64_C(0x9E3779B97F4A7C15);
    if (GR_UNLIKELY(live->old != NULL) && hash >> live->shift >> 1 >= live->moved)
        return &live->old[hash >> live->shift >> 1];
    return &live->bucket[hash >> live->shift];
}

/* The link to the block that is live at exactly this address, or to NULL. Good until the set changes. */
static inline struct gr_block **gr_live_link(struct gr_live *live, gr_addr addr) {
    struct gr_block **link = gr_live_bucket(live, addr);
    while (*link && (*link)->addr != addr) link = &(*link)->u.live.chain;
    return link;
}

/* The block that is live at exactly this address, or NULL. */
static inline struct gr_block *gr_live_find(struct gr_live *live, gr_addr addr) {
    return *gr_live_link(live, addr);
}

/* b becomes LIVE, where a block has just been removed; or anywhere; or what the link leads to ceases to be. */
static inline void gr_live_add_again(struct gr_live *live, struct gr_block *b) {
    struct gr_block **bucket = gr_live_bucket(live, b->addr);
    b->u.live.chain = *bucket;
    *bucket = b;
    live->count++;
}
static inline void gr_live_add(struct gr_live *live, struct gr_block *b) {
    gr_live_add_again(live, b);
    if (GR_UNLIKELY(live->count > live->due)) gr_live_grow(live);
}
static inline void gr_live_remove(struct gr_live *live, struct gr_block **link) {
    *link = (*link)->u.live.chain;
    live->count--;
}

const char *gr_live_check(struct gr_live *live);

#endif
