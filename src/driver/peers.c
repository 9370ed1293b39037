/* SPDX-License-Identifier: Apache-2.0
 * Peers: who may touch what is mapped. */
#include "driver/peers.h"

#include "base/check.h"

struct gr_cu_access gr_peers_access(int device, bool may) {
    return (struct gr_cu_access){.location = {.type = GR_CU_LOCATION_DEVICE, .id = device},
                                 .flags = may ? GR_CU_ACCESS_READWRITE : GR_CU_ACCESS_NONE};
}

void gr_peers_init(struct gr_peers *peers, int own) {
    peers->count = 0;
    gr_peers_add(peers, own);
}

bool gr_peers_has(const struct gr_peers *peers, int device) {
    for (unsigned i = 0; i < peers->count; i++)
        if (peers->access[i].location.id == device) return true;
    return false;
}

void gr_peers_add(struct gr_peers *peers, int device) {
    GR_ASSERT(peers->count < GR_PEERS, "D4");
    peers->access[peers->count++] = gr_peers_access(device, true);
}

int gr_peers_reach(struct gr_driver *d, int device) {
    int count = 0, reaches = 0;
    gr_cu_device peer;
    int status = gr_driver_status(d, GR_ENTRY_cuDeviceGetCount, GR_DRIVE(d, cuDeviceGetCount, &count));
    if (status != GRANARY_OK) return status;
    if (device < 0 || device >= count) return GRANARY_NO_DEVICE;
    if (!d->call.cuDeviceCanAccessPeer) return GRANARY_UNSUPPORTED;
    status = gr_driver_status(d, GR_ENTRY_cuDeviceGet, GR_DRIVE(d, cuDeviceGet, &peer, device));
    if (status != GRANARY_OK) return status;
    status = gr_driver_status(d, GR_ENTRY_cuDeviceCanAccessPeer,
                              GR_DRIVE(d, cuDeviceCanAccessPeer, &reaches, peer, d->device));
    return status != GRANARY_OK ? status : reaches ? GRANARY_OK : GRANARY_UNSUPPORTED;
}
