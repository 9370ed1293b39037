/* SPDX-License-Identifier: Apache-2.0
 * Opens the driver, finds out what it really can do, and judges its codes. */
#include "driver/driver.h"

#include <string.h>
#include <unistd.h>

#include <granary/granary.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "driver/peers.h"
#include "driver/sim/sim.h"

/* Gives something back. A refusal is answered by asking once more: the alternative is a leak. */
#define GIVE(d, symbol, ...) \
    (GR_DRIVE(d, symbol, __VA_ARGS__) == GR_CU_SUCCESS ? GR_CU_SUCCESS : GR_DRIVE(d, symbol, __VA_ARGS__))

/* ---- names ------------------------------------------------------------------------------------ */

const char *gr_driver_entry_name(int entry) {
    static const char *const names[] = {
#define GR_ENTRY(symbol, version, need, kind, parameters) #symbol,
#include "driver/entries.def"
#undef GR_ENTRY
    };
    return entry >= 0 && entry < GR_ENTRY_COUNT ? names[entry] : "(no entry)";
}

const char *gr_driver_code_name(struct gr_driver *d, gr_cu_result code, char buffer[GR_CODE_NAME_ROOM]) {
    if (code == GR_CU_SUCCESS) return "CUDA_SUCCESS"; /* the one without ERROR in it */
    switch (code) {
#define GR_CODE_NAME(name, value) \
    case value: return "CUDA_ERROR_" #name;
        GR_CU_RESULT_MAP(GR_CODE_NAME)
#undef GR_CODE_NAME
    default: break;
    }
    const char *name = NULL;
    bool known = d->call.cuGetErrorName != NULL && GR_DRIVE(d, cuGetErrorName, code, &name) == GR_CU_SUCCESS;
    if (known && name != NULL)
        gr_text_put(buffer, GR_CODE_NAME_ROOM, "%s", name);
    else
        gr_text_put(buffer, GR_CODE_NAME_ROOM, "CUDA_ERROR_%d", code);
    return buffer;
}

/* ---- codes ------------------------------------------------------------------------------------ */

/* Codes after which the process or its context is of no use any more. */
static bool is_sticky(enum gr_entry entry, gr_cu_result code) {
    enum {
        NVLINK_UNCORRECTABLE = 220,
        CONTAINED = 226,
        TENSOR_MEMORY_LEAK = 721,
        MPS_CLIENT_TERMINATED = 810,
        EXTERNAL_DEVICE = 911
    };
    switch (code) {
    case GR_CU_DEINITIALIZED:
    case GR_CU_ECC_UNCORRECTABLE:
    case NVLINK_UNCORRECTABLE:
    case CONTAINED:
    case GR_CU_ILLEGAL_ADDRESS:
    case GR_CU_LAUNCH_TIMEOUT:
    case GR_CU_ASSERT:
    case GR_CU_HARDWARE_STACK_ERROR:
    case GR_CU_ILLEGAL_INSTRUCTION:
    case GR_CU_MISALIGNED_ADDRESS:
    case GR_CU_INVALID_ADDRESS_SPACE:
    case GR_CU_INVALID_PC:
    case GR_CU_LAUNCH_FAILED:
    case TENSOR_MEMORY_LEAK:
    case MPS_CLIENT_TERMINATED:
    case EXTERNAL_DEVICE: return true;
    case GR_CU_CONTEXT_IS_DESTROYED:
        /* Also the answer to a stream or event that its owner destroyed; that is no reason to give
         * up the device. Calls that take neither speak of the context itself. */
        switch (entry) {
        case GR_ENTRY_cuCtxPushCurrent:
        case GR_ENTRY_cuCtxSynchronize:
        case GR_ENTRY_cuMemGetInfo:
        case GR_ENTRY_cuMemAlloc:
        case GR_ENTRY_cuMemFree:
        case GR_ENTRY_cuMemCreate:
        case GR_ENTRY_cuMemSetAccess:
        case GR_ENTRY_cuMemUnmap:
        case GR_ENTRY_cuEventCreate:
        case GR_ENTRY_cuStreamCreate: return true;
        default: return false;
        }
    default: return false;
    }
}

