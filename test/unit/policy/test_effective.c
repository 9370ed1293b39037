/* SPDX-License-Identifier: Apache-2.0
 * Settings in words: every key with its value and origin, and what was said but is not done. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/config.h"
#include "policy/effective.h"

static struct granary_options options;

static void setup(void) {
    static const char *const names[] = {"GRANARY_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
                                        "GRANARY_NO_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING"};
    for (size_t i = 0; i < GR_COUNT(names); i++) unsetenv(names[i]);
    gr_options_init(&options);
}

static void parse(const char *string) {
    ck_assert_int_eq(gr_config_parse(&options, string, NULL, GR_CONFIG_LENIENT, NULL), GRANARY_OK);
}

static struct granary_option_info info_of(const char *key) {
    struct granary_option_info info = {.struct_size = sizeof info};
    for (size_t i = 0; granary_options_effective(&options, i, &info) == GRANARY_OK; i++)
        if (strcmp(info.key, key) == 0) return info;
    ck_abort_msg("no key %s", key);
    return info;
}

static void check_value(const char *key, const char *value, const char *origin) {
    struct granary_option_info info = info_of(key);
    ck_assert_str_eq(info.value, value);
    ck_assert_str_eq(info.origin, origin);
}

/* The warnings, one a line. */
static const char *warnings(void) {
    static char all[4096];
    char text[512];
    all[0] = '\0';
    for (size_t i = 0; granary_options_warning(&options, i, text, sizeof text) == GRANARY_OK; i++) {
        strcat(all, text);
        strcat(all, "\n");
    }
    return all;
}

static void check_warned(const char *words) {
    ck_assert_msg(strstr(warnings(), words) != NULL, "no '%s' in: %s", words, warnings());
}

START_TEST(every_key_is_listed_once_with_what_it_takes_and_its_default) {
    struct granary_option_info info = {.struct_size = sizeof info};
    size_t count = 0;
    for (; granary_options_effective(&options, count, &info) == GRANARY_OK; count++) {
        ck_assert_str_ne(info.key, "");
        ck_assert_str_ne(info.sentence, "");
        ck_assert_str_ne(info.values, "");
        ck_assert_str_eq(info.value, info.standard);
        ck_assert_str_eq(info.origin, "default");
        ck_assert_str_eq(info.note, "");
        for (size_t j = 0; j < count; j++) ck_assert_str_ne(info.key, gr_options[j].key);
    }
    ck_assert_uint_eq(count, gr_option_count);
    ck_assert_str_eq(warnings(), "");
}
END_TEST

START_TEST(values_are_written_as_they_can_be_read) {
    parse("expandable_segments:0,max_split_size_mb:1GiB,memory_limit:1500,per_process_memory_fraction:.50,"
          "reclaim:eager,roundup_power2_divisions:[2:4,8:2],expandable_segments_reserve:10GiB,"
          "expandable_segments_reserve_by_class:[a:0.1,b:1K]");
    check_value("expandable_segments", "False", "string");
    check_value("max_split_size_mb", "1024", "string");
    check_value("memory_limit", "1500B", "string");
    check_value("per_process_memory_fraction", "0.5", "string");
    check_value("reclaim", "eager", "string");
    check_value("roundup_power2_divisions", "[1:4,2:4,8:2]", "string");
    check_value("expandable_segments_reserve", "10GiB", "string");
    check_value("expandable_segments_reserve_by_class", "[a:0.1,b:1KiB]", "string");
    check_value("extent_mb", "8", "default");
    check_value("max_non_split_rounding_mb", "large_segment_size_mb", "default");
}
END_TEST

START_TEST(the_largest_reserves_are_written_as_they_can_be_read) {
    static const struct granary_reserve rows[] = {
        {SIZE_MAX, 0}, {SIZE_MAX / 2, 0}, {1, 0}, {0, 1e17}, {0, 1e-6}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        char line[700];
        gr_options_init(&options);
        options.reserve = rows[i];
        struct granary_option_info info = info_of("expandable_segments_reserve");
        snprintf(line, sizeof line, "%s:%s", info.key, info.value);
        gr_options_init(&options);
        ck_assert_msg(granary_options_parse(&options, line, NULL, NULL) == GRANARY_OK, "%s", line);
        ck_assert_mem_eq(&options.reserve, &rows[i], sizeof rows[i]);
    }
}
END_TEST

