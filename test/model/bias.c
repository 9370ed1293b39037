/* SPDX-License-Identifier: Apache-2.0
 * The biased lock as a model: the cases of bias_step follow src/base/bias.h and bias.c line by line. */
#include "model/bias.h"

#include <string.h>

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

void bias_drain(struct state *s, struct thread *thread) {
    s->memory[thread->store[0].cell] = thread->store[0].value;
    memmove(&thread->store[0], &thread->store[1], sizeof thread->store - sizeof thread->store[0]);
    memset(&thread->store[BUFFER - 1], 0, sizeof thread->store[0]);
    thread->stores--;
}

/* A locked instruction. Whether the lock was free. */
static bool lock_try(struct move *m, int cell) {
    m->stuck |= m->me->stores > 0;
    if (m->stuck || m->state->memory[cell]) return false;
    m->state->memory[cell] = 1;
    return true;
}

static void lock_take(struct move *m, int cell) {
    m->stuck |= !lock_try(m, cell);
}

static int inside(const struct move *m, int seat) {
    return m->base + INSIDE + (m->setup->fault == ONE_SEAT ? 0 : seat - 1);
}

static bool is_mine(const struct move *m, int seat) {
    return seat != NOBODY && get(m, m->base + THREAD + seat - 1) == m->self;
}

/* ---- pieces of the lock ----------------------------------------------------------------------- */

static void come_in(struct move *m, int seat) {
    struct state *s = m->state;
    if (s->in[m->me->bias]) m->wrong = "two threads are in";
    s->in[m->me->bias] = (uint8_t)m->self;
    s->as[m->me->bias] = (uint8_t)seat;
}

static void finish(struct move *m) {
    struct thread *me = m->me;
    me->at = IDLE;
    me->call = me->bias = me->seat = me->doubtful = 0;
    if (m->setup->calls > 0) me->calls++;
}

/* gr_ledger_stop goes on to the next bias, or, after the last, to what comes then. */
static void next_bias(struct move *m, enum point same, enum point then) {
    struct thread *me = m->me;
    me->seat = NOBODY;
    me->bias = me->bias + 1 < m->setup->biases ? me->bias + 1 : 0;
    me->at = me->bias != 0 ? same : then;
}

static void knocked(struct move *m) {
    next_bias(m, KNOCK_OWNER, m->me->doubtful ? BARRIER : STOP_AWAIT);
}

/* gr_bias_try, or gr_bias_enter in gr_bias_knock, has returned. */
static void tried(struct move *m, bool in) {
    struct thread *me = m->me;
    me->seat = NOBODY;
    if (me->call == STOP && in)
        knocked(m);
    else if (me->call == STOP)
        me->at = KNOCK_LOCK;
    else if (in)
        me->at = GIVE_HELD;
    else if (me->call == TAKE)
        me->at = WAIT_LOCK;
    else
        finish(m);
}

/* The two lines of gr_bias_count. Nothing asks for more than `earn`. */
static void count_row(struct move *m) {
    const int row = get(m, m->base + LAST) == m->self ? get(m, m->base + ROW) + 1 : 0;
    put(m, m->base + ROW, row < m->setup->earn ? row : m->setup->earn);
}

static bool count_last(struct move *m) {
    put(m, m->base + LAST, m->self);
    return get(m, m->base + ROW) >= m->setup->earn;
}

static int seat_of(struct move *m) {
    for (int seat = 1; seat <= m->setup->seats; seat++) {
        const int thread = m->base + THREAD + seat - 1;
        if (get(m, thread) == 0) put(m, thread, m->self);
        if (m->stuck || get(m, thread) == m->self) return seat;
    }
    return NOBODY;
}

/* ---- one step --------------------------------------------------------------------------------- */

int bias_choices(const struct thread *thread) {
    return thread->at == IDLE ? CALLS * BIASES : thread->at == BARRIER_EACH ? THREADS : 1;
}

static void begin(struct move *m, int choice) {
    struct thread *me = m->me;
    me->call = (uint8_t)(choice / BIASES);
    me->bias = (uint8_t)(choice % BIASES);
    me->at = me->call == STOP ? STOP_LOCK : TRY_OWNER;
    m->stuck |= !(m->setup->may[m->self - 1] >> me->call & 1);
    m->stuck |= me->bias >= (me->call == STOP ? 1 : m->setup->biases);
    m->stuck |= m->setup->calls > 0 && me->calls == m->setup->calls;
}

static void passed(struct move *m) {
    m->me->barrier = 0;
    m->me->at = m->me->call == STOP ? STOP_AWAIT : EXPECT_HELD;
}

/* The barrier passes one thread. */
static void pass(struct move *m, int other) {
    struct thread *me = m->me, *thread = &m->state->thread[other];
    m->stuck |= !(me->barrier >> other & 1);
    if (m->stuck) return;
    while (thread->stores > 0) bias_drain(m->state, thread);
    me->barrier ^= (uint8_t)(1u << other);
}

