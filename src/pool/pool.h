/* SPDX-License-Identifier: Apache-2.0
 * A pool: the blocks of one stream and one size class. Takes blocks out and puts them back.
 *
 *      take   index -> best fit -> cut -> LIVE, found by its address (live.h)
 *      free   block -> FREE, remembered as the recent one
 *      put    block -> FREE, joined with free neighbours -> index
 *
 * Of blocks that fit equally well the index chooses (index.h): in a pool of ranges, below 1 MiB, nearly the one
 * at the lowest address; else that very one, as PyTorch does.
 *
 * The block freed last is not joined and indexed at once, because very often the next request asks
 * for the same size again. It then gets this block if best fit over joined blocks would have given it the
 * same address, or if best fit handed out this very block and the index has not changed since: as if it
 * had not been freed, and without looking. Whatever else comes settles the recent block first.
 *
 * A sparing pool, one of a device that is nearly full or of a handle that moves memory eagerly, looks at a few
 * blocks from the best fit on, and takes the one that keeps the least memory from moving (pin.h). Where a
 * growth would keep less from moving still, or as much in better company, the block that fits is too dear (grow.h).
 *
 * The one door to the free index and the hole index: every block enters by gr_pool_put or
 * gr_pool_put_hole, which alone join neighbours, and leaves by take, or by the two modules that move
 * memory: grow.h (memory comes) and idle.h (memory goes).
 *
 * Invariants (gr_pool_check):
 *      P1  the free index holds the FREE blocks of the segments but the recent one, the hole index the HOLEs
 *      P2  segments are sorted by address and do not overlap
 *      P3  the tally's allocated and active bytes and counts are those of the LIVE and PENDING blocks
 *      P4  the set of live blocks holds every LIVE block and no other
 *      P5  at most one FREE block is in no index: the recent one
 *
 * Locks: one lock for the two pools of a stream, small and large, in the account that their tallies share
 * (ledger.h). It guards everything below "under lock". Adding and removing segments also needs the miss
 * lock. A hit takes this lock and no other. */
#ifndef GR_POOL_POOL_H
#define GR_POOL_POOL_H

#include "block/index.h"
#include "block/live.h"
#include "ledger/ledger.h"
#include "memory/segment.h"
#include "policy/sizing.h"
#include "stream/stream.h"

struct gr_route;

struct gr_pool {
    /* constant */
    enum gr_class class;
    const struct gr_sizing *sizing;
    /* constant while the pool is assigned; written under both locks */
    bool expandable;          /* grows on ranges; else by classic segments */
    bool no_split;            /* every block is a classic segment */
    struct gr_stream *stream; /* whose blocks these are */
    struct gr_route *route;   /* token of the heap layer */
    /* under lock */
    struct gr_tally tally;
    struct gr_slab blocks;
    struct gr_segment **segments; /* sorted by base */
    size_t segment_count, segment_room;
    /* how it spares memory (policy/backing.h) */
    unsigned sparing; /* 0: not; or the granules up to which a block that fits can be dear: 1, none */
    uint32_t apart;   /* what was handed out before so many blocks is no company for what fits */
    size_t tight;     /* bytes active in it from which on memory is tight */
    /* what is where */
    struct gr_block *recent; /* freed last: FREE, in no index, or NULL */
    struct gr_block *taken;  /* handed out last by best fit; NULL when the free index has changed since */
    struct gr_live live;
    struct gr_index free;
    struct gr_index holes;
};

/* The pools of a stream of a heap. They come, are handed on and go together. */
struct gr_pool_pair {
    struct gr_account account;
    struct gr_pool pool[GR_CLASSES];
    struct gr_pool_pair *next; /* of those that serve nobody, waiting to be assigned */
};

/* pool is zeroed memory but for its tally, which is in the ledger. */
void gr_pool_init(struct gr_pool *pool, enum gr_class class, const struct gr_sizing *sizing);
/* The pool has no segments any more. */
void gr_pool_fini(struct gr_pool *pool);

static inline void gr_pool_lock(struct gr_pool *pool) {
    gr_bias_take(&pool->tally.account->lock);
}
static inline void gr_pool_unlock(struct gr_pool *pool) {
    gr_bias_give(&pool->tally.account->lock);
}

/* Gives a pool without segments to a stream of a heap, by its name. Pools are handed on, never freed before the
 * end: a block pointer that has gone stale finds a pool, and fails cleanly. */