START_TEST(an_origin_is_the_default_the_program_a_string_or_a_variable) {
    struct granary_option_error error;
    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", 1);
    setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    check_value("max_split_size_mb", "64", "PYTORCH_CUDA_ALLOC_CONF");
    check_value("no_caching", "True", "PYTORCH_NO_CUDA_MEMORY_CACHING");
    options.reclaim = GRANARY_RECLAIM_EAGER;
    check_value("reclaim", "eager", "program");
    parse("reclaim:pressure"); /* said, though it is the default */
    check_value("reclaim", "pressure", "string");
    parse("reclaim:default");
    check_value("reclaim", "pressure", "default");
    setup();
    setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:64", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    check_value("max_split_size_mb", "64", "PYTORCH_ALLOC_CONF");
    setup();
    setenv("GRANARY_CONF", "max_split_size_mb:64", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    check_value("max_split_size_mb", "64", "GRANARY_CONF");
    setup();
    setenv("GRANARY_CONF", "max_split_size_mb:64", 1);
    setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:32,roundup_power2_divisions:4", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    check_value("max_split_size_mb", "64", "GRANARY_CONF");
    check_value("roundup_power2_divisions", "4", "PYTORCH_ALLOC_CONF");
}
END_TEST

START_TEST(two_keys_of_one_field_have_one_origin) {
    parse("capture_reuse:graph");
    check_value("graph_capture_record_stream_reuse", "True", "string");
    check_value("capture_reuse", "graph", "string");
}
END_TEST

/* Case 65, and what else loses its effect beside expandable segments. */
START_TEST(settings_for_classic_segments_are_named_beside_expandable_ones) {
    parse("max_split_size_mb:500,garbage_collection_threshold:0.6,max_non_split_rounding_mb:32,"
          "roundup_power2_divisions:4,expandable_segments:True");
    check_warned("max_split_size_mb has no effect beside expandable_segments");
    check_warned("max_non_split_rounding_mb has no effect beside expandable_segments");
    check_warned("roundup_power2_divisions only costs memory beside expandable_segments");
    ck_assert_str_ne(info_of("max_split_size_mb").note, "");
    parse("expandable_segments:False");
    ck_assert_str_eq(warnings(), "");
}
END_TEST

START_TEST(settings_for_expandable_segments_are_named_beside_classic_ones) {
    parse("extent_mb:64,handle_cache:1GiB,expandable_segments_reserve:0.5,strict:1,"
          "expandable_segments_reserve_by_class:[a:1]");
    ck_assert_str_eq(warnings(), "");
    parse("expandable_segments:False,reclaim:eager");
    check_warned("extent_mb has no effect on classic segments");
    check_warned("handle_cache has no effect");
    check_warned("expandable_segments_reserve has no effect");
    check_warned("expandable_segments_reserve_by_class has no effect");
    check_warned("strict has no effect");
    check_warned("reclaim has nothing to move");
}
END_TEST

START_TEST(settings_that_are_unsafe_or_quarrel_are_named) {
    static const char *const rows[][2] = {
        {"reclaim:off", "reclaim is off: requests fail"},
        {"extent_mb:2", "extent_mb is below 8"},
        {"extent_mb:20,reclaim:eager", "extent_mb has no effect beside reclaim:eager"},
        {"large_segment_size_mb:64", "large_segment_size_mb has no effect beside expandable_segments"},
        {"throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom fails requests"},
        {"per_process_memory_fraction:0", "per_process_memory_fraction of 0"},
        {"per_process_memory_fraction:0.5,memory_limit:1G", "the lower one counts"},
        {"no_caching:True", "no_caching leaves"},
        {"expandable_segments:0,max_non_split_rounding_mb:32", "has no effect without max_split_size_mb"},
        {"capture_reuse:off,capture_marker:empty_node", "capture_marker has no effect"},
        {"release_lock_on_cudamalloc:False", "release_lock_on_cudamalloc is not obeyed: it is always so"},
        {"backend:cudaMallocAsync", "backend is not obeyed: granary is the allocator"},
        {"pinned_free_catch_all:True", "pinned_free_catch_all is ignored: granary manages no host memory"},
        {"future_key:3,other:[1,2]", "skipped: future_key, other"}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        gr_options_init(&options);
        parse(rows[i][0]);
        ck_assert_msg(strstr(warnings(), rows[i][1]) != NULL, "%s: no '%s' in: %s", rows[i][0], rows[i][1],
                      warnings());
    }
    gr_options_init(&options);
    parse("release_lock_on_cudamalloc:True,release_lock_on_hipmalloc:1,backend:native,per_process_memory_"
          "fraction:0.5,capture_reuse:graph");
    ck_assert_str_eq(warnings(), "");
}
END_TEST

/* Case 69: both names are set, in conflict. */
START_TEST(variables_that_were_not_read_are_named) {
    struct granary_option_error error;
    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 1);
    setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    check_value("expandable_segments", "False", "PYTORCH_CUDA_ALLOC_CONF");
    check_warned("PYTORCH_ALLOC_CONF was not read: PYTORCH_CUDA_ALLOC_CONF is set, to something else");
    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:False", 1); /* the same: nothing to say */
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_str_eq(warnings(), "");
}
END_TEST

