/* SPDX-License-Identifier: Apache-2.0
 * The process's one simulation: opening and closing it, entering it, devices and contexts. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/driver.h"
#include "driver/sim/internal.h"

struct gr_sim gr_sim = {.lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .file = -1,
                        .next_stream_id = 1,
                        .next_capture_id = 1};

static _Thread_local struct gr_sim_thread this_thread;
static _Thread_local const char *this_call = "granary_sim";

/* ---- opening and closing ------------------------------------------------------------------ */

/* Q: Why hold the lock across a fork? A: the child gets 3 from every call, and must get it even when
 * another thread of the parent was inside a call. */
static void before_fork(void) {
    pthread_mutex_lock(&gr_sim.lock);
}
static void after_fork_parent(void) {
    pthread_mutex_unlock(&gr_sim.lock);
}
static void after_fork_child(void) {
    gr_sim.forked = gr_sim.open;
    pthread_mutex_unlock(&gr_sim.lock);
}
static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void granary_sim_config_init(struct granary_sim_config *config) {
    if (!config) return;
    *config = (struct granary_sim_config){
        .struct_size = sizeof *config,
        .devices = 1,
        .memory_bytes = 141 * GR_GIB,
        .granule_bytes = 2 * GR_MIB,
        .address_bytes = (size_t)127 << 40,
        .driver_version = 13000,
        .backing = GRANARY_SIM_ACCOUNTING,
        .clock = GRANARY_SIM_AT_ONCE,
        .vmm = 1,
        .strict = 1,
        .max_reserve_bytes = SIZE_MAX,
        .rdma_attribute = 1,
        .reuse_stream_handles = 1,
        .oracle = 1,
        .hang_ms = 5000,
        .peers = 1,
    };
}

static bool config_is_valid(const struct granary_sim_config *c) {
    return c->devices >= 1 && c->devices <= GR_SIM_DEVICES && c->granule_bytes >= 4096 &&
           gr_is_power(c->granule_bytes) && c->granule_bytes <= GR_GIB &&
           c->memory_bytes >= c->granule_bytes && c->hang_ms >= 0;
}

static int open_locked(const struct granary_sim_config *config) {
    struct granary_sim_config c;
    granary_sim_config_init(&c);
    if (config) {
        if (config->struct_size == 0 || config->struct_size > sizeof c) return GRANARY_INVALID;
        memcpy(&c, config, config->struct_size);
        c.struct_size = sizeof c;
    }
    if (!config_is_valid(&c)) return GRANARY_INVALID;
    if (gr_sim.open) return GRANARY_BUSY;
    gr_sim.config = c;
    gr_sim.open = true;
    gr_sim.automatic = gr_sim.ready = false;
    gr_sim.serial++;
    gr_sim.shift = gr_log2(c.granule_bytes);
    gr_sim_slots_init(&gr_sim.streams, sizeof(struct CUstream_st), c.reuse_stream_handles ? 0 : SIZE_MAX);
    gr_sim_slots_init(&gr_sim.events, sizeof(struct CUevent_st), 1024);
    gr_sim_slots_init(&gr_sim.graphs, sizeof(struct CUgraph_st), 0);
    gr_sim_slots_init(&gr_sim.nodes, sizeof(struct CUgraphNode_st), 0);
    gr_sim_slots_init(&gr_sim.execs, sizeof(struct CUgraphExec_st), 0);
    gr_sim_addresses_open();
    for (int i = 0; i < c.devices; i++) {
        gr_sim.contexts[i].device = i;
        gr_sim.legacy[i] = gr_sim_stream_make(i, 0, true);
        gr_sim.legacy[i]->queue->legacy = true;
    }
    return GRANARY_OK;
}

static void get_held_locked(struct granary_sim_held *out) {
    *out = gr_sim.held;
    out->reservations = gr_sim.reservation_count;
    out->pending_work = gr_sim.pending;
    out->events = gr_sim.events.live;
    out->graphs = gr_sim.graphs.live + gr_sim.execs.live;
    for (int i = 0; i < GR_SIM_DEVICES; i++) out->contexts += gr_sim.contexts[i].refs;
}

