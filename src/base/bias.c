/* SPDX-License-Identifier: Apache-2.0
 * The biased mutex: earning a bias, taking it away, the barrier on all threads. */
#include "base/bias.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#endif
#endif

/* Calls in a row that earn a bias: what taking it away costs (7 us with eight threads running, doc/benchmarks.md) is
 * then 2 ns for each. */
#if GR_CHECK > 0
enum { EARN = 32 }; /* tests are to see many come and go */
#else
enum { EARN = 4096 };
#endif

/* ---- the barrier ------------------------------------------------------------------------------ */

static long membarrier(int command) {
    return syscall(SYS_membarrier, command, 0, 0);
}

/* A grace period of the kernel the first time, if there are several threads. */
bool gr_bias_join(void) {
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void gr_bias_prepare(void) {
#ifdef SINGLE_THREADED
    if (SINGLE_THREADED) (void)!gr_bias_join();
#endif
}

static void rest(long ns) {
    struct timespec nap = {.tv_nsec = ns};
    while (nanosleep(&nap, &nap) != 0) {}
}

void gr_bias_barrier(void) {
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
    if (gr_bias_join() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return; /* a forked child */
    if (membarrier(MEMBARRIER_CMD_GLOBAL) == 0) return;
    rest(10000000); /* the kernel took back what it had granted; by now no store is on its way any more */
}

/* ---- the owner comes and goes ----------------------------------------------------------------- */

uint64_t gr_bias_earn(void) {
    const long can = membarrier(MEMBARRIER_CMD_QUERY),
               needed = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED | MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    return can > 0 && (can & needed) == needed ? EARN : UINT64_MAX;
}

void gr_bias_init(struct gr_bias *bias, enum gr_rank rank) {
    *bias = (struct gr_bias){.earn = gr_bias_earn()};
    atomic_init(&bias->owner, &bias->nobody);
    gr_lock_init(&bias->lock, rank);
}

static bool is_owned(struct gr_bias *bias) {
    return atomic_load_explicit(&bias->owner, memory_order_relaxed) != &bias->nobody;
}

struct gr_seat *gr_seat_of(struct gr_seat seats[GR_BIAS_SEATS], uintptr_t thread) {
    for (int i = 0; i < GR_BIAS_SEATS; i++) {
        struct gr_seat *seat = &seats[i];
        if (seat->thread == 0) seat->thread = thread;
        if (seat->thread == thread) return seat;
    }
    return NULL;
}

/* lock is held: the thread becomes the owner, and stays in. */
static void lean(struct gr_bias *bias, uintptr_t self) {
    struct gr_seat *seat = gr_seat_of(bias->seat, self);
    bias->row = 0;
    if (!seat || !gr_bias_join()) return; /* nobody else has come for long: nobody waits */
    bias->held = seat;
    atomic_store_explicit(&seat->inside, 1, memory_order_relaxed);
    atomic_store_explicit(&bias->owner, seat, memory_order_release);
    gr_lock_give(&bias->lock);
    gr_lock_note_take(&bias->lock);
}

/* lock is held. */
static void strike_out(struct gr_bias *bias) {
    atomic_store_explicit(&bias->owner, &bias->nobody, memory_order_relaxed);
}

void gr_seat_expect_out(const struct gr_seat *seat) {
    enum { SPINS = 100 };
    for (unsigned spins = 1; atomic_load_explicit(&seat->inside, memory_order_acquire) != 0; spins++) {
        if (spins % SPINS != 0) continue;
        if (spins < SPINS * SPINS)
            sched_yield();
        else
            rest(50000);
    }
}

/* The barrier was passed since. */
static void expect_out(struct gr_bias *bias) {
    gr_seat_expect_out(bias->held);
    bias->held = NULL;
}

bool gr_bias_knock(struct gr_bias *bias) {
    const uintptr_t self = gr_thread_token();
    struct gr_seat *owner = atomic_load_explicit(&bias->owner, memory_order_acquire);
    bias->doubtful = false;
    if (owner->thread == self && gr_bias_enter(bias, owner)) return false;
    gr_lock_take(&bias->lock);
    if (bias->last != self) bias->row = 0;
    bias->last = self;
    bias->doubtful = is_owned(bias);
    strike_out(bias);
    return bias->doubtful;
}

void gr_bias_await(struct gr_bias *bias) {
    if (bias->doubtful) expect_out(bias);
}

void gr_bias_wait(struct gr_bias *bias) {
    const uintptr_t self = gr_thread_token();
    gr_lock_take(&bias->lock);
    if (is_owned(bias)) {
        strike_out(bias);
        gr_bias_barrier();
        expect_out(bias);
    }
    if (gr_bias_count(bias, self)) lean(bias, self);
}
