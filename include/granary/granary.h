/* SPDX-License-Identifier: Apache-2.0
 * granary: an expandable-segment allocator for GPU memory. This header is the manual.
 *
 * The idea. The driver hands out address space and physical memory separately. granary reserves a
 * large range of addresses for each pool (the blocks of one stream and one size class) and backs it
 * with physical memory, in granules of 2 MiB, only where blocks need it. Neighbouring free blocks
 * therefore merge without limit, a pool grows in place, and memory that is idle in one place can be
 * given to another without copying a byte.
 *
 *      range of a pool   |LIVE|FREE|LIVE |   HOLE    |LIVE|      HOLE ...        addresses
 *      granule slots     [  0 ][  1 ][  2 ][ - ][ - ][  5 ][ - ] ...             2 MiB each
 *      extents           '---- a ----'                '- b-'                     physical memory
 *
 * Smallest program:
 *
 *      granary *g;
 *      void *p;
 *      if (granary_open(0, NULL, &g) == GRANARY_OK && granary_alloc(g, 1 << 20, NULL, &p) == GRANARY_OK)
 *          granary_free(g, p);
 *      granary_close(g);
 *
 * Streams. A block belongs to the stream it was allocated on. Work on that stream may use it until
 * granary_free is called, without any synchronisation: freed memory is handed out in the stream's order.
 *
 * Threads. Every function may be called from any thread at any time, but not from a signal handler, and
 * granary_close must be the last call on a handle. Hits on different streams do not meet; a miss holds
 * the handle's miss lock but lets hits on all streams through. A handle belongs to the process that opened it:
 * after fork(2) the child may close it, which frees host memory, and no more.
 *
 * Structures that begin with struct_size are set up before, by their _init function or else with
 * `= {.struct_size = sizeof x}`. Those of an older header are filled in as far as they go.
 *
 * Ownership. Texts and structures that are passed are copied, but for the function and context of a scope,
 * a callback or a writer, which are used until it is removed or returns. Texts that are returned are static.
 *
 * Errors. Functions return GRANARY_OK or a negative code; a failed call changes nothing. INVALID also
 * stands for a handle or an out-parameter that is NULL. The words behind the last failure, with the value
 * that was wrong, are read with granary_last_fault.
 *
 * Each comment ends with three facts that users of a GPU allocator need:
 *   Driver:  whether the call may enter the CUDA driver (never, on a miss, always);
 *   Capture: whether it may be called while a stream is being captured into a graph;
 *   Fails:   with which codes.
 *
 * Sizes are in bytes. Pointers are device addresses and must not be dereferenced by the host. */
#ifndef GRANARY_GRANARY_H
#define GRANARY_GRANARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRANARY_VERSION_MAJOR 0
#define GRANARY_VERSION_MINOR 1
#define GRANARY_VERSION_PATCH 0

#if defined(GRANARY_BUILD)
#define GRANARY_API __attribute__((visibility("default")))
#else
#define GRANARY_API
#endif

/* ---- status ------------------------------------------------------------------------------- */

/* Every code, its name and its sentence. Codes are stable; new ones are added at the end. */
#define GRANARY_STATUS_MAP(X)                                                          \
    X(OK, 0, "success")                                                                \
    X(INVALID, -1, "an argument is not valid")                                         \
    X(UNKNOWN_POINTER, -2, "the address is not a live block of this handle")           \
    X(OUT_OF_MEMORY, -3, "the device has no memory left for the request")              \
    X(OVER_LIMIT, -4, "the request does not fit under the limit that was set")         \
    X(HOST_MEMORY, -5, "the host is out of memory")                                    \
    X(NO_DRIVER, -6, "the CUDA driver library is missing")                             \
    X(STUB_DRIVER, -7, "the CUDA driver library is the link-time stub")                \
    X(OLD_DRIVER, -8, "the CUDA driver is too old")                                    \
    X(NO_DEVICE, -9, "there is no such device")                                        \
    X(UNSUPPORTED, -10, "the device or driver does not support this")                  \
    X(DRIVER, -11, "the CUDA driver refused a call")                                   \
    X(LOST, -12, "the CUDA context is lost; only closing is possible")                 \
    X(OPTION, -13, "an option string is not valid")                                    \
    X(BUSY, -14, "the object is still in use")                                         \
    X(ADDRESS_SPACE, -15, "the process has no device address space left")              \
    X(UNKNOWN_POOL, -16, "there is no such pool, or it was released")                  \
    X(WRONG_CAPTURE, -17, "the block belongs to another capture, which is still open") \
    X(ORDER, -18, "scopes end in the reverse order of their beginning")                \
    X(WRITE, -19, "what was written could not be stored")

