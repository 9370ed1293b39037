/* SPDX-License-Identifier: Apache-2.0
 * Arrays that grow by doubling. */
#ifndef TOOL_ARRAY_H
#define TOOL_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room behind the count items that are there for more of them, of size bytes each. array is the
 * address of the pointer. Returns false, and changes nothing, when the host has no memory. */
static inline bool array_reserve(void *array, size_t *room, size_t count, size_t more, size_t size) {
    size_t wanted = *room == 0 ? 64 : *room;
    void *at, *bigger;
    if (*room - count >= more) return true;
    while (wanted - count < more)
        if (__builtin_mul_overflow(wanted, (size_t)2, &wanted)) return false;
    if (wanted > SIZE_MAX / size) return false;
    memcpy(&at, array, sizeof at); /* a pointer of any type */
    bigger = realloc(at, wanted * size);
    if (bigger == NULL) return false;
    memcpy(array, &bigger, sizeof bigger);
    *room = wanted;
    return true;
}

#endif
