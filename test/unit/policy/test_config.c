/* SPDX-License-Identifier: Apache-2.0
 * Option strings: what is taken, what is refused and in which words, and that a refusal changes
 * nothing. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/config.h"
#include "support/hot.h"
#include "support/rng.h"

static struct granary_options options;
static struct granary_option_error error;

static void setup(void) {
    gr_options_init(&options);
    unsetenv("GRANARY_CONF");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    unsetenv("PYTORCH_ALLOC_CONF");
    unsetenv("GRANARY_NO_CACHING");
    unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
}

static int strict(const char *string) {
    return gr_config_parse(&options, string, "CONF", GR_CONFIG_STRICT, &error);
}

static int lenient(const char *string) {
    return gr_config_parse(&options, string, "CONF", GR_CONFIG_LENIENT, &error);
}

/* string is refused with this token at this column, and changes nothing. */
static void check_refused(const char *string, bool is_lenient, size_t column, const char *token,
                          const char *words) {
    struct granary_options before = options;
    char place[32];
    int status = is_lenient ? lenient(string) : strict(string);
    ck_assert_msg(status == GRANARY_OPTION, "'%.60s' is taken (%d)", string, status);
    ck_assert_msg(memcmp(&before, &options, sizeof before) == 0, "'%.60s' changes something", string);
    ck_assert_msg(error.column == column, "'%.60s': column %zu: %s", string, error.column, error.text);
    ck_assert_str_eq(error.token, token);
    snprintf(place, sizeof place, "column %zu:", column);
    ck_assert_msg(strncmp(error.text, "CONF: ", 6) == 0 && strstr(error.text, place) != NULL, "%s",
                  error.text);
    ck_assert_msg(strstr(error.text, words) != NULL, "'%s' lacks '%s'", error.text, words);
}

START_TEST(the_defaults_are_the_documented_ones) {
    ck_assert_uint_eq(options.struct_size, sizeof options);
    ck_assert_int_eq(options.driver, GRANARY_DRIVER_CUDA);
    ck_assert_int_eq(options.expandable_segments, 1);
    ck_assert_int_eq(options.strict, 0);
    ck_assert_uint_eq(options.limit_bytes, GRANARY_UNLIMITED);
    ck_assert_double_eq(options.limit_fraction, 1);
    ck_assert_uint_eq(options.max_split_size, GRANARY_UNLIMITED);
    ck_assert_uint_eq(options.handle_cache_bytes, 0);
    ck_assert_int_eq(options.rdma_capable, 0);
    ck_assert_ptr_null(options.fault);
    ck_assert_double_eq(options.garbage_collection_threshold, 0);
    ck_assert_int_eq(options.no_caching, 0);
}
END_TEST

START_TEST(every_key_reaches_its_option) {
    ck_assert_int_eq(strict("expandable_segments:False,max_split_size_mb:128,per_process_memory_fraction:0.8,"
                            "memory_limit:10GiB,garbage_collection_threshold:0.6,no_caching:True"),
                     GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 0);
    ck_assert_uint_eq(options.max_split_size, 128 * GR_MIB);
    ck_assert_double_eq(options.limit_fraction, 0.8);
    ck_assert_uint_eq(options.limit_bytes, 10 * GR_GIB);
    ck_assert_double_eq(options.garbage_collection_threshold, 0.6);
    ck_assert_int_eq(options.no_caching, 1);
    ck_assert_uint_eq(error.column, 0);
    ck_assert_str_eq(error.text, "");
}
END_TEST

