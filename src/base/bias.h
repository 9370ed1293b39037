/* SPDX-License-Identifier: Apache-2.0
 * A mutex that leans towards the thread that uses it: for locks that one thread takes a million times
 * and another one now and then.
 *
 *      owner     nobody          threads take `lock`; one that took it often enough becomes the owner
 *                a thread        it enters by a plain store in its seat, and no one else enters
 *                                another one comes: takes `lock`, strikes the owner out, has all threads
 *                                pass a barrier, waits until the seat is empty, and goes on as usual
 *
 *      the owner                               another thread, with `lock`
 *        its seat: inside = 1                    owner = nobody
 *        (nothing but the compiler's order)      barrier on every thread that runs (membarrier(2))
 *        still the owner?  in : back out         his seat: inside is 0?  in : wait
 *
 * Either the store of the owner was before its barrier, and the other thread sees it; or its look at
 * `owner` comes after it, and sees that it was struck out. So entering and leaving cost the owner no
 * locked instruction, of which a pair of calls would need two, on some processors half of its time. To take over costs the other
 * thread some microseconds, and a bias is earned by so many calls in a row that this is little for each. The
 * first owner of a process waits for a grace period of the kernel (20 ms), unless gr_bias_prepare was called
 * while there was one thread. Where the kernel has no such barrier, nobody ever becomes the owner.
 *
 * A thread that was struck out may store in its seat at any later time, to find that it is not the owner any
 * more. So a seat is one thread's for ever. There are a few; a thread that finds none becomes no owner.
 *
 * Invariants:
 *      L2  a thread that came by `lock` is in only while nobody is the owner (asserted as it leaves)
 *
 * Ranks and sleeping are those of the lock inside (lock.h). It is not recursive; in a thread that takes it twice only
 * checking builds notice. */
#ifndef GR_BASE_BIAS_H
#define GR_BASE_BIAS_H

#include "base/lock.h"
#include "base/thread.h"

enum { GR_BIAS_SEATS = 8 };

struct gr_seat {
    uintptr_t thread;  /* gr_thread_token of the one whose it is; constant once it is not 0 */
    atomic_int inside; /* the thread is in, or tries to be */
};

struct gr_bias {
    _Atomic(struct gr_seat *) owner; /* the owner's seat, or `nobody`. Changed by holders of `lock` */
    struct gr_seat *held; /* of who is in, if it came as the owner, else NULL. Changed by who is in */
    struct gr_lock lock;
    bool doubtful;  /* between knock and await: the owner that was struck out may be inside */
    uintptr_t last; /* under lock: thread that took it last, */
    uint64_t row;   /* so often again in a row; */
    uint64_t earn;  /* and that makes it the owner when it is so often; UINT64_MAX: never. Constant */
    struct gr_seat nobody;
    struct gr_seat seat[GR_BIAS_SEATS]; /* under lock */
};

void gr_bias_init(struct gr_bias *bias, enum gr_rank rank);

/* While the process has one thread, what the first owner would wait for is quick. Later this does nothing. */
void gr_bias_prepare(void);

/* Takes it whoever is the owner, and becomes it when that is earned. */
void gr_bias_wait(struct gr_bias *bias);

/* The thread, whose seat it is, is in as the owner, if it still is: until it leaves. */
GR_MUST static GR_INLINE bool gr_seat_enter(struct gr_seat *seat, _Atomic(struct gr_seat *) const *owner) {
    atomic_store_explicit(&seat->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* the other side's barrier makes it one for the processor */
    if (GR_UNLIKELY(atomic_load_explicit(owner, memory_order_relaxed) != seat)) {
        atomic_store_explicit(&seat->inside, 0, memory_order_release); /* may be the 0 that others wait for */
        return false;
    }
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}
static GR_INLINE void gr_seat_leave(struct gr_seat *seat) {
    atomic_store_explicit(&seat->inside, 0, memory_order_release);
}

/* Enters as the owner, if the thread, whose seat it is, still is. */
GR_MUST static GR_INLINE bool gr_bias_enter(struct gr_bias *bias, struct gr_seat *seat) {
    if (GR_UNLIKELY(!gr_seat_enter(seat, &bias->owner))) return false;
    gr_lock_note_take(&bias->lock);
    return true;
}

/* The calling thread has taken `lock`. Whether it has done so often enough to become the owner. */
GR_MUST static GR_INLINE bool gr_bias_count(struct gr_bias *bias, uintptr_t self) {
    bias->row = bias->last == self ? bias->row + 1 : 0;
    bias->last = self;
    return bias->row >= bias->earn;
}

/* Takes it, if that needs no waiting and nobody comes or goes as the owner. Calls nothing: it is on the path of a hit. */
GR_MUST static GR_INLINE bool gr_bias_try(struct gr_bias *bias) {
    const uintptr_t self = gr_thread_token();
    struct gr_seat *owner = atomic_load_explicit(&bias->owner, memory_order_acquire);
    if (GR_LIKELY(owner->thread == self)) return gr_bias_enter(bias, owner);
    if (owner != &bias->nobody || !gr_lock_try(&bias->lock)) return false;
    if (GR_UNLIKELY(atomic_load_explicit(&bias->owner, memory_order_relaxed) != owner ||
                    gr_bias_count(bias, self))) {
        gr_lock_undo(&bias->lock);
        return false;
    }
    return true;
}

static inline void gr_bias_take(struct gr_bias *bias) {
    if (GR_UNLIKELY(!gr_bias_try(bias))) gr_bias_wait(bias);
}

static GR_INLINE void gr_bias_give(struct gr_bias *bias) {
    if (GR_LIKELY(bias->held != NULL)) {
        gr_lock_note_give(&bias->lock);
        gr_seat_leave(bias->held);
    } else {
        GR_ASSERT(atomic_load_explicit(&bias->owner, memory_order_relaxed) == &bias->nobody, "L2");
        gr_lock_give(&bias->lock);
    }
}

/* For several at once, with one barrier for all: knock at each, pass the barrier if one of them said so, and await
 * each. knock enters as the owner, or takes `lock` and strikes the owner out. True: he may be inside. One thread at a
 * time may be between knock and await. */
GR_MUST bool gr_bias_knock(struct gr_bias *bias);
void gr_bias_barrier(void);
void gr_bias_await(struct gr_bias *bias);

/* ---- for what leans in the same way and is no mutex (ledger/ticket.h) ---------------------------- */

/* So many calls in a row earn a bias; UINT64_MAX: the kernel has no barrier for it. */
uint64_t gr_bias_earn(void);
/* The process may use the barrier from now on. False: it may not. */
GR_MUST bool gr_bias_join(void);
/* The thread's own seat, or a new one, or NULL. Under what guards the seats. */
struct gr_seat *gr_seat_of(struct gr_seat seat[GR_BIAS_SEATS], uintptr_t thread);
/* The barrier was passed since the owner was struck out: waits until it is not inside of its seat. */
void gr_seat_expect_out(const struct gr_seat *seat);

#endif
