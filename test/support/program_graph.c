/* SPDX-License-Identifier: Apache-2.0
 * Random programs: captures, graphs and pools. */
#include <string.h>

#include "heap/heap.h"
#include "support/program.h"

#define CU(p, symbol, ...) program_cu(p, (p)->cu.symbol(__VA_ARGS__), #symbol)

/* ---- pools ------------------------------------------------------------------------------------ */

bool program_pool_make(struct program *p) {
    struct program_pool *pool = &p->pools[rng_below(&p->rng, PROGRAM_POOLS)];
    struct granary_pool_options options = {.struct_size = sizeof options};
    if (pool->pool) return true;
    options.no_split = rng_once_in(&p->rng, 8);
    options.use_on_shortage = rng_once_in(&p->rng, 3);
    *pool = (struct program_pool){.done = pool->done, .on_shortage = options.use_on_shortage};
    program_say(p, "a pool; no_split %d, on shortage %d", options.no_split, options.use_on_shortage);
    int status = granary_pool_create(p->g, &options, &pool->pool);
    return status == GRANARY_OK || program_fault(p, "pool_create: %s", granary_status_name(status));
}

/* Its blocks stay; the host has seen everything, so their past does not matter any more. */
bool program_pool_end(struct program *p, int place) {
    struct program_pool *pool = &p->pools[place];
    if (!pool->pool) return true;
    if (pool->scopes || pool->captures)
        return granary_pool_release(p->g, pool->pool) == GRANARY_BUSY ||
               program_fault(p, "a pool in use is released");
    if (!program_quiet(p)) return true;
    for (int i = 0; i < PROGRAM_GRAPHS; i++)
        if (p->graphs[i].graph && p->graphs[i].pool == place && !program_graph_end(p, i)) return false;
    if (pool->graphs && !program_sync(p)) return false;
    program_say(p, "release pool %d", place);
    int status = granary_pool_release(p->g, pool->pool);
    if (status != GRANARY_OK) return program_fault(p, "pool_release: %s", granary_status_name(status));
    if (granary_pool_release(p->g, pool->pool) != GRANARY_UNKNOWN_POOL)
        return program_fault(p, "a pool is released twice");
    for (int b = 0; b < PROGRAM_BLOCKS; b++) {
        if (!p->blocks[b].ptr || !p->blocks[b].capture || p->blocks[b].pool != place) continue;
        p->blocks[b].capture = 0;
        p->blocks[b].pool = -1;
        p->blocks[b].born = 0;
    }
    pool->pool = 0;
    pool->on_shortage = pool->graphs = false;
    return true;
}

/* ---- captures --------------------------------------------------------------------------------- */

bool program_capture_begin(struct program *p) {
    return program_capture_begin_on(p, program_pick_stream(p), (int)rng_below(&p->rng, PROGRAM_POOLS));
}

bool program_capture_begin_on(struct program *p, int s, int pool) {
    int place = 0;
    while (place < PROGRAM_CAPTURES && p->captures[place].phase != PROGRAM_NONE) place++;
    if (place == PROGRAM_CAPTURES || p->streams[s].capture >= 0 || !p->pools[pool].pool ||
        p->pools[pool].scopes)
        return true;
    struct program_capture *capture = &p->captures[place];
    granary_stream handle = p->streams[s].handle;
    int status = granary_capture_begin(p->g, p->pools[pool].pool, handle, &capture->capture);
    if (status != GRANARY_OK) return program_fault(p, "capture_begin: %s", granary_status_name(status));
    capture->phase = PROGRAM_RUNNING;
    capture->serial = ++p->serials;
    capture->pool = pool;
    capture->origin = s;
    p->pools[pool].captures++;
    p->pools[pool].graphs = true;
    p->tally.captures++;
    program_say(p, "capture %d begins on s%d in pool %d", place, s, pool);
    if (!CU(p, cuStreamBeginCapture, handle, (int)rng_below(&p->rng, 3))) return false;
    p->streams[s].capture = place;
    memset(&p->streams[s].captured, 0, sizeof p->streams[s].captured);
    p->streams[s].loose = false;
    return true;
}

static int pick_member(struct program *p, int capture) {
    int start = program_pick_stream(p);
    for (int i = 0; i < PROGRAM_STREAMS; i++)
        if (p->streams[(start + i) % PROGRAM_STREAMS].capture == capture)
            return (start + i) % PROGRAM_STREAMS;
    return p->captures[capture].origin;
}

/* The stream's terminals are replaced by an empty node behind them, as some libraries do. */
static bool replace_terminals(struct program *p, int s) {
    int status = 0;
    unsigned long long id;
    gr_cu_graph graph;
    const gr_cu_node *nodes;
    const struct gr_cu_edge *edges;
    gr_cu_node node;
    size_t count;
    granary_stream handle = p->streams[s].handle;
    if (!CU(p, cuStreamGetCaptureInfo, handle, &status, &id, &graph, &nodes, &edges, &count)) return false;
    for (size_t i = 0; i < count; i++) /* a plain dependency on each would say more than the edges do */
        if (edges[i].type != GR_CU_EDGE_DEFAULT) return true;
    return CU(p, cuGraphAddEmptyNode, &node, graph, nodes, count) &&
           CU(p, cuStreamUpdateCaptureDependencies, handle, &node, NULL, 1, GR_CU_DEPENDENCIES_SET);
}

