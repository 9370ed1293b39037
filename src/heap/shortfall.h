/* SPDX-License-Identifier: Apache-2.0
 * Shortfall: the facts of an allocation that failed for want of memory. Words are made of them in
 * report/explain.h.
 *
 *      reserved = live + pending + free in: this pool | other class | other streams | private | graphs
 *
 * All pools are stopped while they are read, so the sums hold to the byte, whatever other threads do.
 *
 * Locks: the miss lock; stops all pools for a moment. */
#ifndef GR_HEAP_SHORTFALL_H
#define GR_HEAP_SHORTFALL_H

#include "heap/growth.h"

void gr_shortfall_fill(granary *g, const struct gr_request *r, struct granary_shortfall *out);

#endif
