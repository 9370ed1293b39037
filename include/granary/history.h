/* SPDX-License-Identifier: Apache-2.0
 * granary: see what the memory did. A history of events with the stacks of those who caused them,
 * snapshots for PyTorch's tools and for the granary command, and summaries for people.
 *
 *      granary_record_history(g, NULL);                           every event from here on, with stacks
 *      ...
 *      granary_snapshot_file(g, GRANARY_PICKLE, "job.pickle");    https://pytorch.org/memory_viz opens it
 *      granary_summary(g, 0, text, sizeof text);                  the table of torch.cuda.memory_summary
 *
 * While history is off, an allocation pays a few predictable branches for it. */
#ifndef GRANARY_HISTORY_H
#define GRANARY_HISTORY_H

#include <granary/granary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- history ------------------------------------------------------------------------------ */

/* How history is kept. An event costs some nanoseconds, with a reading of the clock some
 * tens, a stack what its frames do. */
struct granary_history_options {
    size_t struct_size; /* sizeof (struct granary_history_options), set by granary_history_options_init */
    int level;          /* enum granary_history_level. default ALL */
    int stacks;         /* sum of enum granary_stacks. default GRANARY_STACKS_ALL */
    size_t entries; /* events kept, 32 bytes each, 56 with metadata; of more, the newest. default 100000 */
};
/* Fills in the defaults.  Driver: never.  Capture: allowed.  Fails: never. */
GRANARY_API void granary_history_options_init(struct granary_history_options *options);

/* From now on history is kept in this way; options may be NULL: the defaults. Events that are kept
 * stay, as far as they fit, also when the level is OFF; so do the stacks of live blocks. Stacks are
 * taken with no lock held. When Python frames are, and the calling thread has given the interpreter's
 * lock up, it takes that lock: hold no lock that a thread with the interpreter's lock may wait for.
 * Driver: never.  Capture: allowed.  Fails: INVALID, HOST_MEMORY. */
GRANARY_API int granary_record_history(granary *g, const struct granary_history_options *options);
/* Forgets the events.  Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_clear_history(granary *g);

struct granary_history {
    size_t struct_size;
    int level, stacks;
    int64_t entries;         /* events that can be kept */
    int64_t recorded;        /* since the beginning, or granary_clear_history */
    int64_t kept, dropped;   /* kept + dropped == recorded */
    int64_t distinct_stacks; /* each stored once, until the handle closes */
    int64_t stacks_lost;     /* no room or host memory for them: shown as none */
    int64_t host_bytes;
    char unwinder[32]; /* what takes C frames: "libunwind", "backtrace", "none"; "" before the first use */
    int python;        /* 1: Python frames can be taken */
};
/* Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_get_history(granary *g, struct granary_history *out);

/* What the calling thread says about the blocks it allocates, for all handles: a tag (what the memory
 * is for: "activations") and any text. Both go into events, the tag also into what is known of a
 * live block. "" for none. previous (may be NULL) receives the words before, to put them back; it may be
 * the place of the words. At most GRANARY_TAG_ROOM and GRANARY_METADATA_ROOM bytes with the end; a handle
 * tells 4095 tags apart.
 * Driver: never.  Capture: allowed.  Fails: INVALID (NULL, or too long). */
#define GRANARY_TAG_ROOM 64
#define GRANARY_METADATA_ROOM 256
GRANARY_API int granary_set_tag(const char *tag, char previous[GRANARY_TAG_ROOM]);
GRANARY_API int granary_set_metadata(const char *text, char previous[GRANARY_METADATA_ROOM]);

/* Marks the beginning (start 1) or the end (0) of something that has this name, at most 255 bytes of it.
 * Nothing happens while no events are recorded.
 * Driver: never.  Capture: allowed.  Fails: INVALID, HOST_MEMORY. */
GRANARY_API int granary_annotate(granary *g, const char *name, int start);

/* Who holds most: live and pending blocks of one tag, or of one stack, together. */
enum granary_holders { GRANARY_BY_TAG = 0, GRANARY_BY_STACK = 1 };
/* Writes the largest holders, largest first, at most room of them, and how many to *count. Stacks and
 * tags of blocks are known when history was kept, at any level, as they were allocated.
 * Driver: asks events while blocks are pending.  Capture: allowed.  Fails: INVALID, HOST_MEMORY. */
GRANARY_API int granary_get_holders(granary *g, enum granary_holders by, struct granary_holder *out,
                                    size_t room, size_t *count);

/* ---- snapshots and summaries -------------------------------------------------------------- */

/* PICKLE: what PyTorch's torch.cuda.memory._snapshot() gives, which its tools and
 * https://pytorch.org/memory_viz open. JSON: the same. Both are described in doc/snapshot.md. */
enum granary_format { GRANARY_PICKLE = 0, GRANARY_JSON = 1 };

/* Takes the next bytes of what is written: 0, or anything else to stop. Called with no lock held. */
typedef int (*granary_writer)(void *context, const void *bytes, size_t size);

/* Writes segments, blocks, history and figures of one moment. Other threads are held while blocks are
 * copied and go on while it is written; host memory is taken for the copy. The file is written under
 * another name first: whoever looks finds the whole of it or none.
 * Driver: asks events while blocks are pending.  Capture: allowed.  Fails: INVALID, HOST_MEMORY, WRITE.
 *
 * At out-of-memory a snapshot is written by itself when options.oom_snapshot or the environment
 * variable GRANARY_OOM_SNAPSHOT names a file: %p in it is the process, %d the device, %n the number of
 * the failure. Without a %n only the first failure of the handle writes. A name that ends with .json
 * is written as JSON. The call fails in the same way whether or not that works. */
GRANARY_API int granary_snapshot(granary *g, enum granary_format format, granary_writer writer,
                                 void *context);
GRANARY_API int granary_snapshot_file(granary *g, enum granary_format format, const char *path);

/* The table of PyTorch's memory_summary, and below it what granary counts more. room: at least
 * GRANARY_SUMMARY_ROOM. abbreviated 1: only the rows for both classes together. Of what is not releasable
 * or oversize, which exists in classic segments only, the current value stands for the peak.
 * Driver: asks events while blocks are pending.  Capture: allowed.  Fails: INVALID. */
#define GRANARY_SUMMARY_ROOM 8192
GRANARY_API int granary_summary(granary *g, int abbreviated, char *buffer, size_t room);

/* The same table of figures from elsewhere: a snapshot's. split: what exists in classic segments only (free
 * blocks beside used ones, and what is at least max_split_size); NULL: nothing of it.
 * Driver: never.  Capture: allowed.  Fails: INVALID. */
struct granary_split_stats {
    size_t struct_size;
    struct granary_stat_by_class split_bytes, split_blocks;
    struct granary_stat oversize_blocks, oversize_segments;
};
GRANARY_API int granary_format_summary(int device, const struct granary_stats *stats,
                                       const struct granary_split_stats *split, int abbreviated, char *buffer,
                                       size_t room);

/* One line for a log: "granary: device 0: 1.50 GiB allocated, 2.00 GiB reserved, 512.00 MiB between; ...".
 * room: at least GRANARY_WATERMARK_ROOM.
 * Driver: asks events while blocks are pending.  Capture: allowed.  Fails: INVALID. */
#define GRANARY_WATERMARK_ROOM 256
GRANARY_API int granary_watermark(granary *g, char *buffer, size_t room);

#ifdef __cplusplus
}
#endif
#endif
