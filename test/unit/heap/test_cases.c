/* SPDX-License-Identifier: Apache-2.0
 * Faults that hit users of other allocators, each cut down to a few operations: where it was seen,
 * its kind, and the right outcome. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "heap/heap.h"
#include "support/fixture.h"

static granary *g;
static size_t card;
static int classic;

static void configure(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = card;
    sim->backing = GRANARY_SIM_ACCOUNTING;
    options->expandable_segments = !classic;
}

static void open_card(size_t bytes, int is_classic) {
    card = bytes;
    classic = is_classic;
    g = fixture_open(configure);
}

static int64_t reserved(void) {
    return fixture_stats(g).reserved_bytes.all.current;
}

static uint64_t calls(enum gr_entry entry) {
    return gr_tap_count(&g->driver.tap, entry);
}

static int try_alloc(size_t size, granary_stream stream) {
    void *ptr = &ptr;
    int status = granary_alloc(g, size, stream, &ptr);
    if (status != GRANARY_OK) ck_assert_ptr_null(ptr);
    return status;
}

/* ---- out of memory although memory is free ---------------------------------------------------- */

/* deepspeedai/DeepSpeed#1611: two freed neighbours do not join, so re-packing doubles the memory.
 * Kind: cached segments that cannot be joined for one larger request. */
START_TEST(case_4_two_freed_blocks_serve_one_of_their_joint_size) {
    open_card(2 * GR_GIB, 0);
    void *a = fixture_alloc(g, 382 * GR_MIB, NULL), *b = fixture_alloc(g, 382 * GR_MIB, NULL);
    fixture_free(g, a);
    fixture_free(g, b);
    int64_t before = reserved();
    ck_assert_ptr_eq(fixture_alloc(g, 764 * GR_MIB, NULL), a);
    ck_assert_int_eq(reserved(), before);
    ck_assert_int_eq(before, 764 * (int64_t)GR_MIB);
    fixture_close(g);
}
END_TEST

START_TEST(case_4_classic_segments_are_given_back_inside_the_budget) {
    open_card(766 * GR_MIB, 1);
    void *a = fixture_alloc(g, 382 * GR_MIB, NULL), *b = fixture_alloc(g, 382 * GR_MIB, NULL);
    fixture_free(g, a);
    fixture_free(g, b);
    (void)fixture_alloc(g, 764 * GR_MIB, NULL);
    ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
    ck_assert_int_le(fixture_stats(g).reserved_bytes.all.peak, 766 * (int64_t)GR_MIB);
    fixture_close(g);
}
END_TEST

/* rapidsai/rmm#2039: free lists of several streams fragment a shared pool.
 * Kind: memory that is idle on one stream is of no use to another, or comes back in pieces. */
START_TEST(case_6_interleaved_blocks_of_two_streams_become_one_block) {
    open_card(64 * GR_MIB, 0);
    granary_stream a = fixture_stream(g), b = fixture_stream(g);
    void *p[16], *q[16];
    for (int i = 0; i < 16; i++) {
        p[i] = fixture_alloc(g, 2 * GR_MIB, a);
        q[i] = fixture_alloc(g, 2 * GR_MIB, b);
        ck_assert_int_eq(granary_sim_use(a, p[i], 2 * GR_MIB, 1, 1 + 2 * (uint64_t)i, GRANARY_SIM_SITE), 0);
        ck_assert_int_eq(granary_sim_use(b, q[i], 2 * GR_MIB, 1, 2 + 2 * (uint64_t)i, GRANARY_SIM_SITE), 0);
    }
    for (int i = 0; i < 16; i++) {
        fixture_free(g, p[i]);
        fixture_free(g, q[i]);
    }
    void *whole = fixture_alloc(g, 64 * GR_MIB, a);
    ck_assert_int_eq(granary_sim_use(a, whole, 64 * GR_MIB, 1, 100, GRANARY_SIM_SITE), 0);
    struct granary_stats s = fixture_stats(g);
    ck_assert_int_eq(s.reserved_bytes.all.peak, 64 * GR_MIB);
    ck_assert_int_eq(s.active_blocks.all.current, 1);
    ck_assert_int_eq(s.out_of_memory, 0);
    ck_assert_ptr_null(granary_verify(g)); /* B2: no two free neighbours */
    ck_assert_int_eq(granary_stream_destroy(g, a), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, b), GRANARY_OK);
    fixture_close(g);
}
END_TEST

