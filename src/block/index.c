/* SPDX-License-Identifier: Apache-2.0
 * Index of blocks by size: treaps, order, checking. */
#include "block/index.h"

#include <string.h>

#include "base/check.h"

void gr_index_arrange(struct gr_index *index, bool lists) {
    GR_ASSERT(!index->summary, "X1");
    /* Of lists that were the ends are left. */
    if (index->listed && !lists) memset(index->bin, 0, GR_INDEX_SINGLES * sizeof(index->bin[0]));
    index->listed = lists ? GR_INDEX_SINGLES * GR_BLOCK_UNIT : 0;
}

/* Higher wins the top of the treap. */
static inline uint64_t priority(const struct gr_block *b) {
    return b->addr / GR_BLOCK_UNIT * UINT64_C(0x9E3779B97F4A7C15) >> 16;
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

/* What b outranks on the way up from the first is its right subtree, which stays as it is. */
static void insert_first(struct gr_index_bin *bin, struct gr_block *b) {
    const uint64_t mine = priority(b);
    struct gr_block *below = NULL, *up = bin->first;
    for (; up && priority(up) < mine; up = up->u.node.parent) below = up;
    b->u.node.child[1] = below;
    if (below) below->u.node.parent = b;
    b->u.node.parent = up;
    if (up)
        up->u.node.child[0] = b;
    else
        bin->root = b;
    bin->first = b;
}

/* b takes the place of the first block on its way down that it outranks. The subtree of that is parted
 * along the rest of the way: what is before b, and what is behind. */
void gr_index_insert_among(struct gr_index_bin *bin, struct gr_block *b) {
    if (gr_index_before(b, bin->first)) {
        insert_first(bin, b);
        return;
    }
    const uint64_t mine = priority(b);
    struct gr_block *at, *up = NULL, **link = &bin->root;
    while ((at = *link) && priority(at) >= mine) {
        size_t side = !gr_index_before(b, at);
        up = at;
        link = at->u.node.child + side;
    }
    *link = b;
    b->u.node.parent = up;
    struct gr_block *edge[2] = {b, b}, **open[2] = {&b->u.node.child[0], &b->u.node.child[1]};
    while (at) {
        size_t side = gr_index_before(b, at);
        struct gr_block **further = at->u.node.child + (side ^ 1);
        *open[side] = at;
        at->u.node.parent = edge[side];
        edge[side] = at;
        open[side] = further;
        at = *further;
    }
    *open[0] = *open[1] = NULL;
}

/* Its subtrees, joined, take its place. */
void gr_index_remove_among(struct gr_index_bin *bin, struct gr_block *b) {
    struct gr_block *left = b->u.node.child[0], *right = b->u.node.child[1], *up = b->u.node.parent;
    struct gr_block **link = up ? &up->u.node.child[up->u.node.child[1] == b] : &bin->root;
    if (bin->first == b) bin->first = successor(b);
    while (left && right) {
        struct gr_block *top = priority(left) > priority(right) ? left : right;
        *link = top;
        top->u.node.parent = up;
        up = top;
        link = &top->u.node.child[top == left];
        if (top == left)
            left = *link;
        else
            right = *link;
    }
    *link = left ? left : right;
    if (*link) (*link)->u.node.parent = up;
}

static struct gr_block *first_from(const struct gr_index *index, unsigned n) {
    n = gr_index_bin_from(index, n);
    return n < GR_INDEX_BINS ? index->bin[n].first : NULL;
}

struct gr_block *gr_index_find_behind(const struct gr_index *index, size_t size) {
    unsigned n = gr_index_bin_of(size);
    struct gr_block *found = NULL;
    for (struct gr_block *at = index->bin[n].root; at;) {
        bool enough = at->size >= size;
        if (enough) found = at;
        at = at->u.node.child[!enough];
    }
    return found ? found : first_from(index, n + 1);
}

struct gr_block *gr_index_next(const struct gr_index *index, const struct gr_block *b) {
    struct gr_block *next = b->size < index->listed ? b->u.list.next : successor(b);
    return next ? next : first_from(index, gr_index_bin_of(b->size) + 1);
}

struct gr_block *gr_index_largest(const struct gr_index *index) {
    if (!index->summary) return NULL;
    unsigned w = 63u - (unsigned)__builtin_clzll(index->summary);
    unsigned n = w * 64 + 63u - (unsigned)__builtin_clzll(index->map[w]);
    if (n < index->listed / GR_BLOCK_UNIT) return index->bin[n].first;
    struct gr_block *b = index->bin[n].root;
    while (b->u.node.child[1]) b = b->u.node.child[1];
    return b;
}

/* Does b belong into the bin? It is counted. */
static bool belongs(const struct gr_block *b, unsigned n, enum gr_block_state state,
                    struct gr_index_sum *sum) {
    sum->count++;
    sum->bytes += b->size;
    return gr_index_bin_of(b->size) == n && b->state == state;
}

static const char *check_treap(const struct gr_index_bin *bin, unsigned n, enum gr_block_state state,
                               struct gr_index_sum *sum) {
    const struct gr_block *root = bin->root, *last = NULL;
    if (root && root->u.node.parent) return "X2";
    const struct gr_block *least = root;
    while (least && least->u.node.child[0]) least = least->u.node.child[0];
    if (bin->first != least) return "X2";
    for (const struct gr_block *b = least; b; b = successor(b)) {
        const struct gr_block *left = b->u.node.child[0], *right = b->u.node.child[1];
        if (!belongs(b, n, state, sum)) return "X1";
        if (last && !gr_index_before(last, b)) return "X2";
        if (left && (left->u.node.parent != b || priority(left) > priority(b))) return "X2";
        if (right && (right->u.node.parent != b || priority(right) > priority(b))) return "X2";
        last = b;
    }
    return NULL;
}

static const char *check_list(const struct gr_index_bin *bin, unsigned n, enum gr_block_state state,
                              struct gr_index_sum *sum) {
    struct gr_block *const *link = &bin->first;
    for (; *link; link = &(*link)->u.list.next) {
        if ((*link)->u.list.link != link) return "X3";
        if (!belongs(*link, n, state, sum)) return "X1";
    }
    if (bin->first && bin->end != link) return "X3";
    return NULL;
}

const char *gr_index_check(const struct gr_index *index, enum gr_block_state state,
                           struct gr_index_sum *sum) {
    *sum = (struct gr_index_sum){0};
    for (unsigned n = 0; n < GR_INDEX_BINS; n++) {
        const struct gr_index_bin *bin = &index->bin[n];
        const bool list = n < index->listed / GR_BLOCK_UNIT;
        if ((index->map[n / 64] >> n % 64 & 1) != (bin->first != NULL)) return "X1";
        const char *broken = list ? check_list(bin, n, state, sum) : check_treap(bin, n, state, sum);
        if (broken) return broken;
    }
    for (unsigned w = 0; w < GR_INDEX_WORDS; w++)
        if ((index->summary >> w & 1) != (index->map[w] != 0)) return "X1";
    return NULL;
}
