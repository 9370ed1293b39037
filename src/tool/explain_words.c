/* SPDX-License-Identifier: Apache-2.0
 * The words of a diagnosis. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tool/explain.h"
#include "tool/print.h"

enum { LABEL = 12, PLACE = 640 };

/* A size in words, alive to the end of the expression. */
struct words {
    char text[SIZE_TEXT];
};
static struct words words_of(uint64_t bytes) {
    struct words words = {""};
    size_text(bytes, words.text);
    return words;
}
#define SIZE(bytes) (words_of(bytes).text)

const char *explain_kind_name(enum explain_kind kind) {
    static const char *const names[] = {
        [EXPLAIN_NOTHING] = "nothing wrong",
        [EXPLAIN_LEAK] = "leak",
        [EXPLAIN_FRAGMENTATION] = "fragmentation",
        [EXPLAIN_PEAK] = "peak",
        [EXPLAIN_PENDING] = "pending",
        [EXPLAIN_STRANDED] = "stranded",
    };
    return names[kind];
}

/* ---- places ---------------------------------------------------------------------------------- */

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != 0 ? slash + 1 : path;
}

/* The line to look at, and where the stack ends when that is elsewhere. */
static const char *place_text(const struct snapshot *s, uint32_t stack, uint64_t size, const char *note,
                              char *buffer) {
    const struct snapshot_frame *line = snapshot_line(s, stack), *inner = NULL;
    size_t used;
    if (line == NULL) {
        snprintf(buffer, PLACE, "blocks of %s, stack not recorded", SIZE(size));
    } else {
        inner = &s->frames[s->frame_ids[s->stacks[stack].first]];
        snapshot_line_text(s, stack, buffer, PLACE);
    }
    used = strlen(buffer);
    if (inner != NULL && inner != line && inner->file[0] != 0) {
        char text[PLACE];
        snprintf(buffer + used, PLACE - used, ", in %s",
                 snapshot_frame_text(base_of(inner->file), inner, text, sizeof text));
    }
    used = strlen(buffer);
    if (note != NULL) snprintf(buffer + used, PLACE - used, " \"%s\"", note);
    return buffer;
}

static const char *holder_text(const struct explain *x, const struct explain_place *p, char *buffer) {
    return place_text(x->snapshot, p->stack, p->size, p->note, buffer);
}

__attribute__((format(printf, 3, 4))) static void row(FILE *to, const char *label, const char *format, ...) {
    va_list list;
    fprintf(to, "  %-*s", LABEL, label);
    va_start(list, format);
    vfprintf(to, format, list);
    va_end(list);
    fputc('\n', to);
}

/* The job did not fail where it ran, and would on the card that was asked about. A trace has no settings
 * of its own. */
static bool is_too_small(const struct explain *x) {
    return !x->failed && x->card.source == WHATIF_ASKED && x->own.smallest > 0 && !x->own.fits &&
           !(x->snapshot->from_trace && x->best >= 0);
}

/* The job failed with less than the card that is asked about. */
static bool is_larger(const struct explain *x) {
    return x->failed && x->card.source == WHATIF_ASKED && x->card.guess > x->card.had;
}

