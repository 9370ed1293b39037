/* SPDX-License-Identifier: Apache-2.0
 * The simulated device as a whole: start and end, contexts, facts, classic memory, and real bytes. */
#include <pthread.h>

#include "test_sim_support.h"

static void setup(void) {
    up(defaults());
}

/* ---- contexts ----------------------------------------------------------------------------- */

/* What a thread without a context may call. */
static void *no_context(void *unused) {
    gr_cu_context c = (gr_cu_context)1;
    gr_cu_event e;
    size_t a, b;
    gr_cu_ptr p, q;
    (void)unused;
    OK(cu.cuCtxGetCurrent(&c));
    ck_assert_ptr_null(c);
    p = ready(G);
    CODE(cu.cuMemGetInfo(&a, &b), 201);
    CODE(cu.cuEventCreate(&e, 2), 201);
    CODE(cu.cuMemGetAddressRange(&q, &a, p), 201);
    CODE(cu.cuMemAlloc(&q, G), 201);
    give(p, G);
    CODE(cu.cuCtxPopCurrent(&c), 201);
    return NULL;
}

START_TEST(virtual_memory_needs_no_context_and_figures_do) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, no_context, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    OK(cu.cuCtxPopCurrent(NULL));
    OK(cu.cuDevicePrimaryCtxRelease(0));
    CODE(cu.cuDevicePrimaryCtxRelease(0), 201);
    no_context(NULL);
    CODE(cu.cuCtxPushCurrent(context), 201);
    ck_assert_int_eq(granary_sim_close(), GRANARY_OK);
}
END_TEST

START_TEST(nothing_works_before_init_nor_in_a_forked_child) {
    ck_assert_int_eq(granary_sim_open(NULL), GRANARY_OK);
    gr_sim_table(&cu);
    gr_cu_device device;
    int version = 0;
    CODE(cu.cuDeviceGet(&device, 0), 3);
    OK(cu.cuDriverGetVersion(&version));
    ck_assert_int_eq(version, 13000);
    OK(cu.cuInit(0));
    OK(cu.cuDeviceGet(&device, 0));
    CODE(cu.cuDeviceGet(&device, 1), 101);
    pid_t child = fork();
    if (child == 0) _exit(cu.cuInit(0) == 3 && cu.cuDeviceGet(&device, 0) == 3 ? 0 : 1);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(granary_sim_close(), GRANARY_OK);
    CODE(cu.cuDeviceGet(&device, 0), 3);
}
END_TEST

START_TEST(closing_is_refused_while_something_is_held) {
    gr_cu_ptr p = reserve(G);
    ck_assert_int_eq(granary_sim_open(NULL), GRANARY_BUSY);
    ck_assert_int_eq(granary_sim_close(), GRANARY_BUSY);
    OK(cu.cuMemAddressFree(p, G));
    ck_assert_int_eq(granary_sim_close(), GRANARY_BUSY); /* the context */
    down();
    ck_assert_int_eq(granary_sim_close(), GRANARY_INVALID);
}
END_TEST

START_TEST(attributes_and_names_are_as_measured) {
    int value = -12345;
    const char *name = "";
    char device[8];
    OK(cu.cuDeviceGetAttribute(&value, GR_CU_ATTR_CC_MAJOR, 0));
    ck_assert_int_eq(value, 9);
    value = -12345;
    CODE(cu.cuDeviceGetAttribute(&value, 9999, 0), 1);
    ck_assert_int_eq(value, -12345);
    ck_assert_int_eq(granary_sim_set_attribute(0, GR_CU_ATTR_INTEGRATED, 1), GRANARY_OK);
    OK(cu.cuDeviceGetAttribute(&value, GR_CU_ATTR_INTEGRATED, 0));
    ck_assert_int_eq(value, 1);
    OK(cu.cuGetErrorName(2, &name));
    ck_assert_str_eq(name, "CUDA_ERROR_OUT_OF_MEMORY");
    OK(cu.cuGetErrorName(0, &name));
    ck_assert_str_eq(name, "CUDA_SUCCESS");
    CODE(cu.cuGetErrorName(4711, &name), 1);
    ck_assert_ptr_null(name);
    OK(cu.cuDeviceGetName(device, sizeof device, 0));
    ck_assert_uint_eq(strlen(device), sizeof device - 1);
    down();
}
END_TEST

START_TEST(an_old_driver_lacks_newer_entries) {
    struct granary_sim_config config = defaults();
    config.driver_version = 11020;
    ck_assert_int_eq(granary_sim_open(&config), GRANARY_OK);
    gr_sim_table(&cu);
    ck_assert(cu.cuStreamGetId == NULL && cu.cuStreamGetCaptureInfo == NULL && cu.cuMemCreate != NULL);
    ck_assert_int_eq(granary_sim_close(), GRANARY_OK);
}
END_TEST