enum granary_status {
#define GRANARY_STATUS_ENUM(name, value, sentence) GRANARY_##name = value,
    GRANARY_STATUS_MAP(GRANARY_STATUS_ENUM)
#undef GRANARY_STATUS_ENUM
};

/* Name ("GRANARY_OUT_OF_MEMORY") and sentence of a code; never NULL, also for unknown codes.
 * Driver: never.  Capture: allowed.  Fails: never. */
GRANARY_API const char *granary_status_name(int status);
GRANARY_API const char *granary_status_sentence(int status);

/* Version of the library that was linked, "major.minor.patch".
 * Driver: never.  Capture: allowed.  Fails: never. */
GRANARY_API const char *granary_version(void);

/* ---- opening and closing ------------------------------------------------------------------ */

/* One device's allocator. */
typedef struct granary granary;

/* A CUDA stream: CUstream and cudaStream_t are this type. NULL is the legacy default stream. */
typedef struct CUstream_st *granary_stream;

enum granary_driver {
    GRANARY_DRIVER_CUDA = 0, /* libcuda.so.1, loaded at run time */
    GRANARY_DRIVER_SIM = 1   /* the simulated device of granary/sim.h */
};

/* No limit on memory, and no limit on split size. */
#define GRANARY_UNLIMITED SIZE_MAX

/* When a block that other streams used is freed during a capture, may it be used again in the same
 * capture? OFF: not before the capture ends. STREAM: by its own stream, once that stream's next work
 * comes after every last use. GRAPH: by any stream of the capture, once all of its streams do. */
enum granary_capture_reuse { GRANARY_REUSE_OFF = 0, GRANARY_REUSE_STREAM = 1, GRANARY_REUSE_GRAPH = 2 };

/* How the last uses are remembered. TERMINALS: the nodes that each using stream ended in; nothing is
 * added to the graph. EMPTY_NODE: an empty node behind them on each using stream, which whatever
 * follows on that stream comes after. */
enum granary_capture_marker { GRANARY_MARKER_TERMINALS = 0, GRANARY_MARKER_EMPTY_NODE = 1 };

/* When idle memory of other places is moved to serve a request, in place of new memory from the driver.
 * OFF: never, not even before failing.
 * PRESSURE: before failing, and before more is held than the most that ever was in use at once, and a margin.
 * What moves earns the margin: half of what ever moved, up to a 36th of what is in use (60 MiB where that
 * is more), less as the limit comes near; and, while moving takes more than a hundredth of the time, a
 * quarter of what moves, up to a quarter of what is in use and an eighth of what is free.
 * EAGER: before any new memory is made; all of it comes in granules of 2 MiB, whatever extent_bytes says. */
enum granary_reclaim { GRANARY_RECLAIM_OFF = 0, GRANARY_RECLAIM_PRESSURE = 1, GRANARY_RECLAIM_EAGER = 2 };

/* What is remembered of the past (granary/history.h). OFF: nothing. STATE: who asked for each block that is
 * live. ALLOC: also every event; stacks are taken at allocations, frees show their block's. ALL: at both. */
enum granary_history_level {
    GRANARY_HISTORY_OFF = 0,
    GRANARY_HISTORY_STATE = 1,
    GRANARY_HISTORY_ALLOC = 2,
    GRANARY_HISTORY_ALL = 3
};

/* Whose frames are taken; a sum. */
enum granary_stacks {
    GRANARY_STACKS_NONE = 0,
    GRANARY_STACKS_C = 1,      /* C and C++ */
    GRANARY_STACKS_PYTHON = 2, /* when the process runs Python, 3.9 or later */
    GRANARY_STACKS_ALL = 3
};

struct granary_fault;

