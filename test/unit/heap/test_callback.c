/* SPDX-License-Identifier: Apache-2.0
 * Callbacks: who is called when, with what, with no lock held, and never in circles. */
#include <pthread.h>
#include <string.h>

#include "support/captures.h"
#include "support/shortfall.h"

static granary_stream a;

static void of_64_mib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 64 * GR_MIB;
}

static void open_card(void) {
    captures_open(of_64_mib);
    a = captures_stream();
}

static int try_alloc(size_t size) {
    void *p = NULL;
    int status = granary_alloc(g, size, a, &p);
    if (p) fixture_free(g, p);
    return status;
}

/* ---- reliefs ---------------------------------------------------------------------------------- */

struct call {
    int count;
    size_t size;
    granary_stream stream;
    char order[16]; /* letters of those that were called */
    granary_callback name;
};
static struct call seen;

static int relief_x(granary *handle, size_t size, granary_stream stream, void *context) {
    (void)handle;
    seen.count++;
    seen.size = size;
    seen.stream = stream;
    strcat(seen.order, context);
    return 0;
}

START_TEST(reliefs_are_called_at_a_miss_in_the_order_of_their_adding_and_not_at_a_hit) {
    granary_callback x, y;
    open_card();
    seen = (struct call){0};
    RAN(granary_relief_add(g, relief_x, "x", &x));
    RAN(granary_relief_add(g, relief_x, "y", &y));
    void *p = fixture_alloc(g, 3 * GR_MIB, a);
    ck_assert_str_eq(seen.order, "xy");
    ck_assert_uint_eq(seen.size, 3 * GR_MIB);
    ck_assert_ptr_eq(seen.stream, a);
    fixture_free(g, p);
    p = fixture_alloc(g, 3 * GR_MIB, a);
    ck_assert_int_eq(seen.count, 2);
    RAN(granary_callback_remove(g, x));
    fixture_free(g, fixture_alloc(g, 6 * GR_MIB, a));
    ck_assert_str_eq(seen.order, "xyy");
    ck_assert_int_eq(granary_callback_remove(g, x), GRANARY_INVALID);
    RAN(granary_callback_remove(g, y));
    fixture_free(g, fixture_alloc(g, 12 * GR_MIB, a));
    ck_assert_int_eq(seen.count, 3);
    fixture_free(g, p);
    captures_close();
}
END_TEST

/* Calls everything that takes a lock; a lock that is held would never be had, or its rank be wrong. */
static void call_everything(granary *handle) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    granary_pool pool;
    void *p = NULL;
    RAN(granary_get_stats(handle, &stats));
    RAN(granary_trim(handle, 0, NULL));
    RAN(granary_pool_create(handle, NULL, &pool));
    RAN(granary_pool_release(handle, pool));
    ck_assert_ptr_null(granary_verify(handle));
    if (granary_alloc(handle, 1000, a, &p) == GRANARY_OK) RAN(granary_free(handle, p));
    (void)granary_alloc(handle, GR_GIB, a, &p); /* fails, and calls nobody */
}

static int relief_that_calls(granary *handle, size_t size, granary_stream stream, void *context) {
    (void)size, (void)stream, (void)context;
    seen.count++;
    call_everything(handle);
    return 0;
}

static int relief_that_goes(granary *handle, size_t size, granary_stream stream, void *context) {
    (void)size, (void)stream, (void)context;
    seen.count++;
    RAN(granary_callback_remove(handle, seen.name));
    return 0;
}

START_TEST(a_relief_may_call_anything_and_is_not_called_by_what_it_allocates) {
    granary_callback name;
    open_card();
    seen = (struct call){0};
    RAN(granary_relief_add(g, relief_that_calls, NULL, &name));
    RAN(granary_relief_add(g, relief_that_goes, NULL, &seen.name));
    fixture_free(g, fixture_alloc(g, 3 * GR_MIB, a));
    ck_assert_int_eq(seen.count, 2);
    fixture_free(g, fixture_alloc(g, 6 * GR_MIB, a));
    ck_assert_int_eq(seen.count, 3); /* the other one is gone */
    captures_close();
}
END_TEST

static int relief_once(granary *handle, size_t size, granary_stream stream, void *context) {
    (void)size, (void)stream, (void)context;
    ck_assert_int_lt(++seen.count, 5);
    RAN(granary_callback_remove(handle, seen.name));
    RAN(granary_relief_add(handle, relief_once, NULL, &seen.name)); /* for the next miss */
    return 0;
}

START_TEST(what_a_callback_adds_is_called_from_the_next_miss_on) {
    open_card();
    seen = (struct call){0};
    RAN(granary_relief_add(g, relief_once, NULL, &seen.name));
    fixture_free(g, fixture_alloc(g, 3 * GR_MIB, a));
    ck_assert_int_eq(seen.count, 1);
    fixture_free(g, fixture_alloc(g, 6 * GR_MIB, a));
    ck_assert_int_eq(seen.count, 2);
    captures_close();
}
END_TEST

