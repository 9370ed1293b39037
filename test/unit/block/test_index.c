/* SPDX-License-Identifier: Apache-2.0
 * The index answers as an array in its order would, whatever the sizes, and its treaps stay shallow. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "block/index.h"
#include "support/hot.h"
#include "support/rng.h"

enum { BLOCKS = 20000 };

static struct gr_index indexed;
static struct gr_block *blocks; /* BLOCKS of them */
static struct gr_block **array; /* those in the index, in its order */
static size_t count;

static void setup(void) {
    memset(&indexed, 0, sizeof indexed);
    blocks = calloc(BLOCKS, sizeof *blocks);
    array = calloc(BLOCKS, sizeof *array);
    ck_assert(blocks != NULL && array != NULL);
    count = 0;
}

static void teardown(void) {
    free(blocks);
    free(array);
}

/* Would a, which is in, be found before one of this size and address that came now? */
static bool before(const struct gr_block *a, size_t size, gr_addr addr) {
    const gr_addr bound = size < indexed.listed ? indexed.middle : a->addr;
    return a->size != size ? a->size < size : bound <= addr;
}

/* Place in the array of the first block that is not before (size, addr). */
static size_t place(size_t size, gr_addr addr) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (before(array[middle], size, addr))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct gr_block *b) {
    size_t at = place(b->size, b->addr);
    memmove(&array[at + 1], &array[at], (count++ - at) * sizeof *array);
    array[at] = b;
    if (at + 1 < count)
        ck_assert(gr_index_key_of(b->size, b->addr) < gr_index_bound(&indexed, array[at + 1]));
    if (at > 0) ck_assert(gr_index_key_of(b->size, b->addr) >= gr_index_bound(&indexed, array[at - 1]));
    gr_index_insert(&indexed, b);
}

static void remove_at(size_t at) {
    gr_index_remove(&indexed, array[at]);
    memmove(&array[at], &array[at + 1], (--count - at) * sizeof *array);
}

/* Place of the first block of at least this size. */
static size_t fit(size_t size) {
    size_t at = 0;
    for (size_t step = (size_t)1 << 16; step > 0; step /= 2)
        if (at + step <= count && array[at + step - 1]->size < size) at += step;
    return at;
}

static void check_find(size_t size) {
    size_t at = fit(size);
    gr_index_key bound = 0;
    struct gr_block *found = gr_index_seek(&indexed, size, &bound);
    HOT_ASSERT(found == (at < count ? array[at] : NULL));
    if (found) HOT_ASSERT(bound == gr_index_bound(&indexed, found));
}

static void check_all(void) {
    uint64_t bytes = 0;
    struct gr_index_sum sum;
    const char *broken = gr_index_check(&indexed, GR_BLOCK_FREE, &sum);
    ck_assert_msg(broken == NULL, "%s", broken);
    const struct gr_block *b = gr_index_find(&indexed, 1);
    for (size_t i = 0; i < count; i++) {
        HOT_ASSERT(b == array[i]);
        bytes += array[i]->size;
        b = gr_index_next(&indexed, b);
    }
    ck_assert_ptr_null(b);
    const struct gr_block *largest = gr_index_largest(&indexed);
    ck_assert_uint_eq(largest ? largest->size : 0, count ? array[count - 1]->size : 0);
    ck_assert_uint_eq(sum.count, count);
    ck_assert_uint_eq(sum.bytes, bytes);
}

static const char *check_state(enum gr_block_state state) {
    struct gr_index_sum sum;
    return gr_index_check(&indexed, state, &sum);
}

static const char *check(void) {
    return check_state(GR_BLOCK_FREE);
}

/* ---- sizes ------------------------------------------------------------------------------------ */

static size_t one_size(struct rng *rng) {
    (void)rng;
    return 2 * GR_MIB;
}
static size_t two_sizes(struct rng *rng) {
    return rng_once_in(rng, 2) ? 512 : 20 * GR_MIB;
}
static size_t small_sizes(struct rng *rng) {
    return rng_between(rng, 1, 64) * 512;
}
static size_t any_sizes(struct rng *rng) {
    size_t octave = (size_t)1 << rng_between(rng, 9, 46);
    return gr_max(512, gr_align_down(rng_between(rng, octave / 2, octave), 512));
}
static size_t near_powers(struct rng *rng) {
    size_t power = (size_t)1 << rng_between(rng, 14, 45);
    return power + 512 * rng_below(rng, 3) - 512;
}
static size_t near_the_last_list(struct rng *rng) {
    return GR_MIB + 512 * rng_below(rng, 5) - 1024;
}
static size_t in_the_last_bin(struct rng *rng) {
    return ((size_t)64 << 30) + 512 * rng_below(rng, 1 << 20) - 1024;
}

