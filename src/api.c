/* SPDX-License-Identifier: Apache-2.0
 * The public functions: check arguments, call the heap, keep the words of a failure. */
#include <string.h>

#include "base/host.h"
#include "base/text.h"
#include "heap/hit.h"
#include "heap/peer.h"
#include "heap/private.h"
#include "heap/reclaim.h"
#include "heap/scope.h"
#include "heap/settings.h"
#include "policy/config.h"
#include "report/explain.h"
#include "report/fault.h"
#include "report/holders.h"
#include "report/save.h"

#define QUOTE(x) #x
#define VERSION(major, minor, patch) QUOTE(major) "." QUOTE(minor) "." QUOTE(patch)

const char *granary_version(void) {
    return VERSION(GRANARY_VERSION_MAJOR, GRANARY_VERSION_MINOR, GRANARY_VERSION_PATCH);
}

const char *granary_status_name(int status) {
    switch (status) {
#define NAME(name, value, sentence) \
    case value: return "GRANARY_" #name;
        GRANARY_STATUS_MAP(NAME)
#undef NAME
    }
    return "GRANARY_?";
}

const char *granary_status_sentence(int status) {
    switch (status) {
#define SENTENCE(name, value, sentence) \
    case value: return sentence;
        GRANARY_STATUS_MAP(SENTENCE)
#undef SENTENCE
    }
    return "not a status of granary";
}

/* ---- failures ----------------------------------------------------------------------------- */

/* Keeps a failure with its words and returns its status. */
static int GR_PRINTF(4, 5) fail(granary *g, const char *call, int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    status = gr_fault_say(g, call, status, format, arguments);
    va_end(arguments);
    return status;
}

int granary_last_fault(granary *g, struct granary_fault *out) {
    if (!g) return GRANARY_INVALID;
    struct granary_fault fault;
    gr_lock_take(&g->fault_lock);
    fault = g->fault;
    gr_lock_give(&g->fault_lock);
    return gr_fault_copy_out(g, "granary_last_fault", out, &fault, sizeof(fault));
}

/* ---- opening, closing, settings ------------------------------------------------------------ */

/* The caller's options over the defaults, or the defaults and the environment; checked. */
static int read_options(const struct granary_options *given, struct granary_options *options, char *reason) {
    gr_options_init(options);
    if (!given) {
        struct granary_option_error error;
        int status = gr_config_from_environment(options, &error);
        if (status != GRANARY_OK) gr_text_put(reason, GR_REASON_ROOM, "%s", error.text);
        return status;
    }
    if (given->struct_size < offsetof(struct granary_options, strict) || given->struct_size > 65536) {
        gr_text_put(reason, GR_REASON_ROOM, "options.struct_size is %zu; call granary_options_init",
                    given->struct_size);
        return GRANARY_INVALID;
    }
    memcpy(options, given, gr_min(given->struct_size, sizeof(*options)));
    options->struct_size = sizeof(*options);
    if (options->driver != GRANARY_DRIVER_CUDA && options->driver != GRANARY_DRIVER_SIM) {
        gr_text_put(reason, GR_REASON_ROOM,
                    "options.driver is %d; it is GRANARY_DRIVER_CUDA or GRANARY_DRIVER_SIM",
                    (int)options->driver);
        return GRANARY_INVALID;
    }
    return gr_options_check(options, reason, GR_REASON_ROOM);
}

/* What is told from the start. */
static bool start_reports(granary *g, const struct granary_options *options) {
    return gr_save_prepare(g, options->oom_snapshot) &&
           gr_dump_record(g, options->history, options->history_stacks, options->history_entries) ==
               GRANARY_OK;
}

