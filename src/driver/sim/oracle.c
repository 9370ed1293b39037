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
    size_t start, end; /* within the extent */
    uint64_t owner, epoch;
    unsigned queue;
    const char *tag;
};

struct gr_sim_shadow { /* uses by where they start: a use that spans buckets has a part in each */
    size_t bucket_bytes, count;
    struct use *buckets[];
};

enum { MOST_BUCKETS = 1024, LEAST_BUCKET = 256 << 10 /* bytes */ };

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
                action->pieces = gr_sim_grow(action->pieces,
                                             action->piece_count ? 2 * action->piece_count : 1, sizeof piece);
            action->pieces[action->piece_count++] = piece;
        }
        addr += part;
        size -= part;
    }
}

/* ---- shadows ------------------------------------------------------------------------------ */

static struct gr_sim_shadow *shadow_of(struct gr_sim_extent *extent) {
    if (extent->shadow) return extent->shadow;
    size_t bytes = gr_max(LEAST_BUCKET, (extent->size + MOST_BUCKETS - 1) / MOST_BUCKETS);
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
    bool left = use->start<start, right = use->end> end;
    if (left && right) {
        insert(&use->next, use, end, use->end);
        use->end = start;
        return &use->next->next;
    }
    if (left)
        use->end = start;
    else if (right)
        use->start = end;
    else {
        *link = use->next;
        free(use);
        return link;
    }
    return &use->next;
}

static void use_bucket(struct use **bucket, const struct gr_sim_queue *queue, const struct use *new,
                       gr_addr addr) {
    for (struct use **link = bucket; *link;) {
        struct use *old = *link;
        if (gr_sim_clock_covers(&gr_sim.host, old->queue, old->epoch)) { /* before all that can still come */
            *link = old->next;
            free(old);
            continue;
        }
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
                          "allocation %llu (%s, queue %u) and allocation %llu (%s, queue %u) use the same "
                          "bytes at 0x%llx with "
                          "no order between them",
                          (unsigned long long)old->owner, old->tag, old->queue,
                          (unsigned long long)new->owner, new->tag, new->queue, (unsigned long long)addr);
        link = cut(link, new->start, new->end);
    }
    insert(bucket, new, new->start, new->end);
}

static void use_piece(const struct gr_sim_queue *queue, const struct gr_sim_action *action,
                      const struct gr_sim_piece *piece, uint64_t epoch) {
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

static void touch_mapping(const struct gr_sim_queue *queue, const struct gr_sim_action *action, gr_addr addr,
                          uint64_t epoch) {
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
        for (size_t i = 0; i < action->program->count; i++)
            count += count_pieces(&action->program->actions[i]);
    return count;
}

static void submit_pieces(const struct gr_sim_queue *queue, const struct gr_sim_action *action,
                          uint64_t epoch) {
    for (unsigned i = 0; i < action->piece_count; i++) {
        touch_mapping(queue, action, action->pieces[i].addr, epoch);
        use_piece(queue, action, &action->pieces[i], epoch);
    }
    if (action->program)
        for (size_t i = 0; i < action->program->count; i++)
            submit_pieces(queue, &action->program->actions[i], epoch);
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
                      queue->completed < queue->submitted ? "pending"
                                                          : "complete only by luck: the host never saw it");
    }
}

/* ---- execution ---------------------------------------------------------------------------- */

