/* SPDX-License-Identifier: Apache-2.0
 * Ranges: reserved addresses in granule slots, and what is mapped behind each slot.
 *
 *      slot      0     1     2     3     4     5
 *      extent  [ a  |  a  |  a  ][ - ][ b ][ - ] ...
 *
 * Mapping is all or nothing: a run of slots is backed with extents and made accessible, or the range
 * is as it was. Set-access comes once for a whole run: the driver charges it for each mapping either
 * way, but the calls are saved.
 *
 * Invariants (gr_range_check):
 *      R1  slots of an extent are consecutive, begin at extent->slot, and extent->range is the range
 *      R2  mapped == slots that have an extent
 *
 * Locks: the miss lock changes it; slots behind a block may be read under the block's pool lock. */
#ifndef GR_MEMORY_RANGE_H
#define GR_MEMORY_RANGE_H

#include "memory/extent.h"

struct gr_range {
    gr_addr base;
    size_t slots;
    size_t granule;
    size_t mapped;           /* slots */
    struct gr_extent **slot; /* what lies behind; NULL is nothing. Zero pages until used */
};

/* Reserves bytes of addresses, large ones where an entry of the address table begins, if the driver has such; when
 * it refuses so many, halves down to need. bytes and need are multiples of the granule. ADDRESS_SPACE when even need
 * is refused. */
GR_MUST int gr_range_open(struct gr_range *range, struct gr_driver *driver, size_t bytes, size_t need);
/* Nothing may be mapped. */
void gr_range_close(struct gr_range *range, struct gr_driver *driver);

/* Maps loose extents from the front of the list, one after the other, into exactly `granules` slots
 * from slot on, and makes them accessible. What was mapped has left the list. On failure list and
 * range are unchanged. */
GR_MUST int gr_range_map(struct gr_range *range, struct gr_driver *driver, size_t slot, size_t granules,
                         struct gr_list *loose);
/* Makes a mapped extent loose. All work that could touch it must be complete. On failure it is still mapped. */
GR_MUST int gr_range_unmap(struct gr_range *range, struct gr_driver *driver, struct gr_extent *extent);

/* Says of all that is mapped who may touch it besides. On failure some of it may be told. */
GR_MUST int gr_range_grant(const struct gr_range *range, struct gr_driver *driver,
                           const struct gr_cu_access *access);

/* Takes a mapped extent off the books without a driver call: the context is lost. */
void gr_range_forget(struct gr_range *range, struct gr_extent *extent);

static inline size_t gr_range_slot_of(const struct gr_range *range, gr_addr addr) {
    return (size_t)((addr - range->base) / range->granule);
}
static inline gr_addr gr_range_addr_of(const struct gr_range *range, size_t slot) {
    return range->base + slot * range->granule;
}

const char *gr_range_check(const struct gr_range *range);

#endif
