/* SPDX-License-Identifier: Apache-2.0
 * Growth: growing on ranges and by classic segments, and where the memory for it comes from. */
#include "heap/growth.h"

#include "base/clock.h"
#include "base/host.h"
#include "heap/reclaim.h"
#include "heap/settings.h"
#include "policy/backing.h"
#include "pool/grow.h"

static size_t granules_of(const granary *g, size_t bytes) {
    return bytes / g->extents.granule;
}

/* ---- memory for a growth: loose extents --------------------------------------------------- */

size_t gr_growth_device_free(granary *g) {
    size_t free_bytes = 0, total_bytes = 0;
    if (gr_driver_begin(&g->driver) != GRANARY_OK) return 0;
    if (GR_DRIVE(&g->driver, cuMemGetInfo, &free_bytes, &total_bytes) != GR_CU_SUCCESS) free_bytes = 0;
    gr_driver_end(&g->driver);
    return free_bytes;
}

/* Is a request to fail rather than have idle memory make room for it? */
static bool rejects(const granary *g, size_t missing) {
    size_t room = gr_growth_room(g) + g->extents.cached * g->extents.granule;
    return g->reject_early && missing > room;
}

/* Would cached and idle memory make up for `missing` bytes? Asked before any of it is disturbed, so
 * that a request which must fail does not empty the pools. */
static bool enough_idle(granary *g, struct gr_request *r, size_t missing) {
    if (g->reclaim != GRANARY_RECLAIM_OFF && gr_defer_quiet(&g->defer))
        gr_growth_try(r, GRANARY_RUNG_RECLAIM);
    size_t cached = g->extents.cached * g->extents.granule;
    return missing <= cached || gr_reclaim_possible(g, missing - cached) >= missing - cached;
}

/* Extents for one hole, while they are gathered. */
struct supply {
    struct gr_request *request;
    struct gr_list *loose;  /* where they go */
    size_t need, whole;     /* granules: to come, in all */
    size_t most, watermark; /* bytes that may be held; beyond which idle memory goes first */
    bool idle;              /* there may be idle memory to take */
    bool begun;             /* some was taken */
    bool asked;             /* whether it suffices, and it does */
};

static struct supply supply_of(granary *g, struct gr_request *r, size_t need, struct gr_list *loose) {
    const size_t granule = g->extents.granule;
    struct supply s = {.request = r,
                       .loose = loose,
                       .need = need,
                       .whole = need,
                       .most = gr_min(g->limit, g->driver.facts.total_bytes)};
    struct gr_need known = {.missing = need * granule,
                            .moved = (size_t)g->ledger.moved_bytes,
                            .restless = g->restless,
                            .limit = s.most};
    known.peak = gr_ledger_active(&g->ledger, &known.active, &known.given);
    s.watermark = gr_backing_watermark(&known);
    /* A request that cannot be met, but for two granules at its edges, disturbs nothing. */
    s.idle = known.active + (need - gr_min(need, 2)) * granule <= s.most;
    return s;
}

static void append(struct supply *s, struct gr_extent *extent) {
    gr_list_append(s->loose, &extent->link);
    s->need -= extent->granules;
}

static bool take_cached(granary *g, struct supply *s) {
    struct gr_extent *extent = gr_extents_take_cached(&g->extents, s->need);
    if (extent) append(s, extent);
    return extent != NULL;
}

/* Takes idle memory: what fits the need goes to loose, what is too big is released to make room. */
static bool move_idle(granary *g, struct supply *s, bool may_wait) {
    struct gr_pool *pool = s->request->pool;
    struct gr_list taken;
    const size_t before = s->need;
    const uint64_t began = gr_clock_ns(), waited = g->waited_ns;
    gr_list_init(&taken);
    if (gr_reclaim_take(g, pool, s->need, may_wait, &taken) == 0) return false;
    while (!gr_list_empty(&taken)) {
        struct gr_extent *extent = GR_CONTAINER(taken.next, struct gr_extent, link);
        gr_list_remove(&extent->link);
        gr_ledger_move(&g->ledger, &pool->tally, extent->granules * g->extents.granule);
        if (extent->granules <= s->need)
            append(s, extent);
        else
            gr_extents_release(&g->extents, extent);
    }
    s->request->moved += before - s->need;
    s->request->moving_ns += gr_clock_ns() - began - (g->waited_ns - waited);
    return true;
}

/* Is idle memory to be taken before more is made? When memory is short, a request that has begun goes on, so
 * that what it finds too big comes back in granules. */
