/* SPDX-License-Identifier: Apache-2.0
 * Physical memory: extents, their mappings, and access; with the driver's own refusals.
 *
 * With MEMORY backing one sparse memfd holds the bytes of all extents, each at an offset of its own
 * that is never used again; its pages are given back when the extent ends. Mapping an extent twice
 * maps the same pages twice, so aliasing is real. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/sim/internal.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* Handle values look like nothing else, are never 0 and never come twice. */
static const gr_cu_handle FIRST_HANDLE = 0x6a000001;

/* ---- extents ------------------------------------------------------------------------------ */

struct gr_sim_extent *gr_sim_extent_find(gr_cu_handle id) {
    uint64_t number = id - FIRST_HANDLE;
    return id >= FIRST_HANDLE && number < gr_sim.extent_count ? gr_sim.extents[number] : NULL;
}

size_t gr_sim_free_bytes(int device) {
    size_t taken = gr_sim.used[device] + gr_sim.foreign[device];
    return taken < gr_sim.config.memory_bytes ? gr_sim.config.memory_bytes - taken : 0;
}

static bool file_grow(struct gr_sim_extent *extent) {
    if (gr_sim.config.backing != GRANARY_SIM_MEMORY) return true;
    if (gr_sim.file < 0) gr_sim.file = memfd_create("granary-sim", MFD_CLOEXEC);
    off_t end;
    if (gr_sim.file < 0 || __builtin_add_overflow(gr_sim.file_end, extent->size, &end)) return false;
    if (ftruncate(gr_sim.file, end) != 0) return false;
    extent->file_offset = gr_sim.file_end;
    gr_sim.file_end = end;
    return true;
}

/* Counts against the card of device, or against none with -1. NULL when the host refuses. */
struct gr_sim_extent *gr_sim_extent_make(size_t size, int device) {
    struct gr_sim_extent *extent = gr_sim_zeroed(1, sizeof *extent);
    extent->size = size;
    extent->device = device;
    if (!file_grow(extent)) {
        free(extent);
        return NULL;
    }
    if (gr_sim.extent_count == gr_sim.extent_room) {
        gr_sim.extent_room = gr_sim.extent_room ? 2 * gr_sim.extent_room : 64;
        gr_sim.extents = gr_sim_grow(gr_sim.extents, gr_sim.extent_room, sizeof *gr_sim.extents);
    }
    extent->id = FIRST_HANDLE + gr_sim.extent_count;
    gr_sim.extents[gr_sim.extent_count++] = extent;
    if (device >= 0) gr_sim.used[device] += size;
    return extent;
}

void gr_sim_extent_drop(struct gr_sim_extent *extent) {
    if (extent->refs || extent->mappings) return;
    if (extent->device >= 0) gr_sim.used[extent->device] -= extent->size;
    if (gr_sim.config.backing == GRANARY_SIM_MEMORY)
        (void)fallocate(gr_sim.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, extent->file_offset,
                        (off_t)extent->size);
    gr_sim.extents[extent->id - FIRST_HANDLE] = NULL;
    gr_sim_shadow_end(extent);
    free(extent);
}

/* The handle's extent. A value that was never issued, or was released for the last time, is not
 * defined by the driver's manual; a real one was seen to answer 1. */
static struct gr_sim_extent *handle_find(gr_cu_handle handle) {
    struct gr_sim_extent *extent = gr_sim_extent_find(handle);
    if (extent && extent->refs) return extent;
    if (handle >= FIRST_HANDLE && handle - FIRST_HANDLE < gr_sim.extent_count)
        gr_sim_report(GRANARY_SIM_MISUSE, "handle 0x%llx is used after its last release", handle);
    else if (handle != 0)
        gr_sim_report(GRANARY_SIM_MISUSE, "handle 0x%llx was never issued", handle);
    return NULL;
}

static gr_cu_result check_prop(const struct gr_cu_mem_prop *prop) {
    static const unsigned char zero[sizeof prop->flags.reserved];
    int where = prop->location.type;
    if (prop->type != GR_CU_MEM_TYPE_PINNED || prop->win32_meta) return GR_CU_INVALID_VALUE;
    if (memcmp(prop->flags.reserved, zero, sizeof zero) != 0) return GR_CU_INVALID_VALUE;
    if (where != GR_CU_LOCATION_DEVICE && where != GR_CU_LOCATION_HOST && where != GR_CU_LOCATION_HOST_NUMA)
        return GR_CU_INVALID_VALUE;
    if (where == GR_CU_LOCATION_HOST && prop->requested_handle_types) return GR_CU_INVALID_VALUE;
    if (where == GR_CU_LOCATION_DEVICE &&
        (prop->location.id < 0 || prop->location.id >= gr_sim.config.devices))
        return GR_CU_INVALID_DEVICE;
    if ((prop->requested_handle_types & GR_CU_HANDLE_FABRIC) && !gr_sim.config.fabric)
        return GR_CU_NOT_PERMITTED;
    return GR_CU_SUCCESS;
}

