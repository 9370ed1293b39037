/* SPDX-License-Identifier: Apache-2.0
 * Claims find whole extents under free blocks, of the right age and about the right amount, and what
 * could not be unmapped comes back. */
#include <check.h>

#include "support/fixture.h"
#include "support/lone_pool.h"

enum { G = 2 * 1024 * 1024 };

static struct lone_pool lone;
static struct gr_segment *segment;
static struct gr_idle idle;

static void setup(void) {
    lone_pool_open(&lone, GR_LARGE, true);
    segment = lone_pool_add_range(&lone, 32);
}

static void teardown(void) {
    const char *broken = lone_pool_check(&lone);
    ck_assert_msg(broken == NULL, "%s", broken);
    lone_pool_close(&lone);
}

static bool claim(size_t granules, uint32_t epoch) {
    return gr_idle_claim(&lone.pool, granules * (size_t)G, epoch, &idle);
}

/* Takes the first so many extents of the claim away, and ends it. */
static void finish(size_t extents) {
    size_t slot = gr_range_slot_of(&segment->range, idle.block->addr);
    for (; extents > 0; extents--) {
        struct gr_extent *extent = segment->range.slot[slot];
        slot += extent->granules;
        ck_assert_int_eq(gr_range_unmap(&segment->range, &lone.driver, extent), GRANARY_OK);
        gr_extents_release(&lone.extents, extent);
    }
    gr_idle_finish(&lone.pool, &idle);
}

START_TEST(a_pool_without_free_memory_has_nothing_idle) {
    (void)lone_pool_take(&lone, 4 * G, 1);
    ck_assert(!claim(1, UINT32_MAX));
    ck_assert_uint_eq(gr_idle_total(&lone.pool, SIZE_MAX), 0);
    ck_assert_str_eq(lone_pool_tiles(segment), "L4 H28");
}
END_TEST

START_TEST(a_whole_free_block_is_claimed_and_becomes_a_hole) {
    struct gr_block *keep = lone_pool_take(&lone, 2 * G, 1), *b = lone_pool_take(&lone, 3 * G, 1);
    lone_pool_put(&lone, b);
    ck_assert_uint_eq(gr_idle_total(&lone.pool, SIZE_MAX), 3 * (size_t)G);
    ck_assert(claim(3, UINT32_MAX));
    ck_assert_str_eq(lone_pool_tiles(segment), "L2 M3 H27");
    ck_assert_uint_eq(idle.bytes, 3 * (size_t)G);
    ck_assert_ptr_null(gr_pool_check(&lone.pool, true));
    finish(3);
    ck_assert_str_eq(lone_pool_tiles(segment), "L2 H30"); /* one hole with the one beside it */
    lone_pool_put(&lone, keep);
}
END_TEST

START_TEST(of_a_large_block_about_the_wanted_amount_is_cut_off) {
    lone_pool_put(&lone, lone_pool_take(&lone, 8 * G, 1));
    ck_assert(claim(2, UINT32_MAX));
    ck_assert_uint_eq(idle.bytes, 2 * (size_t)G);
    ck_assert_str_eq(lone_pool_tiles(segment), "F6 M2 H24");
    finish(2);
    ck_assert_str_eq(lone_pool_tiles(segment), "F6 H26");
}
END_TEST

START_TEST(an_extent_that_a_live_block_touches_is_not_idle) {
    /* Extents of 2 granules: [0,1] [2,3] [4,5]; live is the first and the last 1.5 MiB. */
    struct gr_block *b = lone_pool_take(&lone, 6 * G, 2), *a, *c;
    lone_pool_put(&lone, b);
    a = lone_pool_take(&lone, 3 * GR_MIB / 2, 2);
    b = lone_pool_take(&lone, 9 * GR_MIB, 2);
    c = lone_pool_take(&lone, 3 * GR_MIB / 2, 2);
    lone_pool_put(&lone, b);
    ck_assert_uint_eq(gr_idle_total(&lone.pool, SIZE_MAX), 2 * (size_t)G);
    ck_assert(claim(6, UINT32_MAX));
    ck_assert_uint_eq(idle.bytes, 2 * (size_t)G);
    ck_assert_uint_eq(idle.block->addr, segment->base + 2 * G);
    finish(1);
    ck_assert_uint_eq(segment->range.mapped, 4);
    lone_pool_put(&lone, a);
    lone_pool_put(&lone, c);
}
END_TEST

