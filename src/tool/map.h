/* SPDX-License-Identifier: Apache-2.0
 * Numbers to indices: a hash table that only grows. */
#ifndef TOOL_MAP_H
#define TOOL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    uint64_t key;
    uint32_t index; /* plus one; 0 is an empty slot */
};

struct map {
    struct map_slot *slots;
    size_t mask, used;
};

/* Makes sure that one more key finds a place. Returns false when the host has no memory. */
bool map_reserve(struct map *map);

/* The slot of the key, or the empty one where it belongs. Who fills that adds one to `used`. Not before
 * the first map_reserve. */
struct map_slot *map_at(const struct map *map, uint64_t key);

void map_free(struct map *map);

#endif
