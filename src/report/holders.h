/* SPDX-License-Identifier: Apache-2.0
 * Holders: who holds most of the memory, by tag or by stack.
 *
 * Reads, never changes. Takes a dump, and no lock while it counts. */
#ifndef GR_REPORT_HOLDERS_H
#define GR_REPORT_HOLDERS_H

#include "report/dump.h"

/* The largest, at most room of them, largest first; how many to *count. OK, HOST_MEMORY. */
GR_MUST int gr_holders_read(granary *g, enum granary_holders by, struct granary_holder *out, size_t room,
                            size_t *count);

/* Those of a failure: by tag, or by stack when there are no tags. Those that are not known are left out. */
void gr_holders_fill(granary *g, struct granary_shortfall *shortfall);

#endif
