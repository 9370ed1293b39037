/* SPDX-License-Identifier: Apache-2.0
 * Address -> live block: making and freeing the table's leaves and pages. */
#include "block/table.h"

#include "base/host.h"

enum { ROOT_ENTRIES = 1 << (GR_TABLE_ADDRESS_BITS - GR_TABLE_LEAF_BITS) };

bool gr_table_init(struct gr_address_table *table) {
    *table = (struct gr_address_table){.root = gr_host_take(ROOT_ENTRIES, sizeof(*table->root), 8)};
    return table->root != NULL;
}

void gr_table_fini(struct gr_address_table *table) {
    /* Stops at the last leaf that was made, so that untouched parts of the root stay untouched. */
    for (size_t i = 0, left = table->leaves; i < ROOT_ENTRIES && left > 0; i++) {
        struct gr_table_leaf *leaf = atomic_load_explicit(&table->root[i], memory_order_relaxed);
        if (!leaf) continue;
        left--;
        for (size_t u = 0; u < GR_TABLE_LEAF_ENTRIES; u++) {
            uintptr_t value = atomic_load_explicit(&leaf->unit[u], memory_order_relaxed);
            if (value & 1) gr_host_give((void *)(value - 1));
        }
        gr_host_give(leaf);
    }
    gr_host_give(table->root);
    *table = (struct gr_address_table){0};
}

static bool cover_unit(struct gr_address_table *table, gr_addr addr, bool page) {
    _Atomic(struct gr_table_leaf *) *slot = &table->root[addr >> GR_TABLE_LEAF_BITS];
    struct gr_table_leaf *leaf = atomic_load_explicit(slot, memory_order_relaxed);
    if (!leaf) {
        leaf = gr_host_take(1, sizeof(*leaf), 8);
        if (!leaf) return false;
        table->leaves++;
        atomic_store_explicit(slot, leaf, memory_order_release);
    }
    atomic_uintptr_t *unit = &leaf->unit[addr >> GR_TABLE_UNIT_BITS & (GR_TABLE_LEAF_ENTRIES - 1)];
    if (!page || atomic_load_explicit(unit, memory_order_relaxed)) return true;
    struct gr_table_page *fresh = gr_host_take(1, sizeof(*fresh), 64);
    if (!fresh) return false;
    table->pages++;
    atomic_store_explicit(unit, (uintptr_t)fresh | 1, memory_order_release);
    return true;
}

bool gr_table_cover(struct gr_address_table *table, gr_addr addr, size_t size, bool small) {
    const uint64_t step = UINT64_C(1) << GR_TABLE_UNIT_BITS;
    gr_addr end = addr + size;
    if (size == 0 || end < addr || (end - 1) >> GR_TABLE_ADDRESS_BITS) return false;
    for (gr_addr unit = gr_align_down(addr, step); unit < end; unit += step) {
        bool partial = unit < addr || unit + step > end;
        if (!cover_unit(table, unit, small || partial)) return false;
    }
    return true;
}
