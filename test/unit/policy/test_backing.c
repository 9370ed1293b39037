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
            .whole = rng_below(&rng, limit + 10),
            .held = rng_below(&rng, limit + 10), /* a limit may have been lowered below it */
            .limit = rng_once_in(&rng, 10) ? SIZE_MAX / (2 * GR_MIB) : limit,
            .usual = rng_between(&rng, 1, 64),
            .class = rng_once_in(&rng, 2) ? GR_SMALL : GR_LARGE,
            .peers = rng_once_in(&rng, 2)};
        b.whole += b.need;
        size_t next = gr_backing_next(&b);
        HOT_ASSERT(next >= 1 && next <= b.need);
    }
}
END_TEST

/* Extents of a growth of so many granules on a card of 141 GiB that holds `held`. */
static size_t extents_of(size_t need, size_t held, size_t usual) {
    struct gr_backing b = {
        .need = need, .whole = need, .held = held, .limit = 72192, .usual = usual, .class = GR_LARGE};
    size_t extents = 0;
    for (; b.need > 0; extents++) {
        size_t next = gr_backing_next(&b);
        b.need -= next;
        b.held += next;
    }
    return extents;
}

START_TEST(a_growth_that_outweighs_all_there_was_takes_few_large_extents) {
    ck_assert_uint_eq(extents_of(512, 0, 4), 1);      /* 1 GiB */
    ck_assert_uint_le(extents_of(16 * 512, 0, 4), 4); /* 16 GiB, the first of all */
    ck_assert_uint_le(extents_of(16 * 512, 12 * 512, 4), 8);
    ck_assert_uint_le(extents_of(2048, 4096, 4), 2); /* half as much again */
    ck_assert_uint_eq(extents_of(512, 0, 1), 512);   /* asked for */
}
END_TEST

START_TEST(a_growth_that_is_small_beside_what_is_there_comes_in_sixths) {
    ck_assert_uint_eq(extents_of(1536, 8 * 512, 4), 21); /* of at most 141 MiB, */
    ck_assert_uint_eq(extents_of(360, 8 * 512, 4), 6);
    ck_assert_uint_eq(extents_of(96, 8 * 512, 4), 4); /* at least 48 MiB */
    ck_assert_uint_eq(extents_of(360, 30 * 512, 4), 6);
    ck_assert_uint_eq(extents_of(24, 30 * 512, 4), 6);    /* or the usual, */
    ck_assert_uint_eq(extents_of(512, 60 * 512, 4), 128); /* which is all there is beyond a quarter */
}
END_TEST

START_TEST(small_blocks_get_granules_but_on_a_card_with_room) {
    struct gr_backing b = {
        .need = 5, .whole = 5, .held = 72192 / 4, .limit = 72192, .usual = 4, .class = GR_SMALL};
    ck_assert_uint_eq(gr_backing_next(&b), 4);
    b.held++;
    ck_assert_uint_eq(gr_backing_next(&b), 1);
    b.held = 0;
    b.usual = 2; /* asked for */
    ck_assert_uint_eq(gr_backing_next(&b), 1);
}
END_TEST

START_TEST(a_growth_brings_a_little_more_on_a_large_card_with_room) {
    ck_assert_uint_eq(gr_backing_least(72192 / 4, 72192, 4), 4);
    ck_assert_uint_eq(gr_backing_least(72192 / 4 + 1, 72192, 4), 0);
    ck_assert_uint_eq(gr_backing_least(512, 72192, 4), 2); /* of 1 GiB, 4 MiB */
    ck_assert_uint_eq(gr_backing_least(255, 72192, 4), 0);
    ck_assert_uint_eq(gr_backing_least(1024, 8192, 4), 2);
    ck_assert_uint_eq(gr_backing_least(1024, 4095, 4), 0); /* a small card */
    ck_assert_uint_eq(gr_backing_least(72192 / 4, 72192, 2), 0);
    ck_assert_uint_eq(gr_backing_least(0, SIZE_MAX, 4), 0);
}
END_TEST

START_TEST(the_last_sixth_of_a_card_comes_in_granules) {
    ck_assert_uint_eq(extents_of(100, 72192 - 72192 / 6, 4), 100);
    ck_assert_uint_lt(extents_of(100, 72192 - 72192 / 6 - 100, 4), 30);
}
END_TEST

START_TEST(extents_that_peers_are_told_of_have_20_mib_on_a_card_that_has_room_for_such) {
    struct gr_backing b = {
        .need = 100, .whole = 100, .held = 70000, .limit = 72192, .usual = 4, .class = GR_LARGE};
    ck_assert_uint_eq(gr_backing_next(&b), 1); /* the last sixth */
    b.peers = true;
    ck_assert_uint_eq(gr_backing_next(&b), 10);
    b.need = 3;
    ck_assert_uint_eq(gr_backing_next(&b), 3);
    b.need = 100;
    b.limit = 512 * 4;
    ck_assert_uint_eq(gr_backing_next(&b), 4);
    b.usual = 1; /* asked for */
    ck_assert_uint_eq(gr_backing_next(&b), 1);
}
END_TEST

