/* SPDX-License-Identifier: Apache-2.0
 * A small mutex for the hit path, with ranks.
 *
 *      state     0 free, 1 held, 2 passed: held for the heir, who is to look yet
 *      waiting   [ watched | coming | heir | lent | sleepers ]      greater than 0, as a signed number: to be woken
 *
 *      take --> held? --> nobody watches: takes the watch, spins long --+--> takes it
 *                     |   else: a glance -------------------------------+
 *                     |                                                 +--> sleeps, 1 ms at most
 *                     +<--- comes back, woken or not -------------------'
 *                                                  after 1 ms: becomes the heir, and takes it when it is passed
 *
 * Taking a free lock is one compare-exchange; giving it back is a look at who waits and a plain store, half
 * of what a second atomic exchange would cost. Hits hold a lock for tens of nanoseconds, so a thread that meets
 * a held one does best to look again soon. But every look takes the line away from the holder, so one thread
 * alone, the watcher, goes on looking, more and more rarely; the others sleep in the kernel, and an
 * oversubscribed machine makes progress.
 *
 * A wake-up is a system call on the path of a hit, so a give makes one only if there are sleepers and no
 * watcher. It hands the watch to the thread it wakes: until that comes, gives see the lock watched. Sleepers
 * come back by themselves after a millisecond: that is all that is lost when a give and a thread going to sleep
 * pass each other, or when the watcher is kept from running; and one that comes back first takes the watch that
 * was on its way to another.
 *
 * Who comes first takes a free lock, whoever waits: it is the fastest, as what the lock guards is still in the
 * cache of the last holder. Nobody starves of it: who has waited for a millisecond becomes the heir, and
 * the next give passes the lock to it instead of freeing it. That is why a give looks first; and it touches
 * the lock no more once it is free, a wake-up only names its address.
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
    atomic_uint waiting;
    int rank; /* constant */
};

static inline void gr_lock_init(struct gr_lock *lock, enum gr_rank rank) {
    atomic_init(&lock->state, 0);
    atomic_init(&lock->waiting, 0);
    lock->rank = (int)rank;
}

/* The slow halves: takes it, waiting; gives it to the heir, or gives it and wakes a sleeper. */
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

/* Gives back what trying took, where the caller goes on to take it in another way: whoever waits is seen to then. */
static inline void gr_lock_undo(struct gr_lock *lock) {
    gr_lock_note_give(lock);
    atomic_store_explicit(&lock->state, 0, memory_order_release);
}

static inline void gr_lock_give(struct gr_lock *lock) {
    gr_lock_note_give(lock);
    if (GR_UNLIKELY((int)atomic_load_explicit(&lock->waiting, memory_order_relaxed) > 0))
        gr_lock_wake(lock);
    else
        atomic_store_explicit(&lock->state, 0, memory_order_release);
}

#endif
