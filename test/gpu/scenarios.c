/* SPDX-License-Identifier: Apache-2.0
 * The same scenarios on the simulated and on the real driver: contents verified, figures compared.
 *
 * Usage: scenarios [--sim-only]. Each scenario writes one line of figures; the lines of the two
 * drivers must be equal. Exit status 0: equal, and all contents right; 1: not; 77: no GPU. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <granary/sim.h>

#include "gpu/world.h"

/* ---- memory ------------------------------------------------------------------------------- */

static void random_traffic(struct world *w, int expandable) {
    enum { SLOTS = 64, STEPS = 3000 };
    struct {
        void *ptr;
        size_t size;
        int value;
    } live[SLOTS] = {{0}};
    granary *g = open_with(w, expandable, (size_t)2 << 30);
    granary_stream stream[2];
    uint64_t seed = 7;
    for (int s = 0; s < 2; s++) OK(w, g, granary_stream_create(g, &stream[s]));
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned slot = (unsigned)(seed >> 33) % SLOTS, s = slot % 2;
        if (live[slot].ptr) {
            w->call.cuStreamSynchronize(stream[s]);
            check(w, live[slot].ptr, live[slot].size, live[slot].value);
            OK(w, g, granary_free(g, live[slot].ptr));
            live[slot].ptr = NULL;
        } else {
            live[slot].size = 1 + (size_t)((seed >> 20) % ((uint64_t)1 << (9 + (seed >> 50) % 17)));
            live[slot].value = step;
            OK(w, g, granary_alloc(g, live[slot].size, stream[s], &live[slot].ptr));
            fill(w, live[slot].ptr, live[slot].size, step, stream[s]);
        }
        if (step % 500 == 499) OK(w, g, granary_trim(g, 0, NULL));
    }
    w->call.cuCtxSynchronize();
    for (int i = 0; i < SLOTS; i++) {
        if (!live[i].ptr) continue;
        check(w, live[i].ptr, live[i].size, live[i].value);
        OK(w, g, granary_free(g, live[i].ptr));
    }
    struct granary_stats stats = stats_of(g);
    /* What is reserved depends on how soon the device is done with what was freed. */
    say(w, "peak active %lld", (long long)stats.active_bytes.all.peak);
    EXPECT(w, stats.reserved_bytes.all.peak >= stats.active_bytes.all.peak);
    for (int s = 0; s < 2; s++) OK(w, g, granary_stream_destroy(g, stream[s]));
    finish(w, g);
}

static void expandable_traffic(struct world *w) {
    random_traffic(w, 1);
}
static void classic_traffic(struct world *w) {
    random_traffic(w, 0);
}

static void trim_gives_memory_to_others(struct world *w) {
    granary *g = open_with(w, 1, GRANARY_UNLIMITED);
    void *p[64];
    size_t before = driver_free(w), released = 0;
    for (int i = 0; i < 64; i++) OK(w, g, granary_alloc(g, (size_t)64 << 20, NULL, &p[i]));
    size_t taken = before - driver_free(w);
    for (int i = 0; i < 64; i++) OK(w, g, granary_free(g, p[i]));
    OK(w, g, granary_trim(g, 0, &released));
    say(w, "taken %zu released %zu missing %zu", taken >> 20, released >> 20,
        (before - driver_free(w)) >> 20);
    finish(w, g);
}