int granary_open(int device, const struct granary_options *given, granary **out) {
    char reason[GR_REASON_ROOM] = "";
    struct granary_options options;
    granary *g = NULL;
    if (!out) return GRANARY_INVALID;
    *out = NULL;
    int status = read_options(given, &options, reason);
    if (status == GRANARY_OK) {
        g = gr_host_take(1, sizeof(*g), 64);
        status = g ? gr_heap_open(g, &options, device, reason) : GRANARY_HOST_MEMORY;
        if (status == GRANARY_OK && !start_reports(g, &options)) {
            gr_heap_close(g);
            status = GRANARY_HOST_MEMORY;
        }
    }
    if (status == GRANARY_OK) {
        g->fault.struct_size = sizeof(g->fault);
        *out = g;
        return GRANARY_OK;
    }
    gr_host_give(g);
    if (options.fault) {
        struct granary_fault fault;
        gr_fault_begin(&fault, "granary_open", status);
        gr_text_put(fault.text, sizeof(fault.text), "%s",
                    reason[0] ? reason : granary_status_sentence(status));
        (void)gr_fault_fit(options.fault, &fault, sizeof(fault));
    }
    return status;
}

void granary_close(granary *g) {
    if (!g) return;
    gr_heap_close(g);
    gr_host_give(g);
}

int granary_get_facts(granary *g, struct granary_facts *out) {
    if (!g) return GRANARY_INVALID;
    const struct gr_facts *facts = &g->driver.facts;
    gr_lock_take(&g->miss);
    struct granary_facts copy = {.struct_size = sizeof(copy),
                                 .device = facts->device,
                                 .driver_version = facts->driver_version,
                                 .total_bytes = facts->total_bytes,
                                 .granule_bytes = facts->granule,
                                 .expandable_segments = g->expandable,
                                 .simulated = g->driver.simulated};
    gr_text_put(copy.name, sizeof(copy.name), "%s", facts->name);
    gr_text_put(copy.expandable_reason, sizeof(copy.expandable_reason), "%s", g->expandable_reason);
    gr_lock_give(&g->miss);
    return gr_fault_copy_out(g, "granary_get_facts", out, &copy, sizeof(copy));
}

int granary_get_options(granary *g, struct granary_options *out) {
    if (!g) return GRANARY_INVALID;
    struct granary_options options;
    gr_settings_read(g, &options);
    return gr_fault_copy_out(g, "granary_get_options", out, &options, sizeof(options));
}

static int change_options(granary *g, const char *call, const char *string, bool push,
                          struct granary_option_error *error) {
    struct granary_option_error mine = {.column = 0}, *words = error ? error : &mine;
    if (!g) return GRANARY_INVALID;
    if (error) *error = mine;
    int status = gr_settings_update(g, string, push, words);
    if (status == GRANARY_OK) return GRANARY_OK;
    if (status == GRANARY_UNSUPPORTED)
        gr_text_put(words->text, sizeof(words->text), "expandable segments are not available: %s",
                    g->driver.facts.vmm_reason);
    else if (!words->text[0])
        gr_text_put(words->text, sizeof(words->text), "%s", granary_status_sentence(status));
    return fail(g, call, status, "%s", words->text);
}

int granary_update_options(granary *g, const char *string, struct granary_option_error *error) {
    return change_options(g, "granary_update_options", string, false, error);
}

int granary_push_options(granary *g, const char *string, struct granary_option_error *error) {
    return change_options(g, "granary_push_options", string, true, error);
}

int granary_pop_options(granary *g) {
    if (!g) return GRANARY_INVALID;
    int status = gr_settings_pop(g);
    return status == GRANARY_OK
               ? GRANARY_OK
               : fail(g, "granary_pop_options", status, "no settings are remembered: push comes before pop");
}

int granary_stream_set_class(granary *g, granary_stream stream, const char *name) {
    if (!g) return GRANARY_INVALID;
    if (!name || strlen(name) >= GRANARY_CLASS_ROOM)
        return fail(g, "granary_stream_set_class", GRANARY_INVALID, "the name is %s",
                    name ? "longer than 31 characters" : "NULL");
    int status = gr_settings_class(g, gr_stream_normal(stream), name);
    return status == GRANARY_OK ? GRANARY_OK : fail(g, "granary_stream_set_class", status, "%s", "");
}

