/* SPDX-License-Identifier: Apache-2.0
 * Captures: markers of freed blocks, and which blocks a stream may have again. */
#include "stream/capture.h"

#include <string.h>

#include "base/host.h"

void gr_capture_ask(struct gr_driver *driver, gr_cu_stream stream, struct gr_capture_info *out) {
    int status = GR_CU_CAPTURE_NONE;
    *out = (struct gr_capture_info){0};
    gr_cu_result code = GR_DRIVE(driver, cuStreamGetCaptureInfo, stream, &status, &out->id, &out->graph,
                                 &out->nodes, &out->edges, &out->count);
    out->active = code == GR_CU_SUCCESS && status == GR_CU_CAPTURE_ACTIVE;
}

struct gr_capture *gr_capture_of(struct gr_list *captures, struct gr_driver *driver,
                                 const struct gr_capture_info *info) {
    if (!info->active) return NULL;
    GR_LIST_FOR(link, captures) {
        struct gr_capture *capture = GR_CONTAINER(link, struct gr_capture, link);
        if (capture->id == info->id) return capture;
    }
    GR_LIST_FOR(link, captures) {
        struct gr_capture *capture = GR_CONTAINER(link, struct gr_capture, link);
        struct gr_capture_info origin;
        if (capture->id || !gr_stream_ours(capture->origin)) continue;
        gr_capture_ask(driver, capture->origin->handle, &origin);
        if (origin.active && origin.id == info->id) {
            capture->id = info->id;
            return capture;
        }
    }
    return NULL;
}

static struct gr_capture_stream *stream_of(struct gr_capture *capture, struct gr_stream *stream) {
    struct gr_capture_stream *cs = capture->streams;
    while (cs && cs->stream != stream) cs = cs->next;
    if (cs) return cs;
    cs = gr_host_take(1, sizeof(*cs), 8);
    if (!cs) return NULL;
    cs->stream = stream;
    cs->next = capture->streams;
    capture->streams = cs;
    return cs;
}

/* Brings the stream's reach up to date. False: it is not in the capture, or nothing can be said. */
static bool look(struct gr_capture *capture, struct gr_driver *driver, struct gr_stream *stream,
                 struct gr_capture_info *info, struct gr_capture_stream **out) {
    if (!gr_stream_ours(stream)) return false;
    gr_capture_ask(driver, stream->handle, info);
    if (!info->active || info->id != capture->id) return false;
    *out = stream_of(capture, stream);
    return *out &&
           gr_reach_update(&(*out)->reach, driver, info->nodes, info->edges, info->count) == GRANARY_OK;
}

/* ---- marking ------------------------------------------------------------------------------ */

struct markers { /* gathered at a free */
    gr_cu_node *node;
    size_t count, room;
};

static bool add_marker(struct markers *markers, gr_cu_node node) {
    for (size_t i = 0; i < markers->count; i++)
        if (markers->node[i] == node) return true;
    if (markers->count == markers->room) {
        size_t room = markers->room ? markers->room * 2 : 8;
        gr_cu_node *fresh = gr_host_take(room, sizeof(gr_cu_node), 8);
        if (!fresh) return false;
        if (markers->count) memcpy(fresh, markers->node, markers->count * sizeof(gr_cu_node));
        gr_host_give(markers->node);
        markers->node = fresh;
        markers->room = room;
    }
    markers->node[markers->count++] = node;
    return true;
}

/* No terminals: safe only if nothing was captured at all, else an earlier use may hide. */
static bool graph_is_empty(struct gr_driver *driver, gr_cu_graph graph) {
    size_t count = 0;
    return GR_DRIVE(driver, cuGraphGetNodes, graph, NULL, &count) == GR_CU_SUCCESS && count == 0;
}

