/* SPDX-License-Identifier: Apache-2.0
 * The ledger: what happened, told once. One verb for each change; it moves every figure that the
 * change concerns, so statistics and reality cannot disagree. Each verb is called from one place.
 *
 * Figures of blocks change on hits, so they live with the pools (tally.h). Their device-wide peaks are
 * exact without a line that all streams write:
 *
 *      peak of the sum  >=  sum of ceilings  >=  sum of current values
 *
 * An account that stays under its ceilings cannot make a new peak and tells nobody. One that rises above
 * one settles: all pools are stopped for a moment, the true sums taken, peaks raised, and the room below
 * the peaks shared out as new ceilings. A run in steady state settles hardly ever.
 *
 * Threads that rise above their ceilings in turns would stop each other all the time. So an account whose
 * settling raised no peak lets some rises pass while other threads settle too: 1, 3, 7 and so on, until one raises
 * a peak or a millisecond is over, as it is at once where threads take turns slowly. Peaks are exact while one
 * thread allocates; of several, at the same time or in turns, a total that lasts shorter than a millisecond, or 64
 * allocations if those take longer, may go unseen. Current values and totals are always exact.
 *
 * Figures of memory (reserved, segments, moves) change on misses only and live here, under the miss
 * lock.
 *
 * While history is kept (history.h), the same verb writes the event, so that figures and history cannot
 * disagree either. While it is not, a verb pays one branch for it.
 *
 * Invariants (gr_ledger_check, all pools stopped):
 *      G1  current values and rooms are at least 0, once everything has settled
 *      G2  the sum of ceilings is at most the peak, for all, small and large
 *      G3  allocated <= active, requested <= active
 *
 * Locks: what hits change under the account's lock, of rank POOL; the list of accounts, peaks, and
 * ceilings under the LEDGER lock as well. */
#ifndef GR_LEDGER_LEDGER_H
#define GR_LEDGER_LEDGER_H

#include <granary/granary.h>

#include "ledger/tally.h"

/* Figures of memory. */
enum gr_memory_figure { GR_RESERVED_BYTES, GR_SEGMENTS, GR_MEMORY_FIGURES };

/* One figure for all, small, large. */
enum { GR_ALL = GR_CLASSES, GR_SUMS = GR_CLASSES + 1 };

struct gr_ledger {
    struct gr_lock lock;
    /* under lock */
    struct gr_list accounts;
    int64_t peak[GR_SUMS][GR_FIGURES];
    int64_t gone_up[GR_CLASSES][GR_FIGURES]; /* totals of accounts that were removed */
    int64_t gone_down[GR_CLASSES][GR_FIGURES];
    uint64_t settled;                /* how often */
    atomic_uintptr_t settler;        /* token of the thread that settled last; read without the lock, */
    atomic_uint_fast64_t settled_ns; /* as is when that was (base/clock.h) */
    /* under the miss lock */
    int64_t memory_up[GR_CLASSES][GR_MEMORY_FIGURES];
    int64_t memory_down[GR_CLASSES][GR_MEMORY_FIGURES];
    int64_t memory_peak[GR_SUMS][GR_MEMORY_FIGURES];
    int64_t misses, out_of_memory, moved_extents, moved_bytes, moving_ns, maps, unmaps, collected_bytes;
    struct gr_history *history;            /* NULL until it is first asked for; then there until fini */
    _Atomic(struct gr_history *) watching; /* the same while it is on, else NULL; read without a lock */
};

void gr_ledger_init(struct gr_ledger *ledger);
void gr_ledger_fini(struct gr_ledger *ledger);
/* Two pools of a stream come; they go (their current values are zero). */
void gr_ledger_add(struct gr_ledger *ledger, struct gr_account *account, struct gr_tally *small,
                   struct gr_tally *large);
void gr_ledger_remove(struct gr_ledger *ledger, struct gr_account *account);

/* What events say of the pool from now on. Under the account's lock and the miss lock. */
void gr_ledger_place(struct gr_tally *tally, uint64_t stream, uint64_t heap);

/* ---- verbs on hits, under the account's lock; true: call gr_ledger_settle once it is released -- */

/* A block becomes the caller's, or ceases to be and may be used again at once. On the path of a hit the history is told
 * beside this, under the same lock (heap/hit.h). account: the tally's. */
GR_MUST static inline bool gr_ledger_alloc_untold(struct gr_account *account, struct gr_tally *tally,
                                                  size_t size, size_t requested) {
    tally->up[GR_BYTES] += (int64_t)size;
    tally->up[GR_BLOCKS] += 1;
    tally->up[GR_REQUESTED] += (int64_t)requested;
    return gr_room_take(&account->room, size, requested, gr_room_take(&tally->room, size, requested, false));
}
static inline void gr_ledger_free_untold(struct gr_account *account, struct gr_tally *tally, size_t size,
                                         size_t requested) {
    gr_room_give(&tally->room, size, requested);
    gr_room_give(&account->room, size, requested);
}