START_TEST(every_key_of_pytorch_reaches_its_option) {
    ck_assert_int_eq(strict("roundup_power2_divisions:[256:1,512:2,1024:4,>:8],large_segment_size_mb:64,"
                            "max_split_size_mb:256,max_non_split_rounding_mb:96,throw_on_cudamalloc_oom:True,"
                            "graph_capture_record_stream_reuse:False,expandable_segments_reserve:0.5,"
                            "expandable_segments_reserve_by_class:[kv:0.25, weights : 40g],"
                            "release_lock_on_cudamalloc:True"),
                     GRANARY_OK);
    static const uint32_t divisions[GRANARY_SIZE_INTERVALS] = {1, 1, 1, 1, 1, 1, 1, 1,
                                                               1, 2, 4, 8, 8, 8, 8, 8};
    ck_assert_mem_eq(options.roundup_power2_divisions, divisions, sizeof divisions);
    ck_assert_uint_eq(options.large_segment_size, 64 * GR_MIB);
    ck_assert_uint_eq(options.max_split_size, 256 * GR_MIB);
    ck_assert_uint_eq(options.max_non_split_rounding, 96 * GR_MIB);
    ck_assert_int_eq(options.reject_early, 1);
    ck_assert_int_eq(options.capture_reuse, GRANARY_REUSE_OFF);
    ck_assert_double_eq(options.reserve.fraction, 0.5);
    ck_assert_uint_eq(options.reserve.bytes, 0);
    ck_assert_str_eq(options.reserve_by_class[0].name, "kv");
    ck_assert_double_eq(options.reserve_by_class[0].reserve.fraction, 0.25);
    ck_assert_str_eq(options.reserve_by_class[1].name, "weights");
    ck_assert_uint_eq(options.reserve_by_class[1].reserve.bytes, 40 * GR_GIB);
    ck_assert_str_eq(options.reserve_by_class[2].name, "");
}
END_TEST

START_TEST(keys_of_our_own_reach_their_options) {
    ck_assert_int_eq(strict("strict:True,handle_cache:1GiB,rdma_capable:1,capture_marker:empty_node,"
                            "capture_reuse:graph,reclaim:eager,extent_mb:2"),
                     GRANARY_OK);
    ck_assert_int_eq(options.strict, 1);
    ck_assert_uint_eq(options.handle_cache_bytes, GR_GIB);
    ck_assert_int_eq(options.rdma_capable, 1);
    ck_assert_int_eq(options.capture_marker, GRANARY_MARKER_EMPTY_NODE);
    ck_assert_int_eq(options.capture_reuse, GRANARY_REUSE_GRAPH);
    ck_assert_int_eq(options.reclaim, GRANARY_RECLAIM_EAGER);
    ck_assert_uint_eq(options.extent_bytes, 2 * GR_MIB);
}
END_TEST

/* What a key of pinned memory, or the choice of another allocator, is answered. */
START_TEST(keys_that_set_nothing_are_checked_and_change_nothing_but_their_origin) {
    static const char *const fine[] = {
        "pinned_use_cuda_host_register:True", "pinned_num_register_threads:8",
        "pinned_free_catch_all:False",        "pinned_use_background_threads:True",
        "pinned_reserve_segment_size_mb:64",  "backend:native",
        "pinned_max_round_threshold_mb:128",  "pinned_max_cached_size_mb:128",
        "release_lock_on_cudamalloc:0",       "release_lock_on_hipmalloc:True",
        "pinned_use_hip_host_register:True",  "expandable_segments_handle_type:posix_fd"};
    for (size_t i = 0; i < GR_COUNT(fine); i++) {
        struct granary_options before = options;
        ck_assert_msg(strict(fine[i]) == GRANARY_OK, "%s", error.text);
        ck_assert_int_eq(memcmp(&before, &options, offsetof(struct granary_options, origin)), 0);
    }
    check_refused("pinned_num_register_threads:1024", true, 29, "1024", "at most 128");
    check_refused("pinned_num_register_threads:none", true, 29, "none", "whole number");
    check_refused("pinned_use_background_threads:maybe", true, 31, "maybe", "True or False");
    check_refused("release_lock_on_cudamalloc:maybe", true, 28, "maybe", "True or False");
    check_refused("expandable_segments_handle_type:x", true, 33, "x", "posix_fd|fabric");
    check_refused("backend:cudaMallocAsync", false, 9, "cudaMallocAsync", "granary is the allocator");
    ck_assert_int_eq(lenient("backend:cudaMallocAsync"), GRANARY_OK); /* with a warning */
}
END_TEST

