/* SPDX-License-Identifier: Apache-2.0
 * Uses: streams that use a block beyond the one it was allocated on, one object for each pair.
 *
 *      block ──> use (stream b) ──> use (stream c)
 *                  |                  |
 *      stream b:  waiting ────────> queue, oldest first ────────> complete
 *                 event not         event recorded at the free,
 *                 recorded          head polled
 *
 * The object and its event are made when the use is declared, so that a free needs nothing. Events of
 * one stream complete in the order of their recording: only the head of a queue is ever asked, and a
 * stream that does not move holds back nobody else's blocks.
 *
 * An event is of one context, that of its stream. Streams are of the device itself, but for those of a peer that
 * touches the block: then the object's event is made anew.
 *
 * A stream that is destroyed gets its events recorded before, while blocks may still be live; such a
 * use waits on with its event recorded, and takes its place in the queue when its block is freed.
 *
 * Invariants: U1 a use is in exactly one list of its stream: in the queue only if its block is PENDING
 *                and its event recorded, else waiting
 *             U2 a queue is in the order of recording
 *             U3 a stream is in the busy list iff its queue is not empty
 * Locks: the DEFER lock. */
#ifndef GR_STREAM_USE_H
#define GR_STREAM_USE_H

#include "base/slab.h"
#include "block/block.h"
#include "stream/stream.h"

struct gr_use {
    struct gr_list link; /* in stream->queue or stream->waiting */
    struct gr_stream *stream;
    struct gr_block *block;
    struct gr_use *next;   /* of the same block */
    gr_cu_event event;     /* stays with the object when it is given back */
    gr_cu_context context; /* that it was made in */
    struct gr_use *all;    /* every use object ever made, for fini */
    uint64_t order;        /* of the recording, among all */
    uint32_t capture;      /* number of the capture it was declared in, or 0 */
    bool recorded;         /* the event stands behind the last use */
    bool taken;            /* the object is in use */
};
_Static_assert(sizeof(struct gr_use) <= 128, "a use is two cache lines");

struct gr_uses {
    struct gr_driver *driver;
    struct gr_use *all, *spare; /* spare: linked by next */
    struct gr_slab slab;
    struct gr_list busy; /* streams with a queue */
    size_t events;       /* made and not destroyed */
    uint64_t recorded;   /* so far */
};

void gr_uses_init(struct gr_uses *uses, struct gr_driver *driver);
void gr_uses_fini(struct gr_uses *uses);

/* The use of the block by the stream, or NULL. */
struct gr_use *gr_use_find(const struct gr_block *block, const struct gr_stream *stream);
/* A new one. OK, HOST_MEMORY, or the driver's refusal to make an event. */
GR_MUST int gr_use_add(struct gr_uses *uses, struct gr_block *block, struct gr_stream *stream,
                       struct gr_use **out);
/* Takes it off its block and its stream. */
void gr_use_drop(struct gr_uses *uses, struct gr_use *use);

/* Records the event of a use behind all that its stream has been given so far. BUSY when that cannot
 * be done now: the stream is being captured, or another thread's. A current context is needed. */
GR_MUST int gr_use_record(struct gr_uses *uses, struct gr_use *use);
/* The block is PENDING and the event recorded: the use waits in its stream's queue. */
void gr_use_enqueue(struct gr_uses *uses, struct gr_use *use);

/* Asks the heads of all queues and drops the uses that are complete. Blocks that have none left are
 * linked by u.live.parked and returned. A current context is needed. */
struct gr_block *gr_uses_poll(struct gr_uses *uses);

#endif
