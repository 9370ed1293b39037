/* SPDX-License-Identifier: Apache-2.0
 * A small generator that starts from a seed and is the same everywhere (splitmix64). */
#ifndef SUPPORT_RNG_H
#define SUPPORT_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng) {
    uint64_t z = rng->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* 0 .. bound - 1; the bias does not matter to tests. */
static inline uint64_t rng_below(struct rng *rng, uint64_t bound) {
    return rng_next(rng) % bound;
}

/* low .. high, both included. */
static inline uint64_t rng_between(struct rng *rng, uint64_t low, uint64_t high) {
    return low + rng_below(rng, high - low + 1);
}

/* True once in so many times. */
static inline bool rng_once_in(struct rng *rng, uint64_t times) {
    return rng_below(rng, times) == 0;
}

#endif
