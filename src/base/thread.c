/* SPDX-License-Identifier: Apache-2.0
 * Threads by number. */
#include "base/thread.h"

#include <stdatomic.h>

uint64_t gr_thread_number(void) {
    static atomic_uint_fast64_t last;
    static _Thread_local uint64_t number;
    if (GR_UNLIKELY(number == 0)) number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return number;
}
