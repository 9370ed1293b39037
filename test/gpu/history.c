/* SPDX-License-Identifier: Apache-2.0
 * History and snapshots on a real device: writes snapshots for test/gpu/memory_viz.py, and prints what an
 * event costs, how long a snapshot takes, and how long it holds up a thread that allocates.
 *
 * history [--sim] [--quick] [DIRECTORY]; --quick: write snapshots, measure nothing. Exit status 77 when
 * there is no GPU. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <granary/history.h>
#include <granary/sim.h>

enum { MIB = 1 << 20, DEPTH = 16, PAIRS = 100000, ENTRIES = 100000 };

static int simulated;
static const char *directory;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fail(granary *g, int status, const char *what) {
    struct granary_fault fault = {.struct_size = sizeof fault};
    if (g) granary_last_fault(g, &fault);
    fprintf(stderr, "history: %s: %s %s\n", what, granary_status_sentence(status), fault.text);
    exit(EXIT_FAILURE);
}

/* It stands between the calls that are measured. */
static void must(granary *g, int status, const char *what) {
    if (status != GRANARY_OK) fail(g, status, what);
}

static const char *file(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static granary *open_handle(int expandable, size_t limit, const char *oom) {
    struct granary_options options;
    struct granary_fault fault = {.struct_size = sizeof fault};
    granary *g;
    granary_options_init(&options);
    options.driver = simulated ? GRANARY_DRIVER_SIM : GRANARY_DRIVER_CUDA;
    options.expandable_segments = expandable;
    options.limit_bytes = limit;
    options.oom_snapshot = oom;
    options.fault = &fault;
    int status = granary_open(0, &options, &g);
    if (status == GRANARY_NO_DRIVER || status == GRANARY_STUB_DRIVER || status == GRANARY_NO_DEVICE) {
        printf("history: %s\n", fault.text);
        exit(77);
    }
    must(NULL, status, fault.text);
    return g;
}

static void record(granary *g, int level, int stacks, size_t entries) {
    struct granary_history_options options;
    granary_history_options_init(&options);
    options.level = level;
    options.stacks = stacks;
    options.entries = entries;
    must(g, granary_record_history(g, &options), "granary_record_history");
}

/* ---- snapshots for the viewer ----------------------------------------------------------------- */

static void save(granary *g, enum granary_format format, const char *name) {
    must(g, granary_snapshot_file(g, format, file(name)), name);
}

static void save_summary(granary *g, const char *name) {
    char text[GRANARY_SUMMARY_ROOM];
    must(g, granary_summary(g, 0, text, sizeof text), "granary_summary");
    FILE *out = fopen(file(name), "w");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0) must(NULL, GRANARY_WRITE, name);
}

