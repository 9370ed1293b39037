/* SPDX-License-Identifier: Apache-2.0
 * Explores all interleavings of the model in a few setups, breadth first, and prints a table of them.
 *
 *      bias [-t]       -t: the interleavings that the faults lead to as well
 *
 * Exit status 0: every setup without a fault is sound, every fault is found, and every line of the model is reached. */
#include "model/bias.h"
#include "model/visited.h"

/* Threads that call for ever come to every state there is; those with some calls cannot hide that another is stuck. */
static const struct setup setups[] = {
    {"two threads", .threads = 2, .biases = 1, .seats = 2, .earn = 1, .buffer = 4,
     .may = {USES | TRIES, USES | TRIES}},
    {"two threads that stop too, earned later", .threads = 2, .biases = 1, .seats = 2, .earn = 2, .buffer = 4,
     .may = {ALL, ALL}},
    {"two threads, one seat", .threads = 2, .biases = 1, .seats = 1, .earn = 1, .buffer = 4,
     .may = {USES | TRIES, USES | TRIES}},
    {"three threads, two seats", .threads = 3, .biases = 1, .seats = 2, .earn = 1, .buffer = 2,
     .may = {USES, USES, USES}},
    {"three threads, three calls each", .threads = 3, .biases = 1, .seats = 2, .earn = 1, .buffer = 2,
     .calls = 3, .may = {USES, USES, USES}},
    {"three threads, one stops, two calls each", .threads = 3, .biases = 1, .seats = 2, .earn = 1,
     .buffer = 2, .calls = 2, .may = {USES, USES, USES | STOPS}},
    {"two biases, one thread stops both", .threads = 2, .biases = 2, .seats = 2, .earn = 1, .buffer = 2,
     .may = {USES, STOPS}},
    {"two biases, both stop both, three calls each", .threads = 2, .biases = 2, .seats = 2, .earn = 1,
     .buffer = 2, .calls = 3, .may = {USES | STOPS, USES | STOPS}},
    {"fault: no barrier", .threads = 2, .biases = 1, .seats = 2, .earn = 1, .buffer = 3, .may = {USES, USES},
     .fault = NO_BARRIER, .find = "two threads are in"},
    {"fault: no barrier in stop", .threads = 2, .biases = 2, .seats = 2, .earn = 1, .buffer = 2,
     .may = {USES, STOPS}, .fault = NO_BARRIER, .find = "two threads are in"},
    {"fault: one seat for all threads", .threads = 2, .biases = 1, .seats = 2, .earn = 1, .buffer = 3,
     .may = {USES, USES}, .fault = ONE_SEAT, .find = "two threads are in"},
    {"fault: await goes by held", .threads = 2, .biases = 2, .seats = 2, .earn = 1, .buffer = 2, .calls = 4,
     .may = {USES | STOPS, USES}, .fault = AWAIT_HELD, .find = "nobody can go on"},
    {"fault: no second look at the owner", .threads = 2, .biases = 1, .seats = 2, .earn = 1, .buffer = 3,
     .may = {USES, USES}, .fault = NO_LOOK, .find = "two threads are in"},
    {"fault: lean without inside = 1", .threads = 2, .biases = 1, .seats = 2, .earn = 1, .buffer = 3,
     .may = {USES, USES}, .fault = LEAN_OUTSIDE, .find = "two threads are in"},
};

/* Choices that are no step: a store reaches memory; the state itself is wrong. */
enum { DRAIN = CALLS * BIASES, NONE };

/* All threads are out, and every store is in memory: whether something is left over. */
static const char *rest(const struct state *s) {
    for (int b = 0; b < BIASES; b++) {
        const uint8_t *bias = &s->memory[b * CELLS];
        for (int i = 0; i < SEATS; i++)
            if (bias[INSIDE + i]) return "a seat is left inside";
        if (bias[LOCK] || s->in[b]) return "the lock is left held";
        if (bias[HELD] != bias[OWNER]) return "held is not the owner's";
    }
    return s->memory[LEDGER] ? "the ledger's lock is left held" : NULL;
}

