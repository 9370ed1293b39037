/* SPDX-License-Identifier: Apache-2.0
 * Asks the simulated and the real driver the same questions and prints where their answers differ.
 *
 *      conformance [--print] [--sim-only] [--device N]
 *
 * Every question is asked through a struct gr_table, so that the very functions are compared that the
 * library calls. The simulation is not strict here: it must answer what the real driver answers, also
 * to mistakes. --print shows all answers; --sim-only asks the simulation twice, to try the program
 * where there is no GPU. Exit status: 0 the same answers, 1 differences, 2 a question could not be
 * prepared, 77 no GPU.
 *
 * Safe beside other programs: a few hundred MiB at most, and each question cleans up after itself.
 * Left out on purpose: what leaves a sticky error (unmap under pending work), multicast, and running
 * the card full; and entries that the library does not know (pointer attributes, IPC, export). */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <granary/sim.h>

#include "driver/driver.h"

struct answer {
    char question[80];
    char text[80];
};

struct side {
    const char *name;
    struct gr_table call;
    gr_cu_device device;
    gr_cu_context context; /* NULL until the questions that need none are through */
    size_t granule;
    struct answer answers[512];
    size_t count;
};

/* The driver that is asked now. */
static struct side *on;

#define CALL(symbol, ...) (on->call.symbol(__VA_ARGS__))

/* ---- writing answers down --------------------------------------------------------------------- */

static const char *code_name(gr_cu_result code) {
    static _Thread_local char number[32];
    switch (code) {
#define CODE_NAME(name, value) \
    case value: return #name;
        GR_CU_RESULT_MAP(CODE_NAME)
#undef CODE_NAME
    default: snprintf(number, sizeof number, "code %d", code); return number;
    }
}

static void GR_PRINTF(2, 3) say(const char *question, const char *format, ...) {
    struct answer *a = &on->answers[on->count];
    if (on->count + 1 < GR_COUNT(on->answers)) on->count++;
    snprintf(a->question, sizeof a->question, "%s", question);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(a->text, sizeof a->text, format, arguments);
    va_end(arguments);
}

static gr_cu_result ask(const char *question, gr_cu_result code) {
    say(question, "%s", code_name(code));
    return code;
}

/* What a question needs before it can be asked, and what is cleaned up behind it. */
#define MUST(call) must(call, #call, __LINE__)
static void must(gr_cu_result code, const char *call, int line) {
    if (code == GR_CU_SUCCESS) return;
    printf("conformance: %s: line %d: %s: %s\n", on->name, line, call, code_name(code));
    exit(2);
}

/* ---- preparing -------------------------------------------------------------------------------- */

static struct gr_cu_mem_prop prop(void) {
    return (struct gr_cu_mem_prop){.type = GR_CU_MEM_TYPE_PINNED,
                                   .location = {GR_CU_LOCATION_DEVICE, on->device}};
}

static struct gr_cu_access access_desc(void) {
    return (struct gr_cu_access){.location = {GR_CU_LOCATION_DEVICE, on->device},
                                 .flags = GR_CU_ACCESS_READWRITE};
}

static gr_cu_ptr reserve(size_t size) {
    gr_cu_ptr ptr = 0;
    MUST(CALL(cuMemAddressReserve, &ptr, size, 0, 0, 0));
    return ptr;
}

static gr_cu_handle create(size_t size) {
    const struct gr_cu_mem_prop p = prop();
    gr_cu_handle handle = 0;
    MUST(CALL(cuMemCreate, &handle, size, &p, 0));
    return handle;
}

static gr_cu_result set_access(gr_cu_ptr ptr, size_t size) {
    const struct gr_cu_access a = access_desc();
    return CALL(cuMemSetAccess, ptr, size, &a, 1);
}

/* Addresses with memory behind them and access to it. */
static gr_cu_ptr backed(size_t size) {
    gr_cu_ptr ptr = reserve(size);
    gr_cu_handle handle = create(size);
    MUST(CALL(cuMemMap, ptr, size, 0, handle, 0));
    MUST(CALL(cuMemRelease, handle));
    MUST(set_access(ptr, size));
    return ptr;
}

static void unback(gr_cu_ptr ptr, size_t size) {
    MUST(CALL(cuMemUnmap, ptr, size));
    MUST(CALL(cuMemAddressFree, ptr, size));
}

