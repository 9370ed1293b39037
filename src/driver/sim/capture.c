/* SPDX-License-Identifier: Apache-2.0
 * Stream capture: the state machine, what it prohibits, and who may look.
 *
 *      NONE ── begin ──> ACTIVE ── a prohibited or conflicting call ──> INVALIDATED
 *        ^                 │                                                │
 *        └───── end ───────┴──────────────────── end (901) ─────────────────┘
 *
 * An end on a member that is not the origin (903) is a conflicting call. An end on the origin ends,
 * whatever it answers: 904 with a fork that has not joined back, 908 from a foreign thread.
 *
 * A capture is its origin stream and every stream that waited on one of its events. Each member has
 * terminals: the nodes that its next piece of work will depend on. A member other than the origin
 * has joined back when each of its terminals was once a terminal of the origin, or lies behind one:
 * the driver was seen to accept that even after the origin's set was emptied.
 *
 * At invalidation the graph dies at once, so that whoever still looks at its nodes is found out. */
#include <stdlib.h>
#include <string.h>

#include "driver/sim/internal.h"

/* ---- what a capture prohibits ------------------------------------------------------------- */

struct gr_sim_capture *gr_sim_capture_find(unsigned long long id) {
    for (struct gr_sim_capture *c = gr_sim.captures; c; c = c->next)
        if (c->id == id) return c;
    return NULL;
}

void gr_sim_invalidate(struct gr_sim_capture *capture) {
    if (!capture->valid) return;
    capture->valid = false;
    gr_sim_graph_end(capture->graph);
    capture->graph = NULL;
    for (struct CUstream_st *s = capture->members; s; s = s->next_member) s->terminals.count = 0;
}

static bool prohibits(const struct gr_sim_capture *capture, const struct gr_sim_thread *thread) {
    if (!capture->valid || capture->mode == GR_CU_CAPTURE_MODE_RELAXED) return false;
    if (thread->capture_mode == GR_CU_CAPTURE_MODE_RELAXED) return false;
    if (capture->thread == thread->name) return true;
    return thread->capture_mode == GR_CU_CAPTURE_MODE_GLOBAL && capture->mode == GR_CU_CAPTURE_MODE_GLOBAL;
}

