/* SPDX-License-Identifier: Apache-2.0
 * PyTorch on granary: handles by device, pools by PyTorch's ids, words of failures. */
#include "adapter/torch.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <granary/options.h>

enum { DEVICES = 64, WORDS = 4096 };

/* A pool that PyTorch has begun at least once. */
struct pool {
    struct pool *next;
    int device;
    struct granary_torch_id id;
    granary_pool name;
    uint64_t users; /* begins less releases */
};

/* A begin whose end has not come. */
struct open {
    struct open *next; /* begun before it */
    int device;
    struct granary_torch_id id;
    bool capture;
    granary_stream stream; /* of a capture */
    pthread_t thread;
    uint64_t name; /* of the scope or capture */
};

static struct {
    pthread_mutex_t lock;
    _Atomic(granary *) handle[DEVICES];
    _Atomic(granary_torch_thrower) thrower;
    /* under lock */
    struct granary_options options;
    bool configured;
    bool apart; /* devices do not open their memory to each other */
    struct pool *pools;
    struct open *opens; /* newest first */
} torch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local char words[WORDS];
static _Thread_local bool expected; /* a capture, of this stream */
static _Thread_local granary_stream expected_stream;

const char *granary_torch_failure(void) {
    return words;
}

static int __attribute__((format(printf, 2, 3))) fail(int status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return status;
}

/* What the environment says, and conf on top of it. */
static int read_options(const char *conf, struct granary_options *out, struct granary_option_error *error) {
    granary_options_init(out);
    int status = granary_options_from_environment(out, error);
    return status == GRANARY_OK && conf ? granary_options_parse(out, conf, "conf", error) : status;
}

/* What went wrong in a call on the handle. Programs look for PyTorch's exception for want of memory, or for
 * "CUDA out of memory" in the words. */
static int fail_call(granary *g, int status) {
    struct granary_fault fault = {.struct_size = sizeof fault};
    const bool shortage = status == GRANARY_OUT_OF_MEMORY || status == GRANARY_OVER_LIMIT ||
                          status == GRANARY_ADDRESS_SPACE;
    const char *text = granary_status_sentence(status), *snapshot = "";
    char explained[WORDS - 64 - sizeof fault.snapshot];
    bool size = false;
    if (granary_last_fault(g, &fault) == GRANARY_OK && fault.status == status) { /* not another thread's */
        text = fault.text;
        snapshot = fault.snapshot;
        /* More than any device could hold is want of memory too, to a program that tries sizes. */
        size = status == GRANARY_INVALID && strcmp(fault.call, "granary_alloc") == 0;
        if (shortage && granary_explain(&fault.shortfall, explained, sizeof explained) == GRANARY_OK)
            text = explained;
    }
    if (!shortage && !size) return fail(status, "granary: %s", text);
    return fail(GRANARY_OUT_OF_MEMORY, "CUDA out of memory. granary: %s%s", text, snapshot);
}

/* ---- handles ------------------------------------------------------------------------------------ */

static void allow(granary *g, int peer) {
    int status = granary_allow_peer(g, peer);
    if (status == GRANARY_OK || status == GRANARY_UNSUPPORTED)
        return; /* PyTorch copies through the host then */
    fail_call(g, status);
    fprintf(stderr, "%s\n", words);
}

/* PyTorch copies between devices, and lets a kernel of one write to the other, without asking the allocator. Under the
 * lock. */
static void join_peers(granary *g, int device) {
    for (int d = 0; d < DEVICES && !torch.apart; d++) {
        granary *other = atomic_load_explicit(&torch.handle[d], memory_order_relaxed);
        if (!other || d == device) continue;
        allow(g, d);
        allow(other, device);
    }
}

static granary *open_handle(int device) {
    pthread_mutex_lock(&torch.lock);
    granary *g = atomic_load_explicit(&torch.handle[device], memory_order_relaxed);
    if (!g) {
        struct granary_fault fault = {.struct_size = sizeof fault};
        struct granary_option_error error;
        struct granary_options options = torch.options;
        int status = torch.configured ? GRANARY_OK : read_options(NULL, &options, &error);
        options.fault = &fault;
        if (status != GRANARY_OK)
            fail(status, "granary: %s", error.text);
        else if ((status = granary_open(device, &options, &g)) != GRANARY_OK)
            fail(status, "granary: %s", fault.text);
        if (status == GRANARY_OK) {
            join_peers(g, device);
            atomic_store_explicit(&torch.handle[device], g, memory_order_release);
        }
    }
    pthread_mutex_unlock(&torch.lock);
    return g;
}

granary *granary_torch_handle(int device) {
    if (device < 0 || device >= DEVICES) {
        fail(GRANARY_INVALID, "granary: device %d is not one of 0 to %d", device, DEVICES - 1);
        return NULL;
    }
    granary *g = atomic_load_explicit(&torch.handle[device], memory_order_acquire);
    return __builtin_expect(g != NULL, 1) ? g : open_handle(device);
}

