/* SPDX-License-Identifier: Apache-2.0
 * The document of a report: its bytes for a small snapshot, and what no input may do to it. */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <granary/granary.h>

#include "tool/document.h"

static struct snapshot snapshot;
static struct problem problem;
static char *document;

/* Reads the text as a file and writes the document of its first device into `document`. */
static void write_document(const char *name, const char *text, struct document_more more) {
    struct explain explain = {.snapshot = &snapshot, .best = -1};
    size_t length;
    FILE *to = open_memstream(&document, &length);
    ck_assert_ptr_nonnull(to);
    ck_assert_msg(snapshot_parse(name, text, strlen(text), &snapshot, &problem) == 0, "%s", problem.text);
    ck_assert_uint_gt(snapshot.device_count, 0);
    explain.device = &snapshot.devices[0];
    more.explain = &explain;
    if (more.lives == 0) more.lives = DOCUMENT_LIVES;
    ck_assert_msg(document_write(to, &snapshot, explain.device, &more, &problem) == 0, "%s", problem.text);
    ck_assert_int_eq(fclose(to), 0);
}

static void drop(void) {
    snapshot_free(&snapshot);
    free(document);
    document = NULL;
}

static void has(const char *part) {
    ck_assert_msg(strstr(document, part) != NULL, "no %s in %s", part, document);
}

#define FRAME(name, line) "{\"name\":\"" name "\",\"filename\":\"train.py\",\"line\":" line "}"
#define ENTRY(action, address, size, time) \
    "{\"action\":\"" action "\",\"addr\":" address ",\"size\":" size ",\"stream\":0,\"time_us\":" time

static const char
    small[] = "{\"segments\":[{\"device\":0,\"address\":4194304,\"total_size\":2097152,\"stream\":0,"
              "\"segment_type\":\"small\",\"segment_pool_id\":[0,0],\"is_expandable\":false,\"frames\":[],"
              "\"blocks\":["
              "{\"address\":4194304,\"size\":1024,\"requested_size\":1000,\"state\":\"active_allocated\","
              "\"frames\":[" FRAME(
                  "init", "2") "]},"
                               "{\"address\":4195328,\"size\":2096128,\"requested_size\":0,\"state\":"
                               "\"inactive\",\"frames\":[]}]}],"
                               "\"device_traces\":[[" ENTRY("segment_alloc", "8388608", "20971520", "1000") ",\"frames\":[]}," ENTRY("alloc", "8388608", "5000000", "1002") ",\"user_metadata\":\"batch 1\",\"frames\":[" FRAME(
                                   "step",
                                   "3") "," FRAME("main",
                                                  "9") "]}," ENTRY("free_requested", "8388608", "5000000",
                                                                   "1005") ",\"frames\":[]}"
                                                                           "," ENTRY(
                                                                               "free_"
                                                                               "completed",
                                                                               "8388608", "5000000",
                                                                               "1009") ",\"f"
                                                                                       "rame"
                                                                                       "s\":"
                                                                                       "[]},"
                                                                                       "{\"a"
                                                                                       "ctio"
                                                                                       "n\":"
                                                                                       "\"oo"
                                                                                       "m\","
                                                                                       "\"de"
                                                                                       "vice"
                                                                                       "_fre"
                                                                                       "e\":"
                                                                                       "1048"
                                                                                       "576,"
                                                                                       "\"si"
                                                                                       "ze\""
                                                                                       ":335"
                                                                                       "5443"
                                                                                       "2,"
                                                                                       "\"st"
                                                                                       "ream"
                                                                                       "\":"
                                                                                       "0,"
                                                                                       "\"ti"
                                                                                       "me_"
                                                                                       "us\""
                                                                                       ":101"
                                                                                       "0,"
                                                                                       "\"fr"
                                                                                       "ames"
                                                                                       "\":"
                                                                                       "[" FRAME("step", "3") "]}," ENTRY(
                                                                                           "segment_free",
                                                                                           "8388608",
                                                                                           "20971520",
                                                                                           "1011") ",\"frames"
                                                                                                   "\":[]}]],"
                                                                                                   "\"allocat"
                                                                                                   "or_"
                                                                                                   "settings"
                                                                                                   "\":{"
                                                                                                   "\"PYTORCH"
                                                                                                   "_CUDA_"
                                                                                                   "ALLOC_"
                                                                                                   "CONF\":"
                                                                                                   "\"backend"
                                                                                                   ":native\""
                                                                                                   ",\"expand"
                                                                                                   "able_"
                                                                                                   "segments"
                                                                                                   "\":false,"
                                                                                                   "\"max_"
                                                                                                   "split_"
                                                                                                   "size\":-"
                                                                                                   "1},"
                                                                                                   "\"externa"
                                                                                                   "l_"
                                                                                                   "annotatio"
                                                                                                   "ns\":["
                                                                                                   "{\"stage"
                                                                                                   "\":"
                                                                                                   "\"START\""
                                                                                                   ",\"name\""
                                                                                                   ":\"forwar"
                                                                                                   "d\","
                                                                                                   "\"device"
                                                                                                   "\":0,"
                                                                                                   "\"time_"
                                                                                                   "us\":"
                                                                                                   "1001},"
                                                                                                   "{\"stage"
                                                                                                   "\":"
                                                                                                   "\"END\","
                                                                                                   "\"name\":"
                                                                                                   "\"forward"
                                                                                                   "\","
                                                                                                   "\"device"
                                                                                                   "\":0,"
                                                                                                   "\"time_"
                                                                                                   "us\":"
                                                                                                   "1009}]}";