/* A thread of the library's own gives back what is idle, while the caller is busy with something else. */
static void idle_memory_goes_back_without_a_call(struct world *w) {
    enum { BLOCKS = 16, KEPT_MIB = 256 };
    struct granary_options options;
    granary_stream stream;
    void *p[BLOCKS], *live;
    granary_options_init(&options);
    options.trim_above = (size_t)KEPT_MIB << 20;
    granary *g = open_as(w, &options);
    OK(w, g, granary_stream_create(g, &stream));
    size_t before = driver_free(w);
    OK(w, g, granary_alloc(g, (size_t)64 << 20, stream, &live));
    fill(w, live, (size_t)64 << 20, 7, stream);
    for (int i = 0; i < BLOCKS; i++) {
        OK(w, g, granary_alloc(g, (size_t)64 << 20, stream, &p[i]));
        fill(w, p[i], (size_t)64 << 20, i, stream);
    }
    size_t taken = before - driver_free(w), left = taken;
    for (int i = 0; i < BLOCKS; i++) OK(w, g, granary_free(g, p[i]));
    for (int i = 0; i < 5000 && left > options.trim_above; i++) {
        usleep(1000);
        left = before - driver_free(w);
    }
    check(w, live, (size_t)64 << 20, 7);
    say(w, "taken %zu, kept at most %d: %s", taken >> 20, KEPT_MIB,
        left <= options.trim_above ? "yes" : "no");
    OK(w, g, granary_free(g, live));
    OK(w, g, granary_stream_destroy(g, stream));
    finish(w, g);
}

static void neighbours_merge(struct world *w) {
    granary *g = open_with(w, 1, GRANARY_UNLIMITED);
    void *a, *b, *c;
    OK(w, g, granary_alloc(g, (size_t)382 << 20, NULL, &a));
    OK(w, g, granary_alloc(g, (size_t)382 << 20, NULL, &b));
    OK(w, g, granary_free(g, a));
    OK(w, g, granary_free(g, b));
    OK(w, g, granary_alloc(g, (size_t)764 << 20, NULL, &c));
    say(w, "same %d reserved %lld", c == a, (long long)stats_of(g).reserved_bytes.all.peak >> 20);
    OK(w, g, granary_free(g, c));
    finish(w, g);
}

static void streams_share_a_small_card(struct world *w) {
    granary *g = open_with(w, 1, (size_t)64 << 20);
    granary_stream a, b;
    void *pa[16], *pb[16], *all;
    OK(w, g, granary_stream_create(g, &a));
    OK(w, g, granary_stream_create(g, &b));
    for (int i = 0; i < 16; i++) {
        OK(w, g, granary_alloc(g, (size_t)2 << 20, a, &pa[i]));
        fill(w, pa[i], (size_t)2 << 20, i, a);
        OK(w, g, granary_alloc(g, (size_t)2 << 20, b, &pb[i]));
        fill(w, pb[i], (size_t)2 << 20, i, b);
    }
    for (int i = 0; i < 16; i++) {
        OK(w, g, granary_free(g, pa[i]));
        OK(w, g, granary_free(g, pb[i]));
    }
    OK(w, g, granary_alloc(g, (size_t)64 << 20, a, &all));
    fill(w, all, (size_t)64 << 20, 99, a);
    w->call.cuStreamSynchronize(a);
    check(w, all, (size_t)64 << 20, 99);
    struct granary_stats stats = stats_of(g);
    say(w, "reserved %lld moved %lld", (long long)stats.reserved_bytes.all.current >> 20,
        (long long)stats.moved_bytes >> 20);
    OK(w, g, granary_free(g, all));
    OK(w, g, granary_stream_destroy(g, a));
    OK(w, g, granary_stream_destroy(g, b));
    finish(w, g);
}

static void giving_up_memory_waits_for_its_work(struct world *w) {
    granary *g = open_with(w, 1, GRANARY_UNLIMITED);
    granary_stream a;
    void *p;
    OK(w, g, granary_stream_create(g, &a));
    for (int i = 0; i < (w->simulated ? 20 : 200); i++) {
        OK(w, g, granary_alloc(g, (size_t)28 << 20, a, &p));
        fill(w, p, (size_t)28 << 20, i, a);
        OK(w, g, granary_free(g, p));
        OK(w, g, granary_trim(g, 0, NULL));
    }
    EXPECT(w, w->call.cuStreamSynchronize(a) == GR_CU_SUCCESS);
    say(w, "left %lld", (long long)stats_of(g).reserved_bytes.all.current);
    OK(w, g, granary_stream_destroy(g, a));
    finish(w, g);
}

