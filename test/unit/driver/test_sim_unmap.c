/* SPDX-License-Identifier: Apache-2.0
 * What the simulated driver lets itself be told to unmap: whole mappings, holes, and no half ones. */
#include <sys/mman.h>

#include "test_sim_support.h"

static void setup_faithful(void) {
    up_faithful(defaults());
}

/* Misuse reported since the last time it was asked for. */
static uint64_t misuse(void) {
    uint64_t count = findings().by_kind[GRANARY_SIM_MISUSE];
    granary_sim_clear_findings();
    return count;
}

START_TEST(what_was_never_mapped_may_be_unmapped) {
    gr_cu_ptr p = reserve(4 * G);
    gr_cu_handle k = create(G);
    OK(cu.cuMemUnmap(p, G));
    OK(cu.cuMemUnmap(p, 4 * G));
    OK(cu.cuMemUnmap(p + 3 * G, 2 * G)); /* past the reservation's end */
    OK(cu.cuMemMap(p + G, G, 0, k, 0));
    OK(cu.cuMemUnmap(p, G));
    OK(cu.cuMemUnmap(p + 2 * G, G));
    ck_assert_uint_eq(held().mappings, 1);
    ck_assert_uint_eq(misuse(), 5);
    OK(cu.cuMemRelease(k));
    OK(cu.cuMemUnmap(p + G, G));
    ck_assert_uint_eq(misuse(), 0);
    OK(cu.cuMemUnmap(p + G, G)); /* again */
    ck_assert_uint_eq(misuse(), 1);
    OK(cu.cuMemAddressFree(p, 4 * G));
    down();
}
END_TEST

START_TEST(an_unmap_takes_whole_mappings_from_among_holes) {
    gr_cu_ptr p = reserve(8 * G);
    gr_cu_handle h = create(2 * G), k = create(G);
    for (size_t first = 0; first < 2; first++) { /* a hole before, and none */
        OK(cu.cuMemMap(p + G, 2 * G, 0, h, 0));
        OK(cu.cuMemMap(p + 4 * G, G, 0, k, 0));
        OK(cu.cuMemUnmap(p + first * G, (8 - first) * G));
        ck_assert_uint_eq(held().mappings, 0);
        ck_assert_uint_eq(misuse(), 1);
    }
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemRelease(k));
    ck_assert_uint_eq(held().handles, 0);
    OK(cu.cuMemAddressFree(p, 8 * G));
    down();
}
END_TEST

START_TEST(an_unmap_that_cuts_a_mapping_is_refused) {
    gr_cu_ptr p = reserve(8 * G);
    gr_cu_handle h = create(2 * G);
    OK(cu.cuMemMap(p, 2 * G, 0, h, 0));
    OK(cu.cuMemMap(p + 4 * G, 2 * G, 0, h, 0));
    CODE(cu.cuMemUnmap(p, G), 1);
    CODE(cu.cuMemUnmap(p + G, G), 1);
    CODE(cu.cuMemUnmap(p + G, 3 * G), 1);
    CODE(cu.cuMemUnmap(p, 5 * G), 1);
    CODE(cu.cuMemUnmap(p + 3 * G, 2 * G), 1);
    ck_assert_uint_eq(held().mappings, 2);
    ck_assert_uint_eq(misuse(), 0);
    OK(cu.cuMemUnmap(p, 2 * G));
    OK(cu.cuMemUnmap(p + 4 * G, 2 * G));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemAddressFree(p, 8 * G));
    down();
}
END_TEST

