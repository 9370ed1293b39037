/* SPDX-License-Identifier: Apache-2.0
 * Extents are created and given back one for one, and the cache keeps what it may and no more. */
#include <check.h>

#include "memory/extent.h"
#include "support/fixture.h"

static struct gr_driver driver;
static struct gr_extents extents;

static void open_with(size_t cache_bytes) {
    struct granary_options options;
    char reason[GR_REASON_ROOM];
    fixture_open_sim(NULL, &options);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    gr_extents_init(&extents, &driver, cache_bytes);
    ck_assert(gr_extents_reserve(&extents, 16));
}

static void close_all(void) {
    gr_extents_flush(&extents, 0);
    ck_assert_uint_eq(extents.held, 0);
    ck_assert_ptr_null(gr_extents_check(&extents));
    gr_extents_fini(&extents);
    gr_driver_close(&driver);
    fixture_close_sim();
}

static struct gr_extent *get(size_t granules) {
    struct gr_extent *extent = NULL;
    ck_assert_int_eq(gr_extents_get(&extents, granules, &extent), GRANARY_OK);
    ck_assert_uint_eq(extent->granules, granules);
    ck_assert_ptr_null(extent->range);
    return extent;
}

static uint64_t creates(void) {
    return gr_tap_count(&driver.tap, GR_ENTRY_cuMemCreate);
}

START_TEST(an_extent_is_one_handle_of_whole_granules) {
    open_with(0);
    struct gr_extent *a = get(1), *b = get(10);
    ck_assert_uint_eq(extents.held, 11);
    ck_assert_uint_eq(extents.count, 2);
    ck_assert_uint_eq(fixture_held().handles, 2);
    ck_assert_uint_eq(fixture_held().handle_bytes, 22 * GR_MIB);
    gr_extents_release(&extents, a);
    ck_assert_uint_eq(fixture_held().handle_bytes, 20 * GR_MIB);
    gr_extents_release(&extents, b);
    close_all();
}
END_TEST

START_TEST(without_a_cache_what_is_put_back_is_released) {
    open_with(0);
    gr_extents_put(&extents, get(1));
    ck_assert_uint_eq(fixture_held().handles, 0);
    ck_assert_uint_eq(extents.cached, 0);
    close_all();
}
END_TEST

START_TEST(a_cached_extent_serves_the_next_need_of_its_size_without_the_driver) {
    open_with(20 * GR_MIB);
    struct gr_extent *a = get(3), *b;
    gr_extents_put(&extents, a);
    ck_assert_uint_eq(extents.cached, 3);
    uint64_t before = creates();
    ck_assert_ptr_eq(get(3), a);
    ck_assert_uint_eq(creates(), before);
    gr_extents_put(&extents, a);
    b = get(2); /* another size: the cached one stays */
    ck_assert_ptr_ne(b, a);
    ck_assert_uint_eq(creates(), before + 1);
    ck_assert_uint_eq(extents.cached, 3);
    gr_extents_release(&extents, b);
    close_all();
}
END_TEST

START_TEST(a_full_cache_gives_the_oldest_back) {
    open_with(10 * GR_MIB); /* 5 granules */
    struct gr_extent *a = get(2), *b = get(2), *c = get(2), *big = get(6);
    gr_extents_put(&extents, a);
    gr_extents_put(&extents, b);
    gr_extents_put(&extents, c);
    ck_assert_uint_eq(extents.cached, 4);
    ck_assert_uint_eq(fixture_held().handles, 3);
    ck_assert_ptr_eq(get(2), b);   /* a is gone */
    gr_extents_put(&extents, big); /* larger than the cache: released, and nothing is driven out for it */
    ck_assert_uint_eq(extents.cached, 2);
    gr_extents_release(&extents, b);
    close_all();
}
END_TEST

