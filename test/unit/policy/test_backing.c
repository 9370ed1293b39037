/* SPDX-License-Identifier: Apache-2.0
 * Extent sizing keeps its bounds whatever it is asked, makes few large extents while there is room,
 * and small ones when memory runs out. What it costs is judged by the benchmark, not here. */
#include <check.h>

#include "policy/backing.h"
#include "support/hot.h"
#include "support/rng.h"

START_TEST(an_extent_has_at_least_one_granule_and_at_most_the_need) {
    struct rng rng = {17};
    for (int i = 0; i < 100000; i++) {
        size_t limit = rng_between(&rng, 1, (size_t)1 << rng_between(&rng, 1, 20));
        struct gr_backing b = {
            .need = rng_between(&rng, 1, (size_t)1 << rng_between(&rng, 1, 18)),
            .held = rng_below(&rng, limit + 10), /* a limit may have been lowered below it */
            .limit = rng_once_in(&rng, 10) ? SIZE_MAX / (2 * GR_MIB) : limit,
            .usual = rng_between(&rng, 1, 64),
            .class = rng_once_in(&rng, 2) ? GR_SMALL : GR_LARGE};
        size_t next = gr_backing_next(&b);
        HOT_ASSERT(next >= 1 && next <= b.need);
    }
}
END_TEST

START_TEST(growth_on_an_empty_card_takes_extents_at_which_kernels_lose_no_bandwidth) {
    struct gr_backing b = {
        .need = 512, .held = 0, .limit = 72192 /* 141 GiB */, .usual = 5, .class = GR_LARGE};
    size_t extents = 0;
    for (; b.need > 0; extents++) {
        size_t next = gr_backing_next(&b);
        ck_assert(next >= 5 || next == b.need);
        b.need -= next;
        b.held += next;
    }
    ck_assert_uint_le(extents, 52);
}
END_TEST

START_TEST(the_last_memory_of_a_card_comes_in_small_pieces) {
    for (size_t left = 1; left < 4; left++) {
        struct gr_backing b = {
            .need = left, .held = 5000 - left, .limit = 5000, .usual = 10, .class = GR_LARGE};
        ck_assert_uint_eq(gr_backing_next(&b), 1);
    }
    struct gr_backing b = {.need = 1000, .held = 71000, .limit = 72192, .usual = 10, .class = GR_LARGE};
    ck_assert_uint_le(gr_backing_next(&b), 10);
}
END_TEST

START_TEST(no_extent_is_more_than_a_small_part_of_a_small_card) {
    struct gr_backing b = {.need = 40, .held = 600, .limit = 1024, .usual = 5, .class = GR_LARGE};
    ck_assert_uint_eq(gr_backing_next(&b), 2);
    b.limit = 100;
    b.held = 50;
    ck_assert_uint_eq(gr_backing_next(&b), 1);
}
END_TEST

START_TEST(memory_is_short_from_seven_eighths_of_the_limit_on) {
    ck_assert(!gr_backing_short(699, 800));
    ck_assert(gr_backing_short(700, 800));
    ck_assert(gr_backing_short(900, 800)); /* a limit that was lowered */
    ck_assert(!gr_backing_short(0, SIZE_MAX));
}
END_TEST

Suite *suite_backing(void) {
    Suite *suite = suite_create("backing");
    TCase *cases = tcase_create("backing");
    tcase_add_test(cases, an_extent_has_at_least_one_granule_and_at_most_the_need);
    tcase_add_test(cases, growth_on_an_empty_card_takes_extents_at_which_kernels_lose_no_bandwidth);
    tcase_add_test(cases, the_last_memory_of_a_card_comes_in_small_pieces);
    tcase_add_test(cases, no_extent_is_more_than_a_small_part_of_a_small_card);
    tcase_add_test(cases, memory_is_short_from_seven_eighths_of_the_limit_on);
    suite_add_tcase(suite, cases);
    return suite;
}
