/* SPDX-License-Identifier: Apache-2.0
 * Summaries for people. */
#include "report/summary.h"

#include "base/text.h"

enum { WIDTH = 75, COLUMNS = 4 };

struct table {
    char *buffer;
    size_t room;
    bool abbreviated;
};

static void rule(struct table *t, char c) {
    char line[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++) line[i] = c;
    line[WIDTH] = '\0';
    gr_text_add(t->buffer, t->room, "|%s|\n", line);
}

/* ---- cells ---------------------------------------------------------------------------------- */

enum unit { BYTES, COUNT };

/* Ten characters. The unit is chosen for `reference`, so that the rows of a metric agree. */
static void add_cell(struct table *t, enum unit unit, int64_t value, int64_t reference) {
    static const char *const sizes[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static const char *const counts[] = {" ", "K", "M"};
    const int64_t step = unit == BYTES ? 1024 : 1000, most = unit == BYTES ? 768 * 1024 : 750 * 1000;
    size_t k = 0, last = unit == BYTES ? GR_COUNT(sizes) - 1 : GR_COUNT(counts) - 1;
    for (; k < last && reference >= most; k++) {
        reference /= step;
        value /= step;
    }
    if (unit == BYTES)
        gr_text_add(t->buffer, t->room, " %6lld %s |", (long long)value, sizes[k]);
    else
        gr_text_add(t->buffer, t->room, " %7lld %s  |", (long long)value, counts[k]);
}

static void split(const struct granary_stat *stat, int64_t out[COLUMNS]) {
    out[0] = stat->current;
    out[1] = stat->peak;
    out[2] = stat->total_up;
    out[3] = stat->total_down;
}

static void row(struct table *t, const char *name, enum unit unit, const struct granary_stat *stat,
                const struct granary_stat *reference) {
    int64_t value[COLUMNS], of[COLUMNS];
    split(stat, value);
    split(reference, of);
    gr_text_add(t->buffer, t->room, "| %-21s |", name);
    for (int c = 0; c < COLUMNS; c++) add_cell(t, unit, value[c], of[c]);
    gr_text_add(t->buffer, t->room, "\n");
}

static void metric(struct table *t, const char *name, enum unit unit,
                   const struct granary_stat_by_class *by) {
    rule(t, '-');
    row(t, name, unit, &by->all, &by->all);
    if (t->abbreviated) return;
    row(t, "      from large pool", unit, &by->large, &by->all);
    row(t, "      from small pool", unit, &by->small, &by->all);
}

/* A row of which some columns exist only: of those left out the value is -1. */
static void sparse(struct table *t, const char *name, enum unit unit, int64_t current, int64_t up) {
    const int64_t value[COLUMNS] = {current, -1, up, -1};
    gr_text_add(t->buffer, t->room, "| %-21s |", name);
    for (int c = 0; c < COLUMNS; c++)
        if (value[c] < 0)
            gr_text_add(t->buffer, t->room, "            |");
        else
            add_cell(t, unit, value[c], value[c]);
    gr_text_add(t->buffer, t->room, "\n");
}

/* ---- what exists in classic segments only ----------------------------------------------------- */

static void count(struct granary_stat *stat, int64_t by) {
    stat->current += by;
    stat->peak = stat->total_up = stat->current;
}

static void count_class(struct granary_stat_by_class *stat, enum gr_class class, int64_t by) {
    count(&stat->all, by);
    count(class == GR_SMALL ? &stat->small : &stat->large, by);
}

static void look_at_classic(const granary *g, const struct gr_dump *dump, struct granary_split_stats *out) {
    const size_t oversize = g->sizing.max_split_size;
    for (size_t s = 0; s < dump->segment_count; s++) {
        const struct gr_dump_segment *segment = &dump->segments[s];
        if (segment->expandable) continue;
        if (segment->size >= oversize) count(&out->oversize_segments, 1);
        for (size_t i = 0; i < segment->count; i++) {
            const struct gr_dump_block *b = &dump->blocks[segment->first + i];
            if (b->state == GR_BLOCK_LIVE && b->size >= oversize) count(&out->oversize_blocks, 1);
            if (b->state != GR_BLOCK_FREE || segment->count == 1) continue;
            count_class(&out->split_bytes, segment->class, (int64_t)b->size);
            count_class(&out->split_blocks, segment->class, 1);
        }
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

void gr_summary_format(char *buffer, size_t room, int device, const struct granary_stats *s,
                       const struct granary_split_stats *split, bool abbreviated) {
    struct table t = {buffer, room, abbreviated};
    buffer[0] = '\0';
    rule(&t, '=');
    gr_text_add(buffer, room, "|%56s %-17d |\n", "PyTorch CUDA memory summary, device ID", device);
    rule(&t, '-');
    gr_text_add(buffer, room, "|%22s %-12lld |%27s %-8d  |\n", "CUDA OOMs:", (long long)s->out_of_memory,
                "cudaMalloc retries:", 0);
    rule(&t, '=');
    gr_text_add(buffer, room,
                "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n");
    metric(&t, "Allocated memory", BYTES, &s->allocated_bytes);
    metric(&t, "Active memory", BYTES, &s->active_bytes);
    metric(&t, "Requested memory", BYTES, &s->requested_bytes);
    metric(&t, "GPU reserved memory", BYTES, &s->reserved_bytes);
    metric(&t, "Non-releasable memory", BYTES, &split->split_bytes);
    metric(&t, "Allocations", COUNT, &s->allocations);
    metric(&t, "Active allocs", COUNT, &s->active_blocks);
    metric(&t, "GPU reserved segments", COUNT, &s->segments);
    metric(&t, "Non-releasable allocs", COUNT, &split->split_blocks);
    rule(&t, '-');
    row(&t, "Oversize allocations", COUNT, &split->oversize_blocks, &split->oversize_blocks);
    rule(&t, '-');
    row(&t, "Oversize GPU segments", COUNT, &split->oversize_segments, &split->oversize_segments);
    rule(&t, '=');
    sparse(&t, "Pending memory", BYTES, s->active_bytes.all.current - s->allocated_bytes.all.current, -1);
    sparse(&t, "Moved memory", BYTES, -1, s->moved_bytes);
    sparse(&t, "Handle cache", BYTES, s->handle_cache_bytes, -1);
    sparse(&t, "Address space", BYTES, s->reserved_address_bytes, -1);
    sparse(&t, "Extents", COUNT, s->extents, -1);
    sparse(&t, "Misses", COUNT, -1, s->misses);
    rule(&t, '=');
}

void gr_summary_table(char *buffer, size_t room, const granary *g, const struct gr_dump *dump,
                      bool abbreviated) {
    struct granary_split_stats split = {.struct_size = sizeof(split)};
    look_at_classic(g, dump, &split);
    gr_summary_format(buffer, room, g->driver.facts.device, &dump->stats, &split, abbreviated);
}

void gr_summary_line(char *buffer, size_t room, int device, const struct granary_stats *s) {
    char size[5][GR_TEXT_SIZE_ROOM];
    const int64_t value[] = {s->allocated_bytes.all.current, s->reserved_bytes.all.current,
                             s->reserved_bytes.all.current - s->allocated_bytes.all.current,
                             s->allocated_bytes.all.peak, s->reserved_bytes.all.peak};
    for (size_t i = 0; i < GR_COUNT(size); i++) gr_text_size(size[i], GR_TEXT_SIZE_ROOM, (uint64_t)value[i]);
    gr_text_put(buffer, room, "granary: device %d: %s allocated, %s reserved, %s between; peaks %s and %s",
                device, size[0], size[1], size[2], size[3], size[4]);
}
