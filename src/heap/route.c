/* SPDX-License-Identifier: Apache-2.0
 * Routing: publishing routes, and the table that readers search without a lock. */
#include "heap/route.h"

#include "base/host.h"

enum { FIRST_SLOTS = 32 };

static struct gr_route_table *make(size_t slots) {
    struct gr_route_table *table =
        gr_host_take(1, sizeof(struct gr_route_table) + slots * sizeof(_Atomic(struct gr_route *)), 8);
    if (table) table->mask = slots - 1;
    return table;
}

static void enter(struct gr_route_table *table, struct gr_route *route) {
    size_t i = gr_route_hash(route->stream.handle);
    while (atomic_load_explicit(&table->slot[i & table->mask], memory_order_relaxed)) i++;
    atomic_store_explicit(&table->slot[i & table->mask], route, memory_order_release);
}

bool gr_routes_init(struct gr_routes *routes) {
    struct gr_route_table *table = make(FIRST_SLOTS);
    *routes = (struct gr_routes){0};
    atomic_init(&routes->table, table);
    return table != NULL;
}

void gr_routes_fini(struct gr_routes *routes) {
    struct gr_route_table *table = atomic_load_explicit(&routes->table, memory_order_relaxed);
    while (table) {
        struct gr_route_table *older = table->older;
        gr_host_give(table);
        table = older;
    }
}

bool gr_route_reserve(struct gr_routes *routes) {
    struct gr_route_table *table = atomic_load_explicit(&routes->table, memory_order_relaxed);
    if ((routes->count + 1) * 2 <= table->mask + 1) return true; /* at most half full: probes stay short */
    struct gr_route_table *fresh = make((table->mask + 1) * 2);
    if (!fresh) return false;
    for (struct gr_route *route = routes->first; route; route = route->next) enter(fresh, route);
    fresh->older = table;
    atomic_store_explicit(&routes->table, fresh, memory_order_release);
    return true;
}

void gr_route_publish(struct gr_routes *routes, struct gr_route *route) {
    route->next = routes->first;
    routes->first = route;
    routes->count++;
    enter(atomic_load_explicit(&routes->table, memory_order_relaxed), route);
}
