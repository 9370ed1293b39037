/* SPDX-License-Identifier: Apache-2.0
 * The reader of traces: what it makes of good lines, and where it finds the mistake in bad ones. */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tool/trace.h"

static struct trace trace;
static struct problem problem;

static int parse(const char *text) {
    problem.text[0] = 0;
    return trace_parse("t", text, strlen(text), &trace, &problem);
}

static void refused(const char *text, const char *words) {
    ck_assert_int_eq(parse(text), -1);
    ck_assert_str_eq(problem.text, words);
    ck_assert_ptr_null(trace.ops);
}

START_TEST(blocks_and_streams_become_dense) {
    ck_assert_int_eq(parse("# granary trace 1: x\na 900 512 7\na 18446744073709551615 0 3\nf 900\na 5 9 7\n"),
                     0);
    ck_assert_uint_eq(trace.count, 4);
    ck_assert_uint_eq(trace.blocks, 3);
    ck_assert_uint_eq(trace.streams, 2);
    ck_assert_uint_eq(trace.ops[0].block, 0);
    ck_assert_uint_eq(trace.ops[0].size, 512);
    ck_assert_uint_eq(trace.ops[1].block, 1);
    ck_assert_uint_eq(trace.ops[1].stream, 1);
    ck_assert_int_eq(trace.ops[2].kind, TRACE_FREE);
    ck_assert_uint_eq(trace.ops[2].block, 0);
    ck_assert_uint_eq(trace.ops[3].block, 2);
    ck_assert_uint_eq(trace.ops[3].stream, 0);
    trace_free(&trace);
}
END_TEST

START_TEST(blanks_comments_and_line_ends_do_not_matter) {
    ck_assert_int_eq(parse("\n  # words\n\ta  1\t512 0  # why\r\n\r\nr 1\r\nf 1"), 0);
    ck_assert_uint_eq(trace.count, 3);
    ck_assert_int_eq(trace.ops[1].kind, TRACE_REQUEST);
    trace_free(&trace);
}
END_TEST

START_TEST(the_largest_numbers_are_read) {
    ck_assert_int_eq(parse("a 18446744073709551615 18446744073709551615 18446744073709551615\n"), 0);
    ck_assert(trace.ops[0].size == UINT64_MAX);
    trace_free(&trace);
}
END_TEST

START_TEST(many_blocks_keep_their_numbers) {
    static char text[4 * 1024 * 1024];
    size_t length = 0;
    const unsigned count = 50000;
    for (unsigned i = 0; i < count; i++)
        length += (size_t)sprintf(text + length, "a %llu 512 %u\n", (unsigned long long)i << 32, i % 300);
    for (unsigned i = 0; i < count; i++)
        length += (size_t)sprintf(text + length, "f %llu\n", (unsigned long long)i << 32);
    ck_assert_int_eq(trace_parse("t", text, length, &trace, &problem), 0);
    ck_assert_uint_eq(trace.streams, 300);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_uint_eq(trace.ops[i].block, i);
        ck_assert_uint_eq(trace.ops[i].stream, i % 300);
        ck_assert_uint_eq(trace.ops[count + i].block, i);
    }
    trace_free(&trace);
}
END_TEST

START_TEST(mistakes_are_told_with_line_and_column) {
    refused("", "t: it is empty");
    refused("# only words\n", "t: there is no operation in it");
    refused("a\n", "t:1:2: the block's number is missing");
    refused("a 1 512\n", "t:1:8: the stream's number is missing");
    refused("a 1 512 # 0\n", "t:1:9: the stream's number is missing");
    refused("a 1 5k 0\n", "t:1:6: the size must be a whole number in decimal");
    refused("a +1 5 0\n", "t:1:3: the block's number must be a whole number in decimal");
    refused("a 1 5 18446744073709551616\n", "t:1:7: the stream's number does not fit in 64 bits");
    refused("a 1 99999999999999999999999 0\n", "t:1:5: the size does not fit in 64 bits");
    refused("a 1 5 0 x\n", "t:1:9: the line goes on after the operation");
    refused("a 1 5 0\nf 1 1\n", "t:2:5: the line goes on after the operation");
    refused("a 1 5 0\na 2 5 0\n\na 1 5 0\n", "t:4:3: block 1 was allocated before, in line 1");
    refused("a 1 5 0\nf 1\na 1 5 0\n", "t:3:3: block 1 was allocated before, in line 1");
    refused("f 3\n", "t:1:3: block 3 is freed and was never allocated");
    refused("a 1 5 0\nf 1\nf 1\n", "t:3:3: block 1 was freed before, in line 2");
    refused("a 1 5 0\nr 1\nr 1\n", "t:3:3: block 1 was freed before, in line 2");
    refused("a 1 5 0\nf 1\nr 1\n", "t:3:3: block 1 was freed before, in line 2");
    refused("a 1 5 0\nalloc 2 5 0\n", "t:2:1: unknown operation \"alloc\": there are a, r, f");
    refused("a 1 5 0\n\n  u 1 5\n", "t:3:3: unknown operation \"u\": there are a, r, f");
    refused("PK\x03\x04\n", "t:1:1: this is neither a snapshot nor a trace: \"PK\" is none of its a, r, f");
    refused("\x01\x02\n", "t:1:1: this is neither a snapshot nor a trace, whose operations are a, r, f");
    refused("\x80\x02}", "t: this is a pickle, and here only traces are read");
    refused("# granary trace 2: x\na 1 5 0\n",
            "t:1:17: the version of the trace is not 1, the only one known");
    refused("a 1 5 0\n# granary trace 1: x\n", "t:2:1: the version must stand before the first operation");
}
END_TEST

START_TEST(a_missing_file_is_named) {
    ck_assert_int_eq(trace_read("/no/such/file", &trace, &problem), -1);
    ck_assert_str_eq(problem.text, "/no/such/file: No such file or directory");
}
END_TEST

Suite *suite_trace(void) {
    Suite *suite = suite_create("trace");
    TCase *tcase = tcase_create("reader");
    tcase_add_test(tcase, blocks_and_streams_become_dense);
    tcase_add_test(tcase, blanks_comments_and_line_ends_do_not_matter);
    tcase_add_test(tcase, the_largest_numbers_are_read);
    tcase_add_test(tcase, many_blocks_keep_their_numbers);
    tcase_add_test(tcase, mistakes_are_told_with_line_and_column);
    tcase_add_test(tcase, a_missing_file_is_named);
    suite_add_tcase(suite, tcase);
    return suite;
}