static size_t (*const kinds[])(struct rng *) = {one_size,    two_sizes,          small_sizes,    any_sizes,
                                                near_powers, near_the_last_list, in_the_last_bin};
enum { KINDS = GR_COUNT(kinds) };

static void random_operations(int kind) {
    struct rng rng = {100 + (uint64_t)kind};
    size_t used = 0;
    for (size_t n = 0; n < BLOCKS; n++)
        blocks[n] = (struct gr_block){
            .addr = 0x7f0000000000 + n * 512 * 7, .size = kinds[kind](&rng), .state = GR_BLOCK_FREE};
    for (int step = 0; step < 40000; step++) {
        /* Grows to about 2000 blocks, then goes up and down. */
        if (count == 0 || rng_below(&rng, 4000) > count + 500 * (unsigned)(step / 10000 % 2)) {
            struct gr_block *b = &blocks[used++ % BLOCKS];
            if (b->epoch) continue; /* still in */
            b->epoch = 1;
            insert(b);
        } else {
            /* As an allocator does: mostly the best fit of something, at times any block. */
            size_t at = rng_once_in(&rng, 3) ? rng_below(&rng, count) : fit(kinds[kind](&rng));
            if (at == count) at = count - 1;
            array[at]->epoch = 0;
            remove_at(at);
        }
        check_find(kinds[kind](&rng));
        if (step % 2000 == 0) check_all();
    }
    ck_assert_uint_gt(count, 100);
    check_all();
    while (count > 0) remove_at(rng_below(&rng, count));
    check_all();
    ck_assert_uint_eq(indexed.summary, 0);
}

START_TEST(random_operations_agree_with_an_array_sorted_by_size_and_address) {
    random_operations(_i);
}
END_TEST

START_TEST(with_lists_equal_blocks_below_1_mib_go_to_the_front_below_the_middle_and_else_to_the_end) {
    gr_index_arrange(&indexed, true);
    random_operations(_i);
}
END_TEST

/* ---- equal sizes ------------------------------------------------------------------------------ */

static unsigned depth(const struct gr_block *b) {
    if (b == NULL) return 0;
    unsigned left = depth(b->u.node.child[0]), right = depth(b->u.node.child[1]);
    return 1 + (left > right ? left : right);
}

static const size_t strides[] = {512,         1024,         1536,          4096,          64 * GR_KIB,
                                 GR_MIB,      2 * GR_MIB,   2097152 + 512, 20 * GR_MIB,   22 * GR_MIB,
                                 32 * GR_MIB, 512 * GR_MIB, GR_GIB,        1234567 * 512, 3 * GR_GIB};

START_TEST(a_huge_set_of_one_size_at_even_distances_stays_shallow) {
    size_t stride = strides[_i];
    for (size_t n = 0; n < BLOCKS; n++) {
        blocks[n] =
            (struct gr_block){.addr = 0x400000000000 + n * stride, .size = 512, .state = GR_BLOCK_FREE};
        gr_index_insert(&indexed, &blocks[n]);
    }
    ck_assert_ptr_null(check());
    unsigned deep = depth(indexed.bin[1].root);
    ck_assert_msg(deep <= 100, "%u levels for a stride of %zu", deep,
                  stride); /* 2^14.3 blocks; a list has 20000 */
    ck_assert_ptr_eq(gr_index_find(&indexed, 512), &blocks[0]);
    for (size_t n = 0; n < BLOCKS; n++) { /* the lowest address comes first, each time */
        HOT_ASSERT(gr_index_find(&indexed, 1) == &blocks[n]);
        gr_index_remove(&indexed, &blocks[n]);
    }
    ck_assert_ptr_null(gr_index_find(&indexed, 1));
}
END_TEST

