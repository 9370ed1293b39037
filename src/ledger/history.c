/* SPDX-License-Identifier: Apache-2.0
 * History: slots, and reading them while they are written. */
#include "ledger/history.h"

#include <string.h>

#include "base/host.h"

void gr_history_init(struct gr_history *h) {
    memset(h, 0, sizeof(*h));
    gr_stacks_init(&h->stacks);
    gr_intern_init(&h->places, GR_SLOT_PLACES);
    gr_ticks_init(&h->ticks);
    gr_tickets_init(&h->tickets, 0);
    gr_pace_init(&h->pace, &h->ticks);
    GR_ASSERT(h->tickets.earn > GR_PACE_SHARE, "K3");
}

void gr_history_fini(struct gr_history *h) {
    gr_ring_free(&h->ring);
    gr_intern_fini(&h->places);
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

/* Of the call under way: its stack, or that of the label when it noted none; and the label's tag, or its own
 * when there is no label. */
static GR_INLINE uint32_t caller_of(const struct gr_note *note, uint32_t label) {
    uint32_t stack = gr_label_stack(note->label);
    return gr_label(stack ? stack : gr_label_stack(label), gr_label_tag(label ? label : note->label));
}

static GR_INLINE uint64_t read_clock(const struct gr_history *h) {
    return gr_ticks_now(&h->ticks) & GR_STAMP_TICK;
}

/* A ticket, and where and as what it is to be written. */
struct draw {
    struct gr_spot at;
    uint64_t stamp;
};

/* Where a ticket is to be written, so many after that of the owner's last reading; and how many slots there are from
 * there on to the end. The ring has room. */
static GR_INLINE struct gr_spot next_spot(const struct gr_history *h, uint64_t ticket, uint64_t after,
                                          uint64_t *rest) {
    if (GR_LIKELY(after < h->rest)) {
        *rest = h->rest - after;
        return (struct gr_spot){h->lead.slot + after, h->lead.round};
    }
    const struct gr_spot at = gr_spot_of(&h->ring, ticket);
    *rest = gr_spot_rest(&h->ring, at);
    return at;
}

static GR_INLINE struct draw draw_own(struct gr_history *h, bool twice) {
    const uint64_t ticket = gr_tickets_own(&h->tickets), after = ticket - h->pace.at;
    struct draw d;
    uint64_t rest;
    gr_tickets_draw_own(&h->tickets, twice);
    d.at = next_spot(h, ticket, after, &rest);
    if (!gr_pace_shares(&h->pace, after, &d.stamp)) {
        d.stamp = read_clock(h);
        gr_pace_note(&h->pace, ticket, after, d.stamp, rest);
        h->lead = d.at;
        h->rest = rest;
    }
    return d;
}

/* False: the ring has no room. Leaves the seat. */
static GR_INLINE bool draw(struct gr_history *h, struct gr_seat *seat, uint64_t words, struct draw *out) {
    const bool twice = gr_history_is_twice(words), room = h->ring.room > 0;
    if (GR_LIKELY(seat && room)) {
        *out = draw_own(h, twice);
        gr_seat_leave(seat);
    } else if (seat) {
        gr_tickets_draw_own(&h->tickets, twice);
        gr_seat_leave(seat);
    } else {
        const uint64_t ticket = gr_tickets_draw_shared(&h->tickets, twice);
        if (room) *out = (struct draw){gr_spot_of(&h->ring, ticket), read_clock(h)};
    }
    if (room && GR_UNLIKELY(!gr_spot_ready(out->at))) gr_spot_wait(out->at);
    return room;
}

void gr_history_put(struct gr_history *h, struct gr_seat *seat, const struct gr_place *place, uint64_t words,
                    uint64_t addr, uint64_t size) {
    struct draw d;
    if (GR_LIKELY(draw(h, seat, words, &d)))
        gr_spot_put(d.at, words | (uint64_t)place->number << GR_SLOT_PLACE, addr, size, d.stamp);
}

/* The same, and more is written aside. */
static void GR_COLD put_aside(struct gr_history *h, const struct gr_place *place, uint64_t words,
                              uint64_t addr, uint64_t size, uint32_t metadata) {
    struct draw d;
    if (!draw(h, gr_tickets_enter(&h->tickets), words, &d)) return;
    struct gr_aside *aside = gr_spot_aside(&h->ring, d.at);
    gr_word_put(&aside->word[0], place->stream);
    gr_word_put(&aside->word[1], place->heap);
    gr_word_put(&aside->word[2], metadata);
    gr_spot_put(d.at, words | GR_SLOT_ASIDE << GR_SLOT_ACTION, addr, size, d.stamp);
}

static GR_INLINE void put(struct gr_history *h, const struct gr_place *place, uint64_t words, uint64_t addr,
                          uint64_t size, uint32_t metadata) {
    if (GR_UNLIKELY(!place->number || metadata))
        put_aside(h, place, words, addr, size, metadata);
    else
        gr_history_put(h, gr_tickets_enter(&h->tickets), place, words, addr, size);
}

uint32_t gr_history_tell_alloc(struct gr_history *h, const struct gr_place *place, uint64_t addr,
                               uint64_t size) {
    const struct gr_note note = gr_stacks_note(&h->stacks);
    if (gr_history_wanted(h))
        put(h, place, gr_history_words(0, GR_ALLOC, note.label), addr, size, note.metadata);
    return note.label;
}

void gr_history_tell_free(struct gr_history *h, const struct gr_place *place, uint64_t addr, uint64_t size,
                          uint32_t label) {
    if (!gr_history_wanted(h)) return;
    const struct gr_note note = gr_stacks_note(&h->stacks);
    uint32_t caller = caller_of(&note, label);
    bool twice = caller == label;
    put(h, place, gr_history_words(twice ? GR_SLOT_TWICE : 0, GR_FREE_REQUESTED, caller), addr, size,
        note.metadata);
    if (!twice) put(h, place, gr_history_words(0, GR_FREE_COMPLETED, label), addr, size, note.metadata);
}

void gr_history_tell(struct gr_history *h, enum gr_action action, const struct gr_place *place, uint64_t addr,
                     uint64_t size, uint32_t label) {
    if (!gr_history_wanted(h)) return;
    const struct gr_note note = gr_stacks_note(&h->stacks);
    put(h, place, gr_history_words(0, action, caller_of(&note, label)), addr, size, note.metadata);
}

void gr_history_tell_of(struct gr_history *h, enum gr_action action, const struct gr_place *place,
                        uint64_t addr, uint64_t size, uint32_t label) {
    if (!gr_history_wanted(h)) return;
    put(h, place, gr_history_words(0, action, label), addr, size, gr_stacks_note(&h->stacks).metadata);
}

void gr_history_annotate(struct gr_history *h, enum gr_action action, uint32_t name) {
    if (gr_history_wanted(h)) put_aside(h, &(struct gr_place){0}, gr_history_words(0, action, 0), 0, 0, name);
}

/* ---- while everything is stopped ------------------------------------------------------------- */

void gr_history_set_level(struct gr_history *h, int level) {
    if (gr_history_wanted(h)) h->until = read_clock(h);
    gr_pace_break(&h->pace);
    atomic_store(&h->level, level);
}

void gr_history_number(struct gr_history *h, struct gr_place *place) {
    const uint64_t key[] = {place->stream, place->heap};
    place->number = gr_intern_put(&h->places, key, sizeof(key), NULL, 0);
}

struct gr_span gr_history_span(const struct gr_history *h) {
    struct gr_span span = {.ticket = gr_tickets_next(&h->tickets)};
    span.to = span.ticket + gr_tickets_twice(&h->tickets);
    span.from = gr_max(h->first, span.to - gr_min(span.to, h->ring.room));
    span.tick = gr_history_wanted(h) ? read_clock(h) : h->until;
    return span;
}

static GR_INLINE uint64_t events_in(const struct gr_slot *slot) {
    return atomic_load_explicit(&slot->word[0], memory_order_relaxed) >> GR_SLOT_ACTION & GR_SLOT_TWICE ? 2
                                                                                                        : 1;
}

/* What a ticket wrote into one ring goes over into another. */
static void take_over(struct gr_ring *to, const struct gr_ring *from, uint64_t ticket) {
    const struct gr_spot old = gr_spot_of(from, ticket), fresh = gr_spot_of(to, ticket);
    memcpy(fresh.slot, old.slot, sizeof(*old.slot));
    memcpy(gr_spot_aside(to, fresh), gr_spot_aside(from, old), sizeof(struct gr_aside));
    gr_word_put(&fresh.slot->word[0],
                (fresh.slot->word[0] & ~(GR_SLOT_ROUNDS << GR_SLOT_ROUND)) | fresh.round << GR_SLOT_ROUND);
}

void gr_history_exchange(struct gr_history *h, struct gr_ring *ring) {
    struct gr_ring old = h->ring;
    const struct gr_span span = gr_history_span(h);
    const uint64_t from = gr_max(span.from, span.to - gr_min(span.to, ring->room));
    ring->start = span.ticket;
    for (uint64_t event = span.to; event > from;)
        event -= gr_min(event, events_in(gr_spot_of(&old, --ring->start).slot));
    for (uint64_t t = ring->start; t < span.ticket; t++) take_over(ring, &old, t);
    h->ring = *ring;
    h->first = from;
    gr_pace_break(&h->pace);
    *ring = old;
}

void gr_history_clear(struct gr_history *h) {
    h->cleared = h->first = gr_history_span(h).to;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Reading from the newest ticket back. */
struct look {
    const struct gr_history *history;
    struct gr_ticks_scale scale;
    uint64_t ticket, tick; /* the oldest reading of the clock seen so far, and whose */
    size_t at;             /* where the events of the tickets seen begin, */
    struct gr_event *out;  /* in this */
};

/* A slot as it is in memory. */
struct words {
    uint64_t word[GR_SLOT_WORDS], aside[GR_ASIDE_WORDS];
};

/* False: the slot is not what the ticket wrote, which is on its way still or was overwritten. */
static bool read_words(const struct gr_ring *ring, struct gr_spot at, struct words *out) {
    for (int i = 0; i < GR_SLOT_WORDS; i++)
        out->word[i] = atomic_load_explicit(&at.slot->word[i], memory_order_acquire);
    const bool more = out->word[0] >> GR_SLOT_ACTION & GR_SLOT_ASIDE;
    const struct gr_aside *aside = gr_spot_aside(ring, at);
    for (int i = 0; more && i < GR_ASIDE_WORDS; i++)
        out->aside[i] = atomic_load_explicit(&aside->word[i], memory_order_acquire);
    return out->word[0] >> GR_SLOT_ROUND == at.round;
}

static struct gr_place read_place(const struct gr_history *h, const struct words *w) {
    const uint32_t number = (uint32_t)(w->word[0] >> GR_SLOT_PLACE & GR_SLOT_PLACES);
    uint64_t key[2] = {w->aside[0], w->aside[1]};
    if (number) memcpy(key, gr_intern_get(&h->places, number)->bytes, sizeof(key));
    return (struct gr_place){.stream = key[0], .heap = key[1], .number = number};
}

/* When the ticket was drawn. A stamp that it shares says that it was so many tickets after a reading; the next one is
 * known, and in between they came evenly for all that is known. */
static void read_time(struct look *l, uint64_t ticket, uint64_t stamp, struct gr_event *out) {
    const uint64_t after = stamp >> GR_STAMP_AFTER, tick = stamp & GR_STAMP_TICK;
    const uint64_t gap = l->tick - gr_min(l->tick, tick), tickets = l->ticket - (ticket - after);
    const uint64_t then = tick + (uint64_t)((unsigned __int128)gap * after / tickets);
    out->time_ns = gr_ticks_ns(&l->scale, then);
    if (after)
        out->unsure_ns = gr_ticks_ns(&l->scale, tick + gap) - gr_ticks_ns(&l->scale, tick);
    else
        l->ticket = ticket, l->tick = tick;
}

/* Adds the events of a ticket in front of those seen. */
static void read_back(struct look *l, uint64_t ticket) {
    const struct gr_ring *ring = &l->history->ring;
    struct words w;
    if (!read_words(ring, gr_spot_of(ring, ticket), &w)) return;
    const uint64_t action = w.word[0] >> GR_SLOT_ACTION;
    const uint32_t label = (uint32_t)w.word[0];
    struct gr_event event = {.addr = w.word[1],
                             .size = w.word[2],
                             .place = read_place(l->history, &w),
                             .stack = gr_label_stack(label),
                             .tag = gr_label_tag(label),
                             .metadata = action & GR_SLOT_ASIDE ? (uint32_t)w.aside[2] : 0,
                             .action = (enum gr_action)(action & GR_SLOT_ACTIONS)};
    read_time(l, ticket, w.word[3], &event);
    if (action & GR_SLOT_TWICE) {
        l->out[--l->at] = event;
        l->out[l->at].action = GR_FREE_COMPLETED;
    }
    if (l->at > 0) l->out[--l->at] = event;
}

/* From the newest back, as only that says which number an event has. What was read of a slot counts if nobody has drawn
 * the ticket that overwrites it; the tickets are looked at seldom, since a look takes them away from who draws. */
size_t gr_history_copy(const struct gr_history *h, const struct gr_span *span, struct gr_event *out) {
    enum { LOOK = 64 };
    const size_t room = (size_t)(span->to - span->from);
    struct look look = {.history = h,
                        .scale = gr_ticks_read(&h->ticks),
                        .ticket = span->ticket,
                        .tick = span->tick,
                        .at = room,
                        .out = out};
    size_t reached[LOOK + 1]; /* where the events of the last slots begin in out */
    uint64_t t = span->ticket;
    for (bool whole = true; whole && look.at > 0 && t > h->ring.start;) {
        const uint64_t top = t;
        reached[0] = look.at;
        while (look.at > 0 && t > h->ring.start && top - t < LOOK) {
            read_back(&look, --t);
            reached[top - t] = look.at;
        }
        const uint64_t next = gr_tickets_next(&h->tickets), oldest = next - gr_min(next, h->ring.room);
        whole = t >= oldest;
        if (!whole) look.at = reached[top - gr_min(top, oldest)];
    }
    memmove(out, out + look.at, (room - look.at) * sizeof(*out));
    return room - look.at;
}
