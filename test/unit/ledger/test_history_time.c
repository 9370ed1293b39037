/* SPDX-License-Identifier: Apache-2.0
 * The times of the history: from the clock or between two that are, never further off than they say, never going
 * back. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "ledger/history.h"
#include "support/rng.h"

enum {
    ROOM = 4096,
    EARN = GR_PACE_SHARE + 1,
    SLACK = 30000 /* ns: two readings of a tick, and a busy machine */
};
#define ALL_DENSE ((uint64_t)1 << 56)

static struct gr_history history;
static struct gr_place place;
static struct gr_event event[ROOM];
static size_t count;

static void resize(uint64_t room) {
    struct gr_ring ring;
    ck_assert(gr_ring_make(room, &ring));
    gr_history_exchange(&history, &ring);
    gr_ring_free(&ring);
}

static void setup(void) {
    gr_history_init(&history);
    if (history.tickets.earn != UINT64_MAX) history.tickets.earn = EARN;
    gr_history_set_level(&history, GRANARY_HISTORY_ALL);
    place = (struct gr_place){.stream = 5, .heap = 3};
    gr_history_number(&history, &place);
    resize(ROOM);
}
static void teardown(void) {
    gr_history_fini(&history);
}

/* Whether there can be an owner, whose events may share readings. */
static bool can_share(void) {
    return history.tickets.earn != UINT64_MAX;
}

/* As hits do and as others do, in turns. */
static void tell(uint64_t addr) {
    const uint64_t words = gr_history_words(0, GR_ALLOC, 0);
    struct gr_seat *seat;
    if (addr % 4 == 0)
        gr_history_tell(&history, GR_ALLOC, &place, addr, addr * 2, 0);
    else if (!gr_history_put_next(&history, &place, words, addr, addr * 2, &seat))
        gr_history_put(&history, seat, &place, words, addr, addr * 2);
}

/* All dense from now on, and the thread shares with its next event but one. */
static void become_dense(void) {
    history.pace.dense = ALL_DENSE;
    for (int i = 0; i < 2 * (EARN + GR_PACE_ROW); i++) tell(1);
    while (can_share() && gr_tickets_next(&history.tickets) - history.pace.at != 1) tell(1);
}

static void read_all(void) {
    const struct gr_span span = gr_history_span(&history);
    count = gr_history_copy(&history, &span, event);
}

static void expect_no_way_back(void) {
    for (size_t i = 1; i < count; i++) ck_assert_uint_ge(event[i].time_ns, event[i - 1].time_ns);
}

static size_t count_unsure(void) {
    size_t unsure = 0;
    for (size_t i = 0; i < count; i++) unsure += event[i].unsure_ns > 0;
    return unsure;
}

static void pause_ns(uint64_t ns) {
    const uint64_t until = gr_clock_ns() + ns;
    while (gr_clock_ns() < until) {}
}

START_TEST(events_that_are_apart_are_sure_of_their_times) {
    for (uint64_t i = 0; i < 1000; i++) {
        pause_ns(2000);
        tell(i);
    }
    read_all();
    ck_assert_uint_eq(count, 1000);
    ck_assert_uint_eq(count_unsure(), 0);
    expect_no_way_back();
}
END_TEST

START_TEST(of_dense_events_one_of_sixteen_has_read_the_clock_and_the_others_stand_evenly_behind_it) {
    become_dense();
    gr_history_clear(&history);
    for (uint64_t i = 0; i < 100 * GR_PACE_SHARE; i++) tell(i);
    read_all();
    ck_assert_uint_eq(count, 100 * GR_PACE_SHARE);
    ck_assert_uint_eq(count_unsure(), can_share() ? 100 * (GR_PACE_SHARE - 1) : 0);
    expect_no_way_back();
    for (size_t i = GR_PACE_SHARE; can_share() && i + GR_PACE_SHARE < count; i += GR_PACE_SHARE) {
        size_t first = i - 1; /* the reading */
        uint64_t span = event[first + GR_PACE_SHARE].time_ns - event[first].time_ns;
        for (size_t k = 1; k < GR_PACE_SHARE; k++) {
            uint64_t even = event[first].time_ns + span * k / GR_PACE_SHARE, is = event[first + k].time_ns;
            ck_assert_uint_le(is > even ? is - even : even - is, 2);
            ck_assert_uint_le(event[first + k].unsure_ns, span + 2);
        }
    }
}
END_TEST