/* ---- allocation --------------------------------------------------------------------------- */

/* Called with no lock held. */
static void call_reliefs(granary *g, size_t size, granary_stream stream) {
    struct gr_callback_run run;
    struct gr_callback at = {0};
    if (!gr_callback_begin(&g->callbacks, &run)) return;
    while (gr_callback_next(&g->callbacks, &run, false, &at)) (void)at.relief(g, size, stream, at.context);
    gr_callback_end(&g->callbacks, &run);
}

static void call_observers(granary *g, const struct granary_shortfall *shortfall) {
    struct gr_callback_run run;
    struct gr_callback at = {0};
    if (!gr_callback_begin(&g->callbacks, &run)) return;
    while (gr_callback_next(&g->callbacks, &run, true, &at)) at.observer(g, shortfall, at.context);
    gr_callback_end(&g->callbacks, &run);
}

static int fail_alloc(granary *g, int status, size_t size, const struct granary_shortfall *shortfall) {
    struct granary_fault fault;
    gr_fault_begin(&fault, "granary_alloc", status);
    if (status == GRANARY_INVALID) {
        gr_text_put(fault.text, sizeof(fault.text), "size %zu is above %zu, the most any device could hold",
                    size, GR_SIZING_MAX);
    } else if (status == GRANARY_OUT_OF_MEMORY || status == GRANARY_OVER_LIMIT ||
               status == GRANARY_ADDRESS_SPACE) {
        fault.shortfall = *shortfall;
        gr_holders_fill(g, &fault.shortfall);
        gr_explain_line(fault.text, sizeof(fault.text), &fault.shortfall);
        gr_save_out_of_memory(g, &fault);
        (void)gr_fault_keep(g, &fault);
        call_observers(g, &fault.shortfall);
        return status;
    }
    return gr_fault_keep(g, &fault);
}

static GR_INLINE int alloc(granary *g, size_t size, granary_stream stream, void **out) {
    struct granary_shortfall shortfall;
    int status = gr_heap_routes(g) ? gr_heap_alloc_routed(g, size, stream, false, out, &shortfall)
                                   : gr_heap_alloc(g, size, stream, out, &shortfall);
    if (GR_LIKELY(status == GRANARY_OK)) return GRANARY_OK;
    if (status == GR_HEAP_ASK) {
        call_reliefs(g, size, stream);
        status = gr_heap_alloc_routed(g, size, stream, true, out, &shortfall);
        if (status == GRANARY_OK) return GRANARY_OK;
    }
    *out = NULL;
    return fail_alloc(g, status, size, &shortfall);
}

/* With history: who asks is noted before any lock is taken. */
static int GR_ASIDE alloc_watched(granary *g, size_t size, granary_stream stream, void **out,
                                  struct gr_history *history, const void *caller) {
    struct gr_note before = gr_history_enter(history, false, caller);
    int status = alloc(g, size, stream, out);
    gr_stacks_leave(before);
    return status;
}

/* What is not to be served on the path of a hit. */
static int GR_ASIDE alloc_rest(granary *g, size_t size, granary_stream stream, void **out,
                               const void *caller) {
    if (!out) return GRANARY_INVALID;
    if (size == 0) {
        *out = NULL;
        return GRANARY_OK;
    }
    struct gr_history *history = atomic_load_explicit(&g->ledger.watching, memory_order_acquire);
    if (GR_UNLIKELY(history != NULL) && gr_history_asks(history, false))
        return alloc_watched(g, size, stream, out, history, caller);
    return alloc(g, size, stream, out);
}