START_TEST(sizes_take_units_and_every_key_takes_the_word_for_its_default) {
    ck_assert_int_eq(strict("max_split_size_mb:1.5GiB,extent_mb:64MiB,memory_limit:1G"), GRANARY_OK);
    ck_assert_uint_eq(options.max_split_size, 1536 * GR_MIB);
    ck_assert_uint_eq(options.extent_bytes, 64 * GR_MIB);
    ck_assert_int_eq(strict("max_split_size_mb:unlimited,extent_mb:default,memory_limit:default"),
                     GRANARY_OK);
    struct granary_options fresh;
    gr_options_init(&fresh);
    ck_assert_uint_eq(options.max_split_size, GRANARY_UNLIMITED);
    for (size_t i = 0; i < gr_option_count; i++) {
        char string[128];
        snprintf(string, sizeof string, "%s:%s", gr_options[i].key, gr_options[i].standard);
        ck_assert_msg(strict(string) == GRANARY_OK, "%s", error.text);
        snprintf(string, sizeof string, "%s:default", gr_options[i].key);
        ck_assert_msg(strict(string) == GRANARY_OK, "%s", error.text);
    }
    ck_assert_int_eq(memcmp(&fresh, &options, sizeof fresh), 0);
}
END_TEST

START_TEST(lists_are_refused_at_the_entry_that_is_wrong) {
    check_refused("roundup_power2_divisions:[]", false, 26, "[]", "empty list");
    check_refused("roundup_power2_divisions:[256]", false, 27, "256", "no entry in the list");
    check_refused("roundup_power2_divisions:[256:3]", false, 31, "3", "a power of two");
    check_refused("roundup_power2_divisions:[100:2]", false, 27, "100", "a power of two");
    check_refused("roundup_power2_divisions:[256:2,,512:2]", false, 33, ",", "empty entry in the list");
    check_refused("roundup_power2_divisions:[0:2]", false, 27, "0", "at least 1");
    check_refused("roundup_power2_divisions:0", false, 26, "0", "at least 1");
    check_refused("roundup_power2_divisions:3", false, 26, "3", "a power of two");
    check_refused("roundup_power2_divisions:8589934592", false, 26, "8589934592", "too large");
    check_refused("expandable_segments_reserve:0", false, 29, "0", "at least 0.000001");
    check_refused("expandable_segments_reserve:-1", false, 29, "-1", "a fraction such as 0.5");
    check_refused("expandable_segments_reserve:inf", false, 29, "inf", "a fraction such as 0.5");
    check_refused("expandable_segments_reserve:40GB", false, 29, "40GB", "a fraction such as 0.5");
    check_refused("expandable_segments_reserve_by_class:kv", false, 38, "kv", "[name:0.5");
    check_refused("expandable_segments_reserve_by_class:[kv:x]", false, 42, "x", "a fraction such as 0.5");
    check_refused("expandable_segments_reserve_by_class:[k v:1]", false, 39, "k v", "no name of a class");
    check_refused("expandable_segments_reserve_by_class:[a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1]", false, 71,
                  "i:1", "one class too many");
    check_refused("expandable_segments_reserve_by_class:[abcdefghijklmnopqrstuvwxyz012345:1]", false, 39,
                  "abcdefghijklmnopqrstuvwxyz012345", "up to 31");
    ck_assert_int_eq(strict("expandable_segments_reserve_by_class:[a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,a:2]"),
                     GRANARY_OK); /* named again: the last holds */
    ck_assert_double_eq(options.reserve_by_class[0].reserve.fraction, 2);
    ck_assert_int_eq(strict("expandable_segments_reserve_by_class:[]"), GRANARY_OK); /* none any more */
    ck_assert_str_eq(options.reserve_by_class[0].name, "");
}
END_TEST