/* Silences of all lengths fall anywhere in rows that share readings. */
START_TEST(no_time_is_further_off_than_it_says) {
    static const uint64_t silence[] = {0, 1000, 20000, 300000};
    static uint64_t before[ROOM], after[ROOM];
    struct rng rng = {(uint64_t)_i + 1};
    enum { EVENTS = 600 };
    become_dense();
    gr_history_clear(&history);
    for (size_t i = 0; i < EVENTS; i++) {
        if (rng_below(&rng, 8) == 0) pause_ns(silence[rng_below(&rng, 4)]);
        if (rng_below(&rng, 100) == 0) resize(ROOM - rng_below(&rng, 100));
        before[i] = gr_clock_read(CLOCK_REALTIME);
        tell(i);
        after[i] = gr_clock_read(CLOCK_REALTIME);
    }
    read_all();
    ck_assert_uint_eq(count, EVENTS);
    if (can_share()) ck_assert_uint_gt(count_unsure(), EVENTS / 4);
    expect_no_way_back();
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_le(before[i], event[i].time_ns + event[i].unsure_ns + SLACK);
        ck_assert_uint_ge(after[i] + event[i].unsure_ns + SLACK, event[i].time_ns);
    }
}
END_TEST

START_TEST(a_silence_behind_a_dense_row_shows_as_doubt_and_what_follows_is_sure) {
    become_dense();
    gr_history_clear(&history);
    for (uint64_t i = 0; i < 3; i++) tell(i);
    history.pace.dense = 1; /* nothing is dense any more */
    pause_ns(5000000);
    for (uint64_t i = 3; i < 100; i++) tell(i);
    read_all();
    ck_assert_uint_eq(count, 100);
    for (size_t i = 0; i < count; i++)
        if (can_share() && i < GR_PACE_SHARE - 1)
            ck_assert_uint_ge(event[i].unsure_ns, 5000000);
        else
            ck_assert_uint_eq(event[i].unsure_ns, 0);
}
END_TEST

START_TEST(a_row_that_nothing_followed_ends_when_the_history_was_read_or_put_off) {
    become_dense();
    gr_history_clear(&history);
    for (uint64_t i = 0; i < 3; i++) tell(i);
    const uint64_t told = gr_clock_read(CLOCK_REALTIME);
    if (_i == 1) gr_history_set_level(&history, GRANARY_HISTORY_OFF);
    const uint64_t off = gr_clock_read(CLOCK_REALTIME);
    pause_ns(5000000);
    read_all();
    ck_assert_uint_eq(count, 3);
    expect_no_way_back();
    for (size_t i = 0; can_share() && i < count; i++) {
        ck_assert_uint_gt(event[i].unsure_ns, 0);
        ck_assert_uint_le(told, event[i].time_ns + event[i].unsure_ns + SLACK + (off - told));
        if (_i == 1) ck_assert_uint_le(event[i].time_ns, off + SLACK);
    }
}
END_TEST

START_TEST(what_is_told_after_the_history_was_put_off_and_on_reads_the_clock) {
    become_dense();
    gr_history_clear(&history);
    gr_history_set_level(&history, GRANARY_HISTORY_STATE);
    pause_ns(5000000);
    gr_history_set_level(&history, GRANARY_HISTORY_ALL);
    for (uint64_t i = 0; i < GR_PACE_ROW; i++) tell(i);
    read_all();
    ck_assert_uint_eq(count, GR_PACE_ROW);
    ck_assert_uint_eq(count_unsure(), 0);
}
END_TEST

/* The event that has read the clock was overwritten; those that share it know its tick. */
START_TEST(rows_go_around_in_rings_of_any_size) {
    for (uint64_t room = 1; room <= 3 * GR_PACE_SHARE; room++) {
        resize(room);
        become_dense();
        gr_history_clear(&history);
        for (uint64_t i = 1; i <= 5 * room + 7; i++) {
            tell(i);
            const uint64_t now = gr_clock_read(CLOCK_REALTIME), kept = i < room ? i : room;
            read_all();
            ck_assert_uint_eq(count, kept);
            for (uint64_t k = 0; k < kept; k++) {
                ck_assert_uint_eq(event[k].addr, i - kept + 1 + k);
                ck_assert_uint_eq(event[k].size, event[k].addr * 2);
            }
            expect_no_way_back();
            ck_assert_uint_le(event[kept - 1].time_ns, now + event[kept - 1].unsure_ns + SLACK);
        }
    }
}
END_TEST

