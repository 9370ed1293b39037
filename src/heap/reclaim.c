/* SPDX-License-Identifier: Apache-2.0
 * Reclaim: taking idle memory from where it lies, and giving memory back to the driver. */
#include "heap/reclaim.h"

#include "base/clock.h"
#include "base/host.h"
#include "heap/private.h"
#include "pool/idle.h"

/* ---- one claim ---------------------------------------------------------------------------- */

/* Unmaps the extents of a claim, from the left, until one is refused. */
static int strip(granary *g, struct gr_pool *pool, struct gr_idle *idle, struct gr_list *loose,
                 size_t *granules) {
    struct gr_range *range = &idle->segment->range;
    size_t slot = gr_range_slot_of(range, idle->block->addr);
    size_t end = slot + idle->bytes / range->granule;
    int status = GRANARY_OK;
    while (slot < end) {
        struct gr_extent *extent = range->slot[slot];
        status = gr_range_unmap(range, &g->driver, extent);
        if (status != GRANARY_OK) break;
        gr_list_append(loose, &extent->link);
        gr_ledger_unmap(&g->ledger, &pool->tally, gr_range_addr_of(range, slot),
                        extent->granules * range->granule);
        slot += extent->granules;
        *granules += extent->granules;
    }
    gr_pool_lock(pool);
    gr_idle_finish(pool, idle);
    gr_pool_unlock(pool);
    return status;
}

static bool claim(struct gr_pool *pool, size_t want, uint32_t epoch, struct gr_idle *out) {
    gr_pool_lock(pool);
    bool found = gr_idle_claim(pool, want, epoch, out);
    gr_pool_unlock(pool);
    return found;
}

static void unclaim(struct gr_pool *pool, struct gr_idle *idle) {
    gr_pool_lock(pool);
    gr_idle_finish(pool, idle);
    gr_pool_unlock(pool);
}

static int wait_for(granary *g, struct gr_stream *stream, uint32_t epoch) {
    const uint64_t began = gr_clock_ns();
    int status = gr_stream_wait(stream, &g->driver, epoch);
    g->waited_ns += gr_clock_ns() - began;
    return status;
}

/* Claims idle memory of the pool that is proved idle: without waiting, or after waiting for the one
 * event that proves it. False: there is none, or it cannot be proved; *status says what refused. */
static bool claim_proved(granary *g, struct gr_pool *pool, size_t want, int wait, struct gr_idle *out,
                         int *status) {
    *status = GRANARY_OK;
    if (claim(pool, want, pool->stream->done, out)) return true;
    if (!claim(pool, want, UINT32_MAX, out)) return false;
    if (gr_stream_idle(pool->stream, &g->driver, out->epoch)) return true;
    if (wait) *status = wait_for(g, pool->stream, out->epoch);
    if (wait && *status == GRANARY_OK) return true;
    unclaim(pool, out);
    return false;
}

/* ---- taking for another place ------------------------------------------------------------- */

/* Launches of the graphs of a released heap were not seen: the device is waited for, once. */
static bool prove_heap(granary *g, struct gr_heap *heap) {
    if (!heap->unproved) return true;
    if (gr_driver_begin(&g->driver) != GRANARY_OK) return false;
    const uint64_t began = gr_clock_ns();
    int status =
        gr_driver_status(&g->driver, GR_ENTRY_cuCtxSynchronize, GR_DRIVE(&g->driver, cuCtxSynchronize));
    g->waited_ns += gr_clock_ns() - began;
    gr_driver_end(&g->driver);
    if (status == GRANARY_OK) heap->unproved = false;
    return status == GRANARY_OK;
}

size_t gr_reclaim_possible(granary *g, size_t enough) {
    size_t sum = 0;
    if (g->reclaim == GRANARY_RECLAIM_OFF || !gr_defer_quiet(&g->defer)) return 0;
    GR_HEAP_FOR(heap, g) {
        if (!gr_reclaim_allowed(heap)) continue;
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS && sum < enough; c++) {
                struct gr_pool *pool = gr_heap_pool(route, c);
                if (!pool) continue;
                gr_pool_lock(pool);
                sum += gr_idle_total(pool, enough - sum);
                gr_pool_unlock(pool);
            }
    }
    return sum;
}

