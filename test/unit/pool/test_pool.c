/* SPDX-License-Identifier: Apache-2.0
 * A pool takes the best fit, cuts it, joins what comes back, and its check ties indexes, tally and
 * address table to the tiles. */
#include <check.h>

#include "support/fixture.h"
#include "support/hot.h"
#include "support/lone_pool.h"
#include "support/rng.h"

static struct lone_pool lone;
static struct gr_segment *segment;

static void open_large(void) {
    lone_pool_open(&lone, GR_LARGE, true);
    segment = lone_pool_add_range(&lone, 32);
}

static void open_small(void) {
    lone_pool_open(&lone, GR_SMALL, true);
    segment = lone_pool_add_range(&lone, 8);
}

static void open_classic(void) {
    lone_pool_open(&lone, GR_LARGE, false);
}

static void teardown(void) {
    const char *broken = lone_pool_check(&lone);
    ck_assert_msg(broken == NULL, "%s", broken);
    lone_pool_close(&lone);
}

static void tell(struct gr_block *b, size_t rounded) {
    if (gr_ledger_alloc(&lone.pool.tally, b->addr, b->size, rounded, &b->label))
        gr_ledger_settle(&lone.ledger, &lone.pool.tally);
}

static int take(size_t rounded, struct gr_block **out) {
    int status = gr_pool_take(&lone.pool, rounded, rounded, false, out);
    if (status == GRANARY_OK) tell(*out, rounded);
    return status;
}

static struct gr_index_sum sum_of(const struct gr_index *index, enum gr_block_state state) {
    struct gr_index_sum sum;
    ck_assert_ptr_null(gr_index_check(index, state, &sum));
    return sum;
}
static size_t free_blocks(void) {
    return sum_of(&lone.pool.free, GR_BLOCK_FREE).count;
}

/* Frees, and leaves the block the recent one. */
static void give(struct gr_block *b) {
    gr_live_remove(&lone.pool.live, gr_live_link(&lone.pool.live, b->addr));
    gr_ledger_free(&lone.pool.tally, b->addr, b->size, b->u.live.requested, 0);
    gr_block_since(b, gr_stream_epoch(&lone.stream), 0);
    gr_pool_free(&lone.pool, b);
}

/* ---- taking ----------------------------------------------------------------------------------- */

START_TEST(an_empty_pool_has_nothing_to_give) {
    struct gr_block *b = NULL;
    ck_assert_int_eq(take(2 * GR_MIB, &b), GRANARY_OUT_OF_MEMORY);
    ck_assert_ptr_null(b);
    ck_assert_str_eq(lone_pool_tiles(segment), "H32"); /* a hole is no memory */
}
END_TEST

START_TEST(the_smallest_that_fits_is_taken_and_of_equals_the_lowest) {
    struct gr_block *e[8];
    static const size_t granules[] = {6, 1, 3, 1, 3, 1, 4, 1};
    for (int i = 0; i < 8; i++) e[i] = lone_pool_take(&lone, granules[i] * 2 * GR_MIB, 1);
    ck_assert_str_eq(lone_pool_tiles(segment), "L6 L1 L3 L1 L3 L1 L4 L1 H12");
    gr_addr third = e[2]->addr, fifth = e[4]->addr, seventh = e[6]->addr;
    for (int i = 6; i >= 0; i -= 2) lone_pool_put(&lone, e[i]);
    ck_assert_str_eq(lone_pool_tiles(segment), "F6 L1 F3 L1 F3 L1 F4 L1 H12");
    struct gr_block *b;
    ck_assert_int_eq(take(6 * GR_MIB, &b), GRANARY_OK);
    ck_assert_uint_eq(b->addr, third);
    ck_assert_int_eq(take(5 * GR_MIB, &b), GRANARY_OK);
    ck_assert_uint_eq(b->addr, fifth);
    ck_assert_int_eq(take(8 * GR_MIB, &b), GRANARY_OK);
    ck_assert_uint_eq(b->addr, seventh);
    ck_assert_int_eq(take(14 * GR_MIB, &b), GRANARY_OUT_OF_MEMORY);
}
END_TEST

