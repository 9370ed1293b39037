/* SPDX-License-Identifier: Apache-2.0
 * History: the last events in a ring of fixed size, in one order over all pools.
 *
 *      ticket   ...  41   42   43   44   45 <- next
 *      slot      [ 44 | 45 | 42 | 43 ]          room 4: what is older was dropped, and is counted
 *      event      f,g    h   d,e   c            a slot has one event, or both of a free that is completed at once
 *
 * An event is told under the lock of whatever it is about (a pool's, or the miss lock), draws the next
 * ticket (ticket.h) and with it a slot. Tickets of one pool therefore come in the order in which things happened,
 * and so do those of several pools where one thing led to the other. That is all that threads share:
 * nobody waits, but for a writer that is a whole round behind.
 *
 * It is told on the path of a hit. So its time is a tick (base/ticks.h), which becomes a time of day when the
 * event is copied out; and a free that is completed at once takes one tick and one slot for its two events. Events
 * are counted all the same: a ring of so many slots has at least the last so many events, and shows no others.
 *
 *      word 0   round of the ring, action, whether it is two events, heap       written last
 *           1   address             3   stream         5   stack and tag, metadata
 *           2   size                4   tick
 *
 * The words are atomic, so that a reader may look while they change. Whoever overwrites one has drawn its ticket
 * before: a reader looks at the tickets afterwards, and so finds out.
 *
 * Invariants:
 *      Y1  a slot is written by the holder of ticket t only after that of t - room has written word 0
 *      Y2  while all pools are stopped and the miss lock is held, the slots of all tickets given out are written
 *
 * Locks: the ring is exchanged while everything is stopped, so tellers need nothing more than what
 * they hold. Copying out needs the handle's dump lock, which keeps the ring from being exchanged. */
#ifndef GR_LEDGER_HISTORY_H
#define GR_LEDGER_HISTORY_H

#include "base/ticks.h"
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
};

/* A stream's handle as people know it: both names of the default stream are 0. */
static inline uint64_t gr_place_stream(const void *handle) {
    return (uintptr_t)handle == 1 ? 0 : (uintptr_t)handle;
}

struct gr_event {
    uint64_t time_ns; /* since 1970 */
    uint64_t addr;    /* OOM: free bytes of the device */
    uint64_t size;
    struct gr_place place;
    uint32_t stack, tag, metadata; /* ANNOTATE: metadata is the name */
    enum gr_action action;
};

enum { GR_SLOT_WORDS = 6 };

struct gr_slot {
    atomic_uint_fast64_t word[GR_SLOT_WORDS];
};

