/* SPDX-License-Identifier: Apache-2.0
 * The figures of a snapshot: those counted over a history are those that the library had. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <granary/sim.h>

#include "support/golden.h"
#include "support/history.h"
#include "support/rng.h"
#include "tool/statistics.h"

#define MIB ((uint64_t)1 << 20)

static struct snapshot s;
static struct problem problem;

struct bytes {
    char *at;
    size_t length, room;
};

static int keep(void *context, const void *bytes, size_t size) {
    struct bytes *b = context;
    if (b->room - b->length < size + 1) {
        b->room = 2 * (b->room + size + 1);
        b->at = realloc(b->at, b->room);
        ck_assert_ptr_nonnull(b->at);
    }
    memcpy(b->at + b->length, bytes, size);
    b->length += size;
    b->at[b->length] = 0;
    return 0;
}

static void same(const char *name, const struct granary_stat *counted, const struct granary_stat *told) {
    ck_assert_msg(memcmp(counted, told, sizeof *told) == 0,
                  "%s: %lld %lld %lld %lld, not %lld %lld %lld %lld", name, (long long)counted->current,
                  (long long)counted->peak, (long long)counted->total_up, (long long)counted->total_down,
                  (long long)told->current, (long long)told->peak, (long long)told->total_up,
                  (long long)told->total_down);
}

/* Random traffic on two streams, some blocks used on both. */
static void run(granary *g, granary_stream other) {
    struct rng rng = {11};
    void *blocks[64] = {NULL};
    for (int i = 0; i < 3000; i++) {
        size_t k = rng_below(&rng, 64);
        granary_stream stream = rng_once_in(&rng, 3) ? other : NULL;
        if (blocks[k] != NULL) {
            if (rng_once_in(&rng, 4))
                ck_assert_int_eq(granary_record_stream(g, blocks[k], other), GRANARY_OK);
            ck_assert_int_eq(granary_free(g, blocks[k]), GRANARY_OK);
            blocks[k] = NULL;
        } else {
            size_t size = rng_between(&rng, 1, rng_once_in(&rng, 2) ? 4096 : 8 * MIB);
            ck_assert_int_eq(granary_alloc(g, size, stream, &blocks[k]), GRANARY_OK);
        }
    }
}

static void of_a_job(enum granary_format format) {
    struct granary_options options;
    struct granary_stats counted;
    struct granary_split_stats split;
    struct bytes bytes = {0};
    granary_stream other;
    granary *g;
    granary_options_init(&options);
    options.driver = GRANARY_DRIVER_SIM;
    options.history = GRANARY_HISTORY_ALL;
    options.history_stacks = GRANARY_STACKS_NONE;
    ck_assert_int_eq(granary_open(0, &options, &g), GRANARY_OK);
    ck_assert_int_eq(granary_stream_create(g, &other), GRANARY_OK);
    run(g, other);
    ck_assert_int_eq(granary_snapshot(g, format, keep, &bytes), GRANARY_OK);
    granary_stream_destroy(g, other);
    granary_close(g);

    ck_assert_msg(snapshot_parse("job", bytes.at, bytes.length, &s, &problem) == 0, "%s", problem.text);
    free(bytes.at);
    ck_assert(s.own);
    ck_assert_uint_eq(s.dropped, 0);
    ck_assert_uint_eq(s.device_count, 1);
    ck_assert_uint_eq(s.devices[0].unexplained, 0);
    ck_assert_uint_eq(s.devices[0].before_count, 0);
    ck_assert_uint_gt(s.statistics.allocated_bytes.all.current, 0);
    struct granary_stats told = s.statistics;
    s.statistics.struct_size = 0; /* as if it did not say */
    ck_assert_int_eq(statistics_of(&s, &s.devices[0], &counted, &split, &problem), 0);
    same("allocated", &counted.allocated_bytes.all, &told.allocated_bytes.all);
    same("allocated small", &counted.allocated_bytes.small, &told.allocated_bytes.small);
    same("active", &counted.active_bytes.all, &told.active_bytes.all);
    same("requested", &counted.requested_bytes.all, &told.requested_bytes.all);
    same("reserved", &counted.reserved_bytes.all, &told.reserved_bytes.all);
    same("reserved small", &counted.reserved_bytes.small, &told.reserved_bytes.small);
    same("allocations", &counted.allocations.all, &told.allocations.all);
    same("active blocks", &counted.active_blocks.large, &told.active_blocks.large);
    ck_assert_int_gt(told.moved_bytes, 0);
    ck_assert_int_eq(counted.moved_bytes, told.moved_bytes);
    snapshot_free(&s);
}

