/* SPDX-License-Identifier: Apache-2.0
 * The set of live blocks finds each at its address alone, while it grows too, and stays short-chained. */
#include <check.h>
#include <stdlib.h>

#include "block/live.h"
#include "support/hot.h"
#include "support/rng.h"

enum { BLOCKS = 20000 };

static struct gr_live live;
static struct gr_block *blocks; /* BLOCKS of them */

static const gr_addr base = 0x7f1234000000;

static void setup(void) {
    gr_live_init(&live);
    blocks = calloc(BLOCKS, sizeof *blocks);
    ck_assert_ptr_nonnull(blocks);
}

static void teardown(void) {
    gr_live_fini(&live);
    ck_assert_ptr_null(live.bucket);
    free(blocks);
}

static void lay_some(size_t count, size_t stride) {
    for (size_t i = 0; i < count; i++)
        blocks[i] = (struct gr_block){.addr = base + i * stride, .size = 512, .state = GR_BLOCK_LIVE};
}

static void lay(size_t stride) {
    lay_some(BLOCKS, stride);
}

static void add(size_t from, size_t to) {
    for (size_t i = from; i < to; i++) gr_live_add(&live, &blocks[i]);
}

START_TEST(a_block_is_found_at_its_address_alone) {
    lay(1024);
    add(0, 1);
    ck_assert_ptr_eq(gr_live_find(&live, base), &blocks[0]);
    ck_assert_ptr_null(gr_live_find(&live, base + 1));
    ck_assert_ptr_null(gr_live_find(&live, base + 512));
    ck_assert_ptr_null(gr_live_find(&live, 0));
    ck_assert_ptr_null(gr_live_find(&live, UINT64_MAX));
    gr_live_remove(&live, gr_live_link(&live, blocks[0].addr));
    ck_assert_ptr_null(gr_live_find(&live, base));
    ck_assert_ptr_null(gr_live_check(&live));
}
END_TEST

START_TEST(a_set_grows_in_steps_and_finds_everything_meanwhile) {
    size_t growing = 0;
    lay(512);
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t moved = live.old ? live.moved : 0;
        add(i, i + 1);
        growing += live.old != NULL;
        if (live.old && moved > 0) ck_assert_uint_le(live.moved - moved, 4);
        HOT_ASSERT(gr_live_find(&live, base + i / 2 * 512) == &blocks[i / 2]);
        HOT_ASSERT(gr_live_find(&live, base + i * 512) == &blocks[i]);
        HOT_ASSERT(gr_live_find(&live, base + (i + 1) * 512) == NULL);
        if (i % 1000 == 0) ck_assert_ptr_null(gr_live_check(&live));
    }
    ck_assert_uint_gt(growing, 1000);
    ck_assert_uint_ge(gr_live_buckets(&live), 2 * BLOCKS);
    ck_assert_uint_lt(gr_live_buckets(&live), 4 * BLOCKS);
}
END_TEST

START_TEST(a_set_grows_on_with_each_addition_though_blocks_go_meanwhile) {
    lay(512);
    for (size_t i = 0; !live.old || live.moved > 4; i++) add(i, i + 1); /* a growth begins */
    const size_t old = gr_live_buckets(&live) / 2, most = live.count;
    for (size_t i = 0; i < most - 1; i++) gr_live_remove(&live, gr_live_link(&live, blocks[i].addr));
    for (size_t i = 1; live.old; i++) {
        ck_assert_uint_le(4 * i, old);
        add(BLOCKS - i, BLOCKS - i + 1);
    }
    ck_assert_uint_eq(live.due, old);
    ck_assert_ptr_null(gr_live_check(&live));
}
END_TEST

static size_t longest_chain(void) {
    size_t longest = 0;
    for (size_t i = 0; i < gr_live_buckets(&live); i++) {
        size_t length = 0;
        for (const struct gr_block *b = live.bucket[i]; b; b = b->u.live.chain) length++;
        longest = gr_max(longest, length);
    }
    return longest;
}

static const size_t strides[] = {512,         1024,         1536,          4096,          64 * GR_KIB,
                                 GR_MIB,      2 * GR_MIB,   2097152 + 512, 20 * GR_MIB,   22 * GR_MIB,
                                 32 * GR_MIB, 512 * GR_MIB, GR_GIB,        1234567 * 512, 3 * GR_GIB};

