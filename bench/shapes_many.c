/* SPDX-License-Identifier: Apache-2.0
 * Shapes of traffic on several threads: streams of their own, one stream for all, and blocks that one
 * thread allocates and another frees. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "latency.h"

enum { RUNS = 7, MOST_THREADS = MEASURE_CREW, RING = 256, KINDS = 16 };

/* What a thread does: `count` operations, each timed when singles is not NULL. */
struct worker;
typedef void (*job)(struct worker *w);

struct ring { /* blocks on their way from one thread to another */
    _Alignas(64) atomic_size_t head;
    _Alignas(64) atomic_size_t tail;
    _Alignas(64) void *slot[RING];
};

struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    job job;
    granary *g;
    granary_stream stream;
    struct ring *ring;
    size_t count;
    double *singles;
    double began, ended;
};

static void *start(void *argument) {
    struct worker *w = argument;
    pthread_barrier_wait(w->barrier);
    w->began = measure_now();
    w->job(w);
    w->ended = measure_now();
    return NULL;
}

/* Nanoseconds from the first start to the last end. */
static double run(struct worker *workers, size_t count) {
    pthread_barrier_t barrier;
    double began = 0, ended = 0;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        workers[i].barrier = &barrier;
        if (pthread_create(&workers[i].thread, NULL, start, &workers[i]) != 0) exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        if (i == 0 || workers[i].began < began) began = workers[i].began;
        if (workers[i].ended > ended) ended = workers[i].ended;
    }
    pthread_barrier_destroy(&barrier);
    return ended - began;
}

/* The yardstick under the same conditions: glibc's malloc and free of 1 KiB. */
static void do_malloc(struct worker *w) {
    for (size_t i = 0; i < w->count; i++) measure_glibc_pair();
}

static double walls_of(struct worker *workers, size_t threads, size_t each) {
    double walls[RUNS];
    for (size_t i = 0; i < threads; i++) workers[i].count = each / 4;
    run(workers, threads);
    for (size_t i = 0; i < threads; i++) workers[i].count = each;
    for (int r = 0; r < RUNS; r++) walls[r] = run(workers, threads) / (double)each;
    return measure_median(walls, RUNS);
}

static double glibc_of(size_t threads, size_t each) {
    struct worker workers[MOST_THREADS] = {{0}};
    for (size_t i = 0; i < threads; i++) workers[i].job = do_malloc;
    return walls_of(workers, threads, each);
}

static void do_job(void *context, size_t count) {
    struct worker *w = context;
    w->count = count;
    w->job(w);
}

/* What an operation takes its thread, all of them at it. */
static double crew_of(const struct latency *l, struct worker *workers, size_t threads) {
    void *contexts[MOST_THREADS];
    for (size_t i = 0; i < threads; i++) contexts[i] = &workers[i];
    return measure_crew(do_job, contexts, threads, 1000, l->quick ? 5e7 : 1e9);
}

/* Several timed runs, then one in which each operation is timed. Wall time by operations of one thread; alone: the
 * threads do not wait for each other, and the median is of what an operation takes one of them. */
