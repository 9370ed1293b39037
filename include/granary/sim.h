/* SPDX-License-Identifier: Apache-2.0
 * The simulated device: a CUDA driver in host memory, to run and test granary without a GPU.
 *
 * It stands for libcuda and, like libcuda, is one per process: open it, open handles with
 * options.driver = GRANARY_DRIVER_SIM, close the handles, close it. Its answers follow the measured
 * answers of a real driver code for code. In strict mode (the default) it stops loudly where the
 * real driver would let a mistake through and corrupt memory later: a report on standard error that
 * names what, where and in which call, then abort(). With strict 0 the real driver's code is
 * returned, the finding is counted, and work that faults makes the context sticky (700).
 *
 * granary_open with GRANARY_DRIVER_SIM and no simulation open opens one with the defaults, and the
 * last granary_close closes it.
 *
 * Work. granary_sim_use submits a simulated kernel that touches bytes; copies and fills of the
 * driver are work as well. Each piece of work has a place in the happens-before order, which is
 * made of: the order of a stream, events waited for, the edges of a graph, implicit ordering with
 * the legacy stream, and the host: once any thread has seen work complete (a query that said so, a
 * synchronisation), everything submitted later by any thread is ordered after it. The host counts
 * as one for this, whatever its threads: that never raises a false alarm, and may miss a mistake
 * that only shows between two host threads that do not talk to each other.
 *
 * The oracle watches that order. It reports
 *   - two uses of the same physical bytes by different allocations with no order between them,
 *   - work that finds its bytes unmapped, without access, or other memory than at its submission,
 *   - unmapping before the host has seen the last use complete.
 * The order does not depend on when work happens to run, so the oracle finds a missing wait even
 * with the AT_ONCE clock. Inside a capture the same is checked over the paths of the finished graph.
 *
 * Every function may be called from any thread. Functions that take a stream accept NULL (legacy
 * default stream) and the other special handles; with no current context they mean device 0. */
#ifndef GRANARY_SIM_H
#define GRANARY_SIM_H

#include <granary/granary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- opening and closing ------------------------------------------------------------------- */

enum granary_sim_backing {
    GRANARY_SIM_ACCOUNTING = 0, /* addresses are real reservations, memory is only counted */
    GRANARY_SIM_MEMORY = 1      /* memory is real and sparse: contents can be written and checked */
};

/* How submitted work runs. */
enum granary_sim_clock {
    GRANARY_SIM_AT_ONCE = 0, /* work is complete when its submission returns */
    GRANARY_SIM_MANUAL = 1   /* work waits until granary_sim_run* is called or somebody synchronises */
};

struct granary_sim_config {
    size_t struct_size;
    int devices;                      /* default 1, at most 16 */
    size_t memory_bytes;              /* of each device. default 141 GiB */
    size_t granule_bytes;             /* a power of two, at least 4096. default 2 MiB */
    size_t address_bytes;             /* address space of the process. default 127 TiB */
    int driver_version;               /* default 13000 */
    enum granary_sim_backing backing; /* default ACCOUNTING */
    enum granary_sim_clock clock;     /* default AT_ONCE */
    int vmm;                  /* 0: no virtual memory: attribute 102 is 0, its calls give 801. default 1 */
    int strict;               /* 1: abort, with a report, on misuse; 0: the real code. default 1 */
    size_t max_reserve_bytes; /* a larger reservation gives 2, as on small boards. default SIZE_MAX */
    int create_refused_code;  /* not 0: every cuMemCreate answers this. default 0 */
    int rdma_attribute;       /* value of attribute 110. default 1 */
    int rdma_access_code;     /* not 0: what cuMemSetAccess says of RDMA-capable memory. default 0 */
    int fabric;               /* 0: fabric handles give 800, as without IMEX. default 0 */
    int reuse_stream_handles; /* 1: a destroyed stream's value is the next stream's. default 1 */
    int oracle;               /* 0: keep no happens-before order and check none. default 1 */
    int hang_ms;              /* a wait in which nothing moves for so long is a deadlock. default 5000 */
    int peers;                /* 0: no device can touch another's memory. default 1 */
};

GRANARY_API void granary_sim_config_init(struct granary_sim_config *config);

/* Opens the process's simulated driver; NULL means the defaults.
 * Fails: INVALID, BUSY (one is open). */
GRANARY_API int granary_sim_open(const struct granary_sim_config *config);

