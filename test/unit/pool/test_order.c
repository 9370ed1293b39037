/* SPDX-License-Identifier: Apache-2.0
 * Which block a pool of ranges serves: a list of tiles that knows nothing of bins says the same. */
#include <check.h>

#include "support/hot.h"
#include "support/lone_pool.h"
#include "support/rng.h"

enum { TILES = 600, LISTED = GR_MIB };

struct tile {
    gr_addr addr;
    size_t size;
    bool free;
    int64_t place; /* of equal ones that are free the least serves */
    struct gr_block *block;
};

static struct lone_pool lone;
static struct tile tiles[TILES]; /* in rising address, without gaps */
static size_t count, recent;     /* the tile freed last, which is not joined yet; count: none */
static gr_addr taken;            /* handed out last, when nothing has come or gone since */
static gr_addr middle;
static int64_t front, end;

static void setup(void) {
    lone_pool_open(&lone, GR_SMALL, true);
    struct gr_segment *segment = lone_pool_add_range(&lone, 8);
    lone_pool_put(&lone, lone_pool_take(&lone, 16 * GR_MIB, 8));
    gr_pool_settle(&lone.pool);
    tiles[0] = (struct tile){.addr = segment->base, .size = 16 * GR_MIB, .free = true};
    count = recent = 1;
    taken = 0;
    middle = lone.pool.free.middle;
    front = end = 0;
}

static void teardown(void) {
    ck_assert_ptr_null(lone_pool_check(&lone));
    lone_pool_close(&lone);
}

/* A free tile of this size finds its place among those that are as large. */
static void enter(struct tile *t) {
    if (t->size >= LISTED) return;
    t->place = t->addr < middle ? --front : ++end;
    middle += t->addr / 64 - middle / 64;
}

/* The tile at `at` swallows the next one. */
static void swallow(size_t at) {
    tiles[at].size += tiles[at + 1].size;
    count--;
    for (size_t i = at + 1; i < count; i++) tiles[i] = tiles[i + 1];
}

/* Whether something is cut off behind it, which has no place yet. */
static bool cut(size_t at, size_t size) {
    if (tiles[at].size == size) return false;
    ck_assert_uint_lt(count, TILES);
    for (size_t i = count++; i > at; i--) tiles[i] = tiles[i - 1];
    tiles[at].size = size;
    tiles[at + 1].addr += size;
    tiles[at + 1].size -= size;
    return true;
}

/* What was freed last joins its neighbours. The tile that it is now, which has no place yet; count: there is none. */
static size_t join(void) {
    size_t at = recent;
    if (at == count) return count;
    if (at + 1 < count && tiles[at + 1].free) swallow(at);
    if (at > 0 && tiles[at - 1].free) swallow(--at);
    recent = count;
    return at;
}

static void settle(void) {
    if (recent == count) return;
    enter(&tiles[join()]);
    taken = 0;
}

/* Does a, which may have no place yet, serve before b, which has one? */
static bool better(const struct tile *a, const struct tile *b, bool placed) {
    if (a->size != b->size) return a->size < b->size;
    if (a->size >= LISTED) return a->addr < b->addr;
    return placed ? a->place < b->place : a->addr < middle;
}

/* Of those that have a place. */
static size_t best(size_t size, size_t joined) {
    size_t found = count;
    for (size_t i = 0; i < count; i++)
        if (tiles[i].free && i != joined && tiles[i].size >= size &&
            (found == count || better(&tiles[i], &tiles[found], true)))
            found = i;
    return found;
}

/* The address that serves, or 0. */
static gr_addr model_take(size_t size) {
    if (recent < count && tiles[recent].addr == taken && tiles[recent].size == size) {
        tiles[recent].free = false;
        recent = count;
        return taken;
    }
    const struct tile freed = recent < count ? tiles[recent] : (struct tile){0};
    const bool behind = recent + 1 < count && tiles[recent + 1].free;
    const int64_t place = behind ? tiles[recent + 1].place : 0;
    const bool none = recent == count;
    const size_t joined = none ? SIZE_MAX : join();
    size_t at = best(size, joined);
    taken = 0;
    if (!none && tiles[joined].size >= size && (at == count || better(&tiles[joined], &tiles[at], false)))
        at = joined;
    else if (!none)
        enter(&tiles[joined]);
    if (at == count) return 0;
    if (cut(at, size)) {
        recent = count;
        /* The block freed last at its own size is as if it had not been freed, and so is what is free behind it. */
        if (at == joined && behind && tiles[at].addr == freed.addr && freed.size == size)
            tiles[at + 1].place = place;
        else
            enter(&tiles[at + 1]);
    }
    tiles[at].free = false;
    return taken = tiles[at].addr;
}

