/* SPDX-License-Identifier: Apache-2.0
 * The oracle: what happens before what, and who used which physical bytes last.
 *
 * Each extent has a shadow: for its bytes, the uses that no later use stands for. When a new use
 * comes, each older one that overlaps is ordered before it, and then the new one stands for it; or
 * it is of the same allocation, and both stay; or it is a finding. A correct program orders every
 * use of an allocation after the point where it was handed out, so letting the latest ordered use
 * stand for earlier ones loses nothing.
 *
 * Each mapping keeps its last use by every queue: unmapping is right only when the host has seen
 * all of them complete. */
#include <stdlib.h>

#include "driver/sim/internal.h"

struct use {
    struct use *next;
    size_t start, end;        /* within the extent */
    uint64_t owner, epoch;
    unsigned queue;
    const char *tag;
};

struct gr_sim_shadow { /* uses by where they start: a use that spans buckets has a part in each */
    size_t bucket_bytes, count;
    struct use *buckets[];
};

enum { MOST_BUCKETS = 1024 };

void gr_sim_action_touch(struct gr_sim_action *action, gr_addr addr, size_t size, bool write) {
    size_t granule = gr_sim.config.granule_bytes;
    while (size > 0) {
        const struct gr_sim_mapping *m = gr_sim_mapping_at(addr);
        gr_addr end = m ? m->addr + m->size : gr_align_down(addr, granule) + granule;
        size_t part = gr_min(size, end - addr);
        struct gr_sim_piece piece = {addr, part, m ? m->extent->id : 0, m ? addr - m->addr : 0, write};
        struct gr_sim_piece *last = action->piece_count ? &action->pieces[action->piece_count - 1] : NULL;
        if (!m && last && last->extent == 0 && last->addr + last->size == addr && last->write == write) {
            last->size += part;
        } else {
            if (gr_is_power(action->piece_count) || action->piece_count == 0) /* doubles when full */
                action->pieces = gr_sim_grow(action->pieces, action->piece_count ? 2 * action->piece_count : 1, sizeof piece);
            action->pieces[action->piece_count++] = piece;
        }
        addr += part;
        size -= part;
    }
}

/* ---- shadows ------------------------------------------------------------------------------ */

static struct gr_sim_shadow *shadow_of(struct gr_sim_extent *extent) {
    if (extent->shadow) return extent->shadow;
    size_t bytes = gr_max(2 * GR_MIB, (extent->size + MOST_BUCKETS - 1) / MOST_BUCKETS);
    size_t count = (extent->size + bytes - 1) / bytes;
    extent->shadow = gr_sim_zeroed(1, sizeof *extent->shadow + count * sizeof(struct use *));
    extent->shadow->bucket_bytes = bytes;
    extent->shadow->count = count;
    return extent->shadow;
}

void gr_sim_shadow_end(struct gr_sim_extent *extent) {
    for (size_t i = 0; extent->shadow && i < extent->shadow->count; i++) {
        struct use *next;
        for (struct use *use = extent->shadow->buckets[i]; use; use = next) {
            next = use->next;
            free(use);
        }
    }
    free(extent->shadow);
    extent->shadow = NULL;
}

static void insert(struct use **list, const struct use *what, size_t start, size_t end) {
    struct use *use = gr_sim_zeroed(1, sizeof *use);
    *use = *what;
    use->start = start;
    use->end = end;
    use->next = *list;
    *list = use;
}

/* Takes [start, end) out of the use at *link; returns the link to go on from. */
static struct use **cut(struct use **link, size_t start, size_t end) {
    struct use *use = *link;
    bool left = use->start < start, right = use->end > end;
    if (left && right) {
        insert(&use->next, use, end, use->end);
        use->end = start;
        return &use->next->next;
    }
    if (left) use->end = start;
    else if (right) use->start = end;
    else {
        *link = use->next;
        free(use);
        return link;
    }
    return &use->next;
}

static void use_bucket(struct use **bucket, const struct gr_sim_queue *queue, const struct use *new, gr_addr addr) {
    for (struct use **link = bucket; *link;) {
        const struct use *old = *link;
        if (old->end <= new->start || old->start >= new->end) {
            link = &(*link)->next;
            continue;
        }
        bool ordered = gr_sim_clock_covers(&queue->clock, old->queue, old->epoch);
        if (!ordered && old->owner == new->owner) {
            link = &(*link)->next;
            continue;
        }
        if (!ordered)
            gr_sim_report(GRANARY_SIM_UNORDERED,
                          "allocation %llu (%s, queue %u) and allocation %llu (%s, queue %u) use the same bytes at 0x%llx with "
                          "no order between them",
                          (unsigned long long)old->owner, old->tag, old->queue, (unsigned long long)new->owner, new->tag,
                          new->queue, (unsigned long long)addr);
        link = cut(link, new->start, new->end);
    }
    insert(bucket, new, new->start, new->end);
}

