/* SPDX-License-Identifier: Apache-2.0
 * The ring: its memory, and waiting for a slot. */
#include "ledger/ring.h"

#include <sched.h>

#include "base/host.h"

bool gr_ring_make(uint64_t room, struct gr_ring *out) {
    enum { LINE = 64 };
    uint64_t entries;
    *out = (struct gr_ring){.room = room};
    if (room == 0) return true;
    if (__builtin_add_overflow(room, LINE / GR_RING_ENTRY + 1, &entries)) return false;
    out->memory = gr_host_take(entries, GR_RING_ENTRY, sizeof(void *)); /* so aligned, it is zeroed lazily */
    if (!out->memory) return false;
    out->inverse = UINT64_MAX / room;
    out->slot = (struct gr_slot *)gr_align_down((uintptr_t)out->memory + LINE - 1, LINE);
    out->aside = (struct gr_aside *)(out->slot + room);
    return true;
}

void gr_ring_free(struct gr_ring *ring) {
    gr_host_give(ring->memory);
    *ring = (struct gr_ring){0};
}

void GR_COLD gr_spot_wait(struct gr_spot at) {
    for (unsigned spins = 1; !gr_spot_ready(at); spins++)
        if (spins % 64 == 0) sched_yield();
}
