/* SPDX-License-Identifier: Apache-2.0
 * Sizing: how requests are rounded, which class they belong to, when a block is split, how large a
 * classic segment is. Numbers in, numbers out; no state.
 *
 * Classic mode follows PyTorch's allocator to the byte, so that totals can be compared; where a
 * constant is PyTorch's it says so. Expandable mode has no segment sizes: it grows by granules.
 *
 *      request 1 B .. 1 MiB (rounded)    small class    classic segment 2 MiB
 *      up to 10 MiB, exclusive           large class    classic segment 20 MiB
 *      from 10 MiB                       large class    classic segment rounded up to 2 MiB */
#ifndef GR_POLICY_SIZING_H
#define GR_POLICY_SIZING_H

#include "base/base.h"

enum gr_class { GR_SMALL, GR_LARGE, GR_CLASSES };

#define GR_SIZING_UNIT ((size_t)512)          /* PyTorch kMinBlockSize */
#define GR_SIZING_SMALL_MAX (GR_MIB)          /* PyTorch kSmallSize */
#define GR_SIZING_SMALL_SEGMENT (2 * GR_MIB)  /* PyTorch kSmallBuffer */
#define GR_SIZING_LARGE_SEGMENT (20 * GR_MIB) /* PyTorch kLargeBuffer */
#define GR_SIZING_LARGE_DIRECT (10 * GR_MIB)  /* PyTorch kMinLargeAlloc */
#define GR_SIZING_MAX ((size_t)1 << 46)       /* above it no request can be met by any device */

struct gr_sizing {
    size_t max_split_size;      /* classic: blocks from this size on are "oversize" and not split */
    size_t max_non_split_slack; /* classic: how much larger an oversize block may be than the request */
};

/* Rounds a request up to what is handed out; false when it is larger than GR_SIZING_MAX. */
GR_MUST static inline bool gr_sizing_round(size_t size, size_t *out) {
    if (GR_UNLIKELY(size > GR_SIZING_MAX)) return false;
    *out = size <= GR_SIZING_UNIT ? GR_SIZING_UNIT : (size + GR_SIZING_UNIT - 1) & ~(GR_SIZING_UNIT - 1);
    return true;
}

static inline enum gr_class gr_sizing_class(size_t rounded) {
    return rounded <= GR_SIZING_SMALL_MAX ? GR_SMALL : GR_LARGE;
}

/* Size of the classic segment made for a rounded request. */
size_t gr_sizing_segment(size_t rounded);

/* May a free block of this size serve the request, in classic mode? (PyTorch's oversize rules.) */
bool gr_sizing_fits(const struct gr_sizing *sizing, size_t block, size_t rounded);

/* Is the rest given back as a block of its own, in classic mode? In expandable mode it always is. */
bool gr_sizing_splits(const struct gr_sizing *sizing, enum gr_class class, size_t rounded, size_t rest);

/* Address space to reserve for a pool: 1.125 x the device's memory, less as the budget runs out, never
 * less than need (all multiples of granule). used: address space this handle holds already. */
#define GR_SIZING_ADDRESS_BUDGET ((size_t)6 << 40) /* of one handle: sixteen leave a quarter of 47 bits */
size_t gr_sizing_range(size_t device_bytes, size_t used, size_t need, size_t granule);

#endif
