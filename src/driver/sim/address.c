/* SPDX-License-Identifier: Apache-2.0
 * Reservations, which are real, and the table that finds the mapping behind a granule.
 *
 * The table has two levels over the 47 bits of a user address: leaves of 8192 granules, made when a
 * mapping first lies in them. An entry is the mapping, or NULL. Finding is O(1), placing and lifting
 * cost one word per granule. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver/sim/internal.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { LEAF_BITS = 13, LEAF_COUNT = 1 << LEAF_BITS, ROOM_BEHIND = 64 /* granules */ };

void gr_sim_addresses_open(void) {
    gr_sim.leaf_count = GR_SIM_ADDRESS_END >> (gr_sim.shift + LEAF_BITS);
    gr_sim.leaves = gr_sim_zeroed(gr_sim.leaf_count, sizeof *gr_sim.leaves);
}

void gr_sim_addresses_close(void) {
    for (size_t i = 0; i < gr_sim.leaf_count; i++) free(gr_sim.leaves[i]);
    free(gr_sim.leaves);
    free(gr_sim.reservations);
    gr_sim.leaves = NULL;
    gr_sim.reservations = NULL;
    gr_sim.leaf_count = gr_sim.reservation_count = gr_sim.reservation_room = 0;
    gr_sim.address_used = 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

struct gr_sim_mapping *gr_sim_mapping_at(gr_addr addr) {
    uint64_t granule = addr >> gr_sim.shift;
    uint64_t leaf = granule >> LEAF_BITS;
    if (leaf >= gr_sim.leaf_count || !gr_sim.leaves[leaf]) return NULL;
    return gr_sim.leaves[leaf][granule & (LEAF_COUNT - 1)];
}

static void fill(gr_addr addr, size_t size, struct gr_sim_mapping *entry) {
    uint64_t end = (addr + size) >> gr_sim.shift;
    for (uint64_t granule = addr >> gr_sim.shift; granule < end; granule++) {
        struct gr_sim_mapping ***leaf = &gr_sim.leaves[granule >> LEAF_BITS];
        if (!*leaf) *leaf = gr_sim_zeroed(LEAF_COUNT, sizeof **leaf);
        (*leaf)[granule & (LEAF_COUNT - 1)] = entry;
    }
}

void gr_sim_mapping_place(struct gr_sim_mapping *mapping) {
    fill(mapping->addr, mapping->size, mapping);
}

void gr_sim_mapping_lift(struct gr_sim_mapping *mapping) {
    fill(mapping->addr, mapping->size, NULL);
}

/* Visits the range leaf by leaf: a large empty reservation costs nothing per granule. */
struct gr_sim_mapping *gr_sim_mapping_first(gr_addr addr, gr_addr end) {
    uint64_t granule = addr >> gr_sim.shift, last = end >> gr_sim.shift;
    while (granule < last) {
        struct gr_sim_mapping **leaf = gr_sim.leaves[granule >> LEAF_BITS];
        uint64_t stop = gr_min(last, ((granule >> LEAF_BITS) + 1) << LEAF_BITS);
        for (; leaf && granule < stop; granule++)
            if (leaf[granule & (LEAF_COUNT - 1)]) return leaf[granule & (LEAF_COUNT - 1)];
        granule = stop;
    }
    return NULL;
}

/* ---- real addresses ----------------------------------------------------------------------- */

static void *map_nothing(gr_addr at, size_t size, int flags) {
    return mmap((void *)at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

/* Leaves addresses right behind free, as many again up to ROOM_BEHIND: the real driver was seen to
 * honour a hint there, and a process that happens to hold them must not decide what a test sees. */
static gr_addr take_anywhere(size_t size, size_t alignment) {
    size_t room, behind = gr_min(size, (size_t)ROOM_BEHIND << gr_sim.shift);
    if (__builtin_add_overflow(size, alignment + behind, &room)) return 0;
    void *got = map_nothing(0, room, 0);
    if (got == MAP_FAILED) { /* no room to align in: it may be aligned by luck */
        got = map_nothing(0, size, 0);
        if (got == MAP_FAILED) return 0;
        if (gr_is_aligned((gr_addr)got, alignment)) return (gr_addr)got;
        munmap(got, size);
        return 0;
    }
    gr_addr start = (gr_addr)got, base = gr_align_down(start + alignment - 1, alignment);
    if (base > start) munmap(got, base - start);
    if (base + size < start + room) munmap((void *)(base + size), start + room - (base + size));
    return base;
}

gr_addr gr_sim_address_take(size_t size, size_t alignment, gr_addr hint) {
    gr_addr addr = 0;
    if (size > gr_sim.config.address_bytes || gr_sim.address_used > gr_sim.config.address_bytes - size)
        return 0;
    if (hint && hint < GR_SIM_ADDRESS_END && size < GR_SIM_ADDRESS_END - hint) {
        void *got = map_nothing(hint, size, MAP_FIXED_NOREPLACE);
        if (got != MAP_FAILED && (gr_addr)got != hint)
            munmap(got, size);
        else if (got != MAP_FAILED)
            addr = hint;
    }
    if (!addr) addr = take_anywhere(size, alignment);
    if (addr) gr_sim.address_used += size;
    return addr;
}

void gr_sim_address_give(gr_addr addr, size_t size) {
    munmap((void *)addr, size);
    gr_sim.address_used -= size;
}

/* ---- reservations ------------------------------------------------------------------------- */

/* Index of the first reservation that ends after addr. */
static size_t reservation_after(gr_addr addr) {
    size_t low = 0, high = gr_sim.reservation_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gr_sim_reservation *r = &gr_sim.reservations[middle];
        if (r->addr + r->size > addr)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct gr_sim_reservation *gr_sim_reservation_at(gr_addr addr) {
    size_t i = reservation_after(addr);
    if (i == gr_sim.reservation_count || gr_sim.reservations[i].addr > addr) return NULL;
    return &gr_sim.reservations[i];
}

static void remember(gr_addr addr, size_t size) {
    if (gr_sim.reservation_count == gr_sim.reservation_room) {
        gr_sim.reservation_room = gr_sim.reservation_room ? 2 * gr_sim.reservation_room : 16;
        gr_sim.reservations =
            gr_sim_grow(gr_sim.reservations, gr_sim.reservation_room, sizeof *gr_sim.reservations);
    }
    size_t i = reservation_after(addr);
    memmove(gr_sim.reservations + i + 1, gr_sim.reservations + i,
            (gr_sim.reservation_count - i) * sizeof *gr_sim.reservations);
    gr_sim.reservations[i] = (struct gr_sim_reservation){addr, size};
    gr_sim.reservation_count++;
    gr_sim.held.reserved_bytes += size;
}

static gr_cu_result reserve(gr_cu_ptr *out, size_t size, size_t alignment, gr_cu_ptr hint,
                            unsigned long long flags) {
    size_t granule = gr_sim.config.granule_bytes;
    if (!gr_sim.config.vmm) return GR_CU_NOT_SUPPORTED;
    if (!out || flags != 0 || size == 0 || !gr_is_aligned(size, granule)) return GR_CU_INVALID_VALUE;
    if ((alignment && !gr_is_power(alignment)) || !gr_is_aligned(hint, granule)) return GR_CU_INVALID_VALUE;
    if (size > gr_sim.config.max_reserve_bytes) return GR_CU_OUT_OF_MEMORY;
    gr_addr addr = gr_sim_address_take(size, alignment > granule ? alignment : granule, hint);
    if (!addr) return GR_CU_OUT_OF_MEMORY;
    remember(addr, size);
    *out = addr;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemAddressReserve(gr_cu_ptr *out, size_t size, size_t alignment, gr_cu_ptr hint,
                                        unsigned long long flags) {
    GR_SIM_ENTRY(reserve(out, size, alignment, hint, flags));
}

static gr_cu_result address_free(gr_cu_ptr ptr, size_t size) {
    struct gr_sim_reservation *r = gr_sim_reservation_at(ptr);
    if (!gr_sim.config.vmm) return GR_CU_NOT_SUPPORTED;
    if (!r || r->addr != ptr || r->size != size) return GR_CU_INVALID_VALUE;
    if (gr_sim_mapping_first(ptr, ptr + size)) return GR_CU_INVALID_VALUE;
    gr_sim_address_give(ptr, size);
    size_t i = (size_t)(r - gr_sim.reservations);
    memmove(r, r + 1, (gr_sim.reservation_count - i - 1) * sizeof *r);
    gr_sim.reservation_count--;
    gr_sim.held.reserved_bytes -= size;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuMemAddressFree(gr_cu_ptr ptr, size_t size) {
    GR_SIM_ENTRY(address_free(ptr, size));
}
