/* SPDX-License-Identifier: Apache-2.0
 * Private pools: life, release while in use, memory that comes back, lending, and whole segments. */
#include <check.h>

#include "heap/private.h"
#include "support/captures.h"

static granary_stream a, b;

static void small(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 128 * GR_MIB;
}
static void small_classic(struct granary_sim_config *sim, struct granary_options *options) {
    small(sim, options);
    options->expandable_segments = 0;
}

static void setup(void) {
    captures_open(small);
    a = captures_stream();
    b = captures_stream();
}

static void teardown(void) {
    captures_close();
}

static granary_pool make(int no_split, int on_shortage) {
    struct granary_pool_options options = {
        .struct_size = sizeof options, .no_split = no_split, .use_on_shortage = on_shortage};
    granary_pool pool;
    RAN(granary_pool_create(g, &options, &pool));
    return pool;
}

static void *alloc_in(granary_pool pool, size_t size, granary_stream stream) {
    granary_scope scope;
    RAN(granary_scope_begin(g, pool, NULL, NULL, &scope));
    void *p = fixture_alloc(g, size, stream);
    RAN(granary_scope_end(g, scope));
    return p;
}

static size_t reserved(void) {
    return (size_t)fixture_stats(g).reserved_bytes.all.current;
}

static size_t heaps(void) {
    size_t count = 0;
    GR_HEAP_FOR(heap, g) count++;
    return count - 1;
}

START_TEST(names_are_never_used_again) {
    granary_pool first = make(0, 0);
    RAN(granary_pool_release(g, first));
    granary_pool second = make(0, 0);
    ck_assert_uint_ne(first, second);
    ck_assert_uint_ne(second, 0);
    RAN(granary_pool_release(g, second));
    ck_assert_uint_eq(heaps(), 0);
}
END_TEST

START_TEST(a_pool_lives_until_its_last_user) {
    granary_pool pool = make(0, 0);
    RAN(granary_pool_retain(g, pool));
    RAN(granary_pool_release(g, pool));
    ck_assert_int_eq(captures_stats(pool).users, 1);
    RAN(granary_pool_release(g, pool));
    ck_assert_int_eq(granary_pool_release(g, pool), GRANARY_UNKNOWN_POOL);
}
END_TEST

START_TEST(a_released_pool_goes_with_its_last_block) {
    granary_pool pool = make(0, 0);
    void *p = alloc_in(pool, 8 * GR_MIB, a), *q = alloc_in(pool, GR_MIB, b);
    RAN(granary_pool_release(g, pool));
    ck_assert_ptr_null(granary_verify(g));
    ck_assert_uint_eq(heaps(), 1); /* its blocks are live */
    fixture_free(g, p);
    fixture_free(g, q);
    (void)fixture_trim(g, 0);
    ck_assert_uint_eq(reserved(), 0);
    ck_assert_uint_eq(heaps(), 0);
}
END_TEST

START_TEST(memory_of_a_released_pool_serves_others) {
    granary_pool pool = make(0, 0);
    void *p = alloc_in(pool, 96 * GR_MIB, a);
    fixture_free(g, p);
    RAN(granary_pool_release(g, pool));
    (void)fixture_alloc(g, 120 * GR_MIB, b);
    ck_assert_uint_eq(fixture_held().handle_bytes, 120 * GR_MIB);
}
END_TEST

START_TEST(a_pool_that_is_no_capture_gives_idle_memory_while_it_lives) {
    granary_pool pool = make(0, 0);
    fixture_free(g, alloc_in(pool, 96 * GR_MIB, a));
    (void)fixture_alloc(g, 120 * GR_MIB, b);
    RAN(granary_pool_release(g, pool));
}
END_TEST

