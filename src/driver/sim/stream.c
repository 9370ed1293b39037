/* SPDX-License-Identifier: Apache-2.0
 * Streams and events outside of captures. */
#include <string.h>

#include "driver/sim/internal.h"

/* ---- handles ------------------------------------------------------------------------------ */

struct CUstream_st *gr_sim_stream_make(int device, unsigned flags, bool internal) {
    struct CUstream_st *stream = gr_sim_slots_take(&gr_sim.streams);
    stream->internal = internal;
    stream->queue = gr_sim_queue_make(device, flags);
    stream->context = &gr_sim.contexts[device];
    stream->flags = flags;
    stream->id = gr_sim.next_stream_id++;
    if (!internal) gr_sim.held.streams++;
    return stream;
}

static gr_cu_result default_stream(bool per_thread, bool fallback, struct CUstream_st **out) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code == GR_CU_INVALID_CONTEXT && fallback)
        context = &gr_sim.contexts[0];
    else if (code == GR_CU_INVALID_CONTEXT || code == GR_CU_CONTEXT_IS_DESTROYED)
        return code;
    *out = gr_sim.legacy[context->device];
    if (!per_thread) return GR_CU_SUCCESS;
    struct CUstream_st **mine = &gr_sim_thread()->per_thread[context->device];
    if (!*mine) *mine = gr_sim_stream_make(context->device, 0, true);
    *out = *mine;
    return GR_CU_SUCCESS;
}

gr_cu_result gr_sim_stream_find(gr_cu_stream handle, bool fallback, struct CUstream_st **out) {
    if (handle == NULL || handle == GR_CU_STREAM_LEGACY) return default_stream(false, fallback, out);
    if (handle == GR_CU_STREAM_PER_THREAD) return default_stream(true, fallback, out);
    if (gr_sim_slots_live(&gr_sim.streams, handle) && !handle->internal) {
        *out = handle;
        return GR_CU_SUCCESS;
    }
    gr_sim_report(GRANARY_SIM_MISUSE, "stream %p is destroyed, or never was one", (void *)handle);
    return GR_CU_CONTEXT_IS_DESTROYED;
}

static gr_cu_result event_find(gr_cu_event event) {
    if (!event) return GR_CU_INVALID_HANDLE;
    if (gr_sim_slots_live(&gr_sim.events, event)) return GR_CU_SUCCESS;
    gr_sim_report(GRANARY_SIM_MISUSE, "event %p is destroyed, or never was one", (void *)event);
    return GR_CU_CONTEXT_IS_DESTROYED;
}

static gr_cu_result stream_create(gr_cu_stream *out, unsigned flags) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code != GR_CU_SUCCESS) return code;
    if (!out || (flags & ~(unsigned)GR_CU_STREAM_NON_BLOCKING)) return GR_CU_INVALID_VALUE;
    *out = gr_sim_stream_make(context->device, flags, false);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamCreate(gr_cu_stream *out, unsigned flags) {
    GR_SIM_ENTRY(stream_create(out, flags));
}

