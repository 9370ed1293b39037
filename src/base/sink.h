/* SPDX-License-Identifier: Apache-2.0
 * A byte sink: bytes go in one by one or in runs, and out in large pieces to whoever takes them.
 *
 * After the first failure everything that comes is dropped, so that who writes need not look at each
 * step: gr_sink_end tells how it went.
 *
 * No locks: a sink belongs to the thread that writes. The taker is called with none held. */
#ifndef GR_BASE_SINK_H
#define GR_BASE_SINK_H

#include <string.h>

#include "base/base.h"

/* Takes size bytes; 0, or anything else to stop. */
typedef int (*gr_sink_taker)(void *context, const void *bytes, size_t size);

enum { GR_SINK_ROOM = 32 * 1024 };

struct gr_sink {
    gr_sink_taker taker;
    void *context;
    bool failed;
    uint64_t total; /* bytes that came in */
    size_t used;
    unsigned char buffer[GR_SINK_ROOM];
};

void gr_sink_init(struct gr_sink *sink, gr_sink_taker taker, void *context);
/* Gives the rest on. False: some bytes were not taken. */
GR_MUST bool gr_sink_end(struct gr_sink *sink);

void gr_sink_flush(struct gr_sink *sink);
void gr_sink_put(struct gr_sink *sink, const void *bytes, size_t size);
static inline void gr_sink_byte(struct gr_sink *sink, unsigned char byte) {
    if (GR_UNLIKELY(sink->used == GR_SINK_ROOM)) gr_sink_flush(sink);
    sink->buffer[sink->used++] = byte;
    sink->total++;
}
static inline void gr_sink_text(struct gr_sink *sink, const char *text) {
    gr_sink_put(sink, text, strlen(text));
}

/* A taker for a file descriptor, whose address is the context: writes everything or fails. */
int gr_sink_to_fd(void *fd, const void *bytes, size_t size);

#endif