/* Looks at one state and adds those that follow. What is wrong, or NULL; `last` is the step that was. */
static const char *look(const struct setup *setup, struct visited *v, uint32_t number, struct way *last) {
    struct state s;
    bool idle = true, end = true;
    memcpy(&s, visited_at(v, number), sizeof s);
    for (int t = 0; t < setup->threads; t++) {
        const struct thread *thread = &s.thread[t];
        struct state next;
        idle &= thread->at == IDLE && thread->stores == 0;
        if (thread->stores > 0) {
            next = s;
            bias_drain(&next, &next.thread[t]);
            visited_add(v, &next, (struct way){number, (uint8_t)t, DRAIN});
            end = false;
        }
        for (int choice = 0; choice < bias_choices(thread); choice++) {
            next = s;
            struct move m = {.setup = setup, .state = &next, .me = &next.thread[t], .self = t + 1};
            m.base = thread->bias * CELLS;
            bias_step(&m, choice);
            if (m.stuck) continue;
            *last = (struct way){number, (uint8_t)t, (uint8_t)choice};
            if (m.wrong) return m.wrong;
            visited_add(v, &next, *last);
            end = false;
        }
    }
    *last = (struct way){number, 0, NONE};
    if (idle && rest(&s)) return rest(&s);
    return end && !(idle && setup->calls > 0) ? "nobody can go on" : NULL;
}

/* ---- telling ---------------------------------------------------------------------------------- */

#define AS_TEXT(point) #point,
static const char *const points[] = {POINTS(AS_TEXT)};
enum { POINT_COUNT = sizeof points / sizeof points[0] };
static const char *const calls[] = {"gr_bias_take", "gr_bias_try", "gr_ledger_stop"};
static const char *const cells[] = {"owner", "held", "lock", "doubtful", "last", "row", "inside", "thread"};

static void print_store(int cell, int value) {
    const int of = cell % CELLS, kind = of < INSIDE ? of : of < THREAD ? INSIDE : INSIDE + 1;
    if (cell == LEDGER)
        printf("ledger.lock");
    else if (of < INSIDE)
        printf("bias[%d].%s", cell / CELLS, cells[kind]);
    else
        printf("bias[%d].seat[%d].%s", cell / CELLS, (of - INSIDE) % SEATS + 1, cells[kind]);
    printf(" = %d reaches memory\n", value);
}

static void print_step(const struct visited *v, struct way way) {
    struct state s;
    memcpy(&s, visited_at(v, way.from), sizeof s);
    const struct thread *thread = &s.thread[way.who];
    printf("    thread %d  ", way.who + 1);
    if (way.choice == DRAIN)
        print_store(thread->store[0].cell, thread->store[0].value);
    else if (thread->at == IDLE)
        printf("bias[%d] calls %s\n", way.choice % BIASES, calls[way.choice / BIASES]);
    else if (thread->at == BARRIER_EACH)
        printf("bias[%d] %s thread %d\n", thread->bias, points[thread->at], way.choice + 1);
    else
        printf("bias[%d] %s\n", thread->bias, points[thread->at]);
}

static void print_way(const struct visited *v, uint32_t to) {
    if (to == 0) return;
    print_way(v, v->ways[to].from);
    print_step(v, v->ways[to]);
}

static void note_reached(const struct visited *v, bool reached[POINT_COUNT]) {
    for (uint32_t i = 0; i < v->count; i++) {
        const struct state *s = visited_at(v, i); /* nothing but bytes: it lies well everywhere */
        for (int t = 0; t < THREADS; t++) reached[s->thread[t].at] = true;
    }
}

/* Whether it came out as it should. */
static bool explore(const struct setup *setup, bool tell, bool reached[POINT_COUNT]) {
    struct visited v = {.size = sizeof(struct state)};
    const struct state first = {.memory = {0}};
    struct way last = {0, 0, 0};
    const char *wrong = NULL;
    visited_add(&v, &first, last);
    for (uint32_t i = 0; i < v.count && !wrong; i++) wrong = look(setup, &v, i, &last);
    const bool good = strcmp(wrong ? wrong : "", setup->find ? setup->find : "") == 0;
    printf("%-48s %9u  %s%s\n", setup->name, v.count, good ? "" : "WRONG: ", wrong ? wrong : "sound");
    if (wrong && (tell || !good)) {
        print_way(&v, last.from);
        if (last.choice != NONE) print_step(&v, last);
    }
    if (setup->fault == SOUND) note_reached(&v, reached);
    visited_fini(&v);
    return good;
}

int main(int argc, char **argv) {
    const bool tell = argc > 1 && strcmp(argv[1], "-t") == 0;
    bool good = true, reached[POINT_COUNT] = {false};
    printf("%-48s %9s\n", "setup", "states");
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) good &= explore(&setups[i], tell, reached);
    for (int i = 0; i < POINT_COUNT; i++) {
        if (!reached[i]) printf("WRONG: %s is never reached\n", points[i]);
        good &= reached[i];
    }
    return good ? 0 : 1;
}
