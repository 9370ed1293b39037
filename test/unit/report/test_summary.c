/* SPDX-License-Identifier: Apache-2.0
 * The table is PyTorch's, row by row and column by column, and says what the statistics say. */
#include "report/summary.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support/fixture.h"

static granary *g;
static char text[GRANARY_SUMMARY_ROOM];

static void classic(struct granary_sim_config *sim, struct granary_options *options) {
    (void)sim;
    options->expandable_segments = 0;
    options->max_split_size = 23 * GR_MIB;
}

START_TEST(the_abbreviated_table_to_the_letter) {
    g = fixture_open(NULL);
    void *ptr = fixture_alloc(g, 3 * GR_MIB, NULL);
    (void)fixture_alloc(g, 1000, NULL);
    fixture_free(g, ptr);
    ck_assert_int_eq(granary_summary(g, 1, text, sizeof text), GRANARY_OK);
    ck_assert_str_eq(text, "|===========================================================================|\n"
                           "|                  PyTorch CUDA memory summary, device ID 0                 |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |\n"
                           "|===========================================================================|\n"
                           "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Allocated memory      |   1024 B   |   3073 KiB |   3073 KiB |   3072 KiB |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Active memory         |   1024 B   |   3073 KiB |   3073 KiB |   3072 KiB |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Requested memory      |   1000 B   |   3072 KiB |   3072 KiB |   3072 KiB |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| GPU reserved memory   |   6144 KiB |   6144 KiB |   6144 KiB |      0 B   |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Non-releasable memory |      0 B   |      0 B   |      0 B   |      0 B   |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Allocations           |       1    |       2    |       2    |       1    |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Active allocs         |       1    |       2    |       2    |       1    |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| GPU reserved segments |       0    |       0    |       0    |       0    |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Non-releasable allocs |       0    |       0    |       0    |       0    |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Oversize allocations  |       0    |       0    |       0    |       0    |\n"
                           "|---------------------------------------------------------------------------|\n"
                           "| Oversize GPU segments |       0    |       0    |       0    |       0    |\n"
                           "|===========================================================================|\n"
                           "| Pending memory        |      0 B   |            |            |            |\n"
                           "| Moved memory          |            |            |      0 B   |            |\n"
                           "| Handle cache          |      0 B   |            |            |            |\n"
                           "| Address space         |   2304 MiB |            |            |            |\n"
                           "| Extents               |       2    |            |            |            |\n"
                           "| Misses                |            |            |       2    |            |\n"
                           "|===========================================================================|\n");
    fixture_close(g);
}
END_TEST

/* The row that begins with a name. */
static const char *row_of(const char *name) {
    static char row[128];
    const char *at = strstr(text, name);
    ck_assert_msg(at != NULL, "no row %s", name);
    snprintf(row, sizeof row, "%.*s", (int)strcspn(at, "\n"), at);
    return row;
}

START_TEST(a_unit_is_left_behind_at_three_quarters_of_its_end_and_all_rows_of_a_column_share_it) {
    struct gr_dump dump = {0};
    struct granary_stat_by_class *bytes = &dump.stats.allocated_bytes, *count = &dump.stats.allocations;
    g = fixture_open(NULL);
    bytes->all = (struct granary_stat){768 * 1024 - 1, 768 * 1024, INT64_C(768) << 20, INT64_MAX};
    bytes->large = (struct granary_stat){700 * 1024, 1023, INT64_C(5) << 20, 0};
    count->all = (struct granary_stat){750000 - 1, 750000, 750000000, INT64_MAX};
    count->small = (struct granary_stat){7, 999, 1000000, 0};
    gr_summary_table(text, sizeof text, g, &dump, false);
    ck_assert_str_eq(row_of("Allocated memory"),
                     "Allocated memory      | 786431 B   |    768 KiB |    768 MiB |   8191 PiB |");
    ck_assert_str_eq(row_of("      from large pool"),
                     "      from large pool | 716800 B   |      0 KiB |      5 MiB |      0 PiB |");
    ck_assert_str_eq(row_of("Allocations"),
                     "Allocations           |  749999    |     750 K  |     750 M  | 9223372036854 M  |");
    fixture_close(g);
}
END_TEST

