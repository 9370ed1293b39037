/* SPDX-License-Identifier: Apache-2.0
 * Peers: the devices whose kernels and copies may touch what a handle maps, its own among them.
 *
 *      access   [ own | peer | peer ]     one cuMemSetAccess with all of it, for whatever is mapped
 *
 * cuCtxEnablePeerAccess opens what cuMemAlloc gives and not what is mapped: there each mapping names who may touch it.
 *
 * Invariants: D4 (driver.h).
 *
 * Locks: the miss lock. */
#ifndef GR_DRIVER_PEERS_H
#define GR_DRIVER_PEERS_H

#include "driver/driver.h"

/* Only the device itself. */
void gr_peers_init(struct gr_peers *peers, int own);
bool gr_peers_has(const struct gr_peers *peers, int device);
/* What the driver is told of a device that is to be one, or no longer. */
struct gr_cu_access gr_peers_access(int device, bool may);
/* There is room. */
void gr_peers_add(struct gr_peers *peers, int device);

/* Whether the hardware lets the device touch memory of the driver's own: OK; UNSUPPORTED when it does not; NO_DEVICE; or
 * what the driver refuses. */
GR_MUST int gr_peers_reach(struct gr_driver *d, int device);

#endif
