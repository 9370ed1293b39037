/* SPDX-License-Identifier: Apache-2.0
 * The simulated driver from inside: its objects, its lock, and what its files offer each other.
 *
 *      device.c    the process's one simulation: open, close, what is held; devices and contexts
 *      address.c   reservations, and the table granule -> mapping
 *      memory.c    extents: create, map, access, unmap, release
 *      classic.c   cuMemAlloc and what it needs; figures
 *      work.c      queues: submit, run, wait; fills, copies, kernels, host functions
 *      stream.c    streams and events
 *      capture.c   stream capture: state machine, terminals, what is prohibited
 *      graph.c     graphs, nodes, instantiation, launch
 *      oracle.c    happens-before and what it finds
 *      support.c   slots, clocks, terminals, reports
 *
 * What the real driver answers was measured: test/gpu/conformance.c asks both the same questions, and
 * doc/conformance.md says which. An answer that lets a mistake through is given with strict 0 and
 * reported as MISUSE; strict mode stops there.
 *
 * One simulation per process, because it stands for libcuda: that is the one exception to "no
 * globals". It uses plain malloc, not the library's host memory, so that refusals of host memory
 * planned by a test hit the library and never the driver; when malloc itself fails, it aborts.
 *
 * Objects behind driver handles (streams, events, graphs, nodes) live in slots whose memory is never
 * given back before closing. So any pointer can be asked whether it is live, and a stale handle is
 * found out instead of followed. Values of physical handles are never used twice.
 *
 * A stream is a handle on a queue. The queue outlives it, for work still pending, and for events and
 * waits that refer to it by (queue, sequence): done when completed >= sequence. Waits refer to what
 * was submitted before them, so queues cannot wait for each other in a circle.
 *
 * Happens-before is computed at submission, not at execution: the order of submissions under the
 * lock is a linear extension of it. Each queue has a vector clock (its own component counts its
 * submissions that touch memory); an event keeps the clock of its record; the host has one clock,
 * joined with what any thread saw complete. Whoever submits first joins the host's clock.
 *
 * Invariants
 *   X1  a granule's entry points to the mapping that covers it, and to no other
 *   X2  an extent lives while refs + mappings > 0; its bytes count against the card that long
 *   X3  completed <= submitted, and submitted - completed items lie in the queue (or one is busy)
 *   X4  a captured node's dependencies come before it in its graph
 *
 * Locks. One mutex guards everything. It is dropped while a host function runs (its queue is busy)
 * and while a thread sleeps for a held or busy queue. Per-thread state belongs to its thread. */
#ifndef GR_DRIVER_SIM_INTERNAL_H
#define GR_DRIVER_SIM_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "driver/abi.h"
#include "driver/sim/sim.h"
#include "granary/sim.h"

#define GR_SIM_ADDRESS_END ((gr_addr)1 << 47)

enum {
    GR_SIM_DEVICES = 16,
    GR_SIM_STACK = 32,     /* depth of a thread's context stack */
    GR_SIM_OVERRIDES = 32, /* attributes set by granary_sim_set_attribute */
    GR_SIM_CHUNKS = 24
};

/* ---- slots -------------------------------------------------------------------------------- */

struct gr_sim_slot { /* first member of every object in slots */
    struct gr_sim_slot *next;
    bool live;
};

struct gr_sim_slots {
    size_t size;                /* of an object */
    size_t quarantine;          /* dead slots kept unused; 0: the last that died is the next taken */
    void *chunk[GR_SIM_CHUNKS]; /* chunk i holds 64 << i objects */
    unsigned chunks;
    size_t fresh;                     /* objects of the last chunk not yet used once */
    struct gr_sim_slot *first, *last; /* dead ones */
    size_t dead, live;
};

