/* SPDX-License-Identifier: Apache-2.0
 * What the sweep puts under stress: a state, and one call in it. */
#ifndef FAULT_SCENARIO_H
#define FAULT_SCENARIO_H

#include "heap/heap.h"
#include "support/fixture.h"
#include "support/model.h"

/* The world of one run. */
struct world {
    granary *g;
    granary_stream a, b;
    struct model live; /* blocks that must survive, with their contents */
    void *spare[2];    /* blocks that the call under test gives back */
    granary_stream made;
    granary_pool pool; /* 0: none */
};

struct scenario {
    const char *name;
    fixture_change *change;
    void (*prepare)(struct world *w);
    int (*act)(struct world *w); /* the call; its status */
    bool idle_may_go;            /* what lay idle may be given up although the call failed */
    bool never_fails;            /* the call succeeds whatever is refused */
};

/* Ends with a name of NULL. */
extern const struct scenario scenarios[];

/* Memory that has been used on its stream; a live one is watched, an idle one freed again. */
void world_live(struct world *w, size_t size, granary_stream stream);
void world_idle(struct world *w, size_t size, granary_stream stream);

#endif
