/* SPDX-License-Identifier: Apache-2.0
 * Extents: physical memory, one driver handle each, and the device-wide cache of released ones.
 *
 *      create ──> loose ──> mapped in a range ──> loose ──> cached ──> loose again, or released
 *
 * A handle costs the driver 60 to 90 us over its life whatever its size up to 20 MiB (measured on an
 * H200), so memory that is given up may wait here for the next need of the same size.
 *
 * Invariants (gr_extents_check):
 *      E1  held == granules of all extents that exist, cached ones included
 *      E2  cached == granules in the cache, and never more than cache_limit
 *
 * Locks: the miss lock. */
#ifndef GR_MEMORY_EXTENT_H
#define GR_MEMORY_EXTENT_H

#include "base/list.h"
#include "base/slab.h"
#include "driver/driver.h"

struct gr_range;

struct gr_extent {
    struct gr_list link; /* in the cache, in a list of loose extents, or alone */
    gr_cu_handle handle;
    struct gr_range *range; /* where it is mapped, or NULL */
    size_t slot;            /* first slot there */
    size_t granules;
};

struct gr_extents {
    struct gr_driver *driver;
    size_t granule; /* bytes */
    struct gr_slab slab;
    struct gr_list cache;             /* oldest first */
    size_t count;                     /* extents that exist */
    size_t held, cached, cache_limit; /* granules */
};

void gr_extents_init(struct gr_extents *extents, struct gr_driver *driver, size_t cache_limit_bytes);
/* Everything was released before. */
void gr_extents_fini(struct gr_extents *extents);

/* Host memory for count more extents. */
GR_MUST bool gr_extents_reserve(struct gr_extents *extents, size_t count);
/* A loose extent of exactly this many granules, from the cache or new; reserve came before. */
GR_MUST int gr_extents_get(struct gr_extents *extents, size_t granules, struct gr_extent **out);
/* A loose extent that is not needed now: kept in the cache if there is room, else given back. */
void gr_extents_put(struct gr_extents *extents, struct gr_extent *extent);
/* Gives a loose extent back to the driver. */
void gr_extents_release(struct gr_extents *extents, struct gr_extent *extent);
/* Gives cached extents back, oldest first, until at most keep granules are cached. Returns granules. */
size_t gr_extents_flush(struct gr_extents *extents, size_t keep);

/* From now on so many bytes are kept at most. */
void gr_extents_limit_cache(struct gr_extents *extents, size_t bytes);

/* Takes up to want granules of whole extents out of the cache, none larger than want; or NULL. */
struct gr_extent *gr_extents_take_cached(struct gr_extents *extents, size_t want);

const char *gr_extents_check(const struct gr_extents *extents);

#endif
