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
 * Invariants (gr_stream_check):
 *      S2  done < epoch, and events are pending for a rising run of numbers in (done, epoch)
 *
 * Locks: the miss lock; the epoch is read without any. */
#ifndef GR_STREAM_STREAM_H
#define GR_STREAM_STREAM_H

#include <stdatomic.h>

#include "driver/driver.h"

enum { GR_STREAM_EVENTS = 4 };

struct gr_stream {
    gr_cu_stream handle;    /* constant; the legacy stream is GR_CU_STREAM_LEGACY, never NULL */
    _Atomic uint32_t epoch; /* current number, from 1 */
    uint32_t done;          /* epochs up to this one are known complete; 0 at first */
    unsigned pending;       /* events recorded and not known complete, oldest first */
    struct {
        gr_cu_event event;  /* NULL until first used */
        uint32_t epoch;
    } mark[GR_STREAM_EVENTS];
};

/* NULL and the legacy handle are one stream. */
static inline gr_cu_stream gr_stream_normal(gr_cu_stream handle) {
    return handle ? handle : GR_CU_STREAM_LEGACY;
}

void gr_stream_init(struct gr_stream *stream, gr_cu_stream handle);
void gr_stream_fini(struct gr_stream *stream, struct gr_driver *driver);

/* Number to note at a free. */
static inline uint32_t gr_stream_epoch(const struct gr_stream *stream) {
    return atomic_load_explicit(&stream->epoch, memory_order_seq_cst);
}

/* Is everything freed in this epoch or before known to be idle? Asks the driver only when it helps. */
bool gr_stream_idle(struct gr_stream *stream, struct gr_driver *driver, uint32_t epoch);

/* Waits until it is: records an event if none covers the epoch, and waits for the oldest that does.
 * OK, or BUSY when the stream is being captured and nothing can be known. */
GR_MUST int gr_stream_wait(struct gr_stream *stream, struct gr_driver *driver, uint32_t epoch);

const char *gr_stream_check(const struct gr_stream *stream);

#endif
