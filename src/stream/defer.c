/* SPDX-License-Identifier: Apache-2.0
 * Deferral: parking freed blocks, and handing back the ones that are complete. */
#include "stream/defer.h"

#include "base/check.h"

void gr_defer_init(struct gr_defer *defer, struct gr_driver *driver, enum granary_capture_reuse reuse,
                   enum granary_capture_marker marker) {
    *defer = (struct gr_defer){.driver = driver, .reuse = reuse, .marker = marker};
    gr_lock_init(&defer->lock, GR_RANK_DEFER);
    gr_uses_init(&defer->uses, driver);
    gr_list_init(&defer->open);
}

void gr_defer_set_reuse(struct gr_defer *defer, enum granary_capture_reuse reuse) {
    gr_lock_take(&defer->lock);
    defer->reuse = reuse;
    gr_lock_give(&defer->lock);
}

void gr_defer_fini(struct gr_defer *defer) {
    gr_uses_fini(&defer->uses);
}

static bool quiet(const struct gr_defer *defer) {
    return atomic_load_explicit(&defer->captures, memory_order_relaxed) == 0;
}

static void push(struct gr_block **list, struct gr_block *block) {
    block->u.live.parked = *list;
    *list = block;
}

static struct gr_block *pop(struct gr_block **list) {
    struct gr_block *block = *list;
    *list = block->u.live.parked;
    return block;
}

/* The open capture that a stream is part of, or NULL. */
static struct gr_capture *capture_now(struct gr_defer *defer, const struct gr_stream *stream) {
    struct gr_capture_info info;
    if (quiet(defer) || !gr_stream_ours(stream)) return NULL;
    gr_capture_ask(defer->driver, stream->handle, &info);
    return gr_capture_of(&defer->open, defer->driver, &info);
}

static bool is_open(const struct gr_defer *defer, uint32_t number) {
    GR_LIST_FOR(link, (struct gr_list *)&defer->open)
        if (GR_CONTAINER(link, struct gr_capture, link)->number == number) return true;
    return false;
}

/* ---- uses --------------------------------------------------------------------------------- */

static int declare(struct gr_defer *defer, struct gr_block *block, struct gr_stream *owner,
                   struct gr_stream *stream) {
    struct gr_use *use = gr_use_find(block, stream);
    struct gr_capture *mine = capture_now(defer, owner), *theirs = capture_now(defer, stream);
    if (mine && theirs && mine != theirs) return GRANARY_WRONG_CAPTURE;
    if (!use) {
        int status = gr_use_add(&defer->uses, block, stream, &use);
        if (status != GRANARY_OK) return status;
        use->capture = theirs ? theirs->number : 0;
    } else if (!theirs || use->capture != theirs->number) {
        use->capture = 0; /* used outside as well: the end of the capture does not end it */
    }
    use->recorded = false; /* whatever stood there is older than this use */
    return GRANARY_OK;
}

int gr_defer_use(struct gr_defer *defer, struct gr_block *block, struct gr_stream *owner,
                 struct gr_stream *stream) {
    gr_lock_take(&defer->lock);
    int status = declare(defer, block, owner, stream);
    gr_lock_give(&defer->lock);
    return status;
}

/* A use that was declared in a capture holds for all that its stream does until the free. One whose
 * stream has left the capture by then may have gone on outside, and needs an event. */
static void settle_captures(struct gr_defer *defer, struct gr_block *block) {
    for (struct gr_use *use = block->u.live.uses; use; use = use->next) {
        const struct gr_capture *now = use->capture ? capture_now(defer, use->stream) : NULL;
        if (!now || now->number != use->capture) use->capture = 0;
    }
}

/* The captures of these uses have ended since the free: their graph has not run, or runs as its owner
 * orders it. */
static void drop_captured(struct gr_defer *defer, struct gr_block *block) {
    for (struct gr_use *use = block->u.live.uses, *next; use; use = next) {
        next = use->next;
        if (use->capture && !is_open(defer, use->capture)) gr_use_drop(&defer->uses, use);
    }
}

/* Records what is not recorded yet, and queues the block. False: not possible now. */
static bool record_all(struct gr_defer *defer, struct gr_block *block) {
    if (gr_driver_begin(defer->driver) != GRANARY_OK) return false;
    bool all = true;
    for (struct gr_use *use = block->u.live.uses; use; use = use->next)
        all &= use->recorded || gr_use_record(&defer->uses, use) == GRANARY_OK;
    gr_driver_end(defer->driver);
    for (struct gr_use *use = block->u.live.uses; use && all; use = use->next)
        gr_use_enqueue(&defer->uses, use);
    return all;
}

/* Finds a PENDING block its place. True: complete. */
static bool place(struct gr_defer *defer, struct gr_block *block) {
    drop_captured(defer, block);
    if (!block->u.live.uses) return true;
    if (!quiet(defer) || !record_all(defer, block)) push(&defer->held, block);
    return false;
}