static void print_verdict(const struct explain *x, FILE *to) {
    char place[PLACE];
    fprintf(to, "%s: %s", x->snapshot->path, explain_kind_name(x->kind));
    switch (x->kind) {
    case EXPLAIN_NOTHING:
        if (x->failed || x->device->entry_count == 0) fprintf(to, " that could be seen");
        if (is_too_small(x)) fprintf(to, ", but it does not fit on a card of %s", SIZE(x->card.guess));
        break;
    case EXPLAIN_LEAK: {
        const struct growth_group *g = &x->growth.groups[0];
        fprintf(to, ": what is allocated at %s only grows",
                place_text(x->snapshot, g->stack, g->size, g->note, place));
        break;
    }
    case EXPLAIN_FRAGMENTATION:
        if (x->free >= x->free_class)
            fprintf(to, ": %s are free where %s were asked for, in pieces of at most %s", SIZE(x->free),
                    SIZE(x->request), SIZE(x->largest));
        else
            fprintf(to, ": %s are free, but among %s blocks", SIZE(x->free_class),
                    x->request <= 1 << 20 ? "large" : "small");
        break;
    case EXPLAIN_PEAK:
        if (x->live + x->request > x->card.guess)
            fprintf(to, ": what is live and the request are %s, %s more than the card",
                    SIZE(x->live + x->request), SIZE(x->live + x->request - x->card.guess));
        else
            fprintf(to, ": all that is reserved is in use, and the card has no room for another segment");
        break;
    case EXPLAIN_PENDING:
        fprintf(to, ": %s are freed and still wait for other streams", SIZE(x->pending));
        break;
    case EXPLAIN_STRANDED:
        if (x->free_streams >= x->free_private)
            fprintf(to, ": %s are free, but in pools of other streams", SIZE(x->free_streams));
        else
            fprintf(to, ": %s are free, but in private pools", SIZE(x->free_private));
        break;
    }
    fputc('\n', to);
}

static void print_card(const struct explain *x, FILE *to) {
    const struct whatif_card *c = &x->card;
    switch (c->source) {
    case WHATIF_UNKNOWN: return;
    case WHATIF_ASKED:
        row(to, "card", "%s, as --memory says", SIZE(c->guess));
        if (is_larger(x)) row(to, "", "the process had %s at most where it failed", SIZE(c->had));
        return;
    case WHATIF_LIMIT:
        row(to, "card", "%s for this process, by its limit and what others held", SIZE(c->guess));
        return;
    case WHATIF_DEVICE:
        row(to, "card", "%s for this process: the driver had %s left", SIZE(c->guess), SIZE(c->device_free));
        return;
    case WHATIF_BOUNDS:
        row(to, "card", "from %s to %s for this process, taken as %s; give --memory if you know it",
            SIZE(c->low), SIZE(c->high), SIZE(c->guess));
        row(to, "", "the process had a limit: the driver had %s left", SIZE(c->device_free));
        return;
    }
}

static void print_moment(const struct explain *x, FILE *to) {
    char place[PLACE];
    const size_t count = x->device->entry_count;
    const bool before = explain_failed_before(x);
    if (x->failed) {
        if (x->request_stack != 0)
            row(to, "failed", "%s at %s", SIZE(x->request),
                place_text(x->snapshot, x->request_stack, x->request, NULL, place));
        else
            row(to, "failed", "%s, stack not recorded", SIZE(x->request));
        row(to, "", "entry %zu of %zu, device %d, stream %" PRIu64 "%s", x->entry, count, x->device->index,
            x->stream, x->failures > 1 ? "; it failed before, too" : "");
    } else if (count > 0) {
        row(to, "looked at", "the fullest moment: entry %zu of %zu, device %d; %s", x->entry, count,
            x->device->index, before ? "the job ran out of memory before that history" : "nothing failed");
    } else {
        row(to, "looked at", "the end, device %d: there is no history%s", x->device->index,
            before ? "; the job ran out of memory before" : "");
    }
    print_card(x, to);
    if (x->reserved > 0)
        row(to, "memory", "%s reserved: %s live, %s pending, %s free", SIZE(x->reserved), SIZE(x->live),
            SIZE(x->pending), SIZE(x->reserved - x->live - x->pending));
    else
        row(to, "memory", "%s live, %s pending", SIZE(x->live), SIZE(x->pending));
    if (!x->failed || x->reserved == 0) return;
    row(to, "free", "%s where it was asked for: %zu piece%s, the largest %s, in %zu of %zu segment%s",
        SIZE(x->free), x->pieces, x->pieces == 1 ? "" : "s", SIZE(x->largest), x->partly, x->segments,
        x->segments == 1 ? "" : "s");
    if (x->free_class + x->free_streams + x->free_private > 0)
        row(to, "", "%s among blocks of the other class, %s on other streams, %s in other pools",
            SIZE(x->free_class), SIZE(x->free_streams), SIZE(x->free_private));
}

