/* SPDX-License-Identifier: Apache-2.0
 * Words that every module uses: alignment and overflow arithmetic, container-of, must-check.
 *
 * Knows nothing of memory management. No state, no locks. */
#ifndef GR_BASE_BASE_H
#define GR_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GR_KIB ((size_t)1 << 10)
#define GR_MIB ((size_t)1 << 20)
#define GR_GIB ((size_t)1 << 30)

#define GR_MUST __attribute__((warn_unused_result))
#define GR_LIKELY(x) __builtin_expect(!!(x), 1)
#define GR_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* In a branch that is hardly ever taken: it stays one, where the compiler would compute both ways. */
#define GR_KEEP_BRANCH() __asm__ volatile("")
/* On the path of a hit, or far from it, whatever the compiler would choose. */
#define GR_INLINE inline __attribute__((always_inline))
#define GR_COLD __attribute__((cold, noinline))
/* Beside the path of a hit, but not slow: it gets no registers of that path. */
#define GR_ASIDE __attribute__((noinline))
#define GR_PRINTF(words, first) __attribute__((format(printf, words, first)))
#define GR_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define GR_CONTAINER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Calls, and when it is refused (not 0) calls once more; the last answer. For giving things back, where
 * the alternative is a leak. */
#define GR_TWICE(call) ((call) == 0 ? 0 : (call))

/* A device address. Never dereferenced by the library. */
typedef uint64_t gr_addr;

/* step must be a power of two. */
static inline bool gr_is_power(uint64_t x) {
    return x != 0 && (x & (x - 1)) == 0;
}
static inline uint64_t gr_align_down(uint64_t x, uint64_t step) {
    return x & ~(step - 1);
}
/* Rounds up to a multiple of step; false, with *out untouched, when that does not fit. */
GR_MUST static inline bool gr_align_up(uint64_t x, uint64_t step, uint64_t *out) {
    uint64_t sum;
    if (__builtin_add_overflow(x, step - 1, &sum)) return false;
    *out = sum & ~(step - 1);
    return true;
}
static inline bool gr_is_aligned(uint64_t x, uint64_t step) {
    return (x & (step - 1)) == 0;
}
/* floor(log2(x)); x must not be 0. */
static inline unsigned gr_log2(uint64_t x) {
    return 63u - (unsigned)__builtin_clzll(x);
}
/* Which of two, without a branch: for what is random, so that a branch would often be missed. */
static inline uint64_t gr_select(bool first, uint64_t a, uint64_t b) {
    return b ^ ((a ^ b) & -(uint64_t)first);
}
static inline uint64_t gr_min(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
static inline uint64_t gr_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

#endif
