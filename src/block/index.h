/* SPDX-License-Identifier: Apache-2.0
 * Index of blocks by size: exact best fit in bounded time.
 *
 *      bin  0..2047   sizes below 1 MiB, one size each
 *      bin  2048..    128 bins an octave up to 64 GiB; the last holds all larger sizes as well
 *      bitmap         one bit a bin; one summary word over the bitmap
 *
 *      bin   list    first -> block -> block -> block <- end    of one size, low addresses in front
 *      bin   treap   root -> (size, address)                    and its first block
 *
 * A bin below 1 MiB is a list if the index was arranged so; all others are treaps. A list costs no descent, and no
 * branch on what is in it: a block below the middle of what came lately, into whatever list, goes to the front,
 * another to the end. So low addresses fill and high ones fall empty, nearly as with a sorted bin, and random
 * traffic takes little more than half the time (doc/benchmarks.md). A treap gives the lowest of equal blocks, as
 * PyTorch does; classic segments keep to that, so that totals can be compared.
 *
 * Bins are narrow so that treaps stay low even with many blocks free: each level is a cache miss. Pages of
 * the tables into which no size ever fell are never touched.
 *
 * The treap's priorities are a hash of the address: nothing is stored for them and a run repeats.
 * A block that becomes the first of its bin, or leaves as the first, costs no descent.
 *
 * Invariants (gr_index_check):
 *      X1  every block sits in the bin of its size, and the bit of a bin is set iff it is not empty
 *      X2  in each treap: order by (size, address), heap order by priority, parent links, first block
 *      X3  in each list: links agree in both directions, and its end is known
 *
 * Locks: the caller's (the pool's). */
#ifndef GR_BLOCK_INDEX_H
#define GR_BLOCK_INDEX_H

#include "block/block.h"

enum {
    GR_INDEX_WORDS = 64,
    GR_INDEX_BINS = GR_INDEX_WORDS * 64,
    GR_INDEX_SINGLES_LOG2 = 11, /* bins of one size */
    GR_INDEX_SINGLES = 1 << GR_INDEX_SINGLES_LOG2,
    GR_INDEX_OCTAVE_LOG2 = 7, /* bins an octave behind them */
    GR_INDEX_LATELY_LOG2 = 6  /* so many blocks ago is lately */
};

struct gr_index {
    size_t listed;    /* bytes: smaller blocks are in lists; constant while the index holds any */
    gr_addr middle;   /* the mean address of what came into lists, the latest counting most */
    uint64_t summary; /* bit w: map[w] != 0 */
    uint64_t map[GR_INDEX_WORDS];
    struct gr_index_bin {
        struct gr_block *first; /* NULL: it is empty */
        union {
            struct gr_block *root; /* of a treap */
            struct gr_block **end; /* of a list that is not empty: what would lead to one more */
        };
    } bin[GR_INDEX_BINS];
};

/* An index of zeroed memory is empty and has treaps alone. Lists or not, while it is empty: */
void gr_index_arrange(struct gr_index *index, bool lists);

/* Before anything came into lists: about where blocks will lie. The middle finds its way from there. */
static inline void gr_index_aim(struct gr_index *index, gr_addr addr) {
    index->middle = addr;
}

__extension__ typedef unsigned __int128 gr_index_key;

static inline gr_index_key gr_index_key_of(uint64_t size, gr_addr addr) {
    return (gr_index_key)size << 64 | addr;
}
static inline uint64_t gr_index_key_size(gr_index_key key) {
    return (uint64_t)(key >> 64);
}

/* Without a branch, like all that depends on the order of sizes: it is random, and a branch would be missed. */
static inline bool gr_index_before(const struct gr_block *a, const struct gr_block *b) {
    return gr_index_key_of(a->size, a->addr) < gr_index_key_of(b->size, b->addr);
}

/* Whatever has a lower key would be found before the block, were it inserted now. */
static inline gr_index_key gr_index_bound(const struct gr_index *index, const struct gr_block *b) {
    return gr_index_key_of(b->size, gr_select(b->size < index->listed, index->middle, b->addr));
}

static inline unsigned gr_index_bin_of(uint64_t size) {
    uint64_t units = size / GR_BLOCK_UNIT;
    unsigned octave = gr_log2(units | GR_INDEX_SINGLES) - GR_INDEX_SINGLES_LOG2; /* from the singles on */
    uint64_t lead = units >> (octave + GR_INDEX_SINGLES_LOG2 - GR_INDEX_OCTAVE_LOG2);
    uint64_t n =
        GR_INDEX_SINGLES + ((uint64_t)octave << GR_INDEX_OCTAVE_LOG2) +
        (lead - (1 << GR_INDEX_OCTAVE_LOG2)); /* the leading bits of units tell which of the octave */
    return units < GR_INDEX_SINGLES ? (unsigned)units : (unsigned)gr_min(n, GR_INDEX_BINS - 1);
}

