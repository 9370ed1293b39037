/* SPDX-License-Identifier: Apache-2.0
 * The ladder, one rung at a time: each serves a request that nothing below it could have served, and
 * does nothing that it must not do. */
#include "support/captures.h"
#include "support/shortfall.h"

static granary_stream a, b;
static size_t card;
static bool classic, manual;
static int reclaim = GRANARY_RECLAIM_PRESSURE;

static void change(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = card;
    sim->clock = manual ? GRANARY_SIM_MANUAL : GRANARY_SIM_AT_ONCE;
    sim->hang_ms = 2000;
    options->expandable_segments = !classic;
    options->reclaim = reclaim;
}

static void open_card(size_t mib, bool is_classic, bool is_manual) {
    card = mib * GR_MIB;
    classic = is_classic;
    manual = is_manual;
    captures_open(change);
    a = captures_stream();
    b = captures_stream();
}

static uint64_t calls(enum gr_entry entry) {
    return gr_tap_count(&g->driver.tap, entry);
}

/* Calls that make or take memory. */
static uint64_t memory_calls(void) {
    return calls(GR_ENTRY_cuMemCreate) + calls(GR_ENTRY_cuMemAlloc) + calls(GR_ENTRY_cuMemUnmap) +
           calls(GR_ENTRY_cuMemFree) + calls(GR_ENTRY_cuMemRelease);
}

static uint64_t waits(void) {
    return calls(GR_ENTRY_cuEventSynchronize) + calls(GR_ENTRY_cuStreamSynchronize) +
           calls(GR_ENTRY_cuCtxSynchronize);
}

static unsigned rungs_of_failure(size_t size, granary_stream stream) {
    void *ptr;
    char words[128];
    int status = granary_alloc(g, size, stream, &ptr);
    ck_assert_msg(status == GRANARY_OUT_OF_MEMORY || status == GRANARY_OVER_LIMIT, "%d", status);
    const char *wrong = shortfall_wrong(g, words);
    ck_assert_msg(!wrong, "%s", wrong);
    return fixture_fault(g).shortfall.rungs;
}

static bool has(unsigned rungs, enum granary_rung rung) {
    return rungs >> rung & 1;
}

/* Freed while b still uses it. */
static void *pend(size_t size, uint64_t id) {
    void *p = fixture_alloc(g, size, a);
    captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    captures_use(b, p, size, id);
    fixture_free(g, p);
    return p;
}

START_TEST(an_event_that_is_complete_gives_its_block_without_a_call_for_memory) {
    open_card(64, _i, true);
    void *p = pend(40 * GR_MIB, 1);
    granary_sim_run_all();
    uint64_t before = memory_calls(), waited = waits();
    ck_assert_ptr_eq(fixture_alloc(g, 40 * GR_MIB, a), p);
    ck_assert_uint_eq(memory_calls(), before);
    ck_assert_uint_eq(waits(), waited);
    fixture_free(g, p);
    captures_close();
}
END_TEST

static void *kept;

static int give_what_is_kept(granary *handle, size_t size, granary_stream stream, void *context) {
    (void)size, (void)stream;
    if (!*(void **)context) return 0;
    fixture_free(handle, *(void **)context);
    *(void **)context = NULL;
    return 1;
}

START_TEST(a_callback_that_frees_serves_before_memory_is_made_or_moved) {
    granary_callback name;
    open_card(64, _i, false);
    RAN(granary_relief_add(g, give_what_is_kept, &kept, &name));
    void *p = kept = fixture_alloc(g, 20 * GR_MIB, a);
    fixture_free(g, fixture_alloc(g, 20 * GR_MIB, b)); /* called, and it frees */
    ck_assert_ptr_null(kept);
    ck_assert_ptr_eq(kept = fixture_alloc(g, 20 * GR_MIB, a), p);
    uint64_t before = memory_calls();
    int64_t misses = fixture_stats(g).misses;
    ck_assert_ptr_eq(fixture_alloc(g, 20 * GR_MIB, a), p);
    ck_assert_uint_eq(memory_calls(), before);
    ck_assert_int_eq(fixture_stats(g).misses, misses + 1); /* one, although it climbed twice */
    fixture_free(g, p);
    captures_close();
}
END_TEST

