/* SPDX-License-Identifier: Apache-2.0
 * Slabs hand out what was reserved, in rising address, from chunks that grow with them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/slab.h"
#include "support/hot.h"
#include "support/rng.h"

enum { SIZE = 64, OBJECTS = 1000 };

static struct gr_slab slab;

static void setup(void) {
    gr_slab_init(&slab, SIZE, true);
}

static void teardown(void) {
    gr_slab_fini(&slab);
}

START_TEST(a_new_slab_holds_no_memory) {
    ck_assert_uint_eq(slab.spare, 0);
    ck_assert_uint_eq(gr_slab_taken(&slab), 0);
    ck_assert_uint_eq(slab.bytes, 0);
}
END_TEST

START_TEST(a_reserve_is_what_can_be_taken_and_a_second_one_is_free) {
    ck_assert(gr_slab_reserve(&slab, 3));
    ck_assert_uint_ge(slab.spare, 3);
    size_t spare = slab.spare;
    ck_assert_uint_eq(slab.bytes, GR_SLAB_LEAST);
    ck_assert(gr_slab_reserve(&slab, 3));
    ck_assert(gr_slab_reserve(&slab, spare));
    ck_assert_uint_eq(slab.bytes, GR_SLAB_LEAST);
    ck_assert(gr_slab_reserve(&slab, spare + 1));
    ck_assert_uint_eq(slab.bytes, 2 * GR_SLAB_LEAST);
}
END_TEST

START_TEST(fresh_objects_rise_in_address_and_lie_on_lines_of_their_own) {
    ck_assert(gr_slab_reserve(&slab, 10));
    char *last = NULL;
    for (int i = 0; i < 10; i++) {
        char *object = gr_slab_take(&slab);
        ck_assert_uint_eq((uintptr_t)object % 64, 0);
        if (last != NULL) ck_assert_ptr_eq(object, last + SIZE);
        last = object;
    }
}
END_TEST

START_TEST(fresh_objects_are_zero_behind_the_link) {
    ck_assert(gr_slab_reserve(&slab, 1));
    const char *object = gr_slab_take(&slab);
    ck_assert_uint_eq(gr_slab_taken(&slab), 1);
    for (size_t i = sizeof(struct gr_slab_free); i < SIZE; i++) ck_assert_int_eq(object[i], 0);
}
END_TEST

START_TEST(a_chunk_is_as_large_as_all_before_it_until_large_ones_come) {
    for (size_t bytes = GR_SLAB_LEAST; bytes < 4 * (size_t)GR_HOST_HUGE;) {
        ck_assert(gr_slab_reserve(&slab, slab.spare + 1));
        ck_assert_uint_eq(slab.bytes, bytes);
        ck_assert_uint_le(slab.objects * SIZE, bytes);
        ck_assert_uint_ge(slab.objects * SIZE, bytes / 100 * 98);
        bytes += bytes < GR_SLAB_FEW ? bytes : GR_HOST_HUGE;
        if (slab.bytes > GR_SLAB_FEW) ck_assert_uint_eq((uintptr_t)slab.fresh % GR_HOST_HUGE, 0);
        /* Reserving without taking leaves all the rest of the old chunk to be taken. */
        ck_assert_uint_eq(slab.spare, slab.objects);
    }
}
END_TEST

/* The sanitizers watch the edges. */
START_TEST(every_object_of_a_huge_page_can_be_written) {
    while (slab.bytes <= GR_SLAB_FEW) ck_assert(gr_slab_reserve(&slab, slab.spare + 1));
    ck_assert_uint_eq((size_t)(slab.end - slab.fresh), GR_HOST_HUGE);
    while (slab.spare > 0) memset(gr_slab_take(&slab), 0xA5, SIZE);
    ck_assert_uint_eq(gr_slab_taken(&slab), slab.objects);
}
END_TEST

START_TEST(without_huge_pages_each_chunk_is_as_large_as_all_before_it) {
    struct gr_slab plain;
    gr_slab_init(&plain, SIZE, false);
    for (size_t bytes = GR_SLAB_LEAST; bytes <= 4 * (size_t)GR_HOST_HUGE; bytes *= 2) {
        ck_assert(gr_slab_reserve(&plain, plain.spare + 1));
        ck_assert_uint_eq(plain.bytes, bytes);
        ck_assert_uint_eq(plain.spare, plain.objects);
    }
    gr_slab_fini(&plain);
}
END_TEST

START_TEST(what_was_given_back_last_comes_first) {
    ck_assert(gr_slab_reserve(&slab, 2));
    void *a = gr_slab_take(&slab), *b = gr_slab_take(&slab);
    gr_slab_give(&slab, a);
    gr_slab_give(&slab, b);
    ck_assert_ptr_eq(gr_slab_take(&slab), b);
    ck_assert_ptr_eq(gr_slab_take(&slab), a);
}
END_TEST

static int by_address(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (void *const *)a, y = (uintptr_t) * (void *const *)b;
    return (x > y) - (x < y);
}

START_TEST(objects_over_many_chunks_never_overlap_and_spare_counts_exactly) {
    static void *taken[OBJECTS];
    struct rng rng = {7};
    size_t count = 0;
    for (int step = 0; step < 20000; step++) {
        if (count < OBJECTS && (count == 0 || rng_below(&rng, 100) < 52)) {
            HOT_ASSERT(gr_slab_reserve(&slab, 1));
            taken[count++] = memset(gr_slab_take(&slab), 0xA5, SIZE);
        } else {
            size_t at = rng_below(&rng, count);
            gr_slab_give(&slab, taken[at]);
            taken[at] = taken[--count];
        }
        HOT_ASSERT(gr_slab_taken(&slab) == count);
    }
    ck_assert_uint_gt(slab.bytes, GR_SLAB_LEAST);
    size_t listed = (size_t)(slab.end - slab.fresh) / SIZE;
    for (struct gr_slab_free *object = slab.free; object; object = object->next) listed++;
    ck_assert_uint_eq(listed, slab.spare);
    qsort(taken, count, sizeof *taken, by_address);
    for (size_t i = 1; i < count; i++) ck_assert((char *)taken[i] - (char *)taken[i - 1] >= SIZE);
}
END_TEST

Suite *suite_slab(void) {
    Suite *suite = suite_create("slab");
    TCase *cases = tcase_create("slab");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_new_slab_holds_no_memory);
    tcase_add_test(cases, a_reserve_is_what_can_be_taken_and_a_second_one_is_free);
    tcase_add_test(cases, fresh_objects_rise_in_address_and_lie_on_lines_of_their_own);
    tcase_add_test(cases, fresh_objects_are_zero_behind_the_link);
    tcase_add_test(cases, a_chunk_is_as_large_as_all_before_it_until_large_ones_come);
    tcase_add_test(cases, every_object_of_a_huge_page_can_be_written);
    tcase_add_test(cases, without_huge_pages_each_chunk_is_as_large_as_all_before_it);
    tcase_add_test(cases, what_was_given_back_last_comes_first);
    tcase_add_test(cases, objects_over_many_chunks_never_overlap_and_spare_counts_exactly);
    suite_add_tcase(suite, cases);
    return suite;
}
