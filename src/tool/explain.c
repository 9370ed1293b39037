/* SPDX-License-Identifier: Apache-2.0
 * Diagnosis: the facts of a moment, and which kind they make. Its words are in explain_words.c
 * and explain_json.c. */
#include "tool/explain.h"

#include <stdlib.h>
#include <string.h>

#include "tool/array.h"
#include "tool/map.h"

#define MIB ((uint64_t)1 << 20)

/* ---- places ---------------------------------------------------------------------------------- */

struct tally {
    struct explain_place *places;
    size_t count, room;
    struct map keys;
};

static bool tally_add(struct tally *t, const struct snapshot_block *block, uint64_t bytes) {
    const uint64_t key = block->stack != 0 ? block->stack : block->requested | UINT64_C(1) << 63;
    struct map_slot *slot;
    if (!map_reserve(&t->keys)) return false;
    slot = map_at(&t->keys, key);
    if (slot->index == 0) {
        if (!array_reserve(&t->places, &t->room, t->count, 1, sizeof *t->places)) return false;
        t->places[t->count++] = (struct explain_place){block->stack, block->requested, block->note, 0, 0};
        *slot = (struct map_slot){key, (uint32_t)t->count};
        t->keys.used++;
    }
    t->places[slot->index - 1].bytes += bytes;
    t->places[slot->index - 1].blocks++;
    return true;
}

static int by_bytes(const void *left, const void *right) {
    const struct explain_place *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* The largest places; the tally is used up. */
static void tally_end(struct tally *t, struct explain_place out[EXPLAIN_PLACES]) {
    if (t->count > 0) qsort(t->places, t->count, sizeof *t->places, by_bytes);
    for (size_t i = 0; i < EXPLAIN_PLACES && i < t->count; i++)
        if (t->places[i].bytes > 0) out[i] = t->places[i];
    map_free(&t->keys);
    free(t->places);
}

/* ---- the moment ------------------------------------------------------------------------------ */

/* The entry before which most memory is in use. */
static size_t busiest(const struct snapshot_device *device) {
    uint64_t active = 0, most;
    size_t found = 0;
    for (size_t i = 0; i < device->before_count; i++) active += device->lives[i].size;
    most = active;
    for (size_t i = 0; i < device->entry_count; i++) {
        const struct snapshot_entry *e = &device->entries[i];
        if (e->closes != SNAPSHOT_NONE) active -= device->lives[e->closes].size;
        if (e->life == SNAPSHOT_NONE) continue;
        if (e->action == SNAPSHOT_ALLOC) active += e->size;
        if (device->lives[e->life].end == i) active -= device->lives[e->life].size;
        if (active <= most) continue;
        most = active;
        found = i + 1;
    }
    return found;
}

/* Is this where the request would have been served? With no request: any place. */
static bool is_asked(const struct explain *x, const struct snapshot_segment *s) {
    return !x->failed || (s->stream == x->stream && s->small == (x->request <= MIB) &&
                          s->pool[0] == x->pool[0] && s->pool[1] == x->pool[1]);
}

static void count_free(struct explain *x, const struct snapshot_segment *s, uint64_t bytes,
                       uint64_t largest) {
    if (is_asked(x, s)) {
        x->free += bytes;
        if (largest > x->largest) x->largest = largest;
    } else if (s->pool[0] != x->pool[0] || s->pool[1] != x->pool[1]) {
        x->free_private += bytes;
    } else if (s->stream != x->stream) {
        x->free_streams += bytes;
    } else {
        x->free_class += bytes;
    }
}

static bool look_at_segment(struct explain *x, const struct snapshot_moment *m,
                            const struct snapshot_segment *s, struct tally *pins) {
    uint64_t empty = 0, largest = 0;
    size_t pieces = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct snapshot_block *block = &m->blocks[s->first + i];
        if (block->state != SNAPSHOT_FREE) continue;
        empty += block->size;
        pieces++;
        if (block->size > largest) largest = block->size;
    }
    count_free(x, s, empty, largest);
    if (is_asked(x, s)) {
        x->pieces += pieces;
        x->segments++;
        x->partly += empty > 0 && empty < s->size;
    }
    if (empty == 0 || empty == s->size) return true;
    /* What is free there is kept apart by what is used there, by each block as it is large. */
    for (size_t i = 0; i < s->count; i++) {
        const struct snapshot_block *block = &m->blocks[s->first + i];
        double part = (double)block->size / (double)(s->size - empty);
        if (block->state != SNAPSHOT_FREE && !tally_add(pins, block, (uint64_t)((double)empty * part)))
            return false;
    }
    return true;
}

