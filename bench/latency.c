/* SPDX-License-Identifier: Apache-2.0
 * make bench-latency: what a call costs, by shape of traffic, beside glibc's malloc and free.
 *
 * Runs on the GPU when there is one, else on the simulated device: an allocation that hits the cache
 * makes no driver call, so both tell the same but for the cold traces, `open` and misses. */
#include "latency.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/print.h"

bool latency_wants(const struct latency *l, const char *shape) {
    if (measure_now() > l->until) return false;
    return l->only == NULL || strcmp(l->only, shape) == 0;
}

size_t latency_scale(const struct latency *l, size_t n) {
    return l->quick ? n / 20 + 3 : n;
}

granary *latency_handle(const struct latency *l) {
    return device_handle(&l->device, l->conf, GRANARY_UNLIMITED);
}

double latency_misses(granary *g) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    device_must(g, granary_get_stats(g, &stats), "statistics");
    return (double)stats.misses;
}

struct latency_row *latency_add(struct latency *l, const char *shape, const char *detail, double param,
                                struct figures figures, double glibc, double misses) {
    if (l->count == l->room) {
        l->room = l->room * 2 + 64;
        l->rows = realloc(l->rows, l->room * sizeof *l->rows);
        if (l->rows == NULL) exit(EXIT_FAILURE);
    }
    struct latency_row *row = &l->rows[l->count++];
    *row = (struct latency_row){.param = param, .figures = figures, .glibc = glibc, .misses = misses};
    snprintf(row->shape, sizeof row->shape, "%s", shape);
    snprintf(row->detail, sizeof row->detail, "%s", detail);
    if (isatty(2)) fprintf(stderr, "\r%-16s %-24s\r", shape, detail);
    return row;
}

/* Nothing for 0. */
static void put_time(struct table *table, double ns) {
    if (ns > 0)
        table_put(table, "%.1f", ns);
    else
        table_put(table, "%s", "");
}

static void print_rows(const struct latency *l) {
    static const char *const headings[] = {"shape",    "",        "param",  "granary ns", "p99",    "max",
                                           "glibc ns", "x glibc", "misses", "wall",       "glibc's"};
    enum { COLUMNS = sizeof headings / sizeof headings[0] };
    struct table table;
    const char *before = "";
    table_init(&table, COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) table_put(&table, "%s", headings[i]);
    table_rule(&table);
    for (size_t i = 0; i < l->count; i++) {
        const struct latency_row *row = &l->rows[i];
        table_put(&table, "%s", strcmp(before, row->shape) != 0 ? row->shape : "");
        before = row->shape;
        table_put(&table, "%s", row->detail);
        table_put(&table, "%.0f", row->param);
        table_put(&table, "%.1f", row->figures.median);
        table_put(&table, "%.0f", row->figures.p99);
        table_put(&table, "%.0f", row->figures.max);
        table_put(&table, "%.1f", row->glibc);
        table_put(&table, "%.1f", row->figures.median / row->glibc);
        if (row->misses > 0)
            table_put(&table, "%.2g", row->misses);
        else
            table_put(&table, "0");
        put_time(&table, row->wall);
        put_time(&table, row->glibc_wall);
    }
    table_print(&table, stdout, 2);
}

static void print_host(const struct latency_host *h, bool simulated) {
    if (h->handle_bytes == 0) return;
    printf("\nhost memory, bytes          taken   touched\n");
    printf("a handle               %10.0f\n", h->handle_bytes);
    printf("a live block           %10.0f%10.0f   sizes of replace\n", h->block_bytes, h->block_rss);
    printf("a live block of 512 B  %10.0f%10.0f\n", h->small_block_bytes, h->small_block_rss);
    printf("a GiB reserved         %10.0f%10.0f   in blocks of 1 GiB%s\n", h->gib_bytes, h->gib_rss,
           simulated ? "; the simulated driver's own included" : "");
}

