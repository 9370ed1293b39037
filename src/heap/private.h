/* SPDX-License-Identifier: Apache-2.0
 * Private pools: heaps of their own memory, for graphs and for parts of programs. (What the public
 * interface calls a pool is a heap in here: a pool for each stream and class.)
 *
 *      create ──> users 1 .. n ──> released (users 0) ──> its last block freed ──> gone
 *
 * A heap that graphs were captured into keeps its memory mapped while it has users: the graphs hold
 * its addresses. Once released, its memory is idle like any other, except that launches of graphs
 * were not seen: before it is unmapped, the device is synchronised once.
 *
 * Locks: the miss lock. */
#ifndef GR_HEAP_PRIVATE_H
#define GR_HEAP_PRIVATE_H

#include "heap/heap.h"

/* By name; the own heap for 0; NULL when unknown or released. */
struct gr_heap *gr_private_find(granary *g, uint64_t name);

GR_MUST int gr_private_create(granary *g, const struct granary_pool_options *options, uint64_t *name);
GR_MUST int gr_private_retain(granary *g, uint64_t name);
GR_MUST int gr_private_release(granary *g, uint64_t name); /* UNKNOWN_POOL, BUSY */
GR_MUST int gr_private_read(granary *g, uint64_t name, struct granary_pool_stats *out);

/* Takes down what serves nobody any more: pools without segments of released heaps and of destroyed
 * streams, and released heaps without pools. Under the miss lock. */
void gr_private_sweep(granary *g);

/* The own heap's route to a destroyed stream that has nothing left: no memory in any heap, and no block waits for it.
 * Gives empty ranges of destroyed streams up. NULL: there is none, or a capture is open. Under the miss lock. */
struct gr_route *gr_private_spent(granary *g);

/* Frees a heap, or the routes of one, whose pools have no segments. */
void gr_private_free(granary *g, struct gr_heap *heap);
void gr_private_free_routes(granary *g, struct gr_heap *heap);

#endif
