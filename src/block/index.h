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
 *
 * Locks: the caller's (the pool's). */
#ifndef GR_BLOCK_INDEX_H
#define GR_BLOCK_INDEX_H

#include "block/block.h"

enum { GR_INDEX_WORDS = 64, GR_INDEX_BINS = GR_INDEX_WORDS * 64 };

struct gr_index {
    uint64_t summary; /* bit w: map[w] != 0 */
    uint64_t map[GR_INDEX_WORDS];
    struct gr_index_bin {
        struct gr_block *root, *least;
    } bin[GR_INDEX_BINS];
};

/* An index of zeroed memory is empty. */

__extension__ typedef unsigned __int128 gr_index_key;

static inline gr_index_key gr_index_key_of(const struct gr_block *b) {
    return (gr_index_key)b->size << 64 | b->addr;
}

/* Without a branch, like all that depends on the order of sizes: it is random, and a branch would be missed. */
static inline bool gr_index_before(const struct gr_block *a, const struct gr_block *b) {
    return gr_index_key_of(a) < gr_index_key_of(b);
}

static inline unsigned gr_index_bin_of(uint64_t size) {
    uint64_t units = size / GR_BLOCK_UNIT;
    unsigned e = gr_log2(units | 128) - 7; /* 0 below 256; no branch, which random sizes would miss */
    return e * 128 + (unsigned)(units >> e);
}

/* The same for a bin that holds others; and for a size to which the least block of its bin is too small. */
void gr_index_insert_among(struct gr_index_bin *bin, struct gr_block *b);
void gr_index_remove_among(struct gr_index_bin *bin, struct gr_block *b);
struct gr_block *gr_index_find_behind(const struct gr_index *index, size_t size);

static inline void gr_index_insert(struct gr_index *index, struct gr_block *b) {
    unsigned n = gr_index_bin_of(b->size);
    struct gr_index_bin *bin = &index->bin[n];
    GR_ASSERT(n < GR_INDEX_BINS, "X1");
    b->u.node.child[0] = b->u.node.child[1] = b->u.node.parent = NULL;
    if (bin->root) {
        gr_index_insert_among(bin, b);
        return;
    }
    bin->root = bin->least = b;
    index->map[n / 64] |= UINT64_C(1) << n % 64;
    index->summary |= UINT64_C(1) << n / 64;
}

static inline void gr_index_remove(struct gr_index *index, struct gr_block *b) {
    unsigned n = gr_index_bin_of(b->size);
    struct gr_index_bin *bin = &index->bin[n];
    if ((uintptr_t)b->u.node.child[0] | (uintptr_t)b->u.node.child[1] | (uintptr_t)b->u.node.parent) {
        gr_index_remove_among(bin, b);
        return;
    }
    bin->root = bin->least = NULL;
    index->map[n / 64] &= ~(UINT64_C(1) << n % 64);
    if (!index->map[n / 64]) index->summary &= ~(UINT64_C(1) << n / 64);
}

/* A block of this size, or 0 for none, may soon be inserted. */
static inline void gr_index_expect(const struct gr_index *index, uint64_t size) {
    const struct gr_index_bin *bin = &index->bin[gr_index_bin_of(size)];
    __builtin_prefetch(bin->least);
    __builtin_prefetch(bin->root);
}

/* Least block of the first bin from n on that has any, or NULL. */
static inline struct gr_block *gr_index_least_from(const struct gr_index *index, unsigned n) {
    if (GR_UNLIKELY(n >= GR_INDEX_BINS)) return NULL;
    unsigned w = n / 64;
    uint64_t bits = index->map[w] & ~UINT64_C(0) << n % 64;
    if (!bits) {
        uint64_t words = index->summary & ~UINT64_C(0) << w << 1;
        if (!words) return NULL;
        w = (unsigned)__builtin_ctzll(words);
        bits = index->map[w];
    }
    return index->bin[w * 64 + (unsigned)__builtin_ctzll(bits)].least;
}

/* The least block by (size, address) whose size is at least `size`, or NULL. */
static inline struct gr_block *gr_index_find(const struct gr_index *index, size_t size) {
    if (GR_UNLIKELY(size > (UINT64_C(1) << 46))) return NULL;
    struct gr_block *b = gr_index_least_from(index, gr_index_bin_of(size));
    return GR_LIKELY(!b || b->size >= size) ? b : gr_index_find_behind(index, size);
}

/* The next block in (size, address) order, or NULL. */
struct gr_block *gr_index_next(const struct gr_index *index, const struct gr_block *b);

/* The largest block, of several the one with the highest address, or NULL. */
struct gr_block *gr_index_last(const struct gr_index *index);

struct gr_index_sum {
    size_t count; /* of blocks */
    uint64_t bytes;
};

/* NULL, or the tag that is broken; *sum: of all blocks in it. */
const char *gr_index_check(const struct gr_index *index, enum gr_block_state state, struct gr_index_sum *sum);

#endif