static bool holds_something(void) {
    struct granary_sim_held h;
    get_held_locked(&h);
    return h.reservations || h.handles || h.mappings || h.allocations || h.events || h.streams || h.graphs ||
           h.contexts || h.pending_work;
}

static void close_locked(void) {
    gr_sim_queues_close();
    gr_sim_addresses_close();
    gr_sim_slots_fini(&gr_sim.streams);
    gr_sim_slots_fini(&gr_sim.events);
    gr_sim_slots_fini(&gr_sim.graphs);
    gr_sim_slots_fini(&gr_sim.nodes);
    gr_sim_slots_fini(&gr_sim.execs);
    gr_sim_clock_fini(&gr_sim.host);
    free(gr_sim.extents);
    if (gr_sim.file >= 0) close(gr_sim.file);
    gr_sim.extents = NULL;
    gr_sim.extent_count = gr_sim.extent_room = 0;
    gr_sim.file = -1;
    gr_sim.file_end = 0;
    gr_sim.override_count = 0;
    memset(gr_sim.contexts, 0, sizeof gr_sim.contexts);
    memset(gr_sim.legacy, 0, sizeof gr_sim.legacy);
    memset(gr_sim.foreign, 0, sizeof gr_sim.foreign);
    memset(gr_sim.used, 0, sizeof gr_sim.used);
    memset(&gr_sim.held, 0, sizeof gr_sim.held);
    memset(&gr_sim.findings, 0, sizeof gr_sim.findings);
    gr_sim.open = false;
}

int granary_sim_open(const struct granary_sim_config *config) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&gr_sim.lock);
    int status = open_locked(config);
    pthread_mutex_unlock(&gr_sim.lock);
    return status;
}

int granary_sim_close(void) {
    int status = GRANARY_OK;
    pthread_mutex_lock(&gr_sim.lock);
    if (!gr_sim.open)
        status = GRANARY_INVALID;
    else if (gr_sim.attached || holds_something())
        status = GRANARY_BUSY;
    else
        close_locked();
    pthread_mutex_unlock(&gr_sim.lock);
    return status;
}

int gr_sim_attach(void) {
    int status = granary_sim_open(NULL);
    pthread_mutex_lock(&gr_sim.lock);
    if (status == GRANARY_OK)
        gr_sim.automatic = true;
    else if (status == GRANARY_BUSY)
        status = GRANARY_OK;
    if (status == GRANARY_OK) gr_sim.attached++;
    pthread_mutex_unlock(&gr_sim.lock);
    return status;
}

void gr_sim_detach(void) {
    pthread_mutex_lock(&gr_sim.lock);
    if (gr_sim.attached && --gr_sim.attached == 0 && gr_sim.automatic && !gr_sim.forked && !holds_something())
        close_locked();
    pthread_mutex_unlock(&gr_sim.lock);
}

void granary_sim_get_held(struct granary_sim_held *out) {
    if (!out || out->struct_size == 0) return;
    struct granary_sim_held held;
    size_t size = out->struct_size < sizeof held ? out->struct_size : sizeof held;
    pthread_mutex_lock(&gr_sim.lock);
    get_held_locked(&held);
    pthread_mutex_unlock(&gr_sim.lock);
    held.struct_size = size;
    memcpy(out, &held, size);
}

void granary_sim_get_findings(struct granary_sim_findings *out) {
    if (!out || out->struct_size == 0) return;
    size_t size = out->struct_size < sizeof *out ? out->struct_size : sizeof *out;
    pthread_mutex_lock(&gr_sim.lock);
    memcpy(out, &gr_sim.findings, size);
    pthread_mutex_unlock(&gr_sim.lock);
    out->struct_size = size;
}

void granary_sim_clear_findings(void) {
    pthread_mutex_lock(&gr_sim.lock);
    memset(&gr_sim.findings, 0, sizeof gr_sim.findings);
    pthread_mutex_unlock(&gr_sim.lock);
}

