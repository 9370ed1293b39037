/* SPDX-License-Identifier: Apache-2.0
 * Growth: allocations of one place in the program that are made again and again and never freed. */
#include "tool/growth.h"

#include <stdlib.h>

#include "tool/array.h"
#include "tool/map.h"

enum {
    SWING = 5,        /* a cycle is a fall by so-manieth of the range of live bytes */
    CYCLES = 5,       /* so many make a rhythm */
    BIRTHS = 5,       /* so many blocks make a group worth a look */
    MANY_BIRTHS = 16, /* and so many where there is no rhythm */
    WINDOWS = 8,      /* of the history, for the spread of births */
};

static const uint64_t LEAST_BYTES = 1 << 20; /* what grows by less in the whole history is left out */
static const unsigned LEAST_PART = 200;      /* and what is less than this part of all live bytes */

struct group {
    uint64_t key;
    uint64_t bytes, freed; /* freed: of its size, from before the history */
    uint64_t size, size_bytes;
    size_t blocks, cycles, last_cycle;
    unsigned windows; /* bits: of the cycles, or of the entries where there is no rhythm */
    uint32_t stack;
    const char *note;
    bool grows;
    uint64_t older_bytes;
    size_t older_blocks;
};

struct finder {
    const struct snapshot *snapshot;
    const struct snapshot_device *device;
    size_t entry;
    uint32_t *cycle; /* of each entry */
    size_t cycles;
    struct map keys; /* group by key */
    struct group *groups;
    size_t count, room;
    uint64_t live; /* bytes, at the moment */
};

static bool alive(const struct finder *f, const struct snapshot_life *life) {
    return !life->pending && (life->begin == SNAPSHOT_NONE || life->begin < f->entry) &&
           (life->request == SNAPSHOT_NONE || life->request >= f->entry) &&
           (life->end == SNAPSHOT_NONE || life->end >= f->entry);
}

/* Bytes live after each entry. Returns how far they must fall to have turned: a part of what they swing by, but for
 * the first half, in which the program may be setting itself up. */
static uint64_t draw_curve(struct finder *f, uint64_t *curve) {
    const struct snapshot_device *d = f->device;
    uint64_t live = 0, most = 0, least = UINT64_MAX;
    for (size_t i = 0; i < d->before_count; i++) live += d->lives[i].pending ? 0 : d->lives[i].size;
    for (size_t i = 0; i < f->entry; i++) {
        const struct snapshot_entry *e = &d->entries[i];
        if (e->life != SNAPSHOT_NONE && e->action == SNAPSHOT_ALLOC) live += e->size;
        if (e->life != SNAPSHOT_NONE && d->lives[e->life].request == i) live -= d->lives[e->life].size;
        curve[i] = live;
        if (i >= f->entry / 2 && live > most) most = live;
        if (i >= f->entry / 2 && live < least) least = live;
    }
    f->live = live;
    return most > least ? (most - least) / SWING : 0;
}

/* A cycle is a rise, a fall and the turn to the next rise. */
static void count_cycles(struct finder *f, const uint64_t *curve, uint64_t swing) {
    uint64_t top = curve[0], bottom = curve[0];
    bool falling = false;
    for (size_t i = 0; i < f->entry; i++) {
        if (!falling && curve[i] > top) top = curve[i];
        if (falling && curve[i] < bottom) bottom = curve[i];
        if (!falling && curve[i] + swing < top) {
            falling = true;
            bottom = curve[i];
        } else if (falling && curve[i] > bottom + swing) {
            falling = false;
            top = curve[i];
            f->cycles++;
        }
        f->cycle[i] = (uint32_t)f->cycles;
    }
}

static bool find_cycles(struct finder *f) {
    uint64_t *curve = calloc(f->entry + 1, sizeof *curve);
    f->cycle = calloc(f->entry + 1, sizeof *f->cycle);
    if (curve != NULL && f->cycle != NULL) count_cycles(f, curve, draw_curve(f, curve));
    free(curve);
    return curve != NULL && f->cycle != NULL;
}

