/* SPDX-License-Identifier: Apache-2.0
 * Sizing: how requests are rounded, which class they belong to, when a block is split, how large a
 * classic segment is, how many addresses a range reserves. Numbers in, numbers out.
 *
 * Classic mode follows PyTorch's allocator to the byte, so that totals can be compared; where a
 * constant is PyTorch's it says so. Expandable mode has no segment sizes: it grows by granules.
 * Rounding is the same in both.
 *
 *      request 1 B .. 1 MiB (rounded)    small class    classic segment 2 MiB
 *      up to 10 MiB, exclusive           large class    classic segment 20 MiB (large_segment_size)
 *      from 10 MiB                       large class    classic segment rounded up to 2 MiB
 *
 * The settings can change while the handle is in use. Each field is read alone, so a request meets
 * the old value or the new one of each, and any mixture of them is a valid setting. */
#ifndef GR_POLICY_SIZING_H
#define GR_POLICY_SIZING_H

#include <stdatomic.h>

#include <granary/granary.h>

#include "base/base.h"

enum gr_class { GR_SMALL, GR_LARGE, GR_CLASSES };

#define GR_SIZING_UNIT ((size_t)512)          /* PyTorch kMinBlockSize */
#define GR_SIZING_SMALL_MAX (GR_MIB)          /* PyTorch kSmallSize */
#define GR_SIZING_SMALL_SEGMENT (2 * GR_MIB)  /* PyTorch kSmallBuffer */
#define GR_SIZING_LARGE_SEGMENT (20 * GR_MIB) /* PyTorch kLargeBuffer: the default of large_segment_size */
#define GR_SIZING_LARGE_DIRECT (10 * GR_MIB)  /* PyTorch kMinLargeAlloc */
#define GR_SIZING_MAX ((size_t)1 << 46)       /* above it no request can be met by any device */

struct gr_sizing {
    /* read without a lock, written under the miss lock */
    _Atomic size_t plain;          /* requests up to here are rounded to units and not looked at further */
    _Atomic size_t max_split_size; /* classic: blocks from this size on are "oversize" and not split */
    _Atomic size_t max_non_split_slack; /* classic: an oversize block is larger than the request by less */
    _Atomic uint32_t divisions[GRANARY_SIZE_INTERVALS];
    /* under the miss lock */
    size_t large_segment;
};

/* Takes over what the options say. The options were checked. */
void gr_sizing_set(struct gr_sizing *sizing, const struct granary_options *options);

/* The same for a request above sizing->plain. */
GR_MUST bool gr_sizing_round_divided(const struct gr_sizing *sizing, size_t size, size_t *out);

/* A size rounded up to units. */
static inline size_t gr_sizing_units(size_t size) {
    return (size + GR_SIZING_UNIT - 1) & ~(GR_SIZING_UNIT - 1);
}

/* Rounds a request up to units; false when it is 0, or too large for that to be all. */
GR_MUST static inline bool gr_sizing_round_plain(const struct gr_sizing *sizing, size_t size, size_t *out) {
    if (GR_UNLIKELY(size - 1 >= atomic_load_explicit(&sizing->plain, memory_order_relaxed))) return false;
    *out = gr_sizing_units(size);
    return true;
}

/* Rounds a request, not 0, up to what is handed out; false when it is larger than GR_SIZING_MAX. */
GR_MUST static inline bool gr_sizing_round(const struct gr_sizing *sizing, size_t size, size_t *out) {
    return gr_sizing_round_plain(sizing, size, out) || gr_sizing_round_divided(sizing, size, out);
}

static inline enum gr_class gr_sizing_class(size_t rounded) {
    return rounded <= GR_SIZING_SMALL_MAX ? GR_SMALL : GR_LARGE;
}

/* Size of the classic segment made for a rounded request. Under the miss lock. */
size_t gr_sizing_segment(const struct gr_sizing *sizing, size_t rounded);

/* May a free block of this size serve the request, in classic mode? (PyTorch's oversize rules.) */
bool gr_sizing_fits(const struct gr_sizing *sizing, size_t block, size_t rounded);

/* Is the rest given back as a block of its own, in classic mode? In expandable mode it always is. */
bool gr_sizing_splits(const struct gr_sizing *sizing, enum gr_class class, size_t rounded, size_t rest);

/* What can be said about the addresses that a range is to reserve. All sizes are multiples of granule. */
struct gr_range_wish {
    size_t device_bytes;                   /* memory of the device */
    size_t used;                           /* addresses that this handle holds already */
    size_t need;                           /* what the range must hold at least */
    const struct granary_reserve *reserve; /* as the options say; zeros: nothing */
    size_t granule;
};

/* Address space to reserve: what the options say, else an eighth more than the device's memory and less
 * as the budget runs out; at most that eighth more, never less than need. */
#define GR_SIZING_ADDRESS_BUDGET ((size_t)6 << 40) /* of one handle: sixteen leave a quarter of 47 bits */
size_t gr_sizing_range(const struct gr_range_wish *wish);

/* Does a pool keep its range when nothing is behind it any more? To free 160 GiB of addresses takes the
 * driver 13 to 20 us and they hold no memory; so as long as half of the budget is left. */
static inline bool gr_sizing_keeps_range(size_t used) {
    return used <= GR_SIZING_ADDRESS_BUDGET / 2;
}

#endif