/* The same, and tells the history if there is one. *label: what the block keeps of who asked for it. */
GR_MUST static inline bool gr_ledger_alloc(struct gr_tally *tally, uint64_t addr, size_t size,
                                           size_t requested, uint32_t *label) {
    *label = 0;
    if (GR_UNLIKELY(tally->history != NULL))
        *label = gr_history_tell_alloc(tally->history, &tally->place, addr, requested);
    return gr_ledger_alloc_untold(tally->account, tally, size, requested);
}
static inline void gr_ledger_free(struct gr_tally *tally, uint64_t addr, size_t size, size_t requested,
                                  uint32_t label) {
    if (GR_UNLIKELY(tally->history != NULL))
        gr_history_tell_free(tally->history, &tally->place, addr, requested, label);
    gr_ledger_free_untold(tally->account, tally, size, requested);
}

/* The same in two steps: it is no longer the caller's; and it may be used again. */
void gr_ledger_free_requested(struct gr_tally *tally, uint64_t addr, size_t size, size_t requested,
                              uint32_t label);
void gr_ledger_free_completed(struct gr_tally *tally, uint64_t addr, size_t size, size_t requested,
                              uint32_t label);

/* Takes true sums, raises peaks, gives new ceilings. hungry is a tally of the account that rose above
 * one: it gets at least half of the room. No POOL lock may be held. */
void gr_ledger_settle(struct gr_ledger *ledger, const struct gr_tally *hungry);

/* ---- verbs on misses, under the miss lock ------------------------------------------------- */

void gr_ledger_miss(struct gr_ledger *ledger);
/* pool: the tally of the pool that it happened to. rounded: what was asked for. */
void gr_ledger_out_of_memory(struct gr_ledger *ledger, const struct gr_tally *pool, size_t rounded,
                             size_t device_free);
/* Memory behind a run of addresses of the pool. */
void gr_ledger_map(struct gr_ledger *ledger, const struct gr_tally *pool, uint64_t addr, size_t bytes);
void gr_ledger_unmap(struct gr_ledger *ledger, const struct gr_tally *pool, uint64_t addr, size_t bytes);
/* A classic segment. *label: what it keeps of who asked for it. */
void gr_ledger_segment_alloc(struct gr_ledger *ledger, const struct gr_tally *pool, uint64_t addr,
                             size_t bytes, uint32_t *label);
void gr_ledger_segment_free(struct gr_ledger *ledger, const struct gr_tally *pool, uint64_t addr,
                            size_t bytes, uint32_t label);
/* Idle memory was taken from its place to serve the pool. */
void gr_ledger_move(struct gr_ledger *ledger, const struct gr_tally *pool, size_t bytes);
/* Moving took so long: unmapping idle memory, and mapping it anew. */
void gr_ledger_moving(struct gr_ledger *ledger, uint64_t ns);
void gr_ledger_collect(struct gr_ledger *ledger, size_t bytes); /* on top of what took the memory away */
/* A snapshot is taken, of so many active bytes. Everything is stopped. */
void gr_ledger_snapshot(struct gr_ledger *ledger, size_t active);
/* The user marks a moment. HOST_MEMORY when the name finds no room. */
GR_MUST int gr_ledger_annotate(struct gr_ledger *ledger, bool start, const char *name);

/* ---- keeping history, under the dump lock and the miss lock -------------------------------- */

/* From now on: this level and these stacks; and the last `room` events. What is kept stays, as far as it
 * fits. *fresh is taken over, and then NULL, when there is no history yet; it may be NULL when there is one
 * or the level is OFF. OK, HOST_MEMORY. */
GR_MUST int gr_ledger_watch(struct gr_ledger *ledger, int level, int sources, uint64_t room,
                            struct gr_history **fresh);
void gr_ledger_forget(struct gr_ledger *ledger);

/* ---- reading ------------------------------------------------------------------------------ */

size_t gr_ledger_reserved(const struct gr_ledger *ledger); /* under the miss lock */
/* Bytes active now (in *now), allocated in all (in *ever), and the most that were ever active since the peaks were
 * reset. Stops all pools for a moment. */
size_t gr_ledger_active(struct gr_ledger *ledger, size_t *now, size_t *ever);
/* Stops all pools: whoever holds the miss lock as well sees one moment, and may use what the pools' locks
 * guard. And lets them go on. */
void gr_ledger_stop(struct gr_ledger *ledger);
void gr_ledger_go(struct gr_ledger *ledger);
/* gr_ledger_read in between. */
void gr_ledger_look(struct gr_ledger *ledger, struct granary_stats *out);
/* Fills the figures that the ledger knows. Under the miss lock; stops all pools for a moment. */
void gr_ledger_read(struct gr_ledger *ledger, struct granary_stats *out);
void gr_ledger_reset_peaks(struct gr_ledger *ledger);  /* likewise */
const char *gr_ledger_check(struct gr_ledger *ledger); /* likewise */

#endif