static void on_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) exit(2);
    pthread_join(thread, NULL);
}

/* ---- without a context ------------------------------------------------------------------------ */

static void *contextless(void *when) {
    char question[80];
    const size_t g = on->granule;
    const struct gr_cu_mem_prop p = prop();
    gr_cu_context context = (gr_cu_context)&context;
    gr_cu_ptr ptr = 0, base = 0;
    gr_cu_handle handle = 0;
    gr_cu_event event = NULL;
    size_t available, total;
#define NOCTX(name, call) \
    (snprintf(question, sizeof question, "noctx, %s: %s", (const char *)when, name), ask(question, call))
    NOCTX("get current", CALL(cuCtxGetCurrent, &context));
    say("noctx: current is NULL", "%d", context == NULL);
    NOCTX("reserve", CALL(cuMemAddressReserve, &ptr, g, 0, 0, 0));
    NOCTX("create", CALL(cuMemCreate, &handle, g, &p, 0));
    NOCTX("map", CALL(cuMemMap, ptr, g, 0, handle, 0));
    NOCTX("set access", set_access(ptr, g));
    NOCTX("mem info", CALL(cuMemGetInfo, &available, &total));
    NOCTX("event create", CALL(cuEventCreate, &event, GR_CU_EVENT_DISABLE_TIMING));
    NOCTX("address range", CALL(cuMemGetAddressRange, &base, &total, ptr));
    NOCTX("mem alloc", CALL(cuMemAlloc, &base, g));
    NOCTX("context synchronize", CALL(cuCtxSynchronize));
    NOCTX("unmap", CALL(cuMemUnmap, ptr, g));
    NOCTX("release", CALL(cuMemRelease, handle));
    NOCTX("address free", CALL(cuMemAddressFree, ptr, g));
    NOCTX("pop of an empty stack", CALL(cuCtxPopCurrent, &context));
#undef NOCTX
    return NULL;
}

/* ---- addresses -------------------------------------------------------------------------------- */

static gr_cu_ptr ask_reserve(const char *question, size_t size, size_t alignment, gr_cu_ptr hint,
                             unsigned long long flags) {
    gr_cu_ptr ptr = 0;
    if (ask(question, CALL(cuMemAddressReserve, &ptr, size, alignment, hint, flags)) == GR_CU_SUCCESS)
        MUST(CALL(cuMemAddressFree, ptr, size));
    return ptr;
}

static void questions_of_addresses(void) {
    const size_t g = on->granule;
    ask_reserve("reserve size 0", 0, 0, 0, 0);
    ask_reserve("reserve alignment 3", g, 3, 0, 0);
    ask_reserve("reserve size 4097", 4097, 0, 0, 0);
    ask_reserve("reserve size 4096", 4096, 0, 0, 0);
    ask_reserve("reserve flags 1", g, 0, 0, 1);
    ask("reserve NULL out", CALL(cuMemAddressReserve, NULL, g, 0, 0, 0));
    ask_reserve("reserve 64 TiB", (size_t)1 << 46, 0, 0, 0);
    ask_reserve("reserve 1 PiB", (size_t)1 << 50, 0, 0, 0);
    gr_cu_ptr aligned = ask_reserve("reserve alignment 64 G", g, 64 * g, 0, 0);
    say("it is aligned", "%d", aligned % (64 * g) == 0);

    gr_cu_ptr p = reserve(4 * g);
    say("reserved at a multiple of G", "%d", p % g == 0);
    say("taken hint is not honoured", "%d", ask_reserve("hint inside live reservation", g, 0, p, 0) != p);
    ask_reserve("hint unaligned", g, 0, p + 1, 0);
    ask("address free half", CALL(cuMemAddressFree, p, 2 * g));
    ask("address free interior", CALL(cuMemAddressFree, p + g, 3 * g));
    ask("address free exact", CALL(cuMemAddressFree, p, 4 * g));
    ask("address free again", CALL(cuMemAddressFree, p, 4 * g));
    p = backed(2 * g);
    ask("address free while mapped", CALL(cuMemAddressFree, p, 2 * g));
    ask("unmap after that", CALL(cuMemUnmap, p, 2 * g));
    ask("address free then", CALL(cuMemAddressFree, p, 2 * g));
    ask("address free NULL", CALL(cuMemAddressFree, 0, g));
}

