/* SPDX-License-Identifier: Apache-2.0
 * Host memory: the one door through which the library takes memory from the C library.
 *
 * One door, so that tests can count what is held and refuse the n-th request (they wrap these two
 * functions at link time). The simulated driver stands for a foreign library and does not use it.
 *
 * No state, no locks: malloc has its own. */
#ifndef GR_BASE_HOST_H
#define GR_BASE_HOST_H

#include "base/base.h"

enum { GR_HOST_HUGE = 2 * 1024 * 1024 }; /* bytes of a huge page on most machines */

/* count * size zeroed bytes at a multiple of alignment (a power of two, at least sizeof (void *)),
 * or NULL when there is none or the product does not fit. */
GR_MUST void *gr_host_take(size_t count, size_t size, size_t alignment);
/* What begins there, at a multiple of it, will be used in random order: it is asked to lie on a huge page. */
void gr_host_advise_huge(void *page);
/* NULL is allowed. */
void gr_host_give(void *ptr);

#endif
