/* SPDX-License-Identifier: Apache-2.0
 * Growth goes where the fewest granules are missing, claims exactly that, and gives it back whole
 * when it fails. */
#include <check.h>

#include "policy/backing.h"
#include "support/fixture.h"
#include "support/lone_pool.h"
#include "support/rng.h"

enum { G = 2 * 1024 * 1024 };

static struct lone_pool lone;
static struct gr_segment *segment;
static struct gr_growth growth;

static void setup(void) {
    lone_pool_open(&lone, GR_LARGE, true);
    segment = lone_pool_add_range(&lone, 32);
}

static void teardown(void) {
    const char *broken = lone_pool_check(&lone);
    ck_assert_msg(broken == NULL, "%s", broken);
    lone_pool_close(&lone);
}

/* Takes blocks of so many granules each, one behind the other, and gives back those that are
 * negative as free memory ('F') and those above 100 as holes. */
static void lay(const int *row, size_t count) {
    struct gr_block *b[16];
    for (size_t i = 0; i < count; i++)
        b[i] = lone_pool_take(&lone, (size_t)(row[i] < 0 ? -row[i] : row[i] % 100) * G, 1);
    for (size_t i = 0; i < count; i++)
        if (row[i] < 0) lone_pool_put(&lone, b[i]);
    for (size_t i = 0; i < count; i++) {
        if (row[i] < 100) continue;
        gr_live_remove(&lone.pool.live, gr_live_link(&lone.pool.live, b[i]->addr));
        gr_ledger_free(&lone.pool.tally, b[i]->addr, b[i]->size, b[i]->u.live.requested, 0);
        gr_block_become(b[i], GR_BLOCK_FREE); /* passes by the index on its way */
        gr_block_become(b[i], GR_BLOCK_MOVING);
        for (size_t s = gr_range_slot_of(&segment->range, b[i]->addr), n = b[i]->size / G; n > 0; n--, s++) {
            struct gr_extent *extent = segment->range.slot[s];
            ck_assert_int_eq(gr_range_unmap(&segment->range, &lone.driver, extent), GRANARY_OK);
            gr_extents_release(&lone.extents, extent);
        }
        gr_pool_put_hole(&lone.pool, b[i]);
    }
    ck_assert_ptr_null(lone_pool_check(&lone));
}

static void plan(size_t size, const char *claimed) {
    ck_assert_int_eq(gr_grow_plan(&lone.pool, size, &growth), GRANARY_OK);
    ck_assert_ptr_eq(growth.segment, segment);
    ck_assert_str_eq(lone_pool_tiles(segment), claimed);
    ck_assert_ptr_null(gr_pool_check(&lone.pool, true));
}

static void commit(const char *after) {
    lone_pool_back(&lone, &growth, SIZE_MAX);
    gr_grow_finish(&lone.pool, &growth);
    ck_assert_str_eq(lone_pool_tiles(segment), after);
}

static void give_up(const char *before) {
    gr_grow_finish(&lone.pool, &growth);
    ck_assert_str_eq(lone_pool_tiles(segment), before);
}

/* ---- places ----------------------------------------------------------------------------------- */

START_TEST(an_empty_range_is_backed_from_its_start_with_what_is_needed_alone) {
    plan(3 * GR_MIB, "M2 H30");
    ck_assert_uint_eq(growth.missing, 2);
    commit("F2 H30");
}
END_TEST

START_TEST(a_free_block_at_the_edge_of_a_hole_is_grown_by_the_shortfall) {
    lay((int[]){2, -3}, 2);
    plan(5 * G, "L2 M3 M2 H25");
    ck_assert_uint_eq(growth.missing, 2);
    commit("L2 F5 H25");
}
END_TEST

START_TEST(free_memory_right_of_a_hole_is_used_too) {
    lay((int[]){1, 102, -3, 1}, 4);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 H2 F3 L1 H25");
    plan(4 * G, "L1 H1 M1 M3 L1 H25");
    ck_assert_uint_eq(growth.missing, 1);
    commit("L1 H1 F4 L1 H25");
}
END_TEST

START_TEST(several_holes_and_the_free_blocks_between_them_make_one_place) {
    lay((int[]){1, 101, -2, 101, -2, 101, 1}, 7);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 H1 F2 H1 F2 H1 L1 H23");
    plan(7 * G, "L1 M1 M2 M1 M2 M1 L1 H23");
    ck_assert_uint_eq(growth.missing, 3);
    commit("L1 F7 L1 H23");
}
END_TEST