/* The handle of a device that was used, or NULL. */
static granary *used_handle(int device) {
    return device < 0 || device >= DEVICES
               ? NULL
               : atomic_load_explicit(&torch.handle[device], memory_order_acquire);
}

int granary_torch_configure(const char *conf, int simulated) {
    struct granary_options options;
    struct granary_option_error error;
    int status = read_options(conf, &options, &error);
    if (status != GRANARY_OK) {
        fail(status, "granary: %s", error.text);
        return -1;
    }
    options.driver = simulated ? GRANARY_DRIVER_SIM : GRANARY_DRIVER_CUDA;
    bool used = false;
    pthread_mutex_lock(&torch.lock);
    for (int d = 0; d < DEVICES; d++) used |= atomic_load(&torch.handle[d]) != NULL;
    if (!used) {
        torch.options = options;
        torch.configured = true;
    }
    pthread_mutex_unlock(&torch.lock);
    if (used) fail(GRANARY_BUSY, "granary: memory has been allocated already; configure it before that");
    return used ? -1 : 0;
}

int granary_torch_warning(size_t index, char *buffer, size_t room) {
    pthread_mutex_lock(&torch.lock);
    struct granary_options options = torch.options;
    bool configured = torch.configured;
    pthread_mutex_unlock(&torch.lock);
    return configured && granary_options_warning(&options, index, buffer, room) == GRANARY_OK ? 0 : -1;
}

void granary_torch_close(void) {
    pthread_mutex_lock(&torch.lock);
    for (struct open *open = torch.opens, *next; open; open = next) {
        next = open->next;
        free(open);
    }
    for (struct pool *pool = torch.pools, *next; pool; pool = next) {
        next = pool->next;
        free(pool);
    }
    torch.opens = NULL;
    torch.pools = NULL;
    torch.configured = torch.apart = false;
    granary_torch_set_thrower(NULL);
    for (int d = 0; d < DEVICES; d++) granary_close(atomic_exchange(&torch.handle[d], NULL));
    pthread_mutex_unlock(&torch.lock);
}

void granary_torch_set_thrower(granary_torch_thrower thrower) {
    atomic_store_explicit(&torch.thrower, thrower, memory_order_release);
}

granary_torch_thrower gr_torch_thrower(void) {
    return atomic_load_explicit(&torch.thrower, memory_order_acquire);
}

void granary_torch_peers(int allow) {
    pthread_mutex_lock(&torch.lock);
    torch.apart = allow == 0;
    pthread_mutex_unlock(&torch.lock);
}

/* ---- memory ------------------------------------------------------------------------------------- */

int gr_torch_alloc(size_t size, int device, granary_stream stream, void **out) {
    *out = NULL;
    granary *g = granary_torch_handle(device);
    if (!g) return GRANARY_NO_DEVICE;
    int status = granary_alloc(g, size, stream, out);
    return __builtin_expect(status == GRANARY_OK, 1) ? GRANARY_OK : fail_call(g, status);
}

/* For calls that cannot say that they failed. */
static void complain(granary *g, int status) {
    fail_call(g, status);
    fprintf(stderr, "%s\n", words);
}

void granary_torch_free(void *ptr, ssize_t size, int device, granary_stream stream) {
    (void)size;
    (void)stream;
    granary *g = used_handle(device);
    if (!g) {
        if (ptr)
            fprintf(stderr, "granary: %p is freed on device %d, where nothing was allocated\n", ptr, device);
        return;
    }
    int status = granary_free(g, ptr);
    if (status != GRANARY_OK) complain(g, status);
}

/* PyTorch does not say of which device the block is. What is no device's is somebody else's memory. */
int gr_torch_record_stream(void *ptr, granary_stream stream) {
    for (int d = 0; d < DEVICES; d++) {
        granary *g = used_handle(d);
        int status = g ? granary_record_stream(g, ptr, stream) : GRANARY_UNKNOWN_POINTER;
        if (status != GRANARY_UNKNOWN_POINTER) return status == GRANARY_OK ? status : fail_call(g, status);
    }
    return GRANARY_OK;
}

void granary_torch_reset(void) {
    for (int d = 0; d < DEVICES; d++) {
        granary *g = used_handle(d);
        int status = g ? granary_trim(g, 0, NULL) : GRANARY_OK;
        if (status != GRANARY_OK && status != GRANARY_BUSY) complain(g, status); /* BUSY: a capture is open */
    }
}