/* What was born since the last cycle was complete may only be in use just now. */
static bool settled(const struct finder *f, const struct snapshot_life *life) {
    return f->cycles < CYCLES || f->cycle[life->begin] < f->cycles;
}

static uint64_t key_of(const struct snapshot_life *life) {
    return life->stack != 0 ? life->stack : life->size | UINT64_C(1) << 63;
}

static struct group *group_of(struct finder *f, uint64_t key, bool make) {
    struct map_slot *slot;
    if (!map_reserve(&f->keys)) return NULL;
    slot = map_at(&f->keys, key);
    if (slot->index == 0) {
        if (!make || !array_reserve(&f->groups, &f->room, f->count, 1, sizeof *f->groups)) return NULL;
        f->groups[f->count++] = (struct group){.key = key, .last_cycle = SIZE_MAX};
        *slot = (struct map_slot){key, (uint32_t)f->count};
        f->keys.used++;
    }
    return &f->groups[slot->index - 1];
}

/* Into how many parts the history is cut to see whether births are spread over it. */
static unsigned windows_of(const struct finder *f) {
    return f->cycles >= CYCLES && f->cycles < WINDOWS ? (unsigned)f->cycles : WINDOWS;
}

static unsigned window_of(const struct finder *f, uint32_t entry) {
    unsigned count = windows_of(f);
    uint64_t window = f->cycles >= CYCLES ? (uint64_t)f->cycle[entry] * count / f->cycles
                                          : (uint64_t)entry * count / f->entry;
    return window < count ? (unsigned)window : count - 1; /* the last cycle is not complete */
}

/* Blocks that were born in the history and are alive. */
static bool collect(struct finder *f) {
    const struct snapshot_device *d = f->device;
    for (size_t i = d->before_count; i < d->life_count; i++) {
        const struct snapshot_life *life = &d->lives[i];
        struct group *g;
        if (!alive(f, life) || !settled(f, life)) continue;
        g = group_of(f, key_of(life), true);
        if (g == NULL) return false;
        if (g->blocks++ == 0) {
            g->stack = life->stack;
            g->note = life->note;
            g->size = life->size;
        }
        g->bytes += life->size;
        /* The size that most blocks have, by majority vote. */
        if (life->size == g->size)
            g->size_bytes += life->size;
        else if (g->size_bytes >= life->size)
            g->size_bytes -= life->size;
        else {
            g->size = life->size;
            g->size_bytes = life->size;
        }
        if (f->cycle[life->begin] != g->last_cycle) {
            g->last_cycle = f->cycle[life->begin];
            g->cycles++;
        }
        g->windows |= 1u << window_of(f, life->begin);
    }
    return true;
}

static struct group *by_size(const struct map *sizes, struct finder *f, uint64_t size) {
    const struct map_slot *slot = sizes->slots == NULL ? NULL : map_at(sizes, size);
    return slot == NULL || slot->index == 0 ? NULL : &f->groups[slot->index - 1];
}

/* Which of the groups takes the old blocks of a size: the one with most bytes. */
static bool name_sizes(struct finder *f, struct map *sizes) {
    for (size_t i = 0; i < f->count; i++) {
        struct map_slot *slot;
        if (!map_reserve(sizes)) return false;
        slot = map_at(sizes, f->groups[i].size);
        if (slot->index == 0) sizes->used++;
        if (slot->index == 0 || f->groups[slot->index - 1].bytes < f->groups[i].bytes)
            *slot = (struct map_slot){f->groups[i].size, (uint32_t)i + 1};
    }
    return true;
}

/* Does this life from before the history belong to the group of its size? */
static struct group *elder(const struct map *sizes, struct finder *f, const struct snapshot_life *life) {
    struct group *g = by_size(sizes, f, life->size);
    return g != NULL && (life->stack == 0 || life->stack == g->stack) ? g : NULL;
}

