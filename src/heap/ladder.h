/* SPDX-License-Identifier: Apache-2.0
 * The ladder of a miss: what is tried, rung by rung, when a pool has no block that fits.
 *
 *      1  the pool once more      another thread may have freed or grown meanwhile
 *      2  deferral                blocks whose other users are done by now; in a capture, blocks that
 *                                 the graph proves free, also of other streams if that is allowed
 *      3  grow                    place chosen by grow.h; memory from the handle cache, the driver,
 *                                 or idle memory of other places (reclaim.h)
 *      4  borrow                  free blocks of private pools that lend
 *      5  wait                    for the one pending block that helps most; then from 1
 *      6  failure                 the shortfall is filled in, nothing has changed but idle memory
 *                                 that was taken back from where it lay
 *
 * While a capture is open, rungs that ask events, wait or unmap do nothing.
 *
 * Locks: holds the miss lock throughout; pool locks only between driver calls. */
#ifndef GR_HEAP_LADDER_H
#define GR_HEAP_LADDER_H

#include "heap/heap.h"

GR_MUST int gr_ladder_climb(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, void **out,
                            struct granary_shortfall *shortfall);

#endif
