/* SPDX-License-Identifier: Apache-2.0
 * Ticks become the time of day, with the processor's counter and without it. */
#include "base/ticks.h"

#include <check.h>
#include <time.h>

/* Both kinds: what this machine has, and the clock alone. */
static struct gr_ticks begin(int kind) {
    struct gr_ticks ticks;
    gr_ticks_init(&ticks);
    if (kind == 0) return ticks;
    ticks.counter = false;
    ticks.first = ticks.first_ns = gr_clock_ns();
    return ticks;
}

static void spend(long ns) {
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

START_TEST(a_tick_is_read_as_the_time_of_day_at_which_it_was_taken) {
    enum { TRIES = 50, NEAR = 20000 };
    struct gr_ticks ticks = begin(_i);
    for (int i = 0;; i++) {
        uint64_t before = gr_clock_read(CLOCK_REALTIME), tick = gr_ticks_now(&ticks);
        uint64_t after = gr_clock_read(CLOCK_REALTIME);
        spend(3000000);
        struct gr_ticks_scale scale = gr_ticks_read(&ticks);
        uint64_t at = gr_ticks_ns(&scale, tick);
        if (at + NEAR >= before && at <= after + NEAR) break;
        ck_assert_int_lt(i, TRIES); /* the thread may have lost its processor at a bad moment */
    }
}
END_TEST

START_TEST(ticks_rise_and_so_do_the_times_that_they_stand_for) {
    struct gr_ticks ticks = begin(_i);
    uint64_t tick[1000];
    for (int i = 0; i < 1000; i++) tick[i] = gr_ticks_now(&ticks);
    struct gr_ticks_scale scale = gr_ticks_read(&ticks);
    for (int i = 1; i < 1000; i++) {
        ck_assert_uint_ge(tick[i], tick[i - 1]);
        ck_assert_uint_ge(gr_ticks_ns(&scale, tick[i]), gr_ticks_ns(&scale, tick[i - 1]));
    }
    ck_assert_uint_lt(tick[0], tick[999]);
}
END_TEST

START_TEST(a_scale_goes_on_in_both_directions) {
    const struct gr_ticks_scale scale = {.now = 5000, .now_ns = 1000000, .step = (uint64_t)1 << 31};
    ck_assert_uint_eq(gr_ticks_ns(&scale, 5000), 1000000);
    ck_assert_uint_eq(gr_ticks_ns(&scale, 4000), 999500);
    ck_assert_uint_eq(gr_ticks_ns(&scale, 6000), 1000500);
    ck_assert_uint_eq(gr_ticks_ns(&scale, 5000 + ((uint64_t)1 << 60)), 1000000 + ((uint64_t)1 << 59));
}
END_TEST

START_TEST(a_counter_that_began_anew_is_no_reason_to_divide_by_nothing) {
    struct gr_ticks ticks = begin(0);
    ticks.first = UINT64_MAX;
    struct gr_ticks_scale scale = gr_ticks_read(&ticks);
    ck_assert_uint_eq(scale.step, (uint64_t)1 << 32);
}
END_TEST

Suite *suite_ticks(void) {
    Suite *suite = suite_create("ticks");
    TCase *cases = tcase_create("ticks");
    tcase_add_loop_test(cases, a_tick_is_read_as_the_time_of_day_at_which_it_was_taken, 0, 2);
    tcase_add_loop_test(cases, ticks_rise_and_so_do_the_times_that_they_stand_for, 0, 2);
    tcase_add_test(cases, a_scale_goes_on_in_both_directions);
    tcase_add_test(cases, a_counter_that_began_anew_is_no_reason_to_divide_by_nothing);
    suite_add_tcase(suite, cases);
    return suite;
}
