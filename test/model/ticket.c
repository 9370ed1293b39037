/* SPDX-License-Identifier: Apache-2.0
 * All interleavings of a few threads that draw tickets (src/ledger/ticket.h), by a model that follows its code.
 *
 *      ticket [-t]     -t: the interleavings that the faults lead to as well
 *
 * Memory is as in the model of the biased lock (bias.h): stores go through a buffer in order, a locked instruction
 * waits until the thread's own is empty, the barrier empties that of each other thread in turn. A step is one access
 * to memory, or one store that reaches it. Who has drawn a ticket writes it down (`slot`, as the history does), and
 * who reads looks there first and then asks for the next ticket.
 *
 * Asked in each state:
 *      K1  is a ticket given once; is it greater than all that were given before its drawing began
 *      K2  is the next ticket that a reader is told greater than the one that it has seen written down
 *      can somebody go on; and with all threads out, were all tickets below the next one given, and no others, and is
 *      nothing left over
 *
 * Calls are counted, since tickets are. How many count twice is not modelled: that is written where the ticket is.
 *
 * Who changes the tickets changes the model. A fault can be put into it; an exploration that does not find it has no
 * teeth. Exit status 0: every setup without a fault is sound, every fault is found, every line is reached. */
#include <stdbool.h>

#include "model/visited.h"

enum { THREADS = 3, SEATS = 2, BUFFER = 4, OWNED = 0x80 };
enum { NOBODY };

/* Memory, a byte for each variable; `slot` is the greatest ticket that a thread has written down, and 1. */
enum { SHARED, OWN, OWNER, LAST, ROW, LOCK, INSIDE, SEAT_OF = INSIDE + SEATS, SLOT = SEAT_OF + SEATS };
enum { MEMORY = SLOT + THREADS };

/* Where a thread is: what it does next. */
/* clang-format off */
#define POINTS(_)                                                                                                       \
    _(IDLE)                                                                                                             \
    _(OWN_OWNER) _(OWN_MINE) _(OWN_IN) _(OWN_LOOK) _(OWN_OUT) _(OWN_TAKE) _(OWN_STORE) _(OWN_LEAVE)                     \
    _(SHARED_ADD) _(ROW_LAST) _(ROW_SET_LAST) _(ROW_SET) _(WRITE_DOWN)                                                  \
    _(STRIKE_LOCK) _(STRIKE_OWNED) _(STRIKE_SEAT) _(STRIKE_OWNER) _(BARRIER) _(BARRIER_EACH) _(EXPECT_OUT)              \
    _(STRIKE_OWN) _(STRIKE_SHARED) _(STRIKE_GIVE)                                                                       \
    _(LEAN_LOCK) _(LEAN_NEXT) _(LEAN_SEAT) _(LEAN_ROW) _(LEAN_OWN) _(LEAN_SWAP) _(LEAN_OWNER) _(LEAN_GIVE)              \
    _(READ_SLOT) _(READ_SHARED) _(READ_OWN)
/* clang-format on */
#define AS_NAME(point) point,
#define AS_TEXT(point) #point,
enum point { POINTS(AS_NAME) };
static const char *const points[] = {POINTS(AS_TEXT)};
enum { POINT_COUNT = sizeof points / sizeof points[0] };

struct thread {
    uint8_t at;
    uint8_t seat, value; /* the local ones of the function it is in */
    uint8_t ticket;      /* drawn; or, of who reads, the one seen and 1 */
    uint8_t floor;       /* what it must not be below */
    uint8_t barrier;     /* threads that the barrier has yet to pass, as bits */
    uint8_t calls;       /* made */
    uint8_t stores;      /* in the buffer, the oldest first; behind them it is 0 */
    struct {
        uint8_t cell, value;
    } store[BUFFER];
};

struct state {
    uint8_t memory[MEMORY];
    uint8_t given[2]; /* tickets, as bits */
    uint8_t top;      /* the greatest of them, and 1 */
    struct thread thread[THREADS];
};

/* What may be wrong. */
static const char k1[] = "K1 is broken", k2[] = "K2 is broken", count[] = "next is not how many were given";

