/* SPDX-License-Identifier: Apache-2.0
 * Settings of an open handle: what each does to the memory, and that changing them and changing them back
 * leaves nothing behind. */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "heap/heap.h"
#include "policy/options.h"
#include "support/fixture.h"
#include "support/hot.h"

static granary *g;
static const char *conf; /* of the handle that is opened next */
static size_t card;

static void change(struct granary_sim_config *sim, struct granary_options *options) {
    struct granary_option_error error;
    if (card) sim->memory_bytes = card;
    if (card > 4 * GR_GIB) sim->backing = GRANARY_SIM_ACCOUNTING;
    int status = granary_options_parse(options, conf, NULL, &error);
    ck_assert_msg(status == GRANARY_OK, "%s", error.text);
}

static void open_with(const char *string, size_t card_bytes) {
    conf = string;
    card = card_bytes;
    g = fixture_open(change);
}

static void update(const char *string) {
    struct granary_option_error error;
    ck_assert_msg(granary_update_options(g, string, &error) == GRANARY_OK, "%s", error.text);
}

static int try_alloc(size_t size) {
    void *ptr;
    return granary_alloc(g, size, NULL, &ptr);
}

static int64_t reserved(void) {
    return fixture_stats(g).reserved_bytes.all.current;
}

static struct granary_options settings(void) {
    struct granary_options options = {.struct_size = sizeof options};
    ck_assert_int_eq(granary_get_options(g, &options), GRANARY_OK);
    return options;
}

static struct granary_driver_calls calls(void) {
    struct granary_driver_calls calls = {.struct_size = sizeof calls};
    ck_assert_int_eq(granary_get_driver_calls(g, &calls), GRANARY_OK);
    return calls;
}

static size_t size_of(void *ptr) {
    size_t size = 0;
    ck_assert_int_eq(granary_size_of(g, ptr, &size), GRANARY_OK);
    return size;
}

/* ---- changing --------------------------------------------------------------------------------- */

/* pytorch: a temporary toggle resets the other settings, or leaks (case 70). */
START_TEST(case_70_an_update_touches_the_keys_it_names_and_a_pop_brings_all_back) {
    open_with("max_split_size_mb:128,garbage_collection_threshold:0.8,expandable_segments:True", 0);
    struct granary_options before = settings();
    void *first = fixture_alloc(g, 30 * GR_MIB, NULL);
    ck_assert_int_eq(granary_push_options(g, "expandable_segments:False", NULL), GRANARY_OK);
    struct granary_options within = settings();
    ck_assert_int_eq(within.expandable_segments, 0);
    ck_assert_uint_eq(within.max_split_size, 128 * GR_MIB);
    ck_assert_double_eq(within.garbage_collection_threshold, 0.8);
    void *second = fixture_alloc(g, 30 * GR_MIB, NULL);
    ck_assert_uint_eq(calls().mem_alloc, 1);
    ck_assert_int_eq(granary_pop_options(g), GRANARY_OK);
    struct granary_options after = settings();
    ck_assert_mem_eq(&before, &after, sizeof before);
    void *third = fixture_alloc(g, 30 * GR_MIB, NULL);
    ck_assert_uint_eq(calls().mem_alloc, 1);
    ck_assert_ptr_null(granary_verify(g));
    fixture_free(g, first);
    fixture_free(g, second);
    fixture_free(g, third);
    ck_assert_uint_eq(fixture_trim(g, 0), 90 * GR_MIB);
    ck_assert_uint_eq(calls().mem_free, 1);        /* the classic one */
    ck_assert_uint_eq(calls().unmap, calls().map); /* the others, mapped before and after */
    fixture_close(g);
}
END_TEST

