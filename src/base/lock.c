/* SPDX-License-Identifier: Apache-2.0
 * The slow halves of the mutex: watching, sleeping, waking, inheriting; and the rank check. */
#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Who waits: these, and below them the number of sleepers.
 *      COMING   the watch is on its way to a sleeper; then there is one, and it is watched
 *      HEIR     the next give passes the lock on; nobody takes the watch meanwhile
 *      LENT     there is a watcher besides, who gets the watch back when the heir is done */
#define WATCHED (1u << 31)
#define COMING (1u << 30)
#define HEIR (1u << 29)
#define LENT (1u << 28)

enum { FREE, HELD, PASSED };

/* How long to spin, in pauses of the processor (30 to 45 ns on x86). The pauses between two looks double. */
enum {
    PAUSES_MOST = 64, /* between two looks: a holder that goes on gets dozens of hits done meanwhile */
    GLANCE = 7,       /* in all, without the watch: three looks, for a lock that is hardly ever met held */
    WATCH = 1024      /* in all, with it: as long as putting a thread to sleep and waking it takes */
};
enum {
    NAP_NS = 1000000,     /* the longest sleep */
    PATIENCE_NS = 1000000 /* waits this long before it becomes the heir */
};

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* `yield` does nothing on most */
#endif
}

static bool look(struct gr_lock *lock, int from) {
    return atomic_compare_exchange_strong_explicit(&lock->state, &from, HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* Looks take at once: one that reads first asks for the line twice, and mostly comes late. */
static bool spin(struct gr_lock *lock, int pauses, bool heir) {
    for (int step = 1; pauses > 0; pauses -= step, step = step < PAUSES_MOST ? 2 * step : PAUSES_MOST) {
        for (int i = 0; i < step; i++) pause_cpu();
        if (look(lock, FREE) || (heir && look(lock, PASSED))) return true;
    }
    return false;
}

static void nap(const void *word, unsigned value) {
    const struct timespec longest = {.tv_nsec = NAP_NS};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &longest, NULL, 0);
}

static void wake(const void *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Whether the thread, a sleeper that is back or not, now has the watch. */
static bool watch(struct gr_lock *lock, bool sleeper) {
    unsigned seen = atomic_load_explicit(&lock->waiting, memory_order_relaxed), next;
    bool mine;
    do {
        next = sleeper ? (seen - 1) & ~COMING : seen;
        mine = !(seen & (WATCHED | HEIR)) || (sleeper && (seen & COMING));
        if (mine) next |= WATCHED;
    } while (!atomic_compare_exchange_weak_explicit(&lock->waiting, &seen, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return mine;
}

/* Takes it, as the heir; false if there is one already. */
static bool inherit(struct gr_lock *lock) {
    unsigned seen = atomic_load_explicit(&lock->waiting, memory_order_relaxed), next;
    do {
        if (seen & HEIR) return false;
        next = (seen & ~(WATCHED | COMING)) | HEIR | ((seen & (WATCHED | COMING)) == WATCHED ? LENT : 0);
    } while (!atomic_compare_exchange_weak_explicit(&lock->waiting, &seen, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    while (!spin(lock, WATCH, true)) nap(&lock->state, HELD);
    do {
        next = (seen & ~(HEIR | LENT)) | (seen & LENT ? WATCHED : 0);
    } while (!atomic_compare_exchange_weak_explicit(&lock->waiting, &seen, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void gr_lock_wait(struct gr_lock *lock) {
    uint64_t since = 0;
    for (bool sleeper = false;; sleeper = true) {
        bool watching = watch(lock, sleeper), taken = spin(lock, watching ? WATCH : GLANCE, false);
        if (watching) atomic_fetch_and_explicit(&lock->waiting, ~(WATCHED | LENT), memory_order_relaxed);
        if (taken) return;
        uint64_t now = gr_clock_ns();
        if (since == 0) since = now;
        if (now - since >= PATIENCE_NS && inherit(lock)) return;
        unsigned seen = atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_seq_cst) + 1;
        if (atomic_load_explicit(&lock->state, memory_order_seq_cst) != FREE) nap(&lock->waiting, seen);
    }
}

void gr_lock_wake(struct gr_lock *lock) {
    unsigned seen = atomic_load_explicit(&lock->waiting, memory_order_relaxed);
    while ((int)seen > 0 && !(seen & HEIR) &&
           !atomic_compare_exchange_weak_explicit(&lock->waiting, &seen, seen | WATCHED | COMING,
                                                  memory_order_relaxed, memory_order_relaxed)) {}
    bool heir = seen & HEIR;
    atomic_store_explicit(&lock->state, heir ? PASSED : FREE, memory_order_release);
    if (heir)
        wake(&lock->state);
    else if ((int)seen > 0)
        wake(&lock->waiting);
}

#if GR_CHECK > 0
/* Locks held by this thread, by rank. Exists in checking builds only. */
static _Thread_local int held[GR_RANK_LEAF + 1];

void gr_lock_note_take(const struct gr_lock *lock) {
    for (int rank = lock->rank; rank <= GR_RANK_LEAF; rank++)
        GR_ASSERT(held[rank] == 0 ||
                      (rank == GR_RANK_POOL && lock->rank == GR_RANK_POOL && held[GR_RANK_LEDGER] > 0),
                  "L1");
    held[lock->rank]++;
}

void gr_lock_note_give(const struct gr_lock *lock) {
    GR_ASSERT(held[lock->rank] > 0, "L1");
    held[lock->rank]--;
}
#endif
