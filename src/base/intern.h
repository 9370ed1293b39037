/* SPDX-License-Identifier: Apache-2.0
 * Interning: equal bytes are kept once and known by a number from 1 on.
 *
 *      key ── hash ──> slot ──> number ──> page ──> item { key bytes, value bytes }
 *
 * For what repeats all the time and may be asked for from any thread: stacks, tags, frames. Finding a
 * key takes no lock. Items never move and never go before fini, so that a number and the bytes behind
 * it are good for as long as the table is. An item may carry a value beside its key, which comes with
 * the first put and is not compared.
 *
 * Invariants:
 *      I1  numbers are dense: 1 .. count
 *      I2  a number that was found is counted, so an array of count + 1 holds all that are known to events
 * A slot table that was outgrown stays for its readers.
 *
 * Locks: adding takes a lock of its own (LEAF); finding and reading take none. */
#ifndef GR_BASE_INTERN_H
#define GR_BASE_INTERN_H

#include <stdatomic.h>

#include "base/lock.h"

enum { GR_INTERN_PAGE = 1024, GR_INTERN_PAGES = 1024, GR_INTERN_MOST = GR_INTERN_PAGE * GR_INTERN_PAGES - 1 };

struct gr_intern_item {
    uint32_t key_size, value_size;
    uint64_t hash;
    unsigned char bytes[]; /* key, filled up to a multiple of 8; value */
};

struct gr_intern_slots;
struct gr_intern_arena;

struct gr_intern {
    uint32_t most; /* constant: numbers that are given out, at most */
    _Atomic(struct gr_intern_slots *) slots;
    _Atomic(struct gr_intern_page *) page[GR_INTERN_PAGES];
    atomic_uint count;
    atomic_size_t bytes; /* host memory */
    struct gr_lock lock;
    struct gr_intern_arena *arena; /* under lock: where the next item goes */
};

/* Takes no memory yet. */
void gr_intern_init(struct gr_intern *intern, uint32_t most);
void gr_intern_fini(struct gr_intern *intern);

/* The number of the key; 0 when it is not there. key_size is not 0. */
uint32_t gr_intern_find(const struct gr_intern *intern, const void *key, size_t key_size);
/* The same, added with the value when it is not there; 0 when the host has no memory or the numbers
 * are used up. */
uint32_t gr_intern_put(struct gr_intern *intern, const void *key, size_t key_size, const void *value,
                       size_t value_size);

/* What stands behind a number that was given out. */
const struct gr_intern_item *gr_intern_get(const struct gr_intern *intern, uint32_t number);
static inline const void *gr_intern_value(const struct gr_intern_item *item) {
    return item->bytes + ((item->key_size + 7u) & ~7u);
}

#endif
