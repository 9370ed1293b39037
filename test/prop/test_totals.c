/* SPDX-License-Identifier: Apache-2.0
 * Totals add up: after every operation of random traffic on two devices, and in the facts of a failure
 * while other threads allocate. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/fixture.h"
#include "support/hot.h"
#include "support/rng.h"
#include "support/shortfall.h"

enum { DEVICES = 2, STREAMS = 3, BLOCKS = 60, CARD_MIB = 128 };

static void two_cards(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->devices = DEVICES;
    sim->memory_bytes = CARD_MIB * GR_MIB;
    sim->backing = GRANARY_SIM_ACCOUNTING;
}

static void adds_up(const struct granary_stat_by_class *s) {
    const struct granary_stat *all[] = {&s->all, &s->small, &s->large};
    for (int i = 0; i < 3; i++) {
        HOT_ASSERT(all[i]->current >= 0 && all[i]->current <= all[i]->peak);
        HOT_ASSERT(all[i]->total_up - all[i]->total_down == all[i]->current);
    }
    HOT_ASSERT(s->all.current == s->small.current + s->large.current);
    HOT_ASSERT(s->all.total_up == s->small.total_up + s->large.total_up);
}

static void totals_add_up(granary *g, int64_t allocs, int64_t frees) {
    struct granary_stats s = fixture_stats(g);
    const struct granary_stat_by_class *all[] = {&s.allocated_bytes, &s.active_bytes, &s.requested_bytes,
                                                 &s.reserved_bytes,  &s.allocations,  &s.active_blocks,
                                                 &s.segments};
    for (size_t i = 0; i < GR_COUNT(all); i++) adds_up(all[i]);
    HOT_ASSERT(s.allocated_bytes.all.current <= s.active_bytes.all.current);
    HOT_ASSERT(s.active_bytes.all.current <= s.reserved_bytes.all.current);
    HOT_ASSERT(s.reserved_bytes.all.current + s.handle_cache_bytes <= CARD_MIB * (int64_t)GR_MIB);
    HOT_ASSERT(s.allocations.all.total_up == allocs && s.allocations.all.total_down == frees);
    HOT_ASSERT(s.pending_blocks == s.active_blocks.all.current - s.allocations.all.current);
}

/* pytorch/pytorch#158364, #130964, #108907, #49952. Kind: figures that are kept apart drift apart. */
START_TEST(case_75_totals_add_up_after_every_operation_on_two_devices) {
    struct granary_options options;
    struct rng rng = {(uint64_t)_i};
    granary *g[DEVICES];
    granary_stream streams[DEVICES][STREAMS];
    void *blocks[DEVICES][BLOCKS] = {{0}};
    int64_t allocs[DEVICES] = {0}, frees[DEVICES] = {0}, failures = 0;
    char words[128];
    fixture_open_sim(two_cards, &options);
    options.expandable_segments = _i % 3 != 0;
    options.garbage_collection_threshold = _i % 2 ? 0.7 : 0;
    for (int d = 0; d < DEVICES; d++) {
        g[d] = fixture_open_handle(&options, d);
        totals_add_up(g[d], 0, 0); /* before anything was allocated: zeros */
        for (int s = 0; s < STREAMS; s++) streams[d][s] = fixture_stream(g[d]);
    }
    for (int i = 0; i < 3000; i++) {
        int d = (int)rng_below(&rng, DEVICES);
        void **p = &blocks[d][rng_below(&rng, BLOCKS)];
        granary_stream stream = streams[d][rng_below(&rng, STREAMS)];
        if (*p) {
            if (rng_once_in(&rng, 3)) HOT_ASSERT(granary_record_stream(g[d], *p, stream) == GRANARY_OK);
            HOT_ASSERT(granary_free(g[d], *p) == GRANARY_OK);
            *p = NULL;
            frees[d]++;
        } else {
            size_t size = rng_between(&rng, 1, rng_once_in(&rng, 3) ? 30 * GR_MIB : 2 * GR_MIB);
            int status = granary_alloc(g[d], size, stream, p);
            allocs[d] += status == GRANARY_OK;
            failures += status != GRANARY_OK;
            HOT_ASSERT(status == GRANARY_OK || !shortfall_wrong(g[d], words));
        }
        if (rng_once_in(&rng, 200)) (void)fixture_trim(g[d], 0);
        if (rng_once_in(&rng, 200)) HOT_ASSERT(granary_reset_peaks(g[d]) == GRANARY_OK);
        totals_add_up(g[d], allocs[d], frees[d]);
    }
    ck_assert_int_gt(failures, 0);
    for (int d = 0; d < DEVICES; d++) {
        for (int b = 0; b < BLOCKS; b++)
            if (blocks[d][b]) fixture_free(g[d], blocks[d][b]);
        for (int s = 0; s < STREAMS; s++)
            HOT_ASSERT(granary_stream_destroy(g[d], streams[d][s]) == GRANARY_OK);
        fixture_close_handle(g[d]);
    }
    fixture_close_sim();
}
END_TEST

