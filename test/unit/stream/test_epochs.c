/* SPDX-License-Identifier: Apache-2.0
 * Epochs: nothing counts as idle before an event has proved it, proofs are kept, and few events
 * serve however far the device lags behind. */
#include <check.h>

#include "stream/stream.h"
#include "support/fixture.h"

static struct gr_driver driver;
static struct gr_stream stream;
static gr_cu_stream handle;
static gr_cu_ptr memory;

static void manual(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->clock = GRANARY_SIM_MANUAL;
    sim->hang_ms = 200;
}

static void setup(void) {
    struct granary_options options;
    char reason[GR_REASON_ROOM];
    fixture_open_sim(manual, &options);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_OK);
    ck_assert_int_eq(driver.call.cuStreamCreate(&handle, GR_CU_STREAM_NON_BLOCKING), GR_CU_SUCCESS);
    ck_assert_int_eq(driver.call.cuMemAlloc(&memory, 2 * GR_MIB), GR_CU_SUCCESS);
    gr_driver_end(&driver);
    gr_stream_init(&stream, handle);
}

static void teardown(void) {
    granary_sim_run_all();
    gr_stream_fini(&stream, &driver);
    ck_assert_uint_eq(fixture_held().events, 0);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_OK);
    ck_assert_int_eq(driver.call.cuMemFree(memory), GR_CU_SUCCESS);
    ck_assert_int_eq(driver.call.cuStreamDestroy(handle), GR_CU_SUCCESS);
    gr_driver_end(&driver);
    gr_driver_close(&driver);
    fixture_close_sim();
}

static void work(void) {
    ck_assert_int_eq(granary_sim_use(handle, (void *)(uintptr_t)memory, 4096, 1, 1, GRANARY_SIM_SITE), 0);
}

static bool idle(uint32_t epoch) {
    bool is = gr_stream_idle(&stream, &driver, epoch);
    ck_assert_ptr_null(gr_stream_check(&stream));
    return is;
}

static uint64_t records(void) {
    return gr_tap_count(&driver.tap, GR_ENTRY_cuEventRecord);
}

START_TEST(null_and_the_legacy_handle_are_one_stream) {
    ck_assert_ptr_eq(gr_stream_normal(NULL), GR_CU_STREAM_LEGACY);
    ck_assert_ptr_eq(gr_stream_normal(GR_CU_STREAM_LEGACY), GR_CU_STREAM_LEGACY);
    ck_assert_ptr_eq(gr_stream_normal(handle), handle);
}
END_TEST

START_TEST(a_free_is_idle_only_after_the_work_before_it) {
    work();
    uint32_t freed = gr_stream_epoch(&stream);
    ck_assert(!idle(freed));
    ck_assert(!idle(freed)); /* asking again changes nothing */
    ck_assert_uint_eq(granary_sim_run(handle, 1), 1);
    ck_assert(!idle(freed)); /* the kernel ran, its event has not */
    ck_assert_uint_eq(granary_sim_run(handle, 1), 1);
    ck_assert(idle(freed));
}
END_TEST

START_TEST(a_free_after_the_event_is_of_a_later_epoch) {
    work();
    uint32_t first = gr_stream_epoch(&stream);
    ck_assert(!idle(first));
    uint32_t second = gr_stream_epoch(&stream);
    ck_assert_uint_gt(second, first);
    work();
    granary_sim_run(handle, 2); /* the first kernel and the event behind it */
    ck_assert(idle(first));
    ck_assert(!idle(second));
    granary_sim_run_all();
    ck_assert(idle(second));
}
END_TEST

START_TEST(what_is_proved_costs_no_call_again) {
    work();
    uint32_t freed = gr_stream_epoch(&stream);
    ck_assert(!idle(freed));
    granary_sim_run_all();
    ck_assert(idle(freed));
    uint64_t total = gr_tap_total(&driver.tap);
    for (int i = 0; i < 10; i++) ck_assert(idle(freed));
    ck_assert_int_eq(gr_stream_wait(&stream, &driver, freed), GRANARY_OK);
    ck_assert_uint_eq(gr_tap_total(&driver.tap), total);
}
END_TEST

