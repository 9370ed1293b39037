/* SPDX-License-Identifier: Apache-2.0
 * Index of blocks by (size, address): bins, bitmap, treaps. */
#include "block/index.h"

#include "base/check.h"

static inline unsigned bin_of(uint64_t size) {
    uint64_t units = size / GR_BLOCK_UNIT;
    unsigned e = gr_log2(units | 128) -
                 7; /* 0 below 256; no branch, which sizes in random order would miss */
    return e * 128 + (unsigned)(units >> e);
}

/* Higher wins the top of the treap. */
static inline uint64_t priority(const struct gr_block *b) {
    return b->addr / GR_BLOCK_UNIT * UINT64_C(0x9E3779B97F4A7C15) >> 16;
}

__extension__ typedef unsigned __int128 wide;

static inline wide key(const struct gr_block *b) {
    return (wide)b->size << 64 | b->addr;
}

/* Without a branch, like all that depends on the order of sizes: it is random, and a branch would be missed. */
static inline bool before(const struct gr_block *a, const struct gr_block *b) {
    return key(a) < key(b);
}

/* Which child of its parent b is. */
static inline int side_of(const struct gr_block *b) {
    return b->u.node.parent->u.node.child[1] == b;
}

/* Puts `with` where `b` hangs. */
static void replace(struct gr_index_bin *bin, const struct gr_block *b, struct gr_block *with) {
    struct gr_block *up = b->u.node.parent;
    if (!up)
        bin->root = with;
    else
        up->u.node.child[side_of(b)] = with;
    if (with) with->u.node.parent = up;
}

/* Lifts b above its parent. */
static void rotate_up(struct gr_index_bin *bin, struct gr_block *b) {
    struct gr_block *up = b->u.node.parent;
    int side = side_of(b);
    struct gr_block *inner = b->u.node.child[!side];
    replace(bin, up, b);
    up->u.node.child[side] = inner;
    if (inner) inner->u.node.parent = up;
    b->u.node.child[!side] = up;
    up->u.node.parent = b;
}

static struct gr_block *successor(const struct gr_block *b) {
    struct gr_block *at = b->u.node.child[1];
    if (at) {
        while (at->u.node.child[0]) at = at->u.node.child[0];
        return at;
    }
    for (at = b->u.node.parent; at && at->u.node.child[1] == b; at = at->u.node.parent) b = at;
    return at;
}

void gr_index_insert(struct gr_index *index, struct gr_block *b) {
    unsigned n = bin_of(b->size);
    struct gr_index_bin *bin = &index->bin[n];
    GR_ASSERT(n < GR_INDEX_BINS, "X1");
    index->changes++;
    index->count++;
    index->bytes += b->size;
    b->u.node.child[0] = b->u.node.child[1] = NULL;
    if (!bin->root) {
        b->u.node.parent = NULL;
        bin->root = bin->least = b;
        index->map[n / 64] |= UINT64_C(1) << n % 64;
        index->summary |= UINT64_C(1) << n / 64;
        return;
    }
    if (before(b, bin->least)) {
        b->u.node.parent = bin->least;
        bin->least->u.node.child[0] = b;
        bin->least = b;
    } else {
        struct gr_block *at, **down = &bin->root;
        do {
            at = *down;
            down = &at->u.node.child[!before(b, at)];
        } while (*down);
        *down = b;
        b->u.node.parent = at;
    }
    uint64_t mine = priority(b);
    while (b->u.node.parent && priority(b->u.node.parent) < mine) rotate_up(bin, b);
}

