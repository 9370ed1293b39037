/* SPDX-License-Identifier: Apache-2.0
 * History: the last events in a ring of fixed size, in one order over all pools.
 *
 *      teller                          reader
 *        draws a ticket (ticket.h)       everything is stopped: which tickets there are
 *        has a stamp (pace.h)            all go on: copies slots, from the newest back
 *        writes its slot (ring.h)        stamps become times of day (base/ticks.h)
 *
 * An event is told under the lock of whatever it is about (a pool's, or the miss lock), draws the next
 * ticket and with it a slot. Tickets of one pool therefore come in the order in which things happened,
 * and so do those of several pools where one thing led to the other. That is all that threads share:
 * nobody waits, but for a writer that is a whole round behind.
 *
 * It is told on the path of a hit, and so is as cheap as can be: the clock is read once for a row of events that
 * come densely, and a free that is completed at once takes one slot for its two events. Events
 * are counted all the same: a ring of so many slots has at least the last so many events, and shows no others.
 *
 *      ticket       40 R ----- 41 s ----- 42 s ----- 43 R         who shared a reading is shown to have come evenly
 *      time          0          5          10         15          between it and the next; unsure: by 15
 *
 * Invariants:
 *      Y2  while all pools are stopped and the miss lock is held, the slots of all tickets given out are written
 *
 * Locks: the ring is exchanged while everything is stopped, so tellers need nothing more than what
 * they hold. Copying out needs the handle's dump lock, which keeps the ring from being exchanged. */
#ifndef GR_LEDGER_HISTORY_H
#define GR_LEDGER_HISTORY_H

#include "ledger/pace.h"
#include "ledger/ring.h"
#include "ledger/stacks.h"
#include "ledger/ticket.h"

enum gr_action {
    GR_ALLOC,
    GR_FREE_REQUESTED,
    GR_FREE_COMPLETED,
    GR_SEGMENT_ALLOC,
    GR_SEGMENT_FREE,
    GR_SEGMENT_MAP,
    GR_SEGMENT_UNMAP,
    GR_MOVE,
    GR_OOM,
    GR_SNAPSHOT,
    GR_ANNOTATE_START,
    GR_ANNOTATE_END
};

/* Where: what an event says of the pool that it is about. */
struct gr_place {
    uint64_t stream, heap;
    uint32_t number; /* of the history's; 0: it has none, and each event says it in full */
};

/* A stream's handle as people know it: both names of the default stream are 0. */
static inline uint64_t gr_place_stream(const void *handle) {
    return (uintptr_t)handle == 1 ? 0 : (uintptr_t)handle;
}

struct gr_event {
    uint64_t time_ns;   /* since 1970 */
    uint64_t unsure_ns; /* the time is off by this, at most */
    uint64_t addr;      /* OOM: free bytes of the device */
    uint64_t size;
    struct gr_place place;
    uint32_t stack, tag, metadata; /* ANNOTATE: metadata is the name */
    enum gr_action action;
};

struct gr_history {
    struct gr_stacks stacks;
    struct gr_intern places;   /* number -> struct gr_place; those of slots */
    struct gr_ticks ticks;     /* constant */
    atomic_int level;          /* enum granary_history_level */
    atomic_int sources;        /* GRANARY_STACKS_* */
    struct gr_tickets tickets; /* of slots */
    struct gr_pace pace;       /* of their owner; */
    struct gr_spot lead;       /* where its last reading stands: what it draws next follows there, */
    uint64_t rest;             /* as far as slots go, with the reading's */
    /* changed while everything is stopped */
    _Alignas(64) struct gr_ring ring;
    uint64_t first;   /* event: of those that it has, unless it has gone round since */
    uint64_t cleared; /* events before this one do not count */
    uint64_t until;   /* tick: nothing was told since. While events are not wanted */
};

void gr_history_init(struct gr_history *history);
void gr_history_fini(struct gr_history *history);

/* One on the host, or NULL. Hold no lock: it asks the loader for what can tell stacks, and the loader's lock
 * may be held by a thread that allocates. */
struct gr_history *gr_history_make(void);
void gr_history_free(struct gr_history *history);

/* The stacks to be taken in a call. free: it gives a block back, which has a stack already. */
static inline int gr_history_sources(const struct gr_history *h, bool free) {
    bool own = !free || atomic_load_explicit(&h->level, memory_order_relaxed) == GRANARY_HISTORY_ALL;
    return own ? atomic_load_explicit(&h->sources, memory_order_relaxed) : 0;
}
/* Whether there is anything to note of a call: else it needs no enter and leave. */
GR_MUST static inline bool gr_history_asks(const struct gr_history *h, bool free) {
    if (free && atomic_load_explicit(&h->level, memory_order_relaxed) < GRANARY_HISTORY_ALLOC) return false;
    return gr_history_sources(h, free) != 0 || gr_stacks_said();
}
/* A call begins; it ends with gr_stacks_leave. */
GR_MUST struct gr_note gr_history_enter(struct gr_history *history, bool free, const void *caller);

