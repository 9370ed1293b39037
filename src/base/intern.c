/* SPDX-License-Identifier: Apache-2.0
 * Interning: an open-addressed table of numbers over items that stay where they are. */
#include "base/intern.h"

#include <string.h>

#include "base/host.h"

enum { ARENA = 64 * 1024, FIRST_SLOTS = 256 };

struct gr_intern_page {
    _Atomic(struct gr_intern_item *) item[GR_INTERN_PAGE];
};

struct gr_intern_slots {
    size_t mask;
    struct gr_intern_slots *older;
    atomic_uint number[]; /* 0: free */
};

struct gr_intern_arena {
    struct gr_intern_arena *older;
    size_t used, room; /* bytes behind this header */
};

void gr_intern_init(struct gr_intern *intern, uint32_t most) {
    memset(intern, 0, sizeof(*intern));
    intern->most = (uint32_t)gr_min(most, GR_INTERN_MOST);
    gr_lock_init(&intern->lock, GR_RANK_LEAF);
}

void gr_intern_fini(struct gr_intern *intern) {
    for (struct gr_intern_slots *slots = atomic_load(&intern->slots), *older; slots; slots = older) {
        older = slots->older;
        gr_host_give(slots);
    }
    for (struct gr_intern_arena *arena = intern->arena, *older; arena; arena = older) {
        older = arena->older;
        gr_host_give(arena);
    }
    for (size_t p = 0; p < GR_INTERN_PAGES; p++) gr_host_give(atomic_load(&intern->page[p]));
    gr_intern_init(intern, intern->most);
}

/* Eight bytes a step: keys are stacks of some hundred bytes, on the path of every event. */
static uint64_t hash_of(const void *key, size_t size) {
    const unsigned char *at = key;
    uint64_t hash = size * UINT64_C(0x9E3779B97F4A7C15);
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0xBF58476D1CE4E5B9);
        hash ^= hash >> 32;
    }
    for (; size > 0; size--) hash = (hash ^ *at++) * UINT64_C(0x94D049BB133111EB);
    return hash ^ hash >> 29;
}

const struct gr_intern_item *gr_intern_get(const struct gr_intern *intern, uint32_t number) {
    const struct gr_intern_page *page =
        atomic_load_explicit(&intern->page[number / GR_INTERN_PAGE], memory_order_acquire);
    return atomic_load_explicit(&page->item[number % GR_INTERN_PAGE], memory_order_acquire);
}

static uint32_t find(const struct gr_intern *intern, uint64_t hash, const void *key, size_t size) {
    const struct gr_intern_slots *slots = atomic_load_explicit(&intern->slots, memory_order_acquire);
    for (size_t i = (size_t)hash; slots; i++) {
        uint32_t number = atomic_load_explicit(&slots->number[i & slots->mask], memory_order_acquire);
        if (number == 0) break;
        const struct gr_intern_item *item = gr_intern_get(intern, number);
        if (item->hash == hash && item->key_size == size && memcmp(item->bytes, key, size) == 0)
            return number;
    }
    return 0;
}

uint32_t gr_intern_find(const struct gr_intern *intern, const void *key, size_t key_size) {
    return find(intern, hash_of(key, key_size), key, key_size);
}

/* ---- adding, under the lock ----------------------------------------------------------------- */

static void *take(struct gr_intern *intern, size_t bytes) {
    void *ptr = gr_host_take(1, bytes, sizeof(void *));
    if (ptr) atomic_fetch_add_explicit(&intern->bytes, bytes, memory_order_relaxed);
    return ptr;
}

static void fill_slot(struct gr_intern_slots *slots, uint64_t hash, uint32_t number) {
    size_t i = (size_t)hash & slots->mask;
    while (atomic_load_explicit(&slots->number[i], memory_order_relaxed)) i = (i + 1) & slots->mask;
    atomic_store_explicit(&slots->number[i], number, memory_order_release);
}

/* Room for one more slot: at most half of them are used. */
static bool reserve_slot(struct gr_intern *intern, uint32_t count) {
    struct gr_intern_slots *slots = atomic_load_explicit(&intern->slots, memory_order_relaxed);
    size_t room = slots ? slots->mask + 1 : 0;
    if ((size_t)(count + 1) * 2 <= room) return true;
    room = room ? room * 2 : FIRST_SLOTS;
    struct gr_intern_slots *fresh = take(intern, sizeof(*fresh) + room * sizeof(atomic_uint));
    if (!fresh) return false;
    fresh->mask = room - 1;
    fresh->older = slots;
    for (uint32_t n = 1; n <= count; n++) fill_slot(fresh, gr_intern_get(intern, n)->hash, n);
    atomic_store_explicit(&intern->slots, fresh, memory_order_release);
    return true;
}

static bool reserve_page(struct gr_intern *intern, uint32_t number) {
    size_t p = number / GR_INTERN_PAGE;
    if (atomic_load_explicit(&intern->page[p], memory_order_relaxed)) return true;
    struct gr_intern_page *page = take(intern, sizeof(*page));
    atomic_store_explicit(&intern->page[p], page, memory_order_release);
    return page != NULL;
}

/* A piece of the arena; a large one gets an arena of its own. */
static void *take_item(struct gr_intern *intern, size_t bytes) {
    struct gr_intern_arena *arena = intern->arena;
    bytes = (bytes + 7) & ~(size_t)7;
    if (!arena || arena->room - arena->used < bytes) {
        size_t room = gr_max(bytes, ARENA - sizeof(*arena));
        struct gr_intern_arena *fresh = take(intern, sizeof(*fresh) + room);
        if (!fresh) return NULL;
        fresh->older = arena;
        fresh->room = room;
        intern->arena = arena = fresh;
    }
    void *item = (char *)(arena + 1) + arena->used;
    arena->used += bytes;
    return item;
}

static uint32_t add(struct gr_intern *intern, uint64_t hash, const void *key, size_t key_size,
                    const void *value, size_t value_size) {
    uint32_t count = atomic_load_explicit(&intern->count, memory_order_relaxed), number = count + 1;
    if (count >= intern->most || !reserve_slot(intern, count) || !reserve_page(intern, number)) return 0;
    struct gr_intern_item *item =
        take_item(intern, sizeof(*item) + ((key_size + 7) & ~(size_t)7) + value_size);
    if (!item) return 0;
    *item = (struct gr_intern_item){
        .key_size = (uint32_t)key_size, .value_size = (uint32_t)value_size, .hash = hash};
    memcpy(item->bytes, key, key_size);
    if (value_size) memcpy(item->bytes + ((key_size + 7) & ~(size_t)7), value, value_size);
    struct gr_intern_page *page =
        atomic_load_explicit(&intern->page[number / GR_INTERN_PAGE], memory_order_relaxed);
    atomic_store_explicit(&page->item[number % GR_INTERN_PAGE], item, memory_order_release);
    atomic_store_explicit(&intern->count, number, memory_order_release); /* before it can be found (I2) */
    fill_slot(atomic_load_explicit(&intern->slots, memory_order_relaxed), hash, number);
    return number;
}

uint32_t gr_intern_put(struct gr_intern *intern, const void *key, size_t key_size, const void *value,
                       size_t value_size) {
    uint64_t hash = hash_of(key, key_size);
    uint32_t number = find(intern, hash, key, key_size);
    if (number) return number;
    gr_lock_take(&intern->lock);
    number = find(intern, hash, key, key_size); /* another thread may have been first */
    if (!number) number = add(intern, hash, key, key_size, value, value_size);
    gr_lock_give(&intern->lock);
    return number;
}