START_TEST(both_events_of_a_free_have_one_time_also_where_it_is_between_two_readings) {
    become_dense();
    gr_history_clear(&history);
    for (uint64_t i = 0; i < 100; i++) gr_history_tell_free(&history, &place, i, 1, 0);
    read_all();
    ck_assert_uint_eq(count, 200);
    for (size_t i = 0; i < count; i += 2) {
        ck_assert_int_eq((int)event[i].action, GR_FREE_REQUESTED);
        ck_assert_int_eq((int)event[i + 1].action, GR_FREE_COMPLETED);
        ck_assert_uint_eq(event[i].time_ns, event[i + 1].time_ns);
        ck_assert_uint_eq(event[i].unsure_ns, event[i + 1].unsure_ns);
    }
    expect_no_way_back();
}
END_TEST

START_TEST(in_a_row_too_a_slot_is_left_alone_until_its_last_writer_is_done) {
    enum { FEW = 5 };
    const uint64_t words = gr_history_words(0, GR_ALLOC, 0);
    struct gr_seat *seat;
    resize(FEW);
    become_dense();
    const uint64_t next = gr_tickets_next(&history.tickets);
    if (!can_share()) return;
    atomic_uint_fast64_t *word = &gr_spot_of(&history.ring, next).slot->word[0];
    const uint64_t was = atomic_load(word);
    atomic_store(word, was - ((uint64_t)1 << GR_SLOT_ROUND)); /* as if it were not written yet */
    ck_assert(!gr_history_put_next(&history, &place, words, 7, 14, &seat));
    gr_seat_leave(seat);
    ck_assert_uint_eq(gr_tickets_next(&history.tickets), next);
    atomic_store(word, was);
    ck_assert(gr_history_put_next(&history, &place, words, 7, 14, &seat));
    ck_assert_uint_eq(gr_tickets_next(&history.tickets), next + 1);
    read_all();
    ck_assert_uint_eq(event[FEW - 1].addr, 7);
}
END_TEST

static void *tell_there(void *argument) {
    tell(*(uint64_t *)argument);
    return NULL;
}

START_TEST(an_event_of_another_thread_reads_the_clock_and_ends_the_row) {
    become_dense();
    gr_history_clear(&history);
    for (uint64_t i = 0; i < 60; i++) {
        pthread_t thread;
        if (i % 10 != 4) {
            tell(i);
            continue;
        }
        ck_assert_int_eq(pthread_create(&thread, NULL, tell_there, &i), 0);
        pthread_join(thread, NULL);
        become_dense();
    }
    read_all();
    expect_no_way_back();
    for (size_t i = 0, others = 0; i < count; i++)
        if (event[i].addr % 10 == 4) {
            ck_assert_uint_eq(event[i].addr, 10 * others++ + 4);
            ck_assert_uint_eq(event[i].unsure_ns, 0);
            ck_assert_uint_eq(event[i + 1].unsure_ns, 0);
        }
}
END_TEST

Suite *suite_history_time(void) {
    Suite *suite = suite_create("history_time");
    TCase *cases = tcase_create("history_time");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, events_that_are_apart_are_sure_of_their_times);
    tcase_add_test(cases,
                   of_dense_events_one_of_sixteen_has_read_the_clock_and_the_others_stand_evenly_behind_it);
    tcase_add_loop_test(cases, no_time_is_further_off_than_it_says, 0, 10);
    tcase_add_test(cases, a_silence_behind_a_dense_row_shows_as_doubt_and_what_follows_is_sure);
    tcase_add_loop_test(cases, a_row_that_nothing_followed_ends_when_the_history_was_read_or_put_off, 0, 2);
    tcase_add_test(cases, what_is_told_after_the_history_was_put_off_and_on_reads_the_clock);
    tcase_add_test(cases, rows_go_around_in_rings_of_any_size);
    tcase_add_test(cases, both_events_of_a_free_have_one_time_also_where_it_is_between_two_readings);
    tcase_add_test(cases, in_a_row_too_a_slot_is_left_alone_until_its_last_writer_is_done);
    tcase_add_test(cases, an_event_of_another_thread_reads_the_clock_and_ends_the_row);
    suite_add_tcase(suite, cases);
    return suite;
}
