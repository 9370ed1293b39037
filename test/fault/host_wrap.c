/* SPDX-License-Identifier: Apache-2.0
 * Counts the host allocations of the library, and refuses one. */
#include "fault/host_wrap.h"

#include <stdatomic.h>
#include <stddef.h>

void *__real_gr_host_take(size_t count, size_t size, size_t alignment);
void __real_gr_host_give(void *ptr);
void *__wrap_gr_host_take(size_t count, size_t size, size_t alignment);
void __wrap_gr_host_give(void *ptr);

static atomic_uint_fast64_t taken, refused;
static atomic_int_fast64_t live;
static atomic_uint_fast64_t plan_from, plan_to; /* in terms of taken; equal: no plan */

void *__wrap_gr_host_take(size_t count, size_t size, size_t alignment) {
    uint64_t number = ++taken;
    if (number >= plan_from && number < plan_to) {
        refused++;
        return NULL;
    }
    void *ptr = __real_gr_host_take(count, size, alignment);
    if (ptr != NULL) live++;
    return ptr;
}

void __wrap_gr_host_give(void *ptr) {
    if (ptr != NULL) live--;
    __real_gr_host_give(ptr);
}

uint64_t host_wrap_taken(void) {
    return taken;
}

int64_t host_wrap_live(void) {
    return live;
}

void host_wrap_fail(uint64_t n, uint64_t times) {
    refused = 0;
    plan_from = n == 0 ? 0 : taken + n;
    plan_to = n == 0 ? 0 : taken + n + times;
    if (n != 0 && plan_to < plan_from) plan_to = UINT64_MAX;
}

uint64_t host_wrap_refused(void) {
    return refused;
}
