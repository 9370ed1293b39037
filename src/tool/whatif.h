/* SPDX-License-Identifier: Apache-2.0
 * What if: the traffic of a snapshot on a card of some size, under other settings.
 *
 * How large the card was. PyTorch's history does not say; what it says bounds it from both sides:
 *
 *      what was ever reserved  <=  card  <  reserved when it failed + the segment that was refused
 *
 * unless the driver itself had too little left, for then the card is what was reserved and that. Granary's
 * own snapshots name limit and device. A person may know, too. */
#ifndef TOOL_WHATIF_H
#define TOOL_WHATIF_H

#include "tool/replay.h"
#include "tool/snapshot.h"

/* A card that is larger than any, and still less than the simulated device's addresses. */
#define WHATIF_ENDLESS ((uint64_t)8 << 40)

enum whatif_source {
    WHATIF_UNKNOWN, /* the job did not run out of memory */
    WHATIF_ASKED,   /* somebody said it */
    WHATIF_LIMIT,   /* granary's snapshot names the limit, or the device */
    WHATIF_DEVICE,  /* the driver had less left than was asked for */
    WHATIF_BOUNDS   /* a limit of the process, between low and high */
};

/* What one process may hold. low <= the truth <= high; guess is the middle, in whole granules where there
 * are any between. */
struct whatif_card {
    enum whatif_source source;
    uint64_t low, high, guess;
    uint64_t had;         /* what the process had at most where it failed, whoever asks; 0: it did not */
    uint64_t device_free; /* as the driver said at the failure */
};

/* The card on which entry `oom` failed. asked: its size when somebody knows it, else 0. */
void whatif_card(const struct snapshot *snapshot, const struct snapshot_device *device, size_t oom,
                 uint64_t asked, struct whatif_card *out);

/* The settings of the job as an option string. Returns buffer. */
const char *whatif_settings(const struct snapshot *snapshot, char *buffer, size_t room);

struct whatif_trial {
    char conf[96];
    bool fits;         /* on the card that was given */
    uint64_t reserved; /* at most, on a card without end */
    uint64_t smallest; /* card on which the traffic ends without a failure, in whole granules */
};

/* Replays the trace on the simulated device with conf, once on a card without end, once on `card` (when
 * not 0) and then on ever smaller ones. Returns 0, or -1 with the problem. */
int whatif_try(const struct trace *trace, const char *conf, uint64_t card, struct whatif_trial *out,
               struct problem *problem);

/* A copy of the trace without the allocations, and their frees, whose `gone[block]` is true. */
int whatif_without(const struct trace *trace, const bool *gone, struct trace *out, struct problem *problem);

#endif