void gr_sim_slots_init(struct gr_sim_slots *slots, size_t size, size_t quarantine);
void gr_sim_slots_fini(struct gr_sim_slots *slots);
void *gr_sim_slots_take(struct gr_sim_slots *slots); /* zeroed */
void gr_sim_slots_put(struct gr_sim_slots *slots, void *object);
bool gr_sim_slots_live(const struct gr_sim_slots *slots, const void *ptr); /* for any pointer at all */

/* ---- clocks ------------------------------------------------------------------------------- */

struct gr_sim_clock { /* a missing component is 0 */
    uint64_t *at;
    unsigned count, room;
};

void gr_sim_clock_join(struct gr_sim_clock *into, const struct gr_sim_clock *from);
void gr_sim_clock_copy(struct gr_sim_clock *into, const struct gr_sim_clock *from);
uint64_t gr_sim_clock_tick(struct gr_sim_clock *clock, unsigned index);
void gr_sim_clock_fini(struct gr_sim_clock *clock);
static inline bool gr_sim_clock_covers(const struct gr_sim_clock *clock, unsigned index, uint64_t epoch) {
    return epoch == 0 || (index < clock->count && clock->at[index] >= epoch);
}

/* ---- memory ------------------------------------------------------------------------------- */

struct gr_sim_shadow;

struct gr_sim_extent {
    gr_cu_handle id; /* the handle's value; of its own even for cuMemAlloc */
    size_t size;
    int device; /* -1: host memory */
    bool rdma;
    off_t file_offset; /* of its bytes, with MEMORY backing */
    unsigned refs, mappings;
    struct gr_sim_shadow *shadow; /* who used its bytes last; oracle.c */
};

struct gr_sim_touch { /* the last use of a mapping by a queue */
    unsigned queue;
    uint64_t epoch;
    const char *tag;
};

struct gr_sim_mapping {
    gr_addr addr;
    size_t size;
    struct gr_sim_extent *extent;
    bool classic; /* made by cuMemAlloc */
    size_t asked; /* classic: the size asked for */
    unsigned char access[GR_SIM_DEVICES];
    struct gr_sim_touch *touches;
    unsigned touch_count, touch_room;
};

struct gr_sim_reservation {
    gr_addr addr;
    size_t size;
};

/* ---- work --------------------------------------------------------------------------------- */

struct gr_sim_piece { /* bytes that work touches, within one mapping as it was at submission */
    gr_addr addr;
    size_t size;
    gr_cu_handle extent; /* 0: nothing was mapped */
    size_t offset;       /* within the extent */
    bool write;
};

enum gr_sim_kind {
    GR_SIM_EMPTY,
    GR_SIM_KERNEL,
    GR_SIM_FILL8,
    GR_SIM_FILL32,
    GR_SIM_COPY,
    GR_SIM_HOST,
    GR_SIM_LAUNCH
};

struct gr_sim_action {
    enum gr_sim_kind kind;
    int device;
    gr_addr to, from;
    size_t size; /* bytes */
    unsigned value;
    uint64_t owner; /* allocation id, or 0 */
    const char *tag;
    gr_cu_host_fn fn;
    void *data;
    struct gr_sim_program *program;
    struct gr_sim_piece *pieces; /* own */
    unsigned piece_count;
};

struct gr_sim_program { /* an instantiated graph: its actions in an order that respects its edges */
    unsigned refs;
    struct gr_sim_action *actions;
    size_t count;
};

enum gr_sim_item_kind { GR_SIM_ACT, GR_SIM_RECORD, GR_SIM_WAIT };

struct gr_sim_item {
    struct gr_sim_item *next;
    enum gr_sim_item_kind kind;
    struct gr_sim_queue *target; /* WAIT: until it has completed sequence */
    uint64_t sequence;
    struct gr_sim_action action;
};

struct gr_sim_queue {
    unsigned index; /* in sim.queues, and of its component in clocks; never reused */
    int device;
    bool legacy, blocking;
    unsigned holds;
    bool busy; /* its head is running with the lock dropped */
    uint64_t submitted, completed;
    struct gr_sim_item *head, **tail;
    struct gr_sim_clock clock;
};

