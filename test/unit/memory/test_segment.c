/* SPDX-License-Identifier: Apache-2.0
 * Segments of both kinds open with one tile, close without a trace, and their check ties tiles to
 * what lies behind them. */
#include <check.h>

#include "memory/segment.h"
#include "support/fixture.h"
#include "support/lone_pool.h"

static struct lone_pool lone;

static void setup(void) {
    lone_pool_open(&lone, GR_LARGE, true);
    ck_assert(gr_slab_reserve(&lone.pool.blocks, 8));
}

static void teardown(void) {
    lone_pool_close(&lone);
}

START_TEST(an_expandable_segment_is_born_as_one_hole) {
    struct gr_segment s;
    ck_assert_int_eq(gr_segment_open_expandable(&s, &lone.driver, gr_slab_take(&lone.pool.blocks),
                                                32 * GR_MIB, 2 * GR_MIB),
                     GRANARY_OK);
    ck_assert_int_eq(s.kind, GR_SEGMENT_EXPANDABLE);
    ck_assert_uint_eq(s.size, 32 * GR_MIB);
    ck_assert_str_eq(lone_pool_tiles(&s), "H16");
    ck_assert_ptr_null(gr_segment_check(&s, false));
    ck_assert_uint_eq(fixture_held().handles, 0); /* nothing behind it yet */
    gr_slab_give(&lone.pool.blocks, s.first);
    gr_segment_close(&s, &lone.driver);
    ck_assert_uint_eq(fixture_held().reservations, 0);
}
END_TEST

START_TEST(a_classic_segment_is_born_moving_and_leaves_no_context_behind) {
    struct gr_segment s;
    gr_cu_context current = lone.driver.context;
    ck_assert_int_eq(gr_segment_open_classic(&s, &lone.driver, gr_slab_take(&lone.pool.blocks), 20 * GR_MIB),
                     GRANARY_OK);
    ck_assert_int_eq(s.kind, GR_SEGMENT_CLASSIC);
    ck_assert_str_eq(lone_pool_tiles(&s), "M10");
    ck_assert_ptr_null(gr_segment_check(&s, true));
    ck_assert_str_eq(gr_segment_check(&s, false), "B4");
    ck_assert_uint_eq(fixture_held().allocated_bytes, 20 * GR_MIB);
    ck_assert_int_eq(lone.driver.call.cuCtxGetCurrent(&current), GR_CU_SUCCESS);
    ck_assert_ptr_null(current);
    gr_slab_give(&lone.pool.blocks, s.first);
    gr_segment_close(&s, &lone.driver);
    ck_assert_uint_eq(fixture_held().allocations, 0);
}
END_TEST

START_TEST(an_opening_that_is_refused_leaves_the_tile_to_its_caller) {
    struct gr_segment s;
    struct gr_block *tile = gr_slab_take(&lone.pool.blocks);
    size_t spare = lone.pool.blocks.spare;
    gr_tap_fail(&lone.driver.tap, GR_ENTRY_cuMemAlloc, 1, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_segment_open_classic(&s, &lone.driver, tile, 20 * GR_MIB), GRANARY_OUT_OF_MEMORY);
    gr_tap_fail(&lone.driver.tap, GR_ENTRY_cuMemAddressReserve, 1, UINT64_MAX, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_segment_open_expandable(&s, &lone.driver, tile, 8 * GR_MIB, 2 * GR_MIB),
                     GRANARY_ADDRESS_SPACE);
    gr_tap_clear(&lone.driver.tap);
    ck_assert_uint_eq(lone.pool.blocks.spare, spare);
    gr_slab_give(&lone.pool.blocks, tile);
    ck_assert_uint_eq(fixture_held().allocations + fixture_held().reservations, 0);
}
END_TEST

START_TEST(holding_is_from_the_first_byte_to_the_last) {
    struct gr_segment *s = lone_pool_add_range(&lone, 4);
    ck_assert(gr_segment_holds(s, s->base) && gr_segment_holds(s, s->base + s->size - 1));
    ck_assert(!gr_segment_holds(s, s->base - 1) && !gr_segment_holds(s, s->base + s->size));
}
END_TEST

START_TEST(tiles_that_do_not_cover_the_segment_break_m1) {
    struct gr_segment *s = lone_pool_add_range(&lone, 8);
    (void)lone_pool_take(&lone, 4 * GR_MIB, 1);
    ck_assert_ptr_null(gr_segment_check(s, false));
    s->size += 2 * GR_MIB;
    ck_assert_str_eq(gr_segment_check(s, false), "M1");
    s->size -= 2 * GR_MIB;
    struct gr_block *first = s->first;
    s->first = first->next;
    ck_assert_str_eq(gr_segment_check(s, false), "M1");
    s->first = NULL;
    ck_assert_str_eq(gr_segment_check(s, false), "M1");
    s->first = first;
    ck_assert_ptr_null(gr_segment_check(s, false));
}
END_TEST

START_TEST(a_block_over_nothing_and_a_hole_over_memory_break_m2) {
    struct gr_segment *s = lone_pool_add_range(&lone, 8);
    struct gr_block *b = lone_pool_take(&lone, 4 * GR_MIB, 2);
    ck_assert_str_eq(lone_pool_tiles(s), "L2 H6");
    b->next->state = GR_BLOCK_FREE; /* free, says the tile; nothing there, says the range */
    ck_assert_str_eq(gr_segment_check(s, false), "M2");
    b->next->state = GR_BLOCK_LIVE;
    b->state = GR_BLOCK_HOLE;
    ck_assert_str_eq(gr_segment_check(s, false), "M2");
    b->state = GR_BLOCK_LIVE;
    b->next->state = GR_BLOCK_HOLE;
    ck_assert_ptr_null(gr_segment_check(s, false));
    s->range.mapped++; /* and what the range says is passed on */
    ck_assert_str_eq(gr_segment_check(s, false), "R2");
    s->range.mapped--;
    lone_pool_put(&lone, b);
}
END_TEST

Suite *suite_segment(void) {
    Suite *suite = suite_create("segment");
    TCase *cases = tcase_create("segment");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, an_expandable_segment_is_born_as_one_hole);
    tcase_add_test(cases, a_classic_segment_is_born_moving_and_leaves_no_context_behind);
    tcase_add_test(cases, an_opening_that_is_refused_leaves_the_tile_to_its_caller);
    tcase_add_test(cases, holding_is_from_the_first_byte_to_the_last);
    tcase_add_test(cases, tiles_that_do_not_cover_the_segment_break_m1);
    tcase_add_test(cases, a_block_over_nothing_and_a_hole_over_memory_break_m2);
    suite_add_tcase(suite, cases);
    return suite;
}
