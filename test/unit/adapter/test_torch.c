/* SPDX-License-Identifier: Apache-2.0
 * The functions that PyTorch calls, called as PyTorch does: figures, words, pools of captures and of threads,
 * and bad use, which changes nothing. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <granary/options.h>

#include "adapter/torch.h"
#include "support/captures.h"

static granary_stream a, b; /* of device 0 */

static void two_devices(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->devices = 2;
}

static void setup(void) {
    captures_open(two_devices);
    a = captures_stream();
    b = captures_stream();
    ck_assert_int_eq(granary_torch_configure("", 1), 0);
}

static void teardown(void) {
    granary_torch_close();
    captures_close();
}

static void *take(size_t size, int device, granary_stream stream) {
    void *ptr;
    ck_assert_msg(gr_torch_alloc(size, device, stream, &ptr) == GRANARY_OK, "%s", granary_torch_failure());
    return ptr;
}

static void give(void *ptr, int device) {
    granary_torch_free(ptr, 0, device, NULL);
}

static long long figure(int device, const char *name) {
    char text[16384], key[64];
    ck_assert_int_gt(granary_torch_stats(device, text, sizeof text), 0);
    snprintf(key, sizeof key, "\n%s ", name);
    const char *at = strstr(text, key);
    ck_assert_msg(at != NULL, "no %s", name);
    return strtoll(at + strlen(key), NULL, 10);
}

/* What is said on standard error by a call that cannot fail. */
static char said[512];
static FILE *kept;
static void listen(void) {
    kept = stderr;
    memset(said, 0, sizeof said);
    stderr = fmemopen(said, sizeof said - 1, "w");
}
static void heard(const char *word) {
    fclose(stderr);
    stderr = kept;
    ck_assert_msg(strstr(said, word) != NULL, "not said: %s, but: %s", word, said);
}

START_TEST(what_is_allocated_is_freed_and_counted) {
    void *p = take(3 * GR_MIB, 0, a), *q = take(1000, 0, a);
    ck_assert_int_eq(figure(0, "allocated_bytes.all.current"), 3 * (long long)GR_MIB + 1024);
    ck_assert_int_eq(figure(0, "allocated_bytes.small_pool.current"), 1024);
    ck_assert_int_eq(figure(0, "requested_bytes.all.current"), 3 * (long long)GR_MIB + 1000);
    ck_assert_int_eq(figure(0, "active.all.current"), 2);
    ck_assert_int_gt(figure(0, "num_device_alloc"), figure(0, "num_device_free"));
    give(p, 0);
    give(q, 0);
    ck_assert_int_eq(figure(0, "allocated_bytes.all.current"), 0);
    ck_assert_int_eq(figure(0, "allocated_bytes.all.peak"), 3 * (long long)GR_MIB + 1024);
    ck_assert_int_eq(figure(0, "allocated_bytes.large_pool.freed"), 3 * (long long)GR_MIB);
}
END_TEST

START_TEST(nothing_is_null_and_no_failure) {
    ck_assert_ptr_null(take(0, 0, a));
    give(NULL, 0);
    give(NULL, 1); /* where no handle is */
    ck_assert_str_eq(granary_torch_failure(), "");
}
END_TEST

/* An allocation on device 0 runs out, by a limit of so much. */
static void limited(size_t size, const char *limit) {
    void *p = &p;
    ck_assert_int_eq(gr_torch_alloc(size, 0, a, &p), GRANARY_OUT_OF_MEMORY);
    ck_assert_ptr_null(p);
    char sentence[64];
    snprintf(sentence, sizeof sentence, "the limit of %s is reached", limit);
    ck_assert_msg(strstr(granary_torch_failure(), sentence) != NULL, "%s", granary_torch_failure());
}

START_TEST(running_out_says_what_programs_look_for_and_why) {
    granary_torch_close();
    ck_assert_int_eq(granary_torch_configure("memory_limit:64MiB", 1), 0);
    void *p = take(40 * GR_MIB, 0, a);
    limited(40 * GR_MIB, "64.00 MiB");
    const char *words = granary_torch_failure();
    ck_assert_msg(strncmp(words, "CUDA out of memory. granary: ", 29) == 0, "%s", words);
    ck_assert_msg(strstr(words, "40.00 MiB") != NULL, "%s", words);
    ck_assert_msg(strstr(words, "Most likely to help: ") != NULL, "%s", words); /* granary_explain */
    ck_assert_int_eq(figure(0, "num_ooms"), 1);
    give(p, 0);
    give(take(40 * GR_MIB, 0, b), 0);
}
END_TEST

