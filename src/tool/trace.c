/* SPDX-License-Identifier: Apache-2.0
 * Traces: the allocation traffic of a program, one operation a line. */
#include "tool/trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/map.h"

/* ---- reading --------------------------------------------------------------------------------- */

enum block_state { IN_USE, REQUESTED, FREED };

/* What the checks need to know of a block. */
struct seen {
    size_t line;  /* where it was allocated */
    size_t ended; /* where its free was requested or completed */
    enum block_state state;
};

struct reader {
    struct trace *trace;
    const char *at, *end; /* what is still to be read */
    const char *start;    /* of the line; NULL before the first */
    size_t line;
    size_t op_room, seen_room;
    struct seen *seen;
    struct map ids, streams;
    struct problem *problem;
};

static int fail(struct reader *r, const char *where, const char *what) {
    problem_set(r->problem, "%s:%zu:%zu: %s", r->trace->path, r->line, (size_t)(where - r->start) + 1, what);
    return -1;
}

static int no_memory(struct reader *r) {
    problem_set(r->problem, "%s: out of memory", r->trace->path);
    return -1;
}

static bool is_end(const struct reader *r) {
    return r->at == r->end || *r->at == '\n' || *r->at == '#';
}

static void skip_blanks(struct reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* A whole number in decimal; name says what it stands for. */
static int number(struct reader *r, const char *name, uint64_t *out, const char **where) {
    char what[96];
    uint64_t value = 0;
    skip_blanks(r);
    *where = r->at;
    if (is_end(r)) {
        snprintf(what, sizeof what, "the %s is missing", name);
        return fail(r, r->at, what);
    }
    for (; r->at < r->end && is_digit(*r->at); r->at++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*r->at - '0'), &value)) {
            snprintf(what, sizeof what, "the %s does not fit in 64 bits", name);
            return fail(r, *where, what);
        }
    }
    if (r->at == *where || !(is_end(r) || *r->at == ' ' || *r->at == '\t' || *r->at == '\r')) {
        snprintf(what, sizeof what, "the %s must be a whole number in decimal", name);
        return fail(r, r->at == *where ? *where : r->at, what);
    }
    *out = value;
    return 0;
}

/* Only blanks or a comment may follow. */
static int rest(struct reader *r) {
    skip_blanks(r);
    return is_end(r) ? 0 : fail(r, r->at, "the line goes on after the operation");
}

static int add_op(struct reader *r, struct trace_op op) {
    struct trace *t = r->trace;
    if (t->count == r->op_room) {
        size_t room = r->op_room == 0 ? 4096 : r->op_room * 2;
        struct trace_op *ops = realloc(t->ops, room * sizeof *ops);
        if (ops == NULL) return no_memory(r);
        t->ops = ops;
        r->op_room = room;
    }
    t->ops[t->count++] = op;
    return 0;
}

static int read_alloc(struct reader *r) {
    struct trace *t = r->trace;
    struct trace_op op = {.kind = TRACE_ALLOC};
    uint64_t id, stream;
    const char *id_at, *size_at, *stream_at;
    char what[96];
    struct map_slot *slot;

    if (number(r, "block's number", &id, &id_at) != 0) return -1;
    if (number(r, "size", &op.size, &size_at) != 0) return -1;
    if (number(r, "stream's number", &stream, &stream_at) != 0) return -1;
    if (rest(r) != 0) return -1;
    if (op.size > SIZE_MAX) return fail(r, size_at, "the size does not fit in this machine's addresses");

    if (!map_reserve(&r->ids) || !map_reserve(&r->streams)) return no_memory(r);
    slot = map_at(&r->ids, id);
    if (slot->index != 0) {
        snprintf(what, sizeof what, "block %llu was allocated before, in line %zu", (unsigned long long)id,
                 r->seen[slot->index - 1].line);
        return fail(r, id_at, what);
    }
    if (t->blocks == UINT32_MAX - 1) return fail(r, id_at, "more blocks than this program can count");
    if (t->blocks == r->seen_room) {
        size_t room = r->seen_room == 0 ? 4096 : r->seen_room * 2;
        struct seen *seen = realloc(r->seen, room * sizeof *seen);
        if (seen == NULL) return no_memory(r);
        r->seen = seen;
        r->seen_room = room;
    }
    r->seen[t->blocks] = (struct seen){.line = r->line, .state = IN_USE};
    op.block = (uint32_t)t->blocks++;
    *slot = (struct map_slot){id, op.block + 1};
    r->ids.used++;

    slot = map_at(&r->streams, stream);
    if (slot->index == 0) {
        if (t->streams == UINT16_MAX) return fail(r, stream_at, "more than 65535 streams");
        *slot = (struct map_slot){stream, (uint32_t)++t->streams};
        r->streams.used++;
    }
    op.stream = (uint16_t)(slot->index - 1);
    return add_op(r, op);
}

