/* SPDX-License-Identifier: Apache-2.0
 * Backing: how large the extents are that back new memory. */
#include "policy/backing.h"

/* Granules. From 20 MiB on kernels lose no bandwidth, and a block that pins an extent of that size
 * keeps little memory from moving (doc/benchmarks.md compares sizes). */
enum { FULL_SPEED = 10 };

size_t gr_backing_next(const struct gr_backing *b) {
    if (b->class == GR_SMALL) return 1;
    /* A burst: the need outweighs what is there already, so whatever pins it will fill most of it. */
    if (b->usual >= FULL_SPEED && b->need >= b->held / 2 && b->need <= b->limit / 4 &&
        b->held <= b->limit / 4)
        return b->need;
    /* The last sixteenth: what is created here is what moves most. */
    if (b->held >= b->limit - b->limit / 16) return 1;
    /* On an almost empty card memory need not move soon: fewer driver calls. */
    size_t usual = b->usual >= FULL_SPEED && b->held < b->limit / 8 ? 4 * b->usual : b->usual;
    return usual > 1 && b->need < 2 * usual ? b->need : gr_min(b->need, usual);
}
