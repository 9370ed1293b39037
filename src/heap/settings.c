/* SPDX-License-Identifier: Apache-2.0
 * Settings of an open handle: one function takes them over, whoever changes them. */
#include "heap/settings.h"

#include <string.h>

#include "base/host.h"
#include "base/text.h"
#include "policy/config.h"

static size_t limit_of(const struct granary_options *options, size_t total) {
    /* Rounded to the nearest byte, as PyTorch does. A fraction of 1 is no limit. */
    size_t part = options->limit_fraction < 1 ? (size_t)(options->limit_fraction * (double)total + 0.5)
                                              : GRANARY_UNLIMITED;
    return gr_min(part, options->limit_bytes);
}

/* The pools that serve and those put aside change places. */
static void switch_pools(granary *g) {
    GR_HEAP_FOR(heap, g) {
        if (heap->no_split) continue; /* classic whatever is set */
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_CLASSES; c++) {
                struct gr_pool *serving = gr_heap_pool(route, c),
                               *aside = gr_heap_pool(route, GR_CLASSES + c);
                atomic_store_explicit(&route->pool[GR_CLASSES + c], serving, memory_order_release);
                atomic_store_explicit(&route->pool[c], aside, memory_order_release);
            }
    }
}

static void apply(granary *g, const struct granary_options *options) {
    bool expandable = options->expandable_segments && !g->no_caching;
    bool collects = options->garbage_collection_threshold > 0, collected = g->garbage_threshold > 0;
    g->settings = *options;
    gr_sizing_set(&g->sizing, options);
    g->reclaim = (enum granary_reclaim)options->reclaim;
    g->extent =
        g->reclaim == GRANARY_RECLAIM_EAGER ? 1 : gr_max(options->extent_bytes / g->driver.facts.granule, 1);
    g->limit = limit_of(options, g->driver.facts.total_bytes);
    gr_extents_limit_cache(&g->extents, options->handle_cache_bytes);
    gr_defer_set_reuse(&g->defer, (enum granary_capture_reuse)options->capture_reuse);
    g->reject_early = options->reject_early != 0;
    g->garbage_threshold = options->garbage_collection_threshold;
    if (collects && !collected) atomic_fetch_add(&g->routing, 1); /* requests are counted from now on */
    if (collected && !collects) atomic_fetch_sub(&g->routing, 1);
    if (expandable != g->expandable) {
        switch_pools(g);
        g->expandable = expandable;
        gr_text_put(g->expandable_reason, sizeof(g->expandable_reason), "%s",
                    expandable ? "" : "switched off");
    }
}

/* Origin of a key's value, without knowing its place in the table. */
static uint8_t *origin_of(granary *g, const char *key) {
    return &g->settings.origin[gr_option_owner(gr_option_find(key, strlen(key)))];
}

void gr_settings_init(granary *g, const struct granary_options *options) {
    struct granary_options settings = *options;
    settings.fault = NULL; /* the caller's, for opening */
    if (settings.expandable_segments && !g->driver.facts.vmm) settings.expandable_segments = 0;
    g->no_caching = settings.no_caching != 0;
    g->expandable = settings.expandable_segments && !g->no_caching;
    atomic_init(&g->routing, g->no_caching);
    apply(g, &settings);
    if (options->expandable_segments && !settings.expandable_segments)
        *origin_of(g, "expandable_segments") = GR_FROM_DEVICE;
}

void gr_settings_fini(granary *g) {
    for (struct gr_saved *saved = g->saved, *older; saved; saved = older) {
        older = saved->older;
        gr_host_give(saved);
    }
    g->saved = NULL;
}

/* Reads the string into a copy of what is in force. */
static int read_change(granary *g, const char *string, struct granary_options *out,
                       struct granary_option_error *error) {
    *out = g->settings;
    int status = gr_config_parse(out, string, "update", GR_CONFIG_CHANGE, error);
    if (status != GRANARY_OK) return status;
    return out->expandable_segments && !g->driver.facts.vmm ? GRANARY_UNSUPPORTED : GRANARY_OK;
}

int gr_settings_update(granary *g, const char *string, bool push, struct granary_option_error *error) {
    struct gr_saved *saved = push ? gr_host_take(1, sizeof(*saved), 8) : NULL;
    struct granary_options options;
    if (push && !saved) return GRANARY_HOST_MEMORY;
    gr_lock_take(&g->miss);
    int status = read_change(g, string, &options, error);
    if (status == GRANARY_OK && saved) {
        *saved = (struct gr_saved){.older = g->saved, .settings = g->settings};
        g->saved = saved;
    }
    if (status == GRANARY_OK) apply(g, &options);
    gr_lock_give(&g->miss);
    if (status != GRANARY_OK) gr_host_give(saved);
    return status;
}

int gr_settings_pop(granary *g) {
    gr_lock_take(&g->miss);
    struct gr_saved *saved = g->saved;
    if (saved) {
        g->saved = saved->older;
        apply(g, &saved->settings);
    }
    gr_lock_give(&g->miss);
    if (!saved) return GRANARY_ORDER;
    gr_host_give(saved);
    return GRANARY_OK;
}

void gr_settings_limit(granary *g, size_t bytes) {
    gr_lock_take(&g->miss);
    struct granary_options options = g->settings;
    options.limit_bytes = bytes;
    options.limit_fraction = 1;
    apply(g, &options);
    *origin_of(g, "memory_limit") = *origin_of(g, "per_process_memory_fraction") = GR_FROM_DEFAULT;
    gr_lock_give(&g->miss);
}

void gr_settings_read(granary *g, struct granary_options *out) {
    gr_lock_take(&g->miss);
    *out = g->settings;
    gr_lock_give(&g->miss);
}

/* ---- addresses by class ------------------------------------------------------------------- */

const struct granary_reserve *gr_settings_reserve(const granary *g, const struct gr_stream *stream) {
    const struct granary_reserve_class *classes = g->settings.reserve_by_class;
    for (size_t i = 0; i < GRANARY_RESERVE_CLASSES && classes[i].name[0]; i++)
        if (strcmp(classes[i].name, stream->reserve_class) == 0) return &classes[i].reserve;
    return &g->settings.reserve;
}

int gr_settings_class(granary *g, gr_cu_stream handle, const char *name) {
    struct gr_stream *stream;
    gr_lock_take(&g->miss);
    int status = gr_heap_stream(g, handle, true, &stream);
    if (status == GRANARY_OK) memcpy(stream->reserve_class, name, strlen(name) + 1);
    gr_lock_give(&g->miss);
    return status;
}
