/* SPDX-License-Identifier: Apache-2.0
 * Uses: streams that use a block beyond the one it was allocated on. */
#include "stream/use.h"

#include "base/check.h"

static struct gr_use *use_of(struct gr_list *link) {
    return GR_CONTAINER(link, struct gr_use, link);
}

void gr_uses_init(struct gr_uses *uses, struct gr_driver *driver) {
    *uses = (struct gr_uses){.driver = driver};
    gr_slab_init(&uses->slab, 128, false);
    gr_list_init(&uses->busy);
}

void gr_uses_fini(struct gr_uses *uses) {
    if (uses->all && GR_TWICE(gr_driver_begin(uses->driver)) == GRANARY_OK) {
        for (struct gr_use *use = uses->all; use; use = use->all)
            gr_driver_ignore(uses->driver, GR_ENTRY_cuEventDestroy,
                             GR_TWICE(GR_DRIVE(uses->driver, cuEventDestroy, use->event)));
        gr_driver_end(uses->driver);
    }
    gr_slab_fini(&uses->slab);
}

struct gr_use *gr_use_find(const struct gr_block *block, const struct gr_stream *stream) {
    struct gr_use *use = block->u.live.uses;
    while (use && use->stream != stream) use = use->next;
    return use;
}

/* An object with an event that nobody uses. A current context is needed. */
static int make(struct gr_uses *uses, gr_cu_context context, struct gr_use **out) {
    gr_cu_event event;
    if (!gr_slab_reserve(&uses->slab, 1)) return GRANARY_HOST_MEMORY;
    int status = gr_stream_event(uses->driver, context, &event);
    if (status != GRANARY_OK) return status;
    struct gr_use *use = gr_slab_take(&uses->slab);
    *use = (struct gr_use){.event = event, .context = context, .all = uses->all};
    uses->all = use;
    uses->events++;
    *out = use;
    return GRANARY_OK;
}

/* Its event becomes one of this context. A current context is needed. */
static int suit(struct gr_uses *uses, struct gr_use *use, gr_cu_context context) {
    gr_cu_event event;
    if (use->context == context) return GRANARY_OK;
    int status = gr_stream_event(uses->driver, context, &event);
    if (status != GRANARY_OK) return status;
    gr_driver_ignore(uses->driver, GR_ENTRY_cuEventDestroy,
                     GR_TWICE(GR_DRIVE(uses->driver, cuEventDestroy, use->event)));
    use->event = event;
    use->context = context;
    return GRANARY_OK;
}

/* A spare object for the stream, or one that is made. */
static int find(struct gr_uses *uses, struct gr_stream *stream, struct gr_use **out) {
    const gr_cu_context known = atomic_load_explicit(&stream->context, memory_order_relaxed);
    struct gr_use *use = uses->spare;
    const bool spare = use != NULL;
    int status = GRANARY_OK;
    if (!spare || use->context != known) {
        status = gr_driver_begin(uses->driver);
        if (status != GRANARY_OK) return status;
        const gr_cu_context context = gr_stream_context(stream, uses->driver);
        status = spare ? suit(uses, use, context) : make(uses, context, &use);
        gr_driver_end(uses->driver);
    }
    if (spare && status == GRANARY_OK) uses->spare = use->next;
    *out = use;
    return status;
}

int gr_use_add(struct gr_uses *uses, struct gr_block *block, struct gr_stream *stream, struct gr_use **out) {
    struct gr_use *use;
    int status = find(uses, stream, &use);
    if (status != GRANARY_OK) return status;
    use->stream = stream;
    use->block = block;
    use->capture = 0;
    use->recorded = false;
    use->taken = true;
    use->next = block->u.live.uses;
    block->u.live.uses = use;
    gr_list_append(&stream->waiting, &use->link);
    *out = use;
    return GRANARY_OK;
}

static void leave_stream(struct gr_use *use) {
    gr_list_remove(&use->link);
    if (gr_list_empty(&use->stream->queue)) gr_list_remove(&use->stream->busy);
}

void gr_use_drop(struct gr_uses *uses, struct gr_use *use) {
    struct gr_use **from = &use->block->u.live.uses;
    while (*from != use) from = &(*from)->next;
    *from = use->next;
    leave_stream(use);
    GR_ASSERT(use->taken, "U1");
    use->taken = false;
    use->next = uses->spare;
    uses->spare = use;
}

int gr_use_record(struct gr_uses *uses, struct gr_use *use) {
    struct gr_stream *stream = use->stream;
    if (!gr_stream_ours(stream) || gr_stream_capturing(stream, uses->driver)) return GRANARY_BUSY;
    int status = gr_driver_status(uses->driver, GR_ENTRY_cuEventRecord,
                                  GR_DRIVE(uses->driver, cuEventRecord, use->event, stream->handle));
    use->recorded = status == GRANARY_OK;
    use->order = ++uses->recorded;
    return status;
}

void gr_use_enqueue(struct gr_uses *uses, struct gr_use *use) {
    struct gr_stream *stream = use->stream;
    leave_stream(use);
    if (gr_list_empty(&stream->queue)) gr_list_append(&uses->busy, &stream->busy);
    struct gr_list *after = stream->queue.prev; /* nearly always the last */
    while (after != &stream->queue && use_of(after)->order > use->order) after = after->prev;
    gr_list_append(after->next, &use->link);
}

/* Uses at the head of the queue that are complete leave it. */
static void poll_stream(struct gr_uses *uses, struct gr_stream *stream, struct gr_block **complete) {
    while (!gr_list_empty(&stream->queue)) {
        struct gr_use *use = use_of(stream->queue.next);
        struct gr_block *block = use->block;
        gr_cu_result code = GR_DRIVE(uses->driver, cuEventQuery, use->event);
        if (code == GR_CU_NOT_READY) return;
        if (code != GR_CU_SUCCESS) {
            /* The record went into a capture that began in the same moment. Once more, behind it. */
            if (gr_driver_status(uses->driver, GR_ENTRY_cuEventQuery, code) == GRANARY_LOST) return;
            if (gr_use_record(uses, use) != GRANARY_OK) return;
            gr_use_enqueue(uses, use);
            continue;
        }
        gr_use_drop(uses, use);
        if (!block->u.live.uses) {
            block->u.live.parked = *complete;
            *complete = block;
        }
    }
}

struct gr_block *gr_uses_poll(struct gr_uses *uses) {
    struct gr_block *complete = NULL;
    if (gr_list_empty(&uses->busy)) return NULL;
    int mode = gr_driver_relax(uses->driver);
    for (struct gr_list *link = uses->busy.next, *next; link != &uses->busy; link = next) {
        next = link->next;
        poll_stream(uses, GR_CONTAINER(link, struct gr_stream, busy), &complete);
    }
    gr_driver_restore(uses->driver, mode);
    return complete;
}