/* ---- physical memory -------------------------------------------------------------------------- */

static void ask_create(const char *question, size_t size, const struct gr_cu_mem_prop *p,
                       unsigned long long flags) {
    gr_cu_handle handle = 0;
    if (ask(question, CALL(cuMemCreate, &handle, size, p, flags)) == GR_CU_SUCCESS)
        MUST(CALL(cuMemRelease, handle));
}

static void questions_of_accounting(void) {
    const size_t size = 64 * on->granule;
    size_t before, created, released, unmapped, total;
    MUST(CALL(cuMemGetInfo, &before, &total));
    gr_cu_ptr ptr = reserve(size);
    gr_cu_handle handle = create(size);
    MUST(CALL(cuMemGetInfo, &created, &total));
    MUST(CALL(cuMemMap, ptr, size, 0, handle, 0));
    MUST(CALL(cuMemRelease, handle));
    MUST(CALL(cuMemGetInfo, &released, &total));
    MUST(CALL(cuMemUnmap, ptr, size));
    MUST(CALL(cuMemGetInfo, &unmapped, &total));
    MUST(CALL(cuMemAddressFree, ptr, size));
    say("create takes its size", "%d", before - created == size);
    say("release while mapped gives nothing back", "%d", released == created);
    say("unmap then gives all back", "%d", unmapped == before);
}

static void questions_of_memory(void) {
    const size_t g = on->granule;
    struct gr_cu_mem_prop p = prop();
    size_t total = 0, granularity = 0;
    gr_cu_handle handle = 0;
    MUST(CALL(cuDeviceTotalMem, &total, on->device));
    ask_create("create size 0", 0, &p, 0);
    ask_create("create size G/2", g / 2, &p, 0);
    ask_create("create size G + 1", g + 1, &p, 0);
    ask_create("create flags 1", g, &p, 1);
    ask_create("create NULL prop", g, NULL, 0);
    ask("create NULL out", CALL(cuMemCreate, NULL, g, &p, 0));
#define WITH(question, member, value) (p = prop(), p.member = value, ask_create(question, g, &p, 0))
    WITH("create device -1", location.id, -1);
    WITH("create device 99", location.id, 99);
    WITH("create type 0", type, 0);
    WITH("create location 0", location.type, 0);
    WITH("create handle type 64", requested_handle_types, 64);
    WITH("create POSIX fd", requested_handle_types, GR_CU_HANDLE_POSIX_FD);
    WITH("create RDMA flag", flags.rdma_capable, 1);
    WITH("create compressible", flags.compression_type, 1);
    WITH("create HOST", location.type, GR_CU_LOCATION_HOST);
    p = prop(), p.location = (struct gr_cu_location){GR_CU_LOCATION_HOST_NUMA, 0};
    ask_create("create HOST_NUMA 0", g, &p, 0);
    WITH("create HOST_NUMA_CURRENT", location.type, GR_CU_LOCATION_HOST_NUMA_CURRENT);
#undef WITH
    p = prop();
    ask_create("create total + 1 GiB", (total + GR_GIB) / g * g, &p, 0);
    ask_create("create small after that", g, &p, 0);
    ask("release 0", CALL(cuMemRelease, 0));
    handle = create(g);
    MUST(CALL(cuMemRelease, handle));
    ask("release twice", CALL(cuMemRelease, handle));
    ask("granularity minimum",
        CALL(cuMemGetAllocationGranularity, &granularity, &p, GR_CU_GRANULARITY_MINIMUM));
    say("it is 2 MiB", "%d", granularity == 2 * GR_MIB);
    ask("granularity recommended",
        CALL(cuMemGetAllocationGranularity, &granularity, &p, GR_CU_GRANULARITY_RECOMMENDED));
    say("it is 2 MiB too", "%d", granularity == 2 * GR_MIB);
    ask("granularity option 7", CALL(cuMemGetAllocationGranularity, &granularity, &p, 7));
    questions_of_accounting();
}

/* ---- mapping ---------------------------------------------------------------------------------- */

/* Slots of G at p: h at 0 and 1, k at 2 and again at 3, nothing from 4 to 7. */
struct layout {
    gr_cu_ptr p;
    gr_cu_handle h, k;
};

