/* SPDX-License-Identifier: Apache-2.0
 * Snapshots: what a file says, joined with its history, rebuilt at any moment, and as a trace. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "support/history.h"
#include "tool/snapshot.h"

#define MIB ((uint64_t)1 << 20)

static const uint64_t A = 0x10000000, B = 0x20000000, C = 0x30000000;

static struct history h;
static struct snapshot s;
static struct problem problem;

static const struct snapshot_device *device(void) {
    ck_assert_uint_eq(s.device_count, 1);
    return &s.devices[0];
}

static void setup(void) {
    history_begin(&h);
}

static void teardown(void) {
    snapshot_free(&s);
    s = (struct snapshot){0};
}

START_TEST(segments_blocks_and_stacks_are_as_the_file_says) {
    const struct snapshot_frame *line;
    char text[256];
    history_segment(&h, B, 2 * MIB, 7, HISTORY_SMALL);
    history_block(&h, 'F', 2 * MIB, 0, 0);
    history_segment(&h, A, 20 * MIB, 0, HISTORY_EXPANDABLE);
    history_block(&h, 'L', 4 * MIB, 4 * MIB - 5, 12);
    history_block(&h, 'P', 6 * MIB, 6 * MIB, 13);
    history_block(&h, 'F', 10 * MIB, 0, 0);
    history_read(&h, &s);
    ck_assert_uint_eq(device()->segment_count, 2);
    ck_assert_uint_eq(device()->segments[0].address, A); /* in order, whatever the file's */
    ck_assert(device()->segments[0].expandable && !device()->segments[0].small);
    ck_assert(!device()->segments[1].expandable && device()->segments[1].small);
    ck_assert_uint_eq(device()->segments[1].stream, 7);
    ck_assert_uint_eq(s.block_count, 4);
    ck_assert_int_eq(s.blocks[device()->segments[0].first].state, SNAPSHOT_LIVE);
    ck_assert_uint_eq(s.blocks[device()->segments[0].first].requested, 4 * MIB - 5);
    ck_assert_int_eq(s.blocks[device()->segments[0].first + 1].state, SNAPSHOT_PENDING);
    ck_assert_uint_eq(s.frame_count, 3); /* one that both share, and two lines */
    line = snapshot_line(&s, s.blocks[device()->segments[0].first].stack);
    ck_assert_uint_eq(line->line, 12);
    ck_assert_str_eq(
        snapshot_line_text(&s, s.blocks[device()->segments[0].first + 1].stack, text, sizeof text),
        "train.py:13 (step)");
    ck_assert_str_eq(snapshot_line_text(&s, 0, text, sizeof text), "stack not recorded");
}
END_TEST

START_TEST(what_no_entry_made_was_there_before_the_history) {
    const struct snapshot_device *d;
    history_segment(&h, A, 20 * MIB, 0, HISTORY_CLASSIC);
    history_block(&h, 'L', 2 * MIB, 2 * MIB, 3); /* never told of */
    history_block(&h, 'L', 2 * MIB, 2 * MIB, 4); /* allocated in the history */
    history_block(&h, 'F', 16 * MIB, 0, 0);
    history_entry(&h, "free_completed", A + 8 * MIB, 100, 0, 0); /* pending when the history begins */
    history_entry(&h, "free_requested", A + 6 * MIB, 200, 0, 0); /* live when it begins */
    history_entry(&h, "free_completed", A + 6 * MIB, 200, 0, 0);
    history_entry(&h, "alloc", A + 2 * MIB, 2 * MIB, 0, 4);
    history_entry(&h, "alloc", A + 6 * MIB, 300, 0, 5);
    history_entry(&h, "free_requested", A + 6 * MIB, 300, 0, 5);
    history_entry(&h, "free_completed", A + 6 * MIB, 300, 0, 5);
    history_read(&h, &s);
    d = device();
    ck_assert_uint_eq(d->unexplained, 0);
    ck_assert_uint_eq(d->before_count, 3);
    ck_assert_uint_eq(d->life_count, 5);
    ck_assert_uint_eq(d->lives[0].address, A);
    ck_assert_uint_eq(d->lives[0].end, SNAPSHOT_NONE);
    ck_assert_uint_eq(snapshot_line(&s, d->lives[0].stack)->line, 3);
    ck_assert_uint_eq(d->lives[1].size, 200);
    ck_assert_uint_eq(d->lives[1].request, 1);
    ck_assert_uint_eq(d->lives[1].end, 2);
    ck_assert(d->lives[2].pending);
    ck_assert_uint_eq(d->lives[2].end, 0);
    ck_assert_uint_eq(d->lives[4].begin, 4);
    ck_assert_uint_eq(d->entries[5].life, 4);
}
END_TEST