/* An empty node behind the stream's terminals and `joined`, which becomes its terminal. */
static bool put_empty_node(struct gr_driver *driver, struct gr_stream *stream,
                           const struct gr_capture_info *info, struct gr_capture_stream *cs,
                           const struct markers *joined, gr_cu_node *out) {
    struct markers behind = {0};
    bool good = true;
    for (size_t i = 0; i < info->count && good; i++) good = add_marker(&behind, info->nodes[i]);
    for (size_t i = 0; i < joined->count && good; i++) good = add_marker(&behind, joined->node[i]);
    int status = !good ? GRANARY_HOST_MEMORY
                       : gr_driver_status(driver, GR_ENTRY_cuGraphAddEmptyNode,
                                          GR_DRIVE(driver, cuGraphAddEmptyNode, out, info->graph, behind.node,
                                                   behind.count));
    gr_host_give(behind.node);
    if (status == GRANARY_OK)
        status = gr_driver_status(driver, GR_ENTRY_cuStreamUpdateCaptureDependencies,
                                  GR_DRIVE(driver, cuStreamUpdateCaptureDependencies, stream->handle, out,
                                           NULL, 1, GR_CU_DEPENDENCIES_SET));
    return status == GRANARY_OK && gr_reach_update(&cs->reach, driver, out, NULL, 1) == GRANARY_OK;
}

/* What the markers of one free are made from. */
struct marking {
    struct gr_capture *capture;
    struct gr_driver *driver;
    struct gr_stream *owner;
    bool empty_nodes;
    struct markers markers;
    struct markers joined; /* empty nodes on streams whose work the owner comes after already */
};

static bool reached_by_owner(const struct marking *m, const struct gr_capture_info *info) {
    const struct gr_capture_stream *cs = stream_of(m->capture, m->owner);
    for (size_t i = 0; cs && i < info->count; i++)
        if (!gr_reach_has(&cs->reach, info->nodes[i])) return false;
    return cs != NULL;
}

/* Where the stream's uses stand now. False: it cannot be said. */
static bool mark_stream(struct marking *m, struct gr_stream *stream) {
    struct gr_capture_info info;
    struct gr_capture_stream *cs;
    if (!look(m->capture, m->driver, stream, &info, &cs) || cs->reach.broken) return false;
    if (info.count == 0) return graph_is_empty(m->driver, info.graph);
    for (size_t i = 0; i < info.count; i++)
        if (!gr_reach_full_edge(info.edges ? &info.edges[i] : NULL)) return false;
    if (m->empty_nodes) {
        /* A stream that has been joined into the owner must stay so, or the capture could not end:
         * its new node goes before the owner's. */
        bool joined = stream != m->owner && reached_by_owner(m, &info);
        const struct markers none = {0};
        gr_cu_node node;
        if (!put_empty_node(m->driver, stream, &info, cs, stream == m->owner ? &m->joined : &none, &node))
            return false;
        return add_marker(&m->markers, node) && (!joined || add_marker(&m->joined, node));
    }
    for (size_t i = 0; i < info.count; i++)
        if (!add_marker(&m->markers, info.nodes[i])) return false;
    return true;
}

/* The using streams first, the owner last. */
static bool mark_all(struct marking *m, const struct gr_block *block) {
    struct gr_capture_info info;
    struct gr_capture_stream *cs;
    if (!look(m->capture, m->driver, m->owner, &info, &cs)) return false;
    for (const struct gr_use *use = block->u.live.uses; use; use = use->next) {
        if (use->capture != m->capture->number) return false; /* it began before, outside of the graph */
        if (use->stream != m->owner && !mark_stream(m, use->stream)) return false;
    }
    return mark_stream(m, m->owner);
}

bool gr_capture_mark(struct gr_capture *capture, struct gr_driver *driver, struct gr_block *block,
                     struct gr_stream *owner, const void *kin, bool empty_nodes) {
    struct marking m = {.capture = capture, .driver = driver, .owner = owner, .empty_nodes = empty_nodes};
    struct gr_marked *marked = NULL;
    bool proved = mark_all(&m, block);
    const struct markers markers = m.markers;
    if (proved) marked = gr_host_take(1, sizeof(*marked) + markers.count * sizeof(gr_cu_node), 8);
    if (marked) {
        memcpy(marked->node, markers.node ? markers.node : marked->node, markers.count * sizeof(gr_cu_node));
        marked->watch = (struct gr_watch){.count = markers.count, .node = marked->node};
        marked->block = block;
        marked->owner = owner;
        marked->kin = kin;
        struct gr_capture_stream *cs = stream_of(capture, owner);
        if (cs && gr_reach_watch(&cs->reach, &marked->watch)) {
            gr_list_append(&capture->marked, &marked->link);
        } else {
            gr_host_give(marked);
            marked = NULL;
        }
    }
    gr_host_give(m.markers.node);
    gr_host_give(m.joined.node);
    if (!marked) {
        block->u.live.parked = capture->unproved;
        capture->unproved = block;
    }
    return marked != NULL;
}

