/* SPDX-License-Identifier: Apache-2.0
 * Snapshots in files, and those that an out-of-memory writes by itself. */
#include <check.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <granary/options.h>

#include "base/base.h"
#include "support/fixture.h"
#include "support/written.h"

static granary *g;
static struct written written;

static void teardown(void) {
    written_free(&written);
}

static char path[512];

static void to_a_file(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 256 * GR_MIB;
    options->history = GRANARY_HISTORY_ALL;
    options->history_stacks = GRANARY_STACKS_NONE;
    options->oom_snapshot = path;
}

/* What the last fault says of its snapshot begins with these words. */
static bool says(const char *words) {
    return strncmp(fixture_fault(g).snapshot, words, strlen(words)) == 0;
}

static bool exists(const char *name) {
    return access(name, R_OK) == 0;
}

START_TEST(an_out_of_memory_writes_its_snapshot) {
    char name[64], second[600];
    snprintf(name, sizeof name, "/tmp/granary-test-%d-", (int)getpid());
    snprintf(path, sizeof path, "%s%s", name, _i == 0 ? "first.pickle" : "%%-%p-%d-%n.json");
    g = fixture_open(to_a_file);
    void *ptr;
    (void)fixture_alloc(g, 10 * GR_MIB, NULL);
    ck_assert_int_eq(granary_alloc(g, GR_GIB, NULL, &ptr), GRANARY_OUT_OF_MEMORY);
    ck_assert_msg(says("A snapshot is in /tmp/granary-test-"), "%s", fixture_fault(g).snapshot);
    ck_assert_int_eq(granary_alloc(g, GR_GIB, NULL, &ptr), GRANARY_OUT_OF_MEMORY);
    if (_i == 0) {
        ck_assert_str_eq(fixture_fault(g).snapshot, ""); /* only the first failure writes */
        snprintf(second, sizeof second, "%s", path);
    } else {
        ck_assert_ptr_nonnull(strstr(fixture_fault(g).snapshot, "-2.json"));
        for (int i = 1; i <= 2; i++) {
            snprintf(second, sizeof second, "%s%%-%d-0-%d.json", name, (int)getpid(), i);
            ck_assert_msg(exists(second), "%s", second);
            if (i == 1) unlink(second);
        }
    }
    FILE *file = fopen(second, "rb");
    ck_assert_ptr_nonnull(file);
    char piece[4096];
    written_clear(&written);
    for (size_t size; (size = fread(piece, 1, sizeof piece, file)) > 0;) written_take(&written, piece, size);
    fclose(file);
    unlink(second);
    const struct value *top = written_read(&written, _i == 0 ? GRANARY_PICKLE : GRANARY_JSON);
    ck_assert_str_eq(written_text(top, "granary.failure.status"), "GRANARY_OUT_OF_MEMORY");
    ck_assert_int_eq(written_int(top, "granary.failure.requested_bytes"), GR_GIB);
    ck_assert_int_eq(written_int(top, "granary.statistics.out_of_memory"), _i == 0 ? 1 : 2);
    ck_assert_int_eq(written_int(top, "granary.failure.active_bytes"),
                     written_int(top, "granary.statistics.active_bytes.all.current"));
    const struct value *trace = value_get(top, "device_traces")->items.at[0];
    ck_assert_str_eq(written_text(trace->items.at[trace->items.count - 2], "action"), "oom");
    fixture_close(g);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_told_and_changes_nothing_else) {
    void *ptr;
    snprintf(path, sizeof path, "/nowhere/%0*d/at/all", _i == 0 ? 1 : 300, 0);
    g = fixture_open(to_a_file);
    ck_assert_int_eq(granary_alloc(g, GR_GIB, NULL, &ptr), GRANARY_OUT_OF_MEMORY);
    const struct granary_fault fault = fixture_fault(g);
    ck_assert_int_eq(fault.status, GRANARY_OUT_OF_MEMORY);
    ck_assert_msg(says(_i == 0 ? "No snapshot is in /nowhere/0/at/all: " : "No snapshot is in ...0"), "%s",
                  fault.snapshot);
    ck_assert_ptr_nonnull(strstr(fault.snapshot, _i == 0 ? "No such file" : "/at/all: "));
    fixture_close(g);
}
END_TEST

