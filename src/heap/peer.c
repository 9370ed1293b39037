/* SPDX-License-Identifier: Apache-2.0
 * Peer access: telling the driver of all that is mapped. */
#include "heap/peer.h"

#include "driver/peers.h"

/* Tells the driver of each range of the handle, until one is refused or so many were told; *told counts all of them. */
static int tell(granary *g, int device, bool may, size_t most, size_t *told) {
    const struct gr_cu_access access = gr_peers_access(device, may);
    int status = GRANARY_OK;
    *told = 0;
    GR_HEAP_FOR(heap, g)
        GR_ROUTE_FOR(route, heap)
            for (int c = 0; c < GR_POOLS; c++) {
                const struct gr_pool *pool = gr_heap_pool(route, c);
                for (size_t s = 0; pool && s < pool->segment_count; s++) {
                    const struct gr_segment *segment = pool->segments[s];
                    if (segment->kind != GR_SEGMENT_EXPANDABLE) continue;
                    if (*told == most) return status;
                    status = gr_range_grant(&segment->range, &g->driver, &access);
                    ++*told;
                    if (status != GRANARY_OK) return status;
                }
            }
    return status;
}

static int allow(granary *g, int device) {
    size_t told, undone;
    if (gr_peers_has(&g->driver.peers, device)) return GRANARY_OK;
    if (g->driver.peers.count == GR_PEERS) return GRANARY_UNSUPPORTED;
    if (gr_driver_lost(&g->driver)) return GRANARY_LOST;
    int status = gr_peers_reach(&g->driver, device);
    if (status != GRANARY_OK) return status;
    status = tell(g, device, true, SIZE_MAX, &told);
    if (status == GRANARY_OK)
        gr_peers_add(&g->driver.peers, device);
    else
        (void)tell(g, device, false, told, &undone);
    return status;
}

int gr_peer_allow(granary *g, int device) {
    gr_lock_take(&g->miss);
    int status = allow(g, device);
    gr_lock_give(&g->miss);
    return status;
}
