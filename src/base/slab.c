/* SPDX-License-Identifier: Apache-2.0
 * Fixed-size host objects that are reserved before an operation and cannot run out in its middle. */
#include "base/slab.h"

#include "base/check.h"
#include "base/host.h"

enum { HEADER = 64 }; /* keeps objects on cache lines of their own */

void gr_slab_init(struct gr_slab *slab, size_t object_size, void *owner) {
    GR_ASSERT(object_size % 64 == 0 && object_size <= GR_SLAB_CHUNK - HEADER, "S1");
    *slab = (struct gr_slab){.owner = owner, .object_size = object_size};
}

void gr_slab_fini(struct gr_slab *slab) {
    for (struct gr_slab_chunk *chunk = slab->first, *next; chunk; chunk = next) {
        next = chunk->next;
        gr_host_give(chunk);
    }
    *slab = (struct gr_slab){0};
}

static size_t objects_of_chunk(const struct gr_slab *slab) {
    return (GR_SLAB_CHUNK - HEADER) / slab->object_size;
}

bool gr_slab_reserve(struct gr_slab *slab, size_t count) {
    while (slab->spare < count) {
        struct gr_slab_chunk *chunk = gr_host_take(1, GR_SLAB_CHUNK, GR_SLAB_CHUNK);
        if (!chunk) return false;
        chunk->owner = slab->owner;
        chunk->next = slab->first;
        slab->first = chunk;
        slab->chunks++;
        /* Last object first, so that objects are handed out in rising address. */
        for (size_t n = objects_of_chunk(slab); n-- > 0;)
            gr_slab_give(slab, (char *)chunk + HEADER + n * slab->object_size);
    }
    return true;
}

void *gr_slab_take(struct gr_slab *slab) {
    struct gr_slab_free *object = slab->free;
    GR_ASSERT(object && slab->spare > 0, "S1");
    slab->free = object->next;
    slab->spare--;
    return object;
}

void gr_slab_give(struct gr_slab *slab, void *object) {
    struct gr_slab_free *entry = object;
    entry->next = slab->free;
    slab->free = entry;
    slab->spare++;
}

size_t gr_slab_taken(const struct gr_slab *slab) {
    return slab->chunks * objects_of_chunk(slab) - slab->spare;
}
