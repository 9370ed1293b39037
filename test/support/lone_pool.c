/* SPDX-License-Identifier: Apache-2.0
 * A pool without a heap. */
#include "support/lone_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fixture.h"

void lone_pool_open(struct lone_pool *lone, enum gr_class class, bool expandable) {
    struct granary_options options;
    char reason[GR_REASON_ROOM];
    fixture_open_sim(NULL, &options);
    *lone = (struct lone_pool){.sizing = {.max_split_size = 0}};
    gr_sizing_set(&lone->sizing, &options);
    ck_assert_int_eq(gr_driver_open(&lone->driver, true, 0, false, reason), GRANARY_OK);
    gr_extents_init(&lone->extents, &lone->driver, 0);
    gr_ledger_init(&lone->ledger);
    gr_stream_init(&lone->stream, GR_CU_STREAM_LEGACY);
    memset(&lone->pool, 0, sizeof lone->pool);
    gr_ledger_add(&lone->ledger, &lone->account, class == GR_SMALL ? &lone->pool.tally : &lone->other,
                  class == GR_SMALL ? &lone->other : &lone->pool.tally);
    gr_pool_init(&lone->pool, class, &lone->sizing);
    gr_pool_assign(&lone->pool, &lone->stream, NULL, 0, expandable, false);
}

static void close_segment(struct lone_pool *lone, struct gr_segment *segment) {
    for (size_t s = 0; segment->kind == GR_SEGMENT_EXPANDABLE && segment->range.mapped > 0; s++) {
        struct gr_extent *extent = segment->range.slot[s];
        if (extent == NULL) continue;
        ck_assert_int_eq(gr_range_unmap(&segment->range, &lone->driver, extent), GRANARY_OK);
        gr_extents_release(&lone->extents, extent);
    }
    gr_pool_remove_segment(&lone->pool, segment);
    for (struct gr_block *b = segment->first, *next; b; b = next) {
        next = b->next;
        gr_slab_give(&lone->pool.blocks, b);
    }
    gr_segment_close(segment, &lone->driver);
    free(segment);
}

void lone_pool_close(struct lone_pool *lone) {
    while (lone->pool.segment_count > 0) close_segment(lone, lone->pool.segments[0]);
    gr_ledger_remove(&lone->ledger, &lone->account);
    gr_pool_fini(&lone->pool);
    gr_stream_fini(&lone->stream, &lone->driver);
    gr_extents_flush(&lone->extents, 0);
    gr_extents_fini(&lone->extents);
    gr_driver_close(&lone->driver);
    fixture_close_sim();
}

static struct gr_segment *new_segment(struct lone_pool *lone) {
    struct gr_segment *segment = calloc(1, sizeof *segment);
    ck_assert_ptr_nonnull(segment);
    ck_assert(gr_pool_reserve_segment(&lone->pool) && gr_slab_reserve(&lone->pool.blocks, 2));
    return segment;
}

struct gr_segment *lone_pool_add_range(struct lone_pool *lone, size_t granules) {
    struct gr_segment *segment = new_segment(lone);
    size_t bytes = granules * lone->extents.granule;
    ck_assert_int_eq(
        gr_segment_open_expandable(segment, &lone->driver, gr_slab_take(&lone->pool.blocks), bytes, bytes),
        GRANARY_OK);
    gr_pool_add_segment(&lone->pool, segment);
    return segment;
}

struct gr_segment *lone_pool_add_classic(struct lone_pool *lone, size_t bytes) {
    struct gr_segment *segment = new_segment(lone);
    ck_assert_int_eq(gr_segment_open_classic(segment, &lone->driver, gr_slab_take(&lone->pool.blocks), bytes),
                     GRANARY_OK);
    gr_pool_add_segment(&lone->pool, segment);
    gr_pool_put(&lone->pool, segment->first);
    return segment;
}

