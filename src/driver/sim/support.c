/* SPDX-License-Identifier: Apache-2.0
 * What the simulation's files share: host memory, slots, clocks, terminal sets, reports. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/sim/internal.h"

/* ---- host memory -------------------------------------------------------------------------- */

static void out_of_host_memory(void) {
    fputs("granary sim: the host is out of memory\n", stderr);
    abort();
}

void *gr_sim_zeroed(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) out_of_host_memory();
    return memory;
}

void *gr_sim_grow(void *old, size_t count, size_t size) {
    size_t bytes;
    void *memory = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes)) memory = realloc(old, bytes ? bytes : 1);
    if (!memory) out_of_host_memory();
    return memory;
}

/* ---- slots -------------------------------------------------------------------------------- */

enum { FIRST_CHUNK = 64 };

void gr_sim_slots_init(struct gr_sim_slots *slots, size_t size, size_t quarantine) {
    memset(slots, 0, sizeof *slots);
    slots->size = size;
    slots->quarantine = quarantine;
}

void gr_sim_slots_fini(struct gr_sim_slots *slots) {
    for (unsigned i = 0; i < slots->chunks; i++) free(slots->chunk[i]);
    memset(slots, 0, sizeof *slots);
}

static struct gr_sim_slot *take_fresh(struct gr_sim_slots *slots) {
    size_t room = slots->chunks ? (size_t)FIRST_CHUNK << (slots->chunks - 1) : 0;
    if (slots->fresh == room) {
        if (slots->chunks == GR_SIM_CHUNKS) out_of_host_memory();
        slots->chunk[slots->chunks] = gr_sim_zeroed((size_t)FIRST_CHUNK << slots->chunks, slots->size);
        slots->chunks++;
        slots->fresh = 0;
    }
    char *chunk = slots->chunk[slots->chunks - 1];
    return (struct gr_sim_slot *)(void *)(chunk + slots->size * slots->fresh++);
}

void *gr_sim_slots_take(struct gr_sim_slots *slots) {
    struct gr_sim_slot *slot;
    if (slots->dead > slots->quarantine) {
        slot = slots->first;
        slots->first = slot->next;
        if (!slots->first) slots->last = NULL;
        slots->dead--;
    } else {
        slot = take_fresh(slots);
    }
    memset(slot, 0, slots->size);
    slot->live = true;
    slots->live++;
    return slot;
}

void gr_sim_slots_put(struct gr_sim_slots *slots, void *object) {
    struct gr_sim_slot *slot = object;
    slot->live = false;
    slot->next = NULL;
    if (!slots->first) {
        slots->first = slots->last = slot;
    } else if (slots->quarantine == 0) {
        slot->next = slots->first;
        slots->first = slot;
    } else {
        slots->last->next = slot;
        slots->last = slot;
    }
    slots->dead++;
    slots->live--;
}

bool gr_sim_slots_live(const struct gr_sim_slots *slots, const void *ptr) {
    uintptr_t at = (uintptr_t)ptr;
    for (unsigned i = 0; i < slots->chunks; i++) {
        uintptr_t base = (uintptr_t)slots->chunk[i];
        size_t room = i + 1 == slots->chunks ? slots->fresh : (size_t)FIRST_CHUNK << i;
        if (at < base || at >= base + room * slots->size) continue;
        if ((at - base) % slots->size != 0) return false;
        return ((const struct gr_sim_slot *)ptr)->live;
    }
    return false;
}

/* ---- clocks ------------------------------------------------------------------------------- */

static void widen(struct gr_sim_clock *clock, unsigned count) {
    if (count <= clock->count) return;
    if (count > clock->room) {
        unsigned room = clock->room ? clock->room : 4;
        while (room < count) room *= 2;
        clock->at = gr_sim_grow(clock->at, room, sizeof *clock->at);
        clock->room = room;
    }
    memset(clock->at + clock->count, 0, (count - clock->count) * sizeof *clock->at);
    clock->count = count;
}

void gr_sim_clock_join(struct gr_sim_clock *into, const struct gr_sim_clock *from) {
    widen(into, from->count);
    for (unsigned i = 0; i < from->count; i++)
        if (from->at[i] > into->at[i]) into->at[i] = from->at[i];
}

void gr_sim_clock_copy(struct gr_sim_clock *into, const struct gr_sim_clock *from) {
    into->count = 0;
    widen(into, from->count);
    if (from->count) memcpy(into->at, from->at, from->count * sizeof *into->at);
}

uint64_t gr_sim_clock_tick(struct gr_sim_clock *clock, unsigned index) {
    widen(clock, index + 1);
    return ++clock->at[index];
}

void gr_sim_clock_fini(struct gr_sim_clock *clock) {
    free(clock->at);
    memset(clock, 0, sizeof *clock);
}

/* ---- terminal sets ------------------------------------------------------------------------ */

static bool same_edge(struct gr_cu_edge a, struct gr_cu_edge b) {
    return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

/* Only identical entries are one: the driver keeps terminals that are ancestors of one another. */
void gr_sim_terminals_add(struct gr_sim_terminals *set, gr_cu_node node, struct gr_cu_edge edge) {
    for (size_t i = 0; i < set->count; i++)
        if (set->nodes[i] == node && same_edge(set->edges[i], edge)) return;
    if (set->count == set->room) {
        set->room = set->room ? 2 * set->room : 4;
        set->nodes = gr_sim_grow(set->nodes, set->room, sizeof(gr_cu_node));
        set->edges = gr_sim_grow(set->edges, set->room, sizeof(struct gr_cu_edge));
    }
    set->nodes[set->count] = node;
    set->edges[set->count++] = edge;
}

void gr_sim_terminals_copy(struct gr_sim_terminals *into, const struct gr_sim_terminals *from) {
    into->count = 0;
    for (size_t i = 0; i < from->count; i++) gr_sim_terminals_add(into, from->nodes[i], from->edges[i]);
}

void gr_sim_terminals_fini(struct gr_sim_terminals *set) {
    free(set->nodes);
    free(set->edges);
    memset(set, 0, sizeof *set);
}

/* ---- reports ------------------------------------------------------------------------------ */

void gr_sim_report(enum granary_sim_finding kind, const char *format, ...) {
    static const char *const words[GRANARY_SIM_FINDINGS] = {
        "misuse", "unordered use", "unmapped memory", "moved memory", "early unmap", "deadlock"};
    struct granary_sim_findings *f = &gr_sim.findings;
    char what[400], text[sizeof f->last];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "%s in %s: %s", words[kind], gr_sim_call(), what);
    f->count++;
    f->by_kind[kind]++;
    memcpy(f->last, text, sizeof text);
    if (f->count == 1) memcpy(f->first, text, sizeof text);
    if (!gr_sim.config.strict) return;
    fprintf(stderr, "granary sim: %s\n", text);
    fflush(NULL);
    abort();
}
