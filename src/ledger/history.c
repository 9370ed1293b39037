/* SPDX-License-Identifier: Apache-2.0
 * History: tickets, slots, and reading them while they are written. */
#include "ledger/history.h"

#include <sched.h>
#include <string.h>

#include "base/host.h"

#define BUSY UINT64_MAX

void gr_history_init(struct gr_history *h) {
    memset(h, 0, sizeof(*h));
    gr_stacks_init(&h->stacks);
    gr_ticks_init(&h->ticks);
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

static GR_INLINE bool wanted(const struct gr_history *h) {
    return atomic_load_explicit(&h->level, memory_order_relaxed) >= GRANARY_HISTORY_ALLOC;
}

struct gr_note gr_history_enter(struct gr_history *h, bool free, const void *caller) {
    return gr_stacks_enter(&h->stacks, gr_history_sources(h, free), caller);
}

uint32_t gr_history_label(const struct gr_history *h) {
    return gr_stacks_note(&h->stacks).label;
}

/* ticket % room, without a division: the quotient by the inverse is at most one too small. */
static GR_INLINE uint64_t index_of(const struct gr_history *h, uint64_t ticket) {
    uint64_t rest = ticket - (uint64_t)((unsigned __int128)ticket * h->inverse >> 64) * h->room;
    return rest < h->room ? rest : rest - h->room;
}

/* The one that had the slot a round ago is done with it (Y1). */
static GR_INLINE bool is_ready(const struct gr_history *h, const struct gr_slot *slot, uint64_t ticket) {
    uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
    return stamp == ticket - h->room + 1 || (stamp == 0 && ticket - h->start < h->room);
}

static void GR_COLD wait_for_slot(const struct gr_history *h, const struct gr_slot *slot, uint64_t ticket) {
    for (unsigned spins = 1; !is_ready(h, slot, ticket); spins++)
        if (spins % 64 == 0) sched_yield();
}

static GR_INLINE void put(struct gr_slot *slot, int word, uint64_t value) {
    atomic_store_explicit(&slot->word[word], value, memory_order_release); /* not before BUSY is seen */
}

/* Tickets, for so many events of one call. */
static GR_INLINE uint64_t take_tickets(struct gr_history *h, uint64_t count) {
    return atomic_fetch_add_explicit(&h->next, count, memory_order_relaxed);
}

/* What a slot holds of an event. */
struct words {
    uint64_t tick, addr, size, stream, where, who, metadata;
};

static GR_INLINE uint64_t who_of(uint32_t stack, uint32_t tag) {
    return stack | (uint64_t)tag << 32;
}
static GR_INLINE uint64_t where_of(enum gr_action action, const struct gr_place *place) {
    return place->heap << 8 | (uint64_t)action;
}

/* The ring is larger than the caches that are near, and a locked instruction waits for the stores before it. */
enum { AHEAD = 8 };
static GR_INLINE void expect(const struct gr_history *h, uint64_t index) {
    __builtin_prefetch(&h->ring[index + AHEAD < h->room ? index + AHEAD : 0], 1);
}

/* index: that of the ticket. */
static GR_INLINE void write_event(const struct gr_history *h, uint64_t ticket, uint64_t index,
                                  const struct words *words) {
    if (GR_UNLIKELY(h->room == 0)) return;
    struct gr_slot *slot = &h->ring[index];
    expect(h, index);
    if (GR_UNLIKELY(!is_ready(h, slot, ticket))) wait_for_slot(h, slot, ticket);
    atomic_store_explicit(&slot->stamp, BUSY, memory_order_relaxed);
    put(slot, 0, words->tick);
    put(slot, 1, words->addr);
    put(slot, 2, words->size);
    put(slot, 3, words->stream);
    put(slot, 4, words->where);
    put(slot, 5, words->who);
    put(slot, 6, words->metadata);
    atomic_store_explicit(&slot->stamp, ticket + 1, memory_order_release);
}

static GR_INLINE void tell(struct gr_history *h, enum gr_action action, const struct gr_place *place,
                           uint64_t addr, uint64_t size, uint64_t who, uint32_t metadata) {
    if (!wanted(h)) return;
    uint64_t ticket = take_tickets(h, 1);
    const struct words words = {gr_ticks_now(&h->ticks), addr, size,    place->stream,
                                where_of(action, place), who,  metadata};
    write_event(h, ticket, index_of(h, ticket), &words);
}

/* Of the call under way: its stack, or that of the label when it noted none; and the label's tag, or its own
 * when there is no label. */
static GR_INLINE uint64_t caller_of(const struct gr_note *note, uint32_t label) {
    uint32_t stack = gr_label_stack(note->label);
    return who_of(stack ? stack : gr_label_stack(label), gr_label_tag(label ? label : note->label));
}
static GR_INLINE uint64_t owner_of(uint32_t label) {
    return who_of(gr_label_stack(label), gr_label_tag(label));
}

uint32_t gr_history_tell_alloc(struct gr_history *h, const struct gr_place *place, uint64_t addr,
                               uint64_t size) {
    const struct gr_note note = gr_stacks_note(&h->stacks);
    tell(h, GR_ALLOC, place, addr, size, owner_of(note.label), note.metadata);
    return note.label;
}

void gr_history_tell_free(struct gr_history *h, const struct gr_place *place, uint64_t addr, uint64_t size,
                          uint32_t label) {
    if (!wanted(h)) return;
    const struct gr_note note = gr_stacks_note(&h->stacks);
    uint64_t ticket = take_tickets(h, 2), index = index_of(h, ticket), owner = owner_of(label);
    struct words words = {.tick = gr_ticks_now(&h->ticks),
                          .addr = addr,
                          .size = size,
                          .stream = place->stream,
                          .where = where_of(GR_FREE_REQUESTED, place),
                          .who = caller_of(&note, label),
                          .metadata = note.metadata};
    write_event(h, ticket, index, &words);
    words.where = where_of(GR_FREE_COMPLETED, place);
    words.who = owner;
    write_event(h, ticket + 1, index + 1 < h->room ? index + 1 : 0, &words);
}

void gr_history_tell(struct gr_history *h, enum gr_action action, const struct gr_place *place, uint64_t addr,
                     uint64_t size, uint32_t label) {
    const struct gr_note note = gr_stacks_note(&h->stacks);
    tell(h, action, place, addr, size, caller_of(&note, label), note.metadata);
}

void gr_history_tell_of(struct gr_history *h, enum gr_action action, const struct gr_place *place,
                        uint64_t addr, uint64_t size, uint32_t label) {
    tell(h, action, place, addr, size, owner_of(label), gr_stacks_note(&h->stacks).metadata);
}

void gr_history_annotate(struct gr_history *h, enum gr_action action, uint32_t name) {
    tell(h, action, &(struct gr_place){0}, 0, 0, 0, name);
}

/* ---- while everything is stopped ------------------------------------------------------------- */

void gr_history_span(const struct gr_history *h, uint64_t *from, uint64_t *to) {
    *to = atomic_load_explicit(&h->next, memory_order_relaxed);
    *from = gr_max(h->first, *to - gr_min(*to, h->room));
}

struct gr_slot *gr_history_exchange(struct gr_history *h, struct gr_slot *ring, uint64_t room) {
    struct gr_slot *old = h->ring;
    uint64_t from, to;
    gr_history_span(h, &from, &to);
    from = gr_max(from, to - gr_min(to, room));
    for (uint64_t t = from; t < to; t++) memcpy(&ring[t % room], &old[t % h->room], sizeof(*ring));
    h->ring = ring;
    h->room = room;
    h->inverse = room > 0 ? UINT64_MAX / room : 0;
    h->start = to;
    h->first = from;
    return old;
}

void gr_history_clear(struct gr_history *h) {
    h->cleared = h->first = atomic_load_explicit(&h->next, memory_order_relaxed);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* False: overwritten, before or meanwhile. */
static bool read_event(const struct gr_slot *slot, uint64_t ticket, const struct gr_ticks_scale *scale,
                       struct gr_event *out) {
    uint64_t word[GR_SLOT_WORDS];
    if (atomic_load_explicit(&slot->stamp, memory_order_acquire) != ticket + 1) return false;
    for (int i = 0; i < GR_SLOT_WORDS; i++)
        word[i] = atomic_load_explicit(&slot->word[i], memory_order_acquire);
    if (atomic_load_explicit(&slot->stamp, memory_order_relaxed) != ticket + 1) return false;
    *out = (struct gr_event){.time_ns = gr_ticks_ns(scale, word[0]),
                             .addr = word[1],
                             .size = word[2],
                             .place = {.stream = word[3], .heap = word[4] >> 8},
                             .stack = (uint32_t)word[5],
                             .tag = (uint32_t)(word[5] >> 32),
                             .metadata = (uint32_t)word[6],
                             .action = (enum gr_action)(word[4] & 0xFF)};
    return true;
}

size_t gr_history_copy(const struct gr_history *h, uint64_t from, uint64_t to, struct gr_event *out) {
    const struct gr_ticks_scale scale = gr_ticks_read(&h->ticks);
    size_t count = 0;
    for (uint64_t t = from; t < to; t++) count += read_event(&h->ring[t % h->room], t, &scale, &out[count]);
    return count;
}