/* Of a pool that is locked: another block than the recent one. */
static int GR_ASIDE alloc_locked(granary *g, struct gr_pool *pool, size_t size, granary_stream stream,
                                 void **out, const void *caller) {
    size_t rounded = gr_sizing_units(size);
    if (gr_hit_take(g, pool, NULL, rounded, size, false, out) == GRANARY_OK) return GRANARY_OK;
    return alloc_rest(g, size, stream, out, caller);
}

int granary_alloc(granary *g, size_t size, granary_stream stream, void **out) {
    struct gr_pool *pool = NULL;
    if (GR_UNLIKELY(!g)) return GRANARY_INVALID;
    if (GR_LIKELY(out != NULL && gr_hit_alloc(g, size, stream, out, &pool))) return GRANARY_OK;
    if (pool) return alloc_locked(g, pool, size, stream, out, __builtin_return_address(0));
    return alloc_rest(g, size, stream, out, __builtin_return_address(0));
}

static int fail_pointer(granary *g, const char *call, int status, const void *ptr) {
    if (status != GRANARY_UNKNOWN_POINTER) return fail(g, call, status, "%s", "");
    return fail(
        g, call, GRANARY_UNKNOWN_POINTER,
        "%p is not the address of a live block of device %d: unknown, inside a block, or already free", ptr,
        g->driver.facts.device);
}

static int GR_ASIDE free_watched(granary *g, void *ptr, struct gr_history *history, const void *caller) {
    struct gr_note before = gr_history_enter(history, true, caller);
    int status = gr_heap_free(g, (uintptr_t)ptr);
    gr_stacks_leave(before);
    return status;
}

/* What is not to be freed on the path of a hit. */
static int GR_ASIDE free_rest(granary *g, void *ptr, const void *caller) {
    if (!ptr) return GRANARY_OK;
    struct gr_history *history = atomic_load_explicit(&g->ledger.watching, memory_order_acquire);
    bool asks = GR_UNLIKELY(history != NULL) && gr_history_asks(history, true);
    int status = asks ? free_watched(g, ptr, history, caller) : gr_heap_free(g, (uintptr_t)ptr);
    return GR_LIKELY(status == GRANARY_OK) ? GRANARY_OK : fail_pointer(g, "granary_free", status, ptr);
}

/* Of a pool that is locked: what does not simply become the recent block. */
static int GR_ASIDE free_locked(granary *g, struct gr_pool *pool, struct gr_block **link, void *ptr) {
    int status = gr_heap_free_locked(g, pool, link);
    return GR_LIKELY(status == GRANARY_OK) ? GRANARY_OK : fail_pointer(g, "granary_free", status, ptr);
}

int granary_free(granary *g, void *ptr) {
    struct gr_pool *pool;
    struct gr_block **link;
    if (GR_UNLIKELY(!g)) return GRANARY_INVALID;
    if (GR_LIKELY(gr_hit_free(g, (uintptr_t)ptr, &pool, &link))) return GRANARY_OK;
    if (pool) return free_locked(g, pool, link, ptr);
    return free_rest(g, ptr, __builtin_return_address(0));
}

int granary_record_stream(granary *g, void *ptr, granary_stream stream) {
    if (!g) return GRANARY_INVALID;
    if (!ptr) return GRANARY_OK;
    int status = gr_heap_use(g, (gr_addr)(uintptr_t)ptr, stream);
    return status == GRANARY_OK ? GRANARY_OK : fail_pointer(g, "granary_record_stream", status, ptr);
}

int granary_size_of(granary *g, const void *ptr, size_t *out) {
    if (!g) return GRANARY_INVALID;
    if (!out) return fail(g, "granary_size_of", GRANARY_INVALID, "out is NULL");
    int status = gr_heap_size_of(g, (gr_addr)(uintptr_t)ptr, out);
    return status == GRANARY_OK ? GRANARY_OK : fail_pointer(g, "granary_size_of", status, ptr);
}