/* ---- failures half way ------------------------------------------------------------------------ */

/* pytorch/pytorch#188008: a failure half way through mapping poisons the segment for good.
 * Kind: state marked before the driver has agreed; undo that touches what was never mapped. The
 * whole kind is swept in test/fault; here are the reported calls. */
START_TEST(case_12_a_mapping_that_fails_half_way_is_undone_and_works_the_next_time) {
    static const int entries[] = {GR_ENTRY_cuMemCreate, GR_ENTRY_cuMemMap, GR_ENTRY_cuMemSetAccess};
    size_t met = 0;
    for (size_t e = 0; e < GR_COUNT(entries); e++)
        for (uint64_t k = 1; k <= 3; k++) {
            char words[128];
            open_card(256 * GR_MIB, 0);
            void *fill = fixture_alloc(g, 244 * GR_MIB, NULL); /* near the limit extents are small */
            struct fixture_state before = fixture_state(g);
            uint64_t unmaps = calls(GR_ENTRY_cuMemUnmap);
            gr_tap_fail(&g->driver.tap, entries[e], k, 1, GR_CU_OUT_OF_MEMORY);
            int status = try_alloc(6 * GR_MIB, NULL);
            bool refused = gr_tap_refusals(&g->driver.tap) == 1;
            gr_tap_clear(&g->driver.tap);
            met += refused;
            if (status == GRANARY_OK) { /* fewer calls than k, or it found another way */
                fixture_close(g);
                continue;
            }
            ck_assert_int_eq(status, GRANARY_OUT_OF_MEMORY);
            struct fixture_state after = fixture_state(g);
            ck_assert_msg(fixture_same(&before, &after, false, words), "%s %d: %s",
                          gr_driver_entry_name(entries[e]), (int)k, words);
            ck_assert_uint_le(calls(GR_ENTRY_cuMemUnmap),
                              unmaps + 1); /* of the part that was mapped, at once */
            void *again = fixture_alloc(g, 6 * GR_MIB, NULL);
            fixture_free(g, again);
            fixture_free(g, fill);
            (void)fixture_trim(g, 0);
            ck_assert_uint_eq(fixture_held().handles, 0);
            fixture_close(g);
        }
    ck_assert_uint_ge(met, 5); /* create and map one to three times, set-access once for all */
}
END_TEST

/* NVIDIA/cuda-python#2882: the reference that creation gives is never released.
 * Kind: memory that does not come back to the device when it is given up. */
START_TEST(case_13_what_is_created_is_released) {
    open_card(8 * GR_GIB, _i);
    uint64_t creates = calls(GR_ENTRY_cuMemCreate), releases = calls(GR_ENTRY_cuMemRelease);
    uint64_t allocs = calls(GR_ENTRY_cuMemAlloc), frees = calls(GR_ENTRY_cuMemFree);
    for (int i = 0; i < 64; i++) {
        fixture_free(g, fixture_alloc(g, 64 * GR_MIB, NULL));
        ck_assert_uint_eq(fixture_trim(g, 0), 64 * GR_MIB);
        struct granary_sim_held held = fixture_held();
        ck_assert_uint_eq(held.handles + held.mappings + held.allocations, 0);
        ck_assert_uint_le(held.reservations, 1); /* the range of the pool, for the next time */
    }
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemCreate) - creates, calls(GR_ENTRY_cuMemRelease) - releases);
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemAlloc) - allocs, calls(GR_ENTRY_cuMemFree) - frees);
    ck_assert_int_eq(reserved(), 0);
    fixture_close(g);
}
END_TEST

static void ranges_of_16_mib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->max_reserve_bytes = 16 * GR_MIB;
}

/* NVIDIA/cuda-python#2345: clean-up frees addresses that were never reserved and hides the error.
 * Kind: an error path that gives back what it does not own. */
