/* SPDX-License-Identifier: Apache-2.0
 * The trimmer: a thread of the handle that gives idle memory back, away from the calls of the program.
 *
 *      held  ──────────────.                      every 50 ms it looks; while more than trim_above is held,
 *                           '--.__                pieces of 16 MiB that are known to be idle go to the driver
 *      trim_above  - - - - - - - - '------
 *
 * It waits for no work, leaves alone what is not known to be idle and classic segments, whose release
 * waits for the device, and does nothing while a capture is open. Between two pieces it lets go of the
 * miss lock, so that a miss waits for one piece at most.
 *
 * There only when the option asks for it. Signals are blocked in it.
 *
 * Locks: none from outside; takes the miss lock. */
#ifndef GR_HEAP_TRIMMER_H
#define GR_HEAP_TRIMMER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/base.h"

struct granary;

struct gr_trimmer {
    bool running; /* constant between start and stop */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t bell;
    bool stop; /* under mutex */
};

/* Starts it when g->trim_above asks for it. HOST_MEMORY: there can be no more threads. */
GR_MUST int gr_trimmer_start(struct granary *g);
/* It has ended when this returns. */
void gr_trimmer_stop(struct granary *g);

#endif