START_TEST(the_rest_of_a_cut_serves_the_next_request_and_the_low_part_is_handed_out) {
    struct gr_block *whole = lone_pool_take(&lone, 8 * GR_MIB, 4), *a, *b, *c;
    gr_addr base = whole->addr;
    lone_pool_put(&lone, whole);
    ck_assert_int_eq(take(2 * GR_MIB + 512, &a), GRANARY_OK);
    ck_assert_int_eq(take(GR_MIB + 512, &b), GRANARY_OK);
    ck_assert_int_eq(take(5 * GR_MIB - 1024, &c), GRANARY_OK); /* to the last byte */
    ck_assert_uint_eq(a->addr, base);
    ck_assert_uint_eq(b->addr, base + 2 * GR_MIB + 512);
    ck_assert_uint_eq(gr_block_end(c), base + 8 * GR_MIB);
    ck_assert_uint_eq(free_blocks(), 0);
}
END_TEST

START_TEST(a_block_that_was_taken_is_found_by_its_address_and_has_no_foreign_users) {
    struct gr_block *b = lone_pool_take(&lone, 3 * GR_MIB, 1);
    ck_assert_uint_eq(b->state, GR_BLOCK_LIVE);
    ck_assert_uint_eq(b->u.live.requested, 3 * GR_MIB);
    ck_assert_ptr_null(b->u.live.uses);
    ck_assert_ptr_eq(gr_live_find(&lone.pool.live, b->addr), b);
    ck_assert_ptr_null(gr_live_find(&lone.pool.live, b->addr + 512)); /* inside is not at */
    ck_assert_ptr_null(gr_live_find(&lone.pool.live, b->addr + 3 * GR_MIB));
    gr_addr addr = b->addr;
    lone_pool_put(&lone, b);
    ck_assert_ptr_null(gr_live_find(&lone.pool.live, addr));
}
END_TEST

/* ---- putting ---------------------------------------------------------------------------------- */

START_TEST(a_block_joins_both_free_neighbours) {
    struct gr_block *b[5];
    for (int i = 0; i < 5; i++) b[i] = lone_pool_take(&lone, 2 * GR_MIB, 1);
    lone_pool_put(&lone, b[1]);
    lone_pool_put(&lone, b[3]);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 F1 L1 F1 L1 H27");
    lone_pool_put(&lone, b[2]);
    ck_assert_str_eq(lone_pool_tiles(segment), "L1 F3 L1 H27");
    ck_assert_uint_eq(free_blocks(), 1);
    lone_pool_put(&lone, b[0]);
    lone_pool_put(&lone, b[4]);
    ck_assert_str_eq(lone_pool_tiles(segment), "F5 H27"); /* and never a hole */
}
END_TEST

START_TEST(a_joined_block_remembers_the_newest_epoch_of_its_parts) {
    struct gr_block *a = lone_pool_take(&lone, 2 * GR_MIB, 1), *b = lone_pool_take(&lone, 2 * GR_MIB, 1);
    lone_pool_put(&lone, a);
    atomic_fetch_add(&lone.stream.epoch, 4);
    lone_pool_put(&lone, b);
    ck_assert_uint_eq(segment->first->epoch, 5);
    struct gr_block *c;
    ck_assert_int_eq(take(2 * GR_MIB, &c), GRANARY_OK);
    ck_assert_uint_eq(c->next->epoch, 5); /* the rest of a cut too */
}
END_TEST

START_TEST(what_is_free_behind_a_recent_block_is_not_freed_anew_when_that_serves_again) {
    static const size_t behind[] = {2 * GR_MIB, 6 * GR_MIB}; /* too small for the request; its best fit */
    struct gr_block *a = lone_pool_take(&lone, 4 * GR_MIB, 1), *b = lone_pool_take(&lone, behind[_i], 1), *c;
    (void)lone_pool_take(&lone, 2 * GR_MIB, 1);
    lone_pool_put(&lone, b); /* in epoch 1 */
    atomic_fetch_add(&lone.stream.epoch, 4);
    give(a);
    ck_assert_int_eq(take(4 * GR_MIB, &c), GRANARY_OK);
    ck_assert_ptr_eq(c, a);
    ck_assert_ptr_eq(c->next, b);
    ck_assert_uint_eq(b->epoch, 1);
}
END_TEST

/* ---- the recent block ------------------------------------------------------------------------- */

/* Free tiles in a row, the recent block among them: what a request sees. */
struct run {
    gr_addr addr;
    size_t size;
};
enum { LIVE = 300, RUNS = LIVE + 8 };

