/* SPDX-License-Identifier: Apache-2.0
 * Pinning: counting the extents that a block would keep from moving. */
#include "pool/pin.h"

size_t gr_pin_cost(const struct gr_range *range, const struct gr_block *b, gr_addr start, gr_addr end) {
    const gr_addr low = b->addr, high = gr_block_end(b);
    size_t cost = 0;
    for (gr_addr at = gr_max(start, low), stop = gr_min(end, high); at < stop;) {
        const struct gr_extent *extent = range->slot[gr_range_slot_of(range, at)];
        gr_addr left = gr_range_addr_of(range, extent->slot),
                right = left + extent->granules * range->granule;
        if (left >= low && right <= high) cost += extent->granules;
        at = right;
    }
    return cost;
}

/* The clock may have gone round in between. */
static uint32_t age_of(uint32_t now, const struct gr_block *b) {
    return b && b->state == GR_BLOCK_LIVE ? now - b->born : UINT32_MAX;
}

uint32_t gr_pin_company(uint32_t now, const struct gr_block *left, const struct gr_block *right) {
    return (uint32_t)gr_min(age_of(now, left), age_of(now, right));
}
