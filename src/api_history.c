/* SPDX-License-Identifier: Apache-2.0
 * The public functions on history, snapshots and summaries: arguments, and the words of failures. */
#include <errno.h>
#include <string.h>

#include "base/host.h"
#include "policy/options.h"
#include "report/fault.h"
#include "report/holders.h"
#include "report/save.h"
#include "report/summary.h"

/* ---- history ------------------------------------------------------------------------------ */

void granary_history_options_init(struct granary_history_options *options) {
    if (!options) return;
    *options = (struct granary_history_options){.struct_size = sizeof(*options),
                                                .level = GRANARY_HISTORY_ALL,
                                                .stacks = GRANARY_STACKS_ALL,
                                                .entries = GR_OPTIONS_HISTORY_ENTRIES};
}

int granary_record_history(granary *g, const struct granary_history_options *given) {
    const char *call = "granary_record_history";
    struct granary_history_options options;
    if (!g) return GRANARY_INVALID;
    granary_history_options_init(&options);
    if (given && given->struct_size < sizeof(options))
        return gr_fault_fail(g, call, GRANARY_INVALID,
                             "options.struct_size is %zu; call granary_history_options_init",
                             given->struct_size);
    if (given) memcpy(&options, given, sizeof(options));
    if ((unsigned)options.level > GRANARY_HISTORY_ALL || (unsigned)options.stacks > GRANARY_STACKS_ALL)
        return gr_fault_fail(g, call, GRANARY_INVALID,
                             "options.level is %d and stacks %d; the most are %d and %d", options.level,
                             options.stacks, (int)GRANARY_HISTORY_ALL, (int)GRANARY_STACKS_ALL);
    int status = gr_dump_record(g, options.level, options.stacks, options.entries);
    return status == GRANARY_OK
               ? GRANARY_OK
               : gr_fault_fail(g, call, status, "no host memory for %zu entries of %zu bytes",
                               options.entries, (size_t)GR_RING_ENTRY);
}

int granary_clear_history(granary *g) {
    if (!g) return GRANARY_INVALID;
    gr_dump_forget(g);
    return GRANARY_OK;
}

int granary_get_history(granary *g, struct granary_history *out) {
    if (!g) return GRANARY_INVALID;
    struct granary_history history;
    gr_dump_read_history(g, &history);
    return gr_fault_copy_out(g, "granary_get_history", out, &history, sizeof(history));
}

int granary_set_tag(const char *tag, char previous[GRANARY_TAG_ROOM]) {
    return tag ? gr_stacks_set_tag(tag, previous) : GRANARY_INVALID;
}

int granary_set_metadata(const char *text, char previous[GRANARY_METADATA_ROOM]) {
    return text ? gr_stacks_set_metadata(text, previous) : GRANARY_INVALID;
}

int granary_annotate(granary *g, const char *name, int start) {
    char cut[GRANARY_METADATA_ROOM];
    if (!g) return GRANARY_INVALID;
    if (!name) return gr_fault_fail(g, "granary_annotate", GRANARY_INVALID, "name is NULL");
    size_t size = strnlen(name, sizeof(cut) - 1);
    memcpy(cut, name, size);
    cut[size] = '\0';
    gr_lock_take(&g->miss);
    int status = gr_ledger_annotate(&g->ledger, start != 0, cut);
    gr_lock_give(&g->miss);
    return status == GRANARY_OK ? GRANARY_OK : gr_fault_fail(g, "granary_annotate", status, "%s", "");
}

int granary_get_holders(granary *g, enum granary_holders by, struct granary_holder *out, size_t room,
                        size_t *count) {
    const char *call = "granary_get_holders";
    if (!g) return GRANARY_INVALID;
    if ((unsigned)by > GRANARY_BY_STACK)
        return gr_fault_fail(g, call, GRANARY_INVALID, "by is %d; it is GRANARY_BY_TAG or GRANARY_BY_STACK",
                             (int)by);
    if (!out || !count) return gr_fault_fail(g, call, GRANARY_INVALID, "out or count is NULL");
    int status = gr_holders_read(g, by, out, room, count);
    return status == GRANARY_OK ? GRANARY_OK : gr_fault_fail(g, call, status, "%s", "");
}

