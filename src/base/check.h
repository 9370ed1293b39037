/* SPDX-License-Identifier: Apache-2.0
 * Assertions about ourselves. What callers get wrong is answered with a status, never here.
 *
 * GR_CHECK 0: none (release). 1: pre- and postconditions (debug and sanitizer builds). A failed
 * assertion prints the tag of the broken invariant and its place, then aborts: only builds made for
 * hunting faults contain it. */
#ifndef GR_BASE_CHECK_H
#define GR_BASE_CHECK_H

#ifndef GR_CHECK
#define GR_CHECK 0
#endif

#if GR_CHECK > 0
#include <stdio.h>
#include <stdlib.h>
#define GR_ASSERT(condition, tag)                                                                       \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            fprintf(stderr, "granary: %s broken: %s (%s:%d)\n", (tag), #condition, __FILE__, __LINE__); \
            abort();                                                                                    \
        }                                                                                               \
    } while (0)
#else
#define GR_ASSERT(condition, tag) ((void)sizeof((condition) ? 1 : 0))
#endif

#endif