START_TEST(running_out_ends_with_where_its_snapshot_is) {
    granary_torch_close();
    ck_assert_int_eq(setenv("GRANARY_OOM_SNAPSHOT", "/nowhere/%d.pickle", 1), 0);
    ck_assert_int_eq(granary_torch_configure("memory_limit:64MiB", 1), 0);
    limited(80 * GR_MIB, "64.00 MiB");
    ck_assert_int_eq(unsetenv("GRANARY_OOM_SNAPSHOT"), 0);
    const char *end = strstr(granary_torch_failure(), "\nNo snapshot is in /nowhere/0.pickle: No such file");
    ck_assert_msg(end != NULL, "%s", granary_torch_failure());
}
END_TEST

START_TEST(a_size_that_no_device_could_hold_is_refused) {
    void *p;
    ck_assert_int_eq(gr_torch_alloc((size_t)1 << 50, 0, a, &p), GRANARY_OUT_OF_MEMORY);
    ck_assert_msg(
        strncmp(granary_torch_failure(), "CUDA out of memory. granary: size 1125899906842624 ", 51) == 0,
        "%s", granary_torch_failure());
}
END_TEST

static void thrower(const char *said) {
    (void)said;
}

START_TEST(who_throws_is_forgotten_when_all_is_closed) {
    ck_assert(gr_torch_thrower() == NULL);
    granary_torch_set_thrower(thrower);
    ck_assert(gr_torch_thrower() == thrower);
    granary_torch_close();
    ck_assert(gr_torch_thrower() == NULL);
}
END_TEST

START_TEST(devices_that_are_not_there_are_refused_by_number) {
    static const int devices[] = {-1, 2, 63, 64};
    for (size_t i = 0; i < GR_COUNT(devices); i++) {
        void *p;
        char number[16];
        ck_assert_int_eq(gr_torch_alloc(1000, devices[i], a, &p), GRANARY_NO_DEVICE);
        ck_assert_ptr_null(p);
        snprintf(number, sizeof number, "%d", devices[i]);
        ck_assert_msg(strstr(granary_torch_failure(), number) != NULL, "%s", granary_torch_failure());
    }
}
END_TEST

START_TEST(a_block_of_the_second_device_waits_for_the_stream_that_used_it) {
    void *first = take(GR_MIB, 0, a), *p = take(GR_MIB, 1, NULL);
    granary_stream other;
    ck_assert_int_eq(granary_stream_create(granary_torch_handle(1), &other), GRANARY_OK);
    ck_assert_int_eq(granary_sim_hold(other), 0);
    gr_torch_record_stream(p, other);
    give(p, 1);
    ck_assert_int_eq(figure(1, "granary.pending_blocks"), 1);
    ck_assert_int_eq(figure(0, "granary.pending_blocks"), 0);
    ck_assert_int_eq(granary_sim_release(other), 0);
    granary_sim_run_all();
    ck_assert_int_eq(figure(1, "granary.pending_blocks"), 0);
    ck_assert_int_eq(granary_stream_destroy(granary_torch_handle(1), other), GRANARY_OK);
    give(first, 0);
}
END_TEST

/* May work of the stream write there? */
static bool reaches(granary_stream stream, void *ptr) {
    gr_cu_result code = cu.cuMemsetD8Async((gr_cu_ptr)(uintptr_t)ptr, 1, 512, stream);
    ck_assert(code == GR_CU_SUCCESS || code == GR_CU_INVALID_VALUE);
    ck_assert_int_eq(cu.cuStreamSynchronize(stream), GR_CU_SUCCESS);
    return code == GR_CU_SUCCESS;
}

START_TEST(devices_that_are_used_may_touch_the_memory_of_each_other) {
    void *first = take(GR_MIB, 0, a);
    granary_stream other;
    void *second = take(GR_MIB, 1, NULL);
    ck_assert_int_eq(granary_stream_create(granary_torch_handle(1), &other), GRANARY_OK);
    ck_assert(reaches(a, second) && reaches(other, first));
    void *later = take(40 * GR_MIB, 0, a);
    ck_assert(reaches(other, later));
    ck_assert_int_eq(granary_stream_destroy(granary_torch_handle(1), other), GRANARY_OK);
    give(first, 0);
    give(later, 0);
    give(second, 1);
}
END_TEST