/* Address space for a range: bytes, or with 0 bytes a fraction of the device's memory. Zeros: 9/8 of that. */
struct granary_reserve {
    size_t bytes;
    double fraction;
};
enum { GRANARY_RESERVE_CLASSES = 8, GRANARY_CLASS_ROOM = 32 };
struct granary_reserve_class {
    char name[GRANARY_CLASS_ROOM]; /* "": this entry and those behind it are not in use */
    struct granary_reserve reserve;
};

enum { GRANARY_SIZE_INTERVALS = 16, GRANARY_OPTION_ROOM = 48 };

/* What a handle is opened with. Set it up with granary_options_init, change what you need. doc/options.md
 * says more about each; granary/options.h lists them with values and origins, and changes an open handle's. */
struct granary_options {
    size_t struct_size;         /* sizeof (struct granary_options), set by granary_options_init */
    enum granary_driver driver; /* default: CUDA */
    /* 1 (default): where the device supports them; 0: classic segments, one cuMemAlloc each */
    int expandable_segments;
    int strict; /* 1: opening fails when expandable segments are asked for and cannot be had. default 0 */
    size_t limit_bytes; /* physical memory this handle may hold. default GRANARY_UNLIMITED */
    /* The same as a fraction of the device's memory, 0 to 1 (no limit); the lower limit holds. default 1 */
    double limit_fraction;
    /* Classic only: blocks of this size or more are not split. default GRANARY_UNLIMITED */
    size_t max_split_size;
    size_t handle_cache_bytes; /* released physical memory kept for reuse, at most. default 0 */
    int reclaim;               /* enum granary_reclaim, default GRANARY_RECLAIM_PRESSURE */
    /* usual size of physical allocations; on a card with room they are larger, near the limit smaller. Below
     * 6 MiB all have this size. default 8 MiB */
    size_t extent_bytes;
    int rdma_capable;            /* 1: memory that network cards can reach, where that works. default 0 */
    int capture_reuse;           /* enum granary_capture_reuse, default GRANARY_REUSE_STREAM */
    int capture_marker;          /* enum granary_capture_marker, default GRANARY_MARKER_TERMINALS */
    struct granary_fault *fault; /* where a failing granary_open writes its words; default NULL */
    int history;                 /* enum granary_history_level, from the start. default OFF */
    int history_stacks;          /* sum of enum granary_stacks. default GRANARY_STACKS_ALL */
    size_t history_entries;      /* events kept. default 100000 */
    /* File for a snapshot at out-of-memory, see granary/history.h. default NULL: the environment variable
     * GRANARY_OOM_SNAPSHOT says it */
    const char *oom_snapshot;
    /* At a miss, while more than this part of the limit (without one: of the device's memory) is held,
     * idle memory of large blocks is given back, the longest unused first. 0 (default): never */
    double garbage_collection_threshold;
    int no_caching; /* 1: every block is made by the driver and given back at once. default 0 */
    /* Requests of [2^(20+i), 2^(21+i)) bytes, with i 0 also all below, are rounded up to a multiple of their
     * power of two divided by [i], itself a power of two. 0 (default) or 1: to multiples of 512 */
    uint32_t roundup_power2_divisions[GRANARY_SIZE_INTERVALS];
    size_t large_segment_size; /* classic segments for requests from 1 to 10 MiB. default 20 MiB */
    /* Classic only: what is not split serves requests that are smaller by less than this. 0 (default):
     * large_segment_size */
    size_t max_non_split_rounding;
    /* A thread gives back what is held beyond so many bytes and known to be idle. Streams must then be
     * announced before they are destroyed, at the end of the program too. Default GRANARY_UNLIMITED: none */
    size_t trim_above;
    int reject_early; /* 1: fail before the limit would be passed, without giving anything back. default 0 */
    struct granary_reserve reserve; /* for the ranges of expandable segments */
    struct granary_reserve_class reserve_by_class[GRANARY_RESERVE_CLASSES]; /* of granary_stream_set_class */
    /* Written by the functions that read strings, read by those of granary/options.h. */
    unsigned char origin[GRANARY_OPTION_ROOM];
    char skipped[64];
    int unread;
};

/* Fills in the defaults.  Driver: never.  Capture: allowed.  Fails: never. */
GRANARY_API void granary_options_init(struct granary_options *options);

