/* SPDX-License-Identifier: Apache-2.0
 * Graphs that captures of the simulated driver make: edges, lent arrays, updates, replay, and what
 * strict mode stops. */
#include "test_sim_support.h"

static const struct gr_cu_edge PLAIN;

static void setup(void) {
    up(defaults());
}

/* ---- edges and arrays --------------------------------------------------------------------- */

START_TEST(edge_data_is_kept_and_asked_for_with_room_for_it) {
    gr_cu_stream a = stream();
    gr_cu_ptr p = ready(G);
    const struct gr_cu_edge programmatic = {1, 0, GR_CU_EDGE_PROGRAMMATIC, {0}};
    const gr_cu_node *shown;
    const struct gr_cu_edge *edges;
    int status;
    size_t count;
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    OK(cu.cuMemsetD8Async(p, 1, 16, a));
    gr_cu_node one = look(a).nodes[0];
    OK(cu.cuStreamGetCaptureInfo(a, &status, NULL, NULL, &shown, NULL, &count));
    OK(cu.cuStreamUpdateCaptureDependencies(a, &one, &programmatic, 1, GR_CU_DEPENDENCIES_SET));
    CODE(cu.cuStreamGetCaptureInfo(a, &status, NULL, NULL, &shown, NULL, &count), 402);
    CODE(cu.cuStreamGetCaptureInfo(a, &status, NULL, NULL, NULL, &edges, &count), 1);
    CODE(cu.cuStreamGetCaptureInfo(a, NULL, NULL, NULL, NULL, NULL, NULL), 1);
    struct look l = look(a);
    ck_assert(l.count == 1 && l.edges[0].type == GR_CU_EDGE_PROGRAMMATIC && l.edges[0].from_port == 1);
    OK(cu.cuMemsetD8Async(p, 2, 16, a));
    gr_cu_node two = look(a).nodes[0], behind[2];
    struct gr_cu_edge data[2];
    count = 0;
    OK(cu.cuGraphNodeGetDependencies(two, NULL, NULL, &count));
    ck_assert_uint_eq(count, 1);
    CODE(cu.cuGraphNodeGetDependencies(two, behind, NULL, &count), 402);
    CODE(cu.cuGraphNodeGetDependencies(two, NULL, data, &count), 1);
    count = 2;
    OK(cu.cuGraphNodeGetDependencies(two, behind, data, &count));
    ck_assert(count == 1 && behind[0] == one && behind[1] == NULL && data[0].type == GR_CU_EDGE_PROGRAMMATIC);
    end_with(a, GR_CU_SUCCESS);
    give(p, G);
    OK(cu.cuStreamDestroy(a));
    down();
}
END_TEST

START_TEST(a_lent_array_is_spoilt_at_the_next_call_on_the_stream) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_ptr p = ready(G);
    const gr_cu_node *shown;
    const struct gr_cu_edge *edges;
    int status;
    size_t count;
    OK(cu.cuStreamBeginCapture(a, RELAXED));
    OK(cu.cuMemsetD8Async(p, 1, 16, a));
    OK(cu.cuStreamGetCaptureInfo(a, &status, NULL, NULL, &shown, &edges, &count));
    gr_cu_node node = shown[0];
    OK(cu.cuStreamQuery(b)); /* of another stream: nothing happens */
    ck_assert_ptr_eq(shown[0], node);
    OK(cu.cuStreamIsCapturing(a, &status));
    ck_assert_ptr_ne(shown[0], node);
    end_with(a, GR_CU_SUCCESS);
    give(p, G);
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    down();
}
END_TEST

START_TEST(updates_refuse_what_is_wrong) {
    gr_cu_stream a = stream(), b = stream();
    gr_cu_node ours, foreign, made, twice[2];
    OK(cu.cuStreamBeginCapture(a, RELAXED));
    OK(cu.cuStreamBeginCapture(b, RELAXED));
    gr_cu_graph graph = look(a).graph;
    OK(cu.cuGraphAddEmptyNode(&ours, graph, NULL, 0));
    OK(cu.cuGraphAddEmptyNode(&foreign, look(b).graph, NULL, 0));
    CODE(cu.cuStreamUpdateCaptureDependencies(a, &foreign, NULL, 1, GR_CU_DEPENDENCIES_ADD), 1);
    CODE(cu.cuStreamUpdateCaptureDependencies(a, &ours, NULL, 1, 2), 1);
    CODE(cu.cuStreamUpdateCaptureDependencies(a, NULL, NULL, 1, GR_CU_DEPENDENCIES_ADD), 1);
    CODE(cu.cuGraphAddEmptyNode(&made, graph, &foreign, 1), 1);
    twice[0] = twice[1] = ours;
    CODE(cu.cuGraphAddEmptyNode(&made, graph, twice, 2), 1);
    OK(cu.cuStreamUpdateCaptureDependencies(a, &ours, &PLAIN, 1, GR_CU_DEPENDENCIES_ADD));
    ck_assert(look(a).count == 1 && look(a).nodes[0] == ours);
    end_with(a, GR_CU_SUCCESS);
    end_with(b, GR_CU_SUCCESS);
    CODE(cu.cuStreamUpdateCaptureDependencies(a, NULL, NULL, 0, GR_CU_DEPENDENCIES_SET), 401);
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    down();
}
END_TEST

/* ---- replay ------------------------------------------------------------------------------- */

static void count(void *data) {
    ++*(int *)data;
}

