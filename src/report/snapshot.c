/* SPDX-License-Identifier: Apache-2.0
 * Snapshots: segments, history and settings in PyTorch's words, then what is ours. */
#include "report/snapshot.h"

#include <string.h>

#include "base/host.h"
#include "report/frames.h"
#include "report/statistics.h"
#include "report/writer.h"

struct job {
    const granary *g;
    const struct granary_fault *fault;
    struct gr_dump dump;
    struct gr_sink sink;
    struct gr_writer writer;
    struct gr_frames frames;
    /* Names in the pickle, places in the list of stacks of the JSON; by number, 0: not written yet. */
    uint32_t *stacks;
    struct names {
        uint32_t *name;
        size_t room;
    } places, python;
    uint32_t listed;   /* stacks of the JSON so far, the empty one counted */
    uint32_t *listing; /* their numbers */
};

/* ---- stacks --------------------------------------------------------------------------------- */

/* Where the name of this number is kept; NULL when there is no host memory: it is written again then. */
static uint32_t *name_of(struct names *names, uint32_t number) {
    if (number >= names->room) {
        size_t room = gr_max(number + 1, names->room * 2 + 64);
        uint32_t *fresh = gr_host_take(room, sizeof(*fresh), sizeof(void *));
        if (!fresh) return NULL;
        if (names->room) memcpy(fresh, names->name, names->room * sizeof(*fresh));
        gr_host_give(names->name);
        *names = (struct names){.name = fresh, .room = room};
    }
    return &names->name[number];
}

static void write_frame(struct gr_writer *w, const struct gr_frame *frame) {
    gr_writer_dict(w);
    gr_writer_put_text(w, "name", frame->name);
    gr_writer_put_text(w, "filename", frame->file);
    gr_writer_put_int(w, "line", frame->line);
    gr_writer_end(w);
}

/* The list of frames of a stack. */
static void write_frames(struct job *job, uint32_t stack) {
    struct gr_frame frame[2 * GR_STACK_FRAMES];
    struct gr_writer *w = &job->writer;
    size_t count = gr_frames_of(&job->frames, stack, frame);
    gr_writer_list(w);
    for (size_t i = 0; i < count; i++) {
        uint32_t *name = NULL;
        if (w->format == GRANARY_PICKLE)
            name = name_of(frame[i].python ? &job->python : &job->places, frame[i].number);
        if (name && *name) {
            gr_writer_recall(w, *name);
            continue;
        }
        write_frame(w, &frame[i]);
        if (name) *name = gr_writer_remember(w);
    }
    gr_writer_end(w);
}

static void put_stack(struct job *job, uint32_t stack) {
    struct gr_writer *w = &job->writer;
    gr_writer_key(w, "frames");
    if (w->format == GRANARY_JSON) {
        if (stack && !job->stacks[stack]) {
            job->listing[job->listed] = stack;
            job->stacks[stack] = job->listed++;
        }
        gr_writer_int(w, stack ? job->stacks[stack] : 0);
    } else if (stack && job->stacks[stack]) {
        gr_writer_recall(w, job->stacks[stack]);
    } else {
        write_frames(job, stack);
        if (stack) job->stacks[stack] = gr_writer_remember(w);
    }
}

static void list_stacks(struct job *job) {
    struct gr_writer *w = &job->writer;
    gr_writer_key(w, "stacks");
    gr_writer_list(w);
    for (uint32_t i = 0; i < job->listed; i++) write_frames(job, job->listing[i]);
    gr_writer_end(w);
}

static void put_tag(struct job *job, uint32_t tag) {
    char text[GRANARY_TAG_ROOM];
    if (!tag) return;
    gr_stacks_word(&job->dump.source->stacks.tags, tag, text, sizeof(text));
    gr_writer_put_text(&job->writer, "tag", text);
}

/* ---- segments ------------------------------------------------------------------------------- */

