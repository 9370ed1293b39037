/* SPDX-License-Identifier: Apache-2.0
 * The heap of a device: opening, allocation, freeing, figures. */
#include "heap/heap.h"

#include <string.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/text.h"
#include "heap/hit.h"
#include "heap/ladder.h"
#include "heap/private.h"
#include "heap/reclaim.h"
#include "heap/scope.h"
#include "heap/settings.h"

/* ---- opening and closing ------------------------------------------------------------------ */

static void choose_kind(granary *g, const struct granary_options *options) {
    if (options->no_caching)
        gr_text_put(g->expandable_reason, sizeof(g->expandable_reason), "nothing is cached");
    else if (!options->expandable_segments)
        gr_text_put(g->expandable_reason, sizeof(g->expandable_reason), "not asked for");
    else if (!g->driver.facts.vmm)
        gr_text_put(g->expandable_reason, sizeof(g->expandable_reason), "%s", g->driver.facts.vmm_reason);
}

int gr_heap_open(granary *g, const struct granary_options *options, int device, char *reason) {
    bool simulated = options->driver == GRANARY_DRIVER_SIM;
    gr_bias_prepare(); /* the driver makes threads */
    int status = gr_driver_open(&g->driver, simulated, device, options->rdma_capable != 0, reason);
    if (status != GRANARY_OK) return status;
    choose_kind(g, options);
    if (options->expandable_segments && options->strict && !options->no_caching && !g->driver.facts.vmm) {
        gr_text_put(reason, GR_REASON_ROOM, "expandable segments are not available: %s",
                    g->expandable_reason);
        gr_driver_close(&g->driver);
        return GRANARY_UNSUPPORTED;
    }
    g->own.device = g;
    g->own.users = 1;
    bool routes = gr_routes_init(&g->own.routes);
    bool table = gr_table_init(&g->table);
    if (!routes || !table) {
        if (table) gr_table_fini(&g->table);
        gr_routes_fini(&g->own.routes);
        gr_driver_close(&g->driver);
        gr_text_put(reason, GR_REASON_ROOM, "no host memory for the address table");
        return GRANARY_HOST_MEMORY;
    }
    gr_lock_init(&g->dump, GR_RANK_DUMP);
    gr_lock_init(&g->miss, GR_RANK_MISS);
    gr_lock_init(&g->fault_lock, GR_RANK_LEAF);
    gr_lock_init(&g->scope_lock, GR_RANK_LEAF);
    gr_list_init(&g->heaps);
    gr_list_init(&g->scopes);
    gr_defer_init(&g->defer, &g->driver, (enum granary_capture_reuse)options->capture_reuse,
                  (enum granary_capture_marker)options->capture_marker);
    gr_ledger_init(&g->ledger);
    gr_callback_init(&g->callbacks);
    gr_extents_init(&g->extents, &g->driver, options->handle_cache_bytes);
    gr_allowance_init(&g->allowance, gr_clock_ns());
    gr_settings_init(g, options);
    g->trim_above = options->trim_above;
    status = gr_trimmer_start(g);
    if (status != GRANARY_OK) {
        gr_text_put(reason, GR_REASON_ROOM, "no thread for trim_above");
        gr_heap_close(g);
    }
    return status;
}

void gr_heap_close(granary *g) {
    gr_trimmer_stop(g);
    if (g->streams && GR_TWICE(gr_driver_begin(&g->driver)) == GRANARY_OK) {
        gr_driver_ignore(&g->driver, GR_ENTRY_cuCtxSynchronize,
                         GR_TWICE(GR_DRIVE(&g->driver, cuCtxSynchronize)));
        gr_driver_end(&g->driver);
    }
    gr_scope_drop_all(g);
    gr_settings_fini(g);
    GR_HEAP_FOR(heap, g) gr_reclaim_drop(g, heap);
    while (!gr_list_empty(&g->heaps)) gr_private_free(g, GR_CONTAINER(g->heaps.next, struct gr_heap, link));
    gr_private_free_routes(g, &g->own);
    for (struct gr_pool_pair *pair = g->spare, *next; pair; pair = next) {
        next = pair->next;
        gr_ledger_remove(&g->ledger, &pair->account);
        for (int c = 0; c < GR_CLASSES; c++) gr_pool_fini(&pair->pool[c]);
        gr_host_give(pair);
    }
    gr_defer_fini(&g->defer);
    gr_callback_fini(&g->callbacks);
    for (struct gr_stream *stream = g->streams, *next; stream; stream = next) {
        next = stream->next;
        gr_stream_fini(stream, &g->driver);
        gr_host_give(stream);
    }
    gr_extents_flush(&g->extents, 0);
    gr_extents_fini(&g->extents);
    gr_ledger_fini(&g->ledger);
    gr_host_give(g->oom_snapshot);
    gr_routes_fini(&g->own.routes);
    gr_table_fini(&g->table);
    gr_driver_close(&g->driver);
}

