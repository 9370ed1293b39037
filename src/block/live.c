/* SPDX-License-Identifier: Apache-2.0
 * The live blocks of a pool: growing, checking. */
#include "block/live.h"

#include "base/host.h"

/* Old buckets that move over with one block. With two the set would have grown only just when it must grow again. */
enum { STEP = 4, PATIENCE = 64 };

/* Blocks that so many buckets are for. */
static size_t most(size_t buckets) {
    return buckets / 2;
}

void gr_live_init(struct gr_live *live) {
    *live = (struct gr_live){.shift = 64 - GR_LIVE_FEW_LOG2, .due = most(GR_LIVE_FEW)};
    live->bucket = live->few;
}

static void give(struct gr_live *live, struct gr_block **buckets) {
    if (buckets != live->few) gr_host_give(buckets);
}

void gr_live_fini(struct gr_live *live) {
    give(live, live->old);
    give(live, live->bucket);
    *live = (struct gr_live){0};
}

static void move(struct gr_live *live) {
    const size_t buckets = gr_live_buckets(live) / 2;
    for (int n = 0; n < STEP && live->moved < buckets; n++) {
        struct gr_block *b = live->old[live->moved++], *next;
        for (; b; b = next) {
            struct gr_block **to = gr_live_bucket(live, b->addr);
            next = b->u.live.chain;
            b->u.live.chain = *to;
            *to = b;
        }
    }
    if (live->moved < buckets) return;
    give(live, live->old);
    live->old = NULL;
    live->due = most(gr_live_buckets(live));
}

void gr_live_grow(struct gr_live *live) {
    if (!live->old) {
        const size_t buckets = gr_live_buckets(live);
        struct gr_block **fresh = gr_host_take(buckets, 2 * sizeof(struct gr_block *), 8);
        if (!fresh) {
            live->due = live->count + PATIENCE;
            return;
        }
        live->old = live->bucket;
        live->bucket = fresh;
        live->shift--;
        live->moved = 0;
        live->due = 0;
    }
    move(live);
}

const char *gr_live_check(struct gr_live *live) {
    size_t count = 0;
    for (size_t i = live->old ? live->moved : 0; live->old && i < gr_live_buckets(live) / 2; i++)
        for (const struct gr_block *b = live->old[i]; b; b = b->u.live.chain, count++)
            if (b->state != GR_BLOCK_LIVE || gr_live_bucket(live, b->addr) != &live->old[i]) return "A1";
    for (size_t i = 0; i < gr_live_buckets(live); i++)
        for (const struct gr_block *b = live->bucket[i]; b; b = b->u.live.chain, count++)
            if (b->state != GR_BLOCK_LIVE || gr_live_bucket(live, b->addr) != &live->bucket[i]) return "A1";
    return count == live->count ? NULL : "A2";
}