START_TEST(no_extent_is_more_than_a_small_part_of_a_small_card) {
    struct gr_backing b = {
        .need = 40, .whole = 40, .held = 600, .limit = 1024, .usual = 5, .class = GR_LARGE};
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

START_TEST(a_margin_is_earned_by_what_moves_and_bounded) {
    struct gr_need n = {.missing = 10 * GR_MIB,
                        .active = 90 * GR_MIB,
                        .peak = 200 * GR_MIB,
                        .given = SIZE_MAX / 2,
                        .limit = SIZE_MAX};
    ck_assert_uint_eq(gr_backing_watermark(&n), 200 * GR_MIB);
    n.moved = 8 * GR_MIB;
    ck_assert_uint_eq(gr_backing_watermark(&n), 204 * GR_MIB);
    n.moved = 4096 * GR_MIB;
    ck_assert_uint_eq(gr_backing_watermark(&n), 260 * GR_MIB); /* a small job */
    n.active = 7190 * GR_MIB;
    ck_assert_uint_eq(gr_backing_watermark(&n), 7400 * GR_MIB); /* a large one: a 36th */
    n.limit = 7208 * GR_MIB;
    ck_assert_uint_eq(gr_backing_watermark(&n), 7260 * GR_MIB); /* the limit is near */
    n.limit = 100 * GR_MIB;                                     /* it was lowered */
    ck_assert_uint_eq(gr_backing_watermark(&n), 7260 * GR_MIB);
}
END_TEST

START_TEST(what_moves_for_ever_earns_more_where_there_is_room) {
    struct gr_need n = {.active = 7200 * GR_MIB, .limit = SIZE_MAX, .given = 128 * 1000 * GR_MIB};
    n.moved = 8200 * GR_MIB; /* once over, and a 128th of what was allocated */
    ck_assert_uint_eq(gr_backing_watermark(&n), 7400 * GR_MIB);
    n.moved += 400 * GR_MIB;
    ck_assert_uint_eq(gr_backing_watermark(&n), 7500 * GR_MIB);
    n.restless = 600 * GR_MIB; /* of which moved too fast */
    ck_assert_uint_eq(gr_backing_watermark(&n), 7550 * GR_MIB);
    n.moved *= 100;
    ck_assert_uint_eq(gr_backing_watermark(&n), (7400 + 1800) * GR_MIB); /* a quarter at most */
    n.limit = 15200 * GR_MIB;
    ck_assert_uint_eq(gr_backing_watermark(&n), (7400 + 1000) * GR_MIB); /* an eighth of the room */
    n.limit = 7200 * GR_MIB;
    ck_assert_uint_eq(gr_backing_watermark(&n), (7200 + 60) * GR_MIB); /* there is none */
}
END_TEST

START_TEST(what_moves_too_fast_by_choice_is_bounded_by_what_is_in_use_and_allocated) {
    ck_assert(gr_backing_picky(4, 0, 0, 0));
    ck_assert(gr_backing_picky(4, 1000, 1000, 0));
    ck_assert(!gr_backing_picky(4, 1001, 1000, 0));
    ck_assert(gr_backing_picky(4, 1100, 1000, 1600));
    ck_assert(!gr_backing_picky(4, 1101, 1000, 1600));
    ck_assert(gr_backing_picky(1, 1101, 1000, 1600)); /* memory counts for more than time */
}
END_TEST

START_TEST(small_extents_spare_memory_more) {
    ck_assert_uint_lt(gr_backing_dearest(4), gr_backing_dearest(1));
    ck_assert_uint_ge(gr_backing_dearest(2048), 2); /* a block that pins one granule is never dear */
    ck_assert_uint_gt(gr_backing_apart(4), gr_backing_apart(1));
}
END_TEST

Suite *suite_backing(void) {
    Suite *suite = suite_create("backing");
    TCase *cases = tcase_create("backing");
    tcase_add_test(cases, an_extent_has_at_least_one_granule_and_at_most_the_need);
    tcase_add_test(cases, a_growth_that_outweighs_all_there_was_takes_few_large_extents);
    tcase_add_test(cases, a_growth_that_is_small_beside_what_is_there_comes_in_sixths);
    tcase_add_test(cases, small_blocks_get_granules_but_on_a_card_with_room);
    tcase_add_test(cases, a_growth_brings_a_little_more_on_a_large_card_with_room);
    tcase_add_test(cases, the_last_sixth_of_a_card_comes_in_granules);
    tcase_add_test(cases, extents_that_peers_are_told_of_have_20_mib_on_a_card_that_has_room_for_such);
    tcase_add_test(cases, no_extent_is_more_than_a_small_part_of_a_small_card);
    tcase_add_test(cases, a_margin_is_earned_by_what_moves_and_bounded);
    tcase_add_test(cases, what_moves_for_ever_earns_more_where_there_is_room);
    tcase_add_test(cases, what_moves_too_fast_by_choice_is_bounded_by_what_is_in_use_and_allocated);
    tcase_add_test(cases, small_extents_spare_memory_more);
    tcase_add_test(cases, memory_is_short_from_seven_eighths_of_the_limit_on);
    suite_add_tcase(suite, cases);
    return suite;
}
