/* SPDX-License-Identifier: Apache-2.0
 * Routes are found by handle without a lock, also while the table is being replaced by a larger one. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "heap/route.h"

enum { ROUTES = 1000 };

static struct gr_routes routes;
static struct gr_route *all;
static struct gr_stream *streams;

static void setup(void) {
    ck_assert(gr_routes_init(&routes));
    all = calloc(ROUTES, sizeof *all);
    streams = calloc(ROUTES, sizeof *streams);
    ck_assert(all && streams);
}

static void teardown(void) {
    gr_routes_fini(&routes);
    free(all);
    free(streams);
}

/* Handles as a driver gives them: addresses, some far apart. */
static gr_cu_stream handle_of(size_t i) {
    return i == 0 ? GR_CU_STREAM_LEGACY
                  : (gr_cu_stream)(uintptr_t)(0x55d0c0000000 + i * 0x2a0 + i % 7 * 0x10000000);
}

static void publish(size_t i) {
    gr_stream_init(&streams[i], handle_of(i));
    all[i].handle = handle_of(i);
    all[i].stream = &streams[i];
    ck_assert(gr_route_reserve(&routes));
    gr_route_publish(&routes, &all[i]);
}

START_TEST(what_was_published_is_found_and_nothing_else) {
    for (size_t i = 0; i < ROUTES; i++) {
        ck_assert_ptr_null(gr_route_find(&routes, handle_of(i)));
        publish(i);
        for (size_t k = 0; k <= i; k += 1 + i / 16)
            ck_assert_ptr_eq(gr_route_find(&routes, handle_of(k)), &all[k]);
        ck_assert_ptr_eq(gr_route_find(&routes, handle_of(i)), &all[i]);
    }
    ck_assert_uint_eq(routes.used, ROUTES);
    size_t walked = 0;
    for (struct gr_route *route = routes.first; route; route = route->next) walked++;
    ck_assert_uint_eq(walked, ROUTES);
}
END_TEST

START_TEST(the_table_stays_at_most_half_full) {
    for (size_t i = 0; i < ROUTES; i++) {
        publish(i);
        ck_assert_uint_le(2 * routes.used, atomic_load(&routes.table)->mask + 1);
    }
}
END_TEST

START_TEST(a_hidden_route_is_found_no_more_and_its_handle_can_be_published_again) {
    static struct gr_route second;
    static struct gr_stream stream;
    for (size_t i = 0; i < ROUTES; i++) publish(i);
    for (size_t i = 0; i < ROUTES; i += 3) gr_route_hide(&routes, &all[i]);
    gr_route_hide(&routes, &all[0]); /* twice is harmless */
    for (size_t i = 0; i < ROUTES; i++)
        ck_assert_ptr_eq(gr_route_find(&routes, handle_of(i)), i % 3 == 0 ? NULL : &all[i]);
    gr_stream_init(&stream, handle_of(3));
    second = (struct gr_route){.handle = handle_of(3), .stream = &stream};
    ck_assert(gr_route_reserve(&routes));
    gr_route_publish(&routes, &second);
    ck_assert_ptr_eq(gr_route_find(&routes, handle_of(3)), &second);
}
END_TEST

START_TEST(tombstones_do_not_make_the_tables_grow_for_ever) {
    size_t slots = 0;
    for (size_t i = 0; i < ROUTES; i++) {
        publish(i);
        gr_route_hide(&routes, &all[i]);
        gr_route_unlink(&routes, &all[i]);
    }
    for (struct gr_route_table *table = atomic_load(&routes.table); table; table = table->older)
        slots += table->mask + 1;
    ck_assert_uint_le(slots, 128);
}
END_TEST

static atomic_bool stop;
static atomic_size_t published;

static void *look(void *unused) {
    (void)unused;
    while (!atomic_load(&stop)) {
        size_t count = atomic_load(&published);
        for (size_t i = 0; i < count; i++)
            if (gr_route_find(&routes, handle_of(i)) != &all[i]) return "lost";
    }
    return NULL;
}

START_TEST(readers_lose_no_route_while_the_table_grows) {
    pthread_t readers[2];
    atomic_store(&stop, false);
    atomic_store(&published, 0);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&readers[i], NULL, look, NULL), 0);
    for (size_t i = 0; i < ROUTES; i++) {
        publish(i);
        atomic_store(&published, i + 1);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        void *complaint = NULL;
        pthread_join(readers[i], &complaint);
        ck_assert_ptr_null(complaint);
    }
}
END_TEST

Suite *suite_route(void) {
    Suite *suite = suite_create("route");
    TCase *cases = tcase_create("route");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, what_was_published_is_found_and_nothing_else);
    tcase_add_test(cases, the_table_stays_at_most_half_full);
    tcase_add_test(cases, a_hidden_route_is_found_no_more_and_its_handle_can_be_published_again);
    tcase_add_test(cases, tombstones_do_not_make_the_tables_grow_for_ever);
    tcase_add_test(cases, readers_lose_no_route_while_the_table_grows);
    suite_add_tcase(suite, cases);
    return suite;
}
