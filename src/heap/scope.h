/* SPDX-License-Identifier: Apache-2.0
 * Scopes: which heap serves an allocation, when it is not the device's own.
 *
 *      newest  [ capture of s1 -> P2 ] [ this thread -> P1 ] [ streams that match -> P3 ]  oldest
 *                      the first that matches wins; none: the own heap
 *
 * A capture is a scope that matches the streams which the driver says are part of it. While nothing
 * is open, an allocation pays one load for all this.
 *
 * Locks: scopes change under miss and scope_lock together, so holding either is enough to read them.
 * A caller's match function is called with no lock held. */
#ifndef GR_HEAP_SCOPE_H
#define GR_HEAP_SCOPE_H

#include "heap/heap.h"

enum gr_scope_kind { GR_SCOPE_THREAD, GR_SCOPE_MATCH, GR_SCOPE_CAPTURE };

struct gr_scope {
    struct gr_list link;
    uint64_t name;
    enum gr_scope_kind kind;
    struct gr_heap *heap;
    uint64_t thread; /* number of the one that began it */
    granary_stream_match match;
    void *context;
    struct gr_capture capture;
};

/* The heap for an allocation by this thread on the stream. Called when anything is open. */
struct gr_heap *gr_scope_heap(granary *g, gr_cu_stream stream);
/* That allocation is over. */
static inline void gr_scope_leave(struct gr_heap *heap) {
    atomic_fetch_sub_explicit(&heap->guests, 1, memory_order_release);
}

/* Is freeing a block of this heap wrong for this thread: the heap is part of an open capture, and the
 * thread is in another one only? */
bool gr_scope_forbids(granary *g, const struct gr_heap *heap);

/* match NULL: this thread. Both return UNKNOWN_POOL, HOST_MEMORY. */
GR_MUST int gr_scope_begin(granary *g, uint64_t pool, granary_stream_match match, void *context,
                           uint64_t *name);
GR_MUST int gr_scope_begin_capture(granary *g, uint64_t pool, gr_cu_stream stream, uint64_t *name);
/* INVALID (no such scope), ORDER, BUSY (the capture still runs). */
GR_MUST int gr_scope_end(granary *g, uint64_t name, bool capture);

/* The handle closes: nothing is in force any more. */
void gr_scope_drop_all(granary *g);

#endif