START_TEST(case_14_a_refused_reservation_has_its_own_error_and_frees_nothing) {
    static const struct {
        gr_cu_result code;
        uint64_t times;
        int status;
    } rows[] = {{GR_CU_OUT_OF_MEMORY, 1, GRANARY_OK}, /* another place serves */
                {GR_CU_OUT_OF_MEMORY, 2, GRANARY_OK}, /* a smaller reservation does */
                {GR_CU_OUT_OF_MEMORY, UINT64_MAX, GRANARY_ADDRESS_SPACE},
                {GR_CU_UNKNOWN, 1, GRANARY_DRIVER},
                {GR_CU_INVALID_VALUE, 1, GRANARY_OK}, /* it was the place */
                {GR_CU_INVALID_VALUE, 2, GRANARY_DRIVER}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        struct gr_tap_record log[256];
        g = fixture_open(ranges_of_16_mib);
        (void)fixture_alloc(g, 15 * GR_MIB, NULL);
        (void)gr_tap_log(&g->driver.tap, log, GR_COUNT(log));
        gr_tap_fail(&g->driver.tap, GR_ENTRY_cuMemAddressReserve, 1, rows[i].times, rows[i].code);
        ck_assert_int_eq(try_alloc(4 * GR_MIB, NULL),
                         rows[i].status); /* does not fit the first range any more */
        gr_tap_clear(&g->driver.tap);
        size_t seen = gr_tap_log(&g->driver.tap, NULL, 0);
        for (size_t n = 0; n < seen; n++) ck_assert_int_ne(log[n].entry, GR_ENTRY_cuMemAddressFree);
        if (rows[i].status == GRANARY_DRIVER) {
            struct granary_fault fault = fixture_fault(g);
            ck_assert_int_eq(fault.driver_code, rows[i].code);
            ck_assert_str_eq(fault.driver_call, "cuMemAddressReserve");
        }
        (void)fixture_alloc(g, 4 * GR_MIB, NULL);
        fixture_close(g);
    }
}
END_TEST

/* ---- addresses -------------------------------------------------------------------------------- */

#if defined(__SANITIZE_THREAD__)
enum { DEVICES = 1, STREAMS = 30 }; /* the sanitizer leaves little address space to the program */
#else
enum { DEVICES = 8, STREAMS = 100 };
#endif

static void many_devices(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->devices = DEVICES;
    sim->backing = GRANARY_SIM_ACCOUNTING;
    sim->oracle = 0;
#if !defined(__SANITIZE_THREAD__)
    sim->memory_bytes = 141 * GR_GIB;
#endif
}

/* pytorch/pytorch#192269: every pool of every stream reserves a whole card, and 128 TiB run out.
 * Kind: reservations that do not know of each other. */
START_TEST(case_16_a_hundred_streams_on_eight_devices_find_addresses) {
    static granary *handles[DEVICES];
    static granary_stream streams[DEVICES][STREAMS];
    static void *blocks[DEVICES][STREAMS][2];
    struct granary_options options;
    fixture_open_sim(many_devices, &options);
    for (int d = 0; d < DEVICES; d++) handles[d] = fixture_open_handle(&options, d);
    for (int s = 0; s < STREAMS; s++)
        for (int d = 0; d < DEVICES; d++) {
            streams[d][s] = fixture_stream(handles[d]);
            blocks[d][s][0] = fixture_alloc(handles[d], GR_MIB, streams[d][s]);
            blocks[d][s][1] = fixture_alloc(handles[d], GR_MIB + 1, streams[d][s]);
        }
    for (int d = 0; d < DEVICES; d++) {
        struct granary_stats s = fixture_stats(handles[d]);
        ck_assert_int_eq(s.ranges, 2 * STREAMS);
        ck_assert_int_eq(s.out_of_memory, 0);
        ck_assert_int_gt(s.reserved_address_bytes, 0);
        ck_assert_int_le(s.reserved_address_bytes,
                         (int64_t)GR_SIZING_ADDRESS_BUDGET + STREAMS * 4 * (int64_t)GR_MIB);
        for (int k = 0; k < STREAMS; k++)
            for (int c = 0; c < 2; c++) fixture_free(handles[d], blocks[d][k][c]);
        (void)fixture_trim(handles[d], 0);
        ck_assert_int_le(fixture_stats(handles[d]).reserved_address_bytes,
                         (int64_t)GR_SIZING_ADDRESS_BUDGET / 2);
        for (int k = 0; k < STREAMS; k++)
            ck_assert_int_eq(granary_stream_destroy(handles[d], streams[d][k]), GRANARY_OK);
        fixture_close_handle(handles[d]);
    }
    fixture_close_sim();
}
END_TEST

