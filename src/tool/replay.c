/* SPDX-License-Identifier: Apache-2.0
 * Replaying a trace through the allocator, and what it took. */
#include "tool/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <granary/sim.h>

/* The simulated card is a whole number of these. */
static const size_t CARD_STEP = (size_t)2 << 20;

/* One open handle and what a replay holds on it. */
struct session {
    const struct trace *trace;
    granary *g;
    bool sim;
    granary_stream *streams;
    size_t stream_count;
    void **blocks; /* by dense number; NULL when not in use */
};

/* How far a pass came. */
struct pass {
    size_t ops, allocs;
    size_t calls; /* of granary_alloc and granary_free */
    int status;   /* of the operation that ended it early, or GRANARY_OK */
    double ns;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void close_session(struct session *s) {
    for (size_t i = 0; i < s->stream_count; i++) granary_stream_destroy(s->g, s->streams[i]);
    granary_close(s->g);
    if (s->sim) granary_sim_close();
    free(s->streams);
    free(s->blocks);
    *s = (struct session){0};
}

static int set_options(struct granary_options *options, const struct replay_setup *setup,
                       struct problem *problem) {
    struct granary_option_error error = {0};
    granary_options_init(options);
    if (setup->conf[0] != 0 && granary_options_parse(options, setup->conf, "--conf", &error) != GRANARY_OK) {
        problem_set(problem, "%s", error.text);
        return -1;
    }
    options->driver = setup->driver == REPLAY_SIM ? GRANARY_DRIVER_SIM : GRANARY_DRIVER_CUDA;
    if (setup->memory != 0 && setup->memory < options->limit_bytes) options->limit_bytes = setup->memory;
    return 0;
}

/* On failure nothing is held. setup->driver is not AUTO. */
static int open_session(struct session *s, const struct trace *trace, const struct replay_setup *setup,
                        struct problem *problem) {
    struct granary_options options;
    struct granary_fault fault = {.struct_size = sizeof fault};
    int status;

    *s = (struct session){.trace = trace};
    if (set_options(&options, setup, problem) != 0) return -1;
    options.fault = &fault;
    if (setup->driver == REPLAY_SIM) {
        struct granary_sim_config card;
        granary_sim_config_init(&card);
        if (setup->memory != 0 && setup->memory <= SIZE_MAX - CARD_STEP)
            card.memory_bytes = (setup->memory + CARD_STEP - 1) / CARD_STEP * CARD_STEP;
        status = granary_sim_open(&card);
        if (status != GRANARY_OK) {
            problem_set(problem, "the simulated device does not open: %s", granary_status_sentence(status));
            return -1;
        }
        s->sim = true;
    }
    status = granary_open(0, &options, &s->g);
    if (status != GRANARY_OK) {
        const char *words = fault.text[0] != 0 ? fault.text : granary_status_sentence(status);
        problem_set(problem, "the %s device does not open: %s", s->sim ? "simulated" : "CUDA", words);
        close_session(s);
        return -1;
    }
    s->blocks = calloc(trace->blocks + 1, sizeof *s->blocks);
    s->streams = calloc(trace->streams + 1, sizeof *s->streams);
    status = s->blocks == NULL || s->streams == NULL ? GRANARY_HOST_MEMORY : GRANARY_OK;
    while (status == GRANARY_OK && s->stream_count < trace->streams) {
        status = granary_stream_create(s->g, &s->streams[s->stream_count]);
        if (status == GRANARY_OK) s->stream_count++;
    }
    if (status != GRANARY_OK) {
        problem_set(problem, "%s: cannot create %zu streams: %s", trace->path, trace->streams,
                    granary_status_sentence(status));
        close_session(s);
        return -1;
    }
    return 0;
}

/* Runs the operations from..to of the trace; ends early at the first that fails. */
static void run(struct session *s, size_t from, size_t to, struct pass *pass) {
    const struct trace_op *ops = s->trace->ops;
    double start = now();
    size_t i;
    int status = GRANARY_OK;
    for (i = from; i < to && status == GRANARY_OK; i++) {
        const struct trace_op *op = &ops[i];
        switch ((enum trace_kind)op->kind) {
        case TRACE_ALLOC:
            pass->allocs++;
            pass->calls++;
            status = granary_alloc(s->g, (size_t)op->size, s->streams[op->stream], &s->blocks[op->block]);
            break;
        case TRACE_FREE:
            pass->calls++;
            status = granary_free(s->g, s->blocks[op->block]);
            s->blocks[op->block] = NULL;
            break;
        case TRACE_REQUEST: /* the block stays in use until its f */ break;
        }
    }
    pass->ns += now() - start;
    pass->ops += i - from;
    pass->status = status;
}

/* Frees what a pass left over. */
static int free_rest(struct session *s) {
    int status = GRANARY_OK;
    for (size_t i = 0; i < s->trace->blocks && status == GRANARY_OK; i++) {
        if (s->blocks[i] == NULL) continue;
        status = granary_free(s->g, s->blocks[i]);
        s->blocks[i] = NULL;
    }
    return status;
}

static bool is_shortage(int status) {
    return status == GRANARY_OUT_OF_MEMORY || status == GRANARY_OVER_LIMIT || status == GRANARY_ADDRESS_SPACE;
}

/* The words for an operation that failed for another reason than want of memory. */
static int refuse(struct session *s, const struct pass *pass, struct problem *problem) {
    struct granary_fault fault = {.struct_size = sizeof fault};
    granary_last_fault(s->g, &fault);
    problem_set(problem, "%s: operation %zu failed: %s%s%s", s->trace->path, pass->ops - 1,
                granary_status_name(pass->status), fault.text[0] != 0 ? ": " : "", fault.text);
    return -1;
}

static void subtract_calls(struct granary_driver_calls *calls, const struct granary_driver_calls *before) {
    calls->create -= before->create;
    calls->map -= before->map;
    calls->set_access -= before->set_access;
    calls->unmap -= before->unmap;
    calls->release -= before->release;
    calls->reserve -= before->reserve;
    calls->address_free -= before->address_free;
    calls->mem_alloc -= before->mem_alloc;
    calls->mem_free -= before->mem_free;
    calls->event_record -= before->event_record;
    calls->event_query -= before->event_query;
    calls->synchronize -= before->synchronize;
    calls->other -= before->other;
}

uint64_t replay_calls(const struct granary_driver_calls *calls) {
    return calls->create + calls->map + calls->set_access + calls->unmap + calls->release + calls->reserve +
           calls->address_free + calls->mem_alloc + calls->mem_free + calls->event_record +
           calls->event_query + calls->synchronize + calls->other;
}

/* The figures of the cold pass. before: the calls that opening took, which are not the traffic's. */
static void collect(struct session *s, const struct pass *pass, const struct granary_driver_calls *before,
                    struct replay_result *out) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    struct granary_facts facts = {.struct_size = sizeof facts};
    struct granary_fault fault = {.struct_size = sizeof fault};