START_TEST(split_sizes_below_the_segment_size_are_refused_wherever_the_string_names_one) {
    check_refused("max_split_size_mb:19", false, 19, "19", "at least large_segment_size_mb, which is 20");
    check_refused("max_non_split_rounding_mb:19", false, 27, "19",
                  "at least large_segment_size_mb, which is 20");
    check_refused("max_split_size_mb:63,large_segment_size_mb:64", false, 19, "63", "which is 64");
    check_refused("large_segment_size_mb:10", false, 23, "10", "at least 11");
    ck_assert_int_eq(strict("max_split_size_mb:20,large_segment_size_mb:11"), GRANARY_OK);
    ck_assert_int_eq(strict("max_split_size_mb:11"), GRANARY_OK);
    check_refused("large_segment_size_mb:default", false, 23, "default",
                  "at most max_split_size_mb, which is 11");
    ck_assert_int_eq(strict("large_segment_size_mb:64,max_split_size_mb:64,max_non_split_rounding_mb:64"),
                     GRANARY_OK); /* in any order */
}
END_TEST

START_TEST(an_update_refuses_what_is_fixed_at_opening) {
    static const char *const keys[] = {"strict",     "rdma_capable", "capture_marker", "no_caching",
                                       "trim_above", "history",      "history_stacks", "history_entries"};
    for (size_t i = 0; i < GR_COUNT(keys); i++) {
        char string[64];
        snprintf(string, sizeof string, "extent_mb:4,%s:default", keys[i]);
        ck_assert_int_eq(gr_config_parse(&options, string, "CONF", GR_CONFIG_CHANGE, &error), GRANARY_OPTION);
        ck_assert_uint_eq(error.column, 13);
        ck_assert_str_eq(error.token, keys[i]);
        ck_assert_ptr_nonnull(strstr(error.text, "fixed when a handle is opened"));
    }
    ck_assert_int_eq(gr_config_parse(&options, "extent_mb:4", "CONF", GR_CONFIG_CHANGE, &error), GRANARY_OK);
    ck_assert_uint_eq(options.extent_bytes, 4 * GR_MIB);
}
END_TEST

START_TEST(a_key_that_is_nearly_right_is_answered_with_the_right_one) {
    static const char *const rows[][2] = {{"max_split_size_mib:64", "max_split_size_mb is near"},
                                          {"EXPANDABLE_SEGMENTS:True", "expandable_segments is near"},
                                          {"expandable_segment:True", "expandable_segments is near"},
                                          {"recliam:off", "reclaim is near"},
                                          {"Backend:native", "backend is near"}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        ck_assert_int_eq(strict(rows[i][0]), GRANARY_OPTION);
        ck_assert_msg(strstr(error.text, rows[i][1]) != NULL, "%s", error.text);
        ck_assert_ptr_null(strstr(error.text, "there are"));
    }
    ck_assert_int_eq(strict("granary:1"), GRANARY_OPTION);
    ck_assert_ptr_null(strstr(error.text, "is near"));
}
END_TEST

START_TEST(only_named_options_change) {
    ck_assert_int_eq(strict("max_split_size_mb:128,expandable_segments:False"), GRANARY_OK);
    ck_assert_int_eq(strict("expandable_segments:True"), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 1);
    ck_assert_uint_eq(options.max_split_size, 128 * GR_MIB);
}
END_TEST

START_TEST(the_last_of_a_key_given_twice_holds) {
    ck_assert_int_eq(strict("memory_limit:1K,memory_limit:2K"), GRANARY_OK);
    ck_assert_uint_eq(options.limit_bytes, 2048);
}
END_TEST

START_TEST(booleans_are_true_false_and_digits_in_two_spellings) {
    static const char *const yes[] = {"True", "true", "1"}, *const no[] = {"False", "false", "0"};
    char string[64];
    for (size_t i = 0; i < GR_COUNT(yes); i++) {
        snprintf(string, sizeof string, "expandable_segments:%s", no[i]);
        ck_assert_int_eq(strict(string), GRANARY_OK);
        ck_assert_int_eq(options.expandable_segments, 0);
        snprintf(string, sizeof string, "expandable_segments:%s", yes[i]);
        ck_assert_int_eq(strict(string), GRANARY_OK);
        ck_assert_int_eq(options.expandable_segments, 1);
    }
    check_refused("expandable_segments:TRUE", false, 21, "TRUE", "True or False");
    check_refused("expandable_segments:yes", false, 21, "yes", "True or False");
    check_refused("expandable_segments:on", true, 21, "on", "True or False");
    check_refused("expandable_segments:2", false, 21, "2", "True or False");
}
END_TEST