START_TEST(every_line_of_the_full_table_has_the_width_of_pytorch) {
    size_t lines = 0;
    g = fixture_open(_i == 0 ? NULL : classic);
    for (int i = 1; i < 20; i++) (void)fixture_alloc(g, (size_t)i * 700000, NULL);
    ck_assert_int_eq(granary_summary(g, 0, text, sizeof text), GRANARY_OK);
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        ck_assert_uint_eq(strcspn(at, "\n"), 77);
        ck_assert(at[0] == '|' && at[76] == '|');
        lines++;
    }
    ck_assert_uint_eq(lines, 54);
    fixture_close(g);
}
END_TEST

START_TEST(what_cannot_be_released_and_what_is_oversize_is_counted_in_classic_segments) {
    g = fixture_open(classic);
    (void)fixture_alloc(g, 2 * GR_MIB, NULL);  /* leaves 18 of 20 */
    (void)fixture_alloc(g, 1024, NULL);        /* leaves 2 MiB less 1 KiB */
    (void)fixture_alloc(g, 30 * GR_MIB, NULL); /* oversize */
    ck_assert_int_eq(granary_summary(g, 0, text, sizeof text), GRANARY_OK);
    ck_assert_str_eq(row_of("Non-releasable memory"),
                     "Non-releasable memory |  20479 KiB |  20479 KiB |  20479 KiB |      0 B   |");
    ck_assert_str_eq(row_of("Non-releasable allocs"),
                     "Non-releasable allocs |       2    |       2    |       2    |       0    |");
    ck_assert_str_eq(row_of("Oversize allocations"),
                     "Oversize allocations  |       1    |       1    |       1    |       0    |");
    ck_assert_str_eq(row_of("Oversize GPU segments"),
                     "Oversize GPU segments |       1    |       1    |       1    |       0    |");
    fixture_close(g);
}
END_TEST

START_TEST(a_watermark_is_one_line) {
    char line[GRANARY_WATERMARK_ROOM];
    g = fixture_open(NULL);
    void *ptr = fixture_alloc(g, 30 * GR_MIB, NULL);
    fixture_free(g, ptr);
    (void)fixture_alloc(g, 10 * GR_MIB, NULL);
    ck_assert_int_eq(granary_watermark(g, line, sizeof line), GRANARY_OK);
    ck_assert_str_eq(line, "granary: device 0: 10.00 MiB allocated, 30.00 MiB reserved, 20.00 MiB between; "
                           "peaks 30.00 MiB and 30.00 MiB");
    ck_assert_int_eq(granary_watermark(g, line, 10), GRANARY_INVALID);
    ck_assert_str_eq(fixture_fault(g).text, "room is 10; the least is 256");
    ck_assert_int_eq(granary_summary(g, 0, NULL, 0), GRANARY_INVALID);
    fixture_close(g);
}
END_TEST

Suite *suite_summary(void) {
    Suite *suite = suite_create("summary");
    TCase *cases = tcase_create("summary");
    tcase_add_test(cases, the_abbreviated_table_to_the_letter);
    tcase_add_test(cases,
                   a_unit_is_left_behind_at_three_quarters_of_its_end_and_all_rows_of_a_column_share_it);
    tcase_add_loop_test(cases, every_line_of_the_full_table_has_the_width_of_pytorch, 0, 2);
    tcase_add_test(cases, what_cannot_be_released_and_what_is_oversize_is_counted_in_classic_segments);
    tcase_add_test(cases, a_watermark_is_one_line);
    suite_add_tcase(suite, cases);
    return suite;
}
