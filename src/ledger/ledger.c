/* SPDX-License-Identifier: Apache-2.0
 * The ledger: settling the peaks of blocks, the figures of memory, reading both. */
#include "ledger/ledger.h"

#include <pthread.h>
#include <string.h>

#include "base/host.h"

static struct gr_tally *tally_of(struct gr_list *link) {
    return GR_CONTAINER(link, struct gr_tally, link);
}

void gr_ledger_init(struct gr_ledger *ledger) {
    memset(ledger, 0, sizeof(*ledger));
    gr_lock_init(&ledger->lock, GR_RANK_LEDGER);
    gr_list_init(&ledger->tallies);
}

void gr_ledger_fini(struct gr_ledger *ledger) {
    gr_history_free(ledger->history);
}

void gr_ledger_add(struct gr_ledger *ledger, struct gr_tally *tally, enum gr_class class,
                   struct gr_lock *guard) {
    memset(tally, 0, sizeof(*tally));
    tally->guard = guard;
    tally->class = class;
    gr_lock_take(&ledger->lock);
    tally->history = atomic_load_explicit(&ledger->watching, memory_order_relaxed);
    gr_list_append(&ledger->tallies, &tally->link);
    gr_lock_give(&ledger->lock);
}

void gr_ledger_remove(struct gr_ledger *ledger, struct gr_tally *tally) {
    gr_lock_take(&ledger->lock);
    for (int f = 0; f < GR_FIGURES; f++) {
        int64_t up = gr_tally_up(tally, (enum gr_figure)f);
        ledger->gone_up[tally->class][f] += up;
        ledger->gone_down[tally->class][f] += up - gr_tally_now(tally, (enum gr_figure)f);
    }
    gr_list_remove(&tally->link);
    gr_lock_give(&ledger->lock);
}

/* ---- stopping all pools ------------------------------------------------------------------- */

void gr_ledger_stop(struct gr_ledger *ledger) {
    gr_lock_take(&ledger->lock);
    GR_LIST_FOR(link, &ledger->tallies) gr_lock_take(tally_of(link)->guard);
}

void gr_ledger_go(struct gr_ledger *ledger) {
    GR_LIST_FOR(link, &ledger->tallies) gr_lock_give(tally_of(link)->guard);
    gr_lock_give(&ledger->lock);
}

static void sum_up(const struct gr_ledger *ledger, int64_t sum[GR_SUMS][GR_FIGURES], int64_t pools[GR_SUMS]) {
    memset(sum, 0, sizeof(int64_t) * GR_SUMS * GR_FIGURES);
    memset(pools, 0, sizeof(int64_t) * GR_SUMS);
    GR_LIST_FOR(link, &ledger->tallies) {
        const struct gr_tally *tally = tally_of(link);
        pools[tally->class]++;
        pools[GR_ALL]++;
        for (int f = 0; f < GR_FIGURES; f++) {
            sum[tally->class][f] += gr_tally_now(tally, f);
            sum[GR_ALL][f] += gr_tally_now(tally, f);
        }
    }
}

/* Raises the peaks to the sums and shares the room between them out; true when a peak rose. All pools
 * are stopped. */
static bool share_room(struct gr_ledger *ledger, const struct gr_tally *hungry) {
    int64_t sum[GR_SUMS][GR_FIGURES], pools[GR_SUMS];
    bool raised = false;
    sum_up(ledger, sum, pools);
    /* A power of two at least twice as large: this runs often enough for a division to be felt. */
    const unsigned shift = gr_log2(2 * (uint64_t)pools[GR_ALL] - 1) + 1;
    for (int s = 0; s < GR_SUMS; s++)
        for (int f = 0; f < GR_FIGURES; f++)
            if (ledger->peak[s][f] < sum[s][f]) {
                ledger->peak[s][f] = sum[s][f];
                raised = true;
            }
    GR_LIST_FOR(link, &ledger->tallies) {
        struct gr_tally *tally = tally_of(link);
        for (int f = 0; f < GR_FIGURES; f++) {
            int64_t of_class = ledger->peak[tally->class][f] - sum[tally->class][f];
            int64_t of_all = ledger->peak[GR_ALL][f] - sum[GR_ALL][f];
            int64_t room = of_class < of_all ? of_class : of_all;
            /* One half to the hungry tally, the other at most to the rest in equal parts. */
            int64_t part = tally == hungry ? room - (room >> 1) : room >> shift;
            tally->ceiling[f] += part - tally->left[f];
            tally->left[f] = part;
        }
    }
    return raised;
}

