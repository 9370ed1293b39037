/* SPDX-License-Identifier: Apache-2.0
 * Queues: how work is submitted, when it runs, and how one waits for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/sim/internal.h"

enum outcome { RAN, EMPTY, STUCK /* held, or busy in another thread */, WAITING };

/* ---- queues ------------------------------------------------------------------------------- */

struct gr_sim_queue *gr_sim_queue_make(int device, unsigned flags) {
    struct gr_sim_queue *queue = gr_sim_zeroed(1, sizeof *queue);
    if (gr_sim.queue_count == gr_sim.queue_room) {
        gr_sim.queue_room = gr_sim.queue_room ? 2 * gr_sim.queue_room : 16;
        gr_sim.queues = gr_sim_grow(gr_sim.queues, gr_sim.queue_room, sizeof *gr_sim.queues);
    }
    queue->index = gr_sim.queue_count;
    queue->device = device;
    queue->blocking = !(flags & GR_CU_STREAM_NON_BLOCKING);
    queue->tail = &queue->head;
    gr_sim.queues[gr_sim.queue_count++] = queue;
    return queue;
}

void gr_sim_queues_close(void) {
    for (unsigned i = 0; i < gr_sim.queue_count; i++) {
        gr_sim_clock_fini(&gr_sim.queues[i]->clock);
        free(gr_sim.queues[i]);
    }
    free(gr_sim.queues);
    gr_sim.queues = NULL;
    gr_sim.queue_count = gr_sim.queue_room = 0;
    while (gr_sim.spare_items) {
        struct gr_sim_item *item = gr_sim.spare_items;
        gr_sim.spare_items = item->next;
        free(item);
    }
}

/* ---- running ------------------------------------------------------------------------------ */

void gr_sim_program_put(struct gr_sim_program *program) {
    if (!program || --program->refs > 0) return;
    for (size_t i = 0; i < program->count; i++) gr_sim_action_fini(&program->actions[i]);
    free(program->actions);
    free(program);
}

void gr_sim_action_fini(struct gr_sim_action *action) {
    free(action->pieces);
    gr_sim_program_put(action->program);
    memset(action, 0, sizeof *action);
}

static void call_host(const struct gr_sim_action *action) {
    struct gr_sim_thread *thread = gr_sim_thread();
    thread->in_host_function = true;
    pthread_mutex_unlock(&gr_sim.lock);
    action->fn(action->data);
    pthread_mutex_lock(&gr_sim.lock);
    thread->in_host_function = false;
}

static void change_bytes(const struct gr_sim_action *action) {
    if (gr_sim.config.backing != GRANARY_SIM_MEMORY) return;
    uint32_t value = action->value;
    char *to = (char *)action->to; /* the host address is the device address */
    if (action->kind == GR_SIM_FILL8)
        memset(to, (int)value, action->size);
    else if (action->kind == GR_SIM_COPY)
        memmove(to, (const char *)action->from, action->size);
    else if (action->kind == GR_SIM_FILL32)
        for (size_t i = 0; i < action->size; i += sizeof value) memcpy(to + i, &value, sizeof value);
}

/* A context that has faulted runs nothing any more. */
static void perform(const struct gr_sim_action *action) {
    if (gr_sim.contexts[action->device].sticky || !gr_sim_oracle_execute(action)) return;
    if (action->kind == GR_SIM_HOST)
        call_host(action);
    else if (action->kind == GR_SIM_LAUNCH)
        for (size_t i = 0; i < action->program->count; i++) perform(&action->program->actions[i]);
    else
        change_bytes(action);
}

static bool is_met(const struct gr_sim_item *item) {
    return item->kind != GR_SIM_WAIT || item->target->completed >= item->sequence;
}

static enum outcome step(struct gr_sim_queue *queue) {
    struct gr_sim_item *item = queue->head;
    if (!item) return EMPTY;
    if (queue->holds || queue->busy) return STUCK;
    if (!is_met(item)) return WAITING;
    if (item->kind == GR_SIM_ACT) {
        queue->busy = true;
        perform(&item->action);
        queue->busy = false;
    }
    queue->head = item->next;
    if (!queue->head) queue->tail = &queue->head;
    queue->completed++;
    gr_sim.pending--;
    gr_sim_action_fini(&item->action);
    item->next = gr_sim.spare_items;
    gr_sim.spare_items = item;
    pthread_cond_broadcast(&gr_sim.changed);
    return RAN;
}

static uint64_t run_everything(void) {
    uint64_t ran = 0, before;
    do {
        before = ran;
        for (unsigned i = 0; i < gr_sim.queue_count; i++)
            while (step(gr_sim.queues[i]) == RAN) ran++;
    } while (ran != before && gr_sim.pending);
    return ran;
}

