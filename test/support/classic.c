/* SPDX-License-Identifier: Apache-2.0
 * A model of the classic allocator by PyTorch's published rules. */
#include "support/classic.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

struct classic_block {
    int stream, large;
    size_t size;
    uint64_t addr;
    uint64_t freed;                    /* the clock when it became free */
    struct classic_block *prev, *next; /* neighbours in the segment */
    bool live;
};

/* ---- free blocks, by (stream, size, address) ---------------------------------------------- */

static int compare(const struct classic_block *a, const struct classic_block *b) {
    if (a->stream != b->stream) return a->stream < b->stream ? -1 : 1;
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static size_t lower_bound(const struct classic *c, int large, const struct classic_block *key) {
    size_t low = 0, high = c->count[large];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare(c->pool[large][middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct classic *c, struct classic_block *b) {
    int p = b->large;
    if (c->count[p] == c->room[p]) {
        c->room[p] = c->room[p] ? c->room[p] * 2 : 64;
        c->pool[p] = realloc(c->pool[p], c->room[p] * sizeof *c->pool[p]);
        if (!c->pool[p]) abort();
    }
    size_t at = lower_bound(c, p, b);
    memmove(&c->pool[p][at + 1], &c->pool[p][at], (c->count[p] - at) * sizeof *c->pool[p]);
    c->pool[p][at] = b;
    c->count[p]++;
    if (p) b->freed = c->clock;
}

static void erase(struct classic *c, int p, size_t at) {
    c->count[p]--;
    memmove(&c->pool[p][at], &c->pool[p][at + 1], (c->count[p] - at) * sizeof *c->pool[p]);
}

/* ---- segments --------------------------------------------------------------------------------- */

static struct classic_block *make(void) {
    struct classic_block *b = calloc(1, sizeof *b);
    if (!b) abort();
    return b;
}

static bool whole(const struct classic_block *b) {
    return !b->prev && !b->next;
}

static void give_segment(struct classic *c, int p, size_t at) {
    c->reserved -= c->pool[p][at]->size;
    c->segments_freed++;
    free(c->pool[p][at]);
    erase(c, p, at);
}

static size_t segment_size(size_t rounded) {
    return rounded <= MIB       ? 2 * MIB
           : rounded < 10 * MIB ? 20 * MIB
                                : (rounded + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

/* Passes over the whole free segments of the large pool; each gives back those that are at least as old
 * as the mean, until enough has gone. */
static void collect(struct classic *c) {
    size_t most = (size_t)(c->threshold * (double)c->limit), gone = 0;
    if (c->threshold == 0 || c->reserved <= most) return;
    size_t target = c->reserved - most, candidates = 0;
    double total = 0;
    bool any = true;
    for (size_t i = 0; i < c->count[1]; i++)
        if (whole(c->pool[1][i])) {
            total += (double)(c->clock - c->pool[1][i]->freed);
            candidates++;
        }
    while (gone < target && any && candidates > 0) {
        double mean = total / (double)candidates;
        any = false;
        for (size_t i = 0; i < c->count[1];) {
            struct classic_block *b = c->pool[1][i];
            if (!whole(b) || (double)(c->clock - b->freed) < mean) {
                i++;
                continue;
            }
            any = true;
            gone += b->size;
            total -= (double)(c->clock - b->freed);
            candidates--;
            give_segment(c, 1, i);
        }
    }
    c->collected += gone;
}

/* ---- blocks ----------------------------------------------------------------------------------- */

static bool splits(const struct classic_block *b, size_t rounded) {
    return b->large ? b->size - rounded > MIB : b->size - rounded >= 512;
}

struct classic_block *classic_alloc(struct classic *c, size_t size, int stream, uint64_t addr) {
    size_t rounded = size < 512 ? 512 : (size + 511) / 512 * 512;
    int p = rounded > MIB;
    struct classic_block key = {.stream = stream, .size = rounded}, *b = NULL;
    c->clock += (uint64_t)p;
    size_t at = lower_bound(c, p, &key);
    if (at < c->count[p] && c->pool[p][at]->stream == stream) {
        b = c->pool[p][at];
        erase(c, p, at);
    } else {
        size_t bytes = segment_size(rounded);
        collect(c);
        if (c->reserved + bytes > c->limit) return NULL;
        b = make();
        *b = (struct classic_block){.stream = stream, .large = p, .size = bytes, .addr = addr};
        c->reserved += bytes;
        c->segments_made++;
        if (c->reserved > c->peak_reserved) c->peak_reserved = c->reserved;
    }
    b->live = true;
    if (splits(b, rounded)) {
        struct classic_block *rest = make();
        *rest = *b;
        rest->live = false;
        rest->size = b->size - rounded;
        rest->addr = b->addr + rounded;
        rest->prev = b;
        if (rest->next) rest->next->prev = rest;
        b->next = rest;
        b->size = rounded;
        insert(c, rest);
    }
    return b;
}

static void take_out(struct classic *c, struct classic_block *b) {
    erase(c, b->large, lower_bound(c, b->large, b));
}

void classic_free(struct classic *c, struct classic_block *b) {
    struct classic_block *prev = b->prev, *next = b->next;
    b->live = false;
    if (prev && !prev->live) {
        take_out(c, prev);
        b->addr = prev->addr;
        b->size += prev->size;
        b->prev = prev->prev;
        if (b->prev) b->prev->next = b;
        free(prev);
    }
    if (next && !next->live) {
        take_out(c, next);
        b->size += next->size;
        b->next = next->next;
        if (b->next) b->next->prev = b;
        free(next);
    }
    insert(c, b);
}

void classic_fini(struct classic *c) {
    for (int p = 0; p < 2; p++) {
        for (size_t i = 0; i < c->count[p]; i++) free(c->pool[p][i]);
        free(c->pool[p]);
    }
    *c = (struct classic){0};
}