/* Where and why an option string was refused. */
struct granary_option_error {
    size_t column;   /* of the offending token, from 1 */
    char token[64];  /* the token, cut to fit */
    char text[1024]; /* the whole sentence, with source, token and column */
};

/* Reads "key:value,key:value" (the syntax of PYTORCH_CUDA_ALLOC_CONF) into options: only the keys
 * that are named change, and on an error none does. granary-options(7) and `granary options` list the keys.
 * source names the origin of the string in messages and may be NULL, as may error.
 * Driver: never.  Capture: allowed.  Fails: INVALID, OPTION. */
GRANARY_API int granary_options_parse(struct granary_options *options, const char *string, const char *source,
                                      struct granary_option_error *error);

/* Reads the environment: PYTORCH_CUDA_ALLOC_CONF, or where that is not set PYTORCH_ALLOC_CONF, whose keys
 * that granary does not know are skipped (granary_options_warning names them); then GRANARY_CONF, which
 * changes the keys that it names. Before both, GRANARY_NO_CACHING or else PYTORCH_NO_CUDA_MEMORY_CACHING,
 * set to 1, switches caching off.
 * Driver: never.  Capture: allowed.  Fails: INVALID, OPTION. */
GRANARY_API int granary_options_from_environment(struct granary_options *options,
                                                 struct granary_option_error *error);

/* Opens the allocator of one device. options may be NULL: the defaults, changed by the environment. The
 * primary context is retained until granary_close. On failure *out is NULL, and the words are in options->fault;
 * without options there are none: granary_options_from_environment says what is wrong with the environment.
 * Driver: always.  Capture: refused by the driver in some modes; open before capturing.  Fails: INVALID,
 * OPTION, HOST_MEMORY, NO_DRIVER, STUB_DRIVER, OLD_DRIVER, NO_DEVICE, UNSUPPORTED (strict), DRIVER. */
GRANARY_API int granary_open(int device, const struct granary_options *options, granary **out);

/* Gives everything back, live blocks too, and waits for the device before it does. NULL is allowed.
 * Driver: always.  Capture: not before every capture has ended.  Fails: never. */
GRANARY_API void granary_close(granary *g);

/* What the device and driver turned out to be. */
struct granary_facts {
    size_t struct_size;
    char name[96];
    int device;
    int driver_version;          /* 1000 * major + 10 * minor */
    size_t total_bytes;          /* memory of the device */
    size_t granule_bytes;        /* unit of mapping */
    int expandable_segments;     /* 1 when in use by this handle */
    char expandable_reason[128]; /* why not, when not */
    int simulated;
};
/* Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_get_facts(granary *g, struct granary_facts *out);

/* ---- allocation --------------------------------------------------------------------------- */

/* Allocates size bytes for use on stream. The address is a multiple of 512. A size of 0 gives NULL
 * and GRANARY_OK. On failure *out is NULL.
 * Driver: on a miss.  Capture: allowed.
 * Fails: INVALID (also a size that no device could hold), OUT_OF_MEMORY, OVER_LIMIT, ADDRESS_SPACE,
 * HOST_MEMORY, DRIVER, LOST. */
GRANARY_API int granary_alloc(granary *g, size_t size, granary_stream stream, void **out);

/* Frees a block, from any thread, in the order of the stream it was allocated on. NULL is allowed.
 * An address that is unknown, inside a block, or already free is refused and changes nothing.
 * Driver: only for a block that other streams used: events are recorded, and some asked; and with no_caching,
 * where the block's memory goes back to the driver, which waits for the device.
 * Capture: allowed.  Fails: INVALID, UNKNOWN_POINTER, WRONG_CAPTURE. */
GRANARY_API int granary_free(granary *g, void *ptr);

/* Says that work on stream uses the block, beyond the stream it was allocated on. After granary_free
 * the block stays pending until that work is complete. NULL pointers and the block's own stream are
 * fine and do nothing. The stream may be one of another device or context (granary_allow_peer). Call it on a
 * thread's default stream (handle 2) from that thread only.
 * Driver: always (an event is made ready, so that freeing cannot fail).  Capture: allowed.
 * Fails: INVALID, UNKNOWN_POINTER, WRONG_CAPTURE, OUT_OF_MEMORY (for the event), HOST_MEMORY, DRIVER,
 * LOST. */