START_TEST(one_event_serves_all_questions_about_its_epoch) {
    work();
    uint32_t freed = gr_stream_epoch(&stream);
    for (int i = 0; i < 10; i++) ck_assert(!idle(freed));
    ck_assert_uint_eq(records(), 1);
    granary_sim_run_all();
    ck_assert(idle(freed));
    ck_assert_uint_eq(records(), 1);
}
END_TEST

START_TEST(waiting_waits_for_the_one_event_that_proves_it_and_no_longer) {
    work();
    uint32_t first = gr_stream_epoch(&stream);
    ck_assert(!idle(first));
    work();
    uint32_t second = gr_stream_epoch(&stream);
    ck_assert(!idle(second));
    ck_assert_int_eq(gr_stream_wait(&stream, &driver, first), GRANARY_OK);
    ck_assert_uint_eq(stream.done, first);
    ck_assert_uint_eq(fixture_held().pending_work, 2); /* the second kernel and its event */
    ck_assert_uint_eq(gr_tap_count(&driver.tap, GR_ENTRY_cuStreamSynchronize), 0);
    ck_assert_int_eq(gr_stream_wait(&stream, &driver, second), GRANARY_OK);
    ck_assert_uint_eq(fixture_held().pending_work, 0);
    ck_assert_ptr_null(gr_stream_check(&stream));
}
END_TEST

START_TEST(four_events_serve_a_hundred_epochs_in_flight) {
    uint32_t freed[100];
    for (int i = 0; i < 100; i++) {
        work();
        freed[i] = gr_stream_epoch(&stream);
        ck_assert(!idle(freed[i]));
    }
    ck_assert_uint_le(fixture_held().events, GR_STREAM_EVENTS);
    ck_assert_uint_eq(stream.pending, GR_STREAM_EVENTS);
    for (int i = 99; i > 0; i--) ck_assert_uint_gt(freed[i], freed[i - 1]);
    granary_sim_run_all();
    ck_assert(idle(freed[99]));
    for (int i = 0; i < 100; i++) ck_assert(idle(freed[i]));
}
END_TEST

START_TEST(an_event_that_is_recorded_again_proves_nothing_too_early) {
    /* With all events in flight the newest is used again: its old epoch must wait for the new place. */
    uint32_t freed[6];
    for (int i = 0; i < 6; i++) {
        work();
        freed[i] = gr_stream_epoch(&stream);
        ck_assert(!idle(freed[i]));
    }
    granary_sim_run(handle, 2 * 4); /* four kernels, and the four events behind them as first recorded */
    ck_assert(idle(freed[0]) && idle(freed[2]));
    ck_assert(!idle(freed[5]));
    granary_sim_run_all();
    ck_assert(idle(freed[5]));
}
END_TEST

START_TEST(a_refused_event_leaves_the_question_open) {
    static const int entries[] = {GR_ENTRY_cuEventCreate,   GR_ENTRY_cuEventRecord,
                                  GR_ENTRY_cuEventQuery,    GR_ENTRY_cuStreamIsCapturing,
                                  GR_ENTRY_cuCtxGetCurrent, GR_ENTRY_cuCtxPushCurrent};
    for (size_t i = 0; i < GR_COUNT(entries); i++) {
        work();
        uint32_t freed = gr_stream_epoch(&stream);
        gr_tap_fail(&driver.tap, entries[i], 1, 1, GR_CU_UNKNOWN);
        ck_assert_msg(!idle(freed), "%s", gr_driver_entry_name(entries[i]));
        ck_assert_uint_eq(gr_tap_refusals(&driver.tap), 1);
        ck_assert(!idle(freed));
        granary_sim_run_all();
        ck_assert(idle(freed));
    }
}
END_TEST

