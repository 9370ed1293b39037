/* SPDX-License-Identifier: Apache-2.0
 * Snapshots: what the memory of a job looked like, and what happened before.
 *
 * A snapshot file holds two things for each device: the segments and blocks at the moment it was
 * written (the end), and a history, a ring that may have lost its beginning. Reading joins both, so
 * that every moment of the history can be rebuilt:
 *
 *      lost       | ring: entry 0 ............ out of memory ....... count-1 | the end: segments, blocks
 *        =========|==life============free requested--completed              |
 *                 |        =======life======================================|======
 *
 * A life is one block from its allocation to the completion of its free. A life that began before the
 * ring is known from its free in the ring or from the blocks at the end; nothing else that was live
 * then is missing, because what is neither freed nor there at the end did not exist.
 *
 * Files: PyTorch's snapshot.pickle (any protocol), and granary's own snapshots, pickle or JSON. A trace
 * becomes a snapshot without segments, stacks and times: see snapshot_from_trace.
 *
 * Frames and stacks are stored once and named by index; index 0 is "not recorded". Texts end with a 0
 * byte and live as long as the snapshot. Nothing changes a snapshot after it was read, so any number of
 * threads may look at it. */
#ifndef TOOL_SNAPSHOT_H
#define TOOL_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <granary/granary.h>

#include "tool/source.h"
#include "tool/trace.h"

struct store;

struct snapshot_frame {
    const char *name, *file; /* of a function, of a source file; "" when not known */
    uint64_t line;
};

/* frame_ids[first .. first + count) of the snapshot, innermost first. */
struct snapshot_stack {
    uint32_t first, count;
};

enum snapshot_state { SNAPSHOT_FREE, SNAPSHOT_LIVE, SNAPSHOT_PENDING };

struct snapshot_block {
    uint64_t address, size, requested; /* requested: as asked for; only of live and pending blocks */
    const char *note;                  /* its tag, or NULL */
    uint32_t stack;                    /* of its allocation */
    uint8_t state;                     /* enum snapshot_state */
};

struct snapshot_segment {
    uint64_t address, size;
    uint64_t stream;     /* the raw handle; 0 is the default stream */
    uint64_t pool[2];    /* {0, 0}: the default pool */
    size_t first, count; /* its blocks in the array of the snapshot or moment; they tile it, rising */
    uint32_t stack;      /* of the call that made it */
    int device;
    bool small, expandable;
};

enum snapshot_action {
    SNAPSHOT_ALLOC,
    SNAPSHOT_REQUEST,   /* free_requested */
    SNAPSHOT_COMPLETE,  /* free_completed */
    SNAPSHOT_SEGMENT,   /* segment_alloc, segment_map: memory came */
    SNAPSHOT_UNSEGMENT, /* segment_free, segment_unmap: memory went */
    SNAPSHOT_OOM,
    SNAPSHOT_OTHER /* any other action: see name */
};

enum { SNAPSHOT_NONE = UINT32_MAX }; /* no such life or entry */

struct snapshot_entry {
    int64_t time_us;  /* Unix time; of a trace: the number of the operation */
    uint64_t address; /* 0 for out of memory */
    uint64_t size;    /* ALLOC, REQUEST, COMPLETE: as asked for; SEGMENT...: of the segment; OOM: rounded */
    uint64_t device_free;     /* OOM: what the driver said was free, all processes counted */
    uint64_t stream, pool[2]; /* pool: {0, 0} when the file does not say */
    const char *name;         /* the action as it stands in the file */
    const char *note;         /* user_metadata, or NULL */
    uint32_t stack;
    uint32_t life;   /* of ALLOC, REQUEST, COMPLETE: the life that it belongs to; else SNAPSHOT_NONE */
    uint32_t closes; /* ALLOC: an older life, of which no end is told, that was at its address; else NONE */
    uint8_t action;  /* enum snapshot_action */
};

struct snapshot_life {
    uint64_t address, size; /* size as asked for */
    uint64_t stream;
    uint64_t pool[2];
    const char *note; /* as of its block, else of its allocation */
    uint32_t stack;   /* of the allocation */
    uint32_t begin;   /* entry; SNAPSHOT_NONE: before the ring */
    uint32_t request; /* entry; SNAPSHOT_NONE: before the ring when pending, else never */
    uint32_t end;     /* entry; SNAPSHOT_NONE: never */
    bool pending;     /* before the ring began its free had been requested */
};

/* One device. Lives are in order of their beginning, those from before the ring first. */
struct snapshot_device {
    int index;
    const struct snapshot_segment *segments; /* of this device, in rising order of address */
    size_t segment_count;
    struct snapshot_entry *entries;
    size_t entry_count;
    struct snapshot_life *lives;
    size_t life_count, before_count; /* before_count: how many of them began before the ring */
    uint64_t reserved_before;        /* bytes in segments when the ring begins */
    size_t unexplained;              /* entries that contradict what came before them */
    size_t last_oom;                 /* entry of the last out of memory, or entry_count */
};