void bias_step(struct move *m, int choice) {
    struct thread *me = m->me;
    struct state *s = m->state;
    const int b = m->base, self = m->self;
    switch ((enum point)me->at) {
    case IDLE: begin(m, choice); break;

    /* gr_bias_try */
    case TRY_OWNER: me->seat = get(m, b + OWNER), me->at = TRY_MINE; break;
    case TRY_MINE:
        if (is_mine(m, me->seat))
            me->at = ENTER_IN;
        else if (me->seat != NOBODY)
            tried(m, false);
        else
            me->at = TRY_LOCK;
        break;
    case TRY_LOCK:
        if (lock_try(m, b + LOCK))
            me->at = TRY_LOOK;
        else
            tried(m, false);
        break;
    case TRY_LOOK: me->at = get(m, b + OWNER) != NOBODY ? TRY_UNDO : TRY_ROW; break;
    case TRY_ROW: count_row(m), me->at = TRY_LAST; break;
    case TRY_LAST:
        me->at = TRY_UNDO;
        if (!count_last(m)) come_in(m, NOBODY), tried(m, true);
        break;
    case TRY_UNDO: put(m, b + LOCK, 0), tried(m, false); break;

    /* gr_bias_enter */
    case ENTER_IN: put(m, inside(m, me->seat), 1), me->at = ENTER_LOOK; break;
    case ENTER_LOOK:
        me->at = ENTER_OUT;
        if (get(m, b + OWNER) == me->seat || m->setup->fault == NO_LOOK) come_in(m, me->seat), tried(m, true);
        break;
    case ENTER_OUT: put(m, inside(m, me->seat), 0), tried(m, false); break;

    /* gr_bias_wait */
    case WAIT_LOCK: lock_take(m, b + LOCK), me->at = WAIT_OWNED; break;
    case WAIT_OWNED:
        me->at = WAIT_STRIKE;
        if (get(m, b + OWNER) == NOBODY) come_in(m, NOBODY), me->at = WAIT_ROW;
        break;
    case WAIT_STRIKE: put(m, b + OWNER, NOBODY), me->at = BARRIER; break;
    case WAIT_ROW: count_row(m), me->at = WAIT_LAST; break;
    case WAIT_LAST: me->at = count_last(m) ? LEAN_SEAT : GIVE_HELD; break;

    /* gr_bias_barrier */
    case BARRIER:
        m->stuck |= me->stores > 0;
        me->barrier = (uint8_t)(((1u << m->setup->threads) - 1) & ~(1u << (self - 1)));
        me->at = BARRIER_EACH;
        if (m->setup->fault == NO_BARRIER) passed(m);
        break;
    case BARRIER_EACH:
        pass(m, choice);
        if (me->barrier == 0) passed(m);
        break;

    /* expect_out */
    case EXPECT_HELD:
        me->seat = get(m, b + HELD), me->at = EXPECT_OUT;
        if (me->seat == NOBODY) m->wrong = "waits for nobody";
        break;
    case EXPECT_OUT: m->stuck |= get(m, inside(m, me->seat)) != 0, me->at = EXPECT_DONE; break;
    case EXPECT_DONE:
        put(m, b + HELD, NOBODY), come_in(m, NOBODY);
        me->at = WAIT_ROW;
        if (me->call == STOP) next_bias(m, STOP_AWAIT, GIVE_HELD);
        me->seat = NOBODY;
        break;

    /* lean */
    case LEAN_SEAT: me->seat = seat_of(m), me->at = LEAN_ROW; break;
    case LEAN_ROW: put(m, b + ROW, 0), me->at = me->seat != NOBODY ? LEAN_HELD : GIVE_HELD; break;
    case LEAN_HELD: put(m, b + HELD, me->seat), me->at = LEAN_INSIDE, s->as[me->bias] = me->seat; break;
    case LEAN_INSIDE:
        me->at = LEAN_OWNER;
        if (m->setup->fault != LEAN_OUTSIDE) put(m, inside(m, me->seat), 1);
        break;
    case LEAN_OWNER: put(m, b + OWNER, me->seat), me->at = LEAN_GIVE; break;
    case LEAN_GIVE: put(m, b + LOCK, 0), me->at = GIVE_HELD; break;

    /* gr_bias_give */
    case GIVE_HELD:
        me->seat = get(m, b + HELD), me->at = GIVE_OUT;
        if (me->seat != s->as[me->bias]) m->wrong = "held is not who gives";
        break;
    case GIVE_OUT:
        put(m, me->seat != NOBODY ? inside(m, me->seat) : b + LOCK, 0);
        s->in[me->bias] = s->as[me->bias] = 0;
        if (me->call == STOP)
            next_bias(m, GIVE_HELD, STOP_UNLOCK);
        else
            finish(m);
        break;

    /* gr_ledger_stop, with gr_bias_await; gr_ledger_go */
    case STOP_LOCK: lock_take(m, LEDGER), me->at = KNOCK_OWNER; break;
    case STOP_AWAIT:
        me->at = EXPECT_HELD;
        if (get(m, b + (m->setup->fault == AWAIT_HELD ? HELD : DOUBTFUL)) != 0) break;
        if (s->in[me->bias] != self) come_in(m, NOBODY);
        next_bias(m, STOP_AWAIT, GIVE_HELD);
        break;
    case STOP_UNLOCK: put(m, LEDGER, 0), finish(m); break;

    /* gr_bias_knock */
    case KNOCK_OWNER: me->seat = get(m, b + OWNER), me->at = KNOCK_CLEAR; break;
    case KNOCK_CLEAR: put(m, b + DOUBTFUL, false), me->at = KNOCK_MINE; break;
    case KNOCK_MINE: me->at = is_mine(m, me->seat) ? ENTER_IN : KNOCK_LOCK; break;
    case KNOCK_LOCK: lock_take(m, b + LOCK), me->seat = NOBODY, me->at = KNOCK_ROW; break;
    case KNOCK_ROW:
        if (get(m, b + LAST) != self) put(m, b + ROW, 0);
        me->at = KNOCK_LAST;
        break;
    case KNOCK_LAST: put(m, b + LAST, self), me->at = KNOCK_OWNED; break;
    case KNOCK_OWNED:
        put(m, b + DOUBTFUL, get(m, b + OWNER) != NOBODY);
        me->doubtful |= get(m, b + DOUBTFUL);
        me->at = KNOCK_STRIKE;
        break;
    case KNOCK_STRIKE: put(m, b + OWNER, NOBODY), knocked(m); break;
    }
}
