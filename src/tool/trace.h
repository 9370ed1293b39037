/* SPDX-License-Identifier: Apache-2.0
 * Traces: the allocation traffic of a program, one operation a line.
 *
 *      # granary trace 1: words            names the version; any other # line is a comment
 *      a ID SIZE STREAM                    block ID of SIZE bytes is allocated on STREAM
 *      r ID                                its free is requested while another stream still uses it
 *      f ID                                its free completes (without an r before it: at once)
 *
 * An ID names one block in the whole file. A file is read whole, checked whole, and becomes an array
 * in which IDs and stream numbers are dense, so that replaying needs no look-up. A mistake is told as
 * "file:line:column: what". */
#ifndef TOOL_TRACE_H
#define TOOL_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "tool/source.h"

enum trace_kind { TRACE_ALLOC, TRACE_REQUEST, TRACE_FREE };

struct trace_op {
    uint64_t size;   /* of an allocation */
    uint32_t block;  /* dense, in order of allocation */
    uint16_t stream; /* of an allocation; dense, in order of appearance */
    uint8_t kind;    /* enum trace_kind */
};

struct trace {
    const char *path;
    int version;
    struct trace_op *ops;
    size_t count;
    size_t blocks;
    size_t streams;
};

/* Reads a file. path must outlive the trace. Returns 0, or -1 with the problem and nothing to free. */
int trace_read(const char *path, struct trace *out, struct problem *problem);

/* The same on text in memory, which must be followed by a 0 byte; path is used in messages. */
int trace_parse(const char *path, const char *text, size_t length, struct trace *out,
                struct problem *problem);

void trace_free(struct trace *trace);

#endif