/* The last refusal that this thread saw, and of which driver: a handle may lie where another one lay. */
static _Thread_local struct {
    const struct gr_driver *driver;
    uint64_t born, word;
} seen;

int gr_driver_status(struct gr_driver *d, enum gr_entry entry, gr_cu_result code) {
    if (code == GR_CU_SUCCESS) return GRANARY_OK;
    seen.driver = d;
    seen.born = d->born;
    seen.word = ((uint64_t)entry + 1) << 32 | (uint32_t)code;
    if (is_sticky(entry, code)) {
        uint_fast64_t none = 0;
        (void)atomic_compare_exchange_strong(&d->loss, &none, seen.word);
        atomic_store_explicit(&d->lost, 1, memory_order_release);
        return GRANARY_LOST;
    }
    switch (code) {
    case GR_CU_OUT_OF_MEMORY: return GRANARY_OUT_OF_MEMORY;
    case GR_CU_NOT_PERMITTED:
    case GR_CU_NOT_SUPPORTED: return GRANARY_UNSUPPORTED;
    default: return GRANARY_DRIVER;
    }
}

int gr_driver_last(struct gr_driver *d, gr_cu_result *code) {
    uint64_t last = atomic_load_explicit(&d->loss, memory_order_relaxed);
    if (last == 0 && seen.driver == d && seen.born == d->born) last = seen.word;
    *code = (gr_cu_result)(uint32_t)last;
    return (int)(last >> 32) - 1;
}