/* What is held, in all. All zero when nothing leaks. */
struct granary_sim_held {
    size_t struct_size;
    uint64_t reservations, reserved_bytes;
    uint64_t handles, handle_bytes; /* physical memory created and not gone */
    uint64_t mappings, mapped_bytes;
    uint64_t allocations, allocated_bytes; /* cuMemAlloc, in whole granules */
    uint64_t events, streams, graphs;      /* graphs: instantiated ones too */
    uint64_t contexts;                     /* primary context references */
    uint64_t pending_work;                 /* items submitted and not complete */
};
GRANARY_API void granary_sim_get_held(struct granary_sim_held *out);

/* Closes it. Fails: INVALID (none is open), BUSY when something is still held (and closes nothing). */
GRANARY_API int granary_sim_close(void);

/* ---- conditions ---------------------------------------------------------------------------- */

/* Bytes of the device's memory that other processes hold from now on. Fails: INVALID. */
GRANARY_API int granary_sim_set_foreign(int device, size_t bytes);

/* What an attribute of the device answers from now on. Fails: INVALID (also when 32 are set). */
GRANARY_API int granary_sim_set_attribute(int device, int attribute, int value);

/* Makes the device's context sticky with this driver code, as a faulting kernel does; 0 heals it.
 * Fails: INVALID. */
GRANARY_API int granary_sim_set_sticky(int device, int code);

/* ---- work ---------------------------------------------------------------------------------- */

/* Submits a kernel that touches the bytes. allocation_id names the allocation that they belong to:
 * uses under one id are the program's own business, uses under different ids must be ordered. Id 0
 * takes no part in that. tag names the call site in reports and must live as long as the
 * simulation; NULL is allowed. On a capturing stream it becomes a node.
 * Returns the driver's code: 0, or why the work was refused. */
GRANARY_API int granary_sim_use(granary_stream stream, const void *ptr, size_t size, int write,
                                uint64_t allocation_id, const char *tag);

#define GRANARY_SIM_SITE_TEXT(line) #line
#define GRANARY_SIM_SITE_LINE(line) GRANARY_SIM_SITE_TEXT(line)
/* The call site as a tag. */
#define GRANARY_SIM_SITE __FILE__ ":" GRANARY_SIM_SITE_LINE(__LINE__)

/* Runs up to count items of the stream, in order; stops early at a wait that is not met, and at a
 * hold. An item is a kernel, a copy, a fill, a host function, a graph launch, an event record or
 * a wait that was not met when it was submitted. Returns how many ran. */
GRANARY_API uint64_t granary_sim_run(granary_stream stream, uint64_t count);

/* Runs everything that can run. Returns how many items ran. */
GRANARY_API uint64_t granary_sim_run_all(void);

/* Runs up to count items, each from a stream chosen by a generator that starts from seed. */
GRANARY_API uint64_t granary_sim_run_random(uint64_t seed, uint64_t count);

/* A held stream runs nothing until it is released, with either clock and also for somebody who
 * synchronises: that thread sleeps until another one releases the stream; when nothing moves for
 * hang_ms it is reported as a deadlock (strict 0: the call answers 702). Holds count. Destroying the
 * stream lifts them.
 * Fails: INVALID. */
GRANARY_API int granary_sim_hold(granary_stream stream);
GRANARY_API int granary_sim_release(granary_stream stream);

/* ---- findings ------------------------------------------------------------------------------ */

enum granary_sim_finding {
    GRANARY_SIM_MISUSE = 0,      /* a call that the real driver lets through or does not define */
    GRANARY_SIM_UNORDERED = 1,   /* two allocations use the same bytes with no order between them */
    GRANARY_SIM_UNMAPPED = 2,    /* work touched bytes that are not mapped, or without access */
    GRANARY_SIM_MOVED = 3,       /* work found other memory at its address than at submission or capture */
    GRANARY_SIM_EARLY_UNMAP = 4, /* unmapped before the host saw the last use complete */
    GRANARY_SIM_DEADLOCK = 5,
    GRANARY_SIM_FINDINGS = 6
};

struct granary_sim_findings {
    size_t struct_size;
    uint64_t count; /* in all */
    uint64_t by_kind[GRANARY_SIM_FINDINGS];
    char first[480]; /* sentence of the first, "" when there is none */
    char last[480];
};
/* Findings since opening or the last clearing. In strict mode the first one aborts. */
GRANARY_API void granary_sim_get_findings(struct granary_sim_findings *out);
GRANARY_API void granary_sim_clear_findings(void);

#ifdef __cplusplus
}
#endif
#endif
