/* SPDX-License-Identifier: Apache-2.0
 * The traffic of a snapshot as a trace, so that it can be replayed under other settings. */
#include <stdlib.h>

#include "tool/array.h"
#include "tool/map.h"
#include "tool/snapshot.h"

struct recorder {
    const struct snapshot_device *device;
    struct trace *trace;
    uint32_t *origin;
    uint32_t *blocks; /* of the trace, by life, plus one */
    size_t room, origin_room;
    struct map streams; /* by stream and pool */
    const char *why;    /* what went wrong */
};

static bool record(struct recorder *r, struct trace_op op, uint32_t origin) {
    struct trace *t = r->trace;
    if (!array_reserve(&t->ops, &r->room, t->count, 1, sizeof *t->ops) ||
        !array_reserve(&r->origin, &r->origin_room, t->count, 1, sizeof *r->origin)) {
        r->why = "out of memory";
        return false;
    }
    r->origin[t->count] = origin;
    t->ops[t->count++] = op;
    return true;
}

static bool record_alloc(struct recorder *r, uint64_t size, uint64_t stream, const uint64_t pool[2],
                         uint32_t origin) {
    const uint64_t key = stream ^ pool[0] * UINT64_C(0xff51afd7ed558ccd) ^
                         pool[1] * UINT64_C(0xc4ceb9fe1a85ec53);
    struct trace *t = r->trace;
    struct map_slot *slot;
    if (!map_reserve(&r->streams)) {
        r->why = "out of memory";
        return false;
    }
    slot = map_at(&r->streams, key);
    if (slot->index == 0) {
        if (t->streams == UINT16_MAX) {
            r->why = "more than 65535 streams";
            return false;
        }
        *slot = (struct map_slot){key, (uint32_t)++t->streams};
        r->streams.used++;
    }
    return record(r, (struct trace_op){size, (uint32_t)t->blocks++, (uint16_t)(slot->index - 1), TRACE_ALLOC},
                  origin);
}

static bool record_free(struct recorder *r, uint32_t life, enum trace_kind kind, uint32_t origin) {
    return record(r, (struct trace_op){.kind = (uint8_t)kind, .block = r->blocks[life] - 1}, origin);
}

static bool record_entry(struct recorder *r, uint32_t i) {
    const struct snapshot_entry *e = &r->device->entries[i];
    const struct snapshot_life *life;
    if (e->closes != SNAPSHOT_NONE && !record_free(r, e->closes, TRACE_FREE, i)) return false;
    if (e->life == SNAPSHOT_NONE) return true;
    life = &r->device->lives[e->life];
    switch (e->action) {
    case SNAPSHOT_ALLOC:
        r->blocks[e->life] = (uint32_t)r->trace->blocks + 1;
        return record_alloc(r, life->size, life->stream, life->pool, i);
    case SNAPSHOT_REQUEST:
        /* Where no free_completed was recorded the request is the end. */
        return record_free(r, e->life, life->end == i ? TRACE_FREE : TRACE_REQUEST, i);
    case SNAPSHOT_COMPLETE: return record_free(r, e->life, TRACE_FREE, i);
    default: return true;
    }
}

int snapshot_to_trace(const struct snapshot *snapshot, const struct snapshot_device *device, size_t entry,
                      struct trace *out, uint32_t **origin, struct problem *problem) {
    struct recorder r = {.device = device, .trace = out, .why = "out of memory"};
    bool good;
    *out = (struct trace){.path = snapshot->path, .version = 1};
    r.blocks = calloc(device->life_count + 1, sizeof *r.blocks);
    good = r.blocks != NULL;
    for (size_t i = 0; i < device->before_count && good; i++) {
        const struct snapshot_life *life = &device->lives[i];
        r.blocks[i] = (uint32_t)out->blocks + 1;
        good = record_alloc(&r, life->size, life->stream, life->pool, SNAPSHOT_NONE);
    }
    for (size_t i = 0; i < entry && good; i++) good = record_entry(&r, (uint32_t)i);
    if (good && entry < device->entry_count && device->entries[entry].action == SNAPSHOT_OOM) {
        const struct snapshot_entry *e = &device->entries[entry];
        good = record_alloc(&r, e->size, e->stream, e->pool, (uint32_t)entry);
    }
    map_free(&r.streams);
    free(r.blocks);
    if (good && out->count == 0) {
        r.why = "there is no operation in it";
        good = false;
    }
    if (good && origin != NULL)
        *origin = r.origin;
    else
        free(r.origin);
    if (good) return 0;
    trace_free(out);
    problem_set(problem, "%s: %s", snapshot->path, r.why);
    return -1;
}

int snapshot_read_trace(const char *path, struct trace *out, struct problem *problem) {
    struct snapshot snapshot;
    const struct snapshot_device *device;
    char *bytes;
    size_t length;
    int rc = -1;
    if (source_read(path, &bytes, &length, problem) != 0) return -1;
    if (!snapshot_looks_like(bytes, length)) {
        rc = trace_parse(path, bytes, length, out, problem);
        free(bytes);
        return rc;
    }
    rc = snapshot_parse(path, bytes, length, &snapshot, problem);
    free(bytes);
    if (rc != 0) return -1;
    device = snapshot_main_device(&snapshot);
    if (device == NULL) {
        problem_set(problem, "%s: there is no operation in it", path);
        rc = -1;
    } else {
        rc = snapshot_to_trace(&snapshot, device, device->last_oom, out, NULL, problem);
    }
    snapshot_free(&snapshot);
    return rc;
}
