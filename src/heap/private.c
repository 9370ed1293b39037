/* SPDX-License-Identifier: Apache-2.0
 * Private pools: life and end of heaps. */
#include "heap/private.h"

#include "base/host.h"
#include "heap/reclaim.h"

struct gr_heap *gr_private_find(granary *g, uint64_t name) {
    GR_HEAP_FOR(heap, g)
        if (heap->name == name && heap->users > 0) return heap;
    return NULL;
}

int gr_private_create(granary *g, const struct granary_pool_options *options, uint64_t *name) {
    struct gr_heap *heap = gr_host_take(1, sizeof(*heap), 64);
    if (!heap || !gr_routes_init(&heap->routes)) {
        gr_host_give(heap);
        return GRANARY_HOST_MEMORY;
    }
    heap->device = g;
    heap->users = 1;
    heap->no_split = options && options->no_split;
    heap->on_shortage = options && options->use_on_shortage;
    gr_lock_take(&g->miss);
    *name = heap->name = ++g->last_name;
    gr_list_append(&g->heaps, &heap->link);
    gr_lock_give(&g->miss);
    return GRANARY_OK;
}

int gr_private_retain(granary *g, uint64_t name) {
    gr_lock_take(&g->miss);
    struct gr_heap *heap = name ? gr_private_find(g, name) : NULL;
    if (heap) heap->users++;
    gr_lock_give(&g->miss);
    return heap ? GRANARY_OK : GRANARY_UNKNOWN_POOL;
}

int gr_private_release(granary *g, uint64_t name) {
    gr_lock_take(&g->miss);
    struct gr_heap *heap = name ? gr_private_find(g, name) : NULL;
    int status = !heap                                  ? GRANARY_UNKNOWN_POOL
                 : heap->users == 1 && heap->scopes > 0 ? GRANARY_BUSY
                                                        : GRANARY_OK;
    if (status == GRANARY_OK && --heap->users == 0) {
        heap->unproved = heap->captured;
        gr_private_sweep(g);
    }
    gr_lock_give(&g->miss);
    return status;
}

static void read_pool(struct gr_pool *pool, struct granary_pool_stats *out) {
    gr_pool_lock(pool);
    const int64_t live = gr_tally_now(&pool->tally, GR_ALLOCATIONS);
    out->allocated_bytes += gr_tally_now(&pool->tally, GR_ALLOCATED_BYTES);
    out->active_bytes += gr_tally_now(&pool->tally, GR_ACTIVE_BYTES);
    out->live_blocks += live;
    out->pending_blocks += gr_tally_now(&pool->tally, GR_ACTIVE_BLOCKS) - live;
    for (size_t s = 0; s < pool->segment_count; s++) {
        const struct gr_segment *segment = pool->segments[s];
        out->reserved_bytes += (int64_t)(segment->kind == GR_SEGMENT_CLASSIC
                                             ? segment->size
                                             : segment->range.mapped * segment->range.granule);
    }
    gr_pool_unlock(pool);
}

int gr_private_read(granary *g, uint64_t name, struct granary_pool_stats *out) {
    gr_heap_complete(g, gr_defer_reap(&g->defer));
    gr_lock_take(&g->miss);
    struct gr_heap *heap = gr_private_find(g, name);
    if (heap) {
        out->users = heap->users;
        out->scopes = heap->scopes;
        out->captures = heap->captures;
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++)
                if (gr_heap_pool(route, c)) read_pool(gr_heap_pool(route, c), out);
    }
    gr_lock_give(&g->miss);
    return heap ? GRANARY_OK : GRANARY_UNKNOWN_POOL;
}

/* ---- taking down -------------------------------------------------------------------------- */

