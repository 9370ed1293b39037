/* SPDX-License-Identifier: Apache-2.0
 * Who holds most, by tag and by stack, and in the facts of an out-of-memory. */
#include <check.h>
#include <string.h>

#include "support/fixture.h"

enum { ROOM = 8 };

static granary *g;
static struct granary_holder holder[ROOM];
static size_t count;

static void with_history(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 256 * GR_MIB;
    options->history = GRANARY_HISTORY_STATE;
}

static void setup(void) {
    g = fixture_open(with_history);
}
static void teardown(void) {
    (void)granary_set_tag("", NULL);
    fixture_close(g);
}

static void hold(const char *tag, size_t size, int blocks) {
    ck_assert_int_eq(granary_set_tag(tag, NULL), GRANARY_OK);
    for (int i = 0; i < blocks; i++) (void)fixture_alloc(g, size, NULL);
}

static void expect(size_t at, const char *name, size_t bytes, size_t blocks) {
    ck_assert_str_eq(holder[at].name, name);
    ck_assert_uint_eq(holder[at].bytes, bytes);
    ck_assert_uint_eq(holder[at].blocks, blocks);
}

START_TEST(tags_are_ranked_by_their_bytes) {
    hold("small", 512, 5);
    hold("large", 4 * GR_MIB, 2);
    hold("", 1024, 3);
    ck_assert_int_eq(granary_get_holders(g, GRANARY_BY_TAG, holder, ROOM, &count), GRANARY_OK);
    ck_assert_uint_eq(count, 3);
    expect(0, "large", 8 * GR_MIB, 2);
    expect(1, "", 3072, 3);
    expect(2, "small", 2560, 5);
    ck_assert_int_eq(granary_get_holders(g, GRANARY_BY_TAG, holder, 1, &count), GRANARY_OK);
    ck_assert_uint_eq(count, 1);
    expect(0, "large", 8 * GR_MIB, 2);
}
END_TEST

static void __attribute__((noinline)) hold_here(void) {
    for (int i = 0; i < 3; i++) (void)fixture_alloc(g, GR_MIB, NULL);
    __asm__ volatile("" ::: "memory");
}

START_TEST(blocks_of_one_place_count_together) {
    size_t bytes = 0, blocks = 0;
    hold_here();
    hold_here();
    (void)fixture_alloc(g, 512, NULL);
    ck_assert_int_eq(granary_get_holders(g, GRANARY_BY_STACK, holder, ROOM, &count), GRANARY_OK);
    ck_assert_uint_ge(count, 3); /* two calls of one function, and another one */
    for (size_t i = 0; i < count; i++) {
        ck_assert(i == 0 || holder[i].bytes <= holder[i - 1].bytes);
        ck_assert_str_ne(holder[i].name, "");
        bytes += holder[i].bytes;
        blocks += holder[i].blocks;
    }
    ck_assert_uint_eq(holder[0].bytes, 3 * GR_MIB);
    ck_assert_uint_eq(bytes, 6 * GR_MIB + 512);
    ck_assert_uint_eq(blocks, 7);
}
END_TEST

START_TEST(what_was_allocated_before_history_is_held_by_nobody_known) {
    struct granary_history_options options;
    granary_history_options_init(&options);
    options.level = GRANARY_HISTORY_OFF;
    ck_assert_int_eq(granary_record_history(g, &options), GRANARY_OK);
    hold("unseen", 1024, 2);
    for (int by = GRANARY_BY_TAG; by <= GRANARY_BY_STACK; by++) {
        ck_assert_int_eq(granary_get_holders(g, (enum granary_holders)by, holder, ROOM, &count), GRANARY_OK);
        ck_assert_uint_eq(count, 1);
        expect(0, "", 2048, 2);
    }
}
END_TEST

START_TEST(a_failure_names_the_largest_holders) {
    void *ptr;
    hold("weights", 20 * GR_MIB, 3);
    hold("", 1024, 1);
    for (int i = 0; i < 6; i++) {
        char tag[8] = {'t', (char)('0' + i), '\0'};
        hold(tag, (size_t)(i + 1) * GR_MIB, 1);
    }
    ck_assert_int_eq(granary_alloc(g, 250 * GR_MIB, NULL, &ptr), GRANARY_OUT_OF_MEMORY);
    const struct granary_fault fault = fixture_fault(g);
    const struct granary_holder *found = fault.shortfall.holders;
    ck_assert_str_eq(found[0].name, "weights");
    ck_assert_uint_eq(found[0].bytes, 60 * GR_MIB);
    for (size_t i = 1; i < 4; i++) {
        ck_assert_uint_eq(found[i].name[1], '6' - i);
        ck_assert_uint_eq(found[i].bytes, (7 - i) * GR_MIB);
    }
    char text[2048];
    ck_assert_int_eq(granary_explain(&fault.shortfall, text, sizeof text), GRANARY_OK);
    ck_assert_ptr_nonnull(strstr(text, "weights holds 60.00 MiB in 3 blocks"));
}
END_TEST

START_TEST(bad_arguments_are_told) {
    ck_assert_int_eq(granary_get_holders(g, (enum granary_holders)7, holder, ROOM, &count), GRANARY_INVALID);
    ck_assert_str_eq(fixture_fault(g).text, "by is 7; it is GRANARY_BY_TAG or GRANARY_BY_STACK");
    ck_assert_int_eq(granary_get_holders(g, GRANARY_BY_TAG, NULL, ROOM, &count), GRANARY_INVALID);
    ck_assert_int_eq(granary_get_holders(NULL, GRANARY_BY_TAG, holder, ROOM, &count), GRANARY_INVALID);
}
END_TEST

Suite *suite_holders(void) {
    Suite *suite = suite_create("holders");
    TCase *cases = tcase_create("holders");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, tags_are_ranked_by_their_bytes);
    tcase_add_test(cases, blocks_of_one_place_count_together);
    tcase_add_test(cases, what_was_allocated_before_history_is_held_by_nobody_known);
    tcase_add_test(cases, a_failure_names_the_largest_holders);
    tcase_add_test(cases, bad_arguments_are_told);
    suite_add_tcase(suite, cases);
    return suite;
}