static void memory_stranded_on_many_streams_is_found(struct world *w) {
    granary *g = open_with(w, 1, (size_t)66 << 30);
    granary_stream stream[33];
    void *p[32], *all;
    for (int i = 0; i < 33; i++) OK(w, g, granary_stream_create(g, &stream[i]));
    for (int i = 0; i < 32; i++) {
        OK(w, g, granary_alloc(g, (size_t)2 << 30, stream[i], &p[i]));
        fill(w, p[i], 4096, i, stream[i]);
    }
    for (int i = 0; i < 32; i++) OK(w, g, granary_free(g, p[i]));
    w->call.cuCtxSynchronize(); /* the caller's own: its work is done */
    struct granary_driver_calls calls = {.struct_size = sizeof(calls)};
    OK(w, g, granary_get_driver_calls(g, &calls));
    uint64_t before = calls.synchronize;
    OK(w, g, granary_alloc(g, (size_t)60 << 30, stream[32], &all));
    OK(w, g, granary_get_driver_calls(g, &calls));
    fill(w, all, (size_t)1 << 20, 7, stream[32]);
    w->call.cuStreamSynchronize(stream[32]);
    check(w, all, (size_t)1 << 20, 7);
    struct granary_stats stats = stats_of(g);
    say(w, "reserved %lld GiB, moved %lld GiB, synchronised %llu times",
        (long long)stats.reserved_bytes.all.peak >> 30, (long long)stats.moved_bytes >> 30,
        (unsigned long long)(calls.synchronize - before));
    OK(w, g, granary_free(g, all));
    for (int i = 0; i < 33; i++) OK(w, g, granary_stream_destroy(g, stream[i]));
    finish(w, g);
}

static void limit_is_exact(struct world *w) {
    granary *g = open_with(w, 1, (size_t)100 << 20);
    void *p = NULL, *q = NULL;
    int over = granary_alloc(g, ((size_t)100 << 20) + 1, NULL, &p);
    OK(w, g, granary_alloc(g, (size_t)100 << 20, NULL, &p));
    int more = granary_alloc(g, 1, NULL, &q);
    OK(w, g, granary_set_limit(g, (size_t)102 << 20));
    OK(w, g, granary_alloc(g, 1, NULL, &q));
    say(w, "%s %s reserved %lld", granary_status_name(over), granary_status_name(more),
        (long long)stats_of(g).reserved_bytes.all.current >> 20);
    OK(w, g, granary_free(g, p));
    OK(w, g, granary_free(g, q));
    finish(w, g);
}

static void bad_pointers_are_refused(struct world *w) {
    granary *g = open_with(w, 1, GRANARY_UNLIMITED);
    char *p;
    OK(w, g, granary_alloc(g, 1 << 20, NULL, (void **)&p));
    say(w, "%d %d ", granary_free(g, p + 512), granary_free(g, (void *)100));
    OK(w, g, granary_free(g, p));
    say(w, "%d", granary_free(g, p));
    finish(w, g);
}

/* ---- stream order ------------------------------------------------------------------------- */

static void pending_memory_is_waited_for(struct world *w) {
    granary *g = open_with(w, 1, (size_t)512 << 20);
    granary_stream a, b;
    void *p, *q;
    OK(w, g, granary_stream_create(g, &a));
    OK(w, g, granary_stream_create(g, &b));
    OK(w, g, granary_alloc(g, (size_t)384 << 20, a, &p));
    OK(w, g, granary_record_stream(g, p, b));
    for (int i = 0; i < (w->simulated ? 1 : 200); i++) fill(w, p, (size_t)384 << 20, i, b);
    OK(w, g, granary_free(g, p));
    OK(w, g, granary_alloc(g, (size_t)384 << 20, a, &q));
    fill(w, q, (size_t)384 << 20, 200, a);
    w->call.cuCtxSynchronize();
    check(w, q, (size_t)384 << 20, 200);
    struct granary_stats stats = stats_of(g);
    say(w, "same %d reserved %lld out of memory %lld", p == q, (long long)stats.reserved_bytes.all.peak >> 20,
        (long long)stats.out_of_memory);
    OK(w, g, granary_free(g, q));
    OK(w, g, granary_stream_destroy(g, a));
    OK(w, g, granary_stream_destroy(g, b));
    finish(w, g);
}

/* ---- two devices -------------------------------------------------------------------------- */