gr_cu_result gr_sim_unsafe(void) {
    gr_cu_result code = GR_CU_SUCCESS;
    for (struct gr_sim_capture *c = gr_sim.captures; c; c = c->next) {
        if (!prohibits(c, gr_sim_thread())) continue;
        gr_sim_invalidate(c);
        code = GR_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    return code;
}

gr_cu_result gr_sim_conflicts(int device) {
    gr_cu_result code = GR_CU_SUCCESS;
    for (struct gr_sim_capture *c = gr_sim.captures; c; c = c->next) {
        if (!c->valid || (device >= 0 && c->origin->queue->device != device)) continue;
        gr_sim_invalidate(c);
        code = GR_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    return code;
}

struct gr_sim_capture *gr_sim_blocking_capture(int device) {
    for (struct gr_sim_capture *c = gr_sim.captures; c; c = c->next)
        for (const struct CUstream_st *s = c->members; c->valid && s; s = s->next_member)
            if (s->queue->device == device && s->queue->blocking) return c;
    return NULL;
}

/* ---- members and terminals ---------------------------------------------------------------- */

void gr_sim_stream_spoil(struct CUstream_st *stream) {
    struct gr_sim_terminals *shown = &stream->shown;
    if (shown->count == 0) return;
    memset(shown->nodes, 0xa5, shown->count * sizeof *shown->nodes);
    memset(shown->edges, 0xa5, shown->count * sizeof *shown->edges);
    shown->count = 0;
}

/* Marks the node and all behind it; each node is marked once in the life of its capture. */
static void reach(gr_cu_node first) {
    size_t count = 0, room = 16;
    if (first->reached) return;
    gr_cu_node *stack = gr_sim_zeroed(room, sizeof *stack);
    first->reached = true;
    stack[count++] = first;
    while (count > 0) {
        const struct gr_sim_terminals *behind = &stack[--count]->dependencies;
        for (size_t i = 0; i < behind->count; i++) {
            if (behind->nodes[i]->reached) continue;
            behind->nodes[i]->reached = true;
            if (count == room) stack = gr_sim_grow(stack, room *= 2, sizeof *stack);
            stack[count++] = behind->nodes[i];
        }
    }
    free(stack);
}

static void add_terminal(struct CUstream_st *stream, gr_cu_node node, struct gr_cu_edge edge) {
    gr_sim_terminals_add(&stream->terminals, node, edge);
    if (stream == stream->capture->origin) reach(node);
}

static void join(struct CUstream_st *stream, struct gr_sim_capture *capture) {
    stream->capture = capture;
    stream->terminals.count = 0;
    stream->next_member = capture->members;
    capture->members = stream;
}

static bool is_joined_back(const struct CUstream_st *stream) {
    for (size_t i = 0; i < stream->terminals.count; i++)
        if (!stream->terminals.nodes[i]->reached) return false;
    return true;
}

static void finish(struct gr_sim_capture *capture) {
    struct gr_sim_capture **link = &gr_sim.captures;
    struct CUstream_st *next;
    for (struct CUstream_st *s = capture->members; s; s = next) {
        next = s->next_member;
        s->capture = NULL;
        s->next_member = NULL;
        s->terminals.count = 0;
    }
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    free(capture);
}

void gr_sim_capture_leave(struct CUstream_st *stream) {
    struct gr_sim_capture *capture = stream->capture;
    if (!capture) return;
    if (stream == capture->origin || !is_joined_back(stream)) gr_sim_invalidate(capture);
    if (stream == capture->origin) {
        finish(capture);
        return;
    }
    struct CUstream_st **link = &capture->members;
    while (*link != stream) link = &(*link)->next_member;
    *link = stream->next_member;
    stream->capture = NULL;
}

/* ---- work, records and waits of a member -------------------------------------------------- */

gr_cu_result gr_sim_capture_action(struct CUstream_st *stream, struct gr_sim_action *action) {
    static const struct gr_cu_edge plain;
    struct gr_sim_capture *capture = stream->capture;
    if (!capture->valid) {
        gr_sim_action_fini(action);
        return GR_CU_STREAM_CAPTURE_INVALIDATED;
    }
    gr_cu_node node = gr_sim_node_make(capture->graph, &stream->terminals);
    node->action = *action;
    stream->terminals.count = 0;
    add_terminal(stream, node, plain);
    return GR_CU_SUCCESS;
}

gr_cu_result gr_sim_capture_record(struct CUstream_st *stream, struct CUevent_st *event) {
    if (!stream->capture->valid) return GR_CU_STREAM_CAPTURE_INVALIDATED;
    event->queue = NULL;
    event->capture_id = stream->capture->id;
    gr_sim_terminals_copy(&event->terminals, &stream->terminals);
    return GR_CU_SUCCESS;
}

gr_cu_result gr_sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event) {
    struct gr_sim_capture *own = stream->capture, *other = NULL;
    if (own && !own->valid) return GR_CU_STREAM_CAPTURE_INVALIDATED;
    if (event->capture_id == 0) {
        gr_sim_invalidate(own);
        return GR_CU_STREAM_CAPTURE_ISOLATION;
    }
    other = gr_sim_capture_find(event->capture_id);
    if (!other || !other->valid) return GR_CU_INVALID_VALUE;
    if (own && own != other) {
        gr_sim_invalidate(own);
        gr_sim_invalidate(other);
        return GR_CU_STREAM_CAPTURE_MERGE;
    }
    if (!own && stream->queue->legacy) {
        gr_sim_invalidate(other);
        return GR_CU_STREAM_CAPTURE_IMPLICIT;
    }
    if (!own) join(stream, other);
    for (size_t i = 0; i < event->terminals.count; i++)
        add_terminal(stream, event->terminals.nodes[i], event->terminals.edges[i]);
    return GR_CU_SUCCESS;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static gr_cu_result begin_capture(gr_cu_stream handle, int mode) {
    struct CUstream_st *stream;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    if (mode < GR_CU_CAPTURE_MODE_GLOBAL || mode > GR_CU_CAPTURE_MODE_RELAXED) return GR_CU_INVALID_VALUE;
    if (stream->queue->legacy) return GR_CU_STREAM_CAPTURE_UNSUPPORTED;
    gr_sim_stream_spoil(stream);
    if (stream->context->sticky) return stream->context->sticky;
    if (stream->capture) return GR_CU_ILLEGAL_STATE;
    struct gr_sim_capture *capture = gr_sim_zeroed(1, sizeof *capture);
    capture->id = gr_sim.next_capture_id++;
    capture->mode = mode;
    capture->thread = gr_sim_thread()->name;
    capture->valid = true;
    capture->origin = stream;
    capture->graph = gr_sim_graph_make(capture);
    capture->next = gr_sim.captures;
    gr_sim.captures = capture;
    join(stream, capture);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamBeginCapture(gr_cu_stream stream, int mode) {
    GR_SIM_ENTRY(begin_capture(stream, mode));
}

/* What the end on the origin answers; an unjoined fork goes before a foreign thread. */
static gr_cu_result how_it_ends(const struct gr_sim_capture *capture) {
    if (!capture->valid) return GR_CU_STREAM_CAPTURE_INVALIDATED;
    for (const struct CUstream_st *s = capture->members; s; s = s->next_member)
        if (s != capture->origin && !is_joined_back(s)) return GR_CU_STREAM_CAPTURE_UNJOINED;
    if (capture->mode != GR_CU_CAPTURE_MODE_RELAXED && capture->thread != gr_sim_thread()->name)
        return GR_CU_STREAM_CAPTURE_WRONG_THREAD;
    return GR_CU_SUCCESS;
}

static gr_cu_result end_capture(gr_cu_stream handle, gr_cu_graph *out) {
    struct CUstream_st *stream;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    if (!out) return GR_CU_INVALID_VALUE;
    struct gr_sim_capture *capture = stream->capture;
    gr_sim_stream_spoil(stream);
    if (!capture) return GR_CU_ILLEGAL_STATE;
    if (capture->origin != stream) {
        gr_sim_invalidate(capture);
        return GR_CU_STREAM_CAPTURE_UNMATCHED;
    }
    code = how_it_ends(capture);
    if (code != GR_CU_SUCCESS) gr_sim_invalidate(capture);
    *out = capture->graph;
    finish(capture);
    if (*out) {
        (*out)->capture = NULL;
        gr_sim_oracle_graph(*out);
    }
    return code;
}
gr_cu_result gr_sim_cuStreamEndCapture(gr_cu_stream stream, gr_cu_graph *out) {
    GR_SIM_ENTRY(end_capture(stream, out));
}

/* ---- looking ------------------------------------------------------------------------------ */

/* The capture status of a stream; 906, which harms nothing, for the legacy stream while a blocking
 * stream captures. */
static gr_cu_result look(gr_cu_stream handle, struct CUstream_st **out, int *status) {
    gr_cu_result code = gr_sim_stream_find(handle, false, out);
    if (code != GR_CU_SUCCESS) return code;
    struct CUstream_st *stream = *out;
    gr_sim_stream_spoil(stream);
    if (stream->queue->legacy && gr_sim_blocking_capture(stream->queue->device))
        return GR_CU_STREAM_CAPTURE_IMPLICIT;
    *status = !stream->capture         ? GR_CU_CAPTURE_NONE
              : stream->capture->valid ? GR_CU_CAPTURE_ACTIVE
                                       : GR_CU_CAPTURE_INVALIDATED;
    return GR_CU_SUCCESS;
}

static gr_cu_result is_capturing(gr_cu_stream handle, int *out) {
    struct CUstream_st *stream;
    return out ? look(handle, &stream, out) : GR_CU_INVALID_VALUE;
}
gr_cu_result gr_sim_cuStreamIsCapturing(gr_cu_stream stream, int *out) {
    GR_SIM_ENTRY(is_capturing(stream, out));
}

static bool is_plain(struct gr_cu_edge edge) {
    return edge.type == GR_CU_EDGE_DEFAULT && edge.from_port == 0 && edge.to_port == 0;
}

/* Outputs other than the status are untouched unless the stream is capturing. */
static gr_cu_result capture_info(gr_cu_stream handle, int *status, unsigned long long *id, gr_cu_graph *graph,
                                 const gr_cu_node **nodes, const struct gr_cu_edge **edges, size_t *count) {
    struct CUstream_st *stream;
    if (!status || (edges && !nodes)) return GR_CU_INVALID_VALUE;
    gr_cu_result code = look(handle, &stream, status);
    if (code != GR_CU_SUCCESS || *status != GR_CU_CAPTURE_ACTIVE) return code;
    const struct gr_sim_terminals *terminals = &stream->terminals;
    for (size_t i = 0; nodes && !edges && i < terminals->count; i++)
        if (!is_plain(terminals->edges[i])) return GR_CU_LOSSY_QUERY;
    if (id) *id = stream->capture->id;
    if (graph) *graph = stream->capture->graph;
    if (nodes) gr_sim_terminals_copy(&stream->shown, terminals);
    if (nodes) *nodes = stream->shown.nodes;
    if (edges) *edges = stream->shown.edges;
    if (count) *count = terminals->count;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamGetCaptureInfo(gr_cu_stream stream, int *status, unsigned long long *id,
                                           gr_cu_graph *graph, const gr_cu_node **nodes,
                                           const struct gr_cu_edge **edges, size_t *count) {
    GR_SIM_ENTRY(capture_info(stream, status, id, graph, nodes, edges, count));
}

/* The real driver was seen to take 7. What is no mode serves as THREAD_LOCAL here, which nobody measured. */
static gr_cu_result exchange_mode(int *mode) {
    struct gr_sim_thread *thread = gr_sim_thread();
    if (!mode) return GR_CU_INVALID_VALUE;
    if (*mode < GR_CU_CAPTURE_MODE_GLOBAL || *mode > GR_CU_CAPTURE_MODE_RELAXED)
        gr_sim_report(GRANARY_SIM_MISUSE, "%d is no capture mode", *mode);
    int old = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = old;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuThreadExchangeStreamCaptureMode(int *mode) {
    GR_SIM_ENTRY(exchange_mode(mode));
}

static gr_cu_result update_dependencies(gr_cu_stream handle, gr_cu_node *nodes,
                                        const struct gr_cu_edge *edges, size_t count, unsigned flags) {
    static const struct gr_cu_edge plain;
    struct CUstream_st *stream;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    if (!stream->capture) return GR_CU_ILLEGAL_STATE;
    if (!stream->capture->valid) return GR_CU_STREAM_CAPTURE_INVALIDATED;
    if (flags > GR_CU_DEPENDENCIES_SET || (count && !nodes)) return GR_CU_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!gr_sim_slots_live(&gr_sim.nodes, nodes[i]) || nodes[i]->graph != stream->capture->graph)
            return GR_CU_INVALID_VALUE;
    if (flags == GR_CU_DEPENDENCIES_SET) stream->terminals.count = 0;
    for (size_t i = 0; i < count; i++) add_terminal(stream, nodes[i], edges ? edges[i] : plain);
    gr_sim_stream_spoil(stream);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamUpdateCaptureDependencies(gr_cu_stream stream, gr_cu_node *nodes,
                                                      const struct gr_cu_edge *edges, size_t count,
                                                      unsigned flags) {
    GR_SIM_ENTRY(update_dependencies(stream, nodes, edges, count, flags));
}
