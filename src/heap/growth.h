/* SPDX-License-Identifier: Apache-2.0
 * Growth: a pool gets more physical memory, and where that comes from.
 *
 *      expandable   place (pool/grow.h) ──> loose extents ──> mapped ──> FREE: the pool is searched again
 *                                              ^
 *                       handle cache, driver, idle memory of other places (reclaim.h)
 *
 *      classic      one cuMemAlloc, which serves the request itself; idle segments go when there is no room
 *
 * All memory that a place needs is there before anything is mapped. What a failed growth has made goes
 * to the handle cache or back; what it has taken from elsewhere was idle.
 *
 * Locks: the miss lock; pool locks only between driver calls. */
#ifndef GR_HEAP_GROWTH_H
#define GR_HEAP_GROWTH_H

#include "heap/heap.h"

/* A request that its pool could not serve, and what was found out about it. */
struct gr_request {
    struct gr_pool *pool;
    size_t rounded, requested;
    void **out;
    int status;     /* of the last attempt */
    unsigned tried; /* 1 << enum granary_rung */
    bool fits;      /* a block of the pool would do: nothing is waited for, and growth may fail */
    bool grown;     /* the pool has grown for it, or has tried to: what fits by now serves */
    size_t missing; /* bytes of physical memory that a growth would have to add */
    /* of the growth under way */
    size_t moved;       /* granules of idle memory that it took from elsewhere */
    uint64_t moving_ns; /* how long that took */
};

static inline void gr_growth_try(struct gr_request *r, enum granary_rung rung) {
    r->tried |= 1u << rung;
}

/* OK with *served: handed out; OK without: the pool has a block that fits. OUT_OF_MEMORY, OVER_LIMIT,
 * ADDRESS_SPACE, HOST_MEMORY, or the driver's refusal. */
GR_MUST int gr_growth_run(granary *g, struct gr_request *r, bool *served);

/* Bytes that may still be made under the limit. */
static inline size_t gr_growth_room(const granary *g) {
    size_t held = gr_heap_held(g);
    return held < g->limit ? g->limit - held : 0;
}

/* Bytes that the driver says are free on the device, 0 when it does not say. */
size_t gr_growth_device_free(granary *g);

#endif
