/* SPDX-License-Identifier: Apache-2.0
 * A diagnosis for programs: one JSON object. */
#include <inttypes.h>

#include "tool/explain.h"
#include "tool/print.h"

enum { PLACE = 640 };

static void field(FILE *to, const char *name, uint64_t value) {
    fprintf(to, "\"%s\":%" PRIu64 ",", name, value);
}

static void json_place(const struct snapshot *s, uint32_t stack, const char *note, FILE *to) {
    const struct snapshot_frame *line = snapshot_line(s, stack);
    fputs("\"line\":", to);
    if (line == NULL) {
        fputs("null", to);
    } else {
        char text[PLACE];
        json_string(to, snapshot_line_text(s, stack, text, sizeof text));
    }
    fputs(",\"frames\":[", to);
    for (uint32_t i = 0; i < s->stacks[stack].count; i++) {
        const struct snapshot_frame *frame = &s->frames[s->frame_ids[s->stacks[stack].first + i]];
        fprintf(to, "%s{\"name\":", i > 0 ? "," : "");
        json_string(to, frame->name);
        fputs(",\"filename\":", to);
        json_string(to, frame->file);
        fprintf(to, ",\"line\":%" PRIu64 "}", frame->line);
    }
    fputs("],\"note\":", to);
    if (note != NULL)
        json_string(to, note);
    else
        fputs("null", to);
}

static void json_places(const struct explain *x, const char *name, const struct explain_place *places,
                        FILE *to) {
    fprintf(to, "\"%s\":[", name);
    for (size_t i = 0; i < EXPLAIN_PLACES && places[i].bytes > 0; i++) {
        fputs(i > 0 ? ",{" : "{", to);
        field(to, "bytes", places[i].bytes);
        field(to, "blocks", places[i].blocks);
        json_place(x->snapshot, places[i].stack, places[i].note, to);
        fputc('}', to);
    }
    fputs("],", to);
}

static void json_growth(const struct explain *x, FILE *to) {
    fputs("\"growth\":[", to);
    for (size_t i = 0; i < x->growth.count; i++) {
        const struct growth_group *g = &x->growth.groups[i];
        fputs(i > 0 ? ",{" : "{", to);
        field(to, "bytes", g->bytes);
        field(to, "blocks", g->blocks);
        field(to, "block_bytes", g->size);
        field(to, "older_bytes", g->older_bytes);
        field(to, "older_blocks", g->older_blocks);
        json_place(x->snapshot, g->stack, g->note, to);
        fputc('}', to);
    }
    fprintf(to, "],\"seconds\":%.6f,", x->growth.seconds);
}

static void json_trial(const struct whatif_trial *trial, bool last, FILE *to) {
    fputs("{\"conf\":", to);
    json_string(to, trial->conf);
    fprintf(to, ",\"fits\":%s,\"reserved_bytes\":%" PRIu64 ",\"smallest_card_bytes\":%" PRIu64 "}%s",
            trial->fits ? "true" : "false", trial->reserved, trial->smallest, last ? "" : ",");
}

static void json_trials(const struct explain *x, FILE *to) {
    fputs("\"own\":", to);
    if (x->own.smallest > 0)
        json_trial(&x->own, false, to);
    else
        fputs("null,", to);
    fputs("\"without_growth\":", to);
    if (x->without.smallest > 0)
        json_trial(&x->without, false, to);
    else
        fputs("null,", to);
    fputs("\"trials\":[", to);
    for (size_t i = 0; i < x->trial_count; i++) json_trial(&x->trials[i], i + 1 == x->trial_count, to);
    fputs("],\"best\":", to);
    if (x->best >= 0)
        json_string(to, x->trials[x->best].conf);
    else
        fputs("null", to);
}

void explain_print_json(const struct explain *x, FILE *to) {
    static const char *const sources[] = {
        [WHATIF_UNKNOWN] = "unknown", [WHATIF_ASKED] = "asked",   [WHATIF_LIMIT] = "limit",
        [WHATIF_DEVICE] = "device",   [WHATIF_BOUNDS] = "bounds",
    };
    fputs("{\"file\":", to);
    json_string(to, x->snapshot->path);
    fprintf(to, ",\"device\":%d,\"kind\":", x->device->index);
    json_string(to, explain_kind_name(x->kind));
    fprintf(to, ",\"out_of_memory\":%s,", x->failed ? "true" : "false");
    fprintf(to, "\"out_of_memory_before\":%s,", explain_failed_before(x) ? "true" : "false");
    field(to, "entry", x->entry);
    field(to, "entries", x->device->entry_count);
    field(to, "unexplained", x->device->unexplained);
    fputs("\"request\":{", to);
    field(to, "bytes", x->request);
    field(to, "stream", x->stream);
    json_place(x->snapshot, x->request_stack, NULL, to);
    fputs("},", to);
    field(to, "reserved_bytes", x->reserved);
    field(to, "live_bytes", x->live);
    field(to, "pending_bytes", x->pending);
    field(to, "requested_bytes", x->requested);
    field(to, "free_bytes", x->free);
    field(to, "free_largest_bytes", x->largest);
    field(to, "free_pieces", x->pieces);
    field(to, "free_other_class_bytes", x->free_class);
    field(to, "free_other_streams_bytes", x->free_streams);
    field(to, "free_other_pools_bytes", x->free_private);
    field(to, "segments", x->segments);
    field(to, "segments_partly_free", x->partly);
    fprintf(to, "\"card\":{\"source\":\"%s\",", sources[x->card.source]);
    field(to, "low_bytes", x->card.low);
    field(to, "high_bytes", x->card.high);
    field(to, "device_free_bytes", x->card.device_free);
    field(to, "had_bytes", x->card.had);
    fprintf(to, "\"bytes\":%" PRIu64 "},", x->card.guess);
    json_growth(x, to);
    json_places(x, "pinned_by", x->pins, to);
    json_places(x, "pinned_elsewhere_by", x->pins_elsewhere, to);
    json_places(x, "waiting", x->waiting, to);
    json_places(x, "holders", x->holders, to);
    json_trials(x, to);
    fputc('}', to);
}