START_TEST(an_empty_index_finds_nothing) {
    gr_index_arrange(&indexed, _i);
    ck_assert_ptr_null(gr_index_find(&indexed, 1));
    ck_assert_ptr_null(gr_index_largest(&indexed));
    check_all();
}
END_TEST

START_TEST(sizes_beyond_all_devices_find_nothing_and_do_not_leave_the_table) {
    blocks[0] = (struct gr_block){.addr = 512, .size = (size_t)1 << 46, .state = GR_BLOCK_FREE};
    insert(&blocks[0]);
    check_find((size_t)1 << 46);
    ck_assert_ptr_eq(gr_index_find(&indexed, (size_t)1 << 46), &blocks[0]);
    ck_assert_ptr_null(gr_index_find(&indexed, ((size_t)1 << 46) + 1));
    ck_assert_ptr_null(gr_index_find(&indexed, SIZE_MAX));
}
END_TEST

START_TEST(a_fit_is_looked_for_in_higher_bins_when_its_own_has_only_smaller_blocks) {
    /* 4 MiB and 16 KiB more share a bin of 32 KiB; the next block is five octaves up. */
    gr_index_arrange(&indexed, _i);
    blocks[0] = (struct gr_block){.addr = 1 << 20, .size = 4 * GR_MIB, .state = GR_BLOCK_FREE};
    blocks[1] = (struct gr_block){.addr = 2 << 20, .size = 128 * GR_MIB, .state = GR_BLOCK_FREE};
    insert(&blocks[0]);
    insert(&blocks[1]);
    ck_assert_uint_eq(gr_index_bin_of(4 * GR_MIB), gr_index_bin_of(4 * GR_MIB + 16 * GR_KIB));
    ck_assert_ptr_eq(gr_index_find(&indexed, 4 * GR_MIB + 16 * GR_KIB), &blocks[1]);
    ck_assert_ptr_eq(gr_index_find(&indexed, 4 * GR_MIB), &blocks[0]);
    ck_assert_ptr_eq(gr_index_find(&indexed, 512), &blocks[0]);
}
END_TEST

START_TEST(bins_never_fall_as_sizes_grow_and_one_below_1_mib_holds_one_size) {
    unsigned last = gr_index_bin_of(512);
    for (size_t size = 1024; size <= 16 * GR_MIB; size += 512) {
        unsigned n = gr_index_bin_of(size);
        HOT_ASSERT(n == last || n == last + 1);
        HOT_ASSERT(size > GR_MIB || n == last + 1);
        last = n;
    }
    for (unsigned e = 24; e < 36; e++) {
        size_t octave = (size_t)1 << e;
        ck_assert_uint_eq(gr_index_bin_of(octave), gr_index_bin_of(octave - 512) + 1);
        ck_assert_uint_eq(gr_index_bin_of(octave), gr_index_bin_of(octave / 2) + 128);
    }
    ck_assert_uint_eq(gr_index_bin_of((size_t)64 << 30), GR_INDEX_BINS - 1);
    ck_assert_uint_eq(gr_index_bin_of((size_t)1 << 55), GR_INDEX_BINS - 1);
}
END_TEST

START_TEST(an_index_that_had_lists_is_sound_and_sorted_without_them) {
    gr_index_arrange(&indexed, true);
    for (size_t n = 0; n < 100; n++) {
        blocks[n] =
            (struct gr_block){.addr = (n + 1) << 20, .size = 512 * (1 + n % 10), .state = GR_BLOCK_FREE};
        gr_index_insert(&indexed, &blocks[n]);
    }
    for (size_t n = 0; n < 100; n++) gr_index_remove(&indexed, &blocks[n]);
    gr_index_arrange(&indexed, false);
    check_all();
    random_operations(2); /* of small sizes */
}
END_TEST

/* ---- the check has teeth ---------------------------------------------------------------------- */

static void fill_some(void) {
    for (size_t n = 0; n < 64; n++) {
        blocks[n] =
            (struct gr_block){.addr = (n + 1) << 20, .size = 512 * (1 + n / 16), .state = GR_BLOCK_FREE};
        insert(&blocks[n]);
    }
    ck_assert_ptr_null(check());
}

