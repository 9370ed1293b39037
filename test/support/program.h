/* SPDX-License-Identifier: Apache-2.0
 * Random programs: what a correct user may do with streams, events, graphs, pools and blocks.
 *
 * A program keeps the user's side of the bargain and nothing more, so that whatever the oracle finds
 * is the library's fault. The user's side:
 *
 *   - a kernel uses a block between its allocation and its free, on the block's own stream, or on one
 *     that record_stream named before, and there after the point of the allocation (an event says so)
 *   - nodes of a graph use blocks allocated in its capture, or live ones that stay live as long as the
 *     graph does
 *   - launches of graphs that share a pool are ordered with each other and behind the streams that
 *     allocated in the pool; nothing but captures allocates in a pool that has graphs
 *   - whoever reads what a graph left in its memory waits for the launch, and the next launch for him
 *
 * Programs run one after the other on the same device, handle and streams (a batch), in the order of
 * a seed. The same seed is the same program, whatever ran before it. */
#ifndef SUPPORT_PROGRAM_H
#define SUPPORT_PROGRAM_H

#include "driver/driver.h"
#include "granary/sim.h"
#include "support/rng.h"

enum {
    PROGRAM_STREAMS = 6,
    PROGRAM_BLOCKS = 24,
    PROGRAM_EVENTS = 4,
    PROGRAM_POOLS = 3,
    PROGRAM_CAPTURES = 2,
    PROGRAM_GRAPHS = 4
};
enum { PROGRAM_BATCH = 128 }; /* programs of consecutive seeds that share a device */

/* When something comes after something else, by stream: the number of the last operation of each
 * stream that is known to come before. */
struct program_order {
    uint32_t seen[PROGRAM_STREAMS];
};

struct program_stream {
    granary_stream handle;                /* NULL: destroyed */
    int capture;                          /* that it is part of, or -1 */
    uint32_t tick;                        /* operations so far */
    struct program_order order, captured; /* outside of captures; within the capture */
    bool loose; /* dropped some of its work from the capture: it allocates nothing more in it */
};

struct program_block {
    char *ptr; /* NULL: this place is free */
    size_t size;
    uint64_t id;
    int owner;         /* -1: its stream is destroyed */
    unsigned declared; /* streams, one bit each */
    uint32_t born;     /* tick of the owner */
    uint64_t capture;  /* that it was allocated in, by serial; 0: none */
    int pool;          /* of that capture */
    bool launched;     /* the graph of that capture was */
    unsigned pins;     /* graphs whose nodes use it, by place, and captures, by place from bit 16 */
};

struct program_event {
    gr_cu_event event;
    bool recorded;
    int capture; /* recorded in it, or -1 */
    struct program_order order;
};

struct program_pool {
    granary_pool pool; /* 0: this place is free */
    bool graphs, on_shortage, launched;
    unsigned owners, readers; /* streams that a launch must wait for */
    gr_cu_event done;         /* of the last launch */
    int scopes, captures;
};

enum program_phase { PROGRAM_NONE, PROGRAM_RUNNING, PROGRAM_BROKEN /* invalidated */, PROGRAM_ENDED };

struct program_capture {
    enum program_phase phase;
    granary_capture capture;
    uint64_t serial;
    int pool, origin;
};

struct program_graph {
    gr_cu_graph graph; /* NULL: this place is free */
    gr_cu_graph_exec exec;
    uint64_t serial; /* of its capture */
    int pool;
    unsigned launches;
};

struct program {
    granary *g;
    struct gr_table cu;
    struct granary_options options;
    struct rng rng;
    uint64_t seed, ids, serials;
    size_t memory;
    bool loud;   /* say what is done, on standard output */
    bool helped; /* a second thread makes some of the calls */
    int width;   /* streams that it uses */
    struct program_stream streams[PROGRAM_STREAMS];
    struct program_block blocks[PROGRAM_BLOCKS];
    struct program_event events[PROGRAM_EVENTS];
    struct program_pool pools[PROGRAM_POOLS];
    struct program_capture captures[PROGRAM_CAPTURES];
    struct program_graph graphs[PROGRAM_GRAPHS];
    granary_scope scopes[4];
    int scope_pools[4], scope_count;
    gr_cu_event scratch;
    struct { /* freed in a capture with other users, to count what comes back within it */
        void *ptr;
        uint64_t capture;
    } freed[16];
    unsigned freed_next;
    struct helper *helper;
    struct program_tally { /* what was tried, to see that programs do something */
        uint64_t programs, operations, kernels, nodes, foreign, launches, captures, broken, reused, failed;
    } tally;
    char words[640]; /* the first fault, or "" */
};

/* Opens device and handle for the batch that the seed is part of. */
void program_open(struct program *p, uint64_t seed);
void program_close(struct program *p);

/* Runs the program of a seed of the open batch. False: p->words says what was wrong. */
bool program_run(struct program *p, uint64_t seed);

/* Calls of granary that either of two threads makes. Returns the status. */
struct program_call {
    enum { PROGRAM_ALLOC, PROGRAM_FREE, PROGRAM_RECORD_STREAM } kind;
    size_t size;
    granary_stream stream;
    void *ptr;
    int status;
};
int program_call(struct program *p, struct program_call *call);
struct helper *program_helper_start(granary *g);
void program_helper_stop(struct helper *helper);

/* The parts of a program, for each other. */
void program_say(const struct program *p, const char *format, ...) GR_PRINTF(2, 3); /* when it is loud */
bool program_fault(struct program *p, const char *format, ...) GR_PRINTF(2, 3);     /* false, always */
bool program_cu(struct program *p, gr_cu_result code, const char *call);
int program_pick_stream(struct program *p);                  /* a live one */
bool program_capturing(const struct program *p, int stream); /* in a capture that is valid */
bool program_quiet(const struct program *p);                 /* no capture is open */
bool program_link(struct program *p, int from,
                  int to);            /* `to` waits for `from`; both outside captures or one of them */
bool program_sync(struct program *p); /* the host waits for everything; no capture is open */
void program_host_order(struct program *p);

/* Operations on blocks; false after a fault. */
bool program_alloc(struct program *p, int stream, size_t size,
                   struct program_block **out); /* NULL: none, and no fault */
bool program_free(struct program *p, struct program_block *b);
bool program_declare(struct program *p, struct program_block *b, int stream, bool *refused);
bool program_use(struct program *p, int stream, struct program_block *b); /* if a correct user may */

/* Shapes that random operations seldom make by themselves (program_shapes.c). */
bool program_carry(struct program *p);
bool program_loosen(struct program *p);
bool program_lend(struct program *p);
bool program_outlast(struct program *p);

/* Operations on captures, graphs and pools (program_graph.c); false after a fault. */
bool program_capture_begin(struct program *p);
bool program_capture_begin_on(struct program *p, int stream, int pool);
bool program_capture_step(struct program *p);
/* A member forgets its terminals, in one of the ways there are; empty: by having none. */
bool program_drop(struct program *p, int stream, bool empty);
bool program_capture_close(struct program *p, int capture);
bool program_launch(struct program *p);
bool program_graph_end(struct program *p, int graph);
bool program_pool_make(struct program *p);
bool program_pool_end(struct program *p, int pool);

#endif
