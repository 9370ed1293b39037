/* SPDX-License-Identifier: Apache-2.0
 * Snapshots: reading, and what can be asked of one. */
#include "tool/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/snapshot_build.h"
#include "tool/unjson.h"
#include "tool/unpickle.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* First byte that is no blank, or 0. */
static char first_of(const char *bytes, size_t length) {
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", bytes[at]) != NULL && bytes[at] != 0) at++;
    return at < length ? bytes[at] : '\0';
}

bool snapshot_looks_like(const char *bytes, size_t length) {
    /* PROTO of protocols 2 to 5, or how protocols 0 and 1 begin a dict, or what they name code with; or
     * JSON. No trace starts so: its letters stand alone. */
    if (length == 0) return false;
    if ((unsigned char)bytes[0] == 0x80 || bytes[0] == '(' || bytes[0] == '}') return true;
    if (length > 1 && (bytes[0] == 'c' || bytes[0] == 'i') && first_of(bytes + 1, 1) != 0) return true;
    return first_of(bytes, length) == '{';
}

/* Each operation is an entry; a block's number stands for its address. */
static int from_trace(const char *path, const char *bytes, size_t length, struct snapshot *out,
                      struct problem *problem) {
    struct snapshot_device *device;
    struct trace trace;
    uint64_t *sizes = NULL;
    int rc = -1;
    if (trace_parse(path, bytes, length, &trace, problem) != 0) return -1;
    out->from_trace = true;
    out->max_split_size = out->limit_bytes = UINT64_MAX;
    out->conf = "";
    device = out->devices = calloc(1, sizeof *out->devices);
    out->stacks = calloc(1, sizeof *out->stacks);
    sizes = calloc(trace.blocks + 1, sizeof *sizes);
    if (device != NULL) device->entries = calloc(trace.count, sizeof *device->entries);
    if (device == NULL || out->stacks == NULL || sizes == NULL || device->entries == NULL ||
        trace.count >= SNAPSHOT_NONE) {
        problem_set(problem, "%s: out of memory", path);
        goto done;
    }
    out->device_count = out->stack_count = 1;
    device->entry_count = trace.count;
    for (size_t i = 0; i < trace.count; i++) {
        static const struct {
            const char *name;
            enum snapshot_action action;
        } actions[] = {[TRACE_ALLOC] = {"alloc", SNAPSHOT_ALLOC},
                       [TRACE_REQUEST] = {"free_requested", SNAPSHOT_REQUEST},
                       [TRACE_FREE] = {"free_completed", SNAPSHOT_COMPLETE}};
        const struct trace_op *op = &trace.ops[i];
        if (op->kind == TRACE_ALLOC) sizes[op->block] = op->size;
        device->entries[i] = (struct snapshot_entry){.time_us = (int64_t)i,
                                                     .address = op->block,
                                                     .size = sizes[op->block],
                                                     .stream = op->stream,
                                                     .name = actions[op->kind].name,
                                                     .action = (uint8_t)actions[op->kind].action,
                                                     .life = SNAPSHOT_NONE,
                                                     .closes = SNAPSHOT_NONE};
    }
    rc = snapshot_join(out, device, problem);

done:
    free(sizes);
    trace_free(&trace);
    return rc;
}

static int from_data(const char *path, const char *bytes, size_t length, struct snapshot *out,
                     struct problem *problem) {
    struct store values = {0};
    struct value *root = NULL;
    int rc;
    out->texts = calloc(1, sizeof *out->texts);
    if (out->texts == NULL) {
        problem_set(problem, "%s: out of memory", path);
        return -1;
    }
    if (first_of(bytes, length) == '{')
        rc = unjson(path, bytes, length, &values, &root, problem);
    else
        rc = unpickle(path, bytes, length, &values, &root, problem);
    if (rc == 0) rc = snapshot_build(root, out, problem);
    store_free(&values);
    for (size_t d = 0; d < out->device_count && rc == 0; d++)
        rc = snapshot_join(out, &out->devices[d], problem);
    return rc;
}

