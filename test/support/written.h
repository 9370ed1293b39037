/* SPDX-License-Identifier: Apache-2.0
 * What a snapshot wrote, in memory, and read again. A pickle is first held against the opcodes that the
 * viewer in the browser knows. */
#ifndef SUPPORT_WRITTEN_H
#define SUPPORT_WRITTEN_H

#include <granary/granary.h>

#include "tool/value.h"

struct written {
    char *bytes; /* a 0 follows */
    size_t size, room;
    struct store store;
};

int written_take(void *written, const void *bytes, size_t size); /* a granary_writer */
void written_clear(struct written *written);
void written_free(struct written *written);

/* The value that was written; it lives as long as the bytes. Fails the test when they cannot be read. */
const struct value *written_read(struct written *written, enum granary_format format);

/* A snapshot of the handle, read again. */
const struct value *written_snapshot(struct written *written, granary *g, enum granary_format format);

/* Fails the test unless the path of keys ("granary.history.kept") leads to such a value. */
const struct value *written_at(const struct value *value, const char *path, enum value_kind kind);
int64_t written_int(const struct value *value, const char *path);
const char *written_text(const struct value *value, const char *path);

#endif
