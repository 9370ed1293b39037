/* SPDX-License-Identifier: Apache-2.0
 * make bench-growth: cold growth and return beside the driver's own calls, and the bandwidth of
 * memory that was moved about.
 *
 * Growth: a block of 1 and of 16 GiB where nothing is cached, and its return, in turns with cuMemAlloc
 * and cuMemAllocAsync. Bandwidth (GPU only): after 10,000 random operations under a limit that makes
 * memory move, a block of 16 GiB is held against one of cuMemAlloc: device copy of one half onto the
 * other, and random reads of 16 bytes. */
#include <dlfcn.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "measure.h"
#include "tool/print.h"

enum { RUNS = 7, WAYS = 3, OPERATIONS = 10000, STREAMS = 4, MOST_LIVE = 4096, COPIES = 16 };
enum { READ_BLOCKS = 132 * 8, READ_THREADS = 256, READS = 64 };

static const size_t GIB = (size_t)1 << 30;

/* Entry points that the library itself does not use. */
struct extra {
    gr_cu_result (*alloc_async)(gr_cu_ptr *, size_t, gr_cu_stream);
    gr_cu_result (*free_async)(gr_cu_ptr, gr_cu_stream);
    gr_cu_result (*default_pool)(void **, gr_cu_device);
    gr_cu_result (*trim_pool)(void *, size_t);
    gr_cu_result (*load_module)(void **, const void *);
    gr_cu_result (*get_function)(void **, void *, const char *);
    gr_cu_result (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           gr_cu_stream, void **, void **);
};

struct growth {
    struct device device;
    struct extra extra;
    bool async, kernels;
    void *reads; /* the kernel of reads.cu, or NULL */
    const char *conf;
    FILE *json;
    const char *comma;
};

static void find(void *library, const char *symbol, void *out) {
    void *object = library != NULL ? dlsym(library, symbol) : NULL;
    memcpy(out, &object, sizeof object);
}

static void find_extra(struct growth *b) {
    void *library = b->device.library;
    struct extra *e = &b->extra;
    find(library, "cuMemAllocAsync", &e->alloc_async);
    find(library, "cuMemFreeAsync", &e->free_async);
    find(library, "cuDeviceGetDefaultMemPool", &e->default_pool);
    find(library, "cuMemPoolTrimTo", &e->trim_pool);
    find(library, "cuModuleLoadData", &e->load_module);
    find(library, "cuModuleGetFunction", &e->get_function);
    find(library, "cuLaunchKernel", &e->launch);
    b->async = e->alloc_async != NULL && e->free_async != NULL && e->default_pool != NULL &&
               e->trim_pool != NULL;
    b->kernels = e->load_module != NULL && e->get_function != NULL && e->launch != NULL;
}

static void drive(gr_cu_result code) {
    device_drive(code, "a driver call of the benchmark");
}

/* ---- growth ----------------------------------------------------------------------------------- */

struct cold {
    double grow[RUNS], back[RUNS]; /* nanoseconds */
};

static void grow_granary(granary *g, granary_stream stream, size_t size, struct cold *cold, int run) {
    void *ptr;
    double start = measure_now();
    device_must(g, granary_alloc(g, size, stream, &ptr), "granary_alloc");
    cold->grow[run] = measure_now() - start;
    start = measure_now();
    device_must(g, granary_free(g, ptr), "granary_free");
    device_must(g, granary_trim(g, 0, NULL), "granary_trim");
    cold->back[run] = measure_now() - start;
}

static void grow_plain(const struct gr_table *call, size_t size, struct cold *cold, int run) {
    gr_cu_ptr ptr;
    double start = measure_now();
    drive(call->cuMemAlloc(&ptr, size));
    cold->grow[run] = measure_now() - start;
    start = measure_now();
    drive(call->cuMemFree(ptr));
    cold->back[run] = measure_now() - start;
}

static void grow_async(const struct growth *b, gr_cu_stream stream, size_t size, struct cold *cold, int run) {
    void *pool = NULL;
    gr_cu_ptr ptr;
    drive(b->extra.default_pool(&pool, 0));
    double start = measure_now();
    drive(b->extra.alloc_async(&ptr, size, stream));
    cold->grow[run] = measure_now() - start;
    start = measure_now();
    drive(b->extra.free_async(ptr, stream));
    drive(b->device.call.cuStreamSynchronize(stream));
    drive(b->extra.trim_pool(pool, 0));
    cold->back[run] = measure_now() - start;
}

