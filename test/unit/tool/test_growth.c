/* SPDX-License-Identifier: Apache-2.0
 * Growth: what leaks is found by its place; weights, activations, queues and caches are not taken for it. */
#include <check.h>
#include <stdlib.h>

#include "support/history.h"
#include "tool/growth.h"

#define MIB ((uint64_t)1 << 20)

enum { LEAK = 7, SCRATCH = 8, WEIGHTS = 9 };

static struct history h;
static struct snapshot s;
static struct growth growth;
static struct problem problem;
static uint64_t next; /* address, never used twice */

static void setup(void) {
    history_begin(&h);
    next = 0x100000000;
}

static void teardown(void) {
    growth_free(&growth);
    snapshot_free(&s);
}

static uint64_t take(uint64_t size, int line) {
    uint64_t address = next;
    next += size + MIB;
    history_entry(&h, "alloc", address, size, 0, line);
    return address;
}

static void give(uint64_t address, uint64_t size) {
    history_entry(&h, "free_requested", address, size, 0, 0);
    history_entry(&h, "free_completed", address, size, 0, 0);
}

/* A step that uses scratch memory twice its size in pieces. */
static void step(uint64_t size) {
    uint64_t a = take(size, SCRATCH), b = take(size, SCRATCH + 1);
    give(b, size);
    give(a, size);
}

static void find(void) {
    history_read(&h, &s);
    ck_assert_int_eq(growth_find(&s, &s.devices[0], s.devices[0].entry_count, &growth, &problem), 0);
}

START_TEST(what_each_step_keeps_is_found) {
    for (int i = 0; i < 100; i++) take(10 * MIB, WEIGHTS);
    for (int i = 0; i < 30; i++) {
        step(100 * MIB);
        take(2 * MIB, LEAK);
        step(50 * MIB);
    }
    find();
    ck_assert_uint_eq(growth.count, 1);
    ck_assert_uint_eq(snapshot_line(&s, growth.groups[0].stack)->line, LEAK);
    ck_assert_uint_ge(growth.groups[0].blocks, 28); /* the last may be in use just now */
    ck_assert_uint_eq(growth.groups[0].size, 2 * MIB);
    ck_assert_uint_eq(growth.bytes, growth.groups[0].blocks * 2 * MIB);
    ck_assert_uint_eq(growth.older_bytes, 0);
    ck_assert_double_eq_tol(growth.seconds, (double)(s.devices[0].entry_count - 1) / 1000.0, 1e-9);
}
END_TEST

/* Blocks of the last step are large and from the same line as those that leak. */
START_TEST(what_is_in_use_just_now_does_not_count) {
    for (int i = 0; i < 30; i++) {
        take(64, LEAK);
        step(100 * MIB);
    }
    take(500 * MIB, LEAK);
    find();
    ck_assert_uint_eq(growth.count, 0);
}
END_TEST

START_TEST(older_blocks_of_the_size_are_counted_with_it) {
    uint64_t size = 3 * MIB;
    history_segment(&h, 0x10000000, 30 * MIB, 0, HISTORY_CLASSIC);
    for (int i = 0; i < 10; i++) history_block(&h, 'L', size, size, 0);
    history_segment(&h, 0x100000000, 9000 * MIB, 0, HISTORY_CLASSIC);
    for (int i = 0; i < 20; i++) {
        history_block(&h, 'F', 202 * MIB, 0, 0);
        history_block(&h, 'L', size, size, LEAK);
        history_block(&h, 'F', MIB, 0, 0);
    }
    history_block(&h, 'F', 9000 * MIB - 20 * (203 * MIB + size), 0, 0);
    for (int i = 0; i < 20; i++) {
        step(100 * MIB);
        take(size, LEAK);
    }
    find();
    ck_assert_uint_eq(s.devices[0].unexplained, 0);
    ck_assert_uint_eq(growth.count, 1);
    ck_assert_uint_eq(growth.groups[0].older_blocks, 10);
    ck_assert_uint_eq(growth.groups[0].older_bytes, 10 * size);
}
END_TEST