static void reserve_below_32_gib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 64 * GR_GIB;
    sim->backing = GRANARY_SIM_ACCOUNTING;
    sim->max_reserve_bytes = 32 * GR_GIB - 1;
}
static void reserve_nothing(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->max_reserve_bytes = 0;
}

/* ggml-org/llama.cpp#29142: a fixed reservation is refused on small and integrated devices.
 * Kind: one attempt at one size, and no way out. */
START_TEST(case_17_a_refused_reservation_is_tried_smaller) {
    g = fixture_open(reserve_below_32_gib);
    (void)fixture_alloc(g, GR_MIB, NULL);
    int64_t addresses = fixture_stats(g).reserved_address_bytes;
    ck_assert_int_lt(addresses, 32 * (int64_t)GR_GIB);
    ck_assert_int_ge(addresses, 8 * (int64_t)GR_GIB); /* and not smaller than it must be */
    fixture_close(g);
}
END_TEST

START_TEST(case_17_without_any_reservation_classic_segments_serve) {
    struct granary_facts facts = {.struct_size = sizeof facts};
    g = fixture_open(reserve_nothing);
    ck_assert_int_eq(granary_get_facts(g, &facts), GRANARY_OK);
    ck_assert_int_eq(facts.expandable_segments, 0);
    ck_assert_msg(strstr(facts.expandable_reason, "cuMemAddressReserve") != NULL, "%s",
                  facts.expandable_reason);
    fixture_free(g, fixture_alloc(g, GR_MIB, NULL));
    ck_assert_int_eq(fixture_stats(g).segments.all.current, 1);
    fixture_close(g);
}
END_TEST

START_TEST(case_17_reservations_that_stop_later_are_a_clean_error) {
    open_card(GR_GIB, 0);
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuMemAddressReserve, 1, UINT64_MAX, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_eq(try_alloc(GR_MIB, NULL), GRANARY_ADDRESS_SPACE);
    struct granary_fault fault = fixture_fault(g);
    ck_assert_msg(strstr(fault.text, "address space") != NULL, "%s", fault.text);
    ck_assert_uint_eq(fault.shortfall.device_free_bytes, GR_GIB); /* it is not memory that is missing */
    gr_tap_clear(&g->driver.tap);
    (void)fixture_alloc(g, GR_MIB, NULL);
    fixture_close(g);
}
END_TEST

/* ---- platforms that promise too much ---------------------------------------------------------- */

static void rdma_that_lies(struct granary_sim_config *sim, struct granary_options *options) {
    sim->rdma_attribute = 1;
    sim->rdma_access_code = 999;
    options->rdma_capable = 1;
}
static void rdma_that_works(struct granary_sim_config *sim, struct granary_options *options) {
    (void)sim;
    options->rdma_capable = 1;
}

/* pytorch/pytorch#192330: the RDMA flag that the device advertises makes set-access fail (WSL2).
 * Kind: an ability that is believed and not tried. */
START_TEST(case_19_an_rdma_flag_that_does_not_work_is_found_out_once) {
    g = fixture_open(rdma_that_lies);
    ck_assert(!g->driver.facts.rdma && g->expandable);
    uint64_t accesses = calls(GR_ENTRY_cuMemSetAccess);
    ck_assert_uint_eq(fixture_held().handles + fixture_held().mappings + fixture_held().reservations, 0);
    for (int i = 0; i < 2; i++) (void)fixture_alloc(g, GR_MIB, NULL);
    for (int i = 0; i < 2; i++) (void)fixture_alloc(g, 30 * GR_MIB, NULL);
    /* A flagged handle would be refused: as many accesses as maps means that none was tried. */
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemSetAccess) - accesses, (uint64_t)fixture_stats(g).maps);
    fixture_close(g);
    g = fixture_open(rdma_that_works);
    ck_assert(g->driver.facts.rdma);
    fixture_close(g);
}
END_TEST