int granary_trim(granary *g, size_t keep_bytes, size_t *released) {
    if (!g) return GRANARY_INVALID;
    size_t freed = 0;
    struct gr_history *history = atomic_load_explicit(&g->ledger.watching, memory_order_acquire);
    struct gr_note before = {0};
    gr_heap_complete(g, gr_defer_reap(&g->defer));
    if (history) before = gr_history_enter(history, true, __builtin_return_address(0));
    gr_lock_take(&g->miss);
    int status = gr_reclaim_trim(g, keep_bytes, false, &freed);
    gr_lock_give(&g->miss);
    if (history) gr_stacks_leave(before);
    if (released) *released = freed;
    if (status == GRANARY_BUSY)
        return fail(g, "granary_trim", status, "a capture is open; trim when it has ended");
    return status == GRANARY_OK ? GRANARY_OK : fail(g, "granary_trim", status, "%s", "");
}

int granary_set_limit(granary *g, size_t bytes) {
    if (!g) return GRANARY_INVALID;
    gr_settings_limit(g, bytes);
    return GRANARY_OK;
}

int granary_allow_peer(granary *g, int device) {
    if (!g) return GRANARY_INVALID;
    int status = gr_peer_allow(g, device);
    if (status == GRANARY_NO_DEVICE)
        return fail(g, "granary_allow_peer", status, "there is no device %d", device);
    if (status == GRANARY_UNSUPPORTED)
        return fail(g, "granary_allow_peer", status, "device %d cannot reach memory of device %d", device,
                    g->driver.facts.device);
    return status == GRANARY_OK ? GRANARY_OK : fail(g, "granary_allow_peer", status, "%s", "");
}

/* ---- streams ------------------------------------------------------------------------------ */

int granary_stream_create(granary *g, granary_stream *out) {
    if (!g) return GRANARY_INVALID;
    if (!out) return fail(g, "granary_stream_create", GRANARY_INVALID, "out is NULL");
    *out = NULL;
    int status = gr_driver_begin(&g->driver);
    if (status == GRANARY_OK) {
        status = gr_driver_status(&g->driver, GR_ENTRY_cuStreamCreate,
                                  GR_DRIVE(&g->driver, cuStreamCreate, out, GR_CU_STREAM_NON_BLOCKING));
        gr_driver_end(&g->driver);
    }
    return status == GRANARY_OK ? GRANARY_OK : fail(g, "granary_stream_create", status, "%s", "");
}

/* The stream's handle is no longer looked for. */
static int bury(granary *g, const char *call, granary_stream stream) {
    if (!stream) return fail(g, call, GRANARY_INVALID, "the default stream cannot be destroyed");
    int status = gr_heap_bury(g, stream);
    if (status == GRANARY_BUSY)
        return fail(g, call, status, "stream %p is being captured, or is another thread's default stream",
                    (void *)stream);
    return status == GRANARY_OK ? GRANARY_OK : fail(g, call, status, "%s", "");
}

int granary_stream_destroyed(granary *g, granary_stream stream) {
    return g ? bury(g, "granary_stream_destroyed", stream) : GRANARY_INVALID;
}

int granary_stream_destroy(granary *g, granary_stream stream) {
    if (!g) return GRANARY_INVALID;
    int status = bury(g, "granary_stream_destroy", stream);
    if (status != GRANARY_OK) return status;
    status = gr_driver_begin(&g->driver);
    if (status == GRANARY_OK) {
        status = gr_driver_status(&g->driver, GR_ENTRY_cuStreamDestroy,
                                  GR_DRIVE(&g->driver, cuStreamDestroy, stream));
        gr_driver_end(&g->driver);
    }
    return status == GRANARY_OK ? GRANARY_OK : fail(g, "granary_stream_destroy", status, "%s", "");
}

/* ---- private pools, scopes, captures ------------------------------------------------------- */

