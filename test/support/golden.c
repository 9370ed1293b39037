/* SPDX-License-Identifier: Apache-2.0
 * Files of test/golden, and plain data as text to compare. */
#include "support/golden.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/source.h"
#include "tool/value.h"

const char *golden_path(const char *name) {
    static char path[512];
    const char *folder = getenv("GRANARY_TEST_GOLDEN");
    snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : "test/golden", name);
    return path;
}

char *golden_read(const char *name, size_t *length) {
    struct problem problem;
    char *text;
    if (source_read(golden_path(name), &text, length, &problem) != 0) ck_abort_msg("%s", problem.text);
    return text;
}

struct writer {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...) {
    va_list list;
    int wrote;
    va_start(list, format);
    wrote = vsnprintf(w->at, w->left, format, list);
    va_end(list);
    if (wrote < 0) return;
    if ((size_t)wrote >= w->left) wrote = w->left > 0 ? (int)w->left - 1 : 0;
    w->at += wrote;
    w->left -= (size_t)wrote;
}

static void plain(struct writer *w, const struct value *v, int depth) {
    static const char opens[] = {
        [VALUE_LIST] = '[', [VALUE_TUPLE] = '(', [VALUE_SET] = '<', [VALUE_DICT] = '{'};
    static const char ends[] = {
        [VALUE_LIST] = ']', [VALUE_TUPLE] = ')', [VALUE_SET] = '>', [VALUE_DICT] = '}'};
    if (depth > 6) {
        put(w, "...");
        return;
    }
    switch ((enum value_kind)v->kind) {
    case VALUE_NONE: put(w, "None"); return;
    case VALUE_BOOL: put(w, v->truth ? "True" : "False"); return;
    case VALUE_INT: put(w, "%lld", (long long)v->number); return;
    case VALUE_UNSIGNED: put(w, "%llu", (unsigned long long)v->number); return;
    case VALUE_BIG: put(w, "BIG"); return;
    case VALUE_FLOAT: put(w, "%g", v->real); return;
    case VALUE_TEXT: put(w, "'%.*s'", (int)v->text.length, v->text.bytes); return;
    case VALUE_BYTES: put(w, "b'%.*s'", (int)v->text.length, v->text.bytes); return;
    default: break;
    }
    put(w, "%c", opens[v->kind]);
    for (size_t i = 0; i < v->items.count; i++) {
        if (i > 0) put(w, "%s", v->kind == VALUE_DICT && i % 2 == 1 ? ": " : ", ");
        plain(w, v->items.at[i], depth + 1);
    }
    put(w, "%s%c", v->kind == VALUE_TUPLE && v->items.count == 1 ? "," : "", ends[v->kind]);
}

const char *golden_plain(const struct value *value, char *buffer, size_t room) {
    struct writer w = {buffer, room};
    buffer[0] = 0;
    plain(&w, value, 0);
    return buffer;
}