static void print_places(const struct explain *x, const char *label, const struct explain_place *places,
                         size_t count, FILE *to) {
    char place[PLACE];
    for (size_t i = 0; i < count && places[i].bytes > 0; i++)
        row(to, i == 0 ? label : "", "%10s  %5zu block%s  %s", SIZE(places[i].bytes), places[i].blocks,
            places[i].blocks == 1 ? " " : "s", holder_text(x, &places[i], place));
}

static void print_growth(const struct explain *x, FILE *to) {
    char place[PLACE];
    for (size_t i = 0; i < x->growth.count; i++) {
        const struct growth_group *g = &x->growth.groups[i];
        if (x->growth.seconds > 0)
            row(to, i == 0 ? "grows" : "",
                "%s in %zu blocks in %.3g s, %s a second, and none of it was freed", SIZE(g->bytes),
                g->blocks, x->growth.seconds, SIZE((uint64_t)((double)g->bytes / x->growth.seconds)));
        else
            row(to, i == 0 ? "grows" : "", "%s in %zu blocks, and none of it was freed", SIZE(g->bytes),
                g->blocks);
        row(to, "", "at %s", place_text(x->snapshot, g->stack, g->size, g->note, place));
        if (g->older_blocks > 0)
            row(to, "", "%s more in %zu blocks of that size (%s) from before the history",
                SIZE(g->older_bytes), g->older_blocks, SIZE(g->size));
    }
}

const char *explain_fits(const struct explain *x, const struct whatif_trial *trial) {
    const struct whatif_card *c = &x->card;
    if (c->source == WHATIF_UNKNOWN) return "-";
    if (c->source != WHATIF_BOUNDS) return trial->fits ? "fits" : "fails";
    if (trial->smallest <= c->low) return "fits";
    if (trial->smallest > c->high) return "fails";
    return trial->fits ? "likely fits" : "likely fails";
}

static void put_trial(struct table *t, const struct explain *x, const struct whatif_trial *trial,
                      const char *name) {
    table_put(t, "%s", name);
    table_put(t, "%.1f MiB", (double)trial->reserved / 1048576.0);
    table_put(t, "%.1f MiB", (double)trial->smallest / 1048576.0);
    if (x->card.source != WHATIF_UNKNOWN) table_put(t, "%s", explain_fits(x, trial));
}

static void print_trials(const struct explain *x, FILE *to) {
    struct table t;
    char name[128];
    if (x->own.smallest == 0) return;
    fprintf(to, "\n");
    table_init(&t, x->card.source == WHATIF_UNKNOWN ? 3 : 4);
    table_put(&t, "  the same traffic on granary");
    table_put(&t, "reserves");
    table_put(&t, "smallest card");
    if (x->card.source != WHATIF_UNKNOWN) table_put(&t, "this card");
    table_rule(&t);
    if (x->snapshot->from_trace)
        snprintf(name, sizeof name, "  %s", x->own.conf);
    else
        snprintf(name, sizeof name, "  %s (the job's)", x->own.conf);
    put_trial(&t, x, &x->own, name);
    for (size_t i = 0; i < x->trial_count; i++) {
        snprintf(name, sizeof name, "  %s", x->trials[i].conf);
        put_trial(&t, x, &x->trials[i], name);
    }
    if (x->without.smallest > 0) put_trial(&t, x, &x->without, "  (the job's, without what grows)");
    table_print(&t, to, 1);
}

/* What to write. PyTorch reads a variable of its own, and has no extents; its expandable segments are not
 * ours. */
