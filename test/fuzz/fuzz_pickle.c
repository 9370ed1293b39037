/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a snapshot, pickle or JSON, or a trace: refused with words, or read into something that keeps
 * its promises at every moment. What starts like none of these is read as a pickle of any data. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "tool/document.h"
#include "tool/growth.h"
#include "tool/snapshot.h"
#include "tool/unpickle.h"
#include "tool/whatif.h"

static void check_stack(const struct snapshot *s, uint32_t stack) {
    char text[64];
    FUZZ_ASSERT(stack < s->stack_count);
    FUZZ_ASSERT(s->stacks[stack].count == 0 ||
                s->stacks[stack].first + s->stacks[stack].count > s->stacks[stack].first);
    for (uint32_t i = 0; i < s->stacks[stack].count; i++)
        FUZZ_ASSERT(s->frame_ids[s->stacks[stack].first + i] < s->frame_count);
    FUZZ_ASSERT(snapshot_line_text(s, stack, text, sizeof text)[0] != 0);
}

static void check_moment(const struct snapshot *s, const struct snapshot_device *d, size_t entry) {
    struct snapshot_moment m;
    struct problem problem;
    FUZZ_ASSERT(snapshot_rebuild(s, d, entry, &m, &problem) == 0);
    FUZZ_ASSERT(m.live + m.pending + m.free == m.reserved);
    for (size_t i = 0; i < m.segment_count; i++) {
        const struct snapshot_segment *segment = &m.segments[i];
        uint64_t at = segment->address;
        FUZZ_ASSERT(i == 0 || segment->address >= segment[-1].address + segment[-1].size);
        for (size_t k = 0; k < segment->count; k++) {
            FUZZ_ASSERT(segment->first + k < m.block_count);
            FUZZ_ASSERT(m.blocks[segment->first + k].address == at);
            at += m.blocks[segment->first + k].size;
        }
        FUZZ_ASSERT(at == segment->address + segment->size);
    }
    for (size_t i = 0; i < m.block_count; i++) {
        check_stack(s, m.blocks[i].stack);
        FUZZ_ASSERT(m.lives[i] == SNAPSHOT_NONE || m.lives[i] < d->life_count);
    }
    snapshot_moment_free(&m);
}

/* Each block is allocated once, before it is freed, and freed once. */
static void check_trace(const struct snapshot *s, const struct snapshot_device *d, size_t entry) {
    struct trace trace;
    struct problem problem;
    uint32_t *origin;
    unsigned char *state;
    if (snapshot_to_trace(s, d, entry, &trace, &origin, &problem) != 0) return;
    state = calloc(trace.blocks + 1, 1);
    FUZZ_ASSERT(state != NULL);
    for (size_t i = 0; i < trace.count; i++) {
        const struct trace_op *op = &trace.ops[i];
        FUZZ_ASSERT(op->block < trace.blocks);
        FUZZ_ASSERT(origin[i] == SNAPSHOT_NONE || origin[i] <= entry);
        if (op->kind == TRACE_ALLOC) {
            FUZZ_ASSERT(state[op->block]++ == 0 && op->stream < trace.streams);
        } else if (op->kind == TRACE_FREE) {
            FUZZ_ASSERT(state[op->block] == 1);
            state[op->block] = 2;
        }
    }
    free(state);
    free(origin);
    trace_free(&trace);
}

/* The document of a report, thinned and whole: no markup, no control characters, no number out of place. */
static void check_document(const struct snapshot *s, const struct snapshot_device *d) {
    struct explain explain = {.snapshot = s, .device = d, .best = -1};
    for (int thinned = 0; thinned < 2; thinned++) {
        struct document_more more = {.explain = &explain, .lives = thinned ? 2 : DOCUMENT_LIVES};
        struct problem problem;
        char *text = NULL;
        size_t length;
        FILE *to = open_memstream(&text, &length);
        FUZZ_ASSERT(to != NULL && document_write(to, s, d, &more, &problem) == 0 && fclose(to) == 0);
        FUZZ_ASSERT(strlen(text) == length && text[0] == '{' && text[length - 1] == '}');
        for (size_t i = 0; i < length; i++) FUZZ_ASSERT((unsigned char)text[i] >= ' ' && text[i] != '<');
        free(text);
    }
}

static void check_device(const struct snapshot *s, const struct snapshot_device *d) {
    struct growth growth;
    struct whatif_card card;
    struct problem problem;
    FUZZ_ASSERT(d->before_count <= d->life_count && d->last_oom <= d->entry_count);
    for (size_t i = 0; i < d->life_count; i++) {
        const struct snapshot_life *life = &d->lives[i];
        check_stack(s, life->stack);
        FUZZ_ASSERT((life->begin == SNAPSHOT_NONE) == (i < d->before_count));
        FUZZ_ASSERT(life->begin == SNAPSHOT_NONE || life->begin < d->entry_count);
        FUZZ_ASSERT(life->end == SNAPSHOT_NONE || life->end < d->entry_count);
    }
    for (size_t i = 0; i < d->entry_count; i++) {
        check_stack(s, d->entries[i].stack);
        FUZZ_ASSERT(d->entries[i].life == SNAPSHOT_NONE || d->entries[i].life < d->life_count);
    }
    for (size_t part = 0; part <= 3; part++) {
        size_t entry = d->entry_count * part / 3;
        check_moment(s, d, entry);
        check_trace(s, d, entry);
        FUZZ_ASSERT(growth_find(s, d, entry, &growth, &problem) == 0);
        growth_free(&growth);
    }
    whatif_card(s, d, d->last_oom, 0, &card);
    check_document(s, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = malloc(size + 1);
    struct problem problem = {""};
    if (copy == NULL) return 0;
    if (size > 0) memcpy(copy, data, size);
    copy[size] = 0;
    if (snapshot_looks_like(copy, size) || (size > 0 && strchr("#arf", copy[0]) != NULL)) {
        struct snapshot snapshot;
        if (snapshot_parse("input", copy, size, &snapshot, &problem) == 0) {
            for (size_t i = 0; i < snapshot.device_count; i++) check_device(&snapshot, &snapshot.devices[i]);
            snapshot_free(&snapshot);
        } else {
            FUZZ_ASSERT(strncmp(problem.text, "input:", 6) == 0);
        }
    } else {
        struct store store = {0};
        struct value *value;
        /* The input itself: a sanitizer sees one byte too far. */
        if (unpickle("input", (const char *)data, size, &store, &value, &problem) == 0)
            FUZZ_ASSERT(value_kind_name(value)[0] != 0);
        else
            FUZZ_ASSERT(strncmp(problem.text, "input: ", 7) == 0);
        store_free(&store);
    }
    free(copy);
    return 0;
}