static int refused_code;
static int strict;
static void create_that_is_refused(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 50 * GR_GIB;
    sim->backing = GRANARY_SIM_ACCOUNTING;
    sim->create_refused_code = refused_code;
    options->strict = strict;
}

/* unslothai/unsloth-zoo#1235: the platform declines virtual memory, and says out of memory.
 * Kind: a code that is taken at its word although it cannot be true. */
START_TEST(case_20_virtual_memory_that_is_declined_is_not_out_of_memory) {
    static const int codes[] = {GR_CU_OUT_OF_MEMORY, GR_CU_NOT_SUPPORTED, GR_CU_NOT_PERMITTED};
    for (size_t i = 0; i < GR_COUNT(codes); i++) {
        struct granary_facts facts = {.struct_size = sizeof facts};
        struct granary_fault fault = {.struct_size = sizeof fault};
        struct granary_options options;
        granary *none;
        refused_code = codes[i];
        strict = 0;
        g = fixture_open(create_that_is_refused);
        ck_assert_int_eq(granary_get_facts(g, &facts), GRANARY_OK);
        ck_assert_int_eq(facts.expandable_segments, 0);
        ck_assert_msg(strstr(facts.expandable_reason, "cuMemCreate") != NULL, "%s", facts.expandable_reason);
        uint64_t creates = calls(GR_ENTRY_cuMemCreate);
        fixture_free(g, fixture_alloc(g, GR_MIB, NULL));
        ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
        ck_assert_uint_eq(calls(GR_ENTRY_cuMemCreate), creates); /* decided once */
        fixture_close(g);
        strict = 1;
        fixture_open_sim(create_that_is_refused, &options);
        options.fault = &fault;
        ck_assert_int_eq(granary_open(0, &options, &none), GRANARY_UNSUPPORTED);
        ck_assert_msg(strstr(fault.text, "expandable") && strstr(fault.text, "cuMemCreate"), "%s",
                      fault.text);
        fixture_close_sim();
    }
}
END_TEST

/* ---- pointers and sizes ----------------------------------------------------------------------- */

static void two_devices(struct granary_sim_config *sim, struct granary_options *options) {
    sim->devices = 2;
    options->expandable_segments = !classic;
}

/* NVIDIA/cub#329, pytorch/pytorch#150098, rapidsai/rmm#147: double free, a pointer into a block, a
 * pointer of somebody else. Kind: a pointer that is believed. */
START_TEST(case_54_pointers_that_are_no_live_block_are_refused_and_change_nothing) {
    struct granary_options options;
    char words[128];
    classic = _i;
    fixture_open_sim(two_devices, &options);
    g = fixture_open_handle(&options, 0);
    granary *other = fixture_open_handle(&options, 1);
    for (int large = 0; large < 2; large++) {
        size_t size = large ? 3 * GR_MIB : 4096;
        char *p = fixture_alloc(g, size, NULL), *q = fixture_alloc(g, size, NULL),
             *elsewhere = fixture_alloc(other, size, NULL);
        fixture_free(g, q);
        struct fixture_state before = fixture_state(g), before_other = fixture_state(other);
        uint64_t total = gr_tap_total(&g->driver.tap) + gr_tap_total(&other->driver.tap);
        void *wrong[] = {q,           p + 512,
                         p + size,    p + 1,
                         p - 512,     elsewhere,
                         (void *)100, (void *)(uintptr_t)-1,
                         &options,    (void *)((uintptr_t)1 << 47)};
        for (size_t i = 0; i < GR_COUNT(wrong); i++) {
            size_t none;
            ck_assert_msg(granary_free(g, wrong[i]) == GRANARY_UNKNOWN_POINTER, "pointer %zu", i);
            ck_assert_int_eq(granary_size_of(g, wrong[i], &none), GRANARY_UNKNOWN_POINTER);
        }
        ck_assert_int_eq(granary_free(other, p), GRANARY_UNKNOWN_POINTER); /* on the wrong device */
        ck_assert_int_eq(granary_free(g, NULL), GRANARY_OK);
        struct fixture_state after = fixture_state(g), after_other = fixture_state(other);
        ck_assert_msg(fixture_same(&before, &after, false, words), "%s", words);
        ck_assert_msg(fixture_same(&before_other, &after_other, false, words), "%s", words);
        ck_assert_uint_eq(gr_tap_total(&g->driver.tap) + gr_tap_total(&other->driver.tap), total);
        ck_assert_ptr_null(granary_verify(g));
        fixture_free(g, p);
        fixture_free(other, elsewhere);
        ck_assert_int_eq(granary_free(g, p), GRANARY_UNKNOWN_POINTER);
    }
    fixture_close_handle(other);
    fixture_close_handle(g);
    fixture_close_sim();
}
END_TEST