/* ---- objects behind handles --------------------------------------------------------------- */

struct gr_sim_terminals {
    gr_cu_node *nodes;
    struct gr_cu_edge *edges; /* parallel */
    size_t count, room;
};

struct CUctx_st {
    int device;
    unsigned refs; /* primary context references; 0: not active */
    gr_cu_result sticky;
};

struct CUstream_st {
    struct gr_sim_slot slot;
    bool internal; /* a default stream: not counted, never destroyed */
    struct gr_sim_queue *queue;
    struct CUctx_st *context;
    unsigned flags;
    unsigned long long id;
    /* capture */
    struct gr_sim_capture *capture; /* NULL: none */
    struct gr_sim_terminals terminals;
    struct gr_sim_terminals shown; /* lent out by cuStreamGetCaptureInfo, spoilt at the next call */
    struct CUstream_st *next_member;
};

struct CUevent_st {
    struct gr_sim_slot slot;
    struct CUctx_st *context;
    struct gr_sim_queue *queue; /* NULL: never recorded */
    uint64_t sequence;
    struct gr_sim_clock clock;
    unsigned long long capture_id; /* not 0: recorded in that capture */
    struct gr_sim_terminals terminals;
};

struct CUgraph_st {
    struct gr_sim_slot slot;
    struct gr_sim_capture *capture; /* not NULL: borrowed, still being captured */
    gr_cu_node *nodes;
    size_t count, room;
};

struct CUgraphNode_st {
    struct gr_sim_slot slot;
    struct CUgraph_st *graph;
    size_t index; /* in the graph */
    bool reached; /* was, or is behind, a terminal of the capture's origin */
    struct gr_sim_terminals dependencies;
    struct gr_sim_action action;
};

struct CUgraphExec_st {
    struct gr_sim_slot slot;
    struct gr_sim_program *program;
};

struct gr_sim_capture {
    struct gr_sim_capture *next;
    unsigned long long id;
    int mode;
    uint64_t thread; /* that began it */
    bool valid;
    struct CUstream_st *origin, *members; /* members holds the origin too */
    struct CUgraph_st *graph;
};

/* ---- the simulation ----------------------------------------------------------------------- */

struct gr_sim_override {
    int device, attribute, value;
};

struct gr_sim {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something completed, or a hold was lifted */
    /* all under lock */
    bool open, automatic, ready /* cuInit was called */, forked;
    unsigned attached;
    uint64_t serial;  /* of the opening; stale thread state is told by it */
    uint64_t threads; /* names given to threads */
    struct granary_sim_config config;
    struct gr_sim_override overrides[GR_SIM_OVERRIDES];
    unsigned override_count;
    struct CUctx_st contexts[GR_SIM_DEVICES];
    struct CUstream_st *legacy[GR_SIM_DEVICES];
    size_t foreign[GR_SIM_DEVICES], used[GR_SIM_DEVICES]; /* bytes of the card */
    /* addresses */
    unsigned shift;                  /* log2 of the granule */
    struct gr_sim_mapping ***leaves; /* address.c */
    size_t leaf_count;
    struct gr_sim_reservation *reservations; /* by address */
    size_t reservation_count, reservation_room;
    size_t address_used; /* classic allocations too */
    /* memory */
    struct gr_sim_extent **extents; /* by number; NULL: gone */
    size_t extent_count, extent_room;
    int file; /* memfd, with MEMORY backing; else -1 */
    off_t file_end;
    struct granary_sim_held held;
    /* work */
    struct gr_sim_slots streams, events, graphs, nodes, execs;
    struct gr_sim_queue **queues;
    unsigned queue_count, queue_room;
    unsigned long long next_stream_id, next_capture_id; /* unique for the life of the process */
    struct gr_sim_item *spare_items;
    uint64_t pending;
    struct gr_sim_capture *captures; /* begun and not ended */
    /* oracle */
    struct gr_sim_clock host;
    struct granary_sim_findings findings;
};