START_TEST(pushes_nest_and_a_pop_without_a_push_is_refused) {
    open_with("", 0);
    struct granary_options first = settings();
    ck_assert_int_eq(granary_pop_options(g), GRANARY_ORDER);
    ck_assert_ptr_nonnull(strstr(fixture_fault(g).text, "push comes before pop"));
    ck_assert_int_eq(granary_push_options(g, "reclaim:off,memory_limit:100MiB", NULL), GRANARY_OK);
    struct granary_options second = settings();
    ck_assert_int_eq(granary_push_options(g, "", NULL), GRANARY_OK);
    ck_assert_int_eq(granary_set_limit(g, 50 * GR_MIB), GRANARY_OK); /* taken back as well */
    ck_assert_uint_eq(settings().limit_bytes, 50 * GR_MIB);
    ck_assert_int_eq(granary_pop_options(g), GRANARY_OK);
    struct granary_options now = settings();
    ck_assert_mem_eq(&now, &second, sizeof now);
    ck_assert_int_eq(granary_pop_options(g), GRANARY_OK);
    now = settings();
    ck_assert_mem_eq(&now, &first, sizeof now);
    ck_assert_int_eq(granary_push_options(g, "reclaim:off", NULL),
                     GRANARY_OK); /* closing drops what is left */
    fixture_close(g);
}
END_TEST

START_TEST(an_update_that_is_refused_changes_nothing_and_remembers_nothing) {
    struct granary_option_error error;
    open_with("extent_mb:40", 0);
    struct granary_options before = settings();
    ck_assert_int_eq(granary_push_options(g, "reclaim:off,max_split_size_mb:x", &error), GRANARY_OPTION);
    ck_assert_uint_eq(error.column, 31);
    ck_assert_ptr_nonnull(strstr(fixture_fault(g).text, "update: column 31: 'x'"));
    ck_assert_str_eq(fixture_fault(g).call, "granary_push_options");
    ck_assert_int_eq(granary_update_options(g, "reclaim:off,no_caching:1", NULL), GRANARY_OPTION);
    ck_assert_ptr_nonnull(strstr(fixture_fault(g).text, "'no_caching' is fixed when a handle is opened"));
    ck_assert_int_eq(granary_update_options(g, NULL, NULL), GRANARY_INVALID);
    struct granary_options after = settings();
    ck_assert_mem_eq(&before, &after, sizeof before);
    ck_assert_int_eq(granary_pop_options(g), GRANARY_ORDER);
    fixture_close(g);
}
END_TEST

START_TEST(no_handle_is_invalid) {
    struct granary_options options = {.struct_size = sizeof options};
    ck_assert_int_eq(granary_get_options(NULL, &options), GRANARY_INVALID);
    ck_assert_int_eq(granary_update_options(NULL, "", NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_push_options(NULL, "", NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_pop_options(NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_stream_set_class(NULL, NULL, ""), GRANARY_INVALID);
}
END_TEST

/* pytorch: the variable is changed when it is too late (case 69). */
START_TEST(case_69_the_environment_is_read_at_opening_and_not_again) {
    struct granary_option_info info = {.struct_size = sizeof info};
    struct granary_options options;
    setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:64,expandable_segments:False", 1);
    fixture_open_sim(NULL, &options);
    ck_assert_int_eq(granary_options_from_environment(&options, NULL), GRANARY_OK);
    g = fixture_open_handle(&options, 0);
    setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 1);
    (void)fixture_alloc(g, 30 * GR_MIB, NULL);
    ck_assert_uint_eq(calls().mem_alloc, 1);
    options = settings();
    ck_assert_int_eq(granary_options_effective(&options, 0, &info), GRANARY_OK);
    ck_assert_str_eq(info.key, "expandable_segments");
    ck_assert_str_eq(info.value, "False");
    ck_assert_str_eq(info.origin, "PYTORCH_ALLOC_CONF");
    unsetenv("PYTORCH_ALLOC_CONF");
    fixture_close(g);
}
END_TEST

/* ---- kinds of segment ------------------------------------------------------------------------- */

static void without_vmm(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->vmm = 0;
}

START_TEST(what_the_device_cannot_do_is_told_as_the_devices_and_refused_when_asked_for_again) {
    struct granary_option_info info = {.struct_size = sizeof info};
    void *ptr;
    g = fixture_open(without_vmm);
    struct granary_options options = settings();
    ck_assert_int_eq(granary_options_effective(&options, 0, &info), GRANARY_OK);
    ck_assert_str_eq(info.value, "False");
    ck_assert_str_eq(info.origin, "device");
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuMemAlloc, 1, 1, GR_CU_UNKNOWN);
    ck_assert_int_eq(granary_alloc(g, 512, NULL, &ptr), GRANARY_DRIVER);
    ck_assert_str_eq(fixture_fault(g).driver_call, "cuMemAlloc");
    struct granary_option_error error;
    ck_assert_int_eq(granary_update_options(g, "expandable_segments:True", &error), GRANARY_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fixture_fault(g).text, "expandable segments are not available"));
    ck_assert_str_eq(error.text, fixture_fault(g).text);
    ck_assert_str_eq(fixture_fault(g).driver_call, ""); /* the driver was not asked */
    ck_assert_int_eq(granary_update_options(g, "max_split_size_mb:64", NULL), GRANARY_OK);
    fixture_close(g);
}
END_TEST

