/* SPDX-License-Identifier: Apache-2.0
 * Sizing follows PyTorch's rules to the byte, each named here by its place in their allocator. */
#include <check.h>
#include <stdio.h>

#include "policy/config.h"
#include "policy/sizing.h"
#include "support/hot.h"
#include "support/rng.h"

static struct granary_options options;
static struct gr_sizing unlimited, split_64, divided;

static void setup(void) {
    gr_options_init(&options);
    gr_sizing_set(&unlimited, &options);
    options.max_split_size = 64 * GR_MIB;
    gr_sizing_set(&split_64, &options);
    gr_options_init(&options);
}

/* Sets `divided` to what the key's value says. */
static void divide(const char *value) {
    char string[128];
    snprintf(string, sizeof string, "roundup_power2_divisions:%s", value);
    gr_options_init(&options);
    ck_assert_int_eq(gr_config_parse(&options, string, NULL, GR_CONFIG_STRICT, NULL), GRANARY_OK);
    gr_sizing_set(&divided, &options);
}

static size_t round_with(const struct gr_sizing *sizing, size_t size) {
    size_t out = 0;
    HOT_ASSERT(gr_sizing_round(sizing, size, &out));
    return out;
}

static size_t rounded(size_t size) {
    return round_with(&unlimited, size);
}

/* What the address rule gives without a wish of the options. */
static size_t range(size_t device, size_t used, size_t need, size_t granule) {
    static const struct granary_reserve none = {0};
    const struct gr_range_wish wish = {device, used, need, &none, granule};
    return gr_sizing_range(&wish);
}

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
        ck_assert(!gr_sizing_round(&unlimited, wrong[i], &out));
        ck_assert_uint_eq(out, 7);
    }
}
END_TEST

/* round_size and roundup_power2_next_division, with the sizes that PyTorch's own test asserts. */
START_TEST(sizes_are_rounded_up_to_parts_of_their_power_of_two) {
    static const struct {
        const char *value;
        size_t size, rounded;
    } rows[] = {
        {"4", 1200, 1536}, /* not above 512 x 4: plain */
        {"4", 2048, 2048},
        {"4", 2049, 2560},
        {"4", 84 * GR_MIB, 96 * GR_MIB},
        {"4", 400 * GR_MIB, 448 * GR_MIB},
        {"4", 64 * GR_MIB, 64 * GR_MIB},
        {"2", 3 * GR_KIB + 1, 4 * GR_KIB},
        {"8", GR_MIB + 1, GR_MIB + 128 * GR_KIB},
        {"1", GR_MIB + 1, GR_MIB + 512}, /* no rounding to powers of two */
        {"off", GR_MIB + 1, GR_MIB + 512},
        {"1024", 600 * GR_KIB, 600 * GR_KIB},
        {"1024", 700 * GR_KIB + 1, 700 * GR_KIB + 512},     /* 512 x 1024 is less, a part is 512 */
        {"2147483648", 64 * GR_GIB + 1, 64 * GR_GIB + 512}, /* the size is not above 512 times that */
        {"[64:8,128:2,256:4,512:2,1024:4,>:1]", 84 * GR_MIB, 88 * GR_MIB},
        {"[64:8,128:2,256:4,512:2,1024:4,>:1]", 400 * GR_MIB, 448 * GR_MIB},
        {"[64:8,128:2,256:4,512:2,1024:4,>:1]", 512, 512},
        {"[64:8,128:2,256:4,512:2,1024:4,>:1]", 5 * GR_KIB,
         5 * GR_KIB}, /* the first entry holds below it too */
        {"[64:8,128:2,256:4,512:2,1024:4,>:1]", 5 * GR_KIB + 1, 5 * GR_KIB + 512},
        {"[64:8,128:2,256:4,512:2,1024:4,>:1]", 200 * GR_MIB, 256 * GR_MIB},
        {"[64:8,128:2,256:4,512:2,1024:4,>:1]", 2 * GR_GIB + 1, 2 * GR_GIB + 512},
        {"[256:4,1024:8]", 600 * GR_MIB + 1, 600 * GR_MIB + 512}, /* 512 is not named: plain */
        {"[256:4,1024:8]", 300 * GR_MIB, 320 * GR_MIB},
        {"[256:4,1024:8]", GR_GIB + 1, GR_GIB + 128 * GR_MIB},
        {"[256:4,>:2]", 513 * GR_MIB, 768 * GR_MIB},
        {"[>:2]", 3 * GR_MIB, 3 * GR_MIB},
        {"[>:2]", GR_MIB + 1, GR_MIB + 512},                 /* nothing is named below it */
        {"[32768:2]", (size_t)1 << 45 | 1, (size_t)3 << 44}, /* the last interval has no end */
        {"[131072:2]", 48 * GR_GIB + 1, 64 * GR_GIB},
    };
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        divide(rows[i].value);
        size_t up = round_with(&divided, rows[i].size);
        ck_assert_msg(up == rows[i].rounded, "%s: %zu becomes %zu, not %zu", rows[i].value, rows[i].size, up,
                      rows[i].rounded);
    }
}
END_TEST

