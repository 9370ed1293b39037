/* SPDX-License-Identifier: Apache-2.0
 * The reader of pickles: every protocol as plain data, every opcode that could run code refused by name, and
 * what hostile files do to it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "support/rng.h"
#include "tool/unpickle.h"

static struct problem problem;

/* Bytes of a literal without its 0. */
#define BYTES(literal) literal, sizeof literal - 1

static int load(const char *bytes, size_t length, char *buffer, size_t room) {
    struct store store = {0};
    struct value *value = NULL;
    /* Exactly as long as it is, so that a sanitizer sees a read beyond the end. */
    char *copy = malloc(length > 0 ? length : 1);
    int rc;
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, length);
    problem.text[0] = 0;
    rc = unpickle("p", copy, length, &store, &value, &problem);
    if (rc == 0 && buffer != NULL) golden_plain(value, buffer, room);
    ck_assert_int_eq(rc == 0, problem.text[0] == 0);
    store_free(&store);
    free(copy);
    return rc;
}

static void gives(const char *bytes, size_t length, const char *expected) {
    char text[2048];
    if (load(bytes, length, text, sizeof text) != 0) ck_abort_msg("%s", problem.text);
    ck_assert_str_eq(text, expected);
}

static void refused(const char *bytes, size_t length, const char *words) {
    ck_assert_int_eq(load(bytes, length, NULL, 0), -1);
    ck_assert_str_eq(problem.text, words);
}

START_TEST(every_protocol_gives_the_same_data) {
    static const char expected[] =
        "{'a': 1, 'neg': -5, 'two': 300, 'four': 70000, 'nine': -2147483648, 'big': 1099511627776, "
        "'top': 9223372036854775807, 'low': -9223372036854775808, 'unsigned': 18446744073709551615, "
        "'huge': BIG, 'f': 1.5, 't': True, 'n': None, 's': 'K\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80 \\ "
        "'\"\n', "
        "'list': [1, [], [2, 3]], 'tuples': ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)), 'd': {}, 'long': '";
    char name[16], text[2048], *bytes;
    size_t length;
    for (int protocol = 0; protocol <= 5; protocol++) {
        snprintf(name, sizeof name, "plain.%d", protocol);
        bytes = golden_read(name, &length);
        ck_assert_msg(load(bytes, length, text, sizeof text) == 0, "protocol %d: %s", protocol, problem.text);
        text[sizeof expected - 1 + 300] = 0; /* the x of 'long' */
        ck_assert_msg(strncmp(text, expected, sizeof expected - 1) == 0, "protocol %d: %s", protocol, text);
        ck_assert_uint_eq(strspn(text + sizeof expected - 1, "x"), 300);
        free(bytes);
    }
}
END_TEST

START_TEST(one_list_in_two_places_is_one_value) {
    struct store store = {0};
    struct value *root, *list;
    size_t length;
    char *bytes = golden_read("plain.2", &length);
    ck_assert_int_eq(unpickle("p", bytes, length, &store, &root, &problem), 0);
    list = value_get(root, "list");
    ck_assert_ptr_nonnull(list);
    ck_assert_ptr_eq(value_get(root, "shared"), list);
    store_free(&store);
    free(bytes);
}
END_TEST