START_TEST(a_refused_wait_proves_nothing) {
    static const int entries[] = {GR_ENTRY_cuEventCreate, GR_ENTRY_cuEventRecord,
                                  GR_ENTRY_cuEventSynchronize};
    for (size_t i = 0; i < GR_COUNT(entries); i++) {
        work();
        uint32_t freed = gr_stream_epoch(&stream);
        gr_tap_fail(&driver.tap, entries[i], 1, 1, GR_CU_UNKNOWN);
        ck_assert_msg(gr_stream_wait(&stream, &driver, freed) == GRANARY_DRIVER, "%s",
                      gr_driver_entry_name(entries[i]));
        ck_assert_uint_lt(stream.done, freed);
        ck_assert_int_eq(gr_stream_wait(&stream, &driver, freed), GRANARY_OK);
        ck_assert_uint_ge(stream.done, freed);
    }
}
END_TEST

START_TEST(a_stream_under_capture_is_busy_and_its_capture_lives_on) {
    gr_cu_graph graph = NULL;
    uint32_t freed = gr_stream_epoch(&stream);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_OK);
    gr_cu_result code = driver.call.cuStreamBeginCapture(handle, GR_CU_CAPTURE_MODE_THREAD_LOCAL);
    gr_driver_end(&driver);
    if (code == GR_CU_NOT_SUPPORTED) return; /* a simulation without captures */
    ck_assert_int_eq(code, GR_CU_SUCCESS);
    ck_assert(!idle(freed));
    ck_assert_int_eq(gr_stream_wait(&stream, &driver, freed), GRANARY_BUSY);
    ck_assert_uint_eq(records(), 0);
    ck_assert_int_eq(driver.call.cuStreamEndCapture(handle, &graph), GR_CU_SUCCESS);
    ck_assert_int_eq(driver.call.cuGraphDestroy(graph), GR_CU_SUCCESS);
    ck_assert_int_eq(gr_stream_wait(&stream, &driver, freed), GRANARY_OK);
}
END_TEST

START_TEST(numbers_out_of_order_break_s2) {
    work();
    ck_assert(!idle(gr_stream_epoch(&stream)));
    work();
    ck_assert(!idle(gr_stream_epoch(&stream)));
    ck_assert_uint_eq(stream.pending, 2);
    uint32_t epoch = stream.mark[1].epoch;
    stream.mark[1].epoch = stream.mark[0].epoch;
    ck_assert_str_eq(gr_stream_check(&stream), "S2");
    stream.mark[1].epoch = gr_stream_epoch(&stream); /* an event for an epoch that has not ended */
    ck_assert_str_eq(gr_stream_check(&stream), "S2");
    stream.mark[1].epoch = epoch;
    stream.done = stream.mark[0].epoch;
    ck_assert_str_eq(gr_stream_check(&stream), "S2");
    stream.done = 0;
    gr_cu_event event = stream.mark[0].event;
    stream.mark[0].event = NULL;
    ck_assert_str_eq(gr_stream_check(&stream), "S2");
    stream.mark[0].event = event;
    ck_assert_ptr_null(gr_stream_check(&stream));
}
END_TEST

Suite *suite_epochs(void) {
    Suite *suite = suite_create("epochs");
    TCase *cases = tcase_create("epochs");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, null_and_the_legacy_handle_are_one_stream);
    tcase_add_test(cases, a_free_is_idle_only_after_the_work_before_it);
    tcase_add_test(cases, a_free_after_the_event_is_of_a_later_epoch);
    tcase_add_test(cases, what_is_proved_costs_no_call_again);
    tcase_add_test(cases, one_event_serves_all_questions_about_its_epoch);
    tcase_add_test(cases, waiting_waits_for_the_one_event_that_proves_it_and_no_longer);
    tcase_add_test(cases, four_events_serve_a_hundred_epochs_in_flight);
    tcase_add_test(cases, an_event_that_is_recorded_again_proves_nothing_too_early);
    tcase_add_test(cases, a_refused_event_leaves_the_question_open);
    tcase_add_test(cases, a_refused_wait_proves_nothing);
    tcase_add_test(cases, a_stream_under_capture_is_busy_and_its_capture_lives_on);
    tcase_add_test(cases, numbers_out_of_order_break_s2);
    suite_add_tcase(suite, cases);
    return suite;
}