START_TEST(nothing_and_one_last_comma_are_fine) {
    static const char *const rows[] = {"", "   ", "\"\"", "' '", "\t\r\n"};
    for (size_t i = 0; i < GR_COUNT(rows); i++) ck_assert_int_eq(strict(rows[i]), GRANARY_OK);
    ck_assert_int_eq(strict("max_split_size_mb:128,"), GRANARY_OK);
    ck_assert_int_eq(strict(" max_split_size_mb : 128 , "), GRANARY_OK);
    ck_assert_uint_eq(options.max_split_size, 128 * GR_MIB);
}
END_TEST

START_TEST(blanks_and_quotes_around_the_whole_are_dropped) {
    ck_assert_int_eq(strict("\"expandable_segments:False\""), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 0);
    ck_assert_int_eq(strict("'max_split_size_mb:64'"), GRANARY_OK);
    ck_assert_uint_eq(options.max_split_size, 64 * GR_MIB);
    ck_assert_int_eq(strict(" ' max_split_size_mb: 128 , expandable_segments : true ' \n"), GRANARY_OK);
    ck_assert_uint_eq(options.max_split_size, 128 * GR_MIB);
    ck_assert_int_eq(options.expandable_segments, 1);
    check_refused("\"expandable_segments:True", false, 1, "\"expandable_segments", "is no option");
    check_refused("  'memory_limit:x'", false, 17, "x", "memory_limit");
}
END_TEST

START_TEST(malformed_strings_are_refused_at_the_token) {
    check_refused("expandable_segments", false, 1, "expandable_segments", "has no value");
    check_refused("expandable_segments:", false, 1, "expandable_segments:", "has no value");
    check_refused("expandable_segments: ,memory_limit:1K", false, 1, "expandable_segments:", "has no value");
    check_refused(",", false, 1, ",", "empty entry");
    check_refused("memory_limit:1K,,expandable_segments:True", false, 17, ",", "empty entry");
    check_refused("a:1,,b:2", true, 5, ",", "empty entry");
    check_refused("a:1,,b:2", false, 1, "a", "is no option");
    check_refused(":True", false, 1, ":True", "no key");
    check_refused(":True", true, 1, ":True", "no key");
    check_refused("roundup_power2_divisions:[256:1", true, 26, "[256:1", "not closed");
    check_refused("x:256:1],memory_limit:1K", true, 1, "x:256:1]", "not opened");
    check_refused("memory_limit:1K,expandable_segments:True:False", false, 37, "True:False", "True or False");
    check_refused("expandable_segments:[True]", false, 21, "[True]", "True or False");
    check_refused("expandable_segments=True", false, 1, "expandable_segments=True",
                  "has no colon behind its key; write expandable_segments:VALUE");
    check_refused("memory_limit:1K, reclaim = off", false, 18, "reclaim = off", "write reclaim:VALUE");
    check_refused("expandable=True", false, 1, "expandable=True", "is no option");
}
END_TEST

START_TEST(rubbish_of_any_length_gives_a_short_sentence) {
    char *long_one = malloc(65537);
    memset(long_one, 'x', 65536);
    long_one[65536] = '\0';
    ck_assert_int_eq(strict(long_one), GRANARY_OPTION);
    ck_assert_uint_eq(strlen(error.token), sizeof error.token - 1);
    ck_assert_ptr_nonnull(strstr(error.text, "...' is no option; there are: expandable_segments"));
    ck_assert_ptr_nonnull(strstr(error.text, "no_caching"));
    free(long_one);
    check_refused("C\"", false, 1, "C\"", "is no option");
    check_refused("\x01\xff:1", false, 1, "??", "is no option");
}
END_TEST

