/* SPDX-License-Identifier: Apache-2.0
 * Threads with streams of their own and one they share, frees by others than the allocating thread,
 * misses, trims and reads at random: nothing is lost, nothing overlaps, totals are exact. The thread
 * sanitizer watches. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/fixture.h"
#include "support/model.h"
#include "support/rng.h"

enum { THREADS = 4, LIVE = 24, MAIL = 64 };

static granary *g;
static granary_stream shared;
static _Atomic(struct model_block *) mail[MAIL]; /* blocks that any thread may free */

struct worker {
    pthread_t thread;
    struct rng rng;
    granary_stream own;
    int steps;
    struct model_block *live[LIVE];
    size_t count;
    int64_t allocated, requested, blocks, failures; /* in all */
    const char *complaint;
};

static const char *free_block(struct model_block *block) {
    bool intact = model_intact(block);
    int status = granary_free(g, (void *)(uintptr_t)block->addr);
    free(block);
    return !intact ? "a block has lost its contents" : status != GRANARY_OK ? "a free was refused" : NULL;
}

static const char *alloc_block(struct worker *w) {
    void *ptr;
    size_t size = rng_once_in(&w->rng, 8) ? rng_between(&w->rng, GR_MIB, 12 * GR_MIB)
                                          : rng_between(&w->rng, 1, (size_t)1 << rng_between(&w->rng, 6, 19));
    granary_stream stream = rng_once_in(&w->rng, 3) ? shared : w->own;
    int status = granary_alloc(g, size, stream, &ptr);
    if (status == GRANARY_OUT_OF_MEMORY) {
        w->failures++;
        return NULL;
    }
    if (status != GRANARY_OK) return "an allocation was refused";
    struct model_block *block = calloc(1, sizeof *block);
    *block = (struct model_block){
        .addr = (gr_addr)(uintptr_t)ptr, .requested = size, .pattern = rng_next(&w->rng)};
    if (granary_size_of(g, ptr, &block->size) != GRANARY_OK) return "a live block has no size";
    w->allocated += (int64_t)block->size;
    w->requested += (int64_t)size;
    w->blocks++;
    model_fill(block);
    w->live[w->count++] = block;
    return NULL;
}

static const char *read_something(struct worker *w) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    struct granary_fault fault = {.struct_size = sizeof fault};
    switch (rng_below(&w->rng, 5)) {
    case 0: return granary_verify(g);
    case 1:
        return granary_trim(g, GR_MIB * rng_below(&w->rng, 60), NULL) == GRANARY_OK ? NULL : "a trim failed";
    case 2: return granary_last_fault(g, &fault) == GRANARY_OK ? NULL : "no fault to be had";
    case 3: return granary_free(g, &stats) == GRANARY_UNKNOWN_POINTER ? NULL : "a stray pointer was taken";
    default: break;
    }
    if (granary_get_stats(g, &stats) != GRANARY_OK) return "no figures to be had";
    bool sane = stats.allocated_bytes.all.current >= 0 &&
                stats.allocated_bytes.all.peak >= stats.allocated_bytes.all.current &&
                stats.allocated_bytes.all.current ==
                    stats.allocated_bytes.small.current + stats.allocated_bytes.large.current &&
                stats.active_bytes.all.current >= stats.allocated_bytes.all.current &&
                stats.reserved_bytes.all.current >= stats.active_bytes.all.current &&
                stats.requested_bytes.all.current <= stats.allocated_bytes.all.current;
    return sane ? NULL : "figures do not belong to one moment";
}

static const char *step(struct worker *w) {
    uint64_t dice = rng_below(&w->rng, 100);
    if (dice < 2) return read_something(w);
    if (w->count < LIVE && (w->count == 0 || dice < 45)) return alloc_block(w);
    struct model_block *block = w->live[rng_below(&w->rng, w->count)], *others;
    for (size_t i = 0; i < w->count; i++)
        if (w->live[i] == block) {
            w->live[i] = w->live[--w->count];
            break;
        }
    if (dice < 75) return free_block(block);
    others =
        atomic_exchange(&mail[rng_below(&w->rng, MAIL)], block); /* leave it there, take what lay there */
    return others ? free_block(others) : NULL;
}

