/* SPDX-License-Identifier: Apache-2.0
 * make bench-capture: memory and host time of record_stream inside a graph capture.
 *
 * Each of n rounds allocates 4 MiB on the capturing stream, fills it there, reads it on a second
 * stream, records and frees it, and joins the second stream back: one block suffices for any n. Joined
 * late, a round waits for the second stream's work of the round before, as a loop that overlaps both
 * would: two blocks. On a GPU the graph is launched at the end and must leave the last round's value. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "heap/heap.h"
#include "measure.h"
#include "tool/print.h"

enum { BLOCK = 4 << 20, RUNS = 5 };

struct way {
    const char *name;
    int reuse, marker;
    bool late; /* joined late */
};

static const struct way ways[] = {
    {"stream, terminals", GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS, false},
    {"stream, terminals, joined late", GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS, true},
    {"stream, empty node", GRANARY_REUSE_STREAM, GRANARY_MARKER_EMPTY_NODE, false},
    {"graph, terminals", GRANARY_REUSE_GRAPH, GRANARY_MARKER_TERMINALS, false},
    {"off", GRANARY_REUSE_OFF, GRANARY_MARKER_TERMINALS, false},
};

struct result {
    double pool_mib;
    struct figures round; /* nanoseconds in granary, of the rounds of a capture */
    double late, mean;    /* median of the last tenth of the rounds; mean of all */
    double whole_ns;      /* a round, driver included */
    double walked, asked; /* nodes walked, terminals read: a round */
};

struct scene {
    const struct device *device;
    granary *g;
    granary_stream main, side;
    gr_cu_event fork, join[2];
    bool late;
    gr_cu_ptr sum;
    double *samples;
};

static void drive(gr_cu_result code) {
    device_drive(code, "work inside the capture");
}

/* One round; returns the ticks spent in granary. */
static uint64_t round_of(struct scene *s, unsigned round) {
    const struct gr_table *call = &s->device->call;
    void *ptr;
    uint64_t begun = measure_tick(), spent;
    device_must(s->g, granary_alloc(s->g, BLOCK, s->main, &ptr), "granary_alloc");
    spent = measure_tick() - begun;
    gr_cu_ptr block = (gr_cu_ptr)(uintptr_t)ptr;
    drive(call->cuMemsetD32Async(block, round, BLOCK / 4, s->main));
    drive(call->cuEventRecord(s->fork, s->main));
    drive(call->cuStreamWaitEvent(s->side, s->fork, 0));
    drive(call->cuMemcpyDtoDAsync(s->sum, block, BLOCK, s->side));
    begun = measure_tick();
    device_must(s->g, granary_record_stream(s->g, ptr, s->side), "granary_record_stream");
    device_must(s->g, granary_free(s->g, ptr), "granary_free");
    spent += measure_tick() - begun;
    drive(call->cuEventRecord(s->join[round % 2], s->side));
    if (!s->late)
        drive(call->cuStreamWaitEvent(s->main, s->join[round % 2], 0));
    else if (round > 0)
        drive(call->cuStreamWaitEvent(s->main, s->join[(round - 1) % 2], 0));
    return spent;
}

/* Launches the graph and looks at what it left. */
static void launch(struct scene *s, gr_cu_graph graph, unsigned value) {
    const struct gr_table *call = &s->device->call;
    gr_cu_graph_exec exec = NULL;
    unsigned found = ~value;
    if (s->device->simulated) return; /* it counts memory and keeps no contents */
    drive(call->cuGraphInstantiateWithFlags(&exec, graph, 0));
    drive(call->cuGraphLaunch(exec, s->main));
    drive(call->cuStreamSynchronize(s->main));
    drive(call->cuMemcpyDtoH(&found, s->sum + BLOCK - sizeof found, sizeof found));
    drive(call->cuGraphExecDestroy(exec));
    if (found == value) return;
    fprintf(stderr, "bench: the graph left %u, not %u\n", found, value);
    exit(EXIT_FAILURE);
}

