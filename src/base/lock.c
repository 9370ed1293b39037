/* SPDX-License-Identifier: Apache-2.0
 * The slow halves of the mutex: bounded spinning, sleeping, waking; and the rank check. */
#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 100 };

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void gr_lock_wait(struct gr_lock *lock) {
    for (int i = 0; i < SPINS; i++) {
        int free_state = 0;
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak_explicit(&lock->state, &free_state, 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return;
        pause_cpu();
    }
    const struct timespec nap = {.tv_nsec = 1000000};
    atomic_fetch_add_explicit(&lock->sleepers, 1, memory_order_seq_cst);
    while (atomic_exchange_explicit(&lock->state, 1, memory_order_acquire) != 0)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 1, &nap, NULL, 0);
    atomic_fetch_sub_explicit(&lock->sleepers, 1, memory_order_relaxed);
}

void gr_lock_wake(struct gr_lock *lock) {
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
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
