/* SPDX-License-Identifier: Apache-2.0
 * Host memory: the one door through which the library takes memory from the C library. */
#include "base/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *gr_host_take(size_t count, size_t size, size_t alignment) {
    size_t bytes;
    void *ptr = NULL;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes == 0) return NULL;
    if (alignment <= _Alignof(max_align_t))
        return calloc(1, bytes); /* large requests come zeroed by the kernel, lazily */
    if (posix_memalign(&ptr, alignment, bytes) != 0) return NULL;
    return memset(ptr, 0, bytes);
}

void gr_host_advise_huge(void *page) {
#ifdef MADV_HUGEPAGE
    (void)madvise(page, GR_HOST_HUGE, MADV_HUGEPAGE);
#else
    (void)page;
#endif
}

void gr_host_give(void *ptr) {
    free(ptr);
}
