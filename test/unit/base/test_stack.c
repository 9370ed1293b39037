/* SPDX-License-Identifier: Apache-2.0
 * The caller's stack is taken from the caller on, whatever the unwinder, and its places have names. */
#include <check.h>
#include <execinfo.h>
#include <string.h>

#include "base/symbol.h"
#include "base/unwind.h"

enum { ROOM = 32 };

static struct gr_unwind unwind;
static uint64_t frames[ROOM];
static size_t count;

static void with_best(void) {
    gr_unwind_open(&unwind);
}
static void with_fallback(void) {
    unwind = (struct gr_unwind){.walk = backtrace, .name = "backtrace"};
}

/* Stands for a public function of the library. */
static void __attribute__((noinline)) library(size_t room) {
    count = gr_unwind_take(&unwind, __builtin_return_address(0), frames, room);
    __asm__ volatile("" ::: "memory");
}

void __attribute__((noinline)) test_stack_caller(size_t room, int depth);
void __attribute__((noinline)) test_stack_caller(size_t room, int depth) {
    if (depth > 0)
        test_stack_caller(room, depth - 1);
    else
        library(room);
    __asm__ volatile("" ::: "memory");
}

static bool in_caller(uint64_t address) {
    return address > (uint64_t)(uintptr_t)test_stack_caller &&
           address < (uint64_t)(uintptr_t)test_stack_caller + 512;
}

START_TEST(the_stack_begins_in_the_function_that_called) {
    test_stack_caller(ROOM, 3);
    ck_assert_uint_gt(count, 5);
    for (int i = 0; i < 4; i++) ck_assert_msg(in_caller(frames[i]), "frame %d", i);
    ck_assert_uint_eq(frames[1], frames[3]); /* its recursion; then who began it */
    ck_assert_uint_ne(frames[3], frames[4]);
}
END_TEST

START_TEST(the_innermost_frames_are_kept_when_room_is_short) {
    test_stack_caller(3, 5);
    ck_assert_uint_eq(count, 3);
    for (int i = 0; i < 3; i++) ck_assert(in_caller(frames[i]));
    test_stack_caller(0, 5);
    ck_assert_uint_eq(count, 0);
}
END_TEST

START_TEST(the_same_place_gives_the_same_stack) {
    uint64_t first[ROOM];
    for (int i = 0; i < 2; i++) {
        test_stack_caller(ROOM, 2);
        if (i == 0) memcpy(first, frames, sizeof first);
    }
    ck_assert_mem_eq(first, frames, count * sizeof first[0]);
}
END_TEST

START_TEST(without_an_unwinder_there_are_no_frames) {
    unwind = (struct gr_unwind){.name = "none"};
    test_stack_caller(ROOM, 2);
    ck_assert_uint_eq(count, 0);
}
END_TEST

START_TEST(a_place_has_a_name_and_a_file) {
    struct gr_symbols symbols;
    struct gr_symbol symbol;
    with_best();
    test_stack_caller(ROOM, 0);
    gr_symbols_open(&symbols);
    gr_symbols_find(&symbols, frames[0], &symbol);
    ck_assert_str_ne(symbol.name, "");
    ck_assert_str_ne(symbol.file, "");
    if (symbols.session) { /* libdw is here, and tests have debug information */
        ck_assert_str_eq(symbol.name, "test_stack_caller");
        ck_assert_ptr_nonnull(strstr(symbol.file, "test_stack.c"));
        ck_assert_int_gt(symbol.line, 0);
    }
    gr_symbols_find(&symbols, 16, &symbol); /* nowhere */
    ck_assert_str_eq(symbol.name, "0x10");
    ck_assert_str_eq(symbol.file, "??");
    gr_symbols_close(&symbols);
}
END_TEST

START_TEST(names_do_without_debug_information) {
    struct gr_symbols symbols = {0};
    struct gr_symbol symbol;
    gr_symbols_find(&symbols, (uint64_t)(uintptr_t)strlen + 1, &symbol);
    ck_assert_str_ne(symbol.name, "");
    ck_assert_str_ne(symbol.file, "");
    ck_assert_int_eq(symbol.line, 0);
}
END_TEST

Suite *suite_stack(void) {
    Suite *suite = suite_create("stack");
    for (int kind = 0; kind < 2; kind++) {
        TCase *cases = tcase_create(kind == 0 ? "best" : "fallback");
        tcase_add_checked_fixture(cases, kind == 0 ? with_best : with_fallback, NULL);
        tcase_add_test(cases, the_stack_begins_in_the_function_that_called);
        tcase_add_test(cases, the_innermost_frames_are_kept_when_room_is_short);
        tcase_add_test(cases, the_same_place_gives_the_same_stack);
        suite_add_tcase(suite, cases);
    }
    TCase *cases = tcase_create("names");
    tcase_add_test(cases, without_an_unwinder_there_are_no_frames);
    tcase_add_test(cases, a_place_has_a_name_and_a_file);
    tcase_add_test(cases, names_do_without_debug_information);
    suite_add_tcase(suite, cases);
    return suite;
}
