/* SPDX-License-Identifier: Apache-2.0
 * The biased mutex excludes, whoever the owner is and however he changes; it is earned, and taken away. */
#include <check.h>
#include <pthread.h>
#include <sched.h>

#include "base/bias.h"
#include "support/fixture.h"

enum { SOON = 8, THREADS = 4, ROUNDS = 40000 };

static struct gr_bias bias;
static long counter; /* guarded by bias, and by nothing else */

/* A bias that is earned soon, if the kernel lets it be earned. */
static void begin(struct gr_bias *b) {
    gr_bias_init(b, GR_RANK_POOL);
    ck_assert_uint_gt(b->earn, SOON);
    if (b->earn != UINT64_MAX) b->earn = SOON;
}

static bool is_possible(void) {
    return bias.earn != UINT64_MAX;
}

/* Thread that is the owner, or 0. */
static uintptr_t owner_of(struct gr_bias *b) {
    return atomic_load(&b->owner)->thread;
}

/* How many threads are inside as owners. */
static int insiders(struct gr_bias *b) {
    int sum = 0;
    for (int i = 0; i < GR_BIAS_SEATS; i++) sum += atomic_load(&b->seat[i].inside);
    return sum;
}

static void take_often(int times) {
    for (int i = 0; i < times; i++) {
        gr_bias_take(&bias);
        gr_bias_give(&bias);
    }
}

static void *count_once(void *unused) {
    (void)unused;
    gr_bias_take(&bias);
    counter++;
    gr_bias_give(&bias);
    return NULL;
}

static void in_another_thread(void *(*work)(void *), void *argument) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, work, argument), 0);
    pthread_join(thread, NULL);
}

static void setup(void) {
    begin(&bias);
    counter = 0;
}

START_TEST(who_takes_it_often_enough_becomes_the_owner_and_needs_the_lock_no_more) {
    take_often(SOON);
    ck_assert_uint_eq(owner_of(&bias), 0);
    take_often(2);
    ck_assert_uint_eq(owner_of(&bias), is_possible() ? gr_thread_token() : 0);
    gr_bias_take(&bias);
    ck_assert_int_eq(insiders(&bias), is_possible());
    ck_assert_int_eq(atomic_load(&bias.lock.state), !is_possible());
    gr_bias_give(&bias);
    ck_assert_int_eq(insiders(&bias), 0);
    ck_assert_int_eq(atomic_load(&bias.lock.state), 0);
}
END_TEST

START_TEST(the_bias_ends_when_another_thread_comes_and_has_to_be_earned_anew) {
    take_often(2 * SOON);
    in_another_thread(count_once, NULL);
    ck_assert_int_eq(counter, 1);
    ck_assert_uint_eq(owner_of(&bias), 0);
    take_often(SOON);
    ck_assert_uint_eq(owner_of(&bias), 0);
    take_often(2);
    ck_assert_uint_eq(owner_of(&bias), is_possible() ? gr_thread_token() : 0);
}
END_TEST

START_TEST(threads_that_take_turns_earn_nothing) {
    for (int i = 0; i < 3 * SOON; i++) {
        take_often(1);
        in_another_thread(count_once, NULL);
        ck_assert_uint_eq(owner_of(&bias), 0);
    }
}
END_TEST

START_TEST(a_kernel_without_the_barrier_lets_nobody_become_the_owner) {
    bias.earn = UINT64_MAX;
    take_often(100);
    ck_assert_uint_eq(owner_of(&bias), 0);
    in_another_thread(count_once, NULL);
    ck_assert_int_eq(counter, 1);
}
END_TEST

static void *become_owner(void *unused) {
    (void)unused;
    take_often(2 * SOON);
    return NULL;
}

START_TEST(what_a_thread_that_has_ended_owned_can_be_taken) {
    in_another_thread(become_owner, NULL);
    gr_bias_take(&bias);
    ck_assert_int_eq(atomic_load(&bias.lock.state), owner_of(&bias) == 0);
    gr_bias_give(&bias);
    take_often(2 * SOON);
    in_another_thread(count_once, NULL);
    ck_assert_int_eq(counter, 1);
}
END_TEST

static void *try_once(void *taken) {
    *(bool *)taken = gr_bias_try(&bias);
    if (*(bool *)taken) gr_bias_give(&bias);
    return NULL;
}

START_TEST(trying_waits_for_nobody_and_leaves_the_owner_what_he_owns) {
    for (int owned = 0; owned < 2; owned++) {
        bool taken = true;
        if (owned) take_often(2 * SOON);
        gr_bias_take(&bias);
        in_another_thread(try_once, &taken);
        ck_assert(!taken);
        gr_bias_give(&bias);
        in_another_thread(try_once, &taken);
        ck_assert_int_eq(taken, !owned || !is_possible());
        if (owned && is_possible()) ck_assert_uint_eq(owner_of(&bias), gr_thread_token());
    }
}
END_TEST