START_TEST(opcodes_that_dumps_does_not_write_are_read_too) {
    gives(BYTES("I01\n."), "True");
    gives(BYTES("I00\n."), "False");
    gives(BYTES("L-12L\n."), "-12");
    gives(BYTES("L9223372036854775808L\n."), "9223372036854775808");
    gives(BYTES("L-9223372036854775809L\n."), "BIG");
    gives(BYTES("F1e3\n."), "1000");
    gives(BYTES("S'it\\'s \\x41\\n\\q'\n."), "'it's A\n\\q'");
    gives(BYTES("S\"\"\n."), "''");
    gives(BYTES("V\\u20ac\\U0001f600\\x\xf6\n."), "'\xe2\x82\xac\xf0\x9f\x98\x80\\x\xc3\xb6'");
    gives(BYTES("U\003abc."), "'abc'");
    gives(BYTES("T\003\000\000\000abc."), "'abc'");
    gives(BYTES("\x8d\003\000\000\000\000\000\000\000abc."), "'abc'");
    gives(BYTES("C\001z."), "b'z'");
    gives(BYTES("\x96\001\000\000\000\000\000\000\000z."), "b'z'");
    gives(BYTES("\x8b\002\000\000\000\xff\xff."), "-1");
    gives(BYTES("\x8a\000."), "0");
    gives(BYTES("\x8a\011\000\000\000\000\000\000\000\x80\000."), "9223372036854775808");
    gives(BYTES("\x8a\010\000\000\000\000\000\000\000\x80."), "-9223372036854775808");
    gives(BYTES("\x8a\011\xff\xff\xff\xff\xff\xff\xff\x7f\xff."), "BIG");
    gives(BYTES("\x8f(K\001K\002\x90."), "<1, 2>");
    gives(BYTES("(K\001\x91."), "<1>");
    gives(BYTES("(K\001K\002d."), "{1: 2}");
    gives(BYTES("(K\001K\002l."), "[1, 2]");
    gives(BYTES("K\001K\0020."), "1");
    gives(BYTES("K\001(K\002K\0031."), "1");
    gives(BYTES("K\001(0."), "1");
    gives(BYTES("]2a."), "[[[[[[[...]]]]]]]"); /* a list in itself */
    gives(BYTES("K\007q\003Nh\003\x86."), "(None, 7)");
    gives(BYTES("K\007p12\nNg12\n\x86."), "(None, 7)");
    gives(BYTES("Nr\003\000\000\000j\003\000\000\000\x86."), "(None, None)");
    gives(BYTES("N\x94K\005\x94h\001h\000\x87."), "(5, 5, None)");
    gives(BYTES("N. and what follows"), "None");
}
END_TEST

/* Each opcode that could import, call or fetch something. */
START_TEST(an_opcode_that_could_run_code_is_refused_by_name) {
    static const struct {
        const char *bytes, *name;
        size_t length, at;
    } cases[] = {
        {"cos\nsystem\n.", "GLOBAL", 12, 0},
        {"\x8c\002os\x8c\006system\x93.", "STACK_GLOBAL", 14, 12},
        {"N)R.", "REDUCE", 4, 2},
        {"NNb.", "BUILD", 4, 2},
        {"(S'ls'\nios\nsystem\n.", "INST", 19, 7},
        {"(NNo.", "OBJ", 5, 3},
        {"N)\x81.", "NEWOBJ", 4, 2},
        {"N)}\x92.", "NEWOBJ_EX", 5, 3},
        {"\x82\001.", "EXT1", 3, 0},
        {"\x83\001\000.", "EXT2", 4, 0},
        {"\x84\001\000\000\000.", "EXT4", 6, 0},
        {"P12\n.", "PERSID", 5, 0},
        {"NQ.", "BINPERSID", 3, 1},
        {"\x97.", "NEXT_BUFFER", 2, 0},
        {"N\x98.", "READONLY_BUFFER", 3, 1},
    };
    char words[128];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(words, sizeof words, "p: byte %zu: the opcode %s could run code; only plain data is read",
                 cases[i].at, cases[i].name);
        refused(cases[i].bytes, cases[i].length, words);
    }
}
END_TEST

START_TEST(a_byte_is_an_opcode_that_is_read_or_refused_or_none) {
    char bytes[2] = {0, '.'}, words[64];
    int none = 0;
    for (int c = 0; c < 256; c++) {
        bytes[0] = (char)c;
        snprintf(words, sizeof words, "p: byte 0: 0x%02x is no opcode of a pickle", (unsigned)c);
        if (load(bytes, 2, NULL, 0) != 0 && strcmp(problem.text, words) == 0) none++;
    }
    ck_assert_int_eq(none, 256 - 68);
}
END_TEST