START_TEST(contradictions_are_counted_and_the_newer_word_holds) {
    const struct snapshot_device *d;
    history_entry(&h, "alloc", A, 100, 0, 0);
    history_entry(&h, "alloc", A, 200, 0, 0); /* again, and no free between */
    history_entry(&h, "free_requested", A, 200, 0, 0);
    history_entry(&h, "free_requested", A, 200, 0, 0); /* twice */
    history_entry(&h, "free_completed", A, 200, 0, 0);
    history_entry(&h, "free_completed", A, 200, 0, 0); /* twice */
    history_read(&h, &s);
    d = device();
    ck_assert_uint_eq(d->unexplained, 3);
    ck_assert_uint_eq(d->life_count, 2);
    ck_assert_uint_eq(d->lives[0].end, 1);
    ck_assert_uint_eq(d->lives[1].request, 2);
    ck_assert_uint_eq(d->lives[1].end, 4);
}
END_TEST

START_TEST(a_history_without_completions_ends_lives_at_their_requests) {
    struct trace trace;
    history_segment(&h, A, 2 * MIB, 0, HISTORY_SMALL);
    history_block(&h, 'F', 2 * MIB, 0, 0);
    history_entry(&h, "alloc", A, 100, 0, 0);
    history_entry(&h, "free_requested", A, 100, 0, 0);
    history_entry(&h, "alloc", A, 200, 0, 0);
    history_entry(&h, "free_requested", A, 200, 0, 0);
    history_read(&h, &s);
    ck_assert_uint_eq(device()->unexplained, 0);
    ck_assert_int_eq(snapshot_to_trace(&s, device(), 4, &trace, NULL, &problem), 0);
    ck_assert_uint_eq(trace.blocks, 2);
    ck_assert_int_eq(trace.ops[trace.count - 1].kind, TRACE_FREE);
    ck_assert_uint_eq(trace.ops[trace.count - 1].block, 1);
    trace_free(&trace);
}
END_TEST

START_TEST(segments_that_came_and_went_are_undone) {
    struct snapshot_moment m;
    history_segment(&h, B, 20 * MIB, 0, HISTORY_CLASSIC);
    history_block(&h, 'F', 20 * MIB, 0, 0);
    history_entry(&h, "segment_alloc", A, 20 * MIB, 0, 0);
    history_entry(&h, "alloc", A, 5 * MIB, 0, 1);
    history_entry(&h, "alloc", A + 6 * MIB, 4 * MIB, 0, 2);
    history_entry(&h, "segment_alloc", B, 20 * MIB, 0, 0);
    history_entry(&h, "free_requested", A, 5 * MIB, 0, 1);
    history_entry(&h, "free_completed", A, 5 * MIB, 0, 1);
    history_entry(&h, "free_requested", A + 6 * MIB, 4 * MIB, 0, 2);
    history_entry(&h, "free_completed", A + 6 * MIB, 4 * MIB, 0, 2);
    history_entry(&h, "segment_free", A, 20 * MIB, 0, 0);
    history_read(&h, &s);
    ck_assert_uint_eq(device()->reserved_before, 0);
    ck_assert_uint_eq(device()->unexplained, 0);

    ck_assert_int_eq(snapshot_rebuild(&s, device(), 0, &m, &problem), 0);
    ck_assert_uint_eq(m.segment_count, 0);
    ck_assert_uint_eq(m.reserved, 0);
    snapshot_moment_free(&m);

    ck_assert_int_eq(snapshot_rebuild(&s, device(), 7, &m, &problem), 0);
    ck_assert_uint_eq(m.reserved, 40 * MIB);
    ck_assert_uint_eq(m.segment_count, 2);
    ck_assert_uint_eq(m.segments[0].address, A);
    ck_assert_uint_eq(m.segments[0].count, 3); /* free, pending, free */
    ck_assert_int_eq(m.blocks[1].state, SNAPSHOT_PENDING);
    ck_assert_uint_eq(m.blocks[1].address, A + 6 * MIB);
    ck_assert_uint_eq(m.lives[1], 1);
    ck_assert_uint_eq(m.pending, 4 * MIB);
    ck_assert_uint_eq(m.live, 0);
    ck_assert_uint_eq(m.free, 36 * MIB);
    ck_assert_uint_eq(m.unplaced, 0);
    snapshot_moment_free(&m);

    ck_assert_int_eq(snapshot_rebuild(&s, device(), 9, &m, &problem), 0);
    ck_assert_uint_eq(m.segment_count, 1);
    ck_assert_uint_eq(m.segments[0].address, B);
    snapshot_moment_free(&m);
}
END_TEST

