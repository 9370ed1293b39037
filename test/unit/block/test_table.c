/* SPDX-License-Identifier: Apache-2.0
 * The address table finds live blocks at their address, with a page where small blocks may lie or a
 * unit is shared, and never reads past what is covered. */
#include <check.h>

#include "block/table.h"
#include "support/hot.h"
#include "support/rng.h"

static struct gr_address_table table;

static void setup(void) {
    ck_assert(gr_table_init(&table));
}

static void teardown(void) {
    gr_table_fini(&table);
    ck_assert_ptr_null(table.root);
}

static const gr_addr base = 0x7f1234000000; /* a multiple of 64 MiB */

START_TEST(addresses_that_are_not_covered_or_not_of_this_world_find_nothing) {
    static const gr_addr odd[] = {
        0, 100, 512, UINT64_C(1) << 47, (UINT64_C(1) << 48) - 1, UINT64_C(1) << 48, UINT64_MAX};
    ck_assert(gr_table_cover(&table, base, 2 * GR_MIB, true));
    for (size_t i = 0; i < GR_COUNT(odd); i++) ck_assert_ptr_null(gr_table_get(&table, odd[i]));
    ck_assert_ptr_null(gr_table_get(&table, base));
    ck_assert_ptr_null(gr_table_get(&table, base + 2 * GR_MIB));
}
END_TEST

START_TEST(small_blocks_are_found_at_their_address_alone) {
    ck_assert(gr_table_cover(&table, base, 2 * GR_MIB, true));
    ck_assert_uint_eq(table.pages, 2);
    ck_assert_uint_eq(table.leaves, 1);
    struct gr_block a = {.addr = base, .size = 512}, b = {.addr = base + 512, .size = 1024},
                    c = {.addr = base + 2 * GR_MIB - 512, .size = 512};
    gr_table_set(&table, &a);
    gr_table_set(&table, &b);
    gr_table_set(&table, &c);
    ck_assert_ptr_eq(gr_table_get(&table, a.addr), &a);
    ck_assert_ptr_eq(gr_table_get(&table, b.addr), &b);
    ck_assert_ptr_eq(gr_table_get(&table, c.addr), &c);
    ck_assert_ptr_null(gr_table_get(&table, b.addr + 512));
    gr_table_clear(&table, &b);
    ck_assert_ptr_null(gr_table_get(&table, b.addr));
    ck_assert_ptr_eq(gr_table_get(&table, a.addr), &a);
}
END_TEST

START_TEST(large_blocks_need_one_entry_a_unit_and_no_page) {
    ck_assert(gr_table_cover(&table, base, 64 * GR_MIB, false));
    ck_assert_uint_eq(table.pages, 0);
    struct gr_block a = {.addr = base, .size = GR_MIB + 512},
                    b = {.addr = base + GR_MIB + 512, .size = 2 * GR_MIB};
    gr_table_set(&table, &a);
    gr_table_set(&table, &b);
    ck_assert_ptr_eq(gr_table_get(&table, a.addr), &a);
    ck_assert_ptr_eq(gr_table_get(&table, b.addr), &b);
    /* Inside a block the unit may answer: callers compare addresses. It answers no other block. */
    ck_assert_ptr_eq(gr_table_get(&table, a.addr + 4096), &a);
    ck_assert_ptr_null(gr_table_get(&table, base + 2 * GR_MIB));
    gr_table_clear(&table, &a);
    ck_assert_ptr_null(gr_table_get(&table, a.addr));
    ck_assert_ptr_eq(gr_table_get(&table, b.addr), &b);
}
END_TEST

START_TEST(a_unit_that_two_segments_share_has_a_page) {
    /* Two segments meet in the middle of a unit, as with granules of 64 KiB. */
    gr_addr middle = base + 5 * GR_MIB + 64 * GR_KIB;
    ck_assert(gr_table_cover(&table, base, middle - base, false));
    ck_assert_uint_eq(table.pages, 1);
    ck_assert(gr_table_cover(&table, middle, 4 * GR_MIB, false));
    ck_assert_uint_eq(table.pages, 2); /* the shared one, and the one at the far end */
    struct gr_block left = {.addr = base + 5 * GR_MIB - 512, .size = 64 * GR_KIB + 512},
                    inside = {.addr = base + 5 * GR_MIB, .size = 64 * GR_KIB},
                    right = {.addr = middle, .size = 3 * GR_MIB};
    gr_table_set(&table, &left);
    gr_table_set(&table, &inside);
    gr_table_set(&table, &right);
    ck_assert_ptr_eq(gr_table_get(&table, left.addr), &left);
    ck_assert_ptr_eq(gr_table_get(&table, inside.addr), &inside);
    ck_assert_ptr_eq(gr_table_get(&table, right.addr), &right);
}
END_TEST

