/* SPDX-License-Identifier: Apache-2.0
 * The public functions: what they refuse and in which words, and what they report. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "heap/heap.h"
#include "support/fixture.h"

static granary *g;

static void setup(void) {
    g = fixture_open(NULL);
}

static void teardown(void) {
    fixture_close(g);
}

static void check_fault(const char *call, int status, const char *words) {
    struct granary_fault fault = fixture_fault(g);
    ck_assert_str_eq(fault.call, call);
    ck_assert_int_eq(fault.status, status);
    ck_assert_msg(strstr(fault.text, words) != NULL, "'%s' lacks '%s'", fault.text, words);
}

/* ---- words ------------------------------------------------------------------------------------ */

START_TEST(every_status_has_a_name_and_a_sentence_of_its_own) {
    for (int status = 0; status >= -15; status--) {
        ck_assert_msg(strncmp(granary_status_name(status), "GRANARY_", 8) == 0, "%d", status);
        for (int other = 0; other > status; other--) {
            ck_assert_str_ne(granary_status_name(status), granary_status_name(other));
            ck_assert_str_ne(granary_status_sentence(status), granary_status_sentence(other));
        }
    }
    ck_assert_str_eq(granary_status_name(GRANARY_OUT_OF_MEMORY), "GRANARY_OUT_OF_MEMORY");
    ck_assert_str_eq(granary_status_sentence(GRANARY_OK), "success");
    ck_assert_ptr_nonnull(granary_status_name(12345));
    ck_assert_ptr_nonnull(granary_status_sentence(-12345));
}
END_TEST

START_TEST(the_version_is_that_of_the_header) {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", GRANARY_VERSION_MAJOR, GRANARY_VERSION_MINOR,
             GRANARY_VERSION_PATCH);
    ck_assert_str_eq(granary_version(), version);
}
END_TEST

/* ---- arguments -------------------------------------------------------------------------------- */

START_TEST(a_handle_that_is_null_is_invalid_everywhere) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    struct granary_facts facts = {.struct_size = sizeof facts};
    struct granary_fault fault = {.struct_size = sizeof fault};
    struct granary_driver_calls calls = {.struct_size = sizeof calls};
    granary_stream stream = NULL;
    void *ptr = NULL;
    size_t size;
    ck_assert_int_eq(granary_alloc(NULL, 512, NULL, &ptr), GRANARY_INVALID);
    ck_assert_int_eq(granary_free(NULL, &size), GRANARY_INVALID);
    ck_assert_int_eq(granary_size_of(NULL, &size, &size), GRANARY_INVALID);
    ck_assert_int_eq(granary_trim(NULL, 0, &size), GRANARY_INVALID);
    ck_assert_int_eq(granary_set_limit(NULL, 0), GRANARY_INVALID);
    ck_assert_int_eq(granary_stream_create(NULL, &stream), GRANARY_INVALID);
    ck_assert_int_eq(granary_stream_destroy(NULL, stream), GRANARY_INVALID);
    ck_assert_int_eq(granary_get_stats(NULL, &stats), GRANARY_INVALID);
    ck_assert_int_eq(granary_get_facts(NULL, &facts), GRANARY_INVALID);
    ck_assert_int_eq(granary_get_driver_calls(NULL, &calls), GRANARY_INVALID);
    ck_assert_int_eq(granary_last_fault(NULL, &fault), GRANARY_INVALID);
    ck_assert_int_eq(granary_reset_peaks(NULL), GRANARY_INVALID);
    ck_assert_ptr_null(granary_verify(NULL));
    granary_close(NULL);
    granary_options_init(NULL);
}
END_TEST

