/* SPDX-License-Identifier: Apache-2.0
 * Index of blocks by (size, address): exact best fit in bounded time.
 *
 *      bin  0..255    sizes below 128 KiB, one size each
 *      bin  256..     128 bins an octave, up to 128 TiB
 *      bitmap         one bit a bin; one summary word over the bitmap
 *      in a bin       a treap ordered by (size, address), its least block remembered
 *
 * Bins are narrow so that treaps stay low even with many blocks free: each level is a cache miss.
 * Pages of the table into which no size ever fell are never touched.
 *
 * The treap's priorities are a hash of the address: nothing is stored for them and a run repeats.
 * A block that becomes the least of its bin, or leaves as the least, costs no descent; that is what
 * happens when memory is freed and allocated again in turn, however many holes of that size wait.
 *
 * Invariants (gr_index_check):
 *      X1  every block sits in the bin of its size, and the bit of a bin is set iff it is not empty
 *      X2  in each treap: order by (size, address), heap order by priority, parent links, least block
 *      X3  count and bytes are those of the blocks in it
 *
 * Locks: the caller's (the pool's). */
#ifndef GR_BLOCK_INDEX_H
#define GR_BLOCK_INDEX_H

#include "block/block.h"

enum { GR_INDEX_WORDS = 64, GR_INDEX_BINS = GR_INDEX_WORDS * 64 };

struct gr_index {
    uint64_t summary; /* bit w: map[w] != 0 */
    uint64_t map[GR_INDEX_WORDS];
    size_t count;
    uint64_t bytes;
    uint64_t changes; /* insertions and removals so far: equal numbers, equal contents */
    struct gr_index_bin {
        struct gr_block *root, *least;
    } bin[GR_INDEX_BINS];
};

/* An index of zeroed memory is empty. */

void gr_index_insert(struct gr_index *index, struct gr_block *b);
void gr_index_remove(struct gr_index *index, struct gr_block *b);

/* The least block by (size, address) whose size is at least `size`, or NULL. */
struct gr_block *gr_index_find(const struct gr_index *index, size_t size);

/* The next block in (size, address) order, or NULL. */
struct gr_block *gr_index_next(const struct gr_index *index, const struct gr_block *b);

/* The largest block, of several the one with the highest address, or NULL. */
struct gr_block *gr_index_last(const struct gr_index *index);

const char *gr_index_check(const struct gr_index *index, enum gr_block_state state);

#endif
