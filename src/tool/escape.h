/* SPDX-License-Identifier: Apache-2.0
 * Characters behind the escapes of other formats, as UTF-8. */
#ifndef TOOL_ESCAPE_H
#define TOOL_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes one character, 1 to 4 bytes, and returns how many. c is at most 0x10ffff. */
size_t escape_put(char *to, uint32_t c);

/* Reads so many hexadecimal digits (at most 8). */
bool escape_hex(const char *text, size_t digits, uint32_t *out);

/* Python's raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX. out has room for 2 * length bytes.
 * Returns false when an escape is no character. */
bool escape_unicode(const char *text, size_t length, char *out, size_t *used);

/* What stands between the quotes of Python's repr(). out has room for length bytes. */
void escape_repr(const char *text, size_t length, char *out, size_t *used);

/* The length of the character at text, or 0 when there is none to show: broken UTF-8, or a control
 * character. left is at least 1. */
size_t escape_length(const char *text, size_t left);

/* A copy that is safe to show anywhere: valid UTF-8 without control characters; what is neither becomes
 * a question mark. out has room for length + 1 bytes; ends with a 0 byte. */
void escape_clean(const char *text, size_t length, char *out);

#endif