static bool moves_first(const granary *g, const struct supply *s) {
    if (g->reclaim != GRANARY_RECLAIM_PRESSURE) return g->reclaim == GRANARY_RECLAIM_EAGER;
    size_t held = gr_heap_held(g);
    return held + s->need * g->extents.granule > s->watermark ||
           (s->begun && gr_backing_short(held, s->most));
}

static bool move_first(granary *g, struct supply *s) {
    if (!s->idle || !moves_first(g, s)) return false;
    s->idle = move_idle(g, s, false);
    s->begun |= s->idle;
    return s->idle;
}

/* One extent more, by the driver. *found: what the device still has, for one that was refused. */
static int make(granary *g, struct supply *s, size_t *found) {
    const struct gr_backing backing = {.need = gr_min(s->need, granules_of(g, gr_growth_room(g))),
                                       .whole = s->whole,
                                       .held = g->extents.held,
                                       .limit = granules_of(g, s->most),
                                       .usual = g->extent,
                                       .class = s->request->pool->class,
                                       .peers = g->driver.peers.count > 1};
    struct gr_extent *extent;
    *found = 0;
    if (backing.need == 0) return GRANARY_OVER_LIMIT;
    if (!gr_extents_reserve(&g->extents, 1)) return GRANARY_HOST_MEMORY;
    size_t want = gr_backing_next(&backing);
    gr_growth_try(s->request, GRANARY_RUNG_GROW);
    int status = gr_extents_get(&g->extents, want, &extent);
    if (status == GRANARY_OK) append(s, extent);
    if (status != GRANARY_OUT_OF_MEMORY) return status;
    *found = gr_growth_device_free(g);
    if (*found >= want * g->extents.granule) *found = 0; /* says it has, and gives none */
    return status;
}

/* What is cached or idle makes room, when there is enough of it. */
static bool make_room(granary *g, struct supply *s, size_t found) {
    const size_t missing = s->need * g->extents.granule;
    if (g->reject_early) return false;
    if (!s->asked && !enough_idle(g, s->request, missing - gr_min(missing, found))) return false;
    s->asked = true;
    if (g->extents.cached == 0) return move_idle(g, s, !s->request->fits);
    gr_extents_flush(&g->extents, g->extents.cached - gr_min(g->extents.cached, s->need));
    return true;
}

/* Adds extents of exactly `need` granules to loose. */
static int supply(granary *g, struct gr_request *r, size_t need, struct gr_list *loose) {
    struct supply s = supply_of(g, r, need, loose);
    if (g->extents.cached > 0) gr_growth_try(r, GRANARY_RUNG_CACHE);
    while (s.need > 0) {
        size_t found;
        if (take_cached(g, &s) || move_first(g, &s)) continue;
        int status = make(g, &s, &found);
        if (status == GRANARY_OK) continue;
        if (status != GRANARY_OVER_LIMIT && status != GRANARY_OUT_OF_MEMORY) return status;
        if (!make_room(g, &s, found)) return status;
    }
    return GRANARY_OK;
}

static void put_all(granary *g, struct gr_list *loose) {
    while (!gr_list_empty(loose)) {
        struct gr_extent *extent = GR_CONTAINER(loose->next, struct gr_extent, link);
        gr_list_remove(&extent->link);
        gr_extents_put(&g->extents, extent);
    }
}

/* ---- growing on ranges -------------------------------------------------------------------- */

/* Takes what a new segment needs from the pool: its place in the list, and its first tile. */
static struct gr_block *prepare_segment(struct gr_pool *pool) {
    gr_pool_lock(pool);
    bool reserved = gr_pool_reserve_segment(pool) && gr_slab_reserve(&pool->blocks, 1);
    struct gr_block *first = reserved ? gr_slab_take(&pool->blocks) : NULL;
    gr_pool_unlock(pool);
    return first;
}

/* The segment joins its pool, which owns its addresses; or, when that or making it has failed, what was
 * prepared for it goes. Returns status. */
static int settle_segment(granary *g, struct gr_pool *pool, struct gr_segment *segment,
                          struct gr_block *first, int status) {
    if (status == GRANARY_OK && !gr_table_cover(&g->table, segment->base, segment->size, pool)) {
        gr_segment_close(segment, &g->driver);
        status = GRANARY_HOST_MEMORY;
    }
    gr_pool_lock(pool);
    if (status == GRANARY_OK)
        gr_pool_add_segment(pool, segment);
    else if (first)
        gr_slab_give(&pool->blocks, first);
    gr_pool_unlock(pool);
    if (status != GRANARY_OK) gr_host_give(segment);
    return status;
}

