/* SPDX-License-Identifier: Apache-2.0
 * Routing: which pools of a heap serve a stream. A look-up that a hit can afford: one hash, no lock.
 *
 *      handle ── hash ──> slot ──> route { stream, small pool, large pool }
 *
 * Routes are added under the miss lock and published with a release store. A route whose stream is destroyed is
 * replaced by a tombstone in the table, so that its handle finds nothing any more; the route itself stays with the
 * heap until its memory has gone. Of the own heap it then serves another stream, since readers may still look at it.
 *
 * A table that fills up is replaced by another, and kept until fini, because readers may still be in it. It is used
 * again where one of its size is needed; a reader that is in it then may miss its route, and asks once more under the
 * lock, as for one that is not there.
 *
 * Locks: find none; all else the miss lock. */
#ifndef GR_HEAP_ROUTE_H
#define GR_HEAP_ROUTE_H

#include <stdatomic.h>

#include "pool/pool.h"
#include "stream/stream.h"

struct gr_heap;

/* Pools of a route: the pair that serves, one a class, and behind it the pair of the other kind of segment,
 * which served before expandable segments were switched on or off. Their blocks live on, nothing is
 * allocated from them. */
enum { GR_POOLS = 2 * GR_CLASSES };

struct gr_route {
    _Atomic(gr_cu_stream) handle;             /* that of the stream; NULL for a tombstone */
    struct gr_stream *stream;                 /* constant */
    struct gr_heap *heap;                     /* constant */
    _Atomic(struct gr_pool *) pool[GR_POOLS]; /* NULL until the first allocation */
    struct gr_route *next;                    /* of all routes of the heap; under the miss lock */
};

struct gr_route_table {
    size_t mask; /* slots - 1; a power of two less one */
    struct gr_route_table *older;
    _Atomic(struct gr_route *) slot[];
};

struct gr_routes {
    _Atomic(struct gr_route_table *) table;
    struct gr_route *first; /* newest first; under the miss lock */
    size_t used;            /* slots with a route or a tombstone */
};

GR_MUST bool gr_routes_init(struct gr_routes *routes);
/* The routes themselves were taken down before. */
void gr_routes_fini(struct gr_routes *routes);

static inline size_t gr_route_hash(gr_cu_stream handle) {
    return (size_t)((uintptr_t)handle * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* The route of a normalised stream handle, or NULL; of several with the same handle, the first that is the
 * calling thread's, or with `any` the first. */
static GR_INLINE struct gr_route *gr_route_look(struct gr_routes *routes, gr_cu_stream handle, bool any) {
    struct gr_route_table *table = atomic_load_explicit(&routes->table, memory_order_acquire);
    for (size_t i = gr_route_hash(handle);; i++) {
        struct gr_route *route = atomic_load_explicit(&table->slot[i & table->mask], memory_order_acquire);
        if (!route) return NULL;
        if (GR_LIKELY(atomic_load_explicit(&route->handle, memory_order_relaxed) == handle) &&
            (any || gr_stream_is(route->stream, handle)))
            return route;
    }
}

/* The route of a normalised stream handle as the calling thread means it, or NULL. */
static inline struct gr_route *gr_route_find(struct gr_routes *routes, gr_cu_stream handle) {
    return gr_route_look(routes, handle, handle != GR_CU_STREAM_PER_THREAD);
}

/* Makes room for one more route; false when the host has no memory. Then publishing cannot fail. */
GR_MUST bool gr_route_reserve(struct gr_routes *routes);
void gr_route_publish(struct gr_routes *routes, struct gr_route *route);
/* Its handle finds it no more. */
void gr_route_hide(struct gr_routes *routes, struct gr_route *route);
/* One that was hidden leaves the list of all. */
void gr_route_unlink(struct gr_routes *routes, struct gr_route *route);

#endif