START_TEST(the_place_that_misses_least_wins_over_a_lower_one) {
    lay((int[]){1, 104, 1, 101, -4, 1}, 6);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 H4 L1 H1 F4 L1 H20");
    plan(5 * G - 512, "L1 H4 L1 M1 m8388096 f512 L1 H20"); /* one granule, not four or five elsewhere */
    ck_assert_uint_eq(growth.missing, 1);
    give_up("L1 H4 L1 H1 F4 L1 H20");
}
END_TEST

START_TEST(free_memory_beyond_the_place_stays_free_to_serve_and_to_move) {
    struct gr_idle idle;
    lay((int[]){-6, 103, -6, 1}, 4);
    ck_assert_str_eq(lone_pool_tiles(segment), "F6 H3 F6 L1 H16");
    plan(11 * (size_t)G, "M6 M3 M2 F4 L1 H16");
    ck_assert_uint_eq(growth.missing, 3);
    ck_assert(gr_idle_claim(&lone.pool, 4 * G, UINT32_MAX, &idle));
    ck_assert_uint_eq(idle.bytes, 4 * G);
    gr_idle_finish(&lone.pool, &idle);
    give_up("F6 H3 F6 L1 H16");
}
END_TEST

/* Left, three granules of an extent that is pinned, and two missing; right, an idle extent of four,
 * and one missing. */
static void lay_pinned_and_idle(void) {
    struct gr_block *left, *right, *hole;
    lone_pool_put(&lone, lone_pool_take(&lone, 4 * G, 4));
    (void)lone_pool_take(&lone, G, 1);
    left = lone_pool_take(&lone, 5 * G, 2);
    (void)lone_pool_take(&lone, G, 1);
    right = lone_pool_take(&lone, 4 * G, 4);
    hole = lone_pool_take(&lone, G, 1);
    (void)lone_pool_take(&lone, G, 1);
    lone_pool_put(&lone, hole);
    lone_pool_evict(&lone, G);
    lone_pool_put(&lone, left);
    lone_pool_evict(&lone, 2 * G);
    lone_pool_put(&lone, right);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 F3 H2 L1 F4 H1 L1 H19");
}

START_TEST(a_place_is_chosen_by_what_it_misses_while_memory_is_plenty) {
    lay_pinned_and_idle();
    plan(5 * (size_t)G, "L1 F3 H2 L1 M4 M1 L1 H19");
    give_up("L1 F3 H2 L1 F4 H1 L1 H19");
}
END_TEST

START_TEST(a_sparing_pool_counts_what_a_place_would_pin_as_well) {
    lay_pinned_and_idle();
    lone.pool.sparing = 12;
    plan(5 * (size_t)G, "L1 M3 M2 L1 F4 H1 L1 H19");
    give_up("L1 F3 H2 L1 F4 H1 L1 H19");
}
END_TEST

/* A block of so many granules is given back, and its first `used` bytes are taken again; the granules
 * behind those become a hole. */
static void use_again(struct gr_block *b, size_t used) {
    lone_pool_put(&lone, b);
    (void)lone_pool_take(&lone, used, 1);
    lone_pool_evict(&lone, G);
}

enum { KIB = 1024, REQUEST = G + 512 * KIB };

/* A piece of a granule beside a hole, and so many granules that are free. */
static void lay_piece_and_free(size_t granules) {
    struct gr_block *b = lone_pool_take(&lone, granules * G, 1), *a;
    (void)lone_pool_take(&lone, G, 1);
    a = lone_pool_take(&lone, 2 * G, 1);
    use_again(a, 1408 * KIB);
    lone_pool_put(&lone, b);
    gr_pool_settle(&lone.pool);
}

START_TEST(a_sparing_pool_grows_though_a_block_fits_when_that_pins_less) {
    const char *before = "F2 L1 l1441792 f655360 H28";
    lay_piece_and_free(2);
    ck_assert_str_eq(lone_pool_tiles(segment), before);
    ck_assert_int_eq(gr_grow_plan(&lone.pool, REQUEST, &growth), GRANARY_OK);
    ck_assert_uint_eq(growth.missing, 0); /* memory is plenty */
    lone.pool.sparing = 12;
    ck_assert(gr_pool_is_dear(&lone.pool, REQUEST));
    plan(REQUEST, "F2 L1 l1441792 m655360 M1 H27");
    ck_assert_uint_eq(growth.missing, 1);
    commit("F2 L1 l1441792 f2752512 H27");
    ck_assert(!gr_pool_is_dear(&lone.pool, REQUEST));
    (void)lone_pool_take(&lone, REQUEST, 1);
    ck_assert_str_eq(lone_pool_tiles(segment), "F2 L1 l1441792 l2621440 f131072 H27");
}
END_TEST

