/* SPDX-License-Identifier: Apache-2.0
 * Input files: plain and packed ones, and those that are larger than they look. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/source.h"

enum { MIB = 1 << 20 };

static char path[] = "/tmp/granary-source-XXXXXX";
static struct problem problem;

static void setup(void) {
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void teardown(void) {
    unlink(path);
}

/* So many letters in the file, through a filter. */
static void fill(size_t count, const char *filter) {
    char command[256];
    snprintf(command, sizeof command, "head -c %zu /dev/zero | tr '\\0' a | %s >%s", count, filter, path);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(a_file_is_read_whole_packed_or_not) {
    static const char *const filters[] = {"cat", "gzip -c"};
    static const size_t sizes[] = {0, 1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 3 * MIB};
    for (size_t f = 0; f < 2; f++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            char *text;
            size_t length;
            fill(sizes[i], filters[f]);
            ck_assert_msg(source_read(path, &text, &length, &problem) == 0, "%s", problem.text);
            ck_assert_uint_eq(length, sizes[i]);
            ck_assert_uint_eq(strlen(text), sizes[i]);
            ck_assert_uint_eq(strspn(text, "a"), sizes[i]);
            free(text);
        }
    }
}
END_TEST

START_TEST(what_unpacks_to_more_than_the_limit_is_refused_and_what_does_not_is_read) {
    char *text;
    size_t length;
    fill(4 * MIB, "gzip -c"); /* 4 KiB */
    ck_assert_int_eq(source_read_most(path, 2 * MIB, &text, &length, &problem), -1);
    ck_assert_msg(strstr(problem.text, ": it goes on after 2097152 bytes of text") != NULL, "%s",
                  problem.text);
    ck_assert_int_eq(source_read_most(path, 4 * MIB, &text, &length, &problem), 0);
    ck_assert_uint_eq(length, 4 * MIB);
    free(text);
    ck_assert_int_eq(source_read_most("/dev/zero", MIB, &text, &length, &problem), -1);
}
END_TEST

Suite *suite_source(void);
Suite *suite_source(void) {
    Suite *suite = suite_create("source");
    TCase *cases = tcase_create("source");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_file_is_read_whole_packed_or_not);
    tcase_add_test(cases, what_unpacks_to_more_than_the_limit_is_refused_and_what_does_not_is_read);
    suite_add_tcase(suite, cases);
    return suite;
}
