/* SPDX-License-Identifier: Apache-2.0
 * Figures of another allocator on the same traces, measured elsewhere and kept in a file. */
#include "recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const recorded_mode_names[MODES] = {"classic", "expandable"};

enum { FIELDS = 8 };

/* One line: trace, what, mode, peak active in MiB, ratio, reserved bytes or -, ns cold, ns warm. */
static int read_row(char *line, struct recorded_figures *row) {
    char *field[FIELDS], *next = line;
    for (int i = 0; i < FIELDS; i++) {
        field[i] = strsep(&next, "\t");
        if (field[i] == NULL) return -1;
    }
    snprintf(row->trace, sizeof row->trace, "%s", field[0]);
    snprintf(row->what, sizeof row->what, "%s", field[1]);
    for (row->mode = 0; row->mode < MODES; row->mode++)
        if (strcmp(field[2], recorded_mode_names[row->mode]) == 0) break;
    if (row->mode == MODES) return -1;
    row->ratio = strtod(field[4], NULL);
    row->reserved_bytes = strcmp(field[5], "-") == 0 ? strtod(field[3], NULL) * 1048576.0 * row->ratio
                                                     : strtod(field[5], NULL);
    row->ns_cold = strtod(field[6], NULL);
    row->ns_warm = strtod(field[7], NULL);
    return row->ratio > 0 ? 0 : -1;
}

int recorded_read(const char *path, struct recorded *out, struct problem *problem) {
    static const char mark[] = "# source: ";
    char *text, *next, *line;
    size_t length, number = 0;
    if (source_read(path, &text, &length, problem) != 0) return -1;
    next = text;
    while ((line = strsep(&next, "\n")) != NULL) {
        number++;
        if (strncmp(line, mark, sizeof mark - 1) == 0)
            snprintf(out->source, sizeof out->source, "%s", line + sizeof mark - 1);
        if (line[0] == '#' || line[0] == 0) continue;
        if (out->count == sizeof out->rows / sizeof out->rows[0] ||
            read_row(line, &out->rows[out->count]) != 0) {
            problem_set(problem, "%s:%zu: not a line of recorded figures", path, number);
            free(text);
            return -1;
        }
        out->count++;
    }
    free(text);
    return 0;
}

const struct recorded_figures *recorded_find(const struct recorded *r, const char *trace, int mode) {
    for (size_t i = 0; i < r->count; i++)
        if (r->rows[i].mode == mode && strcmp(r->rows[i].trace, trace) == 0) return &r->rows[i];
    return NULL;
}

size_t recorded_rank(const struct recorded *r, const char *trace) {
    size_t i = 0;
    while (i < r->count && strcmp(r->rows[i].trace, trace) != 0) i++;
    return i;
}

const char *recorded_what(const struct recorded *r, const char *trace) {
    size_t i = recorded_rank(r, trace);
    return i < r->count ? r->rows[i].what : "";
}
