/* SPDX-License-Identifier: Apache-2.0
 * Ranges: reservations that shrink when they must, and mapping that is all or nothing whichever call
 * is refused. */
#include <check.h>

#include "block/table.h"
#include "memory/range.h"
#include "support/fixture.h"

enum { SLOTS = 16 };

static struct gr_driver driver;
static struct gr_extents extents;
static struct gr_range range;
static struct gr_list loose;

static void open_driver(fixture_change *change) {
    struct granary_options options;
    char reason[GR_REASON_ROOM];
    fixture_open_sim(change, &options);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    gr_extents_init(&extents, &driver, 0);
    ck_assert(gr_extents_reserve(&extents, 16));
    gr_list_init(&loose);
}

static void close_driver(void) {
    gr_extents_fini(&extents);
    gr_driver_close(&driver);
    fixture_close_sim();
}

static void setup(void) {
    open_driver(NULL);
    ck_assert_int_eq(gr_range_open(&range, &driver, SLOTS * 2 * GR_MIB, 2 * GR_MIB), GRANARY_OK);
}

static void teardown(void) {
    for (size_t s = 0; s < range.slots; s++) {
        struct gr_extent *extent = range.slot[s];
        if (extent == NULL) continue;
        ck_assert_int_eq(gr_range_unmap(&range, &driver, extent), GRANARY_OK);
        gr_extents_release(&extents, extent);
    }
    while (!gr_list_empty(&loose)) {
        struct gr_extent *extent = GR_CONTAINER(loose.next, struct gr_extent, link);
        gr_list_remove(&extent->link);
        gr_extents_release(&extents, extent);
    }
    ck_assert_uint_eq(range.mapped, 0);
    gr_range_close(&range, &driver);
    close_driver();
}

static struct gr_extent *add_loose(size_t granules) {
    struct gr_extent *extent;
    ck_assert_int_eq(gr_extents_get(&extents, granules, &extent), GRANARY_OK);
    gr_list_append(&loose, &extent->link);
    return extent;
}

static uint64_t count(enum gr_entry entry) {
    return gr_tap_count(&driver.tap, entry);
}

/* ---- reserving -------------------------------------------------------------------------------- */

START_TEST(a_range_has_its_slots_and_nothing_in_them) {
    ck_assert_uint_eq(range.slots, SLOTS);
    ck_assert_uint_eq(range.mapped, 0);
    ck_assert_uint_eq(range.base % (2 * GR_MIB), 0);
    for (size_t s = 0; s < SLOTS; s++) {
        ck_assert_ptr_null(range.slot[s]);
        ck_assert_uint_eq(gr_range_slot_of(&range, gr_range_addr_of(&range, s) + 100), s);
    }
    ck_assert_ptr_null(gr_range_check(&range));
}
END_TEST

static void reserve_at_most_10_mib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->max_reserve_bytes = 10 * GR_MIB;
}

START_TEST(a_reservation_that_is_refused_is_halved_down_to_the_need) {
    struct gr_range r;
    open_driver(reserve_at_most_10_mib);
    ck_assert_int_eq(gr_range_open(&r, &driver, 64 * GR_MIB, 2 * GR_MIB), GRANARY_OK);
    ck_assert_uint_eq(r.slots, 4); /* 64, 32, 16, 8 */
    gr_range_close(&r, &driver);
    ck_assert_int_eq(gr_range_open(&r, &driver, 16 * GR_MIB, 10 * GR_MIB), GRANARY_OK);
    ck_assert_uint_eq(r.slots, 5); /* the need, not its half */
    gr_range_close(&r, &driver);
    ck_assert_int_eq(gr_range_open(&r, &driver, 12 * GR_MIB, 12 * GR_MIB), GRANARY_ADDRESS_SPACE);
    ck_assert_uint_eq(fixture_held().reservations, 0);
    close_driver();
}
END_TEST

