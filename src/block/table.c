/* SPDX-License-Identifier: Apache-2.0
 * Address -> owner: naming owners, and making finer tables where addresses are owned in parts. */
#include "block/table.h"

#include "base/host.h"

enum { ROOT, LEAF, PAGE };

static const struct {
    unsigned bits; /* of the address: what one entry stands for */
    size_t entries;
} table_of[] = {
    [ROOT] = {GR_TABLE_LEAF_BITS, (size_t)1 << (GR_TABLE_ADDRESS_BITS - GR_TABLE_LEAF_BITS)},
    [LEAF] = {GR_TABLE_UNIT_BITS, GR_TABLE_LEAF_ENTRIES},
    [PAGE] = {9, GR_TABLE_PAGE_ENTRIES},
};
_Static_assert(GR_BLOCK_UNIT == 1 << 9, "a page has an entry for each unit of blocks");

bool gr_table_init(struct gr_address_table *table) {
    *table =
        (struct gr_address_table){.root = gr_host_take(table_of[ROOT].entries, sizeof(gr_table_entry), 8)};
    return table->root != NULL;
}

void gr_table_fini(struct gr_address_table *table) {
    /* Stops at the last leaf that was made, so that untouched parts of the root stay untouched. */
    for (size_t i = 0, left = table->leaves; i < table_of[ROOT].entries && left > 0; i++) {
        const uintptr_t value = gr_table_look(table->root, i);
        if (!(value & 1)) continue;
        left--;
        gr_table_entry *leaf = (gr_table_entry *)(value - 1);
        for (size_t u = 0; u < GR_TABLE_LEAF_ENTRIES; u++)
            if (gr_table_look(leaf, u) & 1) gr_host_give((void *)(gr_table_look(leaf, u) - 1));
        gr_host_give(leaf);
    }
    gr_host_give(table->root);
    *table = (struct gr_address_table){0};
}

static void set(gr_table_entry *entry, uintptr_t value) {
    atomic_store_explicit(entry, value, memory_order_release);
}

/* The finer table that the entry leads to; made, with what the entry said, when there is none. */
static gr_table_entry *finer(struct gr_address_table *table, gr_table_entry *entry, int level) {
    const uintptr_t value = atomic_load_explicit(entry, memory_order_relaxed);
    if (value & 1) return (gr_table_entry *)(value - 1);
    const size_t entries = table_of[level].entries;
    gr_table_entry *fresh = gr_host_take(entries, sizeof(gr_table_entry), 8);
    if (!fresh) return NULL;
    for (size_t i = 0; value != 0 && i < entries; i++) set(&fresh[i], value);
    *(level == LEAF ? &table->leaves : &table->pages) += 1;
    set(entry, (uintptr_t)fresh | 1);
    return fresh;
}

/* [addr, end) lies under one entry of the level above. */
static bool cover(struct gr_address_table *table, gr_table_entry *entries, int level, gr_addr addr,
                  gr_addr end, uintptr_t owner) {
    const uint64_t step = UINT64_C(1) << table_of[level].bits;
    for (gr_addr next; addr < end; addr = next) {
        gr_table_entry *entry = &entries[addr >> table_of[level].bits & (table_of[level].entries - 1)];
        next = gr_min(gr_align_down(addr, step) + step, end);
        const uintptr_t value = atomic_load_explicit(entry, memory_order_relaxed);
        if (level == PAGE || (next - addr == step && !(value & 1))) {
            set(entry, owner);
        } else if (value != owner) {
            gr_table_entry *below = finer(table, entry, level + 1);
            if (!below || !cover(table, below, level + 1, addr, next, owner)) return false;
        }
    }
    return true;
}

bool gr_table_cover(struct gr_address_table *table, gr_addr addr, size_t size, void *owner) {
    gr_addr end = addr + size;
    if (size == 0 || end < addr || (end - 1) >> GR_TABLE_ADDRESS_BITS) return false;
    return cover(table, table->root, ROOT, addr, end, (uintptr_t)owner);
}
