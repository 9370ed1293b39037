/* SPDX-License-Identifier: Apache-2.0
 * Sizes survive the way into words and back; what is no size is told apart from what is too large. */
#include <check.h>
#include <string.h>

#include "base/text.h"

static enum gr_text_result size(const char *s, size_t *out) {
    return gr_text_parse_size(s, strlen(s), out);
}

START_TEST(sizes_are_read_with_and_without_units) {
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {
        {"0", 0},
        {"1000000", 1000000},
        {"7B", 7},
        {"512MiB", 512 * GR_MIB},
        {"10GiB", 10 * GR_GIB},
        {"10 GiB", 10 * GR_GIB},
        {"1.5GiB", 3 * GR_GIB / 2},
        {"20.00 MiB", 20 * GR_MIB},
        {"3K", 3072},
        {"3k", 3072},
        {"40g", 40 * GR_GIB},
        {"2TiB", 2048 * GR_GIB},
        {".5M", GR_MIB / 2},
        {"0.0009765625KiB", 1},
        {"0.3KiB", 307},
        {"0.999999999999999999999999K", 1023},
        {"18446744073709551615", SIZE_MAX},
        {"16777215.5T", SIZE_MAX - ((size_t)1 << 39) + 1},
        {"000000000000000000000000000001", 1},
    };
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        size_t bytes = 99;
        ck_assert_msg(size(rows[i].text, &bytes) == GR_TEXT_OK, "%s is refused", rows[i].text);
        ck_assert_msg(bytes == rows[i].bytes, "%s is read as %zu", rows[i].text, bytes);
    }
}
END_TEST

START_TEST(what_is_no_size_is_refused_and_changes_nothing) {
    static const char *const rows[] = {"",       " ",      "MiB",   "-1",     "+1",     "1 ",   " 1",
                                       "1.5",    "1.MiB",  ".",     ".MiB",   "1.5B",   "12KB", "12MB",
                                       "1GB",    "1gib",   "1Gi",   "1 GiBx", "1e9",    "0x10", "1  GiB",
                                       "1,5GiB", "1.5.5M", "1MiB ", "1kiB",   "infGiB", "1PiB"};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        size_t bytes = 99;
        ck_assert_msg(size(rows[i], &bytes) == GR_TEXT_SYNTAX, "'%s' is read as %zu", rows[i], bytes);
        ck_assert_uint_eq(bytes, 99);
    }
}
END_TEST

START_TEST(sizes_that_do_not_fit_are_told_apart) {
    static const char *const rows[] = {"18446744073709551616", "99999999999999999999999999999", "16777216TiB",
                                       "16777216.5T", "17179869184GiB"};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        size_t bytes = 99;
        ck_assert_msg(size(rows[i], &bytes) == GR_TEXT_OVERFLOW, "'%s' is read as %zu", rows[i], bytes);
        ck_assert_uint_eq(bytes, 99);
    }
}
END_TEST

START_TEST(only_the_given_bytes_are_read) {
    size_t bytes = 0;
    ck_assert_int_eq(gr_text_parse_size("12MiB,34", 5, &bytes), GR_TEXT_OK);
    ck_assert_uint_eq(bytes, 12 * GR_MIB);
    ck_assert_int_eq(gr_text_parse_whole("123456", 2, &bytes), GR_TEXT_OK);
    ck_assert_uint_eq(bytes, 12);
    ck_assert_int_eq(gr_text_parse_size("1\0", 2, &bytes), GR_TEXT_SYNTAX);
}
END_TEST

START_TEST(whole_numbers_are_digits_alone) {
    size_t number = 99;
    ck_assert_int_eq(gr_text_parse_whole("20", 2, &number), GR_TEXT_OK);
    ck_assert_uint_eq(number, 20);
    ck_assert_int_eq(gr_text_parse_whole("", 0, &number), GR_TEXT_SYNTAX);
    ck_assert_int_eq(gr_text_parse_whole("20x", 3, &number), GR_TEXT_SYNTAX);
    ck_assert_int_eq(gr_text_parse_whole("-20", 3, &number), GR_TEXT_SYNTAX);
    ck_assert_int_eq(gr_text_parse_whole("18446744073709551616", 20, &number), GR_TEXT_OVERFLOW);
    ck_assert_uint_eq(number, 20);
}
END_TEST