START_TEST(whoever_cannot_grow_takes_the_block_that_is_dear) {
    lay_piece_and_free(2);
    lone.pool.sparing = 12;
    (void)lone_pool_take(&lone, REQUEST, 1);
    ck_assert_str_eq(lone_pool_tiles(segment), "l2621440 f1572864 L1 l1441792 f655360 H28");
}
END_TEST

/* Up to so many granules it pays to grow, by one less than the block that fits would pin. */
static void growing_pays_up_to(size_t most) {
    for (size_t granules = 1; granules <= 13; granules++) {
        const size_t size = granules * G + 512 * KIB;
        struct gr_fit fit = gr_pool_choose(&lone.pool, size, false);
        ck_assert_ptr_nonnull(fit.block);
        ck_assert_uint_eq(fit.cost, granules + 1);
        ck_assert_int_eq(gr_grow_pays(&lone.pool, size, &fit), granules + 1 <= most);
        fit.cost--;
        fit.company = 1;
        ck_assert(!gr_grow_pays(&lone.pool, size, &fit)); /* nothing is saved */
    }
}

START_TEST(growing_does_not_pay_when_nothing_is_saved_or_too_much_would_move) {
    lay_piece_and_free(14);
    lone.pool.tight = SIZE_MAX;
    lone.pool.sparing = 4;
    growing_pays_up_to(4);
    lone.pool.sparing = 12;
    growing_pays_up_to(12);
}
END_TEST

START_TEST(more_may_move_while_memory_is_tight) {
    lay_piece_and_free(14);
    lone.pool.sparing = 4;
    lone.pool.tight = 0;
    growing_pays_up_to(12);
}
END_TEST

START_TEST(of_equal_places_a_sparing_pool_takes_the_one_in_the_youngest_company) {
    lay((int[]){1, 102, 1, 102, 1}, 5);
    lone.pool.sparing = 12;
    plan(2 * G, "L1 H2 L1 M2 L1 H25");
    give_up("L1 H2 L1 H2 L1 H25");
}
END_TEST

START_TEST(company_of_a_place_is_what_it_touches) {
    lay((int[]){1, 104, 1}, 3);
    lone.pool.sparing = 12;
    plan(2 * G,
         "L1 H4 L1 M2 H24"); /* not that of the hole, whose right end a place at its left leaves free */
    give_up("L1 H4 L1 H26");
}
END_TEST

START_TEST(a_place_that_begins_inside_a_hole_is_not_in_the_company_left_of_it) {
    lay((int[]){1, 102, -1, 1}, 4);
    segment->first->born = gr_pool_now(&lone.pool) - 1; /* the youngest of all */
    segment->first->next->next->next->born--;
    lone.pool.sparing = 12;
    plan(2 * G, "L1 M2 F1 L1 H27");
    give_up("L1 H2 F1 L1 H27");
}
END_TEST

enum { APART = 64 };

/* Two granules are free beside a block that was handed out `ago` blocks ago, and a hole is beside the last one. */
static void lay_old_and_young(uint32_t ago) {
    lay((int[]){-2, 1, 1}, 3);
    ck_assert_str_eq(lone_pool_tiles(segment), "F2 L1 L1 H28");
    segment->first->next->born = gr_pool_now(&lone.pool) - ago;
    lone.pool.apart = APART;
    lone.pool.sparing = 12;
    lone.pool.tight = (size_t)gr_tally_now(&lone.pool.tally, GR_ACTIVE_BYTES) + 2 * G;
}

START_TEST(tight_memory_moves_for_the_company_of_a_block_handed_out_just_now) {
    lay_old_and_young(APART + 1);
    ck_assert(gr_pool_is_dear(&lone.pool, 2 * G));
    plan(2 * G, "F2 L1 L1 M2 H26");
    commit("F2 L1 L1 F2 H26");
    struct gr_fit without = gr_pool_choose(&lone.pool, 2 * G, false),
                  grown = gr_pool_choose(&lone.pool, 2 * G, true);
    ck_assert_uint_eq(without.company, APART + 1);
    ck_assert_uint_eq(grown.company, 1); /* the place is taken that was made for it */
    ck_assert_ptr_eq(grown.block, growth.first);
}
END_TEST

