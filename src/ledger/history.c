/* SPDX-License-Identifier: Apache-2.0
 * History: tickets, slots, and reading them while they are written. */
#include "ledger/history.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/host.h"

#define BUSY UINT64_MAX

void gr_history_init(struct gr_history *h) {
    memset(h, 0, sizeof(*h));
    gr_stacks_init(&h->stacks);
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
    int level = atomic_load_explicit(&h->level, memory_order_relaxed);
    bool wanted = !free || level == GRANARY_HISTORY_ALL;
    int sources = wanted ? atomic_load_explicit(&h->sources, memory_order_relaxed) : 0;
    return gr_stacks_enter(&h->stacks, sources, caller);
}

uint32_t gr_history_label(const struct gr_history *h) {
    return gr_stacks_note(&h->stacks)->label;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* The one that had the slot a round ago is done with it (Y1). */
static void wait_for_slot(const struct gr_history *h, struct gr_slot *slot, uint64_t ticket) {
    for (unsigned spins = 1;; spins++) {
        uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
        if (stamp == ticket - h->room + 1 || (stamp == 0 && ticket - h->start < h->room)) return;
        if (spins % 64 == 0) sched_yield();
    }
}

static void put(struct gr_slot *slot, int word, uint64_t value) {
    atomic_store_explicit(&slot->word[word], value, memory_order_release); /* not before BUSY is seen */
}

static void write_event(struct gr_history *h, const struct gr_event *event) {
    uint64_t ticket = atomic_fetch_add_explicit(&h->next, 1, memory_order_relaxed);
    if (h->room == 0) return;
    struct gr_slot *slot = &h->ring[ticket % h->room];
    wait_for_slot(h, slot, ticket);
    atomic_store_explicit(&slot->stamp, BUSY, memory_order_relaxed);
    put(slot, 0, event->time_ns);
    put(slot, 1, event->addr);
    put(slot, 2, event->size);
    put(slot, 3, event->place.stream);
    put(slot, 4, event->place.heap << 8 | (uint64_t)event->action);
    put(slot, 5, event->stack | (uint64_t)event->tag << 32);
    put(slot, 6, event->metadata);
    atomic_store_explicit(&slot->stamp, ticket + 1, memory_order_release);
}

static void tell(struct gr_history *h, enum gr_action action, const struct gr_place *place, uint64_t addr,
                 uint64_t size, uint32_t stack, uint32_t tag, uint32_t metadata) {
    if (atomic_load_explicit(&h->level, memory_order_relaxed) < GRANARY_HISTORY_ALLOC) return;
    const struct gr_event event = {.time_ns = now_ns(),
                                   .addr = addr,
                                   .size = size,
                                   .place = *place,
                                   .stack = stack,
                                   .tag = tag,
                                   .metadata = metadata,
                                   .action = action};
    write_event(h, &event);
}

void gr_history_tell(struct gr_history *h, enum gr_action action, const struct gr_place *place, uint64_t addr,
                     uint64_t size, uint32_t label) {
    const struct gr_note *note = gr_stacks_note(&h->stacks);
    uint32_t stack = gr_label_stack(note->label), tag = gr_label_tag(label ? label : note->label);
    tell(h, action, place, addr, size, stack ? stack : gr_label_stack(label), tag, note->metadata);
}

void gr_history_tell_of(struct gr_history *h, enum gr_action action, const struct gr_place *place,
                        uint64_t addr, uint64_t size, uint32_t label) {
    tell(h, action, place, addr, size, gr_label_stack(label), gr_label_tag(label),
         gr_stacks_note(&h->stacks)->metadata);
}

void gr_history_annotate(struct gr_history *h, enum gr_action action, uint32_t name) {
    if (atomic_load_explicit(&h->level, memory_order_relaxed) < GRANARY_HISTORY_ALLOC) return;
    write_event(h, &(struct gr_event){.time_ns = now_ns(), .metadata = name, .action = action});
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
    h->start = to;
    h->first = from;
    return old;
}

void gr_history_clear(struct gr_history *h) {
    h->cleared = h->first = atomic_load_explicit(&h->next, memory_order_relaxed);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* False: overwritten, before or meanwhile. */
static bool read_event(const struct gr_slot *slot, uint64_t ticket, struct gr_event *out) {
    uint64_t word[GR_SLOT_WORDS];
    if (atomic_load_explicit(&slot->stamp, memory_order_acquire) != ticket + 1) return false;
    for (int i = 0; i < GR_SLOT_WORDS; i++)
        word[i] = atomic_load_explicit(&slot->word[i], memory_order_acquire);
    if (atomic_load_explicit(&slot->stamp, memory_order_relaxed) != ticket + 1) return false;
    *out = (struct gr_event){.time_ns = word[0],
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
    size_t count = 0;
    for (uint64_t t = from; t < to; t++) count += read_event(&h->ring[t % h->room], t, &out[count]);
    return count;
}