void gr_ledger_settle(struct gr_ledger *ledger, struct gr_tally *hungry) {
    enum { MOST_PASSES = 4095 };
    const uintptr_t self = (uintptr_t)pthread_self();
    bool alone = atomic_load_explicit(&ledger->settler, memory_order_relaxed) == self;
    if (hungry && !alone) {
        unsigned passes = atomic_load_explicit(&hungry->passes, memory_order_relaxed);
        if (passes > 0) {
            atomic_store_explicit(&hungry->passes, passes - 1, memory_order_relaxed);
            return;
        }
    }
    gr_ledger_stop(ledger);
    ledger->settled++;
    bool raised = share_room(ledger, hungry);
    if (hungry) {
        hungry->patience = raised || alone ? 0 : (unsigned)gr_min(hungry->patience * 2 + 1, MOST_PASSES);
        atomic_store_explicit(&hungry->passes, hungry->patience, memory_order_relaxed);
        atomic_store_explicit(&ledger->settler, self, memory_order_relaxed);
    }
    gr_ledger_go(ledger);
}

/* ---- figures of memory -------------------------------------------------------------------- */

static int64_t memory_now(const struct gr_ledger *ledger, int sum, int figure) {
    int64_t now = 0;
    for (int c = 0; c < GR_CLASSES; c++)
        if (sum == c || sum == GR_ALL) now += ledger->memory_up[c][figure] - ledger->memory_down[c][figure];
    return now;
}

static void memory_add(struct gr_ledger *ledger, enum gr_class class, enum gr_memory_figure figure,
                       size_t amount) {
    ledger->memory_up[class][figure] += (int64_t)amount;
    for (int s = 0; s < GR_SUMS; s++) {
        int64_t now = memory_now(ledger, s, figure);
        if (ledger->memory_peak[s][figure] < now) ledger->memory_peak[s][figure] = now;
    }
}

void gr_ledger_miss(struct gr_ledger *ledger) {
    ledger->misses++;
}

/* The miss lock is held, which keeps the history where it is. */
static void tell(struct gr_ledger *ledger, enum gr_action action, const struct gr_tally *pool, uint64_t addr,
                 size_t size, uint32_t label) {
    struct gr_history *history = atomic_load_explicit(&ledger->watching, memory_order_relaxed);
    if (history) gr_history_tell(history, action, &pool->place, addr, size, label);
}

void gr_ledger_out_of_memory(struct gr_ledger *ledger, const struct gr_tally *pool, size_t rounded,
                             size_t device_free) {
    ledger->out_of_memory++;
    tell(ledger, GR_OOM, pool, device_free, rounded, 0);
}

void gr_ledger_map(struct gr_ledger *ledger, const struct gr_tally *pool, uint64_t addr, size_t bytes) {
    ledger->maps++;
    memory_add(ledger, pool->class, GR_RESERVED_BYTES, bytes);
    tell(ledger, GR_SEGMENT_MAP, pool, addr, bytes, 0);
}

void gr_ledger_unmap(struct gr_ledger *ledger, const struct gr_tally *pool, uint64_t addr, size_t bytes) {
    ledger->unmaps++;
    ledger->memory_down[pool->class][GR_RESERVED_BYTES] += (int64_t)bytes;
    tell(ledger, GR_SEGMENT_UNMAP, pool, addr, bytes, 0);
}

void gr_ledger_segment_alloc(struct gr_ledger *ledger, const struct gr_tally *pool, uint64_t addr,
                             size_t bytes, uint32_t *label) {
    memory_add(ledger, pool->class, GR_RESERVED_BYTES, bytes);
    memory_add(ledger, pool->class, GR_SEGMENTS, 1);
    *label = pool->history ? gr_history_label(pool->history) : 0;
    tell(ledger, GR_SEGMENT_ALLOC, pool, addr, bytes, *label);
}

void gr_ledger_segment_free(struct gr_ledger *ledger, const struct gr_tally *pool, uint64_t addr,
                            size_t bytes, uint32_t label) {
    ledger->memory_down[pool->class][GR_RESERVED_BYTES] += (int64_t)bytes;
    ledger->memory_down[pool->class][GR_SEGMENTS] += 1;
    tell(ledger, GR_SEGMENT_FREE, pool, addr, bytes, label);
}

void gr_ledger_moving(struct gr_ledger *ledger, uint64_t ns) {
    ledger->moving_ns += (int64_t)ns;
}

