/* SPDX-License-Identifier: Apache-2.0
 * Sizing follows PyTorch's rules to the byte, each named here by its place in their allocator. */
#include <check.h>

#include "policy/sizing.h"
#include "support/hot.h"
#include "support/rng.h"

static size_t rounded(size_t size) {
    size_t out = 0;
    HOT_ASSERT(gr_sizing_round(size, &out));
    return out;
}

static const struct gr_sizing unlimited = {.max_split_size = SIZE_MAX,
                                           .max_non_split_slack = GR_SIZING_LARGE_SEGMENT};
static const struct gr_sizing split_64 = {.max_split_size = 64 * GR_MIB,
                                          .max_non_split_slack = GR_SIZING_LARGE_SEGMENT};

START_TEST(the_constants_are_those_of_pytorch) {
    ck_assert_uint_eq(GR_SIZING_UNIT, 512);               /* kMinBlockSize */
    ck_assert_uint_eq(GR_SIZING_SMALL_MAX, 1048576);      /* kSmallSize */
    ck_assert_uint_eq(GR_SIZING_SMALL_SEGMENT, 2097152);  /* kSmallBuffer */
    ck_assert_uint_eq(GR_SIZING_LARGE_SEGMENT, 20971520); /* kLargeBuffer */
    ck_assert_uint_eq(GR_SIZING_LARGE_DIRECT, 10485760);  /* kMinLargeAlloc */
}
END_TEST

/* round_size */
START_TEST(requests_are_rounded_up_to_512_bytes) {
    static const size_t rows[][2] = {{1, 512},
                                     {511, 512},
                                     {512, 512},
                                     {513, 1024},
                                     {1024, 1024},
                                     {1025, 1536},
                                     {GR_MIB - 1, GR_MIB},
                                     {GR_MIB + 1, GR_MIB + 512},
                                     {3 * GR_GIB + 7, 3 * GR_GIB + 512}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) ck_assert_uint_eq(rounded(rows[i][0]), rows[i][1]);
    struct rng rng = {3};
    for (int i = 0; i < 10000; i++) {
        size_t size = 1 + rng_below(&rng, (size_t)1 << rng_between(&rng, 1, 45)), up = rounded(size);
        HOT_ASSERT(up >= size && up - size < 512 && up % 512 == 0);
    }
}
END_TEST

START_TEST(what_no_device_can_hold_is_refused_and_nothing_wraps) {
    static const size_t wrong[] = {GR_SIZING_MAX + 1,    SIZE_MAX,     SIZE_MAX - 1,    SIZE_MAX - 510,
                                   SIZE_MAX - 511,       SIZE_MAX / 2, (size_t)1 << 60, (size_t)1 << 48,
                                   18446744073708433663u /* pytorch#57571 */};
    ck_assert_uint_eq(rounded(GR_SIZING_MAX), GR_SIZING_MAX);
    for (size_t i = 0; i < GR_COUNT(wrong); i++) {
        size_t out = 7;
        ck_assert(!gr_sizing_round(wrong[i], &out));
        ck_assert_uint_eq(out, 7);
    }
}
END_TEST

/* get_pool */
START_TEST(up_to_1_mib_rounded_is_small_and_more_is_large) {
    ck_assert_int_eq(gr_sizing_class(512), GR_SMALL);
    ck_assert_int_eq(gr_sizing_class(GR_MIB), GR_SMALL);
    ck_assert_int_eq(gr_sizing_class(GR_MIB + 512), GR_LARGE);
    ck_assert_int_eq(gr_sizing_class(rounded(GR_MIB + 1)), GR_LARGE);
    ck_assert_int_eq(gr_sizing_class(rounded(GR_MIB - 511)), GR_SMALL);
}
END_TEST

/* get_allocation_size */
START_TEST(segments_are_2_mib_20_mib_or_the_request_rounded_to_2_mib) {
    static const size_t rows[][2] = {{512, 2 * GR_MIB},
                                     {GR_MIB, 2 * GR_MIB},
                                     {GR_MIB + 512, 20 * GR_MIB},
                                     {10 * GR_MIB - 512, 20 * GR_MIB},
                                     {10 * GR_MIB, 10 * GR_MIB},
                                     {10 * GR_MIB + 512, 12 * GR_MIB},
                                     {19 * GR_MIB, 20 * GR_MIB},
                                     {GR_GIB, GR_GIB},
                                     {GR_GIB + 512, GR_GIB + 2 * GR_MIB}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) ck_assert_uint_eq(gr_sizing_segment(rows[i][0]), rows[i][1]);
}
END_TEST

/* should_split, small pool */
START_TEST(small_blocks_are_split_when_512_bytes_remain) {
    ck_assert(!gr_sizing_splits(&unlimited, GR_SMALL, 512, 0));
    ck_assert(gr_sizing_splits(&unlimited, GR_SMALL, 512, 512));
    ck_assert(gr_sizing_splits(&split_64, GR_SMALL, GR_MIB, GR_MIB));
}
END_TEST

/* should_split, large pool */
START_TEST(large_blocks_are_split_when_more_than_1_mib_remains) {
    ck_assert(!gr_sizing_splits(&unlimited, GR_LARGE, 2 * GR_MIB, GR_MIB - 512));
    ck_assert(!gr_sizing_splits(&unlimited, GR_LARGE, 2 * GR_MIB, GR_MIB)); /* strictly more */
    ck_assert(gr_sizing_splits(&unlimited, GR_LARGE, 2 * GR_MIB, GR_MIB + 512));
    ck_assert(gr_sizing_splits(&unlimited, GR_LARGE, 60 * GR_GIB, GR_GIB));
}
END_TEST