static int fail_pool(granary *g, const char *call, int status, granary_pool pool) {
    switch (status) {
    case GRANARY_UNKNOWN_POOL:
        return fail(g, call, status, "pool %llu is unknown or was released", (unsigned long long)pool);
    case GRANARY_BUSY:
        return fail(g, call, status, "pool %llu has a scope or capture that is open",
                    (unsigned long long)pool);
    default: return fail(g, call, status, "%s", "");
    }
}

int granary_pool_create(granary *g, const struct granary_pool_options *options, granary_pool *out) {
    if (!g) return GRANARY_INVALID;
    if (!out) return fail(g, "granary_pool_create", GRANARY_INVALID, "out is NULL");
    if (options && options->struct_size < sizeof(*options))
        return fail(g, "granary_pool_create", GRANARY_INVALID,
                    "options.struct_size is %zu; set it to sizeof the struct", options->struct_size);
    int status = gr_private_create(g, options, out);
    return status == GRANARY_OK ? GRANARY_OK : fail_pool(g, "granary_pool_create", status, 0);
}

int granary_pool_retain(granary *g, granary_pool pool) {
    if (!g) return GRANARY_INVALID;
    int status = gr_private_retain(g, pool);
    return status == GRANARY_OK ? GRANARY_OK : fail_pool(g, "granary_pool_retain", status, pool);
}

int granary_pool_release(granary *g, granary_pool pool) {
    if (!g) return GRANARY_INVALID;
    int status = gr_private_release(g, pool);
    return status == GRANARY_OK ? GRANARY_OK : fail_pool(g, "granary_pool_release", status, pool);
}

int granary_pool_get_stats(granary *g, granary_pool pool, struct granary_pool_stats *out) {
    if (!g) return GRANARY_INVALID;
    struct granary_pool_stats stats = {.struct_size = sizeof(stats)};
    int status = gr_private_read(g, pool, &stats);
    if (status != GRANARY_OK) return fail_pool(g, "granary_pool_get_stats", status, pool);
    return gr_fault_copy_out(g, "granary_pool_get_stats", out, &stats, sizeof(stats));
}

int granary_scope_begin(granary *g, granary_pool pool, granary_stream_match match, void *context,
                        granary_scope *out) {
    if (!g) return GRANARY_INVALID;
    if (!out) return fail(g, "granary_scope_begin", GRANARY_INVALID, "out is NULL");
    int status = gr_scope_begin(g, pool, match, context, out);
    return status == GRANARY_OK ? GRANARY_OK : fail_pool(g, "granary_scope_begin", status, pool);
}

int granary_scope_end(granary *g, granary_scope scope) {
    if (!g) return GRANARY_INVALID;
    int status = gr_scope_end(g, scope, false);
    if (status == GRANARY_OK) return GRANARY_OK;
    return fail(g, "granary_scope_end", status,
                status == GRANARY_ORDER ? "scope %llu is not the last that this thread began"
                                        : "no scope %llu is open",
                (unsigned long long)scope);
}

int granary_capture_begin(granary *g, granary_pool pool, granary_stream stream, granary_capture *out) {
    if (!g) return GRANARY_INVALID;
    if (!out) return fail(g, "granary_capture_begin", GRANARY_INVALID, "out is NULL");
    if (pool == 0) /* graphs keep their addresses: the default pool could never move its memory again */
        return fail(g, "granary_capture_begin", GRANARY_INVALID, "pool is 0; a capture needs a private pool");
    int status = gr_scope_begin_capture(g, pool, stream, out);
    if (status == GRANARY_UNSUPPORTED)
        return fail(g, "granary_capture_begin", status, "the driver is %d; captures need 12030",
                    g->driver.facts.driver_version);
    return status == GRANARY_OK ? GRANARY_OK : fail_pool(g, "granary_capture_begin", status, pool);
}

