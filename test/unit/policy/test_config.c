/* SPDX-License-Identifier: Apache-2.0
 * Option strings: what is taken, what is refused and in which words, and that a refusal changes
 * nothing. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/config.h"

static struct granary_options options;
static struct granary_option_error error;

static void setup(void) {
    gr_config_init(&options);
    unsetenv("GRANARY_CONF");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    unsetenv("PYTORCH_ALLOC_CONF");
    unsetenv("GRANARY_NO_CACHING");
    unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
}

static int strict(const char *string) {
    return gr_config_parse(&options, string, "CONF", false, &error);
}

static int lenient(const char *string) {
    return gr_config_parse(&options, string, "CONF", true, &error);
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
    check_refused("expandable_segments=True", false, 1, "expandable_segments=True", "is no option");
}
END_TEST

START_TEST(rubbish_of_any_length_gives_a_short_sentence) {
    char *long_one = malloc(65537);
    memset(long_one, 'x', 65536);
    long_one[65536] = '\0';
    ck_assert_int_eq(strict(long_one), GRANARY_OPTION);
    ck_assert_uint_eq(strlen(error.token), sizeof error.token - 1);
    ck_assert_ptr_nonnull(strstr(error.text, "...' is no option; there are: expandable_segments"));
    ck_assert_ptr_nonnull(strstr(error.text, "memory_limit"));
    free(long_one);
    check_refused("C\"", false, 1, "C\"", "is no option");
    check_refused("\x01\xff:1", false, 1, "??", "is no option");
}
END_TEST

START_TEST(unknown_keys_are_refused_or_skipped_with_their_value) {
    check_refused("memory_limit:1K,future_key:3", false, 17, "future_key", "there are: expandable_segments");
    check_refused("EXPANDABLE_SEGMENTS:True", false, 1, "EXPANDABLE_SEGMENTS", "is no option");
    ck_assert_int_eq(lenient("backend:native,roundup_power2_divisions:[256:1,512:2,>:8],future_key,C\","
                             "expandable_segments:False"),
                     GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 0);
    check_refused("future_key:3,max_split_size_mb:3", true, 32, "3", "at least 20");
}
END_TEST

START_TEST(numbers_outside_of_their_range_are_refused) {
    check_refused("max_split_size_mb:19", false, 19, "19", "at least 20");
    check_refused("max_split_size_mb:0", false, 19, "0", "at least 20");
    check_refused("max_split_size_mb:17592186044416", false, 19, "17592186044416", "too large");
    check_refused("max_split_size_mb:99999999999999999999999", false, 19, "99999999999999999999999",
                  "too large");
    check_refused("memory_limit:0", false, 14, "0", "at least 1 byte");
    check_refused("memory_limit:16777216TiB", false, 14, "16777216TiB", "too large");
    check_refused("per_process_memory_fraction:0", false, 29, "0", "above 0");
    check_refused("per_process_memory_fraction:0.0", true, 29, "0.0", "above 0");
    check_refused("per_process_memory_fraction:1.5", false, 29, "1.5", "at most 1");
    check_refused("garbage_collection_threshold:0", false, 30, "0", "above 0");
    check_refused("garbage_collection_threshold:1.0", true, 30, "1.0", "below 1");
    check_refused("garbage_collection_threshold:1.5", false, 30, "1.5", "at most 1");
    check_refused("garbage_collection_threshold:nan", false, 30, "nan", "decimal number");
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
    check_refused("max_split_size_mb:128MiB", false, 19, "128MiB", "whole number of MiB");
    check_refused("max_split_size_mb:20.5", false, 19, "20.5", "whole number of MiB");
    check_refused("max_split_size_mb:-20", false, 19, "-20", "whole number of MiB");
    check_refused("memory_limit:10GB", false, 14, "10GB", "512MiB");
}
END_TEST

START_TEST(missing_arguments_are_invalid_and_no_error_struct_is_needed) {
    ck_assert_int_eq(gr_config_parse(NULL, "", NULL, false, &error), GRANARY_INVALID);
    ck_assert_int_eq(gr_config_parse(&options, NULL, NULL, false, &error), GRANARY_INVALID);
    ck_assert_str_ne(error.text, "");
    ck_assert_int_eq(gr_config_parse(&options, "x", NULL, false, NULL), GRANARY_OPTION);
    ck_assert_int_eq(gr_config_parse(&options, "x", NULL, false, &error), GRANARY_OPTION);
    ck_assert_int_eq(strncmp(error.text, "options: column 1:", 18), 0);
    struct granary_options raw = {0};
    ck_assert_int_eq(gr_config_parse(&raw, "", NULL, false, &error), GRANARY_INVALID);
}
END_TEST

START_TEST(the_first_variable_that_is_set_is_read_alone) {
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 1);

    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:False,backend:native", 1);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 0);

    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", 1);
    gr_config_init(&options);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_int_eq(options.expandable_segments, 1);
    ck_assert_uint_eq(options.max_split_size, 64 * GR_MIB);

    setenv("GRANARY_CONF", "", 1); /* set to nothing is set */
    gr_config_init(&options);
    ck_assert_int_eq(gr_config_from_environment(&options, &error), GRANARY_OK);
    ck_assert_uint_eq(options.max_split_size, GRANARY_UNLIMITED);
}
END_TEST

