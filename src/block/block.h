/* SPDX-License-Identifier: Apache-2.0
 * Blocks: the tiles of a segment. Pure data structure; knows no driver, no pool, no stream.
 *
 *      segment    | LIVE | FREE | LIVE | PENDING | HOLE           | LIVE | HOLE ...
 *      list        prev <-> next, in rising address, without gaps
 *
 *      LIVE      handed out                       FREE     in its pool's index
 *      PENDING   freed; another stream uses it    HOLE     addresses with nothing behind
 *      MOVING    memory is being put behind it or taken away, or it is being searched: in no index
 *
 * Legal steps, all made by gr_block_become:
 *      FREE -> LIVE -> FREE       allocate, free          HOLE <-> MOVING -> FREE   grow
 *      LIVE -> PENDING -> FREE    free with other users   FREE <-> MOVING -> HOLE   give memory up
 *
 * Invariants (gr_block_check, on the tiles of one segment):
 *      B1  tiles are contiguous: b->addr + b->size == b->next->addr, and links agree
 *      B2  no two FREE and no two HOLE neighbours (they would have merged)
 *      B3  sizes are positive multiples of 512; edges of a HOLE lie on granule boundaries
 *      B4  state is one of the five, and MOVING only while a miss is under way
 *
 * Locks: a block belongs to one pool for ever, the one that owns its address (table.h), and is guarded by
 * that pool's lock. */
#ifndef GR_BLOCK_BLOCK_H
#define GR_BLOCK_BLOCK_H

#include "base/base.h"
#include "base/check.h"
#include "base/slab.h"

enum { GR_BLOCK_UNIT = 512 }; /* bytes; every address and size is a multiple */

enum gr_block_state { GR_BLOCK_LIVE = 1, GR_BLOCK_FREE, GR_BLOCK_PENDING, GR_BLOCK_HOLE, GR_BLOCK_MOVING };

struct gr_use;

/* One cache line. */
struct gr_block {
    gr_addr addr;
    union {
        struct {
            uint64_t state : 8; /* enum gr_block_state */
            uint64_t size : 56;
        };
        uint64_t tile; /* both: written as a whole, for a load of a word waits long for a store of its part */
    };
    struct gr_block *prev, *next;
    union {
        struct {                                /* FREE, HOLE: place in an index, in a treap */
            struct gr_block *child[2], *parent; /* what is before, and after */
        } node;
        struct { /* the same in a list; link: what leads here, another one's next or the head */
            struct gr_block *next, **link;
        } list;
        struct {                 /* LIVE, PENDING */
            size_t requested;    /* bytes asked for */
            struct gr_use *uses; /* by other streams (stream/use.h); NULL for nearly all blocks */
            union {
                struct gr_block *chain;  /* LIVE: next of its bucket (live.h) */
                struct gr_block *parked; /* PENDING: next of the list that it waits in */
            };
        } live;
    } u;
    union {
        uint32_t epoch; /* FREE: of its stream, when its newest part was freed (stream/stream.h) */
        uint32_t label; /* LIVE, PENDING: who asked for it, while history is kept (ledger/stacks.h); else 0 */
    };
    union {
        uint32_t freed; /* FREE: the clock of requests at that moment, while it runs (heap/reclaim.h) */
        uint32_t born;  /* LIVE: how many blocks its pool had handed out before it, in all */
    };
};
_Static_assert(sizeof(struct gr_block) == 64, "a block is one cache line");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the state is the low byte of the tile");

static inline uint64_t gr_block_tile(uint64_t size, enum gr_block_state state) {
    return size << 8 | state;
}

/* Is the step in the picture above? */
bool gr_block_may_become(enum gr_block_state from, enum gr_block_state to);

/* Makes a step, which must be a legal one. The second where it is known from which state. They add to the whole
 * word: a state that is put into it, compilers store as a byte, and the next load of the word waits for that. */
static inline void gr_block_become(struct gr_block *b, enum gr_block_state state) {
    GR_ASSERT(gr_block_may_become((enum gr_block_state)b->state, state), "B4");
    b->tile += (uint64_t)state - b->state;
}
static inline void gr_block_step(struct gr_block *b, enum gr_block_state from, enum gr_block_state to) {
    GR_ASSERT(b->state == from && gr_block_may_become(from, to), "B4");
    b->tile += (uint64_t)to - from;
}

/* Since when it is free: said of a block that is about to become FREE. */
static inline void gr_block_since(struct gr_block *b, uint32_t epoch, uint32_t freed) {
    b->epoch = epoch;
    b->freed = freed;
}

static inline gr_addr gr_block_end(const struct gr_block *b) {
    return b->addr + b->size;
}

/* Cuts b at size bytes: b keeps the low part, the rest is returned with the same state, as its right
 * neighbour. The slab must have a reserve of one. */
static inline struct gr_block *gr_block_split(struct gr_slab *slab, struct gr_block *b, size_t size) {
    struct gr_block *rest = gr_slab_take(slab);
    GR_ASSERT(size > 0 && size < b->size && size % GR_BLOCK_UNIT == 0, "B3");
    rest->addr = b->addr + size;
    rest->tile = b->tile - (size << 8);
    rest->epoch = b->epoch;
    rest->freed = b->freed;
    rest->prev = b;
    rest->next = b->next;
    if (b->next) b->next->prev = rest;
    b->next = rest;
    b->tile = gr_block_tile(size, (enum gr_block_state)b->state);
    return rest;
}

/* b swallows its right neighbour, which goes back to the slab. The neighbour must be in no index. */
static inline void gr_block_absorb(struct gr_slab *slab, struct gr_block *b) {
    struct gr_block *right = b->next;
    GR_ASSERT(right && gr_block_end(b) == right->addr, "B1");
    b->tile += right->size << 8;
    if (right->epoch > b->epoch) b->epoch = right->epoch;
    if ((int32_t)(right->freed - b->freed) > 0) b->freed = right->freed; /* the clock goes round */
    b->next = right->next;
    if (b->next) b->next->prev = b;
    right->tile = 0;
    right->addr = 0;
    gr_slab_give(slab, right);
}

/* Checks the tiles from first to the end of the list; granule is the size of an address slot and
 * moving_allowed tells whether a miss may be under way. NULL, or the tag that is broken. */
const char *gr_block_check(const struct gr_block *first, size_t granule, bool moving_allowed);

#endif
