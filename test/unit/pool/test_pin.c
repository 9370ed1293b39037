/* SPDX-License-Identifier: Apache-2.0
 * What a block would pin is counted by whole extents, and a sparing pool pins as little as it can. */
#include <check.h>

#include "pool/pin.h"
#include "support/fixture.h"
#include "support/lone_pool.h"

enum { G = 2 * 1024 * 1024 };

static struct lone_pool lone;
static struct gr_segment *segment;

static void setup(void) {
    lone_pool_open(&lone, GR_LARGE, true);
    segment = lone_pool_add_range(&lone, 32);
}

static void teardown(void) {
    const char *broken = lone_pool_check(&lone);
    ck_assert_msg(broken == NULL, "%s", broken);
    lone_pool_close(&lone);
}

static size_t cost(const struct gr_block *b, size_t from, size_t to) {
    return gr_pin_cost(&segment->range, b, b->addr + from, b->addr + to);
}

START_TEST(the_first_block_in_an_extent_pins_all_of_it_and_the_next_one_nothing) {
    struct gr_block *b = lone_pool_take(&lone, 6 * (size_t)G, 3), *rest; /* two extents of three */
    lone_pool_put(&lone, b);
    ck_assert_uint_eq(cost(b, 0, 512), 3);
    ck_assert_uint_eq(cost(b, 0, 3 * G), 3);
    ck_assert_uint_eq(cost(b, 3 * G - 512, 3 * G + 512), 6);
    ck_assert_uint_eq(cost(b, 5 * (size_t)G, 6 * (size_t)G), 3);
    b = lone_pool_take(&lone, 512, 1);
    rest = b->next;
    ck_assert_uint_eq(cost(rest, 0, 2 * G), 0);
    ck_assert_uint_eq(cost(rest, 0, 3 * G), 3);                           /* reaches into the second */
    ck_assert_uint_eq(cost(rest, 6 * (size_t)G - 512, 6 * (size_t)G), 0); /* wholly beyond it */
}
END_TEST

START_TEST(company_is_the_younger_of_two_neighbours_that_are_live) {
    struct gr_block *first = lone_pool_take(&lone, G, 1), *second = lone_pool_take(&lone, G, 1);
    const uint32_t now = gr_pool_now(&lone.pool);
    ck_assert_uint_eq(gr_pin_company(now, first, second), 1);
    ck_assert_uint_eq(gr_pin_company(now, second, NULL), 1);
    ck_assert_uint_eq(gr_pin_company(now, NULL, first), 2);
    ck_assert_uint_eq(gr_pin_company(now, NULL, NULL), UINT32_MAX);
    lone_pool_put(&lone, second);
    ck_assert_uint_eq(gr_pin_company(now, first, second), 2);
    ck_assert_uint_eq(gr_pin_company(now, NULL, second), UINT32_MAX);
}
END_TEST

/* A pinned extent with three granules free, and an idle one of two. */
static void lay(void) {
    struct gr_block *four = lone_pool_take(&lone, 4 * (size_t)G, 4), *two;
    (void)lone_pool_take(&lone, G, 1);
    two = lone_pool_take(&lone, 2 * G, 2);
    (void)lone_pool_take(&lone, G, 1);
    lone_pool_put(&lone, four);
    (void)lone_pool_take(&lone, G, 1);
    lone_pool_put(&lone, two);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 F3 L1 F2 L1 H24");
}

START_TEST(a_pool_takes_the_best_fit_while_memory_is_plenty) {
    lay();
    (void)lone_pool_take(&lone, G, 1);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 F3 L1 L1 F1 L1 H24");
}
END_TEST

START_TEST(a_sparing_pool_takes_what_is_pinned_already) {
    lay();
    lone.pool.sparing = 1;
    (void)lone_pool_take(&lone, G, 1);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 L1 F2 L1 F2 L1 H24");
    (void)lone_pool_take(&lone, 2 * G, 1); /* pinned beats the exact fit */
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 L1 L2 L1 F2 L1 H24");
    (void)lone_pool_take(&lone, G, 1); /* there is nothing else */
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 L1 L2 L1 L1 F1 L1 H24");
}
END_TEST

Suite *suite_pin(void) {
    Suite *suite = suite_create("pin");
    TCase *cases = tcase_create("pin");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_first_block_in_an_extent_pins_all_of_it_and_the_next_one_nothing);
    tcase_add_test(cases, company_is_the_younger_of_two_neighbours_that_are_live);
    tcase_add_test(cases, a_pool_takes_the_best_fit_while_memory_is_plenty);
    tcase_add_test(cases, a_sparing_pool_takes_what_is_pinned_already);
    suite_add_tcase(suite, cases);
    return suite;
}