START_TEST(memory_that_is_not_tight_does_not_move_for_company) {
    lay_old_and_young(APART + 1);
    lone.pool.tight++;
    ck_assert(!gr_pool_is_dear(&lone.pool, 2 * G));
}
END_TEST

START_TEST(memory_does_not_move_for_the_company_of_what_was_handed_out_long_ago) {
    lay_old_and_young(2 * APART);
    lone.pool.tally.up[GR_BLOCKS] += GR_BACKING_LATELY - 1;
    ck_assert(gr_pool_is_dear(&lone.pool, 2 * G));
    lone.pool.tally.up[GR_BLOCKS] += 1;
    ck_assert(!gr_pool_is_dear(&lone.pool, 2 * G));
}
END_TEST

START_TEST(the_clock_of_company_may_go_round) {
    lone.pool.tally.up[GR_BLOCKS] = UINT32_MAX - 1; /* the last block is handed out after it */
    lay_old_and_young(APART + 1);
    ck_assert(gr_pool_is_dear(&lone.pool, 2 * G));
}
END_TEST

START_TEST(memory_does_not_move_for_company_that_what_fits_has_as_well) {
    lay_old_and_young(APART);
    ck_assert(!gr_pool_is_dear(&lone.pool, 2 * G));
}
END_TEST

START_TEST(what_fits_and_is_larger_would_not_lie_beside_its_right_neighbour) {
    lay_old_and_young(2);
    lone.pool.tight = 0;
    ck_assert(!gr_pool_is_dear(&lone.pool, 2 * G));
    ck_assert(gr_pool_is_dear(&lone.pool, 2 * G - 512 * KIB));
}
END_TEST

START_TEST(with_small_extents_any_younger_company_is_better) {
    lay_old_and_young(2);
    ck_assert(!gr_pool_is_dear(&lone.pool, 2 * G));
    lone.pool.apart = 0;
    ck_assert(gr_pool_is_dear(&lone.pool, 2 * G));
    segment->first->next->born++; /* both are as young */
    ck_assert(!gr_pool_is_dear(&lone.pool, 2 * G));
}
END_TEST

START_TEST(one_granule_does_not_move_for_company) {
    lay_old_and_young(APART + 1);
    ck_assert(!gr_pool_is_dear(&lone.pool, G));
}
END_TEST

START_TEST(of_equal_places_the_lowest_wins) {
    lay((int[]){1, 102, 1, 102, 1}, 5);
    plan(2 * G, "L1 M2 L1 H2 L1 H25");
    give_up("L1 H2 L1 H2 L1 H25");
}
END_TEST

START_TEST(no_run_that_is_long_enough_means_another_range) {
    struct gr_growth none;
    ck_assert_int_eq(gr_grow_plan(&lone.pool, 33 * (size_t)G, &none), GRANARY_OUT_OF_MEMORY);
    ck_assert_str_eq(lone_pool_tiles(segment), "H32");
    lay((int[]){16}, 1);
    ck_assert_int_eq(gr_grow_plan(&lone.pool, 17 * (size_t)G, &none), GRANARY_OUT_OF_MEMORY);
    plan(16 * (size_t)G, "L16 M16");
    commit("L16 F16");
}
END_TEST

START_TEST(a_block_that_fits_by_now_leaves_nothing_to_plan) {
    struct gr_block *given_back;
    lay((int[]){1, -2, 1}, 3);
    given_back = lone_pool_take(&lone, 2 * G, 1);
    lone_pool_put(&lone, given_back);
    ck_assert_int_eq(gr_grow_plan(&lone.pool, 2 * G, &growth), GRANARY_OK);
    ck_assert_uint_eq(growth.missing, 0);
    ck_assert_ptr_null(growth.first);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 F2 L1 H28");
}
END_TEST

START_TEST(live_blocks_are_never_part_of_a_place) {
    lay((int[]){-1, 1, -1, 1, -1, 1}, 6);
    plan(3 * G, "F1 L1 F1 L1 F1 L1 M3 H23");
    commit("F1 L1 F1 L1 F1 L1 F3 H23");
}
END_TEST

