/* SPDX-License-Identifier: Apache-2.0
 * Scopes: which heap serves an allocation, when it is not the device's own. */
#include "heap/scope.h"

#include "base/host.h"
#include "heap/private.h"

static struct gr_scope *scope_of(struct gr_list *link) {
    return GR_CONTAINER(link, struct gr_scope, link);
}

/* ---- finding ------------------------------------------------------------------------------ */

struct question {               /* an allocation that asks for its heap */
    gr_cu_stream given, stream; /* as the caller names it, and normalised */
    bool asked;                 /* the driver, which capture the stream is in */
    uint32_t capture;
};

struct candidate { /* what is constant of a scope, copied because the scope may end meanwhile */
    uint64_t name;
    enum gr_scope_kind kind;
    struct gr_heap *heap;
    granary_stream_match match;
    void *context;
    uint32_t capture;
};

/* The newest scope older than `below`, those of other threads left out. Its heap gets a guest, because
 * scope and pool may end on another thread as soon as the lock is given back. */
static bool next_candidate(granary *g, uint64_t below, struct candidate *out) {
    bool found = false;
    gr_lock_take(&g->scope_lock);
    GR_LIST_FOR(link, &g->scopes) {
        const struct gr_scope *scope = scope_of(link);
        if (scope->name >= below || (scope->kind == GR_SCOPE_THREAD && scope->thread != gr_thread_number()))
            continue;
        *out = (struct candidate){.name = scope->name,
                                  .kind = scope->kind,
                                  .heap = scope->heap,
                                  .match = scope->match,
                                  .context = scope->context,
                                  .capture = scope->kind == GR_SCOPE_CAPTURE ? scope->capture.number : 0};
        atomic_fetch_add_explicit(&out->heap->guests, 1, memory_order_acquire);
        found = true;
        break;
    }
    gr_lock_give(&g->scope_lock);
    return found;
}

/* Is the stream part of this capture? */
static bool is_in(granary *g, uint32_t capture, struct question *q) {
    if (!q->asked) q->capture = gr_defer_capture_number(&g->defer, q->stream);
    q->asked = true;
    return q->capture != 0 && q->capture == capture;
}

static bool matches(granary *g, const struct candidate *scope, struct question *q) {
    switch (scope->kind) {
    case GR_SCOPE_MATCH: return scope->match(q->given, scope->context) != 0;
    case GR_SCOPE_CAPTURE: return is_in(g, scope->capture, q);
    case GR_SCOPE_THREAD: break; /* the calling one's */
    }
    return true;
}

struct gr_heap *gr_scope_heap(granary *g, gr_cu_stream stream) {
    struct question q = {.given = stream, .stream = gr_stream_normal(stream)};
    struct candidate scope = {.name = UINT64_MAX};
    while (next_candidate(g, scope.name, &scope)) {
        if (matches(g, &scope, &q)) return scope.heap;
        gr_scope_leave(scope.heap);
    }
    atomic_fetch_add_explicit(&g->own.guests, 1, memory_order_relaxed);
    return &g->own;
}

bool gr_scope_forbids(granary *g, const struct gr_heap *heap) {
    bool other = false, own = false, open = false;
    gr_lock_take(&g->scope_lock);
    GR_LIST_FOR(link, &g->scopes) {
        const struct gr_scope *scope = scope_of(link);
        if (scope->kind != GR_SCOPE_CAPTURE) continue;
        bool mine = scope->thread == gr_thread_number();
        open |= scope->heap == heap;
        own |= mine && scope->heap == heap;
        other |= mine && scope->heap != heap;
    }
    gr_lock_give(&g->scope_lock);
    return open && other && !own;
}

/* ---- beginning ---------------------------------------------------------------------------- */

static struct gr_scope *make(granary *g, uint64_t pool, int *status) {
    struct gr_heap *heap = gr_private_find(g, pool);
    struct gr_scope *scope = heap ? gr_host_take(1, sizeof(*scope), 8) : NULL;
    *status = !heap ? GRANARY_UNKNOWN_POOL : !scope ? GRANARY_HOST_MEMORY : GRANARY_OK;
    if (!scope) return NULL;
    scope->heap = heap;
    scope->thread = gr_thread_number();
    return scope;
}

