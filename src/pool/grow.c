/* SPDX-License-Identifier: Apache-2.0
 * Growing a pool in place: choosing the place, claiming it, settling it. */
#include "pool/grow.h"

#include "base/check.h"

static bool open_block(const struct gr_block *b) {
    return b && (b->state == GR_BLOCK_FREE || b->state == GR_BLOCK_HOLE);
}

/* Granules of the hole that [start, end) touches. */
static size_t touched(const struct gr_block *hole, size_t granule, gr_addr start, gr_addr end) {
    gr_addr from = gr_align_down(gr_max(hole->addr, start), granule);
    gr_addr to = gr_min(gr_block_end(hole), (end + granule - 1) & ~(gr_addr)(granule - 1));
    return (size_t)((to - from) / granule);
}

struct place {
    struct gr_block *first, *last; /* blocks that it touches */
    gr_addr start, end;
    size_t missing;
};

/* A place that begins in `first` at start: false when the run is too short. */
static bool try_place(struct gr_block *first, gr_addr start, size_t size, size_t granule, struct place *out) {
    gr_addr end = start + size;
    size_t missing = 0;
    struct gr_block *b = first;
    for (;; b = b->next) {
        if (!open_block(b)) return false;
        if (b->state == GR_BLOCK_HOLE) missing += touched(b, granule, start, end);
        if (gr_block_end(b) >= end) break;
    }
    *out = (struct place){.first = first, .last = b, .start = start, .end = end, .missing = missing};
    return true;
}

static void keep_better(struct place *best, const struct place *place) {
    if (!best->first || place->missing < best->missing ||
        (place->missing == best->missing && place->start < best->start))
        *best = *place;
}

/* Tries every useful place of the run that begins with `first`: flush with the left edge of each of
 * its blocks, and flush with the right edge of each FREE one. */
static void search_run(struct gr_block *first, size_t size, size_t granule, struct place *best) {
    struct place place;
    gr_addr run_end = first->addr;
    for (struct gr_block *b = first; open_block(b); b = b->next) run_end = gr_block_end(b);
    if (run_end - first->addr < size) return;
    for (struct gr_block *b = first; open_block(b); b = b->next) {
        if (run_end - b->addr >= size && try_place(b, b->addr, size, granule, &place))
            keep_better(best, &place);
        if (b->state != GR_BLOCK_FREE || gr_block_end(b) - first->addr < size) continue;
        gr_addr start = gr_block_end(b) - size;
        struct gr_block *left = b;
        while (left->addr > start) left = left->prev;
        if (try_place(left, start, size, granule, &place)) keep_better(best, &place);
    }
}

/* First block of the run that the hole is in, or NULL when an earlier hole of the run leads. */
static struct gr_block *run_of(struct gr_block *hole) {
    struct gr_block *first = hole;
    while (open_block(first->prev)) {
        first = first->prev;
        if (first->state == GR_BLOCK_HOLE) return NULL;
    }
    return first;
}

/* Takes a block out of its index. */
static void claim(struct gr_pool *pool, struct gr_block *b) {
    gr_index_remove(b->state == GR_BLOCK_HOLE ? &pool->holes : &pool->free, b);
    gr_block_become(b, GR_BLOCK_MOVING);
}

int gr_grow_plan(struct gr_pool *pool, size_t rounded, struct gr_growth *out) {
    struct place best = {0};
    size_t granule = 0;
    *out = (struct gr_growth){0};
    if (!gr_slab_reserve(&pool->blocks, 3)) return GRANARY_HOST_MEMORY;
    gr_pool_settle(pool);
    if (gr_index_find(&pool->free, rounded)) return GRANARY_OK;
    for (struct gr_block *hole = gr_index_find(&pool->holes, 1); hole;
         hole = gr_index_next(&pool->holes, hole)) {
        struct gr_block *first = run_of(hole);
        if (!granule) granule = gr_pool_segment_of(pool, hole->addr)->range.granule;
        if (first) search_run(first, rounded, granule, &best);
    }
    if (!best.first) return GRANARY_OUT_OF_MEMORY;
    GR_ASSERT(best.missing > 0, "P1");
    *out = (struct gr_growth){.segment = gr_pool_segment_of(pool, best.start), .missing = best.missing};

    /* Holes at the edges are cut to the granules that are needed. */
    gr_addr from = gr_align_down(best.start, granule),
            to = (best.end + granule - 1) & ~(gr_addr)(granule - 1);
    if (best.first->state == GR_BLOCK_HOLE && best.first->addr < from) {
        gr_index_remove(&pool->holes, best.first);
        struct gr_block *right = gr_block_split(&pool->blocks, best.first, (size_t)(from - best.first->addr));
        gr_index_insert(&pool->holes, best.first);
        gr_index_insert(&pool->holes, right);
        if (best.last == best.first) best.last = right;
        best.first = right;
    }
    if (best.last->state == GR_BLOCK_HOLE && gr_block_end(best.last) > to) {
        gr_index_remove(&pool->holes, best.last);
        struct gr_block *right = gr_block_split(&pool->blocks, best.last, (size_t)(to - best.last->addr));
        gr_index_insert(&pool->holes, best.last);
        gr_index_insert(&pool->holes, right);
    }
    out->first = best.first;
    out->last = best.last;
    out->spare = gr_slab_take(&pool->blocks); /* now: hits may use up what the slab has */
    for (struct gr_block *b = best.first;; b = b->next) {
        claim(pool, b);
        if (b == best.last) break;
    }
    return GRANARY_OK;
}

/* Granules of b from its left end that have memory behind them. */
static size_t backed(const struct gr_segment *segment, const struct gr_block *b) {
    const struct gr_range *range = &segment->range;
    size_t from = gr_range_slot_of(range, b->addr), to = gr_range_slot_of(range, gr_block_end(b) - 1) + 1;
    size_t at = from;
    while (at < to && range->slot[at]) at++;
    return at - from;
}

struct gr_block *gr_grow_next(const struct gr_growth *growth, const struct gr_block *after) {
    struct gr_block *b = after ? (after == growth->last ? NULL : after->next) : growth->first;
    while (b && backed(growth->segment, b)) b = b == growth->last ? NULL : b->next;
    return b;
}

void gr_grow_finish(struct gr_pool *pool, struct gr_growth *growth) {
    struct gr_block *stop = growth->last->next;
    const size_t granule = growth->segment->range.granule;
    gr_slab_give(&pool->blocks, growth->spare);
    for (struct gr_block *b = growth->first, *next; b != stop; b = next) {
        next = b->next; /* putting b may join it to the left, never to a MOVING right neighbour */
        size_t bytes = backed(growth->segment, b) * granule;
        if (bytes == 0) {
            gr_pool_put_hole(pool, b);
        } else {
            /* A block that had memory before may begin and end inside granules: it is backed all over. */
            if (bytes < b->size) gr_pool_put_hole(pool, gr_block_split(&pool->blocks, b, bytes));
            gr_pool_put(pool, b);
        }
        if (next == stop) break;
    }
}