START_TEST(a_block_in_the_wrong_bin_a_wrong_bit_or_state_breaks_x1) {
    gr_index_arrange(&indexed, _i);
    fill_some();
    indexed.map[0] ^= 1u << 3;
    ck_assert_str_eq(check(), "X1");
    indexed.map[0] ^= 1u << 3;
    indexed.map[5] = 1;
    ck_assert_str_eq(check(), "X1");
    indexed.map[5] = 0;
    indexed.summary ^= 1u << 9;
    ck_assert_str_eq(check(), "X1");
    indexed.summary ^= 1u << 9;
    blocks[20].size += 512;
    ck_assert_str_eq(check(), "X1");
    blocks[20].size -= 512;
    blocks[20].state = GR_BLOCK_LIVE;
    ck_assert_str_eq(check(), "X1");
    ck_assert_str_eq(check_state(GR_BLOCK_HOLE), "X1");
    blocks[20].state = GR_BLOCK_FREE;
    ck_assert_ptr_null(check());
}
END_TEST

START_TEST(disorder_in_a_treap_breaks_x2) {
    fill_some();
    struct gr_block **first = &indexed.bin[2].first;
    struct gr_block *root = indexed.bin[2].root,
                    *child = root->u.node.child[0] ? root->u.node.child[0] : root->u.node.child[1];
    ck_assert_ptr_nonnull(child);
    child->u.node.parent = *first;
    ck_assert_ptr_nonnull(check());
    child->u.node.parent = root;
    ck_assert_ptr_null(check());
    root->u.node.parent = child;
    ck_assert_str_eq(check(), "X2");
    root->u.node.parent = NULL;
    gr_addr addr = (*first)->addr; /* also changes its priority */
    (*first)->addr = UINT64_C(1) << 40;
    ck_assert_str_eq(check(), "X2");
    (*first)->addr = addr;
    ck_assert_ptr_null(check());
    struct gr_block *least = *first;
    *first = gr_index_next(&indexed, least);
    ck_assert_ptr_nonnull(check());
    *first = least;
    ck_assert_ptr_null(check());
}
END_TEST

START_TEST(a_link_of_a_list_that_leads_elsewhere_breaks_x3) {
    gr_index_arrange(&indexed, true);
    fill_some();
    struct gr_block *b = indexed.bin[2].first->u.list.next, **link = b->u.list.link, *next = b->u.list.next;
    ck_assert_ptr_nonnull(next);
    b->u.list.link = &indexed.bin[2].first;
    ck_assert_str_eq(check(), "X3");
    b->u.list.link = link;
    b->u.list.next = next->u.list.next;
    ck_assert_str_eq(check(), "X3");
    b->u.list.next = next;
    struct gr_block **end = indexed.bin[2].end;
    indexed.bin[2].end = link;
    ck_assert_str_eq(check(), "X3");
    indexed.bin[2].end = end;
    ck_assert_ptr_null(check());
}
END_TEST

Suite *suite_index(void) {
    Suite *suite = suite_create("index");
    TCase *cases = tcase_create("index");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, random_operations_agree_with_an_array_sorted_by_size_and_address, 0, KINDS);
    tcase_add_loop_test(
        cases, with_lists_equal_blocks_below_1_mib_go_to_the_front_below_the_middle_and_else_to_the_end, 0,
        KINDS);
    tcase_add_loop_test(cases, a_huge_set_of_one_size_at_even_distances_stays_shallow, 0,
                        (int)GR_COUNT(strides));
    tcase_add_loop_test(cases, an_empty_index_finds_nothing, 0, 2);
    tcase_add_test(cases, sizes_beyond_all_devices_find_nothing_and_do_not_leave_the_table);
    tcase_add_loop_test(cases, a_fit_is_looked_for_in_higher_bins_when_its_own_has_only_smaller_blocks, 0, 2);
    tcase_add_test(cases, bins_never_fall_as_sizes_grow_and_one_below_1_mib_holds_one_size);
    tcase_add_loop_test(cases, a_block_in_the_wrong_bin_a_wrong_bit_or_state_breaks_x1, 0, 2);
    tcase_add_test(cases, an_index_that_had_lists_is_sound_and_sorted_without_them);
    tcase_add_test(cases, disorder_in_a_treap_breaks_x2);
    tcase_add_test(cases, a_link_of_a_list_that_leads_elsewhere_breaks_x3);
    suite_add_tcase(suite, cases);
    return suite;
}