/* For a treap that holds others as well, and for a size to which the first block of its bin is too small. */
void gr_index_insert_among(struct gr_index_bin *bin, struct gr_block *b);
void gr_index_remove_among(struct gr_index_bin *bin, struct gr_block *b);
struct gr_block *gr_index_find_behind(const struct gr_index *index, size_t size);

static inline void gr_index_insert(struct gr_index *index, struct gr_block *b) {
    unsigned n;
    struct gr_index_bin *bin;
    if (b->size < index->listed) {
        n = (unsigned)(b->size / GR_BLOCK_UNIT);
        bin = &index->bin[n];
        struct gr_block **head = &bin->first, **link, *next;
        const bool front = (b->addr < index->middle) | !*head;
        link = (struct gr_block **)gr_select(front, (uintptr_t)head, (uintptr_t)bin->end);
        next = (struct gr_block *)gr_select(front, (uintptr_t)*head, 0); /* *link may be far away in memory */
        b->u.list.next = next;
        b->u.list.link = link;
        *link = b;
        *(next ? &next->u.list.link : &bin->end) = &b->u.list.next;
        index->middle += (b->addr >> GR_INDEX_LATELY_LOG2) - (index->middle >> GR_INDEX_LATELY_LOG2);
    } else {
        n = gr_index_bin_of(b->size);
        bin = &index->bin[n];
        b->u.node.child[0] = b->u.node.child[1] = b->u.node.parent = NULL;
        if (bin->first) {
            gr_index_insert_among(bin, b);
            return;
        }
        bin->root = bin->first = b;
    }
    index->map[n / 64] |= UINT64_C(1) << n % 64;
    index->summary |= UINT64_C(1) << n / 64;
}

static inline void gr_index_remove(struct gr_index *index, struct gr_block *b) {
    unsigned n;
    struct gr_index_bin *bin;
    if (b->size < index->listed) {
        n = (unsigned)(b->size / GR_BLOCK_UNIT);
        bin = &index->bin[n];
        struct gr_block *next = b->u.list.next, **link = b->u.list.link;
        GR_ASSERT(*link == b, "X3");
        *link = next;
        *(next ? &next->u.list.link : &bin->end) = link;
    } else {
        n = gr_index_bin_of(b->size);
        bin = &index->bin[n];
        if ((uintptr_t)b->u.node.child[0] | (uintptr_t)b->u.node.child[1] | (uintptr_t)b->u.node.parent) {
            gr_index_remove_among(bin, b);
            return;
        }
        bin->root = bin->first = NULL;
    }
    index->map[n / 64] &= ~((uint64_t)!bin->first << n % 64);
    index->summary &= ~((uint64_t)!index->map[n / 64] << n / 64);
}

/* The first bin from n on that has any block, or GR_INDEX_BINS. */
static inline unsigned gr_index_bin_from(const struct gr_index *index, unsigned n) {
    if (GR_UNLIKELY(n >= GR_INDEX_BINS)) return GR_INDEX_BINS;
    unsigned w = n / 64;
    uint64_t bits = index->map[w] & ~UINT64_C(0) << n % 64;
    if (!bits) {
        uint64_t words = index->summary & ~UINT64_C(0) << w << 1;
        if (!words) return GR_INDEX_BINS;
        w = (unsigned)__builtin_ctzll(words);
        bits = index->map[w];
    }
    return w * 64 + (unsigned)__builtin_ctzll(bits);
}

/* The first block, by size and then as its bin is ordered, whose size is at least `size`, and its bound; or NULL. Of
 * a block in a list the bound is known without a look at it, which may be far away in memory. */
static inline struct gr_block *gr_index_seek(const struct gr_index *index, size_t size, gr_index_key *bound) {
    unsigned n = gr_index_bin_from(index, gr_index_bin_of(size));
    if (n == GR_INDEX_BINS) return NULL;
    struct gr_block *b = index->bin[n].first;
    if (n < index->listed / GR_BLOCK_UNIT) {
        *bound = gr_index_key_of(n * (uint64_t)GR_BLOCK_UNIT, index->middle);
        return b;
    }
    if (GR_UNLIKELY(b->size < size)) b = gr_index_find_behind(index, size);
    if (GR_LIKELY(b != NULL)) *bound = gr_index_key_of(b->size, b->addr);
    return b;
}
/* The block alone. */
static inline struct gr_block *gr_index_find(const struct gr_index *index, size_t size) {
    gr_index_key bound;
    return gr_index_seek(index, size, &bound);
}

/* The next block in this order, or NULL. */
struct gr_block *gr_index_next(const struct gr_index *index, const struct gr_block *b);

/* A block that is as large as any, or NULL. */
struct gr_block *gr_index_largest(const struct gr_index *index);

struct gr_index_sum {
    size_t count; /* of blocks */
    uint64_t bytes;
};

/* NULL, or the tag that is broken; *sum: of all blocks in it. */
const char *gr_index_check(const struct gr_index *index, enum gr_block_state state, struct gr_index_sum *sum);

#endif
