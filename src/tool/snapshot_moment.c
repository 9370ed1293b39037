/* SPDX-License-Identifier: Apache-2.0
 * Memory as it was before an entry: the segments of the end with the changes since then undone, and the
 * lives of that moment laid into them. */
#include <stdlib.h>
#include <string.h>

#include "tool/array.h"
#include "tool/snapshot.h"

/* PyTorch's sizes: blocks come in these steps, and in a classic segment of large blocks a rest of up to
 * UNSPLIT stays with its block. */
enum { STEP = 512, UNSPLIT = 1 << 20, SMALL_SEGMENT = 2 << 20 };

/* ---- segments -------------------------------------------------------------------------------- */

struct runs {
    struct snapshot_segment *at; /* in rising order, apart from each other */
    size_t count, room;
};

static uint64_t end_of(const struct snapshot_segment *s) {
    return s->address + s->size;
}

/* The first run that ends after the address. */
static size_t find(const struct runs *runs, uint64_t address) {
    size_t low = 0, high = runs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (end_of(&runs->at[middle]) > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool insert(struct runs *runs, size_t i, struct snapshot_segment run) {
    if (!array_reserve(&runs->at, &runs->room, runs->count, 1, sizeof run)) return false;
    memmove(&runs->at[i + 1], &runs->at[i], (runs->count - i) * sizeof run);
    runs->at[i] = run;
    runs->count++;
    return true;
}

static void drop(struct runs *runs, size_t i) {
    memmove(&runs->at[i], &runs->at[i + 1], (runs->count - i - 1) * sizeof *runs->at);
    runs->count--;
}

/* Takes [from, to) out of the runs; a run that it lies inside of becomes two. */
static bool cut(struct runs *runs, uint64_t from, uint64_t to) {
    for (size_t i = find(runs, from); i < runs->count && runs->at[i].address < to;) {
        struct snapshot_segment *run = &runs->at[i], rest = *run;
        uint64_t end = end_of(run);
        if (run->address < from && end > to) {
            rest.address = to;
            rest.size = end - to;
            run->size = from - run->address;
            return insert(runs, i + 1, rest);
        }
        if (run->address >= from && end <= to) {
            drop(runs, i);
            continue;
        }
        if (run->address < from) {
            run->size = from - run->address;
        } else {
            run->address = to;
            run->size = end - to;
        }
        i++;
    }
    return true;
}

/* Puts memory back where an entry says that it went. Mapped runs grow together with their neighbours. */
static bool mend(struct runs *runs, const struct snapshot_entry *entry, int device) {
    uint64_t to = entry->address + entry->size;
    struct snapshot_segment run = {.address = entry->address,
                                   .size = entry->size,
                                   .stream = entry->stream,
                                   .pool = {entry->pool[0], entry->pool[1]},
                                   .stack = entry->stack,
                                   .device = device,
                                   .small = entry->size == SMALL_SEGMENT,
                                   .expandable = strcmp(entry->name, "segment_unmap") == 0};
    size_t i;
    if (to <= entry->address || !cut(runs, entry->address, to)) return to <= entry->address;
    i = find(runs, entry->address);
    if (run.expandable) {
        struct snapshot_segment *after = i < runs->count ? &runs->at[i] : NULL;
        struct snapshot_segment *before = i > 0 ? &runs->at[i - 1] : NULL;
        bool joins_after = after != NULL && after->expandable && after->address == to &&
                           after->stream == run.stream;
        if (before != NULL && before->expandable && end_of(before) == run.address &&
            before->stream == run.stream) {
            before->size += run.size;
            if (!joins_after) return true;
            before->size += after->size;
            drop(runs, i);
            return true;
        }
        if (joins_after) {
            after->address = run.address;
            after->size += run.size;
            return true;
        }
    }
    return insert(runs, i, run);
}

static bool rewind_to(const struct snapshot_device *device, size_t entry, struct runs *runs) {
    if (!array_reserve(&runs->at, &runs->room, 0, device->segment_count, sizeof *runs->at)) return false;
    if (device->segment_count > 0)
        memcpy(runs->at, device->segments, device->segment_count * sizeof *runs->at);
    runs->count = device->segment_count;
    for (size_t i = device->entry_count; i-- > entry;) {
        const struct snapshot_entry *e = &device->entries[i];
        if (e->action == SNAPSHOT_SEGMENT && !cut(runs, e->address, e->address + e->size)) return false;
        if (e->action == SNAPSHOT_UNSEGMENT && !mend(runs, e, device->index)) return false;
    }
    return true;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct placed {
    uint64_t address;
    uint32_t life;
};

static int by_address(const void *left, const void *right) {
    const struct placed *a = left, *b = right;
    if (a->address != b->address) return a->address < b->address ? -1 : 1;
    return a->life < b->life ? -1 : a->life > b->life;
}

static bool lives_at(const struct snapshot_life *life, size_t entry) {
    return (life->begin == SNAPSHOT_NONE || life->begin < entry) &&
           (life->end == SNAPSHOT_NONE || life->end >= entry);
}

struct filler {
    const struct snapshot_device *device;
    size_t entry, room, life_room;
    struct snapshot_moment *out;
};

static bool put(struct filler *f, struct snapshot_block block, uint32_t life) {
    struct snapshot_moment *m = f->out;
    if (!array_reserve(&m->blocks, &f->room, m->block_count, 1, sizeof *m->blocks) ||
        !array_reserve(&m->lives, &f->life_room, m->block_count, 1, sizeof *m->lives))
        return false;
    m->blocks[m->block_count] = block;
    m->lives[m->block_count++] = life;
    if (block.state == SNAPSHOT_FREE) m->free += block.size;
    if (block.state == SNAPSHOT_LIVE) m->live += block.size;
    if (block.state == SNAPSHOT_PENDING) m->pending += block.size;
    m->requested += block.requested;
    return true;
}

static struct snapshot_block block_of(const struct filler *f, const struct snapshot_life *life,
                                      uint64_t size) {
    bool pending = life->pending || (life->request != SNAPSHOT_NONE && life->request < f->entry);
    return (struct snapshot_block){.address = life->address,
                                   .size = size,
                                   .requested = life->size,
                                   .note = life->note,
                                   .stack = life->stack,
                                   .state = pending ? SNAPSHOT_PENDING : SNAPSHOT_LIVE};
}

/* Tiles a segment with those of the places that lie in it, from *next on. */
static bool tile(struct filler *f, struct snapshot_segment *segment, const struct placed *places,
                 size_t count, size_t *next) {
    uint64_t at = segment->address, end = end_of(segment);
    uint64_t unsplit = segment->small || segment->expandable ? 0 : UNSPLIT;
    segment->first = f->out->block_count;
    for (; *next < count && places[*next].address < end; ++*next) {
        const struct snapshot_life *life = &f->device->lives[places[*next].life];
        uint64_t size = (life->size + STEP - 1) / STEP * STEP, until = end;
        if (size == 0) size = STEP;
        if (life->address < at || size > end - life->address) { /* under another block, or over the end */
            f->out->unplaced += life->size;
            continue;
        }
        if (*next + 1 < count && places[*next + 1].address < until) until = places[*next + 1].address;
        if (until >= life->address + size && until - life->address - size <= unsplit)
            size = until - life->address;
        if (life->address > at &&
            !put(f, (struct snapshot_block){.address = at, .size = life->address - at}, SNAPSHOT_NONE))
            return false;
        if (!put(f, block_of(f, life, size), places[*next].life)) return false;
        at = life->address + size;
    }
    if (at < end && !put(f, (struct snapshot_block){.address = at, .size = end - at}, SNAPSHOT_NONE))
        return false;
    segment->count = f->out->block_count - segment->first;
    return true;
}

/* The end itself: blocks are those of the file. */
static bool copy_end(struct filler *f, const struct snapshot *snapshot, const struct placed *places,
                     size_t count) {
    size_t next = 0;
    for (size_t i = 0; i < f->out->segment_count; i++) {
        struct snapshot_segment *segment = &f->out->segments[i];
        size_t first = segment->first;
        segment->first = f->out->block_count;
        for (size_t k = 0; k < segment->count; k++) {
            const struct snapshot_block *block = &snapshot->blocks[first + k];
            uint32_t life = SNAPSHOT_NONE;
            while (next < count && places[next].address < block->address)
                f->out->unplaced += f->device->lives[places[next++].life].size;
            if (next < count && places[next].address == block->address && block->state != SNAPSHOT_FREE)
                life = places[next++].life;
            if (!put(f, *block, life)) return false;
        }
    }
    while (next < count) f->out->unplaced += f->device->lives[places[next++].life].size;
    return true;
}

static bool fill(struct filler *f, const struct snapshot *snapshot) {
    const struct snapshot_device *d = f->device;
    struct placed *places = calloc(d->life_count + 1, sizeof *places);
    size_t count = 0, next = 0;
    bool good = places != NULL;
    for (size_t i = 0; i < d->life_count && good; i++)
        if (lives_at(&d->lives[i], f->entry))
            places[count++] = (struct placed){d->lives[i].address, (uint32_t)i};
    if (count > 0) qsort(places, count, sizeof *places, by_address);
    if (good && f->entry == d->entry_count && !snapshot->from_trace) {
        good = copy_end(f, snapshot, places, count);
    } else {
        for (size_t i = 0; i < f->out->segment_count && good; i++) {
            struct snapshot_segment *segment = &f->out->segments[i];
            while (next < count && places[next].address < segment->address)
                f->out->unplaced += d->lives[places[next++].life].size;
            good = tile(f, segment, places, count, &next);
        }
        while (good && next < count) f->out->unplaced += d->lives[places[next++].life].size;
    }
    free(places);
    return good;
}

int snapshot_rebuild(const struct snapshot *snapshot, const struct snapshot_device *device, size_t entry,
                     struct snapshot_moment *out, struct problem *problem) {
    struct filler filler = {.device = device, .entry = entry, .out = out};
    struct runs runs = {0};
    bool good;
    *out = (struct snapshot_moment){0};
    good = rewind_to(device, entry, &runs);
    out->segments = runs.at;
    out->segment_count = runs.count;
    for (size_t i = 0; i < runs.count; i++) out->reserved += runs.at[i].size;
    if (good && fill(&filler, snapshot)) return 0;
    snapshot_moment_free(out);
    problem_set(problem, "%s: out of memory", snapshot->path);
    return -1;
}

void snapshot_moment_free(struct snapshot_moment *moment) {
    free(moment->segments);
    free(moment->blocks);
    free(moment->lives);
    *moment = (struct snapshot_moment){0};
}