static struct layout questions_of_map(void) {
    const size_t g = on->granule;
    struct layout l = {reserve(8 * g), create(2 * g), create(g)};
    ask("map 2 G at 0", CALL(cuMemMap, l.p, 2 * g, 0, l.h, 0));
    ask("map over mapped", CALL(cuMemMap, l.p + g, g, 0, l.k, 0));
    ask("map offset G", CALL(cuMemMap, l.p + 4 * g, g, g, l.h, 0));
    ask("map beyond handle", CALL(cuMemMap, l.p + 4 * g, 4 * g, 0, l.h, 0));
    ask("map half a handle", CALL(cuMemMap, l.p + 4 * g, g, 0, l.h, 0));
    ask("map unaligned", CALL(cuMemMap, l.p + 6 * g + 4096, g, 0, l.k, 0));
    ask("map size 0", CALL(cuMemMap, l.p + 6 * g, 0, 0, l.k, 0));
    ask("map outside any reservation", CALL(cuMemMap, 0x1000000, g, 0, l.k, 0));
    ask("map flags 1", CALL(cuMemMap, l.p + 6 * g, g, 0, l.k, 1));
    ask("map handle 0", CALL(cuMemMap, l.p + 6 * g, g, 0, 0, 0));
    if (ask("map past reservation", CALL(cuMemMap, l.p + 7 * g, 2 * g, 0, l.h, 0)) == GR_CU_SUCCESS) {
        ask("address free under that", CALL(cuMemAddressFree, l.p, 8 * g));
        ask("unmap past reservation", CALL(cuMemUnmap, l.p + 7 * g, 2 * g));
    }
    ask("map k at 2", CALL(cuMemMap, l.p + 2 * g, g, 0, l.k, 0));
    ask("map k again at 3", CALL(cuMemMap, l.p + 3 * g, g, 0, l.k, 0));
    return l;
}

static void questions_of_access(struct layout l) {
    const size_t g = on->granule;
    const struct gr_cu_access good = access_desc();
    struct gr_cu_access a = good;
    unsigned long long flags = 77;
    ask("set access over 2 mappings", set_access(l.p, 3 * g));
    ask("set access first half of a mapping", set_access(l.p, g));
    ask("set access second half", set_access(l.p + g, g));
    ask("set access spanning a hole", set_access(l.p, 8 * g));
    ask("set access unmapped", set_access(l.p + 6 * g, g));
    ask("set access count 0", CALL(cuMemSetAccess, l.p, 2 * g, &good, 0));
    ask("set access NULL", CALL(cuMemSetAccess, l.p, 2 * g, NULL, 1));
    a.location.id = 99;
    ask("set access device 99", CALL(cuMemSetAccess, l.p, 2 * g, &a, 1));
    a = good, a.flags = 2;
    ask("set access flags 2", CALL(cuMemSetAccess, l.p, 2 * g, &a, 1));
    a = good, a.location = (struct gr_cu_location){GR_CU_LOCATION_HOST, 0};
    ask("set access HOST on device memory", CALL(cuMemSetAccess, l.p, 2 * g, &a, 1));
    a.location.type = GR_CU_LOCATION_HOST_NUMA;
    ask("set access HOST_NUMA on device memory", CALL(cuMemSetAccess, l.p, 2 * g, &a, 1));
    ask("get access", CALL(cuMemGetAccess, &flags, &good.location, l.p));
    say("its flags", "%llu", flags);
    ask("get access where none was set", CALL(cuMemGetAccess, &flags, &good.location, l.p + 3 * g));
    say("its flags then", "%llu", flags);
    ask("get access unmapped", CALL(cuMemGetAccess, &flags, &good.location, l.p + 6 * g));
}