/* ---- observers -------------------------------------------------------------------------------- */

static struct granary_shortfall told;

static void observe(granary *handle, const struct granary_shortfall *shortfall, void *context) {
    (void)context;
    seen.count++;
    told = *shortfall;
    call_everything(handle);
}

START_TEST(observers_see_the_facts_of_a_failure_once_it_can_be_read) {
    granary_callback name;
    open_card();
    seen = (struct call){0};
    RAN(granary_observer_add(g, observe, NULL, &name));
    void *p = fixture_alloc(g, 40 * GR_MIB, a);
    ck_assert_int_eq(seen.count, 0);
    ck_assert_int_eq(try_alloc(30 * GR_MIB), GRANARY_OUT_OF_MEMORY);
    ck_assert_int_eq(seen.count, 1);
    ck_assert_int_eq(told.status, GRANARY_OUT_OF_MEMORY);
    ck_assert_uint_eq(told.requested_bytes, 30 * GR_MIB);
    ck_assert_uint_eq(told.allocated_bytes, 40 * GR_MIB);
    ck_assert_ptr_eq(told.stream, a);
    RAN(granary_set_limit(g, 50 * GR_MIB));
    ck_assert_int_eq(try_alloc(20 * GR_MIB), GRANARY_OVER_LIMIT);
    ck_assert_int_eq(seen.count, 2);
    ck_assert_int_eq(told.status, GRANARY_OVER_LIMIT);
    ck_assert_int_eq(try_alloc(SIZE_MAX), GRANARY_INVALID); /* no want of memory */
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuMemCreate, 1, 1, GR_CU_UNKNOWN);
    ck_assert_int_eq(try_alloc(8 * GR_MIB), GRANARY_DRIVER);
    ck_assert_int_eq(seen.count, 2);
    RAN(granary_callback_remove(g, name));
    ck_assert_int_eq(try_alloc(20 * GR_MIB), GRANARY_OVER_LIMIT);
    ck_assert_int_eq(seen.count, 2);
    fixture_free(g, p);
    captures_close();
}
END_TEST

START_TEST(what_cannot_be_called_is_refused) {
    granary_callback name = 7;
    open_card();
    ck_assert_int_eq(granary_relief_add(g, NULL, NULL, &name), GRANARY_INVALID);
    ck_assert_int_eq(granary_relief_add(g, relief_x, NULL, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_observer_add(g, NULL, NULL, &name), GRANARY_INVALID);
    ck_assert_int_eq(granary_observer_add(NULL, observe, NULL, &name), GRANARY_INVALID);
    ck_assert_int_eq(granary_callback_remove(NULL, 1), GRANARY_INVALID);
    ck_assert_int_eq(granary_callback_remove(g, 7), GRANARY_INVALID);
    ck_assert_msg(strstr(fixture_fault(g).text, "7") != NULL, "%s", fixture_fault(g).text);
    ck_assert_uint_eq(name, 7);
    RAN(granary_observer_add(g, observe, NULL, &name)); /* closing takes it along */
    captures_close();
}
END_TEST

/* ---- threads ---------------------------------------------------------------------------------- */

static atomic_bool stop;

static int relief_of_a_thread(granary *handle, size_t size, granary_stream stream, void *context) {
    (void)handle, (void)size, (void)stream;
    atomic_fetch_add((atomic_int *)context, 1);
    return 0;
}

static void *add_and_remove(void *count) {
    while (!atomic_load(&stop)) {
        granary_callback name;
        RAN(granary_relief_add(g, relief_of_a_thread, count, &name));
        RAN(granary_callback_remove(g, name));
    }
    return NULL;
}

START_TEST(callbacks_come_and_go_while_others_allocate) {
    enum { ROUNDS = 300 };
    pthread_t thread;
    atomic_int count = 0;
    open_card();
    atomic_store(&stop, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, add_and_remove, &count), 0);
    for (int i = 0; i < ROUNDS; i++) {
        fixture_free(g, fixture_alloc(g, 20 * GR_MIB, a));
        RAN(granary_trim(g, 0, NULL));
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    captures_close();
}
END_TEST

Suite *suite_callback(void) {
    Suite *suite = suite_create("callback");
    TCase *cases = tcase_create("callback");
    tcase_add_test(cases, reliefs_are_called_at_a_miss_in_the_order_of_their_adding_and_not_at_a_hit);
    tcase_add_test(cases, a_relief_may_call_anything_and_is_not_called_by_what_it_allocates);
    tcase_add_test(cases, what_a_callback_adds_is_called_from_the_next_miss_on);
    tcase_add_test(cases, observers_see_the_facts_of_a_failure_once_it_can_be_read);
    tcase_add_test(cases, what_cannot_be_called_is_refused);
    tcase_add_test(cases, callbacks_come_and_go_while_others_allocate);
    suite_add_tcase(suite, cases);
    return suite;
}