static void *allocate_elsewhere(void *unused) {
    void *ptr;
    (void)unused;
    return granary_alloc(g, 6 * GR_MIB, NULL, &ptr) == GRANARY_OK && granary_free(g, ptr) == GRANARY_OK
               ? NULL
               : "refused";
}

/* NVIDIA/cub#328: a lock is left held, or figures are wrong, after an error path.
 * Kind: an early return. */
START_TEST(case_55_after_any_failure_another_thread_allocates_at_once) {
    bool reached = true;
    for (uint64_t k = 1; reached; k++) {
        pthread_t thread;
        void *complaint = NULL;
        open_card(64 * GR_MIB, _i);
        (void)fixture_alloc(g, 4 * GR_MIB, NULL);
        fixture_free(g, fixture_alloc(g, 30 * GR_MIB, NULL));
        gr_tap_fail(&g->driver.tap, GR_TAP_ANY, k, 1, GR_CU_UNKNOWN);
        (void)granary_trim(g, 0, NULL);
        (void)try_alloc(40 * GR_MIB, NULL);
        reached = gr_tap_refusals(&g->driver.tap) > 0;
        gr_tap_clear(&g->driver.tap);
        fixture_watchdog(5);
        ck_assert_int_eq(pthread_create(&thread, NULL, allocate_elsewhere, NULL), 0);
        pthread_join(thread, &complaint);
        fixture_watchdog(0);
        ck_assert_msg(complaint == NULL, "call %d: %s", (int)k, (char *)complaint);
        struct granary_stats s = fixture_stats(g);
        ck_assert(s.reserved_bytes.all.current >= s.active_bytes.all.current && s.extents >= 0);
        ck_assert_int_eq(s.extents == 0, s.reserved_bytes.all.current == 0 || _i == 1);
        fixture_close(g);
    }
}
END_TEST

/* pytorch/pytorch#182446, #57571, rapidsai/rmm#1156: sizes near 2^64 round to 0, and two live blocks
 * have one address. Kind: arithmetic that wraps. */
START_TEST(case_60_sizes_near_2_to_the_64_are_refused_and_nothing_wraps) {
    static const size_t sizes[] = {SIZE_MAX,
                                   SIZE_MAX - 3,
                                   SIZE_MAX - 510,
                                   SIZE_MAX - 511,
                                   SIZE_MAX - 2 * 1024 * 1024 + 2,
                                   18446744073708433663u,
                                   (size_t)1 << 63,
                                   (size_t)1 << 48,
                                   ((size_t)1 << 46) + 1,
                                   (size_t)1 << 46,
                                   GR_GIB + 1};
    char words[128];
    open_card(GR_GIB, _i);
    fixture_free(g, fixture_alloc(g, 512, NULL)); /* a free block of 2 MiB waits */
    fixture_free(g, fixture_alloc(g, 2 * GR_MIB, NULL));
    struct fixture_state before = fixture_state(g);
    uint64_t device_calls = calls(GR_ENTRY_cuMemCreate) + calls(GR_ENTRY_cuMemAddressReserve) +
                            calls(GR_ENTRY_cuMemAlloc);
    for (size_t i = 0; i < GR_COUNT(sizes); i++) {
        int status = try_alloc(sizes[i], NULL);
        ck_assert_msg(status == GRANARY_INVALID || status == GRANARY_OUT_OF_MEMORY, "%zx: %d", sizes[i],
                      status);
        ck_assert_int_eq(fixture_fault(g).status, status);
        ck_assert_str_ne(fixture_fault(g).text, "");
    }
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemCreate) + calls(GR_ENTRY_cuMemAddressReserve) +
                          calls(GR_ENTRY_cuMemAlloc),
                      device_calls);
    struct fixture_state after = fixture_state(g);
    ck_assert_msg(fixture_same(&before, &after, false, words), "%s", words);
    void *a = fixture_alloc(g, 512, NULL), *b = fixture_alloc(g, 512, NULL);
    ck_assert_ptr_ne(a, b);
    fixture_close(g);
}
END_TEST

