/* SPDX-License-Identifier: Apache-2.0
 * The heap of a device: opening, allocation, freeing, figures. */
#include "heap/heap.h"

#include <string.h>

#include "base/host.h"
#include "base/text.h"
#include "heap/ladder.h"
#include "heap/reclaim.h"

/* ---- opening and closing ------------------------------------------------------------------ */

static size_t limit_of(const struct granary_options *options, size_t total) {
    /* Rounded to the nearest byte, as PyTorch does. A fraction of 1 is no limit. */
    size_t part = options->limit_fraction < 1 ? (size_t)(options->limit_fraction * (double)total + 0.5) : GRANARY_UNLIMITED;
    return gr_min(part, options->limit_bytes);
}

static void choose_kind(granary *g, const struct granary_options *options) {
    g->expandable = options->expandable_segments && g->driver.facts.vmm;
    if (!options->expandable_segments)
        gr_text_put(g->expandable_reason, sizeof(g->expandable_reason), "not asked for");
    else if (!g->driver.facts.vmm)
        gr_text_put(g->expandable_reason, sizeof(g->expandable_reason), "%s", g->driver.facts.vmm_reason);
}

int gr_heap_open(granary *g, const struct granary_options *options, int device, char *reason) {
    bool simulated = options->driver == GRANARY_DRIVER_SIM;
    int status = gr_driver_open(&g->driver, simulated, device, options->rdma_capable != 0, reason);
    if (status != GRANARY_OK) return status;
    choose_kind(g, options);
    if (options->expandable_segments && options->strict && !g->expandable) {
        gr_text_put(reason, GR_REASON_ROOM, "expandable segments are not available: %s", g->expandable_reason);
        gr_driver_close(&g->driver);
        return GRANARY_UNSUPPORTED;
    }
    bool routes = gr_routes_init(&g->routes);
    bool table = gr_table_init(&g->table);
    if (!routes || !table) {
        if (table) gr_table_fini(&g->table);
        gr_routes_fini(&g->routes);
        gr_driver_close(&g->driver);
        gr_text_put(reason, GR_REASON_ROOM, "no host memory for the address table");
        return GRANARY_HOST_MEMORY;
    }
    gr_lock_init(&g->miss, GR_RANK_MISS);
    gr_lock_init(&g->fault_lock, GR_RANK_LEAF);
    gr_ledger_init(&g->ledger);
    gr_extents_init(&g->extents, &g->driver, options->handle_cache_bytes);
    g->sizing = (struct gr_sizing){.max_split_size = options->max_split_size,
                                   .max_non_split_slack = GR_SIZING_LARGE_SEGMENT};
    g->limit = limit_of(options, g->driver.facts.total_bytes);
    return GRANARY_OK;
}

void gr_heap_close(granary *g) {
    if (g->routes.first && GR_TWICE(gr_driver_begin(&g->driver)) == GRANARY_OK) {
        gr_driver_ignore(&g->driver, GR_ENTRY_cuCtxSynchronize, GR_TWICE(GR_DRIVE(&g->driver, cuCtxSynchronize)));
        gr_driver_end(&g->driver);
    }
    for (struct gr_route *route = g->routes.first, *next; route; route = next) {
        next = route->next;
        for (int c = 0; c < GR_CLASSES; c++) gr_reclaim_drop(g, &route->pool[c]);
        gr_stream_fini(&route->stream, &g->driver);
        gr_host_give(route);
    }
    gr_extents_flush(&g->extents, 0);
    gr_extents_fini(&g->extents);
    gr_routes_fini(&g->routes);
    gr_table_fini(&g->table);
    gr_driver_close(&g->driver);
}

/* ---- allocation --------------------------------------------------------------------------- */

int gr_heap_try(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, void **out) {
    struct gr_block *b;
    bool over = false;
    gr_lock_take(&pool->lock);
    int status = gr_pool_take(pool, rounded, requested, &b);
    if (GR_LIKELY(status == GRANARY_OK)) {
        *out = (void *)(uintptr_t)b->addr;
        over = gr_ledger_alloc(&pool->tally, b->size, requested);
    }
    gr_lock_give(&pool->lock);
    if (GR_UNLIKELY(over)) gr_ledger_settle(&g->ledger, &pool->tally);
    return status;
}

/* Makes the pools of a stream that is seen for the first time. */
static int make_route(granary *g, gr_cu_stream handle, struct gr_route **out) {
    int status = GRANARY_OK;
    gr_lock_take(&g->miss);
    struct gr_route *route = gr_route_find(&g->routes, handle);
    if (!route) {
        route = gr_host_take(1, sizeof(*route), 64);
        if (route && gr_route_reserve(&g->routes)) {
            gr_stream_init(&route->stream, handle);
            for (int c = 0; c < GR_CLASSES; c++)
                gr_pool_init(&route->pool[c], (enum gr_class)c, g->expandable, &route->stream, &g->table, &g->sizing,
                             &g->ledger);
            gr_route_publish(&g->routes, route);
        } else {
            gr_host_give(route);
            route = NULL;
            status = GRANARY_HOST_MEMORY;
        }
    }
    gr_lock_give(&g->miss);
    *out = route;
    return status;
}