static void measure(struct latency *l, const char *shape, const char *detail, size_t param,
                    struct worker *workers, size_t threads, size_t each, bool alone) {
    double glibc = measure_glibc(), glibc_many = glibc_of(threads, each);
    size_t singles = latency_scale(l, 20000);
    double *samples = measure_take(threads * singles, sizeof *samples);
    double wall = walls_of(workers, threads, each), median = alone ? crew_of(l, workers, threads) : wall;
    for (size_t i = 0; i < threads; i++) {
        workers[i].count = singles;
        workers[i].singles = samples + i * singles;
    }
    run(workers, threads);
    struct figures f = measure_figures(samples, threads * singles);
    f.median = median;
    struct latency_row *row = latency_add(l, shape, detail, (double)param, f, glibc, 0);
    row->wall = wall;
    row->glibc_wall = glibc_many;
    free(samples);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static size_t size_at(size_t i) {
    return 4096 * (1 + i % KINDS);
}

static void do_pairs(struct worker *w) {
    void *ptr;
    for (size_t i = 0; i < w->count; i++) {
        uint64_t begun = w->singles != NULL ? measure_tick() : 0;
        granary_alloc(w->g, size_at(i), w->stream, &ptr);
        granary_free(w->g, ptr);
        if (w->singles != NULL) w->singles[i] = measure_single(measure_tick() - begun);
    }
}

static void pairs_on(struct latency *l, size_t threads, bool shared) {
    struct worker workers[MOST_THREADS] = {{0}};
    granary *g = latency_handle(l);
    granary_stream streams[MOST_THREADS] = {0};
    size_t count = shared ? 1 : threads;
    for (size_t i = 0; i < count; i++) streams[i] = device_stream(g);
    for (size_t i = 0; i < threads; i++)
        workers[i] = (struct worker){.job = do_pairs, .g = g, .stream = streams[shared ? 0 : i]};
    measure(l, shared ? "threads_shared" : "threads_own", shared ? "one stream" : "a stream each", threads,
            workers, threads, latency_scale(l, 100000), !shared);
    for (size_t i = 0; i < count; i++) granary_stream_destroy(g, streams[i]);
    granary_close(g);
}

void shape_threads(struct latency *l) {
    static const size_t counts[] = {1, 2, 4, 8, 16};
    for (int shared = 0; shared < 2; shared++)
        for (size_t i = 0; i < GR_COUNT(counts); i++) pairs_on(l, counts[i], shared);
}

/* ---- handoff: thread A allocates, thread B frees ------------------------------------------------ */

static void rest(unsigned *spins) {
    if (++*spins % 64 == 0) sched_yield();
}

static void produce(struct worker *w) {
    for (size_t i = 0; i < w->count; i++) {
        void *ptr;
        unsigned spins = 0;
        uint64_t begun = w->singles != NULL ? measure_tick() : 0;
        granary_alloc(w->g, size_at(i), w->stream, &ptr);
        if (w->singles != NULL) w->singles[i] = measure_single(measure_tick() - begun);
        size_t tail = atomic_load_explicit(&w->ring->tail, memory_order_relaxed);
        while (tail - atomic_load_explicit(&w->ring->head, memory_order_acquire) == RING) rest(&spins);
        w->ring->slot[tail % RING] = ptr;
        atomic_store_explicit(&w->ring->tail, tail + 1, memory_order_release);
    }
}

static void consume(struct worker *w) {
    for (size_t i = 0; i < w->count; i++) {
        unsigned spins = 0;
        size_t head = atomic_load_explicit(&w->ring->head, memory_order_relaxed);
        while (atomic_load_explicit(&w->ring->tail, memory_order_acquire) == head) rest(&spins);
        void *ptr = w->ring->slot[head % RING];
        atomic_store_explicit(&w->ring->head, head + 1, memory_order_release);
        uint64_t begun = w->singles != NULL ? measure_tick() : 0;
        granary_free(w->g, ptr);
        if (w->singles != NULL) w->singles[i] = measure_single(measure_tick() - begun);
    }
}

static void handoff_of(struct latency *l, size_t couples) {
    struct worker workers[MOST_THREADS] = {{0}};
    struct ring *rings = aligned_alloc(64, couples * sizeof *rings);
    granary *g = latency_handle(l);
    if (rings == NULL) exit(EXIT_FAILURE);
    for (size_t i = 0; i < couples; i++) {
        granary_stream stream = device_stream(g);
        atomic_init(&rings[i].head, 0);
        atomic_init(&rings[i].tail, 0);
        workers[2 * i] = (struct worker){.job = produce, .g = g, .stream = stream, .ring = &rings[i]};
        workers[2 * i + 1] = (struct worker){.job = consume, .g = g, .stream = stream, .ring = &rings[i]};
    }
    measure(l, "handoff", "freed by another thread", 2 * couples, workers, 2 * couples,
            latency_scale(l, 100000), false);
    for (size_t i = 0; i < couples; i++) granary_stream_destroy(g, workers[2 * i].stream);
    granary_close(g);
    free(rings);
}

void shape_handoff(struct latency *l) {
    handoff_of(l, 1);
    handoff_of(l, 4);
}
