/* SPDX-License-Identifier: Apache-2.0
 * granary replay: runs allocation traffic through the allocator and reports what it took. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <granary/options.h>

#include "tool/arguments.h"
#include "tool/print.h"
#include "tool/replay.h"
#include "tool/snapshot.h"
#include "tool/tool.h"

enum { SERIES_POINTS = 2000 };

struct arguments {
    struct replay_setup setup;
    const char **confs;
    size_t conf_count;
    bool json, help;
    const char *series;
    char **files;
    size_t file_count;
};

void cmd_replay_help(void) {
    fputs(
        "granary replay [--driver auto|cuda|sim] [--memory SIZE] [--conf STRING]... [--repeat N]\n"
        "               [--series OUT] [--json] FILE...\n"
        "  Replays allocation traffic, each file with each configuration, and reports what it took. With\n"
        "  --driver sim it needs no GPU: what would this job have taken under other settings?\n"
        "\n"
        "  FILE            a trace, or a snapshot of PyTorch or granary: its history, after what was live\n"
        "                  before that, up to its last out-of-memory; may be gzipped; - is standard input\n"
        "  --driver NAME   cuda: the GPU; sim: the simulated device; auto (default): the GPU, if there\n"
        "                  is one\n"
        "  --memory SIZE   the most that may be held (512MiB, 10GiB, 1000000), and the size of the\n"
        "                  simulated card (default: what the device has; the simulated one has 141 GiB)\n"
        "  --conf STRING   options as in GRANARY_CONF, like expandable_segments:False; of several each is\n"
        "                  a run of its own\n"
        "  --repeat N      warm passes after the cold one, of which the fastest counts (default 1)\n"
        "  --series OUT    writes the curves to OUT: lines of op,active,reserved in bytes, at most 2000 for\n"
        "                  each run, each the most within its stretch\n"
        "  --json          one object a line instead of a table\n"
        "\n"
        "  A trace has one operation a line: \"a ID SIZE STREAM\" allocates, \"f ID\" frees, \"r ID\" notes\n"
        "  that a free was requested while another stream still used the block; lines with # are comments.\n"
        "  Options are taken from --conf only, not from the environment. ns is the time of a call of alloc\n"
        "  or free, in a cold pass on a fresh handle and in a warm one after everything was freed; calls\n"
        "  are the driver's in the cold pass; active and reserved are what was in use and held at most.\n"
        "  A run ends at the first allocation that fails, at op: the index of that operation, from 0.\n"
        "  Below the table stands why, and what in --conf has no effect.\n",
        stdout);
}

static int wrong(const char *text) {
    return arguments_wrong("replay", text);
}

static int parse_driver(const char *name, enum replay_driver *out) {
    static const char *const names[] = {[REPLAY_AUTO] = "auto", [REPLAY_CUDA] = "cuda", [REPLAY_SIM] = "sim"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out = (enum replay_driver)i;
        return 0;
    }
    return -1;
}

static int parse_arguments(int argc, char **argv, struct arguments *a, struct problem *problem) {
    static const struct option options[] = {
        {"driver", required_argument, NULL, 'd'}, {"memory", required_argument, NULL, 'm'},
        {"conf", required_argument, NULL, 'c'},   {"repeat", required_argument, NULL, 'r'},
        {"series", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    long repeat;
    int c;
    optind = 0;
    while ((c = arguments_next(argc, argv, ":h", options, problem)) != -1) {
        switch (c) {
        case 'd':
            if (parse_driver(optarg, &a->setup.driver) == 0) break;
            problem_set(problem, "--driver: there is no \"%.40s\"; there are auto, cuda, sim", optarg);
            return -1;
        case 'm':
            if (arguments_size("--memory", optarg, &a->setup.memory, problem) != 0) return -1;
            break;
        case 'c':
            if (replay_check_conf(optarg, problem) != 0) return -1;
            a->confs[a->conf_count++] = optarg;
            break;
        case 'r':
            if (arguments_number("--repeat", optarg, 10000, &repeat, problem) != 0) return -1;
            a->setup.repeat = (unsigned)repeat;
            break;
        case 's': a->series = optarg; break;
        case 'j': a->json = true; break;
        case 'h': a->help = true; return 0;
        default: return -1;
        }
    }
    if (a->conf_count == 0) a->confs[a->conf_count++] = "";
    a->files = argv + optind;
    a->file_count = (size_t)(argc - optind);
    return a->file_count > 0 ? 0 : arguments_missing(argv[0], "a file to replay", problem);
}

/* Runs, in the order of the files and of the configurations of each. */
struct runs {
    struct replay_result *result;
    size_t count;
    bool short_of; /* some ran out of memory */
};

