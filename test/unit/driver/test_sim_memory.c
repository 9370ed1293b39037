/* SPDX-License-Identifier: Apache-2.0
 * Addresses and memory of the simulated driver: each answer that was measured on a real one, the
 * limits that can be set, and what strict mode stops. */
#include <pthread.h>

#include "test_sim_support.h"

static void setup(void) {
    up(defaults());
}
static void setup_faithful(void) {
    up_faithful(defaults());
}

/* ---- reserve ------------------------------------------------------------------------------ */

START_TEST(reserve_answers_as_measured) {
    gr_cu_ptr p, q = 0;
    CODE(cu.cuMemAddressReserve(&p, 0, 0, 0, 0), 1);
    CODE(cu.cuMemAddressReserve(&p, G, 3, 0, 0), 1);
    CODE(cu.cuMemAddressReserve(&p, 4097, 0, 0, 0), 1);
    CODE(cu.cuMemAddressReserve(&p, 4096, 0, 0, 0), 1);
    CODE(cu.cuMemAddressReserve(&p, G, 0, 0, 1), 1);
    CODE(cu.cuMemAddressReserve(NULL, G, 0, 0, 0), 1);
    p = reserve(4 * G);
    ck_assert_uint_eq(p % G, 0);
    OK(cu.cuMemAddressReserve(&q, G, 0, p, 0)); /* a taken hint gives another address */
    ck_assert(q != p && (q < p || q >= p + 4 * G));
    CODE(cu.cuMemAddressReserve(&q, G, 0, p + 1, 0), 1);
    CODE(cu.cuMemAddressFree(p, 2 * G), 1);
    CODE(cu.cuMemAddressFree(p + G, 3 * G), 1);
    OK(cu.cuMemAddressFree(p, 4 * G));
    CODE(cu.cuMemAddressFree(p, 4 * G), 1);
    OK(cu.cuMemAddressFree(q, G));
    p = ready(2 * G);
    CODE(cu.cuMemAddressFree(p, 2 * G), 1);
    OK(cu.cuMemUnmap(p, 2 * G));
    OK(cu.cuMemAddressFree(p, 2 * G));
    down();
}
END_TEST

START_TEST(a_free_hint_is_honoured) {
    gr_cu_ptr p = reserve(8 * G), q = 0;
    OK(cu.cuMemAddressFree(p, 8 * G));
    OK(cu.cuMemAddressReserve(&q, 2 * G, 0, p + 2 * G, 0));
    ck_assert_uint_eq(q, p + 2 * G);
    OK(cu.cuMemAddressFree(q, 2 * G));
    down();
}
END_TEST

START_TEST(the_addresses_behind_a_reservation_are_free_for_a_hint) {
    static const size_t sizes[] = {G, 2 * G, 64 * G};
    for (size_t i = 0; i < GR_COUNT(sizes); i++) {
        size_t size = sizes[i];
        gr_cu_ptr p = reserve(size), q = 0;
        OK(cu.cuMemAddressReserve(&q, size, 0, p + size, 0));
        ck_assert_uint_eq(q, p + size);
        OK(cu.cuMemAddressFree(p, size));
        OK(cu.cuMemAddressFree(q, size));
    }
    down();
}
END_TEST

START_TEST(a_reservation_has_the_alignment_that_was_asked_for) {
    gr_cu_ptr p;
    OK(cu.cuMemAddressReserve(&p, G, GR_GIB, 0, 0));
    ck_assert_uint_eq(p % GR_GIB, 0);
    OK(cu.cuMemAddressFree(p, G));
    down();
}
END_TEST

START_TEST(the_address_space_has_an_end) {
    struct granary_sim_config config = defaults();
    config.address_bytes = 16 * GR_GIB;
    up(config);
    gr_cu_ptr a = reserve(12 * GR_GIB), b;
    CODE(cu.cuMemAddressReserve(&b, 6 * GR_GIB, 0, 0, 0), 2);
    OK(cu.cuMemAddressReserve(&b, 4 * GR_GIB, 0, 0, 0));
    CODE(cu.cuMemAddressReserve(&b, G, 0, 0, 0), 2);
    OK(cu.cuMemAddressFree(a, 12 * GR_GIB));
    OK(cu.cuMemAddressFree(b, 4 * GR_GIB));
    down();
}
END_TEST

