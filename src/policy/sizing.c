/* SPDX-License-Identifier: Apache-2.0
 * Sizing: rounding by parts of powers of two, segment sizes, split and oversize rules, reservations. */
#include "policy/sizing.h"

void gr_sizing_set(struct gr_sizing *sizing, const struct granary_options *options) {
    size_t slack = options->max_non_split_rounding ? options->max_non_split_rounding
                                                   : options->large_segment_size;
    bool divided = false;
    for (size_t i = 0; i < GRANARY_SIZE_INTERVALS; i++) {
        uint32_t divisions = options->roundup_power2_divisions[i];
        divided = divided || divisions > 1;
        atomic_store_explicit(&sizing->divisions[i], divisions, memory_order_relaxed);
    }
    sizing->large_segment = options->large_segment_size;
    atomic_store_explicit(&sizing->max_split_size, options->max_split_size, memory_order_relaxed);
    atomic_store_explicit(&sizing->max_non_split_slack, slack, memory_order_relaxed);
    atomic_store_explicit(&sizing->plain, divided ? GR_SIZING_UNIT : GR_SIZING_MAX, memory_order_relaxed);
}

/* The divisions of the power of two below a size: of [2^20, 2^21) and all below it, [2^21, 2^22), ... */
static size_t divisions_of(const struct gr_sizing *sizing, size_t size) {
    unsigned log = gr_log2(size);
    size_t interval = log < 20 ? 0 : gr_min(log - 20, GRANARY_SIZE_INTERVALS - 1);
    return atomic_load_explicit(&sizing->divisions[interval], memory_order_relaxed);
}

bool gr_sizing_round_divided(const struct gr_sizing *sizing, size_t size, size_t *out) {
    if (size > GR_SIZING_MAX) return false;
    size_t divisions = divisions_of(sizing, size), step = GR_SIZING_UNIT;
    /* A part is a unit or more, because the size is. One division would be a rounding to powers of two;
     * PyTorch takes it for none, and so do we. */
    if (divisions > 1 && size > GR_SIZING_UNIT * divisions) step = ((size_t)1 << gr_log2(size)) / divisions;
    *out = (size + step - 1) & ~(step - 1);
    return true;
}

size_t gr_sizing_segment(const struct gr_sizing *sizing, size_t rounded) {
    if (rounded <= GR_SIZING_SMALL_MAX) return GR_SIZING_SMALL_SEGMENT;
    if (rounded < GR_SIZING_LARGE_DIRECT) return sizing->large_segment;
    return (rounded + 2 * GR_MIB - 1) & ~(2 * GR_MIB - 1);
}

bool gr_sizing_fits(const struct gr_sizing *sizing, size_t block, size_t rounded) {
    size_t oversize = atomic_load_explicit(&sizing->max_split_size, memory_order_relaxed);
    if (rounded < oversize) return block < oversize;
    return block - rounded < atomic_load_explicit(&sizing->max_non_split_slack, memory_order_relaxed);
}

bool gr_sizing_splits(const struct gr_sizing *sizing, enum gr_class class, size_t rounded, size_t rest) {
    if (class == GR_SMALL) return rest >= GR_SIZING_UNIT;
    return rounded < atomic_load_explicit(&sizing->max_split_size, memory_order_relaxed) &&
           rest > GR_SIZING_SMALL_MAX;
}

size_t gr_sizing_range(const struct gr_range_wish *wish) {
    size_t most = wish->device_bytes + wish->device_bytes / 8, bytes;
    size_t left = wish->used < GR_SIZING_ADDRESS_BUDGET ? GR_SIZING_ADDRESS_BUDGET - wish->used : 0;
    if (wish->reserve->bytes > 0)
        bytes = gr_min(wish->reserve->bytes, most);
    else if (wish->reserve->fraction > 0)
        bytes = wish->reserve->fraction < 2
                    ? gr_min((size_t)(wish->reserve->fraction * (double)wish->device_bytes), most)
                    : most;
    else /* A sixteenth of what is left: the first twenty pools of a large card get all they can use. */
        bytes = gr_min(most, left / 16);
    return (gr_max(gr_max(bytes, wish->need), wish->granule) + wish->granule - 1) & ~(wish->granule - 1);
}
