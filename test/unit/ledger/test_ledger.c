/* SPDX-License-Identifier: Apache-2.0
 * The ledger's figures are exact, peaks of sums included, however many pools there are and whenever
 * it is read; and it settles hardly ever when nothing new happens. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "ledger/ledger.h"
#include "support/rng.h"

enum { ACCOUNTS = 4, POOLS = 2 * ACCOUNTS, LIVE = 64 };

struct pool {
    struct gr_account *account;
    struct gr_tally tally;
    struct {
        size_t size, requested;
        bool pending;
    } block[LIVE];
    size_t count;
};

static struct gr_ledger ledger;
static struct gr_account accounts[ACCOUNTS];
static struct pool pools[POOLS]; /* even ones are small; 2n and 2n + 1 share an account */
static int64_t now[GR_SUMS][GR_FIGURES], peak[GR_SUMS][GR_FIGURES], up[GR_SUMS][GR_FIGURES];

static void setup(void) {
    memset(pools, 0, sizeof pools);
    memset(now, 0, sizeof now);
    memset(peak, 0, sizeof peak);
    memset(up, 0, sizeof up);
    gr_ledger_init(&ledger);
    for (int p = 0; p < POOLS; p++) pools[p].account = &accounts[p / 2];
    for (int p = 0; p < POOLS; p += 2)
        gr_ledger_add(&ledger, pools[p].account, &pools[p].tally, &pools[p + 1].tally);
}

/* ---- the naive model -------------------------------------------------------------------------- */

static void move(enum gr_class class, enum gr_figure figure, int64_t by) {
    int sums[] = {(int)class, GR_ALL};
    for (int i = 0; i < 2; i++) {
        now[sums[i]][figure] += by;
        if (by > 0) up[sums[i]][figure] += by;
        peak[sums[i]][figure] = now[sums[i]][figure] > peak[sums[i]][figure] ? now[sums[i]][figure]
                                                                             : peak[sums[i]][figure];
    }
}

static const struct granary_stat_by_class *figure_of(const struct granary_stats *stats, int figure) {
    const struct granary_stat_by_class *figures[GR_FIGURES] = {[GR_ALLOCATED_BYTES] = &stats->allocated_bytes,
                                                               [GR_ACTIVE_BYTES] = &stats->active_bytes,
                                                               [GR_REQUESTED_BYTES] = &stats->requested_bytes,
                                                               [GR_ALLOCATIONS] = &stats->allocations,
                                                               [GR_ACTIVE_BLOCKS] = &stats->active_blocks};
    return figures[figure];
}

static void compare(void) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    gr_ledger_read(&ledger, &stats);
    for (int f = 0; f < GR_FIGURES; f++) {
        const struct granary_stat_by_class *by = figure_of(&stats, f);
        const struct granary_stat *part[GR_SUMS] = {
            [GR_SMALL] = &by->small, [GR_LARGE] = &by->large, [GR_ALL] = &by->all};
        for (int s = 0; s < GR_SUMS; s++) {
            ck_assert_int_eq(part[s]->current, now[s][f]);
            ck_assert_msg(part[s]->peak == peak[s][f], "sum %d, figure %d: peak %lld, should be %lld", s, f,
                          (long long)part[s]->peak, (long long)peak[s][f]);
            ck_assert_int_eq(part[s]->total_up, up[s][f]);
            ck_assert_int_eq(part[s]->total_up - part[s]->total_down, part[s]->current);
        }
    }
    const char *broken = gr_ledger_check(&ledger);
    ck_assert_msg(broken == NULL, "%s", broken);
}

static void alloc(struct pool *pool, size_t size, size_t requested) {
    uint32_t label;
    gr_bias_take(&pool->account->lock);
    bool over = gr_ledger_alloc(&pool->tally, 0, size, requested, &label);
    gr_bias_give(&pool->account->lock);
    if (over) gr_ledger_settle(&ledger, &pool->tally);
    pool->block[pool->count].size = size;
    pool->block[pool->count].requested = requested;
    pool->block[pool->count++].pending = false;
    enum gr_class class = pool->tally.class;
    move(class, GR_ALLOCATED_BYTES, (int64_t)size);
    move(class, GR_ACTIVE_BYTES, (int64_t)size);
    move(class, GR_REQUESTED_BYTES, (int64_t)requested);
    move(class, GR_ALLOCATIONS, 1);
    move(class, GR_ACTIVE_BLOCKS, 1);
}