GRANARY_API int granary_record_stream(granary *g, void *ptr, granary_stream stream);

/* The size of a live block as it was rounded up: what may be used.
 * Driver: never.  Capture: allowed.  Fails: INVALID, UNKNOWN_POINTER. */
GRANARY_API int granary_size_of(granary *g, const void *ptr, size_t *out);

/* Gives idle memory back to the driver until at most keep_bytes are reserved, or all of it with 0. The
 * addresses of a stream's pool stay reserved, which holds no memory, while half of the address space of
 * the handle is left. Waits for the streams that own it. released, which may be NULL, gets how many bytes.
 * Driver: always.  Capture: refused (BUSY).  Fails: INVALID, BUSY, DRIVER, LOST. */
GRANARY_API int granary_trim(granary *g, size_t keep_bytes, size_t *released);

/* Changes the limit on physical memory; GRANARY_UNLIMITED removes it. A limit below what is reserved
 * now is legal: nothing new is taken until less is held.
 * Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_set_limit(granary *g, size_t bytes);

/* Lets kernels and copies of another device touch the memory of this handle, now and later; the other way
 * round is the other handle's. What is mapped is not opened by cuCtxEnablePeerAccess, as classic segments
 * are. From then on a physical allocation takes the driver 1.1 ms instead of 46 us (two H200), and is of 20
 * MiB or more where the need is. The device itself, and one that may already, are fine and do nothing.
 * Driver: always.  Capture: allowed.  Fails: INVALID, NO_DEVICE, UNSUPPORTED (the hardware does not reach),
 * OUT_OF_MEMORY, DRIVER, LOST. */
GRANARY_API int granary_allow_peer(granary *g, int device);

/* ---- private pools, scopes, captures -------------------------------------------------------- */

/* A pool of its own memory, for a graph or for a part of a program. Named by a number that is never
 * used again; 0 is the default pool of the handle. */
typedef uint64_t granary_pool;

struct granary_pool_options {
    size_t struct_size;  /* sizeof (struct granary_pool_options) */
    int no_split;        /* 1: every block is a driver segment of its own, never cut */
    int use_on_shortage; /* 1: its free blocks serve the default pool before that runs out of memory */
};

/* Creates a pool with one user. options may be NULL. retain adds a user; release takes one off. With
 * the last user the pool is released: its name is no longer valid, its free memory can serve others,
 * and blocks that are still live go when they are freed. The graphs captured into it must be
 * destroyed and their launches complete before the last release.
 * Driver: never.  Capture: allowed.
 * Fails: INVALID, HOST_MEMORY, UNKNOWN_POOL; release also BUSY, while a scope or capture of the last
 * user is open. */
GRANARY_API int granary_pool_create(granary *g, const struct granary_pool_options *options,
                                    granary_pool *out);
GRANARY_API int granary_pool_retain(granary *g, granary_pool pool);
GRANARY_API int granary_pool_release(granary *g, granary_pool pool);

struct granary_pool_stats {
    size_t struct_size;
    int64_t users, scopes, captures; /* captures: open now */
    int64_t allocated_bytes, active_bytes, reserved_bytes;
    int64_t live_blocks, pending_blocks;
};
/* Driver: asks events while blocks are pending.  Capture: allowed.  Fails: INVALID, UNKNOWN_POOL. */
GRANARY_API int granary_pool_get_stats(granary *g, granary_pool pool, struct granary_pool_stats *out);

/* While a scope is open, allocations that it matches come from its pool: those of the calling thread
 * when match is NULL, else those on streams for which match(stream, context) is not 0, on any thread.
 * Of several that match, the one begun last wins. match is called with no lock held, and a
 * call may still be under way on another thread when granary_scope_end returns. A thread ends
 * its scopes in the reverse order of their beginning.
 * Driver: never.  Capture: allowed.  Fails: INVALID, UNKNOWN_POOL, HOST_MEMORY; end: INVALID, ORDER. */
typedef uint64_t granary_scope;
typedef int (*granary_stream_match)(granary_stream stream, void *context);
GRANARY_API int granary_scope_begin(granary *g, granary_pool pool, granary_stream_match match, void *context,
                                    granary_scope *out);