static void write_block(struct job *job, const struct gr_dump_block *b) {
    struct gr_writer *w = &job->writer;
    gr_writer_dict(w);
    gr_writer_put_int(w, "address", (int64_t)b->addr);
    gr_writer_put_int(w, "size", (int64_t)b->size);
    gr_writer_put_int(w, "requested_size", (int64_t)b->requested);
    gr_writer_put_word(w, "state",
                       b->state == GR_BLOCK_LIVE      ? "active_allocated"
                       : b->state == GR_BLOCK_PENDING ? "active_pending_free"
                                                      : "inactive");
    put_stack(job, gr_label_stack(b->label));
    put_tag(job, gr_label_tag(b->label));
    gr_writer_end(w);
}

static void write_segment(struct job *job, const struct gr_dump_segment *s) {
    struct gr_writer *w = &job->writer;
    const struct gr_dump_block *blocks = job->dump.blocks + s->first;
    size_t allocated = 0, active = 0, requested = 0;
    for (size_t i = 0; i < s->count; i++) {
        allocated += blocks[i].state == GR_BLOCK_LIVE ? blocks[i].size : 0;
        active += blocks[i].state != GR_BLOCK_FREE ? blocks[i].size : 0;
        requested += blocks[i].requested;
    }
    gr_writer_dict(w);
    gr_writer_put_int(w, "device", job->g->driver.facts.device);
    gr_writer_put_int(w, "address", (int64_t)s->addr);
    gr_writer_put_int(w, "total_size", (int64_t)s->size);
    gr_writer_put_int(w, "allocated_size", (int64_t)allocated);
    gr_writer_put_int(w, "active_size", (int64_t)active);
    gr_writer_put_int(w, "requested_size", (int64_t)requested);
    gr_writer_put_int(w, "stream", (int64_t)s->place.stream);
    gr_writer_put_word(w, "segment_type", s->class == GR_SMALL ? "small" : "large");
    gr_writer_key(w, "segment_pool_id");
    gr_writer_pair(w, 0, (int64_t)s->place.heap);
    gr_writer_put_bool(w, "is_expandable", s->expandable);
    put_stack(job, gr_label_stack(s->label));
    gr_writer_key(w, "blocks");
    gr_writer_list(w);
    for (size_t i = 0; i < s->count; i++) write_block(job, &blocks[i]);
    gr_writer_end(w);
    gr_writer_end(w);
}

/* ---- history -------------------------------------------------------------------------------- */

static const char *action_name(enum gr_action action) {
    switch (action) {
    case GR_ALLOC: return "alloc";
    case GR_FREE_REQUESTED: return "free_requested";
    case GR_FREE_COMPLETED: return "free_completed";
    case GR_SEGMENT_ALLOC: return "segment_alloc";
    case GR_SEGMENT_FREE: return "segment_free";
    case GR_SEGMENT_MAP: return "segment_map";
    case GR_SEGMENT_UNMAP: return "segment_unmap";
    case GR_MOVE: return "move";
    case GR_OOM: return "oom";
    case GR_SNAPSHOT: return "snapshot";
    case GR_ANNOTATE_START: return "START";
    case GR_ANNOTATE_END: return "END";
    }
    return "?";
}

static bool is_annotation(const struct gr_event *e) {
    return e->action == GR_ANNOTATE_START || e->action == GR_ANNOTATE_END;
}

static void put_time(struct gr_writer *w, const struct gr_event *e) {
    enum { US = 1000 };
    gr_writer_put_int(w, "time_us", (int64_t)(e->time_ns / US));
    if (e->unsure_ns >= US) gr_writer_put_int(w, "time_error_us", (int64_t)((e->unsure_ns + US - 1) / US));
}

static void write_event(struct job *job, const struct gr_event *e) {
    char metadata[GRANARY_METADATA_ROOM];
    struct gr_writer *w = &job->writer;
    gr_writer_dict(w);
    gr_writer_put_word(w, "action", action_name(e->action));
    gr_writer_put_int(w, e->action == GR_OOM ? "device_free" : "addr", (int64_t)e->addr);
    gr_writer_put_int(w, "size", (int64_t)e->size);
    gr_writer_put_int(w, "stream", (int64_t)e->place.stream);
    put_time(w, e);
    gr_writer_put_word(w, "compile_context", "N/A");
    if (e->metadata) {
        gr_stacks_word(&job->dump.source->stacks.texts, e->metadata, metadata, sizeof(metadata));
        gr_writer_put_text(w, "user_metadata", metadata);
    } else {
        gr_writer_put_word(w, "user_metadata", "");
    }
    gr_writer_key(w, "pool_id");
    gr_writer_pair(w, 0, (int64_t)e->place.heap);
    put_stack(job, e->stack);
    put_tag(job, e->tag);
    gr_writer_end(w);
}

