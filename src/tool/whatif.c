/* SPDX-License-Identifier: Apache-2.0
 * What if: the traffic of a snapshot on a card of some size, under other settings. */
#include "tool/whatif.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define GRANULE (2 * MIB)

static uint64_t whole(uint64_t bytes) {
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

/* The segment that a miss asks the driver for: PyTorch's sizes, or what growing takes. */
static uint64_t segment_for(uint64_t request, bool expandable) {
    if (request <= MIB) return 2 * MIB;
    if (request < 10 * MIB && !expandable) return 20 * MIB;
    return whole(request);
}

static uint64_t lower(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The card by what the history says of its failure. reserved: then; most: ever. */
static void find_card(const struct snapshot *snapshot, uint64_t request, uint64_t reserved, uint64_t most,
                      struct whatif_card *out) {
    const uint64_t segment = segment_for(request, snapshot->expandable);
    if (snapshot->own && lower(snapshot->limit_bytes, snapshot->total_bytes) > 0) {
        out->source = WHATIF_LIMIT;
        out->high = lower(snapshot->limit_bytes, snapshot->total_bytes);
        /* The device had less to give than its size when others held the rest. */
        if (snapshot->limit_bytes > reserved + out->device_free)
            out->high = lower(out->high, reserved + out->device_free);
        out->low = out->high;
    } else if (out->device_free < segment) {
        out->source = WHATIF_DEVICE;
        out->low = out->high = reserved + out->device_free;
    } else {
        out->source = WHATIF_BOUNDS;
        out->low = most;
        out->high = reserved + segment > most ? reserved + segment - 1 : most;
    }
    out->guess = out->low + (out->high - out->low) / 2;
    if (out->source == WHATIF_BOUNDS) out->guess = lower(whole(out->guess), out->high);
}

void whatif_card(const struct snapshot *snapshot, const struct snapshot_device *device, size_t oom,
                 uint64_t asked, struct whatif_card *out) {
    uint64_t reserved = device->reserved_before, most = reserved;
    *out = (struct whatif_card){.source = WHATIF_UNKNOWN};
    for (size_t i = 0; i < oom && i < device->entry_count; i++) {
        if (device->entries[i].action == SNAPSHOT_SEGMENT) reserved += device->entries[i].size;
        if (device->entries[i].action == SNAPSHOT_UNSEGMENT) reserved -= device->entries[i].size;
        if (reserved > most) most = reserved;
    }
    if (oom < device->entry_count) {
        out->device_free = device->entries[oom].device_free;
        find_card(snapshot, device->entries[oom].size, reserved, most, out);
        out->had = out->high;
    }
    if (asked == 0) return;
    out->source = WHATIF_ASKED;
    out->low = out->high = out->guess = asked;
}

const char *whatif_settings(const struct snapshot *snapshot, char *buffer, size_t room) {
    if (snapshot->expandable)
        snprintf(buffer, room, "expandable_segments:True");
    else if (snapshot->max_split_size >= UINT64_MAX / 2)
        snprintf(buffer, room, "expandable_segments:False");
    else
        snprintf(buffer, room, "expandable_segments:False,max_split_size_mb:%llu",
                 (unsigned long long)(snapshot->max_split_size / MIB));
    return buffer;
}

static int replay(const struct trace *trace, const char *conf, uint64_t card, struct replay_result *out,
                  struct problem *problem) {
    struct replay_setup setup = {.driver = REPLAY_SIM, .conf = conf, .memory = (size_t)card};
    return replay_run(trace, &setup, out, problem);
}

int whatif_try(const struct trace *trace, const char *conf, uint64_t card, struct whatif_trial *out,
               struct problem *problem) {
    struct replay_result result;
    uint64_t low, high;
    *out = (struct whatif_trial){0};
    snprintf(out->conf, sizeof out->conf, "%s", conf);
    if (replay(trace, conf, WHATIF_ENDLESS, &result, problem) != 0) return -1;
    if (result.out_of_memory) {
        problem_set(problem, "%s: operation %zu asks for more than any card has", trace->path, result.oom_at);
        return -1;
    }
    out->reserved = result.peak_reserved;
    high = whole(result.peak_reserved) / GRANULE;
    low = result.peak_active > 0 ? (result.peak_active - 1) / GRANULE : 0; /* too small */
    if (card != 0) {
        if (replay(trace, conf, card, &result, problem) != 0) return -1;
        out->fits = !result.out_of_memory;
        if (out->fits && card / GRANULE < high) high = card / GRANULE;
    }
    /* A card that is larger need not always do where a smaller one did; each answer was tried. */
    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;
        if (replay(trace, conf, middle * GRANULE, &result, problem) != 0) return -1;
        if (result.out_of_memory)
            low = middle;
        else
            high = middle;
    }
    out->smallest = high * GRANULE;
    return 0;
}

int whatif_without(const struct trace *trace, const bool *gone, struct trace *out, struct problem *problem) {
    *out = *trace;
    out->count = 0;
    out->ops = malloc((trace->count + 1) * sizeof *out->ops);
    if (out->ops == NULL) {
        problem_set(problem, "%s: out of memory", trace->path);
        return -1;
    }
    for (size_t i = 0; i < trace->count; i++)
        if (!gone[trace->ops[i].block]) out->ops[out->count++] = trace->ops[i];
    return 0;
}
