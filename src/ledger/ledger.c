/* SPDX-License-Identifier: Apache-2.0
 * The ledger: settling the peaks of blocks, the figures of memory, reading both. */
#include "ledger/ledger.h"

#include <string.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/thread.h"

static struct gr_account *account_of(struct gr_list *link) {
    return GR_CONTAINER(link, struct gr_account, link);
}

void gr_ledger_init(struct gr_ledger *ledger) {
    memset(ledger, 0, sizeof(*ledger));
    gr_lock_init(&ledger->lock, GR_RANK_LEDGER);
    gr_list_init(&ledger->accounts);
}

void gr_ledger_fini(struct gr_ledger *ledger) {
    gr_history_free(ledger->history);
}

void gr_ledger_add(struct gr_ledger *ledger, struct gr_account *account, struct gr_tally *small,
                   struct gr_tally *large) {
    *account = (struct gr_account){.tally = {[GR_SMALL] = small, [GR_LARGE] = large}};
    gr_bias_init(&account->lock, GR_RANK_POOL);
    gr_lock_take(&ledger->lock);
    for (int c = 0; c < GR_CLASSES; c++)
        *account->tally[c] = (struct gr_tally){
            .account = account,
            .history = atomic_load_explicit(&ledger->watching, memory_order_relaxed),
            .class = (enum gr_class)c,
        };
    gr_list_append(&ledger->accounts, &account->link);
    gr_lock_give(&ledger->lock);
}

/* Whom its events are told to. */
static void listen(struct gr_tally *tally, struct gr_history *history) {
    if (history) gr_history_number(history, &tally->place);
    tally->history = history;
    tally->told = history && gr_history_wanted(history) && tally->place.number ? history : NULL;
}

void gr_ledger_place(struct gr_tally *tally, uint64_t stream, uint64_t heap) {
    tally->place = (struct gr_place){.stream = stream, .heap = heap};
    listen(tally, tally->history);
}

static int64_t total_up(const struct gr_tally *tally, int figure) {
    return tally->up[gr_figure_count((enum gr_figure)figure)];
}

void gr_ledger_remove(struct gr_ledger *ledger, struct gr_account *account) {
    gr_lock_take(&ledger->lock);
    for (int c = 0; c < GR_CLASSES; c++)
        for (int f = 0; f < GR_FIGURES; f++) {
            int64_t up = total_up(account->tally[c], f);
            ledger->gone_up[c][f] += up;
            ledger->gone_down[c][f] += up - gr_tally_now(account->tally[c], (enum gr_figure)f);
        }
    gr_list_remove(&account->link);
    gr_lock_give(&ledger->lock);
}

/* ---- frees that wait ---------------------------------------------------------------------- */

/* Room of the active figure changes by so much, and the other gets ahead of it. */
static inline void part(struct gr_room *room, enum gr_count count, int64_t active, int64_t ahead) {
    int64_t before = room->ahead[count], after = before + ahead;
    room->left[count] += active + (after < 0 ? after : 0) - (before < 0 ? before : 0);
    room->ahead[count] = after;
}

static inline void request(struct gr_room *room, int64_t size) {
    part(room, GR_BYTES, 0, size);
    part(room, GR_BLOCKS, 0, 1);
}

static inline void complete(struct gr_room *room, int64_t size, int64_t requested) {
    part(room, GR_BYTES, size, -size);
    part(room, GR_BLOCKS, 1, -1);
    room->left[GR_REQUESTED] += requested;
}

void gr_ledger_free_requested(struct gr_tally *tally, uint64_t addr, size_t size, size_t requested,
                              uint32_t label) {
    if (tally->history)
        gr_history_tell(tally->history, GR_FREE_REQUESTED, &tally->place, addr, requested, label);
    tally->waiting[GR_BYTES] += (int64_t)size;
    tally->waiting[GR_BLOCKS] += 1;
    request(&tally->room, (int64_t)size);
    request(&tally->account->room, (int64_t)size);
}

void gr_ledger_free_completed(struct gr_tally *tally, uint64_t addr, size_t size, size_t requested,
                              uint32_t label) {
    if (tally->history)
        gr_history_tell_of(tally->history, GR_FREE_COMPLETED, &tally->place, addr, requested, label);
    tally->waiting[GR_BYTES] -= (int64_t)size;
    tally->waiting[GR_BLOCKS] -= 1;
    complete(&tally->room, (int64_t)size, (int64_t)requested);
    complete(&tally->account->room, (int64_t)size, (int64_t)requested);
}

/* ---- stopping all pools ------------------------------------------------------------------- */

void gr_ledger_stop(struct gr_ledger *ledger) {
    gr_lock_take(&ledger->lock);
    bool doubtful = false;
    GR_LIST_FOR(link, &ledger->accounts) doubtful |= gr_bias_knock(&account_of(link)->lock);
    if (doubtful) gr_bias_barrier();
    GR_LIST_FOR(link, &ledger->accounts) gr_bias_await(&account_of(link)->lock);
}