static int open_range(granary *g, struct gr_pool *pool, size_t rounded) {
    const size_t granule = g->extents.granule;
    size_t need = (rounded + granule - 1) & ~(granule - 1);
    const struct gr_range_wish wish = {.device_bytes = g->driver.facts.total_bytes,
                                       .used = g->address_bytes,
                                       .need = need,
                                       .reserve = gr_settings_reserve(g, pool->stream),
                                       .granule = granule};
    size_t bytes = gr_sizing_range(&wish);
    struct gr_segment *segment = gr_host_take(1, sizeof(*segment), 8);
    struct gr_block *first = segment ? prepare_segment(pool) : NULL;
    int status = first ? gr_segment_open_expandable(segment, &g->driver, first, bytes, need)
                       : GRANARY_HOST_MEMORY;
    status = settle_segment(g, pool, segment, first, status);
    if (status != GRANARY_OK) return status;
    g->address_bytes += segment->size;
    g->ranges++;
    return GRANARY_OK;
}

/* How sparing the pool is to be from now on. */
static void spare(granary *g, struct gr_pool *pool, size_t rounded) {
    const size_t most = gr_min(g->limit, g->driver.facts.total_bytes);
    const bool moves = g->reclaim != GRANARY_RECLAIM_OFF && gr_reclaim_allowed(pool->route->heap);
    const bool sparing =
        moves && (g->reclaim == GRANARY_RECLAIM_EAGER || gr_backing_short(gr_heap_held(g) + rounded, most));
    size_t active = 0, ever = 0, peak = sparing ? gr_ledger_active(&g->ledger, &active, &ever) : 0;
    const bool picky = gr_backing_picky(g->extent, g->hasty, peak, ever);
    gr_pool_lock(pool);
    size_t tight = gr_backing_full(most) + (size_t)gr_tally_now(&pool->tally, GR_ACTIVE_BYTES);
    tight = picky ? tight - gr_min(tight, active) : SIZE_MAX; /* while the other pools use about as much */
    gr_pool_spare(pool, sparing ? picky ? gr_backing_dearest(g->extent) : 1 : 0, tight,
                  gr_backing_apart(g->extent));
    gr_pool_unlock(pool);
}

static int plan(granary *g, struct gr_pool *pool, size_t rounded, struct gr_growth *growth) {
    for (;;) {
        spare(g, pool, rounded);
        gr_pool_lock(pool);
        int status = gr_grow_plan(pool, rounded, growth);
        gr_pool_unlock(pool);
        if (status != GRANARY_OUT_OF_MEMORY) return status;
        status = open_range(g, pool, rounded);
        if (status != GRANARY_OK) return status;
    }
}

/* Tells of extents that were mapped, by runs of addresses, and empties the list. */
static void tell_mapped(granary *g, struct gr_pool *pool, const struct gr_range *range,
                        struct gr_list *mapped) {
    while (!gr_list_empty(mapped)) {
        size_t slot = GR_CONTAINER(mapped->next, struct gr_extent, link)->slot, end = slot;
        while (!gr_list_empty(mapped)) {
            struct gr_extent *extent = GR_CONTAINER(mapped->next, struct gr_extent, link);
            if (extent->slot != end) break;
            end += extent->granules;
            gr_list_remove(&extent->link);
        }
        gr_ledger_map(&g->ledger, &pool->tally, gr_range_addr_of(range, slot), (end - slot) * range->granule);
    }
}

/* Backs every hole of the growth, or none; what the driver does not let go again stays as free memory. */
static int back(granary *g, struct gr_request *r, struct gr_growth *growth, struct gr_list *loose) {
    struct gr_pool *pool = r->pool;
    struct gr_range *range = &growth->segment->range;
    struct gr_block *b;
    for (b = gr_grow_next(growth, NULL); b; b = gr_grow_next(growth, b)) {
        int supplied = supply(g, r, granules_of(g, b->size), loose);
        if (supplied != GRANARY_OK) return supplied;
    }
    struct gr_list mapped; /* extents in place, in rising order */
    int status = GRANARY_OK;
    gr_list_init(&mapped);
    const uint64_t began = gr_clock_ns();
    while (status == GRANARY_OK && (b = gr_grow_next(growth, NULL)) != NULL) {
        size_t slot = gr_range_slot_of(range, b->addr), end = slot + granules_of(g, b->size);
        status = gr_range_map(range, &g->driver, slot, end - slot, loose);
        while (status == GRANARY_OK && slot < end) {
            struct gr_extent *extent = range->slot[slot];
            gr_list_append(&mapped, &extent->link);
            slot += extent->granules;
        }
    }
    r->moving_ns += (gr_clock_ns() - began) * r->moved / (r->missing / g->extents.granule);
    /* Taken out again from the right, so that what cannot be is the left part of a block. */
    while (status != GRANARY_OK && !gr_list_empty(&mapped)) {
        struct gr_extent *extent = GR_CONTAINER(mapped.prev, struct gr_extent, link);
        if (gr_range_unmap(range, &g->driver, extent) != GRANARY_OK) break;
        gr_list_remove(&extent->link);
        gr_list_append(loose, &extent->link);
    }
    tell_mapped(g, pool, range, &mapped);
    return status;
}

