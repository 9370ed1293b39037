/* SPDX-License-Identifier: Apache-2.0
 * Address -> live block, in three dependent loads and without a lock.
 *
 *      root[addr >> 30]  ->  leaf[addr >> 20 & 1023]  ->  block              units of 1 MiB, large class
 *                                                     ->  page[addr >> 9 & 2047] -> block     small class
 *
 * Two live blocks of the large class (more than 1 MiB each) never start in one unit of 1 MiB, so a
 * unit covered by large blocks alone needs a single entry. A unit that small blocks may use, or that
 * a segment covers only in part, has a page with an entry for every 512 bytes.
 *
 * Entries are set and cleared by the one thread that holds the lock of the pool the address belongs
 * to; anyone may read. A reader that is not the owner of the block it frees races only with its own
 * mistake: it takes the lock of the block's pool and looks again.
 *
 * Invariants:
 *      T1  an entry is the block that is LIVE at exactly that address, else NULL
 *      T2  leaves and pages, once there, stay until fini: lock-free readers never meet freed memory
 *
 * Locks: cover needs the caller's miss lock; set and clear the pool's; get none. */
#ifndef GR_BLOCK_TABLE_H
#define GR_BLOCK_TABLE_H

#include <stdatomic.h>

#include "block/block.h"

enum {
    GR_TABLE_ADDRESS_BITS = 48,
    GR_TABLE_UNIT_BITS = 20, /* of the address: what one leaf entry stands for */
    GR_TABLE_LEAF_BITS = 30, /* what one root entry stands for */
    GR_TABLE_LEAF_ENTRIES = 1 << (GR_TABLE_LEAF_BITS - GR_TABLE_UNIT_BITS),
    GR_TABLE_PAGE_ENTRIES = (1 << GR_TABLE_UNIT_BITS) / GR_BLOCK_UNIT
};

struct gr_table_page {
    _Atomic(struct gr_block *) entry[GR_TABLE_PAGE_ENTRIES];
};

/* A unit is a block, or a page with its lowest bit set, or 0. */
struct gr_table_leaf {
    atomic_uintptr_t unit[GR_TABLE_LEAF_ENTRIES];
};

struct gr_address_table {
    _Atomic(struct gr_table_leaf *) *root; /* 2^18 entries, zero pages until used */
    size_t leaves, pages;                  /* host memory: 8 and 16 KiB each */
};

GR_MUST bool gr_table_init(struct gr_address_table *table);
void gr_table_fini(struct gr_address_table *table);

/* Makes entries for [addr, addr + size); small tells whether small blocks may live there. False when
 * the host has no memory; what was made stays and is used by the next attempt. */
GR_MUST bool gr_table_cover(struct gr_address_table *table, gr_addr addr, size_t size, bool small);

/* Where the entry of a covered address is. */
static inline struct gr_table_leaf *gr_table_leaf_of(const struct gr_address_table *table, gr_addr addr) {
    if (addr >> GR_TABLE_ADDRESS_BITS) return NULL;
    return atomic_load_explicit(&table->root[addr >> GR_TABLE_LEAF_BITS], memory_order_acquire);
}

static inline void gr_table_store(struct gr_address_table *table, gr_addr addr, struct gr_block *b) {
    struct gr_table_leaf *leaf = gr_table_leaf_of(table, addr);
    atomic_uintptr_t *unit = &leaf->unit[addr >> GR_TABLE_UNIT_BITS & (GR_TABLE_LEAF_ENTRIES - 1)];
    uintptr_t value = atomic_load_explicit(unit, memory_order_relaxed);
    if (value & 1) {
        struct gr_table_page *page = (struct gr_table_page *)(value - 1);
        atomic_store_explicit(&page->entry[addr / GR_BLOCK_UNIT & (GR_TABLE_PAGE_ENTRIES - 1)], b,
                              memory_order_release);
    } else {
        atomic_store_explicit(unit, (uintptr_t)b, memory_order_release);
    }
}

/* b becomes LIVE; or ceases to be. Its address must be covered. */
static inline void gr_table_set(struct gr_address_table *table, struct gr_block *b) {
    gr_table_store(table, b->addr, b);
}
static inline void gr_table_clear(struct gr_address_table *table, const struct gr_block *b) {
    gr_table_store(table, b->addr, NULL);
}

/* The block that may be live at addr, or NULL. In a unit of large blocks any address of the unit
 * finds the block, so the caller compares addresses, under the lock of the block's pool. */
static inline struct gr_block *gr_table_get(const struct gr_address_table *table, gr_addr addr) {
    struct gr_table_leaf *leaf = gr_table_leaf_of(table, addr);
    if (!leaf) return NULL;
    uintptr_t value = atomic_load_explicit(
        &leaf->unit[addr >> GR_TABLE_UNIT_BITS & (GR_TABLE_LEAF_ENTRIES - 1)], memory_order_acquire);
    if (!(value & 1)) return (struct gr_block *)value;
    struct gr_table_page *page = (struct gr_table_page *)(value - 1);
    return atomic_load_explicit(&page->entry[addr / GR_BLOCK_UNIT & (GR_TABLE_PAGE_ENTRIES - 1)],
                                memory_order_acquire);
}

#endif
