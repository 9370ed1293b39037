/* SPDX-License-Identifier: Apache-2.0
 * The small mutex excludes, puts waiters to sleep and wakes them, has one watcher at most, lets nobody wait
 * for ever, and in checking builds refuses locks that are taken in falling rank. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/lock.h"
#include "support/fixture.h"

enum { THREADS = 8, ROUNDS = 10000, CROWD = 16, TURNS = 200, MS = 1000000 };

/* As lock.c has them. */
#define WATCHED (1u << 31)
#define COMING (1u << 30)
#define HEIR (1u << 29)
#define LENT (1u << 28)
enum { PASSED = 2 };

static struct gr_lock lock;
static long counter; /* guarded by lock, and by nothing else */

static unsigned waiting(void) {
    return atomic_load(&lock.waiting);
}

/* The holder of the lock waits until the other thread has stopped spinning, or even is the heir by then. */
static void await_sleeper(void) {
    while ((waiting() & ~(WATCHED | COMING)) == 0) sched_yield();
}

static void rest(long ns) {
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

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
    ck_assert_uint_eq(waiting(), 0);
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
    await_sleeper();
    ck_assert_int_eq(counter, 0);
    gr_lock_give(&lock);
    pthread_join(thread, NULL);
    ck_assert_int_eq(order, 1);
    ck_assert_int_eq(atomic_load(&lock.state), 0);
    ck_assert_uint_eq(waiting(), 0);
}
END_TEST

static void *take_when(void *when) {
    gr_lock_take(&lock);
    *(uint64_t *)when = gr_clock_ns();
    gr_lock_give(&lock);
    return NULL;
}

/* A sleeper that nobody wakes comes back as well, but only after a millisecond. */
START_TEST(a_give_wakes_a_sleeper_before_its_nap_is_over) {
    enum { TRIES = 40 };
    int soon = 0;
    gr_lock_init(&lock, GR_RANK_POOL);
    for (int i = 0; i < TRIES; i++) {
        pthread_t thread;
        uint64_t given, taken = 0;
        gr_lock_take(&lock);
        ck_assert_int_eq(pthread_create(&thread, NULL, take_when, &taken), 0);
        await_sleeper();
        rest(MS / 10); /* by now it sleeps indeed */
        given = gr_clock_ns();
        gr_lock_give(&lock);
        pthread_join(thread, NULL);
        soon += taken - given < MS / 2;
    }
    ck_assert_int_ge(soon, TRIES / 4);
}
END_TEST

START_TEST(a_give_hands_the_watch_to_one_sleeper_and_the_next_gives_wake_nobody) {
    gr_lock_init(&lock, GR_RANK_POOL);
    atomic_store(&lock.waiting, 2); /* two that are slow to come */
    for (int i = 0; i < 3; i++) {
        gr_lock_take(&lock);
        gr_lock_give(&lock);
        ck_assert_uint_eq(waiting(), 2 | WATCHED | COMING);
        ck_assert_int_eq(atomic_load(&lock.state), 0);
        ck_assert_int_lt((int)waiting(), 0); /* else giving it back would be a wake-up */
    }
}
END_TEST

START_TEST(a_give_wakes_nobody_while_somebody_watches) {
    gr_lock_init(&lock, GR_RANK_POOL);
    atomic_store(&lock.waiting, 1 | WATCHED);
    gr_lock_take(&lock);
    gr_lock_give(&lock);
    ck_assert_uint_eq(waiting(), 1 | WATCHED);
    ck_assert_int_eq(atomic_load(&lock.state), 0);
}
END_TEST

START_TEST(a_sleeper_takes_the_watch_that_is_on_its_way_to_another) {
    pthread_t thread;
    int order = 0;
    gr_lock_init(&lock, GR_RANK_POOL);
    counter = 0;
    gr_lock_take(&lock);
    atomic_store(&lock.waiting, 1 | WATCHED | COMING); /* to one that does not come */
    ck_assert_int_eq(pthread_create(&thread, NULL, take_once, &order), 0);
    while (waiting() & COMING) sched_yield();
    gr_lock_give(&lock);
    pthread_join(thread, NULL);
    ck_assert_int_eq(order, 1);
    ck_assert_uint_eq(waiting() & ~(WATCHED | COMING), 1);
}
END_TEST

/* What is in `before` stands for a watcher that does not get to run, or for nobody. */
static void take_unwoken(unsigned before) {
    pthread_t thread;
    int order = 0;
    gr_lock_init(&lock, GR_RANK_POOL);
    counter = 0;
    gr_lock_take(&lock);
    atomic_store(&lock.waiting, before);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_once, &order), 0);
    await_sleeper();
    gr_lock_note_give(&lock);
    atomic_store(&lock.state, 0); /* as a give that looked just before there was a sleeper */
    pthread_join(thread, NULL);
    ck_assert_int_eq(order, 1);
    ck_assert_uint_eq(waiting() & ~WATCHED, 0);
}

START_TEST(a_sleeper_whose_wake_up_was_lost_comes_by_itself) {
    take_unwoken(0);
}
END_TEST

START_TEST(a_sleeper_comes_by_itself_when_the_watcher_does_not_run) {
    take_unwoken(WATCHED);
}
END_TEST

START_TEST(a_give_passes_the_lock_to_the_heir_and_to_nobody_else) {
    gr_lock_init(&lock, GR_RANK_POOL);
    gr_lock_take(&lock);
    atomic_store(&lock.waiting, 2 | HEIR);
    gr_lock_give(&lock);
    ck_assert_int_eq(atomic_load(&lock.state), PASSED);
    ck_assert_uint_eq(waiting(), 2 | HEIR);
    ck_assert(!gr_lock_try(&lock));
}
END_TEST

