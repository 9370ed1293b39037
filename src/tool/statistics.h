/* SPDX-License-Identifier: Apache-2.0
 * The figures of a snapshot as granary_get_stats would give them.
 *
 * Granary's own snapshots hold them. For others current values are those of the segments, and peaks and
 * totals are counted over the history, as far back as it reaches; what was there before counts as having
 * come. */
#ifndef TOOL_STATISTICS_H
#define TOOL_STATISTICS_H

#include <granary/history.h>

#include "tool/snapshot.h"

/* Returns 0, or -1 with the problem (the host has no memory). */
int statistics_of(const struct snapshot *snapshot, const struct snapshot_device *device,
                  struct granary_stats *out, struct granary_split_stats *split, struct problem *problem);

#endif