enum fault { SOUND, NO_BARRIER, NO_LOOK, NO_AWAIT, ONE_SEAT, NO_RECHECK, NO_SWAP, OWN_LATE };

struct setup {
    const char *name;
    enum fault fault;
    const char *find; /* what is wrong then */
    int threads, seats, earn;
    int buffer;         /* so many stores have room in it */
    int draws[THREADS]; /* of each thread */
    int reads[THREADS]; /* instead: of the last one, or of nobody */
};

struct move {
    const struct setup *setup;
    struct state *state;
    struct thread *me;
    int self;          /* its number, from 1 */
    bool stuck;        /* the step cannot be taken, or not yet */
    const char *wrong; /* what must not be, or NULL */
};

/* ---- memory ----------------------------------------------------------------------------------- */

static int get(const struct move *m, int cell) {
    for (int i = m->me->stores; i-- > 0;)
        if (m->me->store[i].cell == cell) return m->me->store[i].value;
    return m->state->memory[cell];
}

static void put(struct move *m, int cell, int value) {
    struct thread *me = m->me;
    m->stuck |= me->stores == m->setup->buffer;
    if (m->stuck) return;
    me->store[me->stores].cell = (uint8_t)cell;
    me->store[me->stores++].value = (uint8_t)value;
}

/* The oldest store reaches memory. */
static void drain(struct state *s, struct thread *thread) {
    s->memory[thread->store[0].cell] = thread->store[0].value;
    memmove(&thread->store[0], &thread->store[1], sizeof thread->store - sizeof thread->store[0]);
    memset(&thread->store[BUFFER - 1], 0, sizeof thread->store[0]);
    thread->stores--;
}

/* The cell for a locked instruction. */
static uint8_t *locked(struct move *m, int cell) {
    m->stuck |= m->me->stores > 0;
    return &m->state->memory[cell];
}

static bool lock_try(struct move *m) {
    uint8_t *lock = locked(m, LOCK);
    if (m->stuck || *lock) return false;
    *lock = 1;
    return true;
}

static int inside(const struct move *m, int seat) {
    return INSIDE + (m->setup->fault == ONE_SEAT ? 0 : seat - 1);
}

/* ---- pieces ----------------------------------------------------------------------------------- */

static void finish(struct move *m) {
    struct thread *me = m->me;
    me->at = IDLE;
    me->seat = me->value = me->ticket = me->floor = 0;
    me->calls++;
}

/* The draw returns, and what was drawn is written down. */
static void give_ticket(struct move *m) {
    struct state *s = m->state;
    const int ticket = m->me->ticket;
    if (m->setup->reads[m->setup->threads - 1]) put(m, SLOT + m->self - 1, ticket + 1);
    if (m->stuck) return;
    uint8_t *given = &s->given[ticket / 8];
    if (ticket < m->me->floor || *given >> ticket % 8 & 1) m->wrong = k1;
    *given |= (uint8_t)(1u << ticket % 8);
    if (s->top < ticket + 1) s->top = (uint8_t)(ticket + 1);
    finish(m);
}

static int seat_of(struct move *m) {
    for (int seat = 1; seat <= m->setup->seats; seat++) {
        const int thread = SEAT_OF + seat - 1;
        if (get(m, thread) == 0) put(m, thread, m->self);
        if (m->stuck || get(m, thread) == m->self) return seat;
    }
    return NOBODY;
}

static void begin(struct move *m) {
    const struct setup *setup = m->setup;
    struct thread *me = m->me;
    const int reads = setup->reads[m->self - 1];
    me->at = reads ? READ_SLOT : OWN_OWNER;
    me->floor = reads ? 0 : m->state->top;
    m->stuck |= me->calls == (reads ? reads : setup->draws[m->self - 1]);
}

/* The barrier passes one thread. */
static void pass(struct move *m, int other) {
    struct thread *thread = &m->state->thread[other];
    m->stuck |= !(m->me->barrier >> other & 1);
    if (m->stuck) return;
    while (thread->stores > 0) drain(m->state, thread);
    m->me->barrier ^= (uint8_t)(1u << other);
}

static void told(struct move *m, int next) {
    if (next < m->me->ticket) m->wrong = k2;
    finish(m);
}