START_TEST(figures_counted_over_a_history_are_those_of_the_library) {
    of_a_job(GRANARY_PICKLE);
    of_a_job(GRANARY_JSON);
}
END_TEST

START_TEST(what_a_snapshot_says_of_itself_is_taken) {
    static const char text[] = "{\"segments\":[{\"address\":0,\"total_size\":512,\"blocks\":[{\"size\":512,"
                               "\"state\":\"inactive\"}]}],\"granary\":{\"statistics\":{\"misses\":7}}}";
    struct granary_stats figures;
    struct granary_split_stats split;
    ck_assert_int_eq(snapshot_parse("t", text, sizeof text - 1, &s, &problem), 0);
    ck_assert_int_eq(statistics_of(&s, &s.devices[0], &figures, &split, &problem), 0);
    ck_assert_int_eq(figures.misses, 7);
    snapshot_free(&s);
}
END_TEST

START_TEST(free_blocks_beside_used_ones_cannot_be_released) {
    struct history h;
    struct granary_stats figures;
    struct granary_split_stats split;
    history_begin(&h);
    strcpy(h.settings, "\"max_split_size\":33554432");
    history_segment(&h, 0x10000000, 20 * MIB, 0, HISTORY_CLASSIC);
    history_block(&h, 'L', 4 * MIB, 4 * MIB, 0);
    history_block(&h, 'F', 16 * MIB, 0, 0);
    history_segment(&h, 0x20000000, 20 * MIB, 0, HISTORY_CLASSIC);
    history_block(&h, 'F', 20 * MIB, 0, 0); /* all of it: it can be */
    history_segment(&h, 0x30000000, 64 * MIB, 0, HISTORY_CLASSIC);
    history_block(&h, 'L', 64 * MIB, 64 * MIB, 0);
    history_segment(&h, 0x40000000, 2 * MIB, 0, HISTORY_EXPANDABLE | HISTORY_SMALL);
    history_block(&h, 'P', 512, 300, 0);
    history_block(&h, 'F', 2 * MIB - 512, 0, 0);
    history_read(&h, &s);
    ck_assert_int_eq(statistics_of(&s, &s.devices[0], &figures, &split, &problem), 0);
    ck_assert_int_eq(split.split_bytes.all.current, 16 * MIB);
    ck_assert_int_eq(split.split_blocks.large.current, 1);
    ck_assert_int_eq(split.oversize_blocks.current, 1);
    ck_assert_int_eq(split.oversize_segments.current, 1);
    ck_assert_int_eq(figures.reserved_bytes.all.current, 106 * MIB);
    ck_assert_int_eq(figures.allocated_bytes.all.current, 68 * MIB);
    ck_assert_int_eq(figures.active_bytes.small.current, 512);
    ck_assert_int_eq(figures.segments.all.current, 3);
    ck_assert_int_eq(figures.pending_blocks, 1);
    snapshot_free(&s);
}
END_TEST

START_TEST(the_table_is_made_of_figures_from_anywhere) {
    struct granary_stats figures = {.struct_size = sizeof figures, .out_of_memory = 3};
    char text[GRANARY_SUMMARY_ROOM];
    figures.allocated_bytes.all.peak = 5 * (int64_t)MIB;
    ck_assert_int_eq(granary_format_summary(2, &figures, NULL, 1, text, sizeof text), GRANARY_OK);
    ck_assert_ptr_nonnull(strstr(text, "device ID 2 "));
    ck_assert_ptr_nonnull(strstr(text, "CUDA OOMs: 3 "));
    ck_assert_ptr_nonnull(strstr(text, "| Allocated memory      |      0 B   |   5120 KiB |"));
    ck_assert_int_eq(granary_format_summary(2, NULL, NULL, 1, text, sizeof text), GRANARY_INVALID);
    ck_assert_int_eq(granary_format_summary(2, &figures, NULL, 1, text, 100), GRANARY_INVALID);
    figures.struct_size = 8;
    ck_assert_int_eq(granary_format_summary(2, &figures, NULL, 1, text, sizeof text), GRANARY_INVALID);
}
END_TEST

Suite *suite_statistics(void) {
    Suite *suite = suite_create("statistics");
    TCase *tcase = tcase_create("figures");
    tcase_add_test(tcase, figures_counted_over_a_history_are_those_of_the_library);
    tcase_add_test(tcase, what_a_snapshot_says_of_itself_is_taken);
    tcase_add_test(tcase, free_blocks_beside_used_ones_cannot_be_released);
    tcase_add_test(tcase, the_table_is_made_of_figures_from_anywhere);
    suite_add_tcase(suite, tcase);
    return suite;
}
