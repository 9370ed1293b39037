/* SPDX-License-Identifier: Apache-2.0
 * The same values come back from the pickle and from the JSON, and the pickle has no opcode that the
 * viewer in the browser lacks. */
#include "report/writer.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support/written.h"

static struct gr_sink sink;
static struct gr_writer w;
static struct written written;

static void begin(enum granary_format format) {
    written_clear(&written);
    memset(&w, 0, sizeof w);
    gr_sink_init(&sink, written_take, &written);
    gr_writer_begin(&w, &sink, format);
}

static const struct value *end(void) {
    gr_writer_finish(&w);
    ck_assert(gr_sink_end(&sink));
    ck_assert_uint_eq(w.depth, 0);
    return written_read(&written, w.format);
}

static void teardown(void) {
    written_free(&written);
}

START_TEST(a_pickle_to_the_byte) {
    static const unsigned char expected[] = {0x80, 4,   '}', '(', 0x8c, 1, 'a',  0x94, ']', '(',
                                             'K',  7,   'h', 0,   'h',  0, 'e',  0x8c, 1,   'b',
                                             0x94, 'K', 0,   'M', 0,    1, 0x86, 'u',  '.'};
    static const char a[] = "a", b[] = "b";
    begin(GRANARY_PICKLE);
    gr_writer_dict(&w);
    gr_writer_key(&w, a);
    gr_writer_list(&w);
    gr_writer_int(&w, 7);
    gr_writer_word(&w, a);
    gr_writer_word(&w, a);
    gr_writer_end(&w);
    gr_writer_key(&w, b);
    gr_writer_pair(&w, 0, 256);
    gr_writer_end(&w);
    (void)end();
    ck_assert_uint_eq(written.size, sizeof expected);
    ck_assert_mem_eq(written.bytes, expected, sizeof expected);
}
END_TEST

START_TEST(a_json_to_the_byte) {
    begin(GRANARY_JSON);
    gr_writer_dict(&w);
    gr_writer_put_int(&w, "a", -1);
    gr_writer_put_bool(&w, "b", true);
    gr_writer_key(&w, "c");
    gr_writer_list(&w);
    gr_writer_none(&w);
    gr_writer_real(&w, 0.5);
    gr_writer_dict(&w);
    gr_writer_end(&w);
    gr_writer_pair(&w, 1, 2);
    gr_writer_end(&w);
    gr_writer_put_text(&w, "d", "\"\\\n\x1f");
    gr_writer_end(&w);
    (void)end();
    ck_assert_str_eq(written.bytes, "{\"a\":-1,\"b\":true,\"c\":[null,0.500000,\n{},[1,2]],"
                                    "\"d\":\"\\\"\\\\\\u000a\\u001f\"}\n");
}
END_TEST

static const int64_t numbers[] = {0,
                                  1,
                                  255,
                                  256,
                                  65535,
                                  65536,
                                  INT32_MAX,
                                  INT64_C(1) << 31,
                                  INT64_C(1) << 32,
                                  (INT64_C(1) << 53) + 1,
                                  INT64_MAX,
                                  -1,
                                  -128,
                                  -129,
                                  -32769,
                                  INT32_MIN,
                                  (int64_t)INT32_MIN - 1,
                                  -(INT64_C(1) << 39),
                                  INT64_C(1) << 39,
                                  INT64_C(1) << 47,
                                  INT64_MIN,
                                  (int64_t)(UINT64_C(1) << 63),
                                  (int64_t)UINT64_MAX};

START_TEST(every_integer_comes_back) {
    begin((enum granary_format)_i);
    gr_writer_list(&w);
    for (size_t i = 0; i < GR_COUNT(numbers); i++) gr_writer_int(&w, numbers[i]);
    gr_writer_end(&w);
    const struct value *list = end();
    ck_assert_uint_eq(list->items.count, GR_COUNT(numbers));
    for (size_t i = 0; i < GR_COUNT(numbers); i++) {
        ck_assert_int_eq(list->items.at[i]->kind, VALUE_INT);
        ck_assert_int_eq(list->items.at[i]->number, numbers[i]);
    }
}
END_TEST