START_TEST(a_range_that_spans_entries_of_the_address_table_begins_with_one) {
    const size_t entry = (size_t)1 << GR_TABLE_LEAF_BITS;
    const size_t sizes[] = {entry - 2 * GR_MIB, entry, entry + 2 * GR_MIB, 5 * entry};
    struct gr_range many[2 * GR_COUNT(sizes)];
    for (size_t i = 0; i < GR_COUNT(many); i++) {
        const size_t size = sizes[i % GR_COUNT(sizes)];
        ck_assert_int_eq(gr_range_open(&many[i], &driver, size, size), GRANARY_OK);
        ck_assert(size < entry || gr_is_aligned(many[i].base, entry));
        ck_assert(gr_is_aligned(many[i].base, 2 * GR_MIB));
    }
    for (size_t i = 0; i < GR_COUNT(many); i++) gr_range_close(&many[i], &driver);
}
END_TEST

START_TEST(ranges_that_are_smaller_or_became_so_begin_at_any_granule) {
    const size_t entry = (size_t)1 << GR_TABLE_LEAF_BITS;
    struct gr_range many[4];
    size_t aligned = 0; /* by chance */
    open_driver(reserve_at_most_10_mib);
    for (size_t i = 0; i < GR_COUNT(many); i++) {
        const size_t size = i % 2 == 0 ? 8 * GR_MIB : entry;
        ck_assert_int_eq(gr_range_open(&many[i], &driver, size, 2 * GR_MIB), GRANARY_OK);
        ck_assert_uint_eq(many[i].slots, 4);
        aligned += gr_is_aligned(many[i].base, entry);
    }
    ck_assert_uint_lt(aligned, GR_COUNT(many));
    for (size_t i = 0; i < GR_COUNT(many); i++) gr_range_close(&many[i], &driver);
    close_driver();
}
END_TEST

START_TEST(a_range_that_cannot_begin_with_an_entry_begins_elsewhere_before_it_is_halved) {
    const size_t size = 3 * (size_t)1 << GR_TABLE_LEAF_BITS;
    static const gr_cu_result refusals[] = {GR_CU_OUT_OF_MEMORY, GR_CU_INVALID_VALUE, GR_CU_NOT_SUPPORTED};
    for (size_t i = 0; i < 2 * GR_COUNT(refusals); i++) {
        struct gr_range r;
        open_driver(NULL);
        gr_tap_fail(&driver.tap, GR_ENTRY_cuMemAddressReserve, 1, 1, refusals[i / 2]);
        ck_assert_int_eq(gr_range_open(&r, &driver, size, i % 2 ? size : 2 * GR_MIB), GRANARY_OK);
        ck_assert_uint_eq(r.slots, size / (2 * GR_MIB));
        gr_range_close(&r, &driver);
        close_driver();
    }
}
END_TEST

START_TEST(another_refusal_than_for_want_of_addresses_is_reported_and_not_tried_again) {
    struct gr_range r;
    open_driver(NULL);
    uint64_t before = count(GR_ENTRY_cuMemAddressReserve);
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemAddressReserve, 1, 1, GR_CU_UNKNOWN);
    ck_assert_int_eq(gr_range_open(&r, &driver, 64 * GR_MIB, 2 * GR_MIB), GRANARY_DRIVER);
    ck_assert_uint_eq(count(GR_ENTRY_cuMemAddressReserve), before + 1);
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemAddressReserve, 1, 1, GR_CU_UNKNOWN); /* nor anywhere else */
    ck_assert_int_eq(gr_range_open(&r, &driver, 4 * GR_GIB, 2 * GR_MIB), GRANARY_DRIVER);
    ck_assert_uint_eq(count(GR_ENTRY_cuMemAddressReserve), before + 2);
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemAddressReserve, 1, 2,
                GR_CU_INVALID_VALUE); /* it was not the place */
    ck_assert_int_eq(gr_range_open(&r, &driver, 4 * GR_GIB, 2 * GR_MIB), GRANARY_DRIVER);
    ck_assert_uint_eq(count(GR_ENTRY_cuMemAddressReserve), before + 4);
    close_driver();
}
END_TEST

/* ---- mapping ---------------------------------------------------------------------------------- */

