/* SPDX-License-Identifier: Apache-2.0
 * Tiles: legal steps, splitting, absorbing, and a check that names each broken invariant. */
#include <check.h>
#include <string.h>

#include "base/check.h"
#include "block/block.h"
#include "support/fixture.h"

enum { GRANULE = 4096, BASE = 0x100000 };

static struct gr_slab slab;

static void setup(void) {
    gr_slab_init(&slab, sizeof(struct gr_block), true);
    ck_assert(gr_slab_reserve(&slab, 16));
}

static void teardown(void) {
    gr_slab_fini(&slab);
}

static struct gr_block *tile(gr_addr addr, size_t size, enum gr_block_state state) {
    struct gr_block *b = gr_slab_take(&slab);
    *b = (struct gr_block){.addr = addr, .size = size, .state = state};
    return b;
}

/* LIVE FREE HOLE LIVE FREE, of one granule each. */
static struct gr_block *row[5];
static void lay_row(void) {
    static const enum gr_block_state states[] = {GR_BLOCK_LIVE, GR_BLOCK_FREE, GR_BLOCK_HOLE, GR_BLOCK_LIVE,
                                                 GR_BLOCK_FREE};
    for (int i = 0; i < 5; i++) {
        row[i] = tile(BASE + (gr_addr)i * GRANULE, GRANULE, states[i]);
        if (i == 0) continue;
        row[i]->prev = row[i - 1];
        row[i - 1]->next = row[i];
    }
}

static const char *check_row(void) {
    return gr_block_check(row[0], GRANULE, false);
}

/* ---- steps ------------------------------------------------------------------------------------ */

static const struct {
    enum gr_block_state from, to;
} legal[] = {{GR_BLOCK_FREE, GR_BLOCK_LIVE},    {GR_BLOCK_LIVE, GR_BLOCK_FREE},
             {GR_BLOCK_LIVE, GR_BLOCK_PENDING}, {GR_BLOCK_PENDING, GR_BLOCK_FREE},
             {GR_BLOCK_HOLE, GR_BLOCK_MOVING},  {GR_BLOCK_MOVING, GR_BLOCK_HOLE},
             {GR_BLOCK_FREE, GR_BLOCK_MOVING},  {GR_BLOCK_MOVING, GR_BLOCK_FREE}};

START_TEST(every_legal_step_is_made) {
    for (size_t i = 0; i < GR_COUNT(legal); i++) {
        struct gr_block b = {.addr = BASE, .size = GRANULE, .state = legal[i].from};
        gr_block_become(&b, legal[i].to);
        ck_assert_uint_eq(b.state, legal[i].to);
        ck_assert_uint_eq(b.size, GRANULE);
    }
}
END_TEST

#if GR_CHECK > 0
struct step {
    int from, to;
};
static void make_step(void *step) {
    struct gr_block b = {.addr = BASE, .size = GRANULE, .state = (unsigned char)((struct step *)step)->from};
    gr_block_become(&b, (enum gr_block_state)((struct step *)step)->to);
}

START_TEST(every_other_step_is_a_broken_b4) {
    for (int from = 0; from <= GR_BLOCK_MOVING + 1; from++)
        for (int to = GR_BLOCK_LIVE; to <= GR_BLOCK_MOVING; to++) {
            bool is_legal = false;
            for (size_t i = 0; i < GR_COUNT(legal); i++)
                is_legal |= (int)legal[i].from == from && (int)legal[i].to == to;
            ck_assert_msg(fixture_aborts(make_step, &(struct step){from, to}) == !is_legal, "step %d to %d",
                          from, to);
        }
}
END_TEST
#endif

/* ---- splitting and absorbing ------------------------------------------------------------------ */

START_TEST(a_split_keeps_the_low_part_and_links_the_rest) {
    lay_row();
    row[1]->epoch = 9;
    struct gr_block *rest = gr_block_split(&slab, row[1], 1024);
    ck_assert_uint_eq(row[1]->size, 1024);
    ck_assert_uint_eq(rest->addr, row[1]->addr + 1024);
    ck_assert_uint_eq(rest->size, GRANULE - 1024);
    ck_assert_uint_eq(rest->state, GR_BLOCK_FREE);
    ck_assert_uint_eq(rest->epoch, 9);
    ck_assert_ptr_eq(row[1]->next, rest);
    ck_assert_ptr_eq(rest->prev, row[1]);
    ck_assert_ptr_eq(rest->next, row[2]);
    ck_assert_ptr_eq(row[2]->prev, rest);
}
END_TEST

START_TEST(the_last_tile_can_be_split) {
    lay_row();
    struct gr_block *rest = gr_block_split(&slab, row[4], 512);
    ck_assert_ptr_null(rest->next);
    ck_assert_uint_eq(gr_block_end(rest), BASE + 5 * GRANULE);
}
END_TEST