/* Of a trace there are no segments: who is alive is all that can be said. */
static bool look_at_lives(struct explain *x, struct tally *holders) {
    for (size_t i = 0; i < x->device->life_count; i++) {
        const struct snapshot_life *life = &x->device->lives[i];
        struct snapshot_block block = {.requested = life->size, .note = life->note, .stack = life->stack};
        if (life->begin != SNAPSHOT_NONE && life->begin >= x->entry) continue;
        if (life->end != SNAPSHOT_NONE && life->end < x->entry) continue;
        if (life->request != SNAPSHOT_NONE && life->request < x->entry) {
            x->pending += life->size;
            continue;
        }
        x->live += life->size;
        x->requested += life->size;
        if (!tally_add(holders, &block, life->size)) return false;
    }
    return true;
}

static int look(struct explain *x, struct problem *problem) {
    struct snapshot_moment m;
    struct tally holders = {0}, pins = {0}, elsewhere = {0}, waiting = {0};
    bool good = true;
    if (snapshot_rebuild(x->snapshot, x->device, x->entry, &m, problem) != 0) return -1;
    if (m.segment_count == 0) {
        good = look_at_lives(x, &holders);
    } else {
        x->reserved = m.reserved;
        x->live = m.live;
        x->pending = m.pending;
        x->requested = m.requested;
        for (size_t i = 0; i < m.segment_count && good; i++)
            good = look_at_segment(x, &m, &m.segments[i], is_asked(x, &m.segments[i]) ? &pins : &elsewhere);
        for (size_t i = 0; i < m.block_count && good; i++) {
            const struct snapshot_block *block = &m.blocks[i];
            if (block->state == SNAPSHOT_LIVE) good = tally_add(&holders, block, block->size);
            if (block->state == SNAPSHOT_PENDING) good = tally_add(&waiting, block, block->size);
        }
    }
    tally_end(&holders, x->holders);
    tally_end(&pins, x->pins);
    tally_end(&elsewhere, x->pins_elsewhere);
    tally_end(&waiting, x->waiting);
    snapshot_moment_free(&m);
    if (good) return 0;
    problem_set(problem, "%s: out of memory", x->snapshot->path);
    return -1;
}

/* ---- replays --------------------------------------------------------------------------------- */

static const char *const candidates[] = {
    "expandable_segments:True",
    "expandable_segments:False",
    "expandable_segments:False,max_split_size_mb:128",
    "expandable_segments:True,extent_mb:2",
};

/* The job's own settings failed, so the card was smaller than what they need. */
static void sharpen(struct explain *x) {
    struct whatif_card *card = &x->card;
    if (card->source != WHATIF_BOUNDS || x->own.smallest > card->high || x->own.smallest <= card->low) return;
    card->guess = (card->low + (x->own.smallest - card->low) / 2) / (2 * MIB) * (2 * MIB);
    if (card->guess < card->low) card->guess = card->low;
    x->own.fits = x->own.smallest <= card->guess;
}

static int try_without(struct explain *x, const struct trace *trace, const uint32_t *origin,
                       struct problem *problem) {
    struct trace less;
    bool *gone = calloc(trace->blocks + 1, sizeof *gone);
    size_t block = 0, rc;
    if (gone == NULL) {
        problem_set(problem, "%s: out of memory", trace->path);
        return -1;
    }
    /* Blocks of the trace are lives: those from before first, then those of each entry. */
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->ops[i].kind != TRACE_ALLOC) continue;
        if (origin[i] == SNAPSHOT_NONE)
            gone[block] = x->growth.lives[block];
        else if (x->device->entries[origin[i]].life != SNAPSHOT_NONE)
            gone[block] = x->growth.lives[x->device->entries[origin[i]].life];
        block++;
    }
    rc = (size_t)whatif_without(trace, gone, &less, problem);
    free(gone);
    if (rc != 0) return -1;
    rc = (size_t)whatif_try(&less, x->own.conf, x->card.guess, &x->without, problem);
    trace_free(&less);
    return rc == 0 ? 0 : -1;
}