/* test_max_split_expandable of PyTorch. */
START_TEST(blocks_of_both_kinds_share_a_limit_and_make_room_for_each_other) {
    open_with("memory_limit:120MiB,max_split_size_mb:20", 0);
    void *blocks[3];
    for (int i = 0; i < 3; i++) {
        update(i == 1 ? "expandable_segments:True" : "expandable_segments:False");
        blocks[i] = fixture_alloc(g, 40 * GR_MIB, NULL);
    }
    ck_assert_int_eq(reserved(), 120 * (int64_t)GR_MIB);
    ck_assert_int_eq(try_alloc(40 * GR_MIB), GRANARY_OVER_LIMIT);
    for (int i = 0; i < 3; i++) fixture_free(g, blocks[i]);
    if (_i) update("expandable_segments:True");
    (void)fixture_alloc(g, 120 * GR_MIB, NULL);
    ck_assert_int_eq(reserved(), 120 * (int64_t)GR_MIB);
    fixture_close(g);
}
END_TEST

START_TEST(free_memory_of_the_other_kind_waits_for_the_switch_back) {
    open_with("", 0);
    void *expandable = fixture_alloc(g, 30 * GR_MIB, NULL);
    fixture_free(g, expandable);
    update("expandable_segments:False");
    void *classic = fixture_alloc(g, 30 * GR_MIB, NULL);
    ck_assert_ptr_ne(classic, expandable);
    ck_assert_int_eq(reserved(), 60 * (int64_t)GR_MIB);
    fixture_free(g, classic);
    update("expandable_segments:True");
    ck_assert_ptr_eq(fixture_alloc(g, 30 * GR_MIB, NULL), expandable);
    update("expandable_segments:False");
    ck_assert_ptr_eq(fixture_alloc(g, 30 * GR_MIB, NULL), classic);
    ck_assert_int_eq(reserved(), 60 * (int64_t)GR_MIB);
    struct granary_facts facts = {.struct_size = sizeof facts};
    ck_assert_int_eq(granary_get_facts(g, &facts), GRANARY_OK);
    ck_assert_int_eq(facts.expandable_segments, 0);
    ck_assert_str_eq(facts.expandable_reason, "switched off");
    fixture_close(g);
}
END_TEST

/* pytorch#123548: a release of oversize blocks frees an expandable one as if it were a classic segment. */
START_TEST(case_65_a_split_size_does_not_disturb_expandable_segments) {
    char text[512];
    open_with(_i ? "max_split_size_mb:500,expandable_segments:True,garbage_collection_threshold:0.6"
                 : "max_split_size_mb:500,expandable_segments:True",
              1200 * GR_MIB);
    fixture_free(g, fixture_alloc(g, 550 * GR_MIB, NULL));
    for (int i = 0; i < 10; i++) (void)fixture_alloc(g, 110 * GR_MIB, NULL);
    ck_assert_int_eq(try_alloc(110 * GR_MIB), GRANARY_OUT_OF_MEMORY);
    ck_assert_uint_eq(calls().mem_free, 0);
    struct granary_options options = settings();
    ck_assert_int_eq(granary_options_warning(&options, 0, text, sizeof text), GRANARY_OK);
    ck_assert_ptr_nonnull(strstr(text, "max_split_size_mb has no effect beside expandable_segments"));
    ck_assert_int_eq(granary_options_warning(&options, 1, text, sizeof text), GRANARY_INVALID);
    fixture_close(g);
}
END_TEST