START_TEST(unknown_keys_are_refused_or_skipped_with_their_value) {
    check_refused("memory_limit:1K,future_key:3", false, 17, "future_key", "there are: expandable_segments");
    check_refused("EXPANDABLE_SEGMENTS:True", false, 1, "EXPANDABLE_SEGMENTS", "is no option");
    ck_assert_int_eq(lenient("future_list:[256:1,512:2,>:8],future_key,C\","
                             "expandable_segments:False"),
                     GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 0);
    ck_assert_str_eq(options.skipped, "future_list, future_key, C\"");
    check_refused("future_key:3,max_split_size_mb:3", true, 32, "3", "at least 11");
}
END_TEST

START_TEST(numbers_outside_of_their_range_are_refused) {
    check_refused("max_split_size_mb:0", false, 19, "0", "at least 11");
    check_refused("max_split_size_mb:17592186044416", false, 19, "17592186044416", "too large");
    check_refused("max_split_size_mb:99999999999999999999999", false, 19, "99999999999999999999999",
                  "too large");
    check_refused("memory_limit:0", false, 14, "0", "at least 1 byte");
    check_refused("memory_limit:16777216TiB", false, 14, "16777216TiB", "too large");
    check_refused("per_process_memory_fraction:1.5", false, 29, "1.5", "at most 1");
    check_refused("garbage_collection_threshold:0", false, 30, "0", "above 0");
    check_refused("garbage_collection_threshold:1.0", true, 30, "1.0", "below 1");
    check_refused("garbage_collection_threshold:1.5", false, 30, "1.5", "below 1");
    check_refused("garbage_collection_threshold:.0000009", false, 30, ".0000009", "at least 0.000001");
    check_refused("per_process_memory_fraction:0.0000009", false, 29, "0.0000009", "at least 0.000001");
    check_refused("garbage_collection_threshold:nan", false, 30, "nan", "decimal number");
    ck_assert_int_eq(strict("per_process_memory_fraction:0"), GRANARY_OK); /* as PyTorch: nothing at all */
    ck_assert_int_eq(strict("max_split_size_mb:20,per_process_memory_fraction:1,memory_limit:1"), GRANARY_OK);
    ck_assert_int_eq(strict("max_split_size_mb:17592186044415,memory_limit:18446744073709551615"),
                     GRANARY_OK);
}
END_TEST

START_TEST(what_follows_a_number_is_refused) {
    check_refused("per_process_memory_fraction:0.8x", false, 29, "0.8x", "decimal number");
    check_refused("per_process_memory_fraction:nan", false, 29, "nan", "decimal number");
    check_refused("per_process_memory_fraction:-1", false, 29, "-1", "decimal number");
    check_refused("per_process_memory_fraction:", false, 1, "per_process_memory_fraction:", "no value");
    check_refused("max_split_size_mb:128MB", false, 19, "128MB", "whole number of MiB");
    check_refused("max_split_size_mb:20.5MiB", false, 19, "20.5MiB", "whole number of MiB");
    check_refused("max_split_size_mb:20.5", false, 19, "20.5", "whole number of MiB");
    check_refused("max_split_size_mb:-20", false, 19, "-20", "whole number of MiB");
    check_refused("memory_limit:10GB", false, 14, "10GB", "512MiB");
}
END_TEST

START_TEST(missing_arguments_are_invalid_and_no_error_struct_is_needed) {
    ck_assert_int_eq(gr_config_parse(NULL, "", NULL, GR_CONFIG_STRICT, &error), GRANARY_INVALID);
    ck_assert_int_eq(gr_config_parse(&options, NULL, NULL, GR_CONFIG_STRICT, &error), GRANARY_INVALID);
    ck_assert_str_ne(error.text, "");
    ck_assert_int_eq(gr_config_parse(&options, "x", NULL, GR_CONFIG_STRICT, NULL), GRANARY_OPTION);
    ck_assert_int_eq(gr_config_parse(&options, "x", NULL, GR_CONFIG_STRICT, &error), GRANARY_OPTION);
    ck_assert_int_eq(strncmp(error.text, "options: column 1:", 18), 0);
    struct granary_options raw = {0};
    ck_assert_int_eq(gr_config_parse(&raw, "", NULL, GR_CONFIG_STRICT, &error), GRANARY_INVALID);
}
END_TEST