void gr_pool_assign(struct gr_pool *pool, struct gr_stream *stream, struct gr_route *route, uint64_t heap,
                    bool expandable, bool no_split);

/* ---- under the pool's lock ---------------------------------------------------------------- */

/* The clock of born: how many blocks the pool has handed out. It goes round. */
static inline uint32_t gr_pool_now(const struct gr_pool *pool) {
    return (uint32_t)pool->tally.up[GR_BLOCKS];
}

/* A FREE block that is in no index is handed out. */
static inline void gr_pool_hand_out(struct gr_pool *pool, struct gr_block *b, size_t requested) {
    gr_block_become(b, GR_BLOCK_LIVE);
    b->born = gr_pool_now(pool);
    b->u.live.requested = requested;
    b->u.live.uses = NULL;
    gr_live_add(&pool->live, b);
}

/* The recent block once more, if best fit handed it out and nothing has changed since; else NULL. The live
 * blocks were as many before, so their set is not asked to grow. */
static inline struct gr_block *gr_pool_again(struct gr_pool *pool, size_t rounded, size_t requested) {
    struct gr_block *b = pool->recent;
    if (!b || b != pool->taken || b->size != rounded) return NULL;
    pool->recent = NULL;
    gr_block_step(b, GR_BLOCK_FREE, GR_BLOCK_LIVE);
    b->born = gr_pool_now(pool);
    b->u.live.requested = requested;
    b->u.live.uses = NULL;
    gr_live_add_again(&pool->live, b);
    return b;
}

/* How it spares memory from now on. What it handed out last was chosen in another way. */
static inline void gr_pool_spare(struct gr_pool *pool, unsigned sparing, size_t tight, uint32_t apart) {
    pool->sparing = sparing;
    pool->tight = tight;
    pool->apart = apart;
    pool->taken = NULL;
}

/* Of a sparing pool: does a block fit which growing should be tried before? */
GR_MUST bool gr_pool_is_dear(struct gr_pool *pool, size_t rounded);

/* What serves a rounded size, as it stands. */
struct gr_fit {
    struct gr_block *block; /* or NULL */
    /* Of a sparing pool; else 0. */
    size_t cost;      /* granules that it would pin */
    uint32_t company; /* gr_pin_company where it would lie */
};

/* grown: the pool has grown for this request, or was to: of blocks that pin as much, the place that it grew for is
 * the one in the youngest company. The recent block was settled. */
struct gr_fit gr_pool_choose(const struct gr_pool *pool, size_t rounded, bool grown);

/* A PENDING or MOVING block is handed out without passing the index; what is too much becomes FREE if
 * there is a tile for it. Cannot fail. */
void gr_pool_retake(struct gr_pool *pool, struct gr_block *b, size_t rounded, size_t requested);

/* Is what a block of so many bytes has too much for the request a block of its own? */
static inline bool gr_pool_splits(const struct gr_pool *pool, size_t size, size_t rounded) {
    size_t rest = size - rounded;
    return rest > 0 && !pool->no_split &&
           (pool->expandable || gr_sizing_splits(pool->sizing, pool->class, rounded, rest));
}

/* Joins a FREE block that is in no index with its free neighbours. What comes of it is in no index. */
static inline struct gr_block *gr_pool_join(struct gr_pool *pool, struct gr_block *b) {
    if (b->next && b->next->state == GR_BLOCK_FREE) {
        gr_index_remove(&pool->free, b->next);
        gr_block_absorb(&pool->blocks, b);
    }
    if (b->prev && b->prev->state == GR_BLOCK_FREE) {
        b = b->prev;
        gr_index_remove(&pool->free, b);
        gr_block_absorb(&pool->blocks, b);
    }
    return b;
}

/* The recent block, if any, is joined with its neighbours and indexed like all others. */
void gr_pool_settle(struct gr_pool *pool);
/* A LIVE block becomes FREE and the recent one, where there is none. Cannot fail. */
static inline void gr_pool_free_first(struct gr_pool *pool, struct gr_block *b) {
    gr_block_step(b, GR_BLOCK_LIVE, GR_BLOCK_FREE);
    pool->recent = b;
}
static inline void gr_pool_free(struct gr_pool *pool, struct gr_block *b) {
    if (pool->recent) gr_pool_settle(pool);
    gr_pool_free_first(pool, b);
}
/* A PENDING or MOVING block becomes FREE, joined and indexed. Cannot fail. */
void gr_pool_put(struct gr_pool *pool, struct gr_block *b);
/* A MOVING block with nothing behind it becomes a HOLE. Cannot fail. */
void gr_pool_put_hole(struct gr_pool *pool, struct gr_block *b);

