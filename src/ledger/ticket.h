/* SPDX-License-Identifier: Apache-2.0
 * Tickets: numbers in the order in which they are drawn, by whichever thread, that cost the thread which draws
 * nearly all of them no locked instruction. (The processor is not ready with such a one before all stores that came
 * before it are, and what tells events stores a lot.)
 *
 *      nobody is the owner    shared = 41           every thread: an atomic addition to shared
 *      a thread is            shared = OWNED | any  the owner: own = 41, a plain addition, inside of its seat
 *                                                   another: its addition to shared says OWNED; takes `lock`, strikes
 *                                                   the owner out, has all threads pass a barrier, waits until the
 *                                                   seat is empty, makes shared what own is, and draws again
 *
 * That is the biased mutex (base/bias.h) but for the other threads' way in: they share a word and wait for nobody, so
 * they are kept out by its highest bit and not by a lock. Seats, and why entering needs no more than a store and a
 * look, are as there; and as there the owner is who drew so many tickets with none of another thread in between.
 *
 * Some tickets count twice. How many is kept beside the tickets, in two parts with one kind of writer each.
 *
 * Invariants:
 *      K1  a ticket is given once, and one that was drawn after another, by whatever order, is greater
 *      K2  whoever sees OWNED sees in `own` at least the tickets that were given before
 *
 * Locks: `lock` is a leaf, for the owner's coming and going. */
#ifndef GR_LEDGER_TICKET_H
#define GR_LEDGER_TICKET_H

#include "base/bias.h"

/* In gr_tickets.shared. */
#define GR_TICKETS_OWNED ((uint64_t)1 << 63)

struct gr_tickets {
    _Alignas(64) atomic_uint_fast64_t shared; /* the next one; or OWNED, and anything below it */
    atomic_uint_fast64_t shared_twice;        /* how many count twice, of those drawn here */
    atomic_uintptr_t last;                    /* thread that drew here last, */
    atomic_uint_fast64_t row;                 /* so often again in a row; */
    uint64_t earn;                            /* and that makes it the owner when it is so often. Constant */
    _Alignas(64) _Atomic(struct gr_seat *) owner; /* its seat, or `nobody`. Changed under lock */
    atomic_uint_fast64_t own;       /* while there is one: the next ticket. Changed by it alone, */
    atomic_uint_fast64_t own_twice; /* as is this */
    struct gr_seat nobody;
    struct gr_seat seat[GR_BIAS_SEATS]; /* under lock */
    struct gr_lock lock;
};

/* From ticket `first` on. */
void gr_tickets_init(struct gr_tickets *tickets, uint64_t first);

/* The next ticket, of a thread that is not the owner. */
GR_MUST uint64_t gr_tickets_draw_shared(struct gr_tickets *tickets, bool twice);

/* The owner enters its seat, and is the owner until it leaves it (gr_seat_leave). NULL, and nothing has happened: the
 * thread is not the owner. */
GR_MUST static GR_INLINE struct gr_seat *gr_tickets_enter(struct gr_tickets *t) {
    struct gr_seat *seat = atomic_load_explicit(&t->owner, memory_order_acquire);
    if (GR_UNLIKELY(seat->thread != gr_thread_token())) return NULL;
    return GR_LIKELY(gr_seat_enter(seat, &t->owner)) ? seat : NULL;
}
/* In between: the next ticket; and drawing it. twice: it counts twice. */
static GR_INLINE uint64_t gr_tickets_own(const struct gr_tickets *t) {
    return atomic_load_explicit(&t->own, memory_order_relaxed);
}
static GR_INLINE void gr_tickets_draw_own(struct gr_tickets *t, bool twice) {
    atomic_store_explicit(&t->own, gr_tickets_own(t) + 1, memory_order_release);
    if (twice)
        atomic_store_explicit(&t->own_twice, atomic_load_explicit(&t->own_twice, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}

/* The one to be drawn next, at least: others go on. */
uint64_t gr_tickets_next(const struct gr_tickets *tickets);
/* How many of those drawn count twice; about, while others go on. */
uint64_t gr_tickets_twice(const struct gr_tickets *tickets);

#endif