/* At once; or requested, and completed in a later call for the same block. */
static void step_down(struct pool *pool, size_t at, bool at_once) {
    enum gr_class class = pool->tally.class;
    size_t size = pool->block[at].size, requested = pool->block[at].requested;
    bool pending = pool->block[at].pending;
    gr_bias_take(&pool->account->lock);
    if (pending)
        gr_ledger_free_completed(&pool->tally, 0, size, requested, 0);
    else if (at_once)
        gr_ledger_free(&pool->tally, 0, size, requested, 0);
    else
        gr_ledger_free_requested(&pool->tally, 0, size, requested, 0);
    gr_bias_give(&pool->account->lock);
    if (!pending) {
        move(class, GR_ALLOCATED_BYTES, -(int64_t)size);
        move(class, GR_ALLOCATIONS, -1);
        pool->block[at].pending = true;
    }
    if (!pending && !at_once) return;
    move(class, GR_ACTIVE_BYTES, -(int64_t)size);
    move(class, GR_REQUESTED_BYTES, -(int64_t)requested);
    move(class, GR_ACTIVE_BLOCKS, -1);
    pool->block[at] = pool->block[--pool->count];
}

/* ---- figures of blocks ------------------------------------------------------------------------ */

START_TEST(peaks_of_the_sums_are_exact_in_random_traffic) {
    struct rng rng = {40 + (uint64_t)_i};
    for (int step = 0; step < 30000; step++) {
        struct pool *pool = &pools[rng_below(&rng, POOLS)];
        bool rising = step / 3000 % 2 == 0;
        if (pool->count == 0 || (pool->count < LIVE && rng_below(&rng, 100) < (rising ? 60u : 40u))) {
            size_t size = 512 * rng_between(&rng, 1, _i == 0 ? 4 : 5000);
            alloc(pool, size, size - rng_below(&rng, 512));
        } else {
            step_down(pool, rng_below(&rng, pool->count), !rng_once_in(&rng, 3));
        }
        if (rng_once_in(&rng, 100)) compare();
        if (rng_once_in(&rng, 5000)) {
            gr_ledger_reset_peaks(&ledger);
            memcpy(peak, now, sizeof peak);
        }
    }
    compare();
}
END_TEST

START_TEST(a_peak_of_the_sum_that_no_pool_has_alone_is_found) {
    /* Each pool rises when the others are low: none has a peak of its own when the sum has one. */
    alloc(&pools[0], 1000 * 512, 1);
    step_down(&pools[0], 0, true);
    alloc(&pools[0], 600 * 512, 1);
    compare();
    alloc(&pools[2], 600 * 512, 1);
    compare();
    ck_assert_int_eq(peak[GR_SMALL][GR_ALLOCATED_BYTES], 1200 * 512);
}
END_TEST

START_TEST(traffic_below_the_peak_settles_hardly_ever) {
    for (int i = 0; i < 32; i++) alloc(&pools[0], 512, 512);
    for (int i = 0; i < 16; i++) step_down(&pools[0], 0, true);
    for (int round = 0; round < 100; round++) { /* ceilings find their place */
        alloc(&pools[0], 512, 512);
        step_down(&pools[0], 0, true);
    }
    uint64_t settled = ledger.settled;
    for (int round = 0; round < 10000; round++) {
        alloc(&pools[0], 512, 512);
        step_down(&pools[0], 0, true);
    }
    ck_assert_uint_eq(ledger.settled, settled);
    compare();
}
END_TEST

/* The number of blocks stands at its peak all the time. */
START_TEST(blocks_of_one_class_that_make_way_for_the_other_settle_hardly_ever) {
    for (int i = 0; i < 20; i++) alloc(&pools[i % 2], i % 2 ? 2 * GR_MIB : 512, 512);
    for (int i = 0; i < 10; i++) { /* each class has been at its own peak */
        step_down(&pools[0], 0, true);
        alloc(&pools[1], 2 * GR_MIB, 512);
    }
    for (int i = 0; i < 20; i++) {
        step_down(&pools[1], 0, true);
        alloc(&pools[0], 512, 512);
    }
    compare();
    uint64_t settled = ledger.settled;
    for (int round = 0; round < 10000; round++) {
        int from = round / 10 % 2 == 0; /* there and back, below the peaks of both */
        step_down(&pools[!from], 0, true);
        alloc(&pools[from], from ? 2 * GR_MIB : 512, 512);
    }
    ck_assert_uint_le(ledger.settled - settled, 10);
    compare();
}
END_TEST