START_TEST(a_place_for_the_answer_that_is_null_is_invalid) {
    void *ptr = fixture_alloc(g, 512, NULL);
    ck_assert_int_eq(granary_alloc(g, 512, NULL, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_size_of(g, ptr, NULL), GRANARY_INVALID);
    check_fault("granary_size_of", GRANARY_INVALID, "out is NULL");
    ck_assert_int_eq(granary_get_stats(g, NULL), GRANARY_INVALID);
    check_fault("granary_get_stats", GRANARY_INVALID, "out is NULL");
    ck_assert_int_eq(granary_get_facts(g, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_get_driver_calls(g, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_last_fault(g, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_stream_create(g, NULL), GRANARY_INVALID);
    check_fault("granary_stream_create", GRANARY_INVALID, "out is NULL");
    ck_assert_int_eq(granary_open(0, NULL, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_options_parse(NULL, "", NULL, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_options_from_environment(NULL, NULL), GRANARY_INVALID);
    ck_assert_int_eq(fixture_stats(g).allocations.all.current, 1);
    ck_assert_int_eq(granary_trim(g, GRANARY_UNLIMITED, NULL), GRANARY_OK); /* here it is allowed */
}
END_TEST

START_TEST(the_default_stream_cannot_be_destroyed) {
    ck_assert_int_eq(granary_stream_destroy(g, NULL), GRANARY_INVALID);
    check_fault("granary_stream_destroy", GRANARY_INVALID, "default stream");
}
END_TEST

START_TEST(structs_of_older_and_newer_callers_are_filled_as_far_as_they_go) {
    struct {
        struct granary_stats stats;
        char more[64];
    } newer;
    struct granary_stats older;
    (void)fixture_alloc(g, 1000, NULL);
    memset(&newer, 0xAA, sizeof newer);
    newer.stats.struct_size = sizeof newer;
    ck_assert_int_eq(granary_get_stats(g, &newer.stats), GRANARY_OK);
    ck_assert_uint_eq(newer.stats.struct_size, sizeof newer);
    ck_assert_int_eq(newer.stats.allocated_bytes.all.current, 1024);
    for (size_t i = 0; i < sizeof newer.more; i++)
        ck_assert_int_eq(newer.more[i], 0); /* what we do not know is 0 */
    memset(&older, 0xAA, sizeof older);
    older.struct_size = offsetof(struct granary_stats, active_bytes);
    ck_assert_int_eq(granary_get_stats(g, &older), GRANARY_OK);
    ck_assert_int_eq(older.allocated_bytes.all.current, 1024);
    ck_assert_int_eq(((unsigned char *)&older)[offsetof(struct granary_stats, active_bytes)], 0xAA);
    older.struct_size = 0;
    ck_assert_int_eq(granary_get_stats(g, &older), GRANARY_INVALID);
    check_fault("granary_get_stats", GRANARY_INVALID, "struct_size is 0");
    older.struct_size = 1 << 20;
    ck_assert_int_eq(granary_get_stats(g, &older), GRANARY_INVALID);
}
END_TEST

START_TEST(a_successful_call_leaves_the_words_of_the_last_failure) {
    ck_assert_int_eq(granary_free(g, (void *)100), GRANARY_UNKNOWN_POINTER);
    fixture_free(g, fixture_alloc(g, 1, NULL));
    check_fault("granary_free", GRANARY_UNKNOWN_POINTER, "0x64");
}
END_TEST

START_TEST(before_any_failure_the_fault_is_empty) {
    struct granary_fault fault = fixture_fault(g);
    ck_assert_int_eq(fault.status, GRANARY_OK);
    ck_assert_str_eq(fault.text, "");
}
END_TEST

/* ---- sizes ------------------------------------------------------------------------------------ */

START_TEST(size_of_is_the_size_as_it_was_rounded) {
    static const size_t rows[][2] = {
        {1, 512}, {512, 512}, {513, 1024}, {GR_MIB, GR_MIB}, {GR_MIB + 1, GR_MIB + 512}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        size_t size = 0;
        void *ptr = fixture_alloc(g, rows[i][0], NULL);
        ck_assert_uint_eq((uintptr_t)ptr % 512, 0);
        ck_assert_int_eq(granary_size_of(g, ptr, &size), GRANARY_OK);
        ck_assert_uint_eq(size, rows[i][1]);
        fixture_free(g, ptr);
        ck_assert_int_eq(granary_size_of(g, ptr, &size), GRANARY_UNKNOWN_POINTER);
    }
}
END_TEST

/* ---- facts and figures ------------------------------------------------------------------------ */

START_TEST(the_facts_are_those_of_the_device) {
    struct granary_facts facts = {.struct_size = sizeof facts};
    ck_assert_int_eq(granary_get_facts(g, &facts), GRANARY_OK);
    ck_assert_int_eq(facts.device, 0);
    ck_assert_int_eq(facts.simulated, 1);
    ck_assert_int_eq(facts.expandable_segments, 1);
    ck_assert_str_eq(facts.expandable_reason, "");
    ck_assert_uint_eq(facts.total_bytes, GR_GIB);
    ck_assert_uint_eq(facts.granule_bytes, 2 * GR_MIB);
    ck_assert_int_eq(facts.driver_version, 13000);
    ck_assert_str_ne(facts.name, "");
}
END_TEST

START_TEST(driver_calls_are_counted_by_kind) {
    struct granary_driver_calls before = {.struct_size = sizeof before},
                                after = {.struct_size = sizeof after};
    ck_assert_int_eq(granary_get_driver_calls(g, &before), GRANARY_OK);
    fixture_free(g, fixture_alloc(g, 40 * GR_MIB, NULL));
    ck_assert_int_eq(granary_get_driver_calls(g, &after), GRANARY_OK);
    ck_assert_uint_eq(after.reserve, before.reserve + 1);
    ck_assert_uint_ge(after.create, before.create + 1);
    ck_assert_uint_eq(after.create - before.create, after.map - before.map);
    ck_assert_uint_eq(after.set_access, before.set_access + 1); /* case 27: one for the whole run */
    ck_assert_uint_eq(after.unmap, before.unmap);
    ck_assert_uint_eq(after.mem_alloc, before.mem_alloc);
    ck_assert_uint_eq(after.synchronize, before.synchronize);
    ck_assert_uint_eq(after.event_record, before.event_record); /* a free records nothing */
}
END_TEST

START_TEST(figures_follow_an_allocation_and_its_free) {
    void *ptr = fixture_alloc(g, 3 * GR_MIB + 1, NULL);
    struct granary_stats s = fixture_stats(g);
    ck_assert_int_eq(s.allocated_bytes.all.current, 3 * GR_MIB + 512);
    ck_assert_int_eq(s.allocated_bytes.large.current, 3 * GR_MIB + 512);
    ck_assert_int_eq(s.allocated_bytes.small.current, 0);
    ck_assert_int_eq(s.requested_bytes.all.current, 3 * GR_MIB + 1);
    ck_assert_int_eq(s.active_bytes.all.current, 3 * GR_MIB + 512);
    ck_assert_int_eq(s.reserved_bytes.all.current, 4 * GR_MIB); /* the granules that it needs, no more */
    ck_assert_int_eq(s.misses, 1);
    ck_assert_int_eq(s.maps, 1);
    ck_assert_int_eq(s.ranges, 1);
    ck_assert_int_gt(s.reserved_address_bytes, (int64_t)GR_GIB);
    fixture_free(g, ptr);
    s = fixture_stats(g);
    ck_assert_int_eq(s.allocated_bytes.all.current, 0);
    ck_assert_int_eq(s.requested_bytes.all.current, 0);
    ck_assert_int_eq(s.allocated_bytes.all.peak, 3 * GR_MIB + 512);
    ck_assert_int_eq(s.allocated_bytes.all.total_up, 3 * GR_MIB + 512);
    ck_assert_int_eq(s.allocated_bytes.all.total_down, 3 * GR_MIB + 512);
    ck_assert_int_eq(s.reserved_bytes.all.current, 4 * GR_MIB);
    ck_assert_int_eq(granary_reset_peaks(g), GRANARY_OK);
    s = fixture_stats(g);
    ck_assert_int_eq(s.allocated_bytes.all.peak, 0);
    ck_assert_int_eq(s.reserved_bytes.all.peak, 4 * GR_MIB);
    ck_assert_int_eq(s.allocated_bytes.all.total_up, 3 * GR_MIB + 512); /* totals never go back */
}
END_TEST

/* ---- opening ---------------------------------------------------------------------------------- */

static void check_refused(struct granary_options *options, int device, int status, const char *words) {
    struct granary_fault fault = {.struct_size = sizeof fault};
    granary *none = (granary *)&fault;
    options->fault = &fault;
    ck_assert_int_eq(granary_open(device, options, &none), status);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(fault.status, status);
    ck_assert_str_eq(fault.call, "granary_open");
    ck_assert_msg(strstr(fault.text, words) != NULL, "'%s' lacks '%s'", fault.text, words);
}

START_TEST(words_of_a_failed_opening_fit_what_an_older_caller_has) {
    union {
        struct granary_fault fault;
        unsigned char bytes[sizeof(struct granary_fault) + 64];
    } theirs;
    struct granary_options options;
    granary *none;
    const size_t sizes[] = {sizeof(size_t), offsetof(struct granary_fault, text),
                            sizeof(struct granary_fault), sizeof theirs};
    for (size_t i = 0; i < GR_COUNT(sizes); i++) {
        memset(&theirs, 0xA5, sizeof theirs);
        theirs.fault.struct_size = sizes[i];
        granary_options_init(&options);
        options.driver = GRANARY_DRIVER_SIM;
        options.reclaim = 3;
        options.fault = &theirs.fault;
        ck_assert_int_eq(granary_open(0, &options, &none), GRANARY_INVALID);
        ck_assert_uint_eq(theirs.fault.struct_size, sizes[i]);
        if (sizes[i] > sizeof(size_t)) ck_assert_int_eq(theirs.fault.status, GRANARY_INVALID);
        for (size_t b = sizes[i]; b < sizeof theirs; b++) ck_assert_uint_eq(theirs.bytes[b], 0xA5);
    }
}
END_TEST

START_TEST(opening_refuses_options_that_make_no_sense_and_names_them) {
    struct granary_options options;
#define TRY(field, value, words)                            \
    do {                                                    \
        granary_options_init(&options);                     \
        options.driver = GRANARY_DRIVER_SIM;                \
        options.field = (value);                            \
        check_refused(&options, 0, GRANARY_INVALID, words); \
    } while (0)
    TRY(driver, (enum granary_driver)7, "driver is 7");
    TRY(limit_fraction, 1.5, "limit_fraction is 1.5");
    TRY(limit_fraction, -1, "limit_fraction is -1");
    TRY(limit_fraction, (double)NAN, "limit_fraction");
    TRY(max_split_size, 20 * GR_MIB - 1, "max_split_size");
    TRY(max_non_split_rounding, 20 * GR_MIB - 512, "max_non_split_rounding");
    TRY(large_segment_size, 10 * GR_MIB, "large_segment_size");
    TRY(large_segment_size, 20 * GR_MIB + 1, "no multiple of 512");
    TRY(roundup_power2_divisions[3], 3, "roundup_power2_divisions");
    TRY(garbage_collection_threshold, 1, "garbage_collection_threshold is 1");
    TRY(reclaim, 3, "reclaim is 3");
    TRY(capture_reuse, -1, "capture_reuse is -1");
    TRY(extent_bytes, 1, "extent_bytes is 1 bytes");
    TRY(reserve.fraction, -1, "reserve");
    TRY(reserve.fraction, 1e300, "reserve");
    TRY(garbage_collection_threshold, 1e-300, "garbage_collection_threshold is 1e-300");
    TRY(limit_fraction, 1e-9, "limit_fraction is 1e-09");
#undef TRY
    granary_options_init(&options);
    options.driver = GRANARY_DRIVER_SIM;
    check_refused(&options, 5, GRANARY_NO_DEVICE, "no device 5");
    static const size_t wrong[] = {0, 8, 1 << 20}; /* not set up at all: not even its fault is looked at */
    for (size_t i = 0; i < GR_COUNT(wrong); i++) {
        granary *none = g;
        options.struct_size = wrong[i];
        ck_assert_int_eq(granary_open(0, &options, &none), GRANARY_INVALID);
        ck_assert_ptr_null(none);
    }
}
END_TEST

Suite *suite_api(void) {
    Suite *suite = suite_create("api");
    TCase *cases = tcase_create("api");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, every_status_has_a_name_and_a_sentence_of_its_own);
    tcase_add_test(cases, the_version_is_that_of_the_header);
    tcase_add_test(cases, a_handle_that_is_null_is_invalid_everywhere);
    tcase_add_test(cases, a_place_for_the_answer_that_is_null_is_invalid);
    tcase_add_test(cases, the_default_stream_cannot_be_destroyed);
    tcase_add_test(cases, structs_of_older_and_newer_callers_are_filled_as_far_as_they_go);
    tcase_add_test(cases, a_successful_call_leaves_the_words_of_the_last_failure);
    tcase_add_test(cases, before_any_failure_the_fault_is_empty);
    tcase_add_test(cases, size_of_is_the_size_as_it_was_rounded);
    tcase_add_test(cases, the_facts_are_those_of_the_device);
    tcase_add_test(cases, driver_calls_are_counted_by_kind);
    tcase_add_test(cases, figures_follow_an_allocation_and_its_free);
    tcase_add_test(cases, opening_refuses_options_that_make_no_sense_and_names_them);
    tcase_add_test(cases, words_of_a_failed_opening_fit_what_an_older_caller_has);
    suite_add_tcase(suite, cases);
    return suite;
}