START_TEST(a_small_snapshot_gives_these_bytes) {
    char head[64];
    const char *rest =
        "\"source\":{\"name\":\"small.json\",\"kind\":\"PyTorch snapshot\",\"device\":0,\"devices\":[0],"
        "\"entries\":6,\"unexplained\":0,\"dropped\":0,\"limit\":null,\"guessed\":false},"
        "\"settings\":[[\"PYTORCH_CUDA_ALLOC_CONF\",\"backend:native\"],[\"expandable_segments\",\"False\"]],"
        "\"strings\":[\"\",\"forward\",\"init\",\"main\",\"step\",\"train.py\"],"
        "\"frames\":[2,5,2,4,5,3,3,5,9],\"stacks\":[[],[0],[1,2],[1]],\"lines\":[0,0,1,1],"
        "\"streams\":[\"default\"],\"pools\":[\"default\"],\"tags\":[\"\",\"batch 1\"],"
        "\"times\":{\"stride\":1,\"steps\":[0,2,3,4,1,1]},"
        "\"lives\":{\"count\":2,\"unit\":512,\"begin\":[-1,2],\"request\":[0,1],\"end\":[0,1],"
        "\"address\":8192,\"size\":[1000,5000000],\"stack\":[1,2],\"stream\":0,\"pool\":0,\"tag\":[0,1]},"
        "\"lumped\":null,\"reserved\":null,"
        "\"segments\":{\"initial\":[4194304,2097152,0,0,1,0],"
        "\"changes\":[0,1,8388608,20971520,0,0,0,0,5,0,8388608,20971520,0,0,0,0]},"
        "\"marks\":[{\"kind\":\"oom\",\"entry\":4,\"size\":33554432,\"free\":1048576,\"stack\":3},"
        "{\"kind\":\"span\",\"name\":1,\"entry\":1,\"to\":3}],"
        "\"explain\":{\"kind\":\"nothing wrong\",\"failed\":false,\"entry\":0,\"words\":\"nothing wrong";
    write_document("/some/where/small.json", small, (struct document_more){0});
    snprintf(head, sizeof head, "{\"format\":1,\"granary\":\"%s\",", granary_version());
    ck_assert_int_eq(strncmp(document, head, strlen(head)), 0);
    if (strncmp(document + strlen(head), rest, strlen(rest)) != 0)
        ck_assert_str_eq(document + strlen(head), rest);
    ck_assert_ptr_null(strstr(document, "/some/where"));
    drop();
}
END_TEST

