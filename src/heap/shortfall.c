/* SPDX-License-Identifier: Apache-2.0
 * Shortfall: reading the facts of a failure in one moment. */
#include "heap/shortfall.h"

#include "pool/idle.h"

/* Where free memory of this pool counts. */
static size_t *place_of(const struct gr_pool *asked, const struct gr_pool *pool,
                        struct granary_shortfall *out) {
    const struct gr_route *route = pool->route, *own = asked->route;
    if (pool == asked) return &out->free_same_pool_bytes;
    if (route->heap != own->heap)
        return route->heap->captured && route->heap->users > 0 ? &out->free_graph_bytes
                                                               : &out->free_private_bytes;
    return route->stream == own->stream ? &out->free_other_class_bytes : &out->free_other_stream_bytes;
}

static void add_pool(const struct gr_pool *asked, struct gr_pool *pool, struct granary_shortfall *out) {
    size_t *place = place_of(asked, pool, out);
    size_t *largest = pool == asked ? &out->largest_free_bytes : &out->largest_free_other_bytes;
    gr_pool_settle(pool);
    const struct gr_block *most = gr_index_largest(&pool->free);
    if (most) *largest = gr_max(*largest, most->size);
    *place += gr_pool_unused(pool);
    if (place != &out->free_graph_bytes) out->idle_bytes += gr_idle_total(pool, SIZE_MAX);
}

/* Live and free bytes of one stream, over all heaps. */
static void add_stream(granary *g, const struct gr_stream *stream, struct granary_shortfall_stream *out) {
    GR_HEAP_FOR(heap, g)
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++) {
                const struct gr_pool *pool = route->stream == stream ? gr_heap_pool(route, c) : NULL;
                if (!pool) continue;
                out->live_bytes += (size_t)gr_tally_now(&pool->tally, GR_ALLOCATED_BYTES);
                out->free_bytes += gr_pool_unused(pool);
            }
}

static size_t weight(const struct granary_shortfall_stream *s) {
    return s->live_bytes + s->free_bytes + s->pending_bytes;
}

/* Keeps the largest, in falling order. */
static void rank_stream(const struct granary_shortfall_stream *stream, struct granary_shortfall *out) {
    struct granary_shortfall_stream *rows = out->streams, row = *stream;
    if (weight(&row) == 0) return;
    out->stream_count++;
    for (size_t i = 0; i < GR_COUNT(out->streams); i++) {
        if (weight(&row) <= weight(&rows[i])) continue;
        struct granary_shortfall_stream pushed = rows[i];
        rows[i] = row;
        row = pushed;
    }
}

static void read_pools(granary *g, const struct gr_pool *asked, struct granary_shortfall *out) {
    GR_HEAP_FOR(heap, g)
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++)
                if (gr_heap_pool(route, c)) add_pool(asked, gr_heap_pool(route, c), out);
    for (const struct gr_stream *stream = g->streams; stream; stream = stream->next) {
        struct granary_shortfall_stream row = {.stream = stream->handle,
                                               .pending_bytes = gr_defer_pending_on(&g->defer, stream)};
        add_stream(g, stream, &row);
        rank_stream(&row, out);
    }
}

void gr_shortfall_fill(granary *g, const struct gr_request *r, struct granary_shortfall *out) {
    const size_t granule = g->extents.granule, total = g->driver.facts.total_bytes;
    struct granary_stats stats = {.struct_size = sizeof(stats)};
    *out = (struct granary_shortfall){
        .struct_size = sizeof(*out),
        .status = r->status,
        .device = g->driver.facts.device,
        .stream = r->pool->stream->handle,
        .pool = r->pool->route->heap->name,
        .requested_bytes = r->requested,
        .rounded_bytes = r->rounded,
        .grow_bytes = r->missing,
        .rungs = r->tried,
        .handle_cache_bytes = g->extents.cached * granule,
        .limit_bytes = g->limit,
        .device_free_bytes = gr_growth_device_free(g),
        .device_total_bytes = total,
        .reserved_address_bytes = g->address_bytes,
        .ranges = g->ranges,
        .expandable_segments = g->expandable,
        .reclaim = (int)g->reclaim,
        .capture_reuse = (int)g->defer.reuse,
        .virtual_memory = g->driver.facts.vmm && !g->no_caching,
        .extent_bytes = g->extent * granule,
        .open_captures = atomic_load(&g->defer.captures),
    };
    out->foreign_bytes = total - gr_min(total, out->device_free_bytes + gr_heap_held(g));
    gr_ledger_stop(&g->ledger);
    read_pools(g, r->pool, out);
    gr_ledger_look(&g->ledger, &stats);
    gr_ledger_go(&g->ledger);
    out->allocated_bytes = (size_t)stats.allocated_bytes.all.current;
    out->active_bytes = (size_t)stats.active_bytes.all.current;
    out->reserved_bytes = (size_t)stats.reserved_bytes.all.current;
    out->pending_bytes = out->active_bytes - out->allocated_bytes;
}
