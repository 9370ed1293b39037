/* SPDX-License-Identifier: Apache-2.0
 * Fixed-size host objects that are reserved before an operation and cannot run out in its middle.
 *
 *      chunk     | next | object | object | object | ...         each on cache lines of its own
 *      huge      | next |     | object | object | ... |     |    the objects on one huge page
 *
 *      first 16 KiB; then each as large as all before it together. If that is wished, from 64 KiB in all on a huge
 *      page each: so many objects, used in random order, would cost the processor a page walk each. Of a chunk
 *      nothing but its link is touched before it is handed out, and nothing of what lies around a huge page ever.
 *
 * reserve may fail; take after a sufficient reserve cannot. Chunks stay until fini: a pointer to an
 * object that was given back points at an object still.
 *
 * Invariant: S1 spare == length of the free list + objects from fresh to end.
 * Locks: the caller's. */
#ifndef GR_BASE_SLAB_H
#define GR_BASE_SLAB_H

#include "base/base.h"
#include "base/check.h"

enum {
    GR_SLAB_LEAST = 16 * 1024, /* bytes of a chunk */
    GR_SLAB_FEW = 64 * 1024    /* in all, before huge pages come */
};

struct gr_slab_chunk {
    struct gr_slab_chunk *next;
};

struct gr_slab_free {
    struct gr_slab_free *next;
};

struct gr_slab {
    size_t object_size; /* constant; a multiple of 64 */
    bool huge;          /* constant */
    struct gr_slab_free *free;
    char *fresh, *end; /* of the newest chunk: what was never handed out */
    size_t spare;      /* objects that take can hand out */
    size_t objects;    /* in all chunks */
    size_t bytes;      /* of all chunks, for objects */
    struct gr_slab_chunk *first;
};

/* huge: they will be used in random order, many at a time. */
void gr_slab_init(struct gr_slab *slab, size_t object_size, bool huge);
void gr_slab_fini(struct gr_slab *slab);

/* Makes sure that count objects can be taken. False when the host has no memory. */
GR_MUST bool gr_slab_grow(struct gr_slab *slab, size_t count);
GR_MUST static inline bool gr_slab_reserve(struct gr_slab *slab, size_t count) {
    return GR_LIKELY(slab->spare >= count) || gr_slab_grow(slab, count);
}
/* Zeroes nothing: an object comes as it was given back, and fresh ones are zero. */
static inline void *gr_slab_take(struct gr_slab *slab) {
    struct gr_slab_free *object = slab->free;
    GR_ASSERT(slab->spare > 0, "S1");
    slab->spare--;
    if (GR_LIKELY(object != NULL)) {
        slab->free = object->next;
        return object;
    }
    void *fresh = slab->fresh;
    slab->fresh += slab->object_size;
    return fresh;
}

static inline void gr_slab_give(struct gr_slab *slab, void *object) {
    struct gr_slab_free *entry = object;
    entry->next = slab->free;
    slab->free = entry;
    slab->spare++;
}

/* Objects that are taken and not given back. */
size_t gr_slab_taken(const struct gr_slab *slab);

#endif