void gr_ledger_go(struct gr_ledger *ledger) {
    GR_LIST_FOR(link, &ledger->accounts) gr_bias_give(&account_of(link)->lock);
    gr_lock_give(&ledger->lock);
}

/* Current values of an account. */
static void count(const struct gr_account *account, int64_t now[GR_SUMS][GR_FIGURES]) {
    for (int f = 0; f < GR_FIGURES; f++) {
        now[GR_ALL][f] = 0;
        for (int c = 0; c < GR_CLASSES; c++) {
            now[c][f] = gr_tally_now(account->tally[c], (enum gr_figure)f);
            now[GR_ALL][f] += now[c][f];
        }
    }
}

/* How many accounts there are, and what they add up to. */
static size_t sum_up(const struct gr_ledger *ledger, int64_t sum[GR_SUMS][GR_FIGURES]) {
    int64_t now[GR_SUMS][GR_FIGURES];
    size_t accounts = 0;
    memset(sum, 0, sizeof(now));
    GR_LIST_FOR(link, &ledger->accounts) {
        accounts++;
        count(account_of(link), now);
        for (int s = 0; s < GR_SUMS; s++)
            for (int f = 0; f < GR_FIGURES; f++) sum[s][f] += now[s][f];
    }
    return accounts;
}

static struct gr_room *room_of(struct gr_account *account, int sum) {
    return sum == GR_ALL ? &account->room : &account->tally[sum]->room;
}

/* New ceilings, so far above the current values. */
static void give_room(struct gr_account *account, int sum, const int64_t given[GR_FIGURES]) {
    static const struct {
        enum gr_figure active, allocated;
    } of[GR_COUNTS] = {[GR_BYTES] = {GR_ACTIVE_BYTES, GR_ALLOCATED_BYTES},
                       [GR_BLOCKS] = {GR_ACTIVE_BLOCKS, GR_ALLOCATIONS},
                       [GR_REQUESTED] = {GR_REQUESTED_BYTES, GR_REQUESTED_BYTES}};
    struct gr_room *room = room_of(account, sum);
    for (int n = 0; n < GR_COUNTS; n++) {
        int64_t active = given[of[n].active], allocated = given[of[n].allocated];
        if (sum != GR_ALL) account->tally[sum]->ceiling[n] += active - gr_room_of(room, of[n].active);
        room->left[n] = active < allocated ? active : allocated;
        if (n < GR_TWOFOLD) room->ahead[n] = allocated - active;
    }
}

/* Raises the peaks to the sums and shares the room between them out; true when a peak rose. All pools
 * are stopped. */
static bool share_room(struct gr_ledger *ledger, const struct gr_account *hungry) {
    int64_t sum[GR_SUMS][GR_FIGURES];
    bool raised = false;
    const size_t accounts = sum_up(ledger, sum);
    /* A power of two at least twice as large: this runs often enough for a division to be felt. */
    const unsigned shift = accounts ? gr_log2(2 * accounts - 1) + 1 : 0;
    for (int s = 0; s < GR_SUMS; s++) {
        int64_t rest[GR_FIGURES], each[GR_FIGURES];
        for (int f = 0; f < GR_FIGURES; f++) {
            if (ledger->peak[s][f] < sum[s][f]) {
                ledger->peak[s][f] = sum[s][f];
                raised = true;
            }
            int64_t room = ledger->peak[s][f] - sum[s][f];
            each[f] = room >> shift;
            rest[f] = room - each[f] * ((int64_t)accounts - 1);
        }
        GR_LIST_FOR(link, &ledger->accounts) {
            struct gr_account *account = account_of(link);
            give_room(account, s, account == hungry ? rest : each);
        }
    }
    return raised;
}

/* Passing ends after a millisecond, whatever an account has left of it. The clock is looked at after 0, 1, 2, 4 passes
 * and so on, and then every 64, so that of slow ones no more than two milliseconds go by. */
enum { MOST_PASSES = 65535, LOOK = 64, DUE_NS = 1000000 };
static bool looks(unsigned passed) {
    return (passed & (passed - 1)) == 0 || passed % LOOK == 0;
}
static bool is_due(const struct gr_ledger *ledger) {
    uint64_t settled = atomic_load_explicit(&ledger->settled_ns, memory_order_relaxed);
    return (int64_t)(gr_clock_ns() - settled) >
           DUE_NS; /* another thread may have settled since the clock was read */
}

