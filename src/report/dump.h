/* SPDX-License-Identifier: Apache-2.0
 * A dump: what a handle holds and what happened to it, copied at one moment.
 *
 *      all stopped   segments and blocks copied, figures read, history marked     microseconds
 *      dump lock     events copied while other threads go on                      milliseconds
 *      no lock       the copy is sorted and belongs to the caller
 *
 * Events that are overwritten while they are copied, the oldest, are missing and counted as dropped.
 *
 * Locks: takes dump, miss, and all pools; none is held when it returns. */
#ifndef GR_REPORT_DUMP_H
#define GR_REPORT_DUMP_H

#include "heap/heap.h"

struct gr_dump_block {
    gr_addr addr;
    size_t size, requested; /* requested: 0 when inactive */
    uint32_t label;
    enum gr_block_state state; /* LIVE, PENDING or FREE */
};

struct gr_dump_segment { /* a run of mapped memory */
    gr_addr addr;
    size_t size;
    struct gr_place place;
    enum gr_class class;
    bool expandable;
    uint32_t label;
    size_t first, count; /* its blocks in gr_dump.blocks */
};

struct gr_dump {
    struct gr_dump_segment *segments; /* by rising address */
    struct gr_dump_block *blocks;
    struct gr_event *events; /* oldest first */
    size_t segment_count, block_count, event_count;
    struct granary_stats stats;
    struct granary_history history;
    struct gr_history *source; /* for the words of stacks and tags; NULL: there was never any */
    uint64_t time_ns;
    struct granary_options settings; /* in force */
    size_t limit;                    /* bytes of physical memory that may be held */
    bool expandable;                 /* new segments are */
    char expandable_reason[128];     /* why not */
};

/* with_events: the history too, and tell it of the snapshot. OK, HOST_MEMORY. */
GR_MUST int gr_dump_take(granary *g, bool with_events, struct gr_dump *out);
void gr_dump_fini(struct gr_dump *dump);

/* How history is kept; what it should be from now on (OK, HOST_MEMORY); forgetting it. */
void gr_dump_read_history(granary *g, struct granary_history *out);
GR_MUST int gr_dump_record(granary *g, int level, int stacks, size_t entries);
void gr_dump_forget(granary *g);

#endif
