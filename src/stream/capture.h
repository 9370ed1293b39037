/* SPDX-License-Identifier: Apache-2.0
 * Captures: streams being recorded into a graph, and the blocks that were freed meanwhile.
 *
 *      open ──> bound (the driver's id is known) ──> ended
 *               |
 *               +─ marked    freed here; markers say where in the graph its last uses stand
 *               +─ unproved  freed here; nothing can be said before the capture ends
 *
 * At a free the terminals of every stream that used the block (or empty nodes behind them) are kept
 * as markers. A request on a stream may have the block once every marker lies in that stream's reach:
 * the next node of the stream comes after all of them. What cannot be proved is never reused within
 * the capture, and at once when it ends, because a graph runs as a whole, after it.
 *
 * Not proved: a using stream is outside the capture, or used the block before it; its terminals are held
 * by programmatic edges; it has no terminals although the graph has nodes; its reach is broken; the host
 * has no memory.
 *
 * Invariants: C1 a block is in the list of at most one capture
 *             C2 a capture that is bound has a number of the driver's that no other open one has
 * Locks: the DEFER lock. */
#ifndef GR_STREAM_CAPTURE_H
#define GR_STREAM_CAPTURE_H

#include "stream/reach.h"
#include "stream/use.h"

/* What a stream says about its capture. */
struct gr_capture_info {
    bool active;           /* being captured, and valid */
    unsigned long long id; /* the driver's */
    gr_cu_graph graph;
    const gr_cu_node *nodes; /* terminals; valid until the next call on the stream */
    const struct gr_cu_edge *edges;
    size_t count;
};

struct gr_capture_stream { /* a stream in a capture */
    struct gr_capture_stream *next;
    struct gr_stream *stream;
    struct gr_reach reach;
};

struct gr_marked { /* a block freed in a capture, with its markers */
    struct gr_list link;
    struct gr_watch watch; /* node: the markers */
    struct gr_block *block;
    struct gr_stream *owner; /* stream of the block's pool */
    const void *kin;         /* token: blocks of one kin may serve each other's streams */
    gr_cu_node node[];
};

struct gr_capture {
    struct gr_list link;
    uint32_t number;       /* ours, from 1; never used again */
    unsigned long long id; /* the driver's; 0: not known yet */
    struct gr_stream *origin;
    struct gr_capture_stream *streams;
    struct gr_list marked;
    struct gr_block *unproved; /* by u.live.parked */
};

/* Asks the driver; on anything but success the stream counts as not captured. */
void gr_capture_ask(struct gr_driver *driver, gr_cu_stream stream, struct gr_capture_info *out);

/* The open capture that the answer belongs to, binding it if it is new; or NULL. */
struct gr_capture *gr_capture_of(struct gr_list *captures, struct gr_driver *driver,
                                 const struct gr_capture_info *info);

/* Marks a PENDING block that was freed in the capture. False: it is unproved. */
bool gr_capture_mark(struct gr_capture *capture, struct gr_driver *driver, struct gr_block *block,
                     struct gr_stream *owner, const void *kin, bool empty_nodes);

/* The blocks of pools of `stream` whose markers it has reached (by u.live.parked), off the list. */
struct gr_block *gr_capture_reached(struct gr_capture *capture, struct gr_driver *driver,
                                    struct gr_stream *stream);

/* The smallest marked block of the kin that has size bytes and whose markers all streams of the
 * capture have reached, `stream` among them; off the list. NULL: none. */
struct gr_block *gr_capture_shared(struct gr_capture *capture, struct gr_driver *driver,
                                   struct gr_stream *stream, const void *kin, size_t size);

/* All its blocks, by u.live.parked; the capture's own memory is given back. */
struct gr_block *gr_capture_close(struct gr_capture *capture);

#endif
