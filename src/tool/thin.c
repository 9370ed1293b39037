/* SPDX-License-Identifier: Apache-2.0
 * Thinning: which lives of a long history are told one by one, and the sum of the others. */
#include "tool/thin.h"

#include <stdlib.h>

/* A moment is a number from 0 to entry_count: memory just before that entry. */
static size_t first_moment(const struct snapshot_life *life) {
    return life->begin == SNAPSHOT_NONE ? 0 : (size_t)life->begin + 1;
}

static size_t last_moment(const struct snapshot_device *device, const struct snapshot_life *life) {
    return life->end == SNAPSHOT_NONE ? device->entry_count : life->end;
}

static uint64_t occupied(const struct snapshot_life *life) {
    uint64_t size = life->size < 1 ? 1 : life->size;
    return size > UINT64_MAX - 511 ? size : (size + 511) / 512 * 512;
}

static int compare_sizes(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

/* The size from which on at most `most` lives are as large. */
static bool find_limit(const struct snapshot_device *device, size_t most, uint64_t *limit) {
    uint64_t *sizes = malloc(device->life_count * sizeof *sizes);
    if (sizes == NULL) return false;
    for (size_t i = 0; i < device->life_count; i++) sizes[i] = occupied(&device->lives[i]);
    qsort(sizes, device->life_count, sizeof *sizes, compare_sizes);
    *limit = sizes[device->life_count - most - 1] + 1;
    free(sizes);
    return true;
}

/* Bytes at each moment, of all lives or of those that are not kept. */
static void sum(const struct snapshot_device *device, const unsigned char *keep, uint64_t *bytes) {
    size_t moments = device->entry_count + 1;
    for (size_t i = 0; i < moments; i++) bytes[i] = 0;
    for (size_t i = 0; i < device->life_count; i++) {
        const struct snapshot_life *life = &device->lives[i];
        size_t last = last_moment(device, life);
        if (keep != NULL && keep[i]) continue;
        bytes[first_moment(life)] += occupied(life);
        if (last + 1 < moments) bytes[last + 1] -= occupied(life);
    }
    for (size_t i = 1; i < moments; i++) bytes[i] += bytes[i - 1];
}

/* Is memory looked at closely at this moment? (Without a failure last_oom is the end.) */
static bool is_special(const struct snapshot_device *device, size_t moment, size_t peak) {
    return moment == peak || moment == device->entry_count || moment == device->last_oom;
}

bool thin_lives(const struct snapshot_device *device, size_t most, size_t points, struct thin *out) {
    size_t moments = device->entry_count + 1, peak = 0, special = 0, stride = moments / points + 1;
    size_t *next_special = NULL; /* for each moment, the first special one at or after it */
    uint64_t *active = NULL, *others = NULL, limit;
    bool ok = false;

    *out = (struct thin){.kept = device->life_count};
    if (device->life_count <= most) return true;
    out->keep = calloc(device->life_count, 1);
    active = malloc(moments * sizeof *active);
    others = malloc(moments * sizeof *others);
    next_special = malloc(moments * sizeof *next_special);
    out->points = malloc((moments / stride + 1) * sizeof *out->points);
    if (out->keep == NULL || active == NULL || others == NULL || next_special == NULL ||
        out->points == NULL || !find_limit(device, most, &limit))
        goto done;

    sum(device, NULL, active);
    for (size_t i = 1; i < moments; i++)
        if (active[i] > active[peak]) peak = i;
    for (size_t i = moments; i-- > 0;) {
        if (is_special(device, i, peak)) special = i;
        next_special[i] = special;
    }
    out->kept = 0;
    for (size_t i = 0; i < device->life_count; i++) {
        const struct snapshot_life *life = &device->lives[i];
        size_t first = first_moment(life);
        out->keep[i] = occupied(life) >= limit ||
                       (first < moments && next_special[first] <= last_moment(device, life));
        if (out->keep[i])
            out->kept++;
        else if (life->size > out->below)
            out->below = life->size;
    }

    sum(device, out->keep, others);
    for (size_t from = 0; from < moments; from += stride) {
        size_t best = from;
        for (size_t i = from; i < moments && i < from + stride; i++)
            if (active[i] > active[best]) best = i;
        out->points[out->point_count++] = (struct thin_point){from, others[best]};
    }
    ok = true;

done:
    free(active);
    free(others);
    free(next_special);
    return ok;
}

void thin_free(struct thin *thin) {
    free(thin->keep);
    free(thin->points);
    *thin = (struct thin){0};
}
