/* SPDX-License-Identifier: Apache-2.0
 * The figures of a snapshot. */
#include "report/statistics.h"

/* Sizes that stand for no limit are -1, as in PyTorch's settings. */
static int64_t or_none(size_t size) {
    return size == GRANARY_UNLIMITED ? -1 : (int64_t)size;
}

void gr_statistics_settings(struct gr_writer *w, const struct gr_dump *dump) {
    const struct granary_options *o = &dump->settings;
    static const char *const steps[] = {"1",   "2",   "4",    "8",    "16",   "32",   "64",    "128",
                                        "256", "512", "1024", "2048", "4096", "8192", "16384", "32768"};
    gr_writer_dict(w);
    gr_writer_put_word(w, "PYTORCH_CUDA_ALLOC_CONF", dump->expandable ? "expandable_segments:True" : "");
    gr_writer_put_int(w, "max_split_size", or_none(o->max_split_size));
    gr_writer_key(w, "garbage_collection_threshold");
    gr_writer_real(w, o->garbage_collection_threshold);
    gr_writer_put_bool(w, "expandable_segments", dump->expandable);
    gr_writer_put_int(w, "pinned_num_register_threads", 1);
    gr_writer_put_bool(w, "release_lock_on_cudamalloc", true); /* hits go on while a miss is in the driver */
    gr_writer_put_bool(w, "pinned_use_cuda_host_register", false);
    gr_writer_put_bool(w, "graph_capture_record_stream_reuse", o->capture_reuse != GRANARY_REUSE_OFF);
    gr_writer_key(w, "roundup_power2_divisions");
    gr_writer_dict(w);
    for (size_t i = 0; i < GR_COUNT(steps); i++)
        gr_writer_put_int(w, steps[i], o->roundup_power2_divisions[i]);
    gr_writer_end(w);
    gr_writer_end(w);
}

/* ---- ours ----------------------------------------------------------------------------------- */

static void put_stat(struct gr_writer *w, const char *key, const struct granary_stat *stat) {
    gr_writer_key(w, key);
    gr_writer_dict(w);
    gr_writer_put_int(w, "current", stat->current);
    gr_writer_put_int(w, "peak", stat->peak);
    gr_writer_put_int(w, "total_up", stat->total_up);
    gr_writer_put_int(w, "total_down", stat->total_down);
    gr_writer_end(w);
}

static void put_by_class(struct gr_writer *w, const char *key, const struct granary_stat_by_class *stat) {
    gr_writer_key(w, key);
    gr_writer_dict(w);
    put_stat(w, "all", &stat->all);
    put_stat(w, "small", &stat->small);
    put_stat(w, "large", &stat->large);
    gr_writer_end(w);
}

static void put_stats(struct gr_writer *w, const struct granary_stats *s) {
    gr_writer_key(w, "statistics");
    gr_writer_dict(w);
#define BY_CLASS(field) put_by_class(w, #field, &s->field)
#define FIGURE(field) gr_writer_put_int(w, #field, s->field)
    BY_CLASS(allocated_bytes);
    BY_CLASS(active_bytes);
    BY_CLASS(requested_bytes);
    BY_CLASS(reserved_bytes);
    BY_CLASS(allocations);
    BY_CLASS(active_blocks);
    BY_CLASS(segments);
    FIGURE(handle_cache_bytes);
    FIGURE(reserved_address_bytes);
    FIGURE(ranges);
    FIGURE(extents);
    FIGURE(pending_blocks);
    FIGURE(misses);
    FIGURE(out_of_memory);
    FIGURE(moved_extents);
    FIGURE(moved_bytes);
    FIGURE(maps);
    FIGURE(unmaps);
    FIGURE(collected_bytes);
    FIGURE(moving_ns);
#undef BY_CLASS
#undef FIGURE
    gr_writer_end(w);
}

static void put_facts(struct gr_writer *w, const granary *g, const struct gr_dump *dump) {
    const struct gr_facts *facts = &g->driver.facts;
    gr_writer_key(w, "facts");
    gr_writer_dict(w);
    gr_writer_put_text(w, "name", facts->name);
    gr_writer_put_int(w, "driver_version", facts->driver_version);
    gr_writer_put_int(w, "total_bytes", (int64_t)facts->total_bytes);
    gr_writer_put_int(w, "granule_bytes", (int64_t)facts->granule);
    gr_writer_put_bool(w, "expandable_segments", dump->expandable);
    gr_writer_put_text(w, "expandable_reason", dump->expandable_reason);
    gr_writer_put_bool(w, "simulated", g->driver.simulated);
    gr_writer_end(w);
}

static void put_options(struct gr_writer *w, const struct gr_dump *dump) {
    static const char *const reclaim[] = {"off", "pressure", "eager"};
    const struct granary_options *o = &dump->settings;
    gr_writer_key(w, "options");
    gr_writer_dict(w);
    gr_writer_put_bool(w, "expandable_segments", dump->expandable);
    gr_writer_put_int(w, "max_split_size", or_none(o->max_split_size));
    gr_writer_put_int(w, "limit_bytes", or_none(dump->limit));
    gr_writer_put_int(w, "handle_cache_bytes", (int64_t)o->handle_cache_bytes);
    gr_writer_put_word(w, "reclaim", reclaim[o->reclaim]);
    gr_writer_key(w, "garbage_collection_threshold");
    gr_writer_real(w, o->garbage_collection_threshold);
    gr_writer_put_bool(w, "no_caching", o->no_caching != 0);
    gr_writer_put_int(w, "extent_bytes", (int64_t)o->extent_bytes);
    gr_writer_end(w);
}

