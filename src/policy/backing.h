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
    size_t held;  /* granules that exist on the device through this handle */
    size_t limit; /* granules that may exist */
    enum gr_class class;
};

/* Granules of the next extent, 1 .. need. */
size_t gr_backing_next(const struct gr_backing *b);

/* Idle bytes that may lie about while new memory is created: a 32nd of what is held. With more, idle
 * memory is moved before new memory is made; a move costs the driver no more than a creation. */
static inline size_t gr_backing_slack(size_t held) {
    return held / 32;
}

#endif