START_TEST(a_rest_of_a_megabyte_stays_with_its_classic_block) {
    struct snapshot_moment m;
    history_segment(&h, A, 20 * MIB, 0, HISTORY_CLASSIC);
    history_block(&h, 'F', 20 * MIB, 0, 0);
    history_segment(&h, B, 20 * MIB, 0, HISTORY_EXPANDABLE);
    history_block(&h, 'F', 20 * MIB, 0, 0);
    history_entry(&h, "alloc", A, 19 * MIB, 0, 1);
    history_entry(&h, "alloc", B, 19 * MIB, 0, 1);
    history_entry(&h, "free_requested", A, 19 * MIB, 0, 1);
    history_entry(&h, "free_completed", A, 19 * MIB, 0, 1);
    history_entry(&h, "free_requested", B, 19 * MIB, 0, 1);
    history_entry(&h, "free_completed", B, 19 * MIB, 0, 1);
    history_read(&h, &s);
    ck_assert_int_eq(snapshot_rebuild(&s, device(), 2, &m, &problem), 0);
    ck_assert_uint_eq(m.segments[0].count, 1);
    ck_assert_uint_eq(m.blocks[0].size, 20 * MIB);
    ck_assert_uint_eq(m.segments[1].count, 2);
    ck_assert_uint_eq(m.free, 1 * MIB);
    snapshot_moment_free(&m);
}
END_TEST

START_TEST(mapped_memory_grows_together_and_is_cut_where_it_went) {
    struct snapshot_moment m;
    history_segment(&h, A, 4 * MIB, 0, HISTORY_EXPANDABLE);
    history_block(&h, 'F', 4 * MIB, 0, 0);
    history_segment(&h, A + 8 * MIB, 4 * MIB, 0, HISTORY_EXPANDABLE);
    history_block(&h, 'F', 4 * MIB, 0, 0);
    history_entry(&h, "segment_map", A, 8 * MIB, 0, 0);
    history_entry(&h, "segment_map", A + 8 * MIB, 4 * MIB, 0, 0);
    history_entry(&h, "segment_unmap", A + 4 * MIB, 4 * MIB, 0, 0);
    history_read(&h, &s);
    ck_assert_uint_eq(device()->reserved_before, 0);
    ck_assert_int_eq(snapshot_rebuild(&s, device(), 2, &m, &problem), 0);
    ck_assert_uint_eq(m.segment_count, 1); /* the hole closed, all three pieces are one */
    ck_assert_uint_eq(m.segments[0].size, 12 * MIB);
    snapshot_moment_free(&m);
    ck_assert_int_eq(snapshot_rebuild(&s, device(), 1, &m, &problem), 0);
    ck_assert_uint_eq(m.reserved, 8 * MIB);
    snapshot_moment_free(&m);
    ck_assert_int_eq(snapshot_rebuild(&s, device(), 0, &m, &problem), 0);
    ck_assert_uint_eq(m.segment_count, 0);
    snapshot_moment_free(&m);
}
END_TEST

START_TEST(a_snapshot_becomes_a_trace_that_ends_with_what_failed) {
    struct trace trace;
    uint32_t *origin;
    history_segment(&h, A, 20 * MIB, 9, HISTORY_CLASSIC);
    history_block(&h, 'L', 20 * MIB, 20 * MIB, 1);
    history_oom(&h, 70 * MIB, 0, 0, 2); /* it was caught: the job went on */
    history_entry(&h, "alloc", B, 512, 0, 2);
    history_oom(&h, 80 * MIB, 0, 9, 2);
    history_entry(&h, "alloc", C, 512, 0, 2);
    history_read(&h, &s);
    ck_assert_uint_eq(device()->last_oom, 2);
    ck_assert_int_eq(snapshot_to_trace(&s, device(), device()->last_oom, &trace, &origin, &problem), 0);
    ck_assert_uint_eq(trace.count, 3);
    ck_assert_uint_eq(trace.ops[0].size, 20 * MIB);
    ck_assert_uint_eq(trace.ops[1].size, 512);
    ck_assert_uint_eq(trace.ops[2].size, 80 * MIB);
    ck_assert_uint_eq(trace.ops[2].stream, trace.ops[0].stream);
    ck_assert_uint_ne(trace.ops[1].stream, trace.ops[0].stream);
    ck_assert_uint_eq(origin[0], SNAPSHOT_NONE);
    ck_assert_uint_eq(origin[1], 1);
    ck_assert_uint_eq(origin[2], 2);
    free(origin);
    trace_free(&trace);
}
END_TEST