START_TEST(a_run_is_mapped_in_order_with_one_set_access) {
    struct gr_extent *a = add_loose(1), *b = add_loose(3), *c = add_loose(2), *rest = add_loose(1);
    uint64_t maps = count(GR_ENTRY_cuMemMap), accesses = count(GR_ENTRY_cuMemSetAccess);
    ck_assert_int_eq(gr_range_map(&range, &driver, 4, 6, &loose), GRANARY_OK);
    ck_assert_uint_eq(count(GR_ENTRY_cuMemMap), maps + 3);
    ck_assert_uint_eq(count(GR_ENTRY_cuMemSetAccess), accesses + 1);
    ck_assert_ptr_null(range.slot[3]);
    ck_assert_ptr_eq(range.slot[4], a);
    for (size_t s = 5; s < 8; s++) ck_assert_ptr_eq(range.slot[s], b);
    ck_assert_ptr_eq(range.slot[8], c);
    ck_assert_ptr_eq(range.slot[9], c);
    ck_assert_ptr_null(range.slot[10]);
    ck_assert_uint_eq(b->slot, 5);
    ck_assert_ptr_eq(b->range, &range);
    ck_assert_uint_eq(range.mapped, 6);
    ck_assert_ptr_eq(loose.next, &rest->link); /* what was not needed is still loose */
    ck_assert_ptr_null(gr_range_check(&range));
    volatile char *bytes = (char *)(uintptr_t)gr_range_addr_of(&range, 4);
    bytes[0] = bytes[6 * 2 * GR_MIB - 1] = 1; /* really accessible, to the last byte */
}
END_TEST

START_TEST(an_unmapped_extent_is_loose_and_keeps_its_memory) {
    struct gr_extent *a = add_loose(2);
    ck_assert_int_eq(gr_range_map(&range, &driver, 0, 2, &loose), GRANARY_OK);
    *(volatile char *)(uintptr_t)range.base = 42;
    ck_assert_int_eq(gr_range_unmap(&range, &driver, a), GRANARY_OK);
    ck_assert_ptr_null(a->range);
    ck_assert_ptr_null(range.slot[0]);
    ck_assert_ptr_null(range.slot[1]);
    ck_assert_uint_eq(fixture_held().mappings, 0);
    gr_list_append(&loose, &a->link);
    ck_assert_int_eq(gr_range_map(&range, &driver, 8, 2, &loose), GRANARY_OK); /* moved, not copied */
    ck_assert_int_eq(*(volatile char *)(uintptr_t)gr_range_addr_of(&range, 8), 42);
}
END_TEST

START_TEST(what_is_mapped_is_granted_run_by_run) {
    const struct gr_cu_access access = {.location = {.type = GR_CU_LOCATION_DEVICE, .id = 0},
                                        .flags = GR_CU_ACCESS_READ};
    unsigned long long flags;
    (void)add_loose(1), (void)add_loose(2), (void)add_loose(3);
    ck_assert_int_eq(gr_range_grant(&range, &driver, &access), GRANARY_OK); /* nothing is there */
    ck_assert_int_eq(gr_range_map(&range, &driver, 1, 3, &loose), GRANARY_OK);
    ck_assert_int_eq(gr_range_map(&range, &driver, SLOTS - 3, 3, &loose), GRANARY_OK);
    const uint64_t accesses = count(GR_ENTRY_cuMemSetAccess);
    ck_assert_int_eq(gr_range_grant(&range, &driver, &access), GRANARY_OK);
    ck_assert_uint_eq(count(GR_ENTRY_cuMemSetAccess), accesses + 2);
    for (size_t s = 0; s < SLOTS; s++) {
        if (!range.slot[s]) continue;
        ck_assert_int_eq(driver.call.cuMemGetAccess(&flags, &access.location, gr_range_addr_of(&range, s)),
                         0);
        ck_assert_uint_eq(flags, GR_CU_ACCESS_READ);
    }
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemSetAccess, 2, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_range_grant(&range, &driver, &access), GRANARY_OUT_OF_MEMORY);
    gr_tap_clear(&driver.tap);
}
END_TEST

