/* SPDX-License-Identifier: Apache-2.0
 * make guard: does one operation N times on the simulated device, to be counted by callgrind.
 *
 * Usage: guard SHAPE N, or guard for the list of shapes. test/lint/budget.sh runs a shape with two
 * different N: the difference holds neither the start of the program nor the preparation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <granary/history.h>
#include <granary/sim.h>

#include "heap/heap.h"
#include "measure.h"

enum { HOLES = 4096, PENDING = 10000 };

struct guard {
    granary *g;
    granary_stream stream, other;
};

static void must(int status) {
    if (status == GRANARY_OK) return;
    fprintf(stderr, "guard: %s\n", granary_status_sentence(status));
    exit(EXIT_FAILURE);
}

static void pairs(struct guard *b, size_t n, size_t size) {
    void *ptr;
    for (size_t i = 0; i < n; i++) {
        must(granary_alloc(b->g, size, b->stream, &ptr));
        must(granary_free(b->g, ptr));
    }
}

static void pair_small(struct guard *b, size_t n) {
    pairs(b, n, 1024);
}

static void pair_large(struct guard *b, size_t n) {
    pairs(b, n, (size_t)64 << 20);
}

/* A random block of `count` is freed and another allocated, 2^9 to 2^(9 + doublings) bytes; the first
 * of these operations warm up. */
static void replace(struct guard *b, size_t n, size_t count, unsigned doublings) {
    void **live = measure_take(count, sizeof *live);
    uint64_t seed = 1;
    for (size_t i = 0; i < count; i++) must(granary_alloc(b->g, 512, b->stream, &live[i]));
    for (size_t i = 0; i < n + 5 * count; i++) {
        void **slot = &live[measure_random(&seed) % count];
        size_t size = (size_t)512 << measure_random(&seed) % doublings;
        size += (size_t)(measure_uniform(&seed) * (double)size);
        must(granary_free(b->g, *slot));
        must(granary_alloc(b->g, size, b->stream, slot));
    }
    free(live);
}

static void replace_small(struct guard *b, size_t n) {
    replace(b, n, 1000, 10);
}

/* The shape of bench/latency.c at 1,000 and at 10,000 live: both classes, some misses. */
static void replace_1000(struct guard *b, size_t n) {
    replace(b, n, 1000, 14);
}

static void replace_10000(struct guard *b, size_t n) {
    replace(b, n, 10000, 14);
}

static void make_holes(struct guard *b) {
    static void *blocks[2 * HOLES];
    for (size_t i = 0; i < 2 * HOLES; i++) must(granary_alloc(b->g, 1024, b->stream, &blocks[i]));
    for (size_t i = 0; i < 2 * HOLES; i += 2) must(granary_free(b->g, blocks[i]));
}

static void holes_equal(struct guard *b, size_t n) {
    make_holes(b);
    pairs(b, n, 1024);
}

static void holes_smaller(struct guard *b, size_t n) {
    make_holes(b);
    pairs(b, n, 2048);
}

/* A scope of another thread's kind is open: allocations ask where they belong. */
static void pair_scope(struct guard *b, size_t n) {
    granary_pool pool;
    granary_scope scope;
    must(granary_pool_create(b->g, NULL, &pool));
    must(granary_scope_begin(b->g, pool, NULL, NULL, &scope));
    pairs(b, n, 1024);
    must(granary_scope_end(b->g, scope));
    must(granary_pool_release(b->g, pool));
}

/* dense: how events come is a matter of valgrind's speed otherwise (ledger/pace.h). */
static void pairs_watched(struct guard *b, size_t n, int level, uint64_t dense) {
    struct granary_history_options history;
    granary_history_options_init(&history);
    history.level = level;
    history.stacks = GRANARY_STACKS_NONE;
    history.entries = 1000;
    must(granary_record_history(b->g, &history));
    b->g->ledger.history->pace.dense = dense;
    pairs(b, n, 1024);
}

/* Every event is recorded, without stacks, and so many share a reading of the clock as can. */
static void pair_recorded(struct guard *b, size_t n) {
    pairs_watched(b, n, GRANARY_HISTORY_ALL, UINT64_MAX / GR_PACE_SHARE);
}

/* Each reads it. */
static void pair_apart(struct guard *b, size_t n) {
    pairs_watched(b, n, GRANARY_HISTORY_ALL, 0);
}

/* No event is recorded, but blocks are to know who asked. */
static void pair_labelled(struct guard *b, size_t n) {
    pairs_watched(b, n, GRANARY_HISTORY_STATE, 0);
}

/* Used on a second stream, whose work is complete by the time of the next request. */
static void record_done(struct guard *b, size_t n) {
    void *ptr;
    for (size_t i = 0; i < n; i++) {
        must(granary_alloc(b->g, 1024, b->stream, &ptr));
        must(granary_record_stream(b->g, ptr, b->other));
        must(granary_free(b->g, ptr));
    }
}

/* As pair_small, while 10,000 blocks of another stream wait for a third one that is stuck. */
static void pair_pending(struct guard *b, size_t n) {
    granary_stream stuck;
    void *ptr;
    must(granary_stream_create(b->g, &stuck));
    granary_sim_hold(stuck);
    for (size_t i = 0; i < PENDING; i++) {
        must(granary_alloc(b->g, 1024, b->other, &ptr));
        if (granary_sim_use(stuck, ptr, 1024, 1, i + 1, GRANARY_SIM_SITE) != 0) exit(EXIT_FAILURE);
        must(granary_record_stream(b->g, ptr, stuck));
        must(granary_free(b->g, ptr));
    }
    pairs(b, n, 1024);
    granary_sim_release(stuck);
    granary_sim_run_all();
    must(granary_stream_destroy(b->g, stuck));
}

static const struct shape {
    const char *name;
    void (*run)(struct guard *b, size_t n);
} shapes[] = {
    {"pair_small", pair_small},       {"pair_large", pair_large},       {"replace_small", replace_small},
    {"replace_1000", replace_1000},   {"replace_10000", replace_10000}, {"holes_equal", holes_equal},
    {"holes_smaller", holes_smaller}, {"pair_scope", pair_scope},       {"record_done", record_done},
    {"pair_pending", pair_pending},   {"pair_recorded", pair_recorded}, {"pair_apart", pair_apart},
    {"pair_labelled", pair_labelled},
};

int main(int argc, char **argv) {
    struct granary_sim_config config;
    struct granary_options options;
    struct guard b;
    if (argc != 3) {
        for (size_t i = 0; i < GR_COUNT(shapes); i++) puts(shapes[i].name);
        return argc == 1 ? EXIT_SUCCESS : 2;
    }
    granary_sim_config_init(&config);
    config.memory_bytes = (size_t)16 << 30; /* valgrind has few addresses */
    config.oracle = 0;
    must(granary_sim_open(&config));
    granary_options_init(&options);
    options.driver = GRANARY_DRIVER_SIM;
    must(granary_open(0, &options, &b.g));
    must(granary_stream_create(b.g, &b.stream));
    must(granary_stream_create(b.g, &b.other));
    for (size_t i = 0; i < GR_COUNT(shapes); i++) {
        if (strcmp(argv[1], shapes[i].name) != 0) continue;
        shapes[i].run(&b, (size_t)strtoull(argv[2], NULL, 10));
        granary_close(b.g);
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "guard: there is no shape %s\n", argv[1]);
    return 2;
}