/* ---- reusing ------------------------------------------------------------------------------ */

static struct gr_block *unmark(struct gr_marked *marked) {
    struct gr_block *block = marked->block;
    gr_list_remove(&marked->link);
    gr_host_give(marked);
    return block;
}

struct gr_block *gr_capture_reached(struct gr_capture *capture, struct gr_driver *driver,
                                    struct gr_stream *stream) {
    struct gr_capture_info info;
    struct gr_capture_stream *cs;
    struct gr_block *reached = NULL;
    if (gr_list_empty(&capture->marked)) return NULL;
    if (!look(capture, driver, stream, &info, &cs) || info.count == 0) return NULL;
    while (cs->reach.ready) {
        struct gr_watch *watch = cs->reach.ready;
        cs->reach.ready = watch->next;
        struct gr_block *block = unmark(GR_CONTAINER(watch, struct gr_marked, watch));
        block->u.live.parked = reached;
        reached = block;
    }
    return reached;
}

static bool all_reached(const struct gr_capture *capture, const struct gr_marked *marked) {
    for (const struct gr_capture_stream *cs = capture->streams; cs; cs = cs->next)
        for (size_t i = 0; i < marked->watch.count; i++)
            if (!gr_reach_has(&cs->reach, marked->node[i])) return false;
    return true;
}

/* Takes a watch out of whatever it hangs in. */
static void unwatch(struct gr_capture *capture, struct gr_marked *marked) {
    struct gr_reach *reach = &stream_of(capture, marked->owner)->reach;
    struct gr_watch **from = gr_reach_list_of(reach, &marked->watch);
    while (*from && *from != &marked->watch) from = &(*from)->next;
    if (*from) *from = marked->watch.next;
}

struct gr_block *gr_capture_shared(struct gr_capture *capture, struct gr_driver *driver,
                                   struct gr_stream *stream, const void *kin, size_t size) {
    struct gr_capture_info info;
    struct gr_capture_stream *cs;
    struct gr_marked *best = NULL;
    if (gr_list_empty(&capture->marked)) return NULL;
    if (!look(capture, driver, stream, &info, &cs) || info.count == 0) return NULL;
    for (cs = capture->streams; cs; cs = cs->next) {
        struct gr_capture_stream *same;
        if (cs->stream != stream && (!look(capture, driver, cs->stream, &info, &same) || info.count == 0))
            return NULL;
    }
    GR_LIST_FOR(link, &capture->marked) {
        struct gr_marked *marked = GR_CONTAINER(link, struct gr_marked, link);
        if (marked->kin != kin || marked->block->size < size) continue;
        if (best && best->block->size <= marked->block->size) continue;
        if (all_reached(capture, marked)) best = marked;
    }
    if (!best) return NULL;
    unwatch(capture, best);
    return unmark(best);
}

struct gr_block *gr_capture_close(struct gr_capture *capture) {
    struct gr_block *blocks = capture->unproved;
    capture->unproved = NULL;
    while (!gr_list_empty(&capture->marked)) {
        struct gr_block *block = unmark(GR_CONTAINER(capture->marked.next, struct gr_marked, link));
        block->u.live.parked = blocks;
        blocks = block;
    }
    for (struct gr_capture_stream *cs = capture->streams, *next; cs; cs = next) {
        next = cs->next;
        gr_reach_fini(&cs->reach);
        gr_host_give(cs);
    }
    capture->streams = NULL;
    return blocks;
}