START_TEST(one_reservation_can_be_limited_as_on_small_boards) {
    struct granary_sim_config config = defaults();
    config.max_reserve_bytes = 16 * GR_GIB;
    up(config);
    gr_cu_ptr a, b;
    CODE(cu.cuMemAddressReserve(&a, 32 * GR_GIB, 0, 0, 0), 2);
    OK(cu.cuMemAddressReserve(&a, 16 * GR_GIB, 0, 0, 0));
    OK(cu.cuMemAddressReserve(&b, 16 * GR_GIB, 0, 0, 0));
    OK(cu.cuMemAddressFree(a, 16 * GR_GIB));
    OK(cu.cuMemAddressFree(b, 16 * GR_GIB));
    down();
}
END_TEST

/* ---- create ------------------------------------------------------------------------------- */

/* Creates with the prop, and gives it back when that went well. */
static gr_cu_result try_create(size_t size, const struct gr_cu_mem_prop *prop) {
    gr_cu_handle handle;
    gr_cu_result code = cu.cuMemCreate(&handle, size, prop, 0);
    if (code == GR_CU_SUCCESS) OK(cu.cuMemRelease(handle));
    return code;
}

START_TEST(create_answers_as_measured) {
    gr_cu_handle h;
    struct gr_cu_mem_prop p;
    CODE(try_create(0, &PROP), 1);
    CODE(try_create(G / 2, &PROP), 1);
    CODE(cu.cuMemCreate(&h, G, &PROP, 1), 1);
    CODE(try_create(G, NULL), 1);
    CODE(cu.cuMemCreate(NULL, G, &PROP, 0), 1);
    p = PROP, p.location.id = -1;
    CODE(try_create(G, &p), 101);
    p = PROP, p.location.id = 99;
    CODE(try_create(G, &p), 101);
    p = PROP, p.type = 0;
    CODE(try_create(G, &p), 1);
    p = PROP, p.location.type = 0;
    CODE(try_create(G, &p), 1);
    p = PROP, p.requested_handle_types = 64;
    OK(try_create(G, &p));
    p = PROP, p.requested_handle_types = GR_CU_HANDLE_FABRIC;
    CODE(try_create(G, &p), 800);
    p = PROP, p.flags.rdma_capable = 1;
    OK(try_create(G, &p));
    p = PROP, p.flags.compression_type = 1;
    OK(try_create(G, &p));
    p = PROP, p.location.type = GR_CU_LOCATION_HOST;
    OK(try_create(G, &p));
    p.location.type = GR_CU_LOCATION_HOST_NUMA;
    OK(try_create(G, &p));
    p.location.type = GR_CU_LOCATION_HOST_NUMA_CURRENT;
    CODE(try_create(G, &p), 1);
    CODE(try_create(142 * GR_GIB, &PROP), 2);
    OK(try_create(G, &PROP));
    down();
}
END_TEST

START_TEST(memory_goes_when_neither_handle_nor_mapping_holds_it) {
    size_t before, now, total;
    OK(cu.cuMemGetInfo(&before, &total));
    ck_assert_uint_eq(before, total);
    gr_cu_handle h = create(64 * G);
    gr_cu_ptr p = reserve(64 * G);
    OK(cu.cuMemGetInfo(&now, &total));
    ck_assert_uint_eq(before - now, 64 * G);
    OK(cu.cuMemMap(p, 64 * G, 0, h, 0));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemGetInfo(&now, &total));
    ck_assert_uint_eq(before - now, 64 * G);
    ck_assert_uint_eq(held().handles, 1);
    OK(cu.cuMemUnmap(p, 64 * G));
    OK(cu.cuMemGetInfo(&now, &total));
    ck_assert_uint_eq(now, before);
    ck_assert_uint_eq(held().handles, 0);
    OK(cu.cuMemAddressFree(p, 64 * G));
    down();
}
END_TEST

START_TEST(handle_values_never_come_twice) {
    gr_cu_handle a = create(G), b;
    OK(cu.cuMemRelease(a));
    b = create(G);
    ck_assert(a != b && a != 0);
    OK(cu.cuMemRelease(b));
    down();
}
END_TEST

START_TEST(releasing_nothing_and_releasing_twice_is_refused_by_the_real_driver) {
    gr_cu_handle h = create(G);
    CODE(cu.cuMemRelease(0), 1);
    OK(cu.cuMemRelease(h));
    CODE(cu.cuMemRelease(h), 1);
    ck_assert_uint_eq(findings().by_kind[GRANARY_SIM_MISUSE], 1);
    down();
}
END_TEST