static bool piece_is_sound(const struct gr_sim_action *action, const struct gr_sim_piece *piece) {
    const struct gr_sim_mapping *m = gr_sim_mapping_at(piece->addr);
    unsigned need = piece->write ? GR_CU_ACCESS_READWRITE : GR_CU_ACCESS_READ;
    unsigned long long addr = piece->addr;
    if (!m) {
        gr_sim_report(
            GRANARY_SIM_UNMAPPED, "work (%s) finds [0x%llx, +0x%zx) unmapped; at submission %s%llx was there",
            action->tag, addr, piece->size, piece->extent ? "handle 0x" : "nothing, 0x", piece->extent);
    } else if (m->extent->id != piece->extent || piece->addr - m->addr != piece->offset) {
        gr_sim_report(
            GRANARY_SIM_MOVED,
            "work (%s) finds handle 0x%llx + 0x%llx at [0x%llx, +0x%zx); at submission it was 0x%llx + 0x%zx",
            action->tag, m->extent->id, (unsigned long long)(piece->addr - m->addr), addr, piece->size,
            piece->extent, piece->offset);
    } else if ((m->access[action->device] & need) != need) {
        gr_sim_report(GRANARY_SIM_UNMAPPED, "work (%s) of device %d may not %s [0x%llx, +0x%zx)", action->tag,
                      action->device, piece->write ? "write" : "read", addr, piece->size);
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

/* ---- finished graphs ---------------------------------------------------------------------- */

struct span { /* bytes that a node uses for an allocation */
    gr_cu_handle extent;
    size_t start, end, node;
    uint64_t owner;
    const char *tag;
    gr_addr addr;
};

static size_t collect(const struct gr_sim_action *action, size_t node, struct span *spans, size_t count) {
    for (unsigned i = 0; i < action->piece_count; i++) {
        const struct gr_sim_piece *piece = &action->pieces[i];
        if (action->owner == 0 || piece->extent == 0) continue;
        spans[count++] = (struct span){piece->extent, piece->offset, piece->offset + piece->size,
                                       node,          action->owner, action->tag,
                                       piece->addr};
    }
    if (action->program)
        for (size_t i = 0; i < action->program->count; i++)
            count = collect(&action->program->actions[i], node, spans, count);
    return count;
}

static int compare_spans(const void *left, const void *right) {
    const struct span *a = left, *b = right;
    if (a->extent != b->extent) return a->extent < b->extent ? -1 : 1;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* One row of bits a node: itself and all that must be complete before it starts. An edge that is
 * programmatic, or leaves another port than completion, promises nothing of the kind. */
static uint64_t *close_paths(const struct CUgraph_st *graph, size_t words) {
    uint64_t *rows = gr_sim_zeroed(graph->count * words, sizeof *rows);
    for (size_t i = 0; i < graph->count; i++) {
        const struct gr_sim_terminals *behind = &graph->nodes[i]->dependencies;
        uint64_t *row = rows + i * words;
        row[i / 64] |= (uint64_t)1 << i % 64;
        for (size_t d = 0; d < behind->count; d++) {
            if (behind->edges[d].type != GR_CU_EDGE_DEFAULT || behind->edges[d].from_port != 0) continue;
            const uint64_t *other = rows + behind->nodes[d]->index * words;
            for (size_t w = 0; w < words; w++) row[w] |= other[w];
        }
    }
    return rows;
}

/* By brute force over every pair of nodes that share bytes: slow, and beyond doubt. */
void gr_sim_oracle_graph(const struct CUgraph_st *graph) {
    size_t room = 0, words = (graph->count + 63) / 64, count = 0;
    if (!gr_sim.config.oracle || graph->count == 0) return;
    for (size_t i = 0; i < graph->count; i++) room += count_pieces(&graph->nodes[i]->action);
    struct span *spans = gr_sim_zeroed(room, sizeof *spans);
    for (size_t i = 0; i < graph->count; i++) count = collect(&graph->nodes[i]->action, i, spans, count);
    qsort(spans, count, sizeof *spans, compare_spans);
    uint64_t *rows = count ? close_paths(graph, words) : NULL;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1;
             j < count && spans[j].extent == spans[i].extent && spans[j].start < spans[i].end; j++) {
            size_t first = gr_min(spans[i].node, spans[j].node),
                   second = gr_max(spans[i].node, spans[j].node);
            if (spans[i].owner == spans[j].owner || rows[second * words + first / 64] >> first % 64 & 1)
                continue;
            gr_sim_report(GRANARY_SIM_UNORDERED,
                          "in a graph, allocation %llu (%s, node %zu) and allocation %llu (%s, node %zu) use "
                          "the same bytes at "
                          "0x%llx with no path between them",
                          (unsigned long long)spans[i].owner, spans[i].tag, spans[i].node,
                          (unsigned long long)spans[j].owner, spans[j].tag, spans[j].node,
                          (unsigned long long)spans[j].addr);
        }
    }
    free(rows);
    free(spans);
}
