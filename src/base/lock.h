/* SPDX-License-Identifier: Apache-2.0
 * A small mutex for the hit path, with ranks.
 *
 *      state     0 free, 1 held          sleepers   threads that have given up spinning
 *
 * Taking a free lock is one compare-exchange; giving it back is a plain store and a look for sleepers,
 * half of what a second atomic exchange would cost. A thread that meets a held lock spins for a bounded
 * time (hits hold a lock for tens of nanoseconds) and then sleeps in the kernel, so an oversubscribed
 * machine makes progress. The store and the look may pass each other; a wake-up that is lost to that
 * costs its sleeper one millisecond, after which it looks for itself.
 *
 * Ranks. A thread takes locks in rising rank only; builds with GR_CHECK assert it (invariant L1).
 *      DUMP < MISS < LEDGER < POOL < DEFER < LEAF
 * The ledger alone takes several POOL locks at once, and holds the LEDGER lock while it does. */
#ifndef GR_BASE_LOCK_H
#define GR_BASE_LOCK_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/check.h"

enum gr_rank { GR_RANK_DUMP, GR_RANK_MISS, GR_RANK_LEDGER, GR_RANK_POOL, GR_RANK_DEFER, GR_RANK_LEAF };

struct gr_lock {
    atomic_int state;
    atomic_int sleepers;
    int rank; /* constant */
};

static inline void gr_lock_init(struct gr_lock *lock, enum gr_rank rank) {
    atomic_init(&lock->state, 0);
    atomic_init(&lock->sleepers, 0);
    lock->rank = (int)rank;
}

/* The slow halves. */
void gr_lock_wait(struct gr_lock *lock);
void gr_lock_wake(struct gr_lock *lock);

#if GR_CHECK > 0
void gr_lock_note_take(const struct gr_lock *lock);
void gr_lock_note_give(const struct gr_lock *lock);
#else
#define gr_lock_note_take(lock) ((void)(lock))
#define gr_lock_note_give(lock) ((void)(lock))
#endif

/* Takes it if it is free. */
GR_MUST static inline bool gr_lock_try(struct gr_lock *lock) {
    int free_state = 0;
    if (GR_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1,
                                                             memory_order_acquire, memory_order_relaxed)))
        return false;
    gr_lock_note_take(lock);
    return true;
}

static inline void gr_lock_take(struct gr_lock *lock) {
    if (GR_LIKELY(gr_lock_try(lock))) return;
    gr_lock_wait(lock);
    gr_lock_note_take(lock);
}

/* Gives back what trying took. Nobody is woken: the caller takes it again at once. */
static inline void gr_lock_undo(struct gr_lock *lock) {
    gr_lock_note_give(lock);
    atomic_store_explicit(&lock->state, 0, memory_order_release);
}

static inline void gr_lock_give(struct gr_lock *lock) {
    gr_lock_note_give(lock);
    atomic_store_explicit(&lock->state, 0, memory_order_release);
    if (GR_UNLIKELY(atomic_load_explicit(&lock->sleepers, memory_order_relaxed) != 0)) gr_lock_wake(lock);
}

#endif
