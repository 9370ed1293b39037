/* SPDX-License-Identifier: Apache-2.0
 * Snapshots: a dump as the dictionary that PyTorch's tools read, and ours in it (doc/snapshot.md).
 *
 * Reads, never changes. No locks; the sink's taker is called with none held. */
#ifndef GR_REPORT_SNAPSHOT_H
#define GR_REPORT_SNAPSHOT_H

#include "base/sink.h"
#include "report/dump.h"

/* Takes a dump and writes it. fault: the out-of-memory that it is written for, or NULL. OK,
 * HOST_MEMORY, WRITE. */
GR_MUST int gr_snapshot_write(granary *g, enum granary_format format, const struct granary_fault *fault,
                              gr_sink_taker taker, void *context);
#endif