START_TEST(flushing_keeps_what_it_is_told_to_and_says_what_went) {
    open_with(100 * GR_MIB);
    struct gr_extent *e[] = {get(1), get(2), get(3)};
    for (int i = 0; i < 3; i++) gr_extents_put(&extents, e[i]);
    ck_assert_uint_eq(gr_extents_flush(&extents, 6), 0);
    ck_assert_uint_eq(gr_extents_flush(&extents, 5), 1);
    ck_assert_uint_eq(gr_extents_flush(&extents, 4), 2); /* whole extents: 3 are left */
    ck_assert_uint_eq(extents.cached, 3);
    ck_assert_uint_eq(gr_extents_flush(&extents, 0), 3);
    ck_assert_uint_eq(fixture_held().handles, 0);
    close_all();
}
END_TEST

START_TEST(taking_from_the_cache_prefers_the_largest_that_is_not_too_large) {
    open_with(100 * GR_MIB);
    struct gr_extent *e[] = {get(2), get(5), get(3), get(9)};
    for (int i = 0; i < 4; i++) gr_extents_put(&extents, e[i]);
    ck_assert_ptr_eq(gr_extents_take_cached(&extents, 4), e[2]);
    ck_assert_ptr_eq(gr_extents_take_cached(&extents, 5), e[1]);
    ck_assert_ptr_eq(gr_extents_take_cached(&extents, 8), e[0]);
    ck_assert_ptr_null(gr_extents_take_cached(&extents, 8));
    ck_assert_uint_eq(extents.cached, 9);
    ck_assert_uint_eq(extents.held, 19); /* taken out is not gone */
    for (int i = 0; i < 3; i++) gr_extents_release(&extents, e[i]);
    close_all();
}
END_TEST

START_TEST(a_refused_create_changes_nothing) {
    struct gr_extent *extent = NULL;
    open_with(0);
    size_t spare = extents.slab.spare;
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemCreate, 1, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_extents_get(&extents, 2, &extent), GRANARY_OUT_OF_MEMORY);
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemCreate, 1, 1, GR_CU_UNKNOWN);
    ck_assert_int_eq(gr_extents_get(&extents, 2, &extent), GRANARY_DRIVER);
    ck_assert_ptr_null(extent);
    ck_assert_uint_eq(extents.slab.spare, spare);
    ck_assert_uint_eq(extents.held + extents.count, 0);
    close_all();
}
END_TEST

START_TEST(wrong_sums_break_e1_and_e2) {
    open_with(20 * GR_MIB);
    struct gr_extent *a = get(3);
    gr_extents_put(&extents, a);
    ck_assert_ptr_null(gr_extents_check(&extents));
    extents.cached++;
    ck_assert_str_eq(gr_extents_check(&extents), "E2");
    extents.cached--;
    extents.cache_limit = 2;
    ck_assert_str_eq(gr_extents_check(&extents), "E2");
    extents.cache_limit = 10;
    struct gr_range *nowhere = (struct gr_range *)&driver;
    a->range = nowhere; /* cached and mapped at once */
    ck_assert_str_eq(gr_extents_check(&extents), "E2");
    a->range = NULL;
    extents.held = 2;
    ck_assert_str_eq(gr_extents_check(&extents), "E1");
    extents.held = 3;
    close_all();
}
END_TEST

Suite *suite_extent(void) {
    Suite *suite = suite_create("extent");
    TCase *cases = tcase_create("extent");
    tcase_add_test(cases, an_extent_is_one_handle_of_whole_granules);
    tcase_add_test(cases, without_a_cache_what_is_put_back_is_released);
    tcase_add_test(cases, a_cached_extent_serves_the_next_need_of_its_size_without_the_driver);
    tcase_add_test(cases, a_full_cache_gives_the_oldest_back);
    tcase_add_test(cases, flushing_keeps_what_it_is_told_to_and_says_what_went);
    tcase_add_test(cases, taking_from_the_cache_prefers_the_largest_that_is_not_too_large);
    tcase_add_test(cases, a_refused_create_changes_nothing);
    tcase_add_test(cases, wrong_sums_break_e1_and_e2);
    suite_add_tcase(suite, cases);
    return suite;
}
