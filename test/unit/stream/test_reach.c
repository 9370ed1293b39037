/* SPDX-License-Identifier: Apache-2.0
 * Reach: which nodes lie behind a stream's terminals, whatever is done to the terminals, at a cost
 * that is linear over a capture. */
#include <check.h>

#include "stream/capture.h"
#include "support/captures.h"

static granary_stream a, b;
static char *memory;
static struct gr_reach reach;

static void setup(void) {
    captures_open(NULL);
    a = captures_stream();
    b = captures_stream();
    memory = fixture_alloc(g, 2 * GR_MIB, a);
    RAN(cu.cuStreamBeginCapture(a, RELAXED));
    reach = (struct gr_reach){0};
}

static void teardown(void) {
    gr_cu_graph graph = NULL;
    gr_reach_fini(&reach);
    (void)cu.cuStreamEndCapture(a, &graph);
    if (graph) RAN(cu.cuGraphDestroy(graph));
    captures_close();
}

/* A kernel on the stream; returns its node. */
static gr_cu_node node_on(granary_stream stream) {
    struct gr_capture_info info;
    captures_use(stream, memory, 512, 0); /* id 0: there is nothing to compare at the end */
    gr_capture_ask(&g->driver, stream, &info);
    ck_assert(info.active);
    ck_assert_uint_eq(info.count, 1);
    return info.nodes[0];
}

static void update(granary_stream stream) {
    struct gr_capture_info info;
    gr_capture_ask(&g->driver, stream, &info);
    ck_assert_int_eq(gr_reach_update(&reach, &g->driver, info.nodes, info.edges, info.count), GRANARY_OK);
}

static void set(granary_stream stream, gr_cu_node *nodes, const struct gr_cu_edge *edges, size_t count) {
    RAN(cu.cuStreamUpdateCaptureDependencies(stream, nodes, edges, count, GR_CU_DEPENDENCIES_SET));
}

START_TEST(nothing_is_reached_at_first) {
    update(a);
    ck_assert(!gr_reach_has(&reach, (gr_cu_node)&reach));
    ck_assert(!reach.broken);
}
END_TEST

START_TEST(everything_behind_a_terminal_is_reached) {
    gr_cu_node first = node_on(a);
    captures_link(a, b);
    gr_cu_node side = node_on(b), middle = node_on(a);
    update(a);
    ck_assert(gr_reach_has(&reach, first) && gr_reach_has(&reach, middle));
    ck_assert(!gr_reach_has(&reach, side)); /* not joined */
    captures_link(b, a);
    update(a);
    ck_assert(gr_reach_has(&reach, side)); /* joined, before any node says so */
    ck_assert(!reach.broken);
}
END_TEST

START_TEST(a_terminal_that_is_replaced_is_forgotten_and_breaks_the_reach) {
    gr_cu_node first = node_on(a);
    gr_cu_node second = node_on(a);
    update(a);
    ck_assert(gr_reach_has(&reach, second));
    set(a, &first, NULL, 1); /* back to an ancestor: second is dropped */
    update(a);
    ck_assert(gr_reach_has(&reach, first) && !gr_reach_has(&reach, second));
    ck_assert(reach.broken);
}
END_TEST

START_TEST(terminals_that_are_emptied_reach_nothing) {
    gr_cu_node first = node_on(a);
    update(a);
    set(a, NULL, NULL, 0);
    update(a);
    ck_assert(!gr_reach_has(&reach, first) && reach.broken);
}
END_TEST

START_TEST(a_replacement_between_two_looks_is_noticed_by_what_is_missing) {
    gr_cu_node first = node_on(a);
    update(a);
    set(a, NULL, NULL, 0);
    gr_cu_node other = node_on(a); /* a root */
    update(a);
    ck_assert(gr_reach_has(&reach, other) && !gr_reach_has(&reach, first));
    ck_assert(reach.broken);
}
END_TEST

