/* SPDX-License-Identifier: Apache-2.0
 * The figures of a snapshot: PyTorch's settings, and the dictionary that is ours.
 *
 * Reads, never changes. No locks. */
#ifndef GR_REPORT_STATISTICS_H
#define GR_REPORT_STATISTICS_H

#include "report/dump.h"
#include "report/writer.h"

void gr_statistics_settings(struct gr_writer *w, const granary *g);
void gr_statistics_ours(struct gr_writer *w, const granary *g, const struct gr_dump *dump,
                        const struct granary_fault *fault);

#endif