START_TEST(a_free_block_inside_one_extent_has_nothing_idle) {
    struct gr_block *b = lone_pool_take(&lone, 4 * G, 4), *a;
    lone_pool_put(&lone, b);
    a = lone_pool_take(&lone, 3 * GR_MIB, 4);
    b = lone_pool_take(&lone, 4 * GR_MIB, 4);
    struct gr_block *c = lone_pool_take(&lone, GR_MIB, 4);
    lone_pool_put(&lone, b);
    ck_assert_uint_eq(gr_idle_total(&lone.pool, SIZE_MAX), 0);
    ck_assert(!claim(1, UINT32_MAX));
    ck_assert_ptr_null(lone_pool_check(&lone)); /* and a refusal leaves every tile in its index */
    lone_pool_put(&lone, a);
    lone_pool_put(&lone, c);
}
END_TEST

START_TEST(memory_that_was_freed_later_than_asked_is_left_alone) {
    struct gr_block *a = lone_pool_take(&lone, 2 * G, 1), *keep = lone_pool_take(&lone, G, 1),
                    *b = lone_pool_take(&lone, 3 * G, 1);
    lone_pool_put(&lone, a); /* epoch 1 */
    atomic_fetch_add(&lone.stream.epoch, 1);
    lone_pool_put(&lone, b); /* epoch 2 */
    ck_assert(!claim(1, 0));
    ck_assert(claim(3, 1)); /* only two are that old */
    ck_assert_uint_eq(idle.bytes, 2 * (size_t)G);
    ck_assert_uint_eq(idle.epoch, 1);
    finish(0);
    ck_assert(claim(3, 2));
    ck_assert_uint_eq(idle.bytes, 3 * (size_t)G);
    ck_assert_uint_eq(idle.epoch, 2);
    finish(0);
    lone_pool_put(&lone, keep);
}
END_TEST

START_TEST(the_smallest_block_that_has_enough_is_chosen) {
    static const size_t granules[] = {6, 1, 2, 1, 4, 1};
    struct gr_block *b[6];
    for (int i = 0; i < 6; i++) b[i] = lone_pool_take(&lone, granules[i] * (size_t)G, 1);
    for (int i = 0; i < 6; i += 2) lone_pool_put(&lone, b[i]);
    ck_assert(claim(3, UINT32_MAX));
    ck_assert_str_eq(lone_pool_tiles(segment), "F6 L1 F2 L1 F1 M3 L1 H17");
    finish(0);
    ck_assert(claim(10, UINT32_MAX)); /* none has that: the one with most */
    ck_assert_str_eq(lone_pool_tiles(segment), "M6 L1 F2 L1 F4 L1 H17");
    finish(0);
    ck_assert_str_eq(lone_pool_tiles(segment), "F6 L1 F2 L1 F4 L1 H17");
}
END_TEST

START_TEST(a_claim_that_is_stripped_half_way_is_half_hole_half_free) {
    struct gr_block *keep = lone_pool_take(&lone, G, 1), *b = lone_pool_take(&lone, 4 * G, 1),
                    *right = lone_pool_take(&lone, G, 1);
    lone_pool_put(&lone, b);
    ck_assert(claim(4, UINT32_MAX));
    finish(1);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 H1 F3 L1 H26");
    ck_assert(claim(4, UINT32_MAX));
    finish(3);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 H4 L1 H26");
    lone_pool_put(&lone, keep);
    lone_pool_put(&lone, right);
}
END_TEST