static void write_annotation(struct job *job, const struct gr_event *e) {
    char name[GRANARY_METADATA_ROOM];
    struct gr_writer *w = &job->writer;
    gr_writer_dict(w);
    gr_writer_put_word(w, "stage", action_name(e->action));
    gr_writer_put_text(w, "name",
                       gr_stacks_word(&job->dump.source->stacks.texts, e->metadata, name, sizeof(name)));
    gr_writer_put_int(w, "device", job->g->driver.facts.device);
    put_time(w, e);
    gr_writer_end(w);
}

static void write_history(struct job *job) {
    struct gr_writer *w = &job->writer;
    gr_writer_key(w, "device_traces");
    gr_writer_list(w);
    for (int device = 0; device <= job->g->driver.facts.device; device++) {
        gr_writer_list(w);
        for (size_t i = 0; device == job->g->driver.facts.device && i < job->dump.event_count; i++)
            if (!is_annotation(&job->dump.events[i])) write_event(job, &job->dump.events[i]);
        gr_writer_end(w);
    }
    gr_writer_end(w);
    gr_writer_key(w, "external_annotations");
    gr_writer_list(w);
    for (size_t i = 0; i < job->dump.event_count; i++)
        if (is_annotation(&job->dump.events[i])) write_annotation(job, &job->dump.events[i]);
    gr_writer_end(w);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void write_all(struct job *job) {
    struct gr_writer *w = &job->writer;
    gr_writer_dict(w);
    gr_writer_key(w, "segments");
    gr_writer_list(w);
    for (size_t i = 0; i < job->dump.segment_count; i++) write_segment(job, &job->dump.segments[i]);
    gr_writer_end(w);
    write_history(job);
    gr_writer_key(w, "allocator_settings");
    gr_statistics_settings(w, &job->dump);
    gr_writer_key(w, "granary");
    gr_statistics_ours(w, job->g, &job->dump, job->fault);
    if (w->format == GRANARY_JSON) list_stacks(job);
    gr_writer_end(w);
    gr_writer_finish(w);
}

static bool prepare(struct job *job) {
    struct gr_stacks *stacks = job->dump.source ? &job->dump.source->stacks : NULL;
    size_t most = stacks ? atomic_load(&stacks->stacks.count) : 0;
    gr_frames_init(&job->frames, stacks);
    job->stacks = gr_host_take(most + 1, sizeof(uint32_t), sizeof(void *));
    job->listing = gr_host_take(most + 1, sizeof(uint32_t), sizeof(void *));
    job->listed = 1;
    return job->stacks && job->listing;
}

int gr_snapshot_write(granary *g, enum granary_format format, const struct granary_fault *fault,
                      gr_sink_taker taker, void *context) {
    struct job *job = gr_host_take(1, sizeof(*job), 64);
    if (!job) return GRANARY_HOST_MEMORY;
    job->g = g;
    job->fault = fault;
    int status = gr_dump_take(g, true, &job->dump);
    if (status == GRANARY_OK) {
        status = prepare(job) ? GRANARY_OK : GRANARY_HOST_MEMORY;
        if (status == GRANARY_OK) {
            gr_sink_init(&job->sink, taker, context);
            gr_writer_begin(&job->writer, &job->sink, format);
            write_all(job);
            if (!gr_sink_end(&job->sink)) status = GRANARY_WRITE;
        }
        gr_frames_fini(&job->frames);
        gr_dump_fini(&job->dump);
    }
    gr_host_give(job->stacks);
    gr_host_give(job->listing);
    gr_host_give(job->places.name);
    gr_host_give(job->python.name);
    gr_host_give(job);
    return status;
}
