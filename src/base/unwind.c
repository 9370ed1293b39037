/* SPDX-License-Identifier: Apache-2.0
 * The calling thread's stack in C and C++. */
#include "base/unwind.h"

#include <dlfcn.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAVE_BACKTRACE 1
#endif
#endif

/* The thread sanitizer crashes when a thread ends on which libunwind took stacks. */
#if defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { OURS = 12, MOST = 256 }; /* frames between here and the caller, at most; and in all */

void gr_unwind_open(struct gr_unwind *unwind) {
    *unwind = (struct gr_unwind){.name = "none"};
#ifdef HAVE_BACKTRACE
    *unwind = (struct gr_unwind){.walk = backtrace, .name = "backtrace"};
#endif
    /* Never closed: it keeps what it knows for each thread until that ends. */
    void *library = SANITIZED ? NULL : dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *walk = library ? dlsym(library, "unw_backtrace") : NULL;
    if (!walk) return;
    memcpy(&unwind->walk, &walk, sizeof(walk));
    unwind->name = "libunwind";
}

size_t gr_unwind_take(const struct gr_unwind *unwind, const void *caller, uint64_t *out, size_t room) {
    void *frame[MOST];
    if (!unwind->walk) return 0;
    int found = unwind->walk(frame, (int)gr_min(room + OURS, MOST));
    int from = 0;
    while (from < found && from < OURS && frame[from] != caller) from++;
    if (from == found || from == OURS) from = 0;
    size_t count = 0;
    for (int i = from; i < found && count < room; i++) out[count++] = (uint64_t)(uintptr_t)frame[i];
    return count;
}
