/* SPDX-License-Identifier: Apache-2.0
 * Measuring: a clock fine enough for one call, figures of many samples, and glibc as the yardstick. */
#include "measure.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static double tick_ns = 1;  /* nanoseconds a tick */
static double empty_ns = 0; /* of nothing between two ticks */
/* The least reading of the yardstick; 0: none yet. Of several at once one may be lost. */
static _Atomic double best_yard;

/* ptr, which the C library gave, if it did. */
static void *taken(void *ptr) {
    if (ptr != NULL) return ptr;
    fprintf(stderr, "bench: out of host memory\n");
    exit(EXIT_FAILURE);
}

void *measure_take(size_t count, size_t size) {
    return taken(calloc(count, size));
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

/* ---- the yardstick ------------------------------------------------------------------------------- */

static const double AS_FAST = 1.25;                           /* times the best */
static const double SLOW = 3e6, STAY = 5e7, PATIENCE = 1.5e9; /* nanoseconds */

static double read_yard(void) {
    enum { PAIRS = 500 };
    uint64_t start = measure_tick();
    for (int i = 0; i < PAIRS; i++) measure_glibc_pair();
    double yard = measure_ns(measure_tick() - start) / PAIRS;
    if (best_yard == 0 || yard < best_yard) best_yard = yard;
    return yard;
}

/* The least of a few readings, on this processor. */
static double read_here(const cpu_set_t *here) {
    enum { READINGS = 8 };
    double least = 0;
    sched_setaffinity(0, sizeof *here, here);
    for (int i = 0; i < READINGS; i++) {
        double yard = read_yard();
        if (i == 0 || yard < least) least = yard;
    }
    return least;
}

/* The thread goes to another processor that is fast just now, if one is; it may stay there or not, as the kernel
 * likes. visit: all are tried, so that it is known how fast one can be. */
static bool change_processor(bool visit) {
    cpu_set_t all, one;
    int fast = -1;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return false;
    const int from = sched_getcpu() + 1;
    for (int i = 0; i < CPU_SETSIZE && (visit || fast < 0); i++) {
        const int processor = (from + i) % CPU_SETSIZE;
        if (!CPU_ISSET(processor, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(processor, &one);
        if (read_here(&one) <= best_yard * AS_FAST) fast = processor;
    }
    if (fast >= 0) {
        CPU_ZERO(&one);
        CPU_SET(fast, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    sched_setaffinity(0, sizeof all, &all);
    return fast >= 0;
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
    change_processor(true);
}

/* ---- samples at the machine's full speed --------------------------------------------------------- */

static void swap(double *a, double *b) {
    double c = *a;
    *a = *b;
    *b = c;
}

/* Moves the samples taken at full speed to the front, and says how many they are. */
static size_t at_full_speed(struct measure_samples *s) {
    size_t good = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->yard[i] > best_yard * AS_FAST) continue;
        swap(&s->ns[i], &s->ns[good]);
        swap(&s->yard[i], &s->yard[good++]);
    }
    return good;
}

void measure_begin(struct measure_samples *s, size_t wanted) {
    *s = (struct measure_samples){.wanted = wanted};
    s->last = read_yard();
}

bool measure_more(struct measure_samples *s) {
    const double now = measure_now();
    if (s->last <= best_yard * AS_FAST)
        s->slow = 0;
    else if (s->slow == 0)
        s->slow = now;
    /* Not for a hiccup: caches are cold there. */
    if (s->slow > 0 && now - s->slow > SLOW && now > s->stay) {
        s->stay = change_processor(false) ? 0 : now + STAY;
        s->slow = 0;
        s->last = read_yard();
    }
    if (s->count < s->wanted) return true;
    if (s->until == 0) s->until = measure_now() + PATIENCE;
    return s->count % s->wanted != 0 || (at_full_speed(s) < s->wanted && measure_now() < s->until);
}

static void put(struct measure_samples *s, double ns, double yard) {
    if (s->count == s->room) {
        s->room = 2 * s->room + 64;
        s->ns = taken(realloc(s->ns, s->room * sizeof *s->ns));
        s->yard = taken(realloc(s->yard, s->room * sizeof *s->yard));
    }
    s->ns[s->count] = ns;
    s->yard[s->count++] = yard;
}

void measure_sample(struct measure_samples *s, double ns) {
    const double before = s->last;
    s->last = read_yard();
    put(s, ns, before > s->last ? before : s->last);
}

double measure_end(struct measure_samples *s) {
    size_t good = at_full_speed(s);
    double median = measure_median(s->ns, good >= (s->wanted + 1) / 2 ? good : s->count);
    free(s->ns);
    free(s->yard);
    return median;
}

struct hand {
    pthread_t thread;
    pthread_barrier_t *barrier;
    atomic_bool *stop;
    measure_work work;
    void *context;
    size_t batch;
    struct measure_samples samples;
};

static void *lend(void *argument) {
    struct hand *h = argument;
    pthread_barrier_wait(h->barrier);
    h->work(h->context, h->batch);
    measure_begin(&h->samples, 0);
    while (!atomic_load_explicit(h->stop, memory_order_relaxed)) {
        uint64_t start = measure_tick();
        h->work(h->context, h->batch);
        measure_sample(&h->samples, measure_ns(measure_tick() - start) / (double)h->batch);
    }
    return NULL;
}

/* Once; adds their samples to all. */
static void send_crew(struct hand *hands, size_t threads, double length, struct measure_samples *all) {
    const struct timespec rest = {(time_t)(length / 1e9), (long)length % 1000000000};
    pthread_barrier_t barrier;
    atomic_bool stop = false;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (size_t i = 0; i < threads; i++) {
        hands[i].barrier = &barrier;
        hands[i].stop = &stop;
        if (pthread_create(&hands[i].thread, NULL, lend, &hands[i]) != 0) exit(EXIT_FAILURE);
    }
    nanosleep(&rest, NULL);
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (size_t i = 0; i < threads; i++) {
        struct measure_samples *s = &hands[i].samples;
        pthread_join(hands[i].thread, NULL);
        for (size_t n = 0; n < s->count; n++) put(all, s->ns[n], s->yard[n]);
        free(s->ns);
        free(s->yard);
    }
    pthread_barrier_destroy(&barrier);
}

double measure_crew(measure_work work, void *const context[], size_t threads, size_t batch, double length) {
    enum { WANTED = 50, ATTEMPTS = 5 };
    struct hand hands[MEASURE_CREW];
    struct measure_samples all = {.wanted = WANTED};
    for (int attempt = 0; attempt < ATTEMPTS && at_full_speed(&all) < WANTED; attempt++) {
        for (size_t i = 0; i < threads; i++)
            hands[i] = (struct hand){.work = work, .context = context[i], .batch = batch};
        send_crew(hands, threads, length, &all);
    }
    return measure_end(&all);
}

struct figures measure_run(measure_work work, void *context, const struct measure_plan *plan) {
    double *samples = measure_take(plan->singles + 1, sizeof *samples), median;
    struct measure_samples batches;
    struct figures singles;
    for (size_t i = 0; i < plan->batches / 4 + 1; i++) work(context, plan->batch);
    for (measure_begin(&batches, plan->batches); measure_more(&batches);) {
        uint64_t start = measure_tick();
        work(context, plan->batch);
        measure_sample(&batches, measure_ns(measure_tick() - start) / (double)plan->batch);
    }
    const double calls = (double)((batches.count + plan->batches / 4 + 1) * plan->batch + plan->singles);
    median = measure_end(&batches);
    for (size_t i = 0; i < plan->singles; i++) {
        uint64_t start = measure_tick();
        work(context, 1);
        samples[i] = measure_single(measure_tick() - start);
    }
    singles = measure_figures(samples, plan->singles);
    free(samples);
    return (struct figures){median, singles.p99, singles.max, calls};
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
