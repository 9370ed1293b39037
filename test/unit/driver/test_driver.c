/* SPDX-License-Identifier: Apache-2.0
 * Opening the driver: what can be missing or is only promised, and that nothing is left behind; then
 * what codes mean and whose context is current. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <granary/sim.h>

#include "driver/driver.h"

static struct gr_driver driver;
static char reason[GR_REASON_ROOM];

static void open_sim(void (*change)(struct granary_sim_config *)) {
    struct granary_sim_config config;
    granary_sim_config_init(&config);
    if (change != NULL) change(&config);
    ck_assert_int_eq(granary_sim_open(&config), GRANARY_OK);
}

/* Nothing is held, and the simulation closes. */
static void close_sim(void) {
    struct granary_sim_held held = {.struct_size = sizeof held};
    granary_sim_get_held(&held);
    ck_assert_uint_eq(held.reservations, 0);
    ck_assert_uint_eq(held.handles, 0);
    ck_assert_uint_eq(held.mappings, 0);
    ck_assert_uint_eq(held.contexts, 0);
    ck_assert_int_eq(granary_sim_close(), GRANARY_OK);
}

static void two_devices(struct granary_sim_config *config) {
    config->devices = 2;
}
static void without_vmm(struct granary_sim_config *config) {
    config->vmm = 0;
}
static void of_11_2(struct granary_sim_config *config) {
    config->driver_version = 11020;
}
static void of_12_2(struct granary_sim_config *config) {
    config->driver_version = 12020;
}
static void of_32_mib(struct granary_sim_config *config) {
    config->memory_bytes = 32 * GR_MIB;
}

/* ---- the device ------------------------------------------------------------------------------- */

START_TEST(a_device_opens_with_its_facts_and_closes_without_a_trace) {
    open_sim(two_devices);
    ck_assert_int_eq(gr_driver_open(&driver, true, 1, false, reason), GRANARY_OK);
    ck_assert_int_eq(driver.facts.device, 1);
    ck_assert_int_eq(driver.facts.driver_version, 13000);
    ck_assert_uint_eq(driver.facts.total_bytes, 141 * GR_GIB);
    ck_assert_uint_eq(driver.facts.granule, 2 * GR_MIB);
    ck_assert(driver.facts.vmm && driver.facts.capture_query && !driver.facts.rdma);
    ck_assert_str_eq(driver.facts.vmm_reason, "");
    ck_assert_str_ne(driver.facts.name, "");
    struct granary_sim_held held = {.struct_size = sizeof held};
    granary_sim_get_held(&held);
    ck_assert_uint_eq(held.contexts, 1);
    ck_assert_uint_eq(held.reservations + held.handles + held.mappings, 0);
    gr_cu_context current = driver.context;
    ck_assert_int_eq(GR_DRIVE(&driver, cuCtxGetCurrent, &current), GR_CU_SUCCESS);
    ck_assert_ptr_null(current);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(a_device_that_is_not_there_is_named_with_their_number) {
    static const int wrong[] = {2, -1, 99};
    open_sim(two_devices);
    for (size_t i = 0; i < GR_COUNT(wrong); i++) {
        char name[32];
        snprintf(name, sizeof name, "no device %d:", wrong[i]);
        ck_assert_int_eq(gr_driver_open(&driver, true, wrong[i], false, reason), GRANARY_NO_DEVICE);
        ck_assert_msg(strstr(reason, name) != NULL && strstr(reason, "has 2") != NULL, "%s", reason);
    }
    close_sim();
}
END_TEST

START_TEST(a_simulated_old_driver_is_refused_like_a_real_one) {
    open_sim(of_11_2);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OLD_DRIVER);
    ck_assert_msg(strstr(reason, "11.2") != NULL, "%s", reason);
    close_sim();
}
END_TEST