/* Two streams, a private pool, tags, metadata, a free that waits, an out-of-memory, memory that moves. */
static void traffic(int expandable) {
    char oom[4096];
    void *block[60], *ptr;
    granary_stream s;
    granary_pool pool;
    granary_scope scope;
    snprintf(oom, sizeof oom, "%s/%s-oom.pickle", directory, expandable ? "expandable" : "classic");
    granary *g = open_handle(expandable, (size_t)1024 * MIB, oom);
    record(g, GRANARY_HISTORY_ALL, GRANARY_STACKS_ALL, ENTRIES);
    must(g, granary_stream_create(g, &s), "granary_stream_create");
    must(g, granary_set_tag("weights", NULL), "granary_set_tag");
    must(g, granary_set_metadata("caf\xC3\xA9", NULL), "granary_set_metadata");
    must(g, granary_annotate(g, "step", 1), "granary_annotate");
    for (size_t i = 0; i < 60; i++)
        must(g, granary_alloc(g, (i + 1) * (i % 5 ? 7000 : 400000), i % 2 ? s : NULL, &block[i]),
             "granary_alloc");
    save(g, GRANARY_PICKLE, expandable ? "expandable-before.pickle" : "classic-before.pickle");
    must(g, granary_set_tag("", NULL), "granary_set_tag");
    must(g, granary_pool_create(g, NULL, &pool), "granary_pool_create");
    must(g, granary_scope_begin(g, pool, NULL, NULL, &scope), "granary_scope_begin");
    must(g, granary_alloc(g, 5 * MIB, NULL, &ptr), "granary_alloc");
    must(g, granary_scope_end(g, scope), "granary_scope_end");
    for (size_t i = 0; i < 60; i += 2) must(g, granary_free(g, block[i]), "granary_free");
    must(g, granary_record_stream(g, block[1], NULL), "granary_record_stream");
    must(g, granary_free(g, block[1]), "granary_free");
    must(g, granary_alloc(g, (size_t)600 * MIB, NULL, &ptr), "granary_alloc");
    must(g, granary_free(g, ptr), "granary_free");
    must(g, granary_alloc(g, (size_t)700 * MIB, s, &ptr), "granary_alloc"); /* what lay idle serves it */
    if (granary_alloc(g, (size_t)2048 * MIB, s, &ptr) == GRANARY_OK) must(g, GRANARY_DRIVER, "the limit");
    must(g, granary_annotate(g, "step", 0), "granary_annotate");
    save(g, GRANARY_PICKLE, expandable ? "expandable-after.pickle" : "classic-after.pickle");
    save(g, GRANARY_JSON, expandable ? "expandable.json" : "classic.json");
    save_summary(g, expandable ? "expandable.summary" : "classic.summary");
    must(g, granary_stream_destroy(g, s), "granary_stream_destroy");
    granary_close(g);
}

/* ---- costs ------------------------------------------------------------------------------------ */

static void pairs(granary *g, int depth, size_t count) {
    void *ptr;
    if (depth > 0) {
        pairs(g, depth - 1, count);
        __asm__ volatile("" ::: "memory"); /* no tail call: the frames are there */
        return;
    }
    for (size_t i = 0; i < count; i++) {
        must(g, granary_alloc(g, 1000, NULL, &ptr), "granary_alloc");
        must(g, granary_free(g, ptr), "granary_free");
    }
}

static double best_pair(granary *g) {
    double best = 1e18;
    pairs(g, DEPTH, PAIRS / 10);
    for (int round = 0; round < 5; round++) {
        double begin = now_ns();
        pairs(g, DEPTH, PAIRS / 5);
        double each = (now_ns() - begin) / (PAIRS / 5);
        if (each < best) best = each;
    }
    return best;
}

static void costs(granary *g) {
    static const struct {
        const char *name;
        int level, stacks;
    } row[] = {{"off", GRANARY_HISTORY_OFF, GRANARY_STACKS_NONE},
               {"state", GRANARY_HISTORY_STATE, GRANARY_STACKS_NONE},
               {"alloc", GRANARY_HISTORY_ALLOC, GRANARY_STACKS_NONE},
               {"all", GRANARY_HISTORY_ALL, GRANARY_STACKS_NONE},
               {"state, C stacks", GRANARY_HISTORY_STATE, GRANARY_STACKS_C},
               {"alloc, C stacks", GRANARY_HISTORY_ALLOC, GRANARY_STACKS_C},
               {"all, C stacks", GRANARY_HISTORY_ALL, GRANARY_STACKS_C}};
    double off = 0;
    printf("%-18s %12s %14s\n", "history", "ns a pair", "ns an event");
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        record(g, row[i].level, row[i].stacks, ENTRIES);
        double pair = best_pair(g);
        if (i == 0) off = pair;
        /* An allocation, a free requested and one completed; with STATE the allocation only. */
        int events = row[i].level >= GRANARY_HISTORY_ALLOC ? 3 : 1;
        printf("%-18s %12.1f %14.1f\n", row[i].name, pair, i == 0 ? 0 : (pair - off) / events);
    }
    struct granary_history history = {.struct_size = sizeof history};
    must(g, granary_get_history(g, &history), "granary_get_history");
    printf("unwinder %s, %d frames and more, %lld distinct stacks\n", history.unwinder, DEPTH,
           (long long)history.distinct_stacks);
}

