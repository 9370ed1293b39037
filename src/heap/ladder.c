/* SPDX-License-Identifier: Apache-2.0
 * The ladder of a miss: its rungs, and climbing them. */
#include "heap/ladder.h"

#include "heap/growth.h"
#include "heap/reclaim.h"
#include "heap/shortfall.h"

enum step {
    NEXT,  /* nothing here: the next rung */
    AGAIN, /* something was freed: the pool is searched again */
    DONE   /* served, or failed for good: r->status */
};

static enum step done(struct gr_request *r, int status) {
    r->status = status;
    return DONE;
}

static bool is_shortage(int status) {
    return status == GRANARY_OUT_OF_MEMORY || status == GRANARY_OVER_LIMIT || status == GRANARY_ADDRESS_SPACE;
}

/* ---- rungs -------------------------------------------------------------------------------- */

/* A block fits, but growing would keep less memory from moving. Whatever comes of it, the pool then serves
 * from what fits. */
static enum step grow_instead(granary *g, struct gr_request *r) {
    bool served;
    r->fits = r->grown = true;
    int status = gr_defer_quiet(&g->defer) ? gr_growth_run(g, r, &served) : GRANARY_BUSY;
    return status == GRANARY_LOST ? done(r, status) : AGAIN;
}

static enum step search(granary *g, struct gr_request *r) {
    int status = (r->grown ? gr_heap_try_dear : gr_heap_try)(g, r->pool, r->rounded, r->requested, r->out);
    gr_growth_try(r, GRANARY_RUNG_POOL);
    if (status == GR_HEAP_DEAR) return grow_instead(g, r);
    r->fits = false;
    return status == GRANARY_OUT_OF_MEMORY ? NEXT : done(r, status);
}

static bool any_parked(const granary *g) {
    return atomic_load_explicit(&g->defer.parked, memory_order_relaxed) > 0;
}

/* Pending blocks that are safe by now go back to their pools. */
static enum step complete(granary *g, struct gr_request *r) {
    if (!any_parked(g)) return NEXT;
    gr_growth_try(r, GRANARY_RUNG_EVENTS);
    struct gr_block *safe = gr_defer_quiet(&g->defer) ? gr_defer_reap(&g->defer)
                                                      : gr_defer_reached(&g->defer, r->pool->stream);
    gr_heap_complete(g, safe);
    return safe ? AGAIN : NEXT;
}

/* A block freed on another stream of the same capture, proved free for this one too. */
static enum step share(granary *g, struct gr_request *r) {
    if (gr_defer_quiet(&g->defer) || !any_parked(g)) return NEXT;
    const struct gr_pool *pool = r->pool;
    struct gr_block *b =
        gr_defer_shared(&g->defer, pool->stream, &pool->route->heap->kin[pool->class], r->rounded);
    if (!b || gr_heap_retake(g, b, pool->stream, r->rounded, r->requested, r->out) != GRANARY_OK) return NEXT;
    return done(r, GRANARY_OK);
}

/* No state of this device can hold it: nothing is disturbed for it. */
static enum step give_up(granary *g, struct gr_request *r) {
    r->missing = r->rounded;
    return r->rounded > g->driver.facts.total_bytes ? done(r, GRANARY_OUT_OF_MEMORY) : NEXT;
}

static enum step ask(granary *g, struct gr_request *r, bool relieved) {
    if (relieved) {
        gr_growth_try(r, GRANARY_RUNG_CALLBACKS);
        return NEXT;
    }
    return gr_callback_relieves(&g->callbacks) ? done(r, GR_HEAP_ASK) : NEXT;
}

/* What goes back makes room for a growth, and frees no block: no search. */
static enum step collect(granary *g, struct gr_request *r) {
    if (gr_reclaim_collect(g) > 0) gr_growth_try(r, GRANARY_RUNG_GARBAGE);
    return NEXT;
}

static enum step grow(granary *g, struct gr_request *r) {
    bool served;
    int status = gr_growth_run(g, r, &served);
    r->grown = true;
    if (!is_shortage(status)) return status == GRANARY_OK && !served ? AGAIN : done(r, status);
    r->status = status;
    return g->reject_early ? DONE : NEXT;
}

struct wanted { /* the pending block whose completion helps most */
    size_t size;
    gr_cu_event event;
};

/* Better: it serves the request alone, and of those the smallest; else the largest. */
static bool better(const struct wanted *best, size_t size, size_t rounded) {
    if (!best->event) return true;
    if ((size >= rounded) != (best->size >= rounded)) return size >= rounded;
    return size >= rounded ? size < best->size : size > best->size;
}

