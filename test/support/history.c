/* SPDX-License-Identifier: Apache-2.0
 * Snapshots for tests, written line by line. */
#include "support/history.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((format(printf, 2, 3))) static void put(struct history *h, const char *format, ...) {
    va_list list;
    if (h->room - h->length < 1024) {
        h->room = h->room * 2 + 4096;
        h->text = realloc(h->text, h->room);
        ck_assert_ptr_nonnull(h->text);
    }
    va_start(list, format);
    h->length += (size_t)vsnprintf(h->text + h->length, h->room - h->length, format, list);
    va_end(list);
}

void history_begin(struct history *h) {
    *h = (struct history){0};
    put(h, "{\"segments\":[");
}

static void end_segment(struct history *h) {
    if (h->segments > 0) put(h, "]}");
}

void history_segment(struct history *h, uint64_t address, uint64_t size, uint64_t stream, int flags) {
    end_segment(h);
    put(h,
        "%s{\"device\":0,\"address\":%" PRIu64 ",\"total_size\":%" PRIu64 ",\"stream\":%" PRIu64
        ",\"segment_type\":\"%s\",\"segment_pool_id\":[0,0],\"is_expandable\":%s,\"frames\":0,\"blocks\":[",
        h->segments++ > 0 ? "," : "", address, size, stream, flags & HISTORY_SMALL ? "small" : "large",
        flags & HISTORY_EXPANDABLE ? "true" : "false");
    h->blocks = 0;
    h->address = address;
}

void history_block(struct history *h, char state, uint64_t size, uint64_t requested, int line) {
    put(h,
        "%s{\"address\":%" PRIu64 ",\"size\":%" PRIu64 ",\"requested_size\":%" PRIu64
        ",\"state\":\"%s\",\"frames\":%d}",
        h->blocks++ > 0 ? "," : "", h->address, size, requested,
        state == 'L'   ? "active_allocated"
        : state == 'P' ? "active_pending_free"
                       : "inactive",
        line);
    h->address += size;
}

static void begin_entry(struct history *h, const char *action) {
    if (h->entries == 0) {
        end_segment(h);
        put(h, "],\"device_traces\":[[");
    }
    put(h, "%s{\"action\":\"%s\",", h->entries++ > 0 ? "," : "", action);
}

static void end_entry(struct history *h, uint64_t size, uint64_t stream, int line) {
    put(h, "\"size\":%" PRIu64 ",\"stream\":%" PRIu64 ",\"time_us\":%" PRId64 ",\"frames\":%d}", size, stream,
        h->time_us, line);
    h->time_us += 1000;
}

void history_entry(struct history *h, const char *action, uint64_t address, uint64_t size, uint64_t stream,
                   int line) {
    begin_entry(h, action);
    put(h, "\"addr\":%" PRIu64 ",", address);
    end_entry(h, size, stream, line);
}

void history_oom(struct history *h, uint64_t size, uint64_t device_free, uint64_t stream, int line) {
    begin_entry(h, "oom");
    put(h, "\"device_free\":%" PRIu64 ",", device_free);
    end_entry(h, size, stream, line);
}

static int end_and_parse(struct history *h, struct snapshot *out, struct problem *problem) {
    int rc;
    if (h->entries == 0) {
        end_segment(h);
        put(h, "],\"device_traces\":[[");
    }
    put(h, "]],\"allocator_settings\":{%s},\"stacks\":[[]", h->settings);
    for (int line = 1; line < HISTORY_LINES; line++)
        put(h,
            ",[{\"name\":\"empty\",\"filename\":\"lib/python3.12/site-packages/torch/"
            "functional.py\",\"line\":10},"
            "{\"name\":\"step\",\"filename\":\"train.py\",\"line\":%d}]",
            line);
    put(h, "]}");
    rc = snapshot_parse("h", h->text, h->length, out, problem);
    free(h->text);
    h->text = NULL;
    return rc;
}

void history_read(struct history *h, struct snapshot *out) {
    struct problem problem;
    if (end_and_parse(h, out, &problem) != 0) ck_abort_msg("%s", problem.text);
}

const char *history_refused(struct history *h) {
    static struct problem problem;
    struct snapshot snapshot;
    ck_assert_int_eq(end_and_parse(h, &snapshot, &problem), -1);
    ck_assert_ptr_null(snapshot.devices);
    return problem.text;
}