START_TEST(another_thread_waits_until_the_owner_has_left) {
    pthread_t thread;
    take_often(2 * SOON);
    gr_bias_take(&bias);
    ck_assert_int_eq(pthread_create(&thread, NULL, count_once, NULL), 0);
    while (is_possible() && owner_of(&bias) != 0) sched_yield(); /* it has struck us out */
    for (int i = 0; i < 100; i++) sched_yield();
    ck_assert_int_eq(counter, 0);
    gr_bias_give(&bias);
    pthread_join(thread, NULL);
    ck_assert_int_eq(counter, 1);
}
END_TEST

START_TEST(who_has_knocked_as_the_owner_does_not_await_himself_when_he_is_struck_out) {
    pthread_t thread;
    take_often(2 * SOON);
    fixture_watchdog(20);
    ck_assert(!gr_bias_knock(&bias));
    ck_assert_int_eq(pthread_create(&thread, NULL, count_once, NULL), 0);
    while (is_possible() && owner_of(&bias) != 0) sched_yield();
    gr_bias_await(&bias);
    ck_assert_int_eq(counter, 0);
    gr_bias_give(&bias);
    pthread_join(thread, NULL);
    fixture_watchdog(0);
    ck_assert_int_eq(counter, 1);
}
END_TEST

static pthread_barrier_t entered, leave;

static void *become_owner_and_stay(void *unused) {
    (void)unused;
    take_often(2 * SOON);
    gr_bias_take(&bias);
    pthread_barrier_wait(&entered);
    pthread_barrier_wait(&leave);
    gr_bias_give(&bias);
    return NULL;
}

START_TEST(who_was_struck_out_long_ago_fails_to_enter_and_disturbs_nobody) {
    pthread_t owner, guest;
    if (!is_possible()) return;
    take_often(2 * SOON);
    struct gr_seat *seat = atomic_load(&bias.owner);
    pthread_barrier_init(&entered, NULL, 2);
    pthread_barrier_init(&leave, NULL, 2);
    ck_assert_int_eq(pthread_create(&owner, NULL, become_owner_and_stay, NULL), 0);
    pthread_barrier_wait(&entered);
    ck_assert(
        !gr_bias_enter(&bias, seat)); /* as if this thread had slept since it looked at who is the owner */
    ck_assert_int_eq(pthread_create(&guest, NULL, count_once, NULL), 0);
    while (owner_of(&bias) != 0) sched_yield();
    for (int i = 0; i < 100; i++) sched_yield();
    ck_assert_int_eq(counter, 0); /* the guest waits for the owner */
    pthread_barrier_wait(&leave);
    pthread_join(owner, NULL);
    pthread_join(guest, NULL);
    ck_assert_int_eq(counter, 1);
}
END_TEST

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *own_once_more(void *owned) {
    pthread_mutex_lock(&turn);
    take_often(2 * SOON);
    *(bool *)owned = owner_of(&bias) == gr_thread_token();
    pthread_mutex_unlock(&turn);
    pthread_barrier_wait(&leave); /* threads that live at the same time have different tokens */
    return NULL;
}

START_TEST(more_threads_than_seats_take_it_without_owning_it) {
    enum { MORE = GR_BIAS_SEATS + 2 };
    pthread_t threads[MORE];
    bool owned[MORE];
    int owners = 0;
    pthread_barrier_init(&leave, NULL, MORE + 1);
    for (int i = 0; i < MORE; i++) {
        owned[i] = false;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, own_once_more, &owned[i]), 0);
    }
    pthread_barrier_wait(&leave);
    for (int i = 0; i < MORE; i++) {
        pthread_join(threads[i], NULL);
        owners += owned[i];
    }
    ck_assert_int_eq(owners, is_possible() ? GR_BIAS_SEATS : 0);
    take_often(2 * SOON);
    ck_assert_int_eq(insiders(&bias), 0);
    ck_assert_int_eq(atomic_load(&bias.lock.state), 0);
}
END_TEST

/* Bursts of random length: the owner changes all the time. */
static void *count_in_bursts(void *seed) {
    uint64_t state = *(uint64_t *)seed;
    for (int left = ROUNDS; left > 0;) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        int burst = 1 + (int)(state >> 60) * 4;
        for (int i = 0; i < burst && left > 0; i++, left--) {
            gr_bias_take(&bias);
            counter++;
            gr_bias_give(&bias);
        }
        if (state >> 40 & 1) sched_yield();
    }
    return NULL;
}

START_TEST(threads_that_count_in_bursts_lose_nothing) {
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = (uint64_t)i + 1;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_in_bursts, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ck_assert_int_eq(counter, (long)THREADS * ROUNDS);
    ck_assert_int_eq(atomic_load(&bias.lock.state), 0);
    ck_assert_int_eq(insiders(&bias), 0);
}
END_TEST

