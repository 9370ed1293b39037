/* SPDX-License-Identifier: Apache-2.0
 * Running out of memory on purpose. */
#include "support/shortage.h"

#include <stdlib.h>

#include "heap/heap.h"

static int trouble; /* line of the first call that went wrong */

static void must(int status, int line) {
    if (status != 0 && trouble == 0) trouble = line;
}
#define MUST(call) must((call), __LINE__)

static void *take(granary *g, size_t mib, granary_stream stream) {
    void *p = NULL;
    MUST(granary_alloc(g, mib * GR_MIB, stream, &p));
    return p;
}

/* ---- scenes ----------------------------------------------------------------------------------- */

static size_t more_than_there_is(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    (void)g, (void)b;
    *stream = a;
    return 9 * GR_GIB;
}

static size_t all_live(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    for (int i = 0; i < 6; i++) (void)take(g, 1024, i % 3 ? a : b);
    *stream = a;
    return 3 * GR_GIB;
}

static size_t most_live(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    (void)all_live(g, a, b, stream);
    return 3 * GR_GIB / 2;
}

static size_t others_on_the_card(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    (void)b;
    MUST(granary_sim_set_foreign(0, 5 * GR_GIB));
    (void)take(g, 1024, a);
    *stream = a;
    return 3 * GR_GIB;
}

/* What fills the card is cut up into blocks of so many MiB, of which every second stays. */
static void cut_up(granary *g, granary_stream stream, size_t all_mib, size_t go_mib, size_t stay_mib) {
    static void *go[8192];
    size_t count = 0;
    MUST(granary_free(g, take(g, all_mib, stream)));
    for (size_t mib = 0; mib + go_mib + stay_mib <= all_mib; mib += go_mib + stay_mib) {
        go[count++] = take(g, go_mib, stream);
        (void)take(g, stay_mib, stream);
    }
    while (count > 0) MUST(granary_free(g, go[--count]));
}

static size_t in_pieces(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    (void)b;
    cut_up(g, a, 6144, 14, 2);
    *stream = a;
    return 4 * GR_GIB;
}

static size_t in_split_segments(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    void *p[3];
    for (int i = 0; i < 3; i++) p[i] = take(g, 2048, a);
    for (int i = 0; i < 3; i++) MUST(granary_free(g, p[i]));
    for (int i = 0; i < 3; i++) {
        p[i] = take(g, 1536, a);
        (void)take(g, 512, a);
    }
    for (int i = 0; i < 3; i++) MUST(granary_free(g, p[i]));
    (void)b;
    *stream = a;
    return 3 * GR_GIB;
}

static size_t in_pieces_elsewhere(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    cut_up(g, a, 6144, 14, 2);
    *stream = b;
    return 4 * GR_GIB;
}

static size_t idle_elsewhere(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    MUST(granary_free(g, take(g, 6144, a)));
    *stream = b;
    return 4 * GR_GIB;
}

static size_t among_small_blocks(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    enum { COUNT = 6144 * 2 };
    static void *small[COUNT];
    (void)b;
    for (int i = 0; i < COUNT; i++) MUST(granary_alloc(g, GR_MIB / 2, a, &small[i]));
    for (int i = 0; i < COUNT; i++)
        if (i % 4) MUST(granary_free(g, small[i]));
    *stream = a;
    return 4 * GR_GIB;
}

static size_t no_addresses(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    (void)take(g, 512, a);
    (void)take(g, 64, b);
    *stream = b;
    return 3 * GR_GIB;
}

/* ---- scenes with captures: they call the driver ----------------------------------------------- */

static struct gr_table cu;
static granary_pool graphs;
static granary_capture capture;

static void begin(granary *g, granary_stream stream) {
    MUST(granary_pool_create(g, NULL, &graphs));
    MUST(granary_capture_begin(g, graphs, stream, &capture));
    MUST(cu.cuStreamBeginCapture(stream, 0));
}

static void end(granary *g, granary_stream stream) {
    gr_cu_graph graph = NULL;
    if (capture == 0) return;
    MUST(cu.cuStreamEndCapture(stream, &graph));
    MUST(granary_capture_end(g, capture));
    if (graph) MUST(cu.cuGraphDestroy(graph));
    capture = 0;
}

/* `to` waits for what `from` has been given. */
static void join(granary_stream from, granary_stream to) {
    gr_cu_event event;
    MUST(cu.cuEventCreate(&event, GR_CU_EVENT_DISABLE_TIMING));
    MUST(cu.cuEventRecord(event, from));
    MUST(cu.cuStreamWaitEvent(to, event, 0));
    MUST(cu.cuEventDestroy(event));
}

