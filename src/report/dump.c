/* SPDX-License-Identifier: Apache-2.0
 * A dump: copying everything at one moment. */
#include "report/dump.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/text.h"

/* ---- blocks and segments ---------------------------------------------------------------------- */

/* Tiles of all pools. Everything is stopped, or the sum is a guess. */
static size_t count_tiles(granary *g, bool stopped) {
    size_t sum = 0;
    GR_HEAP_FOR(heap, g)
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++) {
                struct gr_pool *pool = gr_heap_pool(route, c);
                if (!pool) continue;
                if (!stopped) gr_pool_lock(pool);
                sum += gr_slab_taken(&pool->blocks);
                if (!stopped) gr_pool_unlock(pool);
            }
    return sum;
}

static void add_block(struct gr_dump *dump, struct gr_dump_segment *segment, const struct gr_block *b) {
    bool active = b->state == GR_BLOCK_LIVE || b->state == GR_BLOCK_PENDING;
    struct gr_dump_block *last = segment->count ? &dump->blocks[dump->block_count - 1] : NULL;
    segment->size += b->size;
    if (last && !active && last->state == GR_BLOCK_FREE) { /* the recent block is not joined yet */
        last->size += b->size;
        return;
    }
    dump->blocks[dump->block_count++] = (struct gr_dump_block){
        .addr = b->addr,
        .size = b->size,
        .requested = active ? b->u.live.requested : 0,
        .label = active ? b->label : 0,
        .state = active ? (enum gr_block_state)b->state : GR_BLOCK_FREE,
    };
    segment->count++;
}

/* The runs of mapped memory of a segment, each with its blocks. */
static void add_segment(struct gr_dump *dump, const struct gr_pool *pool, const struct gr_segment *segment) {
    struct gr_dump_segment *run = NULL;
    for (const struct gr_block *b = segment->first; b; b = b->next) {
        if (b->state == GR_BLOCK_HOLE) {
            run = NULL;
            continue;
        }
        if (!run) {
            run = &dump->segments[dump->segment_count++];
            *run = (struct gr_dump_segment){.addr = b->addr,
                                            .place = pool->tally.place,
                                            .class = pool->class,
                                            .expandable = segment->kind == GR_SEGMENT_EXPANDABLE,
                                            .label = segment->label,
                                            .first = dump->block_count};
        }
        add_block(dump, run, b);
    }
}

static void copy_pools(granary *g, struct gr_dump *dump) {
    GR_HEAP_FOR(heap, g)
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++) {
                const struct gr_pool *pool = gr_heap_pool(route, c);
                for (size_t s = 0; pool && s < pool->segment_count; s++)
                    add_segment(dump, pool, pool->segments[s]);
            }
}

/* Makes room for what there is and stops everything; under the miss lock. */
static int reserve_and_stop(granary *g, struct gr_dump *dump) {
    for (size_t needed = count_tiles(g, false);;) {
        size_t room = needed + needed / 8 + 256; /* hits go on meanwhile */
        gr_host_give(dump->blocks);
        gr_host_give(dump->segments);
        dump->blocks = gr_host_take(room, sizeof(*dump->blocks), sizeof(void *));
        dump->segments = gr_host_take(room, sizeof(*dump->segments), sizeof(void *));
        if (!dump->blocks || !dump->segments) return GRANARY_HOST_MEMORY;
        gr_ledger_stop(&g->ledger);
        needed = count_tiles(g, true);
        if (needed <= room) return GRANARY_OK;
        gr_ledger_go(&g->ledger);
    }
}

static int by_address(const void *left, const void *right) {
    gr_addr a = ((const struct gr_dump_segment *)left)->addr,
            b = ((const struct gr_dump_segment *)right)->addr;
    return (a > b) - (a < b);
}

/* ---- history ---------------------------------------------------------------------------------- */

/* Under the dump lock; pools may go on, then kept and recorded are of about now. */
static void read_history(const granary *g, struct granary_history *out) {
    const struct gr_history *history = g->ledger.history;
    *out = (struct granary_history){.struct_size = sizeof(*out)};
    if (!history) return;
    const struct gr_stacks *stacks = &history->stacks;
    const struct gr_span span = gr_history_span(history);
    out->level = atomic_load(&history->level);
    out->stacks = atomic_load(&history->sources);
    out->entries = (int64_t)history->ring.room;
    out->recorded = (int64_t)(span.to - history->cleared);
    out->kept = (int64_t)(span.to - span.from);
    out->dropped = out->recorded - out->kept;
    out->distinct_stacks = atomic_load(&stacks->stacks.count);
    out->stacks_lost = (int64_t)atomic_load(&stacks->lost);
    out->host_bytes = (int64_t)(sizeof(*history) + history->ring.room * GR_RING_ENTRY +
                                atomic_load(&history->places.bytes) + atomic_load(&stacks->stacks.bytes) +
                                atomic_load(&stacks->tags.bytes) + atomic_load(&stacks->texts.bytes) +
                                atomic_load(&stacks->places.bytes) +
                                atomic_load(&stacks->python_frames.bytes));
    gr_text_put(out->unwinder, sizeof(out->unwinder), "%s", stacks->unwind.name);
    out->python = stacks->python.found;
}