bool gr_defer_park(struct gr_defer *defer, struct gr_block *block, struct gr_stream *owner, const void *kin) {
    bool complete = false;
    gr_lock_take(&defer->lock);
    struct gr_capture *capture = capture_now(defer, owner);
    settle_captures(defer, block);
    if (!capture)
        complete = place(defer, block);
    else if (defer->reuse == GRANARY_REUSE_OFF)
        push(&capture->unproved, block);
    else
        gr_capture_mark(capture, defer->driver, block, owner, kin,
                        defer->marker == GRANARY_MARKER_EMPTY_NODE);
    if (!complete) atomic_fetch_add_explicit(&defer->parked, 1, memory_order_relaxed);
    gr_lock_give(&defer->lock);
    return complete;
}

/* ---- completion --------------------------------------------------------------------------- */

/* They are handed back. */
static void unpark(struct gr_defer *defer, const struct gr_block *complete) {
    size_t count = 0;
    for (; complete; complete = complete->u.live.parked) count++;
    if (count == 0) return;
    atomic_fetch_add_explicit(&defer->leaving, count, memory_order_relaxed);
    atomic_fetch_sub_explicit(&defer->parked, count, memory_order_relaxed);
}

/* Looks at held blocks again. */
static void place_held(struct gr_defer *defer, struct gr_block **complete) {
    struct gr_block *held = defer->held;
    defer->held = NULL;
    while (held) {
        struct gr_block *block = pop(&held);
        if (place(defer, block)) push(complete, block);
    }
}

struct gr_block *gr_defer_reap(struct gr_defer *defer) {
    struct gr_block *complete = NULL;
    if (atomic_load_explicit(&defer->parked, memory_order_relaxed) == 0) return NULL;
    gr_lock_take(&defer->lock);
    if (quiet(defer) && gr_driver_begin(defer->driver) == GRANARY_OK) {
        struct gr_block *polled = gr_uses_poll(&defer->uses);
        place_held(defer, &complete);
        while (polled) push(&complete, pop(&polled));
        gr_driver_end(defer->driver);
    }
    unpark(defer, complete);
    gr_lock_give(&defer->lock);
    return complete;
}

/* The uses of blocks that a capture proved are over. */
static void clear_uses(struct gr_defer *defer, struct gr_block *list) {
    for (struct gr_block *block = list; block; block = block->u.live.parked)
        while (block->u.live.uses) gr_use_drop(&defer->uses, block->u.live.uses);
}

struct gr_block *gr_defer_reached(struct gr_defer *defer, struct gr_stream *stream) {
    gr_lock_take(&defer->lock);
    struct gr_capture *capture = capture_now(defer, stream);
    struct gr_block *reached = capture ? gr_capture_reached(capture, defer->driver, stream) : NULL;
    clear_uses(defer, reached);
    unpark(defer, reached);
    gr_lock_give(&defer->lock);
    return reached;
}

struct gr_block *gr_defer_shared(struct gr_defer *defer, struct gr_stream *stream, const void *kin,
                                 size_t size) {
    gr_lock_take(&defer->lock);
    struct gr_capture *capture = defer->reuse == GRANARY_REUSE_GRAPH ? capture_now(defer, stream) : NULL;
    struct gr_block *block = capture ? gr_capture_shared(capture, defer->driver, stream, kin, size) : NULL;
    if (block) {
        block->u.live.parked = NULL;
        clear_uses(defer, block);
        unpark(defer, block);
    }
    gr_lock_give(&defer->lock);
    return block;
}

gr_cu_event gr_defer_event(struct gr_defer *defer, const struct gr_block *block) {
    gr_cu_event event = NULL;
    gr_lock_take(&defer->lock);
    bool all = quiet(defer);
    for (const struct gr_use *use = block->u.live.uses; use && all; use = use->next) {
        all = use->recorded;
        event = use->event;
    }
    gr_lock_give(&defer->lock);
    return all ? event : NULL; /* waiting for a part would not get the block any further */
}

int gr_defer_wait(struct gr_defer *defer, gr_cu_event event) {
    /* Not under the lock: others go on freeing. Events live until fini; should this one be recorded
     * again meanwhile, the wait is a little longer, no less. */
    int status = gr_driver_begin(defer->driver);
    if (status != GRANARY_OK) return status;
    int mode = gr_driver_relax(defer->driver);
    status = gr_driver_status(defer->driver, GR_ENTRY_cuEventSynchronize,
                              GR_DRIVE(defer->driver, cuEventSynchronize, event));
    gr_driver_restore(defer->driver, mode);
    gr_driver_end(defer->driver);
    return status;
}

size_t gr_defer_pending(struct gr_defer *defer) {
    gr_lock_take(&defer->lock);
    size_t count = atomic_load(&defer->parked) + atomic_load(&defer->leaving);
    gr_lock_give(&defer->lock);
    return count;
}

static size_t pending_in(const struct gr_list *uses) {
    size_t sum = 0;
    GR_LIST_FOR(link, (struct gr_list *)uses) {
        const struct gr_block *block = GR_CONTAINER(link, struct gr_use, link)->block;
        if (block->state == GR_BLOCK_PENDING) sum += block->size;
    }
    return sum;
}