START_TEST(a_trace_is_a_snapshot_without_segments) {
    static const char text[] = "a 5 100 0\na 6 200 1\nr 5\nf 5\n";
    ck_assert_int_eq(snapshot_parse("t", text, sizeof text - 1, &s, &problem), 0);
    ck_assert(s.from_trace);
    ck_assert_uint_eq(device()->life_count, 2);
    ck_assert_uint_eq(device()->lives[0].request, 2);
    ck_assert_uint_eq(device()->lives[0].end, 3);
    ck_assert_uint_eq(device()->lives[1].end, SNAPSHOT_NONE);
    ck_assert_uint_eq(device()->unexplained, 0);
}
END_TEST

static void one_block(uint64_t size) {
    history_segment(&h, A, 2 * MIB, 0, HISTORY_SMALL);
    history_block(&h, 'L', size, 5, 0);
}

START_TEST(what_is_no_snapshot_is_told_with_its_place) {
    one_block(MIB);
    ck_assert_str_eq(history_refused(&h), "h: segment 0: its blocks end 1048576 bytes before it does");
    history_begin(&h);
    one_block(3 * MIB);
    ck_assert_str_eq(history_refused(&h),
                     "h: segment 0: block 0: blocks must tile the segment without gaps, and this does not");
    history_begin(&h);
    one_block(0);
    ck_assert_str_eq(history_refused(&h), "h: segment 0: block 0: size is 0");
    history_begin(&h);
    one_block(2 * MIB);
    history_segment(&h, A + MIB, 2 * MIB, 0, HISTORY_SMALL);
    history_block(&h, 'L', 2 * MIB, 5, 0);
    ck_assert_str_eq(history_refused(&h), "h: two segments overlap at 0x10100000");
    history_begin(&h);
    one_block(2 * MIB);
    history_entry(&h, "alloc", A, UINT64_MAX, 0, 0);
    ck_assert_str_eq(history_refused(&h),
                     "h: history of device 0: entry 0: size 18446744073709551615 is larger than any memory");
    history_begin(&h);
    history_entry(&h, "alloc", A, 5, 0, HISTORY_LINES);
    ck_assert_str_eq(history_refused(&h), "h: history of device 0: entry 0: there is no stack 100");
}
END_TEST

static void refused(const char *text, const char *words) {
    ck_assert_int_eq(snapshot_parse("h", text, strlen(text), &s, &problem), -1);
    ck_assert_str_eq(problem.text, words);
}

START_TEST(values_of_the_wrong_kind_are_named) {
    refused("{}", "h: this is plain data but no snapshot: there is no \"segments\"");
    refused("{\"segments\":5}", "h: segments must be a list and is int");
    refused("{\"segments\":[5]}", "h: segment 0: it must be a dict and is int");
    refused("{\"segments\":[{}]}", "h: segment 0: address must be a whole number of 64 bits and is nothing");
    refused("{\"segments\":[{\"address\":1,\"total_size\":-5}]}",
            "h: segment 0: total_size is -5 and must not be negative");
    refused("{\"segments\":[{\"address\":1,\"total_size\":1.5}]}",
            "h: segment 0: total_size must be a whole number of 64 bits and is float");
    refused("{\"segments\":[{\"address\":-1,\"total_size\":512,\"blocks\":[]}]}",
            "h: segment 0: it ends beyond the last address");
    refused("{\"segments\":[{\"address\":1,\"total_size\":0,\"device\":5000,\"blocks\":[]}]}",
            "h: segment 0: device 5000 is out of range");
    refused("{\"segments\":[],\"device_traces\":[5]}",
            "h: history of device 0: it must be a list and is int");
    refused("{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"size\":5}]]}",
            "h: history of device 0: entry 0: addr is missing");
    refused("{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"addr\":5}]]}",
            "h: history of device 0: entry 0: size is missing");
    refused("{\"segments\":[],\"device_traces\":[[{\"action\":7}]]}",
            "h: history of device 0: entry 0: action must be a text and is int");
    refused("{\"segments\":[],\"device_traces\":[[{\"action\":\"x\",\"frames\":[1]}]]}",
            "h: history of device 0: entry 0: a frame must be a dict and is int");
}
END_TEST

