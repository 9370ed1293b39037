/* SPDX-License-Identifier: Apache-2.0
 * Text: sizes in and out of words, and printing into buffers that cannot overflow.
 *
 * Words for sizes are binary: KiB, MiB, GiB, TiB, or K, M, G, T in either case for the same. KB, MB
 * and GB mean different things to different people and are refused. Nothing here looks at the
 * locale: a decimal point is a point.
 *
 * No state, no locks. */
#ifndef GR_BASE_TEXT_H
#define GR_BASE_TEXT_H

#include <stdarg.h>

#include "base/base.h"

enum gr_text_result {
    GR_TEXT_OK = 0,
    GR_TEXT_SYNTAX,  /* not a number of this kind, or something behind it */
    GR_TEXT_OVERFLOW /* a number that does not fit */
};

/* The len bytes at s, all of them, as a number. Blanks are not skipped at the ends. On an error *out
 * is untouched. */

/* "1000000". */
GR_MUST enum gr_text_result gr_text_parse_whole(const char *s, size_t len, size_t *out);
/* Bytes: "1000000", "512MiB", "1.5 GiB", "10g". Parts of a byte are dropped; a point needs a unit. */
GR_MUST enum gr_text_result gr_text_parse_size(const char *s, size_t len, size_t *out);
/* "0.8", "1", ".5". No sign, no exponent. Exact to the last bit up to 15 digits. */
GR_MUST enum gr_text_result gr_text_parse_decimal(const char *s, size_t len, double *out);

/* Writes "512 B", "20.00 MiB", "1.50 GiB"; returns buffer. 16 bytes are always enough. */
enum { GR_TEXT_SIZE_ROOM = 16 };
const char *gr_text_size(char *buffer, size_t room, uint64_t bytes);

/* Adds a number so that reading it gives the same: bytes as "20MiB", "1000B", a decimal, not below 0, as
 * "0.8". */
void gr_text_add_exact(char *buffer, size_t room, size_t bytes);
void gr_text_add_decimal(char *buffer, size_t room, double number);

/* printf into buffer, cut to fit, always ended; room must not be 0. put starts at the front, add
 * goes on behind what is there. */
void gr_text_put(char *buffer, size_t room, const char *format, ...) GR_PRINTF(3, 4);
void gr_text_add(char *buffer, size_t room, const char *format, ...) GR_PRINTF(3, 4);
void gr_text_add_list(char *buffer, size_t room, const char *format, va_list arguments) GR_PRINTF(3, 0);

/* The bytes at s as printable ASCII, '?' for all else, cut to fit, always ended; room must not be 0.
 * For words of a user inside of messages. */
void gr_text_quote(char *buffer, size_t room, const char *s, size_t len);

#endif
