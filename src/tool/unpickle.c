/* SPDX-License-Identifier: Apache-2.0
 * Reading pickles, as plain data only. */
#include "tool/unpickle.h"

#include <stdlib.h>
#include <string.h>

#include "tool/array.h"
#include "tool/escape.h"

/* Opcodes of protocols 0 to 5. */
/* clang-format off */
#define PICKLE_OPCODES(X)                                                                            \
    X(MARK, '(') X(STOP, '.') X(POP, '0') X(POP_MARK, '1') X(DUP, '2') X(FLOAT, 'F') X(INT, 'I')     \
    X(BININT, 'J') X(BININT1, 'K') X(LONG, 'L') X(BININT2, 'M') X(NONE, 'N') X(PERSID, 'P')          \
    X(BINPERSID, 'Q') X(REDUCE, 'R') X(STRING, 'S') X(BINSTRING, 'T') X(SHORT_BINSTRING, 'U')        \
    X(UNICODE, 'V') X(BINUNICODE, 'X') X(APPEND, 'a') X(BUILD, 'b') X(GLOBAL, 'c') X(DICT, 'd')      \
    X(EMPTY_DICT, '}') X(APPENDS, 'e') X(GET, 'g') X(BINGET, 'h') X(INST, 'i') X(LONG_BINGET, 'j')   \
    X(LIST, 'l') X(EMPTY_LIST, ']') X(OBJ, 'o') X(PUT, 'p') X(BINPUT, 'q') X(LONG_BINPUT, 'r')       \
    X(SETITEM, 's') X(TUPLE, 't') X(EMPTY_TUPLE, ')') X(SETITEMS, 'u') X(BINFLOAT, 'G')              \
    X(BINBYTES, 'B') X(SHORT_BINBYTES, 'C') X(PROTO, 0x80) X(NEWOBJ, 0x81) X(EXT1, 0x82)             \
    X(EXT2, 0x83) X(EXT4, 0x84) X(TUPLE1, 0x85) X(TUPLE2, 0x86) X(TUPLE3, 0x87) X(NEWTRUE, 0x88)     \
    X(NEWFALSE, 0x89) X(LONG1, 0x8a) X(LONG4, 0x8b) X(SHORT_BINUNICODE, 0x8c) X(BINUNICODE8, 0x8d)   \
    X(BINBYTES8, 0x8e) X(EMPTY_SET, 0x8f) X(ADDITEMS, 0x90) X(FROZENSET, 0x91) X(NEWOBJ_EX, 0x92)    \
    X(STACK_GLOBAL, 0x93) X(MEMOIZE, 0x94) X(FRAME, 0x95) X(BYTEARRAY8, 0x96) X(NEXT_BUFFER, 0x97)   \
    X(READONLY_BUFFER, 0x98)
/* clang-format on */

enum opcode {
#define OPCODE_ENUM(name, byte) OP_##name = byte,
    PICKLE_OPCODES(OPCODE_ENUM)
#undef OPCODE_ENUM
};

static const char *const opcode_names[256] = {
#define OPCODE_NAME(name, byte) [byte] = #name,
    PICKLE_OPCODES(OPCODE_NAME)
#undef OPCODE_NAME
};

enum { HIGHEST_PROTOCOL = 5, SMALL_INTS = 256 };

struct machine {
    const char *path;
    const unsigned char *start, *at, *end, *op; /* op: the opcode that is being carried out */
    struct store *store;
    struct value **stack;
    size_t depth, stack_room;
    size_t *marks; /* depths of the stack */
    size_t mark_count, mark_room;
    struct value **memo; /* NULL: no such entry */
    size_t memo_room, memo_next;
    struct value *none, *yes, *no, *ints[SMALL_INTS]; /* these never change, so one of each will do */
    bool ended;
    struct problem *problem;
};

static int fail(struct machine *m, const char *what) {
    problem_set(m->problem, "%s: byte %zu: %s", m->path, (size_t)(m->op - m->start), what);
    return -1;
}