/* Keeps account of the time that the growth's moves took. */
static void note_moves(granary *g, const struct gr_request *r) {
    if (r->moving_ns == 0) return;
    gr_ledger_moving(&g->ledger, r->moving_ns);
    if (!gr_allowance_spend(&g->allowance, gr_clock_ns(), r->moving_ns)) return;
    g->restless += r->moved * g->extents.granule;
    if (r->fits) g->hasty += r->moved * g->extents.granule;
}

/* Makes room for a block of so many bytes, not less than the request. */
static int grow_by(granary *g, struct gr_request *r, size_t bytes) {
    struct gr_pool *pool = r->pool;
    struct gr_growth growth = {0};
    struct gr_list loose;
    size_t ranges = g->ranges;
    r->missing = gr_align_down(bytes + g->extents.granule - 1, g->extents.granule);
    int status = plan(g, pool, bytes, &growth);
    if (status == GRANARY_OK) r->missing = growth.missing * g->extents.granule;
    if (status != GRANARY_OK || growth.missing == 0) return status;
    gr_list_init(&loose);
    r->moved = 0;
    r->moving_ns = 0;
    status = rejects(g, r->missing) ? GRANARY_OVER_LIMIT : back(g, r, &growth, &loose);
    gr_pool_lock(pool);
    gr_grow_finish(pool, &growth);
    gr_pool_unlock(pool);
    put_all(g, &loose);
    note_moves(g, r);
    if (status != GRANARY_OK && g->ranges > ranges)
        gr_reclaim_close_empty(g, pool); /* the one opened for it */
    return status;
}

static int grow_on_range(granary *g, struct gr_request *r) {
    const size_t limit = gr_min(g->limit, g->driver.facts.total_bytes);
    size_t least = gr_backing_least(g->extents.held, granules_of(g, limit), g->extent) * g->extents.granule;
    bool more = least > r->rounded && g->reclaim != GRANARY_RECLAIM_EAGER;
    if (more && grow_by(g, r, least) == GRANARY_OK) return GRANARY_OK;
    return grow_by(g, r, r->rounded);
}

/* ---- growing by classic segments ---------------------------------------------------------- */

static int open_classic(granary *g, struct gr_request *r, struct gr_segment *segment, struct gr_block *first,
                        size_t bytes) {
    bool asked = false;
    for (;;) {
        int status = GRANARY_OVER_LIMIT;
        size_t room = gr_growth_room(g), found = room;
        if (bytes <= room) {
            gr_growth_try(r, GRANARY_RUNG_GROW);
            status = gr_segment_open_classic(segment, &g->driver, first, bytes);
            if (status != GRANARY_OUT_OF_MEMORY) return status;
            found = gr_growth_device_free(g);
            if (found >= bytes) found = 0;
        }
        if (g->reject_early || (!asked && !enough_idle(g, r, bytes - found))) return status;
        asked = true;
        if (gr_extents_flush(&g->extents, 0) == 0 && gr_reclaim_classic(g) == 0) return status;
    }
}

/* Makes a segment and serves the request from it: best fit over the pool might refuse the fresh block as
 * oversize. */
static int grow_classic(granary *g, struct gr_request *r) {
    struct gr_pool *pool = r->pool;
    size_t bytes = g->no_caching ? r->rounded : gr_sizing_segment(&g->sizing, r->rounded);
    struct gr_segment *segment = gr_host_take(1, sizeof(*segment), 8);
    struct gr_block *first = segment ? prepare_segment(pool) : NULL;
    r->missing = bytes;
    int status = first ? open_classic(g, r, segment, first, bytes) : GRANARY_HOST_MEMORY;
    status = settle_segment(g, pool, segment, first, status);
    if (status != GRANARY_OK) return status;
    g->classic_bytes += bytes;
    gr_ledger_segment_alloc(&g->ledger, &pool->tally, segment->base, bytes, &segment->label);
    gr_heap_serve(g, pool, first, r->rounded, r->requested, r->out);
    return GRANARY_OK;
}

int gr_growth_run(granary *g, struct gr_request *r, bool *served) {
    *served = !r->pool->expandable;
    if (gr_driver_lost(&g->driver)) return GRANARY_LOST;
    int status = r->pool->expandable ? grow_on_range(g, r) : grow_classic(g, r);
    if (status != GRANARY_OK) *served = false;
    return status;
}