/* ---- hits meanwhile, and giving up ------------------------------------------------------------ */

START_TEST(planned_memory_cannot_be_taken_by_hits_and_other_memory_can) {
    struct gr_block *b;
    lay((int[]){-2, 2, -3}, 3);
    plan(5 * G, "F2 L2 M3 M2 H23");
    ck_assert_int_eq(gr_pool_take(&lone.pool, 3 * G, 3 * G, false, &b), GRANARY_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_pool_take(&lone.pool, 2 * G, 2 * G, false, &b), GRANARY_OK);
    if (gr_ledger_alloc(&lone.pool.tally, b->addr, b->size, 2 * G, &b->label))
        gr_ledger_settle(&lone.ledger, &lone.pool.tally);
    commit("L2 L2 F5 H23");
}
END_TEST

START_TEST(memory_that_is_freed_beside_a_plan_joins_it_at_the_end) {
    struct gr_block *left = lone_pool_take(&lone, 2 * G, 1);
    plan(2 * G, "L2 M2 H28");
    lone_pool_put(&lone, left);
    ck_assert_str_eq(lone_pool_tiles(segment), "F2 M2 H28");
    commit("F4 H28");
}
END_TEST

START_TEST(a_plan_that_fails_half_way_gives_back_what_it_found) {
    lay((int[]){1, 101, -2, 101, 1}, 5);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 H1 F2 H1 L1 H26");
    plan(4 * G, "L1 M1 M2 M1 L1 H26");
    /* The first hole was backed, the second was not: what has memory is free, what has none a hole. */
    struct gr_list loose;
    struct gr_extent *extent;
    gr_list_init(&loose);
    ck_assert(gr_extents_reserve(&lone.extents, 1));
    ck_assert_int_eq(gr_extents_get(&lone.extents, 1, &extent), GRANARY_OK);
    gr_list_append(&loose, &extent->link);
    ck_assert_int_eq(gr_range_map(&segment->range, &lone.driver, 1, 1, &loose), GRANARY_OK);
    give_up("L1 F3 H1 L1 H26");
}
END_TEST

START_TEST(the_walk_visits_every_part_with_nothing_behind_it_and_no_other) {
    lay((int[]){1, 101, -2, 102, 1}, 5);
    plan(5 * G, "L1 M1 M2 M2 L1 H25");
    struct gr_block *first = gr_grow_next(&growth, NULL), *second = gr_grow_next(&growth, first);
    ck_assert_uint_eq(first->size, G);
    ck_assert_uint_eq(second->size, 2 * G);
    ck_assert_ptr_null(gr_grow_next(&growth, second));
    give_up("L1 H1 F2 H2 L1 H25");
}
END_TEST

/* ---- against a naive search ------------------------------------------------------------------- */

/* The fewest granules that a place of this size from start on misses, or SIZE_MAX where a block is in
 * the way. */
static size_t missing_at(gr_addr start, size_t size) {
    size_t missing = 0;
    if (start + size > segment->base + segment->size) return SIZE_MAX;
    for (struct gr_block *b = segment->first; b; b = b->next)
        if (b->addr < start + size && gr_block_end(b) > start && b->state != GR_BLOCK_FREE &&
            b->state != GR_BLOCK_HOLE)
            return SIZE_MAX;
    for (size_t s = gr_range_slot_of(&segment->range, start);
         s <= gr_range_slot_of(&segment->range, start + size - 1); s++)
        missing += segment->range.slot[s] == NULL;
    return missing;
}

/* The best of all places. One that moves to the left misses no more until it meets a block or leaves
 * its first granule: so those two kinds of places are all that must be tried. */
static size_t fewest_missing(size_t size) {
    size_t best = SIZE_MAX;
    for (struct gr_block *b = segment->first; b; b = b->next) best = gr_min(best, missing_at(b->addr, size));
    for (size_t s = 0; s < segment->range.slots; s++)
        best = gr_min(best, missing_at(gr_range_addr_of(&segment->range, s), size));
    return best;
}

