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

/* What is worked with: curves over the moments. */
struct work {
    size_t moments, peak;
    uint64_t *active, *others; /* bytes of all, and of those that are not kept */
    size_t *next_special;      /* the first special moment at or after each */
};

static bool take_work(struct work *w, const struct snapshot_device *device) {
    *w = (struct work){.moments = device->entry_count + 1};
    w->active = malloc(w->moments * sizeof *w->active);
    w->others = malloc(w->moments * sizeof *w->others);
    w->next_special = malloc(w->moments * sizeof *w->next_special);
    return w->active != NULL && w->others != NULL && w->next_special != NULL;
}

static void give_work(struct work *w) {
    free(w->active);
    free(w->others);
    free(w->next_special);
}

static void draw(struct work *w, const struct snapshot_device *device) {
    size_t special = 0;
    sum(device, NULL, w->active);
    for (size_t i = 1; i < w->moments; i++)
        if (w->active[i] > w->active[w->peak]) w->peak = i;
    for (size_t i = w->moments; i-- > 0;) {
        if (is_special(device, i, w->peak)) special = i;
        w->next_special[i] = special;
    }
}

/* Lives that are large, or there at a special moment, are kept. */
static void choose(struct thin *out, const struct work *w, const struct snapshot_device *device,
                   uint64_t limit) {
    out->kept = 0;
    for (size_t i = 0; i < device->life_count; i++) {
        const struct snapshot_life *life = &device->lives[i];
        size_t first = first_moment(life);
        out->keep[i] = occupied(life) >= limit ||
                       (first < w->moments && w->next_special[first] <= last_moment(device, life));
        if (out->keep[i])
            out->kept++;
        else if (life->size > out->below)
            out->below = life->size;
    }
}

/* The others are told where most is active, once in each stretch. */
static void sum_others(struct thin *out, const struct work *w, const struct snapshot_device *device,
                       size_t stride) {
    sum(device, out->keep, w->others);
    for (size_t from = 0; from < w->moments; from += stride) {
        size_t best = from;
        for (size_t i = from; i < w->moments && i < from + stride; i++)
            if (w->active[i] > w->active[best]) best = i;
        out->points[out->point_count++] = (struct thin_point){from, w->others[best]};
    }
}

bool thin_lives(const struct snapshot_device *device, size_t most, size_t points, struct thin *out) {
    struct work w;
    uint64_t limit;
    bool ok;
    *out = (struct thin){.kept = device->life_count};
    if (device->life_count <= most) return true;
    ok = take_work(&w, device) && find_limit(device, most, &limit);
    if (ok) {
        const size_t stride = w.moments / points + 1;
        out->keep = calloc(device->life_count, 1);
        out->points = malloc((w.moments / stride + 1) * sizeof *out->points);
        ok = out->keep != NULL && out->points != NULL;
        if (ok) {
            draw(&w, device);
            choose(out, &w, device, limit);
            sum_others(out, &w, device, stride);
        }
    }
    give_work(&w);
    return ok;
}

void thin_free(struct thin *thin) {
    free(thin->keep);
    free(thin->points);
    *thin = (struct thin){0};
}
