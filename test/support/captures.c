/* SPDX-License-Identifier: Apache-2.0
 * What tests of captures stand on. */
#include "support/captures.h"

granary *g;
struct gr_table cu;

static fixture_change *wanted;
static gr_cu_event link_event;
static granary_stream streams[64];
static gr_cu_graph graphs[1024];
static size_t stream_count, graph_count;

static void change(struct granary_sim_config *sim, struct granary_options *options) {
    sim->strict = 0;
    sim->backing = GRANARY_SIM_ACCOUNTING;
    if (wanted) wanted(sim, options);
}

void captures_open(fixture_change *more) {
    wanted = more;
    g = fixture_open(change);
    stream_count = graph_count = 0;
    gr_sim_table(&cu);
    RAN(cu.cuCtxPushCurrent(g->driver.context));
    RAN(cu.cuEventCreate(&link_event, GR_CU_EVENT_DISABLE_TIMING));
}

void captures_close(void) {
    granary_sim_run_all();
    RAN(cu.cuEventDestroy(link_event));
    for (size_t i = 0; i < graph_count; i++) RAN(cu.cuGraphDestroy(graphs[i]));
    for (size_t i = 0; i < stream_count; i++) RAN(cu.cuStreamDestroy(streams[i]));
    RAN(cu.cuCtxPopCurrent(NULL));
    fixture_close_handle(g);
    fixture_close_sim();
}

granary_stream captures_stream(void) {
    ck_assert_uint_lt(stream_count, GR_COUNT(streams));
    return streams[stream_count++] = fixture_stream(g);
}

granary_pool captures_pool(void) {
    granary_pool pool;
    RAN(granary_pool_create(g, NULL, &pool));
    return pool;
}

void captures_use(granary_stream stream, void *ptr, size_t size, uint64_t id) {
    RAN(granary_sim_use(stream, ptr, size, 1, id, "test"));
}

void captures_link(granary_stream from, granary_stream to) {
    RAN(cu.cuEventRecord(link_event, from));
    RAN(cu.cuStreamWaitEvent(to, link_event, 0));
}

uint64_t captures_forbidden(void) {
    static const enum gr_entry entries[] = {GR_ENTRY_cuEventQuery,     GR_ENTRY_cuEventSynchronize,
                                            GR_ENTRY_cuStreamQuery,    GR_ENTRY_cuStreamSynchronize,
                                            GR_ENTRY_cuCtxSynchronize, GR_ENTRY_cuStreamGetId,
                                            GR_ENTRY_cuMemUnmap,       GR_ENTRY_cuMemFree};
    uint64_t count = 0;
    for (size_t i = 0; i < GR_COUNT(entries); i++) count += gr_tap_count(&g->driver.tap, entries[i]);
    return count;
}

struct capture captures_begin(granary_pool pool, granary_stream origin, int mode) {
    struct capture capture = {.origin = origin};
    RAN(granary_capture_begin(g, pool, origin, &capture.name));
    RAN(cu.cuStreamBeginCapture(origin, mode));
    capture.before = captures_forbidden();
    return capture;
}

void captures_is_valid(const struct capture *capture) {
    int status = 0;
    RAN(cu.cuStreamIsCapturing(capture->origin, &status));
    ck_assert_int_eq(status, GR_CU_CAPTURE_ACTIVE);
}

gr_cu_graph captures_end_driver(struct capture *capture, gr_cu_result code) {
    gr_cu_graph graph = NULL;
    ck_assert_uint_eq(captures_forbidden(), capture->before);
    ck_assert_int_eq(cu.cuStreamEndCapture(capture->origin, &graph), code);
    ck_assert_uint_lt(graph_count, GR_COUNT(graphs));
    if (graph) graphs[graph_count++] = graph;
    return graph;
}

void captures_end_handle(struct capture *capture) {
    ck_assert_uint_eq(captures_forbidden(), capture->before);
    RAN(granary_capture_end(g, capture->name));
}

gr_cu_graph captures_end(struct capture *capture, gr_cu_result code) {
    gr_cu_graph graph = captures_end_driver(capture, code);
    captures_end_handle(capture);
    return graph;
}

struct granary_pool_stats captures_stats(granary_pool pool) {
    struct granary_pool_stats stats = {.struct_size = sizeof stats};
    RAN(granary_pool_get_stats(g, pool, &stats));
    return stats;
}

size_t captures_reserved(granary_pool pool) {
    return (size_t)captures_stats(pool).reserved_bytes;
}

int64_t captures_pending(granary_pool pool) {
    return captures_stats(pool).pending_blocks;
}