START_TEST(memory_of_a_graph_stays_mapped_until_the_release) {
    granary_pool pool = make(0, _i);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = fixture_alloc(g, 96 * GR_MIB, a), *other;
    captures_use(a, p, 96 * GR_MIB, 1);
    fixture_free(g, p);
    gr_cu_graph graph = captures_end(&capture, GR_CU_SUCCESS);
    (void)fixture_trim(g, 0);
    ck_assert_uint_eq(captures_reserved(pool), 96 * GR_MIB);
    ck_assert_int_eq(granary_alloc(g, 64 * GR_MIB, b, &other), GRANARY_OUT_OF_MEMORY);
    ck_assert_int_eq(granary_alloc(g, 64 * GR_MIB, a, &other), GRANARY_OUT_OF_MEMORY); /* nor is it lent */
    gr_cu_graph_exec exec;
    RAN(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    RAN(cu.cuGraphLaunch(exec, a));
    RAN(cu.cuGraphExecDestroy(exec));
    RAN(granary_pool_release(g, pool));
    RAN(granary_alloc(g, 64 * GR_MIB, b, &other)); /* launches are over first: see the findings */
    captures_use(b, other, 64 * GR_MIB, 2);
}
END_TEST

START_TEST(a_pool_released_before_its_launches_end_is_waited_for) {
    granary_pool pool = make(0, 0);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = fixture_alloc(g, 96 * GR_MIB, a);
    captures_use(a, p, 96 * GR_MIB, 1);
    fixture_free(g, p);
    gr_cu_graph graph = captures_end(&capture, GR_CU_SUCCESS);
    gr_cu_graph_exec exec;
    RAN(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    RAN(cu.cuGraphLaunch(exec, b)); /* on a stream that the pool has never heard of */
    RAN(cu.cuGraphExecDestroy(exec));
    RAN(granary_pool_release(g, pool));
    ck_assert_uint_eq(fixture_trim(g, 0), 96 * GR_MIB);
}
END_TEST

START_TEST(a_pool_that_lends_serves_before_memory_runs_out) {
    granary_pool pool = make(0, 1);
    void *p = alloc_in(pool, 96 * GR_MIB, a);
    void *live = alloc_in(pool, 4 * GR_MIB, a); /* and memory that cannot be moved */
    fixture_free(g, p);
    void *q = fixture_alloc(g, 60 * GR_MIB, a);
    ck_assert_int_eq(fixture_stats(g).out_of_memory, 0);
    captures_use(a, q, 60 * GR_MIB, 1);
    fixture_free(g, q);
    fixture_free(g, live);
    RAN(granary_pool_release(g, pool));
}
END_TEST

START_TEST(a_classic_pool_lends_too_and_only_to_the_same_stream) {
    void *q;
    captures_open(small_classic);
    a = captures_stream();
    b = captures_stream();
    granary_pool pool = make(0, 1);
    void *p = alloc_in(pool, 2 * GR_MIB, a); /* of a segment of 20 MiB */
    void *fill = fixture_alloc(g, 98 * GR_MIB, a);
    ck_assert_int_eq(granary_alloc(g, 16 * GR_MIB, b, &q), GRANARY_OUT_OF_MEMORY);
    q = fixture_alloc(g, 16 * GR_MIB, a);
    ck_assert_int_eq(captures_stats(pool).allocated_bytes, 18 * GR_MIB); /* it counts where it lies */
    fixture_free(g, q);
    fixture_free(g, p);
    fixture_free(g, fill);
    RAN(granary_pool_release(g, pool));
    captures_close();
}
END_TEST

START_TEST(blocks_of_a_pool_without_splits_are_segments_of_their_own) {
    granary_pool pool = make(1, 0);
    void *p = alloc_in(pool, 4 * GR_MIB, a), *q = alloc_in(pool, 4 * GR_MIB, a);
    uint64_t before = gr_tap_count(&g->driver.tap, GR_ENTRY_cuMemAlloc);
    ck_assert_uint_eq(before, 2);
    fixture_free(g, p);
    ck_assert_ptr_eq(alloc_in(pool, 3 * GR_MIB, a), p); /* whole */
    size_t size = 0;
    RAN(granary_size_of(g, p, &size));
    ck_assert_uint_ge(size, 4 * GR_MIB);
    fixture_free(g, p);
    fixture_free(g, q);
    RAN(granary_pool_release(g, pool));
    (void)fixture_trim(g, 0);
    ck_assert_uint_eq(heaps(), 0);
}
END_TEST

START_TEST(figures_of_a_pool_are_its_own) {
    granary_pool pool = make(0, 0);
    void *p = alloc_in(pool, 4 * GR_MIB, a), *q = alloc_in(pool, 512, b);
    (void)fixture_alloc(g, 8 * GR_MIB, a);
    struct granary_pool_stats stats = captures_stats(pool);
    ck_assert_int_eq(stats.users, 1);
    ck_assert_int_eq(stats.scopes, 0);
    ck_assert_int_eq(stats.allocated_bytes, 4 * GR_MIB + 512);
    ck_assert_int_eq(stats.active_bytes, 4 * GR_MIB + 512);
    ck_assert_int_eq(stats.reserved_bytes, 6 * GR_MIB);
    ck_assert_int_eq(stats.live_blocks, 2);
    ck_assert_int_eq(stats.pending_blocks, 0);
    RAN(granary_record_stream(g, p, b));
    granary_sim_hold(b);
    captures_use(b, p, 512, 1);
    fixture_free(g, p);
    stats = captures_stats(pool);
    ck_assert_int_eq(stats.allocated_bytes, 512);
    ck_assert_int_eq(stats.active_bytes, 4 * GR_MIB + 512);
    ck_assert_int_eq(stats.pending_blocks, 1);
    granary_sim_release(b);
    ck_assert_int_eq(captures_stats(pool).pending_blocks, 0);
    fixture_free(g, q);
    RAN(granary_pool_release(g, pool));
}
END_TEST

START_TEST(pools_of_streams_that_went_are_given_up) {
    granary_pool pool = make(0, 0);
    granary_stream brief = fixture_stream(g);
    void *p = alloc_in(pool, 4 * GR_MIB, brief);
    captures_use(brief, p, GR_MIB, 1);
    RAN(granary_stream_destroy(g, brief));
    fixture_free(g, p);
    (void)fixture_trim(g, 0);
    ck_assert_uint_eq(captures_reserved(pool), 0);
    ck_assert_uint_eq(reserved(), 0);
    RAN(granary_pool_release(g, pool));
}
END_TEST

Suite *suite_private(void);
Suite *suite_private(void) {
    Suite *suite = suite_create("private");
    TCase *all = tcase_create("all"), *classic = tcase_create("classic");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, names_are_never_used_again);
    tcase_add_test(all, a_pool_lives_until_its_last_user);
    tcase_add_test(all, a_released_pool_goes_with_its_last_block);
    tcase_add_test(all, memory_of_a_released_pool_serves_others);
    tcase_add_test(all, a_pool_that_is_no_capture_gives_idle_memory_while_it_lives);
    tcase_add_loop_test(all, memory_of_a_graph_stays_mapped_until_the_release, 0, 2);
    tcase_add_test(all, a_pool_released_before_its_launches_end_is_waited_for);
    tcase_add_test(all, a_pool_that_lends_serves_before_memory_runs_out);
    tcase_add_test(all, blocks_of_a_pool_without_splits_are_segments_of_their_own);
    tcase_add_test(all, figures_of_a_pool_are_its_own);
    tcase_add_test(all, pools_of_streams_that_went_are_given_up);
    tcase_add_test(classic, a_classic_pool_lends_too_and_only_to_the_same_stream);
    suite_add_tcase(suite, all);
    suite_add_tcase(suite, classic);
    return suite;
}
