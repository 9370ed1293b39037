/* SPDX-License-Identifier: Apache-2.0
 * The path of a hit, straight down and without a call. It is here, inline, because its instructions are
 * counted (make guard). Whatever is not the common case leaves it, and begins anew in heap.c.
 *
 *      alloc   route ─> pool: lock ─ the recent block once more ─ count ─ unlock
 *                        │       │                                    └ history > gr_hit_tell
 *                        │       └ not that block ·························> gr_hit_take
 *                        └ scopes, stacks, no route, another holds the lock > gr_heap_alloc
 *      free    address table ─> pool: lock ─ live block ─ count ─ it is the recent block ─ unlock
 *                        │        │                                                   └ history > gr_hit_tell
 *                        │        └ used by others, there is one ··········> gr_heap_free_locked
 *                        └ as above ··········································> gr_heap_free
 *
 * While history is kept and a call has something to note of itself (a stack, a tag), that is done before any lock is
 * taken, and not here. So what is told here is told without a note.
 *
 * Locks: the lock of the pool; it is still held when *pool is not NULL at the end. */
#ifndef GR_HEAP_HIT_H
#define GR_HEAP_HIT_H

#include "heap/heap.h"

/* Is there nothing to do before the pool's lock is taken? */
static GR_INLINE bool gr_hit_begin(const granary *g, bool free) {
    unsigned routing = atomic_load_explicit(&g->routing, memory_order_acquire);
    if (GR_LIKELY(routing == 0)) return true;
    const unsigned allowed = GR_WATCHED | (free ? GR_NOTED_ALLOC : GR_NOTED_FREE);
    return !(routing & ~allowed) && !gr_stacks_said();
}

/* Tells of an event of the pool, and gives its lock back. words: gr_history_words; seat: as with gr_history_put. */
void GR_ASIDE gr_hit_tell_rest(struct gr_pool *pool, struct gr_seat *seat, uint64_t words, gr_addr addr,
                               size_t size);
static GR_INLINE void gr_hit_tell(struct gr_pool *pool, uint64_t words, gr_addr addr, size_t size) {
    struct gr_seat *seat;
    if (GR_LIKELY(gr_history_put_next(pool->tally.told, &pool->tally.place, words, addr, size, &seat)))
        gr_bias_give(&pool->tally.account->lock);
    else
        gr_hit_tell_rest(pool, seat, words, addr, size);
}
/* An allocation rose above a ceiling: the same if there is a history, and settles the ledger. */
void GR_COLD gr_hit_settle(granary *g, struct gr_pool *pool, gr_addr addr, size_t size);

/* Served. Or not, and nothing has happened but that *pool, if it is not NULL, is the one to serve the request
 * and locked. */
static GR_INLINE bool gr_hit_alloc(granary *g, size_t size, gr_cu_stream stream, void **out,
                                   struct gr_pool **pool) {
    size_t rounded;
    *pool = NULL;
    if (GR_UNLIKELY(!gr_hit_begin(g, false))) return false;
    if (GR_UNLIKELY(!gr_sizing_round_plain(&g->sizing, size, &rounded))) return false;
    if (GR_UNLIKELY(stream == GR_CU_STREAM_PER_THREAD)) return false; /* which thread is a call */
    struct gr_route *route = gr_route_look(&g->own.routes, gr_stream_normal(stream), true);
    if (GR_UNLIKELY(!route)) return false;
    struct gr_pool *own = gr_heap_pool(route, gr_sizing_class(rounded));
    if (GR_UNLIKELY(!own)) return false;
    struct gr_account *account = own->tally.account;
    if (GR_UNLIKELY(!gr_bias_try(&account->lock))) return false;
    struct gr_block *b = gr_pool_again(own, rounded, size);
    if (!b) {
        *pool = own;
        return false;
    }
    b->label = 0;
    *out = (void *)(uintptr_t)b->addr;
    if (GR_UNLIKELY(gr_ledger_alloc_untold(account, &own->tally, rounded, size)))
        gr_hit_settle(g, own, b->addr, size);
    else if (GR_UNLIKELY(own->tally.told != NULL))
        gr_hit_tell(own, gr_history_words(0, GR_ALLOC, 0), b->addr, size);
    else
        gr_bias_give(&account->lock);
    return true;
}

/* The block is the caller's. The pool is locked. True: the ledger is to be settled. */
GR_MUST static GR_INLINE bool gr_hit_hand_out(struct gr_pool *pool, struct gr_block *b, size_t requested,
                                              void **out) {
    *out = (void *)(uintptr_t)b->addr;
    return gr_ledger_alloc(&pool->tally, b->addr, b->size, requested, &b->label);
}

/* Gives the pool's lock back. over: the ledger is to be settled. */
static GR_INLINE void gr_hit_leave(granary *g, struct gr_pool *pool, bool over) {
    if (GR_UNLIKELY(over))
        gr_heap_settle(g, pool);
    else
        gr_pool_unlock(pool);
}

/* Serves a request from a locked pool, and gives the lock back: with b, the recent block once more, or if that is
 * NULL with the best fit. OK, OUT_OF_MEMORY, HOST_MEMORY; GR_HEAP_DEAR unless dear. */
GR_MUST static GR_INLINE int gr_hit_take(granary *g, struct gr_pool *pool, struct gr_block *b, size_t rounded,
                                         size_t requested, bool dear, void **out) {
    int status = GRANARY_OK;
    bool over = false;
    if (!b) {
        if (GR_UNLIKELY(pool->sparing) && !dear && gr_pool_is_dear(pool, rounded))
            status = GR_HEAP_DEAR;
        else
            status = gr_pool_take(pool, rounded, requested, dear, &b);
    }
    if (GR_LIKELY(status == GRANARY_OK)) over = gr_hit_hand_out(pool, b, requested, out);
    gr_hit_leave(g, pool, over);
    return status;
}

/* Freed. Or not, and nothing has happened but that *pool, if it is not NULL, is the one that owns the address
 * and locked; *link leads to its live block there, or to NULL. */
static GR_INLINE bool gr_hit_free(granary *g, gr_addr addr, struct gr_pool **pool, struct gr_block ***link) {
    *pool = NULL;
    *link = NULL;
    if (GR_UNLIKELY(!gr_hit_begin(g, true))) return false;
    struct gr_pool *own = gr_table_get(&g->table, addr);
    if (GR_UNLIKELY(!own)) return false;
    struct gr_account *account = own->tally.account;
    if (GR_UNLIKELY(!gr_bias_try(&account->lock))) return false;
    struct gr_block **at = gr_live_link(&own->live, addr), *b = *at;
    if (GR_UNLIKELY(!b || b->u.live.uses || own->recent)) {
        *pool = own;
        *link = at;
        return false;
    }
    __builtin_prefetch(b->prev); /* joining it will look at both */
    __builtin_prefetch(b->next);
    gr_live_remove(&own->live, at);
    gr_ledger_free_untold(account, &own->tally, b->size, b->u.live.requested);
    uint32_t label = b->label; /* where the epoch will be */
    gr_block_since(b, gr_stream_epoch(own->stream), 0);
    gr_pool_free_first(own, b);
    if (GR_UNLIKELY(own->tally.told != NULL))
        gr_hit_tell(own, gr_history_words(GR_SLOT_TWICE, GR_FREE_REQUESTED, label), addr,
                    b->u.live.requested);
    else
        gr_bias_give(&account->lock);
    return true;
}

#endif
