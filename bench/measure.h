/* SPDX-License-Identifier: Apache-2.0
 * Measuring: a clock fine enough for one call, figures of many samples, and glibc as the yardstick.
 *
 * The median is taken over batches of calls, so that reading the clock does not show in it; the 99th
 * percentile and the most are of single calls, less what an empty measurement takes.
 *
 * Of a machine that others use as well some processors run at half their speed at any moment, for seconds at a time. So a
 * sample lies between two readings of the yardstick, and the median is of those samples during which the processor was as
 * fast as any ever was in this process; a thread on a slow one goes to another. They are looked for until there are enough,
 * or for a second and a half more; if by then fewer than half were found, all count. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
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

/* Measures the clock itself, and how fast the processors are; call it before anything else, while the process has one
 * thread. */
void measure_calibrate(void);

/* Nanoseconds of a difference of ticks; of one call between two ticks, less the cost of the clock. */
double measure_ns(uint64_t ticks);
double measure_single(uint64_t ticks);

/* Samples of one figure. */
struct measure_samples {
    double *ns, *yard; /* yard: the slower of the two readings */
    size_t count, room, wanted;
    double last;       /* reading */
    double slow, stay; /* since when the processor is slow; until when it is not changed again */
    double until;      /* and when to give up */
};
void measure_begin(struct measure_samples *samples, size_t wanted);
/* Is another one to be taken? */
bool measure_more(struct measure_samples *samples);
void measure_sample(struct measure_samples *samples, double ns);
/* The median. Gives the samples back. */
double measure_end(struct measure_samples *samples);

struct figures {
    double median, p99, max; /* nanoseconds */
    double calls;            /* made in all */
};

/* Sorts the samples. With none all figures are 0. */
struct figures measure_figures(double *samples, size_t count);
double measure_median(double *samples, size_t count);

/* Does the work `count` times. */
typedef void (*measure_work)(void *context, size_t count);

struct measure_plan {
    size_t batch;   /* calls in a batch */
    size_t batches; /* wanted; a quarter as many go before, untimed */
    size_t singles; /* calls timed one by one */
};
struct figures measure_run(measure_work work, void *context, const struct measure_plan *plan);

/* The same by several threads at once, each with a context of its own, for so many nanoseconds: the median of one call
 * by one thread. A sample counts if the processor of its own thread was fast; where hardly any was, they go again, a few
 * times, and then all count. */
enum { MEASURE_CREW = 16 }; /* threads at most */
double measure_crew(measure_work work, void *const context[], size_t threads, size_t batch, double length);

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