START_TEST(a_simulated_driver_has_no_newer_entries_either) {
    open_sim(of_12_2);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    ck_assert(driver.call.cuStreamGetCaptureInfo == NULL);
    ck_assert(driver.call.cuStreamGetId != NULL);
    ck_assert(!driver.facts.capture_query);
    ck_assert(driver.facts.vmm);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(a_device_that_promises_no_virtual_memory_is_believed) {
    open_sim(without_vmm);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, true, reason), GRANARY_OK);
    ck_assert(!driver.facts.vmm && !driver.facts.rdma);
    ck_assert_msg(strstr(driver.facts.vmm_reason, "attribute 102") != NULL, "%s", driver.facts.vmm_reason);
    ck_assert_uint_eq(driver.facts.granule, 2 * GR_MIB);
    ck_assert_uint_eq(gr_tap_count(&driver.tap, GR_ENTRY_cuMemCreate), 0);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(virtual_memory_that_is_refused_is_off_and_the_reason_names_call_and_code) {
    static const int entries[] = {GR_ENTRY_cuMemGetAllocationGranularity, GR_ENTRY_cuMemAddressReserve,
                                  GR_ENTRY_cuMemCreate, GR_ENTRY_cuMemMap, GR_ENTRY_cuMemSetAccess};
    static const struct {
        gr_cu_result code;
        const char *name;
    } codes[] = {{2, "CUDA_ERROR_OUT_OF_MEMORY (2)"},
                 {800, "CUDA_ERROR_NOT_PERMITTED (800)"},
                 {801, "CUDA_ERROR_NOT_SUPPORTED (801)"},
                 {999, "CUDA_ERROR_UNKNOWN (999)"}};
    open_sim(NULL);
    for (size_t i = 0; i < GR_COUNT(entries); i++)
        for (size_t k = 0; k < GR_COUNT(codes); k++) {
            ck_assert_int_eq(gr_driver_fill(&driver, true, reason), GRANARY_OK);
            gr_tap_fail(&driver.tap, entries[i], 1, UINT64_MAX, codes[k].code);
            ck_assert_int_eq(gr_driver_start(&driver, 0, false, reason), GRANARY_OK);
            ck_assert(!driver.facts.vmm);
            const char *words = driver.facts.vmm_reason;
            ck_assert_msg(strstr(words, gr_driver_entry_name(entries[i])) != NULL, "%s", words);
            ck_assert_msg(strstr(words, codes[k].name) != NULL, "%s", words);
            gr_driver_close(&driver);
        }
    close_sim();
}
END_TEST

