/* SPDX-License-Identifier: Apache-2.0
 * Reach: what lies behind a stream's terminals in the graph that it is captured into.
 *
 *      graph     a -> b -> d -> [t]        terminals of the stream: t
 *                 \-> c ----/              reach: a, b, c, d, t
 *
 * The next node captured on a stream depends on all of its terminals, so it runs after everything in
 * reach. The set grows with the terminals: each update walks back from the new terminals and stops at
 * nodes it knows, so a whole capture costs time linear in its nodes and edges.
 *
 * That holds while terminals only advance. A caller may also replace a stream's terminals. Therefore
 * every walk must touch each former terminal; if one was missed the set is built anew, and if the
 * former terminals are then not in it, the stream has dropped work: its reach is broken, and nothing
 * freed later may count on it.
 *
 * Edges that are not full dependencies (programmatic ones) are not walked: the earlier node need not
 * have finished. A stream that has one behind it is broken too: its terminals do not stand for it all.
 *
 * Watches. A watch waits for a list of nodes to be reached. It hangs at the first that is not, and is
 * looked at again only when that node is reached.
 *
 * Invariants: V1 a visited node's default-edge ancestors are visited (after an update that succeeded)
 *             V2 a watch hangs at exactly one unvisited node, or is ready, or in no reach
 * Locks: the DEFER lock. */
#ifndef GR_STREAM_REACH_H
#define GR_STREAM_REACH_H

#include "driver/driver.h"

struct gr_watch {
    struct gr_watch *next; /* at the same node, or in the ready list */
    size_t at, count;      /* node[0 .. at) are reached */
    gr_cu_node *node;
};

struct gr_reach_entry {
    gr_cu_node node; /* NULL: empty */
    bool visited;
    struct gr_watch *watches;
};

struct gr_reach {
    struct gr_reach_entry *entry; /* open addressing */
    size_t mask, count;           /* slots - 1 (0: no table yet), entries used */
    gr_cu_node *tip;              /* terminals at the last update */
    size_t tip_count, tip_room;
    gr_cu_node *stack;
    size_t stack_count, stack_room;
    struct gr_watch *ready; /* watches whose nodes are all reached */
    bool broken;
    uint64_t walked; /* nodes visited in all, for benchmarks */
};

void gr_reach_fini(struct gr_reach *reach);

/* The stream's terminals are now these. On HOST_MEMORY or a driver refusal the reach is smaller than
 * the truth, which is safe. */
GR_MUST int gr_reach_update(struct gr_reach *reach, struct gr_driver *driver, const gr_cu_node *tips,
                            const struct gr_cu_edge *edges, size_t count);

bool gr_reach_has(const struct gr_reach *reach, gr_cu_node node);

/* Starts watching; the watch is ready at once when all its nodes are reached. False: no host memory. */
GR_MUST bool gr_reach_watch(struct gr_reach *reach, struct gr_watch *watch);

/* The list that a watch hangs in. */
struct gr_watch **gr_reach_list_of(struct gr_reach *reach, const struct gr_watch *watch);

/* Does this edge mean that the earlier node has finished? edge may be NULL: a plain dependency. */
static inline bool gr_reach_full_edge(const struct gr_cu_edge *edge) {
    return !edge || (edge->type == GR_CU_EDGE_DEFAULT && edge->from_port == 0);
}

#endif