static size_t runs_of(struct run runs[RUNS]) {
    size_t count = 0;
    for (size_t s = 0; s < lone.pool.segment_count; s++)
        for (const struct gr_block *b = lone.pool.segments[s]->first; b; b = b->next) {
            if (b->state != GR_BLOCK_FREE) continue;
            if (!b->prev || b->prev->state != GR_BLOCK_FREE) runs[count++] = (struct run){.addr = b->addr};
            runs[count - 1].size += b->size;
        }
    return count;
}

/* Of the equals in a list any may be taken. */
static void take_the_best_of(const struct run *runs, size_t count, size_t rounded, struct gr_block **out) {
    const struct run *best = NULL;
    size_t taken = 0;
    for (size_t i = 0; i < count; i++)
        if (runs[i].size >= rounded &&
            (!best || runs[i].size < best->size || (runs[i].size == best->size && runs[i].addr < best->addr)))
            best = &runs[i];
    HOT_ASSERT(take(rounded, out) == (best ? GRANARY_OK : GRANARY_OUT_OF_MEMORY));
    if (!best) return;
    while (taken < count && runs[taken].addr != (*out)->addr) taken++;
    HOT_ASSERT(taken < count && runs[taken].size == best->size);
    HOT_ASSERT(best->size < lone.pool.free.listed || &runs[taken] == best);
}

static void take_and_give_at_random(size_t step, uint64_t steps) {
    static struct gr_block *live[LIVE];
    static struct run runs[RUNS];
    struct rng rng = {10};
    size_t count = 0;
    for (int turn = 0; turn < 40000; turn++) {
        if (count < LIVE && (count == 0 || rng_below(&rng, 100) < 52)) {
            live[count] = NULL;
            take_the_best_of(runs, runs_of(runs), step * rng_between(&rng, 1, steps), &live[count]);
            if (live[count]) count++;
        } else {
            size_t at = rng_below(&rng, count);
            give(live[at]);
            live[at] = live[--count];
        }
        if (turn % 1000 == 0) ck_assert_ptr_null(lone_pool_check(&lone));
    }
    while (count > 0) give(live[--count]);
}

START_TEST(a_request_gets_what_fits_best_once_the_recent_block_has_joined) {
    lone_pool_put(&lone, lone_pool_take(&lone, 16 * GR_MIB, 1));
    take_and_give_at_random(_i == 0 ? 512 : 64 * GR_KIB, _i == 0 ? 100 : 30);
}
END_TEST

START_TEST(a_classic_request_gets_what_fits_best_once_the_recent_block_has_joined) {
    for (int i = 0; i < 4; i++) (void)lone_pool_add_classic(&lone, 20 * GR_MIB);
    take_and_give_at_random(512 * GR_KIB, 8);
}
END_TEST

/* Alone, and with what is free behind it. */
START_TEST(a_recent_block_in_the_middle_is_behind_its_equals_in_a_list) {
    const size_t size = _i == 0 ? 1024 : 2048;
    struct gr_block *whole = lone_pool_take(&lone, GR_MIB, 1), *a, *b, *rest, *wall[2], *c;
    lone_pool_put(&lone, whole);
    ck_assert_int_eq(take(size, &a), GRANARY_OK);
    ck_assert_int_eq(take(512, &wall[0]), GRANARY_OK);
    ck_assert_int_eq(take(1024, &b), GRANARY_OK);
    ck_assert_int_eq(take(1024, &rest), GRANARY_OK);
    ck_assert_int_eq(take(512, &wall[1]), GRANARY_OK);
    lone_pool_put(&lone, a);
    if (_i == 1) lone_pool_put(&lone, rest);
    give(b);
    lone.pool.free.middle = b->addr;
    ck_assert_int_eq(take(1024, &c), GRANARY_OK);
    ck_assert_ptr_eq(c, a);
}
END_TEST

/* What can change the free index between a take and the free of what was taken. */
static struct gr_idle idle;
static struct gr_growth growth;