/* ---- sizes ------------------------------------------------------------------------------------ */

START_TEST(roundup_power2_divisions_rounds_what_is_handed_out_and_not_what_was_asked_for) {
    open_with(_i ? "roundup_power2_divisions:4" : "roundup_power2_divisions:4,expandable_segments:False", 0);
    void *ptr = fixture_alloc(g, 84 * GR_MIB + 1, NULL);
    ck_assert_uint_eq(size_of(ptr), 96 * GR_MIB);
    ck_assert_int_eq(fixture_stats(g).allocated_bytes.all.current, 96 * GR_MIB);
    ck_assert_int_eq(fixture_stats(g).requested_bytes.all.current, 84 * GR_MIB + 1);
    ck_assert_int_eq(reserved(), 96 * (int64_t)GR_MIB);
    fixture_free(g, ptr);
    ck_assert_ptr_eq(fixture_alloc(g, 95 * GR_MIB, NULL), ptr); /* of the same size */
    ck_assert_int_eq(reserved(), 96 * (int64_t)GR_MIB);
    update("roundup_power2_divisions:off");
    ck_assert_uint_eq(size_of(ptr), 96 * GR_MIB); /* what is there stays as it is */
    ck_assert_uint_eq(size_of(fixture_alloc(g, 3 * GR_MIB + 1, NULL)), 3 * GR_MIB + 512);
    fixture_close(g);
}
END_TEST

START_TEST(rounding_up_may_make_a_small_request_a_large_block) {
    open_with("roundup_power2_divisions:2,expandable_segments:False", 0);
    void *ptr = fixture_alloc(g, 900 * GR_KIB, NULL); /* 1 MiB: just small */
    ck_assert_uint_eq(size_of(ptr), GR_MIB);
    ck_assert_int_eq(fixture_stats(g).allocated_bytes.small.current, GR_MIB);
    ck_assert_int_eq(fixture_stats(g).reserved_bytes.small.current, 2 * GR_MIB);
    ptr = fixture_alloc(g, GR_MIB + 1, NULL);
    ck_assert_uint_eq(size_of(ptr), GR_MIB + GR_MIB / 2);
    ck_assert_int_eq(fixture_stats(g).reserved_bytes.large.current, 20 * GR_MIB);
    fixture_close(g);
}
END_TEST

/* By hand, after PyTorch's rules: a block of 600 MiB is oversize and serves nothing below 500 MiB; one of
 * 510 is served by it only with a slack above 90. */
START_TEST(max_split_size_and_its_slack_decide_what_an_oversize_block_serves) {
    open_with("expandable_segments:False,max_split_size_mb:500", 8 * GR_GIB);
    void *big = fixture_alloc(g, 600 * GR_MIB, NULL);
    fixture_free(g, big);
    void *small = fixture_alloc(g, 100 * GR_MIB, NULL);
    ck_assert_ptr_ne(small, big);
    ck_assert_int_eq(reserved(), 700 * (int64_t)GR_MIB);
    void *near = fixture_alloc(g, 581 * GR_MIB, NULL); /* 19 less: served, whole */
    ck_assert_ptr_eq(near, big);
    ck_assert_uint_eq(size_of(near), 600 * GR_MIB);
    fixture_free(g, near);
    void *far = fixture_alloc(g, 580 * GR_MIB, NULL); /* 20 less: not served */
    ck_assert_ptr_ne(far, big);
    ck_assert_int_eq(reserved(), 1280 * (int64_t)GR_MIB);
    update("max_non_split_rounding_mb:91");
    ck_assert_ptr_eq(fixture_alloc(g, 510 * GR_MIB, NULL), big);
    ck_assert_int_eq(reserved(), 1280 * (int64_t)GR_MIB);
    update("max_split_size_mb:unlimited");
    fixture_free(g, far);
    ck_assert_ptr_eq(fixture_alloc(g, 50 * GR_MIB, NULL), far); /* now it is cut */
    ck_assert_int_eq(reserved(), 1280 * (int64_t)GR_MIB);
    fixture_close(g);
}
END_TEST

