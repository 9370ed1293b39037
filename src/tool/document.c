/* SPDX-License-Identifier: Apache-2.0
 * The document of a report: one device of a snapshot as compact JSON. */
#include "tool/document.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <granary/granary.h>

#include "tool/escape.h"
#include "tool/names.h"
#include "tool/print.h"

/* ---- the document being written -------------------------------------------------------------- */

struct document {
    FILE *to;
    const struct snapshot *snapshot;
    const struct snapshot_device *device;
    struct names strings, streams, pools, tags;
    struct snapshot_moment begin; /* when the history begins */
    struct thin thin;             /* which lives are told */
};

static bool collect(struct document *d) {
    const struct snapshot *s = d->snapshot;
    const struct snapshot_device *v = d->device;
    bool ok = names_add_text(&d->strings, "") && names_add_text(&d->tags, "") &&
              names_add_pair(&d->streams, 0, 0) && names_add_pair(&d->pools, 0, 0);
    for (size_t i = 0; ok && i < s->frame_count; i++)
        ok = names_add_text(&d->strings, s->frames[i].name) && names_add_text(&d->strings, s->frames[i].file);
    for (size_t i = 0; ok && i < s->mark_count; i++) ok = names_add_text(&d->strings, s->marks[i].name);
    for (size_t i = 0; ok && i < v->life_count; i++)
        ok = names_add_text(&d->tags, v->lives[i].note) &&
             names_add_pair(&d->streams, v->lives[i].stream, 0) &&
             names_add_pair(&d->pools, v->lives[i].pool[0], v->lives[i].pool[1]);
    for (size_t i = 0; ok && i < v->entry_count; i++)
        ok = names_add_pair(&d->streams, v->entries[i].stream, 0) &&
             names_add_pair(&d->pools, v->entries[i].pool[0], v->entries[i].pool[1]);
    for (size_t i = 0; ok && i < d->begin.segment_count; i++)
        ok = names_add_pair(&d->streams, d->begin.segments[i].stream, 0) &&
             names_add_pair(&d->pools, d->begin.segments[i].pool[0], d->begin.segments[i].pool[1]);
    if (!ok) return false;
    names_sort(&d->strings);
    names_sort(&d->tags);
    names_sort(&d->streams);
    names_sort(&d->pools);
    return true;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The last part of the file's path. */
static int put_name(FILE *to, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL || slash[1] == 0 ? path : slash + 1;
    char *clean = malloc(strlen(name) + 1);
    if (clean == NULL) return -1;
    escape_clean(name, strlen(name), clean);
    json_string(to, clean);
    free(clean);
    return 0;
}

static int put_source(struct document *d, const struct whatif_card *card) {
    const struct snapshot *s = d->snapshot;
    const char *kind = s->from_trace ? "trace" : s->own ? "granary snapshot" : "PyTorch snapshot";
    fputs("\"source\":{\"name\":", d->to);
    if (put_name(d->to, s->path) != 0) return -1;
    fprintf(d->to, ",\"kind\":\"%s\",\"device\":%d,\"devices\":[", kind, d->device->index);
    for (size_t i = 0; i < s->device_count; i++)
        fprintf(d->to, "%s%d", i > 0 ? "," : "", s->devices[i].index);
    fprintf(d->to, "],\"entries\":%zu,\"unexplained\":%zu,\"dropped\":%" PRIu64 ",\"limit\":",
            d->device->entry_count, d->device->unexplained, s->dropped);
    if (card->source != WHATIF_UNKNOWN)
        fprintf(d->to, "%" PRIu64, card->guess);
    else
        fputs("null", d->to);
    fprintf(d->to, ",\"guessed\":%s}", card->source == WHATIF_BOUNDS ? "true" : "false");
    return 0;
}

static void put_setting(FILE *to, const char *name, const char *value, bool first) {
    fprintf(to, "%s[\"%s\",", first ? "" : ",", name);
    json_string(to, value);
    fputc(']', to);
}

static void put_settings(struct document *d) {
    const struct snapshot *s = d->snapshot;
    char number[64];
    fputs(",\"settings\":[", d->to);
    if (!s->from_trace) {
        put_setting(d->to, s->own ? "Options" : "PYTORCH_CUDA_ALLOC_CONF", s->conf[0] ? s->conf : "not set",
                    true);
        put_setting(d->to, "expandable_segments", s->expandable ? "True" : "False", false);
        if (s->max_split_size != UINT64_MAX) {
            snprintf(number, sizeof number, "%" PRIu64 " bytes", s->max_split_size);
            put_setting(d->to, "max_split_size", number, false);
        }
        if (s->garbage_collection_threshold > 0) {
            snprintf(number, sizeof number, "%g", s->garbage_collection_threshold);
            put_setting(d->to, "garbage_collection_threshold", number, false);
        }
        if (s->failure != NULL) put_setting(d->to, "Failure", s->failure, false);
    }
    fputc(']', d->to);
}

static void put_texts(FILE *to, const char *name, const struct names *n) {
    fprintf(to, ",\"%s\":[", name);
    for (size_t i = 0; i < n->count; i++) {
        if (i > 0) fputc(',', to);
        json_string(to, n->items[i].text);
    }
    fputc(']', to);
}

static void put_stacks(struct document *d) {
    const struct snapshot *s = d->snapshot;
    fputs(",\"frames\":[", d->to);
    for (size_t i = 0; i < s->frame_count; i++)
        fprintf(d->to, "%s%zu,%zu,%" PRIu64, i > 0 ? "," : "",
                names_text_index(&d->strings, s->frames[i].name),
                names_text_index(&d->strings, s->frames[i].file), s->frames[i].line);
    fputs("],\"stacks\":[", d->to);
    for (size_t i = 0; i < s->stack_count; i++) {
        const struct snapshot_stack *stack = &s->stacks[i];
        fputs(i > 0 ? ",[" : "[", d->to);
        for (uint32_t k = 0; k < stack->count; k++)
            fprintf(d->to, "%s%u", k > 0 ? "," : "", s->frame_ids[stack->first + k]);
        fputc(']', d->to);
    }
    fputs("],\"lines\":[", d->to);
    for (size_t i = 0; i < s->stack_count; i++) {
        const struct snapshot_frame *line = snapshot_line(s, (uint32_t)i);
        size_t frame = line != NULL             ? (size_t)(line - s->frames)
                       : s->stacks[i].count > 0 ? s->frame_ids[s->stacks[i].first]
                                                : 0;
        fprintf(d->to, "%s%zu", i > 0 ? "," : "", frame);
    }
    fputc(']', d->to);
}

static void put_streams(struct document *d) {
    fputs(",\"streams\":[", d->to);
    for (size_t i = 0; i < d->streams.count; i++) {
        uint64_t handle = d->streams.items[i].pair[0];
        if (d->snapshot->from_trace)
            fprintf(d->to, "%s\"%" PRIu64 "\"", i > 0 ? "," : "", handle);
        else if (handle == 0)
            fprintf(d->to, "%s\"default\"", i > 0 ? "," : "");
        else
            fprintf(d->to, "%s\"0x%" PRIx64 "\"", i > 0 ? "," : "", handle);
    }
    fputs("],\"pools\":[", d->to);
    for (size_t i = 0; i < d->pools.count; i++) {
        const uint64_t *id = d->pools.items[i].pair;
        if (id[0] == 0 && id[1] == 0)
            fprintf(d->to, "%s\"default\"", i > 0 ? "," : "");
        else
            fprintf(d->to, "%s\"(%" PRIu64 ", %" PRIu64 ")\"", i > 0 ? "," : "", id[0], id[1]);
    }
    fputc(']', d->to);
}

static void put_times(struct document *d) {
    const struct snapshot_device *v = d->device;
    size_t stride = v->entry_count / DOCUMENT_LIVES + 1;
    fprintf(d->to, ",\"times\":{\"stride\":%zu,\"steps\":[", stride);
    if (!d->snapshot->from_trace) {
        int64_t last = v->entry_count > 0 ? v->entries[0].time_us : 0;
        for (size_t i = 0; i < v->entry_count; i += stride) {
            int64_t now = v->entries[i].time_us > last ? v->entries[i].time_us : last;
            fprintf(d->to, "%s%" PRIu64, i > 0 ? "," : "", (uint64_t)now - (uint64_t)last);
            last = now;
        }
    }
    fputs("]}", d->to);
}

/* ---- lives ----------------------------------------------------------------------------------- */

enum column { BEGIN, REQUEST, END, ADDRESS, SIZE, STACK, STREAM, POOL, TAG, COLUMNS };

/* Where a column's differences start, and what its address counts in. */
struct columns {
    int64_t begin;
    uint64_t address, unit;
};

static int64_t entry_number(uint32_t entry) {
    return entry == SNAPSHOT_NONE ? -1 : (int64_t)entry;
}

/* Was its free requested before it completed? */
static bool requested(const struct snapshot_life *life) {
    return life->request != SNAPSHOT_NONE && life->request != life->end;
}

static int64_t cell(const struct document *d, const struct snapshot_life *life, enum column column,
                    struct columns *last) {
    int64_t begin = entry_number(life->begin), request = entry_number(life->request), was;
    uint64_t address;
    switch (column) {
    case BEGIN:
        was = last->begin;
        last->begin = begin;
        return begin - was;
    case REQUEST: return requested(life) ? request - begin : life->pending ? -1 : 0;
    case END:
        if (life->end == SNAPSHOT_NONE) return 0;
        return entry_number(life->end) - (requested(life) ? request : life->pending ? -1 : begin);
    case ADDRESS:
        address = last->address;
        last->address = life->address / last->unit;
        return (int64_t)(last->address - address);
    case SIZE: return (int64_t)life->size;
    case STACK: return life->stack;
    case STREAM: return (int64_t)names_pair_index(&d->streams, life->stream, 0);
    case POOL: return (int64_t)names_pair_index(&d->pools, life->pool[0], life->pool[1]);
    case TAG: return (int64_t)names_text_index(&d->tags, life->note);
    default: return 0;
    }
}

/* One number when all rows agree. Sizes and addresses beyond 2^63 are no numbers of any device. */
static void put_column(struct document *d, enum column column, const char *name, uint64_t unit) {
    const struct snapshot_device *v = d->device;
    struct columns last = {0, 0, unit};
    int64_t first = 0;
    bool same = true, any = false;
    for (size_t i = 0; same && i < v->life_count; i++) {
        int64_t value;
        if (!thin_keeps(&d->thin, i)) continue;
        value = cell(d, &v->lives[i], column, &last);
        if (!any) first = value;
        same = value == first;
        any = true;
    }
    fprintf(d->to, ",\"%s\":", name);
    if (same) {
        fprintf(d->to, "%" PRId64, first);
        return;
    }
    last = (struct columns){0, 0, unit};
    any = false;
    fputc('[', d->to);
    for (size_t i = 0; i < v->life_count; i++) {
        if (!thin_keeps(&d->thin, i)) continue;
        fprintf(d->to, "%s%" PRId64, any ? "," : "", cell(d, &v->lives[i], column, &last));
        any = true;
    }
    fputc(']', d->to);
}

static void put_lives(struct document *d) {
    static const char *const names[COLUMNS] = {"begin", "request", "end",  "address", "size",
                                               "stack", "stream",  "pool", "tag"};
    uint64_t bits = 0;
    for (size_t i = 0; i < d->device->life_count; i++) bits |= d->device->lives[i].address;
    bits = bits % 512 == 0 ? 512 : 1;
    fprintf(d->to, ",\"lives\":{\"count\":%zu,\"unit\":%" PRIu64, d->thin.kept, bits);
    for (int c = 0; c < COLUMNS; c++) put_column(d, (enum column)c, names[c], bits);
    fputc('}', d->to);
}

/* ---- curves, segments, marks ----------------------------------------------------------------- */

static void put_curve(FILE *to, const struct thin_point *points, size_t count) {
    fputs("\"entry\":[", to);
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s%zu", i > 0 ? "," : "", points[i].entry - (i > 0 ? points[i - 1].entry : 0));
    fputs("],\"size\":[", to);
    for (size_t i = 0; i < count; i++) fprintf(to, "%s%" PRIu64, i > 0 ? "," : "", points[i].bytes);
    fputs("]}", to);
}

static void put_curves(struct document *d, const struct document_more *more) {
    fputs(",\"lumped\":", d->to);
    if (d->thin.point_count > 0) {
        fprintf(d->to, "{\"count\":%zu,\"below\":%" PRIu64 ",", d->device->life_count - d->thin.kept,
                d->thin.below);
        put_curve(d->to, d->thin.points, d->thin.point_count);
    } else {
        fputs("null", d->to);
    }
    fputs(",\"reserved\":", d->to);
    if (more->reserved_count == 0) {
        fputs("null", d->to);
        return;
    }
    fputc('{', d->to);
    put_curve(d->to, more->reserved, more->reserved_count);
}

/* Memory that comes is expandable when its action says that it was mapped. */
static int entry_flags(const struct snapshot_entry *e) {
    return (e->size <= UINT64_C(2) << 20 ? 1 : 0) | (strstr(e->name, "map") != NULL ? 2 : 0);
}

static void put_segments(struct document *d) {
    const char *comma = "";
    fputs(",\"segments\":{\"initial\":[", d->to);
    for (size_t i = 0; i < d->begin.segment_count; i++) {
        const struct snapshot_segment *s = &d->begin.segments[i];
        fprintf(d->to, "%s%" PRIu64 ",%" PRIu64 ",%zu,%zu,%d,%u", i > 0 ? "," : "", s->address, s->size,
                names_pair_index(&d->streams, s->stream, 0),
                names_pair_index(&d->pools, s->pool[0], s->pool[1]),
                (s->small ? 1 : 0) | (s->expandable ? 2 : 0), s->stack);
    }
    fputs("],\"changes\":[", d->to);
    for (size_t i = 0; i < d->device->entry_count; i++) {
        const struct snapshot_entry *e = &d->device->entries[i];
        if (e->action != SNAPSHOT_SEGMENT && e->action != SNAPSHOT_UNSEGMENT) continue;
        fprintf(d->to, "%s%zu,%d,%" PRIu64 ",%" PRIu64 ",%zu,%zu,%d,%u", comma, i,
                e->action == SNAPSHOT_SEGMENT, e->address, e->size,
                names_pair_index(&d->streams, e->stream, 0),
                names_pair_index(&d->pools, e->pool[0], e->pool[1]), entry_flags(e), e->stack);
        comma = ",";
    }
    fputs("]}", d->to);
}

/* The first entry at or after a time. */
static size_t entry_at(const struct snapshot_device *v, int64_t time_us) {
    size_t low = 0, high = v->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->entries[middle].time_us < time_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last failures, and the first stretches that the program named. */
static void put_marks(struct document *d) {
    enum { DEPTH = 64, SPANS = 10000, FAILURES = 1000 };
    const struct snapshot *s = d->snapshot;
    const struct snapshot_mark *open[DEPTH];
    size_t depth = 0, spans = 0, failures = 0;
    const char *comma = "";
    fputs(",\"marks\":[", d->to);
    for (size_t i = 0; i < d->device->entry_count; i++)
        if (d->device->entries[i].action == SNAPSHOT_OOM) failures++;
    for (size_t i = 0; i < d->device->entry_count; i++) {
        const struct snapshot_entry *e = &d->device->entries[i];
        if (e->action != SNAPSHOT_OOM || failures-- > FAILURES) continue;
        fprintf(d->to,
                "%s{\"kind\":\"oom\",\"entry\":%zu,\"size\":%" PRIu64 ",\"free\":%" PRIu64 ",\"stack\":%u}",
                comma, i, e->size, e->device_free, e->stack);
        comma = ",";
    }
    for (size_t i = 0; i < s->mark_count && spans < SPANS; i++) {
        const struct snapshot_mark *m = &s->marks[i];
        size_t k = depth, from, to;
        if (m->device != d->device->index) continue;
        if (!m->end) {
            if (depth == DEPTH) memmove(open, open + 1, --depth * sizeof *open);
            open[depth++] = m;
            continue;
        }
        while (k > 0 && strcmp(open[k - 1]->name, m->name) != 0) k--;
        if (k == 0) continue;
        from = entry_at(d->device, open[k - 1]->time_us);
        to = entry_at(d->device, m->time_us);
        depth--;
        memmove(open + k - 1, open + k, (depth - k + 1) * sizeof *open);
        if (from >= to) continue;
        fprintf(d->to, "%s{\"kind\":\"span\",\"name\":%zu,\"entry\":%zu,\"to\":%zu}", comma,
                names_text_index(&d->strings, m->name), from, to);
        comma = ",";
        spans++;
    }
    fputc(']', d->to);
}

/* ---- the diagnosis --------------------------------------------------------------------------- */

static int put_explain(FILE *to, const struct explain *x) {
    char *words = NULL, *start;
    size_t length = 0;
    FILE *memory = open_memstream(&words, &length);
    bool failed;
    if (memory == NULL) return -1;
    explain_print(x, memory);
    failed = ferror(memory) != 0;
    if (fclose(memory) != 0 || failed) {
        free(words);
        return -1;
    }
    start = words + strlen(x->snapshot->path) + 2; /* it begins with the path, which is not the reader's */
    fprintf(to, ",\"explain\":{\"kind\":\"%s\",\"failed\":%s,\"entry\":%zu,\"words\":",
            explain_kind_name(x->kind), x->failed ? "true" : "false", x->entry);
    json_string(to, start);
    fputc('}', to);
    free(words);
    return 0;
}

static void put_trial(FILE *to, const struct explain *x, const struct whatif_trial *trial, const char *role,
                      const char **comma) {
    if (trial->smallest == 0) return;
    fprintf(to, "%s{\"conf\":", *comma);
    json_string(to, trial->conf);
    fprintf(to, ",\"role\":\"%s\",\"reserved\":%" PRIu64 ",\"smallest\":%" PRIu64 ",\"fits\":\"%s\"}", role,
            trial->reserved, trial->smallest, explain_fits(x, trial));
    *comma = ",";
}

static void put_whatif(FILE *to, const struct explain *x) {
    const char *comma = "";
    fputs(",\"whatif\":[", to);
    put_trial(to, x, &x->own, "own", &comma);
    for (size_t i = 0; i < x->trial_count; i++)
        put_trial(to, x, &x->trials[i], (int)i == x->best ? "best" : "trial", &comma);
    put_trial(to, x, &x->without, "without", &comma);
    fputc(']', to);
}

int document_write(FILE *to, const struct snapshot *snapshot, const struct snapshot_device *device,
                   const struct document_more *more, struct problem *problem) {
    struct document d = {.to = to, .snapshot = snapshot, .device = device};
    int rc = -1;
    if (!snapshot->from_trace && snapshot_rebuild(snapshot, device, 0, &d.begin, problem) != 0) return -1;
    if (!thin_lives(device, more->lives, DOCUMENT_POINTS, &d.thin) || !collect(&d)) goto no_memory;
    fprintf(to, "{\"format\":1,\"granary\":\"%s\",", granary_version());
    if (put_source(&d, &more->explain->card) != 0) goto no_memory;
    put_settings(&d);
    put_texts(to, "strings", &d.strings);
    put_stacks(&d);
    put_streams(&d);
    put_texts(to, "tags", &d.tags);
    put_times(&d);
    put_lives(&d);
    put_curves(&d, more);
    put_segments(&d);
    put_marks(&d);
    if (put_explain(to, more->explain) != 0) goto no_memory;
    put_whatif(to, more->explain);
    fputc('}', to);
    rc = 0;
    goto done;

no_memory:
    problem_set(problem, "%s: out of memory", snapshot->path);
done:
    thin_free(&d.thin);
    names_free(&d.strings);
    names_free(&d.streams);
    names_free(&d.pools);
    names_free(&d.tags);
    if (!snapshot->from_trace) snapshot_moment_free(&d.begin);
    return rc;
}
