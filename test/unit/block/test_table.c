/* SPDX-License-Identifier: Apache-2.0
 * The address table names the owner of every address, with finer tables where owners meet, and never
 * reads past what is covered. */
#include <check.h>

#include "block/table.h"
#include "support/hot.h"
#include "support/rng.h"

static struct gr_address_table table;
static int a, b, c; /* owners */

static void setup(void) {
    ck_assert(gr_table_init(&table));
}

static void teardown(void) {
    gr_table_fini(&table);
    ck_assert_ptr_null(table.root);
}

static const gr_addr base = 0x7f1240000000; /* a multiple of 1 GiB */

START_TEST(addresses_that_are_not_covered_or_not_of_this_world_have_no_owner) {
    static const gr_addr odd[] = {
        0, 100, 512, UINT64_C(1) << 47, (UINT64_C(1) << 48) - 1, UINT64_C(1) << 48, UINT64_MAX};
    ck_assert(gr_table_cover(&table, base, 2 * GR_MIB, &a));
    for (size_t i = 0; i < GR_COUNT(odd); i++) ck_assert_ptr_null(gr_table_get(&table, odd[i]));
    ck_assert_ptr_null(gr_table_get(&table, base - 1));
    ck_assert_ptr_null(gr_table_get(&table, base + 2 * GR_MIB));
}
END_TEST

START_TEST(every_address_of_a_segment_has_its_owner_also_odd_ones) {
    ck_assert(gr_table_cover(&table, base + 4 * GR_MIB, 2 * GR_MIB, &a));
    ck_assert_ptr_eq(gr_table_get(&table, base + 4 * GR_MIB), &a);
    ck_assert_ptr_eq(gr_table_get(&table, base + 4 * GR_MIB + 1), &a);
    ck_assert_ptr_eq(gr_table_get(&table, base + 6 * GR_MIB - 1), &a);
    ck_assert_uint_eq(table.leaves, 1);
    ck_assert_uint_eq(table.pages, 0);
}
END_TEST

START_TEST(whole_gibibytes_need_no_leaf) {
    ck_assert(gr_table_cover(&table, base - 2 * GR_MIB, 3 * GR_GIB + 4 * GR_MIB, &a));
    ck_assert_uint_eq(table.leaves, 2); /* at both edges */
    for (gr_addr addr = base - 2 * GR_MIB; addr < base + 3 * GR_GIB + 2 * GR_MIB; addr += GR_MIB)
        ck_assert_ptr_eq(gr_table_get(&table, addr), &a);
    ck_assert_ptr_null(gr_table_get(&table, base - 2 * GR_MIB - 1));
    ck_assert_ptr_null(gr_table_get(&table, base + 3 * GR_GIB + 2 * GR_MIB));
}
END_TEST

START_TEST(segments_that_meet_in_a_unit_have_each_its_part) {
    /* As with granules of 64 KiB. */
    gr_addr middle = base + 5 * GR_MIB + 64 * GR_KIB;
    ck_assert(gr_table_cover(&table, base, middle - base, &a));
    ck_assert_uint_eq(table.pages, 1);
    ck_assert(gr_table_cover(&table, middle, 4 * GR_MIB, &b));
    ck_assert_uint_eq(table.pages, 2); /* the shared one, and the one at the far end */
    ck_assert_ptr_eq(gr_table_get(&table, base), &a);
    ck_assert_ptr_eq(gr_table_get(&table, middle - 512), &a);
    ck_assert_ptr_eq(gr_table_get(&table, middle), &b);
    ck_assert_ptr_eq(gr_table_get(&table, middle + 3 * GR_MIB), &b);
    ck_assert_ptr_null(gr_table_get(&table, middle + 4 * GR_MIB));
}
END_TEST