static struct result capture_once(struct scene *s, size_t n, bool last) {
    const struct gr_table *call = &s->device->call;
    struct gr_tap *tap = &s->g->driver.tap;
    struct granary_pool_stats stats = {.struct_size = sizeof stats};
    struct result r = {0};
    granary_pool pool;
    granary_capture capture;
    gr_cu_graph graph = NULL;
    uint64_t walked = gr_tap_count(tap, GR_ENTRY_cuGraphNodeGetDependencies);
    uint64_t asked = gr_tap_count(tap, GR_ENTRY_cuStreamGetCaptureInfo);

    device_must(s->g, granary_pool_create(s->g, NULL, &pool), "granary_pool_create");
    device_must(s->g, granary_capture_begin(s->g, pool, s->main, &capture), "granary_capture_begin");
    drive(call->cuStreamBeginCapture(s->main, GR_CU_CAPTURE_MODE_THREAD_LOCAL));
    double began = measure_now();
    for (size_t i = 0; i < n; i++) s->samples[i] = measure_single(round_of(s, (unsigned)i));
    r.whole_ns = (measure_now() - began) / (double)n;
    drive(call->cuStreamWaitEvent(s->main, s->join[(n - 1) % 2], 0));
    drive(call->cuStreamEndCapture(s->main, &graph));
    device_must(s->g, granary_pool_get_stats(s->g, pool, &stats), "granary_pool_get_stats");
    device_must(s->g, granary_capture_end(s->g, capture), "granary_capture_end");
    if (last) launch(s, graph, (unsigned)n - 1);
    drive(call->cuGraphDestroy(graph));
    device_must(s->g, granary_pool_release(s->g, pool), "granary_pool_release");
    device_must(s->g, granary_trim(s->g, 0, NULL), "granary_trim"); /* each capture starts from nothing */

    for (size_t i = 0; i < n; i++) r.mean += s->samples[i] / (double)n;
    r.late = measure_median(s->samples + (n - n / 10), n / 10);
    r.round = measure_figures(s->samples, n);
    r.pool_mib = (double)stats.reserved_bytes / 1048576;
    r.walked = (double)(gr_tap_count(tap, GR_ENTRY_cuGraphNodeGetDependencies) - walked) / (double)n;
    r.asked = (double)(gr_tap_count(tap, GR_ENTRY_cuStreamGetCaptureInfo) - asked) / (double)n;
    return r;
}

static granary *open_way(const struct device *device, const struct way *way) {
    struct granary_options options;
    granary *g = NULL;
    granary_options_init(&options);
    options.driver = device->simulated ? GRANARY_DRIVER_SIM : GRANARY_DRIVER_CUDA;
    options.capture_reuse = way->reuse;
    options.capture_marker = way->marker;
    device_must(NULL, granary_open(0, &options, &g), "granary_open");
    return g;
}

