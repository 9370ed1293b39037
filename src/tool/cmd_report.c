/* SPDX-License-Identifier: Apache-2.0
 * granary report: a snapshot or a trace as one page for a browser. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/arguments.h"
#include "tool/document.h"
#include "tool/page.h"
#include "tool/replay.h"
#include "tool/snapshot.h"
#include "tool/tool.h"

enum { CURVE_POINTS = 4000 };

struct arguments {
    const char *file, *output; /* output NULL: standard output */
    long device;               /* -1: the one that matters most */
    size_t card;
    bool help;
};

void cmd_report_help(void) {
    fputs(
        "granary report [--memory SIZE] [--device N] [-o OUT] FILE\n"
        "  Makes one page of HTML that needs no network: memory over time by allocation, the segments at a\n"
        "  chosen moment, who holds memory, what keeps free memory from being used; the diagnosis of\n"
        "  granary explain, and what other settings would have done.\n"
        "\n"
        "  FILE            a PyTorch snapshot (pickle), a granary snapshot or a trace, plain or gzipped; -\n"
        "                  is standard input\n"
        "  -o OUT          where the page goes; without it, or for -, to standard output\n"
        "  --memory SIZE   as for granary explain\n"
        "  --device N      which device of the snapshot (default: the one that ran out of memory, else the\n"
        "                  one with most events)\n",
        stdout);
}

static int wrong(const struct problem *problem) {
    return arguments_wrong("report", problem->text);
}

static int parse_arguments(int argc, char **argv, struct arguments *a, struct problem *problem) {
    static const struct option options[] = {
        {"memory", required_argument, NULL, 'm'},
        {"device", required_argument, NULL, 'd'},
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;
    optind = 0;
    while ((c = arguments_next(argc, argv, ":o:h", options, problem)) != -1) {
        switch (c) {
        case 'd':
            if (arguments_number("--device", optarg, INT_MAX, &a->device, problem) != 0) return -1;
            break;
        case 'm':
            if (arguments_size("--memory", optarg, &a->card, problem) != 0) return -1;
            break;
        case 'o': a->output = strcmp(optarg, "-") != 0 ? optarg : NULL; break;
        case 'h': a->help = true; return 0;
        default: return -1;
        }
    }
    if (optind == argc) return arguments_missing(argv[0], "a file to report on", problem);
    a->file = argv[optind];
    if (argc - optind == 1) return 0;
    problem_set(problem, "one file at a time: \"%.200s\" is one too many", argv[optind + 1]);
    return -1;
}

static const struct snapshot_device *choose(const struct snapshot *snapshot, long number,
                                            struct problem *problem) {
    const struct snapshot_device *best = number < 0 ? snapshot_main_device(snapshot) : NULL;
    for (size_t i = 0; i < snapshot->device_count && number >= 0; i++)
        if (snapshot->devices[i].index == number) best = &snapshot->devices[i];
    if (best != NULL) return best;
    if (number >= 0)
        problem_set(problem, "%s: it says nothing of device %ld", snapshot->path, number);
    else
        problem_set(problem, "%s: it says nothing of any device: no segments and no history", snapshot->path);
    return NULL;
}

/* A trace has no segments: what it would reserve is what it does reserve here. */
static int reserve(const struct snapshot *snapshot, const struct snapshot_device *device,
                   struct thin_point *points, size_t *count, struct problem *problem) {
    struct replay_setup setup = {.driver = REPLAY_SIM, .conf = ""};
    struct replay_point *curve = calloc(CURVE_POINTS, sizeof *curve);
    struct trace trace;
    int rc = -1;
    if (curve == NULL) {
        problem_set(problem, "%s: out of memory", snapshot->path);
        return -1;
    }
    if (snapshot_to_trace(snapshot, device, device->entry_count, &trace, NULL, problem) == 0) {
        rc = replay_series(&trace, &setup, curve, CURVE_POINTS, count, problem);
        trace_free(&trace);
    }
    /* A point of the replay tells the most of the stretch that ends with it. */
    for (size_t i = 0; rc == 0 && i < *count; i++)
        points[i] = (struct thin_point){i > 0 ? curve[i - 1].op : 0, curve[i].reserved};
    free(curve);
    return rc;
}

static int write_page(FILE *to, const struct explain *explain, struct problem *problem) {
    static struct thin_point points[CURVE_POINTS];
    struct document_more more = {.explain = explain, .reserved = points, .lives = DOCUMENT_LIVES};
    struct page page = page_split();
    if (explain->snapshot->from_trace &&
        reserve(explain->snapshot, explain->device, points, &more.reserved_count, problem) != 0)
        return -1;
    fwrite(page.head, 1, page.head_length, to);
    if (document_write(to, explain->snapshot, explain->device, &more, problem) != 0) return -1;
    fwrite(page.tail, 1, page.tail_length, to);
    return 0;
}

/* A page that could not be finished is not left behind. */
static int write_file(const char *path, const struct explain *explain, struct problem *problem) {
    FILE *to = fopen(path, "w");
    struct stat info;
    bool failed, file;
    int rc;
    if (to == NULL) {
        problem_set(problem, "-o: %s: %s", path, strerror(errno));
        return -1;
    }
    file = fstat(fileno(to), &info) == 0 && S_ISREG(info.st_mode);
    rc = write_page(to, explain, problem);
    failed = ferror(to) != 0;
    if ((fclose(to) != 0 || failed) && rc == 0) {
        problem_set(problem, "-o: %s: %s", path, strerror(errno));
        rc = -1;
    }
    if (rc != 0 && file) unlink(path);
    return rc;
}

int cmd_report(int argc, char **argv) {
    struct arguments a = {.device = -1};
    const struct snapshot_device *device;
    struct explain explain;
    struct snapshot snapshot;
    struct problem problem;
    int rc = -1;

    if (parse_arguments(argc, argv, &a, &problem) != 0) return wrong(&problem);
    if (a.help) {
        cmd_report_help();
        return TOOL_FINE;
    }
    if (a.output == NULL && isatty(STDOUT_FILENO)) {
        problem_set(&problem, "a page of HTML is not for a terminal: name a file with -o");
        return wrong(&problem);
    }
    if (snapshot_read(a.file, &snapshot, &problem) != 0) return wrong(&problem);
    device = choose(&snapshot, a.device, &problem);
    if (device != NULL && explain_make(&snapshot, device, a.card, &explain, &problem) == 0) {
        rc = a.output == NULL ? write_page(stdout, &explain, &problem)
                              : write_file(a.output, &explain, &problem);
        explain_free(&explain);
    }
    snapshot_free(&snapshot);
    return rc == 0 ? TOOL_FINE : wrong(&problem);
}
