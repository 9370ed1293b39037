/* SPDX-License-Identifier: Apache-2.0
 * Measuring: a clock fine enough for one call, figures of many samples, and glibc as the yardstick. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

static double tick_ns = 1;  /* nanoseconds a tick */
static double empty_ns = 0; /* of nothing between two ticks */

void *measure_take(size_t count, size_t size) {
    void *ptr = calloc(count, size);
    if (ptr != NULL) return ptr;
    fprintf(stderr, "bench: out of host memory\n");
    exit(EXIT_FAILURE);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double measure_median(double *samples, size_t count) {
    if (count == 0) return 0;
    qsort(samples, count, sizeof *samples, compare);
    return count % 2 == 1 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
}

struct figures measure_figures(double *samples, size_t count) {
    struct figures f = {0};
    if (count == 0) return f;
    f.median = measure_median(samples, count);
    f.p99 = samples[(count - 1) * 99 / 100];
    f.max = samples[count - 1];
    return f;
}

double measure_ns(uint64_t ticks) {
    return (double)ticks * tick_ns;
}

double measure_single(uint64_t ticks) {
    double ns = (double)ticks * tick_ns - empty_ns;
    return ns > 0 ? ns : 0;
}

void measure_calibrate(void) {
    enum { EMPTY = 4001 };
    double began = measure_now(), ended, *samples = measure_take(EMPTY, sizeof *samples);
    uint64_t first = measure_tick(), last;
    do {
        ended = measure_now();
        last = measure_tick();
    } while (ended - began < 3e7);
    tick_ns = (ended - began) / (double)(last - first);
    for (size_t i = 0; i < EMPTY; i++) {
        uint64_t start = measure_tick();
        samples[i] = measure_ns(measure_tick() - start);
    }
    empty_ns = measure_median(samples, EMPTY);
    free(samples);
}

struct figures measure_run(measure_work work, void *context, const struct measure_plan *plan) {
    size_t most = plan->batches > plan->singles ? plan->batches : plan->singles;
    double *samples = measure_take(most + 1, sizeof *samples);
    struct figures singles;
    double median;
    for (size_t i = 0; i < plan->batches / 4 + 1; i++) work(context, plan->batch);
    for (size_t i = 0; i < plan->batches; i++) {
        uint64_t start = measure_tick();
        work(context, plan->batch);
        samples[i] = measure_ns(measure_tick() - start) / (double)plan->batch;
    }
    median = measure_median(samples, plan->batches);
    for (size_t i = 0; i < plan->singles; i++) {
        uint64_t start = measure_tick();
        work(context, 1);
        samples[i] = measure_single(measure_tick() - start);
    }
    singles = measure_figures(samples, plan->singles);
    free(samples);
    return (struct figures){median, singles.p99, singles.max};
}

void measure_glibc_pair(void) {
    void *ptr = malloc(1024);
    __asm__ volatile("" : "+r"(ptr) : : "memory"); /* else the compiler drops the pair */
    free(ptr);
}

static void glibc_pairs(void *context, size_t count) {
    (void)context;
    for (size_t i = 0; i < count; i++) measure_glibc_pair();
}

double measure_glibc(void) {
    static const struct measure_plan plan = {.batch = 1000, .batches = 101, .singles = 0};
    return measure_run(glibc_pairs, NULL, &plan).median;
}
