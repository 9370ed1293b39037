/* SPDX-License-Identifier: Apache-2.0
 * Backing: how large the extents are that back new memory. */
#include "policy/backing.h"

size_t gr_backing_next(const struct gr_backing *b) {
    static const struct {
        size_t eighths; /* applies while held < eighths / 8 of the limit */
        size_t granules;
    } step[] = {{4, SIZE_MAX}, {6, 64}, {7, 10}};
    if (b->class == GR_SMALL) return 1;
    for (size_t i = 0; i < GR_COUNT(step); i++)
        if (b->held / step[i].eighths < b->limit / 8) return gr_min(b->need, step[i].granules);
    return 1;
}
