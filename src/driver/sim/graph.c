/* SPDX-License-Identifier: Apache-2.0
 * Graphs: nodes, instantiation, launch. */
#include "driver/sim/internal.h"
gr_cu_result gr_sim_cuGraphNodeGetDependencies(gr_cu_node node, gr_cu_node *nodes, struct gr_cu_edge *edges, size_t *count) { (void)node; (void)nodes; (void)edges; (void)count; return GR_CU_INVALID_VALUE; }
gr_cu_result gr_sim_cuGraphAddEmptyNode(gr_cu_node *out, gr_cu_graph graph, const gr_cu_node *dependencies, size_t count) { (void)out; (void)graph; (void)dependencies; (void)count; return GR_CU_INVALID_VALUE; }
gr_cu_result gr_sim_cuGraphGetNodes(gr_cu_graph graph, gr_cu_node *nodes, size_t *count) { (void)graph; (void)nodes; (void)count; return GR_CU_INVALID_VALUE; }
gr_cu_result gr_sim_cuGraphInstantiate(gr_cu_graph_exec *out, gr_cu_graph graph, unsigned long long flags) { (void)out; (void)graph; (void)flags; return GR_CU_INVALID_VALUE; }
gr_cu_result gr_sim_cuGraphLaunch(gr_cu_graph_exec exec, gr_cu_stream stream) { (void)exec; (void)stream; return GR_CU_INVALID_VALUE; }
gr_cu_result gr_sim_cuGraphExecDestroy(gr_cu_graph_exec exec) { (void)exec; return GR_CU_INVALID_VALUE; }
gr_cu_result gr_sim_cuGraphDestroy(gr_cu_graph graph) { (void)graph; return GR_CU_INVALID_VALUE; }
