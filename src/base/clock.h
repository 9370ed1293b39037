/* SPDX-License-Identifier: Apache-2.0
 * A clock for measuring how long something took. No state, no locks. */
#ifndef GR_BASE_CLOCK_H
#define GR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment; never goes back. */
static inline uint64_t gr_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#endif