static int no_memory(struct machine *m) {
    problem_set(m->problem, "%s: out of memory", m->path);
    return -1;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static int push(struct machine *m, struct value *value) {
    if (value == NULL || !array_reserve(&m->stack, &m->stack_room, m->depth, 1, sizeof *m->stack))
        return no_memory(m);
    m->stack[m->depth++] = value;
    return 0;
}

static int push_new(struct machine *m, enum value_kind kind) {
    return push(m, value_new(m->store, kind));
}

static int mark(struct machine *m) {
    if (!array_reserve(&m->marks, &m->mark_room, m->mark_count, 1, sizeof *m->marks)) return no_memory(m);
    m->marks[m->mark_count++] = m->depth;
    return 0;
}

/* The items above the last mark, or on the whole stack, belong to the opcodes in hand. */
static size_t floor_of(const struct machine *m) {
    return m->mark_count > 0 ? m->marks[m->mark_count - 1] : 0;
}

static int need(struct machine *m, size_t count) {
    return m->depth - floor_of(m) >= count ? 0
                                           : fail(m, "the opcode takes more from the stack than is there");
}

/* Takes the last mark off; what lay above it is stack[*from..depth). */
static int to_mark(struct machine *m, size_t *from) {
    if (m->mark_count == 0) return fail(m, "the opcode looks for a MARK and there is none");
    *from = m->marks[--m->mark_count];
    return 0;
}

/* ---- arguments of opcodes -------------------------------------------------------------------- */

static int have(struct machine *m, uint64_t count) {
    size_t left = (size_t)(m->end - m->at);
    if (count <= left) return 0;
    problem_set(m->problem, "%s: byte %zu: %s needs %llu bytes and the file has %zu more", m->path,
                (size_t)(m->op - m->start), opcode_names[*m->op], (unsigned long long)count, left);
    return -1;
}

/* A little-endian number of width bytes. */
static int little(struct machine *m, unsigned width, uint64_t *out) {
    if (have(m, width) != 0) return -1;
    *out = 0;
    for (unsigned i = 0; i < width; i++) *out |= (uint64_t)*m->at++ << (8 * i);
    return 0;
}

/* The rest of the line, without its end. */
static int line(struct machine *m, const char **text, size_t *length) {
    const unsigned char *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (end == NULL) return fail(m, "the line of a protocol 0 opcode does not end");
    *text = (const char *)m->at;
    *length = (size_t)(end - m->at);
    m->at = end + 1;
    return 0;
}

static int push_text(struct machine *m, enum value_kind kind, const char *text, size_t length) {
    struct value *value = value_new(m->store, kind);
    if (value == NULL) return no_memory(m);
    value->text.bytes = store_text(m->store, text, length);
    value->text.length = length;
    return value->text.bytes == NULL ? no_memory(m) : push(m, value);
}

/* A text or bytes behind a length of width bytes. */
static int counted(struct machine *m, unsigned width, enum value_kind kind) {
    const char *text;
    uint64_t length;
    if (little(m, width, &length) != 0 || have(m, length) != 0) return -1;
    text = (const char *)m->at;
    m->at += length;
    return push_text(m, kind, text, (size_t)length);
}

static int push_int(struct machine *m, int64_t number) {
    struct value *value;
    bool small = number >= 0 && number < SMALL_INTS;
    if (small && m->ints[number] != NULL) return push(m, m->ints[number]);
    value = value_new(m->store, VALUE_INT);
    if (value == NULL) return no_memory(m);
    value->number = number;
    if (small) m->ints[number] = value;
    return push(m, value);
}

/* A magnitude with its sign. */
static int push_magnitude(struct machine *m, uint64_t magnitude, bool negative) {
    struct value *value;
    if (!negative && magnitude <= INT64_MAX) return push_int(m, (int64_t)magnitude);
    if (negative && magnitude <= (uint64_t)INT64_MAX + 1) return push_int(m, (int64_t)(0 - magnitude));
    value = value_new(m->store, negative ? VALUE_BIG : VALUE_UNSIGNED);
    if (value != NULL) value->number = (int64_t)magnitude;
    return push(m, value);
}

/* INT and LONG of protocol 0. */
static int decimal(struct machine *m) {
    const char *text;
    size_t length, i = 0;
    uint64_t magnitude = 0;
    bool negative, big = false;
    if (line(m, &text, &length) != 0) return -1;
    if (*m->op == OP_INT && length == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1'))
        return push(m, text[1] == '1' ? m->yes : m->no);
    if (length > 0 && text[length - 1] == 'L') length--;
    negative = length > 0 && text[0] == '-';
    i = negative ? 1 : 0;
    if (i == length) return fail(m, "a number without digits");
    for (; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return fail(m, "a number with something else than digits");
        if (__builtin_mul_overflow(magnitude, (uint64_t)10, &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)(text[i] - '0'), &magnitude))
            big = true;
    }
    return big ? push_new(m, VALUE_BIG) : push_magnitude(m, magnitude, negative);
}

/* LONG1 and LONG4: two's complement, little-endian. */
static int binary_long(struct machine *m, unsigned width) {
    uint64_t length, bits = 0;
    const unsigned char *bytes;
    unsigned char sign;
    if (little(m, width, &length) != 0) return -1;
    if (width == 4 && length > INT32_MAX) return fail(m, "the length of a number is negative");
    if (have(m, length) != 0) return -1;
    bytes = m->at;
    m->at += length;
    if (length == 0) return push_int(m, 0);
    sign = bytes[length - 1] & 0x80 ? 0xff : 0;
    while (length > 1 && bytes[length - 1] == sign) length--; /* bytes that only repeat the sign */
    if (length > 9 || (length == 9 && bytes[8] != 0)) return push_new(m, VALUE_BIG);
    for (unsigned i = 0; i < 8; i++) bits |= (uint64_t)(i < length ? bytes[i] : sign) << (8 * i);
    if (sign == 0) return push_magnitude(m, bits, false);
    return bits >> 63 == 1 ? push_int(m, (int64_t)bits) : push_new(m, VALUE_BIG);
}

static int real(struct machine *m) {
    struct value *value;
    const char *text;
    char buffer[64], *end;
    size_t length;
    double number;
    if (*m->op == OP_FLOAT) {
        if (line(m, &text, &length) != 0) return -1;
        if (length == 0 || length >= sizeof buffer) return fail(m, "a number that is no float");
        memcpy(buffer, text, length);
        buffer[length] = 0;
        number = strtod(buffer, &end);
        if (end != buffer + length) return fail(m, "a number that is no float");
    } else {
        uint64_t bits = 0;
        if (have(m, 8) != 0) return -1;
        for (int i = 0; i < 8; i++) bits = bits << 8 | *m->at++; /* the one big-endian thing in a pickle */
        memcpy(&number, &bits, sizeof number);
    }
    value = value_new(m->store, VALUE_FLOAT);
    if (value != NULL) value->real = number;
    return push(m, value);
}

/* ---- texts of protocol 0 --------------------------------------------------------------------- */

/* UNICODE and STRING: a line with escapes. */
static int escaped(struct machine *m) {
    const char *text;
    size_t length, used = 0;
    char *out;
    int rc = 0;
    if (line(m, &text, &length) != 0) return -1;
    out = malloc(2 * length + 1);
    if (out == NULL) return no_memory(m);
    if (*m->op == OP_UNICODE) {
        if (!escape_unicode(text, length, out, &used)) rc = fail(m, "an escape that is no character");
    } else if (length < 2 || (text[0] != '\'' && text[0] != '"') || text[length - 1] != text[0]) {
        rc = fail(m, "a STRING without its quotes");
    } else {
        escape_repr(text + 1, length - 2, out, &used);
    }
    if (rc == 0) rc = push_text(m, VALUE_TEXT, out, used);
    free(out);
    return rc;
}

/* ---- containers ------------------------------------------------------------------------------ */

static int append_from(struct machine *m, struct value *list, size_t from) {
    for (size_t i = from; i < m->depth; i++)
        if (!value_append(m->store, list, m->stack[i])) return no_memory(m);
    m->depth = from;
    return 0;
}

/* A container made of stack[from..depth). */
static int gather(struct machine *m, enum value_kind kind, size_t from) {
    struct value *list = value_new(m->store, kind);
    if (list == NULL) return no_memory(m);
    if (kind == VALUE_DICT && (m->depth - from) % 2 != 0) return fail(m, "a dict with a key and no value");
    return append_from(m, list, from) != 0 ? -1 : push(m, list);
}

static int gather_marked(struct machine *m, enum value_kind kind) {
    size_t from;
    return to_mark(m, &from) != 0 ? -1 : gather(m, kind, from);
}

static int gather_last(struct machine *m, enum value_kind kind, size_t count) {
    return need(m, count) != 0 ? -1 : gather(m, kind, m->depth - count);
}

/* Puts stack[from..depth) into the container below it. */
static int put_into(struct machine *m, enum value_kind kind, size_t from) {
    struct value *list;
    if (from <= floor_of(m)) return fail(m, "there is no container under the items");
    list = m->stack[from - 1];
    if (list->kind != kind) {
        problem_set(m->problem, "%s: byte %zu: %s puts items into a %s", m->path, (size_t)(m->op - m->start),
                    opcode_names[*m->op], value_kind_name(list));
        return -1;
    }
    if (kind == VALUE_DICT && (m->depth - from) % 2 != 0) return fail(m, "a key without a value");
    return append_from(m, list, from);
}

static int put_marked(struct machine *m, enum value_kind kind) {
    size_t from;
    return to_mark(m, &from) != 0 ? -1 : put_into(m, kind, from);
}

static int put_last(struct machine *m, enum value_kind kind, size_t count) {
    return need(m, count + 1) != 0 ? -1 : put_into(m, kind, m->depth - count);
}

/* ---- the memo -------------------------------------------------------------------------------- */

/* Pickles number their memo from 0 on, and each entry costs at least a byte of the file. */
static int memo_put(struct machine *m, uint64_t index) {
    size_t room = m->memo_room;
    if (need(m, 1) != 0) return -1;
    if (index >= (uint64_t)(m->end - m->start))
        return fail(m, "the memo's number is larger than the file could need");
    if (index >= room) {
        struct value **memo;
        do room = room == 0 ? 256 : room * 2;
        while (index >= room);
        memo = realloc(m->memo, room * sizeof *memo);
        if (memo == NULL) return no_memory(m);
        memset(memo + m->memo_room, 0, (room - m->memo_room) * sizeof *memo);
        m->memo = memo;
        m->memo_room = room;
    }
    if (m->memo[index] == NULL) m->memo_next++; /* MEMOIZE numbers by how many there are */
    m->memo[index] = m->stack[m->depth - 1];
    return 0;
}

static int memo_get(struct machine *m, uint64_t index) {
    if (index >= m->memo_room || m->memo[index] == NULL) return fail(m, "the memo has no such entry");
    return push(m, m->memo[index]);
}

/* The index of PUT, GET (width 0: a line in decimal) and their binary kin. */
static int memo_index(struct machine *m, unsigned width, uint64_t *out) {
    const char *text;
    size_t length;
    if (width > 0) return little(m, width, out);
    if (line(m, &text, &length) != 0) return -1;
    *out = 0;
    if (length == 0 || length > 18) return fail(m, "the memo's number is not one");
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return fail(m, "the memo's number is not one");
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    }
    return 0;
}

