/* SPDX-License-Identifier: Apache-2.0
 * The steps between the plain data of a file and a snapshot (snapshot.h): copying what the file says,
 * checked, into arrays, the settings, and joining the history with the end. */
#ifndef TOOL_SNAPSHOT_BUILD_H
#define TOOL_SNAPSHOT_BUILD_H

#include "tool/snapshot.h"
#include "tool/value.h"

/* Fills in all but what joining makes. Texts go to out->texts, which is empty. Marks the values
 * that it visits. On failure snapshot_free takes care of what is there. */
int snapshot_build(struct value *root, struct snapshot *out, struct problem *problem);

/* The settings of the job, and what only granary's own snapshots say; what is not there stays unknown.
 * Returns false when the host has no memory. */
bool snapshot_settings(const struct value *root, struct snapshot *out);

/* Makes the lives of a device and names them in its entries. Cannot fail but for host memory. */
int snapshot_join(const struct snapshot *snapshot, struct snapshot_device *device, struct problem *problem);

#endif
