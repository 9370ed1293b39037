/* SPDX-License-Identifier: Apache-2.0
 * The document of a report: one device of a snapshot as compact JSON, which src/tool/page/model.js reads.
 *
 * Everything is told once. Texts, frames, stacks, streams, pools and tags are lists that others name by
 * index. Blocks are lives, in columns: one number where all rows agree, else a number for each.
 *
 *      source     name kind device devices entries unexplained dropped limit (null: not known) guessed
 *      settings   [name, value] pairs of texts
 *      strings    texts; the first is ""
 *      frames     name, file (strings), line for each frame
 *      stacks     for each stack its frames, innermost first; the first stack is "not recorded"
 *      lines      for each stack the frame that its reader can change
 *      streams pools tags
 *                 texts; the first tag is ""
 *      times      steps[k]: microseconds from entry (k - 1) * stride to entry k * stride; [] when not timed
 *      lives      count    rows; unit: bytes that addresses count in
 *                 begin    entry, as the difference to the life before it; -1: before the history
 *                 request  entries from begin to the request of the free; 0: none; -1: before the history
 *                 end      entries from the request, else from begin, to the completed free; 0: never
 *                 address  in units, as the difference to the life before it
 *                 size     as asked for          stack stream pool tag
 *      lumped     null, or lives left out because there are too many: count, below (their largest size),
 *                 and their sum: entry (differences) and size, each holding up to the next
 *      segments   initial  address size stream pool flags stack of each when the history begins
 *                 changes  entry came address size stream pool flags stack of each that came or went
 *                          flags: 1 small, 2 expandable
 *      reserved   null, or for what has no segments: entry (differences) and size as in lumped
 *      marks      {kind "oom", entry size free stack} or {kind "span", name entry to}
 *      explain    {kind, failed, entry, words}: the diagnosis, and the moment that it looked at
 *      whatif     {conf role reserved smallest fits} for each trial; role: own, trial, best, without
 *
 * '<' is escaped in every text, so the document may stand inside a script element whatever is in it.
 * The same snapshot gives the same bytes. */
#ifndef TOOL_DOCUMENT_H
#define TOOL_DOCUMENT_H

#include <stdio.h>

#include "tool/explain.h"
#include "tool/snapshot.h"
#include "tool/thin.h"

enum {
    DOCUMENT_LIVES = 100000, /* at most so many blocks are told one by one, those of special moments apart */
    DOCUMENT_POINTS = 20000  /* of a curve */
};

/* What the document has besides the snapshot. */
struct document_more {
    const struct explain *explain;     /* of this device */
    const struct thin_point *reserved; /* a curve of reserved memory, for what has no segments */
    size_t reserved_count;
    size_t lives; /* DOCUMENT_LIVES, or less */
};

/* Writes the document. Whether all bytes got there, `to` says. Returns 0, or -1 with the problem. */
int document_write(FILE *to, const struct snapshot *snapshot, const struct snapshot_device *device,
                   const struct document_more *more, struct problem *problem);

#endif
