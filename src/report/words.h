/* SPDX-License-Identifier: Apache-2.0
 * Words: from the facts of a failure to a sentence. Reads, never changes. No state, no locks. */
#ifndef GR_REPORT_WORDS_H
#define GR_REPORT_WORDS_H

#include <granary/granary.h>

#include "base/base.h"

/* One sentence on an allocation that failed with this status for want of memory. */
void gr_words_shortfall(char *buffer, size_t room, int status, int device, const struct granary_shortfall *s);

#endif