    out->calls.struct_size = sizeof out->calls;
    granary_get_driver_calls(s->g, &out->calls);
    subtract_calls(&out->calls, before);
    granary_get_stats(s->g, &stats);
    granary_get_facts(s->g, &facts);
    snprintf(out->device, sizeof out->device, "%s", facts.name);
    out->ops = pass->ops;
    out->allocs = pass->allocs;
    out->out_of_memory = is_shortage(pass->status);
    out->oom_status = pass->status;
    if (out->out_of_memory) {
        out->oom_at = pass->ops - 1;
        granary_last_fault(s->g, &fault);
        snprintf(out->oom_text, sizeof out->oom_text, "%s", fault.text);
    }
    out->peak_allocated = (uint64_t)stats.allocated_bytes.all.peak;
    out->peak_active = (uint64_t)stats.active_bytes.all.peak;
    out->peak_reserved = (uint64_t)stats.reserved_bytes.all.peak;
    out->extents = (uint64_t)stats.extents;
    out->misses = (uint64_t)stats.misses;
    out->moved_extents = (uint64_t)stats.moved_extents;
    out->moved_bytes = (uint64_t)stats.moved_bytes;
    out->moving_ns = (uint64_t)stats.moving_ns;
    out->cold_ns = pass->calls > 0 ? pass->ns / (double)pass->calls : 0;
}

int replay_run(const struct trace *trace, const struct replay_setup *setup, struct replay_result *out,
               struct problem *problem) {
    struct granary_driver_calls before = {.struct_size = sizeof before};
    struct pass cold = {0};
    struct session s;
    int rc = 0;

    *out = (struct replay_result){.trace = trace->path, .conf = setup->conf, .warm_ns = -1};
    if (open_session(&s, trace, setup, problem) != 0) return -1;
    out->driver = s.sim ? "sim" : "cuda";
    granary_get_driver_calls(s.g, &before);
    run(&s, 0, trace->count, &cold);
    if (cold.status != GRANARY_OK && !is_shortage(cold.status)) {
        rc = refuse(&s, &cold, problem);
    } else {
        collect(&s, &cold, &before, out);
        for (unsigned i = 0; i < setup->repeat && cold.status == GRANARY_OK; i++) {
            struct pass warm = {0};
            if (free_rest(&s) != GRANARY_OK) break;
            run(&s, 0, trace->count, &warm);
            if (warm.status != GRANARY_OK) break;
            warm.ns /= (double)warm.calls;
            if (out->warm_ns < 0 || warm.ns < out->warm_ns) out->warm_ns = warm.ns;
        }
        struct granary_stats stats = {.struct_size = sizeof stats};
        granary_get_stats(s.g, &stats);
        out->warm_reserved = (uint64_t)stats.reserved_bytes.all.peak;
    }
    close_session(&s);
    return rc;
}

int replay_series(const struct trace *trace, const struct replay_setup *setup, struct replay_point *points,
                  size_t room, size_t *count, struct problem *problem) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    struct pass pass = {0};
    struct session s;
    int rc = 0;

    *count = 0;
    if (open_session(&s, trace, setup, problem) != 0) return -1;
    if (room > trace->count) room = trace->count;
    for (size_t i = 0; i < room && pass.status == GRANARY_OK; i++) {
        size_t from = (size_t)((double)trace->count * (double)i / (double)room);
        size_t to = i + 1 == room ? trace->count
                                  : (size_t)((double)trace->count * (double)(i + 1) / (double)room);
        granary_reset_peaks(s.g);
        run(&s, from, to, &pass);
        granary_get_stats(s.g, &stats);
        points[i] = (struct replay_point){pass.ops, (uint64_t)stats.active_bytes.all.peak,
                                          (uint64_t)stats.reserved_bytes.all.peak};
        *count = i + 1;
    }
    if (pass.status != GRANARY_OK && !is_shortage(pass.status)) rc = refuse(&s, &pass, problem);
    close_session(&s);
    return rc;
}

enum replay_driver replay_resolve(enum replay_driver driver) {
    struct granary_options options;
    granary *g;
    if (driver != REPLAY_AUTO) return driver;
    granary_options_init(&options);
    if (granary_open(0, &options, &g) != GRANARY_OK) return REPLAY_SIM;
    granary_close(g);
    return REPLAY_CUDA;
}

int replay_check_conf(const char *conf, struct problem *problem) {
    struct replay_setup setup = {.driver = REPLAY_SIM, .conf = conf};
    struct granary_options options;
    return set_options(&options, &setup, problem);
}
