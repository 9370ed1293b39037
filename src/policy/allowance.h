/* SPDX-License-Identifier: Apache-2.0
 * Allowance: whether what is moved is moved too often. Moving may take a hundredth of the time, and what has not been
 * used of that is saved up, to 16 ms:
 *
 *      credit   16 ms ──┐    ┌──────┐                    refilled at a hundredth of the time
 *                       └────┘ a move of 5 ms takes as much
 *                0 ──────────────────────────────       a move that costs more than there is is too often
 *
 * A job that computes pays far less: recorded ones of 13 to 55 s spend 2 to 7 ms in all, 0.01 to 0.06 % of their time.
 * Only what allocates much faster than that, or moves at every few requests, runs out.
 *
 * A value and a rule; no lock. */
#ifndef GR_POLICY_ALLOWANCE_H
#define GR_POLICY_ALLOWANCE_H

#include "base/base.h"

#define GR_ALLOWANCE_MOST UINT64_C(16000000) /* ns */
enum { GR_ALLOWANCE_PART = 100 };

struct gr_allowance {
    uint64_t at;     /* ns: when credit was counted last */
    uint64_t credit; /* ns of moving; GR_ALLOWANCE_MOST at most, unless it was given more */
};

static inline void gr_allowance_init(struct gr_allowance *allowance, uint64_t now) {
    *allowance = (struct gr_allowance){.at = now, .credit = GR_ALLOWANCE_MOST};
}

/* Moving has taken so long, up to now. True: that was more than there was credit for. */
static inline bool gr_allowance_spend(struct gr_allowance *allowance, uint64_t now, uint64_t spent) {
    uint64_t refilled =
        gr_min(allowance->credit + (now - allowance->at) / GR_ALLOWANCE_PART, GR_ALLOWANCE_MOST);
    uint64_t credit = gr_max(allowance->credit, refilled);
    allowance->at = now;
    allowance->credit = credit - gr_min(credit, spent);
    return spent > credit;
}

#endif
