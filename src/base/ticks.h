/* SPDX-License-Identifier: Apache-2.0
 * Ticks: time stamps that cost next to nothing, and become a time of day when somebody reads them.
 *
 *      first ........ tick ........ now         both ends are known as ticks and in nanoseconds;
 *                                               what lies between them follows
 *
 * A tick is the processor's own counter where its rate never changes (x86 with an invariant counter,
 * aarch64), which takes a third of the time that asking the kernel's clock does; elsewhere it is a
 * nanosecond of CLOCK_MONOTONIC. Counters of several processors may be apart by a little, so ticks say
 * when something was, not what came first.
 *
 * The distance is measured with a clock that is never set, the end with the calendar: what is read as a time of
 * day fits the calendar of the moment of reading, also when that was set meanwhile. Two readings of
 * one tick may differ by a microsecond.
 *
 * struct gr_ticks is constant once it is made. No locks. */
#ifndef GR_BASE_TICKS_H
#define GR_BASE_TICKS_H

#include "base/base.h"
#include "base/clock.h"

struct gr_ticks {
    bool counter;  /* else the clock */
    uint64_t cost; /* ticks that a reading takes, about */
    uint64_t first, first_ns;
};

/* Ticks from here on. */
void gr_ticks_init(struct gr_ticks *ticks);

static inline uint64_t gr_ticks_count(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

static inline uint64_t gr_ticks_now(const struct gr_ticks *ticks) {
    return GR_LIKELY(ticks->counter) ? gr_ticks_count() : gr_clock_ns();
}

/* What ticks mean at this moment. */
struct gr_ticks_scale {
    uint64_t now, now_ns; /* since 1970 */
    uint64_t step;        /* nanoseconds for a tick, with 32 bits behind the point */
};
struct gr_ticks_scale gr_ticks_read(const struct gr_ticks *ticks);

/* Nanoseconds since 1970. */
static inline uint64_t gr_ticks_ns(const struct gr_ticks_scale *scale, uint64_t tick) {
    uint64_t gap = tick < scale->now ? scale->now - tick : tick - scale->now;
    uint64_t ns = (uint64_t)((unsigned __int128)gap * scale->step >> 32);
    return tick < scale->now ? scale->now_ns - ns : scale->now_ns + ns;
}

#endif
