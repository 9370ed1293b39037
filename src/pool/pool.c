/* SPDX-License-Identifier: Apache-2.0
 * A pool: taking blocks and putting them back, and its segments. */
#include "pool/pool.h"

#include <string.h>

#include "base/check.h"
#include "base/host.h"
#include "pool/grow.h"
#include "pool/pin.h"

/* Blocks that a sparing pool looks at: 4 do nearly as well as all (doc/benchmarks.md). */
enum { LOOKS = 8 };

void gr_pool_init(struct gr_pool *pool, enum gr_class class, const struct gr_sizing *sizing) {
    pool->class = class;
    pool->sizing = sizing;
    gr_slab_init(&pool->blocks, sizeof(struct gr_block), true);
    gr_live_init(&pool->live);
}

void gr_pool_assign(struct gr_pool *pool, struct gr_stream *stream, struct gr_route *route, uint64_t heap,
                    bool expandable, bool no_split) {
    gr_pool_lock(pool);
    GR_ASSERT(pool->segment_count == 0, "P2");
    pool->stream = stream;
    pool->route = route;
    gr_ledger_place(&pool->tally, gr_place_stream(stream->handle), heap);
    pool->expandable = expandable && !no_split;
    gr_index_arrange(&pool->free, pool->expandable);
    pool->no_split = no_split;
    pool->sparing = 0;
    gr_pool_unlock(pool);
}

void gr_pool_fini(struct gr_pool *pool) {
    GR_ASSERT(pool->segment_count == 0, "P2");
    gr_live_fini(&pool->live);
    gr_slab_fini(&pool->blocks);
    gr_host_give(pool->segments);
}

bool gr_pool_recent_serves(const struct gr_pool *pool, size_t rounded) {
    const struct gr_block *b = pool->recent, *next = b->next, *other;
    if (b->size != rounded || (b->prev && b->prev->state == GR_BLOCK_FREE)) return false;
    size_t joined = rounded;
    if (next && next->state == GR_BLOCK_FREE) {
        if (!pool->expandable || pool->no_split) return false; /* what is cut off depends on more there */
        joined += next->size;
    } else if (!pool->expandable && !gr_sizing_fits(pool->sizing, rounded, rounded)) {
        return false;
    }
    other = gr_index_find(&pool->free, rounded);
    if (other == next && other) other = gr_index_next(&pool->free, other);
    return !other || gr_index_key_of(joined, b->addr) < gr_index_bound(&pool->free, other);
}

/* Of the next few blocks from b on, the one that pins least; the first of several, or the one in the youngest
 * company. */
static GR_COLD struct gr_fit cheapest(const struct gr_pool *pool, struct gr_block *b, size_t rounded,
                                      bool company) {
    struct gr_fit best = {.cost = SIZE_MAX};
    for (int look = 0; b && look < LOOKS && best.cost > 0; look++, b = gr_index_next(&pool->free, b)) {
        const struct gr_range *range = &gr_pool_segment_of(pool, b->addr)->range;
        const struct gr_fit fit = {
            .block = b,
            .cost = gr_pin_cost(range, b, b->addr, b->addr + rounded),
            .company = gr_pin_company(gr_pool_now(pool), b->prev, b->size == rounded ? b->next : NULL)};
        if (fit.cost < best.cost || (company && fit.cost == best.cost && fit.company < best.company))
            best = fit;
    }
    return best;
}

struct gr_fit gr_pool_choose(const struct gr_pool *pool, size_t rounded, bool grown) {
    struct gr_block *b = gr_index_find(&pool->free, rounded);
    return pool->sparing && b ? cheapest(pool, b, rounded, grown) : (struct gr_fit){.block = b};
}

struct gr_taken gr_pool_take_sparing(struct gr_pool *pool, size_t rounded, bool grown) {
    struct gr_block *b = pool->recent;
    if (b && gr_pool_recent_serves(pool, rounded)) {
        pool->recent = NULL;
        return (struct gr_taken){b, true};
    }
    gr_pool_settle(pool);
    return (struct gr_taken){gr_pool_choose(pool, rounded, grown).block, false};
}

bool gr_pool_is_dear(struct gr_pool *pool, size_t rounded) {
    if (pool->recent && gr_pool_recent_serves(pool, rounded)) return false;
    gr_pool_settle(pool);
    const struct gr_fit fit = gr_pool_choose(pool, rounded, false);
    return fit.block && gr_grow_pays(pool, rounded, &fit);
}

void gr_pool_retake(struct gr_pool *pool, struct gr_block *b, size_t rounded, size_t requested) {
    struct gr_block *rest = NULL;
    if (gr_pool_splits(pool, b->size, rounded) && gr_slab_reserve(&pool->blocks, 1))
        rest = gr_block_split(&pool->blocks, b, rounded);
    gr_block_become(b, GR_BLOCK_FREE);
    gr_pool_hand_out(pool, b, requested);
    if (rest) gr_pool_put(pool, rest);
}

void gr_pool_settle(struct gr_pool *pool) {
    struct gr_block *b = pool->recent;
    if (!b) return;
    pool->recent = pool->taken = NULL;
    gr_index_insert(&pool->free, gr_pool_join(pool, b));
}

void gr_pool_put(struct gr_pool *pool, struct gr_block *b) {
    gr_pool_settle(pool);
    pool->taken = NULL;
    gr_block_become(b, GR_BLOCK_FREE);
    gr_index_insert(&pool->free, gr_pool_join(pool, b));
}