static int replay_all(struct explain *x, struct problem *problem) {
    char own[sizeof x->own.conf];
    struct trace trace;
    uint32_t *origin;
    int rc;
    /* A snapshot without history has no traffic, and no card has what is asked for by mistake. What is held
     * can be told all the same. */
    if (x->device->life_count == 0 || x->request > WHATIF_ENDLESS / 2) return 0;
    if (snapshot_to_trace(x->snapshot, x->device, x->failed ? x->entry : x->device->entry_count, &trace,
                          &origin, problem) != 0)
        return -1;
    whatif_settings(x->snapshot, own, sizeof own);
    rc = whatif_try(&trace, own, x->card.guess, &x->own, problem);
    if (rc == 0) sharpen(x);
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0] && rc == 0; i++) {
        if (strcmp(candidates[i], own) == 0) continue;
        rc = whatif_try(&trace, candidates[i], x->card.guess, &x->trials[x->trial_count], problem);
        if (rc == 0 && x->trials[x->trial_count].fits && x->best < 0) x->best = (int)x->trial_count;
        if (rc == 0) x->trial_count++;
    }
    /* A history that is too short to fail again proves nothing for other settings either. */
    if (x->failed && x->own.fits) x->best = -1;
    if (rc == 0 && x->growth.lives != NULL) rc = try_without(x, &trace, origin, problem);
    free(origin);
    trace_free(&trace);
    return rc;
}

/* ---- the kind -------------------------------------------------------------------------------- */

static enum explain_kind largest_place(const struct explain *x) {
    uint64_t here = x->free > x->free_class ? x->free : x->free_class;
    uint64_t elsewhere = x->free_streams > x->free_private ? x->free_streams : x->free_private;
    if (x->pending >= here && x->pending >= elsewhere && x->pending > 0) return EXPLAIN_PENDING;
    if (here >= elsewhere && here > 0) return EXPLAIN_FRAGMENTATION;
    if (elsewhere > 0) return EXPLAIN_STRANDED;
    /* All is in use, and what the request needs is a whole segment. */
    return x->own.fits ? EXPLAIN_NOTHING : EXPLAIN_PEAK;
}

static enum explain_kind kind_of(const struct explain *x) {
    uint64_t grown = x->growth.bytes + x->growth.older_bytes;
    if (x->growth.count > 0 && grown >= x->live / 20) return EXPLAIN_LEAK;
    if (!x->failed) return EXPLAIN_NOTHING;
    return x->live + x->request > x->card.guess ? EXPLAIN_PEAK : largest_place(x);
}

int explain_make(const struct snapshot *snapshot, const struct snapshot_device *device, uint64_t card,
                 struct explain *out, struct problem *problem) {
    *out = (struct explain){.snapshot = snapshot, .device = device, .best = -1};
    out->failed = device->last_oom < device->entry_count;
    out->entry = out->failed ? device->last_oom : busiest(device);
    for (size_t i = 0; i < device->entry_count; i++)
        out->failures += device->entries[i].action == SNAPSHOT_OOM;
    if (device->entry_count == 0) out->entry = 0; /* no history: the end is all there is */
    if (out->failed) {
        out->request = device->entries[out->entry].size;
        out->stream = device->entries[out->entry].stream;
        out->request_stack = device->entries[out->entry].stack;
        memcpy(out->pool, device->entries[out->entry].pool, sizeof out->pool);
    }
    whatif_card(snapshot, device, device->last_oom, card, &out->card);
    if (look(out, problem) == 0 &&
        growth_find(snapshot, device, out->failed ? out->entry : device->entry_count, &out->growth,
                    problem) == 0 &&
        replay_all(out, problem) == 0) {
        out->kind = kind_of(out);
        return 0;
    }
    explain_free(out);
    return -1;
}

bool explain_failed_before(const struct explain *x) {
    return !x->failed && x->snapshot->statistics.out_of_memory > 0;
}

void explain_free(struct explain *explain) {
    growth_free(&explain->growth);
}