START_TEST(an_heir_lets_nobody_take_the_watch_and_gives_it_back_to_the_watcher) {
    for (int watched = 0; watched < 2; watched++) {
        pthread_t thread;
        int order = 0;
        gr_lock_init(&lock, GR_RANK_POOL);
        counter = 0;
        gr_lock_take(&lock);
        atomic_store(&lock.waiting, WATCHED);
        ck_assert_int_eq(pthread_create(&thread, NULL, take_once, &order), 0);
        while (!(waiting() & HEIR)) sched_yield();
        ck_assert_uint_eq(waiting(), HEIR | LENT);
        if (!watched) atomic_fetch_and(&lock.waiting, ~(WATCHED | LENT)); /* it has given up meanwhile */
        gr_lock_give(&lock);
        pthread_join(thread, NULL);
        ck_assert_int_eq(order, 1);
        ck_assert_uint_eq(waiting(), watched ? WATCHED : 0);
    }
}
END_TEST

/* The holder takes the lock again at once: to find it free by looking now and then is luck. */
START_TEST(who_waits_for_long_gets_a_lock_that_is_never_free) {
    enum { TRIES = 4, GIVES = 40 };
    for (int i = 0; i < TRIES; i++) {
        pthread_t thread;
        int order = 0, gives = 0;
        gr_lock_init(&lock, GR_RANK_POOL);
        counter = 0;
        gr_lock_take(&lock);
        ck_assert_int_eq(pthread_create(&thread, NULL, take_once, &order), 0);
        await_sleeper();
        for (; gives < GIVES && counter == 0; gives++) {
            rest(MS);
            gr_lock_give(&lock);
            gr_lock_take(&lock);
        }
        ck_assert_msg(counter == 1, "not after %d gives", gives);
        gr_lock_give(&lock);
        pthread_join(thread, NULL);
        ck_assert_uint_eq(waiting(), 0);
    }
}
END_TEST

static atomic_int unserved;
static atomic_bool enough;

/* A holder that is often put off the processor while it holds the lock. */
static void *take_turns(void *longest) {
    for (int turn = 0; !atomic_load(&enough); turn++) {
        uint64_t asked = gr_clock_ns(), *most = longest;
        gr_lock_take(&lock);
        uint64_t waited = gr_clock_ns() - asked;
        if (waited > *most) *most = waited;
        if (++counter % 64 == 0) sched_yield();
        gr_lock_give(&lock);
        if (turn == TURNS && atomic_fetch_sub(&unserved, 1) == 1) atomic_store(&enough, true);
    }
    return NULL;
}

START_TEST(all_of_a_crowd_get_their_turns) {
    pthread_t threads[CROWD];
    uint64_t longest[CROWD] = {0}, began = gr_clock_ns();
    gr_lock_init(&lock, GR_RANK_POOL);
    atomic_store(&unserved, CROWD);
    atomic_store(&enough, false);
    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_turns, &longest[i]), 0);
    while (!atomic_load(&enough) && gr_clock_ns() - began < UINT64_C(20000) * MS) rest(MS);
    ck_assert_msg(atomic_load(&enough), "%d threads still wait for their turns", atomic_load(&unserved));
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_lt(longest[i], UINT64_C(5000) * MS);
    }
    ck_assert_int_eq(atomic_load(&lock.state), 0);
    ck_assert_uint_eq(waiting(), 0);
}
END_TEST

START_TEST(a_lock_that_nobody_holds_costs_no_system_call) {
    gr_lock_init(&lock, GR_RANK_LEAF);
    for (int i = 0; i < 3; i++) {
        gr_lock_take(&lock);
        ck_assert_int_eq(atomic_load(&lock.state), 1);
        ck_assert_uint_eq(waiting(), 0); /* else giving it back would be a wake-up */
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
    tcase_add_test(cases, a_give_wakes_a_sleeper_before_its_nap_is_over);
    tcase_add_test(cases, a_give_hands_the_watch_to_one_sleeper_and_the_next_gives_wake_nobody);
    tcase_add_test(cases, a_give_wakes_nobody_while_somebody_watches);
    tcase_add_test(cases, a_sleeper_takes_the_watch_that_is_on_its_way_to_another);
    tcase_add_test(cases, a_sleeper_whose_wake_up_was_lost_comes_by_itself);
    tcase_add_test(cases, a_sleeper_comes_by_itself_when_the_watcher_does_not_run);
    tcase_add_test(cases, a_give_passes_the_lock_to_the_heir_and_to_nobody_else);
    tcase_add_test(cases, an_heir_lets_nobody_take_the_watch_and_gives_it_back_to_the_watcher);
    tcase_add_test(cases, who_waits_for_long_gets_a_lock_that_is_never_free);
    tcase_add_test(cases, all_of_a_crowd_get_their_turns);
    tcase_add_test(cases, a_lock_that_nobody_holds_costs_no_system_call);
#if GR_CHECK > 0
    tcase_add_test(cases, locks_may_be_taken_in_rising_rank);
    tcase_add_test(cases, a_lock_of_the_same_or_a_lower_rank_is_a_broken_l1);
    tcase_add_test(cases, giving_back_what_is_not_held_is_a_broken_l1);
#endif
    suite_add_tcase(suite, cases);
    return suite;
}