static size_t used_in_a_capture(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    begin(g, a);
    void *p = take(g, 5120, a);
    MUST(granary_sim_use(a, p, GR_MIB, 1, 1, "scene"));
    join(a, b);
    MUST(granary_record_stream(g, p, b));
    MUST(granary_sim_use(b, p, GR_MIB, 1, 1, "scene"));
    MUST(granary_free(g, p));
    *stream = a;
    return 4 * GR_GIB;
}

static size_t used_and_joined_in_a_capture(granary *g, granary_stream a, granary_stream b,
                                           granary_stream *stream) {
    size_t size = used_in_a_capture(g, a, b, stream);
    join(b, a);
    return size;
}

static size_t kept_for_a_graph(granary *g, granary_stream a, granary_stream b, granary_stream *stream) {
    (void)b;
    begin(g, a);
    void *p = take(g, 6144, a);
    MUST(granary_sim_use(a, p, GR_MIB, 1, 1, "scene"));
    MUST(granary_free(g, p));
    end(g, a);
    *stream = a;
    return 4 * GR_GIB;
}

/* ---- playing ---------------------------------------------------------------------------------- */

const struct shortage_scene shortage_scenes[] = {
    {"too-large", GRANARY_SHORTAGE_TOO_LARGE, "", NULL, 0, more_than_there_is},
    {"full", GRANARY_SHORTAGE_FULL, "", NULL, 0, all_live},
    {"over-limit", GRANARY_SHORTAGE_OVER_LIMIT, "memory_limit:7GiB", "memory_limit:7.5GiB", 0, most_live},
    {"foreign", GRANARY_SHORTAGE_FOREIGN, "", NULL, 0, others_on_the_card},
    {"pending", GRANARY_SHORTAGE_PENDING, "", NULL, 0, used_in_a_capture},
    {"pending-reuse-off", GRANARY_SHORTAGE_PENDING, "graph_capture_record_stream_reuse:False",
     "graph_capture_record_stream_reuse:True", 0, used_and_joined_in_a_capture},
    {"fragmented", GRANARY_SHORTAGE_FRAGMENTED, "", "extent_mb:2", 0, in_pieces},
    {"fragmented-classic", GRANARY_SHORTAGE_FRAGMENTED, "expandable_segments:False",
     "expandable_segments:True", 0, in_split_segments},
    {"other-class", GRANARY_SHORTAGE_OTHER_CLASS, "", NULL, 0, among_small_blocks},
    {"other-streams", GRANARY_SHORTAGE_OTHER_STREAMS, "", "extent_mb:2", 0, in_pieces_elsewhere},
    {"other-streams-reclaim-off", GRANARY_SHORTAGE_OTHER_STREAMS, "reclaim:off", "reclaim:pressure", 0,
     idle_elsewhere},
    {"private-pools", GRANARY_SHORTAGE_PRIVATE_POOLS, "", NULL, 0, kept_for_a_graph},
    {"address-space", GRANARY_SHORTAGE_ADDRESS_SPACE, "", NULL, (size_t)2 << 30, no_addresses},
    {NULL, GRANARY_SHORTAGE_FULL, NULL, NULL, 0, NULL}};

int shortage_play(const struct shortage_scene *scene, const char *more, struct granary_shortfall *out) {
    struct granary_sim_config config;
    struct granary_options options;
    struct granary_fault fault = {.struct_size = sizeof fault};
    granary *g;
    granary_stream a, b, asked = NULL;
    void *p = NULL;
    trouble = 0;
    capture = 0;
    granary_sim_config_init(&config);
    config.memory_bytes = 8 * GR_GIB;
    if (scene->address_bytes) config.address_bytes = scene->address_bytes;
    granary_options_init(&options);
    options.driver = GRANARY_DRIVER_SIM;
    MUST(granary_options_parse(&options, scene->conf, NULL, NULL));
    if (more) MUST(granary_options_parse(&options, more, NULL, NULL));
    MUST(granary_sim_open(&config));
    if (trouble || granary_open(0, &options, &g) != GRANARY_OK) return __LINE__;
    gr_sim_table(&cu);
    MUST(cu.cuCtxPushCurrent(g->driver.context));
    MUST(granary_stream_create(g, &a));
    MUST(granary_stream_create(g, &b));
    size_t size = scene->prepare(g, a, b, &asked);
    bool served = trouble == 0 && granary_alloc(g, size, asked, &p) == GRANARY_OK;
    MUST(granary_last_fault(g, &fault));
    *out = served ? (struct granary_shortfall){0} : fault.shortfall;
    if (capture) join(b, a);
    end(g, a);
    MUST(cu.cuCtxPopCurrent(NULL));
    MUST(granary_stream_destroy(g, a));
    MUST(granary_stream_destroy(g, b));
    granary_close(g);
    MUST(granary_sim_close());
    return trouble;
}
