/* SPDX-License-Identifier: Apache-2.0
 * make bench: replays the traces in both modes and sets the result beside PyTorch's, as a table, as
 * JSON and as a picture. Runs on the GPU when there is one, else on the simulated device. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <granary/granary.h>

#include "cases.h"
#include "recorded.h"
#include "svg.h"
#include "tool/print.h"
#include "tool/replay.h"
#include "tool/trace.h"

enum { MOST_TRACES = 64, POINTS = 600 };

static const char *const mode_conf[MODES] = {"expandable_segments:False", "expandable_segments:True"};
static const double MIB = 1048576.0;

struct run {
    char *path;
    char name[64];
    size_t ops;
    struct replay_result result[MODES];
    struct svg_curve curve[MODES];
};

struct bench {
    struct recorded recorded;
    struct run runs[MOST_TRACES];
    size_t count;
    enum replay_driver driver;
};

static int complain(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    return EXIT_FAILURE;
}

/* In the order of the recorded figures, then by name. */
static int compare_runs(const void *a, const void *b, void *data) {
    const struct run *left = a, *right = b;
    size_t i = recorded_rank(data, left->name), j = recorded_rank(data, right->name);
    if (i != j) return i < j ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int find_traces(struct bench *b, const char *folder) {
    struct dirent *entry;
    DIR *dir = opendir(folder);
    if (dir == NULL) return -1;
    while ((entry = readdir(dir)) != NULL && b->count < MOST_TRACES) {
        struct run *run = &b->runs[b->count];
        if (strstr(entry->d_name, ".trace") == NULL) continue;
        if (asprintf(&run->path, "%s/%s", folder, entry->d_name) < 0) break;
        short_name(run->path, run->name, sizeof run->name);
        b->count++;
    }
    closedir(dir);
    qsort_r(b->runs, b->count, sizeof b->runs[0], compare_runs, &b->recorded);
    return 0;
}

static int measure(struct bench *b, struct run *run, unsigned repeat, struct problem *problem) {
    struct trace trace;
    int rc = 0;
    if (trace_read(run->path, &trace, problem) != 0) return -1;
    run->ops = trace.count;
    for (int mode = 0; mode < MODES && rc == 0; mode++) {
        struct replay_setup setup = {.driver = b->driver, .conf = mode_conf[mode], .repeat = repeat};
        struct svg_curve *curve = &run->curve[mode];
        const struct recorded_figures *theirs = recorded_find(&b->recorded, run->name, mode);
        rc = replay_run(&trace, &setup, &run->result[mode], problem);
        curve->points = calloc(POINTS, sizeof *curve->points);
        if (curve->points == NULL) {
            problem_set(problem, "out of memory");
            rc = -1;
        }
        if (rc == 0) rc = replay_series(&trace, &setup, curve->points, POINTS, &curve->count, problem);
        if (run->result[mode].peak_active > 0)
            curve->ratio = (double)run->result[mode].peak_reserved / (double)run->result[mode].peak_active;
        if (theirs != NULL) {
            curve->pytorch_bytes = theirs->reserved_bytes;
            curve->pytorch_ratio = theirs->ratio;
        }
    }
    trace_free(&trace);
    return rc;
}

static void print_table(const struct bench *b) {
    static const char *const headings[] = {"trace",     "mode",    "active MiB",       "reserved MiB",
                                           "ratio",     "ns cold", "ns warm",          "calls",
                                           "moved MiB", "│",       "reserved MiB",     "ratio",
                                           "ns cold",   "ns warm", "granary / PyTorch"};
    enum { COLUMNS = sizeof headings / sizeof headings[0] };
    struct table table;
    table_init(&table, COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) table_put(&table, "%s", headings[i]);
    table_rule(&table);
    for (size_t i = 0; i < b->count; i++) {
        for (int mode = 0; mode < MODES; mode++) {
            const struct replay_result *r = &b->runs[i].result[mode];
            const struct recorded_figures *theirs = recorded_find(&b->recorded, b->runs[i].name, mode);
            table_put(&table, "%s", mode == 0 ? b->runs[i].name : "");
            table_put(&table, "%s", recorded_mode_names[mode]);
            table_put(&table, "%.1f", (double)r->peak_active / MIB);
            table_put(&table, "%.1f", (double)r->peak_reserved / MIB);
            if (r->out_of_memory)
                table_put(&table, "failed at op %zu", r->oom_at);
            else
                table_put(&table, "%.4f", b->runs[i].curve[mode].ratio);
            table_put(&table, "%.0f", r->cold_ns);
            if (r->warm_ns >= 0)
                table_put(&table, "%.0f", r->warm_ns);
            else
                table_put(&table, "-");
            table_put(&table, "%" PRIu64, replay_calls(&r->calls));
            table_put(&table, "%.0f", (double)r->moved_bytes / MIB);
            table_put(&table, "│");
            if (theirs == NULL) {
                for (int c = 0; c < 5; c++) table_put(&table, "-");
                continue;
            }
            table_put(&table, "%.1f", theirs->reserved_bytes / MIB);
            table_put(&table, "%.4f", theirs->ratio);
            table_put(&table, "%.0f", theirs->ns_cold);
            table_put(&table, "%.0f", theirs->ns_warm);
            /* Less than the recorded ratio's last digit is no difference. */
            if (fabs((double)r->peak_reserved / theirs->reserved_bytes - 1) < 5e-5)
                table_put(&table, "equal");
            else
                table_put(&table, "%+.2f %%", ((double)r->peak_reserved / theirs->reserved_bytes - 1) * 100);
        }
    }
    table_print(&table, stdout, 2);
}

static int write_json(const struct bench *b, const struct case_result *cases, const char *path) {
    FILE *to = fopen(path, "w");
    if (to == NULL) return -1;
    fputs("{\"recorded\":", to);
    json_string(to, b->recorded.source);
    fputs(",\n\"runs\":[\n", to);
    for (size_t i = 0; i < b->count; i++) {
        for (int mode = 0; mode < MODES; mode++) {
            const struct recorded_figures *theirs = recorded_find(&b->recorded, b->runs[i].name, mode);
            fprintf(to, "{\"mode\":\"%s\",\"granary\":", recorded_mode_names[mode]);
            json_result(to, &b->runs[i].result[mode]);
            if (theirs == NULL)
                fputs(",\"pytorch\":null}", to);
            else
                fprintf(to,
                        ",\"pytorch\":{\"peak_reserved_bytes\":%.0f,\"peak_ratio\":%.4f,\"ns_per_op\":%.0f,"
                        "\"ns_per_op_warm\":%.0f}}",
                        theirs->reserved_bytes, theirs->ratio, theirs->ns_cold, theirs->ns_warm);
            fputs(i + 1 == b->count && mode + 1 == MODES ? "\n" : ",\n", to);
        }
    }
    fputs("],\n\"cases\":", to);
    cases_json(cases, to);
    fputs("}\n", to);
    if (ferror(to)) errno = EIO;
    return ferror(to) | fclose(to) ? -1 : 0;
}

static int write_picture(const struct bench *b, const char *path) {
    struct svg_panel panels[MOST_TRACES];
    const char *device = b->runs[0].result[0].device;
    char where[160], recorded[160] = "";
    snprintf(where, sizeof where, "%s", b->driver == REPLAY_SIM ? "the simulated device" : device);
    if (b->recorded.source[0] != 0) snprintf(recorded, sizeof recorded, "Dashed: %s", b->recorded.source);
    for (size_t i = 0; i < b->count; i++) {
        const struct run *run = &b->runs[i];
        panels[i] = (struct svg_panel){run->name, recorded_what(&b->recorded, run->name), run->ops,
                                       run->curve[CLASSIC], run->curve[EXPANDABLE]};
    }
    return svg_write(path, where, recorded, panels, b->count);
}

static int bench_all(struct bench *b, const char *out, unsigned repeat) {
    struct case_result cases[CASES];
    struct problem problem;
    char path[512];
    int failed = 0;

    b->driver = replay_resolve(b->driver);
    for (size_t i = 0; i < b->count; i++) {
        if (measure(b, &b->runs[i], repeat, &problem) != 0) return complain(problem.text);
        for (int mode = 0; mode < MODES; mode++) failed |= b->runs[i].result[mode].out_of_memory;
    }
    if (cases_run(b->driver, cases, &problem) != 0) return complain(problem.text);

    printf("granary %s on %s (%s); right of the line: %s\n\n", granary_version(), b->runs[0].result[0].device,
           b->runs[0].result[0].driver, b->recorded.source[0] != 0 ? b->recorded.source : "nothing recorded");
    print_table(b);
    printf("\n");
    cases_print(cases);
    snprintf(path, sizeof path, "%s/fragmentation.json", out);
    if (write_json(b, cases, path) != 0) goto cannot_write;
    printf("\nwritten: %s", path);
    snprintf(path, sizeof path, "%s/fragmentation.svg", out);
    if (write_picture(b, path) != 0) goto cannot_write;
    printf(" %s\n", path);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;

cannot_write:
    problem_set(&problem, "%s: %s", path, strerror(errno));
    return complain(problem.text);
}

static int usage(void) {
    return complain("use: fragmentation [--driver auto|cuda|sim] [--traces DIR] [--recorded FILE] [--out "
                    "DIR] [--repeat N]");
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"traces", required_argument, NULL, 't'}, {"recorded", required_argument, NULL, 'r'},
        {"out", required_argument, NULL, 'o'},    {"driver", required_argument, NULL, 'd'},
        {"repeat", required_argument, NULL, 'n'}, {NULL, 0, NULL, 0},
    };
    static struct bench bench;
    const char *traces = "bench/traces", *recorded = "bench/pytorch.tsv", *out = ".";
    struct problem problem;
    unsigned repeat = 3;
    int c, rc;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 't': traces = optarg; break;
        case 'r': recorded = optarg; break;
        case 'o': out = optarg; break;
        case 'n': repeat = (unsigned)atoi(optarg); break;
        case 'd':
            if (strcmp(optarg, "auto") == 0)
                bench.driver = REPLAY_AUTO;
            else if (strcmp(optarg, "cuda") == 0)
                bench.driver = REPLAY_CUDA;
            else if (strcmp(optarg, "sim") == 0)
                bench.driver = REPLAY_SIM;
            else
                return usage();
            break;
        default: return usage();
        }
    }
    if (recorded_read(recorded, &bench.recorded, &problem) != 0) return complain(problem.text);
    if (find_traces(&bench, traces) != 0 || bench.count == 0) {
        problem_set(&problem, "%s: no trace there", traces);
        return complain(problem.text);
    }
    rc = bench_all(&bench, out, repeat);
    for (size_t i = 0; i < bench.count; i++) {
        for (int mode = 0; mode < MODES; mode++) free(bench.runs[i].curve[mode].points);
        free(bench.runs[i].path);
    }
    return rc;
}