/* r ID and f ID. */
static int read_free(struct reader *r, enum trace_kind kind) {
    uint64_t id;
    const char *id_at;
    char what[96];
    struct map_slot *slot;
    struct seen *seen;

    if (number(r, "block's number", &id, &id_at) != 0) return -1;
    if (rest(r) != 0) return -1;
    slot = r->ids.slots == NULL ? NULL : map_at(&r->ids, id);
    if (slot == NULL || slot->index == 0) {
        snprintf(what, sizeof what, "block %llu is freed and was never allocated", (unsigned long long)id);
        return fail(r, id_at, what);
    }
    seen = &r->seen[slot->index - 1];
    if (seen->state == FREED || (seen->state == REQUESTED && kind == TRACE_REQUEST)) {
        snprintf(what, sizeof what, "block %llu was freed before, in line %zu", (unsigned long long)id,
                 seen->ended);
        return fail(r, id_at, what);
    }
    seen->state = kind == TRACE_FREE ? FREED : REQUESTED;
    seen->ended = r->line;
    return add_op(r, (struct trace_op){.kind = (uint8_t)kind, .block = slot->index - 1});
}

/* "# granary trace N" names the version; other comments say nothing to us. */
static int read_comment(struct reader *r) {
    static const char words[] = "# granary trace ";
    size_t left = (size_t)(r->end - r->at);
    if (left >= sizeof words - 1 && memcmp(r->at, words, sizeof words - 1) == 0) {
        const char *at = r->at + sizeof words - 1;
        if (r->trace->count > 0) return fail(r, r->at, "the version must stand before the first operation");
        if (at[0] != '1' || is_digit(at[1]))
            return fail(r, at, "the version of the trace is not 1, the only one known");
        r->trace->version = 1;
    }
    return 0;
}

static int read_line(struct reader *r) {
    char what[96];
    const char *letter;
    skip_blanks(r);
    if (r->at < r->end && *r->at == '#') return read_comment(r);
    if (is_end(r)) return 0;
    letter = r->at++;
    if (is_end(r) || *r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
        switch (*letter) {
        case 'a': return read_alloc(r);
        case 'r': return read_free(r, TRACE_REQUEST);
        case 'f': return read_free(r, TRACE_FREE);
        }
    }
    while (!is_end(r) && *r->at > ' ') r->at++;
    if (*letter < ' ' || *letter > '~')
        return fail(r, letter, "this is neither a snapshot nor a trace, whose operations are a, r, f");
    snprintf(what, sizeof what,
             r->trace->count > 0 ? "unknown operation \"%.*s\": there are a, r, f"
                                 : "this is neither a snapshot nor a trace: \"%.*s\" is none of its a, r, f",
             r->at - letter > 12 ? 12 : (int)(r->at - letter), letter);
    return fail(r, letter, what);
}

static int read_lines(struct reader *r) {
    while (r->at < r->end) {
        const char *next;
        r->line++;
        r->start = r->at;
        next = memchr(r->at, '\n', (size_t)(r->end - r->at));
        if (read_line(r) != 0) return -1;
        r->at = next == NULL ? r->end : next + 1;
    }
    if (r->trace->count > 0) return 0;
    problem_set(r->problem, r->start == NULL ? "%s: it is empty" : "%s: there is no operation in it",
                r->trace->path);
    return -1;
}

int trace_parse(const char *path, const char *text, size_t length, struct trace *out,
                struct problem *problem) {
    struct reader r = {.trace = out, .at = text, .end = text + length, .problem = problem};
    int rc;
    *out = (struct trace){.path = path, .version = 1};
    /* A pickle of protocol 2 and later starts with this byte. */
    if (length > 0 && (unsigned char)text[0] == 0x80) {
        problem_set(problem, "%s: this is a pickle, and here only traces are read", path);
        return -1;
    }
    rc = read_lines(&r);
    free(r.seen);
    map_free(&r.ids);
    map_free(&r.streams);
    if (rc != 0) trace_free(out);
    return rc;
}

int trace_read(const char *path, struct trace *out, struct problem *problem) {
    char *text;
    size_t length;
    int rc;
    if (source_read(path, &text, &length, problem) != 0) return -1;
    rc = trace_parse(path, text, length, out, problem);
    free(text);
    return rc;
}

void trace_free(struct trace *trace) {
    free(trace->ops);
    *trace = (struct trace){.path = trace->path};
}