static void measure_growth(struct growth *b, size_t gibs, struct table *table) {
    static const char *const names[WAYS] = {"granary", "cuMemAlloc", "cuMemAllocAsync"};
    const size_t size = gibs * GIB;
    struct cold cold[WAYS];
    granary *g = device_handle(&b->device, b->conf, GRANARY_UNLIMITED);
    granary_stream stream = device_stream(g);
    for (int run = -1; run < RUNS; run++) { /* in turns; the first is warm-up */
        int slot = run < 0 ? 0 : run;
        grow_granary(g, stream, size, &cold[0], slot);
        grow_plain(&b->device.call, size, &cold[1], slot);
        if (b->async) grow_async(b, stream, size, &cold[2], slot);
    }
    granary_stream_destroy(g, stream);
    granary_close(g);
    for (int way = 0; way < WAYS - !b->async; way++) {
        struct figures grow = measure_figures(cold[way].grow, RUNS);
        struct figures back = measure_figures(cold[way].back, RUNS);
        table_put(table, "%zu GiB", gibs);
        table_put(table, "%s", names[way]);
        table_put(table, "%.1f", grow.median / 1e3);
        table_put(table, "%.1f", grow.max / 1e3);
        table_put(table, "%.1f", back.median / 1e3);
        table_put(table, "%.1f", back.max / 1e3);
        fprintf(b->json,
                "%s\n{\"what\":\"growth\",\"gib\":%zu,\"way\":\"%s\",\"grow_us\":%.2f,\"grow_max_us\":%.2f,"
                "\"back_us\":%.2f,\"back_max_us\":%.2f}",
                b->comma, gibs, names[way], grow.median / 1e3, grow.max / 1e3, back.median / 1e3,
                back.max / 1e3);
        b->comma = ",";
    }
}

/* ---- bandwidth -------------------------------------------------------------------------------- */

/* Random traffic of 2 MiB to 1 GiB on several streams, at most `most` bytes live at a time. What is
 * live at the end stays live. */
static size_t stir(granary *g, granary_stream *streams, void **live, size_t *sizes, size_t most) {
    uint64_t seed = 11;
    size_t count = 0, bytes = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        size_t size = (size_t)exp2(21 + 9 * measure_uniform(&seed));
        bool alloc = measure_random(&seed) % 2 == 0;
        if (alloc && count < MOST_LIVE && bytes + size <= most) {
            int status = granary_alloc(g, size, streams[i % STREAMS], &live[count]);
            if (status == GRANARY_OK) {
                sizes[count++] = size;
                bytes += size;
                continue;
            }
        }
        if (count == 0) continue;
        size_t at = measure_random(&seed) % count;
        device_must(g, granary_free(g, live[at]), "granary_free");
        bytes -= sizes[at];
        count--;
        live[at] = live[count];
        sizes[at] = sizes[count];
    }
    return count;
}

/* GB/s, read and written bytes counted. */
static double copy_speed(const struct growth *b, gr_cu_ptr block, size_t size, gr_cu_stream stream) {
    const struct gr_table *call = &b->device.call;
    drive(call->cuStreamSynchronize(stream));
    double start = measure_now();
    for (int i = 0; i < COPIES; i++)
        drive(call->cuMemcpyDtoDAsync(block + size / 2, block, size / 2, stream));
    drive(call->cuStreamSynchronize(stream));
    return COPIES * (double)size / (measure_now() - start);
}

/* Reads a nanosecond. */
static double read_speed(const struct growth *b, gr_cu_ptr block, size_t size, gr_cu_stream stream,
                         gr_cu_ptr out) {
    enum { LAUNCHES = 8 };
    unsigned long long count = size / 16, seed = 1;
    unsigned reads = READS;
    void *arguments[] = {&block, &count, &seed, &reads, &out};
    drive(b->device.call.cuStreamSynchronize(stream));
    double start = measure_now();
    for (int i = 0; i < LAUNCHES; i++) {
        seed = (unsigned long long)i * 977 + 1;
        drive(b->extra.launch(b->reads, READ_BLOCKS, 1, 1, READ_THREADS, 1, 1, 0, stream, arguments, NULL));
    }
    drive(b->device.call.cuStreamSynchronize(stream));
    return (double)LAUNCHES * READ_BLOCKS * READ_THREADS * READS / (measure_now() - start);
}

static void report_speed(struct growth *b, const char *what, const char *unit, double *ours, double *theirs) {
    double x = measure_median(ours, RUNS), y = measure_median(theirs, RUNS);
    printf("%-22s granary %9.2f  cuMemAlloc %9.2f %s  ratio %.4f\n", what, x, y, unit, x / y);
    fprintf(b->json, "%s\n{\"what\":\"%s\",\"granary\":%.3f,\"cuMemAlloc\":%.3f,\"ratio\":%.5f}", b->comma,
            what, x, y, x / y);
    b->comma = ",";
}

/* A block of granary's; live ones go until there is room for it. */
static void *make_room(granary *g, size_t size, granary_stream stream, void **live, size_t *count) {
    void *block;
    int status;
    while ((status = granary_alloc(g, size, stream, &block)) != GRANARY_OK && *count > 0)
        device_must(g, granary_free(g, live[--*count]), "granary_free");
    device_must(g, status, "granary_alloc");
    return block;
}

