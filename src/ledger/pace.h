/* SPDX-License-Identifier: Apache-2.0
 * Pace: when the clock is read. On some hosts that takes longer than all else of a cached allocation, so events that
 * come so densely that it would take more than a quarter of the time share a reading.
 *
 *      event     R R R ... R  R s s s s s s s s s s s s s s s R s s s s  s   s   s ...  R    R    R
 *      dense     - + + ... +  +  32 in a row: the next 15 share it    +            |    -
 *                                                                                  silence: who shares does not notice
 *
 *      R  reads the clock           stamp = tick
 *      s  shares, n-th after it     stamp = tick of the reading | n << 60
 *
 * A reading is dense when the events since the one before it took, each, less than four times what a reading takes
 * (some 40 to 90 ns). So a program whose events are further apart has the time of each from the clock, as have all
 * events of threads that take turns. What shares is known to lie between its reading and the next one in the ring
 * (history.h), which are hardly a microsecond apart; but for a silence after a dense row, which nobody notices before
 * the next reading. So whoever reads the history is told how far off a time may be.
 *
 * It is the owner's of the tickets. Who becomes the owner has drawn more of them in a row than may share a reading, so
 * that none of the owner before is among those:
 *      K3  a reading is shared by tickets that follow each other and are all of one thread
 *
 * Locks: none; changed by the owner inside of its seat (ticket.h), or while everything is stopped. */
#ifndef GR_LEDGER_PACE_H
#define GR_LEDGER_PACE_H

#include "base/ticks.h"

enum {
    GR_PACE_SHARE = 16, /* events that have one reading, at most */
    GR_PACE_ROW = 32,   /* readings in a row that must be dense before */
    GR_PACE_PART = 4,   /* dense: readings would take more than this part of the time */
    GR_STAMP_AFTER = 60 /* bits below are the tick; above, how many tickets after the reading */
};
#define GR_STAMP_TICK (((uint64_t)1 << GR_STAMP_AFTER) - 1)

struct gr_pace {
    uint64_t tick;  /* last reading, */
    uint64_t at;    /* by this ticket, */
    uint64_t share; /* good for those that are less than this after it */
    uint64_t row;   /* readings in a row that were dense */
    uint64_t dense; /* ticks an event, below which it is; 0: none ever shares. Constant */
};

/* No ticket is a few after this one. */
#define GR_PACE_NEVER ((uint64_t)1 << 63)

/* The next event reads, as if there had been no reading. */
static inline void gr_pace_break(struct gr_pace *pace) {
    pace->at = GR_PACE_NEVER;
    pace->share = pace->row = 0;
}

static inline void gr_pace_init(struct gr_pace *pace, const struct gr_ticks *ticks) {
    *pace = (struct gr_pace){.dense = GR_PACE_PART * ticks->cost};
    gr_pace_break(pace);
}

/* The clock was read for a ticket, so many after that of the last reading. At most so many may have the reading, this
 * one included. */
static inline void gr_pace_note(struct gr_pace *p, uint64_t ticket, uint64_t after, uint64_t tick,
                                uint64_t most) {
    bool dense = after <= GR_PACE_SHARE && tick - p->tick < after * p->dense;
    p->row = dense ? p->row + 1 : 0;
    p->share = p->row >= GR_PACE_ROW ? gr_min(GR_PACE_SHARE, most) : 1;
    p->tick = tick;
    p->at = ticket;
}

/* The stamp of the owner's next ticket, if it is so many after that of the last reading. False: it reads. */
GR_MUST static GR_INLINE bool gr_pace_shares(const struct gr_pace *p, uint64_t after, uint64_t *stamp) {
    *stamp = p->tick | after << GR_STAMP_AFTER;
    return after < p->share;
}

#endif
