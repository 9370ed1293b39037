/* SPDX-License-Identifier: Apache-2.0
 * Recorded traffic, replayed cold (on a fresh handle) and warm (again, after everything was freed, once it has come to
 * rest: a pass has no misses, or there were WARMING). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "latency.h"
#include "tool/print.h"
#include "tool/trace.h"

enum { MOST_TRACES = 64, COLD_RUNS = 5, WARM_RUNS = 7, WARMING = 32, ROOM = 32 };

struct replay {
    const struct trace *trace;
    granary *g;
    granary_stream streams[ROOM];
    size_t stream_count;
    void **blocks;
};

static void open_replay(struct latency *l, struct replay *r, const struct trace *trace) {
    *r = (struct replay){.trace = trace, .g = latency_handle(l)};
    r->stream_count = trace->streams < ROOM ? trace->streams : ROOM;
    for (size_t i = 0; i < r->stream_count; i++) r->streams[i] = device_stream(r->g);
    r->blocks = measure_take(trace->blocks + 1, sizeof *r->blocks);
}

static void close_replay(struct replay *r) {
    for (size_t i = 0; i < r->stream_count; i++) granary_stream_destroy(r->g, r->streams[i]);
    granary_close(r->g);
    free(r->blocks);
}

/* The driver clears what was just given back before it gives it out again: a cold pass is not to wait for that. */
static void rest(const struct latency *l) {
    const struct timespec tenth = {.tv_nsec = 100000000};
    if (!l->device.simulated) nanosleep(&tenth, NULL);
}

/* Nanoseconds a call of alloc or free, over the whole trace. With samples each call is timed; *count
 * is how many there are. */
static double run(struct replay *r, double *samples, size_t *count) {
    const struct trace *trace = r->trace;
    int status = GRANARY_OK;
    size_t calls = 0;
    double began = measure_now();
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_op *op = &trace->ops[i];
        uint64_t start = samples != NULL ? measure_tick() : 0;
        if (op->kind == TRACE_ALLOC) {
            status |=
                granary_alloc(r->g, (size_t)op->size, r->streams[op->stream % ROOM], &r->blocks[op->block]);
        } else if (op->kind == TRACE_FREE) {
            status |= granary_free(r->g, r->blocks[op->block]);
            r->blocks[op->block] = NULL;
        } else {
            continue; /* the block stays in use until its f */
        }
        if (samples != NULL) samples[calls] = measure_single(measure_tick() - start);
        calls++;
    }
    double ended = measure_now();
    if (status != GRANARY_OK) device_must(r->g, GRANARY_OUT_OF_MEMORY, trace->path);
    for (size_t i = 0; i < trace->blocks; i++) {
        granary_free(r->g, r->blocks[i]);
        r->blocks[i] = NULL;
    }
    if (count != NULL) *count = calls;
    return (ended - began) / (double)calls;
}

/* Replays until a pass has no misses. */
static void warm_up(struct replay *r, size_t passes) {
    double before = -1, after = 0;
    for (size_t i = 0; i < passes && after != before; i++) {
        before = after;
        run(r, NULL, NULL);
        after = latency_misses(r->g);
    }
}

static double held_ratio(granary *g) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    device_must(g, granary_get_stats(g, &stats), "statistics");
    return (double)stats.reserved_bytes.all.peak / (double)stats.active_bytes.all.peak;
}

static void measure(struct latency *l, const struct trace *trace, const char *name) {
    double *samples = measure_take(trace->count, sizeof *samples);
    struct measure_samples runs;
    double glibc = measure_glibc(), misses = 0;
    struct figures f;
    struct replay r;
    size_t calls = 0;

    for (rest(l), measure_begin(&runs, l->quick ? 1 : COLD_RUNS); measure_more(&runs);) {
        open_replay(l, &r, trace);
        measure_sample(&runs, run(&r, NULL, NULL));
        close_replay(&r);
        rest(l);
    }
    open_replay(l, &r, trace);
    run(&r, samples, &calls);
    misses = latency_misses(r.g);
    close_replay(&r);
    f = measure_figures(samples, calls);
    f.median = measure_end(&runs);
    latency_add(l, "trace_cold", name, (double)trace->count, f, glibc, misses / (double)calls);

    glibc = measure_glibc();
    open_replay(l, &r, trace);
    warm_up(&r, l->quick ? 1 : WARMING);
    misses = latency_misses(r.g);
    for (measure_begin(&runs, l->quick ? 1 : WARM_RUNS); measure_more(&runs);)
        measure_sample(&runs, run(&r, NULL, NULL));
    misses = (latency_misses(r.g) - misses) / (double)(runs.count * calls);
    run(&r, samples, &calls);
    const double ratio = held_ratio(r.g);
    close_replay(&r);
    f = measure_figures(samples, calls);
    f.median = measure_end(&runs);
    latency_add(l, "trace_warm", name, (double)trace->count, f, glibc, misses)->ratio = ratio;
    free(samples);
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void shape_traces(struct latency *l) {
    char *paths[MOST_TRACES], name[64];
    struct problem problem;
    struct dirent *entry;
    size_t count = 0;
    DIR *dir = opendir(l->traces);
    while (dir != NULL && (entry = readdir(dir)) != NULL && count < MOST_TRACES) {
        if (strstr(entry->d_name, ".trace") == NULL) continue;
        if (asprintf(&paths[count], "%s/%s", l->traces, entry->d_name) >= 0) count++;
    }
    if (dir != NULL) closedir(dir);
    if (count == 0) fprintf(stderr, "bench: %s: no trace there\n", l->traces);
    qsort(paths, count, sizeof paths[0], compare);
    for (size_t i = 0; i < count; i++) {
        struct trace trace;
        if (trace_read(paths[i], &trace, &problem) != 0) {
            fprintf(stderr, "bench: %s\n", problem.text);
            exit(EXIT_FAILURE);
        }
        measure(l, &trace, short_name(paths[i], name, sizeof name));
        trace_free(&trace);
        free(paths[i]);
    }
}