START_TEST(our_own_variable_changes_what_the_first_of_pytorchs_says) {
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 1);

    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:False,backend:native", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 0);

    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", 1);
    gr_options_init(&options);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 1);
    ck_assert_uint_eq(options.max_split_size, 64 * GR_MIB);

    setenv("GRANARY_CONF", "reclaim:off", 1);
    gr_options_init(&options);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.reclaim, GRANARY_RECLAIM_OFF);
    ck_assert_uint_eq(options.max_split_size, 64 * GR_MIB);
    setenv("GRANARY_CONF", "max_split_size_mb:default", 1);
    gr_options_init(&options);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_uint_eq(options.max_split_size, GRANARY_UNLIMITED);

    setenv("PYTORCH_CUDA_ALLOC_CONF", "", 1); /* set to nothing is set */
    unsetenv("GRANARY_CONF");
    gr_options_init(&options);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 1);
    ck_assert_uint_eq(options.max_split_size, GRANARY_UNLIMITED);
}
END_TEST

START_TEST(our_own_variable_is_strict_and_errors_name_the_variable) {
    setenv("GRANARY_CONF", "future_key:3", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OPTION);
    ck_assert_int_eq(strncmp(error.text, "GRANARY_CONF: column 1:", 23), 0);
    unsetenv("GRANARY_CONF");
    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:maybe", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OPTION);
    ck_assert_int_eq(strncmp(error.text, "PYTORCH_ALLOC_CONF: column 21:", 30), 0);
}
END_TEST

START_TEST(caching_is_switched_off_by_a_variable_of_its_own) {
    setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.no_caching, 1);
    setenv("GRANARY_NO_CACHING", "0", 1); /* ours comes first */
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.no_caching, 0);
    setenv("GRANARY_NO_CACHING", "1", 1);
    setenv("GRANARY_CONF", "no_caching:False", 1); /* a string says more than a switch */
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.no_caching, 0);
    setenv("GRANARY_NO_CACHING", " maybe", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OPTION);
    ck_assert_int_eq(strncmp(error.text, "GRANARY_NO_CACHING: column 2: 'maybe'", 37), 0);
}
END_TEST

/* ---- any string at all ------------------------------------------------------------------------ */

/* Pieces of good strings, thrown together, and now and then a byte of any kind. The fuzz target says more. */
static size_t make_string(struct rng *rng, char *out, size_t room) {
    static const char *const pieces[] = {
        ":",     ":",   ":",   ",",     ",",  "[",       "]", "True",
        "false", "128", "0.5", "10GiB", " ",  "\"",      "'", "99999999999999999999",
        "0",     ".",   "-",   "x",     "\t", "default", ">"};
    size_t len = 0, count = rng_below(rng, 12);
    for (size_t i = 0; i < count; i++) {
        const char *piece = rng_once_in(rng, 3) ? gr_options[rng_below(rng, gr_option_count)].key
                                                : pieces[rng_below(rng, GR_COUNT(pieces))];
        char byte[2] = {(char)(1 + rng_below(rng, 255)), '\0'};
        if (rng_once_in(rng, 10)) piece = byte;
        if (len + strlen(piece) >= room) break;
        memcpy(out + len, piece, strlen(piece));
        len += strlen(piece);
    }
    out[len] = '\0';
    return len;
}

START_TEST(any_string_is_taken_or_refused_whole) {
    struct rng rng = {1};
    char string[512], reason[256];
    size_t taken = 0, refused = 0;
    for (int i = 0; i < 20000; i++) {
        size_t len = make_string(&rng, string, sizeof string);
        char *exact =
            memcpy(malloc(len + 1), string, len + 1); /* so that a sanitizer sees one byte too far */
        struct granary_options before;
        gr_options_init(&options);
        before = options;
        int status = gr_config_parse(&options, exact, "CONF", i % 3, &error);
        if (status == GRANARY_OK) {
            taken++;
            HOT_ASSERT(gr_options_check(&options, reason, sizeof reason) == GRANARY_OK);
            HOT_ASSERT(error.text[0] == '\0');
        } else {
            refused++;
            HOT_ASSERT(status == GRANARY_OPTION && error.token[0] != '\0');
            HOT_ASSERT(memcmp(&before, &options, sizeof before) == 0);
            HOT_ASSERT(error.column >= 1 && error.column <= len);
            char token[sizeof error.token];
            gr_text_quote(token, sizeof token, string + error.column - 1, strlen(error.token));
            HOT_ASSERT(strcmp(token, error.token) == 0);
        }
        free(exact);
    }
    ck_assert_uint_gt(taken, 1000);
    ck_assert_uint_gt(refused, 1000);
}
END_TEST