/* The run whose median round is the median of all; memory is the most of all. */
static struct result measure(const struct device *device, const struct way *way, size_t n) {
    struct scene s = {.device = device, .g = open_way(device, way), .late = way->late};
    struct result runs[RUNS], middle;
    double rounds[RUNS], most = 0;
    s.main = device_stream(s.g);
    s.side = device_stream(s.g);
    s.samples = measure_take(n, sizeof *s.samples);
    drive(device->call.cuEventCreate(&s.fork, GR_CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 2; i++) drive(device->call.cuEventCreate(&s.join[i], GR_CU_EVENT_DISABLE_TIMING));
    drive(device->call.cuMemAlloc(&s.sum, BLOCK));
    for (int i = -1; i < RUNS; i++) { /* the first is warm-up */
        struct result r = capture_once(&s, n, i + 1 == RUNS);
        if (r.pool_mib > most) most = r.pool_mib;
        if (i < 0) continue;
        runs[i] = r;
        rounds[i] = r.round.median;
    }
    double median = measure_median(rounds, RUNS);
    middle = runs[0];
    for (int i = 0; i < RUNS; i++)
        if (runs[i].round.median == median) middle = runs[i];
    middle.pool_mib = most;
    drive(device->call.cuMemFree(s.sum));
    drive(device->call.cuEventDestroy(s.fork));
    for (int i = 0; i < 2; i++) drive(device->call.cuEventDestroy(s.join[i]));
    granary_stream_destroy(s.g, s.side);
    granary_stream_destroy(s.g, s.main);
    granary_close(s.g);
    free(s.samples);
    return middle;
}

static int usage(void) {
    fprintf(stderr, "use: capture [--driver auto|cuda|sim] [--quick] [--out DIR]\n");
    return 2;
}

static int run_all(const struct device *device, size_t counts, FILE *json) {
    static const size_t rounds[] = {100, 400, 1600, 10000};
    static const char *const headings[] = {
        "reuse, marker", "n",   "pool MiB",       "granary ns/round", "last tenth",     "mean",
        "p99",           "max", "whole us/round", "walked/round",     "terminals/round"};
    enum { COLUMNS = sizeof headings / sizeof headings[0] };
    struct table table;
    const char *comma = "";
    table_init(&table, COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) table_put(&table, "%s", headings[i]);
    table_rule(&table);
    fputs("[", json);
    for (size_t w = 0; w < GR_COUNT(ways); w++) {
        for (size_t i = 0; i < counts; i++) {
            struct result r = measure(device, &ways[w], rounds[i]);
            table_put(&table, "%s", i == 0 ? ways[w].name : "");
            table_put(&table, "%zu", rounds[i]);
            table_put(&table, "%.0f", r.pool_mib);
            table_put(&table, "%.0f", r.round.median);
            table_put(&table, "%.0f", r.late);
            table_put(&table, "%.0f", r.mean);
            table_put(&table, "%.0f", r.round.p99);
            table_put(&table, "%.0f", r.round.max);
            table_put(&table, "%.2f", r.whole_ns / 1e3);
            table_put(&table, "%.2f", r.walked);
            table_put(&table, "%.2f", r.asked);
            fprintf(json,
                    "%s\n{\"way\":\"%s\",\"n\":%zu,\"pool_mib\":%.1f,\"granary_ns\":%.1f,\"late_ns\":%.1f,"
                    "\"mean_ns\":%.1f,\"p99_ns\":%.1f,\"max_ns\":%.1f,\"whole_us\":%.3f,\"walked\":%.3f,"
                    "\"terminals\":%.3f,"
                    "\"driver\":\"%s\"}",
                    comma, ways[w].name, rounds[i], r.pool_mib, r.round.median, r.late, r.mean, r.round.p99,
                    r.round.max, r.whole_ns / 1e3, r.walked, r.asked, device->simulated ? "sim" : "cuda");
            comma = ",";
        }
    }
    fputs("\n]\n", json);
    table_print(&table, stdout, 1);
    return fclose(json);
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"driver", required_argument, NULL, 'd'},
        {"out", required_argument, NULL, 'o'},
        {"quick", no_argument, NULL, 'q'},
        {NULL, 0, NULL, 0},
    };
    enum device_want want = DEVICE_AUTO;
    struct device device;
    const char *out = ".";
    char path[512];
    size_t counts = 4;
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'd' && device_parse(optarg, &want) != 0) return usage();
        if (c == 'o') out = optarg;
        if (c == 'q') counts = 2;
        if (c == '?') return usage();
    }
    snprintf(path, sizeof path, "%s/capture.json", out);
    FILE *json = fopen(path, "w");
    if (json == NULL) {
        fprintf(stderr, "bench: cannot write %s\n", path);
        return EXIT_FAILURE;
    }
    measure_calibrate();
    if (device_open(&device, want) != 0) return EXIT_FAILURE;
    printf("n blocks of 4 MiB in one capture, used on a second stream, on %s\n\n", device.name);
    int rc = run_all(&device, counts, json);
    printf("\nwritten: %s\n", path);
    device_close(&device);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
