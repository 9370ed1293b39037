/* SPDX-License-Identifier: Apache-2.0
 * The trimmer gives back what is idle above its watermark, and nothing else, and ends with the handle. */
#include <check.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/captures.h"

static void above_32_mib(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 512 * GR_MIB;
    options->trim_above = 32 * GR_MIB;
}

static void above_32_mib_classic(struct granary_sim_config *sim, struct granary_options *options) {
    above_32_mib(sim, options);
    options->expandable_segments = 0;
}

static void above_32_mib_by_hand(struct granary_sim_config *sim, struct granary_options *options) {
    above_32_mib(sim, options);
    sim->clock = GRANARY_SIM_MANUAL;
}

static void above_32_mib_in_large_granules(struct granary_sim_config *sim, struct granary_options *options) {
    above_32_mib(sim, options);
    sim->granule_bytes = 32 * GR_MIB;
}

static int64_t reserved(void) {
    return fixture_stats(g).reserved_bytes.all.current;
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
}

/* The trimmer may ask about streams at any time until it is told that they go. */
static void finish(granary_stream a, granary_stream b) {
    RAN(granary_stream_destroyed(g, a));
    if (b) RAN(granary_stream_destroyed(g, b));
    captures_close();
}

/* Waits, for seconds at most, until no more than so much is reserved. */
static bool falls_to(int64_t bytes) {
    for (int n = 0; n < 1000 && reserved() > bytes; n++) nap();
    return reserved() <= bytes;
}

START_TEST(what_is_idle_above_the_watermark_goes_back_without_a_call) {
    captures_open(above_32_mib);
    granary_stream a = captures_stream(), b = captures_stream();
    void *kept = fixture_alloc(g, 20 * GR_MIB, b);
    fixture_free(g, fixture_alloc(g, 200 * GR_MIB, a));
    ck_assert(falls_to(32 * GR_MIB));
    ck_assert_int_ge(reserved(), 20 * GR_MIB);
    fixture_free(g, fixture_alloc(g, 100 * GR_MIB, a)); /* and it comes again when it is needed */
    fixture_free(g, kept);
    ck_assert_ptr_null(granary_verify(g));
    finish(a, b);
}
END_TEST

START_TEST(what_is_not_above_the_watermark_stays) {
    captures_open(above_32_mib);
    granary_stream a = captures_stream();
    fixture_free(g, fixture_alloc(g, 30 * GR_MIB, a));
    int64_t before = reserved();
    for (int n = 0; n < 40; n++) nap(); /* four looks of the trimmer */
    ck_assert_int_eq(reserved(), before);
    finish(a, NULL);
}
END_TEST

START_TEST(memory_that_work_may_still_touch_stays_and_is_not_waited_for) {
    captures_open(above_32_mib_by_hand);
    granary_stream a = captures_stream();
    void *p = fixture_alloc(g, 100 * GR_MIB, a);
    captures_use(a, p, 100 * GR_MIB, 1);
    fixture_free(g, p);
    for (int n = 0; n < 40; n++) nap();
    ck_assert_int_eq(reserved(), 100 * GR_MIB);
    granary_sim_run_all();
    ck_assert(falls_to(32 * GR_MIB));
    finish(a, NULL);
}
END_TEST

START_TEST(the_trimmer_leaves_a_capture_alone) {
    granary_pool pool;
    granary_capture capture;
    captures_open(above_32_mib);
    granary_stream a = captures_stream(), b = captures_stream();
    ck_assert_int_eq(granary_pool_create(g, NULL, &pool), GRANARY_OK);
    ck_assert_int_eq(granary_capture_begin(g, pool, b, &capture), GRANARY_OK);
    fixture_free(g, fixture_alloc(g, 100 * GR_MIB, a));
    for (int n = 0; n < 40; n++) nap();
    ck_assert_int_eq(reserved(), 100 * GR_MIB);
    ck_assert_int_eq(granary_capture_end(g, capture), GRANARY_OK);
    ck_assert(falls_to(32 * GR_MIB));
    ck_assert_int_eq(granary_pool_release(g, pool), GRANARY_OK);
    finish(a, b);
}
END_TEST

START_TEST(a_granule_larger_than_a_piece_is_a_piece) {
    captures_open(above_32_mib_in_large_granules);
    granary_stream a = captures_stream();
    fixture_free(g, fixture_alloc(g, 100 * GR_MIB, a));
    ck_assert(falls_to(32 * GR_MIB));
    finish(a, NULL);
}
END_TEST

START_TEST(classic_segments_are_left_alone) {
    captures_open(above_32_mib_classic);
    granary_stream a = captures_stream();
    fixture_free(g, fixture_alloc(g, 100 * GR_MIB, a));
    for (int n = 0; n < 40; n++) nap();
    ck_assert_int_eq(reserved(), 100 * GR_MIB);
    finish(a, NULL);
}
END_TEST

START_TEST(a_handle_closes_while_the_trimmer_is_at_work) {
    for (int n = 0; n < 10; n++) {
        captures_open(above_32_mib);
        granary_stream a = captures_stream();
        fixture_free(g, fixture_alloc(g, 400 * GR_MIB, a));
        for (int i = 0; i < n; i++) nap();
        finish(a, NULL);
    }
}
END_TEST

/* What a child does with the handle of its parent; 0 when all is well. It has no trimmer thread to wait for. */
static int use_in_child(void) {
    struct gr_tap_record record = {.entry = GR_TAP_ANY};
    void *p;
    size_t released;
    alarm(10);
    gr_tap_log(&g->driver.tap, &record, 1);
    if (granary_alloc(g, 300 * GR_MIB, NULL, &p) != GRANARY_LOST) return 1;
    if (granary_trim(g, 0, &released) != GRANARY_LOST || released != 0) return 2;
    granary_close(g);
    return record.entry != GR_TAP_ANY ? 3 : 0;
}

START_TEST(a_forked_child_closes_without_a_call_into_the_driver) {
    captures_open(above_32_mib);
    granary_stream a = captures_stream();
    void *live = fixture_alloc(g, 3 * GR_MIB, a);
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, a));
    pid_t child = fork();
    if (child == 0) _exit(use_in_child());
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
    fixture_free(g, live);
    finish(a, NULL);
}
END_TEST

Suite *suite_trimmer(void) {
    Suite *suite = suite_create("trimmer");
    TCase *cases = tcase_create("trimmer");
    tcase_add_test(cases, what_is_idle_above_the_watermark_goes_back_without_a_call);
    tcase_add_test(cases, what_is_not_above_the_watermark_stays);
    tcase_add_test(cases, memory_that_work_may_still_touch_stays_and_is_not_waited_for);
    tcase_add_test(cases, the_trimmer_leaves_a_capture_alone);
    tcase_add_test(cases, a_granule_larger_than_a_piece_is_a_piece);
    tcase_add_test(cases, classic_segments_are_left_alone);
    tcase_add_test(cases, a_handle_closes_while_the_trimmer_is_at_work);
    tcase_add_test(cases, a_forked_child_closes_without_a_call_into_the_driver);
    suite_add_tcase(suite, cases);
    return suite;
}