/* ---- one moment -------------------------------------------------------------------------------- */

static granary *shared;
static atomic_bool stop;
static atomic_int observed;

static void observe(granary *g, const struct granary_shortfall *s, void *context) {
    (void)g, (void)context;
    atomic_fetch_add(&observed, 1);
    HOT_ASSERT(s->allocated_bytes + s->pending_bytes == s->active_bytes);
    HOT_ASSERT(s->active_bytes + s->free_same_pool_bytes + s->free_other_class_bytes +
                   s->free_other_stream_bytes + s->free_private_bytes + s->free_graph_bytes ==
               s->reserved_bytes);
}

static void *allocate_and_free(void *seed) {
    struct rng rng = {(uint64_t)(uintptr_t)seed};
    granary_stream stream = fixture_stream(shared);
    void *blocks[16] = {0};
    while (!atomic_load(&stop)) {
        void **p = &blocks[rng_below(&rng, GR_COUNT(blocks))];
        if (*p) {
            fixture_free(shared, *p);
            *p = NULL;
        } else {
            (void)granary_alloc(shared, rng_between(&rng, 1, 3 * GR_MIB), stream, p);
        }
    }
    for (size_t i = 0; i < GR_COUNT(blocks); i++)
        if (blocks[i]) fixture_free(shared, blocks[i]);
    HOT_ASSERT(granary_stream_destroy(shared, stream) == GRANARY_OK);
    return NULL;
}

START_TEST(the_facts_of_a_failure_are_of_one_moment_while_others_allocate) {
    enum { THREADS = 3, ROUNDS = 300 };
    pthread_t threads[THREADS];
    granary_callback name;
    void *p;
    shared = fixture_open(two_cards);
    atomic_store(&stop, false);
    atomic_store(&observed, 0);
    ck_assert_int_eq(granary_observer_add(shared, observe, NULL, &name), GRANARY_OK);
    void *live = fixture_alloc(shared, 20 * GR_MIB, NULL);
    for (size_t t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, allocate_and_free, (void *)(t + 1)), 0);
    for (int i = 0; i < ROUNDS; i++)
        ck_assert_int_eq(granary_alloc(shared, (CARD_MIB - 10) * GR_MIB, NULL, &p), GRANARY_OUT_OF_MEMORY);
    atomic_store(&stop, true);
    for (size_t t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    ck_assert_int_ge(atomic_load(&observed), ROUNDS);
    fixture_free(shared, live);
    fixture_close(shared);
}
END_TEST

Suite *suite_totals(void) {
    Suite *suite = suite_create("totals");
    TCase *cases = tcase_create("totals");
    tcase_add_loop_test(cases, case_75_totals_add_up_after_every_operation_on_two_devices, 1, 7);
    tcase_add_test(cases, the_facts_of_a_failure_are_of_one_moment_while_others_allocate);
    suite_add_tcase(suite, cases);
    return suite;
}
