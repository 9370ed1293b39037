/* SPDX-License-Identifier: Apache-2.0
 * Snapshots in files. A file appears under its name when all of it is there.
 *
 * No locks; hold none. */
#ifndef GR_REPORT_SAVE_H
#define GR_REPORT_SAVE_H

#include "report/snapshot.h"

/* OK, HOST_MEMORY, or WRITE: errno says why. */
GR_MUST int gr_save_snapshot(granary *g, enum granary_format format, const struct granary_fault *fault,
                             const char *path);

/* The handle's file for snapshots at out-of-memory, from the option or the environment. Before anybody
 * else knows the handle. False: no host memory. */
GR_MUST bool gr_save_prepare(granary *g, const char *option);
/* An out-of-memory has happened: writes the snapshot that the handle has a file for, if any, and says in the fault
 * where it is. Whether that works changes nothing else. */
void gr_save_out_of_memory(granary *g, struct granary_fault *fault);

#endif
