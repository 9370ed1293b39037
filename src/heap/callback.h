/* SPDX-License-Identifier: Apache-2.0
 * Callbacks: who wants to be called at a miss or at a failure. Kept here, called by api.c, since nobody
 * below it calls upwards.
 *
 *      miss ──> reliefs: each may free what it keeps ──> the pool is searched again
 *      failure ──> observers: each sees the facts
 *
 * A callback may call any function of granary, also add and remove callbacks. What its thread
 * allocates meanwhile calls nobody, so that nothing goes round in circles.
 *
 * Locks: a leaf of its own; never held during a call. */
#ifndef GR_HEAP_CALLBACK_H
#define GR_HEAP_CALLBACK_H

#include <stdatomic.h>

#include <granary/granary.h>

#include "base/list.h"
#include "base/lock.h"

struct gr_callback {
    struct gr_list link; /* oldest first */
    uint64_t name;
    granary_relief relief;     /* either, */
    granary_observer observer; /* or */
    void *context;
};

struct gr_callback_run { /* a thread that is calling them; on its stack */
    struct gr_list link;
    uint64_t thread;
    uint64_t last; /* the newest that there was: one that is added by a call is not called by the same run */
};

struct gr_callbacks {
    atomic_size_t reliefs; /* read without the lock */
    struct gr_lock lock;
    /* under lock */
    struct gr_list all, running;
    uint64_t last_name;
};

void gr_callback_init(struct gr_callbacks *callbacks);
void gr_callback_fini(struct gr_callbacks *callbacks);

/* One of the two is NULL. */
GR_MUST int gr_callback_add(struct gr_callbacks *callbacks, granary_relief relief, granary_observer observer,
                            void *context, uint64_t *name);                    /* HOST_MEMORY */
GR_MUST int gr_callback_remove(struct gr_callbacks *callbacks, uint64_t name); /* INVALID */

/* Is there a relief that this thread may call? */
bool gr_callback_relieves(struct gr_callbacks *callbacks);

/* Around the calls: false when this thread is calling them already, and then nothing else is called. */
GR_MUST bool gr_callback_begin(struct gr_callbacks *callbacks, struct gr_callback_run *run);
void gr_callback_end(struct gr_callbacks *callbacks, struct gr_callback_run *run);
/* Copies the next of the kind: those named above at->name, which starts as 0, and there when the run began.
 * False: no more. */
GR_MUST bool gr_callback_next(struct gr_callbacks *callbacks, const struct gr_callback_run *run,
                              bool observers, struct gr_callback *at);

#endif