struct gr_heap *gr_heap_next(granary *g, struct gr_heap *after) {
    struct gr_list *link = !after ? NULL : after == &g->own ? g->heaps.next : after->link.next;
    if (!link) return &g->own;
    return link == &g->heaps ? NULL : GR_CONTAINER(link, struct gr_heap, link);
}

/* ---- streams, routes, pools --------------------------------------------------------------- */

/* A new route of the heap to the stream; miss is held. */
static struct gr_route *make_route(struct gr_heap *heap, struct gr_stream *stream) {
    struct gr_route *route = gr_host_take(1, sizeof(*route), 64);
    if (!route || !gr_route_reserve(&heap->routes)) {
        gr_host_give(route);
        return NULL;
    }
    route->handle = stream->handle;
    route->stream = stream;
    route->heap = heap;
    gr_route_publish(&heap->routes, route);
    return route;
}

/* A route that a destroyed stream has left serves another; NULL: there is none. miss is held. */
static struct gr_route *renew_route(granary *g, gr_cu_stream handle) {
    struct gr_route *route = gr_route_reserve(&g->own.routes) ? gr_private_spent(g) : NULL;
    if (!route) return NULL;
    gr_route_unlink(&g->own.routes, route);
    gr_stream_renew(route->stream, handle);
    atomic_store_explicit(&route->handle, handle, memory_order_relaxed);
    gr_route_publish(&g->own.routes, route);
    g->buried--;
    return route;
}

/* The own heap's route to the handle, which has the stream object; made when new. miss is held. */
static struct gr_route *own_route(granary *g, gr_cu_stream handle) {
    struct gr_route *route = gr_route_find(&g->own.routes, handle);
    if (!route && g->buried > 0) route = renew_route(g, handle);
    if (route) return route;
    struct gr_stream *stream = gr_host_take(1, sizeof(*stream), 64);
    if (!stream) return NULL;
    gr_stream_init(stream, handle);
    route = make_route(&g->own, stream);
    if (!route) {
        gr_host_give(stream);
        return NULL;
    }
    stream->next = g->streams;
    g->streams = stream;
    return route;
}

int gr_heap_stream(granary *g, gr_cu_stream handle, bool miss_held, struct gr_stream **out) {
    struct gr_route *route = gr_route_find(&g->own.routes, handle);
    if (!route) {
        if (!miss_held) gr_lock_take(&g->miss);
        route = own_route(g, handle);
        if (!miss_held) gr_lock_give(&g->miss);
    }
    if (route) *out = route->stream;
    return route ? GRANARY_OK : GRANARY_HOST_MEMORY;
}

/* A pair of pools that serves nobody: one that was handed back, or a fresh one. miss is held. */
static struct gr_pool_pair *spare_pair(granary *g) {
    struct gr_pool_pair *pair = g->spare;
    if (pair) {
        g->spare = pair->next;
        return pair;
    }
    pair = gr_host_take(1, sizeof(*pair), 8);
    if (!pair) return NULL;
    gr_ledger_add(&g->ledger, &pair->account, &pair->pool[GR_SMALL].tally, &pair->pool[GR_LARGE].tally);
    for (int c = 0; c < GR_CLASSES; c++) gr_pool_init(&pair->pool[c], (enum gr_class)c, &g->sizing);
    return pair;
}

static int make_pools(granary *g, struct gr_heap *heap, gr_cu_stream handle, enum gr_class class,
                      struct gr_pool **out) {
    gr_lock_take(&g->miss);
    struct gr_route *own = own_route(g, handle);
    struct gr_route *route = own && heap != &g->own ? gr_route_find(&heap->routes, handle) : own;
    if (own && !route) route = make_route(heap, own->stream);
    struct gr_pool_pair *pair = route && !gr_heap_pool(route, class) ? spare_pair(g) : NULL;
    for (int c = 0; pair && c < GR_CLASSES; c++) {
        gr_pool_assign(&pair->pool[c], route->stream, route, heap->name, g->expandable,
                       heap->no_split || g->no_caching);
        atomic_store_explicit(&route->pool[c], &pair->pool[c], memory_order_release);
    }
    *out = route ? gr_heap_pool(route, class) : NULL;
    gr_lock_give(&g->miss);
    return *out ? GRANARY_OK : GRANARY_HOST_MEMORY;
}

