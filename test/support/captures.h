/* SPDX-License-Identifier: Apache-2.0
 * What tests of captures stand on: a device, a handle, and captures that watch what the library does
 * while they run. From begin to end of every one, no event or stream may be asked or waited for and
 * nothing unmapped or freed; end asserts it. */
#ifndef SUPPORT_CAPTURES_H
#define SUPPORT_CAPTURES_H

#include "heap/heap.h"
#include "support/fixture.h"

#define RAN(call) ck_assert_int_eq((call), 0)

enum { GLOBAL, THREAD_LOCAL, RELAXED, MODES };

extern granary *g;         /* of the running test */
extern struct gr_table cu; /* the driver, past the tap: what the user calls */

/* A device of 1 GiB, accounting only, whose findings do not abort but fail the test at close. */
void captures_open(fixture_change *change);
/* Runs all work; every invariant holds, nothing is left behind, and the oracle has found nothing. */
void captures_close(void);

granary_pool captures_pool(void);
granary_stream captures_stream(void); /* destroyed at close */
/* A kernel that writes all of [ptr, ptr + size), for an allocation that the test has numbered. */
void captures_use(granary_stream stream, void *ptr, size_t size, uint64_t id);
/* `to` waits for all that `from` has been given; within a capture, or joining it. */
void captures_link(granary_stream from, granary_stream to);

struct capture {
    granary_stream origin;
    granary_capture name;
    uint64_t before; /* forbidden calls */
};
struct capture captures_begin(granary_pool pool, granary_stream origin, int mode);
/* Ends it in the driver, then in the handle; returns the graph, NULL when the driver answered code. */
gr_cu_graph captures_end(struct capture *capture, gr_cu_result code);
/* The same in two steps, for what may happen in between. */
gr_cu_graph captures_end_driver(struct capture *capture, gr_cu_result code);
void captures_end_handle(struct capture *capture);
void captures_is_valid(const struct capture *capture);

/* Calls that no capture may see, so far; see captures.c. */
uint64_t captures_forbidden(void);

size_t captures_reserved(granary_pool pool);
int64_t captures_pending(granary_pool pool);
struct granary_pool_stats captures_stats(granary_pool pool);

#endif
