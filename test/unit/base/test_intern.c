/* SPDX-License-Identifier: Apache-2.0
 * Equal bytes have one number, from whatever thread they come; what stands behind a number never moves. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/intern.h"
#include "support/rng.h"

static struct gr_intern intern;

static void setup(void) {
    gr_intern_init(&intern, GR_INTERN_MOST);
}
static void teardown(void) {
    gr_intern_fini(&intern);
}

START_TEST(equal_bytes_have_one_number) {
    char key[] = "activations";
    ck_assert_uint_eq(gr_intern_find(&intern, "activations", 11), 0);
    uint32_t number = gr_intern_put(&intern, key, 11, NULL, 0);
    key[0] = 'A'; /* it was copied */
    ck_assert_uint_eq(number, 1);
    ck_assert_uint_eq(gr_intern_put(&intern, "activations", 11, NULL, 0), 1);
    ck_assert_uint_eq(gr_intern_find(&intern, "activations", 11), 1);
    ck_assert_uint_eq(gr_intern_put(&intern, "activations", 10, NULL, 0), 2);
    ck_assert_uint_eq(gr_intern_put(&intern, "Activations", 11, NULL, 0), 3);
    ck_assert_mem_eq(gr_intern_get(&intern, 1)->bytes, "activations", 11);
}
END_TEST

START_TEST(a_value_comes_with_the_first_put_and_lies_aligned) {
    uint64_t first = 1, second = 2, got;
    ck_assert_uint_eq(gr_intern_put(&intern, "key", 3, &first, sizeof first), 1);
    ck_assert_uint_eq(gr_intern_put(&intern, "key", 3, &second, sizeof second), 1);
    const void *value = gr_intern_value(gr_intern_get(&intern, 1));
    ck_assert_uint_eq((uintptr_t)value % 8, 0);
    memcpy(&got, value, sizeof got);
    ck_assert_uint_eq(got, 1);
}
END_TEST

START_TEST(thousands_of_keys_of_all_lengths_are_found_where_they_were_put) {
    enum { KEYS = 5000 };
    static const struct gr_intern_item *where[KEYS + 1];
    struct rng rng = {7};
    uint64_t key[64];
    for (uint32_t k = 1; k <= KEYS; k++) {
        key[0] = k;
        size_t size = 8 + k % 500;
        for (size_t i = 1; i < 64; i++) key[i] = k * i;
        ck_assert_uint_eq(gr_intern_put(&intern, key, size, NULL, 0), k);
        where[k] = gr_intern_get(&intern, k);
    }
    for (int n = 0; n < 20000; n++) {
        uint32_t k = (uint32_t)rng_between(&rng, 1, KEYS);
        key[0] = k;
        for (size_t i = 1; i < 64; i++) key[i] = k * i;
        uint32_t found = gr_intern_find(&intern, key, 8 + k % 500);
        if (found != k || gr_intern_get(&intern, k) != where[k]) ck_abort_msg("key %u is %u", k, found);
    }
    ck_assert_uint_eq(atomic_load(&intern.count), KEYS);
}
END_TEST

START_TEST(when_the_numbers_are_used_up_what_is_known_is_found_still) {
    gr_intern_init(&intern, 2);
    ck_assert_uint_eq(gr_intern_put(&intern, "a", 1, NULL, 0), 1);
    ck_assert_uint_eq(gr_intern_put(&intern, "b", 1, NULL, 0), 2);
    ck_assert_uint_eq(gr_intern_put(&intern, "c", 1, NULL, 0), 0);
    ck_assert_uint_eq(gr_intern_put(&intern, "a", 1, NULL, 0), 1);
}
END_TEST

START_TEST(an_item_larger_than_an_arena_is_kept) {
    static char key[200000];
    memset(key, 'x', sizeof key);
    ck_assert_uint_eq(gr_intern_put(&intern, "a", 1, NULL, 0), 1);
    ck_assert_uint_eq(gr_intern_put(&intern, key, sizeof key, NULL, 0), 2);
    ck_assert_uint_eq(gr_intern_put(&intern, "b", 1, NULL, 0), 3);
    ck_assert_mem_eq(gr_intern_get(&intern, 2)->bytes, key, sizeof key);
}
END_TEST

enum { THREADS = 4, SHARED = 700 };

static void *put_all(void *argument) {
    uint32_t *number = argument;
    for (uint64_t k = 0; k < SHARED; k++) {
        uint64_t key[2] = {k, ~k};
        number[k] = gr_intern_put(&intern, key, sizeof key, &k, sizeof k);
    }
    return NULL;
}

START_TEST(threads_that_put_the_same_keys_get_the_same_numbers) {
    static uint32_t number[THREADS][SHARED];
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, put_all, number[t]), 0);
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    for (int t = 1; t < THREADS; t++) ck_assert_mem_eq(number[0], number[t], sizeof number[0]);
    ck_assert_uint_eq(atomic_load(&intern.count), SHARED);
}
END_TEST

enum { FOLLOWED = 50000 };

static void *put_in_order(void *argument) {
    for (uint64_t k = 1; k <= FOLLOWED; k++) (void)gr_intern_put(&intern, &k, sizeof k, NULL, 0);
    return argument;
}

START_TEST(a_number_that_was_found_is_counted_already) {
    pthread_t thread;
    uint32_t beyond = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, put_in_order, NULL), 0);
    for (uint64_t k = 1; k <= FOLLOWED; k++) {
        uint32_t number;
        for (unsigned spins = 1; (number = gr_intern_find(&intern, &k, sizeof k)) == 0; spins++)
            if (spins % 1000 == 0) sched_yield();
        beyond += number > atomic_load(&intern.count);
    }
    pthread_join(thread, NULL);
    ck_assert_uint_eq(beyond, 0);
}
END_TEST

Suite *suite_intern(void) {
    Suite *suite = suite_create("intern");
    TCase *cases = tcase_create("intern");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, equal_bytes_have_one_number);
    tcase_add_test(cases, a_value_comes_with_the_first_put_and_lies_aligned);
    tcase_add_test(cases, thousands_of_keys_of_all_lengths_are_found_where_they_were_put);
    tcase_add_test(cases, when_the_numbers_are_used_up_what_is_known_is_found_still);
    tcase_add_test(cases, an_item_larger_than_an_arena_is_kept);
    tcase_add_test(cases, threads_that_put_the_same_keys_get_the_same_numbers);
    tcase_add_test(cases, a_number_that_was_found_is_counted_already);
    suite_add_tcase(suite, cases);
    return suite;
}