START_TEST(a_sticky_context_refuses_work_and_figures_but_not_virtual_memory) {
    size_t a, b;
    gr_cu_stream s = stream();
    ck_assert_int_eq(granary_sim_set_sticky(0, 700), GRANARY_OK);
    CODE(cu.cuMemGetInfo(&a, &b), 700);
    CODE(cu.cuStreamSynchronize(s), 700);
    CODE(cu.cuCtxSynchronize(), 700);
    OK(cu.cuMemRelease(create(G)));
    ck_assert_int_eq(granary_sim_set_sticky(0, 0), GRANARY_OK);
    OK(cu.cuStreamDestroy(s));
    down();
}
END_TEST

START_TEST(without_virtual_memory_its_calls_are_not_supported) {
    struct granary_sim_config config = defaults();
    config.vmm = 0;
    up(config);
    int value = 7;
    gr_cu_ptr p;
    gr_cu_handle h;
    size_t g;
    OK(cu.cuDeviceGetAttribute(&value, GR_CU_ATTR_VMM, 0));
    ck_assert_int_eq(value, 0);
    CODE(cu.cuMemCreate(&h, G, &PROP, 0), 801);
    CODE(cu.cuMemAddressReserve(&p, G, 0, 0, 0), 801);
    CODE(cu.cuMemGetAllocationGranularity(&g, &PROP, GR_CU_GRANULARITY_MINIMUM), 801);
    OK(cu.cuMemAlloc(&p, G));
    OK(cu.cuMemFree(p));
    down();
}
END_TEST

/* ---- cuMemAlloc --------------------------------------------------------------------------- */

START_TEST(mem_alloc_counts_in_blocks_of_2_mib) {
    gr_cu_ptr p, base;
    size_t free_bytes, total, size;
    CODE(cu.cuMemAlloc(&p, 0), 1);
    OK(cu.cuMemAlloc(&p, G + 1));
    ck_assert_uint_eq(p % G, 0);
    OK(cu.cuMemGetInfo(&free_bytes, &total));
    ck_assert_uint_eq(total - free_bytes, 2 * G);
    ck_assert_uint_eq(held().allocations, 1);
    ck_assert_uint_eq(held().allocated_bytes, 2 * G);
    ck_assert_uint_eq(held().handles + held().mappings + held().reservations, 0);
    OK(cu.cuMemGetAddressRange(&base, &size, p + 100));
    ck_assert_uint_eq(base, p);
    ck_assert_uint_eq(size, G + 1);
    OK(cu.cuMemFree(p));
    CODE(cu.cuMemAlloc(&p, 142 * GR_GIB), 2);
    down();
}
END_TEST

START_TEST(the_two_kinds_of_memory_do_not_mix) {
    gr_cu_ptr classic, mapped = ready(G);
    gr_cu_handle r;
    OK(cu.cuMemAlloc(&classic, G));
    CODE(cu.cuMemRetainAllocationHandle(&r, at(classic)), 1);
    CODE(cu.cuMemUnmap(classic, G), 1);
    CODE(cu.cuMemFree(mapped), 1);
    CODE(cu.cuMemFree(classic + 512), 1);
    OK(cu.cuMemFree(classic));
    give(mapped, G);
    down();
}
END_TEST

START_TEST(freeing_nothing_succeeds) {
    OK(cu.cuMemFree(0));
    down();
}
END_TEST

/* ---- real bytes --------------------------------------------------------------------------- */

static struct granary_sim_config with_memory(void) {
    struct granary_sim_config config = defaults();
    config.backing = GRANARY_SIM_MEMORY;
    config.memory_bytes = 256 * GR_MIB;
    return config;
}

START_TEST(bytes_are_real_and_aliases_share_them) {
    up(with_memory());
    gr_cu_ptr p = reserve(2 * G), classic;
    gr_cu_handle h = create(G);
    unsigned char seen[64];
    OK(cu.cuMemMap(p, G, 0, h, 0));
    OK(cu.cuMemMap(p + G, G, 0, h, 0));
    OK(cu.cuMemSetAccess(p, 2 * G, &BOTH, 1));
    OK(cu.cuMemsetD8Async(p + 100, 7, 64, NULL));
    OK(cu.cuMemcpyDtoH(seen, p + G + 100, sizeof seen));
    for (size_t i = 0; i < sizeof seen; i++) ck_assert_uint_eq(seen[i], 7);
    OK(cu.cuMemAlloc(&classic, 4096));
    OK(cu.cuMemsetD32Async(classic, 0x01020304, 16, NULL));
    OK(cu.cuMemcpyDtoDAsync(p + 64, classic + 4, 32, NULL));
    OK(cu.cuMemcpyDtoH(seen, p + 64, 32));
    ck_assert_uint_eq(seen[0], 4);
    ck_assert_uint_eq(seen[31], 1);
    seen[0] = 99;
    OK(cu.cuMemcpyHtoD(classic, seen, 1));
    ck_assert_uint_eq(*(unsigned char *)at(classic), 99);
    OK(cu.cuMemFree(classic));
    OK(cu.cuMemRelease(h));
    give(p, 2 * G);
    down();
}
END_TEST