static void measure_bandwidth(struct growth *b, size_t gibs) {
    const size_t size = gibs * GIB, limit = 3 * size;
    struct granary_stats stats = {.struct_size = sizeof stats};
    double ours[2][RUNS], theirs[2][RUNS];
    granary *g = device_handle(&b->device, b->conf, limit);
    granary_stream streams[STREAMS];
    void **live = measure_take(MOST_LIVE, sizeof *live);
    size_t *sizes = measure_take(MOST_LIVE, sizeof *sizes);
    gr_cu_ptr plain, out;
    for (int i = 0; i < STREAMS; i++) streams[i] = device_stream(g);
    size_t count = stir(g, streams, live, sizes, limit - limit / 20);
    gr_cu_ptr block = (gr_cu_ptr)(uintptr_t)make_room(g, size, streams[0], live, &count);
    device_must(g, granary_get_stats(g, &stats), "statistics");
    drive(b->device.call.cuMemAlloc(&plain, size));
    drive(b->device.call.cuMemAlloc(&out, 64));
    drive(b->device.call.cuMemsetD8Async(block, 1, size, streams[0]));
    drive(b->device.call.cuMemsetD8Async(plain, 1, size, streams[0]));
    for (int run = -1; run < RUNS; run++) { /* in turns; the first is warm-up */
        int slot = run < 0 ? 0 : run;
        ours[0][slot] = copy_speed(b, block, size, streams[0]);
        theirs[0][slot] = copy_speed(b, plain, size, streams[0]);
        if (b->reads == NULL) continue;
        ours[1][slot] = read_speed(b, block, size, streams[0], out);
        theirs[1][slot] = read_speed(b, plain, size, streams[0], out);
    }
    printf("\na block of %zu GiB after %d random operations under a limit of %zu GiB: %lld extents, "
           "%lld moved (%.1f GiB), %zu other blocks live\n",
           gibs, OPERATIONS, limit / GIB, (long long)stats.extents, (long long)stats.moved_extents,
           (double)stats.moved_bytes / (double)GIB, count);
    report_speed(b, "device copy", "GB/s", ours[0], theirs[0]);
    if (b->reads != NULL)
        report_speed(b, "random reads of 16 B", "G/s", ours[1], theirs[1]);
    else
        printf("random reads of 16 B   left out: no kernel (build with nvcc, --reads FILE)\n");
    drive(b->device.call.cuMemFree(plain));
    drive(b->device.call.cuMemFree(out));
    granary_close(g); /* live blocks too */
    free(live);
    free(sizes);
}

/* Loads the kernel from PTX text. */
static void load_reads(struct growth *b, const char *path) {
    static char text[1 << 20];
    void *module = NULL;
    FILE *from = fopen(path, "r");
    if (from == NULL || !b->kernels) {
        if (from != NULL) fclose(from);
        return;
    }
    size_t length = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    if (length == 0) return;
    if (b->extra.load_module(&module, text) != GR_CU_SUCCESS ||
        b->extra.get_function(&b->reads, module, "bench_reads") != GR_CU_SUCCESS) {
        b->reads = NULL;
        fprintf(stderr, "bench: the driver does not take %s\n", path);
    }
}

static int usage(void) {
    fprintf(stderr,
            "use: growth [--driver auto|cuda|sim] [--conf STRING] [--reads FILE] [--quick] [--out DIR]\n");
    return 2;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"driver", required_argument, NULL, 'd'}, {"conf", required_argument, NULL, 'c'},
        {"reads", required_argument, NULL, 'r'},  {"out", required_argument, NULL, 'o'},
        {"quick", no_argument, NULL, 'q'},        {NULL, 0, NULL, 0},
    };
    static const char *const headings[] = {"block", "way", "grow us", "most", "back us", "most"};
    static struct growth b = {.conf = "", .comma = ""};
    enum device_want want = DEVICE_AUTO;
    const char *out = ".", *reads = "";
    bool quick = false;
    struct table table;
    char path[512];
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'd':
            if (device_parse(optarg, &want) == 0) break;
            return usage();
        case 'c': b.conf = optarg; break;
        case 'r': reads = optarg; break;
        case 'o': out = optarg; break;
        case 'q': quick = true; break;
        default: return usage();
        }
    }
    snprintf(path, sizeof path, "%s/growth.json", out);
    b.json = fopen(path, "w");
    if (b.json == NULL) {
        fprintf(stderr, "bench: cannot write %s\n", path);
        return EXIT_FAILURE;
    }
    measure_calibrate();
    if (device_open(&b.device, want) != 0) return EXIT_FAILURE;
    find_extra(&b);
    load_reads(&b, reads);
    printf("cold growth and return on %s, median of %d\n\n", b.device.name, RUNS);
    table_init(&table, GR_COUNT(headings));
    for (size_t i = 0; i < GR_COUNT(headings); i++) table_put(&table, "%s", headings[i]);
    table_rule(&table);
    fputs("[", b.json);
    measure_growth(&b, 1, &table);
    measure_growth(&b, quick ? 4 : 16, &table);
    table_print(&table, stdout, 2);
    if (!b.device.simulated)
        measure_bandwidth(&b, quick ? 4 : 16);
    else
        printf("\nbandwidth left out: the simulated device has none\n");
    fputs("\n]\n", b.json);
    int rc = fclose(b.json);
    printf("\nwritten: %s\n", path);
    device_close(&b.device);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