/* Hands the route's pools to whoever needs a pair next, if neither has segments. True: it has none left. */
static bool retire_pools(granary *g, struct gr_route *route) {
    bool none = true;
    for (int first = 0; first < GR_POOLS; first += GR_CLASSES) {
        struct gr_pool *small = gr_heap_pool(route, first + GR_SMALL);
        if (!small) continue;
        struct gr_pool_pair *pair = GR_CONTAINER(small, struct gr_pool_pair, pool[GR_SMALL]);
        if (small->segment_count > 0 || pair->pool[GR_LARGE].segment_count > 0) {
            none = false;
            continue;
        }
        for (int c = 0; c < GR_CLASSES; c++)
            atomic_store_explicit(&route->pool[first + c], NULL, memory_order_release);
        pair->next = g->spare;
        g->spare = pair;
    }
    return none;
}

void gr_private_free_routes(granary *g, struct gr_heap *heap) {
    while (heap->routes.first) {
        struct gr_route *route = heap->routes.first;
        retire_pools(g, route);
        heap->routes.first = route->next;
        gr_host_give(route);
    }
}

void gr_private_free(granary *g, struct gr_heap *heap) {
    gr_private_free_routes(g, heap);
    gr_routes_fini(&heap->routes);
    gr_list_remove(&heap->link);
    gr_host_give(heap);
}

static bool is_dead(const struct gr_route *route) {
    return atomic_load_explicit(&route->stream->dead, memory_order_relaxed);
}

void gr_private_sweep(granary *g) {
    GR_ROUTE_FOR(route, &g->own)
        if (is_dead(route)) retire_pools(g, route);
    for (struct gr_heap *heap = gr_heap_next(g, &g->own), *next; heap; heap = next) {
        next = gr_heap_next(g, heap);
        if (atomic_load(&heap->guests) > 0) continue; /* another time */
        bool none = heap->users == 0;
        GR_ROUTE_FOR(route, heap)
            if (heap->users == 0 || is_dead(route)) none &= retire_pools(g, route);
        if (none && heap->users == 0) gr_private_free(g, heap);
    }
}

/* May a reader have found a route of the heap before it was hidden? Guests come under scope_lock. */
static bool has_readers(granary *g, const struct gr_heap *heap) {
    gr_lock_take(&g->scope_lock);
    bool guests = atomic_load(&heap->guests) > 0;
    gr_lock_give(&g->scope_lock);
    return guests || heap == &g->own;
}

/* Takes down what is empty of destroyed streams in a heap; its routes too, where no reader can be at them. */
static void sweep_dead(granary *g, struct gr_heap *heap) {
    const bool keeps = has_readers(g, heap);
    for (struct gr_route *route = heap->routes.first, *next; route; route = next) {
        next = route->next;
        if (!is_dead(route)) continue;
        for (int c = 0; c < GR_POOLS; c++)
            if (gr_heap_pool(route, c)) gr_reclaim_close_empty(g, gr_heap_pool(route, c));
        if (!retire_pools(g, route) || keeps) continue;
        gr_route_unlink(&heap->routes, route);
        gr_host_give(route);
    }
}

/* Has the stream a route in a private heap? */
static bool is_elsewhere(granary *g, const struct gr_stream *stream) {
    for (struct gr_heap *heap = gr_heap_next(g, &g->own); heap; heap = gr_heap_next(g, heap))
        GR_ROUTE_FOR(route, heap)
            if (route->stream == stream) return true;
    return false;
}

static bool has_pools(const struct gr_route *route) {
    for (int c = 0; c < GR_POOLS; c++)
        if (gr_heap_pool(route, c)) return true;
    return false;
}

struct gr_route *gr_private_spent(granary *g) {
    if (!gr_defer_quiet(&g->defer)) return NULL;
    GR_HEAP_FOR(heap, g) sweep_dead(g, heap);
    GR_ROUTE_FOR(route, &g->own)
        if (is_dead(route) && !has_pools(route) && !is_elsewhere(g, route->stream) &&
            !gr_defer_needs(&g->defer, route->stream))
            return route;
    return NULL;
}