void gr_ledger_settle(struct gr_ledger *ledger, const struct gr_tally *hungry) {
    const uintptr_t self = gr_thread_token();
    struct gr_account *account = hungry->account;
    bool alone = atomic_load_explicit(&ledger->settler, memory_order_relaxed) == self;
    if (!alone) {
        unsigned passes = atomic_load_explicit(&account->passes, memory_order_relaxed);
        unsigned passed = atomic_load_explicit(&account->patience, memory_order_relaxed) - passes;
        if (passes > 0 && !(looks(passed) && is_due(ledger))) {
            atomic_store_explicit(&account->passes, passes - 1, memory_order_relaxed);
            return;
        }
    }
    gr_ledger_stop(ledger);
    ledger->settled++;
    atomic_store_explicit(&ledger->settled_ns, gr_clock_ns(), memory_order_relaxed);
    bool raised = share_room(ledger, account);
    unsigned patience = atomic_load_explicit(&account->patience, memory_order_relaxed);
    patience = raised || alone ? 0 : (unsigned)gr_min(patience * 2 + 1, MOST_PASSES);
    atomic_store_explicit(&account->patience, patience, memory_order_relaxed);
    atomic_store_explicit(&account->passes, patience, memory_order_relaxed);
    atomic_store_explicit(&ledger->settler, self, memory_order_relaxed);
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
    bool exchange = room != history->ring.room;
    struct gr_ring ring = {0};
    if (exchange && !gr_ring_make(room, &ring)) return GRANARY_HOST_MEMORY;
    if (history == *fresh) *fresh = NULL;
    ledger->history = history;
    atomic_store(&history->sources, sources);
    gr_ledger_stop(ledger);
    if (exchange) gr_history_exchange(history, &ring);
    gr_history_set_level(history, level);
    struct gr_history *watching = level != GRANARY_HISTORY_OFF ? history : NULL;
    atomic_store_explicit(&ledger->watching, watching, memory_order_release);
    GR_LIST_FOR(link, &ledger->accounts)
        for (int c = 0; c < GR_CLASSES; c++) listen(account_of(link)->tally[c], watching);
    gr_ledger_go(ledger);
    gr_ring_free(&ring);
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

size_t gr_ledger_active(struct gr_ledger *ledger, size_t *now, size_t *ever) {
    int64_t sum[GR_SUMS][GR_FIGURES], up = 0;
    gr_ledger_stop(ledger);
    (void)sum_up(ledger, sum);
    int64_t peak = ledger->peak[GR_ALL][GR_ACTIVE_BYTES];
    for (int c = 0; c < GR_CLASSES; c++) {
        up += ledger->gone_up[c][GR_ACTIVE_BYTES];
        GR_LIST_FOR(link, &ledger->accounts) up += account_of(link)->tally[c]->up[GR_BYTES];
    }
    gr_ledger_go(ledger);
    *ever = (size_t)up;
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
        GR_LIST_FOR(link, &ledger->accounts) {
            const struct gr_tally *tally = account_of(link)->tally[c];
            int64_t up = total_up(tally, figure);
            out->total_up += up;
            out->total_down += up - gr_tally_now(tally, (enum gr_figure)figure);
        }
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
    int64_t sum[GR_SUMS][GR_FIGURES] = {{0}}, now[GR_SUMS][GR_FIGURES];
    GR_LIST_FOR(link, &ledger->accounts) {
        count(account_of(link), now);
        for (int s = 0; s < GR_SUMS; s++)
            for (int f = 0; f < GR_FIGURES; f++)
                sum[s][f] += now[s][f] + gr_room_of(room_of(account_of(link), s), (enum gr_figure)f);
    }
    for (int s = 0; s < GR_SUMS; s++)
        for (int f = 0; f < GR_FIGURES; f++)
            if (sum[s][f] > ledger->peak[s][f]) return false;
    return true;
}

static const char *check_accounts(const struct gr_ledger *ledger) {
    int64_t now[GR_SUMS][GR_FIGURES];
    GR_LIST_FOR(link, &ledger->accounts) {
        count(account_of(link), now);
        for (int s = 0; s < GR_SUMS; s++) {
            for (int f = 0; f < GR_FIGURES; f++)
                if (now[s][f] < 0 || gr_room_of(room_of(account_of(link), s), (enum gr_figure)f) < 0)
                    return "G1";
            if (now[s][GR_ALLOCATED_BYTES] > now[s][GR_ACTIVE_BYTES]) return "G3";
            if (now[s][GR_ALLOCATIONS] > now[s][GR_ACTIVE_BLOCKS]) return "G3";
            if (now[s][GR_REQUESTED_BYTES] > now[s][GR_ACTIVE_BYTES]) return "G3";
        }
    }
    return NULL;
}

const char *gr_ledger_check(struct gr_ledger *ledger) {
    gr_ledger_stop(ledger);
    const char *broken = ceilings_hold(ledger) ? NULL : "G2";
    share_room(ledger, NULL); /* a rise that has not settled yet is no fault */
    if (!broken) broken = check_accounts(ledger);
    gr_ledger_go(ledger);
    return broken;
}