static void nothing(struct gr_block *other) {
    (void)other;
}
static void settling(struct gr_block *other) {
    give(other);
}
static void putting(struct gr_block *other) {
    lone_pool_put(&lone, other);
}
static void claiming(struct gr_block *other) {
    (void)other;
    ck_assert(gr_idle_claim(&lone.pool, 2 * GR_MIB, UINT32_MAX, &idle));
}
static void claimed(void) {
    gr_idle_finish(&lone.pool, &idle);
}
static void growing(struct gr_block *other) {
    lone_pool_put(&lone, other);
    ck_assert_int_eq(gr_grow_plan(&lone.pool, 56 * GR_MIB, &growth), GRANARY_OK);
}
static void grown(void) {
    gr_grow_finish(&lone.pool, &growth);
}
static void missing(struct gr_block *other) {
    struct gr_block *none;
    give(other);
    ck_assert_int_eq(gr_pool_take(&lone.pool, GR_GIB, GR_GIB, false, &none), GRANARY_OUT_OF_MEMORY);
}
static void sparing(struct gr_block *other) {
    (void)other;
    gr_pool_spare(&lone.pool, 0, SIZE_MAX, 0);
}
static const struct {
    void (*begin)(struct gr_block *other), (*end)(void);
} changes[] = {{nothing, NULL},     {settling, NULL}, {putting, NULL}, {sparing, NULL},
               {claiming, claimed}, {growing, grown}, {missing, NULL}};

START_TEST(a_recent_block_serves_again_without_a_look_unless_the_free_index_or_the_way_has_changed) {
    struct gr_block *other = lone_pool_take(&lone, 2 * GR_MIB, 1), *whole, *b;
    (void)lone_pool_take(&lone, 2 * GR_MIB, 1);
    whole = lone_pool_take(&lone, 4 * GR_MIB, 1);
    lone_pool_put(&lone, whole);
    ck_assert_int_eq(take(2 * GR_MIB, &b), GRANARY_OK);
    changes[_i].begin(other);
    give(b);
    b = gr_pool_again(&lone.pool, 2 * GR_MIB, 2 * GR_MIB);
    ck_assert_int_eq(b != NULL, changes[_i].begin == nothing);
    if (b) tell(b, 2 * GR_MIB);
    if (changes[_i].end) changes[_i].end();
}
END_TEST

START_TEST(a_block_that_serves_again_is_as_young_as_one_that_is_cut) {
    struct gr_block *b;
    lone_pool_put(&lone, lone_pool_take(&lone, 2 * GR_MIB, 1));
    ck_assert_int_eq(take(2 * GR_MIB, &b), GRANARY_OK);
    ck_assert_uint_eq(b->born, 1);
    give(b);
    ck_assert_ptr_eq(gr_pool_again(&lone.pool, 2 * GR_MIB, 2 * GR_MIB), b);
    ck_assert_uint_eq(b->born, 2);
    tell(b, 2 * GR_MIB);
}
END_TEST

START_TEST(small_requests_go_and_come_without_a_trace) {
    enum { COUNT = 3000 };
    static struct gr_block *live[COUNT];
    struct rng rng = {9};
    size_t count = 0;
    lone_pool_put(&lone, lone_pool_take(&lone, GR_MIB, 1));
    for (int step = 0; step < 20000; step++) {
        if (count < COUNT && (count == 0 || rng_below(&rng, 100) < 55)) {
            struct gr_block *b;
            if (take(512 * rng_between(&rng, 1, 8), &b) == GRANARY_OK) live[count++] = b;
        } else {
            size_t at = rng_below(&rng, count);
            lone_pool_put(&lone, live[at]);
            live[at] = live[--count];
        }
        if (step % 1000 == 0) {
            ck_assert_ptr_null(lone_pool_check(&lone));
            ck_assert_uint_eq(gr_pool_unused(&lone.pool), sum_of(&lone.pool.free, GR_BLOCK_FREE).bytes);
        }
    }
    while (count > 0) lone_pool_put(&lone, live[--count]);
    ck_assert_str_eq(lone_pool_tiles(segment), "F1 H7");
    ck_assert_uint_eq(free_blocks(), 1);
}
END_TEST

/* ---- classic ---------------------------------------------------------------------------------- */

