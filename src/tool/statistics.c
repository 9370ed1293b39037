/* SPDX-License-Identifier: Apache-2.0
 * The figures of a snapshot. */
#include "tool/statistics.h"

#include <stdlib.h>
#include <string.h>

enum { STEP = 512, SMALL_BLOCK = 1 << 20, SMALL_SEGMENT = 2 << 20 };

static void change(struct granary_stat *stat, int64_t by) {
    stat->current += by;
    if (by > 0) stat->total_up += by;
    if (by < 0) stat->total_down -= by;
    if (stat->current > stat->peak) stat->peak = stat->current;
}

static void change_class(struct granary_stat_by_class *stat, bool small, int64_t by) {
    change(&stat->all, by);
    change(small ? &stat->small : &stat->large, by);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void look_at_classic(const struct snapshot *s, const struct snapshot_device *device,
                            struct granary_split_stats *out) {
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct snapshot_segment *segment = &device->segments[i];
        if (segment->expandable) continue;
        if (segment->size >= s->max_split_size) change(&out->oversize_segments, 1);
        for (size_t k = 0; k < segment->count; k++) {
            const struct snapshot_block *block = &s->blocks[segment->first + k];
            if (block->state == SNAPSHOT_LIVE && block->size >= s->max_split_size)
                change(&out->oversize_blocks, 1);
            if (block->state != SNAPSHOT_FREE || segment->count == 1) continue;
            change_class(&out->split_bytes, segment->small, (int64_t)block->size);
            change_class(&out->split_blocks, segment->small, 1);
        }
    }
}

/* ---- the history ----------------------------------------------------------------------------- */

struct counter {
    const struct snapshot_device *device;
    struct granary_stats *out;
    int64_t *sizes; /* of lives, as they were handed out */
    bool *small;    /* the class that each life is in */
};

/* As the block at the end says, else as PyTorch rounds. */
static int measure(struct counter *c, const struct snapshot *s, struct problem *problem) {
    const struct snapshot_device *d = c->device;
    struct snapshot_moment end;
    if (snapshot_rebuild(s, d, d->entry_count, &end, problem) != 0) return -1;
    for (size_t i = 0; i < d->life_count; i++) {
        c->sizes[i] = (int64_t)((d->lives[i].size + STEP - 1) / STEP * STEP);
        c->small[i] = c->sizes[i] <= SMALL_BLOCK;
    }
    for (size_t i = 0; i < end.segment_count; i++)
        for (size_t k = end.segments[i].first; k < end.segments[i].first + end.segments[i].count; k++)
            if (end.lives[k] != SNAPSHOT_NONE) {
                c->sizes[end.lives[k]] = (int64_t)end.blocks[k].size;
                c->small[end.lives[k]] = end.segments[i].small;
            }
    snapshot_moment_free(&end);
    return 0;
}

static void begin(struct counter *c, size_t life, bool pending) {
    bool small = c->small[life];
    change_class(&c->out->active_bytes, small, c->sizes[life]);
    change_class(&c->out->active_blocks, small, 1);
    change_class(&c->out->requested_bytes, small, (int64_t)c->device->lives[life].size);
    if (pending) return;
    change_class(&c->out->allocated_bytes, small, c->sizes[life]);
    change_class(&c->out->allocations, small, 1);
}

static void request(struct counter *c, size_t life) {
    change_class(&c->out->allocated_bytes, c->small[life], -c->sizes[life]);
    change_class(&c->out->allocations, c->small[life], -1);
    c->out->pending_blocks++;
}

static void complete(struct counter *c, size_t life) {
    change_class(&c->out->active_bytes, c->small[life], -c->sizes[life]);
    change_class(&c->out->active_blocks, c->small[life], -1);
    change_class(&c->out->requested_bytes, c->small[life], -(int64_t)c->device->lives[life].size);
    c->out->pending_blocks--;
}

static bool is_classic(const struct snapshot_entry *e) {
    return strcmp(e->name, "segment_alloc") == 0 || strcmp(e->name, "segment_free") == 0;
}

