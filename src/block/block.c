/* SPDX-License-Identifier: Apache-2.0
 * Blocks: state steps, split, absorb. */
#include "block/block.h"

#include "base/check.h"

/* legal[from] is a set of states, one bit each. */
static const unsigned char legal[] = {
    [GR_BLOCK_LIVE] = 1u << GR_BLOCK_FREE | 1u << GR_BLOCK_PENDING,
    [GR_BLOCK_FREE] = 1u << GR_BLOCK_LIVE | 1u << GR_BLOCK_MOVING,
    [GR_BLOCK_PENDING] = 1u << GR_BLOCK_FREE,
    [GR_BLOCK_HOLE] = 1u << GR_BLOCK_MOVING,
    [GR_BLOCK_MOVING] = 1u << GR_BLOCK_FREE | 1u << GR_BLOCK_HOLE,
};

bool gr_block_may_become(enum gr_block_state from, enum gr_block_state to) {
    return from < GR_COUNT(legal) && (legal[from] >> to & 1);
}

const char *gr_block_check(const struct gr_block *first, size_t granule, bool moving_allowed) {
    for (const struct gr_block *b = first; b; b = b->next) {
        const struct gr_block *next = b->next;
        if (next && (next->prev != b || gr_block_end(b) != next->addr)) return "B1";
        if (next && b->state == next->state && (b->state == GR_BLOCK_FREE || b->state == GR_BLOCK_HOLE))
            return "B2";
        if (b->size == 0 || b->size % GR_BLOCK_UNIT || b->addr % GR_BLOCK_UNIT) return "B3";
        if (b->state == GR_BLOCK_HOLE &&
            !(gr_is_aligned(b->addr, granule) && gr_is_aligned(b->size, granule)))
            return "B3";
        if (b->state < GR_BLOCK_LIVE || b->state > GR_BLOCK_MOVING) return "B4";
        if (b->state == GR_BLOCK_MOVING && !moving_allowed) return "B4";
    }
    return NULL;
}