START_TEST(classic_rests_of_up_to_1_mib_stay_with_the_block) {
    struct gr_segment *s = lone_pool_add_classic(&lone, 20 * GR_MIB);
    struct gr_block *b;
    ck_assert_int_eq(take(19 * GR_MIB, &b), GRANARY_OK);
    ck_assert_uint_eq(b->size, 20 * GR_MIB);
    lone_pool_put(&lone, b);
    ck_assert_int_eq(take(19 * GR_MIB - 512, &b), GRANARY_OK);
    ck_assert_uint_eq(b->size, 19 * GR_MIB - 512);
    lone_pool_put(&lone, b);
    ck_assert_str_eq(lone_pool_tiles(s), "F10");
}
END_TEST

START_TEST(classic_oversize_blocks_serve_oversize_requests_alone) {
    lone.sizing.max_split_size = 64 * GR_MIB;
    struct gr_segment *s = lone_pool_add_classic(&lone, 100 * GR_MIB);
    struct gr_block *b = NULL;
    ck_assert_int_eq(take(2 * GR_MIB, &b), GRANARY_OUT_OF_MEMORY);
    ck_assert_int_eq(take(80 * GR_MIB, &b), GRANARY_OUT_OF_MEMORY); /* 20 MiB too large */
    ck_assert_int_eq(take(80 * GR_MIB + 512, &b), GRANARY_OK);
    ck_assert_uint_eq(b->size, 100 * GR_MIB);
    ck_assert_str_eq(lone_pool_tiles(s), "L50");
}
END_TEST

START_TEST(blocks_of_neighbouring_classic_segments_do_not_join) {
    /* Two cuMemAlloc may well lie side by side; they are freed apart. */
    struct gr_segment *a = lone_pool_add_classic(&lone, 20 * GR_MIB),
                      *b = lone_pool_add_classic(&lone, 20 * GR_MIB);
    ck_assert_str_eq(lone_pool_tiles(a), "F10");
    ck_assert_str_eq(lone_pool_tiles(b), "F10");
    ck_assert_uint_eq(free_blocks(), 2);
}
END_TEST

/* ---- segments --------------------------------------------------------------------------------- */

START_TEST(segments_stay_sorted_and_every_address_finds_its_own) {
    struct gr_segment *s[20];
    for (int i = 0; i < 20; i++) s[i] = lone_pool_add_range(&lone, 1 + (size_t)i % 3);
    for (int i = 0; i < 20; i++) {
        ck_assert_ptr_eq(gr_pool_segment_of(&lone.pool, s[i]->base), s[i]);
        ck_assert_ptr_eq(gr_pool_segment_of(&lone.pool, s[i]->base + s[i]->size - 1), s[i]);
    }
    for (size_t i = 1; i < lone.pool.segment_count; i++)
        ck_assert_uint_lt(lone.pool.segments[i - 1]->base, lone.pool.segments[i]->base);
    ck_assert_uint_eq(lone.pool.segment_count, 21);
    ck_assert_uint_eq(sum_of(&lone.pool.holes, GR_BLOCK_HOLE).count, 21);
}
END_TEST

/* ---- the check has teeth ---------------------------------------------------------------------- */

START_TEST(blocks_that_are_missing_from_an_index_break_p1) {
    lone_pool_put(&lone, lone_pool_take(&lone, 4 * GR_MIB, 1));
    struct gr_block *free_block = segment->first, *hole = free_block->next;
    gr_index_remove(&lone.pool.free, free_block);
    ck_assert_str_eq(lone_pool_check(&lone), "P1");
    gr_index_insert(&lone.pool.free, free_block);
    ck_assert_ptr_null(lone_pool_check(&lone));
    gr_index_remove(&lone.pool.holes, hole);
    ck_assert_str_eq(lone_pool_check(&lone), "P1");
    gr_index_insert(&lone.pool.holes, hole);
}
END_TEST

START_TEST(segments_out_of_order_break_p2) {
    (void)lone_pool_add_range(&lone, 4);
    struct gr_segment *swap = lone.pool.segments[0];
    lone.pool.segments[0] = lone.pool.segments[1];
    lone.pool.segments[1] = swap;
    ck_assert_str_eq(lone_pool_check(&lone), "P2");
    lone.pool.segments[1] = lone.pool.segments[0];
    lone.pool.segments[0] = swap;
}
END_TEST