static void *work(void *argument) {
    struct worker *w = argument;
    for (int n = 0; n < w->steps && !w->complaint; n++) w->complaint = step(w);
    while (w->count > 0 && !w->complaint) w->complaint = free_block(w->live[--w->count]);
    return NULL;
}

static void configure(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 160 * GR_MIB;
    sim->oracle = 0; /* no work is submitted */
    (void)options;
}
static void configure_classic(struct granary_sim_config *sim, struct granary_options *options) {
    configure(sim, options);
    options->expandable_segments = 0;
}
/* So tight that threads take idle memory from each other all the time. */
static void configure_tight(struct granary_sim_config *sim, struct granary_options *options) {
    configure(sim, options);
    sim->memory_bytes = 64 * GR_MIB;
}

static void run(fixture_change *change, uint64_t seed, int steps) {
    static struct worker workers[THREADS];
    int64_t allocated = 0, requested = 0, blocks = 0;
    g = fixture_open(change);
    shared = fixture_stream(g);
    for (int i = 0; i < THREADS; i++) {
        workers[i] =
            (struct worker){.rng = {seed * 1000 + (uint64_t)i}, .own = fixture_stream(g), .steps = steps};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        allocated += workers[i].allocated;
        requested += workers[i].requested;
        blocks += workers[i].blocks;
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_msg(!workers[i].complaint, "thread %d: %s", i, workers[i].complaint);
    ck_assert_ptr_null(granary_verify(g));
    for (int i = 0; i < MAIL; i++) {
        struct model_block *block = atomic_exchange(&mail[i], NULL);
        if (block) ck_assert_ptr_null(free_block(block));
    }
    struct granary_stats s = fixture_stats(g);
    ck_assert_int_eq(s.allocated_bytes.all.current, 0);
    ck_assert_int_eq(s.allocated_bytes.all.total_up, allocated);
    ck_assert_int_eq(s.allocated_bytes.all.total_down, allocated);
    ck_assert_int_eq(s.requested_bytes.all.total_up, requested);
    ck_assert_int_eq(s.requested_bytes.all.current, 0);
    ck_assert_int_eq(s.allocations.all.total_up, blocks);
    ck_assert_int_eq(s.active_blocks.all.current, 0);
    ck_assert_int_gt(s.misses, 0);
    ck_assert_ptr_null(granary_verify(g));
    (void)fixture_trim(g, 0);
    ck_assert_int_eq(fixture_stats(g).reserved_bytes.all.current, 0);
    for (int i = 0; i < THREADS; i++) ck_assert_int_eq(granary_stream_destroy(g, workers[i].own), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, shared), GRANARY_OK);
    fixture_close(g);
}

START_TEST(threads_on_ranges_lose_nothing) {
    run(configure, (uint64_t)_i, 4000);
}
END_TEST

START_TEST(threads_on_classic_segments_lose_nothing) {
    run(configure_classic, (uint64_t)_i, 4000);
}
END_TEST

START_TEST(threads_on_a_card_that_is_too_small_lose_nothing) {
    run(configure_tight, (uint64_t)_i, 3000);
}
END_TEST

/* ---- one pool, all threads -------------------------------------------------------------------- */

/* All threads meet in one pool and free what another one allocated: slot i goes to thread i + 1. */
static _Atomic(void *) slots[THREADS];

static void *pass_on(void *argument) {
    size_t me = (size_t)(uintptr_t)argument;
    for (int n = 0; n < 3000; n++) {
        void *ptr, *old;
        if (granary_alloc(g, 512 + 512 * (unsigned)(n % 5), shared, &ptr) != GRANARY_OK) return "alloc";
        *(volatile uint64_t *)ptr = (uintptr_t)ptr;
        old = atomic_exchange(&slots[(me + 1) % THREADS], ptr);
        if (old && (*(volatile uint64_t *)old != (uintptr_t)old || granary_free(g, old) != GRANARY_OK))
            return "free";
    }
    return NULL;
}

