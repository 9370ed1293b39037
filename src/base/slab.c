/* SPDX-License-Identifier: Apache-2.0
 * Fixed-size host objects that are reserved before an operation and cannot run out in its middle. */
#include "base/slab.h"

#include "base/host.h"

enum { LINE = 64 }; /* objects begin on cache lines */

void gr_slab_init(struct gr_slab *slab, size_t object_size, bool huge) {
    GR_ASSERT(object_size % LINE == 0 && object_size <= GR_SLAB_LEAST / 4, "S1");
    *slab = (struct gr_slab){.object_size = object_size, .huge = huge};
}

void gr_slab_fini(struct gr_slab *slab) {
    for (struct gr_slab_chunk *chunk = slab->first, *next; chunk; chunk = next) {
        next = chunk->next;
        gr_host_give(chunk);
    }
    *slab = (struct gr_slab){0};
}

static bool add_chunk(struct gr_slab *slab) {
    const bool huge = slab->huge && slab->bytes >= GR_SLAB_FEW;
    const size_t bytes = huge ? GR_HOST_HUGE : gr_max(slab->bytes, GR_SLAB_LEAST);
    struct gr_slab_chunk *chunk = gr_host_take(huge ? 2 : 1, bytes, 8);
    if (!chunk) return false;
    for (; slab->fresh != slab->end; slab->fresh += slab->object_size) {
        gr_slab_give(slab, slab->fresh);
        slab->spare--;
    }
    chunk->next = slab->first;
    slab->first = chunk;
    /* Within two huge pages one begins after the link, which is as large as their alignment, and ends at the latest with
     * them. */
    const size_t edge = huge ? GR_HOST_HUGE : LINE;
    uintptr_t start = gr_align_down((uintptr_t)(chunk + 1) + edge - 1, edge);
    uintptr_t end = huge ? start + GR_HOST_HUGE : (uintptr_t)chunk + bytes;
    if (huge) gr_host_advise_huge((void *)start);
    const size_t objects = (end - start) / slab->object_size;
    slab->fresh = (char *)start;
    slab->end = slab->fresh + objects * slab->object_size;
    slab->spare += objects;
    slab->objects += objects;
    slab->bytes += bytes;
    return true;
}

bool gr_slab_grow(struct gr_slab *slab, size_t count) {
    while (slab->spare < count)
        if (!add_chunk(slab)) return false;
    return true;
}

size_t gr_slab_taken(const struct gr_slab *slab) {
    return slab->objects - slab->spare;
}