struct gr_history {
    struct gr_stacks stacks;
    struct gr_ticks ticks;     /* constant */
    atomic_int level;          /* enum granary_history_level */
    atomic_int sources;        /* GRANARY_STACKS_* */
    struct gr_tickets tickets; /* of slots */
    /* changed while everything is stopped */
    _Alignas(64) struct gr_slot *ring;
    uint64_t room;
    uint64_t inverse; /* (2^64 - 1) / room */
    uint64_t start;   /* ticket whose slot is the first of this ring */
    uint64_t first;   /* event: of those that it has, unless it has gone round since */
    uint64_t cleared; /* events before this one do not count */
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

enum { GR_SLOT_ROUND = 56, GR_SLOT_ACTION = 48 }; /* bits of word 0 */
#define GR_SLOT_ROUNDS ((uint64_t)0xFF)
#define GR_SLOT_TWICE ((uint64_t)0x80) /* in the action: a free completed at once is two events */
#define GR_SLOT_HEAPS (((uint64_t)1 << GR_SLOT_ACTION) - 1)
/* An action for gr_history_put only. */
#define GR_FREE_TWICE (GR_SLOT_TWICE | GR_FREE_REQUESTED)

/* Where a ticket writes: its slot, and the round of the ring, from 1 on and modulo 256. */
struct gr_spot {
    struct gr_slot *slot;
    uint64_t round;
};

/* Without a division: the quotient by the inverse is at most one too small. */
static GR_INLINE struct gr_spot gr_spot_of(const struct gr_history *h, uint64_t ticket) {
    uint64_t since = ticket - h->start, round = (uint64_t)((unsigned __int128)since * h->inverse >> 64),
             rest = since - round * h->room;
    bool more = rest >= h->room;
    return (struct gr_spot){&h->ring[more ? rest - h->room : rest], (round + more + 1) & GR_SLOT_ROUNDS};
}

/* The one that had the slot a round ago is done with it (Y1). */
static GR_INLINE bool gr_spot_ready(const struct gr_spot *at) {
    uint64_t last = atomic_load_explicit(&at->slot->word[0], memory_order_acquire) >> GR_SLOT_ROUND;
    return last == ((at->round - 1) & GR_SLOT_ROUNDS);
}
void gr_spot_wait(const struct gr_spot *at);

static GR_INLINE void gr_slot_put(struct gr_slot *slot, int word, uint64_t value) {
    atomic_store_explicit(&slot->word[word], value,
                          memory_order_release); /* not before the ticket is drawn */
}

/* A slot is written. action: enum gr_action, or GR_FREE_TWICE. Events are wanted. */
static GR_INLINE void gr_history_put(struct gr_history *h, const struct gr_place *place, uint64_t action,
                                     uint64_t addr, uint64_t size, uint32_t label, uint32_t metadata) {
    enum { AHEAD = 8 }; /* the ring is larger than the caches that are near */
    uint64_t ticket = gr_tickets_draw(&h->tickets, (action & GR_SLOT_TWICE) != 0);
    uint64_t tick = gr_ticks_now(&h->ticks);
    if (GR_UNLIKELY(h->room == 0)) return;
    const struct gr_spot at = gr_spot_of(h, ticket);
    __builtin_prefetch(at.slot + AHEAD, 1); /* behind the ring too, where it does nothing */
    if (GR_UNLIKELY(!gr_spot_ready(&at))) gr_spot_wait(&at);
    gr_slot_put(at.slot, 1, addr);
    gr_slot_put(at.slot, 2, size);
    gr_slot_put(at.slot, 3, place->stream);
    gr_slot_put(at.slot, 4, tick);
    gr_slot_put(at.slot, 5, label | (uint64_t)metadata << 32);
    gr_slot_put(at.slot, 0,
                at.round << GR_SLOT_ROUND | action << GR_SLOT_ACTION | (place->heap & GR_SLOT_HEAPS));
}

/* Tells of an allocation (label 0), or of a free that is completed at once (GR_FREE_TWICE), by a call that has noted
 * nothing of itself. */
static GR_INLINE void gr_history_tell_unnoted(struct gr_history *h, uint64_t action,
                                              const struct gr_place *place, uint64_t addr, uint64_t size,
                                              uint32_t label) {
    if (gr_history_wanted(h)) gr_history_put(h, place, action, addr, size, label, 0);
}

/* ---- while everything is stopped ------------------------------------------------------------- */

/* The ring is exchanged for one of `room` zeroed slots (NULL when room is 0), which takes over what fits
 * of the newest; returns the old one. */
struct gr_slot *gr_history_exchange(struct gr_history *history, struct gr_slot *ring, uint64_t room);
void gr_history_clear(struct gr_history *history);

/* Events by number, as they were told: [from, to). */
struct gr_span {
    uint64_t from, to, ticket; /* ticket: the next one */
};
/* Those that the ring shows. */
struct gr_span gr_history_span(const struct gr_history *history);

/* ---- under the dump lock --------------------------------------------------------------------- */

/* Copies these events; those that have been overwritten meanwhile, always the oldest, are left out. How many. */
size_t gr_history_copy(const struct gr_history *history, const struct gr_span *span, struct gr_event *out);

#endif