GRANARY_API int granary_scope_end(granary *g, granary_scope scope);

/* A capture of stream into a graph, allocating from a private pool, which is not 0. begin comes before
 * cuStreamBeginCapture, end after cuStreamEndCapture, whether or not that succeeded. In between,
 * allocations on every stream that is part of the capture come from pool, the handle asks the driver about
 * no event, synchronises nothing and unmaps nothing, on any thread, and what cannot be told without is put
 * off until the end. Several captures may be open, also into one pool.
 * Driver: end may record events.  Capture: that is what they are for.
 * Fails: INVALID, UNKNOWN_POOL, HOST_MEMORY, UNSUPPORTED (driver before 12.3);
 * end: INVALID, BUSY while the stream is still being captured. */
typedef uint64_t granary_capture;
GRANARY_API int granary_capture_begin(granary *g, granary_pool pool, granary_stream stream,
                                      granary_capture *out);
GRANARY_API int granary_capture_end(granary *g, granary_capture capture);

/* ---- streams for programs that do not load CUDA themselves ---------------------------------- */

/* A non-blocking stream of the handle's device, and its end. Destroying waits for nothing.
 * Driver: always.  Capture: allowed.  Fails: INVALID, OUT_OF_MEMORY, DRIVER, LOST; destroy also BUSY, as
 * below. */
GRANARY_API int granary_stream_create(granary *g, granary_stream *out);
GRANARY_API int granary_stream_destroy(granary *g, granary_stream stream);

/* Call it before a stream that granary has seen is destroyed: a stream made later may have the same
 * handle and must not be taken for the old one. Its memory serves others once its work is complete.
 * granary_stream_destroy does it by itself. Unknown streams are fine. A thread that has used its
 * default stream (handle 2) calls it for that before it ends; nobody else can.
 * Driver: always.  Capture: allowed.  Fails: INVALID, BUSY (it is being captured), DRIVER, LOST. */
GRANARY_API int granary_stream_destroyed(granary *g, granary_stream stream);

/* ---- figures ------------------------------------------------------------------------------ */

/* One quantity over time. total_up - total_down == current. Of blocks that several threads allocate, a peak that lasts
 * shorter than a millisecond, or 64 allocations, may be missed; all else is exact. */
struct granary_stat {
    int64_t current;
    int64_t peak; /* since opening or granary_reset_peaks */
    int64_t total_up;
    int64_t total_down;
};

/* The same quantity for both classes together, blocks of at most 1 MiB, and larger blocks. */
struct granary_stat_by_class {
    struct granary_stat all, small, large;
};

/* allocated: handed out. active: not reusable yet (allocated, and freed but still in use elsewhere).
 * requested: as asked for, before rounding. reserved: physical memory behind segments.
 * allocated <= active <= reserved. Counts of blocks and driver segments go with them. */
struct granary_stats {
    size_t struct_size;
    struct granary_stat_by_class allocated_bytes, active_bytes, requested_bytes, reserved_bytes;
    struct granary_stat_by_class allocations, active_blocks;
    struct granary_stat_by_class segments; /* classic segments, as PyTorch counts them */
    int64_t handle_cache_bytes;            /* physical memory kept for reuse, on top of reserved */
    int64_t reserved_address_bytes;        /* address space held */
    int64_t ranges;                        /* reservations held */
    int64_t extents;                       /* physical allocations mapped now */
    int64_t pending_blocks;                /* freed, but other streams may still use them */
    int64_t misses;                        /* allocations that the pool could not serve */
    int64_t out_of_memory;                 /* allocations that failed for want of memory */
    int64_t moved_extents, moved_bytes;    /* idle memory taken from one place to serve another */
    int64_t maps, unmaps;                  /* runs of address space backed, given up */
    int64_t collected_bytes;               /* given back because they lay idle longest */
    int64_t moving_ns;                     /* time that moving took: unmapping, and mapping anew */
};
/* A consistent view: all figures belong to one moment.
 * Driver: asks events while blocks are pending.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_get_stats(granary *g, struct granary_stats *out);
/* Sets every peak to the current value.  Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_reset_peaks(granary *g);

/* Calls into the driver since opening, by kind. */
struct granary_driver_calls {
    size_t struct_size;
    uint64_t create, map, set_access, unmap, release, reserve, address_free;
    uint64_t mem_alloc, mem_free;
    uint64_t event_record, event_query, synchronize;
    uint64_t other;
};
/* Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_get_driver_calls(granary *g, struct granary_driver_calls *out);

/* ---- failures ----------------------------------------------------------------------------- */