/* As a hit does. */
static struct gr_block *take(size_t size) {
    struct gr_block *b = gr_pool_again(&lone.pool, size, size);
    if (!b && gr_pool_take(&lone.pool, size, size, false, &b) != GRANARY_OK) return NULL;
    if (gr_ledger_alloc(&lone.pool.tally, b->addr, b->size, size, &b->label))
        gr_ledger_settle(&lone.ledger, &lone.pool.tally);
    return b;
}

static void give(size_t at) {
    struct gr_block *b = tiles[at].block;
    gr_live_remove(&lone.pool.live, gr_live_link(&lone.pool.live, b->addr));
    gr_ledger_free(&lone.pool.tally, b->addr, b->size, b->u.live.requested, 0);
    gr_block_since(b, gr_stream_epoch(&lone.stream), 0);
    gr_pool_free(&lone.pool, b);
    settle();
    for (at = 0; tiles[at].block != b || tiles[at].free;) at++;
    tiles[at].free = true;
    recent = at;
}

static size_t few_sizes(struct rng *rng) {
    return 512 * rng_between(rng, 1, 3);
}
static size_t many_sizes(struct rng *rng) {
    return 512 * rng_between(rng, 1, (size_t)1 << rng_between(rng, 1, 9));
}
static size_t sizes_around_the_last_list(struct rng *rng) {
    return rng_once_in(rng, 2) ? LISTED - 1024 + 512 * rng_below(rng, 5) : 512 * rng_between(rng, 1, 4);
}
static size_t halves(struct rng *rng) {
    return (size_t)1 << rng_between(rng, 16, 21);
}
static size_t (*const kinds[])(struct rng *) = {few_sizes, many_sizes, sizes_around_the_last_list, halves};
enum { KINDS = GR_COUNT(kinds), SEEDS = 8 };

static size_t random_live(struct rng *rng) {
    size_t at = rng_below(rng, count);
    for (size_t n = 0; n < count; n++, at = (at + 1) % count)
        if (!tiles[at].free) return at;
    return count;
}

START_TEST(a_pool_serves_what_a_list_of_tiles_says) {
    struct rng rng = {1000 + (uint64_t)_i};
    size_t last = 512, served = 0, refused = 0;
    for (int step = 0; step < 20000; step++) {
        const unsigned fill = (unsigned)(step / 2500 % 3); /* grows, shrinks, stays */
        size_t at = random_live(&rng);
        if (at == count || (count < TILES - 2 && rng_below(&rng, 100) < 40 + 10 * fill)) {
            size_t size = rng_once_in(&rng, 3) ? last : kinds[_i % KINDS](&rng);
            gr_addr addr = model_take(size);
            struct gr_block *b = take(size);
            HOT_ASSERT((b ? b->addr : 0) == addr);
            served += b != NULL;
            refused += b == NULL;
            for (size_t i = 0; b && i < count; i++)
                if (tiles[i].addr == addr) tiles[i].block = b;
        } else {
            last = tiles[at].size;
            give(at);
        }
        if (step % 5000 == 0) ck_assert_ptr_null(gr_pool_check(&lone.pool, true));
        if (step % 5000 == 0) settle(); /* as the check does */
    }
    ck_assert_uint_gt(served, 5000);
    ck_assert(refused > 0 || _i % KINDS != 3); /* halves do run out */
    for (size_t at; (at = random_live(&rng)) < count;) give(at);
}
END_TEST

