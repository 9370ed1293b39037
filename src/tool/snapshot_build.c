/* SPDX-License-Identifier: Apache-2.0
 * From the plain data of a file to the arrays of a snapshot.
 *
 * The walk follows the shape that a snapshot has and no other, so it is as deep as that shape. A pickle may
 * put one dict into many places: a dict that is a segment, block, entry or mark is taken once, and frames
 * and stacks are made once for each list, so the walk is linear in the file whatever it says. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/array.h"
#include "tool/escape.h"
#include "tool/map.h"
#include "tool/snapshot_build.h"

/* What a dict or list was taken for: the low bits of its mark. For the last two an index lies above. The mark
 * of a text is its place among the known ones, plus one. */
enum { TAKEN = 1, TAKEN_FRAME = 2, TAKEN_STACK = 3, TAKEN_BITS = 2 };
enum { MOST = 1 << 29 }; /* entries, frames, stacks, texts: indices fit their fields */
enum { DEVICES = 1024 };

struct builder {
    struct snapshot *out;
    const struct value *shared_stacks; /* JSON: frames are indices into it; else NULL */
    struct problem *problem;
    char place[96];                   /* in the file, for messages */
    struct map frames, stacks, names; /* by hash of contents */
    size_t block_room, segment_room, frame_room, stack_room, id_room, device_room, mark_room;
    const char **known; /* texts by index in names */
    size_t known_count, known_room;
};

__attribute__((format(printf, 2, 3))) static int fail(struct builder *b, const char *format, ...) {
    char what[256];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    problem_set(b->problem, "%s: %s%s%s", b->out->path, b->place, b->place[0] != 0 ? ": " : "", what);
    return -1;
}

static int no_memory(struct builder *b) {
    problem_set(b->problem, "%s: out of memory", b->out->path);
    return -1;
}

/* ---- single values --------------------------------------------------------------------------- */

static int list_of(struct builder *b, const struct value *dict, const char *key, const struct value **out) {
    *out = value_get(dict, key);
    if (*out != NULL && ((*out)->kind == VALUE_LIST || (*out)->kind == VALUE_TUPLE)) return 0;
    return fail(b, "%s must be a list and is %s", key, value_kind_name(*out));
}

/* A whole number of at least 0. */
static int number_of(struct builder *b, const struct value *dict, const char *key, uint64_t *out) {
    const struct value *value = value_get(dict, key);
    if (value_unsigned(value, out)) return 0;
    if (value != NULL && value->kind == VALUE_INT)
        return fail(b, "%s is %lld and must not be negative", key, (long long)value->number);
    return fail(b, "%s must be a whole number of 64 bits and is %s", key, value_kind_name(value));
}

/* The same, or the default when the key is not there. */
static int number_or(struct builder *b, const struct value *dict, const char *key, uint64_t otherwise,
                     uint64_t *out) {
    const struct value *value = value_get(dict, key);
    *out = otherwise;
    return value == NULL || value->kind == VALUE_NONE ? 0 : number_of(b, dict, key, out);
}

/* Handles of streams are any 64 bits; files have them signed or unsigned. */
static uint64_t bits_of(const struct value *dict, const char *key) {
    const struct value *value = value_get(dict, key);
    bool whole = value != NULL && (value->kind == VALUE_INT || value->kind == VALUE_UNSIGNED);
    return whole ? (uint64_t)value->number : 0;
}

/* An address: any 64 bits as well, but it must be there. */
static int address_of(struct builder *b, const struct value *dict, const char *key, uint64_t *out) {
    const struct value *value = value_get(dict, key);
    *out = bits_of(dict, key);
    if (value != NULL && (value->kind == VALUE_INT || value->kind == VALUE_UNSIGNED)) return 0;
    return fail(b, "%s must be a whole number of 64 bits and is %s", key, value_kind_name(value));
}

static bool truth_of(const struct value *dict, const char *key) {
    const struct value *value = value_get(dict, key);
    return value != NULL && value->kind == VALUE_BOOL && value->truth;
}

