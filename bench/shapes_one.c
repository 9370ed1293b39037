/* SPDX-License-Identifier: Apache-2.0
 * Shapes of traffic on one thread: pairs, random replacement, holes, and RMM's random allocation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "latency.h"

static const size_t MIB = (size_t)1 << 20;

static void take(granary *g, size_t size, granary_stream stream, void **out) {
    device_must(g, granary_alloc(g, size, stream, out), "granary_alloc");
}

static void give(granary *g, void *ptr) {
    device_must(g, granary_free(g, ptr), "granary_free");
}

/* "512 B", "1 MiB", "1 MiB + 512". */
static const char *size_words(size_t size, char *buffer, size_t room) {
    if (size >= MIB && size % MIB != 0)
        snprintf(buffer, room, "%zu MiB + %zu", size / MIB, size % MIB);
    else if (size >= MIB)
        snprintf(buffer, room, "%zu MiB", size / MIB);
    else
        snprintf(buffer, room, "%zu B", size);
    return buffer;
}

/* ---- pair: one block, allocated and freed ----------------------------------------------------- */

struct pair {
    granary *g;
    granary_stream stream;
    size_t size;
};

static void do_pairs(void *context, size_t count) {
    const struct pair *p = context;
    void *ptr;
    for (size_t i = 0; i < count; i++) {
        granary_alloc(p->g, p->size, p->stream, &ptr);
        granary_free(p->g, ptr);
    }
}

/* Calls whose result nobody looks at while the clock runs: a failure shows here. */
static void check(granary *g) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    device_must(g, granary_get_stats(g, &stats), "statistics");
    if (stats.out_of_memory == 0) return;
    fprintf(stderr, "bench: the device is too small for this shape\n");
    exit(EXIT_FAILURE);
}

void shape_pair(struct latency *l) {
    static const size_t sizes[] = {512,           1024,    4096,     100000,   1048576,
                                   1048576 + 512, 4194304, 20971520, 67108864, 536870912};
    const struct measure_plan plan = {1000, latency_scale(l, 201), latency_scale(l, 50000)};
    granary *g = latency_handle(l);
    struct pair p = {.g = g, .stream = device_stream(g)};
    for (size_t i = 0; i < GR_COUNT(sizes); i++) {
        char words[32];
        double glibc = measure_glibc(), misses;
        p.size = sizes[i];
        do_pairs(&p, 100);
        misses = latency_misses(g);
        struct figures f = measure_run(do_pairs, &p, &plan);
        check(g);
        latency_add(l, "pair", size_words(sizes[i], words, sizeof words), (double)sizes[i], f, glibc,
                    (latency_misses(g) - misses) / f.calls);
    }
    granary_stream_destroy(g, p.stream);
    granary_close(g);
}

/* ---- replace: a random block is freed and another one allocated --------------------------------- */

enum { STEPS = 1 << 18 };

struct replace {
    granary *g;
    granary_stream stream;
    void **live;
    size_t *sizes;   /* of each step, in a ring */
    uint32_t *picks; /* which block goes */
    size_t at;
};

/* 2^9 to 2^23 bytes, even in the logarithm. */
static size_t draw_size(uint64_t *seed) {
    return (size_t)exp2(9 + 14 * measure_uniform(seed));
}

static void do_replace(void *context, size_t count) {
    struct replace *r = context;
    for (size_t i = 0; i < count; i++) {
        size_t step = r->at++ & (STEPS - 1);
        void **slot = &r->live[r->picks[step]];
        granary_free(r->g, *slot);
        granary_alloc(r->g, r->sizes[step], r->stream, slot);
    }
}

static void replace_with(struct latency *l, size_t live) {
    const struct measure_plan plan = {500, latency_scale(l, 401), latency_scale(l, 100000)};
    uint64_t seed = 1;
    granary *g = latency_handle(l);
    struct replace r = {.g = g, .stream = device_stream(g)};
    r.live = measure_take(live, sizeof *r.live);
    r.sizes = measure_take(STEPS, sizeof *r.sizes);
    r.picks = measure_take(STEPS, sizeof *r.picks);
    for (size_t i = 0; i < STEPS; i++) {
        r.sizes[i] = draw_size(&seed);
        r.picks[i] = (uint32_t)(measure_random(&seed) % live);
    }
    for (size_t i = 0; i < live; i++) take(g, draw_size(&seed), r.stream, &r.live[i]);
    double glibc = measure_glibc();
    do_replace(&r, latency_scale(l, STEPS));
    double misses = latency_misses(g);
    struct figures f = measure_run(do_replace, &r, &plan);
    check(g);
    latency_add(l, "replace", "", (double)live, f, glibc, (latency_misses(g) - misses) / f.calls);
    for (size_t i = 0; i < live; i++) give(g, r.live[i]);
    granary_stream_destroy(g, r.stream);
    granary_close(g);
    free(r.live);
    free(r.sizes);
    free(r.picks);
}

