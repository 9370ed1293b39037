/* SPDX-License-Identifier: Apache-2.0
 * Random traffic against the naive model: no two blocks overlap, every byte stays what it was, all
 * figures are exact, the limit holds, the oracle finds no unordered use, and in the end the whole
 * card can be had in one piece. */
#include <check.h>
#include <stdlib.h>

#include "support/fixture.h"
#include "support/hot.h"
#include "support/model.h"
#include "support/rng.h"
#include "support/shortfall.h"

enum { STREAMS = 4, MEMORY = 96, LIVE = 200 };

static granary *g;
static struct model model;
static struct rng rng;
static granary_stream streams[STREAMS];
static size_t limit;
static bool classic;
static uint64_t next_id;
static size_t failures, moves; /* that the seed has seen something */

static void configure(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = MEMORY * GR_MIB;
    sim->clock = rng_once_in(&rng, 2) ? GRANARY_SIM_MANUAL : GRANARY_SIM_AT_ONCE;
    sim->hang_ms = 500;
    options->expandable_segments = !classic;
    options->handle_cache_bytes = rng_once_in(&rng, 3) ? 16 * GR_MIB : 0;
    options->garbage_collection_threshold = rng_once_in(&rng, 3) ? 0.6 : 0;
    options->max_split_size = classic && rng_once_in(&rng, 3) ? 23 * GR_MIB : GRANARY_UNLIMITED;
}

static void compare(void) {
    char words[128];
    struct granary_stats stats = fixture_stats(g);
    struct granary_sim_held held = fixture_held();
    HOT_ASSERT_MSG(model_compare(&model, &stats, words) == NULL, "%s", words);
    int64_t reserved = stats.reserved_bytes.all.current;
    HOT_ASSERT(reserved + stats.handle_cache_bytes == (int64_t)(held.handle_bytes + held.allocated_bytes));
    HOT_ASSERT((int64_t)(held.mapped_bytes + held.allocated_bytes) == reserved);
    HOT_ASSERT(reserved == stats.reserved_bytes.small.current + stats.reserved_bytes.large.current);
    HOT_ASSERT(reserved >= stats.active_bytes.all.current);
    HOT_ASSERT(stats.reserved_bytes.all.peak <= MEMORY * (int64_t)GR_MIB);
    HOT_ASSERT(stats.reserved_address_bytes == (int64_t)held.reserved_bytes);
    HOT_ASSERT(stats.ranges == (int64_t)held.reservations);
    HOT_ASSERT(stats.extents == (int64_t)held.handles);
    moves = (size_t)stats.moved_extents;
}

static void verify(void) {
    const char *broken = granary_verify(g);
    HOT_ASSERT_MSG(broken == NULL, "%s is broken", broken);
}

/* ---- operations ------------------------------------------------------------------------------- */

static size_t any_size(void) {
    switch (rng_below(&rng, 8)) {
    case 0: return rng_between(&rng, 1, 512);
    case 1: return GR_MIB + rng_between(&rng, 0, 2) - 1; /* around the border of the classes */
    case 2: return 2 * GR_MIB * rng_between(&rng, 1, 8);
    case 3: return rng_between(&rng, 1, 40 * GR_MIB);
    default: return rng_between(&rng, 1, (size_t)1 << rng_between(&rng, 8, 22));
    }
}

static void use(const struct model_block *block) {
    HOT_ASSERT(granary_sim_use(block->stream, (void *)(uintptr_t)block->addr, block->size, 1, block->pattern,
                               GRANARY_SIM_SITE) == 0);
}

static bool alloc(size_t requested, granary_stream stream) {
    char words[128];
    void *ptr = &ptr;
    int64_t before = fixture_held().handle_bytes + fixture_held().allocated_bytes;
    int status = granary_alloc(g, requested, stream, &ptr);
    if (status != GRANARY_OK) {
        HOT_ASSERT(ptr == NULL);
        HOT_ASSERT_MSG(status == GRANARY_OUT_OF_MEMORY || status == GRANARY_OVER_LIMIT, "%zu: %d %s",
                       requested, status, fixture_fault(g).text);
        const char *wrong = shortfall_wrong(g, words);
        HOT_ASSERT_MSG(wrong == NULL, "%s", wrong);
        failures++;
        return false;
    }
    struct model_block block = {.addr = (gr_addr)(uintptr_t)ptr, .requested = requested, .stream = stream};
    HOT_ASSERT(granary_size_of(g, ptr, &block.size) == GRANARY_OK);
    HOT_ASSERT(block.size >= requested);
    HOT_ASSERT(block.addr % 512 == 0);
    if (!classic) HOT_ASSERT(block.size - requested < 512);
    block.pattern = ++next_id;
    const struct model_block *other = model_add(&model, &block);
    HOT_ASSERT_MSG(other == NULL, "[%p, +%zu) overlaps a live block", ptr, block.size);
    model_fill(&block);
    use(&block);
    int64_t after = fixture_held().handle_bytes + fixture_held().allocated_bytes;
    HOT_ASSERT_MSG(after <= before || (uint64_t)after <= limit, "%lld held with a limit of %zu",
                   (long long)after, limit);
    return true;
}

