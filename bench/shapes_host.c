/* SPDX-License-Identifier: Apache-2.0
 * What a handle costs the host: time to open it, and memory for blocks and for what is reserved. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "latency.h"

enum { BLOCKS = 100000, GIBS = 64, OPENINGS = 21 };

/* Taken from the C library, whether touched or not. */
static double taken(void) {
    struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

/* Resident: what is really touched. */
static double touched(void) {
    unsigned long size, resident = 0;
    FILE *from = fopen("/proc/self/statm", "r");
    if (from == NULL) return 0;
    if (fscanf(from, "%lu %lu", &size, &resident) != 2) resident = 0;
    fclose(from);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

struct use {
    double bytes, rss;
};

/* Host bytes for each of `count` blocks; size 0: sizes of the shape `replace`. */
static struct use blocks_of(struct latency *l, size_t count, size_t size) {
    granary *g = latency_handle(l);
    granary_stream stream = device_stream(g);
    void **blocks = measure_take(count, sizeof *blocks), *first;
    uint64_t seed = 3;
    for (size_t i = 0; i < count; i++) blocks[i] = &seed; /* touched before it counts */
    device_must(g, granary_alloc(g, 512, stream, &first), "granary_alloc");
    double bytes = taken(), rss = touched();
    for (size_t i = 0; i < count; i++) {
        size_t wanted = size != 0 ? size : (size_t)exp2(9 + 14 * measure_uniform(&seed));
        device_must(g, granary_alloc(g, wanted, stream, &blocks[i]), "granary_alloc");
    }
    struct use use = {(taken() - bytes) / (double)count, (touched() - rss) / (double)count};
    granary_stream_destroy(g, stream);
    granary_close(g);
    free(blocks);
    return use;
}

void shape_host(struct latency *l) {
    double before = taken();
    granary *g = latency_handle(l);
    l->host.handle_bytes = taken() - before;
    granary_close(g);
    struct use mixed = blocks_of(l, BLOCKS, 0), small = blocks_of(l, BLOCKS, 512);
    struct use gib = blocks_of(l, GIBS, (size_t)1 << 30);
    l->host.block_bytes = mixed.bytes;
    l->host.block_rss = mixed.rss;
    l->host.small_block_bytes = small.bytes;
    l->host.small_block_rss = small.rss;
    l->host.gib_bytes = gib.bytes;
    l->host.gib_rss = gib.rss;
}

/* The primary context is there already, so what is left is the handle's own and the driver's answers
 * to its questions. */
void shape_open(struct latency *l) {
    double opened[OPENINGS], closed[OPENINGS], glibc = measure_glibc();
    for (int i = 0; i < OPENINGS; i++) {
        double start = measure_now();
        granary *g = latency_handle(l);
        opened[i] = measure_now() - start;
        start = measure_now();
        granary_close(g);
        closed[i] = measure_now() - start;
    }
    latency_add(l, "open", "context retained before", 0, measure_figures(opened, OPENINGS), glibc, 0);
    latency_add(l, "close", "", 0, measure_figures(closed, OPENINGS), glibc, 0);
}