START_TEST(a_tally_that_disagrees_with_the_tiles_breaks_p3) {
    struct gr_block *b = lone_pool_take(&lone, 4 * GR_MIB, 1);
    for (int n = 0; n < GR_COUNTS; n++) {
        lone.pool.tally.room.left[n]++;
        ck_assert_str_eq(lone_pool_check(&lone), "P3");
        lone.pool.tally.room.left[n]--;
    }
    for (int n = 0; n < GR_TWOFOLD; n++) {
        lone.pool.tally.waiting[n]++;
        ck_assert_str_eq(lone_pool_check(&lone), "P3");
        lone.pool.tally.waiting[n]--;
    }
    b->u.live.requested--;
    ck_assert_str_eq(lone_pool_check(&lone), "P3");
    b->u.live.requested++;
}
END_TEST

START_TEST(a_set_of_live_blocks_that_disagrees_with_the_tiles_breaks_p4) {
    struct gr_block *b = lone_pool_take(&lone, 4 * GR_MIB, 1);
    gr_live_remove(&lone.pool.live, gr_live_link(&lone.pool.live, b->addr));
    ck_assert_str_eq(lone_pool_check(&lone), "P4");
    gr_live_add(&lone.pool.live, b);
}
END_TEST

START_TEST(a_tile_on_the_move_breaks_b4_unless_it_is_allowed) {
    struct gr_growth growth;
    ck_assert_int_eq(gr_grow_plan(&lone.pool, 4 * GR_MIB, &growth), GRANARY_OK);
    ck_assert_str_eq(gr_pool_check(&lone.pool, false), "B4");
    ck_assert_ptr_null(gr_pool_check(&lone.pool, true));
    gr_grow_finish(&lone.pool, &growth);
}
END_TEST

Suite *suite_pool(void) {
    Suite *suite = suite_create("pool");
    TCase *large = tcase_create("large"), *small = tcase_create("small"), *classic = tcase_create("classic");
    tcase_add_checked_fixture(large, open_large, teardown);
    tcase_add_test(large, an_empty_pool_has_nothing_to_give);
    tcase_add_test(large, the_smallest_that_fits_is_taken_and_of_equals_the_lowest);
    tcase_add_test(large, the_rest_of_a_cut_serves_the_next_request_and_the_low_part_is_handed_out);
    tcase_add_test(large, a_block_that_was_taken_is_found_by_its_address_and_has_no_foreign_users);
    tcase_add_test(large, a_block_joins_both_free_neighbours);
    tcase_add_test(large, a_joined_block_remembers_the_newest_epoch_of_its_parts);
    tcase_add_loop_test(large, what_is_free_behind_a_recent_block_is_not_freed_anew_when_that_serves_again, 0,
                        2);
    tcase_add_loop_test(
        large, a_recent_block_serves_again_without_a_look_unless_the_free_index_or_the_way_has_changed, 0,
        (int)GR_COUNT(changes));
    tcase_add_test(large, a_block_that_serves_again_is_as_young_as_one_that_is_cut);
    tcase_add_loop_test(large, a_request_gets_what_fits_best_once_the_recent_block_has_joined, 0, 2);
    tcase_add_test(large, segments_stay_sorted_and_every_address_finds_its_own);
    tcase_add_test(large, blocks_that_are_missing_from_an_index_break_p1);
    tcase_add_test(large, segments_out_of_order_break_p2);
    tcase_add_test(large, a_tally_that_disagrees_with_the_tiles_breaks_p3);
    tcase_add_test(large, a_set_of_live_blocks_that_disagrees_with_the_tiles_breaks_p4);
    tcase_add_test(large, a_tile_on_the_move_breaks_b4_unless_it_is_allowed);
    suite_add_tcase(suite, large);
    tcase_add_checked_fixture(small, open_small, teardown);
    tcase_add_test(small, small_requests_go_and_come_without_a_trace);
    tcase_add_loop_test(small, a_recent_block_in_the_middle_is_behind_its_equals_in_a_list, 0, 2);
    suite_add_tcase(suite, small);
    tcase_add_checked_fixture(classic, open_classic, teardown);
    tcase_add_test(classic, classic_rests_of_up_to_1_mib_stay_with_the_block);
    tcase_add_test(classic, classic_oversize_blocks_serve_oversize_requests_alone);
    tcase_add_test(classic, a_classic_request_gets_what_fits_best_once_the_recent_block_has_joined);
    tcase_add_test(classic, blocks_of_neighbouring_classic_segments_do_not_join);
    suite_add_tcase(suite, classic);
    return suite;
}