START_TEST(large_segment_size_is_what_requests_below_10_mib_are_cut_from) {
    open_with("expandable_segments:False,large_segment_size_mb:64", 0);
    (void)fixture_alloc(g, 5 * GR_MIB, NULL);
    ck_assert_int_eq(reserved(), 64 * (int64_t)GR_MIB);
    (void)fixture_alloc(g, 9 * GR_MIB, NULL);
    ck_assert_int_eq(reserved(), 64 * (int64_t)GR_MIB);
    (void)fixture_alloc(g, 60 * GR_MIB, NULL);
    ck_assert_int_eq(reserved(), 124 * (int64_t)GR_MIB);
    fixture_close(g);
}
END_TEST

START_TEST(extent_mb_sizes_physical_allocations_from_the_change_on) {
    open_with("extent_mb:40", 32 * GR_GIB);
    (void)fixture_alloc(g, 20 * GR_GIB, NULL); /* above half of the card: in usual extents */
    ck_assert_int_ge(fixture_stats(g).extents, 20 * 1024 / 160);
    update("extent_mb:2");
    int64_t before = fixture_stats(g).extents;
    (void)fixture_alloc(g, 100 * GR_MIB, NULL);
    ck_assert_int_eq(fixture_stats(g).extents, before + 50);
    fixture_close(g);
}
END_TEST

/* ---- limits ----------------------------------------------------------------------------------- */

START_TEST(a_fraction_is_exact_to_the_byte) {
    static const struct {
        const char *conf;
        size_t limit;
    } rows[] = {{"per_process_memory_fraction:0.3", 322122547},  /* 322122547.2 */
                {"per_process_memory_fraction:0.7", 751619277},  /* 751619276.8 */
                {"per_process_memory_fraction:0.5", GR_GIB / 2}, /* exactly */
                {"per_process_memory_fraction:0", 0},
                {"per_process_memory_fraction:0.5,memory_limit:1000000", 1000000}};
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        open_with(rows[i].conf, 0);
        ck_assert_int_eq(try_alloc(900 * GR_MIB), GRANARY_OVER_LIMIT);
        ck_assert_uint_eq(fixture_fault(g).shortfall.limit_bytes, rows[i].limit);
        fixture_close(g);
    }
}
END_TEST

START_TEST(limits_change_while_the_handle_is_in_use) {
    open_with(_i ? "expandable_segments:False" : "", 0);
    void *ptr = fixture_alloc(g, 100 * GR_MIB, NULL);
    update("memory_limit:110MiB");
    ck_assert_int_eq(try_alloc(20 * GR_MIB), GRANARY_OVER_LIMIT);
    update("memory_limit:50MiB"); /* below what is held: nothing is taken away */
    ck_assert_int_eq(reserved(), 100 * (int64_t)GR_MIB);
    ck_assert_int_eq(try_alloc(2 * GR_MIB), GRANARY_OVER_LIMIT);
    update("memory_limit:unlimited,per_process_memory_fraction:0.125");
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, NULL));
    ck_assert_int_eq(try_alloc(40 * GR_MIB), GRANARY_OVER_LIMIT);
    ck_assert_int_eq(granary_set_limit(g, GRANARY_UNLIMITED), GRANARY_OK); /* of both kinds */
    ck_assert_int_eq(try_alloc(40 * GR_MIB), GRANARY_OK);
    ck_assert_uint_eq(size_of(ptr), 100 * GR_MIB);
    fixture_close(g);
}
END_TEST