START_TEST(create_can_be_refused_although_memory_is_free) {
    struct granary_sim_config config = defaults();
    config.create_refused_code = GR_CU_NOT_SUPPORTED;
    up(config);
    CODE(try_create(G, &PROP), 801);
    down();
}
END_TEST

START_TEST(other_processes_can_take_memory) {
    size_t now, total;
    ck_assert_int_eq(granary_sim_set_foreign(0, 140 * GR_GIB), GRANARY_OK);
    OK(cu.cuMemGetInfo(&now, &total));
    ck_assert_uint_eq(now, GR_GIB);
    CODE(try_create(2 * GR_GIB, &PROP), 2);
    ck_assert_int_eq(granary_sim_set_foreign(0, 0), GRANARY_OK);
    OK(try_create(2 * GR_GIB, &PROP));
    ck_assert_int_eq(granary_sim_set_foreign(1, 0), GRANARY_INVALID);
    down();
}
END_TEST

START_TEST(fabric_handles_can_be_allowed) {
    struct granary_sim_config config = defaults();
    struct gr_cu_mem_prop p = PROP;
    config.fabric = 1;
    p.requested_handle_types = GR_CU_HANDLE_FABRIC;
    up(config);
    OK(try_create(G, &p));
    down();
}
END_TEST

/* ---- map, access, unmap -------------------------------------------------------------------- */

START_TEST(map_answers_as_measured) {
    gr_cu_ptr p = reserve(8 * G);
    gr_cu_handle h = create(2 * G), k = create(G);
    OK(cu.cuMemMap(p, 2 * G, 0, h, 0));
    CODE(cu.cuMemMap(p + G, G, 0, k, 0), 1);
    CODE(cu.cuMemMap(p + 4 * G, G, G, h, 0), 801);
    CODE(cu.cuMemMap(p + 4 * G, 4 * G, 0, h, 0), 801);
    CODE(cu.cuMemMap(p + 4 * G, G, 0, h, 0), 801);
    CODE(cu.cuMemMap(p + 6 * G + 4096, G, 0, k, 0), 1);
    CODE(cu.cuMemMap(p + 6 * G, 0, 0, k, 0), 1);
    OK(cu.cuMemMap(p + 7 * G, 2 * G, 0, h, 0)); /* past the reservation */
    ck_assert_uint_eq(findings().by_kind[GRANARY_SIM_MISUSE], 1);
    CODE(cu.cuMemMap(0x1000000, G, 0, k, 0), 1);
    CODE(cu.cuMemMap(p + 6 * G, G, 0, k, 1), 1);
    OK(cu.cuMemMap(p + 2 * G, G, 0, k, 0));
    OK(cu.cuMemMap(p + 3 * G, G, 0, k, 0)); /* the same memory twice */
    OK(cu.cuMemSetAccess(p, 3 * G, &BOTH, 1));

    unsigned long long flags = 77;
    gr_cu_ptr base = 0;
    size_t size = 0;
    OK(cu.cuMemGetAccess(&flags, &BOTH.location, p));
    ck_assert_uint_eq(flags, 3);
    OK(cu.cuMemGetAccess(&flags, &BOTH.location, p + 3 * G));
    ck_assert_uint_eq(flags, 0);
    CODE(cu.cuMemGetAccess(&flags, &BOTH.location, p + 6 * G), 1);
    OK(cu.cuMemGetAddressRange(&base, &size, p + 2 * G + 16));
    ck_assert_uint_eq(base, p + 2 * G);
    ck_assert_uint_eq(size, G);
    CODE(cu.cuMemGetAddressRange(&base, &size, p + 6 * G), 500);

    gr_cu_handle r = 0;
    OK(cu.cuMemRetainAllocationHandle(&r, at(p + 2 * G + 100)));
    ck_assert_uint_eq(r, k);
    OK(cu.cuMemRelease(r));
    CODE(cu.cuMemRetainAllocationHandle(&r, at(p + 6 * G)), 1);

    OK(cu.cuMemUnmap(p, 4 * G));
    CODE(cu.cuMemAddressFree(p, 8 * G), 1); /* under the one that runs past it */
    OK(cu.cuMemUnmap(p + 7 * G, 2 * G));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemRelease(k));
    OK(cu.cuMemAddressFree(p, 8 * G));
    down();
}
END_TEST

