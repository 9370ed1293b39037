/* SPDX-License-Identifier: Apache-2.0
 * Stream capture. */
#include "driver/sim/internal.h"
gr_cu_result gr_sim_unsafe(void) { return GR_CU_SUCCESS; }
void gr_sim_invalidate(struct gr_sim_capture *capture) { (void)capture; }
gr_cu_result gr_sim_conflicts(int device) { (void)device; return GR_CU_SUCCESS; }
struct gr_sim_capture *gr_sim_capture_find(unsigned long long id) { (void)id; return NULL; }
struct gr_sim_capture *gr_sim_blocking_capture(int device) { (void)device; return NULL; }
gr_cu_result gr_sim_capture_action(struct CUstream_st *stream, struct gr_sim_action *action) { (void)stream; (void)action; return GR_CU_ILLEGAL_STATE; }
gr_cu_result gr_sim_capture_record(struct CUstream_st *stream, struct CUevent_st *event) { (void)stream; (void)event; return GR_CU_ILLEGAL_STATE; }
gr_cu_result gr_sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event) { (void)stream; (void)event; return GR_CU_ILLEGAL_STATE; }
void gr_sim_stream_spoil(struct CUstream_st *stream) { (void)stream; }
void gr_sim_capture_leave(struct CUstream_st *stream) { (void)stream; }
gr_cu_result gr_sim_cuStreamIsCapturing(gr_cu_stream stream, int *out) { (void)stream; if (out) *out = 0; return GR_CU_SUCCESS; }
gr_cu_result gr_sim_cuStreamGetCaptureInfo(gr_cu_stream stream, int *status, unsigned long long *id, gr_cu_graph *graph, const gr_cu_node **nodes, const struct gr_cu_edge **edges, size_t *count) { (void)stream; (void)id; (void)graph; (void)nodes; (void)edges; (void)count; if (status) *status = 0; return GR_CU_SUCCESS; }
static gr_cu_result exchange(int *mode) { int old = gr_sim_thread()->capture_mode; gr_sim_thread()->capture_mode = *mode; *mode = old; return GR_CU_SUCCESS; }
gr_cu_result gr_sim_cuThreadExchangeStreamCaptureMode(int *mode) { GR_SIM_ENTRY(exchange(mode)); }
gr_cu_result gr_sim_cuStreamUpdateCaptureDependencies(gr_cu_stream stream, gr_cu_node *nodes, const struct gr_cu_edge *edges, size_t count, unsigned flags) { (void)stream; (void)nodes; (void)edges; (void)count; (void)flags; return GR_CU_ILLEGAL_STATE; }
gr_cu_result gr_sim_cuStreamBeginCapture(gr_cu_stream stream, int mode) { (void)stream; (void)mode; return GR_CU_NOT_SUPPORTED; }
gr_cu_result gr_sim_cuStreamEndCapture(gr_cu_stream stream, gr_cu_graph *out) { (void)stream; (void)out; return GR_CU_ILLEGAL_STATE; }
