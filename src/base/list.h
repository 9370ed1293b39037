/* SPDX-License-Identifier: Apache-2.0
 * Intrusive ring: a head and any number of links, O(1) at every place.
 *
 * Invariant: link->next->prev == link for every link, and a link outside any ring points at itself.
 * Locks: the caller's. */
#ifndef GR_BASE_LIST_H
#define GR_BASE_LIST_H

#include "base/base.h"

struct gr_list {
    struct gr_list *next, *prev;
};

static inline void gr_list_init(struct gr_list *link) {
    link->next = link->prev = link;
}
static inline bool gr_list_empty(const struct gr_list *head) {
    return head->next == head;
}
/* At the end of the ring. */
static inline void gr_list_append(struct gr_list *head, struct gr_list *link) {
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}
static inline void gr_list_remove(struct gr_list *link) {
    link->prev->next = link->next;
    link->next->prev = link->prev;
    gr_list_init(link);
}

#define GR_LIST_FOR(cursor, head) \
    for (struct gr_list *cursor = (head)->next; cursor != (head); cursor = cursor->next)

#endif
