/* SPDX-License-Identifier: Apache-2.0
 * The facts of a failure held against the statistics. */
#include "support/shortfall.h"

#include <stdio.h>

#include "base/base.h"

static const char *differ(char words[128], const char *what, size_t told, int64_t is) {
    if ((int64_t)told == is) return NULL;
    snprintf(words, 128, "%s: the shortfall says %zu, it is %lld", what, told, (long long)is);
    return words;
}

const char *shortfall_wrong(granary *g, char words[128]) {
    struct granary_fault fault = {.struct_size = sizeof fault};
    struct granary_stats stats = {.struct_size = sizeof stats};
    const struct granary_shortfall *s = &fault.shortfall;
    const char *wrong = NULL;
    if (granary_last_fault(g, &fault) != GRANARY_OK || granary_get_stats(g, &stats) != GRANARY_OK)
        return "no figures";
    size_t free_bytes = s->free_same_pool_bytes + s->free_other_class_bytes + s->free_other_stream_bytes +
                        s->free_private_bytes + s->free_graph_bytes;
    const size_t active = (size_t)stats.active_bytes.all.current;
    size_t live = 0, idle = 0, rows = sizeof s->streams / sizeof s->streams[0];
    for (size_t i = 0; i < rows; i++) {
        live += s->streams[i].live_bytes;
        idle += s->streams[i].free_bytes;
    }
#define DIFFER(what, told, is) \
    if (!wrong) wrong = differ(words, what, told, (int64_t)(is))
    DIFFER("status", (size_t)(s->status == fault.status), 1);
    DIFFER("live", s->allocated_bytes, stats.allocated_bytes.all.current);
    /* Reading the statistics asks the events, so what was pending may be complete by now. */
    DIFFER("active", gr_max(gr_min(s->active_bytes, active), s->allocated_bytes), active);
    DIFFER("reserved", s->reserved_bytes, stats.reserved_bytes.all.current);
    DIFFER("handle cache", s->handle_cache_bytes, stats.handle_cache_bytes);
    DIFFER("address space", s->reserved_address_bytes, stats.reserved_address_bytes);
    DIFFER("ranges", s->ranges, stats.ranges);
    DIFFER("live + pending", s->allocated_bytes + s->pending_bytes, s->active_bytes);
    DIFFER("active + free", s->active_bytes + free_bytes, s->reserved_bytes);
    DIFFER("held + free on the device + others",
           s->reserved_bytes + s->handle_cache_bytes + s->device_free_bytes + s->foreign_bytes,
           s->device_total_bytes);
    if (s->stream_count <= rows) {
        DIFFER("live, of all streams", live, s->allocated_bytes);
        DIFFER("free, of all streams", idle, free_bytes);
    }
    DIFFER("idle beyond free", (size_t)(s->idle_bytes > free_bytes), 0);
    DIFFER("largest beyond free", (size_t)(s->largest_free_bytes > s->free_same_pool_bytes), 0);
    DIFFER("the pool was searched", s->rungs >> GRANARY_RUNG_POOL & 1, 1);
#undef DIFFER
    return wrong;
}