START_TEST(covering_again_makes_nothing_new_and_keeps_what_is_entered) {
    struct gr_block a = {.addr = base + GR_MIB, .size = 512};
    ck_assert(gr_table_cover(&table, base, 4 * GR_MIB, true));
    gr_table_set(&table, &a);
    size_t pages = table.pages, leaves = table.leaves;
    ck_assert(gr_table_cover(&table, base, 4 * GR_MIB, true));
    ck_assert(gr_table_cover(&table, base, 4 * GR_MIB, false));
    ck_assert_uint_eq(table.pages, pages);
    ck_assert_uint_eq(table.leaves, leaves);
    ck_assert_ptr_eq(gr_table_get(&table, a.addr), &a);
}
END_TEST

START_TEST(addresses_that_are_used_for_small_blocks_after_large_ones_get_pages) {
    struct gr_block large = {.addr = base, .size = 2 * GR_MIB}, small = {.addr = base + 512, .size = 512};
    ck_assert(gr_table_cover(&table, base, 2 * GR_MIB, false));
    gr_table_set(&table, &large);
    gr_table_clear(&table, &large);
    ck_assert(gr_table_cover(&table, base, 2 * GR_MIB, true));
    gr_table_set(&table, &small);
    ck_assert_ptr_eq(gr_table_get(&table, small.addr), &small);
    ck_assert_ptr_null(gr_table_get(&table, base));
}
END_TEST

START_TEST(what_lies_beyond_48_bits_or_wraps_cannot_be_covered) {
    ck_assert(!gr_table_cover(&table, (UINT64_C(1) << 48) - GR_MIB, 2 * GR_MIB, false));
    ck_assert(!gr_table_cover(&table, UINT64_MAX - GR_MIB + 1, 2 * GR_MIB, false));
    ck_assert(!gr_table_cover(&table, base, 0, false));
    ck_assert_uint_eq(table.leaves, 0);
    ck_assert(gr_table_cover(&table, (UINT64_C(1) << 48) - GR_MIB, GR_MIB, false));
}
END_TEST

START_TEST(a_range_over_many_leaves_is_covered_to_its_last_unit) {
    struct gr_block last = {.addr = base + 3 * GR_GIB - 2 * GR_MIB, .size = 2 * GR_MIB};
    ck_assert(gr_table_cover(&table, base, 3 * GR_GIB, false));
    ck_assert_uint_ge(table.leaves, 3);
    gr_table_set(&table, &last);
    ck_assert_ptr_eq(gr_table_get(&table, last.addr), &last);
}
END_TEST

START_TEST(random_sets_and_clears_agree_with_an_array) {
    enum { SLOTS = 8 * 2048 };
    static struct gr_block block[SLOTS];
    static bool live[SLOTS];
    struct rng rng = {5};
    ck_assert(gr_table_cover(&table, base, (size_t)SLOTS * 512, true));
    for (size_t i = 0; i < SLOTS; i++) block[i] = (struct gr_block){.addr = base + i * 512, .size = 512};
    for (int step = 0; step < 50000; step++) {
        size_t i = rng_below(&rng, SLOTS), look = rng_below(&rng, SLOTS);
        if (live[i])
            gr_table_clear(&table, &block[i]);
        else
            gr_table_set(&table, &block[i]);
        live[i] = !live[i];
        HOT_ASSERT(gr_table_get(&table, block[look].addr) == (live[look] ? &block[look] : NULL));
    }
}
END_TEST

Suite *suite_table(void) {
    Suite *suite = suite_create("table");
    TCase *cases = tcase_create("table");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, addresses_that_are_not_covered_or_not_of_this_world_find_nothing);
    tcase_add_test(cases, small_blocks_are_found_at_their_address_alone);
    tcase_add_test(cases, large_blocks_need_one_entry_a_unit_and_no_page);
    tcase_add_test(cases, a_unit_that_two_segments_share_has_a_page);
    tcase_add_test(cases, covering_again_makes_nothing_new_and_keeps_what_is_entered);
    tcase_add_test(cases, addresses_that_are_used_for_small_blocks_after_large_ones_get_pages);
    tcase_add_test(cases, what_lies_beyond_48_bits_or_wraps_cannot_be_covered);
    tcase_add_test(cases, a_range_over_many_leaves_is_covered_to_its_last_unit);
    tcase_add_test(cases, random_sets_and_clears_agree_with_an_array);
    suite_add_tcase(suite, cases);
    return suite;
}
