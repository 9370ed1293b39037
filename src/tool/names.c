/* SPDX-License-Identifier: Apache-2.0
 * Names: texts, or pairs of numbers, told once and named by their place in a sorted list. */
#include "tool/names.h"

#include <stdlib.h>
#include <string.h>

#include "tool/array.h"

static int compare(const void *one, const void *other) {
    const struct name *a = one, *b = other;
    if (a->text != NULL) return strcmp(a->text, b->text);
    for (int i = 0; i < 2; i++)
        if (a->pair[i] != b->pair[i]) return a->pair[i] < b->pair[i] ? -1 : 1;
    return 0;
}

/* The same name often comes many times in a row; that costs no room. */
static bool add(struct names *names, struct name item) {
    if (names->count > 0 && compare(&names->items[names->count - 1], &item) == 0) return true;
    if (!array_reserve(&names->items, &names->room, names->count, 1, sizeof item)) return false;
    names->items[names->count++] = item;
    return true;
}

bool names_add_text(struct names *names, const char *text) {
    return add(names, (struct name){.text = text == NULL ? "" : text});
}

bool names_add_pair(struct names *names, uint64_t first, uint64_t second) {
    return add(names, (struct name){.pair = {first, second}});
}

void names_sort(struct names *names) {
    size_t last = 0;
    if (names->count == 0) return;
    qsort(names->items, names->count, sizeof *names->items, compare);
    for (size_t i = 1; i < names->count; i++)
        if (compare(&names->items[last], &names->items[i]) != 0) names->items[++last] = names->items[i];
    names->count = last + 1;
}

static size_t find(const struct names *names, struct name item) {
    const struct name *at = bsearch(&item, names->items, names->count, sizeof item, compare);
    return (size_t)(at - names->items);
}

size_t names_text_index(const struct names *names, const char *text) {
    return find(names, (struct name){.text = text == NULL ? "" : text});
}

size_t names_pair_index(const struct names *names, uint64_t first, uint64_t second) {
    return find(names, (struct name){.pair = {first, second}});
}

void names_free(struct names *names) {
    free(names->items);
    *names = (struct names){0};
}