START_TEST(a_request_that_is_rejected_early_disturbs_nothing) {
    open_with(_i ? "memory_limit:100MiB,expandable_segments:False" : "memory_limit:100MiB", 0);
    granary_stream other = fixture_stream(g);
    fixture_free(g, fixture_alloc(g, 60 * GR_MIB, other));
    struct fixture_state before = fixture_state(g);
    char words[128];
    update("throw_on_cudamalloc_oom:True");
    ck_assert_int_eq(try_alloc(60 * GR_MIB), GRANARY_OVER_LIMIT);
    struct fixture_state after = fixture_state(g);
    ck_assert_msg(fixture_same(&before, &after, false, words), "%s", words);
    ck_assert_int_eq(try_alloc(40 * GR_MIB), GRANARY_OK); /* there is room */
    update("throw_on_cudamalloc_oom:False");
    ck_assert_int_eq(try_alloc(60 * GR_MIB), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, other), GRANARY_OK);
    fixture_close(g);
}
END_TEST

START_TEST(a_smaller_handle_cache_gives_back_what_is_too_much) {
    open_with("handle_cache:64MiB,reclaim:off,extent_mb:20", 0);
    void *blocks[2];
    for (int i = 0; i < 2; i++) blocks[i] = fixture_alloc(g, 20 * GR_MIB, NULL);
    for (int i = 0; i < 2; i++) fixture_free(g, blocks[i]);
    gr_lock_take(&g->miss);
    struct gr_extent *extent;
    ck_assert(gr_extents_reserve(&g->extents, 1));
    ck_assert_int_eq(gr_extents_get(&g->extents, 10, &extent), GRANARY_OK);
    gr_extents_put(&g->extents, extent);
    gr_lock_give(&g->miss);
    ck_assert_int_eq(fixture_stats(g).handle_cache_bytes, 20 * GR_MIB);
    update("handle_cache:19MiB");
    ck_assert_int_eq(fixture_stats(g).handle_cache_bytes, 0);
    fixture_close(g);
}
END_TEST

/* ---- addresses -------------------------------------------------------------------------------- */

START_TEST(a_reserve_sets_the_addresses_of_a_range_and_a_larger_request_gets_what_it_needs) {
    open_with("expandable_segments_reserve:0.25,"
              "expandable_segments_reserve_by_class:[kv:64MiB,weights:0.5]",
              0);
    granary_stream kv = fixture_stream(g), weights = fixture_stream(g), odd = fixture_stream(g);
    ck_assert_int_eq(granary_stream_set_class(g, kv, "kv"), GRANARY_OK);
    ck_assert_int_eq(granary_stream_set_class(g, weights, "weights"), GRANARY_OK);
    ck_assert_int_eq(granary_stream_set_class(g, odd, "unheard-of"), GRANARY_OK);
    struct {
        granary_stream stream;
        size_t size;
        int64_t addresses;
    } rows[] = {{NULL, 2 * GR_MIB, 256 * GR_MIB},
                {kv, 2 * GR_MIB, 64 * GR_MIB},
                {kv, 100 * GR_MIB, 100 * GR_MIB},
                {weights, 2 * GR_MIB, 512 * GR_MIB},
                {odd, 2 * GR_MIB, 256 * GR_MIB}};
    int64_t before = 0;
    for (size_t i = 0; i < GR_COUNT(rows); i++) {
        (void)fixture_alloc(g, rows[i].size, rows[i].stream);
        int64_t now = fixture_stats(g).reserved_address_bytes;
        ck_assert_int_eq(now - before, rows[i].addresses);
        before = now;
    }
    ck_assert_int_eq(granary_stream_set_class(g, kv, ""), GRANARY_OK); /* out of the class */
    (void)fixture_alloc(g, 80 * GR_MIB, kv);
    ck_assert_int_eq(fixture_stats(g).reserved_address_bytes - before, 256 * GR_MIB);
    ck_assert_int_eq(granary_stream_set_class(g, kv, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_stream_set_class(g, kv, "abcdefghijklmnopqrstuvwxyz0123456"), GRANARY_INVALID);
    granary_stream streams[] = {kv, weights, odd};
    for (int i = 0; i < 3; i++) ck_assert_int_eq(granary_stream_destroy(g, streams[i]), GRANARY_OK);
    fixture_close(g);
}
END_TEST

/* ---- threads ---------------------------------------------------------------------------------- */

enum { ROUNDS = 100 };

static void *allocate(void *argument) {
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        void *ptr = NULL;
        HOT_ASSERT(granary_alloc(g, 1000 + (size_t)i * 4999, NULL, &ptr) == GRANARY_OK);
        HOT_ASSERT(granary_free(g, ptr) == GRANARY_OK);
    }
    return NULL;
}