static int memo_put_at(struct machine *m, unsigned width) {
    uint64_t index;
    return memo_index(m, width, &index) != 0 ? -1 : memo_put(m, index);
}

static int memo_get_at(struct machine *m, unsigned width) {
    uint64_t index;
    return memo_index(m, width, &index) != 0 ? -1 : memo_get(m, index);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static int refuse(struct machine *m) {
    problem_set(m->problem, "%s: byte %zu: the opcode %s could run code; only plain data is read", m->path,
                (size_t)(m->op - m->start), opcode_names[*m->op]);
    return -1;
}

static int protocol(struct machine *m) {
    uint64_t version;
    if (little(m, 1, &version) != 0) return -1;
    return version <= HIGHEST_PROTOCOL ? 0 : fail(m, "the protocol is higher than 5, the highest known");
}

static int frame(struct machine *m) {
    uint64_t length;
    return little(m, 8, &length) != 0 ? -1 : have(m, length);
}

static int pop(struct machine *m) {
    /* POP takes a mark away when nothing lies on it. */
    if (m->mark_count > 0 && m->depth == floor_of(m))
        m->mark_count--;
    else if (need(m, 1) == 0)
        m->depth--;
    else
        return -1;
    return 0;
}

static int small_int(struct machine *m, unsigned width) {
    uint64_t bits;
    if (little(m, width, &bits) != 0) return -1;
    return push_int(m, width == 4 ? (int64_t)(int32_t)(uint32_t)bits : (int64_t)bits);
}

static int step(struct machine *m) {
    size_t from;
    switch ((enum opcode) * m->op) {
    case OP_PROTO: return protocol(m);
    case OP_FRAME: return frame(m);
    case OP_STOP: m->ended = true; return need(m, 1);
    case OP_MARK: return mark(m);
    case OP_POP: return pop(m);
    case OP_POP_MARK:
        if (to_mark(m, &from) != 0) return -1;
        m->depth = from;
        return 0;
    case OP_DUP: return need(m, 1) != 0 ? -1 : push(m, m->stack[m->depth - 1]);

    case OP_NONE: return push(m, m->none);
    case OP_NEWTRUE: return push(m, m->yes);
    case OP_NEWFALSE: return push(m, m->no);
    case OP_INT:
    case OP_LONG: return decimal(m);
    case OP_BININT: return small_int(m, 4);
    case OP_BININT1: return small_int(m, 1);
    case OP_BININT2: return small_int(m, 2);
    case OP_LONG1: return binary_long(m, 1);
    case OP_LONG4: return binary_long(m, 4);
    case OP_FLOAT:
    case OP_BINFLOAT: return real(m);

    case OP_STRING:
    case OP_UNICODE: return escaped(m);
    case OP_SHORT_BINSTRING:
    case OP_SHORT_BINUNICODE: return counted(m, 1, VALUE_TEXT);
    case OP_BINSTRING:
    case OP_BINUNICODE: return counted(m, 4, VALUE_TEXT);
    case OP_BINUNICODE8: return counted(m, 8, VALUE_TEXT);
    case OP_SHORT_BINBYTES: return counted(m, 1, VALUE_BYTES);
    case OP_BINBYTES: return counted(m, 4, VALUE_BYTES);
    case OP_BINBYTES8:
    case OP_BYTEARRAY8: return counted(m, 8, VALUE_BYTES);

    case OP_EMPTY_LIST: return push_new(m, VALUE_LIST);
    case OP_EMPTY_TUPLE: return push_new(m, VALUE_TUPLE);
    case OP_EMPTY_DICT: return push_new(m, VALUE_DICT);
    case OP_EMPTY_SET: return push_new(m, VALUE_SET);
    case OP_LIST: return gather_marked(m, VALUE_LIST);
    case OP_TUPLE: return gather_marked(m, VALUE_TUPLE);
    case OP_DICT: return gather_marked(m, VALUE_DICT);
    case OP_FROZENSET: return gather_marked(m, VALUE_SET);
    case OP_TUPLE1: return gather_last(m, VALUE_TUPLE, 1);
    case OP_TUPLE2: return gather_last(m, VALUE_TUPLE, 2);
    case OP_TUPLE3: return gather_last(m, VALUE_TUPLE, 3);
    case OP_APPEND: return put_last(m, VALUE_LIST, 1);
    case OP_APPENDS: return put_marked(m, VALUE_LIST);
    case OP_SETITEM: return put_last(m, VALUE_DICT, 2);
    case OP_SETITEMS: return put_marked(m, VALUE_DICT);
    case OP_ADDITEMS: return put_marked(m, VALUE_SET);

    case OP_PUT: return memo_put_at(m, 0);
    case OP_BINPUT: return memo_put_at(m, 1);
    case OP_LONG_BINPUT: return memo_put_at(m, 4);
    case OP_MEMOIZE: return memo_put(m, m->memo_next);
    case OP_GET: return memo_get_at(m, 0);
    case OP_BINGET: return memo_get_at(m, 1);
    case OP_LONG_BINGET: return memo_get_at(m, 4);

    case OP_GLOBAL:
    case OP_STACK_GLOBAL:
    case OP_REDUCE:
    case OP_BUILD:
    case OP_INST:
    case OP_OBJ:
    case OP_NEWOBJ:
    case OP_NEWOBJ_EX:
    case OP_EXT1:
    case OP_EXT2:
    case OP_EXT4:
    case OP_PERSID:
    case OP_BINPERSID:
    case OP_NEXT_BUFFER:
    case OP_READONLY_BUFFER: return refuse(m);
    }
    problem_set(m->problem, "%s: byte %zu: 0x%02x is no opcode of a pickle", m->path,
                (size_t)(m->op - m->start), *m->op);
    return -1;
}

static int prepare(struct machine *m) {
    m->none = value_new(m->store, VALUE_NONE);
    m->yes = value_new(m->store, VALUE_BOOL);
    m->no = value_new(m->store, VALUE_BOOL);
    if (m->none == NULL || m->yes == NULL || m->no == NULL) return no_memory(m);
    m->yes->truth = true;
    return 0;
}

int unpickle(const char *path, const char *bytes, size_t length, struct store *store, struct value **out,
             struct problem *problem) {
    struct machine m = {.path = path, .store = store, .problem = problem};
    int rc;
    m.start = m.at = m.op = (const unsigned char *)bytes;
    m.end = m.start + length;
    rc = prepare(&m);
    while (rc == 0 && !m.ended) {
        if (m.at == m.end) {
            problem_set(problem, "%s: the pickle ends after %zu bytes without STOP", path, length);
            rc = -1;
        } else {
            m.op = m.at++;
            rc = step(&m);
        }
    }
    if (rc == 0) *out = m.stack[m.depth - 1];
    free(m.stack);
    free(m.marks);
    free(m.memo);
    return rc;
}
