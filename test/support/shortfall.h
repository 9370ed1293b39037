/* SPDX-License-Identifier: Apache-2.0
 * The facts of a failure held against the statistics: to the byte. */
#ifndef SUPPORT_SHORTFALL_H
#define SUPPORT_SHORTFALL_H

#include <granary/granary.h>

/* The last allocation of the handle has failed for want of memory, and no other thread calls. NULL when
 * the sums of its shortfall hold; else which one does not, in words. */
const char *shortfall_wrong(granary *g, char words[128]);

#endif