START_TEST(a_failure_without_a_file_says_nothing_of_snapshots) {
    void *ptr;
    path[0] = '\0';
    g = fixture_open(to_a_file);
    ck_assert_int_eq(granary_alloc(g, GR_GIB, NULL, &ptr), GRANARY_OUT_OF_MEMORY);
    ck_assert_str_eq(fixture_fault(g).snapshot, "");
    fixture_close(g);
}
END_TEST

/* ---- who is in the middle of something else ---------------------------------------------------- */

static void two_devices(struct granary_sim_config *sim, struct granary_options *options) {
    sim->devices = 2;
    sim->memory_bytes = 256 * GR_MIB;
    options->history = GRANARY_HISTORY_ALL;
    options->history_stacks = GRANARY_STACKS_C;
}

static void snapshot_other(granary *failed, const struct granary_shortfall *shortfall, void *other) {
    (void)failed, (void)shortfall;
    written_clear(&written);
    ck_assert_int_eq(granary_snapshot(other, GRANARY_PICKLE, written_take, &written), GRANARY_OK);
}

START_TEST(an_observer_may_take_a_snapshot_of_another_handle) {
    struct granary_options options;
    granary_callback name;
    void *ptr;
    fixture_open_sim(two_devices, &options);
    g = fixture_open_handle(&options, 0);
    granary *other = fixture_open_handle(&options, 1);
    ck_assert_int_eq(granary_observer_add(g, snapshot_other, other, &name), GRANARY_OK);
    ck_assert_int_eq(granary_set_tag("of device 0", NULL), GRANARY_OK);
    ck_assert_int_eq(granary_set_metadata("step 1", NULL), GRANARY_OK);
    ck_assert_int_eq(granary_alloc(g, GR_GIB, NULL, &ptr), GRANARY_OUT_OF_MEMORY);
    ck_assert_int_eq(granary_set_tag("", NULL), GRANARY_OK);
    ck_assert_int_eq(granary_set_metadata("", NULL), GRANARY_OK);
    const struct value *top = written_read(&written, GRANARY_PICKLE);
    const struct value *trace = value_get(top, "device_traces")->items.at[1];
    ck_assert_uint_eq(trace->items.count,
                      1); /* the snapshot itself: numbers of the other handle say nothing here */
    ck_assert_str_eq(written_text(trace->items.at[0], "action"), "snapshot");
    ck_assert_str_eq(written_text(trace->items.at[0], "user_metadata"), "");
    ck_assert_uint_eq(value_get(trace->items.at[0], "frames")->items.count, 0);
    fixture_close_handle(other);
    fixture_close(g);
}
END_TEST

/* ---- one name, many writers --------------------------------------------------------------------- */

enum { SAVES = 20 };

static void *save_often(void *handle) {
    for (int i = 0; i < SAVES; i++)
        ck_assert_int_eq(granary_snapshot_file(handle, GRANARY_JSON, path), GRANARY_OK);
    return NULL;
}

/* Fails the test unless all of one snapshot is there. */
static void read_whole(void) {
    char piece[4096];
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    written_clear(&written);
    for (size_t size; (size = fread(piece, 1, sizeof piece, file)) > 0;) written_take(&written, piece, size);
    fclose(file);
    (void)written_read(&written, GRANARY_JSON);
}

