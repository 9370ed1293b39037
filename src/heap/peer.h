/* SPDX-License-Identifier: Apache-2.0
 * Peer access: another device may touch the memory of a handle.
 *
 *      allow   what is mapped, range by range ──> told;  any refusal ──> what was told is taken back
 *      grow    what is mapped from here on    ──> told with the device's own access (driver/peers.h)
 *
 * Invariants: whatever is mapped may be touched by each of driver.peers; D4 (driver.h).
 *
 * Locks: takes the miss lock. */
#ifndef GR_HEAP_PEER_H
#define GR_HEAP_PEER_H

#include "heap/heap.h"

/* OK, also when it may already; NO_DEVICE; UNSUPPORTED: the hardware does not reach; or the driver's refusal. After a
 * failure all is as before. */
GR_MUST int gr_peer_allow(granary *g, int device);

#endif