/* pytorch/pytorch#159892, torch/cutorch#656: what a request of 0 bytes gives is unclear.
 * Kind: a case that nobody has written down. */
START_TEST(case_61_zero_bytes_are_null_and_cost_nothing) {
    void *ptr = &ptr;
    char words[128];
    open_card(GR_GIB, _i);
    struct fixture_state before = fixture_state(g);
    uint64_t total = gr_tap_total(&g->driver.tap);
    ck_assert_int_eq(granary_alloc(g, 0, NULL, &ptr), GRANARY_OK);
    ck_assert_ptr_null(ptr);
    ck_assert_int_eq(granary_free(g, ptr), GRANARY_OK);
    ck_assert_uint_eq(gr_tap_total(&g->driver.tap), total);
    struct fixture_state after = fixture_state(g);
    ck_assert_msg(fixture_same(&before, &after, false, words), "%s", words);
    ck_assert_int_eq(after.stats.misses, 0);
    ck_assert_int_eq(after.stats.allocations.all.total_up, 0);
    fixture_close(g);
}
END_TEST

Suite *suite_cases(void) {
    Suite *suite = suite_create("cases");
    TCase *cases = tcase_create("cases"), *large = tcase_create("addresses");
    tcase_set_tags(large, "large"); /* more addresses than valgrind has */
    tcase_set_timeout(cases, 10);
    tcase_set_timeout(large, 10);
    tcase_add_test(cases, case_4_two_freed_blocks_serve_one_of_their_joint_size);
    tcase_add_test(cases, case_4_classic_segments_are_given_back_inside_the_budget);
    tcase_add_test(cases, case_6_interleaved_blocks_of_two_streams_become_one_block);
    tcase_add_test(cases, case_12_a_mapping_that_fails_half_way_is_undone_and_works_the_next_time);
    tcase_add_loop_test(cases, case_13_what_is_created_is_released, 0, 2);
    tcase_add_test(cases, case_14_a_refused_reservation_has_its_own_error_and_frees_nothing);
    tcase_add_test(large, case_16_a_hundred_streams_on_eight_devices_find_addresses);
    tcase_add_test(cases, case_17_a_refused_reservation_is_tried_smaller);
    tcase_add_test(cases, case_17_without_any_reservation_classic_segments_serve);
    tcase_add_test(cases, case_17_reservations_that_stop_later_are_a_clean_error);
    tcase_add_test(cases, case_19_an_rdma_flag_that_does_not_work_is_found_out_once);
    tcase_add_test(cases, case_20_virtual_memory_that_is_declined_is_not_out_of_memory);
    tcase_add_loop_test(cases, case_54_pointers_that_are_no_live_block_are_refused_and_change_nothing, 0, 2);
    tcase_add_loop_test(cases, case_55_after_any_failure_another_thread_allocates_at_once, 0, 2);
    tcase_add_loop_test(cases, case_60_sizes_near_2_to_the_64_are_refused_and_nothing_wraps, 0, 2);
    tcase_add_loop_test(cases, case_61_zero_bytes_are_null_and_cost_nothing, 0, 2);
    suite_add_tcase(suite, large);
    suite_add_tcase(suite, cases);
    return suite;
}