/* What the stream did in the capture is not ordered before what it does next. A correct user counts on
 * nothing then: no order that the stream had, and no memory in its order. */
bool program_drop(struct program *p, int s, bool empty) {
    int status = 0;
    unsigned long long id;
    gr_cu_graph graph;
    const gr_cu_node *nodes;
    const struct gr_cu_edge *edges;
    struct gr_cu_edge programmatic[16];
    gr_cu_node kept[16];
    size_t count;
    granary_stream handle = p->streams[s].handle;
    if (s == p->captures[p->streams[s].capture].origin) return true;
    if (!CU(p, cuStreamGetCaptureInfo, handle, &status, &id, &graph, &nodes, &edges, &count)) return false;
    bool overtake = !empty && count <= 16 && rng_once_in(&p->rng, 2);
    for (size_t i = 0; i < count && overtake; i++) {
        kept[i] = nodes[i];
        programmatic[i] = (struct gr_cu_edge){.from_port = 1, .type = GR_CU_EDGE_PROGRAMMATIC};
    }
    program_say(p, "s%d %s", s, overtake ? "overtakes its own work" : "drops its terminals");
    if (!CU(p, cuStreamUpdateCaptureDependencies, handle, overtake ? kept : NULL,
            overtake ? programmatic : NULL, overtake ? count : 0, GR_CU_DEPENDENCIES_SET))
        return false;
    memset(&p->streams[s].captured, 0, sizeof p->streams[s].captured);
    p->streams[s].loose = true;
    for (int b = 0; b < PROGRAM_BLOCKS; b++) /* where they were allocated is not known any more */
        if (p->blocks[b].owner == s && p->blocks[b].capture == p->captures[p->streams[s].capture].serial)
            p->blocks[b].born = UINT32_MAX;
    if (empty || rng_once_in(&p->rng, 2)) return true;
    return program_cu(p, granary_sim_use(handle, &p->seed, 0, 0, 0, "node of no memory"), "kernel");
}

/* Waiting for an event from outside breaks a capture. */
static bool break_capture(struct program *p, struct program_capture *capture) {
    int s = program_pick_stream(p);
    if (p->streams[s].capture >= 0) return true;
    if (!CU(p, cuEventRecord, p->scratch, p->streams[s].handle)) return false;
    gr_cu_result code = p->cu.cuStreamWaitEvent(p->streams[capture->origin].handle, p->scratch, 0);
    if (code != GR_CU_STREAM_CAPTURE_ISOLATION)
        return program_fault(p, "breaking a capture answered %d", code);
    capture->phase = PROGRAM_BROKEN;
    program_say(p, "a capture breaks");
    p->tally.broken++;
    return true;
}

bool program_capture_step(struct program *p) {
    int c = (int)rng_below(&p->rng, PROGRAM_CAPTURES);
    struct program_capture *capture = &p->captures[c];
    if (capture->phase != PROGRAM_RUNNING) return true;
    int s = pick_member(p, c), other = program_pick_stream(p);
    switch (rng_below(&p->rng, 16)) {
    case 0: return break_capture(p, capture);
    case 1:
        return granary_capture_end(p->g, capture->capture) == GRANARY_BUSY ||
               program_fault(p, "a capture ends that still runs");
    case 2:
    case 3: return replace_terminals(p, s);
    case 4:
    case 5:
    case 6:
    case 7:
        return p->streams[other].capture >= 0 && p->streams[other].capture != c ? true
                                                                                : program_link(p, s, other);
    default: return program_link(p, s, capture->origin);
    }
}

static int place_for_graph(const struct program *p) {
    int place = 0;
    while (place < PROGRAM_GRAPHS && p->graphs[place].graph) place++;
    return place;
}

/* Blocks that the capture's nodes use are from now on used by the graph; or by nobody. */
static void hand_pins_on(struct program *p, int capture, int graph) {
    for (int b = 0; b < PROGRAM_BLOCKS; b++) {
        if (!(p->blocks[b].pins >> (16 + capture) & 1)) continue;
        p->blocks[b].pins &= ~(1u << (16 + capture));
        if (graph >= 0) p->blocks[b].pins |= 1u << graph;
    }
}

