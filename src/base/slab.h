/* SPDX-License-Identifier: Apache-2.0
 * Fixed-size host objects that are reserved before an operation and cannot run out in its middle.
 *
 *      chunk     | next | object | object | object | ...         each on cache lines of its own
 *
 *      first 16 KiB; then each as large as all before it together, up to 8 MiB. Large ones are asked for
 *      on huge pages: many objects used in random order cost the processor a page walk each otherwise.
 *      Nothing of a chunk is touched before it is handed out.
 *
 * reserve may fail; take after a sufficient reserve cannot. Chunks stay until fini: a pointer to an
 * object that was given back points at an object still.
 *
 * Invariant: S1 spare == length of the free list + objects from fresh to end.
 * Locks: the caller's. */
#ifndef GR_BASE_SLAB_H
#define GR_BASE_SLAB_H

#include "base/base.h"

enum { GR_SLAB_LEAST = 16 * 1024, GR_SLAB_MOST = 8 * 1024 * 1024 }; /* bytes of a chunk */

struct gr_slab_chunk {
    struct gr_slab_chunk *next;
};

struct gr_slab_free {
    struct gr_slab_free *next;
};

struct gr_slab {
    size_t object_size; /* constant; a multiple of 64 */
    struct gr_slab_free *free;
    char *fresh, *end; /* of the newest chunk: what was never handed out */
    size_t spare;      /* objects that take can hand out */
    size_t objects;    /* in all chunks */
    size_t bytes;      /* of all chunks */
    struct gr_slab_chunk *first;
};

void gr_slab_init(struct gr_slab *slab, size_t object_size);
void gr_slab_fini(struct gr_slab *slab);

/* Makes sure that count objects can be taken. False when the host has no memory. */
GR_MUST bool gr_slab_reserve(struct gr_slab *slab, size_t count);
/* Zeroes nothing: an object comes as it was given back, and fresh ones are zero. */
void *gr_slab_take(struct gr_slab *slab);
void gr_slab_give(struct gr_slab *slab, void *object);

/* Objects that are taken and not given back. */
size_t gr_slab_taken(const struct gr_slab *slab);

#endif
