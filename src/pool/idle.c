/* SPDX-License-Identifier: Apache-2.0
 * Giving memory up: finding whole extents under FREE blocks and claiming them. */
#include "pool/idle.h"

#include "base/check.h"

/* Slots [*from, *to) of the whole extents inside b. */
static void whole_extents(const struct gr_segment *segment, const struct gr_block *b, size_t *from,
                          size_t *to) {
    const struct gr_range *range = &segment->range;
    size_t first = gr_range_slot_of(range, b->addr), last = gr_range_slot_of(range, gr_block_end(b) - 1);
    struct gr_extent *head = range->slot[first], *tail = range->slot[last];
    bool head_whole = gr_range_addr_of(range, head->slot) >= b->addr;
    bool tail_whole = gr_range_addr_of(range, tail->slot + tail->granules) <= gr_block_end(b);
    *from = head_whole ? head->slot : head->slot + head->granules;
    *to = tail_whole ? tail->slot + tail->granules : tail->slot;
    if (*to < *from) *to = *from; /* one extent, not whole */
}

/* Idle memory of b from its right end: about want bytes. Slots [*from, *to), empty when there is none. */
static void pick(const struct gr_segment *segment, const struct gr_block *b, size_t want, size_t *from,
                 size_t *to) {
    const struct gr_range *range = &segment->range;
    size_t low;
    whole_extents(segment, b, &low, to);
    for (*from = *to; *from > low && (*to - *from) * range->granule < want;)
        *from = range->slot[*from - 1]->slot;
}

static size_t idle_bytes(const struct gr_pool *pool, const struct gr_block *b, size_t want) {
    const struct gr_segment *segment = gr_pool_segment_of(pool, b->addr);
    if (segment->kind == GR_SEGMENT_CLASSIC) return b->size == segment->size ? b->size : 0;
    size_t from, to;
    pick(segment, b, want, &from, &to);
    return (to - from) * segment->range.granule;
}

/* The smallest block that can be, or cover, a piece of idle memory. */
static struct gr_block *first_block(const struct gr_pool *pool) {
    size_t least = GR_SIZING_SMALL_SEGMENT;
    if (pool->expandable && pool->segment_count > 0) least = pool->segments[0]->range.granule;
    if (pool->no_split)
        least = GR_SIZING_UNIT; /* blocks that are never cut are segments of their own, of any size */
    return gr_index_find(&pool->free, least);
}

/* The smallest block that has want idle bytes, else the one that has most. */
static struct gr_block *choose(const struct gr_pool *pool, size_t want, uint32_t epoch) {
    struct gr_block *most = NULL;
    size_t most_bytes = 0;
    for (struct gr_block *b = first_block(pool); b; b = gr_index_next(&pool->free, b)) {
        if (b->epoch > epoch) continue;
        size_t bytes = idle_bytes(pool, b, want);
        if (bytes > most_bytes) {
            most = b;
            most_bytes = bytes;
        }
        if (most_bytes >= want) break;
    }
    return most;
}

/* Makes the idle memory of a block MOVING. The slab has a reserve of three. */
static void claim(struct gr_pool *pool, struct gr_block *b, size_t want, struct gr_idle *out) {
    struct gr_segment *segment = gr_pool_segment_of(pool, b->addr);
    pool->taken = NULL;
    gr_index_remove(&pool->free, b);
    if (segment->kind == GR_SEGMENT_EXPANDABLE) {
        size_t from, to;
        pick(segment, b, want, &from, &to);
        gr_addr low = gr_range_addr_of(&segment->range, from), high = gr_range_addr_of(&segment->range, to);
        if (gr_block_end(b) > high)
            gr_index_insert(&pool->free, gr_block_split(&pool->blocks, b, (size_t)(high - b->addr)));
        if (b->addr < low) {
            struct gr_block *left = b;
            b = gr_block_split(&pool->blocks, left, (size_t)(low - left->addr));
            gr_index_insert(&pool->free, left);
        }
    }
    gr_block_become(b, GR_BLOCK_MOVING);
    *out = (struct gr_idle){.segment = segment, .block = b, .bytes = b->size, .epoch = b->epoch};
    /* Taken now: hits may use up what the slab has until the claim ends. */
    if (segment->kind == GR_SEGMENT_EXPANDABLE) out->spare = gr_slab_take(&pool->blocks);
}

bool gr_idle_claim(struct gr_pool *pool, size_t want, uint32_t epoch, struct gr_idle *out) {
    if (!gr_slab_reserve(&pool->blocks, 3)) return false; /* two edges, and the spare */
    gr_pool_settle(pool);
    struct gr_block *b = choose(pool, want, epoch);
    if (b) claim(pool, b, want, out);
    return b != NULL;
}

static uint32_t age_of(const struct gr_block *b, uint32_t clock) {
    return clock - b->freed; /* also when the clock has gone round */
}

void gr_idle_ages(struct gr_pool *pool, uint32_t clock, uint32_t epoch, struct gr_idle_ages *out) {
    gr_pool_settle(pool);
    for (struct gr_block *b = first_block(pool); b; b = gr_index_next(&pool->free, b)) {
        if (idle_bytes(pool, b, 1) == 0) continue;
        if (b->epoch > out->newest) out->newest = b->epoch;
        if (b->epoch > epoch) continue;
        out->sum += age_of(b, clock);
        out->count++;
    }
}

bool gr_idle_claim_old(struct gr_pool *pool, uint32_t clock, uint64_t age, size_t want, uint32_t epoch,
                       struct gr_idle *out) {
    if (!gr_slab_reserve(&pool->blocks, 3)) return false;
    gr_pool_settle(pool);
    for (struct gr_block *b = first_block(pool); b; b = gr_index_next(&pool->free, b)) {
        if (b->epoch > epoch || age_of(b, clock) < age || idle_bytes(pool, b, 1) == 0) continue;
        claim(pool, b, want, out);
        return true;
    }
    return false;
}

size_t gr_idle_total(struct gr_pool *pool, size_t enough) {
    gr_pool_settle(pool);
    size_t sum = 0;
    for (struct gr_block *b = first_block(pool); b && sum < enough; b = gr_index_next(&pool->free, b))
        sum += idle_bytes(pool, b, SIZE_MAX);
    return sum;
}

void gr_idle_finish(struct gr_pool *pool, struct gr_idle *idle) {
    struct gr_block *b = idle->block;
    const struct gr_range *range = &idle->segment->range;
    if (idle->segment->kind == GR_SEGMENT_CLASSIC) {
        gr_pool_put(pool, b);
        return;
    }
    gr_slab_give(&pool->blocks, idle->spare);
    size_t from = gr_range_slot_of(range, b->addr), to = gr_range_slot_of(range, gr_block_end(b) - 1) + 1;
    size_t gone = from; /* extents are unmapped from the left */
    while (gone < to && !range->slot[gone]) gone++;
    if (gone == from) {
        gr_pool_put(pool, b);
        return;
    }
    struct gr_block *rest =
        gone < to ? gr_block_split(&pool->blocks, b, (size_t)(gr_range_addr_of(range, gone) - b->addr))
                  : NULL;
    gr_pool_put_hole(pool, b);
    if (rest) gr_pool_put(pool, rest);
}
