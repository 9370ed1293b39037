/* SPDX-License-Identifier: Apache-2.0
 * Names: texts, or pairs of numbers, that are told once and then named by their place in a sorted list.
 * Add all, sort, then ask; only what was added may be asked for. A list holds one kind. */
#ifndef TOOL_NAMES_H
#define TOOL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name {
    const char *text; /* NULL: the pair counts */
    uint64_t pair[2];
};

struct names {
    struct name *items;
    size_t count, room;
};

/* They return false when the host has no memory. Texts must outlive the list; NULL stands for "". */
bool names_add_text(struct names *names, const char *text);
bool names_add_pair(struct names *names, uint64_t first, uint64_t second);

/* Sorts, and drops what is there twice. */
void names_sort(struct names *names);

size_t names_text_index(const struct names *names, const char *text);
size_t names_pair_index(const struct names *names, uint64_t first, uint64_t second);

void names_free(struct names *names);

#endif