/* ---- snapshots and summaries -------------------------------------------------------------- */

static int check_format(granary *g, const char *call, enum granary_format format) {
    if ((unsigned)format <= GRANARY_JSON) return GRANARY_OK;
    return gr_fault_fail(g, call, GRANARY_INVALID, "format is %d; it is GRANARY_PICKLE or GRANARY_JSON",
                         (int)format);
}

int granary_snapshot(granary *g, enum granary_format format, granary_writer writer, void *context) {
    const char *call = "granary_snapshot";
    if (!g) return GRANARY_INVALID;
    int status = check_format(g, call, format);
    if (status != GRANARY_OK) return status;
    if (!writer) return gr_fault_fail(g, call, GRANARY_INVALID, "writer is NULL");
    status = gr_snapshot_write(g, format, NULL, writer, context);
    return status == GRANARY_OK ? GRANARY_OK : gr_fault_fail(g, call, status, "%s", "");
}

int granary_snapshot_file(granary *g, enum granary_format format, const char *path) {
    const char *call = "granary_snapshot_file";
    if (!g) return GRANARY_INVALID;
    int status = check_format(g, call, format);
    if (status != GRANARY_OK) return status;
    if (!path || !path[0]) return gr_fault_fail(g, call, GRANARY_INVALID, "path is NULL or empty");
    status = gr_save_snapshot(g, format, NULL, path);
    if (status == GRANARY_WRITE) {
        char why[64];
        return gr_fault_fail(g, call, status, "%s could not be written: %s", path,
                             strerror_r(errno, why, sizeof(why)));
    }
    return status == GRANARY_OK ? GRANARY_OK : gr_fault_fail(g, call, status, "%s", "");
}

static int check_room(granary *g, const char *call, const char *buffer, size_t room, size_t least) {
    if (!buffer) return gr_fault_fail(g, call, GRANARY_INVALID, "buffer is NULL");
    if (room < least)
        return gr_fault_fail(g, call, GRANARY_INVALID, "room is %zu; the least is %zu", room, least);
    return GRANARY_OK;
}

int granary_summary(granary *g, int abbreviated, char *buffer, size_t room) {
    const char *call = "granary_summary";
    struct gr_dump dump;
    if (!g) return GRANARY_INVALID;
    int status = check_room(g, call, buffer, room, GRANARY_SUMMARY_ROOM);
    if (status != GRANARY_OK) return status;
    status = gr_dump_take(g, false, &dump);
    if (status != GRANARY_OK) return gr_fault_fail(g, call, status, "%s", "");
    gr_summary_table(buffer, room, g->driver.facts.device, &dump, abbreviated != 0);
    gr_dump_fini(&dump);
    return GRANARY_OK;
}

int granary_format_summary(int device, const struct granary_stats *stats,
                           const struct granary_split_stats *split, int abbreviated, char *buffer,
                           size_t room) {
    const struct granary_split_stats nothing = {.struct_size = sizeof(nothing)};
    if (!stats || stats->struct_size < sizeof(*stats) || !buffer || room < GRANARY_SUMMARY_ROOM)
        return GRANARY_INVALID;
    if (split && split->struct_size < sizeof(*split)) return GRANARY_INVALID;
    gr_summary_format(buffer, room, device, stats, split ? split : &nothing, abbreviated != 0);
    return GRANARY_OK;
}

int granary_watermark(granary *g, char *buffer, size_t room) {
    struct granary_stats stats = {.struct_size = sizeof(stats)};
    if (!g) return GRANARY_INVALID;
    int status = check_room(g, "granary_watermark", buffer, room, GRANARY_WATERMARK_ROOM);
    if (status != GRANARY_OK) return status;
    gr_heap_read(g, &stats);
    gr_summary_line(buffer, room, g->driver.facts.device, &stats);
    return GRANARY_OK;
}
