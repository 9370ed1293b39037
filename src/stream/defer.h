/* SPDX-License-Identifier: Apache-2.0
 * Deferral: where a freed block waits until every other stream that used it is done with it.
 *
 *      park ──> queues    events recorded on the using streams, polled at their heads
 *          ├──> marked    freed inside a capture, provable within it (capture.h)
 *          ├──> unproved  freed inside a capture, reusable when it ends
 *          └──> held      freed while some capture is open: no event may be asked about until then
 *
 *      reap, reached, end of a capture ──> complete blocks, back to the caller; returned when they are in
 *                                          their pools
 *
 * While a capture is open no event is recorded, asked or waited for: such calls invalidate captures,
 * from other threads too. begin takes the lock, so a poll that is under way ends before it returns.
 *
 * Invariants (gr_defer_check):
 *      D1  parked == blocks in queues, marked, unproved and held
 *      D2  queues are not polled while captures > 0
 *
 * Locks: a lock of its own (DEFER), above the pools': parking happens under a pool's lock. Driver
 * calls under it are those of events and graph queries: fractions of a microsecond. */
#ifndef GR_STREAM_DEFER_H
#define GR_STREAM_DEFER_H

#include <granary/granary.h>

#include "base/lock.h"
#include "stream/capture.h"

struct gr_defer {
    struct gr_driver *driver;           /* constant */
    enum granary_capture_reuse reuse;   /* under lock */
    enum granary_capture_marker marker; /* constant */
    atomic_size_t parked;               /* blocks; read without the lock */
    atomic_size_t leaving;              /* complete ones that were handed back and not returned yet */
    atomic_uint captures;               /* open; read without the lock, written under it */
    struct gr_lock lock;
    /* under lock */
    struct gr_uses uses;
    struct gr_list open;   /* captures */
    struct gr_block *held; /* by u.live.parked */
    uint32_t last_capture; /* number */
};

void gr_defer_init(struct gr_defer *defer, struct gr_driver *driver, enum granary_capture_reuse reuse,
                   enum granary_capture_marker marker);
/* For blocks that are freed, and requests that come, from now on. */
void gr_defer_set_reuse(struct gr_defer *defer, enum granary_capture_reuse reuse);
void gr_defer_fini(struct gr_defer *defer);

static inline bool gr_defer_quiet(const struct gr_defer *defer) {
    return atomic_load_explicit(&defer->captures, memory_order_acquire) == 0;
}

/* ---- under the lock of the block's pool --------------------------------------------------- */

/* A LIVE block is used by another stream as well. OK, WRONG_CAPTURE, HOST_MEMORY, DRIVER, LOST. */
GR_MUST int gr_defer_use(struct gr_defer *defer, struct gr_block *block, struct gr_stream *owner,
                         struct gr_stream *stream);

/* A PENDING block waits for its uses. True: it need not, it is complete. Cannot fail. kin: see
 * capture.h. */
GR_MUST bool gr_defer_park(struct gr_defer *defer, struct gr_block *block, struct gr_stream *owner,
                           const void *kin);

/* A block that was handed back as complete is PENDING no more. */
static inline void gr_defer_return(struct gr_defer *defer) {
    atomic_fetch_sub_explicit(&defer->leaving, 1, memory_order_relaxed);
}

/* ---- without pool locks; complete blocks come linked by u.live.parked --------------------- */

/* What is complete by now. Nothing while a capture is open. */
struct gr_block *gr_defer_reap(struct gr_defer *defer);

/* What a request on a captured stream may have: blocks of its own pools. */
struct gr_block *gr_defer_reached(struct gr_defer *defer, struct gr_stream *stream);
/* One block that any stream may have (reuse GRAPH), for a request on `stream`. */
struct gr_block *gr_defer_shared(struct gr_defer *defer, struct gr_stream *stream, const void *kin,
                                 size_t size);

/* An event that a PENDING block waits for, under the lock of its pool; NULL when a capture is open or
 * it waits for something that is no event. And waiting for it, without that lock. */
gr_cu_event gr_defer_event(struct gr_defer *defer, const struct gr_block *block);
GR_MUST int gr_defer_wait(struct gr_defer *defer, gr_cu_event event);

/* Blocks that are PENDING: parked, or handed back and not returned. All pools are stopped. */
size_t gr_defer_pending(struct gr_defer *defer);
/* Bytes of PENDING blocks that wait for work on the stream. All pools are stopped. */
size_t gr_defer_pending_on(struct gr_defer *defer, const struct gr_stream *stream);

/* Does any block wait for the stream, or would it, if it were freed? */
bool gr_defer_needs(struct gr_defer *defer, const struct gr_stream *stream);

/* The stream's handle is about to become invalid: its events are recorded now. */
GR_MUST int gr_defer_bury(struct gr_defer *defer, struct gr_stream *stream);
/* It lives on after all: more work may follow, and events must stand behind that. */
void gr_defer_unbury(struct gr_defer *defer, struct gr_stream *stream);

/* ---- captures ----------------------------------------------------------------------------- */

void gr_defer_capture_begin(struct gr_defer *defer, struct gr_capture *capture, struct gr_stream *origin);
/* Number of the open capture that a stream is part of now, or 0. */
uint32_t gr_defer_capture_number(struct gr_defer *defer, gr_cu_stream stream);
/* The capture is over: everything it held back is looked at again. Complete blocks by *complete. BUSY
 * while its stream is still being captured. */
GR_MUST int gr_defer_capture_end(struct gr_defer *defer, struct gr_capture *capture,
                                 struct gr_block **complete);

/* The handle closes: the capture's blocks are held, whatever it does. */
void gr_defer_capture_drop(struct gr_defer *defer, struct gr_capture *capture);

const char *gr_defer_check(struct gr_defer *defer);

#endif