START_TEST(devices_stay_apart_when_that_is_asked_for) {
    granary_torch_peers(0);
    void *first = take(GR_MIB, 0, a), *second = take(GR_MIB, 1, NULL);
    ck_assert(!reaches(a, second));
    give(first, 0);
    give(second, 1);
}
END_TEST

START_TEST(what_cannot_be_refused_is_complained_about) {
    void *p = take(GR_MIB, 0, a);
    listen();
    give((char *)p + 512, 0);
    heard("not the address of a live block");
    listen();
    give(p, 1);
    heard("nothing was allocated");
    ck_assert_int_eq(figure(0, "allocated_bytes.all.current"), (long long)GR_MIB);
    give(p, 0);
}
END_TEST

START_TEST(memory_of_somebody_else_may_be_named_to_record_stream) {
    int other;
    ck_assert_int_eq(gr_torch_record_stream(&other, b), GRANARY_OK); /* no device is open */
    void *p = take(GR_MIB, 0, a);
    ck_assert_int_eq(gr_torch_record_stream(&other, b), GRANARY_OK);
    ck_assert_int_eq(gr_torch_record_stream(NULL, b), GRANARY_OK);
    give(p, 0);
}
END_TEST

START_TEST(a_use_that_cannot_be_recorded_is_a_failure) {
    void *p = take(GR_MIB, 0, a);
    gr_tap_fail(&granary_torch_handle(0)->driver.tap, GR_ENTRY_cuEventCreate, 1, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_torch_record_stream(p, b), GRANARY_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_torch_record_stream(p, b), GRANARY_OK);
    give(p, 0);
}
END_TEST

START_TEST(a_fraction_is_a_limit_and_one_is_none) {
    ck_assert_int_eq(gr_torch_fraction(0.25, 0), GRANARY_OK); /* of 1 GiB */
    limited(257 * GR_MIB, "256.00 MiB");
    give(take(256 * GR_MIB, 0, a), 0);
    ck_assert_int_eq(gr_torch_fraction(1, 0), GRANARY_OK);
    give(take(257 * GR_MIB, 0, a), 0);
}
END_TEST

START_TEST(a_fraction_leaves_the_limit_in_bytes_as_it_is) {
    struct granary_options options = {.struct_size = sizeof options};
    granary_torch_close();
    ck_assert_int_eq(granary_torch_configure("memory_limit:64MiB", 1), 0);
    ck_assert_int_eq(gr_torch_fraction(0.125, 0), GRANARY_OK);
    ck_assert_int_eq(gr_torch_fraction(1, 0), GRANARY_OK);
    RAN(granary_get_options(granary_torch_handle(0), &options));
    ck_assert_uint_eq(options.limit_bytes, 64 * GR_MIB);
    ck_assert(options.limit_fraction == 1);
}
END_TEST

START_TEST(a_fraction_that_is_none_is_refused_with_its_value) {
    static const struct {
        double fraction;
        const char *word;
    } wrong[] = {{1.5, "1.5 is not from 0 to 1"}, {-0.25, "-0.25 is not"}, {0.0 / 0.0, "is not from 0 to 1"}};
    for (size_t i = 0; i < GR_COUNT(wrong); i++) {
        ck_assert_int_eq(gr_torch_fraction(wrong[i].fraction, 0), GRANARY_INVALID);
        ck_assert_msg(strstr(granary_torch_failure(), wrong[i].word) != NULL, "%s", granary_torch_failure());
    }
    ck_assert_int_eq(gr_torch_fraction(0.5, 99), GRANARY_NO_DEVICE);
    ck_assert_msg(strstr(granary_torch_failure(), "99") != NULL, "%s", granary_torch_failure());
}
END_TEST

START_TEST(reset_gives_idle_memory_of_every_device_back) {
    give(take(30 * GR_MIB, 0, a), 0);
    give(take(30 * GR_MIB, 1, NULL), 1);
    ck_assert_int_ge(figure(0, "reserved_bytes.all.current"), 30 * (long long)GR_MIB);
    granary_torch_reset();
    for (int d = 0; d < 2; d++) ck_assert_int_eq(figure(d, "reserved_bytes.all.current"), 0);
}
END_TEST

