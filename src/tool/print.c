/* SPDX-License-Identifier: Apache-2.0
 * Printing: an aligned table for people, one JSON object a line for programs. */
#include "tool/print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool/escape.h"

enum { FOLD_LEAST = 24, FOLD_INDENT = 4 }; /* a column that would be narrower goes to lines of its own */

void table_init(struct table *t, size_t columns) {
    *t = (struct table){.columns = columns};
}

/* A table without host memory prints nothing more: the process is about to fail anyway. */
static bool start_row(struct table *t) {
    if (t->rows == t->room) {
        size_t room = t->room == 0 ? 16 : t->room * 2;
        void *cells = realloc(t->cells, room * t->columns * sizeof *t->cells);
        void *under;
        if (cells == NULL) return false;
        t->cells = cells;
        under = realloc(t->under, room);
        if (under == NULL) return false;
        t->under = under;
        t->room = room;
    }
    memset(t->cells[t->rows * t->columns], 0, t->columns * sizeof *t->cells);
    t->under[t->rows++] = 0;
    t->used = 0;
    return true;
}

void table_put(struct table *t, const char *format, ...) {
    va_list list;
    if ((t->rows == 0 || t->used == t->columns) && !start_row(t)) return;
    va_start(list, format);
    vsnprintf(t->cells[(t->rows - 1) * t->columns + t->used++], TABLE_CELL, format, list);
    va_end(list);
}

void table_rule(struct table *t) {
    if (t->rows > 0) t->under[t->rows - 1] = 1;
}

