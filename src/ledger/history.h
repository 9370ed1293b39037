/* SPDX-License-Identifier: Apache-2.0
 * History: the last events in a ring of fixed size, in one order over all pools.
 *
 *      ticket   ...  41   42   43   44   45 <- next
 *      slot      [ 44 | 45 | 42 | 43 ]          room 4: what is older was dropped, and is counted
 *
 * An event is told under the lock of whatever it is about (a pool's, or the miss lock), takes the next
 * ticket and with it a slot. Tickets of one pool therefore come in the order in which things happened,
 * and so do those of several pools where one thing led to the other. That is all that threads share:
 * nobody waits, but for a writer that is a whole round behind.
 *
 * It is told on the path of a hit. So its time is a tick (base/ticks.h), which becomes a time of day when the
 * event is copied out; and a free that is completed at once takes one tick, and two tickets in a row, for its
 * two events.
 *
 *      slot   stamp: ticket + 1 once the words belong together, BUSY while they are written
 *             words, atomic, so that a reader may look while they change and finds out by the stamp
 *
 * Invariants:
 *      Y1  a slot is written by the holder of ticket t only after that of t - room has published
 *      Y2  while all pools are stopped and the miss lock is held, all tickets given out are published
 *
 * Locks: the ring is exchanged while everything is stopped, so tellers need nothing more than what
 * they hold. Copying out needs the handle's dump lock, which keeps the ring from being exchanged. */
#ifndef GR_LEDGER_HISTORY_H
#define GR_LEDGER_HISTORY_H

#include "base/ticks.h"
#include "ledger/stacks.h"

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

enum { GR_SLOT_WORDS = 7 };

struct gr_slot {
    atomic_uint_fast64_t stamp;
    atomic_uint_fast64_t word[GR_SLOT_WORDS];
};

struct gr_history {
    struct gr_stacks stacks;
    struct gr_ticks ticks; /* constant */
    atomic_int level;      /* enum granary_history_level */
    atomic_int sources;    /* GRANARY_STACKS_* */
    _Alignas(64) atomic_uint_fast64_t next;
    /* changed while everything is stopped */
    _Alignas(64) struct gr_slot *ring;
    uint64_t room;
    uint64_t inverse; /* (2^64 - 1) / room */
    uint64_t start;   /* ticket at which this ring began */
    uint64_t first;   /* of those that it has, unless it has gone round since */
    uint64_t cleared; /* tickets before this one do not count */
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

/* ---- while everything is stopped ------------------------------------------------------------- */

/* The ring is exchanged for one of `room` zeroed slots (NULL when room is 0), which takes over what fits
 * of the newest; returns the old one. */
struct gr_slot *gr_history_exchange(struct gr_history *history, struct gr_slot *ring, uint64_t room);
void gr_history_clear(struct gr_history *history);

/* Tickets of the events that the ring has: [*from, *to). */
void gr_history_span(const struct gr_history *history, uint64_t *from, uint64_t *to);

/* ---- under the dump lock --------------------------------------------------------------------- */

/* Copies the events of these tickets; those that have been overwritten meanwhile, always the oldest,
 * are left out. How many. */
size_t gr_history_copy(const struct gr_history *history, uint64_t from, uint64_t to, struct gr_event *out);

#endif