/* ---- pools ------------------------------------------------------------------------------------ */

static const struct granary_torch_id one = {0, 1}, two = {0, 2}, user = {1, 0};

static void capture(struct granary_torch_id id, granary_stream stream) {
    granary_torch_expect(1, stream);
    ck_assert_msg(gr_torch_begin(0, id) == GRANARY_OK, "%s", granary_torch_failure());
    RAN(cu.cuStreamBeginCapture(stream, GLOBAL));
}

static void finish(struct granary_torch_id id, granary_stream stream) {
    gr_cu_graph graph;
    RAN(cu.cuStreamEndCapture(stream, &graph));
    granary_torch_end(0, id);
    RAN(cu.cuGraphDestroy(graph));
}

START_TEST(a_capture_has_memory_of_its_own_that_the_next_in_its_pool_uses_again) {
    give(take(GR_MIB, 0, a), 0);
    capture(one, a);
    void *inside = take(GR_MIB, 0, a), *beside = take(GR_MIB, 0, b);
    ck_assert_ptr_ne(inside, beside);
    give(inside, 0);
    finish(one, a);
    void *outside = take(GR_MIB, 0, a);
    ck_assert_ptr_ne(outside, inside);
    capture(one, a);
    ck_assert_ptr_eq(take(GR_MIB, 0, a), inside);
    finish(one, a);
    capture(two, a);
    void *other = take(GR_MIB, 0, a);
    ck_assert_ptr_ne(other, inside);
    finish(two, a);
    give(inside, 0);
    give(other, 0);
    give(outside, 0);
    give(beside, 0);
    for (int i = 0; i < 2; i++) granary_torch_release(0, one); /* one for each begin */
    granary_torch_release(0, two);
    granary_torch_reset();
    ck_assert_int_eq(figure(0, "reserved_bytes.all.current"), 0);
}
END_TEST

START_TEST(memory_of_a_released_pool_serves_everybody_once_its_blocks_are_freed) {
    capture(one, a);
    void *inside = take(600 * GR_MIB, 0, a);
    finish(one, a);
    granary_torch_release(0, one);
    void *p;
    ck_assert_int_eq(gr_torch_alloc(600 * GR_MIB, 0, b, &p), GRANARY_OUT_OF_MEMORY);
    give(inside, 0);
    give(take(600 * GR_MIB, 0, b), 0);
}
END_TEST

static void *take_there(void *stream) {
    return take(GR_MIB, 0, stream);
}

START_TEST(a_begin_that_no_capture_was_said_for_is_for_its_thread) {
    pthread_t thread;
    void *elsewhere;
    granary_torch_expect(1, a);
    granary_torch_expect(0, NULL); /* it did not come */
    ck_assert_int_eq(gr_torch_begin(0, user), GRANARY_OK);
    void *inside = take(GR_MIB, 0, a);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_there, a), 0);
    pthread_join(thread, &elsewhere);
    granary_torch_end(0, user);
    give(inside, 0);
    void *outside = take(GR_MIB, 0, a);
    ck_assert_ptr_ne(outside, inside); /* its granule is not the pool's */
    ck_assert_uint_eq((uintptr_t)outside >> 21, (uintptr_t)elsewhere >> 21);
    give(elsewhere, 0);
    give(outside, 0);
    granary_torch_release(0, user);
}
END_TEST

START_TEST(ends_and_releases_that_nothing_began_are_complained_about) {
    (void)granary_torch_handle(0);
    listen();
    granary_torch_end(0, one);
    heard("pool 0,1 of device 0 ends");
    listen();
    granary_torch_release(0, two);
    heard("pool 0,2 of device 0 is released");
}
END_TEST

static void old_driver(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->driver_version = 12020;
}

START_TEST(a_capture_that_cannot_begin_leaves_no_user) {
    granary_torch_close();
    captures_close();
    captures_open(old_driver);
    ck_assert_int_eq(granary_torch_configure("", 1), 0);
    granary_stream stream = captures_stream();
    granary_torch_expect(1, stream);
    ck_assert_int_eq(gr_torch_begin(0, one), GRANARY_UNSUPPORTED);
    ck_assert_msg(strncmp(granary_torch_failure(), "granary: ", 9) == 0, "%s", granary_torch_failure());
    listen();
    granary_torch_release(0, one);
    heard("pool 0,1 of device 0 is released and was not begun");
}
END_TEST