/* ---- entering ----------------------------------------------------------------------------- */

struct gr_sim_thread *gr_sim_thread(void) {
    struct gr_sim_thread *t = &this_thread;
    if (t->serial != gr_sim.serial) {
        memset(t, 0, sizeof *t);
        t->serial = gr_sim.serial;
        t->name = ++gr_sim.threads;
    }
    return t;
}

const char *gr_sim_call(void) {
    return this_call;
}

static gr_cu_result enter(const char *call, bool ready) {
    pthread_mutex_lock(&gr_sim.lock);
    if (gr_sim.open && !gr_sim.forked && (gr_sim.ready || !ready)) {
        this_call = call;
        if (!gr_sim_thread()->in_host_function) return GR_CU_SUCCESS;
        gr_sim_report(GRANARY_SIM_MISUSE, "a host function called the driver");
        pthread_mutex_unlock(&gr_sim.lock);
        return GR_CU_NOT_PERMITTED;
    }
    pthread_mutex_unlock(&gr_sim.lock);
    return GR_CU_NOT_INITIALIZED;
}

gr_cu_result gr_sim_enter(const char *call) {
    return enter(call, true);
}

gr_cu_result gr_sim_leave(gr_cu_result code) {
    pthread_mutex_unlock(&gr_sim.lock);
    return code;
}

bool gr_sim_steer(void) {
    pthread_mutex_lock(&gr_sim.lock);
    this_call = "granary_sim";
    if (gr_sim.open && !gr_sim.forked) return true;
    pthread_mutex_unlock(&gr_sim.lock);
    return false;
}

void gr_sim_unlock(void) {
    pthread_mutex_unlock(&gr_sim.lock);
}

/* As with cuGetProcAddress, an entry newer than the driver is not there. */
void gr_sim_table(struct gr_table *table) {
    pthread_mutex_lock(&gr_sim.lock);
    int newest = gr_sim.open ? gr_sim.config.driver_version : INT_MAX;
    pthread_mutex_unlock(&gr_sim.lock);
#define GR_ENTRY(symbol, version, need, kind, parameters) \
    table->symbol = version <= newest ? gr_sim_##symbol : NULL;
#include "driver/entries.def"
#undef GR_ENTRY
}

/* ---- conditions --------------------------------------------------------------------------- */

int granary_sim_set_foreign(int device, size_t bytes) {
    if (!gr_sim_steer()) return GRANARY_INVALID;
    bool fits = device >= 0 && device < gr_sim.config.devices;
    if (fits) gr_sim.foreign[device] = bytes;
    gr_sim_unlock();
    return fits ? GRANARY_OK : GRANARY_INVALID;
}

int granary_sim_set_attribute(int device, int attribute, int value) {
    if (!gr_sim_steer()) return GRANARY_INVALID;
    bool fits = device >= 0 && device < gr_sim.config.devices && gr_sim.override_count < GR_SIM_OVERRIDES;
    if (fits) gr_sim.overrides[gr_sim.override_count++] = (struct gr_sim_override){device, attribute, value};
    gr_sim_unlock();
    return fits ? GRANARY_OK : GRANARY_INVALID;
}

int granary_sim_set_sticky(int device, int code) {
    if (!gr_sim_steer()) return GRANARY_INVALID;
    bool fits = device >= 0 && device < gr_sim.config.devices;
    if (fits) gr_sim.contexts[device].sticky = code;
    gr_sim_unlock();
    return fits ? GRANARY_OK : GRANARY_INVALID;
}

/* ---- start and facts ---------------------------------------------------------------------- */

gr_cu_result gr_sim_cuInit(unsigned flags) {
    gr_cu_result code = enter("cuInit", false);
    if (code != GR_CU_SUCCESS) return code;
    if (flags == 0) gr_sim.ready = true;
    return gr_sim_leave(flags == 0 ? GR_CU_SUCCESS : GR_CU_INVALID_VALUE);
}