static void print_setting(const struct explain *x, const struct whatif_trial *trial, const char *label,
                          FILE *to) {
    const bool pytorch = !x->snapshot->own && !x->snapshot->from_trace;
    const bool ours = strstr(trial->conf, "extent_mb") != NULL;
    row(to, label, "set %s=%s; the same traffic fits on a card of %s",
        pytorch && !ours ? "PYTORCH_CUDA_ALLOC_CONF" : "GRANARY_CONF", trial->conf, SIZE(trial->smallest));
    if (pytorch && ours)
        row(to, "", "for PyTorch on granary (doc/torch.md); PyTorch itself has no such setting");
    else if (pytorch && strstr(trial->conf, "expandable_segments:True") != NULL)
        row(to, "", "when PyTorch runs on granary (doc/torch.md); by itself it needs a few percent more");
}

static void print_advice(const struct explain *x, FILE *to) {
    const struct whatif_trial *best = x->best >= 0 ? &x->trials[x->best] : NULL;
    char place[PLACE];
    const bool silent = x->device->entry_count == 0; /* a job that failed may have left no more than this */
    if (x->kind == EXPLAIN_NOTHING && !is_too_small(x) && !silent) return;
    fprintf(to, "\n");
    if (silent) {
        row(to, "advice", "record a history, from before the job begins: %s",
            x->snapshot->own ? "GRANARY_CONF=history:alloc" : "torch.cuda.memory._record_memory_history()");
        return;
    }
    switch (x->kind) {
    case EXPLAIN_LEAK:
        row(to, "advice",
            "find what keeps these blocks: a list that grows, a cache, a tensor whose graph is kept");
        if (best != NULL) row(to, "", "%s only puts it off", best->conf);
        return;
    case EXPLAIN_PEAK:
        row(to, "advice", "make the peak smaller: no setting makes room for what is in use at once");
        if (x->request >= x->holders[0].bytes)
            row(to, "", "most of it is the request");
        else
            row(to, "", "most of it is %s of %s", SIZE(x->holders[0].bytes),
                holder_text(x, &x->holders[0], place));
        return;
    case EXPLAIN_PENDING:
        row(to, "advice",
            "let the stream that frees wait for the streams that still use it before it asks for more,");
        row(to, "", "or record fewer uses; here %s wait from %s", SIZE(x->waiting[0].bytes),
            holder_text(x, &x->waiting[0], place));
        break;
    case EXPLAIN_NOTHING:
    case EXPLAIN_STRANDED:
    case EXPLAIN_FRAGMENTATION:
        if (best != NULL) break;
        if (is_larger(x) && x->own.fits)
            row(to, "advice",
                "nothing has to be set on this card: what there is of the history fits as it is");
        else if (x->own.smallest == 0 || x->own.fits)
            row(to, "advice",
                "record a longer history: what there is of it does not fail when it is replayed");
        else
            row(to, "advice", "use less: no setting that was tried fits this card");
        break;
    }
    if (best != NULL) print_setting(x, best, x->kind == EXPLAIN_PENDING ? "" : "advice", to);
}

void explain_print(const struct explain *x, FILE *to) {
    print_verdict(x, to);
    print_moment(x, to);
    print_growth(x, to);
    if (x->kind == EXPLAIN_FRAGMENTATION || x->kind == EXPLAIN_STRANDED) {
        bool here = x->kind == EXPLAIN_FRAGMENTATION && x->free >= x->free_class;
        print_places(x, "pinned by", here ? x->pins : x->pins_elsewhere, EXPLAIN_PLACES, to);
    }
    if (x->kind == EXPLAIN_PENDING) print_places(x, "waiting", x->waiting, EXPLAIN_PLACES, to);
    print_places(x, "most live", x->holders, x->kind == EXPLAIN_NOTHING ? 2 : EXPLAIN_PLACES, to);
    if (x->device->unexplained > 0)
        row(to, "caution", "%zu entries of the history contradict each other", x->device->unexplained);
    print_trials(x, to);
    print_advice(x, to);
}