/* PyTorch throws when the driver does not end a capture, before it says that its pool ends. */
START_TEST(a_capture_that_broke_makes_way_for_the_next_on_its_stream) {
    gr_cu_event event;
    gr_cu_graph graph = NULL;
    capture(one, a);
    void *inside = take(4 * GR_MIB, 0, a);
    RAN(cu.cuEventCreate(&event, GR_CU_EVENT_DISABLE_TIMING));
    RAN(cu.cuEventRecord(event, a));
    RAN(cu.cuStreamWaitEvent(b, event, 0)); /* joins, and does not come back */
    RAN(granary_sim_use(b, inside, 512, 1, 1, "test"));
    granary_torch_expect(1, a);
    ck_assert_int_eq(gr_torch_begin(0, two), GRANARY_BUSY); /* it still runs */
    ck_assert_int_ne(cu.cuStreamEndCapture(a, &graph), 0);
    give(inside, 0);
    granary_torch_reset();
    ck_assert_int_gt(figure(0, "reserved_bytes.all.current"), 0);
    capture(two, a);
    give(take(4 * GR_MIB, 0, a), 0);
    finish(two, a);
    granary_torch_release(0, two);
    granary_torch_reset();
    ck_assert_int_eq(figure(0, "reserved_bytes.all.current"), 0); /* that of the broken one, too */
    listen();
    granary_torch_release(0, one);
    heard("pool 0,1 of device 0 is released and was not begun");
    RAN(cu.cuEventDestroy(event));
}
END_TEST

/* ---- opening ---------------------------------------------------------------------------------- */

START_TEST(a_bad_option_is_named_and_nothing_is_configured) {
    ck_assert_int_eq(granary_torch_configure("reclaim:perhaps", 1), -1);
    ck_assert_msg(strstr(granary_torch_failure(), "perhaps") != NULL, "%s", granary_torch_failure());
    give(take(1000, 0, a), 0); /* still as it was */
}
END_TEST

START_TEST(options_come_from_the_environment_when_none_are_given) {
    granary_torch_close();
    setenv("GRANARY_CONF", "memory_limit:4MiB", 1);
    ck_assert_int_eq(granary_torch_configure(NULL, 1), 0);
    limited(5 * GR_MIB, "4.00 MiB");
    unsetenv("GRANARY_CONF");
}
END_TEST

START_TEST(options_that_are_given_lie_on_top_of_the_environment) {
    setenv("PYTORCH_CUDA_ALLOC_CONF", "memory_limit:4MiB,expandable_segments:False", 1);
    setenv("GRANARY_CONF", "memory_limit:6MiB", 1);
    ck_assert_int_eq(granary_torch_configure("memory_limit:64MiB", 1), 0);
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    unsetenv("GRANARY_CONF");
    give(take(40 * GR_MIB, 0, a), 0);
    limited(80 * GR_MIB, "64.00 MiB");
    ck_assert_int_eq(figure(0, "segment.all.allocated"), 1); /* a classic one */
}
END_TEST

START_TEST(settings_without_effect_are_named_once_they_are_configured) {
    char text[256];
    ck_assert_int_eq(granary_torch_warning(0, text, sizeof text), -1);
    ck_assert_int_eq(granary_torch_configure("max_split_size_mb:128", 1), 0);
    ck_assert_int_eq(granary_torch_warning(0, text, sizeof text), 0);
    ck_assert_msg(strncmp(text, "max_split_size_mb has no effect", 31) == 0, "%s", text);
    ck_assert_int_eq(granary_torch_warning(1, text, sizeof text), -1);
    granary_torch_close();
    ck_assert_int_eq(granary_torch_warning(0, text, sizeof text), -1);
}
END_TEST

START_TEST(configuring_after_the_first_use_is_refused) {
    give(take(1000, 0, a), 0);
    ck_assert_int_eq(granary_torch_configure("memory_limit:4MiB", 1), -1);
    ck_assert_msg(strstr(granary_torch_failure(), "allocated already") != NULL, "%s",
                  granary_torch_failure());
    give(take(5 * GR_MIB, 0, a), 0);
}
END_TEST

enum { THREADS = 8 };
static granary *handles[THREADS];

