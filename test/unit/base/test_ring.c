/* SPDX-License-Identifier: Apache-2.0
 * Rings keep their order, and a link outside of any ring points at itself. */
#include <check.h>
#include <string.h>

#include "base/list.h"
#include "support/hot.h"
#include "support/rng.h"

enum { LINKS = 50 };

static struct gr_list head, link[LINKS];

static void setup(void) {
    gr_list_init(&head);
    for (int i = 0; i < LINKS; i++) gr_list_init(&link[i]);
}

/* The ring is exactly these links, read in both directions. */
static void check_ring(const int *order, size_t count) {
    const struct gr_list *at = &head;
    for (size_t i = 0; i < count; i++) {
        HOT_ASSERT(at->next == &link[order[i]]);
        HOT_ASSERT(at->next->prev == at);
        at = at->next;
    }
    ck_assert_ptr_eq(at->next, &head);
    ck_assert_ptr_eq(head.prev, at);
    ck_assert_int_eq(gr_list_empty(&head), count == 0);
}

START_TEST(links_are_appended_at_the_end) {
    int order[] = {2, 0, 1};
    check_ring(NULL, 0);
    for (size_t i = 0; i < GR_COUNT(order); i++) gr_list_append(&head, &link[order[i]]);
    check_ring(order, GR_COUNT(order));
}
END_TEST

START_TEST(a_removed_link_is_alone_and_may_be_removed_again) {
    gr_list_append(&head, &link[0]);
    gr_list_remove(&link[0]);
    ck_assert(gr_list_empty(&head) && gr_list_empty(&link[0]));
    gr_list_remove(&link[0]);
    ck_assert(gr_list_empty(&head) && gr_list_empty(&link[0]));
}
END_TEST

START_TEST(random_operations_agree_with_an_array) {
    struct rng rng = {11};
    int order[LINKS];
    size_t count = 0;
    for (int step = 0; step < 5000; step++) {
        int which = (int)rng_below(&rng, LINKS);
        size_t at = 0;
        while (at < count && order[at] != which) at++;
        if (at < count) {
            gr_list_remove(&link[which]);
            memmove(&order[at], &order[at + 1], (--count - at) * sizeof *order);
            ck_assert(gr_list_empty(&link[which]));
        } else {
            gr_list_append(&head, &link[which]);
            order[count++] = which;
        }
        check_ring(order, count);
        size_t walked = 0;
        GR_LIST_FOR(cursor, &head) HOT_ASSERT(cursor == &link[order[walked++]]);
        ck_assert_uint_eq(walked, count);
    }
}
END_TEST

Suite *suite_ring(void) {
    Suite *suite = suite_create("ring");
    TCase *cases = tcase_create("ring");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, links_are_appended_at_the_end);
    tcase_add_test(cases, a_removed_link_is_alone_and_may_be_removed_again);
    tcase_add_test(cases, random_operations_agree_with_an_array);
    suite_add_tcase(suite, cases);
    return suite;
}