/* What an allocation tries, in this order, when no block fits. The last column ends "tried: ...". */
#define GRANARY_RUNG_MAP(X)                 \
    X(POOL, 0, "the pool")                  \
    X(EVENTS, 1, "pending blocks")          \
    X(CALLBACKS, 2, "callbacks")            \
    X(GARBAGE, 3, "garbage collection")     \
    X(CACHE, 4, "the handle cache")         \
    X(GROW, 5, "the driver")                \
    X(RECLAIM, 6, "idle memory elsewhere")  \
    X(WAIT, 7, "waiting for other streams") \
    X(LENDING, 8, "pools that lend")        \
    X(TRIM, 9, "giving back all that is idle")

enum granary_rung {
#define GRANARY_RUNG_ENUM(name, value, words) GRANARY_RUNG_##name = value,
    GRANARY_RUNG_MAP(GRANARY_RUNG_ENUM)
#undef GRANARY_RUNG_ENUM
};

/* Memory of one stream, in all pools; pending: of any pool, waiting for work on this stream. */
struct granary_shortfall_stream {
    granary_stream stream;
    size_t live_bytes, free_bytes, pending_bytes;
};

/* Who holds live memory, by tag or stack; known while history is recorded. */
struct granary_holder {
    /* The tag; or the innermost frames, "f (file.c:12) < g (file.c:34)", cut to fit. "": not known */
    char name[96];
    size_t bytes, blocks;
};

/* What an allocation that failed for want of memory found, in one moment in which no call on any
 * thread was half done:
 *
 *      live + pending + the five kinds of free = reserved; and reserved + handle cache = held
 *
 * as in granary_stats of the same moment. What the driver says of the device may be a little older. */
struct granary_shortfall {
    size_t struct_size;
    int status; /* OUT_OF_MEMORY, OVER_LIMIT or ADDRESS_SPACE */
    int device;
    /* the request */
    granary_stream stream;
    granary_pool pool;      /* 0: the default one */
    size_t requested_bytes; /* as asked for */
    size_t rounded_bytes;   /* as it would have been handed out */
    size_t grow_bytes;      /* physical memory that was missing for it */
    unsigned rungs;         /* what was tried: 1 << enum granary_rung */
    /* what this handle holds */
    size_t allocated_bytes, active_bytes, reserved_bytes; /* live; live and pending; all */
    size_t pending_bytes;                                 /* freed, but other streams may still use them */
    size_t free_same_pool_bytes;   /* free in the pool that was asked: its stream, its class */
    size_t free_other_class_bytes; /* free for this stream, blocks of the other class */
    size_t free_other_stream_bytes;
    size_t free_private_bytes; /* free in private pools; for a request to one: in all pools but this */
    size_t free_graph_bytes;   /* the same, but of pools that graphs were captured into: not to be moved */
    size_t handle_cache_bytes;
    size_t largest_free_bytes;       /* largest free block of the pool that was asked */
    size_t largest_free_other_bytes; /* and of all others */
    size_t idle_bytes; /* of all free ones: what no block pins and could be moved or given back */
    /* what there is */
    size_t limit_bytes;       /* the limit in force, or GRANARY_UNLIMITED */
    size_t device_free_bytes; /* as the driver says, all processes counted */
    size_t device_total_bytes;
    size_t foreign_bytes; /* what others hold: other processes, and CUDA itself in this one */
    size_t reserved_address_bytes, ranges;
    /* settings in force */
    int expandable_segments, reclaim, capture_reuse;
    int virtual_memory; /* 1: the device could have expandable segments */
    size_t extent_bytes;
    unsigned open_captures;
    /* the streams that hold most, the largest first, and how many there are in all */
    struct granary_shortfall_stream streams[8];
    size_t stream_count;
    struct granary_holder holders[4]; /* the largest first; those that are not known have no bytes */
};

