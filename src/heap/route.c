/* SPDX-License-Identifier: Apache-2.0
 * Routing: publishing routes, and the table that readers search without a lock. */
#include "heap/route.h"

#include "base/host.h"

enum { FIRST_SLOTS = 32 };

/* Stands where a route was: matches no handle, ends no search. Constant. */
static struct gr_route tombstone;

static struct gr_route_table *make(size_t slots) {
    struct gr_route_table *table =
        gr_host_take(1, sizeof(struct gr_route_table) + slots * sizeof(_Atomic(struct gr_route *)), 8);
    if (table) table->mask = slots - 1;
    return table;
}

static void enter(struct gr_route_table *table, struct gr_route *route) {
    size_t i = gr_route_hash(route->handle);
    while (atomic_load_explicit(&table->slot[i & table->mask], memory_order_relaxed)) i++;
    atomic_store_explicit(&table->slot[i & table->mask], route, memory_order_release);
}

static struct gr_route_table *current(struct gr_routes *routes) {
    return atomic_load_explicit(&routes->table, memory_order_relaxed);
}

bool gr_routes_init(struct gr_routes *routes) {
    struct gr_route_table *table = make(FIRST_SLOTS);
    atomic_init(&routes->table, table);
    routes->first = NULL;
    routes->used = 0;
    return table != NULL;
}

void gr_routes_fini(struct gr_routes *routes) {
    struct gr_route_table *table = current(routes);
    while (table) {
        struct gr_route_table *older = table->older;
        gr_host_give(table);
        table = older;
    }
}

static bool visible(struct gr_route_table *table, const struct gr_route *route) {
    for (size_t i = gr_route_hash(route->handle);; i++) {
        const struct gr_route *at = atomic_load_explicit(&table->slot[i & table->mask], memory_order_relaxed);
        if (!at || at == route) return at != NULL;
    }
}

/* One of so many slots that was replaced, or a new one. */
static struct gr_route_table *empty_table(struct gr_routes *routes, size_t slots) {
    struct gr_route_table **at = &current(routes)->older, *table;
    while (*at && (*at)->mask + 1 != slots) at = &(*at)->older;
    table = *at;
    if (!table) return make(slots);
    *at = table->older;
    for (size_t i = 0; i < slots; i++) atomic_store_explicit(&table->slot[i], NULL, memory_order_relaxed);
    return table;
}

bool gr_route_reserve(struct gr_routes *routes) {
    struct gr_route_table *table = current(routes);
    if ((routes->used + 1) * 2 <= table->mask + 1) return true; /* at most half full: probes stay short */
    size_t routes_seen = 0;
    for (struct gr_route *route = routes->first; route; route = route->next)
        routes_seen += visible(table, route);
    size_t slots = FIRST_SLOTS;
    while (slots < (routes_seen + 1) * 4) slots *= 2; /* tombstones are left behind */
    struct gr_route_table *fresh = empty_table(routes, slots);
    if (!fresh) return false;
    for (struct gr_route *route = routes->first; route; route = route->next)
        if (visible(table, route)) enter(fresh, route);
    routes->used = routes_seen;
    fresh->older = table;
    atomic_store_explicit(&routes->table, fresh, memory_order_release);
    return true;
}

void gr_route_publish(struct gr_routes *routes, struct gr_route *route) {
    route->next = routes->first;
    routes->first = route;
    routes->used++;
    enter(current(routes), route);
}

void gr_route_hide(struct gr_routes *routes, struct gr_route *route) {
    struct gr_route_table *table = current(routes);
    if (!visible(table, route)) return;
    size_t i = gr_route_hash(route->handle);
    while (atomic_load_explicit(&table->slot[i & table->mask], memory_order_relaxed) != route) i++;
    atomic_store_explicit(&table->slot[i & table->mask], &tombstone, memory_order_release);
}

void gr_route_unlink(struct gr_routes *routes, struct gr_route *route) {
    struct gr_route **at = &routes->first;
    while (*at != route) at = &(*at)->next;
    *at = route->next;
}
