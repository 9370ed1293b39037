/* SPDX-License-Identifier: Apache-2.0
 * Streams: identity, and epochs, which tell when memory freed on a stream is really idle.
 *
 * A free notes the number of the stream's current epoch and nothing else: no event, no driver call.
 * Marking a stream ends its epoch: the number rises, then an event is recorded. When the event of
 * epoch n is complete, so is all work that was submitted before any free of epoch n or earlier.
 *
 *      epoch      1        | 2          | 3
 *      frees   a  b   c    |  d   e     |   f ...
 *      event           e1 -+      e2 ---+              e1 complete => a, b, c are idle
 *
 * The number rises before the event is recorded. A thread that still reads the old number has
 * submitted its work before, hence before the event; the other order would lose that work.
 *
 * Identity. A stream is known by its handle until its owner says that it is destroyed; what comes
 * later under the same handle is another stream. The per-thread default stream (handle 2) is another
 * stream on every thread, and only its own thread can record events on it.
 *
 * Invariants (gr_stream_check):
 *      S2  done < epoch, and events are pending for a rising run of numbers in (done, epoch)
 *
 * Locks: the miss lock for epochs (the number is read without any), the DEFER lock for uses. */
#ifndef GR_STREAM_STREAM_H
#define GR_STREAM_STREAM_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/thread.h"
#include "driver/driver.h"

enum { GR_STREAM_EVENTS = 4 };

struct gr_stream {
    /* constant, until the object becomes another stream; read without a lock */
    _Atomic(gr_cu_stream) handle;   /* the legacy stream is GR_CU_STREAM_LEGACY, never NULL */
    _Atomic uint64_t thread;        /* number of the thread that has it, for a per-thread stream */
    struct gr_stream *next;         /* of all streams of the device; under the miss lock */
    _Atomic uint32_t epoch;         /* current number, from 1 */
    atomic_bool dead;               /* destroyed: the handle is not to be used. Changed under the miss lock */
    _Atomic(gr_cu_context) context; /* that its events are made in; NULL: not known yet */
    /* under the miss lock */
    gr_cu_context made;                     /* that the events below were made in; NULL: there are none */
    char reserve_class[GRANARY_CLASS_ROOM]; /* of expandable_segments_reserve_by_class; "": none */
    uint32_t done;                          /* epochs up to this one are known complete; 0 at first */
    unsigned pending;                       /* events recorded and not known complete, oldest first */
    struct {
        gr_cu_event event; /* NULL until first used */
        uint32_t epoch;
    } mark[GR_STREAM_EVENTS];
    /* under the DEFER lock */
    struct gr_list queue;   /* uses with an event recorded here, in that order (stream/use.h) */
    struct gr_list waiting; /* uses whose event is not recorded yet */
    struct gr_list busy;    /* in the list of streams with a queue */
};

/* NULL and the legacy handle are one stream. */
static inline gr_cu_stream gr_stream_normal(gr_cu_stream handle) {
    return handle ? handle : GR_CU_STREAM_LEGACY;
}

void gr_stream_init(struct gr_stream *stream, gr_cu_stream handle);
/* A destroyed stream that nobody needs any more becomes another one; its events are used again. */
void gr_stream_renew(struct gr_stream *stream, gr_cu_stream handle);
void gr_stream_fini(struct gr_stream *stream, struct gr_driver *driver);

/* Is it the stream that the calling thread means by this normalised handle? */
static inline bool gr_stream_is(const struct gr_stream *stream, gr_cu_stream handle) {
    if (atomic_load_explicit(&stream->handle, memory_order_relaxed) != handle) return false;
    return GR_LIKELY(handle != GR_CU_STREAM_PER_THREAD) ||
           atomic_load_explicit(&stream->thread, memory_order_relaxed) == gr_thread_number();
}

/* May this thread record events on it? */
static inline bool gr_stream_ours(const struct gr_stream *stream) {
    return !stream->dead && gr_stream_is(stream, stream->handle);
}

/* Number to note at a free. */
static inline uint32_t gr_stream_epoch(const struct gr_stream *stream) {
    return atomic_load_explicit(&stream->epoch, memory_order_seq_cst);
}

/* Is it being captured into a graph, or can that not be told? */
bool gr_stream_capturing(const struct gr_stream *stream, struct gr_driver *driver);

/* The context that an event must be made in to be recorded on it: that of another device when the stream is one of a
 * peer's. No capture minds the question (measured on an H200, all modes). */
gr_cu_context gr_stream_context(struct gr_stream *stream, struct gr_driver *driver);
/* An event made in a context. OK, or what the driver refuses. A current context is needed. */
GR_MUST int gr_stream_event(struct gr_driver *driver, gr_cu_context context, gr_cu_event *out);

/* Is everything freed in this epoch or before known to be idle? Asks the driver only when it helps. */
bool gr_stream_idle(struct gr_stream *stream, struct gr_driver *driver, uint32_t epoch);

/* Waits until it is: records an event if none covers the epoch, and waits for the oldest that does.
 * OK, or BUSY when the stream is being captured or is another thread's, and nothing can be known. */
GR_MUST int gr_stream_wait(struct gr_stream *stream, struct gr_driver *driver, uint32_t epoch);

/* The handle is about to become invalid: a last event is recorded, which covers all that ever comes. */
GR_MUST int gr_stream_bury(struct gr_stream *stream, struct gr_driver *driver);

const char *gr_stream_check(const struct gr_stream *stream);

#endif