START_TEST(structs_that_were_not_set_up_are_refused) {
    struct granary_option_info info = {.struct_size = 0};
    struct granary_options raw = {0};
    char text[64];
    ck_assert_int_eq(granary_options_effective(&options, 0, &info), GRANARY_INVALID);
    ck_assert_int_eq(granary_options_effective(&options, 0, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_options_effective(NULL, 0, &info), GRANARY_INVALID);
    info.struct_size = offsetof(struct granary_option_info, sentence); /* an older caller's */
    info.sentence = "untouched";
    ck_assert_int_eq(granary_options_effective(&raw, 0, &info), GRANARY_INVALID);
    ck_assert_int_eq(granary_options_effective(&options, 0, &info), GRANARY_OK);
    ck_assert_str_eq(info.key, "expandable_segments");
    ck_assert_str_eq(info.sentence, "untouched");
    ck_assert_int_eq(granary_options_warning(&raw, 0, text, sizeof text), GRANARY_INVALID);
    ck_assert_int_eq(granary_options_warning(&options, 0, NULL, 0), GRANARY_INVALID);
}
END_TEST

START_TEST(what_a_newer_caller_asks_for_besides_is_0) {
    struct {
        struct granary_option_info info;
        char more[64];
    } newer;
    memset(&newer, 0xAA, sizeof newer);
    newer.info.struct_size = sizeof newer;
    ck_assert_int_eq(granary_options_effective(&options, 0, &newer.info), GRANARY_OK);
    ck_assert_uint_eq(newer.info.struct_size, sizeof newer);
    for (size_t i = 0; i < sizeof newer.more; i++) ck_assert_int_eq(newer.more[i], 0);
    newer.info.struct_size = 1 << 20; /* not set up */
    ck_assert_int_eq(granary_options_effective(&options, 0, &newer.info), GRANARY_INVALID);
}
END_TEST

Suite *suite_effective(void) {
    Suite *suite = suite_create("effective");
    TCase *cases = tcase_create("effective");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, every_key_is_listed_once_with_what_it_takes_and_its_default);
    tcase_add_test(cases, values_are_written_as_they_can_be_read);
    tcase_add_test(cases, the_largest_reserves_are_written_as_they_can_be_read);
    tcase_add_test(cases, an_origin_is_the_default_the_program_a_string_or_a_variable);
    tcase_add_test(cases, two_keys_of_one_field_have_one_origin);
    tcase_add_test(cases, settings_for_classic_segments_are_named_beside_expandable_ones);
    tcase_add_test(cases, settings_for_expandable_segments_are_named_beside_classic_ones);
    tcase_add_test(cases, settings_that_are_unsafe_or_quarrel_are_named);
    tcase_add_test(cases, variables_that_were_not_read_are_named);
    tcase_add_test(cases, structs_that_were_not_set_up_are_refused);
    tcase_add_test(cases, what_a_newer_caller_asks_for_besides_is_0);
    suite_add_tcase(suite, cases);
    return suite;
}