START_TEST(weights_and_optimizer_state_are_no_growth) {
    for (int i = 0; i < 200; i++) take(5 * MIB, WEIGHTS);
    step(100 * MIB);
    for (int i = 0; i < 200; i++) take(5 * MIB, WEIGHTS + 1);
    for (int i = 0; i < 30; i++) step(100 * MIB);
    find();
    ck_assert_uint_ge(growth.cycles, 5);
    ck_assert_uint_eq(growth.count, 0);
}
END_TEST

/* All of a forward pass is alive when it fails, and there was none before it. */
START_TEST(one_forward_pass_is_no_growth) {
    for (int i = 0; i < 50; i++) take(5 * MIB, WEIGHTS);
    for (int layer = 0; layer < 40; layer++) {
        step(2 * MIB);
        take(20 * MIB, 20);
        take(20 * MIB, 21);
        take(40 * MIB, 22);
        step(4 * MIB);
    }
    find();
    ck_assert_uint_eq(growth.count, 0);
}
END_TEST

START_TEST(activations_of_every_step_are_no_growth) {
    uint64_t layers[12];
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 12; k++) layers[k] = take(20 * MIB, 20);
        if (i == 19) break; /* it fails in the last */
        for (int k = 12; k-- > 0;) give(layers[k], 20 * MIB);
    }
    find();
    ck_assert_uint_eq(growth.count, 0);
}
END_TEST

START_TEST(a_queue_that_lets_its_oldest_go_is_no_growth) {
    uint64_t queue[40];
    for (int i = 0; i < 40; i++) {
        queue[i] = 0x10000000 + (uint64_t)i * 2 * MIB; /* put in before the history */
        step(100 * MIB);
        take(MIB, LEAK);
        give(queue[i], MIB);
    }
    find();
    ck_assert_uint_eq(s.devices[0].before_count, 40);
    ck_assert_uint_eq(growth.count, 0);
}
END_TEST

START_TEST(a_list_that_is_all_there_is_is_found_without_a_rhythm) {
    for (int i = 0; i < 50; i++) take(4 * MIB, LEAK);
    find();
    ck_assert_uint_lt(growth.cycles, 5);
    ck_assert_uint_eq(growth.count, 1);
    ck_assert_uint_eq(growth.groups[0].blocks, 50);
}
END_TEST

START_TEST(without_stacks_blocks_of_a_size_are_one_place) {
    for (int i = 0; i < 30; i++) {
        step(100 * MIB);
        take(2 * MIB, 0);
    }
    find();
    ck_assert_uint_eq(growth.count, 1);
    ck_assert_uint_eq(growth.groups[0].stack, 0);
    ck_assert_uint_eq(growth.groups[0].size, 2 * MIB);
}
END_TEST

START_TEST(the_largest_of_many_places_are_named) {
    for (int i = 0; i < 30; i++) {
        step(100 * MIB);
        for (int line = 1; line <= 6; line++) take((uint64_t)line * MIB / 2, 20 + line);
    }
    find();
    ck_assert_uint_eq(growth.count, GROWTH_GROUPS);
    for (size_t i = 0; i < growth.count; i++)
        ck_assert_uint_eq(snapshot_line(&s, growth.groups[i].stack)->line, 26 - i);
    ck_assert_uint_eq(growth.bytes * 6, growth.groups[0].bytes * 21); /* 1 + 2 + ... + 6 halves, not 6 */
}
END_TEST

Suite *suite_growth(void) {
    Suite *suite = suite_create("growth");
    TCase *tcase = tcase_create("growth");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, what_each_step_keeps_is_found);
    tcase_add_test(tcase, what_is_in_use_just_now_does_not_count);
    tcase_add_test(tcase, older_blocks_of_the_size_are_counted_with_it);
    tcase_add_test(tcase, weights_and_optimizer_state_are_no_growth);
    tcase_add_test(tcase, one_forward_pass_is_no_growth);
    tcase_add_test(tcase, activations_of_every_step_are_no_growth);
    tcase_add_test(tcase, a_queue_that_lets_its_oldest_go_is_no_growth);
    tcase_add_test(tcase, a_list_that_is_all_there_is_is_found_without_a_rhythm);
    tcase_add_test(tcase, without_stacks_blocks_of_a_size_are_one_place);
    tcase_add_test(tcase, the_largest_of_many_places_are_named);
    suite_add_tcase(suite, tcase);
    return suite;
}
