/* SPDX-License-Identifier: Apache-2.0
 * The calling thread's stack in C and C++, as return addresses.
 *
 * libunwind's unw_backtrace remembers how to step over each place that it has seen, and takes 0.1 to
 * 0.3 us for 7 to 22 frames (measured; the unwinder of the compiler takes 2 to 4 us). It is loaded at
 * run time when the machine has it; else backtrace() of the C library, which asks the compiler's. So
 * nothing more is linked.
 *
 * No locks of ours. Call it with none held: the first call on a thread may allocate. */
#ifndef GR_BASE_UNWIND_H
#define GR_BASE_UNWIND_H

#include "base/base.h"

struct gr_unwind {
    int (*walk)(void **frames, int room); /* NULL: there is no unwinder */
    const char *name;
};

void gr_unwind_open(struct gr_unwind *unwind);

/* Return addresses from the frame that `caller` returns to on, innermost first, into out; how many.
 * When caller is not on the stack: all of it. */
size_t gr_unwind_take(const struct gr_unwind *unwind, const void *caller, uint64_t *out, size_t room);

#endif
