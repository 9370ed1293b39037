/* SPDX-License-Identifier: Apache-2.0
 * Four small programs whose least possible memory is known exactly. */
#include "cases.h"

#include <string.h>

#include "tool/print.h"

#define MIB 1048576

/* Each case is a trace; PyTorch's figures are from its own note of June 2026, in MiB. */
static const struct {
    const char *what, *trace;
    int pytorch[MODES];
    int bound;
} cases[CASES] = {
    {"8 x 16 MiB, free all, 4 x 32 MiB",
     "a 0 16777216 0\na 1 16777216 0\na 2 16777216 0\na 3 16777216 0\n"
     "a 4 16777216 0\na 5 16777216 0\na 6 16777216 0\na 7 16777216 0\n"
     "f 0\nf 1\nf 2\nf 3\nf 4\nf 5\nf 6\nf 7\n"
     "a 8 33554432 0\na 9 33554432 0\na 10 33554432 0\na 11 33554432 0\n",
     {256, 140},
     128},
    {"4 x 32 MiB, free all, 8 x 16 MiB",
     "a 0 33554432 0\na 1 33554432 0\na 2 33554432 0\na 3 33554432 0\nf 0\nf 1\nf 2\nf 3\n"
     "a 4 16777216 0\na 5 16777216 0\na 6 16777216 0\na 7 16777216 0\n"
     "a 8 16777216 0\na 9 16777216 0\na 10 16777216 0\na 11 16777216 0\n",
     {128, 140},
     128},
    {"4 x 16 MiB, free #0 and #2, 32 MiB",
     "a 0 16777216 0\na 1 16777216 0\na 2 16777216 0\na 3 16777216 0\nf 0\nf 2\na 4 33554432 0\n",
     {96, 100},
     64},
    {"2 MiB, free, 0.5 MiB", "a 0 2097152 0\nf 0\na 1 524288 0\n", {22, 22}, 2},
};

static const char *const mode_conf[CASE_MODES] = {"expandable_segments:False", "expandable_segments:True",
                                                  "expandable_segments:True,reclaim:eager"};

int cases_run(enum replay_driver driver, struct case_result results[CASES], struct problem *problem) {
    for (int i = 0; i < CASES; i++) {
        for (int mode = 0; mode < CASE_MODES; mode++) {
            struct replay_setup setup = {.driver = driver, .conf = mode_conf[mode]};
            struct replay_result result;
            struct trace trace;
            int rc;
            if (trace_parse(cases[i].what, cases[i].trace, strlen(cases[i].trace), &trace, problem) != 0)
                return -1;
            rc = replay_run(&trace, &setup, &result, problem);
            trace_free(&trace);
            if (rc != 0) return -1;
            results[i].reserved[mode] = result.peak_reserved;
        }
    }
    return 0;
}

void cases_print(const struct case_result results[CASES]) {
    static const char *const headings[] = {"exact cases, peak reserved in MiB",
                                           "classic",
                                           "expandable",
                                           "reclaim:eager",
                                           "PyTorch classic",
                                           "PyTorch expandable",
                                           "bound"};
    enum { COLUMNS = sizeof headings / sizeof headings[0] };
    struct table table;
    table_init(&table, COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) table_put(&table, "%s", headings[i]);
    table_rule(&table);
    for (int i = 0; i < CASES; i++) {
        table_put(&table, "%s", cases[i].what);
        for (int mode = 0; mode < CASE_MODES; mode++)
            table_put(&table, "%.0f", (double)results[i].reserved[mode] / MIB);
        for (int mode = 0; mode < MODES; mode++) table_put(&table, "%d", cases[i].pytorch[mode]);
        table_put(&table, "%d", cases[i].bound);
    }
    table_print(&table, stdout, 1);
    printf("PyTorch: its own note of June 2026, with 20 MiB pages in expandable mode.\n");
}

void cases_json(const struct case_result results[CASES], FILE *to) {
    fputs("[\n", to);
    for (int i = 0; i < CASES; i++) {
        fputs("{\"case\":", to);
        json_string(to, cases[i].what);
        for (int mode = 0; mode < MODES; mode++)
            fprintf(to, ",\"%s_bytes\":%llu,\"pytorch_%s_bytes\":%lld", recorded_mode_names[mode],
                    (unsigned long long)results[i].reserved[mode], recorded_mode_names[mode],
                    (long long)cases[i].pytorch[mode] * MIB);
        fprintf(to, ",\"eager_bytes\":%llu", (unsigned long long)results[i].reserved[EAGER]);
        fprintf(to, ",\"bound_bytes\":%lld}%s\n", (long long)cases[i].bound * MIB, i + 1 < CASES ? "," : "");
    }
    fputs("]", to);
}
