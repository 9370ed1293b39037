/* SPDX-License-Identifier: Apache-2.0
 * The settings under which a snapshot was taken, and what granary's own snapshots add: limits, figures, the
 * failure that wrote it. All of it may be missing. */
#include <string.h>

#include "tool/escape.h"
#include "tool/snapshot_build.h"

static int64_t number(const struct value *dict, const char *key, int64_t otherwise) {
    const struct value *value = value_get(dict, key);
    return value != NULL && value->kind == VALUE_INT ? value->number : otherwise;
}

/* -1 is how files say "unlimited". */
static uint64_t limit(const struct value *dict, const char *key) {
    int64_t value = number(dict, key, -1);
    return value < 0 ? UINT64_MAX : (uint64_t)value;
}

static bool text(const struct value *value, struct snapshot *out, const char **copy) {
    char *room;
    if (value == NULL || value->kind != VALUE_TEXT) return true;
    room = store_take(out->texts, value->text.length + 1);
    if (room == NULL) return false;
    escape_clean(value->text.bytes, value->text.length, room);
    *copy = room;
    return true;
}

static struct granary_stat stat_of(const struct value *dict) {
    return (struct granary_stat){number(dict, "current", 0), number(dict, "peak", 0),
                                 number(dict, "total_up", 0), number(dict, "total_down", 0)};
}

static struct granary_stat_by_class by_class(const struct value *statistics, const char *key) {
    const struct value *dict = value_get(statistics, key);
    return (struct granary_stat_by_class){stat_of(value_get(dict, "all")), stat_of(value_get(dict, "small")),
                                          stat_of(value_get(dict, "large"))};
}

static void read_statistics(const struct value *dict, struct granary_stats *out) {
    if (dict == NULL || dict->kind != VALUE_DICT) return;
    out->struct_size = sizeof *out;
    out->allocated_bytes = by_class(dict, "allocated_bytes");
    out->active_bytes = by_class(dict, "active_bytes");
    out->requested_bytes = by_class(dict, "requested_bytes");
    out->reserved_bytes = by_class(dict, "reserved_bytes");
    out->allocations = by_class(dict, "allocations");
    out->active_blocks = by_class(dict, "active_blocks");
    out->segments = by_class(dict, "segments");
    out->handle_cache_bytes = number(dict, "handle_cache_bytes", 0);
    out->reserved_address_bytes = number(dict, "reserved_address_bytes", 0);
    out->ranges = number(dict, "ranges", 0);
    out->extents = number(dict, "extents", 0);
    out->pending_blocks = number(dict, "pending_blocks", 0);
    out->misses = number(dict, "misses", 0);
    out->out_of_memory = number(dict, "out_of_memory", 0);
    out->moved_extents = number(dict, "moved_extents", 0);
    out->moved_bytes = number(dict, "moved_bytes", 0);
    out->maps = number(dict, "maps", 0);
    out->unmaps = number(dict, "unmaps", 0);
}

bool snapshot_settings(const struct value *root, struct snapshot *out) {
    const struct value *settings = value_get(root, "allocator_settings"), *own = value_get(root, "granary");
    const struct value *expandable = value_get(settings, "expandable_segments");
    const struct value *threshold = value_get(settings, "garbage_collection_threshold");
    out->conf = "";
    out->max_split_size = limit(settings, "max_split_size");
    out->expandable = expandable != NULL && expandable->kind == VALUE_BOOL && expandable->truth;
    if (threshold != NULL && threshold->kind == VALUE_FLOAT)
        out->garbage_collection_threshold = threshold->real;
    out->own = own != NULL && own->kind == VALUE_DICT;
    out->limit_bytes = limit(value_get(own, "options"), "limit_bytes");
    out->total_bytes = (uint64_t)number(value_get(own, "facts"), "total_bytes", 0);
    out->dropped = (uint64_t)number(value_get(own, "history"), "dropped", 0);
    read_statistics(value_get(own, "statistics"), &out->statistics);
    return text(value_get(settings, "PYTORCH_CUDA_ALLOC_CONF"), out, &out->conf) &&
           text(value_get(value_get(own, "failure"), "text"), out, &out->failure);
}