/* Its handle is not found any more. miss is held. */
static void hide_stream(granary *g, const struct gr_stream *stream) {
    GR_HEAP_FOR(heap, g)
        GR_ROUTE_FOR(route, heap)
            if (route->stream == stream) gr_route_hide(&heap->routes, route);
    g->buried++;
}

int gr_heap_bury(granary *g, gr_cu_stream handle) {
    int status = GRANARY_OK;
    gr_lock_take(&g->miss);
    struct gr_route *route = gr_route_find(&g->own.routes, handle);
    if (route) {
        status = gr_defer_bury(&g->defer, route->stream);
        if (status == GRANARY_OK) status = gr_stream_bury(route->stream, &g->driver);
        if (status == GRANARY_OK)
            hide_stream(g, route->stream);
        else
            gr_defer_unbury(&g->defer, route->stream);
    }
    gr_lock_give(&g->miss);
    return status;
}

/* ---- allocation --------------------------------------------------------------------------- */

void gr_heap_settle(granary *g, struct gr_pool *pool) {
    gr_pool_unlock(pool);
    gr_ledger_settle(&g->ledger, &pool->tally);
}

void gr_hit_tell_rest(struct gr_pool *pool, struct gr_seat *seat, uint64_t words, gr_addr addr, size_t size) {
    gr_history_put(pool->tally.told, seat, &pool->tally.place, words, addr, size);
    gr_pool_unlock(pool);
}

void gr_hit_settle(granary *g, struct gr_pool *pool, gr_addr addr, size_t size) {
    struct gr_history *told = pool->tally.told;
    if (told)
        gr_history_put(told, gr_tickets_enter(&told->tickets), &pool->tally.place,
                       gr_history_words(0, GR_ALLOC, 0), addr, size);
    gr_heap_settle(g, pool);
}

static GR_ASIDE int try_locked(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, bool dear,
                               void **out) {
    struct gr_block *b = gr_pool_again(pool, rounded, requested);
    return gr_hit_take(g, pool, b, rounded, requested, dear, out);
}

int gr_heap_try(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, void **out) {
    gr_pool_lock(pool);
    return try_locked(g, pool, rounded, requested, false, out);
}

int gr_heap_try_dear(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, void **out) {
    gr_pool_lock(pool);
    return try_locked(g, pool, rounded, requested, true, out);
}

static GR_INLINE int find_pool(granary *g, struct gr_heap *heap, gr_cu_stream stream, size_t rounded,
                               struct gr_pool **out) {
    enum gr_class class = gr_sizing_class(rounded);
    struct gr_route *route = gr_route_find(&heap->routes, stream);
    struct gr_pool *pool = GR_LIKELY(route != NULL) ? gr_heap_pool(route, class) : NULL;
    *out = pool;
    return GR_LIKELY(pool != NULL) ? GRANARY_OK : make_pools(g, heap, stream, class, out);
}

/* Is the request one for the ladder? */
static bool misses(int status) {
    return status == GRANARY_OUT_OF_MEMORY || status == GR_HEAP_DEAR;
}

int gr_heap_alloc(granary *g, size_t size, gr_cu_stream stream, void **out,
                  struct granary_shortfall *shortfall) {
    size_t rounded;
    struct gr_pool *pool;
    if (GR_UNLIKELY(!gr_sizing_round(&g->sizing, size, &rounded))) return GRANARY_INVALID;
    int status = find_pool(g, &g->own, gr_stream_normal(stream), rounded, &pool);
    if (GR_UNLIKELY(status != GRANARY_OK)) return status;
    status = gr_heap_try(g, pool, rounded, size, out);
    if (GR_UNLIKELY(status != GRANARY_OK) && misses(status))
        status = gr_ladder_climb(g, pool, rounded, size, false, out, shortfall);
    return status;
}

