/* SPDX-License-Identifier: Apache-2.0
 * Extents: physical memory, one driver handle each, and the cache of released ones. */
#include "memory/extent.h"

#include "base/check.h"

_Static_assert(sizeof(struct gr_extent) <= 64, "an extent is one slab object");

static struct gr_extent *extent_of(struct gr_list *link) {
    return GR_CONTAINER(link, struct gr_extent, link);
}

void gr_extents_init(struct gr_extents *extents, struct gr_driver *driver, size_t cache_limit_bytes) {
    *extents = (struct gr_extents){.driver = driver, .granule = driver->facts.granule};
    gr_slab_init(&extents->slab, 64, false);
    gr_list_init(&extents->cache);
    extents->cache_limit = cache_limit_bytes / extents->granule;
}

void gr_extents_limit_cache(struct gr_extents *extents, size_t bytes) {
    extents->cache_limit = bytes / extents->granule;
    gr_extents_flush(extents, extents->cache_limit);
}

void gr_extents_fini(struct gr_extents *extents) {
    gr_slab_fini(&extents->slab);
}

bool gr_extents_reserve(struct gr_extents *extents, size_t count) {
    return gr_slab_reserve(&extents->slab, count);
}

static struct gr_extent *uncache(struct gr_extents *extents, struct gr_extent *extent) {
    gr_list_remove(&extent->link);
    extents->cached -= extent->granules;
    return extent;
}

struct gr_extent *gr_extents_take_cached(struct gr_extents *extents, size_t want) {
    struct gr_extent *best = NULL;
    GR_LIST_FOR(link, &extents->cache) {
        struct gr_extent *extent = extent_of(link);
        if (extent->granules <= want && (!best || extent->granules > best->granules)) best = extent;
        if (best && best->granules == want) break;
    }
    return best ? uncache(extents, best) : NULL;
}

int gr_extents_get(struct gr_extents *extents, size_t granules, struct gr_extent **out) {
    struct gr_driver *d = extents->driver;
    GR_LIST_FOR(link, &extents->cache) {
        if (extent_of(link)->granules != granules) continue;
        *out = uncache(extents, extent_of(link));
        return GRANARY_OK;
    }
    const struct gr_cu_mem_prop prop = {
        .type = GR_CU_MEM_TYPE_PINNED,
        .location = {.type = GR_CU_LOCATION_DEVICE, .id = d->facts.device},
        .flags = {.rdma_capable = d->facts.rdma},
    };
    gr_cu_handle handle;
    int status = gr_driver_status(d, GR_ENTRY_cuMemCreate,
                                  GR_DRIVE(d, cuMemCreate, &handle, granules * extents->granule, &prop, 0));
    if (status != GRANARY_OK) return status;
    struct gr_extent *extent = gr_slab_take(&extents->slab);
    *extent = (struct gr_extent){.handle = handle, .granules = granules};
    gr_list_init(&extent->link);
    extents->count++;
    extents->held += granules;
    *out = extent;
    return GRANARY_OK;
}

void gr_extents_release(struct gr_extents *extents, struct gr_extent *extent) {
    GR_ASSERT(!extent->range, "E1");
    /* A second refusal leaves nothing to be done: the context is lost, or the handle was never ours. */
    if (!gr_driver_forked(extents->driver))
        gr_driver_ignore(extents->driver, GR_ENTRY_cuMemRelease,
                         GR_TWICE(GR_DRIVE(extents->driver, cuMemRelease, extent->handle)));
    extents->count--;
    extents->held -= extent->granules;
    gr_slab_give(&extents->slab, extent);
}

void gr_extents_put(struct gr_extents *extents, struct gr_extent *extent) {
    if (extent->granules > extents->cache_limit) {
        gr_extents_release(extents, extent);
        return;
    }
    gr_list_append(&extents->cache, &extent->link);
    extents->cached += extent->granules;
    gr_extents_flush(extents, extents->cache_limit);
}

size_t gr_extents_flush(struct gr_extents *extents, size_t keep) {
    size_t freed = 0;
    while (extents->cached > keep) {
        struct gr_extent *extent = uncache(extents, extent_of(extents->cache.next));
        freed += extent->granules;
        gr_extents_release(extents, extent);
    }
    return freed;
}

const char *gr_extents_check(const struct gr_extents *extents) {
    size_t cached = 0;
    GR_LIST_FOR(link, (struct gr_list *)&extents->cache) {
        if (extent_of(link)->range) return "E2";
        cached += extent_of(link)->granules;
    }
    if (cached != extents->cached || cached > extents->cache_limit) return "E2";
    return extents->held >= cached && (extents->count > 0 || extents->held == 0) ? NULL : "E1";
}