void gr_pool_put_hole(struct gr_pool *pool, struct gr_block *b) {
    gr_block_become(b, GR_BLOCK_HOLE);
    b->epoch = 0; /* nothing lies here that work could still touch */
    if (b->next && b->next->state == GR_BLOCK_HOLE) {
        gr_index_remove(&pool->holes, b->next);
        gr_block_absorb(&pool->blocks, b);
    }
    if (b->prev && b->prev->state == GR_BLOCK_HOLE) {
        b = b->prev;
        gr_index_remove(&pool->holes, b);
        gr_block_absorb(&pool->blocks, b);
    }
    gr_index_insert(&pool->holes, b);
}

/* ---- segments ----------------------------------------------------------------------------- */

/* Number of segments that begin at or before addr. */
static size_t rank_of(const struct gr_pool *pool, gr_addr addr) {
    size_t low = 0, high = pool->segment_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (pool->segments[middle]->base <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct gr_segment *gr_pool_segment_of(const struct gr_pool *pool, gr_addr addr) {
    size_t rank = rank_of(pool, addr);
    GR_ASSERT(rank > 0 && gr_segment_holds(pool->segments[rank - 1], addr), "P2");
    return pool->segments[rank - 1];
}

bool gr_pool_reserve_segment(struct gr_pool *pool) {
    if (pool->segment_count < pool->segment_room) return true;
    size_t room = pool->segment_room ? pool->segment_room * 2 : 4;
    struct gr_segment **fresh = gr_host_take(room, sizeof(struct gr_segment *), 8);
    if (!fresh) return false;
    if (pool->segment_count) memcpy(fresh, pool->segments, pool->segment_count * sizeof(struct gr_segment *));
    gr_host_give(pool->segments);
    pool->segments = fresh;
    pool->segment_room = room;
    return true;
}

void gr_pool_add_segment(struct gr_pool *pool, struct gr_segment *segment) {
    size_t rank = rank_of(pool, segment->base);
    GR_ASSERT(pool->segment_count < pool->segment_room, "P2");
    memmove(&pool->segments[rank + 1], &pool->segments[rank],
            (pool->segment_count - rank) * sizeof(struct gr_segment *));
    pool->segments[rank] = segment;
    if (pool->segment_count++ == 0) gr_index_aim(&pool->free, segment->base);
    if (segment->first->state == GR_BLOCK_HOLE) gr_index_insert(&pool->holes, segment->first);
}

void gr_pool_remove_segment(struct gr_pool *pool, struct gr_segment *segment) {
    size_t rank = rank_of(pool, segment->base) - 1;
    gr_pool_settle(pool);
    if (segment->first->state == GR_BLOCK_HOLE) gr_index_remove(&pool->holes, segment->first);
    pool->segment_count--;
    memmove(&pool->segments[rank], &pool->segments[rank + 1],
            (pool->segment_count - rank) * sizeof(struct gr_segment *));
}

size_t gr_pool_unused(const struct gr_pool *pool) {
    size_t bytes = 0;
    for (size_t s = 0; s < pool->segment_count; s++) {
        const struct gr_segment *segment = pool->segments[s];
        bytes += segment->kind == GR_SEGMENT_CLASSIC ? segment->size
                                                     : segment->range.mapped * segment->range.granule;
    }
    return bytes - (size_t)gr_tally_now(&pool->tally, GR_ACTIVE_BYTES);
}

/* ---- checking ----------------------------------------------------------------------------- */

const char *gr_pool_check(struct gr_pool *pool, bool moving_allowed) {
    gr_pool_settle(pool);
    size_t count[GR_BLOCK_MOVING + 1] = {0};
    uint64_t bytes[GR_BLOCK_MOVING + 1] = {0};
    int64_t requested = 0;
    for (size_t s = 0; s < pool->segment_count; s++) {
        const struct gr_segment *segment = pool->segments[s];
        const char *broken = gr_segment_check(segment, moving_allowed);
        if (broken) return broken;
        if (s > 0 && pool->segments[s - 1]->base + pool->segments[s - 1]->size > segment->base) return "P2";
        for (const struct gr_block *b = segment->first; b; b = b->next) {
            count[b->state]++;
            bytes[b->state] += b->size;
            if (b->state == GR_BLOCK_LIVE || b->state == GR_BLOCK_PENDING)
                requested += (int64_t)b->u.live.requested;
            if (b->state == GR_BLOCK_LIVE && gr_live_find(&pool->live, b->addr) != b) return "P4";
        }
    }
    if (pool->live.count != count[GR_BLOCK_LIVE]) return "P4";
    struct gr_index_sum free, holes;
    const char *broken = gr_live_check(&pool->live);
    if (!broken) broken = gr_index_check(&pool->free, GR_BLOCK_FREE, &free);
    if (!broken) broken = gr_index_check(&pool->holes, GR_BLOCK_HOLE, &holes);
    if (broken) return broken;
    if (free.count != count[GR_BLOCK_FREE] || free.bytes != bytes[GR_BLOCK_FREE]) return "P1";
    if (holes.count != count[GR_BLOCK_HOLE] || holes.bytes != bytes[GR_BLOCK_HOLE]) return "P1";
    const int64_t live = (int64_t)bytes[GR_BLOCK_LIVE], pending = (int64_t)bytes[GR_BLOCK_PENDING];
    const struct gr_tally *tally = &pool->tally;
    if (gr_tally_now(tally, GR_ALLOCATED_BYTES) != live ||
        gr_tally_now(tally, GR_ACTIVE_BYTES) != live + pending ||
        gr_tally_now(tally, GR_ALLOCATIONS) != (int64_t)count[GR_BLOCK_LIVE] ||
        gr_tally_now(tally, GR_ACTIVE_BLOCKS) != (int64_t)(count[GR_BLOCK_LIVE] + count[GR_BLOCK_PENDING]) ||
        gr_tally_now(tally, GR_REQUESTED_BYTES) != requested)
        return "P3";
    return NULL;
}
