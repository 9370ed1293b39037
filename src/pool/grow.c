/* SPDX-License-Identifier: Apache-2.0
 * Growing a pool in place: choosing the place, claiming it, settling it. */
#include "pool/grow.h"

#include "base/check.h"
#include "policy/backing.h"
#include "pool/pin.h"

static bool open_block(const struct gr_block *b) {
    return b && (b->state == GR_BLOCK_FREE || b->state == GR_BLOCK_HOLE);
}

/* Granules of the hole that [start, end) touches. */
static size_t touched(const struct gr_block *hole, size_t granule, gr_addr start, gr_addr end) {
    gr_addr from = gr_align_down(gr_max(hole->addr, start), granule);
    gr_addr to = gr_min(gr_block_end(hole), (end + granule - 1) & ~(gr_addr)(granule - 1));
    return (size_t)((to - from) / granule);
}

enum { HOLES = 128 }; /* that are looked at when growing might pay though a block fits */

struct place {
    struct gr_block *first, *last; /* blocks that it touches */
    gr_addr start, end;
    size_t missing; /* granules to map */
    /* 0 unless sparing */
    size_t pinned;    /* granules of idle memory that could not be moved any more */
    uint32_t company; /* of the blocks beside it */
};

struct search {
    const struct gr_pool *pool;
    const struct gr_range *range; /* of the run that is looked at */
    size_t size;
    bool sparing;
    struct place best;
};

static size_t cost_of(const struct place *place) {
    return place->missing + place->pinned;
}

static bool better(const struct place *a, const struct place *b) {
    if (cost_of(a) != cost_of(b)) return cost_of(a) < cost_of(b);
    if (a->company != b->company) return a->company < b->company;
    return a->missing != b->missing ? a->missing < b->missing : a->start < b->start;
}

static uint32_t company_of(const struct gr_pool *pool, const struct place *place) {
    const struct gr_block *first = place->first, *last = place->last;
    return gr_pin_company(gr_pool_now(pool), place->start == first->addr ? first->prev : NULL,
                          place->end == gr_block_end(last) ? last->next : NULL);
}

/* A place that begins in `first` at start; one where nothing is missing is none. */
static void try_place(struct search *search, struct gr_block *first, gr_addr start) {
    struct place place = {.first = first, .start = start, .end = start + search->size};
    struct gr_block *b = first;
    for (;; b = b->next) {
        if (!open_block(b)) return;
        if (b->state == GR_BLOCK_HOLE)
            place.missing += touched(b, search->range->granule, start, place.end);
        else if (search->sparing)
            place.pinned += gr_pin_cost(search->range, b, start, place.end);
        if (gr_block_end(b) >= place.end) break;
    }
    if (place.missing == 0) return;
    place.last = b;
    if (search->sparing) place.company = company_of(search->pool, &place);
    if (!search->best.first || better(&place, &search->best)) search->best = place;
}

/* Tries every useful place of the run that begins with `first`: flush with the left edge of each of
 * its blocks, and flush with the right edge of each FREE one. */