static bool can_fill(struct world *w, void *ptr, size_t size, int value, granary_stream stream) {
    return w->call.cuMemsetD8Async((gr_cu_ptr)(uintptr_t)ptr, (unsigned char)value, size, stream) ==
           GR_CU_SUCCESS;
}

/* Memory of device 0 that work of device 1 writes to: what was mapped, what is mapped later, and what moves; and a
 * block that waits for a stream of device 1. */
static void a_peer_touches_memory(struct world *w) {
    struct granary_options options;
    int devices = 0;
    EXPECT(w, w->call.cuDeviceGetCount(&devices) == GR_CU_SUCCESS);
    if (devices < 2) {
        say(w, "one device");
        return;
    }
    granary_options_init(&options);
    options.limit_bytes = (size_t)512 << 20;
    granary *g = open_on(w, 0, &options), *other = open_on(w, 1, &options);
    granary_stream own, far;
    void *small, *large, *grown, *moved;
    OK(w, g, granary_stream_create(g, &own));
    OK(w, other, granary_stream_create(other, &far));
    OK(w, g, granary_alloc(g, 4096, own, &small));
    OK(w, g, granary_alloc(g, (size_t)64 << 20, own, &large));
    say(w, "before %d %d ", can_fill(w, small, 4096, 1, far), can_fill(w, large, (size_t)64 << 20, 1, far));
    OK(w, g, granary_allow_peer(g, 1));
    OK(w, g, granary_alloc(g, (size_t)384 << 20, own, &grown));
    fill(w, small, 4096, 2, far);
    fill(w, large, (size_t)64 << 20, 3, far);
    fill(w, grown, (size_t)384 << 20, 4, far);
    EXPECT(w, w->call.cuStreamSynchronize(far) == GR_CU_SUCCESS);
    check(w, small, 4096, 2);
    check(w, large, (size_t)64 << 20, 3);
    check(w, grown, (size_t)384 << 20, 4);
    OK(w, g, granary_free(g, grown));
    OK(w, g, granary_alloc(g, (size_t)300 << 20, NULL, &moved));
    fill(w, moved, (size_t)300 << 20, 5, far);
    OK(w, g, granary_record_stream(g, moved, far));
    OK(w, g, granary_free(g, moved));
    EXPECT(w, w->call.cuStreamSynchronize(far) == GR_CU_SUCCESS);
    struct granary_stats stats = stats_of(g);
    say(w, "moved %d pending %lld reserved %lld", stats.moved_bytes > 0, (long long)stats.pending_blocks,
        (long long)stats.reserved_bytes.all.peak >> 20);
    OK(w, g, granary_free(g, small));
    OK(w, g, granary_free(g, large));
    OK(w, g, granary_stream_destroy(g, own));
    OK(w, other, granary_stream_destroy(other, far));
    finish(w, other);
    finish(w, g);
}

/* n blocks of 4 MiB in a capture on `a`, each used on `sides` other streams, joined back or not; the
 * graph is replayed three times and every block's contents are copied out and verified. */
