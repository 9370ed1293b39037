/* SPDX-License-Identifier: Apache-2.0
 * granary summary: the table of figures, of a snapshot file. */
#include <getopt.h>
#include <stdio.h>

#include "tool/arguments.h"
#include "tool/print.h"
#include "tool/statistics.h"
#include "tool/tool.h"

void cmd_summary_help(void) {
    fputs("granary summary [--abbreviated] [--json] FILE...\n"
          "  The table of PyTorch's memory_summary for a snapshot. Of PyTorch's own, which do not hold the\n"
          "  figures, peaks and totals are counted over the history, as far back as that reaches.\n"
          "\n"
          "  FILE            as for granary explain\n"
          "  --abbreviated   without the rows of each size class\n"
          "  --json          one object a line for each file and device\n",
          stdout);
}

static int wrong(const struct problem *problem) {
    return arguments_wrong("summary", problem->text);
}

static void json_stat(const char *name, const struct granary_stat *s, const char *end) {
    printf("\"%s\":{\"current\":%lld,\"peak\":%lld,\"total_up\":%lld,\"total_down\":%lld}%s", name,
           (long long)s->current, (long long)s->peak, (long long)s->total_up, (long long)s->total_down, end);
}

static void json_class(const char *name, const struct granary_stat_by_class *s) {
    printf(",\"%s\":{", name);
    json_stat("all", &s->all, ",");
    json_stat("small", &s->small, ",");
    json_stat("large", &s->large, "}");
}

static void print_json(const struct snapshot *s, const struct snapshot_device *d,
                       const struct granary_stats *f, const struct granary_split_stats *split) {
    fputs("{\"file\":", stdout);
    json_string(stdout, s->path);
    printf(",\"device\":%d,\"entries\":%zu,\"out_of_memory\":%lld,\"pending_blocks\":%lld", d->index,
           d->entry_count, (long long)f->out_of_memory, (long long)f->pending_blocks);
    json_class("allocated_bytes", &f->allocated_bytes);
    json_class("active_bytes", &f->active_bytes);
    json_class("requested_bytes", &f->requested_bytes);
    json_class("reserved_bytes", &f->reserved_bytes);
    json_class("allocations", &f->allocations);
    json_class("active_blocks", &f->active_blocks);
    json_class("segments", &f->segments);
    json_class("split_bytes", &split->split_bytes);
    json_class("split_blocks", &split->split_blocks);
    fputs("}\n", stdout);
}

/* named: the table says of which device it is, but not of which file. */
static int summarize(const char *path, bool json, bool abbreviated, bool named, struct problem *problem) {
    char text[GRANARY_SUMMARY_ROOM];
    struct snapshot s;
    int rc = 0;
    if (snapshot_read(path, &s, problem) != 0) return wrong(problem);
    if (s.device_count == 0) {
        problem_set(problem, "%s: the snapshot is empty: no segments, no history", path);
        rc = wrong(problem);
    }
    if (rc == 0 && named && !json) printf("%s:\n", path);
    for (size_t i = 0; i < s.device_count && rc == 0; i++) {
        struct granary_stats figures;
        struct granary_split_stats split;
        if (statistics_of(&s, &s.devices[i], &figures, &split, problem) != 0) {
            rc = wrong(problem);
        } else if (json) {
            print_json(&s, &s.devices[i], &figures, &split);
        } else {
            granary_format_summary(s.devices[i].index, &figures, &split, abbreviated, text, sizeof text);
            fputs(text, stdout);
            if (!s.own)
                printf("peaks and totals over a history of %zu entries; 0 stands for what it does not say as "
                       "well:\n"
                       "extents, moves, misses, and in a trace reserved memory\n",
                       s.devices[i].entry_count);
        }
    }
    snapshot_free(&s);
    return rc;
}

int cmd_summary(int argc, char **argv) {
    static const struct option options[] = {
        {"abbreviated", no_argument, NULL, 'a'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool json = false, abbreviated = false;
    struct problem problem;
    int c, rc = TOOL_FINE;
    optind = 0;
    while ((c = arguments_next(argc, argv, ":h", options, &problem)) != -1) {
        switch (c) {
        case 'a': abbreviated = true; break;
        case 'j': json = true; break;
        case 'h': cmd_summary_help(); return TOOL_FINE;
        default: return wrong(&problem);
        }
    }
    if (optind == argc) {
        arguments_missing(argv[0], "a file to summarize", &problem);
        return wrong(&problem);
    }
    for (int i = optind; i < argc && rc == TOOL_FINE; i++)
        rc = summarize(argv[i], json, abbreviated, argc - optind > 1, &problem);
    return rc;
}