static bool end_in_driver(struct program *p, int c) {
    struct program_capture *capture = &p->captures[c];
    bool join = capture->phase == PROGRAM_RUNNING && !rng_once_in(&p->rng, 16);
    int place = place_for_graph(p), kept = -1;
    gr_cu_graph graph = NULL;
    for (int s = 0; s < PROGRAM_STREAMS && join; s++)
        if (p->streams[s].capture == c && !program_link(p, s, capture->origin)) return false;
    gr_cu_result code = p->cu.cuStreamEndCapture(p->streams[capture->origin].handle, &graph);
    if (join && code != GR_CU_SUCCESS) return program_fault(p, "cuStreamEndCapture answered %d", code);
    if (graph && place < PROGRAM_GRAPHS) {
        p->graphs[place] =
            (struct program_graph){.graph = graph, .serial = capture->serial, .pool = capture->pool};
        if (!CU(p, cuGraphInstantiateWithFlags, &p->graphs[place].exec, graph, 0)) return false;
        kept = place;
    } else if (graph && !CU(p, cuGraphDestroy, graph)) {
        return false;
    }
    hand_pins_on(p, c, kept);
    for (int s = 0; s < PROGRAM_STREAMS; s++)
        if (p->streams[s].capture == c) p->streams[s].capture = -1;
    for (int e = 0; e < PROGRAM_EVENTS; e++)
        if (p->events[e].capture == c) p->events[e].recorded = false;
    capture->phase = PROGRAM_ENDED;
    program_say(p, "capture %d ends in the driver: %d, graph %d", c, code, kept);
    return true;
}

/* One of the two ends: that in the driver, then ours. */
bool program_capture_close(struct program *p, int c) {
    struct program_capture *capture = &p->captures[c];
    if (capture->phase != PROGRAM_ENDED) {
        if (!end_in_driver(p, c)) return false;
        if (rng_once_in(&p->rng, 2)) return true; /* something may come between */
    }
    capture->phase = PROGRAM_NONE;
    p->pools[capture->pool].captures--;
    int status = granary_capture_end(p->g, capture->capture);
    program_say(p, "capture %d ends: %d", c, status);
    /* The same stream may be in the next capture by now. */
    if (status == GRANARY_BUSY && p->streams[capture->origin].capture >= 0) {
        capture->phase = PROGRAM_ENDED;
        p->pools[capture->pool].captures++;
        return true;
    }
    return status == GRANARY_OK || program_fault(p, "capture_end: %s", granary_status_name(status));
}

/* ---- graphs ----------------------------------------------------------------------------------- */

bool program_launch(struct program *p) {
    int i = (int)rng_below(&p->rng, PROGRAM_GRAPHS), s = program_pick_stream(p);
    for (int n = 0; n < PROGRAM_GRAPHS && !p->graphs[i].graph; n++) i = (i + 1) % PROGRAM_GRAPHS;
    struct program_graph *graph = &p->graphs[i];
    if (!graph->graph || p->streams[s].capture >= 0) return true;
    struct program_pool *pool = &p->pools[graph->pool];
    unsigned before = pool->owners | pool->readers;
    for (int b = 0; b < PROGRAM_BLOCKS; b++)
        if (p->blocks[b].ptr && p->blocks[b].pins >> i & 1 && p->blocks[b].owner >= 0)
            before |= 1u << p->blocks[b].owner;
    for (int t = 0; t < PROGRAM_STREAMS; t++)
        if (before >> t & 1 && p->streams[t].capture >= 0) return true;
    for (int t = 0; t < PROGRAM_STREAMS; t++)
        if (before >> t & 1 && !program_link(p, t, s)) return false;
    if (pool->launched && !CU(p, cuStreamWaitEvent, p->streams[s].handle, pool->done, 0)) return false;
    for (int b = 0; b < PROGRAM_BLOCKS; b++) { /* a launch is a use by its stream */
        struct program_block *block = &p->blocks[b];
        if (!block->ptr || !(block->pins >> i & 1) || block->owner == s) continue;
        int status = granary_record_stream(p->g, block->ptr, p->streams[s].handle);
        if (status != GRANARY_OK) return program_fault(p, "record_stream: %s", granary_status_name(status));
        block->declared |= 1u << s;
    }
    p->streams[s].tick++;
    p->tally.launches++;
    program_say(p, "launch graph %d on s%d", i, s);
    if (!CU(p, cuGraphLaunch, graph->exec, p->streams[s].handle)) return false;
    for (int b = 0; b < PROGRAM_BLOCKS; b++)
        if (p->blocks[b].ptr && p->blocks[b].capture == graph->serial) p->blocks[b].launched = true;
    graph->launches++;
    pool->launched = true;
    return CU(p, cuEventRecord, pool->done, p->streams[s].handle);
}

bool program_graph_end(struct program *p, int place) {
    struct program_graph *graph = &p->graphs[place];
    if (!graph->graph || !program_quiet(p)) return true;
    if (!CU(p, cuGraphExecDestroy, graph->exec) || !CU(p, cuGraphDestroy, graph->graph)) return false;
    for (int b = 0; b < PROGRAM_BLOCKS; b++) p->blocks[b].pins &= ~(1u << place);
    graph->graph = NULL;
    return true;
}
