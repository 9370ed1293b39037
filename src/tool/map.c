/* SPDX-License-Identifier: Apache-2.0
 * Numbers to indices: a hash table that only grows. */
#include "tool/map.h"

#include <stdlib.h>

struct map_slot *map_at(const struct map *map, uint64_t key) {
    size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & map->mask;
    while (map->slots[i].index != 0 && map->slots[i].key != key) i = (i + 1) & map->mask;
    return &map->slots[i];
}

bool map_reserve(struct map *map) {
    struct map bigger = {NULL, 0, map->used};
    size_t room = map->slots == NULL ? 0 : map->mask + 1;
    if (map->used * 2 < room) return true;
    bigger.mask = (room == 0 ? 1024 : room * 4) - 1;
    bigger.slots = calloc(bigger.mask + 1, sizeof *bigger.slots);
    if (bigger.slots == NULL) return false;
    for (size_t i = 0; i < room; i++)
        if (map->slots[i].index != 0) *map_at(&bigger, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = bigger;
    return true;
}

void map_free(struct map *map) {
    free(map->slots);
    *map = (struct map){0};
}