START_TEST(rounding_by_parts_never_shrinks_keeps_units_and_wastes_less_than_a_part) {
    struct rng rng = {8};
    for (int i = 0; i < 20000; i++) {
        gr_options_init(&options);
        for (int k = 0; k < GRANARY_SIZE_INTERVALS; k++)
            options.roundup_power2_divisions[k] = rng_once_in(&rng, 3) ? 0 : 1u << rng_below(&rng, 8);
        gr_sizing_set(&divided, &options);
        size_t size = 1 + rng_below(&rng, (size_t)1 << rng_between(&rng, 1, 46)),
               up = round_with(&divided, size);
        unsigned log = gr_log2(size);
        size_t parts = options.roundup_power2_divisions[log < 20 ? 0 : gr_min(log - 20, 15)];
        HOT_ASSERT(up >= size && up % GR_SIZING_UNIT == 0 && up <= GR_SIZING_MAX);
        HOT_ASSERT(up - size < gr_max(parts > 1 ? ((size_t)1 << log) / parts : 0, GR_SIZING_UNIT));
        HOT_ASSERT(round_with(&divided, up) == up); /* a block serves another request of its size */
    }
    size_t out = 7;
    ck_assert(!gr_sizing_round(&divided, GR_SIZING_MAX + 1, &out));
    ck_assert(!gr_sizing_round(&divided, SIZE_MAX, &out));
    ck_assert_uint_eq(out, 7);
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
    for (size_t i = 0; i < GR_COUNT(rows); i++)
        ck_assert_uint_eq(gr_sizing_segment(&unlimited, rows[i][0]), rows[i][1]);
}
END_TEST

