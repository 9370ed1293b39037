/* SPDX-License-Identifier: Apache-2.0
 * A byte sink. */
#include "base/sink.h"

#include <errno.h>
#include <unistd.h>

void gr_sink_init(struct gr_sink *sink, gr_sink_taker taker, void *context) {
    sink->taker = taker;
    sink->context = context;
    sink->failed = false;
    sink->total = 0;
    sink->used = 0;
}

void gr_sink_flush(struct gr_sink *sink) {
    if (sink->used > 0 && !sink->failed)
        sink->failed = sink->taker(sink->context, sink->buffer, sink->used) != 0;
    sink->used = 0;
}

void gr_sink_put(struct gr_sink *sink, const void *bytes, size_t size) {
    const unsigned char *from = bytes;
    sink->total += size;
    while (size > 0) {
        if (sink->used == GR_SINK_ROOM) gr_sink_flush(sink);
        size_t part = gr_min(size, GR_SINK_ROOM - sink->used);
        memcpy(sink->buffer + sink->used, from, part);
        sink->used += part;
        from += part;
        size -= part;
    }
}

bool gr_sink_end(struct gr_sink *sink) {
    gr_sink_flush(sink);
    return !sink->failed;
}

int gr_sink_to_fd(void *fd, const void *bytes, size_t size) {
    const char *from = bytes;
    while (size > 0) {
        ssize_t written = write(*(int *)fd, from, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return -1;
        from += written;
        size -= (size_t)written;
    }
    return 0;
}
