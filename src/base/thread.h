/* SPDX-License-Identifier: Apache-2.0
 * Threads by number, and by token. A token is no name for a thread, as little as pthread_self: the next one that
 * is made after its end often has the same value, and would be taken for it. But it costs one load.
 *
 * The counter behind it belongs to the process, as threads do. */
#ifndef GR_BASE_THREAD_H
#define GR_BASE_THREAD_H

#include "base/base.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <pthread.h>
#endif

/* Of the calling thread: from 1, never used again. */
uint64_t gr_thread_number(void);

/* Of the calling thread: not 0, and no other living thread has it. */
static inline uintptr_t gr_thread_token(void) {
#if defined(__x86_64__)
    uintptr_t token;
    __asm__("mov %%fs:0, %0" : "=r"(token)); /* the thread pointer, which lies where it points to */
    return token;
#elif defined(__aarch64__)
    uintptr_t token;
    __asm__("mrs %0, tpidr_el0" : "=r"(token));
    return token;
#else
    return (uintptr_t)pthread_self();
#endif
}

#endif