static void capture_shape(struct world *w, int mode, int sides, bool join, int n, int reuse, int marker) {
    const size_t size = (size_t)4 << 20;
    struct granary_options options;
    granary *g = NULL;
    granary_stream a, side[3];
    gr_cu_event fork_event, join_event[3];
    granary_pool pool;
    granary_capture capture;
    gr_cu_graph graph = NULL;
    gr_cu_graph_exec exec = NULL;
    void *out;
    granary_options_init(&options);
    options.driver = w->simulated ? GRANARY_DRIVER_SIM : GRANARY_DRIVER_CUDA;
    options.capture_reuse = reuse;
    options.capture_marker = marker;
    EXPECT(w, granary_open(0, &options, &g) == GRANARY_OK);
    OK(w, g, granary_stream_create(g, &a));
    EXPECT(w, w->call.cuEventCreate(&fork_event, GR_CU_EVENT_DISABLE_TIMING) == GR_CU_SUCCESS);
    for (int s = 0; s < sides; s++) {
        OK(w, g, granary_stream_create(g, &side[s]));
        EXPECT(w, w->call.cuEventCreate(&join_event[s], GR_CU_EVENT_DISABLE_TIMING) == GR_CU_SUCCESS);
    }
    OK(w, g, granary_alloc(g, (size_t)n * 4096, NULL, &out));
    OK(w, g, granary_pool_create(g, NULL, &pool));
    OK(w, g, granary_capture_begin(g, pool, a, &capture));
    EXPECT(w, w->call.cuStreamBeginCapture(a, mode) == GR_CU_SUCCESS);
    for (int i = 0; i < n; i++) {
        void *p;
        OK(w, g, granary_alloc(g, size, a, &p));
        fill(w, p, size, i + 1, a);
        w->call.cuEventRecord(fork_event, a);
        for (int s = 0; s < sides; s++) {
            w->call.cuStreamWaitEvent(side[s], fork_event, 0);
            /* Each side stream reads its own piece of the block. */
            EXPECT(w, w->call.cuMemcpyDtoDAsync(
                          (gr_cu_ptr)(uintptr_t)out + (size_t)i * 4096 + (size_t)s * 1024,
                          (gr_cu_ptr)(uintptr_t)p + (size_t)s * 1024, 1024, side[s]) == GR_CU_SUCCESS);
            OK(w, g, granary_record_stream(g, p, side[s]));
            w->call.cuEventRecord(join_event[s], side[s]);
            if (join || i == n - 1) w->call.cuStreamWaitEvent(a, join_event[s], 0);
        }
        OK(w, g, granary_free(g, p));
    }
    EXPECT(w, w->call.cuStreamEndCapture(a, &graph) == GR_CU_SUCCESS);
    OK(w, g, granary_capture_end(g, capture));
    struct granary_pool_stats stats = {.struct_size = sizeof(stats)};
    OK(w, g, granary_pool_get_stats(g, pool, &stats));
    size_t nodes = 0;
    w->call.cuGraphGetNodes(graph, NULL, &nodes);
    say(w, "%lld MiB %zu nodes; ", (long long)stats.reserved_bytes >> 20, nodes);
    EXPECT(w, stats.pending_blocks == 0);
    EXPECT(w, w->call.cuGraphInstantiateWithFlags(&exec, graph, 0) == GR_CU_SUCCESS);
    unsigned char *host = malloc((size_t)n * 4096);
    for (int launch = 0; launch < 3; launch++) {
        fill(w, out, (size_t)n * 4096, 0, a);
        EXPECT(w, w->call.cuGraphLaunch(exec, a) == GR_CU_SUCCESS);
        w->call.cuStreamSynchronize(a);
        w->call.cuMemcpyDtoH(host, (gr_cu_ptr)(uintptr_t)out, (size_t)n * 4096);
        int wrong = 0;
        for (int i = 0; i < n; i++)
            for (int s = 0; s < sides; s++)
                for (int k = 0; k < 1024; k++)
                    wrong += host[i * 4096 + s * 1024 + k] != (unsigned char)(i + 1);
        EXPECT(w, wrong == 0);
    }
    free(host);
    w->call.cuGraphExecDestroy(exec);
    w->call.cuGraphDestroy(graph);
    OK(w, g, granary_pool_release(g, pool));
    OK(w, g, granary_free(g, out));
    OK(w, g, granary_trim(g, 0, NULL));
    EXPECT(w, stats_of(g).reserved_bytes.all.current == 0);
    w->call.cuEventDestroy(fork_event);
    for (int s = 0; s < sides; s++) {
        w->call.cuEventDestroy(join_event[s]);
        OK(w, g, granary_stream_destroy(g, side[s]));
    }
    OK(w, g, granary_stream_destroy(g, a));
    finish(w, g);
}