/* Takes from one pool. */
static size_t take_from(granary *g, struct gr_pool *pool, size_t want, int wait, struct gr_list *loose) {
    struct gr_idle idle;
    size_t granules = 0;
    struct gr_heap *heap = pool ? pool->route->heap : NULL;
    if (!pool || !pool->expandable || !gr_reclaim_allowed(heap)) return 0;
    if (heap->unproved && !(wait && prove_heap(g, heap))) return 0;
    int status;
    if (!claim_proved(g, pool, want * g->extents.granule, wait, &idle, &status)) return 0;
    status = strip(g, pool, &idle, loose, &granules);
    return granules; /* what was got serves, whatever stopped it */
}

size_t gr_reclaim_take(granary *g, struct gr_pool *beneficiary, size_t want, bool may_wait,
                       struct gr_list *loose) {
    struct gr_route *own = beneficiary->route;
    if (g->reclaim == GRANARY_RECLAIM_OFF || !gr_defer_quiet(&g->defer)) return 0;
    for (int wait = 0; wait <= (int)may_wait; wait++) {
        size_t granules = take_from(g, beneficiary, want, wait, loose);
        if (!granules) granules = take_from(g, gr_heap_pool(own, !beneficiary->class), want, wait, loose);
        GR_HEAP_FOR(heap, g)
            GR_ROUTE_FOR(route, heap)
                for (int c = GR_POOLS; c-- > 0 && !granules;)
                    if (route != own || c >= GR_CLASSES)
                        granules = take_from(g, gr_heap_pool(route, c), want, wait, loose);
        if (granules) return granules;
    }
    return 0;
}

/* ---- giving back -------------------------------------------------------------------------- */

/* The tiles of a segment that leaves its pool go back to the slab, the segment to the host. */
static void dissolve(granary *g, struct gr_pool *pool, struct gr_segment *segment) {
    gr_pool_lock(pool);
    gr_pool_remove_segment(pool, segment);
    for (struct gr_block *b = segment->first, *next; b; b = next) {
        next = b->next;
        gr_slab_give(&pool->blocks, b);
    }
    gr_pool_unlock(pool);
    if (segment->kind == GR_SEGMENT_EXPANDABLE) {
        g->address_bytes -= segment->size;
        g->ranges--;
    } else {
        g->classic_bytes -= segment->size;
        gr_ledger_segment_free(&g->ledger, &pool->tally, segment->base, segment->size, segment->label);
    }
    gr_segment_close(segment, &g->driver);
    gr_host_give(segment);
}

static void release_all(granary *g, struct gr_list *loose) {
    while (!gr_list_empty(loose)) {
        struct gr_extent *extent = GR_CONTAINER(loose->next, struct gr_extent, link);
        gr_list_remove(&extent->link);
        gr_extents_release(&g->extents, extent);
    }
}

/* The extents of a claim go back to the driver; *bytes is how much that was. */
static int strip_and_release(granary *g, struct gr_pool *pool, struct gr_idle *idle, size_t *bytes) {
    struct gr_list loose;
    size_t granules = 0;
    gr_list_init(&loose);
    int status = strip(g, pool, idle, &loose, &granules);
    release_all(g, &loose);
    *bytes = granules * g->extents.granule;
    return status;
}

/* A wholly free classic segment of the pool; cuMemFree itself waits for the work on it. */
static size_t release_classic(granary *g, struct gr_pool *pool) {
    struct gr_idle idle;
    if (pool->expandable || !claim(pool, 1, UINT32_MAX, &idle)) return 0;
    dissolve(g, pool, idle.segment);
    return idle.bytes;
}

size_t gr_reclaim_classic(granary *g) {
    if (!gr_defer_quiet(&g->defer)) return 0;
    GR_HEAP_FOR(heap, g)
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++) {
                struct gr_pool *pool = gr_heap_pool(route, c);
                size_t bytes = pool && gr_reclaim_allowed(heap) ? release_classic(g, pool) : 0;
                if (bytes > 0) return bytes;
            }
    return 0;
}

void gr_reclaim_uncached(granary *g) {
    gr_heap_complete(g, gr_defer_reap(&g->defer));
    gr_lock_take(&g->miss);
    while (gr_reclaim_classic(g) > 0) continue;
    gr_lock_give(&g->miss);
}

