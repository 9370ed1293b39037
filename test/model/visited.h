/* SPDX-License-Identifier: Apache-2.0
 * The states that an exploration has seen, in the order it came to them, each with the way there.
 *
 * It is the queue as well: what lies behind the state that is being looked at is still to be looked at. So ways are
 * the shortest there are. */
#ifndef MODEL_VISITED_H
#define MODEL_VISITED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct way {
    uint32_t from;       /* the state before; the first is its own */
    uint8_t who, choice; /* the step that led from there */
};

struct visited {
    size_t size; /* of a state, which is compared by its bytes: it has no holes */
    uint32_t count, room;
    unsigned char *states;
    struct way *ways;
    uint32_t *slots; /* 2 * room: a state's number and 1, at its hash or after it */
};

static inline const void *visited_at(const struct visited *v, uint32_t number) {
    return v->states + v->size * number;
}

static inline uint64_t visited_hash(const struct visited *v, const unsigned char *state) {
    uint64_t hash = v->size, word;
    for (size_t at = 0; at < v->size; at += sizeof word) {
        const size_t left = v->size - at;
        word = 0;
        if (left >= sizeof word)
            memcpy(&word, state + at, sizeof word);
        else
            memcpy(&word, state + at, left);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Where it is, or the free slot where it belongs. */
static inline uint32_t *visited_slot(const struct visited *v, const void *state) {
    const uint64_t mask = 2 * (uint64_t)v->room - 1;
    uint64_t at = visited_hash(v, state) & mask;
    while (v->slots[at] != 0 && memcmp(visited_at(v, v->slots[at] - 1), state, v->size) != 0)
        at = (at + 1) & mask;
    return &v->slots[at];
}

static inline void visited_grow(struct visited *v) {
    v->room = v->room ? 2 * v->room : 1 << 12;
    v->states = realloc(v->states, v->size * v->room);
    v->ways = realloc(v->ways, sizeof *v->ways * v->room);
    free(v->slots);
    v->slots = calloc(2 * (size_t)v->room, sizeof *v->slots);
    if (!v->states || !v->ways || !v->slots) {
        fputs("model: no memory for the states\n", stderr);
        exit(2);
    }
    for (uint32_t i = 0; i < v->count; i++) *visited_slot(v, visited_at(v, i)) = i + 1;
}

static inline void visited_add(struct visited *v, const void *state, struct way way) {
    if (v->count == v->room) visited_grow(v);
    uint32_t *slot = visited_slot(v, state);
    if (*slot != 0) return;
    memcpy(v->states + v->size * v->count, state, v->size);
    v->ways[v->count] = way;
    *slot = ++v->count;
}

static inline void visited_fini(struct visited *v) {
    free(v->states);
    free(v->ways);
    free(v->slots);
}

#endif
