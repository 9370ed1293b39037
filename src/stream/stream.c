/* SPDX-License-Identifier: Apache-2.0
 * Streams: epochs and the events that end them. */
#include "stream/stream.h"

#include <string.h>

#include "base/check.h"

void gr_stream_init(struct gr_stream *stream, gr_cu_stream handle) {
    *stream = (struct gr_stream){.done = 0};
    gr_stream_renew(stream, handle);
    gr_list_init(&stream->queue);
    gr_list_init(&stream->waiting);
    gr_list_init(&stream->busy);
}

void gr_stream_renew(struct gr_stream *stream, gr_cu_stream handle) {
    atomic_store_explicit(&stream->handle, handle, memory_order_relaxed);
    atomic_store_explicit(&stream->thread, gr_thread_number(), memory_order_relaxed);
    atomic_store_explicit(&stream->epoch, 1, memory_order_relaxed);
    atomic_store_explicit(&stream->dead, false, memory_order_relaxed);
    atomic_store_explicit(&stream->context, NULL, memory_order_relaxed);
    stream->reserve_class[0] = '\0';
    stream->done = 0;
    stream->pending = 0;
}

/* Destroys the events. A current context is needed. */
static void drop_events(struct gr_stream *stream, struct gr_driver *driver) {
    for (unsigned i = 0; i < GR_STREAM_EVENTS; i++)
        if (stream->mark[i].event)
            gr_driver_ignore(driver, GR_ENTRY_cuEventDestroy,
                             GR_TWICE(GR_DRIVE(driver, cuEventDestroy, stream->mark[i].event)));
    memset(stream->mark, 0, sizeof(stream->mark));
}

void gr_stream_fini(struct gr_stream *stream, struct gr_driver *driver) {
    if (GR_TWICE(gr_driver_begin(driver)) == GRANARY_OK) {
        drop_events(stream, driver);
        gr_driver_end(driver);
    }
    memset(stream->mark, 0, sizeof(stream->mark));
}

/* The oldest n marks are complete: their events move to the end, for reuse. */
static void retire(struct gr_stream *stream, unsigned n) {
    for (; n > 0; n--) {
        gr_cu_event event = stream->mark[0].event;
        stream->done = stream->mark[0].epoch;
        stream->pending--;
        memmove(&stream->mark[0], &stream->mark[1], sizeof(stream->mark[0]) * (GR_STREAM_EVENTS - 1));
        stream->mark[GR_STREAM_EVENTS - 1].event = event;
    }
    if (stream->dead && stream->pending == 0) stream->done = UINT32_MAX - 1;
}

static void poll(struct gr_stream *stream, struct gr_driver *driver) {
    int mode = gr_driver_relax(driver);
    while (stream->pending > 0 && GR_DRIVE(driver, cuEventQuery, stream->mark[0].event) == GR_CU_SUCCESS)
        retire(stream, 1);
    gr_driver_restore(driver, mode);
}

bool gr_stream_capturing(const struct gr_stream *stream, struct gr_driver *driver) {
    int status = GR_CU_CAPTURE_NONE;
    gr_cu_result code = GR_DRIVE(driver, cuStreamIsCapturing, stream->handle, &status);
    return code != GR_CU_SUCCESS || status != GR_CU_CAPTURE_NONE;
}

gr_cu_context gr_stream_context(struct gr_stream *stream, struct gr_driver *driver) {
    gr_cu_context context = atomic_load_explicit(&stream->context, memory_order_relaxed);
    if (context) return context;
    const bool is_default = stream->handle == GR_CU_STREAM_LEGACY ||
                            stream->handle == GR_CU_STREAM_PER_THREAD;
    if (is_default || !driver->call.cuStreamGetCtx ||
        GR_DRIVE(driver, cuStreamGetCtx, stream->handle, &context) != GR_CU_SUCCESS || !context)
        context = driver->context; /* whatever refuses to tell: streams of others are rare */
    atomic_store_explicit(&stream->context, context, memory_order_relaxed);
    return context;
}