START_TEST(what_is_allocated_peaks_while_more_was_active_before) {
    for (int i = 0; i < 8; i++) alloc(&pools[0], 512, 1);
    for (int i = 0; i < 6; i++) step_down(&pools[0], (size_t)i, false); /* 2 allocated, 8 active */
    for (int i = 0; i < 4; i++) alloc(&pools[1], 2 * GR_MIB, 1);        /* 6 and 12, the most active */
    for (size_t i = 6; i-- > 0;) step_down(&pools[0], i, false);
    step_down(&pools[1], 0, false);
    compare();
    for (int i = 0; i < 5; i++) alloc(&pools[0], 512, 1); /* 10 and 11, the most allocated */
    ck_assert_int_eq(peak[GR_ALL][GR_ALLOCATIONS], 10);
    ck_assert_int_eq(peak[GR_ALL][GR_ACTIVE_BLOCKS], 12);
    compare();
}
END_TEST

START_TEST(traffic_at_the_peak_itself_settles_about_once_for_each_rise) {
    uint64_t settled = ledger.settled;
    for (int i = 0; i < 50; i++) alloc(&pools[1], 2 * GR_MIB, 2 * GR_MIB);
    ck_assert_uint_le(ledger.settled - settled, 50);
    compare();
}
END_TEST

START_TEST(what_a_pool_did_stays_in_the_totals_when_it_goes) {
    for (int i = 0; i < 10; i++) alloc(&pools[3], 2 * GR_MIB, GR_MIB + 1);
    alloc(&pools[4], 512, 1);
    while (pools[3].count > 0) step_down(&pools[3], 0, true);
    gr_ledger_remove(&ledger, pools[3].account);
    compare();
    alloc(&pools[1], 30 * GR_MIB, 30 * GR_MIB); /* more than the peak so far */
    compare();
}
END_TEST

START_TEST(reset_peaks_begins_again_at_the_current_values) {
    alloc(&pools[0], 10 * 512, 5000);
    alloc(&pools[0], 512, 1);
    step_down(&pools[0], 0, true);
    gr_ledger_reset_peaks(&ledger);
    memcpy(peak, now, sizeof peak);
    compare();
    alloc(&pools[0], 2 * 512, 600);
    compare();
}
END_TEST

START_TEST(a_free_that_waits_is_active_but_not_allocated) {
    alloc(&pools[0], 1024, 600);
    step_down(&pools[0], 0, false);
    ck_assert_int_eq(gr_tally_now(&pools[0].tally, GR_ALLOCATED_BYTES), 0);
    ck_assert_int_eq(gr_tally_now(&pools[0].tally, GR_ALLOCATIONS), 0);
    ck_assert_int_eq(gr_tally_now(&pools[0].tally, GR_ACTIVE_BYTES), 1024);
    ck_assert_int_eq(gr_tally_now(&pools[0].tally, GR_REQUESTED_BYTES), 600);
    compare();
    step_down(&pools[0], 0, true);
    compare();
}
END_TEST

/* ---- figures of memory ------------------------------------------------------------------------ */