static void look_for_pending(granary *g, struct gr_pool *pool, size_t rounded, struct wanted *best) {
    gr_pool_lock(pool);
    bool any = gr_tally_now(&pool->tally, GR_ACTIVE_BLOCKS) > gr_tally_now(&pool->tally, GR_ALLOCATIONS);
    for (size_t s = 0; any && s < pool->segment_count; s++)
        for (const struct gr_block *b = pool->segments[s]->first; b; b = b->next) {
            if (b->state != GR_BLOCK_PENDING || !better(best, b->size, rounded)) continue;
            gr_cu_event event = gr_defer_event(&g->defer, b);
            if (event) *best = (struct wanted){.size = b->size, .event = event};
        }
    gr_pool_unlock(pool);
}

/* Could memory of this heap serve the pool of another, or another of its own, once it is free? */
static bool can_serve_others(const granary *g, const struct gr_heap *heap) {
    return gr_reclaim_allowed(heap) && (g->reclaim != GRANARY_RECLAIM_OFF || heap->on_shortage);
}

/* Waits for the pending block that helps most: of this pool, else of any whose memory can serve it. */
static enum step wait_for_one(granary *g, struct gr_request *r) {
    struct wanted best = {0};
    if (!gr_defer_quiet(&g->defer) || !any_parked(g)) return NEXT;
    look_for_pending(g, r->pool, r->rounded, &best);
    if (!best.event)
        GR_HEAP_FOR(heap, g) {
            if (!can_serve_others(g, heap)) continue;
            GR_ROUTE_FOR(route, heap)
                for (int c = 0; c < GR_POOLS; c++)
                    if (gr_heap_pool(route, c))
                        look_for_pending(g, gr_heap_pool(route, c), r->rounded, &best);
        }
    if (!best.event) return NEXT;
    gr_growth_try(r, GRANARY_RUNG_WAIT);
    int status = gr_defer_wait(&g->defer, best.event);
    return status == GRANARY_OK ? AGAIN : done(r, status);
}

/* Free blocks of private pools that lend theirs when memory is short; not of those that graphs write
 * to whenever they are launched. */
static enum step borrow(granary *g, struct gr_request *r) {
    const struct gr_pool *pool = r->pool;
    if (pool->route->heap != &g->own) return NEXT;
    GR_HEAP_FOR(heap, g) {
        if (!heap->on_shortage || heap->users == 0 || heap->captured) continue;
        gr_growth_try(r, GRANARY_RUNG_LENDING);
        struct gr_route *route = gr_route_find(&heap->routes, pool->stream->handle);
        struct gr_pool *lender = route ? gr_heap_pool(route, pool->class) : NULL;
        if (lender && gr_heap_try_dear(g, lender, r->rounded, r->requested, r->out) == GRANARY_OK)
            return done(r, GRANARY_OK);
    }
    return NEXT;
}

/* Everything idle goes back, once: kinds of memory that a growth cannot take from one another (classic
 * segments, extents), and ranges that are empty. Only when it suffices. */
static enum step trim(granary *g, struct gr_request *r) {
    size_t released = 0, room = gr_min(gr_growth_room(g), gr_growth_device_free(g));
    size_t short_of = r->missing - gr_min(r->missing, room);
    bool addresses = r->status == GRANARY_ADDRESS_SPACE;
    if (r->tried & 1u << GRANARY_RUNG_TRIM || !gr_defer_quiet(&g->defer)) return NEXT;
    if (!addresses && (short_of == 0 || gr_reclaim_possible(g, short_of) < short_of)) return NEXT;
    if (g->reclaim == GRANARY_RECLAIM_OFF) return NEXT;
    gr_growth_try(r, GRANARY_RUNG_TRIM);
    size_t ranges = g->ranges;
    int status = gr_reclaim_trim(g, 0, addresses, &released);
    if (status == GRANARY_LOST) return done(r, status);
    return released > 0 || g->ranges < ranges ? AGAIN : NEXT;
}

/* ---- the ladder --------------------------------------------------------------------------- */

static enum step climb(granary *g, struct gr_request *r, bool relieved) {
    enum step step = search(g, r);
    if (step == NEXT) step = complete(g, r);
    if (step == NEXT) step = share(g, r);
    if (step == NEXT) step = give_up(g, r);
    if (step == NEXT) step = ask(g, r, relieved);
    if (step == NEXT) step = collect(g, r);
    if (step == NEXT) step = grow(g, r); /* from the handle cache, the driver, and what can be reclaimed */
    if (step == NEXT) step = wait_for_one(g, r);
    if (step == NEXT) step = borrow(g, r);
    if (step == NEXT) step = trim(g, r);
    return step;
}

int gr_ladder_climb(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, bool relieved,
                    void **out, struct granary_shortfall *shortfall) {
    struct gr_request r = {.pool = pool, .rounded = rounded, .requested = requested, .out = out};
    gr_lock_take(&g->miss);
    if (!relieved) gr_ledger_miss(&g->ledger);
    while (climb(g, &r, relieved) == AGAIN) continue;
    if (is_shortage(r.status)) {
        gr_shortfall_fill(g, &r, shortfall);
        gr_ledger_out_of_memory(&g->ledger, &pool->tally, rounded, shortfall->device_free_bytes);
    }
    gr_lock_give(&g->miss);
    return r.status;
}