/* Steps to find a block, in the mean. */
static double mean_search(size_t count) {
    double steps = 0;
    for (size_t i = 0; i < gr_live_buckets(&live); i++) {
        double place = 0;
        for (const struct gr_block *b = live.bucket[i]; b; b = b->u.live.chain) steps += ++place;
    }
    return steps / (double)count;
}

START_TEST(a_search_takes_two_steps_at_most_in_the_mean_at_any_even_distance) {
    enum { COUNT = 2000 };
    struct rng rng = {5};
    double worst = 0;
    for (int trial = 0; trial < 400; trial++) {
        const size_t units = trial < 200 ? 1 + rng_below(&rng, 4096) : 4096 * (1 + rng_below(&rng, 512));
        lay_some(COUNT, units * 512);
        add(0, COUNT);
        worst = mean_search(COUNT) > worst ? mean_search(COUNT) : worst;
        gr_live_fini(&live);
        gr_live_init(&live);
    }
    ck_assert_msg(worst < 2, "%.2f steps", worst);
}
END_TEST

START_TEST(chains_stay_short_at_even_distances) {
    lay(strides[_i]);
    add(0, BLOCKS);
    ck_assert_msg(longest_chain() <= 6, "%zu blocks in one bucket", longest_chain());
}
END_TEST

START_TEST(random_additions_and_removals_agree_with_an_array) {
    static bool in[BLOCKS];
    struct rng rng = {11};
    lay(3 * 512);
    size_t count = 0;
    for (int step = 0; step < 100000; step++) {
        size_t room = (size_t)step / 5 + 10;
        size_t i = rng_below(&rng, gr_min(room, BLOCKS)), look = rng_below(&rng, gr_min(room, BLOCKS));
        if (in[i])
            gr_live_remove(&live, gr_live_link(&live, blocks[i].addr));
        else
            gr_live_add(&live, &blocks[i]);
        in[i] = !in[i];
        count += in[i] ? 1 : (size_t)-1;
        HOT_ASSERT(live.count == count);
        HOT_ASSERT(gr_live_find(&live, blocks[look].addr) == (in[look] ? &blocks[look] : NULL));
        if (step % 5000 == 0) ck_assert_ptr_null(gr_live_check(&live));
    }
    ck_assert_uint_gt(gr_live_buckets(&live), GR_LIVE_FEW);
}
END_TEST

START_TEST(what_is_not_live_or_in_a_wrong_bucket_breaks_a1_and_a_wrong_count_a2) {
    int growing = 0;
    lay(512);
    for (size_t from = 0, n = GR_LIVE_FEW / 2; n <= 20; from = n, n += 2) { /* at rest, and growing */
        add(from, n);
        ck_assert(from > 0 || live.old == NULL);
        growing += live.old != NULL;
        ck_assert_ptr_null(gr_live_check(&live));
        for (size_t i = 0; i < n; i++) {
            blocks[i].state = GR_BLOCK_FREE;
            ck_assert_str_eq(gr_live_check(&live), "A1");
            blocks[i].state = GR_BLOCK_LIVE;
        }
        blocks[3].addr += 512 * 7;
        ck_assert_str_eq(gr_live_check(&live), "A1");
        blocks[3].addr -= 512 * 7;
        live.count++;
        ck_assert_str_eq(gr_live_check(&live), "A2");
        live.count--;
    }
    ck_assert_int_gt(growing, 0);
}
END_TEST

Suite *suite_live(void) {
    Suite *suite = suite_create("live");
    TCase *cases = tcase_create("live");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_block_is_found_at_its_address_alone);
    tcase_add_test(cases, a_set_grows_in_steps_and_finds_everything_meanwhile);
    tcase_add_test(cases, a_set_grows_on_with_each_addition_though_blocks_go_meanwhile);
    tcase_add_loop_test(cases, chains_stay_short_at_even_distances, 0, (int)GR_COUNT(strides));
    tcase_add_test(cases, a_search_takes_two_steps_at_most_in_the_mean_at_any_even_distance);
    tcase_add_test(cases, random_additions_and_removals_agree_with_an_array);
    tcase_add_test(cases, what_is_not_live_or_in_a_wrong_bucket_breaks_a1_and_a_wrong_count_a2);
    suite_add_tcase(suite, cases);
    return suite;
}
