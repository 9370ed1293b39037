/* SPDX-License-Identifier: Apache-2.0
 * Ticks: which counter can be trusted, and what its ticks mean. */
#include "base/ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Of a constant rate, whatever the processor's clock and its idle states do. */
static bool has_counter(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* One moment by both clocks. The thread may lose its processor in between: of several tries that with the
 * least between is the truest. */
static uint64_t meet(const struct gr_ticks *ticks, clockid_t clock, uint64_t *tick) {
    enum { TRIES = 5 };
    uint64_t ns = 0, least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = gr_ticks_now(ticks), at = gr_clock_read(clock), after = gr_ticks_now(ticks);
        if (after - before >= least) continue;
        least = after - before;
        *tick = before + least / 2;
        ns = at;
    }
    return ns;
}

/* Of many readings in a row, since two of them may overlap. */
static uint64_t cost_of(const struct gr_ticks *ticks) {
    enum { TRIES = 5, READINGS = 16 };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t first = gr_ticks_now(ticks), last = first;
        for (int k = 0; k < READINGS; k++) last = gr_ticks_now(ticks);
        least = gr_min(least, last - first);
    }
    return least / READINGS;
}

void gr_ticks_init(struct gr_ticks *ticks) {
    ticks->counter = has_counter();
    ticks->cost = cost_of(ticks);
    ticks->first_ns = meet(ticks, CLOCK_MONOTONIC, &ticks->first);
}

struct gr_ticks_scale gr_ticks_read(const struct gr_ticks *ticks) {
    struct gr_ticks_scale scale;
    uint64_t last, last_ns = meet(ticks, CLOCK_MONOTONIC, &last);
    scale.step = (uint64_t)1 << 32;
    if (ticks->counter && last > ticks->first)
        scale.step =
            (uint64_t)(((unsigned __int128)(last_ns - ticks->first_ns) << 32) / (last - ticks->first));
    scale.now_ns = meet(ticks, CLOCK_REALTIME, &scale.now);
    return scale;
}
