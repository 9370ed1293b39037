/* SPDX-License-Identifier: Apache-2.0
 * Joining a history with the end: which block each entry is about, and what was live before the ring.
 *
 * Each address is followed through the ring. When the first that is told of it is a free, the block began
 * before the ring; so did what is there at the end and never told of. An entry that contradicts what came
 * before (a block allocated where one is live, a free of what is free) is counted, and the newer word holds:
 * histories are switched on and off while a job runs, and can leave out kinds of entries. */
#include <stdlib.h>

#include "tool/array.h"
#include "tool/map.h"
#include "tool/snapshot_build.h"

struct join {
    const struct snapshot *snapshot;
    struct snapshot_device *device;
    size_t room;
    struct map map; /* address -> the last life there */
};

static bool is_traffic(const struct snapshot_entry *entry) {
    return entry->action <= SNAPSHOT_COMPLETE;
}

/* Remembers that the address's last life is this index. */
static bool remember(struct join *j, uint64_t address, size_t life) {
    struct map_slot *slot;
    if (!map_reserve(&j->map)) return false;
    slot = map_at(&j->map, address);
    if (slot->index == 0) j->map.used++;
    *slot = (struct map_slot){address, (uint32_t)life + 1};
    return true;
}

static bool is_known(const struct join *j, uint64_t address) {
    return map_at(&j->map, address)->index != 0;
}

static struct snapshot_life *last_at(const struct join *j, uint64_t address) {
    const struct map_slot *slot = map_at(&j->map, address);
    return slot->index == 0 ? NULL : &j->device->lives[slot->index - 1];
}

static struct snapshot_life *add(struct join *j, struct snapshot_life life) {
    struct snapshot_device *d = j->device;
    if (!array_reserve(&d->lives, &j->room, d->life_count, 1, sizeof *d->lives)) return NULL;
    d->lives[d->life_count] = life;
    return &d->lives[d->life_count++];
}

static bool is_open(const struct snapshot_life *life) {
    return life != NULL && life->end == SNAPSHOT_NONE;
}

static int by_address(const void *left, const void *right) {
    uint64_t a = ((const struct snapshot_life *)left)->address;
    uint64_t b = ((const struct snapshot_life *)right)->address;
    return a < b ? -1 : a > b;
}

/* Lives whose first word in the ring is a free. */
static bool freed_in_ring(struct join *j) {
    struct snapshot_device *d = j->device;
    for (size_t i = 0; i < d->entry_count; i++) {
        const struct snapshot_entry *entry = &d->entries[i];
        if (!is_traffic(entry) || is_known(j, entry->address)) continue;
        if (!remember(j, entry->address, entry->action == SNAPSHOT_ALLOC ? 0 : d->life_count)) return false;
        if (entry->action == SNAPSHOT_ALLOC) continue;
        if (add(j, (struct snapshot_life){.address = entry->address,
                                          .size = entry->size,
                                          .stream = entry->stream,
                                          .pool = {entry->pool[0], entry->pool[1]},
                                          .begin = SNAPSHOT_NONE,
                                          .request = SNAPSHOT_NONE,
                                          .end = SNAPSHOT_NONE,
                                          .pending = entry->action == SNAPSHOT_COMPLETE}) == NULL)
            return false;
    }
    return true;
}

/* Goes over the blocks at the end that are not free. */
struct block_walk {
    size_t segment, block;
};

static const struct snapshot_block *next_block(const struct join *j, struct block_walk *walk,
                                               const struct snapshot_segment **segment) {
    for (; walk->segment < j->device->segment_count; walk->segment++, walk->block = 0) {
        *segment = &j->device->segments[walk->segment];
        while (walk->block < (*segment)->count) {
            const struct snapshot_block *block = &j->snapshot->blocks[(*segment)->first + walk->block++];
            if (block->state != SNAPSHOT_FREE) return block;
        }
    }
    return NULL;
}

/* Lives of which the ring has no word. */
static bool untold(struct join *j) {
    const struct snapshot_segment *segment;
    const struct snapshot_block *block;
    for (struct block_walk walk = {0}; (block = next_block(j, &walk, &segment)) != NULL;) {
        if (is_known(j, block->address)) continue;
        if (add(j, (struct snapshot_life){.address = block->address,
                                          .size = block->requested,
                                          .note = block->note,
                                          .stream = segment->stream,
                                          .begin = SNAPSHOT_NONE,
                                          .request = SNAPSHOT_NONE,
                                          .end = SNAPSHOT_NONE,
                                          .pending = block->state == SNAPSHOT_PENDING}) == NULL ||
            !remember(j, block->address, j->device->life_count - 1))
            return false;
    }
    return true;
}