START_TEST(a_replacement_by_a_node_behind_the_terminals_is_an_advance) {
    gr_cu_node first = node_on(a), empty;
    struct gr_capture_info info;
    update(a);
    gr_capture_ask(&g->driver, a, &info);
    RAN(cu.cuGraphAddEmptyNode(&empty, info.graph, &first, 1));
    set(a, &empty, NULL, 1);
    update(a);
    ck_assert(gr_reach_has(&reach, first) && gr_reach_has(&reach, empty));
    ck_assert(!reach.broken);
}
END_TEST

START_TEST(a_programmatic_edge_is_no_completion) {
    static const struct gr_cu_edge programmatic = {.type = GR_CU_EDGE_PROGRAMMATIC, .from_port = 1};
    gr_cu_node first = node_on(a);
    update(a);
    ck_assert(gr_reach_has(&reach, first));
    set(a, &first, &programmatic, 1); /* the terminal is held, but not waited for */
    update(a);
    ck_assert(!gr_reach_has(&reach, first));
    ck_assert(reach.broken);
}
END_TEST

START_TEST(a_node_behind_a_programmatic_edge_is_not_reached_through_it) {
    static const struct gr_cu_edge programmatic = {.type = GR_CU_EDGE_PROGRAMMATIC, .from_port = 1};
    gr_cu_node first = node_on(a);
    update(a);
    set(a, &first, &programmatic, 1);
    gr_cu_node second = node_on(a); /* depends on first by the programmatic edge alone */
    update(a);
    /* The former terminal is met only by that edge: what was known of it no longer holds. */
    ck_assert(gr_reach_has(&reach, second) && !gr_reach_has(&reach, first));
    ck_assert(reach.broken);
}
END_TEST

START_TEST(a_launch_order_port_is_no_completion_either) {
    static const struct gr_cu_edge launch_order = {.from_port = 2};
    gr_cu_node first = node_on(a);
    set(a, &first, &launch_order, 1);
    update(a);
    ck_assert(!gr_reach_has(&reach, first));
}
END_TEST

/* ---- watches ---------------------------------------------------------------------------------- */

START_TEST(a_watch_is_ready_once_all_its_nodes_are_reached) {
    gr_cu_node first = node_on(a);
    captures_link(a, b);
    gr_cu_node side = node_on(b), watched[] = {first, side};
    struct gr_watch watch = {.count = 2, .node = watched};
    ck_assert(gr_reach_watch(&reach, &watch));
    ck_assert_ptr_null(reach.ready);
    update(a);
    ck_assert_ptr_null(reach.ready);
    ck_assert_ptr_eq(*gr_reach_list_of(&reach, &watch), &watch);
    captures_link(b, a);
    update(a);
    ck_assert_ptr_eq(reach.ready, &watch);
    ck_assert_ptr_eq(*gr_reach_list_of(&reach, &watch), &watch);
}
END_TEST

START_TEST(a_watch_of_nothing_is_ready_at_once) {
    struct gr_watch watch = {.count = 0};
    ck_assert(gr_reach_watch(&reach, &watch));
    ck_assert_ptr_eq(reach.ready, &watch);
}
END_TEST

START_TEST(a_ready_watch_is_not_ready_any_more_when_its_node_is_dropped) {
    gr_cu_node first = node_on(a), second = node_on(a);
    struct gr_watch watch = {.count = 1, .node = &second};
    update(a);
    ck_assert(gr_reach_watch(&reach, &watch));
    ck_assert_ptr_eq(reach.ready, &watch);
    set(a, &first, NULL, 1);
    update(a);
    ck_assert_ptr_null(reach.ready);
    set(a, &second, NULL, 1);
    update(a);
    ck_assert_ptr_eq(reach.ready, &watch);
}
END_TEST

/* ---- cost ------------------------------------------------------------------------------------- */

/* Two streams, forked and joined n times; the reach is brought up to date four times an iteration. */
static uint64_t walked(int n) {
    gr_cu_node nodes = NULL;
    for (int i = 0; i < n; i++) {
        captures_link(a, b);
        (void)node_on(b);
        update(a);
        captures_link(b, a);
        update(a);
        nodes = node_on(a);
        update(a);
        update(a);
    }
    ck_assert(gr_reach_has(&reach, nodes));
    return reach.walked;
}