/* One dict a hundred times: each reference costs two bytes of the file, and would cost a block. */
START_TEST(an_object_that_stands_in_two_places_is_refused) {
    static const char pickle[] = "}q\000X\010\000\000\000segmentsq\001]q\002}q\003("
                                 "X\007\000\000\000addressq\004K\000X\012\000\000\000total_sizeq\005"
                                 "K\002X\006\000\000\000blocksq\006]q\007(}q\010("
                                 "X\004\000\000\000sizeq\011K\001X\005\000\000\000stateq\012"
                                 "X\010\000\000\000inactiveq\013uh\010euas.";
    ck_assert_int_eq(snapshot_parse("h", pickle, sizeof pickle - 1, &s, &problem), -1);
    ck_assert_str_eq(problem.text, "h: segment 0: block 1: the same object stands in several places");
}
END_TEST

START_TEST(texts_are_made_safe_to_show) {
    static const char text[] = "{\"segments\":[],\"device_traces\":[[{\"action\":\"snapshot\",\"size\":0,"
                               "\"user_metadata\":\"a\\u001b[31m\\u009b\\u00fcb\\n\xff\"}]]}";
    ck_assert_int_eq(snapshot_parse("h", text, sizeof text - 1, &s, &problem), 0);
    ck_assert_str_eq(device()->entries[0].note, "a?[31m??\xc3\xbc"
                                                "b??");
}
END_TEST

/* Real files of PyTorch 2.11. */
START_TEST(real_snapshots_are_explained_to_the_last_entry) {
    static const struct {
        const char *name;
        size_t entries, before, oom;
        uint64_t reserved_at_oom, live_at_oom; /* requested bytes */
    } files[] = {
        {"gpt_varlen.pickle.gz", 12000, 1193, 12000, 0, 0},
        {"oom_fragmentation.pickle.gz", 15939, 0, 14308, 10053746688, 9334917656},
        {"oom_leak.pickle.gz", 60000, 770, 58151, 8894021632, 7859409920},
        {"prefetch.pickle.gz", 1747, 0, 1747, 0, 0},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct snapshot_moment m;
        ck_assert_int_eq(snapshot_read(golden_path(files[i].name), &s, &problem), 0);
        ck_assert_uint_eq(device()->entry_count, files[i].entries);
        ck_assert_uint_eq(device()->before_count, files[i].before);
        ck_assert_uint_eq(device()->last_oom, files[i].oom);
        ck_assert_uint_eq(device()->unexplained, 0);
        ck_assert_int_eq(snapshot_rebuild(&s, device(), files[i].oom, &m, &problem), 0);
        ck_assert_uint_eq(m.unplaced, 0);
        ck_assert_uint_eq(m.live + m.pending + m.free, m.reserved);
        if (files[i].reserved_at_oom > 0) {
            ck_assert_uint_eq(m.reserved, files[i].reserved_at_oom);
            ck_assert_uint_eq(m.requested, files[i].live_at_oom);
        }
        snapshot_moment_free(&m);
        snapshot_free(&s);
    }
}
END_TEST

Suite *suite_snapshot_file(void) {
    Suite *suite = suite_create("snapshot_file");
    TCase *tcase = tcase_create("snapshot");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, segments_blocks_and_stacks_are_as_the_file_says);
    tcase_add_test(tcase, what_no_entry_made_was_there_before_the_history);
    tcase_add_test(tcase, contradictions_are_counted_and_the_newer_word_holds);
    tcase_add_test(tcase, a_history_without_completions_ends_lives_at_their_requests);
    tcase_add_test(tcase, segments_that_came_and_went_are_undone);
    tcase_add_test(tcase, a_rest_of_a_megabyte_stays_with_its_classic_block);
    tcase_add_test(tcase, mapped_memory_grows_together_and_is_cut_where_it_went);
    tcase_add_test(tcase, a_snapshot_becomes_a_trace_that_ends_with_what_failed);
    tcase_add_test(tcase, a_trace_is_a_snapshot_without_segments);
    tcase_add_test(tcase, what_is_no_snapshot_is_told_with_its_place);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("files");
    tcase_add_test(tcase, values_of_the_wrong_kind_are_named);
    tcase_add_test(tcase, an_object_that_stands_in_two_places_is_refused);
    tcase_add_test(tcase, texts_are_made_safe_to_show);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("real");
    tcase_set_tags(tcase, "large");
    tcase_add_test(tcase, real_snapshots_are_explained_to_the_last_entry);
    suite_add_tcase(suite, tcase);
    return suite;
}
