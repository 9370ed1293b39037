/* SPDX-License-Identifier: Apache-2.0
 * A model of the classic allocator by PyTorch's published rules, garbage collection included: a list of
 * segments cut into blocks, searched and collected as simply as can be. Knows nothing of the library. */
#ifndef SUPPORT_CLASSIC_H
#define SUPPORT_CLASSIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct classic_block;

struct classic {
    size_t limit;     /* bytes that may be reserved */
    double threshold; /* part of it from which on old segments go; 0: never */
    /* figures */
    size_t reserved, peak_reserved;
    size_t segments_made, segments_freed;
    size_t collected; /* bytes */
    /* inside */
    struct classic_block **pool[2]; /* free blocks, small and large, sorted */
    size_t count[2], room[2];
    uint64_t clock;
};

/* A segment that has to be made lies at addr: of equal blocks the lowest serves, and where segments lie is
 * the driver's business. NULL: the limit does not allow it. */
struct classic_block *classic_alloc(struct classic *c, size_t size, int stream, uint64_t addr);
void classic_free(struct classic *c, struct classic_block *block);
/* All blocks were freed. */
void classic_fini(struct classic *c);

#endif