START_TEST(requests_from_max_split_size_on_are_not_split) {
    ck_assert(gr_sizing_splits(&split_64, GR_LARGE, 64 * GR_MIB - 512, 20 * GR_MIB));
    ck_assert(!gr_sizing_splits(&split_64, GR_LARGE, 64 * GR_MIB, 20 * GR_MIB));
    ck_assert(!gr_sizing_splits(&split_64, GR_LARGE, GR_GIB, 20 * GR_MIB));
}
END_TEST

/* get_free_block, oversize rules */
START_TEST(an_oversize_block_does_not_serve_an_ordinary_request) {
    ck_assert(gr_sizing_fits(&split_64, 64 * GR_MIB - 512, 2 * GR_MIB));
    ck_assert(!gr_sizing_fits(&split_64, 64 * GR_MIB, 2 * GR_MIB));
    ck_assert(!gr_sizing_fits(&split_64, GR_GIB, 64 * GR_MIB - 512));
}
END_TEST

START_TEST(an_oversize_request_takes_a_block_that_is_less_than_20_mib_too_large) {
    ck_assert(gr_sizing_fits(&split_64, 64 * GR_MIB, 64 * GR_MIB));
    ck_assert(gr_sizing_fits(&split_64, 84 * GR_MIB - 512, 64 * GR_MIB));
    ck_assert(!gr_sizing_fits(&split_64, 84 * GR_MIB, 64 * GR_MIB));
}
END_TEST

START_TEST(without_max_split_size_every_block_fits) {
    ck_assert(gr_sizing_fits(&unlimited, (size_t)1 << 46, 512));
    ck_assert(gr_sizing_fits(&unlimited, (size_t)1 << 46, (size_t)1 << 45));
}
END_TEST

/* ---- address space ---------------------------------------------------------------------------- */

START_TEST(the_first_pools_of_a_card_reserve_an_eighth_more_than_it_has) {
    size_t card = 141 * GR_GIB, range = gr_sizing_range(card, 0, 2 * GR_MIB, 2 * GR_MIB);
    ck_assert(range >= card + card / 8 && range < card + card / 8 + 2 * GR_MIB);
    ck_assert_uint_eq(range % (2 * GR_MIB), 0);
}
END_TEST

START_TEST(a_range_is_never_smaller_than_the_need_and_always_whole_granules) {
    struct rng rng = {21};
    for (int i = 0; i < 10000; i++) {
        size_t granule = (size_t)1 << rng_between(&rng, 12, 25);
        size_t need = granule * rng_between(&rng, 1, 1 << 16);
        size_t used = rng_below(&rng, (size_t)40 << 40), card = rng_between(&rng, GR_MIB, 256 * GR_GIB);
        size_t range = gr_sizing_range(card, used, need, granule);
        HOT_ASSERT(range >= need && range % granule == 0);
        HOT_ASSERT(range <= gr_max(need, card + card / 8) + granule);
    }
}
END_TEST

START_TEST(many_pools_together_stay_within_the_budget_and_shrink_gradually) {
    size_t used = 0, last = SIZE_MAX;
    for (int pool = 0; pool < 1600;
         pool++) { /* case 16: 100 streams, 2 pools, 8 devices, if it were one handle */
        size_t range = gr_sizing_range(141 * GR_GIB, used, 2 * GR_MIB, 2 * GR_MIB);
        ck_assert_uint_le(range, last);
        last = range;
        used += range;
        if (pool == 15) ck_assert_uint_ge(range, 141 * GR_GIB); /* a handful of streams gets all it can use */
    }
    ck_assert_uint_le(used, GR_SIZING_ADDRESS_BUDGET + 1600 * 2 * GR_MIB);
}
END_TEST

Suite *suite_sizing(void) {
    Suite *suite = suite_create("sizing");
    TCase *cases = tcase_create("sizing");
    tcase_add_test(cases, the_constants_are_those_of_pytorch);
    tcase_add_test(cases, requests_are_rounded_up_to_512_bytes);
    tcase_add_test(cases, what_no_device_can_hold_is_refused_and_nothing_wraps);
    tcase_add_test(cases, up_to_1_mib_rounded_is_small_and_more_is_large);
    tcase_add_test(cases, segments_are_2_mib_20_mib_or_the_request_rounded_to_2_mib);
    tcase_add_test(cases, small_blocks_are_split_when_512_bytes_remain);
    tcase_add_test(cases, large_blocks_are_split_when_more_than_1_mib_remains);
    tcase_add_test(cases, requests_from_max_split_size_on_are_not_split);
    tcase_add_test(cases, an_oversize_block_does_not_serve_an_ordinary_request);
    tcase_add_test(cases, an_oversize_request_takes_a_block_that_is_less_than_20_mib_too_large);
    tcase_add_test(cases, without_max_split_size_every_block_fits);
    tcase_add_test(cases, the_first_pools_of_a_card_reserve_an_eighth_more_than_it_has);
    tcase_add_test(cases, a_range_is_never_smaller_than_the_need_and_always_whole_granules);
    tcase_add_test(cases, many_pools_together_stay_within_the_budget_and_shrink_gradually);
    suite_add_tcase(suite, cases);
    return suite;
}