/* The class of the memory that an entry is about. Mapped memory has that of the nearest of its stream. */
static bool is_small(const struct snapshot_device *d, const struct snapshot_entry *e) {
    const struct snapshot_segment *nearest = NULL;
    uint64_t least = UINT64_MAX;
    if (is_classic(e)) return e->size == SMALL_SEGMENT;
    for (size_t i = 0; i < d->segment_count; i++) {
        const struct snapshot_segment *s = &d->segments[i];
        uint64_t away = s->address > e->address ? s->address - e->address : e->address - s->address;
        if (!s->expandable || s->stream != e->stream || away >= least) continue;
        least = away;
        nearest = s;
    }
    return nearest != NULL && nearest->small;
}

static void count_entry(struct counter *c, uint32_t i) {
    const struct snapshot_entry *e = &c->device->entries[i];
    const struct snapshot_life *life = e->life == SNAPSHOT_NONE ? NULL : &c->device->lives[e->life];
    bool comes = e->action == SNAPSHOT_SEGMENT;
    if (e->action == SNAPSHOT_OOM) c->out->out_of_memory++;
    if (strcmp(e->name, "move") == 0) c->out->moved_bytes += (int64_t)e->size;
    if (comes || e->action == SNAPSHOT_UNSEGMENT) {
        bool small = is_small(c->device, e), classic = is_classic(e);
        change_class(&c->out->reserved_bytes, small, comes ? (int64_t)e->size : -(int64_t)e->size);
        if (classic) change_class(&c->out->segments, small, comes ? 1 : -1);
        if (!classic) *(comes ? &c->out->maps : &c->out->unmaps) += 1;
    }
    if (e->closes != SNAPSHOT_NONE) {
        if (c->device->lives[e->closes].request == SNAPSHOT_NONE && !c->device->lives[e->closes].pending)
            request(c, e->closes);
        complete(c, e->closes);
    }
    if (life == NULL) return;
    if (e->action == SNAPSHOT_ALLOC) begin(c, e->life, false);
    if (life->request == i) request(c, e->life);
    if (life->end == i) complete(c, e->life);
}

/* What was reserved when the history began, by class: what there is at the end without what came since. */
static void reserved_before(struct counter *c) {
    const struct snapshot_device *d = c->device;
    int64_t bytes[2] = {0, 0}, count[2] = {0, 0};
    for (size_t i = 0; i < d->segment_count; i++) {
        bytes[d->segments[i].small] += (int64_t)d->segments[i].size;
        count[d->segments[i].small] += !d->segments[i].expandable;
    }
    for (size_t i = 0; i < d->entry_count; i++) {
        const struct snapshot_entry *e = &d->entries[i];
        int sign = e->action == SNAPSHOT_SEGMENT ? 1 : e->action == SNAPSHOT_UNSEGMENT ? -1 : 0;
        bool small = sign != 0 && is_small(d, e);
        bytes[small] -= sign * (int64_t)e->size;
        count[small] -= sign != 0 && is_classic(e) ? sign : 0;
    }
    for (int small = 0; small < 2; small++) {
        change_class(&c->out->reserved_bytes, small, bytes[small]);
        change_class(&c->out->segments, small, count[small]);
    }
}

int statistics_of(const struct snapshot *snapshot, const struct snapshot_device *device,
                  struct granary_stats *out, struct granary_split_stats *split, struct problem *problem) {
    struct counter c = {.device = device, .out = out};
    int rc = -1;
    *split = (struct granary_split_stats){.struct_size = sizeof *split};
    look_at_classic(snapshot, device, split);
    if (snapshot->statistics.struct_size != 0) {
        *out = snapshot->statistics;
        return 0;
    }
    *out = (struct granary_stats){.struct_size = sizeof *out};
    c.sizes = calloc(device->life_count + 1, sizeof *c.sizes);
    c.small = calloc(device->life_count + 1, sizeof *c.small);
    if (c.sizes == NULL || c.small == NULL)
        problem_set(problem, "%s: out of memory", snapshot->path);
    else
        rc = measure(&c, snapshot, problem);
    if (rc == 0) {
        reserved_before(&c);
        for (size_t i = 0; i < device->before_count; i++) begin(&c, i, device->lives[i].pending);
        for (size_t i = 0; i < device->before_count; i++) out->pending_blocks += device->lives[i].pending;
        for (size_t i = 0; i < device->entry_count; i++) count_entry(&c, (uint32_t)i);
    }
    free(c.sizes);
    free(c.small);
    return rc;
}