void gr_driver_calls(struct gr_driver *d, struct granary_driver_calls *out) {
    *out = (struct granary_driver_calls){.struct_size = sizeof *out};
#define GR_ENTRY(symbol, version, need, kind, parameters) \
    out->kind += gr_tap_count(&d->tap, GR_ENTRY_##symbol);
#include "driver/entries.def"
#undef GR_ENTRY
}

/* ---- the current context ---------------------------------------------------------------------- */

/* One bit for each begin of this thread that was not ended yet, the innermost lowest: whether it
 * pushed. All 0 outside of calls into the library. */
static _Thread_local uint64_t pushed;

bool gr_driver_forked(const struct gr_driver *d) {
    return (int)getpid() != d->process;
}

int gr_driver_begin(struct gr_driver *d) {
    if (gr_driver_lost(d)) return GRANARY_LOST;
    gr_cu_context current = NULL;
    gr_cu_result code = GR_DRIVE(d, cuCtxGetCurrent, &current);
    if (code != GR_CU_SUCCESS) return gr_driver_status(d, GR_ENTRY_cuCtxGetCurrent, code);
    bool push = current != d->context;
    if (push) code = GR_DRIVE(d, cuCtxPushCurrent, d->context);
    if (code != GR_CU_SUCCESS) return gr_driver_status(d, GR_ENTRY_cuCtxPushCurrent, code);
    pushed = pushed << 1 | push;
    return GRANARY_OK;
}

void gr_driver_end(struct gr_driver *d) {
    gr_cu_context popped = NULL;
    bool pop = (pushed & 1) != 0;
    pushed >>= 1;
    if (pop) (void)GIVE(d, cuCtxPopCurrent, &popped); /* also in a lost context: the stack is the thread's */
}

int gr_driver_relax(struct gr_driver *d) {
    int mode = GR_CU_CAPTURE_MODE_RELAXED;
    gr_driver_ignore(d, GR_ENTRY_cuThreadExchangeStreamCaptureMode,
                     GR_DRIVE(d, cuThreadExchangeStreamCaptureMode, &mode));
    return mode;
}

void gr_driver_restore(struct gr_driver *d, int mode) {
    gr_driver_ignore(d, GR_ENTRY_cuThreadExchangeStreamCaptureMode,
                     GR_DRIVE(d, cuThreadExchangeStreamCaptureMode, &mode));
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* Writes "cuInit was refused: CUDA_ERROR_UNKNOWN (999)"; returns the status. */
static int refused(struct gr_driver *d, enum gr_entry entry, gr_cu_result code, char *reason, size_t room) {
    char name[GR_CODE_NAME_ROOM];
    gr_text_put(reason, room, "%s was refused: %s (%d)", gr_driver_entry_name((int)entry),
                gr_driver_code_name(d, code, name), code);
    return gr_driver_status(d, entry, code);
}

/* Makes the table say no more than the driver's version allows (D1). The loader has found nothing
 * newer; a simulated driver of an old version has. */
static void forget_newer(struct gr_driver *d) {
#define GR_ENTRY(symbol, version, need, kind, parameters) \
    if (version > d->facts.driver_version) d->call.symbol = NULL;
#include "driver/entries.def"
#undef GR_ENTRY
}

/* cuInit and what can be asked before there is a device. */
static int wake(struct gr_driver *d, char *reason) {
    gr_cu_result code = GR_DRIVE(d, cuInit, 0);
    if (code == GR_CU_STUB_LIBRARY) {
        gr_text_put(reason, GR_REASON_ROOM,
                    "the CUDA driver library is the stub that programs are linked with");
        return GRANARY_STUB_DRIVER;
    }
    if (code == GR_CU_NO_DEVICE) {
        gr_text_put(reason, GR_REASON_ROOM,
                    "the CUDA driver finds no device (CUDA_VISIBLE_DEVICES may hide them)");
        return GRANARY_NO_DEVICE;
    }
    if (code != GR_CU_SUCCESS) return refused(d, GR_ENTRY_cuInit, code, reason, GR_REASON_ROOM);

    code = GR_DRIVE(d, cuDriverGetVersion, &d->facts.driver_version);
    if (code != GR_CU_SUCCESS) return refused(d, GR_ENTRY_cuDriverGetVersion, code, reason, GR_REASON_ROOM);
    if (d->facts.driver_version < GR_DRIVER_MINIMUM) {
        gr_text_put(reason, GR_REASON_ROOM, "the driver is of CUDA %d.%d; %d.%d or newer is needed",
                    d->facts.driver_version / 1000, d->facts.driver_version % 1000 / 10,
                    GR_DRIVER_MINIMUM / 1000, GR_DRIVER_MINIMUM % 1000 / 10);
        return GRANARY_OLD_DRIVER;
    }
    forget_newer(d);
    d->facts.capture_query = d->call.cuStreamGetCaptureInfo != NULL &&
                             d->call.cuGraphNodeGetDependencies != NULL;
    return GRANARY_OK;
}

/* Finds the device and what can be asked without a context. */
static int find(struct gr_driver *d, int device, char *reason) {
    int count = 0;
    gr_cu_result code = GR_DRIVE(d, cuDeviceGetCount, &count);
    if (code != GR_CU_SUCCESS) return refused(d, GR_ENTRY_cuDeviceGetCount, code, reason, GR_REASON_ROOM);
    if (device < 0 || device >= count) {
        gr_text_put(reason, GR_REASON_ROOM, "there is no device %d: the driver has %d, numbered from 0",
                    device, count);
        return GRANARY_NO_DEVICE;
    }
    struct gr_facts *facts = &d->facts;
    facts->device = device;
    gr_peers_init(&d->peers, device);
    code = GR_DRIVE(d, cuDeviceGet, &d->device, device);
    if (code != GR_CU_SUCCESS) return refused(d, GR_ENTRY_cuDeviceGet, code, reason, GR_REASON_ROOM);
    code = GR_DRIVE(d, cuDeviceGetName, facts->name, (int)sizeof facts->name, d->device);
    if (code != GR_CU_SUCCESS) return refused(d, GR_ENTRY_cuDeviceGetName, code, reason, GR_REASON_ROOM);
    code = GR_DRIVE(d, cuDeviceTotalMem, &facts->total_bytes, d->device);
    if (code != GR_CU_SUCCESS) return refused(d, GR_ENTRY_cuDeviceTotalMem, code, reason, GR_REASON_ROOM);
    return GRANARY_OK;
}

/* ---- probing ---------------------------------------------------------------------------------- */

/* An attribute; one that the driver does not know, or refuses to tell, reads as 0. */
static int attribute(struct gr_driver *d, int which) {
    int value = 0;
    return GR_DRIVE(d, cuDeviceGetAttribute, &value, which, d->device) == GR_CU_SUCCESS ? value : 0;
}

static bool has_entries(const struct gr_table *call) {
    return call->cuMemAddressReserve != NULL && call->cuMemAddressFree != NULL && call->cuMemCreate != NULL &&
           call->cuMemRelease != NULL && call->cuMemMap != NULL && call->cuMemUnmap != NULL &&
           call->cuMemSetAccess != NULL && call->cuMemGetAllocationGranularity != NULL;
}

struct refusal {
    enum gr_entry entry;
    gr_cu_result code; /* SUCCESS: there was none */
};

/* Calls unless something was refused before; remembers the refusal. True when the call was made and
 * went well. */
#define TRY(d, r, symbol, ...)     \
    ((r)->code == GR_CU_SUCCESS && \
     ((r)->entry = GR_ENTRY_##symbol, (r)->code = GR_DRIVE(d, symbol, __VA_ARGS__)) == GR_CU_SUCCESS)

/* The same for giving back, which is done whatever was refused before. */
static void returned(struct refusal *r, enum gr_entry entry, gr_cu_result code) {
    if (r->code == GR_CU_SUCCESS) *r = (struct refusal){entry, code};
}

/* Backs one granule of addresses and undoes it. */
static struct refusal try_granule(struct gr_driver *d, bool rdma) {
    const size_t size = d->facts.granule;
    const struct gr_cu_location here = {.type = GR_CU_LOCATION_DEVICE, .id = d->device};
    const struct gr_cu_mem_prop prop = {
        .type = GR_CU_MEM_TYPE_PINNED, .location = here, .flags = {.rdma_capable = rdma}};
    const struct gr_cu_access access = {.location = here, .flags = GR_CU_ACCESS_READWRITE};
    struct refusal r = {.code = GR_CU_SUCCESS};
    gr_cu_ptr at = 0;
    gr_cu_handle handle = 0;

    bool reserved = TRY(d, &r, cuMemAddressReserve, &at, size, size, 0, 0);
    bool created = TRY(d, &r, cuMemCreate, &handle, size, &prop, 0);
    bool mapped = TRY(d, &r, cuMemMap, at, size, 0, handle, 0);
    (void)TRY(d, &r, cuMemSetAccess, at, size, &access, 1);

    if (mapped) returned(&r, GR_ENTRY_cuMemUnmap, GIVE(d, cuMemUnmap, at, size));
    if (created) returned(&r, GR_ENTRY_cuMemRelease, GIVE(d, cuMemRelease, handle));
    if (reserved) returned(&r, GR_ENTRY_cuMemAddressFree, GIVE(d, cuMemAddressFree, at, size));
    return r;
}

/* A card that other programs have filled refuses memory too: that says nothing about its abilities. */
static bool is_full(struct gr_driver *d) {
    size_t available = 0, total = 0;
    return GR_DRIVE(d, cuMemGetInfo, &available, &total) == GR_CU_SUCCESS && available < 64 * GR_MIB;
}

static bool find_granule(struct gr_driver *d) {
    const struct gr_cu_mem_prop prop = {.type = GR_CU_MEM_TYPE_PINNED,
                                        .location = {.type = GR_CU_LOCATION_DEVICE, .id = d->device}};
    struct gr_facts *facts = &d->facts;
    size_t granule = 0;
    gr_cu_result code =
        GR_DRIVE(d, cuMemGetAllocationGranularity, &granule, &prop, GR_CU_GRANULARITY_MINIMUM);
    if (code != GR_CU_SUCCESS) {
        (void)refused(d, GR_ENTRY_cuMemGetAllocationGranularity, code, facts->vmm_reason,
                      sizeof facts->vmm_reason);
        return false;
    }
    if (!gr_is_power(granule)) {
        gr_text_put(facts->vmm_reason, sizeof facts->vmm_reason,
                    "the driver's granularity is %zu, no power of two", granule);
        return false;
    }
    facts->granule = granule;
    return true;
}

/* Decides facts.vmm, facts.rdma and the granule. */
static void decide(struct gr_driver *d, bool want_rdma) {
    struct gr_facts *facts = &d->facts;
    facts->granule = 2 * GR_MIB; /* for classic segments, when the driver names none */
    if (!has_entries(&d->call)) {
        gr_text_put(facts->vmm_reason, sizeof facts->vmm_reason,
                    "the driver has no entry points for virtual memory");
        return;
    }
    if (attribute(d, GR_CU_ATTR_VMM) != 1) {
        gr_text_put(facts->vmm_reason, sizeof facts->vmm_reason,
                    "the device does not support virtual memory management (attribute 102 is 0)");
        return;
    }
    if (!find_granule(d)) return;

    struct refusal r = {.code = GR_CU_SUCCESS};
    facts->rdma = want_rdma && attribute(d, GR_CU_ATTR_RDMA_WITH_VMM) == 1 &&
                  (r = try_granule(d, true)).code == GR_CU_SUCCESS;
    if (!facts->rdma) r = try_granule(d, false);
    facts->vmm = r.code == GR_CU_SUCCESS ||
                 (r.entry == GR_ENTRY_cuMemCreate && r.code == GR_CU_OUT_OF_MEMORY && is_full(d));
    if (!facts->vmm) (void)refused(d, r.entry, r.code, facts->vmm_reason, sizeof facts->vmm_reason);
}

/* Fails only when there is no context to decide in, or the attempts lost it. */
static int probe(struct gr_driver *d, bool want_rdma, char *reason) {
    int status = gr_driver_begin(d);
    if (status == GRANARY_OK) {
        decide(d, want_rdma);
        gr_driver_end(d);
    }
    if (status == GRANARY_OK && !gr_driver_lost(d)) return GRANARY_OK;
    gr_cu_result code;
    int entry = gr_driver_last(d, &code);
    return refused(d, (enum gr_entry)entry, code, reason, GR_REASON_ROOM);
}

/* ---- life ------------------------------------------------------------------------------------- */

int gr_driver_fill(struct gr_driver *d, bool simulated, char *reason) {
    memset(d, 0, sizeof *d);
    atomic_init(&d->lost, 0);
    atomic_init(&d->loss, 0);
    d->born = gr_clock_ns();
    gr_tap_init(&d->tap);
    d->simulated = simulated;
    d->process = (int)getpid();
    reason[0] = '\0';

    int status;
    if (simulated) {
        gr_sim_table(&d->call);
        status = gr_sim_attach();
        if (status != GRANARY_OK)
            gr_text_put(reason, GR_REASON_ROOM, "the simulated driver cannot be opened");
    } else {
        status = gr_load_table(&d->call, &d->library, reason);
    }
    if (status != GRANARY_OK) gr_tap_fini(&d->tap);
    return status;
}

/* Undoes gr_driver_fill. The library stays: libcuda cannot be unloaded. */
static void empty(struct gr_driver *d) {
    if (d->simulated && !gr_driver_forked(d)) gr_sim_detach();
    gr_tap_fini(&d->tap);
}

int gr_driver_start(struct gr_driver *d, int device, bool want_rdma, char *reason) {
    int status = wake(d, reason);
    if (status == GRANARY_OK) status = find(d, device, reason);
    if (status != GRANARY_OK) goto undo_fill;

    gr_cu_result code = GR_DRIVE(d, cuDevicePrimaryCtxRetain, &d->context, d->device);
    if (code != GR_CU_SUCCESS) {
        status = refused(d, GR_ENTRY_cuDevicePrimaryCtxRetain, code, reason, GR_REASON_ROOM);
        goto undo_fill;
    }
    status = probe(d, want_rdma, reason);
    if (status == GRANARY_OK) return GRANARY_OK;

    (void)GIVE(d, cuDevicePrimaryCtxRelease, d->device);
    d->context = NULL;
undo_fill:
    empty(d);
    return status;
}

int gr_driver_open(struct gr_driver *d, bool simulated, int device, bool want_rdma, char *reason) {
    int status = gr_driver_fill(d, simulated, reason);
    return status == GRANARY_OK ? gr_driver_start(d, device, want_rdma, reason) : status;
}

void gr_driver_close(struct gr_driver *d) {
    if (!gr_driver_lost(d))
        (void)GIVE(d, cuDevicePrimaryCtxRelease, d->device); /* a driver that is gone released it itself */
    d->context = NULL;
    empty(d);
}