/* Which call is refused: the k-th map, or set-access. */
START_TEST(a_run_of_which_one_call_is_refused_is_not_mapped_at_all) {
    static const gr_cu_result codes[] = {GR_CU_OUT_OF_MEMORY, GR_CU_UNKNOWN, GR_CU_NOT_SUPPORTED};
    static const int statuses[] = {GRANARY_OUT_OF_MEMORY, GRANARY_DRIVER, GRANARY_UNSUPPORTED};
    struct gr_extent *e[] = {add_loose(1), add_loose(2), add_loose(1)};
    for (size_t c = 0; c < GR_COUNT(codes); c++)
        for (uint64_t k = 1; k <= 4; k++) {
            if (k <= 3)
                gr_tap_fail(&driver.tap, GR_ENTRY_cuMemMap, k, 1, codes[c]);
            else
                gr_tap_fail(&driver.tap, GR_ENTRY_cuMemSetAccess, 1, 1, codes[c]);
            ck_assert_int_eq(gr_range_map(&range, &driver, 2, 4, &loose), statuses[c]);
            ck_assert_uint_eq(gr_tap_refusals(&driver.tap), 1);
            ck_assert_uint_eq(fixture_held().mappings, 0);
            ck_assert_uint_eq(range.mapped, 0);
            for (size_t s = 0; s < SLOTS; s++) ck_assert_ptr_null(range.slot[s]);
            const struct gr_list *link = &loose;
            for (int i = 0; i < 3; i++) {
                link = link->next;
                ck_assert_ptr_eq(link, &e[i]->link);
                ck_assert_ptr_null(e[i]->range);
            }
            ck_assert_ptr_eq(link->next, &loose);
        }
    ck_assert(!gr_driver_lost(&driver));
    ck_assert_int_eq(gr_range_map(&range, &driver, 2, 4, &loose), GRANARY_OK);
    ck_assert_ptr_null(gr_range_check(&range));
}
END_TEST

START_TEST(an_unmap_is_asked_for_twice_before_it_counts_as_refused) {
    struct gr_extent *a = add_loose(2);
    ck_assert_int_eq(gr_range_map(&range, &driver, 0, 2, &loose), GRANARY_OK);
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemUnmap, 1, 1, GR_CU_UNKNOWN);
    ck_assert_int_eq(gr_range_unmap(&range, &driver, a), GRANARY_OK);
    ck_assert_uint_eq(fixture_held().mappings, 0);
    gr_list_append(&loose, &a->link);
}
END_TEST

START_TEST(a_refused_unmap_leaves_the_extent_where_it_is) {
    struct gr_extent *a = add_loose(2);
    ck_assert_int_eq(gr_range_map(&range, &driver, 0, 2, &loose), GRANARY_OK);
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemUnmap, 1, 2, GR_CU_UNKNOWN);
    ck_assert_int_eq(gr_range_unmap(&range, &driver, a), GRANARY_DRIVER);
    ck_assert_ptr_eq(a->range, &range);
    ck_assert_ptr_eq(range.slot[1], a);
    ck_assert_uint_eq(range.mapped, 2);
    ck_assert_ptr_null(gr_range_check(&range));
}
END_TEST

START_TEST(a_driver_that_cannot_even_undo_counts_as_lost) {
    /* Mapped addresses that nobody knows of must not be used again: no call is made any more. */
    add_loose(1);
    add_loose(1);
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemSetAccess, 1, 1, GR_CU_UNKNOWN);
    ck_assert_int_eq(gr_range_map(&range, &driver, 0, 1, &loose), GRANARY_DRIVER);
    ck_assert(!gr_driver_lost(&driver));
    gr_tap_fail(&driver.tap, GR_TAP_ANY, 2, 3, GR_CU_UNKNOWN); /* set-access, and unmap twice */
    ck_assert_int_eq(gr_range_map(&range, &driver, 0, 1, &loose), GRANARY_DRIVER);
    ck_assert(gr_driver_lost(&driver));
    uint64_t unmaps = count(GR_ENTRY_cuMemUnmap);
    struct gr_extent *mapped = GR_CONTAINER(loose.next, struct gr_extent, link);
    mapped->range = &range; /* as if it had been mapped before */
    range.slot[8] = mapped;
    mapped->slot = 8;
    ck_assert_int_eq(gr_range_unmap(&range, &driver, mapped), GRANARY_LOST);
    ck_assert_uint_eq(count(GR_ENTRY_cuMemUnmap), unmaps);
    mapped->range = NULL;
    range.slot[8] = NULL;
    atomic_store(&driver.lost, 0); /* to leave no trace of this test */
    ck_assert_int_eq(driver.call.cuMemUnmap(range.base, 2 * GR_MIB), GR_CU_SUCCESS);
}
END_TEST

