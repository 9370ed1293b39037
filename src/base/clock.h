/* SPDX-License-Identifier: Apache-2.0
 * A clock for measuring how long something took. No state, no locks. */
#ifndef GR_BASE_CLOCK_H
#define GR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t gr_clock_read(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Nanoseconds since some moment; never goes back. */
static inline uint64_t gr_clock_ns(void) {
    return gr_clock_read(CLOCK_MONOTONIC);
}

#endif