START_TEST(settings_change_under_threads_that_allocate) {
    static const char *const rows[] = {
        "expandable_segments:False,max_split_size_mb:20", "roundup_power2_divisions:[1:4,>:8]",
        "expandable_segments:True,garbage_collection_threshold:0.5", "capture_reuse:off,reclaim:eager",
        "garbage_collection_threshold:off,roundup_power2_divisions:off"};
    pthread_t threads[2];
    open_with("", 0);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, allocate, NULL), 0);
    for (int i = 0; i < 40; i++) {
        HOT_ASSERT(granary_push_options(g, rows[i % 5], NULL) == GRANARY_OK);
        if (i % 3 == 0) HOT_ASSERT(granary_pop_options(g) == GRANARY_OK);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    while (granary_pop_options(g) == GRANARY_OK) continue;
    struct granary_options fresh, now = settings();
    gr_options_init(&fresh);
    ck_assert_int_eq(now.expandable_segments, 1);
    ck_assert_uint_eq(now.max_split_size, fresh.max_split_size);
    ck_assert_uint_eq(atomic_load(&g->routing), 0);
    fixture_close(g);
}
END_TEST

Suite *suite_settings(void) {
    Suite *suite = suite_create("settings");
    TCase *cases = tcase_create("settings");
    tcase_add_test(cases, case_70_an_update_touches_the_keys_it_names_and_a_pop_brings_all_back);
    tcase_add_test(cases, pushes_nest_and_a_pop_without_a_push_is_refused);
    tcase_add_test(cases, an_update_that_is_refused_changes_nothing_and_remembers_nothing);
    tcase_add_test(cases, no_handle_is_invalid);
    tcase_add_test(cases, case_69_the_environment_is_read_at_opening_and_not_again);
    tcase_add_test(cases, what_the_device_cannot_do_is_told_as_the_devices_and_refused_when_asked_for_again);
    tcase_add_loop_test(cases, blocks_of_both_kinds_share_a_limit_and_make_room_for_each_other, 0, 2);
    tcase_add_test(cases, free_memory_of_the_other_kind_waits_for_the_switch_back);
    tcase_add_loop_test(cases, roundup_power2_divisions_rounds_what_is_handed_out_and_not_what_was_asked_for,
                        0, 2);
    tcase_add_test(cases, rounding_up_may_make_a_small_request_a_large_block);
    tcase_add_test(cases, max_split_size_and_its_slack_decide_what_an_oversize_block_serves);
    tcase_add_test(cases, large_segment_size_is_what_requests_below_10_mib_are_cut_from);
    tcase_add_test(cases, extent_mb_sizes_physical_allocations_from_the_change_on);
    tcase_add_test(cases, a_fraction_is_exact_to_the_byte);
    tcase_add_loop_test(cases, limits_change_while_the_handle_is_in_use, 0, 2);
    tcase_add_loop_test(cases, a_request_that_is_rejected_early_disturbs_nothing, 0, 2);
    tcase_add_test(cases, a_smaller_handle_cache_gives_back_what_is_too_much);
    tcase_add_test(cases, a_reserve_sets_the_addresses_of_a_range_and_a_larger_request_gets_what_it_needs);
    tcase_add_test(cases, settings_change_under_threads_that_allocate);
    suite_add_tcase(suite, cases);
    TCase *large = tcase_create("settings of a large card");
    tcase_set_tags(large, "large");
    tcase_add_loop_test(large, case_65_a_split_size_does_not_disturb_expandable_segments, 0, 2);
    suite_add_tcase(suite, large);
    return suite;
}