START_TEST(no_place_at_all_misses_fewer_granules_than_the_planned_one) {
    struct rng rng = {300 + (uint64_t)_i};
    struct gr_block *live[64];
    size_t count = 0;
    for (int step = 0; step < 60; step++) {
        size_t size = GR_MIB + 512 * rng_between(&rng, 1, 8 * 2048);
        struct gr_growth g;
        if (count > 0 && rng_below(&rng, 100) < 45) {
            size_t at = rng_below(&rng, count);
            lone_pool_put(&lone, live[at]);
            live[at] = live[--count];
        } else if (gr_index_find(&lone.pool.free, size) == NULL) {
            size_t want = fewest_missing(size);
            int status = gr_grow_plan(&lone.pool, size, &g);
            ck_assert_int_eq(status, want == SIZE_MAX ? GRANARY_OUT_OF_MEMORY : GRANARY_OK);
            if (status != GRANARY_OK) continue;
            ck_assert_msg(g.missing == want, "%zu missing, %zu would do", g.missing, want);
            lone_pool_back(&lone, &g, 1);
            gr_grow_finish(&lone.pool, &g);
            live[count++] = lone_pool_take(&lone, size, 1);
        } else {
            live[count++] = lone_pool_take(&lone, size, 1);
        }
        /* Idle memory goes at times, so that holes appear in the middle. */
        if (rng_once_in(&rng, 3)) lone_pool_evict(&lone, rng_between(&rng, 1, 4) * G);
        ck_assert_ptr_null(lone_pool_check(&lone));
    }
}
END_TEST

Suite *suite_grow(void) {
    Suite *suite = suite_create("grow");
    TCase *cases = tcase_create("grow");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, an_empty_range_is_backed_from_its_start_with_what_is_needed_alone);
    tcase_add_test(cases, a_free_block_at_the_edge_of_a_hole_is_grown_by_the_shortfall);
    tcase_add_test(cases, free_memory_right_of_a_hole_is_used_too);
    tcase_add_test(cases, several_holes_and_the_free_blocks_between_them_make_one_place);
    tcase_add_test(cases, the_place_that_misses_least_wins_over_a_lower_one);
    tcase_add_test(cases, free_memory_beyond_the_place_stays_free_to_serve_and_to_move);
    tcase_add_test(cases, a_place_is_chosen_by_what_it_misses_while_memory_is_plenty);
    tcase_add_test(cases, a_sparing_pool_counts_what_a_place_would_pin_as_well);
    tcase_add_test(cases, a_sparing_pool_grows_though_a_block_fits_when_that_pins_less);
    tcase_add_test(cases, more_may_move_while_memory_is_tight);
    tcase_add_test(cases, of_equal_places_a_sparing_pool_takes_the_one_in_the_youngest_company);
    tcase_add_test(cases, company_of_a_place_is_what_it_touches);
    tcase_add_test(cases, a_place_that_begins_inside_a_hole_is_not_in_the_company_left_of_it);
    tcase_add_test(cases, tight_memory_moves_for_the_company_of_a_block_handed_out_just_now);
    tcase_add_test(cases, memory_that_is_not_tight_does_not_move_for_company);
    tcase_add_test(cases, memory_does_not_move_for_the_company_of_what_was_handed_out_long_ago);
    tcase_add_test(cases, the_clock_of_company_may_go_round);
    tcase_add_test(cases, memory_does_not_move_for_company_that_what_fits_has_as_well);
    tcase_add_test(cases, what_fits_and_is_larger_would_not_lie_beside_its_right_neighbour);
    tcase_add_test(cases, with_small_extents_any_younger_company_is_better);
    tcase_add_test(cases, one_granule_does_not_move_for_company);
    tcase_add_test(cases, whoever_cannot_grow_takes_the_block_that_is_dear);
    tcase_add_test(cases, growing_does_not_pay_when_nothing_is_saved_or_too_much_would_move);
    tcase_add_test(cases, of_equal_places_the_lowest_wins);
    tcase_add_test(cases, no_run_that_is_long_enough_means_another_range);
    tcase_add_test(cases, a_block_that_fits_by_now_leaves_nothing_to_plan);
    tcase_add_test(cases, live_blocks_are_never_part_of_a_place);
    tcase_add_test(cases, planned_memory_cannot_be_taken_by_hits_and_other_memory_can);
    tcase_add_test(cases, memory_that_is_freed_beside_a_plan_joins_it_at_the_end);
    tcase_add_test(cases, a_plan_that_fails_half_way_gives_back_what_it_found);
    tcase_add_test(cases, the_walk_visits_every_part_with_nothing_behind_it_and_no_other);
    tcase_add_loop_test(cases, no_place_at_all_misses_fewer_granules_than_the_planned_one, 0, 20);
    suite_add_tcase(suite, cases);
    return suite;
}