/* Sorted, and the map made anew, with these lives and no other. */
static bool settle_before(struct join *j) {
    struct snapshot_device *d = j->device;
    d->before_count = d->life_count;
    if (d->life_count > 0) qsort(d->lives, d->life_count, sizeof *d->lives, by_address);
    map_free(&j->map);
    if (!map_reserve(&j->map)) return false;
    for (size_t i = 0; i < d->before_count; i++)
        if (!remember(j, d->lives[i].address, i)) return false;
    return true;
}

static bool allocate(struct join *j, uint32_t i) {
    struct snapshot_device *d = j->device;
    struct snapshot_entry *entry = &d->entries[i];
    struct snapshot_life *before = last_at(j, entry->address);
    if (is_open(before)) {
        /* A history without free_completed says no more than that the free was requested. */
        if (before->request == SNAPSHOT_NONE && !before->pending) d->unexplained++;
        before->end = i;
        entry->closes = (uint32_t)(before - d->lives);
    }
    entry->life = (uint32_t)d->life_count;
    return add(j, (struct snapshot_life){.address = entry->address,
                                         .size = entry->size,
                                         .stream = entry->stream,
                                         .pool = {entry->pool[0], entry->pool[1]},
                                         .note = entry->note,
                                         .stack = entry->stack,
                                         .begin = i,
                                         .request = SNAPSHOT_NONE,
                                         .end = SNAPSHOT_NONE}) != NULL &&
           remember(j, entry->address, d->life_count - 1);
}

static void release(struct join *j, uint32_t i) {
    struct snapshot_device *d = j->device;
    struct snapshot_entry *entry = &d->entries[i];
    struct snapshot_life *life = last_at(j, entry->address);
    bool request = entry->action == SNAPSHOT_REQUEST;
    if (!is_open(life) || (request && (life->request != SNAPSHOT_NONE || life->pending))) {
        d->unexplained++;
        return;
    }
    entry->life = (uint32_t)(life - d->lives);
    if (life->request == SNAPSHOT_NONE && !life->pending) life->request = i;
    if (!request) life->end = i;
}

/* What the blocks at the end know better than the ring. A life that is open and not there is one more
 * contradiction, unless its free was requested: some histories say no more. */
static bool compare_end(struct join *j) {
    struct snapshot_device *d = j->device;
    const struct snapshot_segment *segment;
    const struct snapshot_block *block;
    bool *met = calloc(d->life_count + 1, sizeof *met);
    if (met == NULL) return false;
    for (struct block_walk walk = {0}; (block = next_block(j, &walk, &segment)) != NULL;) {
        struct snapshot_life *life = last_at(j, block->address);
        if (!is_open(life)) {
            d->unexplained++;
            continue;
        }
        met[life - d->lives] = true;
        if (block->stack != 0) life->stack = block->stack;
        if (block->note != NULL) life->note = block->note;
        life->pool[0] = segment->pool[0];
        life->pool[1] = segment->pool[1];
    }
    for (size_t i = 0; i < d->life_count && d->segment_count > 0; i++) {
        struct snapshot_life *life = &d->lives[i];
        if (!is_open(life) || met[i]) continue;
        life->end = life->request;
        if (life->end == SNAPSHOT_NONE) d->unexplained++;
    }
    free(met);
    return true;
}

static void memory_before(struct snapshot_device *d) {
    uint64_t reserved = 0; /* of absurd files it may wrap, which harms nobody */
    int64_t lowest = 0;
    for (size_t i = 0; i < d->segment_count; i++) reserved += d->segments[i].size;
    for (size_t i = d->entry_count; i-- > 0;) {
        if (d->entries[i].action == SNAPSHOT_SEGMENT) reserved -= d->entries[i].size;
        if (d->entries[i].action == SNAPSHOT_UNSEGMENT) reserved += d->entries[i].size;
        if ((int64_t)reserved < lowest) lowest = (int64_t)reserved;
    }
    /* Less than nothing was never reserved: the ring lacks a segment that came. */
    if (lowest < 0) d->unexplained++;
    d->reserved_before = reserved - (uint64_t)lowest;
}

int snapshot_join(const struct snapshot *snapshot, struct snapshot_device *device, struct problem *problem) {
    struct join j = {.snapshot = snapshot, .device = device};
    bool good;
    device->last_oom = device->entry_count;
    for (size_t i = 0; i < device->entry_count; i++)
        if (device->entries[i].action == SNAPSHOT_OOM) device->last_oom = i;
    memory_before(device);
    good = map_reserve(&j.map) && freed_in_ring(&j) && untold(&j) && settle_before(&j);
    for (size_t i = 0; i < device->entry_count && good; i++) {
        const struct snapshot_entry *entry = &device->entries[i];
        if (entry->action == SNAPSHOT_ALLOC)
            good = allocate(&j, (uint32_t)i);
        else if (is_traffic(entry))
            release(&j, (uint32_t)i);
    }
    good = good && compare_end(&j);
    map_free(&j.map);
    if (good) return 0;
    problem_set(problem, "%s: out of memory", snapshot->path);
    return -1;
}
