/* SPDX-License-Identifier: Apache-2.0
 * Fixed-size host objects that are reserved before an operation and cannot run out in its middle.
 *
 *      chunk, 16 KiB, aligned to 16 KiB
 *      | owner, next chunk | object | object | object | ...
 *
 * reserve may fail; take after a sufficient reserve cannot. Objects never move between slabs and
 * chunks stay until fini: an object pointer that has gone stale still points at an object of the
 * same slab, and gr_slab_owner finds the slab's owner from any object without reading the object.
 *
 * Invariant: S1 spare == length of the free list.
 * Locks: the caller's. gr_slab_owner needs none. */
#ifndef GR_BASE_SLAB_H
#define GR_BASE_SLAB_H

#include "base/base.h"

enum { GR_SLAB_CHUNK = 16 * 1024 };

struct gr_slab_chunk {
    void *owner; /* constant */
    struct gr_slab_chunk *next;
};

struct gr_slab_free {
    struct gr_slab_free *next;
};

struct gr_slab {
    void *owner;        /* constant */
    size_t object_size; /* constant; a multiple of 64 */
    struct gr_slab_free *free;
    size_t spare;  /* objects that take can hand out */
    size_t chunks; /* each GR_SLAB_CHUNK bytes of host memory */
    struct gr_slab_chunk *first;
};

void gr_slab_init(struct gr_slab *slab, size_t object_size, void *owner);
void gr_slab_fini(struct gr_slab *slab);

/* Makes sure that count objects can be taken. False when the host has no memory. */
GR_MUST bool gr_slab_reserve(struct gr_slab *slab, size_t count);
/* Zeroes nothing: an object comes as it was given back, and fresh ones are zero. */
void *gr_slab_take(struct gr_slab *slab);
void gr_slab_give(struct gr_slab *slab, void *object);

/* Objects that are taken and not given back. */
size_t gr_slab_taken(const struct gr_slab *slab);

static inline void *gr_slab_owner(const void *object) {
    return ((struct gr_slab_chunk *)((uintptr_t)object & ~(uintptr_t)(GR_SLAB_CHUNK - 1)))->owner;
}

#endif