void shape_replace(struct latency *l) {
    static const size_t counts[] = {100, 1000, 10000, 100000};
    for (size_t i = 0; i < GR_COUNT(counts); i++) replace_with(l, counts[i]);
}

/* ---- holes: a pair among many free blocks of 1 KiB ---------------------------------------------- */

enum { QUEUE = 16 };

struct queue {
    granary *g;
    granary_stream stream;
    size_t size;
    void *ptr[QUEUE];
    size_t at;
};

/* Like a pair, but the block that is freed is not the one just allocated. */
static void do_queue(void *context, size_t count) {
    struct queue *q = context;
    for (size_t i = 0; i < count; i++) {
        void **slot = &q->ptr[q->at++ % QUEUE];
        granary_free(q->g, *slot);
        granary_alloc(q->g, q->size, q->stream, slot);
    }
}

static void holes_of(struct latency *l, size_t holes) {
    const struct measure_plan plan = {500, latency_scale(l, 201), latency_scale(l, 50000)};
    granary *g = latency_handle(l);
    struct pair p = {.g = g, .stream = device_stream(g)};
    struct queue q = {.g = g, .stream = p.stream, .size = 1024};
    void **blocks = measure_take(2 * holes, sizeof *blocks);
    for (size_t i = 0; i < 2 * holes; i++) take(g, 1024, p.stream, &blocks[i]);
    for (size_t i = 0; i < 2 * holes; i += 2) give(g, blocks[i]);

    double glibc = measure_glibc();
    p.size = 1024;
    latency_add(l, "holes_equal", "pair of 1 KiB", (double)holes, measure_run(do_pairs, &p, &plan), glibc, 0);
    p.size = 2048;
    glibc = measure_glibc();
    latency_add(l, "holes_smaller", "pair of 2 KiB", (double)holes, measure_run(do_pairs, &p, &plan), glibc,
                0);
    glibc = measure_glibc();
    do_queue(&q, QUEUE);
    latency_add(l, "holes_queue", "1 KiB, oldest of 16 freed", (double)holes,
                measure_run(do_queue, &q, &plan), glibc, 0);
    check(g);
    for (size_t i = 0; i < QUEUE; i++) give(g, q.ptr[i]);
    for (size_t i = 1; i < 2 * holes; i += 2) give(g, blocks[i]);
    granary_stream_destroy(g, p.stream);
    granary_close(g);
    free(blocks);
}

void shape_holes(struct latency *l) {
    static const size_t counts[] = {4096, 16384, 65536};
    for (size_t i = 0; i < GR_COUNT(counts); i++) holes_of(l, counts[i]);
}

/* ---- rmm: random allocations and frees as in RMM's own benchmark -------------------------------- */

enum { RMM_ALLOC_PERCENT = 73, RMM_LIVE_MIB = 16000, RMM_RUNS = 5 };
static const double RMM_ENOUGH_NS = 1.5e9; /* no further run after so long */

struct rmm_step {
    size_t size;    /* 0: the block at `index` is freed, and the last one takes its place */
    uint32_t index; /* an allocation goes to the end */
};

struct rmm {
    granary *g;
    granary_stream stream;
    struct rmm_step *steps;
    size_t count;
    void **live;
    size_t *sizes; /* while steps are drawn */
    size_t live_count;
};

/* 2 * n steps; an allocation of 1 byte to most bytes with 73 % while n were not reached and the live
 * ones stay under 16,000 MiB, else a free. */