size_t gr_defer_pending_on(struct gr_defer *defer, const struct gr_stream *stream) {
    gr_lock_take(&defer->lock);
    size_t sum = pending_in(&stream->queue) + pending_in(&stream->waiting);
    gr_lock_give(&defer->lock);
    return sum;
}

bool gr_defer_needs(struct gr_defer *defer, const struct gr_stream *stream) {
    gr_lock_take(&defer->lock);
    bool needs = !gr_list_empty(&stream->queue) || !gr_list_empty(&stream->waiting);
    gr_lock_give(&defer->lock);
    return needs;
}

int gr_defer_bury(struct gr_defer *defer, struct gr_stream *stream) {
    gr_lock_take(&defer->lock);
    int status = gr_list_empty(&stream->waiting) ? GRANARY_OK : gr_driver_begin(defer->driver);
    if (!gr_list_empty(&stream->waiting) && status == GRANARY_OK) {
        GR_LIST_FOR(link, &stream->waiting) {
            status = gr_use_record(&defer->uses, GR_CONTAINER(link, struct gr_use, link));
            if (status != GRANARY_OK) break;
        }
        gr_driver_end(defer->driver);
    }
    gr_lock_give(&defer->lock);
    return status;
}

void gr_defer_unbury(struct gr_defer *defer, struct gr_stream *stream) {
    gr_lock_take(&defer->lock);
    GR_LIST_FOR(link, &stream->waiting) GR_CONTAINER(link, struct gr_use, link)->recorded = false;
    gr_lock_give(&defer->lock);
}

/* ---- captures ----------------------------------------------------------------------------- */

void gr_defer_capture_begin(struct gr_defer *defer, struct gr_capture *capture, struct gr_stream *origin) {
    gr_lock_take(&defer->lock);
    *capture = (struct gr_capture){.number = ++defer->last_capture, .origin = origin};
    gr_list_init(&capture->marked);
    gr_list_append(&defer->open, &capture->link);
    atomic_fetch_add_explicit(&defer->captures, 1, memory_order_release);
    gr_lock_give(&defer->lock);
}

uint32_t gr_defer_capture_number(struct gr_defer *defer, gr_cu_stream stream) {
    struct gr_capture_info info;
    if (gr_defer_quiet(defer)) return 0;
    gr_lock_take(&defer->lock);
    gr_capture_ask(defer->driver, stream, &info);
    struct gr_capture *capture = gr_capture_of(&defer->open, defer->driver, &info);
    uint32_t number = capture ? capture->number : 0;
    gr_lock_give(&defer->lock);
    return number;
}

/* Its blocks are held from here on. */
static void close_capture(struct gr_defer *defer, struct gr_capture *capture) {
    struct gr_block *blocks = gr_capture_close(capture);
    gr_list_remove(&capture->link);
    atomic_fetch_sub_explicit(&defer->captures, 1, memory_order_release);
    while (blocks) push(&defer->held, pop(&blocks));
}

int gr_defer_capture_end(struct gr_defer *defer, struct gr_capture *capture, struct gr_block **complete) {
    *complete = NULL;
    gr_lock_take(&defer->lock);
    if (gr_stream_ours(capture->origin) && gr_stream_capturing(capture->origin, defer->driver)) {
        gr_lock_give(&defer->lock);
        return GRANARY_BUSY;
    }
    close_capture(defer, capture);
    place_held(defer, complete);
    unpark(defer, *complete);
    gr_lock_give(&defer->lock);
    return GRANARY_OK;
}

void gr_defer_capture_drop(struct gr_defer *defer, struct gr_capture *capture) {
    gr_lock_take(&defer->lock);
    close_capture(defer, capture);
    gr_lock_give(&defer->lock);
}

/* ---- checking ----------------------------------------------------------------------------- */

static size_t length(const struct gr_block *list) {
    size_t count = 0;
    for (; list; list = list->u.live.parked) count++;
    return count;
}

/* Blocks in queues: counted at the first of their uses. */
static size_t queued(const struct gr_defer *defer) {
    size_t count = 0;
    GR_LIST_FOR(busy, (struct gr_list *)&defer->uses.busy) {
        const struct gr_stream *stream = GR_CONTAINER(busy, struct gr_stream, busy);
        GR_LIST_FOR(link, (struct gr_list *)&stream->queue) {
            const struct gr_use *use = GR_CONTAINER(link, struct gr_use, link);
            count += use->block->u.live.uses == use;
        }
    }
    return count;
}

const char *gr_defer_check(struct gr_defer *defer) {
    gr_lock_take(&defer->lock);
    size_t count = queued(defer) + length(defer->held), captures = 0;
    GR_LIST_FOR(link, &defer->open) {
        const struct gr_capture *capture = GR_CONTAINER(link, struct gr_capture, link);
        captures++;
        count += length(capture->unproved);
        GR_LIST_FOR(marked, (struct gr_list *)&capture->marked) count++;
    }
    bool good = count == atomic_load(&defer->parked) && captures == atomic_load(&defer->captures);
    gr_lock_give(&defer->lock);
    return good ? NULL : "D1";
}
