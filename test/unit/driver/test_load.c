/* SPDX-License-Identifier: Apache-2.0
 * Loading libcuda: a library that is missing, a stub, too old or hollow is told apart from a driver. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <granary/granary.h>

#include "driver/driver.h"

static struct gr_driver driver;
static char reason[GR_REASON_ROOM];

/* Opens the fake library of that name; the Makefile says where they lie. */
static int open_fake(const char *name) {
    const char *folder = getenv("GRANARY_TEST_FAKES");
    char path[4096];
    ck_assert_msg(folder != NULL, "GRANARY_TEST_FAKES is not set");
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    ck_assert_msg(access(path, R_OK) == 0, "%s is missing", path);
    setenv("GRANARY_LIBCUDA", path, 1);
    int status = gr_driver_open(&driver, false, 0, false, reason);
    unsetenv("GRANARY_LIBCUDA");
    return status;
}

START_TEST(a_missing_library_is_named) {
    setenv("GRANARY_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    ck_assert_int_eq(gr_driver_open(&driver, false, 0, false, reason), GRANARY_NO_DRIVER);
    ck_assert_msg(strstr(reason, "/nowhere/libcuda.so.1") != NULL, "%s", reason);
    unsetenv("GRANARY_LIBCUDA");
}
END_TEST

START_TEST(the_link_time_stub_is_told_apart) {
    ck_assert_int_eq(open_fake("stub"), GRANARY_STUB_DRIVER);
    ck_assert_msg(strstr(reason, "stub") != NULL, "%s", reason);
    ck_assert_int_eq(open_fake("stub_at_init"), GRANARY_STUB_DRIVER);
    ck_assert_msg(strstr(reason, "stub") != NULL, "%s", reason);
}
END_TEST

START_TEST(a_driver_without_lookup_is_too_old_and_its_version_is_named) {
    ck_assert_int_eq(open_fake("old"), GRANARY_OLD_DRIVER);
    ck_assert_msg(strstr(reason, "CUDA 11.2") != NULL && strstr(reason, "11.3") != NULL, "%s", reason);
}
END_TEST

START_TEST(success_without_a_function_is_not_believed) {
    ck_assert_int_eq(open_fake("hollow"), GRANARY_OLD_DRIVER);
    ck_assert_msg(strstr(reason, "cuInit") != NULL, "%s", reason);
}
END_TEST

START_TEST(the_lookup_of_four_arguments_serves) {
    ck_assert_int_eq(open_fake("driver_11_3"), GRANARY_OK);
    ck_assert_int_eq(driver.facts.driver_version, 11030);
    ck_assert_str_eq(driver.facts.name, "fake");
    ck_assert(driver.call.cuMemCreate != NULL);
    ck_assert(driver.call.cuStreamGetId == NULL);
    ck_assert(!driver.facts.capture_query);
    ck_assert(!driver.facts.vmm);
    ck_assert_msg(strstr(driver.facts.vmm_reason, "attribute 102") != NULL, "%s", driver.facts.vmm_reason);
    gr_driver_close(&driver);
}
END_TEST

START_TEST(entries_newer_than_the_driver_stay_empty) {
    ck_assert_int_eq(open_fake("driver_12_2"), GRANARY_OK);
    ck_assert(driver.call.cuStreamGetId != NULL);
    ck_assert(driver.call.cuStreamGetCaptureInfo == NULL);
    ck_assert(!driver.facts.capture_query);
    gr_driver_close(&driver);
}
END_TEST

Suite *suite_load(void) {
    Suite *suite = suite_create("load");
    TCase *cases = tcase_create("load");
    tcase_add_test(cases, a_missing_library_is_named);
    tcase_add_test(cases, the_link_time_stub_is_told_apart);
    tcase_add_test(cases, a_driver_without_lookup_is_too_old_and_its_version_is_named);
    tcase_add_test(cases, success_without_a_function_is_not_believed);
    tcase_add_test(cases, the_lookup_of_four_arguments_serves);
    tcase_add_test(cases, entries_newer_than_the_driver_stay_empty);
    suite_add_tcase(suite, cases);
    return suite;
}