/* ---- one step --------------------------------------------------------------------------------- */

/* A thread that chooses whose slot it looks at, or whom the barrier passes next, has several choices. */
static int choices(const struct thread *thread) {
    return thread->at == BARRIER_EACH || thread->at == READ_SLOT ? THREADS : 1;
}

static void step(struct move *m, int choice) {
    struct thread *me = m->me;
    const enum fault fault = m->setup->fault;
    const int self = m->self;
    uint8_t *cell;
    switch ((enum point)me->at) {
    case IDLE: begin(m); break;

    /* gr_tickets_draw_own */
    case OWN_OWNER: me->seat = (uint8_t)get(m, OWNER), me->at = OWN_MINE; break;
    case OWN_MINE:
        me->at = me->seat != NOBODY && get(m, SEAT_OF + me->seat - 1) == self ? OWN_IN : SHARED_ADD;
        break;
    case OWN_IN: put(m, inside(m, me->seat), 1), me->at = OWN_LOOK; break;
    case OWN_LOOK: me->at = get(m, OWNER) == me->seat || fault == NO_LOOK ? OWN_TAKE : OWN_OUT; break;
    case OWN_OUT: put(m, inside(m, me->seat), 0), me->at = SHARED_ADD; break;
    case OWN_TAKE: me->ticket = (uint8_t)get(m, OWN), me->at = OWN_STORE; break;
    case OWN_STORE: put(m, OWN, me->ticket + 1), me->at = OWN_LEAVE; break;
    case OWN_LEAVE: put(m, inside(m, me->seat), 0), me->at = WRITE_DOWN; break;
    case WRITE_DOWN: give_ticket(m); break;

    /* gr_tickets_draw_shared */
    case SHARED_ADD:
        cell = locked(m, SHARED);
        me->ticket = *cell;
        *cell += 1;
        me->seat = NOBODY;
        me->at = me->ticket & OWNED ? STRIKE_LOCK : ROW_LAST;
        break;

    /* count_row. Nothing asks for more than `earn`. */
    case ROW_LAST:
        me->value = get(m, LAST) == self;
        me->at = me->value ? ROW_SET : ROW_SET_LAST;
        break;
    case ROW_SET_LAST: put(m, LAST, self), me->at = ROW_SET; break;
    case ROW_SET:
        me->value = (uint8_t)(me->value ? get(m, ROW) + 1 : 0);
        put(m, ROW, me->value < m->setup->earn ? me->value : m->setup->earn);
        me->at = me->value < m->setup->earn ? WRITE_DOWN : LEAN_LOCK;
        break;

    /* strike_out */
    case STRIKE_LOCK: m->stuck |= !lock_try(m), me->at = STRIKE_OWNED; break;
    case STRIKE_OWNED:
        me->at = get(m, SHARED) & OWNED || fault == NO_RECHECK ? STRIKE_SEAT : STRIKE_GIVE;
        break;
    case STRIKE_SEAT: me->seat = (uint8_t)get(m, OWNER), me->at = STRIKE_OWNER; break;
    case STRIKE_OWNER: put(m, OWNER, NOBODY), me->at = fault == NO_BARRIER ? EXPECT_OUT : BARRIER; break;
    case BARRIER:
        m->stuck |= me->stores > 0;
        me->barrier = (uint8_t)(((1u << m->setup->threads) - 1) & ~(1u << (self - 1)));
        me->at = BARRIER_EACH;
        break;
    case BARRIER_EACH:
        pass(m, choice);
        if (me->barrier == 0) me->at = EXPECT_OUT;
        break;
    case EXPECT_OUT:
        m->stuck |= fault != NO_AWAIT && me->seat != NOBODY && get(m, inside(m, me->seat)) != 0;
        me->at = STRIKE_OWN;
        break;
    case STRIKE_OWN: me->value = (uint8_t)get(m, OWN), me->at = STRIKE_SHARED; break;
    case STRIKE_SHARED: put(m, SHARED, me->value), me->at = STRIKE_GIVE; break;
    case STRIKE_GIVE: put(m, LOCK, 0), me->seat = me->value = 0, me->at = SHARED_ADD; break;

    /* lean */
    case LEAN_LOCK: me->at = lock_try(m) ? LEAN_NEXT : WRITE_DOWN; break;
    case LEAN_NEXT:
        me->value = (uint8_t)get(m, SHARED);
        me->at = me->value & OWNED ? LEAN_GIVE : LEAN_SEAT;
        break;
    case LEAN_SEAT: me->seat = (uint8_t)seat_of(m), me->at = LEAN_ROW; break;
    case LEAN_ROW:
        put(m, ROW, 0);
        me->at = me->seat == NOBODY ? LEAN_GIVE : fault == OWN_LATE ? LEAN_SWAP : LEAN_OWN;
        break;
    case LEAN_OWN: put(m, OWN, me->value), me->at = fault == OWN_LATE ? LEAN_OWNER : LEAN_SWAP; break;
    case LEAN_SWAP:
        cell = locked(m, SHARED);
        if (*cell == me->value || fault == NO_SWAP) {
            *cell = me->value | OWNED;
            me->at = fault == OWN_LATE ? LEAN_OWN : LEAN_OWNER;
        } else {
            me->value = *cell;
            me->at = fault == OWN_LATE ? LEAN_SWAP : LEAN_OWN;
        }
        break;
    case LEAN_OWNER: put(m, OWNER, me->seat), me->at = LEAN_GIVE; break;
    case LEAN_GIVE: put(m, LOCK, 0), me->seat = me->value = 0, me->at = WRITE_DOWN; break;

    /* A reader of the history, in gr_tickets_next. */
    case READ_SLOT: me->ticket = (uint8_t)get(m, SLOT + choice), me->at = READ_SHARED; break;
    case READ_SHARED:
        me->value = (uint8_t)get(m, SHARED), me->at = READ_OWN;
        if (!(me->value & OWNED)) told(m, me->value);
        break;
    case READ_OWN: told(m, get(m, OWN)); break;
    }
}

