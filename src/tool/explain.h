/* SPDX-License-Identifier: Apache-2.0
 * Diagnosis: why the job that left a snapshot ran out of memory, or whether anything is wrong.
 *
 * Looked at is the moment of the last out-of-memory, else the one with most memory in use. The kind:
 *
 *      LEAK           allocations of one place only grow (growth.h) and hold a twentieth of what is live
 *      PEAK           all that is live and the request are more than the card, however they are laid out
 *      PENDING        of what is not live most is freed and waits for other streams
 *      STRANDED       ... is free in pools of other streams or in private pools
 *      FRAGMENTATION  ... is free where it was asked for, in pieces
 *
 * What the replays of whatif.h say is the evidence for the settings that are named. */
#ifndef TOOL_EXPLAIN_H
#define TOOL_EXPLAIN_H

#include <stdio.h>

#include "tool/growth.h"
#include "tool/snapshot.h"
#include "tool/whatif.h"

enum explain_kind {
    EXPLAIN_NOTHING,
    EXPLAIN_LEAK,
    EXPLAIN_FRAGMENTATION,
    EXPLAIN_PEAK,
    EXPLAIN_PENDING,
    EXPLAIN_STRANDED
};

enum { EXPLAIN_PLACES = 4, EXPLAIN_TRIALS = 6 };

/* A place in the program, and what is held from there. */
struct explain_place {
    uint32_t stack;
    uint64_t size; /* where the stack is not recorded: of the blocks, which are alike */
    const char *note;
    uint64_t bytes; /* of a pin: the free bytes that it keeps apart */
    size_t blocks;
};

struct explain {
    const struct snapshot *snapshot;
    const struct snapshot_device *device;
    enum explain_kind kind;
    size_t entry; /* the moment: just before this */
    bool failed;  /* the job ran out of memory there */
    size_t failures;
    uint64_t request, stream, pool[2]; /* of the allocation that failed */
    uint32_t request_stack;

    /* The moment, in bytes. `free` is where was asked for; the others are free elsewhere. */
    uint64_t reserved, live, pending, requested, free, free_class, free_streams, free_private;
    uint64_t largest;        /* free block where was asked for */
    size_t pieces;           /* free blocks there */
    size_t segments, partly; /* there; partly: those with a free and a used block */

    struct whatif_card card;
    struct growth growth;
    /* Of what is live; of what keeps free memory apart, where was asked for and elsewhere; of what is
     * pending. */
    struct explain_place holders[EXPLAIN_PLACES], pins[EXPLAIN_PLACES], pins_elsewhere[EXPLAIN_PLACES];
    struct explain_place waiting[EXPLAIN_PLACES];

    struct whatif_trial own; /* the job's settings */
    struct whatif_trial trials[EXPLAIN_TRIALS];
    size_t trial_count;
    int best; /* of trials: what fits the card where the job's own does not, or -1 */
    struct whatif_trial
        without; /* the job's settings, without what grows; smallest is 0 when nothing grows */
};

/* card: its size when somebody knows it, else 0. Returns 0, or -1 with the problem. */
int explain_make(const struct snapshot *snapshot, const struct snapshot_device *device, uint64_t card,
                 struct explain *out, struct problem *problem);
void explain_free(struct explain *explain);
/* Nothing failed in the history, but the job did run out of memory before it. */
bool explain_failed_before(const struct explain *explain);

/* "leak", "nothing wrong", ... */
const char *explain_kind_name(enum explain_kind kind);
/* "fits", "likely fails", ... on the card; "-" when that is not known. */
const char *explain_fits(const struct explain *explain, const struct whatif_trial *trial);

/* For people, and one JSON object without a line end. */
void explain_print(const struct explain *explain, FILE *to);
void explain_print_json(const struct explain *explain, FILE *to);

#endif