int granary_capture_end(granary *g, granary_capture capture) {
    if (!g) return GRANARY_INVALID;
    int status = gr_scope_end(g, capture, true);
    if (status == GRANARY_OK) return GRANARY_OK;
    return fail(g, "granary_capture_end", status,
                status == GRANARY_BUSY ? "capture %llu still runs: end it with cuStreamEndCapture first"
                                       : "no capture %llu is open",
                (unsigned long long)capture);
}

/* ---- figures ------------------------------------------------------------------------------ */

int granary_get_stats(granary *g, struct granary_stats *out) {
    if (!g) return GRANARY_INVALID;
    struct granary_stats stats = {.struct_size = sizeof(stats)};
    gr_heap_read(g, &stats);
    return gr_fault_copy_out(g, "granary_get_stats", out, &stats, sizeof(stats));
}

int granary_reset_peaks(granary *g) {
    if (!g) return GRANARY_INVALID;
    gr_lock_take(&g->miss);
    gr_ledger_reset_peaks(&g->ledger);
    gr_lock_give(&g->miss);
    return GRANARY_OK;
}

int granary_get_driver_calls(granary *g, struct granary_driver_calls *out) {
    if (!g) return GRANARY_INVALID;
    struct granary_driver_calls calls = {.struct_size = sizeof(calls)};
    gr_driver_calls(&g->driver, &calls);
    return gr_fault_copy_out(g, "granary_get_driver_calls", out, &calls, sizeof(calls));
}

/* ---- shortfalls and callbacks --------------------------------------------------------------- */

enum granary_shortage granary_shortage_of(const struct granary_shortfall *shortfall) {
    return shortfall && shortfall->struct_size >= sizeof(*shortfall) ? gr_explain_kind(shortfall)
                                                                     : GRANARY_SHORTAGE_FULL;
}

const char *granary_shortage_name(int shortage) {
    switch (shortage) {
#define NAME(name, value, sentence) \
    case value: return "GRANARY_SHORTAGE_" #name;
        GRANARY_SHORTAGE_MAP(NAME)
#undef NAME
    }
    return "GRANARY_SHORTAGE_?";
}

const char *granary_shortage_sentence(int shortage) {
    switch (shortage) {
#define SENTENCE(name, value, sentence) \
    case value: return sentence;
        GRANARY_SHORTAGE_MAP(SENTENCE)
#undef SENTENCE
    }
    return "not a kind of shortage";
}

int granary_explain(const struct granary_shortfall *shortfall, char *buffer, size_t room) {
    if (!shortfall || !buffer || room == 0 || shortfall->struct_size < sizeof(*shortfall))
        return GRANARY_INVALID;
    gr_explain_all(buffer, room, shortfall);
    return GRANARY_OK;
}

static int add_callback(granary *g, const char *call, granary_relief relief, granary_observer observer,
                        void *context, granary_callback *out) {
    if (!g) return GRANARY_INVALID;
    if (!out || (!relief && !observer))
        return fail(g, call, GRANARY_INVALID, "%s is NULL", out ? "the function" : "out");
    int status = gr_callback_add(&g->callbacks, relief, observer, context, out);
    return status == GRANARY_OK ? GRANARY_OK : fail(g, call, status, "%s", "");
}

int granary_relief_add(granary *g, granary_relief relief, void *context, granary_callback *out) {
    return add_callback(g, "granary_relief_add", relief, NULL, context, out);
}

int granary_observer_add(granary *g, granary_observer observer, void *context, granary_callback *out) {
    return add_callback(g, "granary_observer_add", NULL, observer, context, out);
}

int granary_callback_remove(granary *g, granary_callback callback) {
    if (!g) return GRANARY_INVALID;
    int status = gr_callback_remove(&g->callbacks, callback);
    return status == GRANARY_OK ? GRANARY_OK
                                : fail(g, "granary_callback_remove", status, "callback %llu is unknown",
                                       (unsigned long long)callback);
}

const char *granary_verify(granary *g) {
    return g ? gr_heap_check(g) : NULL;
}
