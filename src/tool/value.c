/* SPDX-License-Identifier: Apache-2.0
 * Plain data: what a pickle or a JSON text says, as a graph of values. */
#include "tool/value.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16, ALIGN = _Alignof(max_align_t) };

struct store_chunk {
    struct store_chunk *next;
    max_align_t bytes[];
};

void *store_take(struct store *store, size_t size) {
    struct store_chunk *chunk;
    void *out;
    if (size > SIZE_MAX - 2 * CHUNK) return NULL;
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (size > store->left) {
        /* What is large gets a chunk of its own, so that little of the one in use is lost. */
        size_t room = size > CHUNK / 4 ? size : CHUNK;
        chunk = malloc(sizeof *chunk + room);
        if (chunk == NULL) return NULL;
        chunk->next = store->chunks;
        store->chunks = chunk;
        if (room == size) return chunk->bytes;
        store->at = (char *)chunk->bytes;
        store->left = room;
    }
    out = store->at;
    store->at += size;
    store->left -= size;
    return out;
}

char *store_text(struct store *store, const char *text, size_t length) {
    char *copy = length < SIZE_MAX ? store_take(store, length + 1) : NULL;
    if (copy == NULL) return NULL;
    if (length > 0) memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

void store_free(struct store *store) {
    struct store_chunk *chunk = store->chunks, *next;
    for (; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    *store = (struct store){0};
}

struct value *value_new(struct store *store, enum value_kind kind) {
    struct value *value = store_take(store, sizeof *value);
    if (value != NULL) *value = (struct value){.kind = (uint8_t)kind};
    return value;
}

bool value_append(struct store *store, struct value *list, struct value *item) {
    if (list->items.count == list->items.room) {
        size_t room = list->items.room == 0 ? 4 : list->items.room * 2;
        struct value **at = store_take(store, room * sizeof *at);
        if (at == NULL) return false;
        if (list->items.count > 0) memcpy(at, list->items.at, list->items.count * sizeof *at);
        list->items.at = at;
        list->items.room = room;
    }
    list->items.at[list->items.count++] = item;
    return true;
}

struct value *value_get(const struct value *dict, const char *key) {
    size_t length = strlen(key);
    if (dict == NULL || dict->kind != VALUE_DICT) return NULL;
    for (size_t i = dict->items.count; i >= 2; i -= 2) {
        const struct value *name = dict->items.at[i - 2];
        if (name->kind == VALUE_TEXT && name->text.length == length &&
            memcmp(name->text.bytes, key, length) == 0)
            return dict->items.at[i - 1];
    }
    return NULL;
}

bool value_unsigned(const struct value *value, uint64_t *out) {
    if (value == NULL || (value->kind != VALUE_INT && value->kind != VALUE_UNSIGNED)) return false;
    if (value->kind == VALUE_INT && value->number < 0) return false;
    *out = (uint64_t)value->number;
    return true;
}

const char *value_kind_name(const struct value *value) {
    static const char *const names[] = {
        [VALUE_NONE] = "None",     [VALUE_BOOL] = "bool",   [VALUE_INT] = "int",  [VALUE_UNSIGNED] = "int",
        [VALUE_BIG] = "large int", [VALUE_FLOAT] = "float", [VALUE_TEXT] = "str", [VALUE_BYTES] = "bytes",
        [VALUE_LIST] = "list",     [VALUE_TUPLE] = "tuple", [VALUE_SET] = "set",  [VALUE_DICT] = "dict",
    };
    return value == NULL ? "nothing" : names[value->kind];
}