void gr_ledger_move(struct gr_ledger *ledger, const struct gr_tally *pool, size_t bytes) {
    ledger->moved_extents++;
    ledger->moved_bytes += (int64_t)bytes;
    tell(ledger, GR_MOVE, pool, 0, bytes, 0);
}

/* ---- history ------------------------------------------------------------------------------ */

static const struct gr_tally nowhere; /* for what concerns no pool */

void gr_ledger_snapshot(struct gr_ledger *ledger, size_t active) {
    tell(ledger, GR_SNAPSHOT, &nowhere, 0, active, 0);
}

int gr_ledger_annotate(struct gr_ledger *ledger, bool start, const char *name) {
    struct gr_history *history = atomic_load_explicit(&ledger->watching, memory_order_relaxed);
    if (!history) return GRANARY_OK;
    uint32_t number = gr_stacks_text(&history->stacks, name);
    if (!number && name[0]) return GRANARY_HOST_MEMORY;
    gr_history_annotate(history, start ? GR_ANNOTATE_START : GR_ANNOTATE_END, number);
    return GRANARY_OK;
}

int gr_ledger_watch(struct gr_ledger *ledger, int level, int sources, uint64_t room,
                    struct gr_history **fresh) {
    if (level == GRANARY_HISTORY_OFF && !ledger->history) return GRANARY_OK;
    struct gr_history *history = ledger->history ? ledger->history : *fresh;
    bool exchange = room != history->room;
    struct gr_slot *ring = exchange && room > 0 ? gr_host_take(room, sizeof(*ring), sizeof(void *)) : NULL;
    if (exchange && room > 0 && !ring) return GRANARY_HOST_MEMORY;
    if (history == *fresh) *fresh = NULL;
    ledger->history = history;
    atomic_store(&history->sources, sources);
    gr_ledger_stop(ledger);
    if (exchange) ring = gr_history_exchange(history, ring, room);
    atomic_store(&history->level, level);
    struct gr_history *watching = level != GRANARY_HISTORY_OFF ? history : NULL;
    atomic_store_explicit(&ledger->watching, watching, memory_order_release);
    GR_LIST_FOR(link, &ledger->tallies) tally_of(link)->history = watching;
    gr_ledger_go(ledger);
    gr_host_give(ring);
    return GRANARY_OK;
}

void gr_ledger_forget(struct gr_ledger *ledger) {
    gr_ledger_stop(ledger);
    if (ledger->history) gr_history_clear(ledger->history);
    gr_ledger_go(ledger);
}

void gr_ledger_collect(struct gr_ledger *ledger, size_t bytes) {
    ledger->collected_bytes += (int64_t)bytes;
}

/* ---- reading ------------------------------------------------------------------------------ */

size_t gr_ledger_reserved(const struct gr_ledger *ledger) {
    return (size_t)memory_now(ledger, GR_ALL, GR_RESERVED_BYTES);
}

size_t gr_ledger_active(struct gr_ledger *ledger, size_t *now) {
    int64_t sum[GR_SUMS][GR_FIGURES], pools[GR_SUMS];
    gr_ledger_stop(ledger);
    sum_up(ledger, sum, pools);
    int64_t peak = ledger->peak[GR_ALL][GR_ACTIVE_BYTES];
    gr_ledger_go(ledger);
    *now = (size_t)sum[GR_ALL][GR_ACTIVE_BYTES];
    return gr_max((size_t)peak, *now);
}

static struct granary_stat *part_of(struct granary_stat_by_class *stat, int sum) {
    return sum == GR_ALL ? &stat->all : sum == GR_SMALL ? &stat->small : &stat->large;
}

static void read_blocks(const struct gr_ledger *ledger, int sum, int figure, struct granary_stat *out) {
    *out = (struct granary_stat){.peak = ledger->peak[sum][figure]};
    for (int c = 0; c < GR_CLASSES; c++) {
        if (sum != c && sum != GR_ALL) continue;
        out->total_up += ledger->gone_up[c][figure];
        out->total_down += ledger->gone_down[c][figure];
    }
    GR_LIST_FOR(link, &ledger->tallies) {
        const struct gr_tally *tally = tally_of(link);
        if (sum != (int)tally->class && sum != GR_ALL) continue;
        int64_t up = gr_tally_up(tally, (enum gr_figure)figure);
        out->total_up += up;
        out->total_down += up - gr_tally_now(tally, (enum gr_figure)figure);
    }
    out->current = out->total_up - out->total_down;
}

