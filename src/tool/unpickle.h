/* SPDX-License-Identifier: Apache-2.0
 * Reading pickles, as plain data only.
 *
 * A pickle is a program for a small stack machine, and Python's own machine runs any code that the file
 * names. This one knows the opcodes that make numbers, texts, lists, tuples, sets and dicts, of all
 * protocols from 0 to 5, and refuses each that could import, call or fetch something (GLOBAL, REDUCE, BUILD,
 * INST, OBJ, NEWOBJ, NEWOBJ_EX, STACK_GLOBAL, EXT1..4, PERSID, BINPERSID, NEXT_BUFFER, READONLY_BUFFER),
 * with its name and its place.
 *
 * Nothing in the file is trusted: a length is held against what is left of the file before anything is
 * allocated for it, nothing recurses, and memory and time are bounded by a constant for each byte of the
 * file. One value may stand in many places of the result, and even in itself (see value.h). */
#ifndef TOOL_UNPICKLE_H
#define TOOL_UNPICKLE_H

#include "tool/source.h"
#include "tool/value.h"

/* The value lies in store, which the caller frees in any case. Bytes after the end of the pickle are left
 * alone, as Python does. Returns 0, or -1 with the problem: "path: byte N: what". */
int unpickle(const char *path, const char *bytes, size_t length, struct store *store, struct value **out,
             struct problem *problem);

#endif