/* The label of an allocation by the call under way. */
uint32_t gr_history_label(const struct gr_history *history);

/* Tells of an allocation, and returns its label. */
uint32_t GR_ASIDE gr_history_tell_alloc(struct gr_history *history, const struct gr_place *place,
                                        uint64_t addr, uint64_t size);
/* Tells that a free was requested and is completed at once: two events at one time. */
void GR_ASIDE gr_history_tell_free(struct gr_history *history, const struct gr_place *place, uint64_t addr,
                                   uint64_t size, uint32_t label);

/* Tells of anything else. The stack is the call's own if it noted one, else the label's. */
void GR_ASIDE gr_history_tell(struct gr_history *history, enum gr_action action, const struct gr_place *place,
                              uint64_t addr, uint64_t size, uint32_t label);
/* The same with the label's stack only: what happens now was caused by another call. */
void GR_ASIDE gr_history_tell_of(struct gr_history *history, enum gr_action action,
                                 const struct gr_place *place, uint64_t addr, uint64_t size, uint32_t label);
/* A mark of the user's: `name` is one of stacks.texts. */
void gr_history_annotate(struct gr_history *history, enum gr_action action, uint32_t name);

/* ---- telling, on the path of a hit --------------------------------------------------------------- */

/* Whether events are kept. */
static GR_INLINE bool gr_history_wanted(const struct gr_history *h) {
    return atomic_load_explicit(&h->level, memory_order_relaxed) >= GRANARY_HISTORY_ALLOC;
}

/* What is said first of an event: this, and the number of its place. flags: GR_SLOT_TWICE or 0. */
static GR_INLINE uint64_t gr_history_words(uint64_t flags, enum gr_action action, uint32_t label) {
    return (flags | action) << GR_SLOT_ACTION | label;
}
static GR_INLINE bool gr_history_is_twice(uint64_t words) {
    return words >> GR_SLOT_ACTION & GR_SLOT_TWICE;
}

/* Tells of what happened in a place that has a number, by a call without metadata. Events are wanted. The first is for
 * an event of the owner that shares a reading, and calls nothing. False: it is none; the second tells of it, for the
 * owner in its seat, or NULL. */
GR_MUST static GR_INLINE bool gr_history_put_next(struct gr_history *h, const struct gr_place *place,
                                                  uint64_t words, uint64_t addr, uint64_t size,
                                                  struct gr_seat **seat) {
    *seat = gr_tickets_enter(&h->tickets);
    if (GR_UNLIKELY(!*seat)) return false;
    uint64_t after = gr_tickets_own(&h->tickets) - h->pace.at, stamp;
    if (GR_UNLIKELY(!gr_pace_shares(&h->pace, after, &stamp))) return false;
    const struct gr_spot at = {h->lead.slot + after, h->lead.round};
    if (GR_UNLIKELY(!gr_spot_ready(at))) return false;
    gr_tickets_draw_own(&h->tickets, gr_history_is_twice(words));
    gr_spot_put(at, words | (uint64_t)place->number << GR_SLOT_PLACE, addr, size, stamp);
    gr_seat_leave(*seat);
    return true;
}
void GR_ASIDE gr_history_put(struct gr_history *h, struct gr_seat *seat, const struct gr_place *place,
                             uint64_t words, uint64_t addr, uint64_t size);

/* ---- while everything is stopped ------------------------------------------------------------- */

/* From now on events are kept, or not (enum granary_history_level). */
void gr_history_set_level(struct gr_history *history, int level);
/* Gives the place a number, if it can have one. */
void gr_history_number(struct gr_history *history, struct gr_place *place);
/* The ring is exchanged for *ring, which takes over what fits of the newest; the old one is in *ring then. */
void gr_history_exchange(struct gr_history *history, struct gr_ring *ring);
void gr_history_clear(struct gr_history *history);

/* Events by number, as they were told: [from, to). */
struct gr_span {
    uint64_t from, to;
    uint64_t ticket, tick; /* the next one; when none of these was told yet */
};
/* Those that the ring shows. */
struct gr_span gr_history_span(const struct gr_history *history);

/* ---- under the dump lock --------------------------------------------------------------------- */

/* Copies these events; those that have been overwritten meanwhile, always the oldest, are left out. How many. */
size_t gr_history_copy(const struct gr_history *history, const struct gr_span *span, struct gr_event *out);

#endif
