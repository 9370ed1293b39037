/* SPDX-License-Identifier: Apache-2.0
 * Reach: what lies behind a stream's terminals in the graph that it is captured into. */
#include "stream/reach.h"

#include <string.h>

#include "base/check.h"
#include "base/host.h"

enum { FIRST_SLOTS = 64, DEPENDENCIES = 32 };

void gr_reach_fini(struct gr_reach *reach) {
    gr_host_give(reach->entry);
    gr_host_give(reach->tip);
    gr_host_give(reach->stack);
    *reach = (struct gr_reach){0};
}

/* ---- the set ------------------------------------------------------------------------------ */

static size_t hash(gr_cu_node node) {
    return (size_t)((uintptr_t)node * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* The entry of the node, or the empty slot where it would go. The table is not empty. */
static struct gr_reach_entry *slot_of(const struct gr_reach *reach, gr_cu_node node) {
    size_t i = hash(node);
    while (reach->entry[i & reach->mask].node && reach->entry[i & reach->mask].node != node) i++;
    return &reach->entry[i & reach->mask];
}

/* Room for `more` further entries, at most half full. */
static bool reserve(struct gr_reach *reach, size_t more) {
    size_t slots = reach->mask ? reach->mask + 1 : FIRST_SLOTS;
    while ((reach->count + more) * 2 > slots) slots *= 2;
    if (reach->mask && slots == reach->mask + 1) return true;
    struct gr_reach grown = {.entry = gr_host_take(slots, sizeof(*reach->entry), 8), .mask = slots - 1};
    if (!grown.entry) return false;
    for (size_t i = 0; reach->mask && i <= reach->mask; i++)
        if (reach->entry[i].node) *slot_of(&grown, reach->entry[i].node) = reach->entry[i];
    gr_host_give(reach->entry);
    reach->entry = grown.entry;
    reach->mask = grown.mask;
    return true;
}

static struct gr_reach_entry *enter(struct gr_reach *reach, gr_cu_node node) {
    struct gr_reach_entry *entry = slot_of(reach, node);
    if (!entry->node) {
        entry->node = node;
        reach->count++;
    }
    return entry;
}

bool gr_reach_has(const struct gr_reach *reach, gr_cu_node node) {
    return reach->mask && slot_of(reach, node)->visited;
}

/* ---- watches ------------------------------------------------------------------------------ */

bool gr_reach_watch(struct gr_reach *reach, struct gr_watch *watch) {
    while (watch->at < watch->count && gr_reach_has(reach, watch->node[watch->at])) watch->at++;
    if (watch->at == watch->count) {
        watch->next = reach->ready;
        reach->ready = watch;
        return true;
    }
    bool known = reach->mask && slot_of(reach, watch->node[watch->at])->node;
    if (!known && !reserve(reach, 1)) return false;
    struct gr_reach_entry *entry = enter(reach, watch->node[watch->at]);
    watch->next = entry->watches;
    entry->watches = watch;
    return true;
}

struct gr_watch **gr_reach_list_of(struct gr_reach *reach, const struct gr_watch *watch) {
    return watch->at == watch->count ? &reach->ready : &slot_of(reach, watch->node[watch->at])->watches;
}

/* ---- walking ------------------------------------------------------------------------------ */

static bool grow(gr_cu_node **array, size_t *room, size_t need) {
    if (need <= *room) return true;
    size_t fresh_room = gr_max(need, *room * 2);
    gr_cu_node *fresh = gr_host_take(fresh_room, sizeof(gr_cu_node), 8);
    if (!fresh) return false;
    if (*room) memcpy(fresh, *array, *room * sizeof(gr_cu_node));
    gr_host_give(*array);
    *array = fresh;
    *room = fresh_room;
    return true;
}

/* Visits a node: marks it, wakes its watches, puts it on the stack. */
static bool visit(struct gr_reach *reach, gr_cu_node node) {
    if (gr_reach_has(reach, node)) return true;
    if (!grow(&reach->stack, &reach->stack_room, gr_max(64, reach->stack_count + 1)) || !reserve(reach, 1))
        return false;
    struct gr_reach_entry *entry = enter(reach, node);
    struct gr_watch *watches = entry->watches;
    entry->visited = true;
    entry->watches = NULL;
    reach->walked++;
    reach->stack[reach->stack_count++] = node;
    while (watches) {
        struct gr_watch *watch = watches;
        watches = watch->next;
        /* Without host memory the watch is lost to this reach; the end of the capture frees its block. */
        bool kept = gr_reach_watch(reach, watch);
        (void)kept;
    }
    return true;
}

/* The dependencies of a node: into the buffer if they fit, else into memory that *owned must give back. */
static int dependencies(struct gr_driver *driver, gr_cu_node node, gr_cu_node *buffer,
                        struct gr_cu_edge *edge_buffer, gr_cu_node **nodes, struct gr_cu_edge **edges,
                        size_t *count, void **owned) {
    *owned = NULL;
    *nodes = buffer;
    *edges = edge_buffer;
    *count = DEPENDENCIES;
    int status =
        gr_driver_status(driver, GR_ENTRY_cuGraphNodeGetDependencies,
                         GR_DRIVE(driver, cuGraphNodeGetDependencies, node, buffer, edge_buffer, count));
    if (status != GRANARY_OK || *count < DEPENDENCIES) return status;
    /* There may be more than fitted. */
    status = gr_driver_status(driver, GR_ENTRY_cuGraphNodeGetDependencies,
                              GR_DRIVE(driver, cuGraphNodeGetDependencies, node, NULL, NULL, count));
    if (status != GRANARY_OK || *count == DEPENDENCIES) return status;
    *owned = gr_host_take(*count, sizeof(gr_cu_node) + sizeof(struct gr_cu_edge), 8);
    if (!*owned) return GRANARY_HOST_MEMORY;
    *nodes = *owned;
    *edges = (struct gr_cu_edge *)(*nodes + *count);
    return gr_driver_status(driver, GR_ENTRY_cuGraphNodeGetDependencies,
                            GR_DRIVE(driver, cuGraphNodeGetDependencies, node, *nodes, *edges, count));
}

/* Along a full edge. */
static bool follow(struct gr_reach *reach, gr_cu_node node, bool *touched) {
    for (size_t t = 0; t < reach->tip_count; t++) touched[t] |= reach->tip[t] == node;
    return visit(reach, node);
}

/* Walks back from the stack. touched[i] is set when former terminal i is met. */
static int walk(struct gr_reach *reach, struct gr_driver *driver, bool *touched) {
    gr_cu_node buffer[DEPENDENCIES], *nodes;
    struct gr_cu_edge edge_buffer[DEPENDENCIES], *edges;
    while (reach->stack_count > 0) {
        gr_cu_node node = reach->stack[--reach->stack_count];
        size_t count;
        void *owned;
        int status = dependencies(driver, node, buffer, edge_buffer, &nodes, &edges, &count, &owned);
        for (size_t i = 0; status == GRANARY_OK && i < count; i++) {
            if (!gr_reach_full_edge(&edges[i]))
                reach->broken = true; /* whatever follows may overtake what lies behind this edge */
            else if (!follow(reach, nodes[i], touched))
                status = GRANARY_HOST_MEMORY;
        }
        gr_host_give(owned);
        if (status != GRANARY_OK) {
            reach->stack_count = 0;
            return status;
        }
    }
    return GRANARY_OK;
}

static int walk_from(struct gr_reach *reach, struct gr_driver *driver, const gr_cu_node *tips,
                     const struct gr_cu_edge *edges, size_t count, bool *touched) {
    for (size_t i = 0; i < count; i++) {
        if (gr_reach_full_edge(edges ? &edges[i] : NULL) && !follow(reach, tips[i], touched))
            return GRANARY_HOST_MEMORY;
    }
    return walk(reach, driver, touched);
}

/* Empties the set; watches begin again, those that were ready too. */
static void forget(struct gr_reach *reach) {
    struct gr_watch *all = reach->ready;
    reach->ready = NULL;
    for (size_t i = 0; reach->mask && i <= reach->mask; i++) {
        reach->entry[i].visited = false;
        while (reach->entry[i].watches) {
            struct gr_watch *watch = reach->entry[i].watches;
            reach->entry[i].watches = watch->next;
            watch->next = all;
            all = watch;
        }
    }
    while (all) {
        struct gr_watch *watch = all;
        all = watch->next;
        watch->at = 0;
        bool kept = gr_reach_watch(reach, watch); /* every entry exists already */
        (void)kept;
    }
}

static bool all_set(const bool *touched, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!touched[i]) return false;
    return true;
}

int gr_reach_update(struct gr_reach *reach, struct gr_driver *driver, const gr_cu_node *tips,
                    const struct gr_cu_edge *edges, size_t count) {
    if (count == reach->tip_count && count > 0 && !edges &&
        memcmp(tips, reach->tip, count * sizeof(*tips)) == 0)
        return GRANARY_OK;
    bool few[DEPENDENCIES] = {false};
    bool *touched = reach->tip_count <= DEPENDENCIES ? few : gr_host_take(reach->tip_count, sizeof(bool), 8);
    if (!touched) return GRANARY_HOST_MEMORY;
    int status = grow(&reach->tip, &reach->tip_room, gr_max(8, count)) ? GRANARY_OK : GRANARY_HOST_MEMORY;
    if (status == GRANARY_OK) status = walk_from(reach, driver, tips, edges, count, touched);
    if (status == GRANARY_OK && !all_set(touched, reach->tip_count)) {
        /* Not an advance, or one past nodes that were known already: only a new walk can tell. */
        forget(reach);
        status = walk_from(reach, driver, tips, edges, count, touched);
        for (size_t t = 0; status == GRANARY_OK && t < reach->tip_count; t++)
            if (!gr_reach_has(reach, reach->tip[t])) reach->broken = true;
    }
    if (touched != few) gr_host_give(touched);
    if (status != GRANARY_OK) return status;
    if (count) memcpy(reach->tip, tips, count * sizeof(*tips));
    reach->tip_count = count;
    return GRANARY_OK;
}
