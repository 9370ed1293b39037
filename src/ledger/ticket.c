/* SPDX-License-Identifier: Apache-2.0
 * Tickets: who shares them, and how their owner comes and goes. */
#include "ledger/ticket.h"

void gr_tickets_init(struct gr_tickets *t, uint64_t first) {
    *t = (struct gr_tickets){.earn = gr_bias_earn()};
    atomic_init(&t->shared, first);
    atomic_init(&t->owner, &t->nobody);
    gr_lock_init(&t->lock, GR_RANK_LEAF);
}

/* lock is held. The order of the two stores is that of K2. */
static void lean(struct gr_tickets *t, uintptr_t self) {
    uint64_t next = atomic_load_explicit(&t->shared, memory_order_relaxed);
    if (next & GR_TICKETS_OWNED) return;
    struct gr_seat *seat = gr_seat_of(t->seat, self);
    atomic_store_explicit(&t->row, 0, memory_order_relaxed);
    if (!seat || !gr_bias_join()) return;
    do atomic_store_explicit(&t->own, next, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&t->shared, &next, next | GR_TICKETS_OWNED,
                                                  memory_order_acq_rel, memory_order_relaxed));
    atomic_store_explicit(&t->owner, seat, memory_order_release);
}

/* Strikes the owner out, if there is one still. */
static void GR_COLD strike_out(struct gr_tickets *t) {
    gr_lock_take(&t->lock);
    if (atomic_load_explicit(&t->shared, memory_order_relaxed) & GR_TICKETS_OWNED) {
        struct gr_seat *seat = atomic_load_explicit(&t->owner, memory_order_relaxed);
        atomic_store_explicit(&t->owner, &t->nobody, memory_order_relaxed);
        gr_bias_barrier();
        gr_seat_expect_out(seat);
        atomic_store_explicit(&t->shared, atomic_load_explicit(&t->own, memory_order_relaxed),
                              memory_order_release);
    }
    gr_lock_give(&t->lock);
}

/* Counts how often the thread has drawn in a row; it becomes the owner when that is often enough. Other threads may
 * count at the same time, and then somebody's row is wrong by a little. */
static GR_INLINE void count_row(struct gr_tickets *t) {
    const uintptr_t self = gr_thread_token();
    bool again = atomic_load_explicit(&t->last, memory_order_relaxed) == self;
    uint64_t row = again ? atomic_load_explicit(&t->row, memory_order_relaxed) + 1 : 0;
    if (!again) atomic_store_explicit(&t->last, self, memory_order_relaxed);
    atomic_store_explicit(&t->row, row, memory_order_relaxed);
    if (GR_LIKELY(row < t->earn) || !gr_lock_try(&t->lock)) return;
    lean(t, self);
    gr_lock_give(&t->lock);
}

uint64_t gr_tickets_draw_shared(struct gr_tickets *t, bool twice) {
    uint64_t ticket;
    while ((ticket = atomic_fetch_add_explicit(&t->shared, 1, memory_order_acq_rel)) & GR_TICKETS_OWNED)
        strike_out(t);
    if (twice) atomic_fetch_add_explicit(&t->shared_twice, 1, memory_order_relaxed);
    count_row(t);
    return ticket;
}

uint64_t gr_tickets_next(const struct gr_tickets *t) {
    uint64_t next = atomic_load_explicit(&t->shared, memory_order_acquire);
    return next & GR_TICKETS_OWNED ? atomic_load_explicit(&t->own, memory_order_acquire) : next;
}

uint64_t gr_tickets_twice(const struct gr_tickets *t) {
    return atomic_load_explicit(&t->shared_twice, memory_order_relaxed) +
           atomic_load_explicit(&t->own_twice, memory_order_relaxed);
}