START_TEST(set_access_answers_as_measured) {
    gr_cu_ptr p = reserve(8 * G);
    gr_cu_handle h = create(2 * G);
    struct gr_cu_access b;
    OK(cu.cuMemMap(p, 2 * G, 0, h, 0));
    CODE(cu.cuMemSetAccess(p, G, &BOTH, 1), 1);
    CODE(cu.cuMemSetAccess(p + G, G, &BOTH, 1), 1);
    CODE(cu.cuMemSetAccess(p, 8 * G, &BOTH, 1), 1);
    CODE(cu.cuMemSetAccess(p + 6 * G, G, &BOTH, 1), 1);
    CODE(cu.cuMemSetAccess(p, 2 * G, &BOTH, 0), 1);
    CODE(cu.cuMemSetAccess(p, 2 * G, NULL, 1), 1);
    b = BOTH, b.location.id = 99;
    CODE(cu.cuMemSetAccess(p, 2 * G, &b, 1), 1);
    b = BOTH, b.flags = 2;
    CODE(cu.cuMemSetAccess(p, 2 * G, &b, 1), 1);
    b = BOTH, b.location.type = GR_CU_LOCATION_HOST, b.location.id = 0;
    CODE(cu.cuMemSetAccess(p, 2 * G, &b, 1), 801);
    b.location.type = GR_CU_LOCATION_HOST_NUMA;
    CODE(cu.cuMemSetAccess(p, 2 * G, &b, 1), 801);
    OK(cu.cuMemSetAccess(p, 2 * G, &BOTH, 1));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemUnmap(p, 2 * G));
    OK(cu.cuMemAddressFree(p, 8 * G));
    down();
}
END_TEST

START_TEST(rdma_memory_can_refuse_access) {
    struct granary_sim_config config = defaults();
    struct gr_cu_mem_prop p = PROP;
    int value;
    config.rdma_attribute = 0;
    config.rdma_access_code = GR_CU_UNKNOWN;
    p.flags.rdma_capable = 1;
    up(config);
    OK(cu.cuDeviceGetAttribute(&value, GR_CU_ATTR_RDMA_WITH_VMM, 0));
    ck_assert_int_eq(value, 0);
    gr_cu_handle h;
    gr_cu_ptr a = reserve(G);
    OK(cu.cuMemCreate(&h, G, &p, 0));
    OK(cu.cuMemMap(a, G, 0, h, 0));
    OK(cu.cuMemRelease(h));
    CODE(cu.cuMemSetAccess(a, G, &BOTH, 1), 999);
    give(a, G);
    down();
}
END_TEST

START_TEST(a_map_may_lie_across_two_neighbouring_reservations) {
    gr_cu_ptr s = reserve(2 * G), u = 0;
    OK(cu.cuMemAddressReserve(&u, 2 * G, 0, s + 2 * G, 0));
    ck_assert_uint_eq(u, s + 2 * G);
    gr_cu_handle h = create(2 * G);
    OK(cu.cuMemMap(s + G, 2 * G, 0, h, 0));
    CODE(cu.cuMemAddressFree(u, 2 * G), 1);
    OK(cu.cuMemUnmap(s + G, 2 * G));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemAddressFree(s, 2 * G));
    OK(cu.cuMemAddressFree(u, 2 * G));
    down();
}
END_TEST

START_TEST(access_is_gone_after_a_new_mapping) {
    unsigned long long flags = 9;
    gr_cu_ptr p = reserve(G);
    gr_cu_handle h = create(G);
    OK(cu.cuMemMap(p, G, 0, h, 0));
    OK(cu.cuMemSetAccess(p, G, &BOTH, 1));
    OK(cu.cuMemUnmap(p, G));
    OK(cu.cuMemMap(p, G, 0, h, 0));
    OK(cu.cuMemGetAccess(&flags, &BOTH.location, p));
    ck_assert_uint_eq(flags, 0);
    OK(cu.cuMemRelease(h));
    give(p, G);
    down();
}
END_TEST

/* ---- scale -------------------------------------------------------------------------------- */

START_TEST(a_large_card_fills_in_granules) {
    struct granary_sim_config config = defaults();
    size_t card = 16 * GR_GIB, count = 0; /* what valgrind can hold as well */
    config.memory_bytes = card;
    up(config);
    gr_cu_ptr p = reserve(card + G);
    gr_cu_handle h;
    while (cu.cuMemCreate(&h, G, &PROP, 0) == GR_CU_SUCCESS) {
        OK(cu.cuMemMap(p + count++ * G, G, 0, h, 0));
        OK(cu.cuMemRelease(h));
    }
    ck_assert_uint_eq(count, card / G);
    OK(cu.cuMemSetAccess(p, card, &BOTH, 1));
    ck_assert_uint_eq(held().mapped_bytes, card);
    OK(cu.cuMemUnmap(p, card));
    OK(cu.cuMemAddressFree(p, card + G));
    down();
}
END_TEST