/* Of two equal holes, of which the lower or the upper one was freed first: does the lower one serve? */
static bool lower_serves(size_t size, bool lower_first, bool middle_between) {
    struct gr_block *b[4];
    for (int i = 0; i < 4; i++) b[i] = lone_pool_take(&lone, size, 1);
    const gr_addr low = b[0]->addr, high = b[2]->addr;
    ck_assert_uint_lt(low, high);
    lone.pool.free.middle = middle_between ? high : 0;
    lone_pool_put(&lone, b[lower_first ? 0 : 2]);
    lone.pool.free.middle = middle_between ? high : 0;
    lone_pool_put(&lone, b[lower_first ? 2 : 0]);
    gr_pool_settle(&lone.pool);
    struct gr_block *again = take(size);
    ck_assert(again->addr == low || again->addr == high);
    gr_addr addr = again->addr;
    lone_pool_put(&lone, again);
    lone_pool_put(&lone, b[1]);
    lone_pool_put(&lone, b[3]);
    return addr == low;
}

/* Only a bin that is sorted knows it. */
static bool lowest_serves(size_t size) {
    return lower_serves(size, true, false) && lower_serves(size, false, false);
}

START_TEST(of_equal_blocks_below_1_mib_one_below_the_middle_serves_before_one_above_it) {
    for (int lower_first = 0; lower_first < 2; lower_first++) {
        ck_assert(lower_serves(4096, lower_first, true));
        ck_assert(lower_serves(LISTED - 512, lower_first, true));
    }
    ck_assert(lower_serves(4096, true, false)); /* both above it: the one that came first */
    ck_assert(!lower_serves(4096, false, false));
}
END_TEST

START_TEST(of_equal_blocks_from_1_mib_on_the_lowest_serves) {
    ck_assert(!lowest_serves(LISTED - 512));
    ck_assert(lowest_serves(LISTED));
    ck_assert(lowest_serves(2 * GR_MIB));
}
END_TEST

static void open_classic(void) {
    lone_pool_open(&lone, GR_SMALL, false);
    lone_pool_add_classic(&lone, 16 * GR_MIB);
}

START_TEST(of_equal_blocks_in_classic_segments_the_lowest_serves) {
    ck_assert(lowest_serves(4096));
    ck_assert(lowest_serves(LISTED - 512));
}
END_TEST

START_TEST(a_pool_of_ranges_that_is_handed_on_to_serve_by_classic_segments_serves_as_they_do) {
    ck_assert(!lowest_serves(4096));
    lone_pool_hand_on(&lone, false, false);
    ck_assert_ptr_null(lone_pool_check(&lone));
    lone_pool_add_classic(&lone, 16 * GR_MIB);
    ck_assert(lowest_serves(4096));
}
END_TEST

START_TEST(of_equal_blocks_that_are_never_cut_the_lowest_serves) {
    lone_pool_hand_on(&lone, true, true);
    for (int i = 0; i < 2; i++) lone_pool_add_classic(&lone, 4096);
    struct gr_segment *const *segments = lone.pool.segments; /* in rising address */
    for (int i = 0; i < 2; i++) ck_assert_ptr_nonnull(take(4096));
    for (int i = 0; i < 2; i++) lone_pool_put(&lone, segments[i]->first);
    struct gr_block *b = take(4096);
    ck_assert_ptr_eq(b, segments[0]->first);
    lone_pool_put(&lone, b);
}
END_TEST

Suite *suite_order(void) {
    Suite *suite = suite_create("order");
    TCase *ranges = tcase_create("ranges"), *classic = tcase_create("classic");
    tcase_add_checked_fixture(ranges, setup, teardown);
    tcase_add_loop_test(ranges, a_pool_serves_what_a_list_of_tiles_says, 0, KINDS * SEEDS);
    tcase_add_test(ranges, of_equal_blocks_below_1_mib_one_below_the_middle_serves_before_one_above_it);
    tcase_add_test(ranges, of_equal_blocks_from_1_mib_on_the_lowest_serves);
    tcase_add_test(ranges, a_pool_of_ranges_that_is_handed_on_to_serve_by_classic_segments_serves_as_they_do);
    tcase_add_test(ranges, of_equal_blocks_that_are_never_cut_the_lowest_serves);
    suite_add_tcase(suite, ranges);
    tcase_add_checked_fixture(classic, open_classic, teardown);
    tcase_add_test(classic, of_equal_blocks_in_classic_segments_the_lowest_serves);
    suite_add_tcase(suite, classic);
    return suite;
}