static gr_cu_result create(gr_cu_handle *out, size_t size, const struct gr_cu_mem_prop *prop,
                           unsigned long long flags) {
    if (!gr_sim.config.vmm) return GR_CU_NOT_SUPPORTED;
    if (!out || !prop || flags != 0 || size == 0 || !gr_is_aligned(size, gr_sim.config.granule_bytes))
        return GR_CU_INVALID_VALUE;
    gr_cu_result code = check_prop(prop);
    if (code != GR_CU_SUCCESS) return code;
    if (gr_sim.config.create_refused_code) return gr_sim.config.create_refused_code;
    int device = prop->location.type == GR_CU_LOCATION_DEVICE ? prop->location.id : -1;
    if (device >= 0 && size > gr_sim_free_bytes(device)) return GR_CU_OUT_OF_MEMORY;
    struct gr_sim_extent *extent = gr_sim_extent_make(size, device);
    if (!extent) return GR_CU_OUT_OF_MEMORY;
    extent->refs = 1;
    extent->rdma = prop->flags.rdma_capable;
    gr_sim.held.handles++;
    gr_sim.held.handle_bytes += size;
    *out = extent->id;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemCreate(gr_cu_handle *out, size_t size, const struct gr_cu_mem_prop *prop,
                                unsigned long long flags) {
    GR_SIM_ENTRY(create(out, size, prop, flags));
}

/* A handle counts as held until its memory is gone. */
static void handle_drop(struct gr_sim_extent *extent) {
    if (extent->refs == 0 && extent->mappings == 0) {
        gr_sim.held.handles--;
        gr_sim.held.handle_bytes -= extent->size;
    }
    gr_sim_extent_drop(extent);
}

static gr_cu_result release(gr_cu_handle handle) {
    struct gr_sim_extent *extent = handle_find(handle);
    if (!extent) return GR_CU_INVALID_VALUE;
    extent->refs--;
    handle_drop(extent);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemRelease(gr_cu_handle handle) {
    GR_SIM_ENTRY(release(handle));
}

static gr_cu_result retain(gr_cu_handle *out, void *ptr) {
    struct gr_sim_mapping *mapping = gr_sim_mapping_at((gr_addr)(uintptr_t)ptr);
    if (!out || !mapping || mapping->classic) return GR_CU_INVALID_VALUE;
    mapping->extent->refs++;
    *out = mapping->extent->id;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemRetainAllocationHandle(gr_cu_handle *out, void *ptr) {
    GR_SIM_ENTRY(retain(out, ptr));
}

static gr_cu_result granularity(size_t *out, const struct gr_cu_mem_prop *prop, int option) {
    if (!prop) {
        gr_sim_report(GRANARY_SIM_MISUSE, "a NULL prop makes the real driver crash");
        return GR_CU_INVALID_VALUE;
    }
    if (!out || (option != GR_CU_GRANULARITY_MINIMUM && option != GR_CU_GRANULARITY_RECOMMENDED))
        return GR_CU_INVALID_VALUE;
    if (!gr_sim.config.vmm) return GR_CU_NOT_SUPPORTED;
    *out = gr_sim.config.granule_bytes;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemGetAllocationGranularity(size_t *out, const struct gr_cu_mem_prop *prop,
                                                  int option) {
    GR_SIM_ENTRY(granularity(out, prop, option));
}

/* ---- bytes behind addresses --------------------------------------------------------------- */

bool gr_sim_back(gr_addr addr, struct gr_sim_extent *extent, bool replace) {
    if (gr_sim.config.backing != GRANARY_SIM_MEMORY) return true;
    int flags = MAP_SHARED | MAP_NORESERVE | (replace ? MAP_FIXED : MAP_FIXED_NOREPLACE);
    void *got = mmap((void *)addr, extent->size, PROT_NONE, flags, gr_sim.file, extent->file_offset);
    if (got != MAP_FAILED && got != (void *)addr) munmap(got, extent->size);
    return got == (void *)addr;
}

void gr_sim_unback(gr_addr addr, size_t size) {
    if (gr_sim.config.backing != GRANARY_SIM_MEMORY) return;
    (void)mmap((void *)addr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* The host may look at what any device may touch. */
void gr_sim_protect(const struct gr_sim_mapping *mapping) {
    if (gr_sim.config.backing != GRANARY_SIM_MEMORY) return;
    unsigned access = 0;
    for (int i = 0; i < gr_sim.config.devices; i++) access |= mapping->access[i];
    int protection = access == GR_CU_ACCESS_READWRITE ? PROT_READ | PROT_WRITE
                     : access                         ? PROT_READ
                                                      : PROT_NONE;
    (void)mprotect((void *)mapping->addr, mapping->size, protection);
}

struct gr_sim_mapping *gr_sim_mapping_make(gr_addr addr, struct gr_sim_extent *extent) {
    struct gr_sim_mapping *mapping = gr_sim_zeroed(1, sizeof *mapping);
    mapping->addr = addr;
    mapping->size = extent->size;
    mapping->extent = extent;
    extent->mappings++;
    gr_sim_mapping_place(mapping);
    return mapping;
}

void gr_sim_mapping_end(struct gr_sim_mapping *mapping) {
    gr_sim_mapping_lift(mapping);
    mapping->extent->mappings--;
    free(mapping->touches);
    free(mapping);
}

/* ---- mapping ------------------------------------------------------------------------------ */

/* Q: Why may a mapping leave its reservation? A: the real driver was seen to allow it, into nothing
 * and across two neighbours alike; only its start must be reserved. */
static gr_cu_result check_place(gr_addr addr, size_t size, bool *inside) {
    const struct gr_sim_reservation *r = gr_sim_reservation_at(addr);
    if (!r || size > GR_SIM_ADDRESS_END - addr) return GR_CU_INVALID_VALUE;
    if (gr_sim_mapping_first(addr, addr + size)) return GR_CU_INVALID_VALUE;
    *inside = addr + size <= r->addr + r->size;
    if (*inside) return GR_CU_SUCCESS;
    gr_sim_report(GRANARY_SIM_MISUSE, "[0x%llx, +0x%zx) runs past its reservation [0x%llx, +0x%zx)",
                  (unsigned long long)addr, size, (unsigned long long)r->addr, r->size);
    gr_addr at = r->addr + r->size;
    while (at < addr + size && (r = gr_sim_reservation_at(at))) at = r->addr + r->size;
    *inside = at >= addr + size;
    return GR_CU_SUCCESS;
}

static gr_cu_result map(gr_cu_ptr ptr, size_t size, size_t offset, gr_cu_handle handle,
                        unsigned long long flags) {
    bool inside;
    size_t granule = gr_sim.config.granule_bytes;
    if (!gr_sim.config.vmm) return GR_CU_NOT_SUPPORTED;
    if (size == 0 || flags != 0 || ptr == 0 || !gr_is_aligned(ptr, granule) || !gr_is_aligned(size, granule))
        return GR_CU_INVALID_VALUE;
    struct gr_sim_extent *extent = handle_find(handle);
    if (!extent) return GR_CU_INVALID_VALUE;
    if (offset != 0 || size != extent->size) return GR_CU_NOT_SUPPORTED;
    gr_cu_result code = check_place(ptr, size, &inside);
    if (code != GR_CU_SUCCESS) return code;
    if (!gr_sim_back(ptr, extent, inside)) return inside ? GR_CU_OUT_OF_MEMORY : GR_CU_INVALID_VALUE;
    (void)gr_sim_mapping_make(ptr, extent);
    gr_sim.held.mappings++;
    gr_sim.held.mapped_bytes += size;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemMap(gr_cu_ptr ptr, size_t size, size_t offset, gr_cu_handle handle,
                             unsigned long long flags) {
    GR_SIM_ENTRY(map(ptr, size, offset, handle, flags));
}

/* Is the range made of whole mappings without a hole between them? */
static bool whole_mappings(gr_addr addr, size_t size) {
    gr_addr at = addr, end = addr + size;
    if (size == 0 || end < addr || !gr_is_aligned(addr | size, gr_sim.config.granule_bytes)) return false;
    while (at < end) {
        const struct gr_sim_mapping *m = gr_sim_mapping_at(at);
        if (!m || m->classic || m->addr != at || m->size > end - at) return false;
        at += m->size;
    }
    return true;
}

/* Does the range cut no mapping? *hole: its first address with nothing mapped, or end. */
static bool cuts_none(gr_addr addr, gr_addr end, gr_addr *hole) {
    const struct gr_sim_mapping *m;
    *hole = addr;
    for (gr_addr at = addr; (m = gr_sim_mapping_first(at, end)) != NULL; at = m->addr + m->size) {
        if (m->classic || m->addr < at || m->size > end - m->addr) return false;
        if (m->addr == *hole) *hole += m->size;
    }
    return true;
}

/* Q: Why may a hole be unmapped? A: the real driver was seen to allow it, never mapped or no longer,
 * before, between and behind whole mappings, and past the reservation; its start must be reserved. */
static gr_cu_result unmap(gr_cu_ptr ptr, size_t size) {
    struct gr_sim_mapping *m;
    gr_addr end = ptr + size, hole;
    if (!gr_sim.config.vmm) return GR_CU_NOT_SUPPORTED;
    if (size == 0 || !gr_is_aligned(ptr | size, gr_sim.config.granule_bytes)) return GR_CU_INVALID_VALUE;
    if (!gr_sim_reservation_at(ptr) || size > GR_SIM_ADDRESS_END - ptr || !cuts_none(ptr, end, &hole))
        return GR_CU_INVALID_VALUE;
    if (hole < end)
        gr_sim_report(GRANARY_SIM_MISUSE, "[0x%llx, +0x%zx): nothing is mapped at 0x%llx", ptr, size,
                      (unsigned long long)hole);
    while ((m = gr_sim_mapping_first(ptr, end)) != NULL) {
        struct gr_sim_extent *extent = m->extent;
        gr_sim_oracle_unmap(m);
        ptr = m->addr + m->size;
        gr_sim.held.mappings--;
        gr_sim.held.mapped_bytes -= m->size;
        gr_sim_unback(m->addr, m->size);
        gr_sim_mapping_end(m);
        handle_drop(extent);
    }
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemUnmap(gr_cu_ptr ptr, size_t size) {
    GR_SIM_ENTRY(unmap(ptr, size));
}

/* ---- access ------------------------------------------------------------------------------- */

static gr_cu_result check_access(const struct gr_cu_access *access, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int where = access[i].location.type, flags = access[i].flags;
        if (flags != GR_CU_ACCESS_NONE && flags != GR_CU_ACCESS_READ && flags != GR_CU_ACCESS_READWRITE)
            return GR_CU_INVALID_VALUE;
        if (where == GR_CU_LOCATION_HOST || where == GR_CU_LOCATION_HOST_NUMA) return GR_CU_NOT_SUPPORTED;
        if (where != GR_CU_LOCATION_DEVICE || access[i].location.id < 0 ||
            access[i].location.id >= gr_sim.config.devices)
            return GR_CU_INVALID_VALUE;
    }
    return GR_CU_SUCCESS;
}

static bool any_other(const struct gr_cu_access *access, size_t count, int device) {
    for (size_t i = 0; i < count; i++)
        if (access[i].location.id != device) return true;
    return false;
}

static gr_cu_result set_access(gr_cu_ptr ptr, size_t size, const struct gr_cu_access *access, size_t count) {
    if (!gr_sim.config.vmm) return GR_CU_NOT_SUPPORTED;
    if (!access || count == 0 || !whole_mappings(ptr, size)) return GR_CU_INVALID_VALUE;
    gr_cu_result code = check_access(access, count);
    if (code != GR_CU_SUCCESS) return code;
    for (gr_addr at = ptr; at < ptr + size;) {
        const struct gr_sim_mapping *m = gr_sim_mapping_at(at);
        if (m->extent->rdma && gr_sim.config.rdma_access_code) return gr_sim.config.rdma_access_code;
        if (!gr_sim.config.peers && any_other(access, count, m->extent->device)) return GR_CU_INVALID_DEVICE;
        at += m->size;
    }
    for (gr_addr at = ptr; at < ptr + size;) {
        struct gr_sim_mapping *m = gr_sim_mapping_at(at);
        for (size_t i = 0; i < count; i++) m->access[access[i].location.id] = (unsigned char)access[i].flags;
        gr_sim_protect(m);
        at += m->size;
    }
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemSetAccess(gr_cu_ptr ptr, size_t size, const struct gr_cu_access *access,
                                   size_t count) {
    GR_SIM_ENTRY(set_access(ptr, size, access, count));
}

static gr_cu_result get_access(unsigned long long *flags, const struct gr_cu_location *location,
                               gr_cu_ptr ptr) {
    const struct gr_sim_mapping *m = gr_sim_mapping_at(ptr);
    if (!flags || !location || !m || location->type != GR_CU_LOCATION_DEVICE) return GR_CU_INVALID_VALUE;
    if (location->id < 0 || location->id >= gr_sim.config.devices) return GR_CU_INVALID_VALUE;
    *flags = m->access[location->id];
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemGetAccess(unsigned long long *flags, const struct gr_cu_location *location,
                                   gr_cu_ptr ptr) {
    GR_SIM_ENTRY(get_access(flags, location, ptr));
}
