/* SPDX-License-Identifier: Apache-2.0
 * The calling thread's Python frames, when the process runs Python.
 *
 * Everything of the interpreter (3.9 or later) is looked up at run time with dlsym. A frame is known
 * by its code object and its place in it, and interned; file, name and line are asked for when one is
 * seen for the first time, while the interpreter's lock is held anyway, so that reading a stack later
 * needs no interpreter. Each code object that was seen is referenced for good: its address names it.
 *
 * Locks: a thread that has given the interpreter's lock up takes it, and so may wait for a thread that
 * holds it: call with no lock held. A thread that never ran Python is left alone. */
#ifndef GR_BASE_PYTHON_H
#define GR_BASE_PYTHON_H

#include "base/intern.h"

struct gr_python {
    bool found;
    int (*is_initialized)(void);
    int (*is_finalizing)(void); /* may be NULL */
    void *(*this_thread)(void);
    void *(*current_thread)(void);
    int (*ensure)(void);
    void (*release)(int);
    void *(*frame)(void);
    void *(*frame_back)(void *);
    void *(*frame_code)(void *);
    int (*frame_lasti)(void *); /* may be NULL: before 3.11 */
    int (*frame_line)(void *);
    int (*code_line)(void *, int);
    void *(*attribute)(void *, const char *);
    const char *(*utf8)(void *);
    void (*increase)(void *);
    void (*decrease)(void *);
    void (*error_fetch)(void **, void **, void **);
    void (*error_restore)(void *, void *, void *);
};

/* The value of an interned frame. text: name, NUL, file, NUL. */
struct gr_python_frame {
    int32_t line;
    char text[];
};

void gr_python_open(struct gr_python *python);

/* Numbers of the frames in `frames`, innermost first, into out; how many. */
size_t gr_python_take(const struct gr_python *python, struct gr_intern *frames, uint64_t *out, size_t room);

#endif
