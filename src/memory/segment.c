/* SPDX-License-Identifier: Apache-2.0
 * Segments: opening and closing the two kinds. */
#include "memory/segment.h"

static void lay_first_tile(struct gr_segment *segment, struct gr_block *b, enum gr_block_state state) {
    *b = (struct gr_block){.addr = segment->base, .size = segment->size, .state = state};
    segment->first = b;
}

int gr_segment_open_expandable(struct gr_segment *segment, struct gr_driver *driver, struct gr_block *first,
                               size_t bytes, size_t need) {
    *segment = (struct gr_segment){.kind = GR_SEGMENT_EXPANDABLE};
    int status = gr_range_open(&segment->range, driver, bytes, need);
    if (status != GRANARY_OK) return status;
    segment->base = segment->range.base;
    segment->size = segment->range.slots * segment->range.granule;
    lay_first_tile(segment, first, GR_BLOCK_HOLE);
    return GRANARY_OK;
}

int gr_segment_open_classic(struct gr_segment *segment, struct gr_driver *driver, struct gr_block *first,
                            size_t bytes) {
    *segment = (struct gr_segment){.kind = GR_SEGMENT_CLASSIC};
    gr_cu_ptr base = 0;
    int status = gr_driver_begin(driver);
    if (status != GRANARY_OK) return status;
    int mode = gr_driver_relax(driver); /* cuMemAlloc invalidates captures in the other modes */
    status = gr_driver_status(driver, GR_ENTRY_cuMemAlloc, GR_DRIVE(driver, cuMemAlloc, &base, bytes));
    gr_driver_restore(driver, mode);
    gr_driver_end(driver);
    if (status != GRANARY_OK) return status;
    segment->base = base;
    segment->size = bytes;
    lay_first_tile(segment, first, GR_BLOCK_MOVING);
    return GRANARY_OK;
}

void gr_segment_close(struct gr_segment *segment, struct gr_driver *driver) {
    if (segment->kind == GR_SEGMENT_EXPANDABLE) {
        gr_range_close(&segment->range, driver);
    } else if (GR_TWICE(gr_driver_begin(driver)) == GRANARY_OK) {
        int mode = gr_driver_relax(driver); /* as above, also a capture that nobody told us of */
        gr_driver_ignore(driver, GR_ENTRY_cuMemFree, GR_TWICE(GR_DRIVE(driver, cuMemFree, segment->base)));
        gr_driver_restore(driver, mode);
        gr_driver_end(driver);
    }
    *segment = (struct gr_segment){0};
}

static const char *check_backing(const struct gr_segment *segment) {
    const struct gr_range *range = &segment->range;
    for (const struct gr_block *b = segment->first; b; b = b->next) {
        if (b->state == GR_BLOCK_MOVING) continue;
        size_t from = gr_range_slot_of(range, b->addr), to = gr_range_slot_of(range, gr_block_end(b) - 1);
        for (size_t s = from; s <= to; s++)
            if ((range->slot[s] == NULL) != (b->state == GR_BLOCK_HOLE)) return "M2";
    }
    return NULL;
}

const char *gr_segment_check(const struct gr_segment *segment, bool moving_allowed) {
    size_t covered = 0;
    for (const struct gr_block *b = segment->first; b; b = b->next) covered += b->size;
    if (!segment->first || segment->first->addr != segment->base || segment->first->prev) return "M1";
    if (covered != segment->size) return "M1";
    bool expandable = segment->kind == GR_SEGMENT_EXPANDABLE;
    const char *broken =
        gr_block_check(segment->first, expandable ? segment->range.granule : GR_BLOCK_UNIT, moving_allowed);
    if (!broken && expandable) broken = gr_range_check(&segment->range);
    if (!broken && expandable) broken = check_backing(segment);
    return broken;
}
