/* SPDX-License-Identifier: Apache-2.0
 * A handle on the simulated device with two streams, for tests of one file: each that includes this has its own. */
#ifndef GR_TEST_TWO_STREAMS_H
#define GR_TEST_TWO_STREAMS_H

#include <check.h>

#include "support/fixture.h"

static granary *g;
static granary_stream a, b;

static inline void manual_64_mib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 64 * GR_MIB;
    sim->clock = GRANARY_SIM_MANUAL;
    sim->hang_ms = 200;
}
static inline void of_64_mib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 64 * GR_MIB;
}

static inline void open_with(fixture_change *change) {
    g = fixture_open(change);
    a = fixture_stream(g);
    b = fixture_stream(g);
}

static inline void close_all(void) {
    granary_sim_run_all();
    ck_assert_ptr_null(granary_verify(g));
    ck_assert_int_eq(granary_stream_destroy(g, a), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, b), GRANARY_OK);
    fixture_close(g);
}

static inline void use(granary_stream stream, void *ptr, size_t size, uint64_t id) {
    ck_assert_int_eq(granary_sim_use(stream, ptr, size, 1, id, GRANARY_SIM_SITE), 0);
}

#endif