struct gr_sim_thread {
    uint64_t serial; /* of the simulation that the rest belongs to */
    uint64_t name;
    unsigned depth;
    struct CUctx_st *stack[GR_SIM_STACK];
    int capture_mode;
    bool in_host_function;
    struct CUstream_st *per_thread[GR_SIM_DEVICES];
};

extern struct gr_sim gr_sim;

/* Locks, and says whether a driver call can be made at all; not locked unless SUCCESS. */
gr_cu_result gr_sim_enter(const char *call);
gr_cu_result gr_sim_leave(gr_cu_result code); /* unlocks and passes code through */
/* For the steering functions: locks, and unlocks again with false when no simulation is open. */
bool gr_sim_steer(void);
void gr_sim_unlock(void);

/* Body of an entry: the work under the lock, or why it cannot be called. */
#define GR_SIM_ENTRY(work)                                                     \
    do {                                                                       \
        gr_cu_result entered_ = gr_sim_enter(__func__ + sizeof "gr_sim_" - 1); \
        return entered_ != GR_CU_SUCCESS ? entered_ : gr_sim_leave(work);      \
    } while (0)

struct gr_sim_thread *gr_sim_thread(void);
const char *gr_sim_call(void); /* the entry this thread is in, for reports */

/* The current context: INVALID_CONTEXT, CONTEXT_IS_DESTROYED or its sticky code when it cannot serve. */
gr_cu_result gr_sim_context(struct CUctx_st **out);

/* support.c. Memory that is always there. */
void *gr_sim_zeroed(size_t count, size_t size);
void *gr_sim_grow(void *old, size_t count, size_t size);
void gr_sim_terminals_add(struct gr_sim_terminals *set, gr_cu_node node, struct gr_cu_edge edge); /* once */
void gr_sim_terminals_copy(struct gr_sim_terminals *into, const struct gr_sim_terminals *from);
void gr_sim_terminals_fini(struct gr_sim_terminals *set);
/* Counts a finding and keeps its sentence; aborts in strict mode. */
void gr_sim_report(enum granary_sim_finding kind, const char *format, ...) GR_PRINTF(2, 3);

/* address.c */
void gr_sim_addresses_open(void);
void gr_sim_addresses_close(void);
struct gr_sim_mapping *gr_sim_mapping_at(gr_addr addr);
struct gr_sim_mapping *gr_sim_mapping_first(gr_addr addr, gr_addr end); /* that covers any of it; or NULL */
void gr_sim_mapping_place(struct gr_sim_mapping *mapping);
void gr_sim_mapping_lift(struct gr_sim_mapping *mapping);
/* Reserves real addresses; 0 when there are none. hint may be 0. */
gr_addr gr_sim_address_take(size_t size, size_t alignment, gr_addr hint);
void gr_sim_address_give(gr_addr addr, size_t size);
/* The reservation that holds addr, or NULL. */
struct gr_sim_reservation *gr_sim_reservation_at(gr_addr addr);

/* memory.c */
struct gr_sim_extent *gr_sim_extent_make(size_t size, int device);
struct gr_sim_extent *gr_sim_extent_find(gr_cu_handle id);
void gr_sim_extent_drop(struct gr_sim_extent *extent); /* ends it when nothing holds it any more */
size_t gr_sim_free_bytes(int device);
/* Puts the extent's bytes behind the addresses, without access; false when the host refuses. */
bool gr_sim_back(gr_addr addr, struct gr_sim_extent *extent, bool replace);
void gr_sim_unback(gr_addr addr, size_t size);
void gr_sim_protect(const struct gr_sim_mapping *mapping);
struct gr_sim_mapping *gr_sim_mapping_make(gr_addr addr, struct gr_sim_extent *extent);
void gr_sim_mapping_end(struct gr_sim_mapping *mapping);

