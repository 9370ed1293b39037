/* SPDX-License-Identifier: Apache-2.0
 * Reclaim: idle memory leaves the place where it lies, to serve another or to go back to the driver.
 *
 *      pool A   | LIVE | FREE [ext] | ...      proof: the stream's epoch is complete
 *                            |
 *                            v loose extent  ──> mapped for pool B, cached, or released
 *
 * Live blocks never move and addresses stay valid. Nothing is unmapped before an event proves that
 * the stream that freed it has passed the free; waiting is for that one event.
 *
 * Never touched: anything while a capture is open; memory of a heap whose graphs may still run.
 *
 * Order of victims: the pool itself (holes between its live blocks), the other class of its stream,
 * then other streams; memory that is known idle before memory that must be waited for.
 *
 * Locks: the miss lock; pool locks only between driver calls. */
#ifndef GR_HEAP_RECLAIM_H
#define GR_HEAP_RECLAIM_H

#include "heap/heap.h"

/* May memory of this heap be unmapped at all? Not while graphs that hold its addresses may still run. */
static inline bool gr_reclaim_allowed(const struct gr_heap *heap) {
    return heap->users == 0 || !heap->captured;
}

/* Bytes that could be reclaimed, were all streams idle; stops counting at enough. */
size_t gr_reclaim_possible(granary *g, size_t enough);

/* Takes one piece of idle memory, about want granules, from wherever it is least missed: its extents
 * are added to loose. Waits for a stream only if asked to, and then only when nothing else is known
 * to be idle. Returns granules, 0 when there is nothing. */
size_t gr_reclaim_take(granary *g, struct gr_pool *beneficiary, size_t want, bool may_wait,
                       struct gr_list *loose);

/* Gives one wholly free classic segment back to the driver; returns its bytes, 0 when there is none. */
size_t gr_reclaim_classic(granary *g);

/* Garbage collection: while more is held than the threshold allows, cached handles go back, and then idle
 * memory of large blocks of the own heap, the longest unused first. Ages are counted in requests of large
 * blocks since a block was freed; of all that is idle, what is at least as old as the mean goes, as long as
 * too much is held. PyTorch's rule, on classic segments to the byte; on ranges it stops when enough has
 * gone. Only what is known idle: nothing is waited for, and nothing happens while a capture is open.
 * Returns bytes. */
size_t gr_reclaim_collect(granary *g);

/* With no caching: all free segments go. Takes the miss lock. */
void gr_reclaim_uncached(granary *g);

/* Everything idle goes back to the driver until at most keep bytes are held. Empty ranges are given up as
 * well; but for the last one of a pool of the own heap, which stays while addresses are plenty
 * (gr_sizing_keeps_range) unless `addresses` are what is wanted. Returns OK, BUSY while a capture is open,
 * or the first refusal. */
GR_MUST int gr_reclaim_trim(granary *g, size_t keep, bool addresses, size_t *released);

/* One piece of memory that is known to be idle, or cached, goes back to the driver, without waiting, while
 * more than keep bytes are held; nothing of classic segments. Returns bytes, 0 when there is none. */
size_t gr_reclaim_shed(granary *g, size_t keep);

/* Ranges of the pool that are one single hole are given up. */
void gr_reclaim_close_empty(granary *g, struct gr_pool *pool);

/* The heap's memory goes, live blocks too. All work is complete. */
void gr_reclaim_drop(granary *g, struct gr_heap *heap);

#endif