START_TEST(the_walk_is_linear_over_the_capture) {
    static const int counts[] = {100, 400, 1600, 10000};
    ck_assert_uint_eq(walked(counts[_i]), 2 * (uint64_t)counts[_i]); /* every node once */
    ck_assert(!reach.broken);
}
END_TEST

START_TEST(nodes_with_many_dependencies_are_walked_whole) {
    granary_stream many[40];
    gr_cu_node side[40];
    (void)node_on(a);
    for (size_t i = 0; i < GR_COUNT(many); i++) {
        many[i] = captures_stream();
        captures_link(a, many[i]);
        side[i] = node_on(many[i]);
    }
    for (size_t i = 0; i < GR_COUNT(many); i++) captures_link(many[i], a);
    update(a);
    (void)node_on(a); /* depends on all of them */
    gr_reach_fini(&reach);
    update(a);
    for (size_t i = 0; i < GR_COUNT(many); i++) ck_assert(gr_reach_has(&reach, side[i]));
}
END_TEST

START_TEST(a_refusal_of_the_driver_leaves_less_than_the_truth) {
    gr_cu_node first = node_on(a);
    gr_cu_node second = node_on(a);
    struct gr_capture_info info;
    gr_capture_ask(&g->driver, a, &info);
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuGraphNodeGetDependencies, 1, 1, GR_CU_UNKNOWN);
    ck_assert_int_ne(gr_reach_update(&reach, &g->driver, info.nodes, info.edges, info.count), GRANARY_OK);
    ck_assert(!gr_reach_has(&reach, first));
    update(a);
    ck_assert(gr_reach_has(&reach, second));
    (void)node_on(a); /* and it recovers when the terminals move on */
    update(a);
    (void)node_on(a);
    update(a);
    ck_assert(!reach.broken);
}
END_TEST

Suite *suite_reach(void);
Suite *suite_reach(void) {
    Suite *suite = suite_create("reach");
    TCase *set_case = tcase_create("set"), *watch = tcase_create("watch"), *cost = tcase_create("cost");
    tcase_add_checked_fixture(set_case, setup, teardown);
    tcase_add_test(set_case, nothing_is_reached_at_first);
    tcase_add_test(set_case, everything_behind_a_terminal_is_reached);
    tcase_add_test(set_case, a_terminal_that_is_replaced_is_forgotten_and_breaks_the_reach);
    tcase_add_test(set_case, terminals_that_are_emptied_reach_nothing);
    tcase_add_test(set_case, a_replacement_between_two_looks_is_noticed_by_what_is_missing);
    tcase_add_test(set_case, a_replacement_by_a_node_behind_the_terminals_is_an_advance);
    tcase_add_test(set_case, a_programmatic_edge_is_no_completion);
    tcase_add_test(set_case, a_node_behind_a_programmatic_edge_is_not_reached_through_it);
    tcase_add_test(set_case, a_launch_order_port_is_no_completion_either);
    tcase_add_test(set_case, nodes_with_many_dependencies_are_walked_whole);
    tcase_add_test(set_case, a_refusal_of_the_driver_leaves_less_than_the_truth);
    tcase_add_checked_fixture(watch, setup, teardown);
    tcase_add_test(watch, a_watch_is_ready_once_all_its_nodes_are_reached);
    tcase_add_test(watch, a_watch_of_nothing_is_ready_at_once);
    tcase_add_test(watch, a_ready_watch_is_not_ready_any_more_when_its_node_is_dropped);
    tcase_add_checked_fixture(cost, setup, teardown);
    tcase_add_loop_test(cost, the_walk_is_linear_over_the_capture, 0, 4);
    suite_add_tcase(suite, set_case);
    suite_add_tcase(suite, watch);
    suite_add_tcase(suite, cost);
    return suite;
}
