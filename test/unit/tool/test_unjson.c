/* SPDX-License-Identifier: Apache-2.0
 * The reader of JSON: the same plain data as from a pickle, and where it finds the mistake. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "tool/unjson.h"

static struct problem problem;

static int load(const char *text, char *buffer, size_t room) {
    struct store store = {0};
    struct value *value;
    int rc;
    problem.text[0] = 0;
    rc = unjson("j", text, strlen(text), &store, &value, &problem);
    if (rc == 0 && buffer != NULL) golden_plain(value, buffer, room);
    store_free(&store);
    return rc;
}

static void gives(const char *text, const char *expected) {
    char plain[512];
    if (load(text, plain, sizeof plain) != 0) ck_abort_msg("%s", problem.text);
    ck_assert_str_eq(plain, expected);
}

static void refused(const char *text, const char *words) {
    ck_assert_int_eq(load(text, NULL, 0), -1);
    ck_assert_str_eq(problem.text, words);
}

START_TEST(every_kind_of_value_is_read) {
    gives(" {\"a\" : [1,-2, 3.5 ,1e2,0,-0], \"b\":{}, \"c\":[ ] , \"d\":[null,true,false]}\r\n\t",
          "{'a': [1, -2, 3.5, 100, 0, 0], 'b': {}, 'c': [], 'd': [None, True, False]}");
    gives("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\ud800x\"",
          "'a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbdx'");
}
END_TEST

START_TEST(whole_numbers_keep_their_64_bits) {
    gives("9223372036854775807", "9223372036854775807");
    gives("9223372036854775808", "9223372036854775808");
    gives("18446744073709551615", "18446744073709551615");
    gives("18446744073709551616", "BIG");
    gives("-9223372036854775808", "-9223372036854775808");
    gives("-9223372036854775809", "BIG");
}
END_TEST

START_TEST(mistakes_are_told_with_their_place) {
    refused("", "j: byte 0: the text ends where a value must stand");
    refused("[1", "j: byte 2: a list goes on with , or ends with ]");
    refused("[1,]", "j: byte 3: there is no value that begins so");
    refused("{\"a\"}", "j: byte 4: a : must follow a key");
    refused("{1:2}", "j: byte 1: a key must be a text");
    refused("{\"a\":1;}", "j: byte 6: an object goes on with , or ends with }");
    refused("01", "j: byte 2: a number that is none");
    refused("-", "j: byte 1: a number that is none");
    refused("1.", "j: byte 2: a number that ends with its point");
    refused("1e+", "j: byte 3: a number with an empty exponent");
    refused("nul", "j: byte 0: there is no value that begins so");
    refused("\"a", "j: byte 1: the text does not end");
    refused("\"a\\\"", "j: byte 1: the text does not end");
    refused("\"\\x\"", "j: byte 2: an unknown escape");
    refused("\"\\u00\"", "j: byte 3: \\u needs four hexadecimal digits");
    refused("\"\n\"", "j: byte 1: a control character in a text");
    refused("1 1", "j: byte 2: something follows the value");
}
END_TEST

START_TEST(depth_is_bounded) {
    char text[2 * UNJSON_DEPTH + 3];
    memset(text, '[', UNJSON_DEPTH);
    memset(text + UNJSON_DEPTH, ']', UNJSON_DEPTH);
    text[2 * UNJSON_DEPTH] = 0;
    ck_assert_int_eq(load(text, NULL, 0), 0);
    memset(text, '[', UNJSON_DEPTH + 1);
    text[UNJSON_DEPTH + 1] = 0;
    refused(text, "j: byte 200: it is nested too deep");
}
END_TEST

Suite *suite_unjson(void) {
    Suite *suite = suite_create("unjson");
    TCase *tcase = tcase_create("reader");
    tcase_add_test(tcase, every_kind_of_value_is_read);
    tcase_add_test(tcase, whole_numbers_keep_their_64_bits);
    tcase_add_test(tcase, mistakes_are_told_with_their_place);
    tcase_add_test(tcase, depth_is_bounded);
    suite_add_tcase(suite, tcase);
    return suite;
}