void gr_index_remove(struct gr_index *index, struct gr_block *b) {
    unsigned n = bin_of(b->size);
    struct gr_index_bin *bin = &index->bin[n];
    index->changes++;
    index->count--;
    index->bytes -= b->size;
    if (bin->root == b && !b->u.node.child[0] && !b->u.node.child[1]) {
        bin->root = bin->least = NULL;
        index->map[n / 64] &= ~(UINT64_C(1) << n % 64);
        if (!index->map[n / 64]) index->summary &= ~(UINT64_C(1) << n / 64);
        return;
    }
    if (bin->least == b) bin->least = successor(b);
    while (b->u.node.child[0] && b->u.node.child[1]) {
        struct gr_block *left = b->u.node.child[0], *right = b->u.node.child[1];
        rotate_up(bin, priority(left) > priority(right) ? left : right);
    }
    replace(bin, b, b->u.node.child[0] ? b->u.node.child[0] : b->u.node.child[1]);
}

/* Least block of the first bin after n that has any. */
static struct gr_block *least_after(const struct gr_index *index, unsigned n) {
    unsigned w = n / 64;
    uint64_t bits = n % 64 == 63 ? 0 : index->map[w] & ~UINT64_C(0) << (n % 64 + 1);
    if (!bits) {
        uint64_t words = index->summary & ~UINT64_C(0) << w << 1;
        if (!words) return NULL;
        w = (unsigned)__builtin_ctzll(words);
        bits = index->map[w];
    }
    return index->bin[w * 64 + (unsigned)__builtin_ctzll(bits)].least;
}

struct gr_block *gr_index_find(const struct gr_index *index, size_t size) {
    if (GR_UNLIKELY(size > (UINT64_C(1) << 46))) return NULL;
    unsigned n = bin_of(size);
    const struct gr_index_bin *bin = &index->bin[n];
    if (bin->root) {
        if (bin->least->size >= size) return bin->least;
        struct gr_block *found = NULL;
        for (struct gr_block *at = bin->root; at;) {
            if (at->size >= size) {
                found = at;
                at = at->u.node.child[0];
            } else {
                at = at->u.node.child[1];
            }
        }
        if (found) return found;
    }
    return least_after(index, n);
}

struct gr_block *gr_index_next(const struct gr_index *index, const struct gr_block *b) {
    struct gr_block *next = successor(b);
    return next ? next : least_after(index, bin_of(b->size));
}

struct gr_block *gr_index_last(const struct gr_index *index) {
    if (!index->summary) return NULL;
    unsigned w = 63u - (unsigned)__builtin_clzll(index->summary);
    unsigned n = w * 64 + 63u - (unsigned)__builtin_clzll(index->map[w]);
    struct gr_block *b = index->bin[n].root;
    while (b->u.node.child[1]) b = b->u.node.child[1];
    return b;
}

static const char *check_bin(const struct gr_index *index, unsigned n, enum gr_block_state state,
                             size_t *count, uint64_t *bytes) {
    const struct gr_index_bin *bin = &index->bin[n];
    const struct gr_block *last = NULL;
    if (bin->root && bin->root->u.node.parent) return "X2";
    for (const struct gr_block *b = bin->least; b; b = successor(b)) {
        const struct gr_block *left = b->u.node.child[0], *right = b->u.node.child[1];
        if (bin_of(b->size) != n || b->state != state) return "X1";
        if (last && !before(last, b)) return "X2";
        if (!last && left) return "X2";
        if (left && (left->u.node.parent != b || priority(left) > priority(b))) return "X2";
        if (right && (right->u.node.parent != b || priority(right) > priority(b))) return "X2";
        last = b;
        *count += 1;
        *bytes += b->size;
    }
    return NULL;
}

const char *gr_index_check(const struct gr_index *index, enum gr_block_state state) {
    size_t count = 0;
    uint64_t bytes = 0;
    for (unsigned n = 0; n < GR_INDEX_BINS; n++) {
        bool bit = index->map[n / 64] >> n % 64 & 1;
        if (bit != (index->bin[n].root != NULL) || bit != (index->bin[n].least != NULL)) return "X1";
        const char *broken = check_bin(index, n, state, &count, &bytes);
        if (broken) return broken;
    }
    for (unsigned w = 0; w < GR_INDEX_WORDS; w++)
        if ((index->summary >> w & 1) != (index->map[w] != 0)) return "X1";
    return count == index->count && bytes == index->bytes ? NULL : "X3";
}