static void draw_steps(struct rmm *r, size_t n, size_t most) {
    uint64_t seed = 5;
    size_t bytes = 0, allocs = 0, live = 0;
    r->count = 0;
    for (size_t i = 0; i < 2 * n; i++) {
        size_t size = 1 + (size_t)(measure_uniform(&seed) * (double)most);
        bool alloc = live == 0 || (measure_random(&seed) % 100 < RMM_ALLOC_PERCENT && allocs < n &&
                                   bytes + size < RMM_LIVE_MIB * MIB);
        if (alloc) {
            r->sizes[live++] = size;
            bytes += size;
            allocs++;
            r->steps[r->count++] = (struct rmm_step){.size = size};
        } else {
            size_t index = measure_random(&seed) % live;
            bytes -= r->sizes[index];
            r->sizes[index] = r->sizes[--live];
            r->steps[r->count++] = (struct rmm_step){.index = (uint32_t)index};
        }
    }
}

static void do_step(struct rmm *r, const struct rmm_step *step) {
    if (step->size != 0) {
        granary_alloc(r->g, step->size, r->stream, &r->live[r->live_count++]);
    } else {
        granary_free(r->g, r->live[step->index]);
        r->live[step->index] = r->live[--r->live_count];
    }
}

/* Steps that are all driver calls can take a minute: the time is looked at now and then. */
static bool time_up(const struct latency *l, size_t step) {
    return step % 512 == 0 && measure_now() > l->until;
}

/* Both do the steps in order, and tell whether there was time for all. */
static bool step_all(const struct latency *l, struct rmm *r) {
    for (size_t i = 0; i < r->count; i++) {
        if (time_up(l, i)) return false;
        do_step(r, &r->steps[i]);
    }
    return true;
}
static bool step_singly(const struct latency *l, struct rmm *r, double *singles) {
    for (size_t i = 0; i < r->count; i++) {
        if (time_up(l, i)) return false;
        uint64_t start = measure_tick();
        do_step(r, &r->steps[i]);
        singles[i] = measure_single(measure_tick() - start);
    }
    return true;
}

static void free_live(struct rmm *r) {
    while (r->live_count > 0) give(r->g, r->live[--r->live_count]);
}

static void rmm_of(struct latency *l, size_t n, size_t mib) {
    char words[32];
    double runs[RMM_RUNS], *singles = measure_take(2 * n, sizeof *singles);
    struct rmm r = {.g = latency_handle(l)};
    r.stream = device_stream(r.g);
    r.steps = measure_take(2 * n, sizeof *r.steps);
    r.live = measure_take(2 * n, sizeof *r.live);
    r.sizes = measure_take(2 * n, sizeof *r.sizes);
    draw_steps(&r, n, mib * MIB);
    double glibc = measure_glibc();
    size_t plain = 0;
    double began = measure_now(), misses = 0;
    bool whole = true, row = false;
    for (int run = -2; whole && run < RMM_RUNS; run++) { /* one fills the cache, one times each step */
        double start = measure_now();
        if (run == -1) {
            misses = latency_misses(r.g);
            whole = step_singly(l, &r, singles);
            misses = latency_misses(r.g) - misses;
        } else {
            whole = step_all(l, &r);
        }
        double ns = (measure_now() - start) / (double)r.count;
        free_live(&r);
        if (run == -2 || !whole) continue;
        if (run == -1) runs[0] = ns; /* stands if there is time for no other */
        row = true;
        if (run >= 0) runs[plain++] = ns;
        if (measure_now() - began > RMM_ENOUGH_NS) break;
    }
    check(r.g);
    if (row) {
        struct figures f = measure_figures(singles, r.count);
        f.median = measure_median(runs, plain > 0 ? plain : 1);
        snprintf(words, sizeof words, "up to %zu MiB", mib);
        latency_add(l, "rmm", words, (double)n, f, glibc, misses / (double)r.count);
    }
    granary_stream_destroy(r.g, r.stream);
    granary_close(r.g);
    free(r.steps);
    free(r.live);
    free(r.sizes);
    free(singles);
}

void shape_rmm(struct latency *l) {
    static const size_t counts[] = {1000, 10000, 100000}, mibs[] = {1, 4, 64, 256, 1024, 4096};
    for (size_t i = 0; i < GR_COUNT(counts); i++)
        for (size_t j = 0; j < GR_COUNT(mibs); j++)
            if (latency_wants(l, "rmm") && (!l->quick || counts[i] <= 10000)) rmm_of(l, counts[i], mibs[j]);
}