START_TEST(reserved_and_segments_are_counted_by_class_with_exact_peaks) {
    struct granary_stats s = {.struct_size = sizeof s};
    uint32_t label;
    gr_ledger_map(&ledger, &pools[0].tally, 0, 2 * GR_MIB);
    gr_ledger_segment_alloc(&ledger, &pools[1].tally, 0, 20 * GR_MIB, &label);
    gr_ledger_unmap(&ledger, &pools[0].tally, 0, 2 * GR_MIB);
    gr_ledger_map(&ledger, &pools[1].tally, 0, 4 * GR_MIB);
    gr_ledger_segment_free(&ledger, &pools[1].tally, 0, 20 * GR_MIB, label);
    gr_ledger_move(&ledger, &pools[1].tally, 6 * GR_MIB);
    gr_ledger_miss(&ledger);
    gr_ledger_out_of_memory(&ledger, &pools[1].tally, 512, 0);
    gr_ledger_read(&ledger, &s);
    ck_assert_uint_eq(gr_ledger_reserved(&ledger), 4 * GR_MIB);
    ck_assert_int_eq(s.reserved_bytes.all.current, 4 * GR_MIB);
    ck_assert_int_eq(s.reserved_bytes.all.peak, 24 * GR_MIB); /* 20 + 4: the small 2 were gone by then */
    ck_assert_int_eq(s.reserved_bytes.small.current, 0);
    ck_assert_int_eq(s.reserved_bytes.small.peak, 2 * GR_MIB);
    ck_assert_int_eq(s.reserved_bytes.large.peak, 24 * GR_MIB);
    ck_assert_int_eq(s.reserved_bytes.all.total_up, 26 * GR_MIB);
    ck_assert_int_eq(s.reserved_bytes.all.total_down, 22 * GR_MIB);
    ck_assert_int_eq(s.segments.all.current, 0);
    ck_assert_int_eq(s.segments.large.peak, 1);
    ck_assert_int_eq(s.segments.small.peak, 0);
    ck_assert_int_eq(s.moved_extents, 1);
    ck_assert_int_eq(s.moved_bytes, 6 * GR_MIB);
    ck_assert_int_eq(s.misses, 1);
    ck_assert_int_eq(s.out_of_memory, 1);
    ck_assert_int_eq(s.maps, 2);
    ck_assert_int_eq(s.unmaps, 1);
    gr_ledger_reset_peaks(&ledger);
    gr_ledger_read(&ledger, &s);
    ck_assert_int_eq(s.reserved_bytes.all.peak, 4 * GR_MIB);
    ck_assert_int_eq(s.reserved_bytes.small.peak, 0);
    ck_assert_int_eq(s.segments.large.peak, 0);
}
END_TEST

/* ---- threads ---------------------------------------------------------------------------------- */

enum { RISE = 3000 };
static pthread_barrier_t barrier;

/* Rises in small steps with a dip after each, waits for the others at the top, and comes down. */
static void *rise_and_fall(void *argument) {
    struct pool *pool = argument;
    uint32_t label;
    for (int i = 0; i < RISE; i++) {
        for (int n = 0; n < 2; n++) {
            gr_bias_take(&pool->account->lock);
            bool over = gr_ledger_alloc(&pool->tally, 0, 1024, 600, &label);
            gr_bias_give(&pool->account->lock);
            if (over) gr_ledger_settle(&ledger, &pool->tally);
        }
        gr_bias_take(&pool->account->lock);
        gr_ledger_free(&pool->tally, 0, 1024, 600, 0);
        gr_bias_give(&pool->account->lock);
    }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < RISE; i++) {
        gr_bias_take(&pool->account->lock);
        gr_ledger_free(&pool->tally, 0, 1024, 600, 0);
        gr_bias_give(&pool->account->lock);
    }
    return NULL;
}

START_TEST(threads_that_rise_together_are_seen_at_their_common_top) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, rise_and_fall, &pools[2 * i + i % 2]), 0);
    for (int i = 0; i < 50; i++)
        ck_assert_ptr_null(gr_ledger_check(&ledger)); /* reads in between disturb nothing */
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    struct granary_stats s = {.struct_size = sizeof s};
    gr_ledger_read(&ledger, &s);
    ck_assert_int_eq(s.allocated_bytes.all.current, 0);
    ck_assert_int_eq(s.allocated_bytes.all.total_up, (int64_t)2 * RISE * THREADS * 1024);
    /* At the barrier all stand at RISE; the dips before it may have added one block each. */
    ck_assert_int_ge(s.allocations.all.peak, (int64_t)RISE * THREADS);
    ck_assert_int_le(s.allocations.all.peak, (int64_t)(RISE + 1) * THREADS);
    ck_assert_int_eq(s.allocations.all.peak * 1024, s.allocated_bytes.all.peak);
    ck_assert_int_ge(s.allocations.small.peak, (int64_t)RISE * 2);
    pthread_barrier_destroy(&barrier);
}
END_TEST

