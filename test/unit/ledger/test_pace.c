/* SPDX-License-Identifier: Apache-2.0
 * The clock is read for every event until many in a row came densely, and then for one of sixteen. */
#include "ledger/pace.h"

#include <check.h>

enum { COST = 10, DENSE = GR_PACE_PART * COST, PLENTY = 1000 };

static struct gr_pace pace;
static uint64_t ticket, tick, readings;

static void setup(void) {
    gr_pace_init(&pace, &(struct gr_ticks){.cost = COST});
    ticket = readings = 0;
    tick = 5000;
}

/* The next event comes so many ticks after the last one. */
static uint64_t event_after(uint64_t gap) {
    uint64_t stamp;
    tick += gap;
    if (!gr_pace_shares(&pace, ++ticket - pace.at, &stamp)) {
        gr_pace_note(&pace, ticket, ticket - pace.at, tick, PLENTY);
        stamp = tick;
        readings++;
    }
    return stamp;
}

static void events(unsigned count, uint64_t gap) {
    while (count-- > 0) (void)event_after(gap);
}

/* Of so many events, this many read the clock. */
static uint64_t readings_of(unsigned count, uint64_t gap) {
    uint64_t before = readings;
    events(count, gap);
    return readings - before;
}

START_TEST(events_that_are_apart_have_a_reading_each) {
    ck_assert_uint_eq(readings_of(1000, DENSE), 1000);
    ck_assert_uint_eq(readings_of(1000, 100 * DENSE), 1000);
}
END_TEST

START_TEST(dense_events_have_a_reading_each_until_there_were_enough_of_them) {
    events(1, 10 * DENSE);
    ck_assert_uint_eq(readings_of(GR_PACE_ROW, DENSE - 1), GR_PACE_ROW);
    ck_assert_uint_eq(readings_of(GR_PACE_SHARE - 1, DENSE - 1), 0);
    ck_assert_uint_eq(readings_of(100 * GR_PACE_SHARE, DENSE - 1), 100);
}
END_TEST

START_TEST(one_event_that_is_apart_begins_the_row_anew) {
    events(1, 10 * DENSE);
    for (unsigned before = 1; before < GR_PACE_ROW; before++) {
        ck_assert_uint_eq(readings_of(before, 1), before);
        ck_assert_uint_eq(readings_of(1, DENSE), 1);
    }
}
END_TEST

START_TEST(a_silence_is_noticed_by_the_next_reading_and_then_all_read_again) {
    for (unsigned at = 0; at < GR_PACE_SHARE; at++) {
        events(1, 10 * DENSE);
        events(GR_PACE_ROW, 1);
        events(at, 1);
        ck_assert_uint_le(readings_of(GR_PACE_SHARE, GR_PACE_SHARE * DENSE), at + 1);
        ck_assert_uint_eq(readings_of(100, DENSE), 100);
    }
}
END_TEST

START_TEST(a_stamp_says_how_many_tickets_after_which_reading) {
    events(1, 10 * DENSE);
    events(GR_PACE_ROW, 1);
    const uint64_t reading = tick;
    for (uint64_t after = 1; after < GR_PACE_SHARE; after++) {
        uint64_t stamp = event_after(1);
        ck_assert_uint_eq(stamp & GR_STAMP_TICK, reading);
        ck_assert_uint_eq(stamp >> GR_STAMP_AFTER, after);
    }
    ck_assert_uint_eq(event_after(1), reading + GR_PACE_SHARE);
}
END_TEST

START_TEST(no_more_share_a_reading_than_there_is_room_for) {
    uint64_t stamp;
    events(1, 10 * DENSE);
    events(GR_PACE_ROW, 1);
    gr_pace_note(&pace, pace.at + GR_PACE_SHARE, GR_PACE_SHARE, ++tick, 3);
    ck_assert(gr_pace_shares(&pace, 1, &stamp) && gr_pace_shares(&pace, 2, &stamp));
    ck_assert(!gr_pace_shares(&pace, 3, &stamp));
}
END_TEST

START_TEST(tickets_that_others_drew_meanwhile_end_a_row) {
    events(1, 10 * DENSE);
    events(GR_PACE_ROW, 1);
    ticket += GR_PACE_SHARE;
    ck_assert_uint_eq(readings_of(1, 1), 1);
    ck_assert_uint_eq(readings_of(GR_PACE_ROW, 1), GR_PACE_ROW);
}
END_TEST

START_TEST(a_counter_that_goes_back_is_not_dense) {
    events(1, 10 * DENSE);
    ck_assert_uint_eq(readings_of(1000, (uint64_t)-1), 1000);
}
END_TEST

START_TEST(a_row_that_is_broken_shares_nothing) {
    uint64_t stamp;
    events(1, 10 * DENSE);
    events(GR_PACE_ROW + 3, 1);
    gr_pace_break(&pace);
    ck_assert(!gr_pace_shares(&pace, ticket + 1 - pace.at, &stamp));
    ck_assert_uint_eq(readings_of(GR_PACE_ROW, 1), GR_PACE_ROW);
}
END_TEST

START_TEST(where_a_reading_costs_nothing_every_event_has_one) {
    gr_pace_init(&pace, &(struct gr_ticks){.cost = 0});
    ck_assert_uint_eq(readings_of(1000, 0), 1000);
}
END_TEST

Suite *suite_pace(void) {
    Suite *suite = suite_create("pace");
    TCase *cases = tcase_create("pace");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, events_that_are_apart_have_a_reading_each);
    tcase_add_test(cases, dense_events_have_a_reading_each_until_there_were_enough_of_them);
    tcase_add_test(cases, one_event_that_is_apart_begins_the_row_anew);
    tcase_add_test(cases, a_silence_is_noticed_by_the_next_reading_and_then_all_read_again);
    tcase_add_test(cases, a_stamp_says_how_many_tickets_after_which_reading);
    tcase_add_test(cases, no_more_share_a_reading_than_there_is_room_for);
    tcase_add_test(cases, tickets_that_others_drew_meanwhile_end_a_row);
    tcase_add_test(cases, a_counter_that_goes_back_is_not_dense);
    tcase_add_test(cases, a_row_that_is_broken_shares_nothing);
    tcase_add_test(cases, where_a_reading_costs_nothing_every_event_has_one);
    suite_add_tcase(suite, cases);
    return suite;
}