static void weigh_elders(struct finder *f, const struct map *sizes) {
    for (size_t i = 0; i < f->device->before_count; i++) {
        const struct snapshot_life *life = &f->device->lives[i];
        struct group *g = elder(sizes, f, life);
        if (g == NULL) continue;
        if (alive(f, life)) {
            g->older_bytes += life->size;
            g->older_blocks++;
        } else if (life->end < f->entry && window_of(f, life->end) > 0) {
            g->freed += life->size; /* one that goes at once was in use when the history began */
        }
    }
}

static bool grows(const struct finder *f, const struct group *g) {
    unsigned windows = (unsigned)__builtin_popcount(g->windows), all = windows_of(f);
    if (g->blocks < BIRTHS || g->bytes < LEAST_BYTES || g->bytes < f->live / LEAST_PART) return false;
    if (g->freed * 2 > g->bytes) return false;
    if (windows * 4 < all * 3) return false;
    if (f->cycles >= CYCLES) return true;
    return g->blocks >= MANY_BIRTHS && g->bytes * 10 >= f->live * 6 && g->size_bytes * 2 >= g->bytes;
}

static int by_bytes(const void *left, const void *right) {
    const struct growth_group *a = left, *b = right;
    uint64_t x = a->bytes + a->older_bytes, y = b->bytes + b->older_bytes;
    return x > y ? -1 : x < y;
}

static bool report(struct finder *f, const struct map *sizes, struct growth *out) {
    const struct snapshot_device *d = f->device;
    for (size_t i = 0; i < f->count; i++) {
        const struct group *g = &f->groups[i];
        struct growth_group found = {g->stack,  g->size,   g->note,        g->bytes,
                                     g->blocks, g->cycles, g->older_bytes, g->older_blocks};
        if (!g->grows) continue;
        out->bytes += g->bytes;
        out->older_bytes += g->older_bytes;
        if (out->count < GROWTH_GROUPS)
            out->groups[out->count++] = found;
        else if (by_bytes(&found, &out->groups[GROWTH_GROUPS - 1]) < 0)
            out->groups[GROWTH_GROUPS - 1] = found;
        qsort(out->groups, out->count, sizeof out->groups[0], by_bytes);
    }
    if (out->count == 0) return true;
    out->lives = calloc(d->life_count + 1, sizeof *out->lives);
    if (out->lives == NULL) return false;
    for (size_t i = 0; i < d->life_count; i++) {
        const struct snapshot_life *life = &d->lives[i];
        const struct group *g = i < d->before_count ? elder(sizes, f, life)
                                                    : group_of(f, key_of(life), false);
        out->lives[i] = g != NULL && g->grows && alive(f, life) && (i < d->before_count || settled(f, life));
    }
    return true;
}

int growth_find(const struct snapshot *snapshot, const struct snapshot_device *device, size_t entry,
                struct growth *out, struct problem *problem) {
    struct finder f = {.snapshot = snapshot, .device = device, .entry = entry};
    struct map sizes = {0};
    bool good;
    *out = (struct growth){0};
    good = find_cycles(&f) && collect(&f) && name_sizes(&f, &sizes);
    if (good) {
        weigh_elders(&f, &sizes);
        for (size_t i = 0; i < f.count; i++) f.groups[i].grows = grows(&f, &f.groups[i]);
        out->cycles = f.cycles;
        if (!snapshot->from_trace && entry > 0)
            out->seconds = (double)(device->entries[entry - 1].time_us - device->entries[0].time_us) / 1e6;
        good = report(&f, &sizes, out);
    }
    map_free(&sizes);
    map_free(&f.keys);
    free(f.groups);
    free(f.cycle);
    if (good) return 0;
    growth_free(out);
    problem_set(problem, "%s: out of memory", snapshot->path);
    return -1;
}

void growth_free(struct growth *growth) {
    free(growth->lives);
    *growth = (struct growth){0};
}