START_TEST(absorbing_undoes_a_split_and_keeps_the_newer_epoch) {
    lay_row();
    size_t spare = slab.spare;
    struct gr_block *rest = gr_block_split(&slab, row[1], 1024);
    ck_assert_uint_eq(slab.spare, spare - 1);
    rest->epoch = 7;
    row[1]->epoch = 3;
    gr_block_absorb(&slab, row[1]);
    ck_assert_uint_eq(slab.spare, spare);
    ck_assert_uint_eq(row[1]->size, GRANULE);
    ck_assert_uint_eq(row[1]->epoch, 7);
    ck_assert_ptr_null(check_row());
    rest = gr_block_split(&slab, row[1], 1024);
    rest->epoch = 2;
    gr_block_absorb(&slab, row[1]);
    ck_assert_uint_eq(row[1]->epoch, 7); /* the left one is the newer now */
}
END_TEST

START_TEST(a_block_that_was_absorbed_can_no_longer_be_taken_for_a_live_one) {
    lay_row();
    struct gr_block *rest = gr_block_split(&slab, row[0], 1024);
    ck_assert_uint_eq(rest->state, GR_BLOCK_LIVE);
    gr_block_absorb(&slab, row[0]);
    ck_assert_uint_ne(rest->state, GR_BLOCK_LIVE);
}
END_TEST

/* ---- the check has teeth ---------------------------------------------------------------------- */

START_TEST(a_sound_row_passes) {
    lay_row();
    ck_assert_ptr_null(check_row());
}
END_TEST

START_TEST(gaps_overlaps_and_wrong_links_break_b1) {
    lay_row();
    row[1]->size -= 512;
    ck_assert_str_eq(check_row(), "B1");
    row[1]->size += 1024;
    ck_assert_str_eq(check_row(), "B1");
    row[1]->size -= 512;
    row[3]->prev = row[1];
    ck_assert_str_eq(check_row(), "B1");
    row[3]->prev = row[2];
    ck_assert_ptr_null(check_row());
}
END_TEST

START_TEST(free_or_hole_neighbours_break_b2_and_others_do_not) {
    lay_row();
    row[2]->state = GR_BLOCK_FREE;
    ck_assert_str_eq(check_row(), "B2");
    row[2]->state = row[1]->state = GR_BLOCK_HOLE;
    ck_assert_str_eq(check_row(), "B2");
    row[1]->state = row[2]->state = GR_BLOCK_LIVE;
    ck_assert_ptr_null(check_row());
    row[1]->state = row[2]->state = GR_BLOCK_PENDING;
    ck_assert_ptr_null(check_row());
}
END_TEST

START_TEST(sizes_and_edges_off_their_grid_break_b3) {
    lay_row();
    row[4]->size = 0;
    ck_assert_str_eq(check_row(), "B3");
    row[4]->size = 100;
    ck_assert_str_eq(check_row(), "B3");
    row[4]->size = GRANULE;
    row[1]->size += 512; /* the hole begins inside a granule */
    row[2]->addr += 512;
    row[2]->size -= 512;
    ck_assert_str_eq(check_row(), "B3");
    row[2]->state = GR_BLOCK_LIVE; /* for other tiles that is no fault */
    ck_assert_ptr_null(check_row());
}
END_TEST

START_TEST(unknown_states_and_moving_outside_of_a_miss_break_b4) {
    lay_row();
    row[0]->state = 0;
    ck_assert_str_eq(check_row(), "B4");
    row[0]->state = GR_BLOCK_MOVING + 1;
    ck_assert_str_eq(check_row(), "B4");
    row[0]->state = GR_BLOCK_MOVING;
    ck_assert_str_eq(check_row(), "B4");
    ck_assert_ptr_null(gr_block_check(row[0], GRANULE, true));
}
END_TEST

Suite *suite_block(void) {
    Suite *suite = suite_create("block");
    TCase *cases = tcase_create("block");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, every_legal_step_is_made);
#if GR_CHECK > 0
    tcase_add_test(cases, every_other_step_is_a_broken_b4);
#endif
    tcase_add_test(cases, a_split_keeps_the_low_part_and_links_the_rest);
    tcase_add_test(cases, the_last_tile_can_be_split);
    tcase_add_test(cases, absorbing_undoes_a_split_and_keeps_the_newer_epoch);
    tcase_add_test(cases, a_block_that_was_absorbed_can_no_longer_be_taken_for_a_live_one);
    tcase_add_test(cases, a_sound_row_passes);
    tcase_add_test(cases, gaps_overlaps_and_wrong_links_break_b1);
    tcase_add_test(cases, free_or_hole_neighbours_break_b2_and_others_do_not);
    tcase_add_test(cases, sizes_and_edges_off_their_grid_break_b3);
    tcase_add_test(cases, unknown_states_and_moving_outside_of_a_miss_break_b4);
    suite_add_tcase(suite, cases);
    return suite;
}