START_TEST(no_text_of_the_file_can_end_the_script_element) {
    static const char hurt[] =
        "{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"addr\":512,\"size\":512,\"stream\":0,"
        "\"time_us\":1,\"user_metadata\":\"</script><script>alert(1)</script>\",\"frames\":["
        "{\"name\":\"</script><img src=x>\",\"filename\":\"<!--\\\"\\\\\\u0007.py\",\"line\":1}]}]],"
        "\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"<b>\"},\"external_annotations\":["
        "{\"stage\":\"START\",\"name\":\"<script>\",\"device\":0,\"time_us\":0},"
        "{\"stage\":\"END\",\"name\":\"<script>\",\"device\":0,\"time_us\":1}]}";
    write_document("</script>.json", hurt, (struct document_more){0});
    ck_assert_ptr_null(strchr(document, '<'));
    has("\"\\u003c/script>\\u003cimg src=x>\"");
    has("\\\"\\\\");
    for (const char *at = document; *at != 0; at++) ck_assert_int_ge((unsigned char)*at, ' ');
    drop();
}
END_TEST

START_TEST(a_trace_has_neither_times_nor_segments_but_what_it_would_reserve) {
    const struct thin_point reserved[] = {{0, 2097152}, {3, 4194304}};
    write_document("t.trace", "a 0 512 0\nr 0\na 1 1024 3\nf 0\nf 1\n",
                   (struct document_more){.reserved = reserved, .reserved_count = 2});
    has("\"kind\":\"trace\"");
    has("\"times\":{\"stride\":1,\"steps\":[]}");
    has("\"streams\":[\"0\",\"1\"]");
    has("\"begin\":[0,2],\"request\":[1,0],\"end\":2,");
    has("\"reserved\":{\"entry\":[0,3],\"size\":[2097152,4194304]}");
    has("\"segments\":{\"initial\":[],\"changes\":[]}");
    drop();
}
END_TEST

START_TEST(what_is_left_out_is_told_as_a_sum) {
    /* The peak is before entry 4, with blocks 0, 1 and 3; block 2 is small and gone by then. */
    write_document("t.trace", "a 0 4096 0\na 2 512 0\nf 2\na 1 8192 0\na 3 512 0\nf 3\nf 1\nf 0\n",
                   (struct document_more){.lives = 2});
    has("\"lives\":{\"count\":3,");
    has("\"lumped\":{\"count\":1,\"below\":512,\"entry\":[0,1,1,1,1,1,1,1,1],\"size\":[0,0,512,0,0,0,0,0,0]"
        "}");
    drop();
}
END_TEST

START_TEST(addresses_that_are_not_aligned_count_in_bytes) {
    write_document("s.json",
                   "{\"segments\":[],\"device_traces\":[[" ENTRY("alloc", "1001", "9", "1") "}," ENTRY(
                       "alloc", "901", "9", "2") "}]]}",
                   (struct document_more){0});
    has("\"unit\":1,");
    has("\"address\":[1001,-100]");
    drop();
}
END_TEST

START_TEST(times_that_run_backwards_stand_still) {
    write_document("s.json",
                   "{\"segments\":[],\"device_traces\":[[" ENTRY("alloc", "512", "9", "50") "}," ENTRY(
                       "alloc", "1024", "9", "20") "}," ENTRY("alloc", "2048", "9", "51") "}]]}",
                   (struct document_more){0});
    has("\"steps\":[0,0,1]");
    drop();
}
END_TEST

Suite *suite_document(void);
Suite *suite_document(void) {
    Suite *suite = suite_create("document");
    TCase *all = tcase_create("document");
    tcase_add_test(all, a_small_snapshot_gives_these_bytes);
    tcase_add_test(all, no_text_of_the_file_can_end_the_script_element);
    tcase_add_test(all, a_trace_has_neither_times_nor_segments_but_what_it_would_reserve);
    tcase_add_test(all, what_is_left_out_is_told_as_a_sum);
    tcase_add_test(all, addresses_that_are_not_aligned_count_in_bytes);
    tcase_add_test(all, times_that_run_backwards_stand_still);
    suite_add_tcase(suite, all);
    return suite;
}
