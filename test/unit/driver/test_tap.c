/* SPDX-License-Identifier: Apache-2.0
 * The tap counts every call, refuses exactly the planned ones, and logs what was returned. */
#include <check.h>
#include <pthread.h>

#include "driver/driver.h"

enum { A = GR_ENTRY_cuMemCreate, B = GR_ENTRY_cuMemMap };

static struct gr_tap tap;

static void setup(void) {
    gr_tap_init(&tap);
}

static void teardown(void) {
    gr_tap_fini(&tap);
}

/* What GR_DRIVE does around a call that answers code. */
static gr_cu_result call(int entry, gr_cu_result code) {
    gr_cu_result refused = gr_tap_enter(&tap, entry);
    return refused != GR_CU_SUCCESS ? refused : gr_tap_leave(&tap, entry, code);
}

START_TEST(calls_are_counted_by_entry_and_answers_pass_through) {
    ck_assert_int_eq(call(A, GR_CU_SUCCESS), GR_CU_SUCCESS);
    ck_assert_int_eq(call(A, GR_CU_NOT_READY), GR_CU_NOT_READY);
    ck_assert_int_eq(call(B, GR_CU_SUCCESS), GR_CU_SUCCESS);
    ck_assert_uint_eq(gr_tap_count(&tap, A), 2);
    ck_assert_uint_eq(gr_tap_count(&tap, B), 1);
    ck_assert_uint_eq(gr_tap_total(&tap), 3);
}
END_TEST

START_TEST(the_planned_call_of_an_entry_is_refused_and_no_other) {
    gr_tap_fail(&tap, A, 3, 1, GR_CU_OUT_OF_MEMORY);
    for (int i = 1; i <= 5; i++) {
        ck_assert_int_eq(call(B, GR_CU_SUCCESS), GR_CU_SUCCESS);
        ck_assert_int_eq(call(A, GR_CU_SUCCESS), i == 3 ? GR_CU_OUT_OF_MEMORY : GR_CU_SUCCESS);
    }
    ck_assert_uint_eq(gr_tap_refusals(&tap), 1);
    ck_assert_uint_eq(gr_tap_count(&tap, A), 5);
}
END_TEST

START_TEST(a_plan_for_any_entry_counts_them_together) {
    gr_tap_fail(&tap, GR_TAP_ANY, 2, 2, GR_CU_UNKNOWN);
    ck_assert_int_eq(call(A, GR_CU_SUCCESS), GR_CU_SUCCESS);
    ck_assert_int_eq(call(B, GR_CU_SUCCESS), GR_CU_UNKNOWN);
    ck_assert_int_eq(call(A, GR_CU_SUCCESS), GR_CU_UNKNOWN);
    ck_assert_int_eq(call(B, GR_CU_SUCCESS), GR_CU_SUCCESS);
}
END_TEST

START_TEST(watching_ends_with_the_plan) {
    ck_assert(!atomic_load(&tap.watching));
    gr_tap_fail(&tap, A, 1, 1, GR_CU_UNKNOWN);
    ck_assert(atomic_load(&tap.watching));
    ck_assert_int_eq(call(A, GR_CU_SUCCESS), GR_CU_UNKNOWN);
    ck_assert(!atomic_load(&tap.watching));
    gr_tap_fail(&tap, A, 1, 1, GR_CU_UNKNOWN);
    gr_tap_clear(&tap);
    ck_assert(!atomic_load(&tap.watching));
    ck_assert_int_eq(call(A, GR_CU_SUCCESS), GR_CU_SUCCESS);
}
END_TEST

START_TEST(the_log_holds_every_call_once_in_order) {
    struct gr_tap_record log[3];
    gr_tap_fail(&tap, B, 1, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_uint_eq(gr_tap_log(&tap, log, GR_COUNT(log)), 0);
    (void)call(A, GR_CU_SUCCESS);
    (void)call(B, GR_CU_SUCCESS);
    (void)call(A, GR_CU_NOT_READY);
    (void)call(A, GR_CU_SUCCESS); /* finds no room, yet is counted */
    ck_assert_uint_eq(gr_tap_log(&tap, NULL, 0), 4);
    (void)call(A, GR_CU_SUCCESS);
    ck_assert_int_eq(log[0].entry, A);
    ck_assert(!log[0].refused);
    ck_assert_int_eq(log[1].entry, B);
    ck_assert(log[1].refused);
    ck_assert_int_eq(log[1].code, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(log[2].entry, A);
    ck_assert_int_eq(log[2].code, GR_CU_NOT_READY);
    ck_assert(!atomic_load(&tap.watching));
}
END_TEST

enum { THREADS = 4, ROUNDS = 5000, PLANNED = 100 };

static void *hammer(void *refused) {
    for (int i = 0; i < ROUNDS; i++)
        if (call(i % 2 ? A : B, GR_CU_SUCCESS) != GR_CU_SUCCESS) ++*(size_t *)refused;
    return NULL;
}

START_TEST(threads_together_see_each_planned_refusal_once) {
    pthread_t threads[THREADS];
    size_t refused[THREADS] = {0}, sum = 0;
    struct gr_tap_record log[16];
    gr_tap_fail(&tap, A, 10, PLANNED, GR_CU_UNKNOWN);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, &refused[i]), 0);
    for (int i = 0; i < 100; i++) {
        (void)gr_tap_log(&tap, log, GR_COUNT(log));
        (void)gr_tap_log(&tap, NULL, 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += refused[i];
    }
    ck_assert_uint_eq(sum, PLANNED);
    ck_assert_uint_eq(gr_tap_refusals(&tap), PLANNED);
    ck_assert_uint_eq(gr_tap_total(&tap), THREADS * ROUNDS);
}
END_TEST

Suite *suite_tap(void) {
    Suite *suite = suite_create("tap");
    TCase *cases = tcase_create("tap");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, calls_are_counted_by_entry_and_answers_pass_through);
    tcase_add_test(cases, the_planned_call_of_an_entry_is_refused_and_no_other);
    tcase_add_test(cases, a_plan_for_any_entry_counts_them_together);
    tcase_add_test(cases, watching_ends_with_the_plan);
    tcase_add_test(cases, the_log_holds_every_call_once_in_order);
    tcase_add_test(cases, threads_together_see_each_planned_refusal_once);
    suite_add_tcase(suite, cases);
    return suite;
}