static void use_piece(const struct gr_sim_queue *queue, const struct gr_sim_action *action, const struct gr_sim_piece *piece,
                      uint64_t epoch) {
    struct gr_sim_extent *extent = gr_sim_extent_find(piece->extent);
    if (!extent || action->owner == 0) return;
    struct gr_sim_shadow *shadow = shadow_of(extent);
    size_t end = piece->offset + piece->size;
    for (size_t at = piece->offset; at < end;) {
        size_t bucket = at / shadow->bucket_bytes, stop = gr_min(end, (bucket + 1) * shadow->bucket_bytes);
        struct use new = {NULL, at, stop, action->owner, epoch, queue->index, action->tag};
        use_bucket(&shadow->buckets[bucket], queue, &new, piece->addr + (at - piece->offset));
        at = stop;
    }
}

static void touch_mapping(const struct gr_sim_queue *queue, const struct gr_sim_action *action, gr_addr addr, uint64_t epoch) {
    struct gr_sim_mapping *m = gr_sim_mapping_at(addr);
    if (!m) return;
    for (unsigned i = 0; i < m->touch_count; i++) {
        if (m->touches[i].queue != queue->index) continue;
        m->touches[i].epoch = epoch;
        m->touches[i].tag = action->tag;
        return;
    }
    if (m->touch_count == m->touch_room) {
        m->touch_room = m->touch_room ? 2 * m->touch_room : 2;
        m->touches = gr_sim_grow(m->touches, m->touch_room, sizeof *m->touches);
    }
    m->touches[m->touch_count++] = (struct gr_sim_touch){queue->index, epoch, action->tag};
}

static size_t count_pieces(const struct gr_sim_action *action) {
    size_t count = action->piece_count;
    if (action->program)
        for (size_t i = 0; i < action->program->count; i++) count += count_pieces(&action->program->actions[i]);
    return count;
}

static void submit_pieces(const struct gr_sim_queue *queue, const struct gr_sim_action *action, uint64_t epoch) {
    for (unsigned i = 0; i < action->piece_count; i++) {
        touch_mapping(queue, action, action->pieces[i].addr, epoch);
        use_piece(queue, action, &action->pieces[i], epoch);
    }
    if (action->program)
        for (size_t i = 0; i < action->program->count; i++) submit_pieces(queue, &action->program->actions[i], epoch);
}

/* A graph launch is one item: order inside of it was checked when its capture ended. */
void gr_sim_oracle_submit(struct gr_sim_queue *queue, const struct gr_sim_action *action) {
    if (!gr_sim.config.oracle || count_pieces(action) == 0) return;
    submit_pieces(queue, action, gr_sim_clock_tick(&queue->clock, queue->index));
}

void gr_sim_oracle_see(const struct gr_sim_clock *clock) {
    if (gr_sim.config.oracle) gr_sim_clock_join(&gr_sim.host, clock);
}

void gr_sim_oracle_unmap(const struct gr_sim_mapping *mapping) {
    for (unsigned i = 0; i < mapping->touch_count; i++) {
        const struct gr_sim_touch *touch = &mapping->touches[i];
        const struct gr_sim_queue *queue = gr_sim.queues[touch->queue];
        if (gr_sim_clock_covers(&gr_sim.host, touch->queue, touch->epoch)) continue;
        gr_sim_report(GRANARY_SIM_EARLY_UNMAP, "[0x%llx, +0x%zx) goes while work (%s, queue %u) is %s",
                      (unsigned long long)mapping->addr, mapping->size, touch->tag, touch->queue,
                      queue->completed < queue->submitted ? "pending" : "complete only by luck: the host never saw it");
    }
}

/* ---- execution ---------------------------------------------------------------------------- */

static bool piece_is_sound(const struct gr_sim_action *action, const struct gr_sim_piece *piece) {
    const struct gr_sim_mapping *m = gr_sim_mapping_at(piece->addr);
    unsigned need = piece->write ? GR_CU_ACCESS_READWRITE : GR_CU_ACCESS_READ;
    unsigned long long addr = piece->addr;
    if (!m) {
        gr_sim_report(GRANARY_SIM_UNMAPPED, "work (%s) finds [0x%llx, +0x%zx) unmapped; at submission %s%llx was there",
                      action->tag, addr, piece->size, piece->extent ? "handle 0x" : "nothing, 0x", piece->extent);
    } else if (m->extent->id != piece->extent || piece->addr - m->addr != piece->offset) {
        gr_sim_report(GRANARY_SIM_MOVED,
                      "work (%s) finds handle 0x%llx + 0x%llx at [0x%llx, +0x%zx); at submission it was 0x%llx + 0x%zx",
                      action->tag, m->extent->id, (unsigned long long)(piece->addr - m->addr), addr, piece->size, piece->extent,
                      piece->offset);
    } else if ((m->access[action->device] & need) != need) {
        gr_sim_report(GRANARY_SIM_UNMAPPED, "work (%s) of device %d may not %s [0x%llx, +0x%zx)", action->tag, action->device,
                      piece->write ? "write" : "read", addr, piece->size);
    } else {
        return true;
    }
    return false;
}

bool gr_sim_oracle_execute(const struct gr_sim_action *action) {
    for (unsigned i = 0; i < action->piece_count; i++) {
        if (piece_is_sound(action, &action->pieces[i])) continue;
        gr_sim.contexts[action->device].sticky = GR_CU_ILLEGAL_ADDRESS;
        return false;
    }
    return true;
}