START_TEST(the_one_event_that_helps_is_waited_for_and_its_block_serves) {
    open_card(64, _i, true);
    void *p = pend(48 * GR_MIB, 1);
    uint64_t waited = waits(), given = calls(GR_ENTRY_cuMemUnmap) + calls(GR_ENTRY_cuMemFree);
    ck_assert_ptr_eq(fixture_alloc(g, 48 * GR_MIB, a), p);
    ck_assert_uint_eq(waits(), waited + 1);
    /* The driver was asked, and refused; nothing was given back for it. */
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemUnmap) + calls(GR_ENTRY_cuMemFree), given);
    fixture_free(g, p);
    captures_close();
}
END_TEST

static granary_pool lending_pool(bool no_split, bool lends) {
    struct granary_pool_options options = {
        .struct_size = sizeof options, .no_split = no_split, .use_on_shortage = lends};
    granary_pool pool;
    RAN(granary_pool_create(g, &options, &pool));
    return pool;
}

static void *alloc_in(granary_pool pool, size_t size) {
    granary_scope scope;
    RAN(granary_scope_begin(g, pool, NULL, NULL, &scope));
    void *p = fixture_alloc(g, size, a);
    RAN(granary_scope_end(g, scope));
    return p;
}

START_TEST(a_pool_that_lends_serves_last_and_one_that_does_not_stays_untouched) {
    for (int lends = 1; lends >= 0; lends--) {
        reclaim = GRANARY_RECLAIM_OFF; /* or the memory would simply move */
        open_card(64, _i, false);
        granary_pool pool = lending_pool(false, lends);
        void *live = fixture_alloc(g, 20 * GR_MIB, a), *p = alloc_in(pool, 40 * GR_MIB), *q = NULL;
        fixture_free(g, p);
        int status = granary_alloc(g, 30 * GR_MIB, a, &q);
        ck_assert_int_eq(status, lends ? GRANARY_OK : GRANARY_OUT_OF_MEMORY);
        if (lends)
            ck_assert_ptr_eq(q, p);
        else
            ck_assert(!has(fixture_fault(g).shortfall.rungs, GRANARY_RUNG_LENDING));
        if (q) fixture_free(g, q);
        ck_assert(has(rungs_of_failure(50 * GR_MIB, a), GRANARY_RUNG_LENDING) == (lends == 1));
        fixture_free(g, live);
        RAN(granary_pool_release(g, pool));
        reclaim = GRANARY_RECLAIM_PRESSURE;
        captures_close();
    }
}
END_TEST

/* A growth on ranges cannot take a classic segment, which a pool without splits has. */
START_TEST(segments_that_no_growth_can_take_are_trimmed_when_that_is_enough) {
    open_card(64, false, false);
    granary_pool pool = lending_pool(true, false);
    void *p = alloc_in(pool, 40 * GR_MIB), *q;
    fixture_free(g, p);
    ck_assert(!has(rungs_of_failure(64 * GR_MIB + 512, a), GRANARY_RUNG_TRIM)); /* it would not be */
    ck_assert_uint_eq(captures_reserved(pool), 40 * GR_MIB);
    q = fixture_alloc(g, 60 * GR_MIB, a);
    ck_assert_uint_eq(captures_reserved(pool), 0);
    fixture_free(g, q);
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

START_TEST(without_reclaim_nothing_idle_is_touched) {
    reclaim = GRANARY_RECLAIM_OFF;
    open_card(64, _i, false);
    fixture_free(g, fixture_alloc(g, 40 * GR_MIB, b));
    uint64_t unmaps = calls(GR_ENTRY_cuMemUnmap) + calls(GR_ENTRY_cuMemFree);
    unsigned rungs = rungs_of_failure(40 * GR_MIB, a);
    ck_assert(!has(rungs, GRANARY_RUNG_RECLAIM) && !has(rungs, GRANARY_RUNG_TRIM));
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemUnmap) + calls(GR_ENTRY_cuMemFree), unmaps);
    reclaim = GRANARY_RECLAIM_PRESSURE;
    captures_close();
}
END_TEST

