/* SPDX-License-Identifier: Apache-2.0
 * Alignment and overflow arithmetic at its edges, and the one door to host memory. */
#include <check.h>

#include "base/host.h"

START_TEST(rounding_up_that_does_not_fit_is_refused_and_writes_nothing) {
    static const struct {
        uint64_t x, step, want; /* want 0: refused */
    } rows[] = {{1, 512, 512},
                {512, 512, 512},
                {513, 512, 1024},
                {UINT64_MAX - 511, 512, UINT64_MAX - 511},
                {UINT64_MAX - 510, 512, 0},
                {UINT64_MAX, 2, 0},
                {UINT64_MAX, 1, UINT64_MAX}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        uint64_t out = 77;
        bool fits = gr_align_up(rows[i].x, rows[i].step, &out);
        ck_assert_int_eq(fits, rows[i].want != 0);
        ck_assert_uint_eq(out, fits ? rows[i].want : 77);
    }
}
END_TEST

START_TEST(powers_logarithms_and_alignment_agree_with_their_definition) {
    ck_assert(!gr_is_power(0));
    for (unsigned e = 0; e < 64; e++) {
        uint64_t power = UINT64_C(1) << e;
        ck_assert(gr_is_power(power));
        ck_assert_uint_eq(gr_log2(power), e);
        if (e < 2) continue;
        ck_assert(!gr_is_power(power + 1) && !gr_is_power(power - 1));
        ck_assert_uint_eq(gr_log2(power + 1), e);
        ck_assert_uint_eq(gr_log2(power - 1), e - 1);
        ck_assert_uint_eq(gr_align_down(power + 1, power), power);
        ck_assert(gr_is_aligned(power, power) && !gr_is_aligned(power + 1, power));
    }
}
END_TEST

START_TEST(host_memory_is_aligned_and_zero) {
    static const size_t alignments[] = {8, 64, 4096, 16384};
    for (size_t i = 0; i < GR_COUNT(alignments); i++) {
        unsigned char *ptr = gr_host_take(3, 1000, alignments[i]);
        ck_assert_ptr_nonnull(ptr);
        ck_assert_uint_eq((uintptr_t)ptr % alignments[i], 0);
        for (int n = 0; n < 3000; n++) ck_assert_uint_eq(ptr[n], 0);
        gr_host_give(ptr);
    }
    gr_host_give(NULL);
}
END_TEST

START_TEST(a_product_that_does_not_fit_gives_no_memory) {
    ck_assert_ptr_null(gr_host_take(SIZE_MAX / 2, 3, 8));
    ck_assert_ptr_null(gr_host_take((size_t)1 << 32, (size_t)1 << 32, 64));
    ck_assert_ptr_null(gr_host_take(0, 64, 8));
}
END_TEST

Suite *suite_base(void) {
    Suite *suite = suite_create("base");
    TCase *cases = tcase_create("base");
    tcase_add_test(cases, rounding_up_that_does_not_fit_is_refused_and_writes_nothing);
    tcase_add_test(cases, powers_logarithms_and_alignment_agree_with_their_definition);
    tcase_add_test(cases, host_memory_is_aligned_and_zero);
    tcase_add_test(cases, a_product_that_does_not_fit_gives_no_memory);
    suite_add_tcase(suite, cases);
    return suite;
}
