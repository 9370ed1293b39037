/* SPDX-License-Identifier: Apache-2.0
 * Reading JSON into plain data. */
#include "tool/unjson.h"

#include <stdlib.h>
#include <string.h>

#include "tool/escape.h"

struct reader {
    const char *path, *start, *at, *end;
    struct store *store;
    unsigned depth;
    struct problem *problem;
};

static int fail(struct reader *r, const char *what) {
    problem_set(r->problem, "%s: byte %zu: %s", r->path, (size_t)(r->at - r->start), what);
    return -1;
}

static int no_memory(struct reader *r) {
    problem_set(r->problem, "%s: out of memory", r->path);
    return -1;
}

static int read_value(struct reader *r, struct value **out);

static void skip_blanks(struct reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static bool take(struct reader *r, char c) {
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static int make(struct reader *r, enum value_kind kind, struct value **out) {
    *out = value_new(r->store, kind);
    return *out != NULL ? 0 : no_memory(r);
}

/* \uXXXX, with its second half where there is one. A lone half becomes U+FFFD. */
static int read_unicode(struct reader *r, char *to, size_t *used) {
    uint32_t c, low;
    if (r->end - r->at < 4 || !escape_hex(r->at, 4, &c)) return fail(r, "\\u needs four hexadecimal digits");
    r->at += 4;
    if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u' &&
        escape_hex(r->at + 2, 4, &low) && low >= 0xdc00 && low < 0xe000) {
        r->at += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xd800 && c < 0xe000) {
        c = 0xfffd;
    }
    *used += escape_put(to + *used, c);
    return 0;
}

static int read_text(struct reader *r, struct value **out) {
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *end = ++r->at;
    size_t used = 0;
    char *text;
    while (end < r->end && *end != '"') end += *end == '\\' && end + 1 < r->end ? 2 : 1;
    if (end >= r->end) return fail(r, "the text does not end");
    text = store_take(r->store, (size_t)(end - r->at) + 1); /* no escape is shorter than what it stands for */
    if (text == NULL || make(r, VALUE_TEXT, out) != 0) return no_memory(r);
    while (*r->at != '"') {
        const char *found;
        if ((unsigned char)*r->at < 0x20) return fail(r, "a control character in a text");
        if (*r->at != '\\') {
            text[used++] = *r->at++;
            continue;
        }
        r->at++;
        found = memchr(letters, *r->at, sizeof letters - 1);
        if (found != NULL) {
            text[used++] = means[found - letters];
            r->at++;
        } else if (!take(r, 'u')) {
            return fail(r, "an unknown escape");
        } else if (read_unicode(r, text, &used) != 0) {
            return -1;
        }
    }
    r->at++;
    text[used] = 0;
    (*out)->text.bytes = text;
    (*out)->text.length = used;
    return 0;
}

static bool digits(struct reader *r) {
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    return r->at > from;
}

static int read_number(struct reader *r, struct value **out) {
    const char *from = r->at;
    bool negative = take(r, '-'), whole = true, big = false;
    const char *first = r->at;
    uint64_t magnitude = 0;
    if (!digits(r) || (*first == '0' && r->at - first > 1)) return fail(r, "a number that is none");
    for (const char *c = first; c < r->at; c++)
        if (__builtin_mul_overflow(magnitude, (uint64_t)10, &magnitude) ||
            __builtin_add_overflow(magnitude, (uint64_t)(*c - '0'), &magnitude))
            big = true;
    if (take(r, '.')) {
        whole = false;
        if (!digits(r)) return fail(r, "a number that ends with its point");
    }
    if (take(r, 'e') || take(r, 'E')) {
        whole = false;
        if (!take(r, '+')) take(r, '-');
        if (!digits(r)) return fail(r, "a number with an empty exponent");
    }
    if (!whole) {
        if (make(r, VALUE_FLOAT, out) != 0) return -1;
        (*out)->real = strtod(from, NULL); /* the text ends with a 0 byte */
        return 0;
    }
    if (negative && magnitude > (uint64_t)INT64_MAX + 1) big = true;
    if (make(r, big ? VALUE_BIG : !negative && magnitude > INT64_MAX ? VALUE_UNSIGNED : VALUE_INT, out) != 0)
        return -1;
    (*out)->number = (int64_t)(negative ? 0 - magnitude : magnitude);
    return 0;
}

static int append(struct reader *r, struct value *list, struct value *item) {
    return value_append(r->store, list, item) ? 0 : no_memory(r);
}

static int read_list(struct reader *r, struct value **out) {
    struct value *item;
    r->at++;
    if (make(r, VALUE_LIST, out) != 0) return -1;
    skip_blanks(r);
    if (take(r, ']')) return 0;
    do {
        if (read_value(r, &item) != 0 || append(r, *out, item) != 0) return -1;
        skip_blanks(r);
    } while (take(r, ','));
    return take(r, ']') ? 0 : fail(r, "a list goes on with , or ends with ]");
}

static int read_dict(struct reader *r, struct value **out) {
    struct value *key, *item;
    r->at++;
    if (make(r, VALUE_DICT, out) != 0) return -1;
    skip_blanks(r);
    if (take(r, '}')) return 0;
    do {
        skip_blanks(r);
        if (r->at == r->end || *r->at != '"') return fail(r, "a key must be a text");
        if (read_text(r, &key) != 0) return -1;
        skip_blanks(r);
        if (!take(r, ':')) return fail(r, "a : must follow a key");
        if (read_value(r, &item) != 0 || append(r, *out, key) != 0 || append(r, *out, item) != 0) return -1;
        skip_blanks(r);
    } while (take(r, ','));
    return take(r, '}') ? 0 : fail(r, "an object goes on with , or ends with }");
}

static int read_word(struct reader *r, struct value **out) {
    static const struct {
        const char *word;
        enum value_kind kind;
    } words[] = {{"null", VALUE_NONE}, {"true", VALUE_BOOL}, {"false", VALUE_BOOL}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(r->end - r->at) < length || memcmp(r->at, words[i].word, length) != 0) continue;
        if (make(r, words[i].kind, out) != 0) return -1;
        (*out)->truth = i == 1;
        r->at += length;
        return 0;
    }
    return fail(r, "there is no value that begins so");
}

static int read_value(struct reader *r, struct value **out) {
    int rc;
    skip_blanks(r);
    if (r->at == r->end) return fail(r, "the text ends where a value must stand");
    if (*r->at == '"') return read_text(r, out);
    if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9')) return read_number(r, out);
    if (*r->at != '[' && *r->at != '{') return read_word(r, out);
    if (r->depth == UNJSON_DEPTH) return fail(r, "it is nested too deep");
    r->depth++;
    rc = *r->at == '[' ? read_list(r, out) : read_dict(r, out);
    r->depth--;
    return rc;
}

int unjson(const char *path, const char *bytes, size_t length, struct store *store, struct value **out,
           struct problem *problem) {
    struct reader r = {path, bytes, bytes, bytes + length, store, 0, problem};
    if (read_value(&r, out) != 0) return -1;
    skip_blanks(&r);
    return r.at == r.end ? 0 : fail(&r, "something follows the value");
}
