/* SPDX-License-Identifier: Apache-2.0
 * Tickets are given once and in order, whoever draws them and however their owner changes. */
#include "ledger/ticket.h"

#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { SOON = 8, THREADS = 4, EACH = 30000 };

static struct gr_tickets tickets;

static void setup(void) {
    gr_tickets_init(&tickets, 0);
    if (tickets.earn != UINT64_MAX) tickets.earn = SOON;
}

static bool is_possible(void) {
    return tickets.earn != UINT64_MAX;
}

static uintptr_t owner(void) {
    return atomic_load(&tickets.owner)->thread;
}

static uint64_t draw_counted(bool twice) {
    struct gr_seat *seat = gr_tickets_enter(&tickets);
    if (!seat) return gr_tickets_draw_shared(&tickets, twice);
    uint64_t ticket = gr_tickets_own(&tickets);
    gr_tickets_draw_own(&tickets, twice);
    gr_seat_leave(seat);
    return ticket;
}

static uint64_t draw(void) {
    return draw_counted(false);
}

static void *draw_there(void *out) {
    *(uint64_t *)out = draw();
    return NULL;
}

static uint64_t draw_in_another_thread(void) {
    pthread_t thread;
    uint64_t ticket = UINT64_MAX;
    ck_assert_int_eq(pthread_create(&thread, NULL, draw_there, &ticket), 0);
    pthread_join(thread, NULL);
    return ticket;
}

START_TEST(who_draws_often_enough_becomes_the_owner_and_shares_no_word_any_more) {
    for (uint64_t t = 0; t < SOON + 1; t++) {
        ck_assert_uint_eq(owner(), 0);
        ck_assert_uint_eq(draw(), t);
    }
    ck_assert_uint_eq(owner(), is_possible() ? gr_thread_token() : 0);
    uint64_t shared = atomic_load(&tickets.shared);
    ck_assert_uint_eq(draw(), SOON + 1);
    ck_assert_uint_eq(gr_tickets_next(&tickets), SOON + 2);
    ck_assert_uint_eq(atomic_load(&tickets.shared), is_possible() ? shared : SOON + 2);
}
END_TEST

START_TEST(another_thread_goes_on_where_the_owner_was_and_then_the_owner_where_that_was) {
    for (uint64_t t = 0; t < 100; t++) ck_assert_uint_eq(draw(), t);
    ck_assert_uint_eq(draw_in_another_thread(), 100);
    ck_assert_uint_eq(owner(), 0);
    ck_assert_uint_eq(gr_tickets_next(&tickets), 101);
    for (uint64_t t = 101; t < 200; t++) ck_assert_uint_eq(draw(), t);
    ck_assert_uint_eq(owner(), is_possible() ? gr_thread_token() : 0);
    ck_assert_uint_eq(gr_tickets_next(&tickets), 200);
}
END_TEST

START_TEST(what_counts_twice_is_counted_whoever_draws_it) {
    for (int i = 0; i < 50; i++) (void)draw_counted(i % 3 == 0);
    ck_assert_uint_eq(gr_tickets_twice(&tickets), 17);
    ck_assert_uint_eq(draw_in_another_thread(), 50);
    ck_assert_uint_eq(gr_tickets_twice(&tickets), 17);
    for (int i = 0; i < 50; i++) (void)draw_counted(true);
    ck_assert_uint_eq(gr_tickets_twice(&tickets), 67);
    ck_assert_uint_eq(gr_tickets_next(&tickets), 101);
}
END_TEST

START_TEST(where_the_kernel_has_no_barrier_nobody_becomes_the_owner) {
    tickets.earn = UINT64_MAX;
    for (uint64_t t = 0; t < 1000; t++) ck_assert_uint_eq(draw(), t);
    ck_assert_uint_eq(owner(), 0);
}
END_TEST

/* ---- threads ---------------------------------------------------------------------------------- */

static atomic_uint_fast64_t baton; /* the last ticket that some thread knows to be drawn */
static unsigned char given[THREADS * EACH];
static atomic_bool go;

/* What other threads tell of their tickets is an order too (K1). Rows are long enough to make owners. */
static void *draw_many(void *argument) {
    unsigned lone = (unsigned)(uintptr_t)argument;
    while (!atomic_load(&go)) sched_yield();
    for (int i = 0; i < EACH; i++) {
        uint64_t before = atomic_load(&baton), ticket = draw_counted(i % 2 == 0);
        if (ticket <= before && before > 0)
            ck_abort_msg("ticket %lu after %lu", (unsigned long)ticket, (unsigned long)before);
        if (ticket >= THREADS * EACH) ck_abort_msg("ticket %lu", (unsigned long)ticket);
        given[ticket]++;
        atomic_store(&baton, ticket);
        if (i % 64 == 0 && (unsigned)i / 64 % THREADS == lone) sched_yield();
    }
    return NULL;
}

START_TEST(threads_that_take_turns_as_owners_get_each_ticket_once_and_in_order) {
    pthread_t thread[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, draw_many, (void *)t), 0);
    atomic_store(&go, true);
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    ck_assert_uint_eq(gr_tickets_next(&tickets), THREADS * EACH);
    ck_assert_uint_eq(gr_tickets_twice(&tickets), THREADS * EACH / 2);
    for (int t = 0; t < THREADS * EACH; t++) ck_assert_int_eq(given[t], 1);
}
END_TEST

Suite *suite_ticket(void) {
    Suite *suite = suite_create("ticket");
    TCase *cases = tcase_create("ticket");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, who_draws_often_enough_becomes_the_owner_and_shares_no_word_any_more);
    tcase_add_test(cases, another_thread_goes_on_where_the_owner_was_and_then_the_owner_where_that_was);
    tcase_add_test(cases, what_counts_twice_is_counted_whoever_draws_it);
    tcase_add_test(cases, where_the_kernel_has_no_barrier_nobody_becomes_the_owner);
    suite_add_tcase(suite, cases);
    TCase *threads = tcase_create("threads"); /* valgrind runs one at a time, and they wait for each other */
    tcase_set_tags(threads, "large");
    tcase_add_checked_fixture(threads, setup, NULL);
    tcase_add_test(threads, threads_that_take_turns_as_owners_get_each_ticket_once_and_in_order);
    suite_add_tcase(suite, threads);
    return suite;
}
