/* SPDX-License-Identifier: Apache-2.0
 * Names: each once, in order, whatever the order they came in. */
#include <check.h>
#include <stdint.h>

#include "tool/names.h"

START_TEST(texts_are_there_once_and_in_order) {
    const char *const texts[] = {"b", "", "b", "a", NULL, "a", "a", "c"};
    struct names names = {0};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) ck_assert(names_add_text(&names, texts[i]));
    names_sort(&names);
    ck_assert_uint_eq(names.count, 4);
    ck_assert_uint_eq(names_text_index(&names, NULL), 0);
    ck_assert_uint_eq(names_text_index(&names, "a"), 1);
    ck_assert_uint_eq(names_text_index(&names, "c"), 3);
    names_free(&names);
    ck_assert_uint_eq(names.count, 0);
}
END_TEST

START_TEST(pairs_are_compared_as_numbers_without_a_sign) {
    struct names names = {0};
    ck_assert(names_add_pair(&names, UINT64_MAX, 0));
    ck_assert(names_add_pair(&names, 1, UINT64_MAX));
    ck_assert(names_add_pair(&names, 1, 2));
    ck_assert(names_add_pair(&names, UINT64_MAX, 0));
    names_sort(&names);
    ck_assert_uint_eq(names.count, 3);
    ck_assert_uint_eq(names_pair_index(&names, 1, 2), 0);
    ck_assert_uint_eq(names_pair_index(&names, 1, UINT64_MAX), 1);
    ck_assert_uint_eq(names_pair_index(&names, UINT64_MAX, 0), 2);
    names_free(&names);
}
END_TEST

Suite *suite_names(void);
Suite *suite_names(void) {
    Suite *suite = suite_create("names");
    TCase *all = tcase_create("names");
    tcase_add_test(all, texts_are_there_once_and_in_order);
    tcase_add_test(all, pairs_are_compared_as_numbers_without_a_sign);
    suite_add_tcase(suite, all);
    return suite;
}