static const struct {
    const char *in, *out;
} texts[] = {
    {"", ""},
    {"plain", "plain"},
    {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8C\xBE", "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8C\xBE"},
    {"\xFF", "\xEF\xBF\xBD"},
    {"a\xC3", "a\xEF\xBF\xBD"},                                               /* cut off */
    {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},                                 /* longer than need be */
    {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},                 /* half of a pair */
    {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* beyond the last */
    {"\x01\t\"\\/\x7F", "\x01\t\"\\/\x7F"},
};

START_TEST(every_text_comes_back_and_what_is_none_is_replaced) {
    static char longer[300];
    memset(longer, 'x', sizeof longer - 1);
    begin((enum granary_format)_i);
    gr_writer_list(&w);
    for (size_t i = 0; i < GR_COUNT(texts); i++) gr_writer_text(&w, texts[i].in);
    gr_writer_text(&w, longer);
    gr_writer_end(&w);
    const struct value *list = end();
    ck_assert_uint_eq(list->items.count, GR_COUNT(texts) + 1);
    for (size_t i = 0; i < GR_COUNT(texts); i++)
        ck_assert_str_eq(list->items.at[i]->text.bytes, texts[i].out);
    ck_assert_str_eq(list->items.at[GR_COUNT(texts)]->text.bytes, longer);
}
END_TEST

START_TEST(long_lists_come_back_whole) {
    static const size_t lengths[] = {0, 1, 999, 1000, 1001, 2000, 5003};
    begin((enum granary_format)_i);
    gr_writer_list(&w);
    for (size_t l = 0; l < GR_COUNT(lengths); l++) {
        gr_writer_list(&w);
        for (size_t i = 0; i < lengths[l]; i++)
            if (i % 3 == 0)
                gr_writer_pair(&w, (int64_t)i, 1);
            else
                gr_writer_int(&w, (int64_t)i);
        gr_writer_end(&w);
    }
    gr_writer_end(&w);
    const struct value *list = end();
    for (size_t l = 0; l < GR_COUNT(lengths); l++) {
        const struct value *inner = list->items.at[l];
        ck_assert_uint_eq(inner->items.count, lengths[l]);
        for (size_t i = 0; i < lengths[l]; i++) {
            const struct value *item = inner->items.at[i];
            if (i % 3 == 0) item = item->items.at[0];
            if (item->number != (int64_t)i) ck_abort_msg("item %zu of %zu", i, lengths[l]);
        }
    }
}
END_TEST

START_TEST(what_is_remembered_is_the_same_value_again) {
    begin(GRANARY_PICKLE);
    gr_writer_list(&w);
    gr_writer_list(&w);
    gr_writer_int(&w, 5);
    gr_writer_end(&w);
    uint32_t first = gr_writer_remember(&w), last = 0;
    for (int i = 0; i < 300; i++) {
        gr_writer_int(&w, i);
        last = gr_writer_remember(&w);
    }
    gr_writer_recall(&w, first);
    gr_writer_recall(&w, last);
    gr_writer_end(&w);
    const struct value *list = end();
    ck_assert_uint_eq(list->items.count, 303);
    ck_assert_ptr_eq(list->items.at[301], list->items.at[0]);
    ck_assert_int_eq(list->items.at[302]->number, 299);
}
END_TEST

START_TEST(more_words_than_are_known_are_written_out) {
    static char word[GR_WRITER_WORDS][16];
    begin(GRANARY_PICKLE);
    gr_writer_list(&w);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < GR_WRITER_WORDS; i++) {
            snprintf(word[i], sizeof word[i], "w%d", i);
            gr_writer_word(&w, word[i]);
        }
    gr_writer_end(&w);
    const struct value *list = end();
    for (int i = 0; i < 2 * GR_WRITER_WORDS; i++)
        ck_assert_str_eq(list->items.at[i]->text.bytes, word[i % GR_WRITER_WORDS]);
}
END_TEST

Suite *suite_writer(void) {
    Suite *suite = suite_create("writer");
    TCase *cases = tcase_create("writer");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_test(cases, a_pickle_to_the_byte);
    tcase_add_test(cases, a_json_to_the_byte);
    tcase_add_loop_test(cases, every_integer_comes_back, 0, 2);
    tcase_add_loop_test(cases, every_text_comes_back_and_what_is_none_is_replaced, 0, 2);
    tcase_add_loop_test(cases, long_lists_come_back_whole, 0, 2);
    tcase_add_test(cases, what_is_remembered_is_the_same_value_again);
    tcase_add_test(cases, more_words_than_are_known_are_written_out);
    suite_add_tcase(suite, cases);
    return suite;
}