/* Would best fit over joined blocks give this request the address of the recent block, cut to the
 * same size? Then it is handed out as it is: joined and cut off again, what is free behind it would
 * seem to be freed just now. */
bool gr_pool_recent_serves(const struct gr_pool *pool, size_t rounded);

/* The block that a sparing pool takes. */
struct gr_taken {
    struct gr_block *block; /* or NULL */
    bool outside;           /* it is in no index */
};
struct gr_taken gr_pool_take_sparing(struct gr_pool *pool, size_t rounded, bool grown);

/* Takes the best fit for a rounded size and makes it LIVE: OK; or OUT_OF_MEMORY when no block fits,
 * HOST_MEMORY when cutting needs a tile and there is none. Changes nothing on failure. What comes of the recent
 * block enters the index only if it is not the best fit itself. grown: as with gr_pool_choose. */
GR_MUST static GR_INLINE int gr_pool_take(struct gr_pool *pool, size_t rounded, size_t requested, bool grown,
                                          struct gr_block **out) {
    struct gr_block *b = pool->recent;
    bool outside = false;  /* b is in no index */
    size_t size = rounded; /* of b */
    int status = GRANARY_OK;
    if (GR_UNLIKELY(pool->sparing)) {
        const struct gr_taken taken = gr_pool_take_sparing(pool, rounded, grown);
        b = taken.block;
        outside = taken.outside;
        if (b) size = b->size;
    } else if (b && b->size == rounded && b->next && b->next->state == GR_BLOCK_FREE &&
               gr_pool_recent_serves(pool, rounded)) {
        pool->recent = NULL;
        outside = true;
    } else {
        /* First, so that memory is asked for what comes next before joining waits for neighbours. What is random
         * depends on the bound, not on the block that was found: it is known early, and missed branches cost less. */
        gr_index_key bound = 0;
        struct gr_block *found = gr_index_seek(&pool->free, rounded, &bound);
        if (b) {
            const bool stale = found && (found == b->next || found == b->prev); /* it will be part of b */
            pool->recent = NULL;
            b = gr_pool_join(pool, b);
            if (GR_UNLIKELY(stale)) found = gr_index_seek(&pool->free, rounded, &bound);
            outside = (b->size >= rounded) & (!found | (gr_index_key_of(b->size, b->addr) < bound));
        }
        if (GR_UNLIKELY(outside)) {
            size = b->size;
        } else {
            if (b) gr_index_insert(&pool->free, b);
            b = found;
            size = gr_index_key_size(bound);
        }
    }
    if (!b || (!pool->expandable && !gr_sizing_fits(pool->sizing, size, rounded))) {
        status = GRANARY_OUT_OF_MEMORY;
        goto undo;
    }
    bool cut = gr_pool_splits(pool, size, rounded);
    if (cut && GR_UNLIKELY(!gr_slab_reserve(&pool->blocks, 1))) {
        status = GRANARY_HOST_MEMORY;
        goto undo;
    }
    GR_ASSERT(b->size == size, "X1");
    if (!outside) gr_index_remove(&pool->free, b);
    if (cut) gr_index_insert(&pool->free, gr_block_split(&pool->blocks, b, rounded));
    gr_pool_hand_out(pool, b, requested);
    pool->taken = b;
    *out = b;
    return GRANARY_OK;
undo:
    pool->taken = NULL;
    if (outside) gr_index_insert(&pool->free, b);
    return status;
}

/* The segment that holds addr, which is one of the pool's. */
struct gr_segment *gr_pool_segment_of(const struct gr_pool *pool, gr_addr addr);

/* Takes a segment in (room was reserved) or out. */
GR_MUST bool gr_pool_reserve_segment(struct gr_pool *pool);
void gr_pool_add_segment(struct gr_pool *pool, struct gr_segment *segment);
void gr_pool_remove_segment(struct gr_pool *pool, struct gr_segment *segment);

/* Bytes of memory that no block uses. Under the miss lock too, and nothing is MOVING. */
size_t gr_pool_unused(const struct gr_pool *pool);

const char *gr_pool_check(struct gr_pool *pool, bool moving_allowed);

#endif
