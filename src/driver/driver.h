/* SPDX-License-Identifier: Apache-2.0
 * The seam: the one place where granary meets the CUDA driver.
 *
 *      layers above ── GR_DRIVE(d, cuMemMap, ...) ──> tap (count, log, fail the n-th) ──> table
 *                                                                        libcuda.so.1 <─┴─> sim
 *
 * A table holds one function pointer for each line of entries.def, filled by the loader from
 * libcuda or by the simulation; both have the driver's own signatures. Every call goes through
 * GR_DRIVE, which counts it, lets the tap refuse it, and returns the driver's own code.
 * gr_driver_status turns a code into a status of ours and remembers entry and code.
 *
 * Facts of the device are probed once, at opening, and constant afterwards. What an attribute
 * promises is not believed: virtual memory is tried with one tiny create, map and access, which is
 * undone at once; so is RDMA capability, when it is wanted. Only a card that is too full to try is
 * taken at its word.
 *
 * Life. open -> (begin, calls, end)* -> close. CUDA does not survive fork, nor an error that kills
 * its context: in a forked child and after such an error begin returns LOST, and close frees host
 * state alone.
 *
 * Invariants
 *   D1  an entry newer than the driver is NULL, whatever filled the table
 *   D2  facts.vmm implies that every entry for virtual memory is there
 *   D3  lost never goes back to 0
 *   D4  peers.access[0] is the device itself, and none is there twice
 *
 * For tests, the environment variable GRANARY_LIBCUDA names the library to load instead of
 * libcuda.so.1; it is ignored in programs that run with raised privileges.
 *
 * Locks: none. Counters are atomic; the tap has a lock of its own; a table is constant once filled. */
#ifndef GR_DRIVER_DRIVER_H
#define GR_DRIVER_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <granary/granary.h>

#include "base/base.h"
#include "driver/abi.h"
#include "driver/tap.h"

enum gr_entry {
#define GR_ENTRY(symbol, version, need, kind, parameters) GR_ENTRY_##symbol,
#include "driver/entries.def"
#undef GR_ENTRY
    GR_ENTRY_COUNT
};
_Static_assert((int)GR_ENTRY_COUNT <= (int)GR_TAP_ENTRIES, "the tap counts every entry");

struct gr_table {
#define GR_ENTRY(symbol, version, need, kind, parameters) gr_cu_result(*symbol) parameters;
#include "driver/entries.def"
#undef GR_ENTRY
};

enum {
    GR_REASON_ROOM = 256,     /* bytes behind every `reason` */
    GR_CODE_NAME_ROOM = 64,   /* bytes behind the buffer of gr_driver_code_name */
    GR_DRIVER_MINIMUM = 11030 /* the first driver with cuGetProcAddress */
};

/* What the device and the driver turned out to be. Constant after opening. */
struct gr_facts {
    char name[96];
    int device; /* ordinal */
    int driver_version;
    size_t total_bytes;
    size_t granule;       /* bytes; a power of two */
    bool vmm;             /* virtual memory works: tried, not believed */
    bool rdma;            /* was wanted, and memory made RDMA-capable can be mapped and accessed */
    bool capture_query;   /* terminals of a capture can be read with their edge data */
    char vmm_reason[128]; /* why not, when not: call and code */
};

enum { GR_PEERS = 64 };

/* Devices that may touch what is mapped (peers.h). */
struct gr_peers {
    unsigned count;
    struct gr_cu_access access[GR_PEERS];
};

struct gr_driver {
    struct gr_table call;  /* constant after opening */
    struct gr_facts facts; /* constant after opening */
    struct gr_peers peers; /* under the miss lock */
    void *library;         /* dlopen handle, NULL for the simulation */
    gr_cu_device device;   /* constant after opening; the driver's handle for facts.device */
    gr_cu_context context; /* the device's primary context, retained; NULL before that */
    bool simulated;
    int process;               /* constant after opening; pid */
    atomic_int lost;           /* a sticky error was seen: only host state is torn down from here on */
    atomic_uint_fast64_t loss; /* entry + 1 and code of the refusal that did it; 0: none */
    uint64_t born;             /* constant; when it was opened */
    struct gr_tap tap;
};