/* ---- garbage ------------------------------------------------------------------------------ */

static size_t garbage_limit(const granary *g) {
    return (size_t)(g->garbage_threshold * (double)gr_min(g->limit, g->driver.facts.total_bytes));
}

/* Bytes held that are too many. */
static size_t excess(const granary *g) {
    size_t held = gr_heap_held(g);
    return held - gr_min(held, garbage_limit(g));
}

/* Finds out what is idle by now. What is not complete yet has an event behind it from here on, and will be
 * known to be idle at a later miss. */
static void prove_large(granary *g) {
    GR_ROUTE_FOR(route, &g->own) {
        struct gr_pool *pool = gr_heap_pool(route, GR_LARGE);
        if (!pool) continue;
        struct gr_idle_ages ages = {0};
        gr_pool_lock(pool);
        gr_idle_ages(pool, 0, 0, &ages);
        gr_pool_unlock(pool);
        if (ages.newest > 0) (void)gr_stream_idle(pool->stream, &g->driver, ages.newest);
    }
}

/* The mean age of what is known idle, rounded up since ages are whole; false when there is nothing. */
static bool mean_age(granary *g, uint32_t clock, uint64_t *mean) {
    struct gr_idle_ages ages = {0};
    GR_ROUTE_FOR(route, &g->own) {
        struct gr_pool *pool = gr_heap_pool(route, GR_LARGE);
        if (!pool) continue;
        gr_pool_lock(pool);
        gr_idle_ages(pool, clock, pool->stream->done, &ages);
        gr_pool_unlock(pool);
    }
    if (ages.count > 0) *mean = (ages.sum + ages.count - 1) / ages.count;
    return ages.count > 0;
}

/* Gives back what is old enough, of a pool; bytes. */
static size_t collect_pool(granary *g, struct gr_pool *pool, uint32_t clock, uint64_t age) {
    size_t sum = 0, bytes;
    struct gr_idle idle;
    while (!pool->expandable || excess(g) > 0) {
        gr_pool_lock(pool);
        bool found = gr_idle_claim_old(pool, clock, age, excess(g), pool->stream->done, &idle);
        gr_pool_unlock(pool);
        if (!found) break;
        bytes = idle.bytes;
        if (!pool->expandable)
            dissolve(g, pool, idle.segment);
        else if (strip_and_release(g, pool, &idle, &bytes) != GRANARY_OK)
            break;
        sum += bytes;
    }
    return sum;
}

size_t gr_reclaim_collect(granary *g) {
    const size_t granule = g->extents.granule;
    size_t sum = 0, pass = 1;
    uint64_t mean;
    if (g->garbage_threshold == 0 || excess(g) == 0 || !gr_defer_quiet(&g->defer)) return 0;
    const uint32_t clock = atomic_load_explicit(&g->clock, memory_order_relaxed);
    size_t surplus = gr_min((excess(g) + granule - 1) / granule, g->extents.cached);
    sum += gr_extents_flush(&g->extents, g->extents.cached - surplus) * granule;
    if (excess(g) > 0) prove_large(g);
    while (pass > 0 && excess(g) > 0 && mean_age(g, clock, &mean)) {
        pass = 0;
        GR_ROUTE_FOR(route, &g->own)
            if (gr_heap_pool(route, GR_LARGE))
                pass += collect_pool(g, gr_heap_pool(route, GR_LARGE), clock, mean);
        sum += pass;
    }
    if (sum > 0) gr_ledger_collect(&g->ledger, sum);
    return sum;
}

/* ---- trimming ----------------------------------------------------------------------------- */

static int trim_pool(granary *g, struct gr_pool *pool, size_t keep) {
    int status = GRANARY_OK;
    while (status == GRANARY_OK && gr_heap_held(g) > keep) {
        struct gr_idle idle;
        size_t bytes;
        if (!pool->expandable) {
            if (release_classic(g, pool) == 0) break;
            continue;
        }
        if (!claim_proved(g, pool, gr_heap_held(g) - keep, 1, &idle, &status)) {
            if (status == GRANARY_BUSY)
                status = GRANARY_OK; /* another thread's default stream: not ours to wait for */
            break;
        }
        status = strip_and_release(g, pool, &idle, &bytes);
    }
    return status;
}

