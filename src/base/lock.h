/* SPDX-License-Identifier: Apache-2.0
 * A small mutex for the hit path, with ranks.
 *
 *      state   0 free      1 held      2 held, and somebody may sleep
 *
 * Taking a free lock is one compare-exchange, giving it back one exchange. A thread that meets a
 * held lock spins for a bounded time (hits hold a lock for tens of nanoseconds) and then sleeps in
 * the kernel, so an oversubscribed machine makes progress.
 *
 * Ranks. A thread takes locks in rising rank only; builds with GR_CHECK assert it (invariant L1).
 *      MISS < LEDGER < POOL < DEFER < LEAF
 * The ledger alone takes several POOL locks at once, and holds the LEDGER lock while it does. */
#ifndef GR_BASE_LOCK_H
#define GR_BASE_LOCK_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/check.h"

enum gr_rank { GR_RANK_MISS = 1, GR_RANK_LEDGER = 2, GR_RANK_POOL = 3, GR_RANK_DEFER = 4, GR_RANK_LEAF = 5 };

struct gr_lock {
    atomic_int state;
    int rank; /* constant */
};

static inline void gr_lock_init(struct gr_lock *lock, enum gr_rank rank) {
    atomic_init(&lock->state, 0);
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

static inline void gr_lock_take(struct gr_lock *lock) {
    int free_state = 0;
    if (GR_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1, memory_order_acquire,
                                                             memory_order_relaxed)))
        gr_lock_wait(lock);
    gr_lock_note_take(lock);
}

static inline void gr_lock_give(struct gr_lock *lock) {
    gr_lock_note_give(lock);
    if (GR_UNLIKELY(atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)) gr_lock_wake(lock);
}

#endif