void lone_pool_back(struct lone_pool *lone, struct gr_growth *growth, size_t piece) {
    struct gr_range *range = &growth->segment->range;
    for (struct gr_block *b = gr_grow_next(growth, NULL); b; b = gr_grow_next(growth, b)) {
        size_t need = b->size / range->granule, total = need;
        struct gr_list loose;
        gr_list_init(&loose);
        for (; need > 0; need -= gr_min(need, piece)) {
            struct gr_extent *extent;
            ck_assert(gr_extents_reserve(&lone->extents, 1));
            ck_assert_int_eq(gr_extents_get(&lone->extents, gr_min(need, piece), &extent), GRANARY_OK);
            gr_list_append(&loose, &extent->link);
        }
        ck_assert_int_eq(gr_range_map(range, &lone->driver, gr_range_slot_of(range, b->addr), total, &loose),
                         GRANARY_OK);
    }
}

struct gr_block *lone_pool_take(struct lone_pool *lone, size_t size, size_t piece) {
    size_t rounded;
    struct gr_block *b;
    ck_assert(gr_sizing_round(&lone->sizing, size, &rounded));
    if (gr_pool_take(&lone->pool, rounded, size, false, &b) != GRANARY_OK) {
        struct gr_growth growth;
        ck_assert_int_eq(gr_grow_plan(&lone->pool, rounded, &growth), GRANARY_OK);
        lone_pool_back(lone, &growth, piece);
        gr_grow_finish(&lone->pool, &growth);
        ck_assert_int_eq(gr_pool_take(&lone->pool, rounded, size, false, &b), GRANARY_OK);
    }
    if (gr_ledger_alloc(&lone->pool.tally, b->addr, b->size, size, &b->label))
        gr_ledger_settle(&lone->ledger, &lone->pool.tally);
    return b;
}

void lone_pool_put(struct lone_pool *lone, struct gr_block *b) {
    gr_live_remove(&lone->pool.live, gr_live_link(&lone->pool.live, b->addr));
    gr_ledger_free(&lone->pool.tally, b->addr, b->size, b->u.live.requested, 0);
    gr_block_since(b, gr_stream_epoch(&lone->stream), 0);
    gr_pool_put(&lone->pool, b);
}

void lone_pool_evict(struct lone_pool *lone, size_t want) {
    struct gr_idle idle;
    if (!gr_idle_claim(&lone->pool, want, UINT32_MAX, &idle)) return;
    struct gr_range *range = &idle.segment->range;
    size_t slot = gr_range_slot_of(range, idle.block->addr), end = slot + idle.bytes / range->granule;
    while (slot < end) {
        struct gr_extent *extent = range->slot[slot];
        slot += extent->granules;
        ck_assert_int_eq(gr_range_unmap(range, &lone->driver, extent), GRANARY_OK);
        gr_extents_release(&lone->extents, extent);
    }
    gr_idle_finish(&lone->pool, &idle);
}

void lone_pool_hand_on(struct lone_pool *lone, bool expandable, bool no_split) {
    while (gr_idle_total(&lone->pool, 1) > 0) lone_pool_evict(lone, SIZE_MAX);
    while (lone->pool.segment_count > 0) close_segment(lone, lone->pool.segments[0]);
    ck_assert(lone->pool.free.summary == 0 && lone->pool.holes.summary == 0);
    gr_pool_assign(&lone->pool, &lone->stream, NULL, 0, expandable, no_split);
}

const char *lone_pool_check(struct lone_pool *lone) {
    return gr_pool_check(&lone->pool, false);
}

const char *lone_pool_tiles(const struct gr_segment *segment) {
    static char words[512];
    size_t granule = segment->kind == GR_SEGMENT_EXPANDABLE ? segment->range.granule : 2 * GR_MIB, used = 0;
    words[0] = '\0';
    for (const struct gr_block *b = segment->first; b && used < sizeof words; b = b->next) {
        bool whole = b->size % granule == 0;
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%c%zu", b->prev ? " " : "",
                                 (whole ? "?LFPHM" : "?lfphm")[b->state],
                                 whole ? (size_t)b->size / granule : (size_t)b->size);
    }
    return words;
}
