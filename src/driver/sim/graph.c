/* SPDX-License-Identifier: Apache-2.0
 * Graphs and their nodes; instantiation to a program, and its launch.
 *
 * A graph only grows, and a new node can only depend on nodes that exist: the order of creation is
 * one in which they may run (X4). */
#include <stdlib.h>
#include <string.h>

#include "driver/sim/internal.h"

/* ---- making ------------------------------------------------------------------------------- */

struct CUgraph_st *gr_sim_graph_make(struct gr_sim_capture *capture) {
    struct CUgraph_st *graph = gr_sim_slots_take(&gr_sim.graphs);
    graph->capture = capture;
    return graph;
}

void gr_sim_graph_end(struct CUgraph_st *graph) {
    for (size_t i = 0; i < graph->count; i++) {
        gr_sim_terminals_fini(&graph->nodes[i]->dependencies);
        gr_sim_action_fini(&graph->nodes[i]->action);
        gr_sim_slots_put(&gr_sim.nodes, graph->nodes[i]);
    }
    free(graph->nodes);
    gr_sim_slots_put(&gr_sim.graphs, graph);
}

gr_cu_node gr_sim_node_make(struct CUgraph_st *graph, const struct gr_sim_terminals *dependencies) {
    gr_cu_node node = gr_sim_slots_take(&gr_sim.nodes);
    if (graph->count == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 16;
        graph->nodes = gr_sim_grow(graph->nodes, graph->room, sizeof(gr_cu_node));
    }
    node->graph = graph;
    node->index = graph->count;
    gr_sim_terminals_copy(&node->dependencies, dependencies);
    graph->nodes[graph->count++] = node;
    return node;
}

static bool graph_is_live(gr_cu_graph graph) {
    if (graph && !gr_sim_slots_live(&gr_sim.graphs, graph))
        gr_sim_report(GRANARY_SIM_MISUSE, "graph %p is destroyed or invalidated", (void *)graph);
    return gr_sim_slots_live(&gr_sim.graphs, graph);
}

static bool node_is_live(gr_cu_node node) {
    if (node && !gr_sim_slots_live(&gr_sim.nodes, node))
        gr_sim_report(GRANARY_SIM_MISUSE, "the graph of node %p is destroyed or invalidated", (void *)node);
    return gr_sim_slots_live(&gr_sim.nodes, node);
}

static gr_cu_result add_empty_node(gr_cu_node *out, gr_cu_graph graph, const gr_cu_node *dependencies,
                                   size_t count) {
    static const struct gr_cu_edge plain;
    struct gr_sim_terminals behind = {0};
    if (!out || !graph_is_live(graph) || (count && !dependencies)) return GR_CU_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        bool ours = node_is_live(dependencies[i]) && dependencies[i]->graph == graph;
        if (ours) gr_sim_terminals_add(&behind, dependencies[i], plain);
        if (behind.count == i + 1) continue; /* else foreign, or named twice */
        gr_sim_terminals_fini(&behind);
        return GR_CU_INVALID_VALUE;
    }
    *out = gr_sim_node_make(graph, &behind);
    gr_sim_terminals_fini(&behind);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuGraphAddEmptyNode(gr_cu_node *out, gr_cu_graph graph, const gr_cu_node *dependencies,
                                        size_t count) {
    GR_SIM_ENTRY(add_empty_node(out, graph, dependencies, count));
}