START_TEST(a_graph_runs_its_work_at_each_launch_and_in_its_stream) {
    struct granary_sim_config config = defaults();
    config.clock = GRANARY_SIM_MANUAL;
    config.backing = GRANARY_SIM_MEMORY;
    config.memory_bytes = 64 * GR_MIB;
    up(config);
    gr_cu_stream a = stream();
    gr_cu_ptr p = ready(G);
    const volatile unsigned char *byte = at(p);
    gr_cu_graph graph;
    gr_cu_graph_exec exec;
    int calls = 0;
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    OK(cu.cuMemsetD8Async(p, 3, 16, a));
    OK(cu.cuLaunchHostFunc(a, count, &calls));
    OK(cu.cuMemcpyDtoDAsync(p + 64, p, 16, a));
    OK(cu.cuStreamEndCapture(a, &graph));
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.cuGraphDestroy(graph)); /* the executable one does not need it */
    ck_assert_uint_eq(granary_sim_run_all(), 0);
    OK(cu.cuMemsetD8Async(p, 9, 80, a));
    OK(cu.cuGraphLaunch(exec, a));
    OK(cu.cuGraphLaunch(exec, a));
    OK(cu.cuGraphExecDestroy(exec)); /* nor do launches need their handle */
    ck_assert_uint_eq(granary_sim_run(a, 1), 1);
    ck_assert(byte[64] == 9 && calls == 0);
    ck_assert_uint_eq(granary_sim_run(a, 1), 1);
    ck_assert(byte[64] == 3 && calls == 1);
    OK(cu.cuStreamSynchronize(a));
    ck_assert_int_eq(calls, 2);
    give(p, G);
    OK(cu.cuStreamDestroy(a));
    down();
}
END_TEST

START_TEST(a_launch_can_be_captured) {
    gr_cu_stream a = stream();
    gr_cu_graph inner, outer;
    gr_cu_graph_exec first, second;
    int calls = 0;
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    OK(cu.cuLaunchHostFunc(a, count, &calls));
    OK(cu.cuStreamEndCapture(a, &inner));
    OK(cu.cuGraphInstantiateWithFlags(&first, inner, 0));
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    OK(cu.cuGraphLaunch(first, a));
    OK(cu.cuGraphLaunch(first, a));
    OK(cu.cuStreamEndCapture(a, &outer));
    OK(cu.cuGraphExecDestroy(first));
    OK(cu.cuGraphInstantiateWithFlags(&second, outer, 0));
    ck_assert_int_eq(calls, 0);
    OK(cu.cuGraphLaunch(second, a));
    ck_assert_int_eq(calls, 2);
    OK(cu.cuGraphExecDestroy(second));
    OK(cu.cuGraphDestroy(inner));
    OK(cu.cuGraphDestroy(outer));
    OK(cu.cuStreamDestroy(a));
    down();
}
END_TEST

/* ---- strict ------------------------------------------------------------------------------- */

static void destroying_a_borrowed_graph(void) {
    up(defaults());
    gr_cu_stream a = stream();
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    (void)cu.cuGraphDestroy(look(a).graph);
}

START_TEST(strict_mode_stops_destroying_a_borrowed_graph) {
    stops(destroying_a_borrowed_graph);
}
END_TEST

static void looking_at_nodes_of_a_dead_graph(void) {
    up(defaults());
    gr_cu_stream a = stream();
    gr_cu_ptr p = ready(G);
    size_t n = 0;
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    OK(cu.cuMemsetD8Async(p, 3, 16, a));
    gr_cu_node node = look(a).nodes[0];
    end_with(a, GR_CU_SUCCESS);
    (void)cu.cuGraphNodeGetDependencies(node, NULL, NULL, &n);
}

START_TEST(strict_mode_stops_looking_at_nodes_of_a_dead_graph) {
    stops(looking_at_nodes_of_a_dead_graph);
}
END_TEST

static void looking_into_an_invalidated_capture(void) {
    up(defaults());
    gr_cu_stream a = stream();
    size_t n = 0;
    OK(cu.cuStreamBeginCapture(a, GLOBAL));
    gr_cu_graph graph = look(a).graph;
    CODE(cu.cuStreamQuery(a), 900);
    (void)cu.cuGraphGetNodes(graph, NULL, &n);
}

START_TEST(strict_mode_stops_looking_into_an_invalidated_capture) {
    stops(looking_into_an_invalidated_capture);
}
END_TEST

Suite *suite_sim_graph(void);
Suite *suite_sim_graph(void) {
    Suite *suite = suite_create("sim_graph");
    TCase *plain = tcase_create("plain");
    tcase_add_checked_fixture(plain, setup, NULL);
    tcase_add_test(plain, edge_data_is_kept_and_asked_for_with_room_for_it);
    tcase_add_test(plain, a_lent_array_is_spoilt_at_the_next_call_on_the_stream);
    tcase_add_test(plain, updates_refuse_what_is_wrong);
    tcase_add_test(plain, a_launch_can_be_captured);
    suite_add_tcase(suite, plain);
    TCase *configured = tcase_create("configured");
    tcase_add_test(configured, a_graph_runs_its_work_at_each_launch_and_in_its_stream);
    suite_add_tcase(suite, configured);
    TCase *strict = tcase_create("strict");
    tcase_add_test(strict, strict_mode_stops_destroying_a_borrowed_graph);
    tcase_add_test(strict, strict_mode_stops_looking_at_nodes_of_a_dead_graph);
    tcase_add_test(strict, strict_mode_stops_looking_into_an_invalidated_capture);
    suite_add_tcase(suite, strict);
    return suite;
}
