/* SPDX-License-Identifier: Apache-2.0
 * The ring of the history: slots that tickets write, round after round.
 *
 *      ticket   ...  41   42   43   44   45 <- next
 *      slot      [ 44 | 45 | 42 | 43 ]          room 4: what is older was dropped
 *      event      f,g    h   d,e   c            a slot has one event, or both of a free that is completed at once
 *      aside     [    |  * |    |    ]          what hardly any event has
 *
 * Half a cache line each, since every event writes one. What does not fit stands aside, in an array of the same order
 * that takes no memory until it is written.
 *
 *      word 0   round of the ring, flags, action, number of the place, label     written last
 *           1   address
 *           2   size
 *           3   stamp (pace.h)
 *      aside    stream, heap, metadata
 *
 * The words are atomic, so that a reader may look while they change. Whoever overwrites one has drawn its ticket
 * before: a reader looks at the tickets afterwards, and so finds out.
 *
 * Invariants:
 *      Y1  a slot is written by the holder of ticket t only after that of t - room has written word 0
 *
 * Locks: none; who may exchange a ring is the history's affair. */
#ifndef GR_LEDGER_RING_H
#define GR_LEDGER_RING_H

#include <stdatomic.h>

#include "base/base.h"

enum { GR_SLOT_WORDS = 4, GR_ASIDE_WORDS = 3 };

/* Bits of word 0. The number of the place and the action with its flags have constants below. */
enum { GR_SLOT_ROUND = 56, GR_SLOT_ACTION = 48, GR_SLOT_PLACE = 32 };
#define GR_SLOT_ROUNDS ((uint64_t)0xFF)
#define GR_SLOT_ACTIONS ((uint64_t)0xF)
#define GR_SLOT_ASIDE ((uint64_t)0x40) /* flag: there is more, aside */
#define GR_SLOT_TWICE ((uint64_t)0x80) /* flag: a free completed at once is two events */
#define GR_SLOT_PLACES ((uint64_t)0xFFFF)

struct gr_slot {
    atomic_uint_fast64_t word[GR_SLOT_WORDS];
};
struct gr_aside {
    atomic_uint_fast64_t word[GR_ASIDE_WORDS];
};

struct gr_ring {
    struct gr_slot *slot;
    struct gr_aside *aside;
    uint64_t room;
    uint64_t inverse; /* (2^64 - 1) / room */
    uint64_t start;   /* ticket whose slot is the first */
    void *memory;     /* that all this lies in */
};

/* What it takes for an event. */
enum { GR_RING_ENTRY = sizeof(struct gr_slot) + sizeof(struct gr_aside) };

/* Zeroed slots; a room of 0 takes no memory. False when the host has none. */
GR_MUST bool gr_ring_make(uint64_t room, struct gr_ring *out);
void gr_ring_free(struct gr_ring *ring);

/* Where a ticket writes: its slot, and the round of the ring, from 1 on and modulo 256. */
struct gr_spot {
    struct gr_slot *slot;
    uint64_t round;
};

/* Without a division: the quotient by the inverse is at most one too small. The room is not 0. */
static GR_INLINE struct gr_spot gr_spot_of(const struct gr_ring *ring, uint64_t ticket) {
    uint64_t since = ticket - ring->start, round = (uint64_t)((unsigned __int128)since * ring->inverse >> 64),
             rest = since - round * ring->room;
    bool more = rest >= ring->room;
    return (struct gr_spot){&ring->slot[more ? rest - ring->room : rest],
                            (round + more + 1) & GR_SLOT_ROUNDS};
}
/* Slots from there on to the end of the ring. */
static inline uint64_t gr_spot_rest(const struct gr_ring *ring, struct gr_spot at) {
    return (uint64_t)(ring->slot + ring->room - at.slot);
}
static inline struct gr_aside *gr_spot_aside(const struct gr_ring *ring, struct gr_spot at) {
    return &ring->aside[at.slot - ring->slot];
}

/* The one that had the slot a round ago is done with it (Y1). */
static GR_INLINE bool gr_spot_ready(struct gr_spot at) {
    uint64_t last = atomic_load_explicit(&at.slot->word[0], memory_order_acquire) >> GR_SLOT_ROUND;
    return ((last + 1) & GR_SLOT_ROUNDS) == at.round;
}
void gr_spot_wait(struct gr_spot at);

/* Not before the ticket is drawn. */
static GR_INLINE void gr_word_put(atomic_uint_fast64_t *word, uint64_t value) {
    atomic_store_explicit(word, value, memory_order_release);
}

/* The slot is written. what: all of word 0 but the round. */
static GR_INLINE void gr_spot_put(struct gr_spot at, uint64_t what, uint64_t addr, uint64_t size,
                                  uint64_t stamp) {
    enum { AHEAD = 8 };                     /* the ring is larger than the caches that are near */
    __builtin_prefetch(at.slot + AHEAD, 1); /* behind the ring too, where it does nothing */
    gr_word_put(&at.slot->word[1], addr);
    gr_word_put(&at.slot->word[2], size);
    gr_word_put(&at.slot->word[3], stamp);
    gr_word_put(&at.slot->word[0], at.round << GR_SLOT_ROUND | what);
}

#endif