static const char *conf_words(const char *conf) {
    return conf[0] != 0 ? conf : "(default)";
}

/* Where all of them ran, and what they have in common. */
static void print_place(const struct arguments *a, const struct replay_result *r) {
    char memory[SIZE_TEXT];
    printf("%s: %s", r->driver, r->device);
    if (a->setup.memory > 0) printf(", %s", size_text(a->setup.memory, memory));
    if (a->conf_count == 1) printf("; %s", a->confs[0][0] != 0 ? a->confs[0] : "default settings");
    printf("\n\n");
}

static void add_row(struct table *table, const struct arguments *a, const struct runs *runs,
                    const struct replay_result *r) {
    const double mib = 1048576.0;
    char name[96];
    table_put(table, "%s", short_name(r->trace, name, sizeof name));
    if (a->conf_count > 1) table_put(table, "%s", conf_words(r->conf));
    table_put(table, "%zu", r->ops);
    table_put(table, "%.1f", (double)r->peak_active / mib);
    table_put(table, "%.1f", (double)r->peak_reserved / mib);
    if (r->peak_active > 0)
        table_put(table, "%.4f", (double)r->peak_reserved / (double)r->peak_active);
    else
        table_put(table, "-");
    table_put(table, "%.0f", r->cold_ns);
    if (r->warm_ns >= 0)
        table_put(table, "%.0f", r->warm_ns);
    else
        table_put(table, "-");
    table_put(table, "%" PRIu64, replay_calls(&r->calls));
    table_put(table, "%.1f", (double)r->moved_bytes / mib);
    if (runs->short_of && r->out_of_memory)
        table_put(table, "at op %zu", r->oom_at);
    else if (runs->short_of)
        table_put(table, "-");
}

static void print_results(const struct arguments *a, const struct runs *runs) {
    static const char *const headings[] = {"ops",     "active MiB", "reserved MiB", "ratio",
                                           "ns cold", "ns warm",    "calls",        "moved MiB"};
    const size_t left = a->conf_count > 1 ? 2 : 1, middle = sizeof headings / sizeof headings[0];
    struct table table;
    table_init(&table, left + middle + runs->short_of);
    table_put(&table, "trace");
    if (a->conf_count > 1) table_put(&table, "conf");
    for (size_t i = 0; i < middle; i++) table_put(&table, "%s", headings[i]);
    if (runs->short_of) table_put(&table, "fails");
    table_rule(&table);
    for (size_t i = 0; i < runs->count; i++) add_row(&table, a, runs, &runs->result[i]);
    table_print(&table, stdout, left);
}

/* Why runs ended early. */
static void print_reasons(const struct runs *runs) {
    struct table reasons;
    char name[96];
    if (!runs->short_of) return;
    table_init(&reasons, 3);
    for (size_t i = 0; i < runs->count; i++) {
        const struct replay_result *r = &runs->result[i];
        if (!r->out_of_memory) continue;
        table_put(&reasons, "  %s", short_name(r->trace, name, sizeof name));
        table_put(&reasons, "%s", conf_words(r->conf));
        table_put(&reasons, "op %zu: %s", r->oom_at, r->oom_text);
    }
    putchar('\n');
    table_print(&reasons, stdout, 3);
}

/* What a run does not show: settings of --conf that have no effect, or more than one may think. */
static void print_warnings(const struct arguments *a) {
    char text[512];
    bool any = false;
    for (size_t c = 0; c < a->conf_count; c++) {
        struct granary_options options;
        granary_options_init(&options);
        if (granary_options_parse(&options, a->confs[c], NULL, NULL) != GRANARY_OK) continue;
        for (size_t i = 0; granary_options_warning(&options, i, text, sizeof text) == GRANARY_OK; i++) {
            printf("%s  %s: %s\n", any ? "" : "\nwarnings:\n", a->confs[c], text);
            any = true;
        }
    }
}