static int write_json(const struct latency *l, const char *folder) {
    char path[512];
    snprintf(path, sizeof path, "%s/latency.json", folder);
    FILE *to = fopen(path, "w");
    if (to == NULL) return -1;
    fputs("[\n", to);
    for (size_t i = 0; i < l->count; i++) {
        const struct latency_row *row = &l->rows[i];
        fprintf(to, "{\"shape\":\"%s\",\"detail\":", row->shape);
        json_string(to, row->detail);
        fprintf(to,
                ",\"param\":%.0f,\"granary_ns\":%.2f,\"p99_ns\":%.1f,\"max_ns\":%.1f,\"glibc_ns\":%.2f,"
                "\"wall_ns\":%.2f,\"glibc_threads_ns\":%.2f,\"misses\":%.6f,\"reserved_ratio\":%.4f,"
                "\"driver\":\"%s\"}%s\n",
                row->param, row->figures.median, row->figures.p99, row->figures.max, row->glibc, row->wall,
                row->wall > 0 ? row->glibc_wall : row->glibc, row->misses, row->ratio,
                l->device.simulated ? "sim" : "cuda", i + 1 < l->count ? "," : "");
    }
    fputs("]\n", to);
    if (fclose(to) != 0) return -1;
    printf("\nwritten: %s", path);
    const struct latency_host *h = &l->host;
    if (h->handle_bytes > 0) {
        snprintf(path, sizeof path, "%s/host.json", folder);
        to = fopen(path, "w");
        if (to == NULL) return -1;
        fprintf(to,
                "{\"handle_bytes\":%.0f,\"block_bytes\":%.1f,\"block_rss\":%.1f,\"small_block_bytes\":%.1f,"
                "\"small_block_rss\":%.1f,\"gib_bytes\":%.1f,\"gib_rss\":%.1f}\n",
                h->handle_bytes, h->block_bytes, h->block_rss, h->small_block_bytes, h->small_block_rss,
                h->gib_bytes, h->gib_rss);
        if (fclose(to) != 0) return -1;
        printf(" %s", path);
    }
    printf("\n");
    return 0;
}

static int usage(void) {
    fprintf(stderr, "use: latency [--driver auto|cuda|sim] [--conf STRING] [--only SHAPE] [--quick]\n"
                    "               [--traces DIR] [--out DIR] [--limit SECONDS]\n"
                    "shapes: host open pair replace holes rmm threads handoff trace\n");
    return 2;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"driver", required_argument, NULL, 'd'}, {"conf", required_argument, NULL, 'c'},
        {"only", required_argument, NULL, 's'},   {"traces", required_argument, NULL, 't'},
        {"out", required_argument, NULL, 'o'},    {"quick", no_argument, NULL, 'q'},
        {"limit", required_argument, NULL, 'l'},  {NULL, 0, NULL, 0},
    };
    static struct latency l = {.conf = "", .traces = "bench/traces"};
    enum device_want want = DEVICE_AUTO;
    const char *out = ".";
    int c;
    l.until = 1e300;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'd':
            if (device_parse(optarg, &want) == 0) break;
            return usage();
        case 'c': l.conf = optarg; break;
        case 's': l.only = optarg; break;
        case 't': l.traces = optarg; break;
        case 'o': out = optarg; break;
        case 'q': l.quick = true; break;
        case 'l': l.until = measure_now() + 1e9 * atof(optarg); break;
        default: return usage();
        }
    }
    measure_calibrate();
    if (device_open(&l.device, want) != 0) return EXIT_FAILURE;
    if (latency_wants(&l, "host")) shape_host(&l); /* first: it reads what the process holds */
    if (latency_wants(&l, "open")) shape_open(&l);
    if (latency_wants(&l, "pair")) shape_pair(&l);
    if (latency_wants(&l, "replace")) shape_replace(&l);
    if (latency_wants(&l, "holes")) shape_holes(&l);
    if (latency_wants(&l, "threads")) shape_threads(&l);
    if (latency_wants(&l, "handoff")) shape_handoff(&l);
    if (latency_wants(&l, "trace")) shape_traces(&l);
    if (latency_wants(&l, "rmm")) shape_rmm(&l);
    printf("granary %s on %s%s%s%s\n\n", granary_version(), l.device.name, l.conf[0] != 0 ? ", " : "", l.conf,
           l.quick ? " (quick: the figures mean little)" : "");
    print_rows(&l);
    if (measure_now() > l.until) printf("\nthe time was up: shapes may be missing\n");
    print_host(&l.host, l.device.simulated);
    int rc = write_json(&l, out);
    if (rc != 0) fprintf(stderr, "bench: cannot write to %s\n", out);
    device_close(&l.device);
    free(l.rows);
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
