/* SPDX-License-Identifier: Apache-2.0
 * Backing: how large the extents are that back new memory, and when idle memory is moved instead of making
 * new. THE policy of this library, in one place.
 *
 * To tell a second device of a mapping takes 1.1 ms instead of 46 us, whatever its size up to 20 MiB (two H200): then
 * no extent is smaller than that.
 *
 * Two facts pull apart (both measured on an H200): a handle costs the same up to 20 MiB, and kernels
 * lose bandwidth below it, so extents should be large; an extent is mapped and moved whole, so one
 * live block in it pins all of it, and near the limit extents should be small.
 *
 * Numbers in, numbers out; no state. */
#ifndef GR_POLICY_BACKING_H
#define GR_POLICY_BACKING_H

#include "policy/sizing.h"

/* Granules. Who asks for smaller extents than this wants memory to move more than kernels to run fast. */
enum { GR_BACKING_FAST = 3 };

struct gr_backing {
    size_t need;  /* granules still to be backed, in one run; at least 1 */
    size_t whole; /* granules that the growth needs in all; at least need */
    size_t held;  /* granules that exist on the device through this handle */
    size_t limit; /* granules that may exist */
    size_t usual; /* granules of an extent, as the options say; at least 1 */
    enum gr_class class;
    bool peers; /* other devices are told of each mapping */
};

/* Granules of the next extent, 1 .. need. */
size_t gr_backing_next(const struct gr_backing *b);

/* Granules that a growth brings at least, so that a row of small requests takes one growth: a 256th of what
 * is held, up to an extent, on a card with room. */
size_t gr_backing_least(size_t held, size_t limit, size_t usual);

/* Memory is short while so much is held that blocks should go where they pin least, and tight while so much is
 * active. */
static inline size_t gr_backing_full(size_t limit) {
    return limit - limit / 8;
}
static inline bool gr_backing_short(size_t held, size_t limit) {
    return held >= gr_backing_full(limit);
}

/* In a sparing pool: a block that fits and pins so many granules of idle memory, or fewer, can be too dear to be
 * taken before growing elsewhere was tried (pool/grow.h). All that the place elsewhere misses has to move; of
 * larger blocks that is too much to save a granule. Small extents say that memory counts for more than time. */
enum { GR_BACKING_DEAREST = 12 }; /* while memory is tight; */
static inline unsigned gr_backing_dearest(size_t usual) {
    return usual < GR_BACKING_FAST ? GR_BACKING_DEAREST : 4; /* while it is short */
}

/* May memory still move though a block fits? With small extents always; else as long as little has moved so beyond
 * the allowance of time (policy/allowance.h): hasty bytes. given: what was ever allocated. */
static inline bool gr_backing_picky(size_t usual, size_t hasty, size_t peak, size_t given) {
    return usual < GR_BACKING_FAST || hasty <= peak + given / 16;
}

/* While memory is tight it moves so that a block lies beside one handed out up to so many blocks ago, where what fits
 * lies beside older ones only, and older than the second says (pool/grow.h). */
enum { GR_BACKING_LATELY = 32 };
static inline uint32_t gr_backing_apart(size_t usual) {
    return usual < GR_BACKING_FAST ? 0 : 64;
}

/* What is known when a request needs new memory, in bytes. */
struct gr_need {
    size_t missing;  /* still to be backed */
    size_t active;   /* in use now */
    size_t peak;     /* most that was ever in use */
    size_t given;    /* what was ever allocated, in all */
    size_t moved;    /* what was ever moved, in all, */
    size_t restless; /* and of that, what moved while moving took too much of the time (policy/allowance.h) */
    size_t limit;    /* that may be held */
};

/* Bytes that may be held while new memory is made instead of idle memory being moved: what is, or ever was,
 * in use at once, and a margin. A move takes time and a margin takes memory, so traffic that never makes
 * idle memory move gets no margin, and what moves earns half as much: a run pays about once for what it
 * then keeps. The margin is at most a 36th, or 60 MiB where that is more, and shrinks as the limit comes
 * near: with the edges of blocks that leaves 4 %.
 *
 * That is enough for programs that compute, and do the same again and again: moving takes less than a thousandth of their
 * time. Large blocks of random sizes would move at every tenth request for ever. So what moves while moving takes too
 * much of the time, or beyond a 128th of what is allocated and once over, earns a quarter of it more, up to a quarter of
 * what is in use (figures: doc/benchmarks.md). */
static inline size_t gr_backing_watermark(const struct gr_need *n) {
    size_t most = gr_max(n->peak, n->active + n->missing);
    size_t room = n->limit > most ? n->limit - most : 0;
    size_t margin = gr_max(gr_min(most / 36, room / 8), 60 * GR_MIB);
    size_t restless = gr_max(n->restless, n->moved - gr_min(n->moved, most + n->given / 128));
    size_t more = gr_min(restless / 4, gr_min(most / 4, room / 8));
    return most + gr_min(margin, n->moved / 2) + more;
}

#endif