static void print_runs(const struct arguments *a, const struct runs *runs) {
    if (a->json || runs->count == 0) return;
    print_place(a, &runs->result[0]);
    print_results(a, runs);
    print_reasons(runs);
    print_warnings(a);
}

static int write_series(const struct trace *trace, const struct replay_setup *setup, FILE *to,
                        struct problem *problem) {
    static struct replay_point points[SERIES_POINTS];
    size_t count;
    if (replay_series(trace, setup, points, SERIES_POINTS, &count, problem) != 0) return -1;
    fprintf(to, "# %s %s\nop,active,reserved\n", trace->path, setup->conf);
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%zu,%" PRIu64 ",%" PRIu64 "\n", points[i].op, points[i].active, points[i].reserved);
    return 0;
}

/* Replays every trace with every configuration. Returns an exit status. */
static int replay_all(const struct arguments *a, const struct trace *traces, FILE *series) {
    struct replay_setup setup = a->setup;
    struct problem problem;
    struct runs runs = {.result = calloc(a->file_count * a->conf_count, sizeof *runs.result)};
    int rc = TOOL_FINE;

    if (runs.result == NULL) return wrong("out of memory");
    setup.driver = replay_resolve(setup.driver);
    for (size_t f = 0; f < a->file_count && rc != TOOL_WRONG; f++) {
        for (size_t c = 0; c < a->conf_count && rc != TOOL_WRONG; c++) {
            struct replay_result *result = &runs.result[runs.count];
            setup.conf = a->confs[c];
            if (replay_run(&traces[f], &setup, result, &problem) != 0 ||
                (series != NULL && write_series(&traces[f], &setup, series, &problem) != 0)) {
                rc = wrong(problem.text);
                break;
            }
            runs.count++;
            runs.short_of |= result->out_of_memory;
            if (result->out_of_memory) rc = TOOL_OUT_OF_MEMORY;
            if (!a->json) continue;
            json_result(stdout, result);
            putchar('\n');
            fflush(stdout);
        }
    }
    print_runs(a, &runs);
    free(runs.result);
    return rc;
}

static int replay_into(const struct arguments *a, const struct trace *traces, struct problem *problem) {
    FILE *series = a->series != NULL ? fopen(a->series, "w") : NULL;
    bool failed;
    int rc;
    if (a->series != NULL && series == NULL) {
        problem_set(problem, "--series: %s: %s", a->series, strerror(errno));
        return wrong(problem->text);
    }
    rc = replay_all(a, traces, series);
    if (series == NULL) return rc;
    failed = ferror(series) != 0;
    if (fclose(series) == 0 && !failed) return rc;
    problem_set(problem, "--series: %s: %s", a->series, strerror(errno));
    return wrong(problem->text);
}

/* Every file is read before the first is replayed, so that a mistake in the last costs no time. */
static int replay_files(const struct arguments *a, struct problem *problem) {
    struct trace *traces = calloc(a->file_count, sizeof *traces);
    size_t read = 0;
    int rc;
    if (traces == NULL) return wrong("out of memory");
    while (read < a->file_count && snapshot_read_trace(a->files[read], &traces[read], problem) == 0) read++;
    rc = read < a->file_count ? wrong(problem->text) : replay_into(a, traces, problem);
    while (read > 0) trace_free(&traces[--read]);
    free(traces);
    return rc;
}

int cmd_replay(int argc, char **argv) {
    struct arguments a = {.setup = {.driver = REPLAY_AUTO, .conf = "", .repeat = 1}};
    struct problem problem;
    int rc = TOOL_FINE;
    a.confs = calloc((size_t)argc + 1, sizeof *a.confs);
    if (a.confs == NULL) return wrong("out of memory");
    if (parse_arguments(argc, argv, &a, &problem) != 0)
        rc = wrong(problem.text);
    else if (a.help)
        cmd_replay_help();
    else
        rc = replay_files(&a, &problem);
    free(a.confs);
    return rc;
}