int gr_torch_fraction(double fraction, int device) {
    struct granary_option_error error;
    char option[64];
    if (!(fraction >= 0 && fraction <= 1))
        return fail(GRANARY_INVALID, "granary: a fraction of %g is not from 0 to 1", fraction);
    granary *g = granary_torch_handle(device);
    if (!g) return GRANARY_NO_DEVICE;
    /* Not by %f, whose point is a comma in some languages. */
    const unsigned long long whole = 1000000000000000, parts = (unsigned long long)(fraction * 1e15 + 0.5);
    snprintf(option, sizeof option, "per_process_memory_fraction:%llu.%015llu", parts / whole, parts % whole);
    int status = granary_update_options(g, option, &error);
    return status == GRANARY_OK ? status : fail(status, "granary: %s", error.text);
}

/* ---- pools -------------------------------------------------------------------------------------- */

static bool same(struct granary_torch_id a, struct granary_torch_id b) {
    return a.first == b.first && a.second == b.second;
}

/* The place that leads to the pool, or to the end of the list. Under the lock. */
static struct pool **find_pool(int device, struct granary_torch_id id) {
    struct pool **at = &torch.pools;
    while (*at && !((*at)->device == device && same((*at)->id, id))) at = &(*at)->next;
    return at;
}

/* One more user of the pool, which is made if need be. Under the lock. */
static int use_pool(granary *g, int device, struct granary_torch_id id, struct pool **out) {
    struct pool **at = find_pool(device, id), *pool = *at;
    int status;
    if (pool) {
        status = granary_pool_retain(g, pool->name);
    } else {
        if (!(pool = calloc(1, sizeof *pool)))
            return fail(GRANARY_HOST_MEMORY, "granary: no host memory for a pool");
        *pool = (struct pool){.device = device, .id = id};
        status = granary_pool_create(g, NULL, &pool->name);
        if (status == GRANARY_OK)
            *at = pool;
        else
            free(pool);
    }
    if (status != GRANARY_OK) return fail_call(g, status);
    pool->users++;
    *out = pool;
    return GRANARY_OK;
}

/* One user less. Under the lock. */
static int leave_pool(granary *g, int device, struct granary_torch_id id) {
    struct pool **at = find_pool(device, id), *pool = *at;
    if (!pool)
        return fail(GRANARY_UNKNOWN_POOL,
                    "granary: pool %llu,%llu of device %d is released and was not begun",
                    (unsigned long long)id.first, (unsigned long long)id.second, device);
    int status = granary_pool_release(g, pool->name);
    if (status != GRANARY_OK) return fail_call(g, status);
    if (--pool->users == 0) {
        *at = pool->next;
        free(pool);
    }
    return GRANARY_OK;
}

void granary_torch_expect(int capture, granary_stream stream) {
    expected = capture != 0;
    expected_stream = stream;
}

/* A capture that the driver did not end, because it broke: PyTorch throws then, before it says that the
 * pool ends, and does not come back to it. While it is open nothing is given back or moved. BUSY while it runs.
 * Under the lock. */
static int end_broken(granary *g, int device, granary_stream stream) {
    for (struct open **at = &torch.opens, *open; (open = *at) != NULL; at = &open->next) {
        if (!open->capture || open->device != device || open->stream != stream) continue;
        int status = granary_capture_end(g, open->name);
        if (status != GRANARY_OK) return fail_call(g, status);
        *at = open->next;
        status = leave_pool(g, device, open->id);
        free(open);
        return status;
    }
    return GRANARY_OK;
}

void granary_torch_broken(int device, granary_stream stream) {
    granary *g = used_handle(device);
    if (!g) return;
    pthread_mutex_lock(&torch.lock);
    int status = end_broken(g, device, stream);
    pthread_mutex_unlock(&torch.lock);
    if (status != GRANARY_OK) fprintf(stderr, "%s\n", words);
}

/* Begins what is to be open, on its pool, which has a user more then. Under the lock. */
static int begin(granary *g, struct open *open) {
    struct pool *pool = NULL;
    int status = open->capture ? end_broken(g, open->device, open->stream) : GRANARY_OK;
    if (status == GRANARY_OK) status = use_pool(g, open->device, open->id, &pool);
    if (status != GRANARY_OK) return status;
    status = open->capture ? granary_capture_begin(g, pool->name, open->stream, &open->name)
                           : granary_scope_begin(g, pool->name, NULL, NULL, &open->name);
    if (status != GRANARY_OK) {
        char kept[WORDS];
        status = fail_call(g, status);
        memcpy(kept, words, sizeof kept);
        if (leave_pool(g, open->device, open->id) != GRANARY_OK) /* of a pool that has a user: cannot fail */
            memcpy(words, kept, sizeof kept);
        return status;
    }
    open->next = torch.opens;
    torch.opens = open;
    return GRANARY_OK;
}