/* One step towards completing the queue; false when only another thread can help. */
static bool push_on(struct gr_sim_queue *queue) {
    for (;;) {
        switch (step(queue)) {
        case RAN: return true;
        case WAITING: queue = queue->head->target; break;
        case EMPTY:
        case STUCK: return false;
        }
    }
}

/* Sleeps until something changes; false when nothing did for hang_ms. */
static bool sleep_for_change(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += gr_sim.config.hang_ms / 1000;
    until.tv_nsec += (long)(gr_sim.config.hang_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return pthread_cond_timedwait(&gr_sim.changed, &gr_sim.lock, &until) != ETIMEDOUT;
}

gr_cu_result gr_sim_wait(struct gr_sim_queue *queue, uint64_t sequence) {
    while (queue->completed < sequence) {
        if (push_on(queue) || sleep_for_change() || queue->completed >= sequence) continue;
        gr_sim_report(GRANARY_SIM_DEADLOCK,
                      "nothing moved for %d ms; a stream that it waits for is held, and nobody lets go",
                      gr_sim.config.hang_ms);
        return GR_CU_LAUNCH_TIMEOUT;
    }
    return gr_sim.contexts[queue->device].sticky;
}

gr_cu_result gr_sim_drain(int device) {
    struct gr_sim_clock seen = {0};
    gr_cu_result code = GR_CU_SUCCESS;
    for (unsigned i = 0; i < gr_sim.queue_count && code == GR_CU_SUCCESS; i++) {
        struct gr_sim_queue *queue = gr_sim.queues[i];
        if (device >= 0 && queue->device != device) continue;
        gr_sim_clock_join(&seen, &queue->clock);
        code = gr_sim_wait(queue, queue->submitted);
    }
    if (code == GR_CU_SUCCESS) gr_sim_oracle_see(&seen);
    gr_sim_clock_fini(&seen);
    return code;
}

/* ---- submitting --------------------------------------------------------------------------- */

static void order_after(struct gr_sim_queue *queue, struct gr_sim_queue *earlier) {
    if (earlier->completed < earlier->submitted) gr_sim_submit_wait(queue, earlier, earlier->submitted);
    if (earlier->clock.count) gr_sim_clock_join(&queue->clock, &earlier->clock);
}

void gr_sim_begin(struct gr_sim_queue *queue) {
    if (gr_sim.config.oracle) gr_sim_clock_join(&queue->clock, &gr_sim.host);
    if (!queue->blocking) return;
    if (!queue->legacy) {
        order_after(queue, gr_sim.legacy[queue->device]->queue);
        return;
    }
    for (unsigned i = 0; i < gr_sim.queue_count; i++) {
        struct gr_sim_queue *other = gr_sim.queues[i];
        if (other != queue && other->blocking && other->device == queue->device) order_after(queue, other);
    }
}

static struct gr_sim_item *append(struct gr_sim_queue *queue, enum gr_sim_item_kind kind) {
    struct gr_sim_item *item = gr_sim.spare_items;
    if (item)
        gr_sim.spare_items = item->next;
    else
        item = gr_sim_zeroed(1, sizeof *item);
    item->next = NULL;
    item->kind = kind;
    *queue->tail = item;
    queue->tail = &item->next;
    queue->submitted++;
    gr_sim.pending++;
    return item;
}

static bool is_at_once(void) {
    return gr_sim.config.clock == GRANARY_SIM_AT_ONCE;
}

static void settle(struct gr_sim_queue *queue) {
    if (!is_at_once()) return;
    while (step(queue) == RAN) {}
    if (gr_sim.pending) (void)run_everything();
}

/* An item that does nothing and can pass at once needs no place in the queue. */
static bool passes(struct gr_sim_queue *queue) {
    if (!is_at_once() || queue->head || queue->holds) return false;
    queue->submitted++;
    queue->completed++;
    return true;
}

uint64_t gr_sim_submit_record(struct gr_sim_queue *queue) {
    if (!passes(queue)) {
        (void)append(queue, GR_SIM_RECORD);
        uint64_t sequence = queue->submitted;
        settle(queue);
        return sequence;
    }
    return queue->submitted;
}

void gr_sim_submit_wait(struct gr_sim_queue *queue, struct gr_sim_queue *target, uint64_t sequence) {
    if (queue == target || target->completed >= sequence) return;
    struct gr_sim_item *item = append(queue, GR_SIM_WAIT);
    item->target = target;
    item->sequence = sequence;
    settle(queue);
}

void gr_sim_submit_action(struct gr_sim_queue *queue, struct gr_sim_action *action) {
    gr_sim_begin(queue);
    gr_sim_oracle_submit(queue, action);
    append(queue, GR_SIM_ACT)->action = *action;
    settle(queue);
}

gr_cu_result gr_sim_stream_submit(struct CUstream_st *stream, struct gr_sim_action *action) {
    gr_cu_result code = stream->context->sticky;
    gr_sim_stream_spoil(stream);
    action->device = stream->queue->device;
    if (code == GR_CU_SUCCESS && stream->capture) return gr_sim_capture_action(stream, action);
    if (code == GR_CU_SUCCESS && stream->queue->legacy) {
        struct gr_sim_capture *capture = gr_sim_blocking_capture(stream->queue->device);
        if (capture) gr_sim_invalidate(capture);
        if (capture) code = GR_CU_STREAM_CAPTURE_IMPLICIT;
    }
    if (code == GR_CU_SUCCESS)
        gr_sim_submit_action(stream->queue, action);
    else
        gr_sim_action_fini(action);
    return code;
}

/* Fills and copies are refused at submission when the bytes cannot be used; kernels fault later. */
static gr_cu_result submit_checked(gr_cu_stream handle, struct gr_sim_action *action) {
    struct CUstream_st *stream;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    for (unsigned i = 0; i < action->piece_count && code == GR_CU_SUCCESS; i++) {
        const struct gr_sim_piece *piece = &action->pieces[i];
        const struct gr_sim_mapping *m = gr_sim_mapping_at(piece->addr);
        unsigned need = piece->write ? GR_CU_ACCESS_READWRITE : GR_CU_ACCESS_READ;
        if (!m || (m->access[stream->queue->device] & need) != need) code = GR_CU_INVALID_VALUE;
    }
    if (code == GR_CU_SUCCESS) return gr_sim_stream_submit(stream, action);
    gr_sim_action_fini(action);
    return code;
}

static gr_cu_result fill(gr_cu_ptr ptr, enum gr_sim_kind kind, unsigned value, size_t size,
                         gr_cu_stream stream) {
    struct gr_sim_action action = {.kind = kind, .to = ptr, .size = size, .value = value, .tag = "fill"};
    gr_sim_action_touch(&action, ptr, size, true);
    return submit_checked(stream, &action);
}
gr_cu_result gr_sim_cuMemsetD8Async(gr_cu_ptr ptr, unsigned char value, size_t count, gr_cu_stream stream) {
    GR_SIM_ENTRY(fill(ptr, GR_SIM_FILL8, value, count, stream));
}
gr_cu_result gr_sim_cuMemsetD32Async(gr_cu_ptr ptr, unsigned value, size_t count, gr_cu_stream stream) {
    GR_SIM_ENTRY(count > SIZE_MAX / 4 || ptr % 4 ? GR_CU_INVALID_VALUE
                                                 : fill(ptr, GR_SIM_FILL32, value, 4 * count, stream));
}

static gr_cu_result copy(gr_cu_ptr to, gr_cu_ptr from, size_t size, gr_cu_stream stream) {
    struct gr_sim_action action = {.kind = GR_SIM_COPY, .to = to, .from = from, .size = size, .tag = "copy"};
    gr_sim_action_touch(&action, from, size, false);
    gr_sim_action_touch(&action, to, size, true);
    return submit_checked(stream, &action);
}
gr_cu_result gr_sim_cuMemcpyDtoDAsync(gr_cu_ptr to, gr_cu_ptr from, size_t size, gr_cu_stream stream) {
    GR_SIM_ENTRY(copy(to, from, size, stream));
}

/* A copy with the host is work of the legacy stream that is waited for. The device side is checked
 * like any work; the bytes move through the action, with the host side as its other address. */
static gr_cu_result copy_host(gr_cu_ptr to, gr_cu_ptr from, size_t size, gr_cu_ptr device_side) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code != GR_CU_SUCCESS) return code;
    if (gr_sim_blocking_capture(context->device) == NULL) code = gr_sim_unsafe();
    if (code != GR_CU_SUCCESS) return code;
    struct gr_sim_queue *queue = gr_sim.legacy[context->device]->queue;
    struct gr_sim_action action = {
        .kind = GR_SIM_COPY, .to = to, .from = from, .size = size, .tag = "copy with the host"};
    gr_sim_action_touch(&action, device_side, size, device_side == to);
    code = submit_checked(GR_CU_STREAM_LEGACY, &action);
    if (code != GR_CU_SUCCESS) return code;
    struct gr_sim_clock seen = {0};
    gr_sim_clock_copy(&seen, &queue->clock);
    code = gr_sim_wait(queue, queue->submitted);
    if (code == GR_CU_SUCCESS) gr_sim_oracle_see(&seen);
    gr_sim_clock_fini(&seen);
    return code;
}
gr_cu_result gr_sim_cuMemcpyDtoH(void *to, gr_cu_ptr from, size_t size) {
    GR_SIM_ENTRY(copy_host((gr_cu_ptr)(uintptr_t)to, from, size, from));
}
gr_cu_result gr_sim_cuMemcpyHtoD(gr_cu_ptr to, const void *from, size_t size) {
    GR_SIM_ENTRY(copy_host(to, (gr_cu_ptr)(uintptr_t)from, size, to));
}