/* Ranges that are one single hole go, as long as more than `stay` segments are left. */
static void close_empty(granary *g, struct gr_pool *pool, size_t stay) {
    for (size_t s = pool->segment_count; s-- > 0 && pool->segment_count > stay;) {
        struct gr_segment *segment = pool->segments[s];
        gr_pool_lock(pool);
        bool empty = segment->first->state == GR_BLOCK_HOLE && !segment->first->next;
        gr_pool_unlock(pool);
        if (empty) dissolve(g, pool, segment);
    }
}

void gr_reclaim_close_empty(granary *g, struct gr_pool *pool) {
    close_empty(g, pool, 0);
}

/* A pool that will hardly be used again keeps nothing. */
static bool keeps_range(const granary *g, const struct gr_heap *heap, const struct gr_route *route) {
    return heap == &g->own && !atomic_load(&route->stream->dead) && gr_sizing_keeps_range(g->address_bytes);
}

int gr_reclaim_trim(granary *g, size_t keep, bool addresses, size_t *released) {
    size_t before = gr_heap_held(g);
    int status = GRANARY_OK;
    *released = 0;
    if (!gr_defer_quiet(&g->defer)) return GRANARY_BUSY;
    if (before > keep) {
        size_t surplus = (before - keep + g->extents.granule - 1) / g->extents.granule;
        gr_extents_flush(&g->extents, g->extents.cached - gr_min(g->extents.cached, surplus));
    }
    GR_HEAP_FOR(heap, g) {
        bool enough = gr_heap_held(g) <= keep && !addresses;
        if (!gr_reclaim_allowed(heap) || enough || !prove_heap(g, heap)) continue;
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++) {
                struct gr_pool *pool = gr_heap_pool(route, c);
                if (!pool) continue;
                if (status == GRANARY_OK) status = trim_pool(g, pool, keep);
                close_empty(g, pool, !addresses && keeps_range(g, heap, route) ? 1 : 0);
            }
    }
    gr_private_sweep(g);
    *released = before - gr_heap_held(g);
    return gr_driver_lost(&g->driver) ? GRANARY_LOST : status;
}

size_t gr_reclaim_shed(granary *g, size_t keep) {
    const size_t piece = gr_max(16 * GR_MIB / g->extents.granule, 1); /* granules: a miss may wait for it */
    size_t surplus = (gr_heap_held(g) - keep + g->extents.granule - 1) / g->extents.granule;
    size_t part = gr_min(surplus, piece), bytes = 0;
    if (!gr_defer_quiet(&g->defer)) return 0;
    if (g->extents.cached > 0)
        return gr_extents_flush(&g->extents, g->extents.cached - gr_min(g->extents.cached, part)) *
               g->extents.granule;
    GR_HEAP_FOR(heap, g) {
        if (!gr_reclaim_allowed(heap) || heap->unproved) continue;
        GR_ROUTE_FOR(route, heap)
            for (int c = GR_POOLS; c-- > 0 && bytes == 0;) {
                struct gr_pool *pool = gr_heap_pool(route, c);
                struct gr_idle idle;
                int status;
                if (pool && pool->expandable &&
                    claim_proved(g, pool, part * g->extents.granule, 0, &idle, &status))
                    status = strip_and_release(g, pool, &idle, &bytes);
            }
    }
    return bytes;
}

static void drop_pool(granary *g, struct gr_pool *pool) {
    while (pool->segment_count > 0) {
        struct gr_segment *segment = pool->segments[pool->segment_count - 1];
        struct gr_range *range = &segment->range;
        for (size_t s = 0; segment->kind == GR_SEGMENT_EXPANDABLE && range->mapped > 0; s++) {
            struct gr_extent *extent = range->slot[s];
            if (!extent) continue;
            if (gr_range_unmap(range, &g->driver, extent) != GRANARY_OK) gr_range_forget(range, extent);
            gr_extents_release(&g->extents, extent);
        }
        dissolve(g, pool, segment);
    }
}

void gr_reclaim_drop(granary *g, struct gr_heap *heap) {
    GR_ROUTE_FOR(route, heap)
        for (int c = 0; c < GR_POOLS; c++)
            if (gr_heap_pool(route, c)) drop_pool(g, gr_heap_pool(route, c));
}