/* The last failure on this handle, of whichever thread: which call, what was wrong, and for a driver refusal
 * the entry point and its code. shortfall and snapshot are filled in for OUT_OF_MEMORY, OVER_LIMIT and
 * ADDRESS_SPACE of an allocation. */
struct granary_fault {
    size_t struct_size;
    int status;
    int driver_code;      /* CUresult, or 0 */
    char driver_call[48]; /* "cuMemCreate", or "" */
    char call[32];        /* "granary_alloc" */
    char text[256];       /* one sentence, with the value that was wrong */
    struct granary_shortfall shortfall;
    char snapshot[288]; /* one sentence: in which file the snapshot is (oom_snapshot), or why not; or "" */
};
/* Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_last_fault(granary *g, struct granary_fault *out);

/* Which kind of out-of-memory it is. */
#define GRANARY_SHORTAGE_MAP(X)                                                    \
    X(TOO_LARGE, 0, "the request is larger than the device")                       \
    X(FULL, 1, "the device is full")                                               \
    X(OVER_LIMIT, 2, "the limit is reached")                                       \
    X(FOREIGN, 3, "others hold the device's memory")                               \
    X(PENDING, 4, "freed memory is still in use on other streams")                 \
    X(FRAGMENTED, 5, "free memory is in pieces")                                   \
    X(OTHER_CLASS, 6, "free memory is stranded in blocks of the other size class") \
    X(OTHER_STREAMS, 7, "free memory is stranded on other streams")                \
    X(PRIVATE_POOLS, 8, "free memory is stranded in private pools")                \
    X(ADDRESS_SPACE, 9, "the process has no device addresses left")

enum granary_shortage {
#define GRANARY_SHORTAGE_ENUM(name, value, sentence) GRANARY_SHORTAGE_##name = value,
    GRANARY_SHORTAGE_MAP(GRANARY_SHORTAGE_ENUM)
#undef GRANARY_SHORTAGE_ENUM
};

/* The kind (FULL of what is no shortfall), its name "GRANARY_SHORTAGE_FULL" and its sentence; never NULL.
 * Driver: never.  Capture: allowed.  Fails: never. */
GRANARY_API enum granary_shortage granary_shortage_of(const struct granary_shortfall *shortfall);
GRANARY_API const char *granary_shortage_name(int shortage);
GRANARY_API const char *granary_shortage_sentence(int shortage);

/* Explains a shortfall, of this process or of another, in a few lines of text: which kind it is, where
 * the memory is and who holds it, what was tried, and the one change that is most likely to help.
 * Cut to fit; 2048 bytes are enough.
 * Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_explain(const struct granary_shortfall *shortfall, char *buffer, size_t room);

/* Callbacks, on the thread that allocates and with no lock held. They may call any function of granary; what
 * that thread allocates meanwhile calls nobody back, and what they add is called from the next time on. One
 * that another thread is calling may still be under way when granary_callback_remove returns.
 * A relief is called at a miss, before memory is taken from the driver or from elsewhere: it may free
 * what the program keeps for later, and returns whether it has freed anything; the pool is searched again
 * in either case. An observer is called when an allocation has failed for want of memory, before
 * granary_alloc returns; its shortfall lives until it returns.
 * Driver: never.  Capture: allowed.  Fails: INVALID, HOST_MEMORY. */
typedef uint64_t granary_callback;
typedef int (*granary_relief)(granary *g, size_t size, granary_stream stream, void *context);
typedef void (*granary_observer)(granary *g, const struct granary_shortfall *shortfall, void *context);
GRANARY_API int granary_relief_add(granary *g, granary_relief relief, void *context, granary_callback *out);
GRANARY_API int granary_observer_add(granary *g, granary_observer observer, void *context,
                                     granary_callback *out);
GRANARY_API int granary_callback_remove(granary *g, granary_callback callback);

/* Checks every invariant of the handle. Returns NULL when all hold, else the tag of the first that
 * does not, as named in the headers of the source ("B2"). Slow; for tests and for hunting faults.
 * Driver: never.  Capture: allowed.  Fails: never. */
GRANARY_API const char *granary_verify(granary *g);

#ifdef __cplusplus
}
#endif
#endif