int gr_stream_event(struct gr_driver *driver, gr_cu_context context, gr_cu_event *out) {
    const bool own = context == driver->context;
    int status = GRANARY_OK;
    *out = NULL;
    if (!own)
        status =
            gr_driver_status(driver, GR_ENTRY_cuCtxPushCurrent, GR_DRIVE(driver, cuCtxPushCurrent, context));
    if (status != GRANARY_OK) return status;
    status = gr_driver_status(driver, GR_ENTRY_cuEventCreate,
                              GR_DRIVE(driver, cuEventCreate, out, GR_CU_EVENT_DISABLE_TIMING));
    if (status != GRANARY_OK) *out = NULL;
    if (!own)
        gr_driver_ignore(driver, GR_ENTRY_cuCtxPopCurrent,
                         GR_TWICE(GR_DRIVE(driver, cuCtxPopCurrent, &context)));
    return status;
}

/* Ends the epoch with an event. */
static int mark(struct gr_stream *stream, struct gr_driver *driver) {
    unsigned at = stream->pending;
    const gr_cu_context context = gr_stream_context(stream, driver);
    if (stream->made && stream->made != context) drop_events(stream, driver); /* of what it was before */
    stream->made = context;
    if (at == GR_STREAM_EVENTS) {
        /* All in flight: the newest is recorded again and covers what it covered before. */
        at = --stream->pending;
    } else if (!stream->mark[at].event) {
        int status = gr_stream_event(driver, context, &stream->mark[at].event);
        if (status != GRANARY_OK) return status;
    }
    uint32_t ended = atomic_fetch_add_explicit(&stream->epoch, 1, memory_order_seq_cst);
    int status = gr_driver_status(driver, GR_ENTRY_cuEventRecord,
                                  GR_DRIVE(driver, cuEventRecord, stream->mark[at].event, stream->handle));
    if (status != GRANARY_OK) return status;
    stream->mark[at].epoch = ended;
    stream->pending++;
    return GRANARY_OK;
}

static int mark_covering(struct gr_stream *stream, struct gr_driver *driver, uint32_t epoch) {
    if (stream->pending > 0 && (stream->dead || stream->mark[stream->pending - 1].epoch >= epoch))
        return GRANARY_OK;
    if (!gr_stream_ours(stream) || gr_stream_capturing(stream, driver)) return GRANARY_BUSY;
    if (stream->pending == GR_STREAM_EVENTS) poll(stream, driver);
    return mark(stream, driver);
}

bool gr_stream_idle(struct gr_stream *stream, struct gr_driver *driver, uint32_t epoch) {
    if (epoch <= stream->done) return true;
    if (gr_driver_begin(driver) != GRANARY_OK) return false;
    if (mark_covering(stream, driver, epoch) == GRANARY_OK) poll(stream, driver);
    gr_driver_end(driver);
    return epoch <= stream->done;
}

int gr_stream_wait(struct gr_stream *stream, struct gr_driver *driver, uint32_t epoch) {
    if (epoch <= stream->done) return GRANARY_OK;
    int status = gr_driver_begin(driver);
    if (status != GRANARY_OK) return status;
    status = mark_covering(stream, driver, epoch);
    unsigned n = 0;
    while (status == GRANARY_OK && n + 1 < stream->pending && stream->mark[n].epoch < epoch) n++;
    if (status == GRANARY_OK) {
        int mode = gr_driver_relax(driver); /* a capture that nobody told us of survives it */
        status = gr_driver_status(driver, GR_ENTRY_cuEventSynchronize,
                                  GR_DRIVE(driver, cuEventSynchronize, stream->mark[n].event));
        gr_driver_restore(driver, mode);
    }
    if (status == GRANARY_OK) retire(stream, n + 1);
    gr_driver_end(driver);
    return status;
}

int gr_stream_bury(struct gr_stream *stream, struct gr_driver *driver) {
    int status = gr_driver_begin(driver);
    if (status != GRANARY_OK) return status;
    status = gr_stream_ours(stream) && !gr_stream_capturing(stream, driver) ? mark(stream, driver)
                                                                            : GRANARY_BUSY;
    if (status == GRANARY_OK) stream->dead = true;
    gr_driver_end(driver);
    return status;
}

const char *gr_stream_check(const struct gr_stream *stream) {
    uint32_t last = stream->done;
    for (unsigned i = 0; i < stream->pending; i++) {
        if (stream->mark[i].epoch <= last || !stream->mark[i].event) return "S2";
        last = stream->mark[i].epoch;
    }
    return stream->dead || last < gr_stream_epoch(stream) ? NULL : "S2";
}
