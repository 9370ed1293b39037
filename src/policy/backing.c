/* SPDX-License-Identifier: Apache-2.0
 * Backing: how large the extents are that back new memory. */
#include "policy/backing.h"

static bool roomy(size_t held, size_t limit) {
    return held <= limit / 4;
}

size_t gr_backing_least(size_t held, size_t limit, size_t usual) {
    if (usual < GR_BACKING_FAST || !roomy(held, limit)) return 0;
    return gr_min(usual, gr_min(held / 256, limit / 4096));
}

/* No extent may be more than a small part of all there is. */
static size_t most_of(const struct gr_backing *b) {
    return gr_max(b->limit / 512, 1);
}

static size_t next(const struct gr_backing *b) {
    const bool room = roomy(b->held, b->limit);
    const size_t most = most_of(b);
    size_t usual = gr_min(b->usual, most);
    /* Small blocks pin what they get. */
    if (b->class == GR_SMALL) return room && usual >= GR_BACKING_FAST ? gr_min(b->need, usual) : 1;
    /* What is created last is what moves most. */
    if (b->held >= b->limit - b->limit / 6) return 1;
    if (usual < GR_BACKING_FAST) return gr_min(b->need, usual);
    /* On an almost empty card memory need not move soon: fewer driver calls. */
    if (b->held < b->limit / 8) usual = gr_min(usual * 6, most);
    if (room) {
        size_t before = b->held - gr_min(b->held, b->whole - b->need);
        /* A burst: the growth outweighs what was there before, so whatever pins its extents will fill most
         * of them. */
        if (b->whole / 8 >= before) return gr_min(b->need, gr_max(usual, b->limit / 32));
        if (b->whole >= before / 2) return gr_min(b->need, gr_max(usual, b->limit / 64));
        /* Blocks of such a size come again, and find extents to fit them. */
        usual = gr_max(usual, gr_min(b->whole / 6, b->limit / 1024));
    }
    return b->need < 2 * usual ? b->need : usual;
}

size_t gr_backing_next(const struct gr_backing *b) {
    enum { PEERS = 10 };
    const size_t least = b->peers && b->usual >= GR_BACKING_FAST ? gr_min(PEERS, most_of(b)) : 1;
    return gr_max(next(b), gr_min(b->need, least));
}