static void questions_of_lookup(struct layout l) {
    const size_t g = on->granule;
    gr_cu_ptr base = 0, plain = 0;
    gr_cu_handle again = 0;
    size_t size = 0;
    ask("address range of 2nd mapping", CALL(cuMemGetAddressRange, &base, &size, l.p + 2 * g + 16));
    say("it is that mapping", "%lld + %zu G", (long long)(base - l.p) / (long long)g, size / g);
    ask("address range unmapped", CALL(cuMemGetAddressRange, &base, &size, l.p + 6 * g));
    if (ask("retain interior", CALL(cuMemRetainAllocationHandle, &again,
                                    (void *)(uintptr_t)(l.p + 2 * g + 100))) == GR_CU_SUCCESS)
        MUST(CALL(cuMemRelease, again));
    say("it is the same value", "%d", again == l.k);
    ask("retain unmapped", CALL(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)(l.p + 6 * g)));
    MUST(CALL(cuMemAlloc, &plain, g));
    ask("retain of cuMemAlloc memory", CALL(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)plain));
    ask("unmap of cuMemAlloc memory", CALL(cuMemUnmap, plain, g));
    ask("cuMemFree of a mapping", CALL(cuMemFree, l.p));
    ask("cuMemFree interior", CALL(cuMemFree, plain + 512));
    ask("cuMemFree of cuMemAlloc memory", CALL(cuMemFree, plain));
    ask("cuMemFree twice", CALL(cuMemFree, plain));
    ask("cuMemFree NULL", CALL(cuMemFree, 0));
    ask("cuMemAlloc size 0", CALL(cuMemAlloc, &plain, 0));
}

static void questions_of_unmap(struct layout l) {
    const size_t g = on->granule;
    gr_cu_ptr fresh = reserve(4 * g);
    ask("unmap in a fresh reservation", CALL(cuMemUnmap, fresh, g));
    ask("unmap a fresh reservation", CALL(cuMemUnmap, fresh, 4 * g));
    ask("unmap past a fresh reservation", CALL(cuMemUnmap, fresh + 3 * g, 2 * g));
    MUST(CALL(cuMemMap, fresh + g, g, 0, l.k, 0));
    ask("unmap a hole before a mapping", CALL(cuMemUnmap, fresh, g));
    ask("unmap a hole after a mapping", CALL(cuMemUnmap, fresh + 2 * g, g));
    ask("unmap a hole and a mapping", CALL(cuMemUnmap, fresh, 2 * g));
    ask("map where that was", CALL(cuMemMap, fresh + g, g, 0, l.k, 0));
    ask("unmap a mapping and a hole", CALL(cuMemUnmap, fresh + g, 2 * g));
    for (int i = 0; i < 4; i++) (void)CALL(cuMemUnmap, fresh + i * g, g); /* whatever the answers left */
    MUST(CALL(cuMemAddressFree, fresh, 4 * g));
    ask("unmap in a freed reservation", CALL(cuMemUnmap, fresh, g));
    ask("unmap outside any reservation", CALL(cuMemUnmap, 0x1000000, g));
    ask("unmap half of a mapping", CALL(cuMemUnmap, l.p, g));
    ask("unmap a mapping and half of the next", CALL(cuMemUnmap, l.p + g, 2 * g));
    ask("unmap size 0", CALL(cuMemUnmap, l.p, 0));
    ask("unmap unaligned", CALL(cuMemUnmap, l.p + 4096, g));
    ask("unmap 2 mappings at once", CALL(cuMemUnmap, l.p, 3 * g));
    ask("unmap again", CALL(cuMemUnmap, l.p, 3 * g));
    ask("unmap never mapped beside mapped", CALL(cuMemUnmap, l.p + 5 * g, g));
    for (int i = 0; i < 4; i++) (void)CALL(cuMemUnmap, l.p + i * g, g);
    (void)CALL(cuMemUnmap, l.p, 2 * g);

    gr_cu_ptr s = reserve(2 * g), next = 0;
    MUST(CALL(cuMemAddressReserve, &next, 2 * g, 0, s + 2 * g, 0));
    say("a free hint is honoured", "%d", next == s + 2 * g);
    gr_cu_result across = next == s + 2 * g ? CALL(cuMemMap, s + g, 2 * g, 0, l.h, 0) : GR_CU_UNKNOWN;
    ask("map across two reservations", across);
    ask("unmap that", across == GR_CU_SUCCESS ? CALL(cuMemUnmap, s + g, 2 * g) : GR_CU_UNKNOWN);
    MUST(CALL(cuMemAddressFree, next, 2 * g));
    MUST(CALL(cuMemAddressFree, s, 2 * g));
}

static void questions_of_mapping(void) {
    struct layout l = questions_of_map();
    questions_of_access(l);
    questions_of_lookup(l);
    questions_of_unmap(l);
    MUST(CALL(cuMemRelease, l.h));
    MUST(CALL(cuMemRelease, l.k));
    MUST(CALL(cuMemAddressFree, l.p, 8 * on->granule));
}

#include "conformance_capture.h"