static int count_bytes(void *context, const void *bytes, size_t size) {
    (void)bytes;
    *(size_t *)context += size;
    return 0;
}

static atomic_int stop;

/* Allocates all the time; the longest that one pair took. */
static void *allocate(void *argument) {
    static double longest;
    granary *g = argument;
    void *ptr;
    longest = 0;
    while (!atomic_load(&stop)) {
        double begin = now_ns();
        must(g, granary_alloc(g, 1000, NULL, &ptr), "granary_alloc");
        must(g, granary_free(g, ptr), "granary_free");
        double took = now_ns() - begin;
        if (took > longest) longest = took;
    }
    return &longest;
}

static double longest_while(granary *g, int snapshots, enum granary_format format, double *each,
                            size_t *bytes) {
    pthread_t thread;
    void *longest;
    atomic_store(&stop, 0);
    if (pthread_create(&thread, NULL, allocate, g) != 0) must(NULL, GRANARY_HOST_MEMORY, "pthread_create");
    struct timespec pause = {.tv_nsec = 100000000};
    nanosleep(&pause, NULL);
    *each = 1e18;
    for (int i = 0; i < snapshots; i++) {
        double begin = now_ns();
        *bytes = 0;
        must(g, granary_snapshot(g, format, count_bytes, bytes), "granary_snapshot");
        double took = now_ns() - begin;
        if (took < *each) *each = took;
    }
    atomic_store(&stop, 1);
    pthread_join(thread, &longest);
    return *(double *)longest;
}

static void snapshots(granary *g) {
    enum { LIVE = 10000 };
    static void *block[LIVE];
    double each, longest;
    size_t bytes;
    granary_stream s;
    must(g, granary_stream_create(g, &s), "granary_stream_create");
    for (size_t i = 0; i < LIVE; i++)
        must(g, granary_alloc(g, 512 * (1 + i % 7), s, &block[i]), "granary_alloc");
    record(g, GRANARY_HISTORY_ALL, GRANARY_STACKS_C, ENTRIES);
    pairs(g, DEPTH, ENTRIES / 3);
    longest = longest_while(g, 0, GRANARY_PICKLE, &each, &bytes);
    printf("%d live blocks, %d entries; longest pair of another thread without snapshots: %.0f us\n", LIVE,
           ENTRIES, longest / 1e3);
    for (int format = GRANARY_PICKLE; format <= GRANARY_JSON; format++) {
        longest = longest_while(g, 5, (enum granary_format)format, &each, &bytes);
        printf("%-6s %6.1f ms, %.1f MB, longest pair of another thread meanwhile: %.0f us\n",
               format == GRANARY_PICKLE ? "pickle" : "JSON", each / 1e6, (double)bytes / 1e6, longest / 1e3);
    }
    record(g, GRANARY_HISTORY_OFF, GRANARY_STACKS_NONE, 0);
    longest = longest_while(g, 20, GRANARY_PICKLE, &each, &bytes);
    printf("without history: pickle %.2f ms, longest pair meanwhile: %.0f us\n", each / 1e6, longest / 1e3);
    for (size_t i = 0; i < LIVE; i++) must(g, granary_free(g, block[i]), "granary_free");
    must(g, granary_stream_destroy(g, s), "granary_stream_destroy");
}

int main(int argc, char **argv) {
    int quick = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--sim") == 0)
            simulated = 1;
        else if (strcmp(argv[i], "--quick") == 0)
            quick = 1;
        else
            directory = argv[i];
    }
    if (simulated) must(NULL, granary_sim_open(NULL), "granary_sim_open");
    granary *g = open_handle(1, GRANARY_UNLIMITED, NULL);
    if (directory) {
        traffic(1);
        traffic(0);
    }
    if (!quick) costs(g);
    if (!quick) snapshots(g);
    granary_close(g);
    return EXIT_SUCCESS;
}