/* ---- exploring -------------------------------------------------------------------------------- */

/* All threads are out, and every store is in memory: whether something is left over. */
static const char *rest(const struct state *s) {
    const bool owned = s->memory[SHARED] & OWNED;
    const int next = owned ? s->memory[OWN] : s->memory[SHARED];
    for (int i = 0; i < SEATS; i++)
        if (s->memory[INSIDE + i]) return "a seat is left inside";
    if (s->memory[LOCK]) return "the lock is left held";
    if (owned != (s->memory[OWNER] != NOBODY)) return "owned, and nobody is the owner";
    return next == s->top && (s->given[0] | s->given[1] << 8) == (1 << next) - 1 ? NULL : count;
}

enum {
    DRAIN = THREADS,
    NONE
}; /* choices that are no step: a store reaches memory; the state itself is wrong */

/* Looks at one state and adds those that follow. What is wrong, or NULL; `last` is the step that was. */
static const char *look(const struct setup *setup, struct visited *v, uint32_t number, struct way *last) {
    struct state s, next;
    bool idle = true, end = true;
    memcpy(&s, visited_at(v, number), sizeof s);
    for (int t = 0; t < setup->threads; t++) {
        const struct thread *thread = &s.thread[t];
        idle &= thread->at == IDLE && thread->stores == 0;
        if (thread->stores > 0) {
            next = s;
            drain(&next, &next.thread[t]);
            visited_add(v, &next, (struct way){number, (uint8_t)t, DRAIN});
            end = false;
        }
        for (int choice = 0; choice < choices(thread); choice++) {
            next = s;
            struct move m = {.setup = setup, .state = &next, .me = &next.thread[t], .self = t + 1};
            step(&m, choice);
            if (m.stuck) continue;
            *last = (struct way){number, (uint8_t)t, (uint8_t)choice};
            if (m.wrong) return m.wrong;
            visited_add(v, &next, *last);
            end = false;
        }
    }
    *last = (struct way){number, 0, NONE};
    if (idle && rest(&s)) return rest(&s);
    return end && !idle ? "nobody can go on" : NULL;
}