/* Calls an entry point. Evaluates to the driver's own code, or to the one the tap refuses with. */
#define GR_DRIVE(d, symbol, ...)                              \
    (__extension__(gr_tap_enter(&(d)->tap, GR_ENTRY_##symbol) \
                       ?: gr_tap_leave(&(d)->tap, GR_ENTRY_##symbol, (d)->call.symbol(__VA_ARGS__))))

/* Fills the table (loader for CUDA, gr_sim_table for the simulation), initialises the driver,
 * retains the primary context and probes the facts; rdma only when it is wanted. On failure nothing
 * is held and reason (GR_REASON_ROOM bytes) says what was wrong. */
GR_MUST int gr_driver_open(struct gr_driver *d, bool simulated, int device, bool want_rdma, char *reason);

/* The two halves of opening, for tests that put a plan of refusals or functions of their own between
 * them. After a failure of either nothing is held. */
GR_MUST int gr_driver_fill(struct gr_driver *d, bool simulated, char *reason);
GR_MUST int gr_driver_start(struct gr_driver *d, int device, bool want_rdma, char *reason);

/* Releases the context, unless it is lost or this is a forked child. Everything made through d must
 * be gone. */
void gr_driver_close(struct gr_driver *d);

/* Status for a driver code: OK, OUT_OF_MEMORY, LOST for sticky errors, UNSUPPORTED, else DRIVER.
 * Remembers entry and code of a refusal, and marks the driver lost for a sticky one. Answers that
 * are no refusals (NOT_READY of a query) are for the caller to sort out first. */
GR_MUST int gr_driver_status(struct gr_driver *d, enum gr_entry entry, gr_cu_result code);

/* For calls on the way out, whose refusal leaves nothing to be done; it is remembered all the same. */
static inline void gr_driver_ignore(struct gr_driver *d, enum gr_entry entry, gr_cu_result code) {
    int status = gr_driver_status(d, entry, code);
    (void)status;
}

/* The refusal that lost the driver, else the last one that gr_driver_status saw on this thread: its entry, or -1 and
 * SUCCESS. */
int gr_driver_last(struct gr_driver *d, gr_cu_result *code);

/* Is this a forked child of the process that opened it? */
bool gr_driver_forked(const struct gr_driver *d);
/* No driver call is possible any more: a sticky error was seen, or the process has forked. */
static inline bool gr_driver_lost(struct gr_driver *d) {
    return atomic_load_explicit(&d->lost, memory_order_acquire) != 0 || gr_driver_forked(d);
}

/* Makes the primary context current for calls that need one, and restores what was there; pairs
 * nest, up to 64 deep on a thread, also of different drivers. begin returns OK, LOST, or DRIVER;
 * end must follow an OK, on the same thread. */
GR_MUST int gr_driver_begin(struct gr_driver *d);
void gr_driver_end(struct gr_driver *d);

/* Sets the calling thread's capture mode to RELAXED, in which nothing that we do can harm a capture
 * that somebody else has begun; restore takes what relax returned. */
int gr_driver_relax(struct gr_driver *d);
void gr_driver_restore(struct gr_driver *d, int mode);

/* "cuMemCreate"; and "CUDA_ERROR_OUT_OF_MEMORY", or "CUDA_ERROR_<number>" in buffer for a code that
 * the driver does not know either. Both also for nonsense. */
const char *gr_driver_entry_name(int entry);
const char *gr_driver_code_name(struct gr_driver *d, gr_cu_result code, char buffer[GR_CODE_NAME_ROOM]);

/* Calls so far, summed by kind. */
void gr_driver_calls(struct gr_driver *d, struct granary_driver_calls *out);

/* load.c: opens libcuda.so.1 and fills the table with exact versions; what is optional and missing
 * is NULL. library is never closed: libcuda does not survive it. OK, NO_DRIVER, STUB_DRIVER or
 * OLD_DRIVER; on failure reason (GR_REASON_ROOM bytes) says what was wrong. */
GR_MUST int gr_load_table(struct gr_table *table, void **library, char *reason);

/* sim/: the simulated driver's table. */
void gr_sim_table(struct gr_table *table);

#endif