START_TEST(a_block_may_be_freed_by_any_thread) {
    pthread_t threads[THREADS];
    g = fixture_open(configure);
    shared = NULL;
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, pass_on, (void *)(uintptr_t)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *complaint = NULL;
        pthread_join(threads[i], &complaint);
        ck_assert_msg(!complaint, "%s", (char *)complaint);
    }
    for (int i = 0; i < THREADS; i++) {
        void *ptr = atomic_exchange(&slots[i], NULL);
        if (ptr) fixture_free(g, ptr);
    }
    ck_assert_int_eq(fixture_stats(g).allocations.all.total_up, THREADS * 3000);
    ck_assert_int_eq(fixture_stats(g).allocations.all.current, 0);
    fixture_close(g);
}
END_TEST

/* Two threads free the same pointer: one succeeds, the other is told, each time. */
static void *the_pointer;
static pthread_barrier_t barrier;

static void *free_it(void *freed) {
    for (int n = 0; n < 500; n++) {
        pthread_barrier_wait(&barrier);
        *(int *)freed += granary_free(g, the_pointer) == GRANARY_OK;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

START_TEST(of_two_frees_at_the_same_time_exactly_one_succeeds) {
    pthread_t threads[2];
    int freed[2] = {0};
    g = fixture_open(configure);
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, free_it, &freed[i]), 0);
    for (int n = 0; n < 500; n++) {
        the_pointer = fixture_alloc(g, n % 2 ? 4096 : 3 * GR_MIB, NULL);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    ck_assert_int_eq(freed[0] + freed[1], 500);
    ck_assert_int_eq(fixture_stats(g).allocations.all.current, 0);
    fixture_close(g);
}
END_TEST

/* A block that others used is for a moment neither waiting nor free: on its way back to its pool. */
static atomic_int rounds; /* still to be done */

static void *use_elsewhere(void *argument) {
    const granary_stream *streams = argument;
    for (int n = 1; n > 0; n = atomic_fetch_sub(&rounds, 1)) {
        void *ptr[4];
        for (size_t i = 0; i < 4; i++)
            if (granary_alloc(g, (i + 1) * 700000, streams[0], &ptr[i]) != GRANARY_OK ||
                granary_record_stream(g, ptr[i], streams[1]) != GRANARY_OK)
                return "alloc";
        for (size_t i = 0; i < 4; i++)
            if (granary_free(g, ptr[i]) != GRANARY_OK) return "free";
        if (n % 8 == 0 && granary_trim(g, 0, NULL) != GRANARY_OK) return "trim";
    }
    return NULL;
}

START_TEST(the_check_finds_nothing_while_blocks_come_back_from_other_streams) {
    g = fixture_open(configure);
    pthread_t threads[2];
    granary_stream one = fixture_stream(g), other = fixture_stream(g);
    granary_stream pair[2][2] = {{one, other}, {other, one}};
    const char *broken = NULL;
    atomic_store(&rounds, 2000);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_elsewhere, pair[i]), 0);
    while (atomic_load(&rounds) > 0 && !broken) broken = granary_verify(g);
    for (int i = 0; i < 2; i++) {
        void *complaint = NULL;
        pthread_join(threads[i], &complaint);
        ck_assert_msg(!complaint, "%s", (char *)complaint);
    }
    ck_assert_msg(!broken, "%s", broken);
    ck_assert_int_eq(granary_stream_destroy(g, one), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, other), GRANARY_OK);
    fixture_close(g);
}
END_TEST

Suite *suite_threads(void) {
    Suite *suite = suite_create("threads");
    TCase *cases = tcase_create("threads");
    tcase_set_timeout(cases, 20);
    tcase_add_loop_test(cases, threads_on_ranges_lose_nothing, 0, 4);
    tcase_add_loop_test(cases, threads_on_classic_segments_lose_nothing, 0, 4);
    tcase_add_loop_test(cases, threads_on_a_card_that_is_too_small_lose_nothing, 0, 4);
    tcase_add_test(cases, a_block_may_be_freed_by_any_thread);
    tcase_add_test(cases, the_check_finds_nothing_while_blocks_come_back_from_other_streams);
    tcase_add_test(cases, of_two_frees_at_the_same_time_exactly_one_succeeds);
    suite_add_tcase(suite, cases);
    return suite;
}
