/* SPDX-License-Identifier: Apache-2.0
 * Callbacks: keeping them, and who is calling them now. */
#include "heap/callback.h"

#include "base/host.h"
#include "base/thread.h"

static struct gr_callback *callback_of(struct gr_list *link) {
    return GR_CONTAINER(link, struct gr_callback, link);
}

void gr_callback_init(struct gr_callbacks *callbacks) {
    gr_lock_init(&callbacks->lock, GR_RANK_LEAF);
    gr_list_init(&callbacks->all);
    gr_list_init(&callbacks->running);
}

static void drop(struct gr_callbacks *callbacks, struct gr_callback *callback) {
    if (callback->relief) atomic_fetch_sub_explicit(&callbacks->reliefs, 1, memory_order_relaxed);
    gr_list_remove(&callback->link);
    gr_host_give(callback);
}

void gr_callback_fini(struct gr_callbacks *callbacks) {
    while (!gr_list_empty(&callbacks->all)) drop(callbacks, callback_of(callbacks->all.next));
}

int gr_callback_add(struct gr_callbacks *callbacks, granary_relief relief, granary_observer observer,
                    void *context, uint64_t *name) {
    struct gr_callback *callback = gr_host_take(1, sizeof(*callback), 8);
    if (!callback) return GRANARY_HOST_MEMORY;
    gr_lock_take(&callbacks->lock);
    *name = ++callbacks->last_name;
    *callback =
        (struct gr_callback){.name = *name, .relief = relief, .observer = observer, .context = context};
    gr_list_append(&callbacks->all, &callback->link);
    if (relief) atomic_fetch_add_explicit(&callbacks->reliefs, 1, memory_order_relaxed);
    gr_lock_give(&callbacks->lock);
    return GRANARY_OK;
}

int gr_callback_remove(struct gr_callbacks *callbacks, uint64_t name) {
    int status = GRANARY_INVALID;
    gr_lock_take(&callbacks->lock);
    GR_LIST_FOR(link, &callbacks->all) {
        if (callback_of(link)->name != name) continue;
        drop(callbacks, callback_of(link));
        status = GRANARY_OK;
        break;
    }
    gr_lock_give(&callbacks->lock);
    return status;
}

static bool running(struct gr_callbacks *callbacks) {
    GR_LIST_FOR(link, &callbacks->running)
        if (GR_CONTAINER(link, struct gr_callback_run, link)->thread == gr_thread_number()) return true;
    return false;
}

bool gr_callback_relieves(struct gr_callbacks *callbacks) {
    if (atomic_load_explicit(&callbacks->reliefs, memory_order_relaxed) == 0) return false;
    gr_lock_take(&callbacks->lock);
    bool may = !running(callbacks);
    gr_lock_give(&callbacks->lock);
    return may;
}

bool gr_callback_begin(struct gr_callbacks *callbacks, struct gr_callback_run *run) {
    gr_lock_take(&callbacks->lock);
    bool may = !running(callbacks);
    if (may) {
        run->thread = gr_thread_number();
        run->last = callbacks->last_name;
        gr_list_append(&callbacks->running, &run->link);
    }
    gr_lock_give(&callbacks->lock);
    return may;
}

void gr_callback_end(struct gr_callbacks *callbacks, struct gr_callback_run *run) {
    gr_lock_take(&callbacks->lock);
    gr_list_remove(&run->link);
    gr_lock_give(&callbacks->lock);
}

bool gr_callback_next(struct gr_callbacks *callbacks, const struct gr_callback_run *run, bool observers,
                      struct gr_callback *at) {
    bool found = false;
    gr_lock_take(&callbacks->lock);
    GR_LIST_FOR(link, &callbacks->all) {
        const struct gr_callback *callback = callback_of(link);
        if (callback->name > run->last) break;
        if (callback->name <= at->name || (callback->observer != NULL) != observers) continue;
        *at = *callback;
        found = true;
        break;
    }
    gr_lock_give(&callbacks->lock);
    return found;
}