START_TEST(a_full_card_is_taken_at_its_word) {
    open_sim(of_32_mib);
    ck_assert_int_eq(gr_driver_fill(&driver, true, reason), GRANARY_OK);
    gr_tap_fail(&driver.tap, GR_ENTRY_cuMemCreate, 1, UINT64_MAX, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_driver_start(&driver, 0, false, reason), GRANARY_OK);
    ck_assert(driver.facts.vmm);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

/* ---- RDMA: case 19 ---------------------------------------------------------------------------- */

/* The simulation's own functions, behind those below. */
static struct gr_table behind;
static int flagged_creates;
static gr_cu_handle flagged, mapped;

static gr_cu_result create(gr_cu_handle *out, size_t size, const struct gr_cu_mem_prop *prop,
                           unsigned long long flags) {
    gr_cu_result code = behind.cuMemCreate(out, size, prop, flags);
    if (code == GR_CU_SUCCESS && prop->flags.rdma_capable) {
        flagged_creates++;
        flagged = *out;
    }
    return code;
}
static gr_cu_result map(gr_cu_ptr ptr, size_t size, size_t offset, gr_cu_handle handle,
                        unsigned long long flags) {
    mapped = handle;
    return behind.cuMemMap(ptr, size, offset, handle, flags);
}
static gr_cu_result set_access(gr_cu_ptr ptr, size_t size, const struct gr_cu_access *access, size_t count) {
    return mapped == flagged ? GR_CU_UNKNOWN : behind.cuMemSetAccess(ptr, size, access, count);
}
static gr_cu_result get_attribute(int *out, int attribute, gr_cu_device device) {
    if (attribute != GR_CU_ATTR_RDMA_WITH_VMM) return behind.cuDeviceGetAttribute(out, attribute, device);
    *out = 1;
    return GR_CU_SUCCESS;
}

/* Opens a device that promises RDMA, and keeps the promise or not. */
static void open_promising(bool want_rdma, bool keeps) {
    flagged_creates = 0;
    flagged = 0;
    ck_assert_int_eq(gr_driver_fill(&driver, true, reason), GRANARY_OK);
    behind = driver.call;
    driver.call.cuDeviceGetAttribute = get_attribute;
    driver.call.cuMemCreate = create;
    driver.call.cuMemMap = map;
    if (!keeps) driver.call.cuMemSetAccess = set_access;
    ck_assert_int_eq(gr_driver_start(&driver, 0, want_rdma, reason), GRANARY_OK);
    ck_assert(driver.facts.vmm);
}

START_TEST(rdma_that_fails_at_access_is_retried_once_without) {
    open_sim(NULL);
    open_promising(true, false);
    ck_assert(!driver.facts.rdma);
    ck_assert_int_eq(flagged_creates, 1);
    ck_assert_uint_eq(gr_tap_count(&driver.tap, GR_ENTRY_cuMemCreate), 2);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(rdma_that_works_is_found_with_one_attempt) {
    open_sim(NULL);
    open_promising(true, true);
    ck_assert(driver.facts.rdma);
    ck_assert_uint_eq(gr_tap_count(&driver.tap, GR_ENTRY_cuMemCreate), 1);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(rdma_is_not_tried_unless_it_is_wanted) {
    open_sim(NULL);
    open_promising(false, true);
    ck_assert(!driver.facts.rdma);
    ck_assert_int_eq(flagged_creates, 0);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

/* ---- refusals --------------------------------------------------------------------------------- */

START_TEST(every_call_of_opening_fails_once_and_nothing_is_held) {
    static const gr_cu_result codes[] = {GR_CU_INVALID_VALUE, GR_CU_OUT_OF_MEMORY, GR_CU_UNKNOWN,
                                         GR_CU_ILLEGAL_ADDRESS};
    open_sim(NULL);
    for (size_t k = 0; k < GR_COUNT(codes); k++)
        for (uint64_t n = 1, refused = 1; refused > 0; n++) {
            ck_assert_int_eq(gr_driver_fill(&driver, true, reason), GRANARY_OK);
            gr_tap_fail(&driver.tap, GR_TAP_ANY, n, 1, codes[k]);
            int status = gr_driver_start(&driver, 0, true, reason);
            if (status == GRANARY_OK) {
                refused = gr_tap_refusals(&driver.tap);
                if (!driver.facts.vmm) ck_assert_str_ne(driver.facts.vmm_reason, "");
                gr_driver_close(&driver);
            } else {
                ck_assert_str_ne(reason, "");
            }
            struct granary_sim_held held = {.struct_size = sizeof held};
            granary_sim_get_held(&held);
            ck_assert_msg(held.contexts + held.reservations + held.handles + held.mappings == 0,
                          "call %d refused with %d: something is held", (int)n, codes[k]);
        }
    close_sim();
}
END_TEST

START_TEST(codes_become_statuses) {
    static const struct {
        gr_cu_result code;
        int status;
    } rows[] = {{0, GRANARY_OK},
                {2, GRANARY_OUT_OF_MEMORY},
                {800, GRANARY_UNSUPPORTED},
                {801, GRANARY_UNSUPPORTED},
                {1, GRANARY_DRIVER},
                {900, GRANARY_DRIVER},
                {999, GRANARY_DRIVER},
                {201, GRANARY_DRIVER},
                {4, GRANARY_LOST},
                {214, GRANARY_LOST},
                {226, GRANARY_LOST},
                {700, GRANARY_LOST},
                {702, GRANARY_LOST},
                {710, GRANARY_LOST},
                {714, GRANARY_LOST},
                {715, GRANARY_LOST},
                {716, GRANARY_LOST},
                {717, GRANARY_LOST},
                {718, GRANARY_LOST},
                {719, GRANARY_LOST},
                {911, GRANARY_LOST}};
    open_sim(NULL);
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
        ck_assert_msg(gr_driver_status(&driver, GR_ENTRY_cuMemCreate, rows[i].code) == rows[i].status,
                      "code %d", rows[i].code);
        ck_assert(gr_driver_lost(&driver) == (rows[i].status == GRANARY_LOST));
        atomic_store(&driver.lost, 0); /* the simulation is well: let close give back */
        gr_driver_close(&driver);
    }
    close_sim();
}
END_TEST

START_TEST(a_destroyed_stream_does_not_cost_the_device_but_a_destroyed_context_does) {
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    ck_assert_int_eq(gr_driver_status(&driver, GR_ENTRY_cuEventRecord, GR_CU_CONTEXT_IS_DESTROYED),
                     GRANARY_DRIVER);
    ck_assert(!gr_driver_lost(&driver));
    ck_assert_int_eq(gr_driver_status(&driver, GR_ENTRY_cuMemGetInfo, GR_CU_CONTEXT_IS_DESTROYED),
                     GRANARY_LOST);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_LOST);
    uint64_t calls = gr_tap_total(&driver.tap);
    atomic_store(&driver.lost, 0);
    ck_assert_uint_eq(gr_tap_total(&driver.tap), calls);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(the_last_refusal_is_remembered_with_its_entry) {
    gr_cu_result code = 99;
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    ck_assert_int_eq(gr_driver_last(&driver, &code), -1);
    ck_assert_int_eq(code, GR_CU_SUCCESS);
    (void)!gr_driver_status(&driver, GR_ENTRY_cuMemMap, GR_CU_INVALID_VALUE);
    (void)!gr_driver_status(&driver, GR_ENTRY_cuMemCreate, GR_CU_SUCCESS); /* is none */
    ck_assert_int_eq(gr_driver_last(&driver, &code), GR_ENTRY_cuMemMap);
    ck_assert_int_eq(code, GR_CU_INVALID_VALUE);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

static void *refuse_on_a_thread(void *d) {
    gr_cu_result code;
    (void)!gr_driver_status(d, GR_ENTRY_cuEventCreate, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(gr_driver_last(d, &code), GR_ENTRY_cuEventCreate);
    return NULL;
}

static void *lose_on_a_thread(void *d) {
    (void)!gr_driver_status(d, GR_ENTRY_cuMemUnmap, GR_CU_ILLEGAL_ADDRESS);
    return NULL;
}

static void on_a_thread(void *(*what)(void *)) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, what, &driver), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(each_thread_remembers_its_own_refusal_and_all_of_them_what_lost_the_driver) {
    gr_cu_result code;
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    on_a_thread(refuse_on_a_thread);
    ck_assert_int_eq(gr_driver_last(&driver, &code), -1);
    (void)!gr_driver_status(&driver, GR_ENTRY_cuMemMap, GR_CU_INVALID_VALUE);
    on_a_thread(refuse_on_a_thread);
    ck_assert_int_eq(gr_driver_last(&driver, &code), GR_ENTRY_cuMemMap);
    on_a_thread(lose_on_a_thread);
    ck_assert_int_eq(gr_driver_last(&driver, &code), GR_ENTRY_cuMemUnmap);
    ck_assert_int_eq(code, GR_CU_ILLEGAL_ADDRESS);
    (void)!gr_driver_status(&driver, GR_ENTRY_cuCtxSynchronize, GR_CU_ILLEGAL_ADDRESS); /* only follows */
    ck_assert_int_eq(gr_driver_last(&driver, &code), GR_ENTRY_cuMemUnmap);
    atomic_store(&driver.lost, 0); /* so that it gives its context back */
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(a_refusal_of_a_driver_that_was_closed_is_not_one_of_the_next_at_its_place) {
    gr_cu_result code;
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    (void)!gr_driver_status(&driver, GR_ENTRY_cuMemMap, GR_CU_INVALID_VALUE);
    gr_driver_close(&driver);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    ck_assert_int_eq(gr_driver_last(&driver, &code), -1);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(names_are_the_drivers_own_and_none_is_missing) {
    char buffer[GR_CODE_NAME_ROOM];
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    ck_assert_str_eq(gr_driver_entry_name(GR_ENTRY_cuInit), "cuInit");
    ck_assert_str_eq(gr_driver_entry_name(GR_ENTRY_cuLaunchHostFunc), "cuLaunchHostFunc");
    ck_assert_str_ne(gr_driver_entry_name(-1), "");
    ck_assert_str_ne(gr_driver_entry_name(GR_ENTRY_COUNT), "");
    ck_assert_str_eq(gr_driver_code_name(&driver, 0, buffer), "CUDA_SUCCESS");
    ck_assert_str_eq(gr_driver_code_name(&driver, 2, buffer), "CUDA_ERROR_OUT_OF_MEMORY");
    ck_assert_str_eq(gr_driver_code_name(&driver, 123456, buffer), "CUDA_ERROR_123456");
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(calls_are_summed_by_kind_and_none_is_forgotten) {
    struct granary_driver_calls calls;
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    gr_driver_calls(&driver, &calls);
    ck_assert_uint_eq(calls.struct_size, sizeof calls);
    ck_assert_uint_eq(calls.create, 1);
    ck_assert_uint_eq(calls.reserve, 1);
    ck_assert_uint_eq(calls.map, 1);
    ck_assert_uint_eq(calls.set_access, 1);
    ck_assert_uint_eq(calls.unmap, 1);
    ck_assert_uint_eq(calls.release, 1);
    ck_assert_uint_eq(calls.address_free, 1);
    uint64_t sum = 0;
    for (const uint64_t *c = &calls.create; c <= &calls.other; c++) sum += *c;
    ck_assert_uint_eq(sum, gr_tap_total(&driver.tap));
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

/* ---- the current context ---------------------------------------------------------------------- */

static gr_cu_context current(void) {
    gr_cu_context context = NULL;
    ck_assert_int_eq(driver.call.cuCtxGetCurrent(&context), GR_CU_SUCCESS);
    return context;
}

START_TEST(the_context_is_pushed_only_when_it_is_not_current) {
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    uint64_t pushes = gr_tap_count(&driver.tap, GR_ENTRY_cuCtxPushCurrent);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_OK);
    ck_assert_ptr_eq(current(), driver.context);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_OK);
    ck_assert_ptr_eq(current(), driver.context);
    gr_driver_end(&driver);
    ck_assert_ptr_eq(current(), driver.context);
    gr_driver_end(&driver);
    ck_assert_ptr_null(current());
    ck_assert_uint_eq(gr_tap_count(&driver.tap, GR_ENTRY_cuCtxPushCurrent), pushes + 1);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(contexts_of_two_devices_nest) {
    static struct gr_driver other;
    open_sim(two_devices);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    ck_assert_int_eq(gr_driver_open(&other, true, 1, false, reason), GRANARY_OK);
    ck_assert_ptr_ne(driver.context, other.context);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_OK);
    ck_assert_int_eq(gr_driver_begin(&other), GRANARY_OK);
    ck_assert_ptr_eq(current(), other.context);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_OK);
    ck_assert_ptr_eq(current(), driver.context);
    gr_driver_end(&driver);
    ck_assert_ptr_eq(current(), other.context);
    gr_driver_end(&other);
    ck_assert_ptr_eq(current(), driver.context);
    gr_driver_end(&driver);
    ck_assert_ptr_null(current());
    gr_driver_close(&other);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(a_refusal_while_beginning_or_ending_leaves_the_stack_balanced) {
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    for (uint64_t n = 1, refused = 1; refused > 0; n++) {
        gr_tap_fail(&driver.tap, GR_TAP_ANY, n, 1, GR_CU_UNKNOWN);
        int status = gr_driver_begin(&driver);
        if (status == GRANARY_OK)
            gr_driver_end(&driver);
        else
            ck_assert_int_eq(status, GRANARY_DRIVER);
        refused = gr_tap_refusals(&driver.tap);
        gr_tap_clear(&driver.tap);
        ck_assert_ptr_null(current());
    }
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

START_TEST(a_lost_driver_is_left_alone) {
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    (void)!gr_driver_status(&driver, GR_ENTRY_cuCtxSynchronize, GR_CU_ILLEGAL_ADDRESS);
    uint64_t calls = gr_tap_total(&driver.tap);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_LOST);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_LOST);
    gr_cu_device device = driver.device;
    gr_cu_result (*release)(gr_cu_device) = driver.call.cuDevicePrimaryCtxRelease;
    gr_driver_close(&driver);
    ck_assert_uint_eq(gr_tap_total(&driver.tap), calls);
    ck_assert_int_eq(release(device), GR_CU_SUCCESS); /* it was still held: closing did not call */
    close_sim();
}
END_TEST

START_TEST(a_forked_child_does_not_call_the_driver) {
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    pid_t child = fork();
    if (child == 0) {
        uint64_t calls = gr_tap_total(&driver.tap);
        int wrong = gr_driver_begin(&driver) != GRANARY_LOST;
        gr_driver_close(&driver);
        wrong |= (gr_tap_total(&driver.tap) != calls) << 1;
        _exit(wrong);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_int_eq(gr_driver_begin(&driver), GRANARY_OK); /* the parent is not touched */
    gr_driver_end(&driver);
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

static void *begin_and_end(void *failed) {
    for (int i = 0; i < 1000; i++) {
        if (gr_driver_begin(&driver) != GRANARY_OK)
            *(int *)failed = 1;
        else
            gr_driver_end(&driver);
    }
    return NULL;
}

START_TEST(threads_begin_and_end_on_their_own) {
    pthread_t threads[4];
    int failed[4] = {0};
    open_sim(NULL);
    ck_assert_int_eq(gr_driver_open(&driver, true, 0, false, reason), GRANARY_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, begin_and_end, &failed[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(failed[i], 0);
    }
    gr_driver_close(&driver);
    close_sim();
}
END_TEST

Suite *suite_driver(void) {
    Suite *suite = suite_create("driver");
    TCase *device = tcase_create("device"), *rdma = tcase_create("rdma");
    TCase *refusals = tcase_create("refusals"), *context = tcase_create("context");
    tcase_add_test(device, a_device_opens_with_its_facts_and_closes_without_a_trace);
    tcase_add_test(device, a_device_that_is_not_there_is_named_with_their_number);
    tcase_add_test(device, a_simulated_old_driver_is_refused_like_a_real_one);
    tcase_add_test(device, a_simulated_driver_has_no_newer_entries_either);
    tcase_add_test(device, a_device_that_promises_no_virtual_memory_is_believed);
    tcase_add_test(device, virtual_memory_that_is_refused_is_off_and_the_reason_names_call_and_code);
    tcase_add_test(device, a_full_card_is_taken_at_its_word);
    tcase_add_test(rdma, rdma_that_fails_at_access_is_retried_once_without);
    tcase_add_test(rdma, rdma_that_works_is_found_with_one_attempt);
    tcase_add_test(rdma, rdma_is_not_tried_unless_it_is_wanted);
    tcase_add_test(refusals, every_call_of_opening_fails_once_and_nothing_is_held);
    tcase_add_test(refusals, codes_become_statuses);
    tcase_add_test(refusals, a_destroyed_stream_does_not_cost_the_device_but_a_destroyed_context_does);
    tcase_add_test(refusals, the_last_refusal_is_remembered_with_its_entry);
    tcase_add_test(refusals, each_thread_remembers_its_own_refusal_and_all_of_them_what_lost_the_driver);
    tcase_add_test(refusals, a_refusal_of_a_driver_that_was_closed_is_not_one_of_the_next_at_its_place);
    tcase_add_test(refusals, names_are_the_drivers_own_and_none_is_missing);
    tcase_add_test(refusals, calls_are_summed_by_kind_and_none_is_forgotten);
    tcase_add_test(context, the_context_is_pushed_only_when_it_is_not_current);
    tcase_add_test(context, contexts_of_two_devices_nest);
    tcase_add_test(context, a_refusal_while_beginning_or_ending_leaves_the_stack_balanced);
    tcase_add_test(context, a_lost_driver_is_left_alone);
    tcase_add_test(context, a_forked_child_does_not_call_the_driver);
    tcase_add_test(context, threads_begin_and_end_on_their_own);
    suite_add_tcase(suite, device);
    suite_add_tcase(suite, rdma);
    suite_add_tcase(suite, refusals);
    suite_add_tcase(suite, context);
    return suite;
}