static gr_cu_result host_func(gr_cu_stream handle, gr_cu_host_fn fn, void *data) {
    struct CUstream_st *stream;
    gr_cu_result code = gr_sim_stream_find(handle, false, &stream);
    if (code != GR_CU_SUCCESS) return code;
    if (!fn) return GR_CU_INVALID_VALUE;
    struct gr_sim_action action = {.kind = GR_SIM_HOST, .fn = fn, .data = data, .tag = "host function"};
    return gr_sim_stream_submit(stream, &action);
}
gr_cu_result gr_sim_cuLaunchHostFunc(gr_cu_stream stream, gr_cu_host_fn fn, void *data) {
    GR_SIM_ENTRY(host_func(stream, fn, data));
}

/* ---- steering ----------------------------------------------------------------------------- */

int granary_sim_use(granary_stream handle, const void *ptr, size_t size, int write, uint64_t allocation_id,
                    const char *tag) {
    struct CUstream_st *stream;
    if (!gr_sim_steer()) return GR_CU_NOT_INITIALIZED;
    gr_cu_result code = gr_sim_stream_find(handle, true, &stream);
    if (code == GR_CU_SUCCESS) {
        struct gr_sim_action action = {.kind = GR_SIM_KERNEL,
                                       .to = (gr_addr)(uintptr_t)ptr,
                                       .size = size,
                                       .owner = allocation_id,
                                       .tag = tag ? tag : "?"};
        gr_sim_action_touch(&action, action.to, size, write != 0);
        code = gr_sim_stream_submit(stream, &action);
    }
    gr_sim_unlock();
    return code;
}

