/* SPDX-License-Identifier: Apache-2.0
 * Random programs: blocks, streams, events, and the loop. */
#include "support/program.h"
#include "support/shortfall.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap/heap.h"

enum { LEAST_OPERATIONS = 20, MOST_OPERATIONS = 60 };

/* ---- faults ----------------------------------------------------------------------------------- */

bool program_fault(struct program *p, const char *format, ...) {
    if (p->words[0]) return false;
    int used = snprintf(p->words, sizeof p->words, "seed %llu: ", (unsigned long long)p->seed);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->words + used, sizeof p->words - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

void program_say(const struct program *p, const char *format, ...) {
    va_list arguments;
    if (!p->loud) return;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

bool program_cu(struct program *p, gr_cu_result code, const char *call) {
    return code == GR_CU_SUCCESS || program_fault(p, "%s answered %d", call, code);
}
#define CU(p, symbol, ...) program_cu(p, (p)->cu.symbol(__VA_ARGS__), #symbol)

/* ---- batches ---------------------------------------------------------------------------------- */

void program_open(struct program *p, uint64_t seed) {
    struct granary_sim_config config;
    struct rng rng = {.state = ~(seed / PROGRAM_BATCH)};
    memset(p, 0, sizeof *p);
    granary_sim_config_init(&config);
    granary_options_init(&p->options);
    p->memory = config.memory_bytes = rng_between(&rng, 16, 64) * 2 * GR_MIB;
    config.clock = rng_once_in(&rng, 8) ? GRANARY_SIM_AT_ONCE : GRANARY_SIM_MANUAL;
    config.strict = 0;
    config.hang_ms = 2000;
    p->options.driver = GRANARY_DRIVER_SIM;
    p->options.expandable_segments = !rng_once_in(&rng, 6);
    p->options.handle_cache_bytes = rng_once_in(&rng, 3) ? 8 * GR_MIB : 0;
    p->options.capture_reuse = rng_once_in(&rng, 8)
                                   ? GRANARY_REUSE_OFF
                                   : (int)rng_between(&rng, GRANARY_REUSE_STREAM, GRANARY_REUSE_GRAPH);
    p->options.capture_marker = rng_once_in(&rng, 3) ? GRANARY_MARKER_EMPTY_NODE : GRANARY_MARKER_TERMINALS;
    p->options.garbage_collection_threshold = rng_once_in(&rng, 4) ? 0.5 : 0;
    p->options.no_caching = rng_once_in(&rng, 16);
    if (granary_sim_open(&config) != GRANARY_OK || granary_open(0, &p->options, &p->g) != GRANARY_OK) abort();
    gr_sim_table(&p->cu);
    CU(p, cuCtxPushCurrent, p->g->driver.context);
    for (int s = 0; s < PROGRAM_STREAMS; s++) {
        CU(p, cuStreamCreate, &p->streams[s].handle, GR_CU_STREAM_NON_BLOCKING);
        p->streams[s].capture = -1;
    }
    for (int e = 0; e < PROGRAM_EVENTS; e++)
        CU(p, cuEventCreate, &p->events[e].event, GR_CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < PROGRAM_POOLS; i++)
        CU(p, cuEventCreate, &p->pools[i].done, GR_CU_EVENT_DISABLE_TIMING);
    CU(p, cuEventCreate, &p->scratch, GR_CU_EVENT_DISABLE_TIMING);
    p->helper = program_helper_start(p->g);
}

void program_close(struct program *p) {
    struct granary_sim_held held = {.struct_size = sizeof held};
    struct program_tally tally = p->tally;
    program_helper_stop(p->helper);
    for (int s = 0; s < PROGRAM_STREAMS; s++) CU(p, cuStreamDestroy, p->streams[s].handle);
    for (int e = 0; e < PROGRAM_EVENTS; e++) CU(p, cuEventDestroy, p->events[e].event);
    for (int i = 0; i < PROGRAM_POOLS; i++) CU(p, cuEventDestroy, p->pools[i].done);
    CU(p, cuEventDestroy, p->scratch);
    CU(p, cuCtxPopCurrent, NULL);
    granary_close(p->g);
    granary_sim_get_held(&held);
    if (held.handles || held.mappings || held.reservations || held.allocations || held.events ||
        held.streams || held.graphs || held.contexts)
        program_fault(p,
                      "left behind: %llu handles, %llu mappings, %llu ranges, %llu allocations, %llu events, "
                      "%llu streams, %llu graphs",
                      (unsigned long long)held.handles, (unsigned long long)held.mappings,
                      (unsigned long long)held.reservations, (unsigned long long)held.allocations,
                      (unsigned long long)held.events, (unsigned long long)held.streams,
                      (unsigned long long)held.graphs);
    if (!p->words[0] && granary_sim_close() != GRANARY_OK) program_fault(p, "the simulation does not close");
    p->tally = tally;
}

/* ---- what is where ---------------------------------------------------------------------------- */

int program_pick_stream(struct program *p) {
    return (int)rng_below(&p->rng, (uint64_t)p->width);
}

bool program_capturing(const struct program *p, int stream) {
    int capture = p->streams[stream].capture;
    return capture >= 0 && p->captures[capture].phase == PROGRAM_RUNNING;
}

bool program_quiet(const struct program *p) {
    for (int c = 0; c < PROGRAM_CAPTURES; c++)
        if (p->captures[c].phase == PROGRAM_RUNNING || p->captures[c].phase == PROGRAM_BROKEN) return false;
    return true;
}

static bool open_captures(const struct program *p) {
    for (int c = 0; c < PROGRAM_CAPTURES; c++)
        if (p->captures[c].phase != PROGRAM_NONE) return true;
    return false;
}

static bool is_open(const struct program *p, uint64_t serial) {
    for (int c = 0; c < PROGRAM_CAPTURES; c++)
        if (p->captures[c].phase != PROGRAM_NONE && p->captures[c].serial == serial) return true;
    return false;
}

/* A live block, or NULL. */
static struct program_block *pick_block(struct program *p) {
    int start = (int)rng_below(&p->rng, PROGRAM_BLOCKS);
    for (int i = 0; i < PROGRAM_BLOCKS; i++) {
        struct program_block *b = &p->blocks[(start + i) % PROGRAM_BLOCKS];
        if (b->ptr) return b;
    }
    return NULL;
}

static void join_order(struct program_order *into, const struct program_order *from) {
    for (int s = 0; s < PROGRAM_STREAMS; s++)
        if (from->seen[s] > into->seen[s]) into->seen[s] = from->seen[s];
}

static struct program_order *order_of(struct program *p, int stream) {
    struct program_stream *s = &p->streams[stream];
    return s->capture >= 0 ? &s->captured : &s->order;
}

/* ---- events ----------------------------------------------------------------------------------- */

static bool record(struct program *p, gr_cu_event event, int stream, struct program_order *order) {
    struct program_stream *s = &p->streams[stream];
    *order = *order_of(p, stream);
    order->seen[stream] = ++s->tick;
    program_say(p, "record on s%d (capture %d)", stream, s->capture);
    return CU(p, cuEventRecord, event, s->handle);
}

static bool wait(struct program *p, gr_cu_event event, int stream, int capture,
                 const struct program_order *order) {
    struct program_stream *s = &p->streams[stream];
    if (capture >= 0 && s->capture < 0) { /* it joins */
        s->capture = capture;
        memset(&s->captured, 0, sizeof s->captured);
        s->loose = false;
    }
    join_order(order_of(p, stream), order);
    program_say(p, "s%d waits (capture %d)", stream, s->capture);
    return CU(p, cuStreamWaitEvent, s->handle, event, 0);
}

bool program_link(struct program *p, int from, int to) {
    struct program_order order;
    if (from == to) return true;
    int capture = p->streams[from].capture;
    return record(p, p->scratch, from, &order) && wait(p, p->scratch, to, capture, &order);
}

static bool do_record(struct program *p) {
    int s = program_pick_stream(p);
    struct program_event *e = &p->events[rng_below(&p->rng, PROGRAM_EVENTS)];
    if (p->streams[s].capture >= 0 && !program_capturing(p, s)) return true;
    e->recorded = true;
    e->capture = p->streams[s].capture;
    return record(p, e->event, s, &e->order);
}

static bool do_wait(struct program *p) {
    int s = program_pick_stream(p), mine = p->streams[s].capture;
    struct program_event *e = &p->events[rng_below(&p->rng, PROGRAM_EVENTS)];
    if (!e->recorded || (mine >= 0 && mine != e->capture)) return true;
    if (e->capture >= 0 && p->captures[e->capture].phase != PROGRAM_RUNNING) return true;
    return wait(p, e->event, s, e->capture, &e->order);
}

void program_host_order(struct program *p) {
    struct program_order all = {{0}};
    for (int s = 0; s < PROGRAM_STREAMS; s++) {
        join_order(&all, &p->streams[s].order);
        all.seen[s] = p->streams[s].tick;
    }
    for (int s = 0; s < PROGRAM_STREAMS; s++) join_order(&p->streams[s].order, &all);
}

bool program_sync(struct program *p) {
    program_say(p, "synchronise all");
    program_host_order(p);
    return CU(p, cuCtxSynchronize);
}

/* ---- blocks ----------------------------------------------------------------------------------- */

static size_t pick_size(struct program *p) {
    static const size_t sizes[] = {512,        4096,       256 * GR_KIB, GR_MIB,
                                   2 * GR_MIB, 2 * GR_MIB, 3 * GR_MIB,   4 * GR_MIB,
                                   4 * GR_MIB, 6 * GR_MIB, 12 * GR_MIB,  20 * GR_MIB};
    return sizes[rng_below(&p->rng, GR_COUNT(sizes))];
}

static void note_reuse(struct program *p, const struct program_block *b) {
    for (size_t i = 0; i < GR_COUNT(p->freed); i++)
        if (p->freed[i].ptr == b->ptr && p->freed[i].capture == b->capture) p->tally.reused++;
}

/* Streams whose work in a pool a launch has to wait for. */
static void note_owner(struct program *p, int s, int pool) {
    for (int i = 0; i < PROGRAM_POOLS; i++)
        if (i == pool || (pool < 0 && (p->pools[i].on_shortage || p->pools[i].scopes)))
            p->pools[i].owners |= 1u << s;
}

bool program_alloc(struct program *p, int s, size_t size, struct program_block **out) {
    int place = 0;
    *out = NULL;
    bool node = program_capturing(p, s);
    while (place < PROGRAM_BLOCKS && p->blocks[place].ptr) place++;
    if (place == PROGRAM_BLOCKS || (node && (p->scope_count || p->streams[s].loose))) return true;
    struct program_call call = {.kind = PROGRAM_ALLOC, .size = size, .stream = p->streams[s].handle};
    int status = program_call(p, &call);
    program_say(p, "alloc %zu on s%d: %d, %p, id %llu%s", call.size, s, status, call.ptr,
                (unsigned long long)p->ids + 1, node ? " in capture" : "");
    if (status == GRANARY_OUT_OF_MEMORY || status == GRANARY_OVER_LIMIT) {
        char words[128];
        const char *wrong = shortfall_wrong(p->g, words);
        p->tally.failed++;
        return !wrong || program_fault(p, "%s", wrong);
    }
    if (status != GRANARY_OK) return program_fault(p, "alloc: %s", granary_status_name(status));
    struct program_block *b = &p->blocks[place];
    *b = (struct program_block){.ptr = call.ptr, .size = call.size, .id = ++p->ids, .owner = s, .pool = -1};
    b->born = ++p->streams[s].tick;
    if (node) {
        b->capture = p->captures[p->streams[s].capture].serial;
        b->pool = p->captures[p->streams[s].capture].pool;
        note_reuse(p, b);
    }
    note_owner(p, s, b->pool);
    *out = b;
    for (int i = 0; i < PROGRAM_BLOCKS; i++) {
        const struct program_block *o = &p->blocks[i];
        if (o->ptr && i != place && o->ptr < b->ptr + b->size && b->ptr < o->ptr + o->size)
            return program_fault(p, "%p overlaps a live block", (void *)b->ptr);
    }
    return true;
}

static bool do_alloc(struct program *p) {
    struct program_block *b;
    return program_alloc(p, program_pick_stream(p), pick_size(p), &b);
}

bool program_free(struct program *p, struct program_block *b) {
    struct program_call call = {.kind = PROGRAM_FREE, .ptr = b->ptr};
    if (b->owner >= 0 && b->declared && program_capturing(p, b->owner)) {
        p->freed[p->freed_next % GR_COUNT(p->freed)].ptr = b->ptr;
        p->freed[p->freed_next++ % GR_COUNT(p->freed)].capture =
            p->captures[p->streams[b->owner].capture].serial;
    }
    program_say(p, "free id %llu of s%d", (unsigned long long)b->id, b->owner);
    b->ptr = NULL;
    int status = program_call(p, &call);
    if (status != GRANARY_OK) return program_fault(p, "free: %s", granary_status_name(status));
    if (rng_once_in(&p->rng, 16) && granary_free(p->g, call.ptr) != GRANARY_UNKNOWN_POINTER)
        return program_fault(p, "a second free is not refused");
    return true;
}

static bool do_free(struct program *p) {
    struct program_block *b = pick_block(p);
    return !b || b->pins ? true : program_free(p, b);
}

/* May only be refused when stream and owner are in two captures. */
bool program_declare(struct program *p, struct program_block *b, int s, bool *refused) {
    struct program_call call = {.kind = PROGRAM_RECORD_STREAM, .ptr = b->ptr, .stream = p->streams[s].handle};
    int status = program_call(p, &call);
    program_say(p, "record_stream id %llu, s%d: %d", (unsigned long long)b->id, s, status);
    *refused = status == GRANARY_WRONG_CAPTURE && program_capturing(p, s);
    if (*refused || status == GRANARY_OK) {
        if (!*refused) b->declared |= 1u << s;
        return true;
    }
    return program_fault(p, "record_stream: %s", granary_status_name(status));
}

/* What a correct user may do now; pins what a graph needs from outside its capture. */
static bool may_use(struct program *p, int s, struct program_block *b) {
    const struct program_stream *stream = &p->streams[s];
    bool own = b->owner == s, mine = own || b->declared >> s & 1;
    if (!mine || (stream->capture >= 0 && !program_capturing(p, s))) return false;
    if (stream->capture < 0) {
        if (b->capture) return b->launched;
        return own || (b->owner >= 0 && stream->order.seen[b->owner] >= b->born);
    }
    const struct program_capture *capture = &p->captures[stream->capture];
    if (b->capture == capture->serial)
        return (own && !stream->loose) || (b->owner >= 0 && stream->captured.seen[b->owner] >= b->born);
    if (b->capture) return b->pool == capture->pool && !is_open(p, b->capture);
    return b->owner >= 0 && p->streams[b->owner].capture < 0;
}

bool program_use(struct program *p, int s, struct program_block *b) {
    struct program_stream *stream = &p->streams[s];
    if (!may_use(p, s, b)) return true;
    if (stream->capture >= 0) {
        if (!b->capture) b->pins |= 1u << (16 + stream->capture);
        p->tally.nodes++;
    } else if (b->capture) { /* it reads what a graph left */
        p->pools[b->pool].readers |= 1u << s;
        if (!CU(p, cuStreamWaitEvent, stream->handle, p->pools[b->pool].done, 0)) return false;
    }
    p->tally.kernels++;
    p->tally.foreign += b->owner != s;
    stream->tick++;
    program_say(p, "use id %llu on s%d (capture %d)", (unsigned long long)b->id, s, stream->capture);
    size_t from = b->size > 4096 && rng_once_in(&p->rng, 2) ? b->size / 2 : 0;
    int code = granary_sim_use(stream->handle, b->ptr + from, b->size - from, 1, b->id,
                               stream->capture >= 0 ? "node"
                               : b->owner == s      ? "kernel"
                                                    : "foreign kernel");
    return program_cu(p, code, "kernel");
}

static bool do_use(struct program *p) {
    for (int attempt = 0; attempt < 6; attempt++) {
        struct program_block *b = pick_block(p);
        int s = program_pick_stream(p);
        if (b && may_use(p, s, b)) return program_use(p, s, b);
    }
    return true;
}

/* The common pattern: work on the owner, another stream waits for it, works on, and perhaps back. */
static bool do_share(struct program *p) {
    struct program_block *b = pick_block(p);
    int s = program_pick_stream(p);
    bool refused;
    if (b && b->owner == s) s = (s + 1) % p->width;
    if (!b || b->owner < 0 || b->owner == s) return true;
    int from = p->streams[b->owner].capture, to = p->streams[s].capture;
    if (!program_use(p, b->owner, b) || !program_declare(p, b, s, &refused)) return false;
    if (refused || (to >= 0 && from != to) || (from >= 0 && !program_capturing(p, b->owner))) return true;
    if (!program_link(p, b->owner, s) || !program_use(p, s, b)) return false;
    if (rng_once_in(&p->rng, 2) && !program_link(p, s, b->owner)) return false;
    if (b->pins || rng_once_in(&p->rng, 2)) return true;
    /* Terminals that were dropped can be missed only if they were seen: the free looks at those of both. */
    bool seen = from >= 0 && b->capture == p->captures[from].serial && b->declared == 1u << s;
    return program_free(p, b) && (!seen || !rng_once_in(&p->rng, 8) || program_drop(p, s, false));
}

static bool do_declare(struct program *p) {
    struct program_block *b = pick_block(p);
    bool refused;
    return !b || program_declare(p, b, program_pick_stream(p), &refused);
}

/* ---- the device ------------------------------------------------------------------------------- */

static bool do_run(struct program *p) {
    if (rng_once_in(&p->rng, 3))
        granary_sim_run(p->streams[program_pick_stream(p)].handle, rng_between(&p->rng, 1, 8));
    else
        granary_sim_run_random(rng_next(&p->rng), rng_between(&p->rng, 1, 12));
    return true;
}

static bool do_sync(struct program *p) {
    int s = program_pick_stream(p);
    if (!program_quiet(p)) return true;
    program_say(p, "synchronise s%d, or all", s);
    if (rng_once_in(&p->rng, 4)) return program_sync(p);
    for (int t = 0; t < PROGRAM_STREAMS; t++) {
        join_order(&p->streams[t].order, &p->streams[s].order);
        if (p->streams[t].order.seen[s] < p->streams[s].tick)
            p->streams[t].order.seen[s] = p->streams[s].tick;
    }
    return CU(p, cuStreamSynchronize, p->streams[s].handle);
}

static bool do_trim(struct program *p) {
    int status = granary_trim(p->g, rng_below(&p->rng, 8) * 4 * GR_MIB, NULL);
    return status == (open_captures(p) ? GRANARY_BUSY : GRANARY_OK) ||
           program_fault(p, "trim: %s", granary_status_name(status));
}

static bool do_limit(struct program *p) {
    granary_set_limit(p->g,
                      rng_once_in(&p->rng, 2) ? GRANARY_UNLIMITED : rng_between(&p->rng, 4, 32) * GR_MIB);
    return true;
}

/* Does a launch count on the stream's order? Then it may only go once the host has seen its work. */
static bool is_needed(const struct program *p, int s) {
    for (int i = 0; i < PROGRAM_POOLS; i++)
        if (p->pools[i].pool && (p->pools[i].owners | p->pools[i].readers) >> s & 1) return true;
    for (int b = 0; b < PROGRAM_BLOCKS; b++)
        if (p->blocks[b].ptr && p->blocks[b].pins && p->blocks[b].owner == s) return true;
    return false;
}

/* A stream goes, and one with the same handle comes. */
static bool do_replace_stream(struct program *p) {
    int s = program_pick_stream(p);
    struct program_stream *stream = &p->streams[s];
    if (stream->capture >= 0) return true;
    if (is_needed(p, s)) {
        if (!program_quiet(p)) return true;
        if (!program_sync(p)) return false;
    }
    program_say(p, "replace s%d", s);
    int status = granary_stream_destroyed(p->g, stream->handle);
    if (status != GRANARY_OK) return program_fault(p, "stream_destroyed: %s", granary_status_name(status));
    if (!CU(p, cuStreamDestroy, stream->handle)) return false;
    for (int b = 0; b < PROGRAM_BLOCKS; b++) {
        p->blocks[b].declared &= ~(1u << s);
        if (p->blocks[b].owner == s) p->blocks[b].owner = -1;
    }
    for (int i = 0; i < PROGRAM_POOLS; i++) {
        p->pools[i].owners &= ~(1u << s);
        p->pools[i].readers &= ~(1u << s);
    }
    memset(&stream->order, 0, sizeof stream->order);
    stream->tick++; /* whoever waited for the old one has not waited for this one */
    return CU(p, cuStreamCreate, &stream->handle, GR_CU_STREAM_NON_BLOCKING);
}

/* ---- scopes ----------------------------------------------------------------------------------- */

static bool do_scope(struct program *p) {
    int pool = (int)rng_below(&p->rng, PROGRAM_POOLS);
    struct program_pool *in = &p->pools[pool];
    if (p->scope_count == (int)GR_COUNT(p->scopes) || (p->scope_count && rng_once_in(&p->rng, 2))) {
        if (p->scope_count > 1 && granary_scope_end(p->g, p->scopes[0]) != GRANARY_ORDER)
            return program_fault(p, "a scope ends out of order");
        p->pools[p->scope_pools[--p->scope_count]].scopes--;
        return granary_scope_end(p->g, p->scopes[p->scope_count]) == GRANARY_OK ||
               program_fault(p, "scope_end");
    }
    if (!in->pool || in->graphs || p->helped) return true;
    program_say(p, "scope in pool %d", pool);
    if (granary_scope_begin(p->g, in->pool, NULL, NULL, &p->scopes[p->scope_count]) != GRANARY_OK)
        return program_fault(p, "scope_begin");
    in->scopes++;
    p->scope_pools[p->scope_count++] = pool;
    return true;
}

/* ---- the loop --------------------------------------------------------------------------------- */

static bool do_capture_end(struct program *p) {
    int c = (int)rng_below(&p->rng, PROGRAM_CAPTURES);
    return p->captures[c].phase == PROGRAM_NONE || program_capture_close(p, c);
}
static bool do_graph_end(struct program *p) {
    return program_graph_end(p, (int)rng_below(&p->rng, PROGRAM_GRAPHS));
}
static bool do_pool_end(struct program *p) {
    return program_pool_end(p, (int)rng_below(&p->rng, PROGRAM_POOLS));
}
static bool verify(struct program *p) {
    const char *broken = granary_verify(p->g);
    return !broken || program_fault(p, "invariant %s is broken", broken);
}

static const struct {
    bool (*act)(struct program *p);
    unsigned weight;
} operations[] = {{do_alloc, 30},
                  {do_free, 14},
                  {do_use, 24},
                  {do_share, 36},
                  {do_declare, 3},
                  {do_record, 6},
                  {do_wait, 8},
                  {do_run, 8},
                  {do_sync, 1},
                  {do_trim, 1},
                  {do_limit, 1},
                  {do_replace_stream, 1},
                  {do_scope, 3},
                  {do_capture_end, 6},
                  {do_graph_end, 1},
                  {do_pool_end, 1},
                  {program_pool_make, 3},
                  {program_capture_begin, 6},
                  {program_capture_step, 10},
                  {program_launch, 10},
                  {program_carry, 2},
                  {program_loosen, 2},
                  {program_lend, 2},
                  {program_outlast, 2}};

/* What no capture of the process may see, from any thread. */
static uint64_t forbidden(const struct program *p) {
    static const enum gr_entry entries[] = {GR_ENTRY_cuEventQuery,     GR_ENTRY_cuEventSynchronize,
                                            GR_ENTRY_cuStreamQuery,    GR_ENTRY_cuStreamSynchronize,
                                            GR_ENTRY_cuCtxSynchronize, GR_ENTRY_cuMemUnmap,
                                            GR_ENTRY_cuMemFree,        GR_ENTRY_cuStreamGetId};
    uint64_t count = 0;
    for (size_t i = 0; i < GR_COUNT(entries); i++) count += gr_tap_count(&p->g->driver.tap, entries[i]);
    return count;
}

static bool operate(struct program *p) {
    unsigned all = 0;
    for (size_t i = 0; i < GR_COUNT(operations); i++) all += operations[i].weight;
    uint64_t at = rng_below(&p->rng, all), before = forbidden(p);
    bool open = open_captures(p);
    size_t i = 0;
    while (at >= operations[i].weight) at -= operations[i++].weight;
    p->tally.operations++;
    bool good = operations[i].act(p);
    if (open && open_captures(p) && forbidden(p) != before)
        return program_fault(p, "a call that captures forbid was made while one is open (operation %zu)", i);
    return good;
}

/* Everything is given back; then nothing may be left. */
static bool finish(struct program *p) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    struct granary_sim_held held = {.struct_size = sizeof held};
    while (open_captures(p)) /* in turns: one may wait for the end of the next on the same stream */
        for (int c = 0; c < PROGRAM_CAPTURES; c++)
            if (p->captures[c].phase != PROGRAM_NONE && !program_capture_close(p, c)) return false;
    while (p->scope_count > 0) {
        p->pools[p->scope_pools[--p->scope_count]].scopes--;
        if (granary_scope_end(p->g, p->scopes[p->scope_count]) != GRANARY_OK)
            return program_fault(p, "scope_end");
    }
    for (int i = 0; i < PROGRAM_GRAPHS; i++)
        if (!program_graph_end(p, i)) return false;
    for (int b = 0; b < PROGRAM_BLOCKS; b++)
        if (p->blocks[b].ptr && rng_once_in(&p->rng, 2) && !program_free(p, &p->blocks[b])) return false;
    for (int i = 0; i < PROGRAM_POOLS; i++)
        if (!program_pool_end(p, i)) return false;
    for (int b = 0; b < PROGRAM_BLOCKS; b++)
        if (p->blocks[b].ptr && !program_free(p, &p->blocks[b])) return false;
    granary_set_limit(p->g, GRANARY_UNLIMITED);
    granary_sim_run_all();
    if (granary_trim(p->g, 0, NULL) != GRANARY_OK) return program_fault(p, "the last trim fails");
    if (!verify(p)) return false;
    granary_get_stats(p->g, &stats);
    granary_sim_get_held(&held);
    if (stats.pending_blocks || stats.reserved_bytes.all.current || held.handles || held.mappings ||
        held.allocations)
        return program_fault(
            p, "left: %lld pending, %lld reserved, %llu handles, %llu mappings, %llu allocations",
            (long long)stats.pending_blocks, (long long)stats.reserved_bytes.all.current,
            (unsigned long long)held.handles, (unsigned long long)held.mappings,
            (unsigned long long)held.allocations);
    return true;
}

bool program_run(struct program *p, uint64_t seed) {
    struct granary_sim_findings findings = {.struct_size = sizeof findings};
    p->seed = seed;
    p->rng.state = seed;
    p->helped = rng_once_in(&p->rng, 32);
    p->width = (int)rng_between(&p->rng, 2, PROGRAM_STREAMS);
    p->tally.programs++;
    for (int e = 0; e < PROGRAM_EVENTS; e++) p->events[e].recorded = false;
    uint64_t count = rng_between(&p->rng, LEAST_OPERATIONS, MOST_OPERATIONS);
    bool good = !p->words[0];
    for (uint64_t pools = rng_below(&p->rng, 4); good && pools > 0; pools--) good = program_pool_make(p);
    for (uint64_t captures = rng_below(&p->rng, 3); good && captures > 0; captures--)
        good = program_capture_begin(p);
    while (good && count-- > 0) good = operate(p);
    good = good && finish(p);
    granary_sim_get_findings(&findings);
    if (findings.count) {
        p->words[0] = '\0'; /* what followed from it does not matter */
        good = program_fault(p, "%s", findings.first);
    }
    return good;
}