/* In force from here on. miss is held. */
static void publish(granary *g, struct gr_scope *scope, uint64_t *name) {
    *name = scope->name = ++g->last_name;
    scope->heap->scopes++;
    gr_lock_take(&g->scope_lock);
    gr_list_append(g->scopes.next, &scope->link); /* before the first: newest first */
    gr_lock_give(&g->scope_lock);
    atomic_fetch_add_explicit(&g->routing, 1, memory_order_release);
}

int gr_scope_begin(granary *g, uint64_t pool, granary_stream_match match, void *context, uint64_t *name) {
    int status;
    gr_lock_take(&g->miss);
    struct gr_scope *scope = make(g, pool, &status);
    if (scope) {
        scope->kind = match ? GR_SCOPE_MATCH : GR_SCOPE_THREAD;
        scope->match = match;
        scope->context = context;
        /* Begun inside a capture it may serve it: the graph will hold addresses of this heap as well. */
        if (!gr_defer_quiet(&g->defer) && scope->heap != &g->own) scope->heap->captured = true;
        publish(g, scope, name);
    }
    gr_lock_give(&g->miss);
    return status;
}

int gr_scope_begin_capture(granary *g, uint64_t pool, gr_cu_stream handle, uint64_t *name) {
    int status;
    struct gr_stream *stream;
    if (!g->driver.facts.capture_query) return GRANARY_UNSUPPORTED;
    gr_lock_take(&g->miss);
    struct gr_scope *scope = make(g, pool, &status);
    if (scope) status = gr_heap_stream(g, gr_stream_normal(handle), true, &stream);
    if (status == GRANARY_OK) {
        scope->kind = GR_SCOPE_CAPTURE;
        scope->heap->captures++;
        scope->heap->captured = true;
        gr_defer_capture_begin(&g->defer, &scope->capture, stream);
        publish(g, scope, name);
    } else {
        gr_host_give(scope);
    }
    gr_lock_give(&g->miss);
    return status;
}

/* ---- ending ------------------------------------------------------------------------------- */

/* Out of force. miss is held. */
static void withdraw(granary *g, struct gr_scope *scope) {
    gr_lock_take(&g->scope_lock);
    gr_list_remove(&scope->link);
    gr_lock_give(&g->scope_lock);
    scope->heap->scopes--;
    if (scope->kind == GR_SCOPE_CAPTURE) scope->heap->captures--;
    atomic_fetch_sub_explicit(&g->routing, 1, memory_order_release);
    gr_host_give(scope);
}

/* Finds the scope; ORDER when this thread began one later that is still open (captures may overlap). */
static int find(granary *g, uint64_t name, bool capture, struct gr_scope **out) {
    bool later = false;
    GR_LIST_FOR(link, &g->scopes) {
        struct gr_scope *scope = scope_of(link);
        if (scope->name == name && (scope->kind == GR_SCOPE_CAPTURE) == capture) {
            *out = scope;
            return later && !capture ? GRANARY_ORDER : GRANARY_OK;
        }
        later |= scope->kind != GR_SCOPE_CAPTURE && scope->thread == gr_thread_number();
    }
    return GRANARY_INVALID;
}

int gr_scope_end(granary *g, uint64_t name, bool capture) {
    struct gr_block *complete = NULL;
    struct gr_scope *scope;
    gr_lock_take(&g->miss);
    int status = find(g, name, capture, &scope);
    if (status == GRANARY_OK && capture) status = gr_defer_capture_end(&g->defer, &scope->capture, &complete);
    if (status == GRANARY_OK) withdraw(g, scope);
    gr_lock_give(&g->miss);
    gr_heap_complete(g, complete);
    return status;
}

void gr_scope_drop_all(granary *g) {
    while (!gr_list_empty(&g->scopes)) {
        struct gr_scope *scope = scope_of(g->scopes.next);
        if (scope->kind == GR_SCOPE_CAPTURE) gr_defer_capture_drop(&g->defer, &scope->capture);
        withdraw(g, scope);
    }
}