static void settle(int times) {
    for (int i = 0; i < times; i++) gr_ledger_settle(&ledger, &pools[0].tally);
}

START_TEST(rises_pass_while_other_threads_settle_but_for_a_millisecond_only) {
    enum { LEFT = 60000, EACH_LOOK = 64 };
    const uint64_t hour = UINT64_C(3600000000000);
    alloc(&pools[0], 512, 512);
    atomic_store(&ledger.settler, 1); /* no thread of ours */
    atomic_store(&accounts[0].passes, LEFT);
    atomic_store(&ledger.settled_ns, gr_clock_ns() + hour);
    uint64_t settled = ledger.settled;
    settle(10 * EACH_LOOK);
    ck_assert_uint_eq(ledger.settled, settled);
    ck_assert_uint_eq(atomic_load(&accounts[0].passes), LEFT - 10 * EACH_LOOK);
    atomic_store(&ledger.settled_ns, gr_clock_ns() - hour);
    settle(EACH_LOOK);
    ck_assert_uint_gt(ledger.settled, settled);
    ck_assert_int_lt((int64_t)(gr_clock_ns() - atomic_load(&ledger.settled_ns)), (int64_t)hour / 2);
    compare();
}
END_TEST

/* Threads that take turns slowly: each finds that the last settling was long ago. */
START_TEST(a_rise_does_not_pass_when_the_last_settling_was_long_ago) {
    enum { LEFT = 100 };
    alloc(&pools[0], 512, 512);
    for (unsigned passed = 1; passed <= 64; passed *= 2) { /* the first, and after as many */
        atomic_store(&ledger.settler, 1);
        atomic_store(&accounts[0].patience, LEFT);
        atomic_store(&accounts[0].passes, passed == 1 ? LEFT : LEFT - passed);
        atomic_store(&ledger.settled_ns, gr_clock_ns() - UINT64_C(2000000));
        const uint64_t settled = ledger.settled;
        settle(1);
        ck_assert_uint_eq(ledger.settled, settled + 1);
    }
    compare();
}
END_TEST

/* ---- the check has teeth ---------------------------------------------------------------------- */

START_TEST(a_negative_figure_breaks_g1) {
    alloc(&pools[0], 512, 1);
    ck_assert_ptr_null(gr_ledger_check(&ledger));
    pools[1].tally.room.left[GR_BLOCKS] += 1; /* freed without having been allocated */
    ck_assert_str_eq(gr_ledger_check(&ledger), "G1");
}
END_TEST

START_TEST(ceilings_above_the_peak_break_g2) {
    /* A pool with too high a ceiling could make a peak and tell nobody; so could an account. */
    alloc(&pools[0], 4096, 1);
    ck_assert_ptr_null(gr_ledger_check(&ledger));
    pools[2].tally.ceiling[GR_BYTES] += 8192;
    pools[2].tally.room.left[GR_BYTES] += 8192;
    ck_assert_str_eq(gr_ledger_check(&ledger), "G2");
    ck_assert_ptr_null(gr_ledger_check(&ledger));
    accounts[1].room.left[GR_BYTES] += 8192;
    ck_assert_str_eq(gr_ledger_check(&ledger), "G2");
}
END_TEST

START_TEST(more_allocated_or_requested_than_active_breaks_g3) {
    alloc(&pools[0], 512, 500);
    for (int n = 0; n < GR_TWOFOLD; n++) {
        pools[0].tally.ceiling[n] -= 1;
        pools[0].tally.waiting[n] -= 1;
        ck_assert_str_eq(gr_ledger_check(&ledger), "G3");
        pools[0].tally.ceiling[n] += 1;
        pools[0].tally.waiting[n] += 1;
        ck_assert_ptr_null(gr_ledger_check(&ledger));
    }
    pools[0].tally.room.left[GR_REQUESTED] -= 100;
    accounts[0].room.left[GR_REQUESTED] -= 100;
    ck_assert_str_eq(gr_ledger_check(&ledger), "G3");
}
END_TEST

/* ---- history ---------------------------------------------------------------------------------- */

static void watch(int level) {
    struct gr_history *fresh = ledger.history ? NULL : gr_history_make();
    ck_assert(ledger.history || fresh);
    ck_assert_int_eq(gr_ledger_watch(&ledger, level, GRANARY_STACKS_NONE, 16, &fresh), GRANARY_OK);
    ck_assert_ptr_null(fresh);
}

