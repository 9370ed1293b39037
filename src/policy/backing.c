/* SPDX-License-Identifier: Apache-2.0
 * Backing: how large the extents are that back new memory. */
#include "policy/backing.h"

/* Granules. Who asks for smaller extents than this wants memory to move more than kernels to run fast. */
enum { FAST = 5 };

size_t gr_backing_next(const struct gr_backing *b) {
    if (b->class == GR_SMALL) return 1;
    /* What is created in the last eighth is what moves most. */
    if (b->held >= b->limit - b->limit / 8) return 1;
    /* No extent may be more than a small part of all there is. */
    size_t usual = gr_min(b->usual, gr_max(b->limit / 512, 1));
    if (usual < FAST) return gr_min(b->need, usual);
    /* A burst: the need outweighs what is there already, so whatever pins it will fill most of it. */
    if (b->need >= b->held / 2 && b->need <= b->limit / 4 && b->held <= b->limit / 4) return b->need;
    /* On an almost empty card memory need not move soon: fewer driver calls. */
    if (b->held < b->limit / 8) usual *= 4;
    return b->need < 2 * usual ? b->need : usual;
}
