/* SPDX-License-Identifier: Apache-2.0
 * The set of live blocks, without host memory: it finds what it found, grows when there is some again, and gives
 * back what it took. */
#include <check.h>

#include "block/live.h"
#include "fault/host_wrap.h"
#include "support/hot.h"

enum { BLOCKS = 4000 };

static struct gr_live live;
static struct gr_block blocks[BLOCKS];
static int64_t before;

static void setup(void) {
    before = host_wrap_live();
    gr_live_init(&live);
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = (struct gr_block){.addr = 0x7f1234000000 + i * 1024, .size = 512, .state = GR_BLOCK_LIVE};
}

static void teardown(void) {
    host_wrap_fail(0, 0);
    gr_live_fini(&live);
    ck_assert_int_eq(host_wrap_live(), before);
}

static void add(size_t from, size_t to) {
    for (size_t i = from; i < to; i++) gr_live_add(&live, &blocks[i]);
}

START_TEST(a_set_that_cannot_grow_finds_everything_and_grows_later) {
    add(0, GR_LIVE_FEW / 2);
    host_wrap_fail(1, UINT64_MAX / 2);
    add(GR_LIVE_FEW / 2, BLOCKS / 2);
    ck_assert_uint_eq(gr_live_buckets(&live), GR_LIVE_FEW);
    ck_assert_uint_gt(host_wrap_refused(), 10);
    ck_assert_uint_lt(host_wrap_refused(), BLOCKS / 40); /* not with every block */
    ck_assert_ptr_null(gr_live_check(&live));
    host_wrap_fail(0, 0);
    add(BLOCKS / 2, BLOCKS);
    ck_assert_uint_gt(gr_live_buckets(&live), BLOCKS);
    ck_assert_ptr_null(gr_live_check(&live));
    for (size_t i = 0; i < BLOCKS; i++) {
        HOT_ASSERT(gr_live_find(&live, blocks[i].addr) == &blocks[i]);
        HOT_ASSERT(!gr_live_find(&live, blocks[i].addr + 512));
    }
}
END_TEST

/* With its first buckets and with others, at rest and while it grows; what it took is counted at the end. */
START_TEST(a_set_gives_back_what_it_took_at_any_moment) {
    static const size_t counts[] = {1, 9, 13, 33, 40, 129, BLOCKS};
    add(0, counts[_i]);
    ck_assert_int_le(host_wrap_live() - before, 2);
}
END_TEST

Suite *suite_live_faults(void);
Suite *suite_live_faults(void) {
    Suite *suite = suite_create("live_faults");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_set_that_cannot_grow_finds_everything_and_grows_later);
    tcase_add_loop_test(cases, a_set_gives_back_what_it_took_at_any_moment, 0, 7);
    suite_add_tcase(suite, cases);
    return suite;
}