START_TEST(our_own_variable_is_strict_and_errors_name_the_variable) {
    setenv("GRANARY_CONF", "backend:native", 1);
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

static uint64_t state = 0x9e3779b97f4a7c15u;

static size_t below(size_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

/* Pieces of good strings, thrown together, and now and then a byte of any kind. */
static size_t make_string(char *out, size_t room) {
    static const char *const pieces[] = {"expandable_segments",
                                         "max_split_size_mb",
                                         "memory_limit",
                                         "per_process_memory_fraction",
                                         ":",
                                         ":",
                                         ":",
                                         ",",
                                         ",",
                                         "[",
                                         "]",
                                         "True",
                                         "false",
                                         "128",
                                         "0.5",
                                         "10GiB",
                                         " ",
                                         "\"",
                                         "'",
                                         "99999999999999999999",
                                         "0",
                                         ".",
                                         "-",
                                         "x",
                                         "\t"};
    size_t len = 0, count = below(12);
    for (size_t i = 0; i < count; i++) {
        const char *piece = pieces[below(GR_COUNT(pieces))];
        char byte[2] = {(char)(1 + below(255)), '\0'};
        if (below(10) == 0) piece = byte;
        if (len + strlen(piece) >= room) break;
        memcpy(out + len, piece, strlen(piece));
        len += strlen(piece);
    }
    out[len] = '\0';
    return len;
}

static bool in_range(const struct granary_options *o) {
    return (o->expandable_segments == 0 || o->expandable_segments == 1) && o->max_split_size >= 20 * GR_MIB &&
           o->limit_fraction > 0 && o->limit_fraction <= 1 && o->limit_bytes >= 1;
}

START_TEST(any_string_is_taken_or_refused_whole) {
    char string[512];
    size_t taken = 0, refused = 0;
    for (int i = 0; i < 200000; i++) {
        size_t len = make_string(string, sizeof string);
        char *exact =
            memcpy(malloc(len + 1), string, len + 1); /* so that a sanitizer sees one byte too far */
        struct granary_options before;
        gr_config_init(&options);
        before = options;
        int status = gr_config_parse(&options, exact, "CONF", i % 2, &error);
        if (status == GRANARY_OK) {
            taken++;
            ck_assert_msg(in_range(&options), "'%s' leaves a value out of range", string);
            ck_assert_str_eq(error.text, "");
        } else {
            refused++;
            ck_assert_int_eq(status, GRANARY_OPTION);
            ck_assert_int_eq(memcmp(&before, &options, sizeof before), 0);
            ck_assert_msg(error.column >= 1 && error.column <= len, "'%s': column %zu", string, error.column);
            char token[sizeof error.token];
            gr_text_quote(token, sizeof token, string + error.column - 1, strlen(error.token));
            ck_assert_str_eq(token, error.token);
            ck_assert_str_ne(error.token, "");
        }
        free(exact);
    }
    ck_assert_uint_gt(taken, 1000);
    ck_assert_uint_gt(refused, 1000);
}
END_TEST

START_TEST(what_is_written_is_what_is_read) {
    for (int i = 0; i < 20000; i++) {
        char string[256];
        int expandable = (int)below(2);
        size_t split = 20 + below(1 << 20), limit = 1 + below(SIZE_MAX), thousandths = 1 + below(1000);
        snprintf(string, sizeof string,
                 "%smax_split_size_mb:%zu ,memory_limit: "
                 "%zu,expandable_segments:%s,per_process_memory_fraction:%zu.%03zu",
                 below(2) ? " " : "", split, limit, expandable ? "True" : "False", thousandths / 1000,
                 thousandths % 1000);
        gr_config_init(&options);
        ck_assert_msg(strict(string) == GRANARY_OK, "%s", error.text);
        ck_assert_int_eq(options.expandable_segments, expandable);
        ck_assert_uint_eq(options.max_split_size, split * GR_MIB);
        ck_assert_uint_eq(options.limit_bytes, limit);
        ck_assert_double_eq(options.limit_fraction, (double)thousandths / 1000);
    }
}
END_TEST

Suite *suite_config(void) {
    Suite *suite = suite_create("config");
    TCase *cases = tcase_create("config");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, the_defaults_are_the_documented_ones);
    tcase_add_test(cases, every_key_reaches_its_option);
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
    tcase_add_test(cases, the_first_variable_that_is_set_is_read_alone);
    tcase_add_test(cases, our_own_variable_is_strict_and_errors_name_the_variable);
    tcase_add_test(cases, caching_is_switched_off_by_a_variable_of_its_own);
    tcase_add_test(cases, any_string_is_taken_or_refused_whole);
    tcase_add_test(cases, what_is_written_is_what_is_read);
    suite_add_tcase(suite, cases);
    return suite;
}