START_TEST(large_segment_size_moves_the_size_of_segments_below_10_mib_and_no_other) {
    options.large_segment_size = 64 * GR_MIB;
    gr_sizing_set(&divided, &options);
    ck_assert_uint_eq(gr_sizing_segment(&divided, GR_MIB), 2 * GR_MIB);
    ck_assert_uint_eq(gr_sizing_segment(&divided, GR_MIB + 512), 64 * GR_MIB);
    ck_assert_uint_eq(gr_sizing_segment(&divided, 10 * GR_MIB - 512), 64 * GR_MIB);
    ck_assert_uint_eq(gr_sizing_segment(&divided, 10 * GR_MIB), 10 * GR_MIB);
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

START_TEST(max_non_split_rounding_is_the_slack_of_an_oversize_request) {
    options.max_split_size = 64 * GR_MIB;
    options.max_non_split_rounding = 100 * GR_MIB;
    gr_sizing_set(&divided, &options);
    ck_assert(gr_sizing_fits(&divided, 164 * GR_MIB - 512, 64 * GR_MIB));
    ck_assert(!gr_sizing_fits(&divided, 164 * GR_MIB, 64 * GR_MIB));
    options.max_non_split_rounding = 0; /* then it is large_segment_size */
    options.large_segment_size = 32 * GR_MIB;
    gr_sizing_set(&divided, &options);
    ck_assert(gr_sizing_fits(&divided, 96 * GR_MIB - 512, 64 * GR_MIB));
    ck_assert(!gr_sizing_fits(&divided, 96 * GR_MIB, 64 * GR_MIB));
}
END_TEST

START_TEST(without_max_split_size_every_block_fits) {
    ck_assert(gr_sizing_fits(&unlimited, (size_t)1 << 46, 512));
    ck_assert(gr_sizing_fits(&unlimited, (size_t)1 << 46, (size_t)1 << 45));
}
END_TEST

/* ---- address space ---------------------------------------------------------------------------- */

START_TEST(the_first_pools_of_a_card_reserve_an_eighth_more_than_it_has) {
    size_t card = 141 * GR_GIB, bytes = range(card, 0, 2 * GR_MIB, 2 * GR_MIB);
    ck_assert(bytes >= card + card / 8 && bytes < card + card / 8 + 2 * GR_MIB);
    ck_assert_uint_eq(bytes % (2 * GR_MIB), 0);
}
END_TEST

START_TEST(a_range_is_never_smaller_than_the_need_and_always_whole_granules) {
    struct rng rng = {21};
    for (int i = 0; i < 10000; i++) {
        size_t granule = (size_t)1 << rng_between(&rng, 12, 25);
        size_t need = granule * rng_between(&rng, 1, 1 << 16);
        size_t used = rng_below(&rng, (size_t)40 << 40), card = rng_between(&rng, GR_MIB, 256 * GR_GIB);
        size_t bytes = range(card, used, need, granule);
        HOT_ASSERT(bytes >= need && bytes % granule == 0);
        HOT_ASSERT(bytes <= gr_max(need, card + card / 8) + granule);
    }
}
END_TEST

START_TEST(many_pools_together_stay_within_the_budget_and_shrink_gradually) {
    size_t used = 0, last = SIZE_MAX;
    for (int pool = 0; pool < 1600;
         pool++) { /* case 16: 100 streams, 2 pools, 8 devices, if it were one handle */
        size_t bytes = range(141 * GR_GIB, used, 2 * GR_MIB, 2 * GR_MIB);
        ck_assert_uint_le(bytes, last);
        last = bytes;
        used += bytes;
        if (pool == 15) ck_assert_uint_ge(bytes, 141 * GR_GIB); /* a handful of streams gets all it can use */
    }
    ck_assert_uint_le(used, GR_SIZING_ADDRESS_BUDGET + 1600 * 2 * GR_MIB);
}
END_TEST

START_TEST(a_reserve_is_taken_as_it_is_up_to_an_eighth_more_than_the_card) {
    const size_t card = 80 * GR_GIB, granule = 2 * GR_MIB;
    struct {
        struct granary_reserve reserve;
        size_t used, need, range;
    } rows[] = {
        {{0, 0.5}, 0, granule, 40 * GR_GIB},
        {{0, 1}, 0, granule, 80 * GR_GIB},
        {{0, 7}, 0, granule, 90 * GR_GIB},
        {{0, 1e300}, 0, granule, 90 * GR_GIB},
        {{0, 0.000001}, 0, granule, granule},
        {{10 * GR_GIB, 0}, 0, granule, 10 * GR_GIB},
        {{10 * GR_GIB + 1, 0}, 0, granule, 10 * GR_GIB + granule},
        {{SIZE_MAX, 0}, 0, granule, 90 * GR_GIB},
        {{10 * GR_GIB, 0}, GR_SIZING_ADDRESS_BUDGET, granule, 10 * GR_GIB}, /* asked for: no budget */
        {{10 * GR_GIB, 0}, 0, 12 * GR_GIB, 12 * GR_GIB}, /* a request still gets what it needs */
    };
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        const struct gr_range_wish wish = {card, rows[i].used, rows[i].need, &rows[i].reserve, granule};
        ck_assert_uint_eq(gr_sizing_range(&wish), rows[i].range);
    }
}
END_TEST

START_TEST(a_range_is_kept_while_half_of_the_addresses_are_left) {
    ck_assert(gr_sizing_keeps_range(0));
    ck_assert(gr_sizing_keeps_range(GR_SIZING_ADDRESS_BUDGET / 2));
    ck_assert(!gr_sizing_keeps_range(GR_SIZING_ADDRESS_BUDGET / 2 + 1));
}
END_TEST

Suite *suite_sizing(void) {
    Suite *suite = suite_create("sizing");
    TCase *cases = tcase_create("sizing");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, sizes_are_rounded_up_to_parts_of_their_power_of_two);
    tcase_add_test(cases, rounding_by_parts_never_shrinks_keeps_units_and_wastes_less_than_a_part);
    tcase_add_test(cases, large_segment_size_moves_the_size_of_segments_below_10_mib_and_no_other);
    tcase_add_test(cases, max_non_split_rounding_is_the_slack_of_an_oversize_request);
    tcase_add_test(cases, a_reserve_is_taken_as_it_is_up_to_an_eighth_more_than_the_card);
    tcase_add_test(cases, a_range_is_kept_while_half_of_the_addresses_are_left);
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