START_TEST(a_part_that_gets_another_owner_leaves_the_rest_to_the_first) {
    ck_assert(gr_table_cover(&table, base, 2 * GR_GIB, &a));
    ck_assert(gr_table_cover(&table, base + 10 * GR_MIB, 2 * GR_MIB, &b));
    ck_assert(gr_table_cover(&table, base + 11 * GR_MIB + 512, 512, &c));
    ck_assert_ptr_eq(gr_table_get(&table, base + 10 * GR_MIB - 1), &a);
    ck_assert_ptr_eq(gr_table_get(&table, base + 10 * GR_MIB), &b);
    ck_assert_ptr_eq(gr_table_get(&table, base + 11 * GR_MIB), &b);
    ck_assert_ptr_eq(gr_table_get(&table, base + 11 * GR_MIB + 512), &c);
    ck_assert_ptr_eq(gr_table_get(&table, base + 11 * GR_MIB + 1024), &b);
    ck_assert_ptr_eq(gr_table_get(&table, base + 12 * GR_MIB), &a);
    ck_assert_ptr_eq(gr_table_get(&table, base + GR_GIB), &a);
    /* And back, through the finer tables, which stay. */
    ck_assert(gr_table_cover(&table, base, 2 * GR_GIB, &c));
    for (gr_addr addr = base; addr < base + 20 * GR_MIB; addr += 512)
        ck_assert_ptr_eq(gr_table_get(&table, addr), &c);
    ck_assert_uint_eq(table.leaves, 1);
    ck_assert_uint_eq(table.pages, 1);
}
END_TEST

START_TEST(covering_again_makes_nothing_new) {
    ck_assert(gr_table_cover(&table, base, 4 * GR_MIB + 512, &a));
    size_t pages = table.pages, leaves = table.leaves;
    ck_assert(gr_table_cover(&table, base, 4 * GR_MIB + 512, &b));
    ck_assert_uint_eq(table.pages, pages);
    ck_assert_uint_eq(table.leaves, leaves);
    ck_assert_ptr_eq(gr_table_get(&table, base), &b);
    ck_assert_ptr_eq(gr_table_get(&table, base + 4 * GR_MIB), &b);
}
END_TEST

START_TEST(what_lies_beyond_48_bits_or_wraps_cannot_be_covered) {
    ck_assert(!gr_table_cover(&table, (UINT64_C(1) << 48) - GR_MIB, 2 * GR_MIB, &a));
    ck_assert(!gr_table_cover(&table, UINT64_MAX - GR_MIB + 1, 2 * GR_MIB, &a));
    ck_assert(!gr_table_cover(&table, base, 0, &a));
    ck_assert_uint_eq(table.leaves, 0);
    ck_assert(gr_table_cover(&table, (UINT64_C(1) << 48) - GR_MIB, GR_MIB, &a));
    ck_assert_ptr_eq(gr_table_get(&table, (UINT64_C(1) << 48) - 1), &a);
}
END_TEST

START_TEST(random_segments_agree_with_an_array) {
    enum { STEPS = 3 * 2048 }; /* of 512 bytes: three units over the edge of a GiB */
    static int *owner[STEPS];
    int *const owners[] = {&a, &b, &c};
    const gr_addr first = base - GR_MIB;
    struct rng rng = {5};
    for (int round = 0; round < 2000; round++) {
        size_t from = rng_below(&rng, STEPS), count = rng_between(&rng, 1, STEPS - from);
        int *mine = owners[rng_below(&rng, 3)];
        if (rng_once_in(&rng, 2)) count = gr_min(count, 16);
        HOT_ASSERT(gr_table_cover(&table, first + from * 512, count * 512, mine));
        for (size_t i = from; i < from + count; i++) owner[i] = mine;
        for (int n = 0; n < 50; n++) {
            size_t look = rng_below(&rng, STEPS);
            HOT_ASSERT(gr_table_get(&table, first + look * 512 + rng_below(&rng, 512)) == owner[look]);
        }
    }
}
END_TEST

Suite *suite_table(void) {
    Suite *suite = suite_create("table");
    TCase *cases = tcase_create("table");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, addresses_that_are_not_covered_or_not_of_this_world_have_no_owner);
    tcase_add_test(cases, every_address_of_a_segment_has_its_owner_also_odd_ones);
    tcase_add_test(cases, whole_gibibytes_need_no_leaf);
    tcase_add_test(cases, segments_that_meet_in_a_unit_have_each_its_part);
    tcase_add_test(cases, a_part_that_gets_another_owner_leaves_the_rest_to_the_first);
    tcase_add_test(cases, covering_again_makes_nothing_new);
    tcase_add_test(cases, what_lies_beyond_48_bits_or_wraps_cannot_be_covered);
    tcase_add_test(cases, random_segments_agree_with_an_array);
    suite_add_tcase(suite, cases);
    return suite;
}
