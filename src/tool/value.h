/* SPDX-License-Identifier: Apache-2.0
 * Plain data: what a pickle or a JSON text says, as a graph of values.
 *
 * Values lie in a store and go with it. A pickle may name one value in many places, even inside itself, so
 * whoever walks a graph follows a shape that it expects and never recurses over what it finds. Each
 * value has one `mark` for the walker: a place that must not be reached twice is told by it. */
#ifndef TOOL_VALUE_H
#define TOOL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory that goes all at once ------------------------------------------------------------ */

struct store {
    struct store_chunk *chunks;
    char *at;
    size_t left;
};

/* size bytes, aligned for any type and not cleared; NULL when the host has none. */
void *store_take(struct store *store, size_t size);
/* A copy of the bytes with a 0 behind. */
char *store_text(struct store *store, const char *text, size_t length);
void store_free(struct store *store);

/* ---- values ---------------------------------------------------------------------------------- */

enum value_kind {
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,      /* fits int64_t */
    VALUE_UNSIGNED, /* above INT64_MAX, fits uint64_t */
    VALUE_BIG,      /* an integer that fits neither; its value is not kept */
    VALUE_FLOAT,
    VALUE_TEXT,
    VALUE_BYTES,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_SET,
    VALUE_DICT /* items are key, value, key, value, ... */
};

struct value {
    uint8_t kind;  /* enum value_kind */
    uint32_t mark; /* for the walker; 0 at first */
    union {
        bool truth;
        int64_t number; /* VALUE_INT; VALUE_UNSIGNED: its bits */
        double real;
        struct {
            const char *bytes; /* a 0 follows */
            size_t length;
        } text;
        struct {
            struct value **at;
            size_t count, room;
        } items;
    };
};

/* NULL when the host has no memory. */
struct value *value_new(struct store *store, enum value_kind kind);
/* Appends to a LIST, TUPLE, SET or DICT. Returns false when the host has no memory. */
bool value_append(struct store *store, struct value *list, struct value *item);

/* The last value under a key of a DICT, or NULL: not there, or no dict. */
struct value *value_get(const struct value *dict, const char *key);
/* Is it a whole number of at least 0? */
bool value_unsigned(const struct value *value, uint64_t *out);
/* "dict", "list", ... as Python calls them. */
const char *value_kind_name(const struct value *value);

#endif