/* Of the events that are kept, whether all say so of their place. */
static size_t events_of(uint64_t stream, uint64_t heap) {
    struct gr_event event[16];
    const struct gr_span span = gr_history_span(ledger.history);
    size_t count = gr_history_copy(ledger.history, &span, event);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(event[i].place.stream, stream);
        ck_assert_uint_eq(event[i].place.heap, heap);
    }
    return count;
}

static void tell_of(struct pool *pool) {
    uint32_t label;
    gr_history_clear(ledger.history);
    (void)!gr_ledger_alloc(&pool->tally, 512, 512, 500, &label);
    gr_ledger_free(&pool->tally, 512, 512, 500, label);
}

START_TEST(a_hit_tells_while_events_are_kept_and_its_place_has_a_number) {
    struct pool *pool = &pools[1];
    gr_ledger_place(&pool->tally, 5, 3);
    ck_assert_ptr_null(pool->tally.told);
    watch(GRANARY_HISTORY_STATE);
    ck_assert_ptr_null(pool->tally.told);
    ck_assert_ptr_eq(pool->tally.history, ledger.history);
    tell_of(pool);
    ck_assert_uint_eq(events_of(5, 3), 0);
    watch(GRANARY_HISTORY_ALLOC);
    ck_assert_ptr_eq(pool->tally.told, ledger.history);
    tell_of(pool);
    ck_assert_uint_eq(events_of(5, 3), 3);
    gr_ledger_place(&pool->tally, 6, 4);
    ck_assert_ptr_eq(pool->tally.told, ledger.history);
    tell_of(pool);
    ck_assert_uint_eq(events_of(6, 4), 3);
    ledger.history->places.most = atomic_load(&ledger.history->places.count);
    gr_ledger_place(&pool->tally, 7, 5);
    ck_assert_ptr_null(pool->tally.told);
    tell_of(pool);
    ck_assert_uint_eq(events_of(7, 5), 3);
    gr_ledger_place(&pool->tally, 5, 3);
    ck_assert_ptr_eq(pool->tally.told, ledger.history);
    watch(GRANARY_HISTORY_OFF);
    ck_assert_ptr_null(pool->tally.told);
    ck_assert_ptr_null(pool->tally.history);
    gr_ledger_fini(&ledger);
}
END_TEST

Suite *suite_ledger(void) {
    Suite *suite = suite_create("ledger");
    TCase *cases = tcase_create("ledger");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_loop_test(cases, peaks_of_the_sums_are_exact_in_random_traffic, 0, 4);
    tcase_add_test(cases, a_peak_of_the_sum_that_no_pool_has_alone_is_found);
    tcase_add_test(cases, traffic_below_the_peak_settles_hardly_ever);
    tcase_add_test(cases, blocks_of_one_class_that_make_way_for_the_other_settle_hardly_ever);
    tcase_add_test(cases, what_is_allocated_peaks_while_more_was_active_before);
    tcase_add_test(cases, traffic_at_the_peak_itself_settles_about_once_for_each_rise);
    tcase_add_test(cases, what_a_pool_did_stays_in_the_totals_when_it_goes);
    tcase_add_test(cases, reset_peaks_begins_again_at_the_current_values);
    tcase_add_test(cases, a_free_that_waits_is_active_but_not_allocated);
    tcase_add_test(cases, reserved_and_segments_are_counted_by_class_with_exact_peaks);
    tcase_add_test(cases, threads_that_rise_together_are_seen_at_their_common_top);
    tcase_add_test(cases, rises_pass_while_other_threads_settle_but_for_a_millisecond_only);
    tcase_add_test(cases, a_rise_does_not_pass_when_the_last_settling_was_long_ago);
    tcase_add_test(cases, a_negative_figure_breaks_g1);
    tcase_add_test(cases, ceilings_above_the_peak_break_g2);
    tcase_add_test(cases, more_allocated_or_requested_than_active_breaks_g3);
    tcase_add_test(cases, a_hit_tells_while_events_are_kept_and_its_place_has_a_number);
    suite_add_tcase(suite, cases);
    return suite;
}
