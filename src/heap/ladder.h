/* SPDX-License-Identifier: Apache-2.0
 * The ladder of a miss: what is tried, rung by rung, when a pool has no block that fits.
 *
 *      pool        once more            another thread may have freed or grown meanwhile; a block that is dear
 *                                       (pool.h) waits for a growth to be tried, and serves when that fails
 *      events      pending blocks       whose other users are done by now; in a capture, those that the graph
 *                                       proves free, also of other streams if that is allowed
 *      callbacks   of the program       which may free; api.c calls them with no lock held
 *      garbage     idle memory that     has lain longest goes back, above the threshold
 *      cache       handles              that were released and kept          \
 *      growth      the driver                                                 > growth.h
 *      reclaim     idle memory          of other places moves here           /
 *      wait        one event            of the pending block that helps most
 *      lending     free blocks          of private pools that allow it
 *      trim        all that is idle     goes back to the driver, when that is enough
 *
 * What may have put a block in the pool, or made room, leads back to the foot of the ladder. Failing
 * changes nothing but what lay idle, and fills in the shortfall (shortfall.h).
 *
 * While a capture is open, rungs that ask events, wait, unmap or free do nothing. Handles in the cache
 * are mapped nowhere; they may be released then too, and a growth that fails gives back what it made.
 *
 * Locks: holds the miss lock throughout; pool locks only between driver calls, so hits go on. */
#ifndef GR_HEAP_LADDER_H
#define GR_HEAP_LADDER_H

#include "heap/heap.h"

/* relieved: the callbacks were called for this request. Else the answer may be GR_HEAP_ASK: nothing has
 * happened yet, they are to be called. */
GR_MUST int gr_ladder_climb(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, bool relieved,
                            void **out, struct granary_shortfall *shortfall);

#endif