START_TEST(what_is_written_is_what_is_read) {
    struct rng rng = {2};
    for (int i = 0; i < 5000; i++) {
        char string[256];
        int expandable = (int)rng_below(&rng, 2);
        size_t split = 20 + rng_below(&rng, 1 << 20), limit = 1 + rng_below(&rng, SIZE_MAX),
               thousandths = rng_below(&rng, 1001);
        snprintf(string, sizeof string,
                 "%smax_split_size_mb:%zu ,memory_limit: "
                 "%zu,expandable_segments:%s,per_process_memory_fraction:%zu.%03zu",
                 rng_once_in(&rng, 2) ? " " : "", split, limit, expandable ? "True" : "False",
                 thousandths / 1000, thousandths % 1000);
        gr_options_init(&options);
        HOT_ASSERT(strict(string) == GRANARY_OK);
        HOT_ASSERT(options.expandable_segments == expandable && options.max_split_size == split * GR_MIB);
        HOT_ASSERT(options.limit_bytes == limit && options.limit_fraction == (double)thousandths / 1000);
    }
}
END_TEST

Suite *suite_config(void) {
    Suite *suite = suite_create("config");
    TCase *cases = tcase_create("config");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, the_defaults_are_the_documented_ones);
    tcase_add_test(cases, every_key_reaches_its_option);
    tcase_add_test(cases, every_key_of_pytorch_reaches_its_option);
    tcase_add_test(cases, keys_of_our_own_reach_their_options);
    tcase_add_test(cases, keys_that_set_nothing_are_checked_and_change_nothing_but_their_origin);
    tcase_add_test(cases, sizes_take_units_and_every_key_takes_the_word_for_its_default);
    tcase_add_test(cases, lists_are_refused_at_the_entry_that_is_wrong);
    tcase_add_test(cases, split_sizes_below_the_segment_size_are_refused_wherever_the_string_names_one);
    tcase_add_test(cases, an_update_refuses_what_is_fixed_at_opening);
    tcase_add_test(cases, a_key_that_is_nearly_right_is_answered_with_the_right_one);
    tcase_add_test(cases, only_named_options_change);
    tcase_add_test(cases, the_last_of_a_key_given_twice_holds);
    tcase_add_test(cases, booleans_are_true_false_and_digits_in_two_spellings);
    tcase_add_test(cases, nothing_and_one_last_comma_are_fine);
    tcase_add_test(cases, blanks_and_quotes_around_the_whole_are_dropped);
    tcase_add_test(cases, malformed_strings_are_refused_at_the_token);
    tcase_add_test(cases, rubbish_of_any_length_gives_a_short_sentence);
    tcase_add_test(cases, unknown_keys_are_refused_or_skipped_with_their_value);
    tcase_add_test(cases, numbers_outside_of_their_range_are_refused);
    tcase_add_test(cases, what_follows_a_number_is_refused);
    tcase_add_test(cases, missing_arguments_are_invalid_and_no_error_struct_is_needed);
    tcase_add_test(cases, our_own_variable_changes_what_the_first_of_pytorchs_says);
    tcase_add_test(cases, our_own_variable_is_strict_and_errors_name_the_variable);
    tcase_add_test(cases, caching_is_switched_off_by_a_variable_of_its_own);
    tcase_add_test(cases, any_string_is_taken_or_refused_whole);
    tcase_add_test(cases, what_is_written_is_what_is_read);
    suite_add_tcase(suite, cases);
    return suite;
}