/* ---- both sides ------------------------------------------------------------------------------- */

static bool is_complete(const struct gr_table *call) {
    bool complete = true;
#define GR_ENTRY(symbol, version, need, kind, parameters) complete = complete && call->symbol != NULL;
#include "driver/entries.def"
#undef GR_ENTRY
    return complete;
}

static void ask_all(struct side *side, int device) {
    on = side;
    int reaches = -1;
    MUST(CALL(cuDeviceGet, &on->device, device));
    ask("a device as its own peer", CALL(cuDeviceCanAccessPeer, &reaches, on->device, on->device));
    say("a device reaches itself as a peer", "%d", reaches);
    ask("a peer that is not there", CALL(cuDeviceCanAccessPeer, &reaches, 999, on->device));
    const struct gr_cu_mem_prop p = prop();
    MUST(CALL(cuMemGetAllocationGranularity, &on->granule, &p, GR_CU_GRANULARITY_MINIMUM));
    on_thread(contextless, (void *)"before any");
    MUST(CALL(cuDevicePrimaryCtxRetain, &on->context, on->device));
    on_thread(contextless, (void *)"one elsewhere");
    MUST(CALL(cuCtxPushCurrent, on->context));
    questions_of_addresses();
    questions_of_memory();
    questions_of_mapping();
    questions_of_capture();
    MUST(CALL(cuCtxPopCurrent, &on->context));
    MUST(CALL(cuDevicePrimaryCtxRelease, on->device));
}

static int ask_sim(struct side *side, int device) {
    struct granary_sim_config config;
    granary_sim_config_init(&config);
    config.strict = 0;
    config.devices = device + 1;
    if (granary_sim_open(&config) != GRANARY_OK) return 2;
    gr_sim_table(&side->call);
    on = side;
    MUST(CALL(cuInit, 0));
    ask_all(side, device);
    if (granary_sim_close() == GRANARY_OK) return 0;
    printf("conformance: something is still held in the simulation\n");
    return 2;
}

static int ask_cuda(struct side *side, int device) {
    char reason[GR_REASON_ROOM];
    void *library;
    int count = 0;
    if (gr_load_table(&side->call, &library, reason) != GRANARY_OK) {
        printf("conformance: %s\n", reason);
        return 77;
    }
    on = side;
    if (!is_complete(&side->call) || CALL(cuInit, 0) != GR_CU_SUCCESS ||
        CALL(cuDeviceGetCount, &count) != GR_CU_SUCCESS || device >= count) {
        printf("conformance: no device %d, or its driver is older than the questions\n", device);
        return 77;
    }
    ask_all(side, device);
    return 0;
}

static int compare(const struct side *a, const struct side *b, bool print) {
    size_t differ = 0, count = a->count < b->count ? a->count : b->count;
    for (size_t i = 0; i < count; i++) {
        const struct answer *x = &a->answers[i], *y = &b->answers[i];
        /* After an answer that decides whether another question is asked, the lists may part. */
        if (strcmp(x->question, y->question) != 0) {
            printf("PARTED  '%s' on one side, '%s' on the other\n", x->question, y->question);
            return 1;
        }
        bool same = strcmp(x->text, y->text) == 0;
        differ += !same;
        if (!same)
            printf("DIFFERS %-52s %s: %s   %s: %s\n", x->question, a->name, x->text, b->name, y->text);
        else if (print)
            printf("        %-52s %s\n", x->question, x->text);
    }
    printf("conformance: %zu questions, %zu differences\n", count, differ);
    return differ > 0 || a->count != b->count;
}

int main(int argc, char **argv) {
    static struct side sim = {.name = "sim"}, cuda = {.name = "cuda"};
    bool print = false, sim_only = false;
    int device = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--print") == 0)
            print = true;
        else if (strcmp(argv[i], "--sim-only") == 0)
            sim_only = true;
        else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            device = atoi(argv[++i]);
        else
            return fprintf(stderr, "usage: conformance [--print] [--sim-only] [--device N]\n"), 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(180); /* a question that hangs is an answer too */
    if (sim_only) cuda.name = "sim again";
    int status = ask_sim(&sim, device);
    if (status == 0) status = sim_only ? ask_sim(&cuda, device) : ask_cuda(&cuda, device);
    return status != 0 ? status : compare(&sim, &cuda, print);
}