void gr_dump_read_history(granary *g, struct granary_history *out) {
    gr_lock_take(&g->dump);
    read_history(g, out);
    gr_lock_give(&g->dump);
}

/* What calls are to do for the history; NULL: none is kept. Under the miss lock. */
static void set_watching(granary *g, const struct gr_history *history) {
    unsigned bits = 0;
    if (history) bits |= GR_WATCHED;
    if (history && gr_history_sources(history, false)) bits |= GR_NOTED_ALLOC;
    if (history && gr_history_sources(history, true)) bits |= GR_NOTED_FREE;
    atomic_fetch_or(&g->routing, bits);
    atomic_fetch_and(&g->routing, ~(GR_WATCHING & ~bits));
}

int gr_dump_record(granary *g, int level, int stacks, size_t entries) {
    gr_lock_take(&g->dump);
    bool first = level != GRANARY_HISTORY_OFF && !g->ledger.history;
    gr_lock_give(&g->dump);
    struct gr_history *fresh = first ? gr_history_make() : NULL;
    if (first && !fresh) return GRANARY_HOST_MEMORY;
    gr_lock_take(&g->dump);
    gr_lock_take(&g->miss);
    int status = gr_ledger_watch(&g->ledger, level, stacks, entries, &fresh);
    set_watching(g, atomic_load(&g->ledger.watching));
    gr_lock_give(&g->miss);
    gr_lock_give(&g->dump);
    gr_history_free(fresh); /* another thread was first, or the ring was too large */
    return status;
}

void gr_dump_forget(granary *g) {
    gr_lock_take(&g->dump);
    gr_lock_take(&g->miss);
    gr_ledger_forget(&g->ledger);
    gr_lock_give(&g->miss);
    gr_lock_give(&g->dump);
}

static int copy_events(struct gr_dump *dump, const struct gr_span *span) {
    if (span->from == span->to) return GRANARY_OK;
    dump->events = gr_host_take((size_t)(span->to - span->from), sizeof(*dump->events), sizeof(void *));
    if (!dump->events) return GRANARY_HOST_MEMORY;
    dump->event_count = gr_history_copy(dump->source, span, dump->events);
    dump->history.dropped += dump->history.kept - (int64_t)dump->event_count;
    dump->history.kept = (int64_t)dump->event_count;
    return GRANARY_OK;
}

/* ---- all of it -------------------------------------------------------------------------------- */

static int take(granary *g, bool with_events, struct gr_dump *out) {
    struct gr_span span = {0};
    gr_lock_take(&g->miss);
    int status = reserve_and_stop(g, out);
    if (status == GRANARY_OK) {
        copy_pools(g, out);
        gr_ledger_look(&g->ledger, &out->stats);
        if (with_events) gr_ledger_snapshot(&g->ledger, (size_t)out->stats.active_bytes.all.current);
        read_history(g, &out->history);
        out->source = g->ledger.history;
        if (with_events && out->source) span = gr_history_span(out->source);
        gr_ledger_go(&g->ledger);
        gr_heap_read_rest(g, &out->stats);
        out->settings = g->settings;
        out->limit = g->limit;
        out->expandable = g->expandable;
        memcpy(out->expandable_reason, g->expandable_reason, sizeof(out->expandable_reason));
    }
    gr_lock_give(&g->miss);
    out->time_ns = gr_clock_read(CLOCK_REALTIME);
    return status == GRANARY_OK ? copy_events(out, &span) : status;
}

int gr_dump_take(granary *g, bool with_events, struct gr_dump *out) {
    memset(out, 0, sizeof(*out));
    out->stats.struct_size = sizeof(out->stats);
    gr_heap_complete(g, gr_defer_reap(&g->defer)); /* what is done by now is not pending */
    gr_lock_take(&g->dump);
    int status = take(g, with_events, out);
    gr_lock_give(&g->dump);
    if (status != GRANARY_OK)
        gr_dump_fini(out);
    else
        qsort(out->segments, out->segment_count, sizeof(*out->segments), by_address);
    return status;
}

void gr_dump_fini(struct gr_dump *dump) {
    gr_host_give(dump->segments);
    gr_host_give(dump->blocks);
    gr_host_give(dump->events);
    memset(dump, 0, sizeof(*dump));
}