static void captures_joined(struct world *w) {
    for (int mode = 0; mode < 3; mode++)
        for (int sides = 1; sides <= 3; sides += 2)
            for (int marker = 0; marker < 2; marker++)
                capture_shape(w, mode, sides, true, 40, GRANARY_REUSE_STREAM, marker);
}
static void captures_not_joined(struct world *w) {
    for (int mode = 0; mode < 3; mode++)
        for (int sides = 1; sides <= 3; sides += 2)
            capture_shape(w, mode, sides, false, 20, GRANARY_REUSE_STREAM, 0);
}
static void captures_without_reuse(struct world *w) {
    capture_shape(w, 0, 1, true, 20, GRANARY_REUSE_OFF, 0);
    capture_shape(w, 0, 3, true, 20, GRANARY_REUSE_GRAPH, 0);
}

struct side_thread {
    struct world *w;
    granary *g;
    granary_stream own, other;
    atomic_bool stop;
    atomic_long rounds;
};

static void *allocate_meanwhile(void *argument) {
    struct side_thread *t = argument;
    t->w->call.cuCtxPushCurrent(t->w->context);
    while (!atomic_load(&t->stop)) {
        void *p;
        OK(t->w, t->g, granary_alloc(t->g, (size_t)(1 + atomic_load(&t->rounds) % 40) << 18, t->own, &p));
        fill(t->w, p, 4096, 1, t->other);
        OK(t->w, t->g, granary_record_stream(t->g, p, t->other));
        OK(t->w, t->g, granary_free(t->g, p));
        atomic_fetch_add(&t->rounds, 1);
    }
    gr_cu_context popped;
    t->w->call.cuCtxPopCurrent(&popped);
    return NULL;
}

static void capture_beside_a_busy_thread(struct world *w) {
    granary *g = open_with(w, 1, GRANARY_UNLIMITED);
    struct side_thread t = {.w = w, .g = g};
    granary_stream a;
    granary_pool pool;
    pthread_t thread;
    int good = 0;
    OK(w, g, granary_stream_create(g, &a));
    OK(w, g, granary_stream_create(g, &t.own));
    OK(w, g, granary_stream_create(g, &t.other));
    OK(w, g, granary_pool_create(g, NULL, &pool));
    pthread_create(&thread, NULL, allocate_meanwhile, &t);
    while (atomic_load(&t.rounds) == 0) sched_yield();
    for (int round = 0; round < 60; round++) {
        granary_capture capture;
        gr_cu_graph graph = NULL;
        void *p[8];
        OK(w, g, granary_capture_begin(g, pool, a, &capture));
        EXPECT(w, w->call.cuStreamBeginCapture(a, GR_CU_CAPTURE_MODE_GLOBAL) == GR_CU_SUCCESS);
        for (int i = 0; i < 8; i++) {
            OK(w, g, granary_alloc(g, (size_t)3 << 20, a, &p[i]));
            fill(w, p[i], (size_t)3 << 20, i, a);
        }
        for (int i = 0; i < 8; i++) OK(w, g, granary_free(g, p[i]));
        good += w->call.cuStreamEndCapture(a, &graph) == GR_CU_SUCCESS;
        OK(w, g, granary_capture_end(g, capture));
        if (graph) w->call.cuGraphDestroy(graph);
    }
    atomic_store(&t.stop, true);
    pthread_join(thread, NULL);
    say(w, "%d of 60 captures good", good);
    w->call.cuCtxSynchronize();
    OK(w, g, granary_pool_release(g, pool));
    OK(w, g, granary_stream_destroy(g, a));
    OK(w, g, granary_stream_destroy(g, t.own));
    OK(w, g, granary_stream_destroy(g, t.other));
    finish(w, g);
}

static void capture_without_memory_stays_valid(struct world *w) {
    granary *g = open_with(w, 1, (size_t)700 << 20);
    granary_stream a;
    granary_pool pool;
    granary_capture capture;
    gr_cu_graph graph = NULL;
    void *p, *q;
    OK(w, g, granary_stream_create(g, &a));
    OK(w, g, granary_pool_create(g, NULL, &pool));
    OK(w, g, granary_capture_begin(g, pool, a, &capture));
    EXPECT(w, w->call.cuStreamBeginCapture(a, GR_CU_CAPTURE_MODE_GLOBAL) == GR_CU_SUCCESS);
    OK(w, g, granary_alloc(g, (size_t)600 << 20, a, &p));
    fill(w, p, (size_t)600 << 20, 1, a);
    OK(w, g, granary_free(g, p));
    int status = granary_alloc(g, (size_t)1 << 30, a, &q);
    int end = w->call.cuStreamEndCapture(a, &graph);
    OK(w, g, granary_capture_end(g, capture));
    say(w, "%s end %d graph %d", granary_status_name(status), end, graph != NULL);
    if (graph) w->call.cuGraphDestroy(graph);
    OK(w, g, granary_pool_release(g, pool));
    OK(w, g, granary_stream_destroy(g, a));
    finish(w, g);
}

