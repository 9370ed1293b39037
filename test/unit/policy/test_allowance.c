/* SPDX-License-Identifier: Apache-2.0
 * Moving may take a hundredth of the time, in one go no more than was saved up. Times are the test's. */
#include <check.h>

#include "policy/allowance.h"

#define MS UINT64_C(1000000)

START_TEST(what_is_saved_up_may_be_spent_at_once) {
    struct gr_allowance allowance;
    gr_allowance_init(&allowance, 5 * MS);
    ck_assert(!gr_allowance_spend(&allowance, 5 * MS, 10 * MS));
    ck_assert(!gr_allowance_spend(&allowance, 5 * MS, 6 * MS));
    ck_assert(gr_allowance_spend(&allowance, 5 * MS, 1));
}
END_TEST

START_TEST(a_hundredth_of_the_time_may_be_spent_for_ever) {
    struct gr_allowance allowance;
    uint64_t now = 0;
    gr_allowance_init(&allowance, now);
    ck_assert(!gr_allowance_spend(&allowance, now, GR_ALLOWANCE_MOST));
    for (int i = 0; i < 1000; i++) {
        now += 100 * MS;
        ck_assert(!gr_allowance_spend(&allowance, now, MS));
    }
    now += 100 * MS;
    ck_assert(gr_allowance_spend(&allowance, now, MS + 1));
}
END_TEST

START_TEST(a_move_that_costs_more_than_there_is_takes_all_there_is) {
    struct gr_allowance allowance;
    gr_allowance_init(&allowance, 0);
    ck_assert(gr_allowance_spend(&allowance, 0, UINT64_MAX));
    ck_assert(gr_allowance_spend(&allowance, 0, 1));
    ck_assert(!gr_allowance_spend(&allowance, 100, 1));
}
END_TEST

START_TEST(a_long_time_without_moves_saves_up_no_more_than_the_most) {
    struct gr_allowance allowance;
    gr_allowance_init(&allowance, 0);
    ck_assert(!gr_allowance_spend(&allowance, 0, GR_ALLOWANCE_MOST));
    ck_assert(!gr_allowance_spend(&allowance, UINT64_MAX, GR_ALLOWANCE_MOST));
    ck_assert(gr_allowance_spend(&allowance, UINT64_MAX, 1));
}
END_TEST

START_TEST(what_was_given_beyond_the_most_is_kept_until_it_is_spent) {
    struct gr_allowance allowance = {.at = 0, .credit = 3 * GR_ALLOWANCE_MOST};
    ck_assert(!gr_allowance_spend(&allowance, 1000 * MS, GR_ALLOWANCE_MOST));
    ck_assert(!gr_allowance_spend(&allowance, 1000 * MS, 2 * GR_ALLOWANCE_MOST));
    ck_assert(gr_allowance_spend(&allowance, 1000 * MS, 1));
}
END_TEST

Suite *suite_allowance(void) {
    Suite *suite = suite_create("allowance");
    TCase *cases = tcase_create("allowance");
    tcase_add_test(cases, what_is_saved_up_may_be_spent_at_once);
    tcase_add_test(cases, a_hundredth_of_the_time_may_be_spent_for_ever);
    tcase_add_test(cases, a_move_that_costs_more_than_there_is_takes_all_there_is);
    tcase_add_test(cases, a_long_time_without_moves_saves_up_no_more_than_the_most);
    tcase_add_test(cases, what_was_given_beyond_the_most_is_kept_until_it_is_spent);
    suite_add_tcase(suite, cases);
    return suite;
}