START_TEST(mistakes_are_told_with_their_place) {
    refused(BYTES(""), "p: the pickle ends after 0 bytes without STOP");
    refused(BYTES("\x80\002N"), "p: the pickle ends after 3 bytes without STOP");
    refused(BYTES("."), "p: byte 0: the opcode takes more from the stack than is there");
    refused(BYTES("\x80\006N."), "p: byte 0: the protocol is higher than 5, the highest known");
    refused(BYTES("N(."), "p: byte 2: the opcode takes more from the stack than is there");
    refused(BYTES("Na."), "p: byte 1: the opcode takes more from the stack than is there");
    refused(BYTES("NNa."), "p: byte 2: APPEND puts items into a None");
    refused(BYTES("]NNs."), "p: byte 3: SETITEM puts items into a list");
    refused(BYTES("}(Nu."), "p: byte 3: a key without a value");
    refused(BYTES("(Nd."), "p: byte 2: a dict with a key and no value");
    refused(BYTES("Nt."), "p: byte 1: the opcode looks for a MARK and there is none");
    refused(BYTES("(Ne."), "p: byte 2: there is no container under the items");
    refused(BYTES("h\000."), "p: byte 0: the memo has no such entry");
    refused(BYTES("gx\n."), "p: byte 0: the memo's number is not one");
    refused(BYTES("g\n."), "p: byte 0: the memo's number is not one");
    refused(BYTES("I12"), "p: byte 0: the line of a protocol 0 opcode does not end");
    refused(BYTES("I-\n."), "p: byte 0: a number without digits");
    refused(BYTES("I1x\n."), "p: byte 0: a number with something else than digits");
    refused(BYTES("F1.5y\n."), "p: byte 0: a number that is no float");
    refused(BYTES("S'x\n."), "p: byte 0: a STRING without its quotes");
    refused(BYTES("V\\uZZZZ\n."), "p: byte 0: an escape that is no character");
    refused(BYTES("\x8b\000\000\000\x80."), "p: byte 0: the length of a number is negative");
}
END_TEST

START_TEST(a_length_is_held_against_the_file_before_anything_is_taken_for_it) {
    refused(BYTES("X\xff\xff\xff\xff"),
            "p: byte 0: BINUNICODE needs 4294967295 bytes and the file has 0 more");
    refused(BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"),
            "p: byte 0: BINUNICODE8 needs 18446744073709551615 bytes and the file has 0 more");
    refused(BYTES("\x8e\000\000\000\000\000\000\000\x80"),
            "p: byte 0: BINBYTES8 needs 9223372036854775808 bytes and the file has 0 more");
    refused(BYTES("\x95\xff\000\000\000\000\000\000\000N."),
            "p: byte 0: FRAME needs 255 bytes and the file has 2 more");
    refused(BYTES("\x8b\xff\xff\xff\x7f"), "p: byte 0: LONG4 needs 2147483647 bytes and the file has 0 more");
    refused(BYTES("U\005ab"), "p: byte 0: SHORT_BINSTRING needs 5 bytes and the file has 2 more");
    refused(BYTES("J\001"), "p: byte 0: BININT needs 4 bytes and the file has 1 more");
    refused(BYTES("Nr\xff\xff\xff\xff."), "p: byte 1: the memo's number is larger than the file could need");
    refused(BYTES("Np999999999999999999\n."),
            "p: byte 1: the memo's number is larger than the file could need");
    refused(BYTES("g99999999999999999999\n."), "p: byte 0: the memo's number is not one");
}
END_TEST

