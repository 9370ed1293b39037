/* SPDX-License-Identifier: Apache-2.0
 * No caching: every block is a segment of the driver and goes when it is freed, with all figures. */
#include "support/captures.h"
#include "support/shortfall.h"

static granary_stream a, b;
static bool manual;

static void uncached(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 64 * GR_MIB;
    sim->clock = manual ? GRANARY_SIM_MANUAL : GRANARY_SIM_AT_ONCE;
    options->no_caching = 1;
    options->strict = 1; /* no expandable segments: that is what was asked for */
}

static void open_card(bool is_manual) {
    manual = is_manual;
    captures_open(uncached);
    a = captures_stream();
    b = captures_stream();
}

static uint64_t calls(enum gr_entry entry) {
    return gr_tap_count(&g->driver.tap, entry);
}

START_TEST(every_block_is_made_by_the_driver_and_given_back_at_once) {
    static const size_t sizes[] = {1, 512, 1000, GR_MIB, GR_MIB + 1, 5 * GR_MIB, 30 * GR_MIB};
    open_card(false);
    for (size_t i = 0; i < GR_COUNT(sizes); i++) {
        int64_t rounded = (int64_t)(sizes[i] + 511) / 512 * 512;
        uint64_t made = calls(GR_ENTRY_cuMemAlloc), freed = calls(GR_ENTRY_cuMemFree);
        void *p = fixture_alloc(g, sizes[i], a);
        struct granary_stats s = fixture_stats(g);
        ck_assert_int_eq(s.reserved_bytes.all.current, rounded); /* no segment size */
        ck_assert_int_eq(s.allocated_bytes.all.current, rounded);
        ck_assert_int_eq(s.requested_bytes.all.current, (int64_t)sizes[i]);
        ck_assert_int_eq(s.segments.all.current, 1);
        ck_assert_int_eq(s.allocations.all.current, 1);
        ck_assert_ptr_null(granary_verify(g));
        fixture_free(g, p);
        ck_assert_int_eq(granary_free(g, p), GRANARY_UNKNOWN_POINTER);
        s = fixture_stats(g);
        ck_assert_int_eq(s.reserved_bytes.all.current, 0);
        ck_assert_int_eq(s.segments.all.current, 0);
        ck_assert_int_eq(s.misses, (int64_t)i + 1);
        ck_assert_uint_eq(calls(GR_ENTRY_cuMemAlloc), made + 1);
        ck_assert_uint_eq(calls(GR_ENTRY_cuMemFree), freed + 1);
    }
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemAddressReserve), 1); /* of the probe when opening */
    captures_close();
}
END_TEST

START_TEST(a_block_that_another_stream_uses_goes_when_it_is_done) {
    open_card(true);
    void *p = fixture_alloc(g, 20 * GR_MIB, a), *q;
    captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    captures_use(b, p, 20 * GR_MIB, 1);
    fixture_free(g, p);
    ck_assert_int_eq(fixture_stats(g).pending_blocks, 1);
    ck_assert_int_eq(fixture_stats(g).reserved_bytes.all.current, 20 * GR_MIB);
    granary_sim_run_all();
    q = fixture_alloc(g, 20 * GR_MIB, a);
    ck_assert_int_eq(fixture_stats(g).reserved_bytes.all.current, 20 * GR_MIB); /* only the second one */
    ck_assert_int_eq(fixture_stats(g).segments.all.total_up, 2);
    fixture_free(g, q);
    captures_close();
}
END_TEST

START_TEST(in_a_capture_blocks_stay_until_it_ends) {
    open_card(true);
    granary_pool pool = captures_pool();
    void *outside = fixture_alloc(g, 4 * GR_MIB, b);
    struct capture capture = captures_begin(pool, a, RELAXED);
    void *p = fixture_alloc(g, 10 * GR_MIB, a);
    fixture_free(g, p);
    fixture_free(g, outside);
    ck_assert_int_eq(fixture_stats(g).segments.all.total_down, 0);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    fixture_free(g, fixture_alloc(g, 1000, b));
    ck_assert_int_eq(fixture_stats(g).segments.all.current, 1); /* the graph's */
    RAN(granary_pool_release(g, pool));
    fixture_free(g, fixture_alloc(g, 1000, b));
    RAN(granary_trim(g, 0, NULL));
    ck_assert_int_eq(fixture_stats(g).segments.all.current, 0);
    captures_close();
}
END_TEST

START_TEST(running_out_of_memory_and_limits_are_told_as_ever) {
    char words[128];
    void *p, *q;
    open_card(false);
    p = fixture_alloc(g, 40 * GR_MIB, a);
    ck_assert_int_eq(granary_alloc(g, 30 * GR_MIB, a, &q), GRANARY_OUT_OF_MEMORY);
    ck_assert_ptr_null(shortfall_wrong(g, words));
    ck_assert_uint_eq(fixture_fault(g).shortfall.grow_bytes, 30 * GR_MIB);
    RAN(granary_set_limit(g, 40 * GR_MIB + 1000));
    ck_assert_int_eq(granary_alloc(g, 1000, a, &q), GRANARY_OVER_LIMIT); /* 24 bytes too many */
    q = fixture_alloc(g, 512, a);
    fixture_free(g, q);
    fixture_free(g, p);
    captures_close();
}
END_TEST

Suite *suite_uncached(void) {
    Suite *suite = suite_create("uncached");
    TCase *cases = tcase_create("uncached");
    tcase_add_test(cases, every_block_is_made_by_the_driver_and_given_back_at_once);
    tcase_add_test(cases, a_block_that_another_stream_uses_goes_when_it_is_done);
    tcase_add_test(cases, in_a_capture_blocks_stay_until_it_ends);
    tcase_add_test(cases, running_out_of_memory_and_limits_are_told_as_ever);
    suite_add_tcase(suite, cases);
    return suite;
}