int gr_heap_alloc(granary *g, size_t size, gr_cu_stream stream, void **out, struct granary_shortfall *shortfall) {
    size_t rounded;
    if (GR_UNLIKELY(!gr_sizing_round(size, &rounded))) return GRANARY_INVALID;
    stream = gr_stream_normal(stream);
    struct gr_route *route = gr_route_find(&g->routes, stream);
    if (GR_UNLIKELY(!route)) {
        int status = make_route(g, stream, &route);
        if (status != GRANARY_OK) return status;
    }
    struct gr_pool *pool = &route->pool[gr_sizing_class(rounded)];
    int status = gr_heap_try(g, pool, rounded, size, out);
    if (GR_UNLIKELY(status == GRANARY_OUT_OF_MEMORY)) status = gr_ladder_climb(g, pool, rounded, size, out, shortfall);
    return status;
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* Takes the lock of the pool that has the block at addr, or returns NULL and holds nothing. */
static struct gr_block *lock_live(granary *g, gr_addr addr, struct gr_pool **pool) {
    struct gr_block *b = gr_table_get(&g->table, addr);
    if (!b) return NULL;
    *pool = gr_slab_owner(b);
    gr_lock_take(&(*pool)->lock);
    /* Looked up again: the first look was without the lock, and another thread may have freed it. */
    b = gr_pool_live_at(*pool, addr);
    if (!b) gr_lock_give(&(*pool)->lock);
    return b;
}

int gr_heap_free(granary *g, gr_addr addr) {
    struct gr_pool *pool;
    struct gr_block *b = lock_live(g, addr, &pool);
    if (GR_UNLIKELY(!b)) return GRANARY_UNKNOWN_POINTER;
    gr_table_clear(&g->table, b);
    b->epoch = gr_stream_epoch(pool->stream);
    gr_ledger_free_requested(&pool->tally, b->size);
    gr_ledger_free_completed(&pool->tally, b->size, b->u.live.requested);
    gr_pool_put(pool, b);
    gr_lock_give(&pool->lock);
    return GRANARY_OK;
}

int gr_heap_size_of(granary *g, gr_addr addr, size_t *out) {
    struct gr_pool *pool;
    struct gr_block *b = lock_live(g, addr, &pool);
    if (!b) return GRANARY_UNKNOWN_POINTER;
    *out = b->size;
    gr_lock_give(&pool->lock);
    return GRANARY_OK;
}

/* ---- figures ------------------------------------------------------------------------------ */

void gr_heap_read(granary *g, struct granary_stats *out) {
    gr_lock_take(&g->miss);
    gr_ledger_read(&g->ledger, out);
    out->handle_cache_bytes = (int64_t)(g->extents.cached * g->extents.granule);
    out->reserved_address_bytes = (int64_t)g->address_bytes;
    out->ranges = (int64_t)g->ranges;
    out->extents = (int64_t)g->extents.count;
    gr_lock_give(&g->miss);
}

static const char *check_memory(const granary *g) {
    size_t mapped = 0, classic = 0;
    for (const struct gr_route *route = g->routes.first; route; route = route->next)
        for (int c = 0; c < GR_CLASSES; c++)
            for (size_t s = 0; s < route->pool[c].segment_count; s++) {
                const struct gr_segment *segment = route->pool[c].segments[s];
                if (segment->kind == GR_SEGMENT_CLASSIC)
                    classic += segment->size;
                else
                    mapped += segment->range.mapped;
            }
    if (classic != g->classic_bytes) return "H1";
    if (gr_ledger_reserved(&g->ledger) != mapped * g->extents.granule + classic) return "H1";
    return g->extents.held == mapped + g->extents.cached ? NULL : "H2";
}

const char *gr_heap_check(granary *g) {
    gr_lock_take(&g->miss);
    const char *broken = NULL;
    for (struct gr_route *route = g->routes.first; route && !broken; route = route->next) {
        broken = gr_stream_check(&route->stream);
        for (int c = 0; c < GR_CLASSES && !broken; c++) {
            gr_lock_take(&route->pool[c].lock);
            broken = gr_pool_check(&route->pool[c], false);
            gr_lock_give(&route->pool[c].lock);
        }
    }
    if (!broken) broken = check_memory(g);
    if (!broken) broken = gr_extents_check(&g->extents);
    if (!broken) broken = gr_ledger_check(&g->ledger);
    gr_lock_give(&g->miss);
    return broken;
}