/* work.c */
struct gr_sim_queue *gr_sim_queue_make(int device, unsigned flags);
void gr_sim_queues_close(void);
/* Joins what a submission to the queue is ordered after: the host, and the legacy stream. */
void gr_sim_begin(struct gr_sim_queue *queue);
uint64_t gr_sim_submit_record(struct gr_sim_queue *queue);
void gr_sim_submit_wait(struct gr_sim_queue *queue, struct gr_sim_queue *target, uint64_t sequence);
/* The stream's work, or its capture's node. Takes what the action owns, also when it refuses. */
gr_cu_result gr_sim_stream_submit(struct CUstream_st *stream, struct gr_sim_action *action);
void gr_sim_submit_action(struct gr_sim_queue *queue, struct gr_sim_action *action); /* takes what it owns */
/* Runs, and sleeps where others must, until the queue has completed sequence. */
gr_cu_result gr_sim_wait(struct gr_sim_queue *queue, uint64_t sequence);
/* All work of the device (-1: of all), and the host has seen it. */
gr_cu_result gr_sim_drain(int device);
void gr_sim_unhold(struct gr_sim_queue *queue); /* nobody can release it any more */
void gr_sim_action_fini(struct gr_sim_action *action);
void gr_sim_program_put(struct gr_sim_program *program);

/* stream.c. Resolves a handle, special ones too. fallback: no current context means device 0. */
gr_cu_result gr_sim_stream_find(gr_cu_stream handle, bool fallback, struct CUstream_st **out);
struct CUstream_st *gr_sim_stream_make(int device, unsigned flags, bool internal);

/* capture.c */
/* Refuses with 900, and invalidates, when a potentially unsafe call is prohibited here. */
gr_cu_result gr_sim_unsafe(void);
void gr_sim_invalidate(struct gr_sim_capture *capture);
/* A call that no capture of the device survives (device -1: of all), in any mode. */
gr_cu_result gr_sim_conflicts(int device);
struct gr_sim_capture *gr_sim_capture_find(unsigned long long id);
/* A capture of a blocking stream of the device, or NULL: what the legacy stream collides with. */
struct gr_sim_capture *gr_sim_blocking_capture(int device);
/* Adds the action as a node behind the stream's terminals; takes what it owns, also when it refuses. */
gr_cu_result gr_sim_capture_action(struct CUstream_st *stream, struct gr_sim_action *action);
gr_cu_result gr_sim_capture_record(struct CUstream_st *stream, struct CUevent_st *event);
gr_cu_result gr_sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event);
void gr_sim_stream_spoil(struct CUstream_st *stream);  /* a call on it: what was lent is void */
void gr_sim_capture_leave(struct CUstream_st *stream); /* it is being destroyed */

/* graph.c */
struct CUgraph_st *gr_sim_graph_make(struct gr_sim_capture *capture);
void gr_sim_graph_end(struct CUgraph_st *graph);
gr_cu_node gr_sim_node_make(struct CUgraph_st *graph, const struct gr_sim_terminals *dependencies);

/* oracle.c */
/* Cuts [addr, addr + size) in pieces by what is mapped now, and appends them to the action's. */
void gr_sim_action_touch(struct gr_sim_action *action, gr_addr addr, size_t size, bool write);
/* At submission: gives the action its place in the order and checks it against earlier uses. */
void gr_sim_oracle_submit(struct gr_sim_queue *queue, const struct gr_sim_action *action);
/* At execution: are the bytes what they were? Reports when not, and makes the context sticky. */
bool gr_sim_oracle_execute(const struct gr_sim_action *action);
void gr_sim_oracle_unmap(const struct gr_sim_mapping *mapping);
void gr_sim_oracle_graph(const struct CUgraph_st *graph);
void gr_sim_oracle_see(const struct gr_sim_clock *clock); /* the host saw this complete */
void gr_sim_shadow_end(struct gr_sim_extent *extent);

/* One function for each line of the entry list. */
#define GR_ENTRY(symbol, version, need, kind, parameters) gr_cu_result gr_sim_##symbol parameters;
#include "driver/entries.def"
#undef GR_ENTRY

#endif