START_TEST(contents_move_with_the_handle_and_end_with_it) {
    up(with_memory());
    gr_cu_ptr p = reserve(2 * G);
    gr_cu_handle h = create(G);
    unsigned char seen = 0;
    OK(cu.cuMemMap(p, G, 0, h, 0));
    OK(cu.cuMemSetAccess(p, G, &BOTH, 1));
    OK(cu.cuMemsetD8Async(p, 5, G, NULL));
    OK(cu.cuCtxSynchronize());
    OK(cu.cuMemUnmap(p, G));
    OK(cu.cuMemMap(p + G, G, 0, h, 0));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemSetAccess(p + G, G, &BOTH, 1));
    OK(cu.cuMemcpyDtoH(&seen, p + 2 * G - 1, 1));
    ck_assert_uint_eq(seen, 5);
    OK(cu.cuMemUnmap(p + G, G));
    OK(cu.cuMemAddressFree(p, 2 * G));
    p = ready(G);
    OK(cu.cuMemcpyDtoH(&seen, p, 1));
    ck_assert_uint_eq(seen, 0);
    give(p, G);
    down();
}
END_TEST

START_TEST(work_without_access_is_refused_at_submission) {
    struct gr_cu_access read = BOTH;
    gr_cu_ptr p = ready(G);
    char byte = 1;
    read.flags = GR_CU_ACCESS_READ;
    OK(cu.cuMemSetAccess(p, G, &read, 1));
    CODE(cu.cuMemcpyHtoD(p, &byte, 1), 1);
    OK(cu.cuMemcpyDtoH(&byte, p, 1));
    CODE(cu.cuMemsetD8Async(p + G - 1, 0, 2, NULL), 1);
    give(p, G);
    down();
}
END_TEST

START_TEST(devices_reach_each_other_unless_they_are_said_not_to) {
    for (int peers = 0; peers < 2; peers++) {
        struct granary_sim_config config;
        int reaches = -1;
        granary_sim_config_init(&config);
        ck_assert_int_eq(config.peers, 1);
        config.devices = 2;
        config.peers = peers;
        up(config);
        OK(cu.cuDeviceCanAccessPeer(&reaches, 1, 0));
        ck_assert_int_eq(reaches, peers);
        OK(cu.cuDeviceCanAccessPeer(&reaches, 1, 1));
        ck_assert_int_eq(reaches, 0);
        CODE(cu.cuDeviceCanAccessPeer(&reaches, 2, 0), 101);
        CODE(cu.cuDeviceCanAccessPeer(&reaches, 0, -1), 101);
        CODE(cu.cuDeviceCanAccessPeer(NULL, 0, 1), 1);
        const struct gr_cu_access both[] = {
            {.location = {.type = GR_CU_LOCATION_DEVICE, .id = 0}, .flags = GR_CU_ACCESS_READWRITE},
            {.location = {.type = GR_CU_LOCATION_DEVICE, .id = 1}, .flags = GR_CU_ACCESS_READWRITE}};
        gr_cu_ptr p = reserve(G);
        gr_cu_handle h = create(G);
        OK(cu.cuMemMap(p, G, 0, h, 0));
        CODE(cu.cuMemSetAccess(p, G, both, 2), peers ? 0 : 101);
        OK(cu.cuMemUnmap(p, G));
        OK(cu.cuMemRelease(h));
        OK(cu.cuMemAddressFree(p, G));
        down();
    }
}
END_TEST

Suite *suite_sim_device(void);
Suite *suite_sim_device(void) {
    Suite *suite = suite_create("sim_device");
    TCase *plain = tcase_create("plain");
    tcase_add_checked_fixture(plain, setup, NULL);
    tcase_add_test(plain, virtual_memory_needs_no_context_and_figures_do);
    tcase_add_test(plain, closing_is_refused_while_something_is_held);
    tcase_add_test(plain, attributes_and_names_are_as_measured);
    tcase_add_test(plain, a_sticky_context_refuses_work_and_figures_but_not_virtual_memory);
    tcase_add_test(plain, mem_alloc_counts_in_blocks_of_2_mib);
    tcase_add_test(plain, the_two_kinds_of_memory_do_not_mix);
    tcase_add_test(plain, freeing_nothing_succeeds);
    tcase_add_test(plain, work_without_access_is_refused_at_submission);
    suite_add_tcase(suite, plain);
    TCase *configured = tcase_create("configured");
    tcase_add_test(configured, nothing_works_before_init_nor_in_a_forked_child);
    tcase_add_test(configured, an_old_driver_lacks_newer_entries);
    tcase_add_test(configured, devices_reach_each_other_unless_they_are_said_not_to);
    tcase_add_test(configured, without_virtual_memory_its_calls_are_not_supported);
    tcase_add_test(configured, bytes_are_real_and_aliases_share_them);
    tcase_add_test(configured, contents_move_with_the_handle_and_end_with_it);
    suite_add_tcase(suite, configured);
    return suite;
}
