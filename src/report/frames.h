/* SPDX-License-Identifier: Apache-2.0
 * Frames: from the numbers of a stack to function, file and line.
 *
 * C frames down to the interpreter's own, then the Python frames: what lies below the interpreter
 * only says that Python was running. A place is asked for once in the life of the handle.
 *
 * No locks; files are read: hold none. */
#ifndef GR_REPORT_FRAMES_H
#define GR_REPORT_FRAMES_H

#include "base/symbol.h"
#include "ledger/stacks.h"

struct gr_frames {
    struct gr_stacks *stacks; /* NULL: there are none */
    struct gr_symbols symbols;
    bool open; /* symbols; not before a place is met that has no name yet */
};

struct gr_frame {
    uint32_t number; /* of a Python frame, or of a place */
    bool python;
    int line;
    const char *name, *file;
};

/* The struct must stay where it is. */
void gr_frames_init(struct gr_frames *frames, struct gr_stacks *stacks);
void gr_frames_fini(struct gr_frames *frames);

/* The frames of a stack by its number, innermost first; how many, at most 2 * GR_STACK_FRAMES. Names live
 * as long as the handle. */
size_t gr_frames_of(struct gr_frames *frames, uint32_t stack, struct gr_frame out[2 * GR_STACK_FRAMES]);

#endif
