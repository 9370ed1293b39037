/* SPDX-License-Identifier: Apache-2.0
 * Memory the old way: cuMemAlloc, cuMemFree, and the figures that count both ways together.
 *
 * An allocation is an extent with one mapping at a reservation of its own, so that work finds its
 * bytes in the same table as mapped memory. Like the driver's, it takes whole blocks of 2 MiB. */
#include "driver/sim/internal.h"

static gr_cu_result mem_alloc(gr_cu_ptr *out, size_t asked) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code != GR_CU_SUCCESS) return code;
    if (!out || asked == 0) return GR_CU_INVALID_VALUE;
    code = gr_sim_unsafe();
    if (code != GR_CU_SUCCESS) return code;
    uint64_t size, block = gr_max(gr_sim.config.granule_bytes, 2 * GR_MIB);
    int device = context->device;
    if (!gr_align_up(asked, block, &size) || size > gr_sim_free_bytes(device)) return GR_CU_OUT_OF_MEMORY;
    gr_addr addr = gr_sim_address_take(size, block, 0);
    if (!addr) return GR_CU_OUT_OF_MEMORY;
    struct gr_sim_extent *extent = gr_sim_extent_make(size, device);
    if (!extent || !gr_sim_back(addr, extent, true)) {
        if (extent) gr_sim_extent_drop(extent);
        gr_sim_address_give(addr, size);
        return GR_CU_OUT_OF_MEMORY;
    }
    struct gr_sim_mapping *mapping = gr_sim_mapping_make(addr, extent);
    mapping->classic = true;
    mapping->asked = asked;
    for (int i = 0; i < gr_sim.config.devices; i++) mapping->access[i] = GR_CU_ACCESS_READWRITE;
    gr_sim_protect(mapping);
    gr_sim.held.allocations++;
    gr_sim.held.allocated_bytes += size;
    *out = addr;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemAlloc(gr_cu_ptr *out, size_t size) {
    GR_SIM_ENTRY(mem_alloc(out, size));
}

/* Waits for all work of the device first, as the driver does; unmapping does not. 0 is nothing to free. */
static gr_cu_result mem_free(gr_cu_ptr ptr) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code != GR_CU_SUCCESS) return code;
    if (ptr == 0) return GR_CU_SUCCESS;
    struct gr_sim_mapping *mapping = gr_sim_mapping_at(ptr);
    if (!mapping || !mapping->classic || mapping->addr != ptr) return GR_CU_INVALID_VALUE;
    code = gr_sim_unsafe();
    if (code == GR_CU_SUCCESS) code = gr_sim_drain(mapping->extent->device);
    if (code != GR_CU_SUCCESS) return code;
    mapping = gr_sim_mapping_at(ptr); /* the lock may have been dropped while draining */
    if (!mapping || !mapping->classic || mapping->addr != ptr) return GR_CU_INVALID_VALUE;
    struct gr_sim_extent *extent = mapping->extent;
    size_t size = mapping->size;
    gr_sim_mapping_end(mapping);
    gr_sim_extent_drop(extent);
    gr_sim_address_give(ptr, size);
    gr_sim.held.allocations--;
    gr_sim.held.allocated_bytes -= size;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemFree(gr_cu_ptr ptr) {
    GR_SIM_ENTRY(mem_free(ptr));
}

static gr_cu_result get_info(size_t *free_bytes, size_t *total_bytes) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code != GR_CU_SUCCESS) return code;
    if (!free_bytes || !total_bytes) return GR_CU_INVALID_VALUE;
    *free_bytes = gr_sim_free_bytes(context->device);
    *total_bytes = gr_sim.config.memory_bytes;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    GR_SIM_ENTRY(get_info(free_bytes, total_bytes));
}

static gr_cu_result address_range(gr_cu_ptr *base, size_t *size, gr_cu_ptr ptr) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code != GR_CU_SUCCESS) return code;
    const struct gr_sim_mapping *mapping = gr_sim_mapping_at(ptr);
    if (!mapping || (mapping->classic && ptr - mapping->addr >= mapping->asked)) return GR_CU_NOT_FOUND;
    if (base) *base = mapping->addr;
    if (size) *size = mapping->classic ? mapping->asked : mapping->size;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemGetAddressRange(gr_cu_ptr *base, size_t *size, gr_cu_ptr ptr) {
    GR_SIM_ENTRY(address_range(base, size, ptr));
}
