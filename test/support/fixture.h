/* SPDX-License-Identifier: Apache-2.0
 * What most tests stand on: a simulated device, a handle on it, and the proof at the end that
 * nothing is broken and nothing was left behind. */
#ifndef SUPPORT_FIXTURE_H
#define SUPPORT_FIXTURE_H

#include <check.h>
#include <stdlib.h>

#include <granary/sim.h>

#include "base/base.h"

/* Changes the configuration before it is opened; NULL in its place changes nothing. */
typedef void fixture_change(struct granary_sim_config *sim, struct granary_options *options);

/* A device of 1 GiB whose bytes are real (GRANARY_SIM_MEMORY), and a handle on it. */
granary *fixture_open(fixture_change *change);
/* Every invariant holds; after closing nothing is held, and the oracle has found nothing; the simulation closes. */
void fixture_close(granary *g);

/* The two halves, for tests with several handles or none. */
void fixture_open_sim(fixture_change *change, struct granary_options *options);
granary *fixture_open_handle(const struct granary_options *options, int device);
void fixture_close_handle(granary *g);
void fixture_close_sim(void);

/* All zero, or the name of what is held. */
const char *fixture_leak(void);

struct granary_stats fixture_stats(granary *g);
struct granary_fault fixture_fault(granary *g);
struct granary_sim_held fixture_held(void);
granary_stream fixture_stream(granary *g);

/* An allocation, and a free, that must succeed. */
void *fixture_alloc(granary *g, size_t size, granary_stream stream);
void fixture_free(granary *g, void *ptr);
size_t fixture_trim(granary *g, size_t keep);

/* Figures that a failed call must not move: everything current, every peak, and what is held in the
 * driver. Writes the name of the first difference into words and returns false. reserved_may_fall:
 * idle memory may have been given up on the way. */
struct fixture_state {
    struct granary_stats stats;
    struct granary_sim_held held;
};
struct fixture_state fixture_state(granary *g);
bool fixture_same(const struct fixture_state *before, const struct fixture_state *after,
                  bool reserved_may_fall, char words[128]);

/* Does the function abort? Runs it in a forked child whose standard error is closed. */
bool fixture_aborts(void (*function)(void *argument), void *argument);

/* Ends the process when it is not disarmed within so many seconds: for tests that would hang. */
void fixture_watchdog(unsigned seconds);

#endif