static void put_history(struct gr_writer *w, const struct granary_history *h) {
    static const char *const levels[] = {"off", "state", "alloc", "all"};
    gr_writer_key(w, "history");
    gr_writer_dict(w);
    gr_writer_put_word(w, "level", levels[h->level]);
    gr_writer_key(w, "stacks");
    gr_writer_list(w);
    if (h->stacks & GRANARY_STACKS_C) gr_writer_word(w, "c");
    if (h->stacks & GRANARY_STACKS_PYTHON) gr_writer_word(w, "python");
    gr_writer_end(w);
    gr_writer_put_int(w, "room", h->entries);
    gr_writer_put_int(w, "kept", h->kept);
    gr_writer_put_int(w, "recorded", h->recorded);
    gr_writer_put_int(w, "dropped", h->dropped);
    gr_writer_put_int(w, "stacks_lost", h->stacks_lost);
    gr_writer_end(w);
}

static void put_streams(struct gr_writer *w, const struct granary_shortfall *s) {
    gr_writer_key(w, "streams");
    gr_writer_list(w);
    for (size_t i = 0; i < gr_min(s->stream_count, GR_COUNT(s->streams)); i++) {
        const struct granary_shortfall_stream *row = &s->streams[i];
        gr_writer_dict(w);
        gr_writer_put_int(w, "stream", (int64_t)gr_place_stream(row->stream));
        gr_writer_put_int(w, "live_bytes", (int64_t)row->live_bytes);
        gr_writer_put_int(w, "free_bytes", (int64_t)row->free_bytes);
        gr_writer_put_int(w, "pending_bytes", (int64_t)row->pending_bytes);
        gr_writer_end(w);
    }
    gr_writer_end(w);
}

static void put_holders(struct gr_writer *w, const struct granary_shortfall *s) {
    gr_writer_key(w, "holders");
    gr_writer_list(w);
    for (size_t i = 0; i < GR_COUNT(s->holders) && s->holders[i].bytes > 0; i++) {
        gr_writer_dict(w);
        gr_writer_put_text(w, "name", s->holders[i].name);
        gr_writer_put_int(w, "bytes", (int64_t)s->holders[i].bytes);
        gr_writer_put_int(w, "blocks", (int64_t)s->holders[i].blocks);
        gr_writer_end(w);
    }
    gr_writer_end(w);
}

static void put_failure(struct gr_writer *w, const struct granary_fault *fault) {
    gr_writer_key(w, "failure");
    if (!fault) {
        gr_writer_none(w);
        return;
    }
    const struct granary_shortfall *s = &fault->shortfall;
    gr_writer_dict(w);
    gr_writer_put_text(w, "status", granary_status_name(fault->status));
    gr_writer_put_text(w, "text", fault->text);
#define SIZE(field) gr_writer_put_int(w, #field, or_none(s->field))
    SIZE(requested_bytes);
    SIZE(rounded_bytes);
    SIZE(grow_bytes);
    SIZE(allocated_bytes);
    SIZE(active_bytes);
    SIZE(reserved_bytes);
    SIZE(pending_bytes);
    SIZE(free_same_pool_bytes);
    SIZE(free_other_class_bytes);
    SIZE(free_other_stream_bytes);
    SIZE(free_private_bytes);
    SIZE(free_graph_bytes);
    SIZE(handle_cache_bytes);
    SIZE(largest_free_bytes);
    SIZE(largest_free_other_bytes);
    SIZE(idle_bytes);
    SIZE(limit_bytes);
    SIZE(device_free_bytes);
    SIZE(device_total_bytes);
    SIZE(foreign_bytes);
    SIZE(reserved_address_bytes);
    SIZE(ranges);
#undef SIZE
    gr_writer_put_int(w, "stream", (int64_t)gr_place_stream(s->stream));
    gr_writer_put_int(w, "pool", (int64_t)s->pool);
    gr_writer_put_int(w, "rungs", s->rungs);
    gr_writer_put_int(w, "open_captures", s->open_captures);
    gr_writer_put_int(w, "stream_count", (int64_t)s->stream_count);
    put_streams(w, s);
    put_holders(w, s);
    gr_writer_end(w);
}

void gr_statistics_ours(struct gr_writer *w, const granary *g, const struct gr_dump *dump,
                        const struct granary_fault *fault) {
    gr_writer_dict(w);
    gr_writer_put_int(w, "format", 1);
    gr_writer_put_text(w, "version", granary_version());
    gr_writer_put_int(w, "time_us", (int64_t)(dump->time_ns / 1000));
    gr_writer_put_int(w, "device", g->driver.facts.device);
    put_facts(w, g, dump);
    put_options(w, dump);
    put_stats(w, &dump->stats);
    put_history(w, &dump->history);
    put_failure(w, fault);
    gr_writer_end(w);
}