START_TEST(of_two_threads_that_write_one_file_each_leaves_a_whole_one) {
    pthread_t thread;
    snprintf(path, sizeof path, "/tmp/granary-test-%d-both.json", (int)getpid());
    g = fixture_open(NULL);
    for (size_t i = 0; i < 200; i++) (void)fixture_alloc(g, 5000, NULL);
    ck_assert_int_eq(granary_snapshot_file(g, GRANARY_JSON, path), GRANARY_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, save_often, g), 0);
    for (int i = 0; i < SAVES; i++) {
        ck_assert_int_eq(granary_snapshot_file(g, GRANARY_JSON, path), GRANARY_OK);
        read_whole();
    }
    pthread_join(thread, NULL);
    unlink(path);
    fixture_close(g);
}
END_TEST

/* ---- while others change what is told ----------------------------------------------------------- */

static void *fail_often(void *argument) {
    void *ptr;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(granary_alloc(g, 8 * GR_GIB, NULL, &ptr), GRANARY_OUT_OF_MEMORY);
        written_clear(&written);
        ck_assert_int_eq(granary_snapshot(g, GRANARY_JSON, written_take, &written), GRANARY_OK);
    }
    return argument;
}

START_TEST(history_may_begin_and_settings_change_while_failures_are_told) {
    struct granary_history_options history;
    granary_history_options_init(&history);
    history.stacks = GRANARY_STACKS_NONE;
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        g = fixture_open(NULL);
        ck_assert_int_eq(pthread_create(&thread, NULL, fail_often, NULL), 0);
        ck_assert_int_eq(granary_update_options(g, "expandable_segments:False", NULL), GRANARY_OK);
        ck_assert_int_eq(granary_record_history(g, &history), GRANARY_OK);
        ck_assert_int_eq(granary_update_options(g, "expandable_segments:True", NULL), GRANARY_OK);
        ck_assert_int_eq(granary_update_options(g, "expandable_segments:False", NULL), GRANARY_OK);
        pthread_join(thread, NULL);
        const char *reason =
            written_text(written_read(&written, GRANARY_JSON), "granary.facts.expandable_reason");
        ck_assert_msg(!*reason || strcmp(reason, "switched off") == 0, "%s", reason);
        fixture_close(g);
    }
}
END_TEST

static atomic_bool inside;

/* The loader's lock is held around this. */
static int alloc_inside(struct dl_phdr_info *info, size_t size, void *context) {
    void *ptr;
    (void)info, (void)size, (void)context;
    atomic_store(&inside, true);
    usleep(50000);
    ck_assert_int_eq(granary_alloc(g, GR_MIB, NULL, &ptr), GRANARY_OK);
    return 1;
}

static void *visit_objects(void *argument) {
    (void)dl_iterate_phdr(alloc_inside, NULL);
    return argument;
}

START_TEST(history_may_begin_while_a_thread_allocates_under_the_lock_of_the_loader) {
    struct granary_history_options history;
    pthread_t thread;
    granary_history_options_init(&history);
    history.stacks = GRANARY_STACKS_NONE; /* an unwinder is looked for all the same */
    g = fixture_open(NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, visit_objects, NULL), 0);
    while (!atomic_load(&inside)) usleep(100);
    ck_assert_int_eq(granary_record_history(g, &history), GRANARY_OK);
    pthread_join(thread, NULL);
    fixture_close(g);
}
END_TEST

Suite *suite_save(void) {
    Suite *suite = suite_create("save");
    TCase *cases = tcase_create("save");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, an_out_of_memory_writes_its_snapshot, 0, 2);
    tcase_add_loop_test(cases, a_file_that_cannot_be_written_is_told_and_changes_nothing_else, 0, 2);
    tcase_add_test(cases, a_failure_without_a_file_says_nothing_of_snapshots);
    tcase_add_test(cases, an_observer_may_take_a_snapshot_of_another_handle);
    tcase_add_test(cases, of_two_threads_that_write_one_file_each_leaves_a_whole_one);
    tcase_add_test(cases, history_may_begin_and_settings_change_while_failures_are_told);
    tcase_add_test(cases, history_may_begin_while_a_thread_allocates_under_the_lock_of_the_loader);
    suite_add_tcase(suite, cases);
    return suite;
}
