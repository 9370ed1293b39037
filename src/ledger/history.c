/* SPDX-License-Identifier: Apache-2.0
 * History: slots, and reading them while they are written. */
#include "ledger/history.h"

#include <sched.h>
#include <string.h>

#include "base/host.h"

void gr_history_init(struct gr_history *h) {
    memset(h, 0, sizeof(*h));
    gr_stacks_init(&h->stacks);
    gr_ticks_init(&h->ticks);
    gr_tickets_init(&h->tickets, 0);
}

void gr_history_fini(struct gr_history *h) {
    gr_host_give(h->ring);
    gr_stacks_fini(&h->stacks);
}

struct gr_history *gr_history_make(void) {
    struct gr_history *h = gr_host_take(1, sizeof(*h), 64);
    if (h) gr_history_init(h);
    return h;
}

void gr_history_free(struct gr_history *h) {
    if (h) gr_history_fini(h);
    gr_host_give(h);
}

/* ---- telling -------------------------------------------------------------------------------- */

struct gr_note gr_history_enter(struct gr_history *h, bool free, const void *caller) {
    return gr_stacks_enter(&h->stacks, gr_history_sources(h, free), caller);
}

uint32_t gr_history_label(const struct gr_history *h) {
    return gr_stacks_note(&h->stacks).label;
}

void GR_COLD gr_spot_wait(const struct gr_spot *at) {
    for (unsigned spins = 1; !gr_spot_ready(at); spins++)
        if (spins % 64 == 0) sched_yield();
}

/* Of the call under way: its stack, or that of the label when it noted none; and the label's tag, or its own
 * when there is no label. */
static GR_INLINE uint32_t caller_of(const struct gr_note *note, uint32_t label) {
    uint32_t stack = gr_label_stack(note->label);
    return gr_label(stack ? stack : gr_label_stack(label), gr_label_tag(label ? label : note->label));
}

uint32_t gr_history_tell_alloc(struct gr_history *h, const struct gr_place *place, uint64_t addr,
                               uint64_t size) {
    const struct gr_note note = gr_stacks_note(&h->stacks);
    if (gr_history_wanted(h)) gr_history_put(h, place, GR_ALLOC, addr, size, note.label, note.metadata);
    return note.label;
}

void gr_history_tell_free(struct gr_history *h, const struct gr_place *place, uint64_t addr, uint64_t size,
                          uint32_t label) {
    if (!gr_history_wanted(h)) return;
    const struct gr_note note = gr_stacks_note(&h->stacks);
    uint32_t caller = caller_of(&note, label);
    bool twice = caller == label;
    gr_history_put(h, place, twice ? GR_FREE_TWICE : GR_FREE_REQUESTED, addr, size, caller, note.metadata);
    if (!twice) gr_history_put(h, place, GR_FREE_COMPLETED, addr, size, label, note.metadata);
}

void gr_history_tell(struct gr_history *h, enum gr_action action, const struct gr_place *place, uint64_t addr,
                     uint64_t size, uint32_t label) {
    if (!gr_history_wanted(h)) return;
    const struct gr_note note = gr_stacks_note(&h->stacks);
    gr_history_put(h, place, action, addr, size, caller_of(&note, label), note.metadata);
}

void gr_history_tell_of(struct gr_history *h, enum gr_action action, const struct gr_place *place,
                        uint64_t addr, uint64_t size, uint32_t label) {
    if (!gr_history_wanted(h)) return;
    gr_history_put(h, place, action, addr, size, label, gr_stacks_note(&h->stacks).metadata);
}

void gr_history_annotate(struct gr_history *h, enum gr_action action, uint32_t name) {
    if (gr_history_wanted(h)) gr_history_put(h, &(struct gr_place){0}, action, 0, 0, 0, name);
}

/* ---- while everything is stopped ------------------------------------------------------------- */

struct gr_span gr_history_span(const struct gr_history *h) {
    struct gr_span span = {.ticket = gr_tickets_next(&h->tickets)};
    span.to = span.ticket + gr_tickets_twice(&h->tickets);
    span.from = gr_max(h->first, span.to - gr_min(span.to, h->room));
    return span;
}