START_TEST(a_pickle_that_is_cut_anywhere_is_refused) {
    char name[16], *bytes;
    size_t length;
    for (int protocol = 0; protocol <= 5; protocol++) {
        snprintf(name, sizeof name, "plain.%d", protocol);
        bytes = golden_read(name, &length);
        for (size_t cut = 0; cut < length; cut++)
            ck_assert_msg(load(bytes, cut, NULL, 0) != 0, "%s cut at %zu is read", name, cut);
        free(bytes);
    }
}
END_TEST

START_TEST(depth_costs_no_stack) {
    const size_t depth = 1 << 18;
    char *bytes = malloc(3 * depth + 1);
    ck_assert_ptr_nonnull(bytes);
    /* ((((...tttt and ]]]]...aaaa */
    memset(bytes, '(', depth);
    memset(bytes + depth, 't', depth);
    bytes[2 * depth] = '.';
    ck_assert_int_eq(load(bytes, 2 * depth + 1, NULL, 0), 0);
    memset(bytes, ']', depth);
    memset(bytes + depth, 'a', depth - 1);
    bytes[2 * depth - 1] = '.';
    ck_assert_int_eq(load(bytes, 2 * depth, NULL, 0), 0);
    free(bytes);
}
END_TEST

/* Each level holds the one below ten times: ten to the power of a hundred things in a kilobyte. */
START_TEST(a_memo_bomb_stays_as_small_as_its_file) {
    char bytes[8192];
    size_t length = 0;
    struct store store = {0};
    struct value *root, *at;
    int depth = 0;
    bytes[length++] = 'N';
    for (int level = 0; level < 100; level++) {
        length += (size_t)sprintf(bytes + length, "p%d\n0(", level);
        for (int i = 0; i < 10; i++) length += (size_t)sprintf(bytes + length, "g%d\n", level);
        bytes[length++] = 't';
    }
    bytes[length++] = '.';
    ck_assert_int_eq(unpickle("p", bytes, length, &store, &root, &problem), 0);
    for (at = root; at->kind == VALUE_TUPLE; at = at->items.at[9]) depth++;
    ck_assert_int_eq(depth, 100);
    store_free(&store);
}
END_TEST

START_TEST(hurt_pickles_do_no_harm) {
    struct rng rng = {7};
    size_t length;
    char *bytes = golden_read("plain.4", &length), *copy = malloc(length);
    int read = 0;
    ck_assert_ptr_nonnull(copy);
    for (int round = 0; round < 1000; round++) {
        memcpy(copy, bytes, length);
        for (uint64_t hits = 1 + rng_below(&rng, 4); hits > 0; hits--)
            copy[rng_below(&rng, length)] = (char)rng_below(&rng, 256);
        read += load(copy, length, NULL, 0) == 0;
    }
    ck_assert_int_gt(read, 30); /* else the damage is too great to reach anything */
    ck_assert_int_lt(read, 970);
    free(copy);
    free(bytes);
}
END_TEST

Suite *suite_unpickle(void) {
    Suite *suite = suite_create("unpickle");
    TCase *tcase = tcase_create("reader");
    tcase_add_test(tcase, every_protocol_gives_the_same_data);
    tcase_add_test(tcase, one_list_in_two_places_is_one_value);
    tcase_add_test(tcase, opcodes_that_dumps_does_not_write_are_read_too);
    tcase_add_test(tcase, an_opcode_that_could_run_code_is_refused_by_name);
    tcase_add_test(tcase, a_byte_is_an_opcode_that_is_read_or_refused_or_none);
    tcase_add_test(tcase, mistakes_are_told_with_their_place);
    tcase_add_test(tcase, a_length_is_held_against_the_file_before_anything_is_taken_for_it);
    tcase_add_test(tcase, a_pickle_that_is_cut_anywhere_is_refused);
    tcase_add_test(tcase, depth_costs_no_stack);
    tcase_add_test(tcase, a_memo_bomb_stays_as_small_as_its_file);
    tcase_add_test(tcase, hurt_pickles_do_no_harm);
    suite_add_tcase(suite, tcase);
    return suite;
}
