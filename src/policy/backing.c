/* SPDX-License-Identifier: Apache-2.0
 * Backing: how large the extents are that back new memory. */
#include "policy/backing.h"

/* Granules. Who asks for smaller extents than this wants memory to move more than kernels to run fast. */
enum { FAST = 3 };

size_t gr_backing_next(const struct gr_backing *b) {
    if (b->class == GR_SMALL) return 1;
    /* What is created last is what moves most. */
    if (b->held >= b->limit - b->limit / 6) return 1;
    /* No extent may be more than a small part of all there is. */
    size_t usual = gr_min(b->usual, gr_max(b->limit / 512, 1));
    if (usual < FAST) return gr_min(b->need, usual);
    /* On an almost empty card memory need not move soon: fewer driver calls. */
    if (b->held < b->limit / 8) usual *= 4;
    if (b->held <= b->limit / 4) {
        size_t before = b->held - gr_min(b->held, b->whole - b->need);
        /* A burst: the growth outweighs what was there before, so whatever pins its extents will fill most
         * of them. */
        if (b->whole / 8 >= before) return gr_min(b->need, gr_max(usual, b->limit / 32));
        if (b->whole >= before / 2) return gr_min(b->need, gr_max(usual, b->limit / 64));
        /* Blocks of such a size come again, and find extents to fit them. */
        usual = gr_max(usual, gr_min(b->whole / 4, b->limit / 1024));
    }
    return b->need < 2 * usual ? b->need : usual;
}
