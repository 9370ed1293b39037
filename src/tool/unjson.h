/* SPDX-License-Identifier: Apache-2.0
 * Reading JSON (RFC 8259) into the same plain data as a pickle. Whole numbers of up to 64 bits stay whole.
 * Memory is bounded by a constant for each byte of the text, depth by UNJSON_DEPTH. */
#ifndef TOOL_UNJSON_H
#define TOOL_UNJSON_H

#include "tool/source.h"
#include "tool/value.h"

enum { UNJSON_DEPTH = 200 };

/* bytes must be followed by a 0 byte. The value lies in store, which the caller frees in any case.
 * Returns 0, or -1 with the problem: "path: byte N: what". */
int unjson(const char *path, const char *bytes, size_t length, struct store *store, struct value **out,
           struct problem *problem);

#endif
