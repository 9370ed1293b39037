/* SPDX-License-Identifier: Apache-2.0
 * Printing: an aligned table for people, one JSON object a line for programs. */
#ifndef TOOL_PRINT_H
#define TOOL_PRINT_H

#include <stdint.h>
#include <stdio.h>

#include "tool/replay.h"

enum { TABLE_COLUMNS = 24, TABLE_CELL = 256 };

/* A growing table of strings. The first row is the heading. */
struct table {
    char (*cells)[TABLE_CELL];
    unsigned char *under;             /* per row: a line of dashes follows */
    size_t columns, rows, room, used; /* used: cells of the last row */
    size_t fold;                      /* columns of the terminal; 0: no line is folded */
};

void table_init(struct table *t, size_t columns);
/* Puts the next cell of the row that is being written; a row starts by itself. */
__attribute__((format(printf, 2, 3))) void table_put(struct table *t, const char *format, ...);
/* A line under the last row. */
void table_rule(struct table *t);
/* Words of the last column go to further lines where the terminal behind `to` ends, when there is
 * one. */
void table_fold(struct table *t, FILE *to);
/* The first `left` columns stand to the left, the others to the right. Frees the table. */
void table_print(struct table *t, FILE *to, size_t left);

/* "1.50 GiB", "12.0 MiB", "512 B". Returns buffer. */
enum { SIZE_TEXT = 24 };
const char *size_text(uint64_t bytes, char buffer[SIZE_TEXT]);

/* A string in JSON's quotes. '<' is escaped, so it may stand inside an HTML script element. */
void json_string(FILE *to, const char *text);
/* The fields of a result, as one object without a line end. */
void json_result(FILE *to, const struct replay_result *r);

/* The file's name without folders and endings. */
const char *short_name(const char *path, char *buffer, size_t room);

#endif