START_TEST(in_a_capture_nothing_is_waited_for_moved_or_given_back) {
    open_card(64, _i, true);
    void *p = fixture_alloc(g, 40 * GR_MIB, b);
    fixture_free(g, p); /* idle, and enough */
    granary_pool pool = captures_pool();
    struct capture capture = captures_begin(pool, a, RELAXED);
    uint64_t kept = calls(GR_ENTRY_cuMemCreate) - calls(GR_ENTRY_cuMemRelease), refused;
    unsigned rungs = rungs_of_failure(40 * GR_MIB, a);
    ck_assert(!has(rungs, GRANARY_RUNG_RECLAIM) && !has(rungs, GRANARY_RUNG_WAIT) &&
              !has(rungs, GRANARY_RUNG_TRIM) && !has(rungs, GRANARY_RUNG_GARBAGE));
    ck_assert_uint_eq(fixture_fault(g).shortfall.open_captures, 1);
    refused = classic ? 0 : 1; /* the last creation; those before it are undone */
    ck_assert_uint_eq(calls(GR_ENTRY_cuMemCreate) - calls(GR_ENTRY_cuMemRelease), kept + refused);
    (void)captures_end(&capture, GR_CU_SUCCESS); /* asserts the rest */
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

/* Pending in another pool: of a graph, whose memory stays, or of any while nothing is moved. */
START_TEST(a_pending_block_whose_memory_cannot_serve_is_not_waited_for) {
    bool of_graph = _i < 2;
    if (!of_graph) reclaim = GRANARY_RECLAIM_OFF;
    open_card(64, _i % 2, true);
    granary_pool pool = captures_pool();
    granary_scope scope;
    if (of_graph) {
        struct capture capture = captures_begin(pool, a, RELAXED);
        (void)captures_end(&capture, GR_CU_SUCCESS);
    }
    RAN(granary_scope_begin(g, pool, NULL, NULL, &scope));
    (void)pend(48 * GR_MIB, 1);
    RAN(granary_scope_end(g, scope));
    uint64_t waited = waits();
    ck_assert(!has(rungs_of_failure(40 * GR_MIB, a), GRANARY_RUNG_WAIT));
    ck_assert_uint_eq(waits(), waited);
    granary_sim_run_all();
    RAN(granary_pool_release(g, pool));
    reclaim = GRANARY_RECLAIM_PRESSURE;
    captures_close();
}
END_TEST

START_TEST(what_no_state_of_the_device_can_hold_disturbs_nobody) {
    granary_callback name;
    open_card(64, _i, false);
    RAN(granary_relief_add(g, give_what_is_kept, &kept, &name));
    void *p = kept = fixture_alloc(g, 2 * GR_MIB, a);
    uint64_t before = memory_calls();
    ck_assert_uint_eq(rungs_of_failure(65 * GR_MIB, a), 1u << GRANARY_RUNG_POOL);
    ck_assert_uint_eq(memory_calls(), before);
    ck_assert_ptr_eq(kept, p); /* not called */
    kept = NULL;
    fixture_free(g, p);
    captures_close();
}
END_TEST

/* ---- limits that change ------------------------------------------------------------------------ */

START_TEST(a_limit_may_change_at_any_time_and_holds_from_then_on) {
    open_card(256, _i, false);
    void *p = fixture_alloc(g, 60 * GR_MIB, a), *q = fixture_alloc(g, 60 * GR_MIB, b);
    RAN(granary_set_limit(g, 100 * GR_MIB)); /* less than is held */
    ck_assert_uint_eq(fixture_stats(g).reserved_bytes.all.current, 120 * GR_MIB);
    (void)rungs_of_failure(2 * GR_MIB, a);
    fixture_free(g, p);
    ck_assert_ptr_eq(p = fixture_alloc(g, 60 * GR_MIB, a), p); /* hits pass */
    fixture_free(g, p);
    p = fixture_alloc(g, 30 * GR_MIB, b); /* takes what is idle, and gives back what is too much */
    ck_assert_int_le(fixture_stats(g).reserved_bytes.all.current, 120 * (int64_t)GR_MIB);
    RAN(granary_set_limit(g, GRANARY_UNLIMITED));
    void *r = fixture_alloc(g, 100 * GR_MIB, a);
    fixture_free(g, p);
    fixture_free(g, q);
    fixture_free(g, r);
    captures_close();
}
END_TEST

/* ---- cases ------------------------------------------------------------------------------------- */

/* vllm-project/vllm#45565, NVIDIA/cub#47, pytorch/pytorch#13751, #18584. Kind: a failure that was dealt
 * with, or told, is found again by a call that has nothing to do with it. */
START_TEST(case_26_what_was_dealt_with_is_no_failure_of_a_later_call) {
    open_card(64, _i, true);
    void *p, *q;
    fixture_free(g, fixture_alloc(g, 60 * GR_MIB, b));
    q = fixture_alloc(g, 60 * GR_MIB, a); /* refused by the driver, then served by what was idle */
    ck_assert_int_eq(fixture_fault(g).status, GRANARY_OK);
    fixture_free(g, q);
    q = pend(40 * GR_MIB, 1);
    (void)fixture_stats(g); /* an event that is asked too early */
    ck_assert_int_eq(fixture_fault(g).status, GRANARY_OK);
    granary_sim_run_all();
    ck_assert_ptr_eq(fixture_alloc(g, 40 * GR_MIB, a), q);
    ck_assert_int_eq(granary_alloc(g, 60 * GR_MIB, a, &p), GRANARY_OUT_OF_MEMORY);
    fixture_free(g, q);
    fixture_free(g, fixture_alloc(g, 60 * GR_MIB, a)); /* unaffected */
    RAN(granary_trim(g, 0, NULL));
    captures_close();
}
END_TEST

/* NVIDIA/cccl#7063, pytorch/pytorch#97142, LichtFeld-Studio#1419. Kind: what is closed after the driver
 * has gone takes its answers for failures, or itself for lost memory. */
START_TEST(case_58_closing_after_the_driver_has_gone_is_quiet) {
    open_card(64, _i, false);
    void *live = fixture_alloc(g, 20 * GR_MIB, a);
    fixture_free(g, fixture_alloc(g, 4 * GR_MIB, a));
    gr_tap_fail(&g->driver.tap, GR_TAP_ANY, 1, UINT64_MAX, GR_CU_DEINITIALIZED);
    uint64_t before = gr_tap_total(&g->driver.tap);
    fixture_free(g, live);
    ck_assert_int_eq(granary_trim(g, 0, NULL), GRANARY_LOST); /* a call, not a teardown: it is told */
    uint64_t asked = gr_tap_total(&g->driver.tap) - before;
    ck_assert_uint_le(asked, 2); /* once it is known nobody asks again */
    /* The process ends here, with the handle open or closed: granary_close neither aborts nor hangs. The
     * simulation is still there, and holds what nobody gave back. */
    granary_close(g);
}
END_TEST

Suite *suite_rungs(void) {
    Suite *suite = suite_create("rungs");
    TCase *cases = tcase_create("rungs");
    tcase_add_loop_test(cases, an_event_that_is_complete_gives_its_block_without_a_call_for_memory, 0, 2);
    tcase_add_loop_test(cases, a_callback_that_frees_serves_before_memory_is_made_or_moved, 0, 2);
    tcase_add_loop_test(cases, the_one_event_that_helps_is_waited_for_and_its_block_serves, 0, 2);
    tcase_add_loop_test(cases, a_pool_that_lends_serves_last_and_one_that_does_not_stays_untouched, 0, 2);
    tcase_add_test(cases, segments_that_no_growth_can_take_are_trimmed_when_that_is_enough);
    tcase_add_loop_test(cases, without_reclaim_nothing_idle_is_touched, 0, 2);
    tcase_add_loop_test(cases, in_a_capture_nothing_is_waited_for_moved_or_given_back, 0, 2);
    tcase_add_loop_test(cases, a_pending_block_whose_memory_cannot_serve_is_not_waited_for, 0, 4);
    tcase_add_loop_test(cases, what_no_state_of_the_device_can_hold_disturbs_nobody, 0, 2);
    tcase_add_loop_test(cases, a_limit_may_change_at_any_time_and_holds_from_then_on, 0, 2);
    tcase_add_loop_test(cases, case_26_what_was_dealt_with_is_no_failure_of_a_later_call, 0, 2);
    tcase_add_loop_test(cases, case_58_closing_after_the_driver_has_gone_is_quiet, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
