/* SPDX-License-Identifier: Apache-2.0
 * Backing: how large the extents are that back new memory. THE policy of this library, one function.
 *
 * Two facts pull apart (both measured on an H200): a handle costs the same up to 20 MiB, and kernels
 * lose bandwidth below it, so extents should be large; an extent is mapped and moved whole, so one
 * live block in it pins all of it, and near the limit extents should be small.
 *
 * Numbers in, numbers out; no state. */
#ifndef GR_POLICY_BACKING_H
#define GR_POLICY_BACKING_H

#include "policy/sizing.h"

struct gr_backing {
    size_t need;  /* granules still to be backed, in one run; at least 1 */
    size_t whole; /* granules that the growth needs in all; at least need */
    size_t held;  /* granules that exist on the device through this handle */
    size_t limit; /* granules that may exist */
    size_t usual; /* granules of an extent, as the options say; at least 1 */
    enum gr_class class;
};

/* Granules of the next extent, 1 .. need. */
size_t gr_backing_next(const struct gr_backing *b);

/* Is memory so short that blocks should go where they pin least? From seven eighths of the limit on. */
static inline bool gr_backing_short(size_t held, size_t limit) {
    return held >= limit - limit / 8;
}

/* Bytes that may be held while new memory is made instead of idle memory being moved: a little more than
 * is or ever was in use at once. A request that would exceed it takes idle memory first, if there is
 * any. The margin is a 64th on a card with room, shrinks as the limit comes near, and is 32 MiB at least,
 * or two small pools would take turns at one granule. peak: most bytes ever active; active: now; need:
 * bytes that are missing now. */
static inline size_t gr_backing_watermark(size_t peak, size_t active, size_t need, size_t limit) {
    size_t most = gr_max(peak, active + need);
    size_t room = limit > most ? limit - most : 0;
    return most + gr_max(gr_min(most / 64, room / 8), 32 * GR_MIB);
}

#endif