static void read_memory(const struct gr_ledger *ledger, int sum, int figure, struct granary_stat *out) {
    *out = (struct granary_stat){.peak = ledger->memory_peak[sum][figure]};
    for (int c = 0; c < GR_CLASSES; c++) {
        if (sum != c && sum != GR_ALL) continue;
        out->total_up += ledger->memory_up[c][figure];
        out->total_down += ledger->memory_down[c][figure];
    }
    out->current = out->total_up - out->total_down;
}

void gr_ledger_look(struct gr_ledger *ledger, struct granary_stats *out) {
    struct granary_stat_by_class *of_blocks[GR_FIGURES] = {
        [GR_ALLOCATED_BYTES] = &out->allocated_bytes, [GR_ACTIVE_BYTES] = &out->active_bytes,
        [GR_REQUESTED_BYTES] = &out->requested_bytes, [GR_ALLOCATIONS] = &out->allocations,
        [GR_ACTIVE_BLOCKS] = &out->active_blocks,
    };
    struct granary_stat_by_class *of_memory[GR_MEMORY_FIGURES] = {
        [GR_RESERVED_BYTES] = &out->reserved_bytes, [GR_SEGMENTS] = &out->segments};
    share_room(ledger, NULL); /* a rise that has not settled yet counts */
    for (int s = 0; s < GR_SUMS; s++) {
        for (int f = 0; f < GR_FIGURES; f++) read_blocks(ledger, s, f, part_of(of_blocks[f], s));
        for (int f = 0; f < GR_MEMORY_FIGURES; f++) read_memory(ledger, s, f, part_of(of_memory[f], s));
    }
    out->misses = ledger->misses;
    out->out_of_memory = ledger->out_of_memory;
    out->moved_extents = ledger->moved_extents;
    out->moved_bytes = ledger->moved_bytes;
    out->moving_ns = ledger->moving_ns;
    out->maps = ledger->maps;
    out->unmaps = ledger->unmaps;
    out->collected_bytes = ledger->collected_bytes;
}

void gr_ledger_read(struct gr_ledger *ledger, struct granary_stats *out) {
    gr_ledger_stop(ledger);
    gr_ledger_look(ledger, out);
    gr_ledger_go(ledger);
}

void gr_ledger_reset_peaks(struct gr_ledger *ledger) {
    gr_ledger_stop(ledger);
    memset(ledger->peak, 0, sizeof(ledger->peak));
    share_room(ledger, NULL);
    gr_ledger_go(ledger);
    for (int s = 0; s < GR_SUMS; s++)
        for (int f = 0; f < GR_MEMORY_FIGURES; f++) ledger->memory_peak[s][f] = memory_now(ledger, s, f);
}

/* Looked at before the room is shared out again, which would hide it. */
static bool ceilings_hold(const struct gr_ledger *ledger) {
    int64_t sum[GR_SUMS][GR_FIGURES] = {{0}};
    GR_LIST_FOR(link, &ledger->tallies) {
        const struct gr_tally *tally = tally_of(link);
        for (int f = 0; f < GR_FIGURES; f++) {
            sum[tally->class][f] += tally->ceiling[f];
            sum[GR_ALL][f] += tally->ceiling[f];
        }
    }
    for (int s = 0; s < GR_SUMS; s++)
        for (int f = 0; f < GR_FIGURES; f++)
            if (sum[s][f] > ledger->peak[s][f]) return false;
    return true;
}

static const char *check_tallies(const struct gr_ledger *ledger) {
    GR_LIST_FOR(link, &ledger->tallies) {
        const struct gr_tally *tally = tally_of(link);
        for (int f = 0; f < GR_FIGURES; f++)
            if (gr_tally_now(tally, f) < 0 || gr_tally_now(tally, f) > tally->ceiling[f]) return "G1";
        if (gr_tally_now(tally, GR_ALLOCATED_BYTES) > gr_tally_now(tally, GR_ACTIVE_BYTES)) return "G3";
        if (gr_tally_now(tally, GR_REQUESTED_BYTES) > gr_tally_now(tally, GR_ACTIVE_BYTES)) return "G3";
    }
    return NULL;
}

const char *gr_ledger_check(struct gr_ledger *ledger) {
    gr_ledger_stop(ledger);
    const char *broken = ceilings_hold(ledger) ? NULL : "G2";
    share_room(ledger, NULL); /* a rise that has not settled yet is no fault */
    if (!broken) broken = check_tallies(ledger);
    gr_ledger_go(ledger);
    return broken;
}