/* Waits for nothing: pending work lives on in the queue. */
static gr_cu_result stream_destroy(gr_cu_stream handle) {
    struct CUstream_st *stream;
    if (!handle || handle == GR_CU_STREAM_LEGACY || handle == GR_CU_STREAM_PER_THREAD)
        return GR_CU_INVALID_HANDLE;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    gr_sim_capture_leave(stream);
    gr_sim_unhold(stream->queue);
    gr_sim_terminals_fini(&stream->terminals);
    gr_sim_terminals_fini(&stream->shown);
    gr_sim_slots_put(&gr_sim.streams, stream);
    gr_sim.held.streams--;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamDestroy(gr_cu_stream stream) {
    GR_SIM_ENTRY(stream_destroy(stream));
}

/* What a query or synchronisation of the stream must pass first. */
static gr_cu_result stream_observe(gr_cu_stream handle, struct CUstream_st **out) {
    gr_cu_result code = gr_sim_stream_find(handle, false, out);
    if (code != GR_CU_SUCCESS) return code;
    struct CUstream_st *stream = *out;
    gr_sim_stream_spoil(stream);
    if (stream->capture) {
        code = stream->capture->valid ? GR_CU_STREAM_CAPTURE_UNSUPPORTED : GR_CU_STREAM_CAPTURE_INVALIDATED;
        gr_sim_invalidate(stream->capture);
        return code;
    }
    struct gr_sim_capture *blocking = stream->queue->legacy ? gr_sim_blocking_capture(stream->queue->device)
                                                            : NULL;
    if (blocking) {
        gr_sim_invalidate(blocking);
        return GR_CU_STREAM_CAPTURE_IMPLICIT;
    }
    code = gr_sim_unsafe();
    return code != GR_CU_SUCCESS ? code : stream->context->sticky;
}

static gr_cu_result stream_query(gr_cu_stream handle) {
    struct CUstream_st *stream;
    gr_cu_result code = stream_observe(handle, &stream);
    if (code != GR_CU_SUCCESS) return code;
    if (stream->queue->completed < stream->queue->submitted) return GR_CU_NOT_READY;
    gr_sim_oracle_see(&stream->queue->clock);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamQuery(gr_cu_stream stream) {
    GR_SIM_ENTRY(stream_query(stream));
}

/* The clock is copied first: others may submit, record or destroy while this thread sleeps. */
static gr_cu_result wait_and_see(struct gr_sim_queue *queue, uint64_t sequence,
                                 const struct gr_sim_clock *clock) {
    struct gr_sim_clock seen = {0};
    gr_sim_clock_copy(&seen, clock);
    gr_cu_result code = gr_sim_wait(queue, sequence);
    if (code == GR_CU_SUCCESS) gr_sim_oracle_see(&seen);
    gr_sim_clock_fini(&seen);
    return code;
}

static gr_cu_result stream_synchronize(gr_cu_stream handle) {
    struct CUstream_st *stream;
    gr_cu_result code = stream_observe(handle, &stream);
    if (code != GR_CU_SUCCESS) return code;
    return wait_and_see(stream->queue, stream->queue->submitted, &stream->queue->clock);
}
gr_cu_result gr_sim_cuStreamSynchronize(gr_cu_stream stream) {
    GR_SIM_ENTRY(stream_synchronize(stream));
}

static gr_cu_result stream_wait_event(gr_cu_stream handle, gr_cu_event event, unsigned flags) {
    struct CUstream_st *stream;
    gr_cu_result code = event_find(event);
    if (code == GR_CU_SUCCESS) code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    if (flags > 1) return GR_CU_INVALID_VALUE;
    gr_sim_stream_spoil(stream);
    if (stream->context->sticky) return stream->context->sticky;
    if (stream->capture || event->capture_id) return gr_sim_capture_wait(stream, event);
    if (!event->queue) return GR_CU_SUCCESS;
    gr_sim_begin(stream->queue);
    gr_sim_submit_wait(stream->queue, event->queue, event->sequence);
    gr_sim_clock_join(&stream->queue->clock, &event->clock);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamWaitEvent(gr_cu_stream stream, gr_cu_event event, unsigned flags) {
    GR_SIM_ENTRY(stream_wait_event(stream, event, flags));
}

/* Q: Why does asking for a number break a capture? A: nobody knows; an H200 was seen to do it. */
static gr_cu_result stream_get_id(gr_cu_stream handle, unsigned long long *out) {
    struct CUstream_st *stream;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    if (!out) return GR_CU_INVALID_VALUE;
    gr_sim_stream_spoil(stream);
    if (stream->capture) {
        code = stream->capture->valid ? GR_CU_STREAM_CAPTURE_UNSUPPORTED : GR_CU_STREAM_CAPTURE_INVALIDATED;
        gr_sim_invalidate(stream->capture);
        return code;
    }
    *out = stream->id;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamGetId(gr_cu_stream stream, unsigned long long *out) {
    GR_SIM_ENTRY(stream_get_id(stream, out));
}

static gr_cu_result stream_get_ctx(gr_cu_stream handle, gr_cu_context *out) {
    struct CUstream_st *stream;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    if (!out) return GR_CU_INVALID_VALUE;
    *out = stream->context;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuStreamGetCtx(gr_cu_stream stream, gr_cu_context *out) {
    GR_SIM_ENTRY(stream_get_ctx(stream, out));
}

/* ---- events ------------------------------------------------------------------------------- */

static gr_cu_result event_create(gr_cu_event *out, unsigned flags) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code != GR_CU_SUCCESS) return code;
    bool interprocess = flags & 4, timing = !(flags & GR_CU_EVENT_DISABLE_TIMING);
    if (!out || flags > 7 || (interprocess && timing)) return GR_CU_INVALID_VALUE;
    *out = gr_sim_slots_take(&gr_sim.events);
    (*out)->context = context;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuEventCreate(gr_cu_event *out, unsigned flags) {
    GR_SIM_ENTRY(event_create(out, flags));
}

static gr_cu_result event_record(gr_cu_event event, gr_cu_stream handle) {
    struct CUstream_st *stream;
    gr_cu_result code = event_find(event);
    if (code == GR_CU_SUCCESS) code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    gr_sim_stream_spoil(stream);
    if (event->context != stream->context) return GR_CU_INVALID_HANDLE;
    if (stream->context->sticky) return stream->context->sticky;
    if (stream->capture) return gr_sim_capture_record(stream, event);
    struct gr_sim_capture *blocking = stream->queue->legacy ? gr_sim_blocking_capture(stream->queue->device)
                                                            : NULL;
    if (blocking) {
        gr_sim_invalidate(blocking);
        return GR_CU_STREAM_CAPTURE_IMPLICIT;
    }
    gr_sim_begin(stream->queue);
    event->capture_id = 0;
    gr_sim_terminals_fini(&event->terminals);
    event->queue = stream->queue;
    gr_sim_clock_copy(&event->clock, &stream->queue->clock);
    event->sequence = gr_sim_submit_record(stream->queue);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuEventRecord(gr_cu_event event, gr_cu_stream stream) {
    GR_SIM_ENTRY(event_record(event, stream));
}

/* A captured event can be asked nothing, and asking breaks its capture, in every mode. */
static gr_cu_result event_observe(gr_cu_event event) {
    gr_cu_result code = event_find(event);
    if (code != GR_CU_SUCCESS) return code;
    if (event->capture_id) {
        struct gr_sim_capture *capture = gr_sim_capture_find(event->capture_id);
        if (!capture || !capture->valid) return GR_CU_INVALID_VALUE;
        gr_sim_invalidate(capture);
        return GR_CU_CAPTURED_EVENT;
    }
    code = gr_sim_unsafe();
    return code != GR_CU_SUCCESS ? code : event->context->sticky;
}

static gr_cu_result event_query(gr_cu_event event) {
    gr_cu_result code = event_observe(event);
    if (code != GR_CU_SUCCESS || !event->queue) return code;
    if (event->queue->completed < event->sequence) return GR_CU_NOT_READY;
    gr_sim_oracle_see(&event->clock);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuEventQuery(gr_cu_event event) {
    GR_SIM_ENTRY(event_query(event));
}

static gr_cu_result event_synchronize(gr_cu_event event) {
    gr_cu_result code = event_observe(event);
    if (code != GR_CU_SUCCESS || !event->queue) return code;
    return wait_and_see(event->queue, event->sequence, &event->clock);
}
gr_cu_result gr_sim_cuEventSynchronize(gr_cu_event event) {
    GR_SIM_ENTRY(event_synchronize(event));
}

static gr_cu_result event_destroy(gr_cu_event event) {
    gr_cu_result code = event_find(event);
    if (code != GR_CU_SUCCESS) return code;
    gr_sim_clock_fini(&event->clock);
    gr_sim_terminals_fini(&event->terminals);
    gr_sim_slots_put(&gr_sim.events, event);
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuEventDestroy(gr_cu_event event) {
    GR_SIM_ENTRY(event_destroy(event));
}
