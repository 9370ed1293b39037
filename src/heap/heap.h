/* SPDX-License-Identifier: Apache-2.0
 * The heap of a device: decides who serves a request. It never touches tiles or slots itself.
 *
 *      alloc   route ─> pool: take ─────────────────────────────> hit
 *                         └ nothing fits ─> ladder (ladder.h) ─> take
 *      free    address table ─> block ─> its pool: put
 *
 * Invariants (gr_heap_check): those of every pool, the ledger and the extents, and
 *      H1  reserved bytes of the ledger == mapped granules of all ranges + classic segments
 *      H2  granules held == mapped + cached
 *      H3  physical memory held never exceeds the limit, unless the limit was lowered below it
 *
 * Locks, in rank order: miss (everything that meets the driver), ledger, pools, fault (leaf).
 * A hit takes its pool's lock and, when it rises above the pool's ceiling, settles the ledger after
 * it has given the pool's lock back. Slow driver calls run under the miss lock alone. */
#ifndef GR_HEAP_HEAP_H
#define GR_HEAP_HEAP_H

#include "heap/route.h"

struct granary {
    /* constant after opening */
    struct gr_driver driver;
    struct gr_sizing sizing;
    bool expandable;
    char expandable_reason[128];
    /* read without a lock */
    struct gr_address_table table;
    struct gr_routes routes;
    struct gr_ledger ledger; /* has a lock of its own */
    /* under miss */
    struct gr_lock miss;
    struct gr_extents extents;
    size_t limit;          /* bytes of physical memory that may be held */
    size_t classic_bytes;  /* held by classic segments */
    size_t address_bytes;  /* reserved by ranges */
    size_t ranges;
    /* under fault_lock */
    struct gr_lock fault_lock;
    struct granary_fault fault;
};

GR_MUST int gr_heap_open(granary *g, const struct granary_options *options, int device, char *reason);
void gr_heap_close(granary *g);

/* size > 0. On a failure for want of memory *shortfall is filled in. */
GR_MUST int gr_heap_alloc(granary *g, size_t size, gr_cu_stream stream, void **out,
                          struct granary_shortfall *shortfall);
GR_MUST int gr_heap_free(granary *g, gr_addr addr);
GR_MUST int gr_heap_size_of(granary *g, gr_addr addr, size_t *out);

/* Bytes of physical memory held: mapped, cached, classic. Under the miss lock. */
static inline size_t gr_heap_held(const granary *g) {
    return g->extents.held * g->extents.granule + g->classic_bytes;
}

/* One attempt to serve a request from its pool. OK, OUT_OF_MEMORY (nothing fits), HOST_MEMORY. */
GR_MUST int gr_heap_try(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, void **out);

void gr_heap_read(granary *g, struct granary_stats *out);
const char *gr_heap_check(granary *g);

#endif