START_TEST(decimals_are_exact) {
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"0", 0},
                {"1", 1},
                {"0.8", 0.8},
                {".5", 0.5},
                {"0.1", 0.1},
                {"0.995", 0.995},
                {"12.25", 12.25},
                {"0.123456789012345", 0.123456789012345},
                {"0.0000000000000001", 1e-16},
                {"00.50", 0.5}};
    double value;
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        ck_assert_int_eq(gr_text_parse_decimal(rows[i].text, strlen(rows[i].text), &value), GR_TEXT_OK);
        ck_assert_msg(value == rows[i].value, "%s is read as %.17g", rows[i].text, value);
    }
    static const char *const wrong[] = {"",    ".",   "1.",  "0.8x",  "-0.5", "1e-1",
                                        "nan", "inf", "0,5", "0.5.5", " 1"};
    for (size_t i = 0; i < GR_COUNT(wrong); i++)
        ck_assert_int_eq(gr_text_parse_decimal(wrong[i], strlen(wrong[i]), &value), GR_TEXT_SYNTAX);
    ck_assert_int_eq(gr_text_parse_decimal("9999999999999999999999", 22, &value), GR_TEXT_OVERFLOW);
    ck_assert_int_eq(gr_text_parse_decimal("9999999999999999999999B", 23, &value), GR_TEXT_SYNTAX);
    ck_assert_int_eq(gr_text_parse_decimal("0.33333333333333333333333333333333", 34, &value), GR_TEXT_OK);
    ck_assert_double_eq_tol(value, 1.0 / 3, 1e-16);
}
END_TEST

START_TEST(sizes_are_written_with_two_decimals) {
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {20 * GR_MIB, "20.00 MiB"},
        {3 * GR_GIB / 2, "1.50 GiB"},
        {GR_MIB - 1, "1.00 MiB"},
        {GR_GIB - 1, "1.00 GiB"},
        {GR_GIB - 6 * GR_KIB, "1023.99 MiB"},
        {140 * GR_GIB + 512 * GR_MIB, "140.50 GiB"},
        {127 * 1024 * GR_GIB, "127.00 TiB"},
        {UINT64_C(1) << 60, "1.00 EiB"},
        {UINT64_MAX, "16.00 EiB"},
        {(UINT64_C(1) << 60) - 1, "1.00 EiB"},
        {UINT64_C(3) << 49, "1.50 PiB"},
    };
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        char text[GR_TEXT_SIZE_ROOM];
        ck_assert_str_eq(gr_text_size(text, sizeof text, rows[i].bytes), rows[i].text);
    }
    char small[4];
    ck_assert_str_eq(gr_text_size(small, sizeof small, 20 * GR_MIB), "20.");
}
END_TEST

START_TEST(written_sizes_read_back_to_within_half_a_hundredth) {
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 49; bytes = bytes * 3 + 1) {
        char text[GR_TEXT_SIZE_ROOM];
        size_t back;
        gr_text_size(text, sizeof text, bytes);
        ck_assert_int_eq(size(text, &back), GR_TEXT_OK);
        uint64_t unit = bytes < 1024 ? 1 : (uint64_t)1 << gr_log2(bytes) / 10 * 10;
        uint64_t off = back > bytes ? back - bytes : bytes - back;
        ck_assert_uint_le(off, unit / 200 + 1);
    }
}
END_TEST

START_TEST(text_never_leaves_its_buffer) {
    char buffer[8] = "xxxxxxx";
    gr_text_put(buffer, 6, "%s", "123456789");
    ck_assert_str_eq(buffer, "12345");
    ck_assert_int_eq(buffer[6], 'x');
    gr_text_add(buffer, 6, "%d", 99);
    ck_assert_str_eq(buffer, "12345");
    gr_text_put(buffer, sizeof buffer, "a");
    gr_text_add(buffer, sizeof buffer, "%s-%d", "b", 1);
    ck_assert_str_eq(buffer, "ab-1");
    gr_text_quote(buffer, sizeof buffer, "a\n\xff\0z", 5);
    ck_assert_str_eq(buffer, "a???z");
    gr_text_quote(buffer, sizeof buffer, "123456789", 9);
    ck_assert_str_eq(buffer, "1234567");
    gr_text_quote(buffer, 1, "abc", 3);
    ck_assert_str_eq(buffer, "");
}
END_TEST

Suite *suite_text(void) {
    Suite *suite = suite_create("text");
    TCase *cases = tcase_create("text");
    tcase_add_test(cases, sizes_are_read_with_and_without_units);
    tcase_add_test(cases, what_is_no_size_is_refused_and_changes_nothing);
    tcase_add_test(cases, sizes_that_do_not_fit_are_told_apart);
    tcase_add_test(cases, only_the_given_bytes_are_read);
    tcase_add_test(cases, whole_numbers_are_digits_alone);
    tcase_add_test(cases, decimals_are_exact);
    tcase_add_test(cases, sizes_are_written_with_two_decimals);
    tcase_add_test(cases, written_sizes_read_back_to_within_half_a_hundredth);
    tcase_add_test(cases, text_never_leaves_its_buffer);
    suite_add_tcase(suite, cases);
    return suite;
}
