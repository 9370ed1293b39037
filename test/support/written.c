/* SPDX-License-Identifier: Apache-2.0
 * What a snapshot wrote, read again. */
#include "support/written.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tool/unjson.h"
#include "tool/unpickle.h"

int written_take(void *context, const void *bytes, size_t size) {
    struct written *written = context;
    while (written->room < written->size + size + 1) {
        written->room = written->room * 2 + 4096;
        written->bytes = realloc(written->bytes, written->room);
        ck_assert_ptr_nonnull(written->bytes);
    }
    memcpy(written->bytes + written->size, bytes, size);
    written->size += size;
    written->bytes[written->size] = '\0';
    return 0;
}

void written_clear(struct written *written) {
    written->size = 0;
    store_free(&written->store);
}

void written_free(struct written *written) {
    written_clear(written);
    free(written->bytes);
    memset(written, 0, sizeof *written);
}

/* Walks over the opcodes. Those without a case are none that the viewer knows (or that we write). */
static void check_opcodes(const unsigned char *at, size_t size) {
    const unsigned char *stop = at + size;
    ck_assert(size > 2 && at[0] == 0x80 && at[1] == 4);
    at += 2;
    while (at < stop) {
        unsigned char code = *at++;
        switch (code) {
        case '(':
        case 'N':
        case ']':
        case '}':
        case 'e':
        case 'u': /* MARK NONE EMPTY_LIST EMPTY_DICT APPENDS SETITEMS */
        case 0x86:
        case 0x88:
        case 0x89:
        case 0x94: break; /* TUPLE2 NEWTRUE NEWFALSE MEMOIZE */
        case 'K':
        case 'h': at += 1; break; /* BININT1 BINGET */
        case 'M': at += 2; break; /* BININT2 */
        case 'J':
        case 'j': at += 4; break; /* BININT LONG_BINGET */
        case 'G': at += 8; break; /* BINFLOAT */
        case 0x8a:                /* LONG1: longer ones are no plain numbers there */
            ck_assert(at[0] >= 1 && at[0] <= 8);
            at += 1 + at[0];
            break;
        case 0x8c: at += 1 + at[0]; break; /* SHORT_BINUNICODE */
        case 'X':                          /* BINUNICODE */
            at += 4 + (at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24);
            break;
        case '.': ck_assert_ptr_eq(at, stop); return;
        default: ck_abort_msg("opcode 0x%02x", code);
        }
        ck_assert(at <= stop);
    }
    ck_abort_msg("no end");
}

const struct value *written_read(struct written *written, enum granary_format format) {
    struct value *value = NULL;
    struct problem problem = {""};
    int result;
    if (format == GRANARY_PICKLE) {
        check_opcodes((const unsigned char *)written->bytes, written->size);
        result = unpickle("written", written->bytes, written->size, &written->store, &value, &problem);
    } else {
        result = unjson("written", written->bytes, written->size, &written->store, &value, &problem);
    }
    ck_assert_msg(result == 0, "%s", problem.text);
    return value;
}

const struct value *written_snapshot(struct written *written, granary *g, enum granary_format format) {
    written_clear(written);
    ck_assert_int_eq(granary_snapshot(g, format, written_take, written), GRANARY_OK);
    return written_read(written, format);
}

const struct value *written_at(const struct value *value, const char *path, enum value_kind kind) {
    const char *at = path;
    while (*at) {
        char key[64];
        size_t size = strcspn(at, ".");
        ck_assert_uint_lt(size, sizeof key);
        memcpy(key, at, size);
        key[size] = '\0';
        value = value_get(value, key);
        ck_assert_msg(value != NULL, "no %s in %s", key, path);
        at += size + (at[size] == '.');
    }
    ck_assert_msg(value->kind == (uint8_t)kind, "%s is a %s", path, value_kind_name(value));
    return value;
}

int64_t written_int(const struct value *value, const char *path) {
    return written_at(value, path, VALUE_INT)->number;
}

const char *written_text(const struct value *value, const char *path) {
    return written_at(value, path, VALUE_TEXT)->text.bytes;
}
