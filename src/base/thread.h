/* SPDX-License-Identifier: Apache-2.0
 * Threads by number. pthread_self is no name for a thread: the next one that is made after its end
 * often has the same value, and would be taken for it.
 *
 * The counter behind it belongs to the process, as threads do. */
#ifndef GR_BASE_THREAD_H
#define GR_BASE_THREAD_H

#include "base/base.h"

/* Of the calling thread: from 1, never used again. */
uint64_t gr_thread_number(void);

#endif