/* A stretch of the program that it named itself (record_function). */
struct snapshot_mark {
    const char *name;
    int64_t time_us;
    int device;
    bool end; /* else start */
};

struct snapshot {
    const char *path;
    bool from_trace;                 /* no segments, stacks and times */
    struct snapshot_device *devices; /* only those that have a segment or an entry */
    size_t device_count;
    struct snapshot_segment *segments; /* of all devices */
    size_t segment_count;
    struct snapshot_block *blocks; /* of all segments */
    size_t block_count;
    struct snapshot_frame *frames;
    size_t frame_count;
    struct snapshot_stack *stacks;
    size_t stack_count;
    uint32_t *frame_ids; /* see struct snapshot_stack */
    struct snapshot_mark *marks;
    size_t mark_count;
    /* The settings the job ran under, "" or 0 when the file does not say. */
    const char *conf; /* PYTORCH_CUDA_ALLOC_CONF */
    bool expandable;
    uint64_t max_split_size; /* UINT64_MAX: unlimited */
    double garbage_collection_threshold;
    /* What only granary's own snapshots say. */
    bool own;
    uint64_t dropped;                /* entries that the ring lost */
    uint64_t limit_bytes;            /* UINT64_MAX: unlimited, or not known */
    uint64_t total_bytes;            /* of the device; 0: not known */
    const char *failure;             /* the words of the out-of-memory that wrote it, or NULL */
    struct granary_stats statistics; /* struct_size is 0 when not known */

    struct store *texts; /* where the texts lie */
};

/* Reads a file (a trace as well). path must outlive the snapshot. Returns 0, or -1 with the problem and
 * nothing to free. Memory is bounded by a small multiple of the file's unpacked size, whatever is in it. */
int snapshot_read(const char *path, struct snapshot *out, struct problem *problem);

/* The same on bytes in memory, followed by a 0 byte. They may go when it returns. */
int snapshot_parse(const char *path, const char *bytes, size_t length, struct snapshot *out,
                   struct problem *problem);

/* Do these bytes start like a snapshot, pickle or JSON? Else they can only be a trace. */
bool snapshot_looks_like(const char *bytes, size_t length);

void snapshot_free(struct snapshot *snapshot);

/* Of several devices the one that ran out of memory, else the one with most entries; NULL without any. */
const struct snapshot_device *snapshot_main_device(const struct snapshot *snapshot);

/* The line that a reader of a report can change: the innermost Python frame that is not of an installed
 * package or the standard library; without one the innermost C frame that is not of the system or a shared
 * object; else the innermost with a file; else NULL. */
const struct snapshot_frame *snapshot_line(const struct snapshot *snapshot, uint32_t stack);

/* "file:line (function)", the line where it is known. Returns buffer. */
const char *snapshot_frame_text(const char *file, const struct snapshot_frame *frame, char *buffer,
                                size_t room);
/* The same of snapshot_line, or "stack not recorded". */
const char *snapshot_line_text(const struct snapshot *snapshot, uint32_t stack, char *buffer, size_t room);

/* Memory as it was just before an entry (entry_count: the end). Segments in rising order, tiled by
 * blocks. For the end block sizes are those of the file; before it they follow PyTorch's sizes: 512-byte
 * steps, and a rest of up to 1 MiB stays with a large block of a classic segment. */
struct snapshot_moment {
    struct snapshot_segment *segments;
    size_t segment_count;
    struct snapshot_block *blocks;
    uint32_t *lives; /* for each block: its life, or SNAPSHOT_NONE */
    size_t block_count;
    uint64_t reserved, live, pending, requested, free; /* bytes; free: in FREE blocks */
    uint64_t unplaced;                                 /* bytes of lives that lie in no known segment */
};

int snapshot_rebuild(const struct snapshot *snapshot, const struct snapshot_device *device, size_t entry,
                     struct snapshot_moment *out, struct problem *problem);
void snapshot_moment_free(struct snapshot_moment *moment);

/* The traffic of a device as a trace: what was live before the ring first, lowest address first, then the
 * entries before `entry`, and last an allocation that stands for `entry` itself when that is out of memory.
 * Earlier entries of that kind are left out: the job went on without that memory. Where blocks of one
 * stream lie in several private pools, these are streams of their own. *origin, when not NULL, gets for
 * each operation the entry it came from (SNAPSHOT_NONE: from before the ring); free it with free. */
int snapshot_to_trace(const struct snapshot *snapshot, const struct snapshot_device *device, size_t entry,
                      struct trace *out, uint32_t **origin, struct problem *problem);

/* Reads a trace, or a snapshot as a trace: of its main device, up to the last out-of-memory
 * and with it. path must outlive the trace. */
int snapshot_read_trace(const char *path, struct trace *out, struct problem *problem);

#endif
