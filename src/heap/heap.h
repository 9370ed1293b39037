/* SPDX-License-Identifier: Apache-2.0
 * The allocator of a device: heaps of pools, and who serves a request. It never touches tiles or
 * slots itself.
 *
 *      granary ── own heap ────── route (stream a) ── small pool, large pool
 *              ├─ private heap    route (stream b) ── ...
 *              ├─ streams         one object a stream, shared by the heaps
 *              └─ deferral        freed blocks that other streams still use
 *
 *      alloc   scope ─> heap ─> route ─> pool: take ─────────────────> hit
 *                                          └ nothing fits ─> ladder (ladder.h) ─> take
 *      free    address table ─> pool ─> live block: put
 *                                └ used by other streams ─> deferral ··· complete ─> put
 *
 * Invariants (gr_heap_check): those of every pool, the ledger, the extents, the deferral, and
 *      H1  reserved bytes of the ledger == mapped granules of all ranges + classic segments
 *      H2  granules held == mapped + cached
 *      H3  blocks parked in the deferral, or on their way from there == PENDING blocks of all pools
 *
 * Locks, in rank order: dump (history is copied out or kept in another way), miss (everything that grows or gives up memory), ledger, pools, deferral,
 * leaves (faults, scopes). A hit takes its pool's lock and, when it rises above a ceiling,
 * settles the ledger after it has given the pool's lock back. Slow driver calls run under the miss
 * lock alone. */
#ifndef GR_HEAP_HEAP_H
#define GR_HEAP_HEAP_H

#include "block/table.h"
#include "heap/callback.h"
#include "heap/route.h"
#include "heap/trimmer.h"
#include "policy/allowance.h"
#include "stream/defer.h"

struct gr_saved;

struct gr_heap {
    /* constant */
    struct granary *device;
    uint64_t name;        /* 0: the device's own */
    char kin[GR_CLASSES]; /* only their addresses: blocks of one kin may serve each other's streams */
    bool no_split;
    bool on_shortage; /* its free blocks serve the own heap before that fails */
    /* read without a lock, changed under miss */
    struct gr_routes routes;
    atomic_uint guests; /* allocations that a scope has sent here and that are under way: it stays */
    /* under miss */
    struct gr_list link; /* in granary.heaps */
    int64_t users;       /* 0: released, lives on until its blocks are gone */
    int64_t scopes;      /* open, captures included */
    int64_t captures;    /* open */
    bool captured;       /* a graph may hold its addresses: nothing is unmapped while it has users */
    bool unproved;       /* released after captures: launches end unseen, so giving up its memory
                              takes a synchronisation of the device */
};

struct granary {
    /* constant after opening */
    struct gr_driver driver;
    bool no_caching;    /* blocks are segments of their own and go when they are freed */
    size_t trim_above;  /* bytes held above which the trimmer gives back what is idle */
    char *oom_snapshot; /* file for a snapshot at out-of-memory, or NULL */
    /* read without a lock */
    struct gr_sizing sizing; /* written under miss */
    struct gr_address_table table;
    struct gr_heap own;
    atomic_uint routing; /* 0: the own heap serves all, and nothing else is to be done. One for each open
                            scope and capture, and for garbage collection and no caching; and GR_WATCHING */
    atomic_uint clock;   /* requests of large blocks to the own heap, while garbage is collected */
    struct gr_callbacks callbacks; /* has a lock of its own */
    struct gr_ledger ledger;       /* has a lock of its own */
    struct gr_defer defer;         /* likewise */
    atomic_uint_fast64_t failures; /* for want of memory, that may have written a snapshot */
    struct gr_lock dump;
    /* under miss */
    struct gr_lock miss;
    struct gr_extents extents;
    struct gr_list heaps; /* private ones */
    struct gr_stream *streams;
    size_t buried; /* streams that were destroyed, among them */
    struct gr_pool_pair *spare;
    struct granary_options settings; /* in force; what follows is made from them (settings.h) */
    struct gr_saved *saved;          /* those that pushes remembered, newest first */
    bool expandable;
    char expandable_reason[128]; /* why not */
    enum granary_reclaim reclaim;
    size_t extent;            /* usual granules of one */
    double garbage_threshold; /* part of the limit above which what lies idle goes back; 0: never */
    bool reject_early;        /* what there is no room for fails, whatever lies idle */
    size_t limit;             /* bytes of physical memory that may be held */
    size_t classic_bytes;     /* held by classic segments */
    size_t address_bytes;     /* reserved by ranges */
    size_t ranges;
    uint64_t waited_ns;            /* that giving memory up has waited for work, in all */
    struct gr_allowance allowance; /* of moving; */
    size_t restless;               /* bytes that moved faster than it allows, */
    size_t hasty;                  /* and of those what moved though a block fitted */
    uint64_t last_name;            /* of pools, scopes and captures */
    /* under scope_lock */
    struct gr_lock scope_lock;
    struct gr_list scopes; /* newest first (scope.h) */
    struct gr_trimmer trimmer;
    /* under fault_lock */
    struct gr_lock fault_lock;
    struct granary_fault fault;
};

