/* SPDX-License-Identifier: Apache-2.0
 * Summaries for people: the table of PyTorch's memory_summary with its rows, units and widths, rows of
 * our own below them, and one line for logs.
 *
 * No state, no locks. */
#ifndef GR_REPORT_SUMMARY_H
#define GR_REPORT_SUMMARY_H

#include "report/dump.h"

/* Cut to fit; a complete table needs at most GRANARY_SUMMARY_ROOM. */
void gr_summary_table(char *buffer, size_t room, const granary *g, const struct gr_dump *dump,
                      bool abbreviated);
void gr_summary_format(char *buffer, size_t room, int device, const struct granary_stats *stats,
                       const struct granary_split_stats *split, bool abbreviated);
void gr_summary_line(char *buffer, size_t room, int device, const struct granary_stats *stats);

#endif
