/* SPDX-License-Identifier: Apache-2.0
 * Sizing: segment sizes, split and oversize rules, size of a reservation. */
#include "policy/sizing.h"

size_t gr_sizing_segment(size_t rounded) {
    if (rounded <= GR_SIZING_SMALL_MAX) return GR_SIZING_SMALL_SEGMENT;
    if (rounded < GR_SIZING_LARGE_DIRECT) return GR_SIZING_LARGE_SEGMENT;
    return (rounded + 2 * GR_MIB - 1) & ~(2 * GR_MIB - 1);
}

bool gr_sizing_fits(const struct gr_sizing *sizing, size_t block, size_t rounded) {
    if (rounded < sizing->max_split_size) return block < sizing->max_split_size;
    return block - rounded < sizing->max_non_split_slack;
}

bool gr_sizing_splits(const struct gr_sizing *sizing, enum gr_class class, size_t rounded, size_t rest) {
    if (class == GR_SMALL) return rest >= GR_SIZING_UNIT;
    return rounded < sizing->max_split_size && rest > GR_SIZING_SMALL_MAX;
}

size_t gr_sizing_range(size_t device_bytes, size_t used, size_t need, size_t granule) {
    size_t left = used < GR_SIZING_ADDRESS_BUDGET ? GR_SIZING_ADDRESS_BUDGET - used : 0;
    /* A sixteenth of what is left: the first twenty pools of a large card get all they can use. */
    size_t bytes = gr_min(device_bytes + device_bytes / 8, left / 16);
    return (gr_max(gr_max(bytes, need), granule) + granule - 1) & ~(granule - 1);
}