GR_MUST int gr_heap_open(granary *g, const struct granary_options *options, int device, char *reason);
void gr_heap_close(granary *g);

/* Besides OK and failures: nothing has happened, and first callbacks that may free are to be called; or
 * growing is to be tried, since the block that fits is dear (gr_pool_is_dear). */
enum { GR_HEAP_ASK = 1, GR_HEAP_DEAR = 2 };

/* In granary.routing, while history is kept; and while each allocation, or each free, notes a stack. */
enum { GR_WATCHED = 1 << 30, GR_NOTED_ALLOC = 1 << 29, GR_NOTED_FREE = 1 << 28 };
#define GR_WATCHING ((unsigned)(GR_WATCHED | GR_NOTED_ALLOC | GR_NOTED_FREE))

/* Is more to be done than to serve from the own heap? */
static inline bool gr_heap_routes(const granary *g) {
    return (atomic_load_explicit(&g->routing, memory_order_acquire) & ~GR_WATCHING) != 0;
}

/* size > 0. On a failure for want of memory *shortfall is filled in. The own heap serves, and nothing else
 * is to be done. */
GR_MUST int gr_heap_alloc(granary *g, size_t size, gr_cu_stream stream, void **out,
                          struct granary_shortfall *shortfall);
/* Whatever is to be done besides. relieved: the answer was GR_HEAP_ASK, and they were called. */
GR_MUST int gr_heap_alloc_routed(granary *g, size_t size, gr_cu_stream stream, bool relieved, void **out,
                                 struct granary_shortfall *shortfall);
GR_MUST int gr_heap_free(granary *g, gr_addr addr);
/* The same once the lock of the pool has been taken; link: to the live block, or to NULL when there is none.
 * Gives the lock back. */
GR_MUST int gr_heap_free_locked(granary *g, struct gr_pool *pool, struct gr_block **link);
GR_MUST int gr_heap_use(granary *g, gr_addr addr, gr_cu_stream stream);
GR_MUST int gr_heap_size_of(granary *g, gr_addr addr, size_t *out);

/* Bytes of physical memory held: mapped, cached, classic. Under the miss lock. */
static inline size_t gr_heap_held(const granary *g) {
    return g->extents.held * g->extents.granule + g->classic_bytes;
}

/* One attempt to serve a request from a pool. OK, OUT_OF_MEMORY (nothing fits), HOST_MEMORY, or
 * GR_HEAP_DEAR. The second takes what fits, dear or not. */
GR_MUST int gr_heap_try(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, void **out);
GR_MUST int gr_heap_try_dear(granary *g, struct gr_pool *pool, size_t rounded, size_t requested, void **out);
/* Gives the pool's lock back and settles the ledger, which the last allocation has risen too high for. */
void gr_heap_settle(granary *g, struct gr_pool *pool);

/* Hands out a MOVING block of the pool, cut to the request. Cannot fail. */
void gr_heap_serve(granary *g, struct gr_pool *pool, struct gr_block *b, size_t rounded, size_t requested,
                   void **out);

/* A PENDING block of another stream's pool that a capture has proved free for `stream` as well is
 * handed out once more, used by both from here on. */
GR_MUST int gr_heap_retake(granary *g, struct gr_block *b, struct gr_stream *stream, size_t rounded,
                           size_t requested, void **out);

/* Freed blocks whose other users are done become FREE: a list by u.live.parked. No lock is held. */
void gr_heap_complete(granary *g, struct gr_block *list);

/* Walks all pools that are assigned: from NULL on, each after the one before. Under the miss lock. */
struct gr_heap *gr_heap_next(granary *g, struct gr_heap *after);
#define GR_HEAP_FOR(heap, g) \
    for (struct gr_heap *heap = gr_heap_next((g), NULL); heap; heap = gr_heap_next((g), heap))
#define GR_ROUTE_FOR(route, heap) \
    for (struct gr_route *route = (heap)->routes.first; route; route = route->next)

/* The pool of a route; NULL when it has none of the class. */
static inline struct gr_pool *gr_heap_pool(const struct gr_route *route, int class) {
    return atomic_load_explicit(&route->pool[class], memory_order_acquire);
}

/* The stream object of a normalised handle, made when it is new. Takes the miss lock unless held. */
GR_MUST int gr_heap_stream(granary *g, gr_cu_stream handle, bool miss_held, struct gr_stream **out);
/* The stream is about to be destroyed. */
GR_MUST int gr_heap_bury(granary *g, gr_cu_stream handle);

void gr_heap_read(granary *g, struct granary_stats *out);
/* What the ledger does not know, to what it has filled in. Under the miss lock. */
void gr_heap_read_rest(const granary *g, struct granary_stats *out);
const char *gr_heap_check(granary *g);

#endif