static void *first_use(void *number) {
    const int n = (int)(intptr_t)number;
    for (int i = 0; i < 100; i++) give(take(1000 + (size_t)n, 0, a), 0);
    handles[n] = granary_torch_handle(0);
    return NULL;
}

START_TEST(threads_that_use_a_device_first_at_once_open_one_handle) {
    pthread_t threads[THREADS];
    for (int n = 0; n < THREADS; n++)
        ck_assert_int_eq(pthread_create(&threads[n], NULL, first_use, (void *)(intptr_t)n), 0);
    for (int n = 0; n < THREADS; n++) pthread_join(threads[n], NULL);
    for (int n = 0; n < THREADS; n++) ck_assert_ptr_eq(handles[n], handles[0]);
    ck_assert_int_eq(figure(0, "allocated_bytes.all.current"), 0);
    ck_assert_int_eq(figure(0, "allocated_bytes.all.allocated"), THREADS * 100 * 1024);
}
END_TEST

START_TEST(figures_that_do_not_fit_say_how_much_room_they_need) {
    char small[40], whole[16384];
    int length = granary_torch_stats(0, whole, sizeof whole);
    ck_assert_int_gt(length, (int)sizeof small);
    ck_assert_int_eq(granary_torch_stats(0, small, sizeof small), length);
    ck_assert_uint_lt(strlen(small), sizeof small);
    ck_assert_int_eq(granary_torch_stats(0, NULL, 0), length);
    ck_assert_int_eq(granary_torch_stats(-1, whole, sizeof whole), -1);
}
END_TEST

Suite *suite_torch(void) {
    Suite *suite = suite_create("torch");
    TCase *cases = tcase_create("torch");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, what_is_allocated_is_freed_and_counted);
    tcase_add_test(cases, nothing_is_null_and_no_failure);
    tcase_add_test(cases, running_out_says_what_programs_look_for_and_why);
    tcase_add_test(cases, running_out_ends_with_where_its_snapshot_is);
    tcase_add_test(cases, a_size_that_no_device_could_hold_is_refused);
    tcase_add_test(cases, who_throws_is_forgotten_when_all_is_closed);
    tcase_add_test(cases, devices_that_are_not_there_are_refused_by_number);
    tcase_add_test(cases, a_block_of_the_second_device_waits_for_the_stream_that_used_it);
    tcase_add_test(cases, devices_that_are_used_may_touch_the_memory_of_each_other);
    tcase_add_test(cases, devices_stay_apart_when_that_is_asked_for);
    tcase_add_test(cases, what_cannot_be_refused_is_complained_about);
    tcase_add_test(cases, memory_of_somebody_else_may_be_named_to_record_stream);
    tcase_add_test(cases, a_use_that_cannot_be_recorded_is_a_failure);
    tcase_add_test(cases, a_fraction_is_a_limit_and_one_is_none);
    tcase_add_test(cases, a_fraction_leaves_the_limit_in_bytes_as_it_is);
    tcase_add_test(cases, a_fraction_that_is_none_is_refused_with_its_value);
    tcase_add_test(cases, reset_gives_idle_memory_of_every_device_back);
    tcase_add_test(cases, a_capture_has_memory_of_its_own_that_the_next_in_its_pool_uses_again);
    tcase_add_test(cases, memory_of_a_released_pool_serves_everybody_once_its_blocks_are_freed);
    tcase_add_test(cases, a_begin_that_no_capture_was_said_for_is_for_its_thread);
    tcase_add_test(cases, ends_and_releases_that_nothing_began_are_complained_about);
    tcase_add_test(cases, a_capture_that_cannot_begin_leaves_no_user);
    tcase_add_test(cases, a_capture_that_broke_makes_way_for_the_next_on_its_stream);
    tcase_add_test(cases, a_bad_option_is_named_and_nothing_is_configured);
    tcase_add_test(cases, options_come_from_the_environment_when_none_are_given);
    tcase_add_test(cases, options_that_are_given_lie_on_top_of_the_environment);
    tcase_add_test(cases, settings_without_effect_are_named_once_they_are_configured);
    tcase_add_test(cases, configuring_after_the_first_use_is_refused);
    tcase_add_test(cases, threads_that_use_a_device_first_at_once_open_one_handle);
    tcase_add_test(cases, figures_that_do_not_fit_say_how_much_room_they_need);
    suite_add_tcase(suite, cases);
    return suite;
}