int snapshot_parse(const char *path, const char *bytes, size_t length, struct snapshot *out,
                   struct problem *problem) {
    int rc;
    *out = (struct snapshot){.path = path};
    if (snapshot_looks_like(bytes, length))
        rc = from_data(path, bytes, length, out, problem);
    else
        rc = from_trace(path, bytes, length, out, problem);
    if (rc != 0) snapshot_free(out);
    return rc;
}

int snapshot_read(const char *path, struct snapshot *out, struct problem *problem) {
    char *bytes;
    size_t length;
    int rc;
    if (source_read(path, &bytes, &length, problem) != 0) return -1;
    rc = snapshot_parse(path, bytes, length, out, problem);
    free(bytes);
    return rc;
}

void snapshot_free(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->device_count; i++) {
        free(snapshot->devices[i].entries);
        free(snapshot->devices[i].lives);
    }
    free(snapshot->devices);
    free(snapshot->segments);
    free(snapshot->blocks);
    free(snapshot->frames);
    free(snapshot->stacks);
    free(snapshot->frame_ids);
    free(snapshot->marks);
    if (snapshot->texts != NULL) store_free(snapshot->texts);
    free(snapshot->texts);
    *snapshot = (struct snapshot){.path = snapshot->path};
}

const struct snapshot_device *snapshot_main_device(const struct snapshot *snapshot) {
    const struct snapshot_device *best = NULL;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct snapshot_device *d = &snapshot->devices[i];
        bool failed = d->last_oom < d->entry_count;
        bool best_failed = best != NULL && best->last_oom < best->entry_count;
        if (best == NULL || failed > best_failed ||
            (failed == best_failed && d->entry_count > best->entry_count))
            best = d;
    }
    return best;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static bool has(const char *text, const char *part) {
    return strstr(text, part) != NULL;
}

static bool is_python(const char *file) {
    const char *dot = strrchr(file, '.');
    return file[0] == '<' || (dot != NULL && strcmp(dot, ".py") == 0);
}

/* Code that the reader of a report did not write. Of C, what stands in a shared object or in the system's
 * folders, or was built by relative paths, as the C library is. */
static bool is_foreign(const char *file) {
    if (is_python(file))
        return has(file, "site-packages/") || has(file, "dist-packages/") || has(file, "lib/python3") ||
               strncmp(file, "<frozen", 7) == 0 || strcmp(file, "<string>") == 0;
    return file[0] == 0 || file[0] == '.' || strcmp(file, "??") == 0 || has(file, ".so") ||
           strncmp(file, "/usr/", 5) == 0;
}

const struct snapshot_frame *snapshot_line(const struct snapshot *snapshot, uint32_t stack) {
    const struct snapshot_frame *native = NULL, *first = NULL;
    struct snapshot_stack s = snapshot->stacks[stack];
    for (uint32_t i = 0; i < s.count; i++) {
        const struct snapshot_frame *frame = &snapshot->frames[snapshot->frame_ids[s.first + i]];
        bool foreign = is_foreign(frame->file);
        if (is_python(frame->file) && !foreign) return frame;
        if (native == NULL && !foreign) native = frame;
        if (first == NULL && frame->file[0] != 0) first = frame;
    }
    return native != NULL ? native : first;
}

const char *snapshot_frame_text(const char *file, const struct snapshot_frame *frame, char *buffer,
                                size_t room) {
    if (frame->line > 0)
        snprintf(buffer, room, "%s:%llu (%s)", file, (unsigned long long)frame->line, frame->name);
    else
        snprintf(buffer, room, "%s (%s)", file, frame->name);
    return buffer;
}

const char *snapshot_line_text(const struct snapshot *snapshot, uint32_t stack, char *buffer, size_t room) {
    const struct snapshot_frame *frame = snapshot_line(snapshot, stack);
    if (frame != NULL) return snapshot_frame_text(frame->file, frame, buffer, room);
    snprintf(buffer, room, "stack not recorded");
    return buffer;
}
