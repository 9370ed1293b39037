/* SPDX-License-Identifier: Apache-2.0
 * Ranges: reserving addresses, and mapping that is all or nothing. */
#include "memory/range.h"

#include "base/check.h"
#include "base/host.h"
#include "block/table.h"

/* Where a range of so many bytes is to begin: one that spans entries of the address table (block/table.h) with one, so
 * that nearly always a single load finds the owner of an address. */
static size_t alignment(size_t bytes, size_t granule) {
    const size_t entry = (size_t)1 << GR_TABLE_LEAF_BITS;
    return bytes >= entry ? gr_max(entry, granule) : granule;
}

/* Can a refusal be for the place that was asked for? */
static bool refuses_place(gr_cu_result code) {
    return code == GR_CU_OUT_OF_MEMORY || code == GR_CU_INVALID_VALUE || code == GR_CU_NOT_SUPPORTED;
}

/* Addresses at that place, or anywhere: a free takes longer then, that is all. */
static int reserve(struct gr_driver *driver, size_t bytes, gr_cu_ptr *out) {
    const size_t granule = driver->facts.granule, wish = alignment(bytes, granule);
    gr_cu_result code = GR_DRIVE(driver, cuMemAddressReserve, out, bytes, wish, 0, 0);
    if (wish > granule && refuses_place(code))
        code = GR_DRIVE(driver, cuMemAddressReserve, out, bytes, granule, 0, 0);
    return gr_driver_status(driver, GR_ENTRY_cuMemAddressReserve, code);
}

int gr_range_open(struct gr_range *range, struct gr_driver *driver, size_t bytes, size_t need) {
    const size_t granule = driver->facts.granule;
    gr_cu_ptr base = 0;
    for (;;) {
        struct gr_extent **slot = gr_host_take(bytes / granule, sizeof(struct gr_extent *), 8);
        if (!slot) return GRANARY_HOST_MEMORY;
        int status = reserve(driver, bytes, &base);
        if (status == GRANARY_OK) {
            *range =
                (struct gr_range){.base = base, .slots = bytes / granule, .granule = granule, .slot = slot};
            return GRANARY_OK;
        }
        gr_host_give(slot);
        if (status != GRANARY_OUT_OF_MEMORY) return status;
        if (bytes <= need) return GRANARY_ADDRESS_SPACE;
        /* Small and integrated devices refuse large reservations though the addresses are there. */
        bytes = gr_max(gr_align_down(bytes / 2, granule), need);
    }
}

void gr_range_close(struct gr_range *range, struct gr_driver *driver) {
    GR_ASSERT(range->mapped == 0, "R2");
    if (!gr_driver_forked(driver))
        gr_driver_ignore(
            driver, GR_ENTRY_cuMemAddressFree,
            GR_TWICE(GR_DRIVE(driver, cuMemAddressFree, range->base, range->slots * range->granule)));
    gr_host_give(range->slot);
    *range = (struct gr_range){0};
}

static int unmap_run(struct gr_range *range, struct gr_driver *driver, size_t slot, size_t granules) {
    if (gr_driver_lost(driver)) return GRANARY_LOST; /* nobody can tell any more whether work is under way */
    return gr_driver_status(
        driver, GR_ENTRY_cuMemUnmap,
        GR_TWICE(GR_DRIVE(driver, cuMemUnmap, gr_range_addr_of(range, slot), granules * range->granule)));
}

static int set_access(const struct gr_range *range, struct gr_driver *driver, size_t slot, size_t granules,
                      const struct gr_cu_access *access, size_t count) {
    return gr_driver_status(driver, GR_ENTRY_cuMemSetAccess,
                            GR_DRIVE(driver, cuMemSetAccess, gr_range_addr_of(range, slot),
                                     granules * range->granule, access, count));
}

int gr_range_grant(const struct gr_range *range, struct gr_driver *driver,
                   const struct gr_cu_access *access) {
    int status = GRANARY_OK;
    for (size_t at = 0, mapped = 0, end; mapped < range->mapped && status == GRANARY_OK; at = end + 1) {
        for (end = at; end < range->slots && range->slot[end]; end++) mapped++;
        if (end > at) status = set_access(range, driver, at, end - at, access, 1);
    }
    return status;
}

int gr_range_map(struct gr_range *range, struct gr_driver *driver, size_t slot, size_t granules,
                 struct gr_list *loose) {
    size_t at = slot;
    int status = GRANARY_OK;
    for (struct gr_list *link = loose->next; at < slot + granules && status == GRANARY_OK;
         link = link->next) {
        const struct gr_extent *extent = GR_CONTAINER(link, struct gr_extent, link);
        GR_ASSERT(link != loose && !extent->range && at + extent->granules <= slot + granules &&
                      !range->slot[at],
                  "R1");
        status = gr_driver_status(driver, GR_ENTRY_cuMemMap,
                                  GR_DRIVE(driver, cuMemMap, gr_range_addr_of(range, at),
                                           extent->granules * range->granule, 0, extent->handle, 0));
        if (status == GRANARY_OK) at += extent->granules;
    }
    if (status == GRANARY_OK)
        status = set_access(range, driver, slot, granules, driver->peers.access, driver->peers.count);
    if (status != GRANARY_OK) {
        /* Only what was mapped is unmapped: the driver refuses a run that has holes. */
        if (at > slot && unmap_run(range, driver, slot, at - slot) != GRANARY_OK)
            atomic_store(&driver->lost, 1);
        return status;
    }
    for (at = slot; at < slot + granules;) {
        struct gr_extent *extent = GR_CONTAINER(loose->next, struct gr_extent, link);
        gr_list_remove(&extent->link);
        extent->range = range;
        extent->slot = at;
        for (size_t n = 0; n < extent->granules; n++) range->slot[at++] = extent;
    }
    range->mapped += granules;
    return GRANARY_OK;
}

int gr_range_unmap(struct gr_range *range, struct gr_driver *driver, struct gr_extent *extent) {
    GR_ASSERT(extent->range == range && range->slot[extent->slot] == extent, "R1");
    int status = unmap_run(range, driver, extent->slot, extent->granules);
    if (status == GRANARY_OK) gr_range_forget(range, extent);
    return status;
}

void gr_range_forget(struct gr_range *range, struct gr_extent *extent) {
    for (size_t n = 0; n < extent->granules; n++) range->slot[extent->slot + n] = NULL;
    range->mapped -= extent->granules;
    extent->range = NULL;
}

const char *gr_range_check(const struct gr_range *range) {
    size_t mapped = 0;
    for (size_t s = 0; s < range->slots;) {
        const struct gr_extent *extent = range->slot[s];
        if (!extent) {
            s++;
            continue;
        }
        if (extent->range != range || extent->slot != s || s + extent->granules > range->slots) return "R1";
        for (size_t n = 0; n < extent->granules; n++)
            if (range->slot[s + n] != extent) return "R1";
        mapped += extent->granules;
        s += extent->granules;
    }
    return mapped == range->mapped ? NULL : "R2";
}