uint64_t granary_sim_run(granary_stream handle, uint64_t count) {
    struct CUstream_st *stream;
    uint64_t ran = 0;
    if (!gr_sim_steer()) return 0;
    if (gr_sim_stream_find(handle, true, &stream) == GR_CU_SUCCESS) {
        struct gr_sim_queue *queue = stream->queue;
        while (ran < count && step(queue) == RAN) ran++;
    }
    gr_sim_unlock();
    return ran;
}

uint64_t granary_sim_run_all(void) {
    if (!gr_sim_steer()) return 0;
    uint64_t ran = run_everything();
    gr_sim_unlock();
    return ran;
}

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A runnable queue, each equally likely; NULL when there is none. */
static struct gr_sim_queue *choose(uint64_t *state) {
    struct gr_sim_queue *chosen = NULL;
    uint64_t seen = 0;
    for (unsigned i = 0; i < gr_sim.queue_count; i++) {
        struct gr_sim_queue *queue = gr_sim.queues[i];
        if (!queue->head || queue->holds || queue->busy || !is_met(queue->head)) continue;
        if (next_random(state) % ++seen == 0) chosen = queue;
    }
    return chosen;
}

uint64_t granary_sim_run_random(uint64_t seed, uint64_t count) {
    struct gr_sim_queue *queue;
    uint64_t ran = 0;
    if (!gr_sim_steer()) return 0;
    while (ran < count && (queue = choose(&seed)))
        if (step(queue) == RAN) ran++;
    gr_sim_unlock();
    return ran;
}

void gr_sim_unhold(struct gr_sim_queue *queue) {
    if (queue->holds == 0) return;
    queue->holds = 0;
    pthread_cond_broadcast(&gr_sim.changed);
    settle(queue);
}

static int change_holds(granary_stream handle, int by) {
    struct CUstream_st *stream;
    int status = GRANARY_INVALID;
    if (!gr_sim_steer()) return status;
    if (gr_sim_stream_find(handle, true, &stream) == GR_CU_SUCCESS && (by > 0 || stream->queue->holds)) {
        stream->queue->holds += (unsigned)by;
        status = GRANARY_OK;
        pthread_cond_broadcast(&gr_sim.changed);
        settle(stream->queue);
    }
    gr_sim_unlock();
    return status;
}
int granary_sim_hold(granary_stream stream) {
    return change_holds(stream, 1);
}
int granary_sim_release(granary_stream stream) {
    return change_holds(stream, -1);
}