START_TEST(an_unmap_outside_any_reservation_is_refused) {
    gr_cu_ptr p = reserve(2 * G), classic;
    CODE(cu.cuMemUnmap(p, 0), 1);
    CODE(cu.cuMemUnmap(p + 4096, G), 1);
    CODE(cu.cuMemUnmap(p, G + 4096), 1);
    CODE(cu.cuMemUnmap(p, (size_t)0 - G), 1);
    CODE(cu.cuMemUnmap(p + 2 * G, G), 1);
    CODE(cu.cuMemUnmap(0, G), 1);
    CODE(cu.cuMemUnmap(0x1000000, G), 1);
    OK(cu.cuMemAddressFree(p, 2 * G));
    CODE(cu.cuMemUnmap(p, G), 1);
    OK(cu.cuMemAlloc(&classic, G));
    CODE(cu.cuMemUnmap(classic, G), 1);
    OK(cu.cuMemFree(classic));
    ck_assert_uint_eq(misuse(), 0);
    down();
}
END_TEST

/* What lies behind a reservation belongs to others, and stays. */
START_TEST(an_unmap_past_its_reservation_leaves_the_neighbour_alone) {
    struct granary_sim_config config = defaults();
    config.backing = GRANARY_SIM_MEMORY;
    up_faithful(config);
    gr_cu_ptr p = reserve(G), next = 0;
    gr_cu_handle k = create(G);
    OK(cu.cuMemAddressReserve(&next, G, 0, p + G, 0));
    OK(cu.cuMemAddressFree(next, G));
    char *other = mmap(at(next), G, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_eq(other, at(next));
    *other = 7;
    OK(cu.cuMemMap(p, G, 0, k, 0));
    OK(cu.cuMemUnmap(p, 2 * G));
    ck_assert_int_eq(*other, 7);
    munmap(other, G);
    OK(cu.cuMemRelease(k));
    OK(cu.cuMemAddressFree(p, G));
    down();
}
END_TEST

/* ---- strict ------------------------------------------------------------------------------- */

static void a_second_unmap(void) {
    up(defaults());
    gr_cu_ptr p = ready(G);
    OK(cu.cuMemUnmap(p, G));
    (void)cu.cuMemUnmap(p, G);
}

START_TEST(strict_mode_stops_a_second_unmap) {
    stops(a_second_unmap);
}
END_TEST

static void an_unmap_of_what_was_never_mapped(void) {
    up(defaults());
    gr_cu_ptr p = reserve(G);
    (void)cu.cuMemUnmap(p, G);
}

START_TEST(strict_mode_stops_an_unmap_of_what_was_never_mapped) {
    stops(an_unmap_of_what_was_never_mapped);
}
END_TEST

static void an_unmap_with_a_hole(void) {
    up(defaults());
    gr_cu_ptr p = reserve(2 * G);
    gr_cu_handle h = create(G);
    OK(cu.cuMemMap(p, G, 0, h, 0));
    (void)cu.cuMemUnmap(p, 2 * G);
}

START_TEST(strict_mode_stops_an_unmap_with_a_hole) {
    stops(an_unmap_with_a_hole);
}
END_TEST

Suite *suite_sim_unmap(void);
Suite *suite_sim_unmap(void) {
    Suite *suite = suite_create("sim_unmap");
    TCase *faithful = tcase_create("faithful");
    tcase_add_checked_fixture(faithful, setup_faithful, NULL);
    tcase_add_test(faithful, what_was_never_mapped_may_be_unmapped);
    tcase_add_test(faithful, an_unmap_takes_whole_mappings_from_among_holes);
    tcase_add_test(faithful, an_unmap_that_cuts_a_mapping_is_refused);
    tcase_add_test(faithful, an_unmap_outside_any_reservation_is_refused);
    suite_add_tcase(suite, faithful);
    TCase *configured = tcase_create("configured");
    tcase_add_test(configured, an_unmap_past_its_reservation_leaves_the_neighbour_alone);
    suite_add_tcase(suite, configured);
    TCase *strict = tcase_create("strict");
    tcase_add_test(strict, strict_mode_stops_a_second_unmap);
    tcase_add_test(strict, strict_mode_stops_an_unmap_of_what_was_never_mapped);
    tcase_add_test(strict, strict_mode_stops_an_unmap_with_a_hole);
    suite_add_tcase(suite, strict);
    return suite;
}