static void *churn(void *unused) {
    (void)unused;
    for (int i = 0; i < 200; i++) {
        gr_cu_ptr p = ready(3 * G);
        give(p, 3 * G);
    }
    return NULL;
}

START_TEST(threads_may_map_at_the_same_time) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    down();
}
END_TEST

/* ---- strict ------------------------------------------------------------------------------- */

static void a_double_release(void) {
    up(defaults());
    gr_cu_handle h = create(G);
    OK(cu.cuMemRelease(h));
    (void)cu.cuMemRelease(h);
}

START_TEST(strict_mode_stops_a_double_release) {
    stops(a_double_release);
}
END_TEST

static void a_map_past_its_reservation(void) {
    up(defaults());
    gr_cu_ptr p = reserve(G);
    gr_cu_handle h = create(2 * G);
    (void)cu.cuMemMap(p, 2 * G, 0, h, 0);
}

START_TEST(strict_mode_stops_a_map_past_its_reservation) {
    stops(a_map_past_its_reservation);
}
END_TEST

static void a_map_of_a_released_handle(void) {
    up(defaults());
    gr_cu_ptr p = reserve(G);
    gr_cu_handle h = create(G);
    OK(cu.cuMemRelease(h));
    (void)cu.cuMemMap(p, G, 0, h, 0);
}

START_TEST(strict_mode_stops_a_map_of_a_released_handle) {
    stops(a_map_of_a_released_handle);
}
END_TEST

static void a_question_about_no_prop(void) {
    up(defaults());
    size_t g;
    (void)cu.cuMemGetAllocationGranularity(&g, NULL, 0);
}

START_TEST(strict_mode_stops_a_question_about_no_prop) {
    stops(a_question_about_no_prop);
}
END_TEST

Suite *suite_sim_memory(void);
Suite *suite_sim_memory(void) {
    Suite *suite = suite_create("sim_memory");
    TCase *plain = tcase_create("plain");
    tcase_add_checked_fixture(plain, setup, NULL);
    tcase_add_test(plain, reserve_answers_as_measured);
    tcase_add_test(plain, a_free_hint_is_honoured);
    tcase_add_test(plain, the_addresses_behind_a_reservation_are_free_for_a_hint);
    tcase_add_test(plain, a_reservation_has_the_alignment_that_was_asked_for);
    tcase_add_test(plain, create_answers_as_measured);
    tcase_add_test(plain, memory_goes_when_neither_handle_nor_mapping_holds_it);
    tcase_add_test(plain, handle_values_never_come_twice);
    tcase_add_test(plain, other_processes_can_take_memory);
    tcase_add_test(plain, set_access_answers_as_measured);
    tcase_add_test(plain, access_is_gone_after_a_new_mapping);
    tcase_add_test(plain, threads_may_map_at_the_same_time);
    suite_add_tcase(suite, plain);
    TCase *faithful = tcase_create("faithful");
    tcase_add_checked_fixture(faithful, setup_faithful, NULL);
    tcase_add_test(faithful, releasing_nothing_and_releasing_twice_is_refused_by_the_real_driver);
    tcase_add_test(faithful, map_answers_as_measured);
    tcase_add_test(faithful, a_map_may_lie_across_two_neighbouring_reservations);
    suite_add_tcase(suite, faithful);
    TCase *configured = tcase_create("configured");
    tcase_add_test(configured, the_address_space_has_an_end);
    tcase_add_test(configured, a_large_card_fills_in_granules);
    tcase_add_test(configured, one_reservation_can_be_limited_as_on_small_boards);
    tcase_add_test(configured, create_can_be_refused_although_memory_is_free);
    tcase_add_test(configured, fabric_handles_can_be_allowed);
    tcase_add_test(configured, rdma_memory_can_refuse_access);
    suite_add_tcase(suite, configured);
    TCase *strict = tcase_create("strict");
    tcase_add_test(strict, strict_mode_stops_a_double_release);
    tcase_add_test(strict, strict_mode_stops_a_map_past_its_reservation);
    tcase_add_test(strict, strict_mode_stops_a_map_of_a_released_handle);
    tcase_add_test(strict, strict_mode_stops_a_question_about_no_prop);
    suite_add_tcase(suite, strict);
    return suite;
}
