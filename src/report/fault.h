/* SPDX-License-Identifier: Apache-2.0
 * Failures of public functions: the words of the last one, kept with its handle.
 *
 * Locks: the handle's fault lock, a leaf. */
#ifndef GR_REPORT_FAULT_H
#define GR_REPORT_FAULT_H

#include <stdarg.h>

#include "heap/heap.h"

void gr_fault_begin(struct granary_fault *fault, const char *call, int status);
/* Adds what the driver refused, or the sentence of the status when there is no other; returns the status. */
int gr_fault_keep(granary *g, struct granary_fault *fault);
/* Both at once. */
int gr_fault_fail(granary *g, const char *call, int status, const char *format, ...) GR_PRINTF(4, 5);
int gr_fault_say(granary *g, const char *call, int status, const char *format, va_list arguments)
    GR_PRINTF(4, 0);

/* Copies a struct of ours into one of the caller's, which may be of an older, shorter version. False: its struct_size is
 * no size, and nothing is written. */
bool gr_fault_fit(void *out, const void *from, size_t size);
/* The same for a call, which fails then. */
int gr_fault_copy_out(granary *g, const char *call, void *out, const void *from, size_t size);

#endif
