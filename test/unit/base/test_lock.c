/* SPDX-License-Identifier: Apache-2.0
 * The small mutex excludes, puts waiters to sleep and wakes them, and in checking builds refuses
 * locks that are taken in falling rank. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/lock.h"
#include "support/fixture.h"

enum { THREADS = 4, ROUNDS = 20000 };

static struct gr_lock lock;
static long counter; /* guarded by lock, and by nothing else */

static void *count_up(void *unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        gr_lock_take(&lock);
        counter++;
        gr_lock_give(&lock);
    }
    return NULL;
}

START_TEST(threads_that_count_under_the_lock_lose_nothing) {
    pthread_t threads[THREADS];
    gr_lock_init(&lock, GR_RANK_POOL);
    counter = 0;
    for (int i = 0; i < THREADS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ck_assert_int_eq(counter, (long)THREADS * ROUNDS);
    ck_assert_int_eq(atomic_load(&lock.state), 0);
}
END_TEST

static void *try_once(void *taken) {
    *(bool *)taken = gr_lock_try(&lock);
    if (*(bool *)taken) gr_lock_give(&lock);
    return NULL;
}

START_TEST(trying_takes_a_free_lock_and_waits_for_none) {
    for (int held = 0; held < 2; held++) {
        pthread_t thread;
        bool taken = held != 0;
        gr_lock_init(&lock, GR_RANK_POOL);
        if (held) gr_lock_take(&lock);
        ck_assert_int_eq(pthread_create(&thread, NULL, try_once, &taken), 0);
        pthread_join(thread, NULL);
        ck_assert_int_eq(taken, !held);
        if (held) gr_lock_give(&lock);
        ck_assert_int_eq(atomic_load(&lock.state), 0);
    }
}
END_TEST

static void *take_once(void *order) {
    gr_lock_take(&lock);
    *(int *)order = (int)++counter;
    gr_lock_give(&lock);
    return NULL;
}

START_TEST(a_waiter_sleeps_while_the_lock_is_held_and_is_woken) {
    pthread_t thread;
    int order = 0;
    gr_lock_init(&lock, GR_RANK_POOL);
    counter = 0;
    gr_lock_take(&lock);
    ck_assert_int_eq(atomic_load(&lock.state), 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_once, &order), 0);
    while (atomic_load(&lock.sleepers) == 0) sched_yield(); /* it stopped spinning */
    ck_assert_int_eq(counter, 0);
    gr_lock_give(&lock);
    pthread_join(thread, NULL);
    ck_assert_int_eq(order, 1);
    ck_assert_int_eq(atomic_load(&lock.state), 0);
}
END_TEST

START_TEST(a_lock_that_nobody_holds_costs_no_system_call) {
    gr_lock_init(&lock, GR_RANK_LEAF);
    for (int i = 0; i < 3; i++) {
        gr_lock_take(&lock);
        ck_assert_int_eq(atomic_load(&lock.state), 1);
        ck_assert_int_eq(atomic_load(&lock.sleepers), 0); /* else giving it back would be a wake-up */
        gr_lock_give(&lock);
        ck_assert_int_eq(atomic_load(&lock.state), 0);
    }
}
END_TEST

#if GR_CHECK > 0

/* Takes locks of these ranks in turn. */
static void take_ranks(void *ranks) {
    static struct gr_lock locks[8];
    const int *rank = ranks;
    for (int i = 0; rank[i] != 0; i++) {
        gr_lock_init(&locks[i], (enum gr_rank)rank[i]);
        gr_lock_take(&locks[i]);
    }
}

START_TEST(locks_may_be_taken_in_rising_rank) {
    int all[] = {GR_RANK_MISS, GR_RANK_LEDGER, GR_RANK_POOL, GR_RANK_LEAF, 0};
    int some[] = {GR_RANK_MISS, GR_RANK_POOL, 0};
    int pools_under_the_ledger[] = {GR_RANK_LEDGER, GR_RANK_POOL, GR_RANK_POOL, GR_RANK_POOL, 0};
    ck_assert(!fixture_aborts(take_ranks, all));
    ck_assert(!fixture_aborts(take_ranks, some));
    ck_assert(!fixture_aborts(take_ranks, pools_under_the_ledger));
}
END_TEST

START_TEST(a_lock_of_the_same_or_a_lower_rank_is_a_broken_l1) {
    int wrong[][4] = {{GR_RANK_POOL, GR_RANK_MISS, 0},
                      {GR_RANK_LEDGER, GR_RANK_MISS, 0},
                      {GR_RANK_POOL, GR_RANK_LEDGER, 0},
                      {GR_RANK_LEAF, GR_RANK_POOL, 0},
                      {GR_RANK_MISS, GR_RANK_MISS, 0},
                      {GR_RANK_LEDGER, GR_RANK_LEDGER, 0},
                      {GR_RANK_LEAF, GR_RANK_LEAF, 0},
                      {GR_RANK_POOL, GR_RANK_POOL, 0},
                      {GR_RANK_MISS, GR_RANK_POOL, GR_RANK_POOL, 0}};
    for (size_t i = 0; i < GR_COUNT(wrong); i++)
        ck_assert_msg(fixture_aborts(take_ranks, wrong[i]), "row %zu is let through", i);
}
END_TEST

static void give_unheld(void *unused) {
    (void)unused;
    gr_lock_init(&lock, GR_RANK_MISS);
    gr_lock_give(&lock);
}

START_TEST(giving_back_what_is_not_held_is_a_broken_l1) {
    ck_assert(fixture_aborts(give_unheld, NULL));
}
END_TEST

#endif

Suite *suite_lock(void) {
    Suite *suite = suite_create("lock");
    TCase *cases = tcase_create("lock");
    tcase_add_test(cases, threads_that_count_under_the_lock_lose_nothing);
    tcase_add_test(cases, trying_takes_a_free_lock_and_waits_for_none);
    tcase_add_test(cases, a_waiter_sleeps_while_the_lock_is_held_and_is_woken);
    tcase_add_test(cases, a_lock_that_nobody_holds_costs_no_system_call);
#if GR_CHECK > 0
    tcase_add_test(cases, locks_may_be_taken_in_rising_rank);
    tcase_add_test(cases, a_lock_of_the_same_or_a_lower_rank_is_a_broken_l1);
    tcase_add_test(cases, giving_back_what_is_not_held_is_a_broken_l1);
#endif
    suite_add_tcase(suite, cases);
    return suite;
}