/* ---- all at once ------------------------------------------------------------------------------ */

static struct gr_bias each[THREADS];
static long in[THREADS]; /* guarded by each: odd while its thread is in */
static struct gr_lock stopper;
static atomic_int failures;

/* Takes all, and finds nobody in. */
static void stop_all(void) {
    bool doubtful = false;
    gr_lock_take(&stopper);
    for (int i = 0; i < THREADS; i++) doubtful |= gr_bias_knock(&each[i]);
    if (doubtful) gr_bias_barrier();
    for (int i = 0; i < THREADS; i++) gr_bias_await(&each[i]);
    for (int i = 0; i < THREADS; i++) atomic_fetch_add(&failures, in[i] % 2 != 0);
    for (int i = 0; i < THREADS; i++) gr_bias_give(&each[i]);
    gr_lock_give(&stopper);
}

static void *use_own_and_stop(void *number) {
    const int me = *(int *)number;
    for (int i = 0; i < ROUNDS; i++) {
        gr_bias_take(&each[me]);
        in[me]++;
        in[me]++;
        gr_bias_give(&each[me]);
        if (i % 1024 == me) stop_all();
        if (i % 4096 == me) { /* a guest at the neighbour's */
            gr_bias_take(&each[(me + 1) % THREADS]);
            in[(me + 1) % THREADS] += 2;
            gr_bias_give(&each[(me + 1) % THREADS]);
        }
    }
    return NULL;
}

START_TEST(who_takes_all_of_them_finds_every_owner_outside) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    gr_lock_init(&stopper, GR_RANK_LEDGER);
    for (int i = 0; i < THREADS; i++) begin(&each[i]);
    fixture_watchdog(60);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_own_and_stop, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    fixture_watchdog(0);
    ck_assert_int_eq(atomic_load(&failures), 0);
    long sum = 0;
    for (int i = 0; i < THREADS; i++) sum += in[i];
    ck_assert_int_eq(sum, (long)THREADS * (2 * ROUNDS + 2 * ((ROUNDS + 4095) / 4096)));
}
END_TEST

#if GR_CHECK > 0
static void leave_while_another_owns(void *seat) {
    gr_bias_take(&bias);
    atomic_store(&bias.owner, seat);
    gr_bias_give(&bias);
}

START_TEST(who_came_by_the_lock_and_leaves_while_another_is_the_owner_breaks_l2) {
    ck_assert(!fixture_aborts(leave_while_another_owns, &bias.nobody));
    ck_assert(fixture_aborts(leave_while_another_owns, &bias.seat[1]));
}
END_TEST

static void take_in_falling_rank(void *unused) {
    struct gr_lock leaf;
    (void)unused;
    take_often(2 * SOON);
    gr_lock_init(&leaf, GR_RANK_LEAF);
    gr_lock_take(&leaf);
    gr_bias_take(&bias);
}

START_TEST(the_owner_keeps_to_the_ranks_as_well) {
    ck_assert(fixture_aborts(take_in_falling_rank, NULL));
}
END_TEST
#endif

Suite *suite_bias(void) {
    Suite *suite = suite_create("bias");
    TCase *cases = tcase_create("bias");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, who_takes_it_often_enough_becomes_the_owner_and_needs_the_lock_no_more);
    tcase_add_test(cases, the_bias_ends_when_another_thread_comes_and_has_to_be_earned_anew);
    tcase_add_test(cases, threads_that_take_turns_earn_nothing);
    tcase_add_test(cases, a_kernel_without_the_barrier_lets_nobody_become_the_owner);
    tcase_add_test(cases, what_a_thread_that_has_ended_owned_can_be_taken);
    tcase_add_test(cases, trying_waits_for_nobody_and_leaves_the_owner_what_he_owns);
    tcase_add_test(cases, another_thread_waits_until_the_owner_has_left);
    tcase_add_test(cases, who_has_knocked_as_the_owner_does_not_await_himself_when_he_is_struck_out);
    tcase_add_test(cases, who_was_struck_out_long_ago_fails_to_enter_and_disturbs_nobody);
    tcase_add_test(cases, more_threads_than_seats_take_it_without_owning_it);
    tcase_add_test(cases, threads_that_count_in_bursts_lose_nothing);
    tcase_add_test(cases, who_takes_all_of_them_finds_every_owner_outside);
#if GR_CHECK > 0
    tcase_add_test(cases, who_came_by_the_lock_and_leaves_while_another_is_the_owner_breaks_l2);
    tcase_add_test(cases, the_owner_keeps_to_the_ranks_as_well);
#endif
    suite_add_tcase(suite, cases);
    return suite;
}