START_TEST(hits_may_use_up_every_tile_while_a_claim_is_under_way) {
    /* The cut that a half stripped claim needs must not depend on what hits have left in the slab. */
    struct gr_block *keep, *b = lone_pool_take(&lone, 4 * G, 1), *cut;
    keep = lone_pool_take(&lone, G, 1);
    lone_pool_put(&lone, lone_pool_take(&lone, 6 * G, 1));
    lone_pool_put(&lone, b);
    ck_assert_str_eq(lone_pool_tiles(segment), "F4 L1 F6 H21");
    ck_assert(claim(4, UINT32_MAX));
    ck_assert_str_eq(lone_pool_tiles(segment), "M4 L1 F6 H21");
    cut = lone_pool_take(&lone, G, 1); /* a hit that cuts */
    void *taken[512];
    size_t count = 0;
    while (lone.pool.blocks.spare > 0)
        taken[count++] = gr_slab_take(&lone.pool.blocks); /* and all those after it */
    finish(1);
    ck_assert_str_eq(lone_pool_tiles(segment), "H1 F3 L1 L1 F5 H21");
    while (count > 0) gr_slab_give(&lone.pool.blocks, taken[--count]);
    lone_pool_put(&lone, keep);
    lone_pool_put(&lone, cut);
}
END_TEST

START_TEST(counting_stops_at_enough) {
    struct gr_block *a = lone_pool_take(&lone, 2 * G, 1), *keep = lone_pool_take(&lone, G, 1),
                    *b = lone_pool_take(&lone, 3 * G, 1);
    lone_pool_put(&lone, a);
    lone_pool_put(&lone, b);
    ck_assert_uint_eq(gr_idle_total(&lone.pool, SIZE_MAX), 5 * (size_t)G);
    ck_assert_uint_ge(gr_idle_total(&lone.pool, G), G);
    ck_assert_uint_le(gr_idle_total(&lone.pool, G), 5 * (size_t)G);
    lone_pool_put(&lone, keep);
}
END_TEST

static void open_classic(void) {
    lone_pool_open(&lone, GR_LARGE, false);
    segment = lone_pool_add_classic(&lone, 20 * GR_MIB);
}

START_TEST(a_classic_segment_is_idle_when_one_free_block_covers_it) {
    struct gr_block *b;
    ck_assert_uint_eq(gr_idle_total(&lone.pool, SIZE_MAX), 20 * GR_MIB);
    ck_assert_int_eq(gr_pool_take(&lone.pool, 2 * G, 2 * G, false, &b), GRANARY_OK);
    if (gr_ledger_alloc(&lone.pool.tally, b->addr, b->size, 2 * G, &b->label))
        gr_ledger_settle(&lone.ledger, &lone.pool.tally);
    ck_assert_uint_eq(gr_idle_total(&lone.pool, SIZE_MAX), 0);
    ck_assert(!claim(1, UINT32_MAX));
    lone_pool_put(&lone, b);
    ck_assert(claim(1, UINT32_MAX));
    ck_assert_uint_eq(idle.bytes, 20 * GR_MIB);
    ck_assert_ptr_eq(idle.segment, segment);
    gr_idle_finish(&lone.pool, &idle);
    ck_assert_str_eq(lone_pool_tiles(segment), "F10");
}
END_TEST

Suite *suite_idle(void) {
    Suite *suite = suite_create("idle");
    TCase *cases = tcase_create("expandable"), *classic = tcase_create("classic");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_pool_without_free_memory_has_nothing_idle);
    tcase_add_test(cases, a_whole_free_block_is_claimed_and_becomes_a_hole);
    tcase_add_test(cases, of_a_large_block_about_the_wanted_amount_is_cut_off);
    tcase_add_test(cases, an_extent_that_a_live_block_touches_is_not_idle);
    tcase_add_test(cases, a_free_block_inside_one_extent_has_nothing_idle);
    tcase_add_test(cases, memory_that_was_freed_later_than_asked_is_left_alone);
    tcase_add_test(cases, the_smallest_block_that_has_enough_is_chosen);
    tcase_add_test(cases, a_claim_that_is_stripped_half_way_is_half_hole_half_free);
    tcase_add_test(cases, hits_may_use_up_every_tile_while_a_claim_is_under_way);
    tcase_add_test(cases, counting_stops_at_enough);
    suite_add_tcase(suite, cases);
    tcase_add_checked_fixture(classic, open_classic, teardown);
    tcase_add_test(classic, a_classic_segment_is_idle_when_one_free_block_covers_it);
    suite_add_tcase(suite, classic);
    return suite;
}
