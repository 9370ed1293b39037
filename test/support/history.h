/* SPDX-License-Identifier: Apache-2.0
 * Snapshots for tests, written line by line: the JSON form of doc/snapshot.md.
 *
 *      struct history h;
 *      history_begin(&h);
 *      history_segment(&h, 0x1000000, 20 << 20, 0, HISTORY_CLASSIC);  segments with their blocks first,
 *      history_block(&h, 'L', 512, 500, 7);                           then entries
 *      history_entry(&h, "alloc", 0x1000000, 500, 0, 7);
 *      history_read(&h, &snapshot);
 *
 * Line N stands for a stack of two frames: a function of an installed package, called at train.py:N; 0 for no
 * stack. Entry k has the time 1000 k. */
#ifndef SUPPORT_HISTORY_H
#define SUPPORT_HISTORY_H

#include <stdint.h>

#include "tool/snapshot.h"

enum { HISTORY_CLASSIC = 0, HISTORY_EXPANDABLE = 1, HISTORY_SMALL = 2 };
enum { HISTORY_LINES = 100 };

struct history {
    char *text;
    size_t length, room;
    int64_t time_us;
    uint64_t address; /* of the next block */
    int blocks, segments, entries;
    char settings[128];
};

void history_begin(struct history *h);
void history_segment(struct history *h, uint64_t address, uint64_t size, uint64_t stream, int flags);
/* state: L live, P pending, F free. */
void history_block(struct history *h, char state, uint64_t size, uint64_t requested, int line);
void history_entry(struct history *h, const char *action, uint64_t address, uint64_t size, uint64_t stream,
                   int line);
void history_oom(struct history *h, uint64_t size, uint64_t device_free, uint64_t stream, int line);

/* Ends the text and reads it; the text is gone afterwards. Fails the test when it cannot be read. */
void history_read(struct history *h, struct snapshot *out);
/* The same, of what must be refused; returns the words, which the next call overwrites. */
const char *history_refused(struct history *h);

#endif