int gr_torch_begin(int device, struct granary_torch_id id) {
    const bool capture = expected;
    expected = false;
    granary *g = granary_torch_handle(device);
    if (!g) return GRANARY_NO_DEVICE;
    struct open *open = calloc(1, sizeof *open);
    if (!open) return fail(GRANARY_HOST_MEMORY, "granary: no host memory for a pool");
    *open = (struct open){.device = device, .id = id, .capture = capture, .thread = pthread_self()};
    if (capture) open->stream = expected_stream;
    pthread_mutex_lock(&torch.lock);
    int status = begin(g, open);
    pthread_mutex_unlock(&torch.lock);
    if (status != GRANARY_OK) free(open);
    return status;
}

void granary_torch_end(int device, struct granary_torch_id id) {
    granary *g = used_handle(device);
    int status = GRANARY_OK;
    pthread_mutex_lock(&torch.lock);
    struct open **at = &torch.opens, *open;
    for (; (open = *at) != NULL; at = &open->next)
        if (open->device == device && same(open->id, id) &&
            (open->capture || pthread_equal(open->thread, pthread_self())))
            break;
    if (open) {
        status = open->capture ? granary_capture_end(g, open->name) : granary_scope_end(g, open->name);
        if (status == GRANARY_OK) {
            *at = open->next;
            free(open);
        }
    }
    pthread_mutex_unlock(&torch.lock);
    if (!open)
        fprintf(stderr, "granary: pool %llu,%llu of device %d ends on this thread and was not begun on it\n",
                (unsigned long long)id.first, (unsigned long long)id.second, device);
    else if (status != GRANARY_OK)
        complain(g, status);
}

void granary_torch_release(int device, struct granary_torch_id id) {
    granary *g = used_handle(device);
    pthread_mutex_lock(&torch.lock);
    int status = leave_pool(g, device, id);
    pthread_mutex_unlock(&torch.lock);
    if (status != GRANARY_OK) fprintf(stderr, "%s\n", words);
}

/* ---- figures ------------------------------------------------------------------------------------ */

struct text {
    char *at;
    size_t room, length;
};

static void put(struct text *t, const char *name, const char *part, int64_t value) {
    int n = snprintf(t->length < t->room ? t->at + t->length : NULL,
                     t->length < t->room ? t->room - t->length : 0, "%s%s %lld\n", name, part,
                     (long long)value);
    if (n > 0) t->length += (size_t)n;
}

static void put_stat(struct text *t, const char *name, const char *class, const struct granary_stat *s) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", name, class);
    put(t, key, ".current", s->current);
    put(t, key, ".peak", s->peak);
    put(t, key, ".allocated", s->total_up);
    put(t, key, ".freed", s->total_down);
}

static void put_classes(struct text *t, const char *name, const struct granary_stat_by_class *s) {
    put_stat(t, name, "all", &s->all);
    put_stat(t, name, "small_pool", &s->small);
    put_stat(t, name, "large_pool", &s->large);
}

int granary_torch_stats(int device, char *buffer, size_t room) {
    struct granary_stats s = {.struct_size = sizeof s};
    struct granary_driver_calls calls = {.struct_size = sizeof calls};
    granary *g = granary_torch_handle(device);
    if (!g) return -1;
    int status = granary_get_stats(g, &s);
    if (status == GRANARY_OK) status = granary_get_driver_calls(g, &calls);
    if (status != GRANARY_OK) {
        fail_call(g, status);
        return -1;
    }
    struct text t = {buffer, room, 0};
    put_classes(&t, "allocation", &s.allocations);
    put_classes(&t, "allocated_bytes", &s.allocated_bytes);
    put_classes(&t, "active", &s.active_blocks);
    put_classes(&t, "active_bytes", &s.active_bytes);
    put_classes(&t, "requested_bytes", &s.requested_bytes);
    put_classes(&t, "reserved_bytes", &s.reserved_bytes);
    put_classes(&t, "segment", &s.segments);
    put(&t, "num_ooms", "", s.out_of_memory);
    put(&t, "num_alloc_retries", "", 0); /* nothing is flushed to try again */
    put(&t, "num_device_alloc", "", (int64_t)(calls.create + calls.mem_alloc));
    put(&t, "num_device_free", "", (int64_t)(calls.release + calls.mem_free));
    put(&t, "num_sync_all_streams", "", (int64_t)calls.synchronize);
    put(&t, "granary.misses", "", s.misses);
    put(&t, "granary.pending_blocks", "", s.pending_blocks);
    put(&t, "granary.moved_extents", "", s.moved_extents);
    put(&t, "granary.moved_bytes", "", s.moved_bytes);
    put(&t, "granary.moving_ns", "", s.moving_ns);
    put(&t, "granary.extents", "", s.extents);
    put(&t, "granary.ranges", "", s.ranges);
    put(&t, "granary.reserved_address_bytes", "", s.reserved_address_bytes);
    return (int)t.length;
}