static void search_run(struct search *search, struct gr_block *first) {
    const size_t size = search->size;
    gr_addr run_end = first->addr;
    for (struct gr_block *b = first; open_block(b); b = b->next) run_end = gr_block_end(b);
    if (run_end - first->addr < size) return;
    for (struct gr_block *b = first; open_block(b); b = b->next) {
        if (run_end - b->addr >= size) try_place(search, b, b->addr);
        if (b->state != GR_BLOCK_FREE || gr_block_end(b) - first->addr < size) continue;
        gr_addr start = gr_block_end(b) - size;
        struct gr_block *left = b;
        while (left->addr > start) left = left->prev;
        try_place(search, left, start);
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

/* Searches so many holes, the smallest first. */
static void search_pool(struct search *search, size_t holes) {
    const struct gr_pool *pool = search->pool;
    struct gr_block *hole = gr_index_find(&pool->holes, 1);
    for (; hole && holes > 0; hole = gr_index_next(&pool->holes, hole), holes--) {
        struct gr_block *first = run_of(hole);
        search->range = &gr_pool_segment_of(pool, hole->addr)->range;
        if (first) search_run(search, first);
    }
}

bool gr_grow_pays(const struct gr_pool *pool, size_t rounded, const struct gr_fit *fit) {
    struct search search = {.pool = pool, .size = rounded, .sparing = true};
    const struct place *best = &search.best;
    const bool tight = (size_t)gr_tally_now(&pool->tally, GR_ACTIVE_BYTES) + rounded >= pool->tight;
    if (fit->cost < 2 || fit->cost > (tight ? GR_BACKING_DEAREST : pool->sparing)) return false;
    search_pool(&search, HOLES);
    if (!best->first) return false;
    if (cost_of(best) != fit->cost) return cost_of(best) < fit->cost;
    return tight && best->company <= GR_BACKING_LATELY && fit->company > gr_max(best->company, pool->apart);
}

/* Takes a block out of its index. */
static void claim(struct gr_pool *pool, struct gr_block *b) {
    pool->taken = NULL;
    gr_index_remove(b->state == GR_BLOCK_HOLE ? &pool->holes : &pool->free, b);
    gr_block_become(b, GR_BLOCK_MOVING);
}

/* Cuts a block in two at addr; both stay in its index. Returns the right part. */
static struct gr_block *cut(struct gr_pool *pool, struct gr_block *b, gr_addr addr) {
    struct gr_index *index = b->state == GR_BLOCK_HOLE ? &pool->holes : &pool->free;
    pool->taken = NULL;
    gr_index_remove(index, b);
    struct gr_block *right = gr_block_split(&pool->blocks, b, (size_t)(addr - b->addr));
    gr_index_insert(index, b);
    gr_index_insert(index, right);
    return right;
}

/* Cuts the edges of a place to what is needed, a hole at a granule, so that what is idle beside it can
 * still be moved. */
static void trim_place(struct gr_pool *pool, struct place *place, size_t granule) {
    gr_addr from = place->start, to = place->end;
    if (place->first->state == GR_BLOCK_HOLE) from = gr_align_down(from, granule);
    if (place->last->state == GR_BLOCK_HOLE) to = (to + granule - 1) & ~(gr_addr)(granule - 1);
    if (place->first->addr < from) {
        struct gr_block *right = cut(pool, place->first, from);
        if (place->last == place->first) place->last = right;
        place->first = right;
    }
    if (gr_block_end(place->last) > to) (void)cut(pool, place->last, to);
}

int gr_grow_plan(struct gr_pool *pool, size_t rounded, struct gr_growth *out) {
    struct search search = {.pool = pool, .size = rounded, .sparing = pool->sparing};
    const struct place *best = &search.best;
    *out = (struct gr_growth){0};
    if (!gr_slab_reserve(&pool->blocks, 3)) return GRANARY_HOST_MEMORY;
    gr_pool_settle(pool);
    const struct gr_fit fit = gr_pool_choose(pool, rounded, false);
    if (fit.block && !gr_grow_pays(pool, rounded, &fit)) return GRANARY_OK;
    search_pool(&search, SIZE_MAX);
    if (!best->first) return GRANARY_OUT_OF_MEMORY;
    GR_ASSERT(best->missing > 0, "P1");
    *out = (struct gr_growth){.segment = gr_pool_segment_of(pool, best->start), .missing = best->missing};
    trim_place(pool, &search.best, out->segment->range.granule);
    out->first = best->first;
    out->last = best->last;
    out->spare = gr_slab_take(&pool->blocks); /* now: hits may use up what the slab has */
    for (struct gr_block *b = best->first;; b = b->next) {
        claim(pool, b);
        if (b == best->last) break;
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
