/* SPDX-License-Identifier: Apache-2.0
 * Tallies and accounts: the figures of blocks, which hits change, and how far they may rise before the
 * ledger has to be asked.
 *
 *      account    lock, room below the ceilings of both pools of a stream together
 *        tally    small pool: totals, room below its ceilings
 *        tally    large pool: likewise
 *
 * What is kept is the room, not the value: to rise is to subtract, and the sign says when to ask. The
 * account's room is for both classes, so a stream that frees blocks of one class and allocates of the
 * other stays under it, however close to the peak it is.
 *
 * A block that is allocated is active too, and nearly always ceases to be both at once. So one number
 * stands for both figures, the room of the one that has less; how far the other is ahead changes only
 * when a free has to wait.
 *
 * Locks: the account's, of rank POOL, which is the lock of both pools; the ledger changes ceilings under
 * this lock and its own. */
#ifndef GR_LEDGER_TALLY_H
#define GR_LEDGER_TALLY_H

#include "base/bias.h"
#include "base/list.h"
#include "ledger/history.h"
#include "policy/sizing.h"

/* Figures of blocks. */
enum gr_figure {
    GR_ALLOCATED_BYTES,
    GR_ACTIVE_BYTES,
    GR_REQUESTED_BYTES,
    GR_ALLOCATIONS,
    GR_ACTIVE_BLOCKS,
    GR_FIGURES
};

/* What a block adds to them. */
enum gr_count { GR_BYTES, GR_BLOCKS, GR_REQUESTED, GR_COUNTS };
enum { GR_TWOFOLD = GR_REQUESTED }; /* those before it have two figures: allocated and active */

/* How far figures may rise without asking. */
struct gr_room {
    int64_t left[GR_COUNTS];   /* ceiling less current value; of two figures the lesser room */
    int64_t ahead[GR_TWOFOLD]; /* room of the allocated figure less that of the active one */
};

/* Figures of a pool. Under the account's lock. */
struct gr_tally {
    struct gr_account *account; /* constant */
    struct gr_history *history; /* where events go; NULL: nowhere */
    struct gr_history *told; /* the same, where a hit tells it: events are kept, and the place has a number */
    int64_t up[GR_COUNTS];   /* everything ever added */
    struct gr_room room;
    int64_t ceiling[GR_COUNTS];  /* of the active figures */
    int64_t waiting[GR_TWOFOLD]; /* active and not allocated: frees that wait */
    struct gr_place place;       /* what events say of the pool */
    enum gr_class class;         /* constant */
};

/* What the two pools of a stream have in common. */
struct gr_account {
    struct gr_bias lock;
    struct gr_room room;                /* of both together */
    struct gr_tally *tally[GR_CLASSES]; /* constant */
    atomic_uint passes;                 /* rises that may still pass */
    atomic_uint patience;               /* of as many; changed under the ledger's lock */
    struct gr_list link;                /* under ledger lock */
};

/* The count that a figure is of, and whether it is the allocated one of two. */
static inline enum gr_count gr_figure_count(enum gr_figure figure) {
    return figure == GR_REQUESTED_BYTES                             ? GR_REQUESTED
           : figure == GR_ALLOCATIONS || figure == GR_ACTIVE_BLOCKS ? GR_BLOCKS
                                                                    : GR_BYTES;
}
static inline bool gr_figure_allocated(enum gr_figure figure) {
    return figure == GR_ALLOCATED_BYTES || figure == GR_ALLOCATIONS;
}

/* Room of one figure. */
static inline int64_t gr_room_of(const struct gr_room *room, enum gr_figure figure) {
    enum gr_count count = gr_figure_count(figure);
    int64_t ahead = (int)count < GR_TWOFOLD ? room->ahead[count] : 0; /* 0: there is no other figure */
    int64_t more = gr_figure_allocated(figure) ? ahead : -ahead;
    return room->left[count] + (more > 0 ? more : 0);
}

/* Current value of one figure. */
static inline int64_t gr_tally_now(const struct gr_tally *tally, enum gr_figure figure) {
    enum gr_count count = gr_figure_count(figure);
    enum gr_figure active = count == GR_BYTES    ? GR_ACTIVE_BYTES
                            : count == GR_BLOCKS ? GR_ACTIVE_BLOCKS
                                                 : GR_REQUESTED_BYTES;
    int64_t now = tally->ceiling[count] - gr_room_of(&tally->room, active);
    return gr_figure_allocated(figure) ? now - tally->waiting[count] : now;
}

/* over, or whether there was less. */
GR_MUST static inline bool gr_room_sink(int64_t *left, size_t by, bool over) {
    *left -= (int64_t)by;
    if (GR_UNLIKELY(*left < 0)) {
        GR_KEEP_BRANCH();
        over = true;
    }
    return over;
}

/* Takes what a block needs. over, or whether some of it was not there. */
GR_MUST static inline bool gr_room_take(struct gr_room *room, size_t size, size_t requested, bool over) {
    over = gr_room_sink(&room->left[GR_BYTES], size, over);
    over = gr_room_sink(&room->left[GR_BLOCKS], 1, over);
    return gr_room_sink(&room->left[GR_REQUESTED], requested, over);
}

static inline void gr_room_give(struct gr_room *room, size_t size, size_t requested) {
    room->left[GR_BYTES] += (int64_t)size;
    room->left[GR_BLOCKS] += 1;
    room->left[GR_REQUESTED] += (int64_t)requested;
}

#endif