/* Columns on a terminal: bytes that do not continue a UTF-8 character. */
static size_t width_of(const char *text) {
    size_t width = 0;
    for (; *text != 0; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void table_fold(struct table *t, FILE *to) {
    struct winsize size;
    if (isatty(fileno(to)) && ioctl(fileno(to), TIOCGWINSZ, &size) == 0) t->fold = size.ws_col;
}

/* Text in lines of at most room columns where blanks allow it; those after the first stand behind `indent`
 * blanks. */
static void put_folded(FILE *to, const char *text, size_t indent, size_t room) {
    while (strlen(text) > room) {
        const char *cut = text + room;
        while (cut > text && *cut != ' ') cut--;
        if (cut == text) break;
        fprintf(to, "%.*s\n%*s", (int)(cut - text), text, (int)indent, "");
        text = cut + 1;
    }
    fputs(text, to);
}

void table_print(struct table *t, FILE *to, size_t left) {
    size_t width[TABLE_COLUMNS] = {0}, sum = 0;
    size_t last, room = SIZE_MAX; /* where the last column begins, and how wide it may be */
    bool below = false;           /* it has lines of its own */
    for (size_t c = 0; c < t->columns; c++) {
        for (size_t r = 0; r < t->rows; r++) {
            size_t w = width_of(t->cells[r * t->columns + c]);
            if (w > width[c]) width[c] = w;
        }
        sum += width[c] + (c > 0 ? 2 : 0);
    }
    last = sum - width[t->columns - 1];
    if (t->fold > 2 * FOLD_LEAST && t->fold < sum) {
        below = t->fold < last + FOLD_LEAST;
        if (below) last = FOLD_INDENT;
        room = t->fold - last;
        sum = t->fold;
    }
    for (size_t r = 0; r < t->rows; r++) {
        size_t owed = 0; /* blanks are written before text only, so no line ends with them */
        for (size_t c = 0; c < t->columns; c++) {
            const char *cell = t->cells[r * t->columns + c];
            size_t pad = width[c] - width_of(cell);
            if (c > 0) owed += 2;
            if (c >= left) owed += pad;
            if (below && c > 0 && c + 1 == t->columns && *cell != 0) {
                fputc('\n', to);
                owed = FOLD_INDENT;
            }
            if (*cell != 0) {
                fprintf(to, "%*s", (int)owed, "");
                put_folded(to, cell, last, c + 1 == t->columns ? room : SIZE_MAX);
                owed = 0;
            }
            if (c < left) owed += pad;
        }
        fputc('\n', to);
        if (t->under[r]) {
            for (size_t i = 0; i < sum; i++) fputc('-', to);
            fputc('\n', to);
        }
    }
    free(t->cells);
    free(t->under);
    *t = (struct table){0};
}

const char *size_text(uint64_t bytes, char buffer[SIZE_TEXT]) {
    const double kib = 1024.0, mib = kib * kib, gib = mib * kib;
    if ((double)bytes >= gib)
        snprintf(buffer, SIZE_TEXT, "%.2f GiB", (double)bytes / gib);
    else if ((double)bytes >= mib)
        snprintf(buffer, SIZE_TEXT, "%.1f MiB", (double)bytes / mib);
    else if (bytes >= 1024)
        snprintf(buffer, SIZE_TEXT, "%.1f KiB", (double)bytes / kib);
    else
        snprintf(buffer, SIZE_TEXT, "%" PRIu64 " B", bytes);
    return buffer;
}

/* One character beyond ASCII; JSON is UTF-8, and names of files may be anything. Returns its length. */
static size_t json_character(FILE *to, const char *text) {
    size_t length = escape_length(text, strnlen(text, 4));
    if (length == 0)
        fputc('?', to);
    else
        fwrite(text, 1, length, to);
    return length == 0 ? 1 : length;
}

void json_string(FILE *to, const char *text) {
    fputc('"', to);
    for (; *text != 0; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7f || c == '<')
            fprintf(to, "\\u%04x", c);
        else if (c < 0x80)
            fputc(c, to);
        else
            text += json_character(to, text) - 1;
    }
    fputc('"', to);
}

static void text_field(FILE *to, const char *name, const char *value) {
    fprintf(to, "\"%s\":", name);
    json_string(to, value);
    fputc(',', to);
}

static void count_field(FILE *to, const char *name, uint64_t value) {
    fprintf(to, "\"%s\":%" PRIu64 ",", name, value);
}

void json_result(FILE *to, const struct replay_result *r) {
    const struct granary_driver_calls *c = &r->calls;
    fputc('{', to);
    text_field(to, "trace", r->trace);
    text_field(to, "conf", r->conf);
    text_field(to, "driver", r->driver);
    text_field(to, "device", r->device);
    count_field(to, "ops", r->ops);
    count_field(to, "allocs", r->allocs);
    if (r->out_of_memory) {
        count_field(to, "oom_at", r->oom_at);
        text_field(to, "oom_status", granary_status_name(r->oom_status));
        text_field(to, "oom_text", r->oom_text);
    } else {
        fputs("\"oom_at\":null,", to);
    }
    count_field(to, "peak_allocated_bytes", r->peak_allocated);
    count_field(to, "peak_active_bytes", r->peak_active);
    count_field(to, "peak_reserved_bytes", r->peak_reserved);
    if (r->peak_active > 0)
        fprintf(to, "\"peak_ratio\":%.6f,", (double)r->peak_reserved / (double)r->peak_active);
    else
        fputs("\"peak_ratio\":null,", to);
    fprintf(to, "\"ns_per_op\":%.1f,", r->cold_ns);
    if (r->warm_ns >= 0)
        fprintf(to, "\"ns_per_op_warm\":%.1f,", r->warm_ns);
    else
        fputs("\"ns_per_op_warm\":null,", to);
    count_field(to, "peak_reserved_bytes_warm", r->warm_reserved);
    count_field(to, "misses", r->misses);
    count_field(to, "extents", r->extents);
    count_field(to, "moved_extents", r->moved_extents);
    count_field(to, "moved_bytes", r->moved_bytes);
    count_field(to, "moving_ns", r->moving_ns);
    fputs("\"driver_calls\":{", to);
    count_field(to, "create", c->create);
    count_field(to, "map", c->map);
    count_field(to, "set_access", c->set_access);
    count_field(to, "unmap", c->unmap);
    count_field(to, "release", c->release);
    count_field(to, "reserve", c->reserve);
    count_field(to, "address_free", c->address_free);
    count_field(to, "mem_alloc", c->mem_alloc);
    count_field(to, "mem_free", c->mem_free);
    count_field(to, "event_record", c->event_record);
    count_field(to, "event_query", c->event_query);
    count_field(to, "synchronize", c->synchronize);
    fprintf(to, "\"other\":%" PRIu64 "}}", c->other);
}

const char *short_name(const char *path, char *buffer, size_t room) {
    static const char *const endings[] = {".gz", ".trace", ".txt", ".pickle", ".json"};
    const char *slash = strrchr(path, '/');
    size_t length;
    snprintf(buffer, room, "%s", slash == NULL || slash[1] == 0 ? path : slash + 1);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        length = strlen(buffer);
        if (length > strlen(endings[i]) && strcmp(buffer + length - strlen(endings[i]), endings[i]) == 0)
            buffer[length - strlen(endings[i])] = 0;
    }
    return buffer;
}