static void free_at(size_t index) {
    struct model_block block = model.blocks[index];
    HOT_ASSERT_MSG(model_intact(&block), "block %llu of %zu bytes has lost its contents",
                   (unsigned long long)block.pattern, block.size);
    if (rng_once_in(&rng, 2)) use(&block);
    HOT_ASSERT(granary_free(g, (void *)(uintptr_t)block.addr) == GRANARY_OK);
    model_remove(&model, index);
    /* Nothing of the block is live any more, whatever the table finds there. */
    size_t size;
    HOT_ASSERT(granary_size_of(g, (void *)(uintptr_t)block.addr, &size) == GRANARY_UNKNOWN_POINTER);
}

static void change_limit(void) {
    limit = rng_once_in(&rng, 2) ? GRANARY_UNLIMITED : GR_MIB * rng_between(&rng, 30, MEMORY + 10);
    HOT_ASSERT(granary_set_limit(g, limit) == GRANARY_OK);
}

static void step(size_t busy) {
    uint64_t dice = rng_below(&rng, 1000);
    if (dice < 4) {
        size_t keep = rng_once_in(&rng, 2) ? 0 : GR_MIB * rng_below(&rng, MEMORY);
        (void)fixture_trim(g, keep);
    } else if (dice < 8) {
        change_limit();
    } else if (dice < 10) {
        HOT_ASSERT(granary_reset_peaks(g) == GRANARY_OK);
        model_reset_peaks(&model);
    } else if (dice < 40) {
        (void)granary_sim_run_random(rng_next(&rng), rng_below(&rng, 20));
    } else if (dice < 60 && model.count > 0) { /* inside of a block is no block */
        const struct model_block *block = &model.blocks[rng_below(&rng, model.count)];
        if (block->size > 512)
            HOT_ASSERT(granary_free(g, (void *)(uintptr_t)(block->addr + 512)) == GRANARY_UNKNOWN_POINTER);
    } else if (model.count == 0 || (model.count < LIVE && rng_below(&rng, 100) < busy)) {
        (void)alloc(any_size(), streams[rng_below(&rng, STREAMS)]);
    } else {
        free_at(rng_below(&rng, model.count));
    }
}

/* ---- the property ----------------------------------------------------------------------------- */

static void run(uint64_t seed, int steps) {
    rng = (struct rng){seed};
    classic = seed % 2 == 1;
    limit = GRANARY_UNLIMITED;
    failures = moves = next_id = 0;
    g = fixture_open(configure);
    streams[0] = NULL;
    for (int s = 1; s < STREAMS; s++) streams[s] = fixture_stream(g);
    for (int n = 0; n < steps; n++) {
        step(n / 300 % 3 == 2 ? 35 : 58); /* fills up, and drains again */
        if (rng_once_in(&rng, 40)) compare();
        if (n % 64 == 0) verify();
    }
    compare();
    while (model.count > 0) free_at(model.count - 1);
    compare();
    verify();
    /* Everything is free: whatever lies where, the card serves one request of its whole size. */
    limit = GRANARY_UNLIMITED;
    ck_assert_int_eq(granary_set_limit(g, limit), GRANARY_OK);
    ck_assert(alloc(MEMORY * GR_MIB, streams[STREAMS - 1]));
    free_at(0);
    (void)granary_sim_run_all();
    (void)fixture_trim(g, 0);
    ck_assert_uint_eq(fixture_held().handle_bytes + fixture_held().allocated_bytes, 0);
    compare();
    for (int s = 1; s < STREAMS; s++) ck_assert_int_eq(granary_stream_destroy(g, streams[s]), GRANARY_OK);
    fixture_close(g);
    model_fini(&model);
}

/* A failure names the test and, as its loop index, the seed. */
START_TEST(random_traffic_agrees_with_the_naive_model) {
    const char *one = getenv("GRANARY_TEST_SEED"); /* to look at one seed more closely, or at another */
    run(one ? strtoull(one, NULL, 0) : (uint64_t)_i, 1200);
}
END_TEST

START_TEST(the_traffic_meets_full_cards_and_moves_memory) {
    run(2, 1500);
    ck_assert_uint_gt(failures, 5);
    ck_assert_uint_gt(moves, 5);
}
END_TEST

Suite *suite_random(void) {
    Suite *suite = suite_create("random");
    TCase *cases = tcase_create("random");
    tcase_set_timeout(cases, 20);
    tcase_add_loop_test(cases, random_traffic_agrees_with_the_naive_model, 0, 40);
    tcase_add_test(cases, the_traffic_meets_full_cards_and_moves_memory);
    suite_add_tcase(suite, cases);
    return suite;
}