static bool text_is(const struct value *value, const char *text) {
    return value != NULL && value->kind == VALUE_TEXT && value->text.length == strlen(text) &&
           memcmp(value->text.bytes, text, value->text.length) == 0;
}

static int take(struct builder *b, struct value *value) {
    if (value->kind != VALUE_DICT) return fail(b, "it must be a dict and is %s", value_kind_name(value));
    if (value->mark != 0) return fail(b, "the same object stands in several places");
    value->mark = TAKEN;
    return 0;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

/* A text of the snapshot: clean, each once. None and absent give the default. A value is copied once, however
 * many places name it. */
static int text_of(struct builder *b, struct value *value, const char *otherwise, const char **out) {
    struct map_slot *slot;
    uint64_t key;
    char *copy;
    *out = otherwise;
    if (value == NULL || value->kind == VALUE_NONE) return 0;
    if (value->kind != VALUE_TEXT) return fail(b, "a text is %s", value_kind_name(value));
    if (value->mark == 0) {
        copy = store_take(b->out->texts, value->text.length + 1);
        if (copy == NULL || !map_reserve(&b->names)) return no_memory(b);
        escape_clean(value->text.bytes, value->text.length, copy);
        for (key = hash_bytes(1, copy, strlen(copy));; key++) {
            slot = map_at(&b->names, key);
            if (slot->index == 0 || strcmp(b->known[slot->index - 1], copy) == 0) break;
        }
        if (slot->index == 0) {
            if (b->known_count >= MOST ||
                !array_reserve(&b->known, &b->known_room, b->known_count, 1, sizeof *b->known))
                return no_memory(b);
            b->known[b->known_count++] = copy;
            *slot = (struct map_slot){key, (uint32_t)b->known_count};
            b->names.used++;
        }
        value->mark = slot->index;
    }
    *out = b->known[value->mark - 1];
    return 0;
}

/* The tag that a dict has, else its metadata, else NULL. */
static int note_of(struct builder *b, const struct value *dict, const char **out) {
    if (text_of(b, value_get(dict, "tag"), "", out) != 0) return -1;
    if ((*out)[0] == 0 && text_of(b, value_get(dict, "user_metadata"), "", out) != 0) return -1;
    if ((*out)[0] == 0) *out = NULL;
    return 0;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static int frame_of(struct builder *b, struct value *value, uint32_t *out) {
    struct snapshot *s = b->out;
    struct snapshot_frame frame;
    struct map_slot *slot;
    uint64_t key;
    if (value->kind != VALUE_DICT) return fail(b, "a frame must be a dict and is %s", value_kind_name(value));
    if (value->mark != 0) {
        if ((value->mark & ((1 << TAKEN_BITS) - 1)) != TAKEN_FRAME)
            return fail(b, "an object is a frame and more");
        *out = value->mark >> TAKEN_BITS;
        return 0;
    }
    if (text_of(b, value_get(value, "name"), "", &frame.name) != 0 ||
        text_of(b, value_get(value, "filename"), "", &frame.file) != 0)
        return -1;
    if (!value_unsigned(value_get(value, "line"), &frame.line)) frame.line = 0;
    if (!map_reserve(&b->frames)) return no_memory(b);
    /* Texts are the same when their places are. */
    key = hash_bytes(frame.line, (const char *const[]){frame.name, frame.file}, 2 * sizeof(char *));
    for (;; key++) {
        const struct snapshot_frame *known;
        slot = map_at(&b->frames, key);
        if (slot->index == 0) break;
        known = &s->frames[slot->index - 1];
        if (known->name == frame.name && known->file == frame.file && known->line == frame.line) break;
    }
    if (slot->index == 0) {
        if (s->frame_count >= MOST ||
            !array_reserve(&s->frames, &b->frame_room, s->frame_count, 1, sizeof frame))
            return no_memory(b);
        s->frames[s->frame_count++] = frame;
        *slot = (struct map_slot){key, (uint32_t)s->frame_count};
        b->frames.used++;
    }
    *out = slot->index - 1;
    value->mark = *out << TAKEN_BITS | TAKEN_FRAME;
    return 0;
}

/* Adds the stack whose frames are the last count of frame_ids, or finds its equal and takes them back. */
static int stack_add(struct builder *b, size_t count, uint32_t *out) {
    struct snapshot *s = b->out;
    size_t first = b->out->stacks[s->stack_count - 1].first + b->out->stacks[s->stack_count - 1].count;
    const uint32_t *ids = s->frame_ids + first;
    struct map_slot *slot;
    uint64_t key = hash_bytes(2, ids, count * sizeof *ids);
    if (!map_reserve(&b->stacks)) return no_memory(b);
    for (;; key++) {
        const struct snapshot_stack *known;
        slot = map_at(&b->stacks, key);
        if (slot->index == 0) break;
        known = &s->stacks[slot->index - 1];
        if (known->count == count && memcmp(s->frame_ids + known->first, ids, count * sizeof *ids) == 0)
            break;
    }
    if (slot->index == 0) {
        if (s->stack_count >= MOST || first + count > UINT32_MAX ||
            !array_reserve(&s->stacks, &b->stack_room, s->stack_count, 1, sizeof *s->stacks))
            return no_memory(b);
        s->stacks[s->stack_count++] = (struct snapshot_stack){(uint32_t)first, (uint32_t)count};
        *slot = (struct map_slot){key, (uint32_t)s->stack_count};
        b->stacks.used++;
    }
    *out = slot->index - 1;
    return 0;
}

/* The stack of a list of frames; 0 for none. */
static int stack_of(struct builder *b, struct value *value, uint32_t *out) {
    struct snapshot *s = b->out;
    size_t first = s->stacks[s->stack_count - 1].first + s->stacks[s->stack_count - 1].count;
    *out = 0;
    if (value == NULL || value->kind == VALUE_NONE) return 0;
    if (value->kind == VALUE_INT && b->shared_stacks != NULL) {
        if (value->number < 0 || (uint64_t)value->number >= b->shared_stacks->items.count)
            return fail(b, "there is no stack %lld", (long long)value->number);
        value = b->shared_stacks->items.at[value->number];
    }
    if (value->kind != VALUE_LIST && value->kind != VALUE_TUPLE)
        return fail(b, "frames must be a list and is %s", value_kind_name(value));
    if (value->items.count == 0) return 0;
    if (value->mark != 0) {
        *out = value->mark >> TAKEN_BITS; /* lists are marked here only */
        return 0;
    }
    if (!array_reserve(&s->frame_ids, &b->id_room, first, value->items.count, sizeof *s->frame_ids))
        return no_memory(b);
    for (size_t i = 0; i < value->items.count; i++)
        if (frame_of(b, value->items.at[i], &s->frame_ids[first + i]) != 0) return -1;
    if (stack_add(b, value->items.count, out) != 0) return -1;
    value->mark = *out << TAKEN_BITS | TAKEN_STACK;
    return 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

static int device_of(struct builder *b, int index, struct snapshot_device **out) {
    struct snapshot *s = b->out;
    size_t i = 0;
    while (i < s->device_count && s->devices[i].index != index) i++;
    if (i == s->device_count) {
        if (!array_reserve(&s->devices, &b->device_room, i, 1, sizeof *s->devices)) return no_memory(b);
        s->devices[s->device_count++] = (struct snapshot_device){.index = index};
    }
    *out = &s->devices[i];
    return 0;
}

static int block_of(struct builder *b, struct value *value, uint64_t address, struct snapshot_block *out) {
    static const struct {
        const char *name;
        enum snapshot_state state;
    } states[] = {{"active_allocated", SNAPSHOT_LIVE},
                  {"active_pending_free", SNAPSHOT_PENDING},
                  {"active_awaiting_free", SNAPSHOT_PENDING},
                  {"inactive", SNAPSHOT_FREE}};
    const struct value *state;
    size_t i = 0;
    if (take(b, value) != 0 || number_of(b, value, "size", &out->size) != 0 ||
        number_or(b, value, "requested_size", out->size, &out->requested) != 0 ||
        note_of(b, value, &out->note) != 0 || stack_of(b, value_get(value, "frames"), &out->stack) != 0)
        return -1;
    out->address = value_get(value, "address") == NULL ? address : bits_of(value, "address");
    state = value_get(value, "state");
    while (i < sizeof states / sizeof states[0] && !text_is(state, states[i].name)) i++;
    if (i == sizeof states / sizeof states[0]) return fail(b, "state is none of those that a block has");
    out->state = (uint8_t)states[i].state;
    if (out->state == SNAPSHOT_FREE) out->requested = 0;
    return out->size > 0 ? 0 : fail(b, "size is 0");
}

static int pool_of(struct builder *b, const struct value *value, uint64_t pool[2]) {
    pool[0] = pool[1] = 0;
    if (value == NULL || value->kind == VALUE_NONE) return 0;
    if ((value->kind == VALUE_TUPLE || value->kind == VALUE_LIST) && value->items.count == 2 &&
        value_unsigned(value->items.at[0], &pool[0]) && value_unsigned(value->items.at[1], &pool[1]))
        return 0;
    return fail(b, "the name of a pool must be two whole numbers");
}

static int segment_of(struct builder *b, struct value *value, size_t number, struct snapshot_segment *out) {
    struct snapshot *s = b->out;
    const struct value *blocks;
    uint64_t at, end, device;
    snprintf(b->place, sizeof b->place, "segment %zu", number);
    if (take(b, value) != 0 || address_of(b, value, "address", &out->address) != 0 ||
        number_of(b, value, "total_size", &out->size) != 0 || list_of(b, value, "blocks", &blocks) != 0 ||
        number_or(b, value, "device", 0, &device) != 0 ||
        pool_of(b, value_get(value, "segment_pool_id"), out->pool) != 0 ||
        stack_of(b, value_get(value, "frames"), &out->stack) != 0)
        return -1;
    if (__builtin_add_overflow(out->address, out->size, &end))
        return fail(b, "it ends beyond the last address");
    if (device >= DEVICES) return fail(b, "device %llu is out of range", (unsigned long long)device);
    out->device = (int)device;
    out->stream = bits_of(value, "stream");
    out->small = text_is(value_get(value, "segment_type"), "small");
    out->expandable = truth_of(value, "is_expandable");
    out->first = s->block_count;
    out->count = blocks->items.count;
    if (!array_reserve(&s->blocks, &b->block_room, s->block_count, out->count, sizeof *s->blocks))
        return no_memory(b);
    at = out->address;
    for (size_t i = 0; i < out->count; i++) {
        struct snapshot_block *block = &s->blocks[s->block_count];
        snprintf(b->place, sizeof b->place, "segment %zu: block %zu", number, i);
        if (block_of(b, blocks->items.at[i], at, block) != 0) return -1;
        if (block->address != at || block->size > end - at)
            return fail(b, "blocks must tile the segment without gaps, and this does not");
        at += block->size;
        s->block_count++;
    }
    snprintf(b->place, sizeof b->place, "segment %zu", number);
    return at == end ? 0
                     : fail(b, "its blocks end %llu bytes before it does", (unsigned long long)(end - at));
}

static int by_place(const void *left, const void *right) {
    const struct snapshot_segment *a = left, *b = right;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static int segments_of(struct builder *b, const struct value *root) {
    struct snapshot *s = b->out;
    const struct value *list;
    struct snapshot_device *device;
    if (list_of(b, root, "segments", &list) != 0) return -1;
    for (size_t i = 0; i < list->items.count; i++) {
        if (!array_reserve(&s->segments, &b->segment_room, s->segment_count, 1, sizeof *s->segments))
            return no_memory(b);
        if (segment_of(b, list->items.at[i], i, &s->segments[s->segment_count]) != 0) return -1;
        s->segment_count++;
    }
    b->place[0] = 0;
    if (s->segment_count > 0) qsort(s->segments, s->segment_count, sizeof *s->segments, by_place);
    for (size_t i = 0; i < s->segment_count; i++) {
        const struct snapshot_segment *segment = &s->segments[i];
        if (device_of(b, segment->device, &device) != 0) return -1;
        if (device->segment_count++ == 0)
            device->segments = segment;
        else if (segment[-1].address + segment[-1].size > segment->address)
            return fail(b, "two segments overlap at 0x%llx", (unsigned long long)segment->address);
    }
    return 0;
}

/* ---- history --------------------------------------------------------------------------------- */

static enum snapshot_action action_of(const char *name) {
    static const struct {
        const char *name;
        enum snapshot_action action;
    } actions[] = {
        {"alloc", SNAPSHOT_ALLOC},
        {"free_requested", SNAPSHOT_REQUEST},
        {"free_completed", SNAPSHOT_COMPLETE},
        {"segment_alloc", SNAPSHOT_SEGMENT},
        {"segment_map", SNAPSHOT_SEGMENT},
        {"segment_free", SNAPSHOT_UNSEGMENT},
        {"segment_unmap", SNAPSHOT_UNSEGMENT},
        {"oom", SNAPSHOT_OOM},
    };
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, name) == 0) return actions[i].action;
    return SNAPSHOT_OTHER;
}

static int entry_of(struct builder *b, struct value *value, struct snapshot_entry *out) {
    struct value *action;
    const struct value *time;
    *out = (struct snapshot_entry){.life = SNAPSHOT_NONE, .closes = SNAPSHOT_NONE};
    if (take(b, value) != 0) return -1;
    action = value_get(value, "action");
    if (action == NULL || action->kind != VALUE_TEXT)
        return fail(b, "action must be a text and is %s", value_kind_name(action));
    if (text_of(b, action, "", &out->name) != 0) return -1;
    out->action = (uint8_t)action_of(out->name);
    if (number_or(b, value, "size", 0, &out->size) != 0 ||
        number_or(b, value, "device_free", 0, &out->device_free) != 0 ||
        pool_of(b, value_get(value, "pool_id"), out->pool) != 0 || note_of(b, value, &out->note) != 0 ||
        stack_of(b, value_get(value, "frames"), &out->stack) != 0)
        return -1;
    if (out->size > INT64_MAX)
        return fail(b, "size %llu is larger than any memory", (unsigned long long)out->size);
    if (out->action < SNAPSHOT_OOM && value_get(value, "addr") == NULL) return fail(b, "addr is missing");
    if (out->action <= SNAPSHOT_OOM && value_get(value, "size") == NULL) return fail(b, "size is missing");
    out->address = bits_of(value, "addr");
    out->stream = bits_of(value, "stream");
    time = value_get(value, "time_us");
    if (time != NULL && time->kind == VALUE_INT) out->time_us = time->number;
    return 0;
}

static int history_of(struct builder *b, const struct value *root) {
    const struct value *lists = value_get(root, "device_traces");
    if (lists == NULL || lists->kind == VALUE_NONE) return 0;
    if (list_of(b, root, "device_traces", &lists) != 0) return -1;
    if (lists->items.count > DEVICES) return fail(b, "device_traces has %zu devices", lists->items.count);
    for (size_t d = 0; d < lists->items.count; d++) {
        struct value *list = lists->items.at[d];
        struct snapshot_device *device;
        snprintf(b->place, sizeof b->place, "history of device %zu", d);
        if (list->kind != VALUE_LIST) return fail(b, "it must be a list and is %s", value_kind_name(list));
        if (list->items.count == 0) continue;
        if (list->mark != 0) return fail(b, "the same object stands in several places");
        list->mark = TAKEN;
        if (list->items.count >= MOST) return fail(b, "it has more entries than this program can count");
        if (device_of(b, (int)d, &device) != 0) return -1;
        device->entries = malloc(list->items.count * sizeof *device->entries);
        if (device->entries == NULL) return no_memory(b);
        for (size_t i = 0; i < list->items.count; i++) {
            snprintf(b->place, sizeof b->place, "history of device %zu: entry %zu", d, i);
            if (entry_of(b, list->items.at[i], &device->entries[i]) != 0) return -1;
            device->entry_count++;
        }
    }
    b->place[0] = 0;
    return 0;
}

/* A program without history leaves a snapshot that names its failure and has no entry of it: that is its
 * last, then. */
static int failure_of(struct builder *b, const struct value *root) {
    const struct value *own = value_get(root, "granary"), *failure = value_get(own, "failure");
    struct snapshot_entry entry = {.name = "oom", .life = SNAPSHOT_NONE, .closes = SNAPSHOT_NONE}, *entries;
    struct snapshot_device *device;
    uint64_t index = bits_of(own, "device");
    entry.size = bits_of(failure, "rounded_bytes");
    if (entry.size == 0 || entry.size > INT64_MAX) return 0;
    if (index >= DEVICES) return fail(b, "device %llu is out of range", (unsigned long long)index);
    entry.action = SNAPSHOT_OOM;
    entry.device_free = bits_of(failure, "device_free_bytes");
    entry.stream = bits_of(failure, "stream");
    entry.pool[1] = bits_of(failure, "pool");
    entry.time_us = (int64_t)bits_of(own, "time_us");
    if (device_of(b, (int)index, &device) != 0) return -1;
    for (size_t i = 0; i < device->entry_count; i++)
        if (device->entries[i].action == SNAPSHOT_OOM) return 0;
    entries = realloc(device->entries, (device->entry_count + 1) * sizeof *entries);
    if (entries == NULL) return no_memory(b);
    device->entries = entries;
    entries[device->entry_count++] = entry;
    return 0;
}

static int marks_of(struct builder *b, const struct value *root) {
    struct snapshot *s = b->out;
    const struct value *list = value_get(root, "external_annotations");
    if (list == NULL || list->kind != VALUE_LIST) return 0;
    if (!array_reserve(&s->marks, &b->mark_room, 0, list->items.count, sizeof *s->marks)) return no_memory(b);
    for (size_t i = 0; i < list->items.count; i++) {
        struct value *value = list->items.at[i];
        struct snapshot_mark mark;
        const struct value *time;
        snprintf(b->place, sizeof b->place, "annotation %zu", i);
        if (take(b, value) != 0 || text_of(b, value_get(value, "name"), "", &mark.name) != 0) return -1;
        time = value_get(value, "time_us");
        mark.time_us = time != NULL && time->kind == VALUE_INT ? time->number : 0;
        mark.device = (int)(uint32_t)bits_of(value, "device");
        mark.end = text_is(value_get(value, "stage"), "END");
        s->marks[s->mark_count++] = mark;
    }
    b->place[0] = 0;
    return 0;
}

static int by_index(const void *left, const void *right) {
    return ((const struct snapshot_device *)left)->index - ((const struct snapshot_device *)right)->index;
}

int snapshot_build(struct value *root, struct snapshot *out, struct problem *problem) {
    struct builder b = {.out = out, .problem = problem};
    int rc = -1;
    if (root->kind != VALUE_DICT || value_get(root, "segments") == NULL) {
        problem_set(problem, "%s: this is plain data but no snapshot: there is no \"segments\"", out->path);
        return -1;
    }
    root->mark = TAKEN;
    b.shared_stacks = value_get(root, "stacks");
    if (b.shared_stacks != NULL && b.shared_stacks->kind != VALUE_LIST) b.shared_stacks = NULL;
    if (!array_reserve(&out->stacks, &b.stack_room, 0, 1, sizeof *out->stacks)) {
        no_memory(&b);
    } else {
        out->stacks[out->stack_count++] = (struct snapshot_stack){0, 0}; /* 0: not recorded */
        if (segments_of(&b, root) == 0 && history_of(&b, root) == 0 && failure_of(&b, root) == 0 &&
            marks_of(&b, root) == 0)
            rc = 0;
        if (rc == 0 && !snapshot_settings(root, out)) rc = no_memory(&b);
    }
    if (out->device_count > 0) qsort(out->devices, out->device_count, sizeof *out->devices, by_index);
    map_free(&b.frames);
    map_free(&b.stacks);
    map_free(&b.names);
    free(b.known);
    return rc;
}