static gr_cu_result graph_destroy(gr_cu_graph graph) {
    if (!graph_is_live(graph)) return GR_CU_INVALID_VALUE;
    if (graph->capture) {
        gr_sim_report(GRANARY_SIM_MISUSE, "graph %p is only borrowed: its capture has not ended",
                      (void *)graph);
        return GR_CU_INVALID_VALUE;
    }
    gr_sim_graph_end(graph);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuGraphDestroy(gr_cu_graph graph) {
    GR_SIM_ENTRY(graph_destroy(graph));
}

/* ---- reading ------------------------------------------------------------------------------ */

/* The driver's protocol: without room, the count; with room, what fits, and NULL in the rest. */
static void hand_out(const gr_cu_node *from, size_t have, gr_cu_node *to, size_t *count) {
    size_t room = *count;
    *count = to ? gr_min(room, have) : have;
    for (size_t i = 0; to && i < room; i++) to[i] = i < have ? from[i] : NULL;
}

static gr_cu_result get_nodes(gr_cu_graph graph, gr_cu_node *nodes, size_t *count) {
    if (!graph_is_live(graph) || !count) return GR_CU_INVALID_VALUE;
    hand_out(graph->nodes, graph->count, nodes, count);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuGraphGetNodes(gr_cu_graph graph, gr_cu_node *nodes, size_t *count) {
    GR_SIM_ENTRY(get_nodes(graph, nodes, count));
}

static gr_cu_result get_dependencies(gr_cu_node node, gr_cu_node *nodes, struct gr_cu_edge *edges,
                                     size_t *count) {
    static const struct gr_cu_edge plain;
    if (!node_is_live(node) || !count || (edges && !nodes)) return GR_CU_INVALID_VALUE;
    const struct gr_sim_terminals *behind = &node->dependencies;
    for (size_t i = 0; nodes && !edges && i < behind->count; i++)
        if (memcmp(&behind->edges[i], &plain, sizeof plain) != 0) return GR_CU_LOSSY_QUERY;
    for (size_t i = 0; edges && i < gr_min(*count, behind->count); i++) edges[i] = behind->edges[i];
    hand_out(behind->nodes, behind->count, nodes, count);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuGraphNodeGetDependencies(gr_cu_node node, gr_cu_node *nodes, struct gr_cu_edge *edges,
                                               size_t *count) {
    GR_SIM_ENTRY(get_dependencies(node, nodes, edges, count));
}

/* ---- running ------------------------------------------------------------------------------ */

static struct gr_sim_action copy_action(const struct gr_sim_action *from) {
    struct gr_sim_action action = *from;
    if (from->piece_count) {
        action.pieces = gr_sim_grow(NULL, from->piece_count, sizeof *from->pieces);
        memcpy(action.pieces, from->pieces, from->piece_count * sizeof *from->pieces);
    }
    if (action.program) action.program->refs++;
    return action;
}

static gr_cu_result instantiate(gr_cu_graph_exec *out, gr_cu_graph graph) {
    if (!out || !graph_is_live(graph) || graph->capture) return GR_CU_INVALID_VALUE;
    struct gr_sim_program *program = gr_sim_zeroed(1, sizeof *program);
    program->refs = 1;
    program->actions = gr_sim_zeroed(graph->count, sizeof *program->actions);
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i]->action.kind != GR_SIM_EMPTY)
            program->actions[program->count++] = copy_action(&graph->nodes[i]->action);
    gr_cu_graph_exec exec = gr_sim_slots_take(&gr_sim.execs);
    exec->program = program;
    *out = exec;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuGraphInstantiateWithFlags(gr_cu_graph_exec *out, gr_cu_graph graph,
                                                unsigned long long flags) {
    (void)flags;
    GR_SIM_ENTRY(instantiate(out, graph));
}

static bool exec_is_live(gr_cu_graph_exec exec) {
    if (exec && !gr_sim_slots_live(&gr_sim.execs, exec))
        gr_sim_report(GRANARY_SIM_MISUSE, "executable graph %p is destroyed", (void *)exec);
    return gr_sim_slots_live(&gr_sim.execs, exec);
}

static gr_cu_result launch(gr_cu_graph_exec exec, gr_cu_stream handle) {
    struct CUstream_st *stream;
    if (!exec_is_live(exec)) return GR_CU_INVALID_VALUE;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    struct gr_sim_action action = {.kind = GR_SIM_LAUNCH, .program = exec->program, .tag = "graph launch"};
    exec->program->refs++;
    return gr_sim_stream_submit(stream, &action);
}
gr_cu_result gr_sim_cuGraphLaunch(gr_cu_graph_exec exec, gr_cu_stream stream) {
    GR_SIM_ENTRY(launch(exec, stream));
}

/* Launches that are pending keep the program. */
static gr_cu_result exec_destroy(gr_cu_graph_exec exec) {
    if (!exec_is_live(exec)) return GR_CU_INVALID_VALUE;
    gr_cu_result code = gr_sim_unsafe();
    if (code != GR_CU_SUCCESS) return code;
    gr_sim_program_put(exec->program);
    gr_sim_slots_put(&gr_sim.execs, exec);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuGraphExecDestroy(gr_cu_graph_exec exec) {
    GR_SIM_ENTRY(exec_destroy(exec));
}