static void print_way(const struct visited *v, uint32_t to, struct way way) {
    static const char *const cells[] = {"shared", "own",    "owner",  "last", "row",
                                        "lock",   "inside", "thread", "slot"};
    static const int first[] = {SHARED, OWN, OWNER, LAST, ROW, LOCK, INSIDE, SEAT_OF, SLOT};
    if (way.from != to) print_way(v, way.from, v->ways[way.from]);
    if (way.choice == NONE || way.from == to) return;
    const struct state *s = visited_at(v, way.from); /* nothing but bytes: it lies well everywhere */
    const struct thread *thread = &s->thread[way.who];
    size_t kind = sizeof first / sizeof first[0] - 1;
    printf("    thread %d  ", way.who + 1);
    if (way.choice != DRAIN) {
        printf("%s", points[thread->at]);
        if (choices(thread) > 1) printf(" thread %d", way.choice + 1);
    } else {
        while (first[kind] > thread->store[0].cell) kind--;
        printf("%s", cells[kind]);
        if (first[kind] >= INSIDE) printf("[%d]", thread->store[0].cell - first[kind] + 1);
        printf(" = %d reaches memory", thread->store[0].value);
    }
    putchar('\n');
}

/* Whether it came out as it should. */
static bool explore(const struct setup *setup, bool tell, bool reached[POINT_COUNT]) {
    struct visited v = {.size = sizeof(struct state)};
    const struct state nothing = {.memory = {0}};
    struct way last = {0, 0, NONE};
    const char *wrong = NULL;
    visited_add(&v, &nothing, last);
    for (uint32_t i = 0; i < v.count && !wrong; i++) wrong = look(setup, &v, i, &last);
    const bool good = strcmp(wrong ? wrong : "", setup->find ? setup->find : "") == 0;
    printf("%-48s %9u  %s%s\n", setup->name, v.count, good ? "" : "WRONG: ", wrong ? wrong : "sound");
    if (wrong && (tell || !good)) print_way(&v, 0, last);
    for (uint32_t i = 0; i < v.count && setup->fault == SOUND; i++) {
        const struct state *s = visited_at(&v, i);
        for (int t = 0; t < THREADS; t++) reached[s->thread[t].at] = true;
    }
    visited_fini(&v);
    return good;
}

static const struct setup setups[] = {
    {"two threads", .threads = 2, .seats = 2, .earn = 1, .buffer = 4, .draws = {3, 3}},
    {"two threads, one seat", .threads = 2, .seats = 1, .earn = 1, .buffer = 2, .draws = {4, 4}},
    {"two threads that are owners at once", .threads = 2, .seats = 2, .earn = 0, .buffer = 3,
     .draws = {3, 3}},
    {"two threads, one reads", .threads = 2, .seats = 2, .earn = 1, .buffer = 4, .draws = {6},
     .reads = {0, 3}},
    {"three threads", .threads = 3, .seats = 2, .earn = 0, .buffer = 2, .draws = {1, 1, 1}},
    {"three threads, one reads", .threads = 3, .seats = 2, .earn = 0, .buffer = 2, .draws = {2, 1},
     .reads = {0, 0, 1}},
    {"fault: no barrier", NO_BARRIER, k1, .threads = 2, .seats = 2, .earn = 0, .buffer = 4, .draws = {3, 2}},
    {"fault: no second look at the owner", NO_LOOK, k1, .threads = 2, .seats = 2, .earn = 0, .buffer = 3,
     .draws = {3, 2}},
    {"fault: nobody waits for an empty seat", NO_AWAIT, k1, .threads = 2, .seats = 2, .earn = 0, .buffer = 3,
     .draws = {3, 2}},
    {"fault: one seat for all threads", ONE_SEAT, k1, .threads = 2, .seats = 2, .earn = 0, .buffer = 3,
     .draws = {2, 2}},
    {"fault: struck out twice", NO_RECHECK, k1, .threads = 2, .seats = 2, .earn = 0, .buffer = 2,
     .draws = {2, 2}},
    {"fault: owned without a look at what is drawn", NO_SWAP, count, .threads = 2, .seats = 2, .earn = 0,
     .buffer = 2, .draws = {2, 2}},
    {"fault: owned before own is there", OWN_LATE, k2, .threads = 3, .seats = 2, .earn = 0, .buffer = 2,
     .draws = {1, 1}, .reads = {0, 0, 1}},
};

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
