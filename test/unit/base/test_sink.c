/* SPDX-License-Identifier: Apache-2.0
 * Bytes come out as they went in, in large pieces, and a failure is told once at the end. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/sink.h"

static struct gr_sink sink;
static unsigned char got[5 * GR_SINK_ROOM];
static size_t got_size, pieces, refuse_at;

static int take(void *context, const void *bytes, size_t size) {
    ck_assert_ptr_eq(context, &got_size);
    if (++pieces == refuse_at) return 1;
    memcpy(got + got_size, bytes, size);
    got_size += size;
    return 0;
}

static void setup(void) {
    got_size = pieces = refuse_at = 0;
    gr_sink_init(&sink, take, &got_size);
}

START_TEST(bytes_and_runs_come_out_in_order_and_in_large_pieces) {
    static unsigned char run[3 * GR_SINK_ROOM + 5];
    for (size_t i = 0; i < sizeof run; i++) run[i] = (unsigned char)(i * 7);
    for (int i = 0; i < 10; i++) gr_sink_byte(&sink, (unsigned char)i);
    gr_sink_put(&sink, run, sizeof run);
    gr_sink_text(&sink, "end");
    ck_assert(gr_sink_end(&sink));
    ck_assert_uint_eq(got_size, 10 + sizeof run + 3);
    ck_assert_uint_eq(sink.total, got_size);
    for (int i = 0; i < 10; i++) ck_assert_uint_eq(got[i], (unsigned)i);
    ck_assert_mem_eq(got + 10, run, sizeof run);
    ck_assert_mem_eq(got + 10 + sizeof run, "end", 3);
    ck_assert_uint_le(pieces, 4);
}
END_TEST

START_TEST(nothing_at_all_is_fine) {
    ck_assert(gr_sink_end(&sink));
    ck_assert_uint_eq(pieces, 0);
}
END_TEST

START_TEST(after_a_refusal_nothing_more_is_offered) {
    refuse_at = 2;
    for (size_t i = 0; i < sizeof got; i++) gr_sink_byte(&sink, 'x');
    ck_assert(!gr_sink_end(&sink));
    ck_assert_uint_eq(pieces, 2);
    ck_assert_uint_eq(got_size, GR_SINK_ROOM);
}
END_TEST

START_TEST(a_file_descriptor_takes_everything_or_fails) {
    int fd[2];
    char text[8] = "";
    ck_assert_int_eq(pipe(fd), 0);
    gr_sink_init(&sink, gr_sink_to_fd, &fd[1]);
    gr_sink_text(&sink, "granary");
    ck_assert(gr_sink_end(&sink));
    ck_assert_int_eq(read(fd[0], text, 7), 7);
    ck_assert_str_eq(text, "granary");
    close(fd[1]);
    gr_sink_text(&sink, "granary");
    ck_assert(!gr_sink_end(&sink));
    close(fd[0]);
    int full = open("/dev/full", O_WRONLY);
    if (full < 0) return;
    gr_sink_init(&sink, gr_sink_to_fd, &full);
    gr_sink_byte(&sink, 0);
    ck_assert(!gr_sink_end(&sink));
    close(full);
}
END_TEST

Suite *suite_sink(void) {
    Suite *suite = suite_create("sink");
    TCase *cases = tcase_create("sink");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, bytes_and_runs_come_out_in_order_and_in_large_pieces);
    tcase_add_test(cases, nothing_at_all_is_fine);
    tcase_add_test(cases, after_a_refusal_nothing_more_is_offered);
    tcase_add_test(cases, a_file_descriptor_takes_everything_or_fails);
    suite_add_tcase(suite, cases);
    return suite;
}
