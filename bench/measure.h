/* SPDX-License-Identifier: Apache-2.0
 * Measuring: a clock fine enough for one call, figures of many samples, and glibc as the yardstick.
 *
 * The median is taken over batches of calls, so that reading the clock does not show in it; the 99th
 * percentile and the most are of single calls, less what an empty measurement takes. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment. */
static inline double measure_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Ticks of the finest clock there is. */
static inline uint64_t measure_tick(void) {
#if defined(__x86_64__)
    unsigned core;
    return __builtin_ia32_rdtscp(&core);
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

/* Measures the clock itself; call it before anything else, while the process has one thread. */
void measure_calibrate(void);

/* Nanoseconds of a difference of ticks; of one call between two ticks, less the cost of the clock. */
double measure_ns(uint64_t ticks);
double measure_single(uint64_t ticks);

struct figures {
    double median, p99, max; /* nanoseconds */
};

/* Sorts the samples. With none all figures are 0. */
struct figures measure_figures(double *samples, size_t count);
double measure_median(double *samples, size_t count);

/* Does the work `count` times. */
typedef void (*measure_work)(void *context, size_t count);

struct measure_plan {
    size_t batch;   /* calls in a batch */
    size_t batches; /* timed; a quarter as many go before, untimed */
    size_t singles; /* calls timed one by one */
};
struct figures measure_run(measure_work work, void *context, const struct measure_plan *plan);

/* The yardstick: glibc's malloc and free of 1 KiB; and its nanoseconds. */
void measure_glibc_pair(void);
double measure_glibc(void);

/* A small generator of random numbers, the same everywhere. */
static inline uint64_t measure_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
/* From 0 up to 1. */
static inline double measure_uniform(uint64_t *state) {
    return (double)(measure_random(state) >> 11) * 0x1p-53;
}

/* Memory of the benchmark itself; ends the program when there is none. */
void *measure_take(size_t count, size_t size);

#endif