gr_cu_result gr_sim_cuDriverGetVersion(int *out) {
    gr_cu_result code = enter("cuDriverGetVersion", false);
    if (code != GR_CU_SUCCESS) return code;
    if (out) *out = gr_sim.config.driver_version;
    return gr_sim_leave(out ? GR_CU_SUCCESS : GR_CU_INVALID_VALUE);
}

gr_cu_result gr_sim_cuGetErrorName(gr_cu_result code, const char **out) {
    if (!out) return GR_CU_INVALID_VALUE;
    *out = NULL;
    switch (code) {
#define NAME(name, value) \
    case value: *out = value == 0 ? "CUDA_SUCCESS" : "CUDA_ERROR_" #name; break;
        GR_CU_RESULT_MAP(NAME)
#undef NAME
    default: break;
    }
    return *out ? GR_CU_SUCCESS : GR_CU_INVALID_VALUE;
}

static bool is_device(int device) {
    return device >= 0 && device < gr_sim.config.devices;
}

static gr_cu_result device_get(gr_cu_device *out, int ordinal) {
    if (!out) return GR_CU_INVALID_VALUE;
    if (!is_device(ordinal)) return GR_CU_INVALID_DEVICE;
    *out = ordinal;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuDeviceGet(gr_cu_device *out, int ordinal) {
    GR_SIM_ENTRY(device_get(out, ordinal));
}

static gr_cu_result can_access_peer(int *out, gr_cu_device device, gr_cu_device owner) {
    if (!out) return GR_CU_INVALID_VALUE;
    if (!is_device(device) || !is_device(owner)) return GR_CU_INVALID_DEVICE;
    *out = gr_sim.config.peers != 0 && device != owner;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuDeviceCanAccessPeer(int *out, gr_cu_device device, gr_cu_device owner) {
    GR_SIM_ENTRY(can_access_peer(out, device, owner));
}

static gr_cu_result device_count(int *out) {
    if (!out) return GR_CU_INVALID_VALUE;
    *out = gr_sim.config.devices;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuDeviceGetCount(int *out) {
    GR_SIM_ENTRY(device_count(out));
}

static gr_cu_result device_name(char *out, int size, gr_cu_device device) {
    if (!out || size <= 0) return GR_CU_INVALID_VALUE;
    if (!is_device(device)) return GR_CU_INVALID_DEVICE;
    snprintf(out, (size_t)size, "granary simulated device");
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuDeviceGetName(char *out, int size, gr_cu_device device) {
    GR_SIM_ENTRY(device_name(out, size, device));
}

static gr_cu_result device_attribute(int *out, int attribute, gr_cu_device device) {
    static const struct {
        int attribute, value;
    } answers[] = {{18, 0},  {20, 0},  {41, 1},  {75, 9},  {76, 0},  {103, 1}, {107, 1}, {112, 1},
                   {115, 1}, {116, 1}, {119, 9}, {124, 1}, {125, 1}, {128, 1}, {130, 0}, {131, -1},
                   {132, 0}, {133, 0}, {134, 0}, {141, 1}, {142, 1}, {144, 1}, {145, 1}, {146, 0}};
    if (!out) return GR_CU_INVALID_VALUE;
    if (!is_device(device)) return GR_CU_INVALID_DEVICE;
    for (unsigned i = gr_sim.override_count; i-- > 0;) {
        const struct gr_sim_override *o = &gr_sim.overrides[i];
        if (o->device != device || o->attribute != attribute) continue;
        *out = o->value;
        return GR_CU_SUCCESS;
    }
    if (attribute == GR_CU_ATTR_VMM || attribute == GR_CU_ATTR_RDMA_WITH_VMM) {
        *out = attribute == GR_CU_ATTR_VMM ? gr_sim.config.vmm : gr_sim.config.rdma_attribute;
        return GR_CU_SUCCESS;
    }
    for (size_t i = 0; i < GR_COUNT(answers); i++) {
        if (answers[i].attribute != attribute) continue;
        *out = answers[i].value;
        return GR_CU_SUCCESS;
    }
    return GR_CU_INVALID_VALUE;
}
gr_cu_result gr_sim_cuDeviceGetAttribute(int *out, int attribute, gr_cu_device device) {
    GR_SIM_ENTRY(device_attribute(out, attribute, device));
}

static gr_cu_result device_total(size_t *out, gr_cu_device device) {
    if (!out) return GR_CU_INVALID_VALUE;
    if (!is_device(device)) return GR_CU_INVALID_DEVICE;
    *out = gr_sim.config.memory_bytes;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuDeviceTotalMem(size_t *out, gr_cu_device device) {
    GR_SIM_ENTRY(device_total(out, device));
}

/* ---- contexts ----------------------------------------------------------------------------- */

gr_cu_result gr_sim_context(struct CUctx_st **out) {
    const struct gr_sim_thread *t = gr_sim_thread();
    if (t->depth == 0) return GR_CU_INVALID_CONTEXT;
    *out = t->stack[t->depth - 1];
    return (*out)->refs == 0 ? GR_CU_CONTEXT_IS_DESTROYED : (*out)->sticky;
}

static gr_cu_result retain(gr_cu_context *out, gr_cu_device device) {
    if (!out) return GR_CU_INVALID_VALUE;
    if (!is_device(device)) return GR_CU_INVALID_DEVICE;
    gr_sim.contexts[device].refs++;
    *out = &gr_sim.contexts[device];
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuDevicePrimaryCtxRetain(gr_cu_context *out, gr_cu_device device) {
    GR_SIM_ENTRY(retain(out, device));
}

static gr_cu_result release(gr_cu_device device) {
    if (!is_device(device)) return GR_CU_INVALID_DEVICE;
    if (gr_sim.contexts[device].refs == 0) return GR_CU_INVALID_CONTEXT;
    gr_sim.contexts[device].refs--;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuDevicePrimaryCtxRelease(gr_cu_device device) {
    GR_SIM_ENTRY(release(device));
}

static gr_cu_result get_current(gr_cu_context *out) {
    const struct gr_sim_thread *t = gr_sim_thread();
    if (!out) return GR_CU_INVALID_VALUE;
    *out = t->depth ? t->stack[t->depth - 1] : NULL;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuCtxGetCurrent(gr_cu_context *out) {
    GR_SIM_ENTRY(get_current(out));
}

static gr_cu_result push_current(gr_cu_context context) {
    struct gr_sim_thread *t = gr_sim_thread();
    bool known = context >= gr_sim.contexts && context < gr_sim.contexts + gr_sim.config.devices;
    if (!known || context->refs == 0) return GR_CU_INVALID_CONTEXT;
    if (t->depth == GR_SIM_STACK) {
        gr_sim_report(GRANARY_SIM_MISUSE, "%d contexts are pushed on one thread; is the stack never popped?",
                      GR_SIM_STACK);
        return GR_CU_OUT_OF_MEMORY;
    }
    t->stack[t->depth++] = context;
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuCtxPushCurrent(gr_cu_context context) {
    GR_SIM_ENTRY(push_current(context));
}

static gr_cu_result pop_current(gr_cu_context *out) {
    struct gr_sim_thread *t = gr_sim_thread();
    if (t->depth == 0) return GR_CU_INVALID_CONTEXT;
    t->depth--;
    if (out) *out = t->stack[t->depth];
    return GR_CU_SUCCESS;
}
gr_cu_result gr_sim_cuCtxPopCurrent(gr_cu_context *out) {
    GR_SIM_ENTRY(pop_current(out));
}

static gr_cu_result ctx_synchronize(void) {
    struct CUctx_st *context;
    gr_cu_result code = gr_sim_context(&context);
    if (code == GR_CU_SUCCESS) code = gr_sim_conflicts(context->device);
    if (code == GR_CU_SUCCESS) code = gr_sim_drain(context->device);
    return code;
}
gr_cu_result gr_sim_cuCtxSynchronize(void) {
    GR_SIM_ENTRY(ctx_synchronize());
}