START_TEST(forgetting_takes_an_extent_off_the_books_without_a_call) {
    struct gr_extent *a = add_loose(2);
    ck_assert_int_eq(gr_range_map(&range, &driver, 3, 2, &loose), GRANARY_OK);
    uint64_t before = gr_tap_total(&driver.tap);
    gr_range_forget(&range, a);
    ck_assert_uint_eq(gr_tap_total(&driver.tap), before);
    ck_assert_uint_eq(range.mapped, 0);
    ck_assert_ptr_null(a->range);
    ck_assert_ptr_null(gr_range_check(&range));
    ck_assert_int_eq(driver.call.cuMemUnmap(gr_range_addr_of(&range, 3), 4 * GR_MIB), GR_CU_SUCCESS);
    gr_list_append(&loose, &a->link);
}
END_TEST

START_TEST(wrong_slots_break_r1_and_wrong_sums_r2) {
    struct gr_extent *a = add_loose(2);
    ck_assert_int_eq(gr_range_map(&range, &driver, 3, 2, &loose), GRANARY_OK);
    ck_assert_ptr_null(gr_range_check(&range));
    range.slot[4] = NULL;
    ck_assert_str_eq(gr_range_check(&range), "R1");
    range.slot[4] = a;
    range.slot[9] = a;
    ck_assert_str_eq(gr_range_check(&range), "R1");
    range.slot[9] = NULL;
    a->slot = 2;
    ck_assert_str_eq(gr_range_check(&range), "R1");
    a->slot = 3;
    a->range = NULL;
    ck_assert_str_eq(gr_range_check(&range), "R1");
    a->range = &range;
    range.mapped = 3;
    ck_assert_str_eq(gr_range_check(&range), "R2");
    range.mapped = 2;
    ck_assert_ptr_null(gr_range_check(&range));
}
END_TEST

Suite *suite_range(void) {
    Suite *suite = suite_create("range");
    TCase *alone = tcase_create("reserving"), *cases = tcase_create("mapping");
    tcase_add_test(alone, a_reservation_that_is_refused_is_halved_down_to_the_need);
    tcase_add_test(alone, ranges_that_are_smaller_or_became_so_begin_at_any_granule);
    tcase_add_test(cases, a_range_that_spans_entries_of_the_address_table_begins_with_one);
    tcase_add_test(alone, a_range_that_cannot_begin_with_an_entry_begins_elsewhere_before_it_is_halved);
    tcase_add_test(alone, another_refusal_than_for_want_of_addresses_is_reported_and_not_tried_again);
    suite_add_tcase(suite, alone);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_range_has_its_slots_and_nothing_in_them);
    tcase_add_test(cases, a_run_is_mapped_in_order_with_one_set_access);
    tcase_add_test(cases, an_unmapped_extent_is_loose_and_keeps_its_memory);
    tcase_add_test(cases, what_is_mapped_is_granted_run_by_run);
    tcase_add_test(cases, a_run_of_which_one_call_is_refused_is_not_mapped_at_all);
    tcase_add_test(cases, an_unmap_is_asked_for_twice_before_it_counts_as_refused);
    tcase_add_test(cases, a_refused_unmap_leaves_the_extent_where_it_is);
    tcase_add_test(cases, a_driver_that_cannot_even_undo_counts_as_lost);
    tcase_add_test(cases, forgetting_takes_an_extent_off_the_books_without_a_call);
    tcase_add_test(cases, wrong_slots_break_r1_and_wrong_sums_r2);
    suite_add_tcase(suite, cases);
    return suite;
}