/* ---- running ------------------------------------------------------------------------------ */

static const struct scenario {
    const char *name;
    void (*run)(struct world *w);
} scenarios[] = {
    {"random traffic, expandable", expandable_traffic},
    {"random traffic, classic", classic_traffic},
    {"trim gives memory to others", trim_gives_memory_to_others},
    {"idle memory goes back without a call", idle_memory_goes_back_without_a_call},
    {"neighbours merge", neighbours_merge},
    {"streams share a small card", streams_share_a_small_card},
    {"giving up memory waits for its work", giving_up_memory_waits_for_its_work},
    {"memory stranded on many streams is found", memory_stranded_on_many_streams_is_found},
    {"the limit is exact", limit_is_exact},
    {"bad pointers are refused", bad_pointers_are_refused},
    {"a peer touches memory", a_peer_touches_memory},
    {"pending memory is waited for", pending_memory_is_waited_for},
    {"captures, joined", captures_joined},
    {"captures, not joined", captures_not_joined},
    {"captures without reuse, and graph-wide", captures_without_reuse},
    {"a capture beside a busy thread", capture_beside_a_busy_thread},
    {"a capture without memory stays valid", capture_without_memory_stays_valid},
};

static bool prepare(struct world *w) {
    char reason[GR_REASON_ROOM];
    void *library;
    struct granary_sim_config config;
    gr_cu_device device;
    if (w->simulated) {
        granary_sim_config_init(&config);
        config.backing = GRANARY_SIM_MEMORY;
        config.devices = w->devices;
        if (granary_sim_open(&config) != GRANARY_OK) return false;
        gr_sim_table(&w->call);
    } else if (gr_load_table(&w->call, &library, reason) != GRANARY_OK) {
        printf("no driver: %s\n", reason);
        return false;
    }
    if (w->call.cuInit(0) != GR_CU_SUCCESS || w->call.cuDeviceGet(&device, 0) != GR_CU_SUCCESS) return false;
    return w->call.cuDevicePrimaryCtxRetain(&w->context, device) == GR_CU_SUCCESS &&
           w->call.cuCtxPushCurrent(w->context) == GR_CU_SUCCESS;
}

int main(int argc, char **argv) {
    static struct world sim = {.simulated = true, .devices = 2}, cuda;
    bool sim_only = argc > 1 && strcmp(argv[1], "--sim-only") == 0;
    int differences = 0;
    if (!sim_only && !prepare(&cuda)) {
        printf("scenarios: skipped, no GPU\n");
        return 77;
    }
    if (!sim_only && cuda.call.cuDeviceGetCount(&sim.devices) == GR_CU_SUCCESS)
        sim.devices = sim.devices > 1 ? 2 : 1;
    if (!prepare(&sim)) return 1;
    for (size_t i = 0; i < GR_COUNT(scenarios); i++) {
        sim.line[0] = cuda.line[0] = 0;
        scenarios[i].run(&sim);
        if (!sim_only) scenarios[i].run(&cuda);
        bool same = sim_only || strcmp(sim.line, cuda.line) == 0;
        differences += !same;
        printf("%-40s %s\n", scenarios[i].name, same ? sim.line : "differs:");
        if (!same) printf("  sim  %s\n  cuda %s\n", sim.line, cuda.line);
        fflush(stdout);
    }
    printf("%zu scenarios, %d differences, %d failures on the simulation, %d on the GPU\n",
           GR_COUNT(scenarios), differences, sim.failures, cuda.failures);
    return differences || sim.failures || cuda.failures;
}
