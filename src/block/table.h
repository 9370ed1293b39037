/* SPDX-License-Identifier: Apache-2.0
 * Address -> its owner, the pool whose blocks lie there, without a lock.
 *
 *      root[addr >> 30]  ->  owner
 *                        ->  leaf[addr >> 20 & 1023]  ->  owner
 *                                                     ->  page[addr >> 9 & 2047]  ->  owner
 *
 * An entry is the owner of all its addresses, or leads to finer ones where the addresses are owned in
 * parts: 1 GiB in units of 1 MiB, a unit in steps of 512 bytes. Ranges are large, so one load nearly
 * always does.
 *
 * A segment names its pool as the owner of its addresses when it is opened. Which block is live at an
 * address only the pool knows (live.h): a free finds the pool here, takes its lock and looks there.
 * Nothing is taken out when addresses are given up: whoever frees what is not his finds a pool that held
 * the address once, and that pool knows no such block.
 *
 * Invariants:
 *      T1  the owner of an address in a segment is the segment's pool
 *      T2  leaves and pages, once there, stay until fini, like the owners themselves: lock-free readers
 *          never meet freed memory
 *
 * Locks: cover needs the caller's miss lock; get none. */
#ifndef GR_BLOCK_TABLE_H
#define GR_BLOCK_TABLE_H

#include <stdatomic.h>

#include "block/block.h"

enum {
    GR_TABLE_ADDRESS_BITS = 48,
    GR_TABLE_LEAF_BITS = 30, /* of the address: what one root entry stands for */
    GR_TABLE_UNIT_BITS = 20, /* what one leaf entry stands for */
    GR_TABLE_LEAF_ENTRIES = 1 << (GR_TABLE_LEAF_BITS - GR_TABLE_UNIT_BITS),
    GR_TABLE_PAGE_ENTRIES = (1 << GR_TABLE_UNIT_BITS) / GR_BLOCK_UNIT
};

/* An owner, or the next table with its lowest bit set, or 0. */
typedef atomic_uintptr_t gr_table_entry;

struct gr_address_table {
    gr_table_entry *root; /* 2^18 entries, zero pages until used */
    size_t leaves, pages; /* host memory: 8 and 16 KiB each */
};

GR_MUST bool gr_table_init(struct gr_address_table *table);
void gr_table_fini(struct gr_address_table *table);

/* [addr, addr + size), multiples of 512, has this owner from now on. False when the host has no memory;
 * what was made stays and is used by the next attempt. */
GR_MUST bool gr_table_cover(struct gr_address_table *table, gr_addr addr, size_t size, void *owner);

static inline uintptr_t gr_table_look(gr_table_entry *entries, size_t i) {
    return atomic_load_explicit(&entries[i], memory_order_acquire);
}

/* The owner of the address, or NULL. */
static inline void *gr_table_get(const struct gr_address_table *table, gr_addr addr) {
    if (GR_UNLIKELY(addr >> GR_TABLE_ADDRESS_BITS)) return NULL;
    uintptr_t value = gr_table_look(table->root, addr >> GR_TABLE_LEAF_BITS);
    if (value & 1)
        value = gr_table_look((gr_table_entry *)(value - 1),
                              addr >> GR_TABLE_UNIT_BITS & (GR_TABLE_LEAF_ENTRIES - 1));
    if (GR_UNLIKELY(value & 1))
        value =
            gr_table_look((gr_table_entry *)(value - 1), addr / GR_BLOCK_UNIT & (GR_TABLE_PAGE_ENTRIES - 1));
    return (void *)value;
}

#endif