int gr_heap_alloc_routed(granary *g, size_t size, gr_cu_stream stream, bool relieved, void **out,
                         struct granary_shortfall *shortfall) {
    size_t rounded;
    struct gr_pool *pool;
    if (!gr_sizing_round(&g->sizing, size, &rounded)) return GRANARY_INVALID;
    if (g->no_caching) gr_reclaim_uncached(g);
    struct gr_heap *heap = gr_scope_heap(g, stream);
    if (heap == &g->own && gr_sizing_class(rounded) == GR_LARGE && !relieved)
        atomic_fetch_add_explicit(&g->clock, 1, memory_order_relaxed);
    int status = find_pool(g, heap, gr_stream_normal(stream), rounded, &pool);
    if (status == GRANARY_OK && !relieved) status = gr_heap_try(g, pool, rounded, size, out);
    if (misses(status) || (status == GRANARY_OK && relieved))
        status = gr_ladder_climb(g, pool, rounded, size, relieved, out, shortfall);
    gr_scope_leave(heap);
    return status;
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* Takes the lock of the pool that has a live block at addr, and returns the link to it; or returns NULL and
 * holds nothing. */
static GR_INLINE struct gr_block **lock_live(granary *g, gr_addr addr, struct gr_pool **out) {
    struct gr_pool *pool = gr_table_get(&g->table, addr);
    if (GR_UNLIKELY(!pool)) return NULL;
    *out = pool;
    gr_pool_lock(pool);
    struct gr_block **link = gr_live_link(&pool->live, addr);
    if (GR_LIKELY(*link != NULL)) return link;
    gr_pool_unlock(pool);
    return NULL;
}

/* Nobody uses the block, which is PENDING, any more. The pool is locked. */
static void complete(granary *g, struct gr_pool *pool, struct gr_block *b) {
    gr_ledger_free_completed(&pool->tally, b->addr, b->size, b->u.live.requested, b->label);
    gr_block_since(b, gr_stream_epoch(pool->stream), atomic_load_explicit(&g->clock, memory_order_relaxed));
}

static void finish_free(granary *g, struct gr_pool *pool, struct gr_block *b) {
    complete(g, pool, b);
    gr_pool_put(pool, b);
}

void gr_heap_serve(granary *g, struct gr_pool *pool, struct gr_block *b, size_t rounded, size_t requested,
                   void **out) {
    gr_pool_lock(pool);
    gr_pool_retake(pool, b, rounded, requested);
    bool over = gr_hit_hand_out(pool, b, requested, out);
    gr_hit_leave(g, pool, over);
}

int gr_heap_retake(granary *g, struct gr_block *b, struct gr_stream *stream, size_t rounded, size_t requested,
                   void **out) {
    struct gr_pool *pool = gr_table_get(&g->table, b->addr);
    bool over = false;
    gr_pool_lock(pool);
    int status = gr_defer_use(&g->defer, b, pool->stream, stream);
    if (status == GRANARY_OK) {
        struct gr_use *uses = b->u.live.uses;
        complete(g, pool, b);
        gr_pool_retake(pool, b, rounded, requested);
        b->u.live.uses = uses;
        over = gr_hit_hand_out(pool, b, requested, out);
    } else {
        finish_free(g, pool, b);
    }
    gr_defer_return(&g->defer);
    gr_hit_leave(g, pool, over);
    return status;
}

/* Other streams use the block. Ends with the pool's lock given back. */
static void GR_ASIDE park(granary *g, struct gr_pool *pool, struct gr_block *b) {
    gr_ledger_free_requested(&pool->tally, b->addr, b->size, b->u.live.requested, b->label);
    gr_block_become(b, GR_BLOCK_PENDING);
    bool done = gr_defer_park(&g->defer, b, pool->stream, &pool->route->heap->kin[pool->class]);
    if (done) finish_free(g, pool, b);
    gr_pool_unlock(pool);
    if (!done) gr_heap_complete(g, gr_defer_reap(&g->defer)); /* someone else's may be done */
}

static GR_INLINE void free_block(granary *g, struct gr_pool *pool, struct gr_block **link, uint32_t clock) {
    struct gr_block *b = *link;
    __builtin_prefetch(b->prev); /* settling it will look at both */
    __builtin_prefetch(b->next);
    gr_live_remove(&pool->live, link);
    if (GR_UNLIKELY(b->u.live.uses != NULL)) {
        park(g, pool, b);
        return;
    }
    gr_ledger_free(&pool->tally, b->addr, b->size, b->u.live.requested, b->label);
    gr_block_since(b, gr_stream_epoch(pool->stream), clock);
    gr_pool_free(pool, b);
    gr_pool_unlock(pool);
}

static GR_INLINE int free_locked(granary *g, struct gr_pool *pool, struct gr_block **link) {
    bool routed = gr_heap_routes(g), live = *link != NULL;
    if (GR_UNLIKELY(!live) || (routed && gr_scope_forbids(g, pool->route->heap))) {
        gr_pool_unlock(pool);
        return live ? GRANARY_WRONG_CAPTURE : GRANARY_UNKNOWN_POINTER;
    }
    free_block(g, pool, link, routed ? atomic_load_explicit(&g->clock, memory_order_relaxed) : 0);
    if (routed && g->no_caching) gr_reclaim_uncached(g);
    return GRANARY_OK;
}

int gr_heap_free_locked(granary *g, struct gr_pool *pool, struct gr_block **link) {
    return free_locked(g, pool, link);
}

int gr_heap_free(granary *g, gr_addr addr) {
    struct gr_pool *pool;
    struct gr_block **link = lock_live(g, addr, &pool);
    return GR_LIKELY(link != NULL) ? free_locked(g, pool, link) : GRANARY_UNKNOWN_POINTER;
}

void gr_heap_complete(granary *g, struct gr_block *list) {
    while (list) {
        struct gr_block *b = list;
        struct gr_pool *pool = gr_table_get(&g->table, b->addr);
        list = b->u.live.parked;
        gr_pool_lock(pool);
        finish_free(g, pool, b);
        gr_defer_return(&g->defer);
        gr_pool_unlock(pool);
    }
}

int gr_heap_use(granary *g, gr_addr addr, gr_cu_stream handle) {
    struct gr_stream *stream;
    struct gr_pool *pool;
    int status = gr_heap_stream(g, gr_stream_normal(handle), false, &stream);
    if (status != GRANARY_OK) return status;
    struct gr_block **link = lock_live(g, addr, &pool);
    if (!link) return GRANARY_UNKNOWN_POINTER;
    if (stream != pool->stream) status = gr_defer_use(&g->defer, *link, pool->stream, stream);
    gr_pool_unlock(pool);
    return status;
}

int gr_heap_size_of(granary *g, gr_addr addr, size_t *out) {
    struct gr_pool *pool;
    struct gr_block **link = lock_live(g, addr, &pool);
    if (!link) return GRANARY_UNKNOWN_POINTER;
    *out = (*link)->size;
    gr_pool_unlock(pool);
    return GRANARY_OK;
}

/* ---- figures ------------------------------------------------------------------------------ */

void gr_heap_read_rest(const granary *g, struct granary_stats *out) {
    out->handle_cache_bytes = (int64_t)(g->extents.cached * g->extents.granule);
    out->reserved_address_bytes = (int64_t)g->address_bytes;
    out->ranges = (int64_t)g->ranges;
    out->extents = (int64_t)g->extents.count;
    out->pending_blocks = out->active_blocks.all.current - out->allocations.all.current;
}

void gr_heap_read(granary *g, struct granary_stats *out) {
    gr_heap_complete(g, gr_defer_reap(&g->defer)); /* what is done by now is not counted as pending */
    gr_lock_take(&g->miss);
    gr_ledger_read(&g->ledger, out);
    gr_heap_read_rest(g, out);
    gr_lock_give(&g->miss);
}

struct tally { /* what a walk over all pools counts */
    size_t mapped, classic, pending;
};

static const char *check_pool(struct gr_pool *pool, struct tally *tally) {
    const char *broken = gr_pool_check(pool, false);
    for (size_t s = 0; s < pool->segment_count; s++) {
        const struct gr_segment *segment = pool->segments[s];
        if (segment->kind == GR_SEGMENT_CLASSIC)
            tally->classic += segment->size;
        else
            tally->mapped += segment->range.mapped;
        for (const struct gr_block *b = segment->first; b; b = b->next)
            tally->pending += b->state == GR_BLOCK_PENDING;
    }
    return broken;
}

const char *gr_heap_check(granary *g) {
    const char *broken = NULL;
    struct tally tally = {0};
    gr_lock_take(&g->miss);
    for (struct gr_stream *stream = g->streams; stream && !broken; stream = stream->next)
        broken = gr_stream_check(stream);
    gr_ledger_stop(&g->ledger);
    GR_HEAP_FOR(heap, g)
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++)
                if (gr_heap_pool(route, c) && !broken) broken = check_pool(gr_heap_pool(route, c), &tally);
    if (!broken && tally.pending != gr_defer_pending(&g->defer)) broken = "H3";
    gr_ledger_go(&g->ledger);
    if (!broken && tally.classic != g->classic_bytes) broken = "H1";
    if (!broken && gr_ledger_reserved(&g->ledger) != tally.mapped * g->extents.granule + tally.classic)
        broken = "H1";
    if (!broken && g->extents.held != tally.mapped + g->extents.cached) broken = "H2";
    if (!broken) broken = gr_extents_check(&g->extents);
    if (!broken) broken = gr_ledger_check(&g->ledger);
    if (!broken) broken = gr_defer_check(&g->defer);
    gr_lock_give(&g->miss);
    return broken;
}