static GR_INLINE uint64_t events_in(const struct gr_slot *slot) {
    return atomic_load_explicit(&slot->word[0], memory_order_relaxed) >> GR_SLOT_ACTION & GR_SLOT_TWICE ? 2
                                                                                                        : 1;
}

struct gr_slot *gr_history_exchange(struct gr_history *h, struct gr_slot *ring, uint64_t room) {
    struct gr_slot *old = h->ring;
    const struct gr_span span = gr_history_span(h);
    const uint64_t from = gr_max(span.from, span.to - gr_min(span.to, room));
    uint64_t start = span.ticket;
    for (uint64_t event = span.to; event > from;)
        event -= gr_min(event, events_in(gr_spot_of(h, --start).slot));
    for (uint64_t t = start; t < span.ticket; t++) {
        struct gr_slot *slot = &ring[t - start];
        memcpy(slot, gr_spot_of(h, t).slot, sizeof(*slot));
        gr_slot_put(slot, 0,
                    (slot->word[0] & ~(GR_SLOT_ROUNDS << GR_SLOT_ROUND)) | (uint64_t)1 << GR_SLOT_ROUND);
    }
    h->ring = ring;
    h->room = room;
    h->inverse = room > 0 ? UINT64_MAX / room : 0;
    h->start = start;
    h->first = from;
    return old;
}

void gr_history_clear(struct gr_history *h) {
    h->cleared = h->first = gr_history_span(h).to;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* False: the slot is not what the ticket wrote, which is on its way still or was overwritten. */
static bool read_event(const struct gr_spot *at, const struct gr_ticks_scale *scale, struct gr_event *out,
                       bool *twice) {
    uint64_t word[GR_SLOT_WORDS];
    for (int i = 0; i < GR_SLOT_WORDS; i++)
        word[i] = atomic_load_explicit(&at->slot->word[i], memory_order_acquire);
    uint32_t label = (uint32_t)word[5];
    *twice = word[0] >> GR_SLOT_ACTION & GR_SLOT_TWICE;
    *out = (struct gr_event){.time_ns = gr_ticks_ns(scale, word[4]),
                             .addr = word[1],
                             .size = word[2],
                             .place = {.stream = word[3], .heap = word[0] & GR_SLOT_HEAPS},
                             .stack = gr_label_stack(label),
                             .tag = gr_label_tag(label),
                             .metadata = (uint32_t)(word[5] >> 32),
                             .action = (enum gr_action)(word[0] >> GR_SLOT_ACTION & (GR_SLOT_TWICE - 1))};
    return word[0] >> GR_SLOT_ROUND == at->round;
}

/* Adds the events of a ticket in front of those from *at on. */
static void read_back(const struct gr_history *h, uint64_t ticket, const struct gr_ticks_scale *scale,
                      struct gr_event *out, size_t *at) {
    const struct gr_spot spot = gr_spot_of(h, ticket);
    struct gr_event event;
    bool twice;
    if (!read_event(&spot, scale, &event, &twice)) return;
    if (twice) {
        out[--*at] = event;
        out[*at].action = GR_FREE_COMPLETED;
    }
    if (*at > 0) out[--*at] = event;
}

/* From the newest back, as only that says which number an event has. What was read of a slot counts if nobody has drawn
 * the ticket that overwrites it; the tickets are looked at seldom, since a look takes them away from who draws. */
size_t gr_history_copy(const struct gr_history *h, const struct gr_span *span, struct gr_event *out) {
    enum { LOOK = 64 };
    const struct gr_ticks_scale scale = gr_ticks_read(&h->ticks);
    const size_t room = (size_t)(span->to - span->from);
    size_t at = room, reached[LOOK + 1]; /* where the events of the last slots begin in out */
    uint64_t t = span->ticket;
    for (bool whole = true; whole && at > 0 && t > h->start;) {
        const uint64_t top = t;
        reached[0] = at;
        while (at > 0 && t > h->start && top - t < LOOK) {
            read_back(h, --t, &scale, out, &at);
            reached[top - t] = at;
        }
        const uint64_t next = gr_tickets_next(&h->tickets), oldest = next - gr_min(next, h->room);
        whole = t >= oldest;
        if (!whole) at = reached[top - gr_min(top, oldest)];
    }
    memmove(out, out + at, (room - at) * sizeof(*out));
    return room - at;
}
