/* SPDX-License-Identifier: Apache-2.0
 * granary explain: why a job ran out of memory, from the snapshot that it left. */
#include <getopt.h>
#include <stdio.h>

#include "tool/arguments.h"
#include "tool/explain.h"
#include "tool/tool.h"

struct arguments {
    size_t card;
    bool json, help;
    char **files;
    int file_count;
};

void cmd_explain_help(void) {
    fputs(
        "granary explain [--memory SIZE] [--json] FILE...\n"
        "  Says why a job ran out of memory: a leak, fragmentation, a peak over the limit, memory pending\n"
        "  for other streams or stranded in other pools; or that nothing is wrong. Names the line in the\n"
        "  program, and the settings that would have fitted: it replays the job's traffic on granary under\n"
        "  each, on a simulated card. Needs no GPU. doc/guide.md explains the words.\n"
        "\n"
        "  FILE            a snapshot of PyTorch (pickle) or of granary (pickle, JSON), or a trace; may be\n"
        "                  gzipped; - is standard input. Of a pickle only plain data is read: no code runs.\n"
        "  --memory SIZE   the most that the job may hold (512MiB, 10GiB, 1000000). A snapshot of PyTorch\n"
        "                  does not say it; without this it is guessed. Of a job that did not fail: whether\n"
        "                  it would fit\n"
        "  --json          one object a line for each file and device\n",
        stdout);
}

static int wrong(const struct problem *problem) {
    return arguments_wrong("explain", problem->text);
}

static int parse_arguments(int argc, char **argv, struct arguments *a, struct problem *problem) {
    static const struct option options[] = {
        {"memory", required_argument, NULL, 'm'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c;
    optind = 0;
    while ((c = arguments_next(argc, argv, ":h", options, problem)) != -1) {
        switch (c) {
        case 'm':
            if (arguments_size("--memory", optarg, &a->card, problem) != 0) return -1;
            break;
        case 'j': a->json = true; break;
        case 'h': a->help = true; return 0;
        default: return -1;
        }
    }
    a->files = argv + optind;
    a->file_count = argc - optind;
    return a->file_count > 0 ? 0 : arguments_missing(argv[0], "a file to explain", problem);
}

static int explain_file(const char *path, const struct arguments *a, struct problem *problem) {
    struct snapshot snapshot;
    int rc = TOOL_FINE;
    if (snapshot_read(path, &snapshot, problem) != 0) return wrong(problem);
    if (snapshot.device_count == 0) {
        problem_set(problem, "%s: the snapshot is empty: no segments, no history", path);
        rc = wrong(problem);
    }
    for (size_t d = 0; d < snapshot.device_count && rc != TOOL_WRONG; d++) {
        struct explain explain;
        if (explain_make(&snapshot, &snapshot.devices[d], a->card, &explain, problem) != 0) {
            rc = wrong(problem);
            break;
        }
        if (a->json) {
            explain_print_json(&explain, stdout);
            putchar('\n');
        } else {
            explain_print(&explain, stdout);
            if (d + 1 < snapshot.device_count) putchar('\n');
        }
        if (explain.failed) rc = TOOL_OUT_OF_MEMORY;
        explain_free(&explain);
    }
    snapshot_free(&snapshot);
    return rc;
}

int cmd_explain(int argc, char **argv) {
    struct arguments a = {0};
    struct problem problem;
    int rc = TOOL_FINE, one;
    if (parse_arguments(argc, argv, &a, &problem) != 0) return wrong(&problem);
    if (a.help) {
        cmd_explain_help();
        return TOOL_FINE;
    }
    for (int i = 0; i < a.file_count; i++) {
        if (i > 0 && !a.json) putchar('\n');
        one = explain_file(a.files[i], &a, &problem);
        if (one == TOOL_WRONG) return one;
        if (one == TOOL_OUT_OF_MEMORY) rc = one;
    }
    return rc;
}
