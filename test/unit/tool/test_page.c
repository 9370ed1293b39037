/* SPDX-License-Identifier: Apache-2.0
 * The page of a report: put together whole, and in need of nothing from elsewhere. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tool/page.h"

/* Head and tail as one text. */
static char *whole(void) {
    struct page page = page_split();
    char *text = malloc(page.head_length + page.tail_length + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, page.head, page.head_length);
    memcpy(text + page.head_length, page.tail, page.tail_length);
    text[page.head_length + page.tail_length] = 0;
    ck_assert_uint_eq(strlen(text), page.head_length + page.tail_length);
    return text;
}

static size_t count(const char *text, const char *part) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) n++;
    return n;
}

START_TEST(the_document_goes_into_a_script_element_that_does_not_run) {
    static const char open[] = "<script type=\"application/json\" id=\"document\">";
    struct page page = page_split();
    ck_assert_uint_gt(page.head_length, sizeof open);
    ck_assert_int_eq(memcmp(page.head + page.head_length - (sizeof open - 1), open, sizeof open - 1), 0);
    ck_assert_int_eq(strncmp(page.tail, "</script>", 9), 0);
}
END_TEST

START_TEST(every_part_was_put_in) {
    char *text = whole();
    ck_assert_uint_eq(count(text, "\n@@"), 0);
    ck_assert_uint_eq(count(text, "var uPlot="), 1);
    ck_assert_uint_eq(count(text, "app.start();"), 1);
    ck_assert_uint_eq(count(text, "Permission is hereby granted"), 1); /* uPlot's licence goes along */
    ck_assert_uint_eq(count(text, "<script"), 3);
    ck_assert_uint_eq(count(text, "</script"), 3);
    free(text);
}
END_TEST

START_TEST(nothing_is_fetched) {
    static const char *const ways[] = {"src=\"",         "src='",         "url(",
                                       "@import",        "fetch(",        "import(",
                                       "XMLHttpRequest", "WebSocket",     "<link rel=\"stylesheet",
                                       "EventSource",    "sendBeacon",    "href=\"http",
                                       "innerHTML",      "document.write"};
    char *text = whole();
    ck_assert_uint_eq(count(text, "default-src 'none'"), 1);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        ck_assert_msg(count(text, ways[i]) == 0, "the page has %s", ways[i]);
    /* The one address is the comment that says where uPlot is from. */
    ck_assert_uint_eq(count(text, "://"), 1);
    free(text);
}
END_TEST

Suite *suite_page(void);
Suite *suite_page(void) {
    Suite *suite = suite_create("page");
    TCase *all = tcase_create("page");
    tcase_add_test(all, the_document_goes_into_a_script_element_that_does_not_run);
    tcase_add_test(all, every_part_was_put_in);
    tcase_add_test(all, nothing_is_fetched);
    suite_add_tcase(suite, all);
    return suite;
}
