/* SPDX-License-Identifier: Apache-2.0
 * All interleavings of a few threads on the biased lock (src/base/bias.h), by a model that follows its code.
 *
 *      thread --store--> its buffer --in order, at any later time--> memory --load--> all threads
 *                            +-----------------load------------------------------> the thread itself
 *
 * That is x86. A locked instruction waits until the thread's own buffer is empty; membarrier(2) empties that of each
 * other thread, each at a moment of its own between call and return. A step is one access to memory by one thread, or
 * one store that reaches memory. Only what nobody but the holder of `lock` writes is looked at and written in one step.
 *
 * Asked in each state: is one thread in at most; can somebody go on; does `held` name who gives; and with all
 * threads out, is everything empty. Buffers keep stores in order, so that the data a lock guards needs no modelling:
 * it is in memory before the store that lets the next thread in.
 *
 * The lock inside is a word that is 1 or 0 (waking and inheriting do not matter), waiting is a step that cannot be
 * taken yet, a row that is long enough is not counted on, and the kernel grants every barrier.
 *
 * Who changes the lock changes the model. A fault can be put into it; an exploration that does not find it has no teeth. */
#ifndef MODEL_BIAS_H
#define MODEL_BIAS_H

#include <stdbool.h>
#include <stdint.h>

enum { THREADS = 3, BIASES = 2, SEATS = 2, BUFFER = 4 };

/* Memory, a byte for each variable. A seat is a number from 1, and so is a thread. */
enum { OWNER, HELD, LOCK, DOUBTFUL, LAST, ROW, INSIDE, THREAD = INSIDE + SEATS, CELLS = THREAD + SEATS };
enum { LEDGER = BIASES * CELLS, MEMORY };
enum { NOBODY };

/* gr_bias_take, gr_bias_try, gr_ledger_stop; then what was taken is given. */
enum call { TAKE, TRY, STOP, CALLS };

/* Where a thread is: what it does next. */
/* clang-format off */
#define POINTS(_)                                                                                                       \
    _(IDLE)                                                                                                             \
    _(TRY_OWNER) _(TRY_MINE) _(TRY_LOCK) _(TRY_LOOK) _(TRY_ROW) _(TRY_LAST) _(TRY_UNDO)                                 \
    _(ENTER_IN) _(ENTER_LOOK) _(ENTER_OUT)                                                                              \
    _(WAIT_LOCK) _(WAIT_OWNED) _(WAIT_STRIKE) _(WAIT_ROW) _(WAIT_LAST)                                                  \
    _(BARRIER) _(BARRIER_EACH)                                                                                          \
    _(EXPECT_HELD) _(EXPECT_OUT) _(EXPECT_DONE)                                                                         \
    _(LEAN_SEAT) _(LEAN_ROW) _(LEAN_HELD) _(LEAN_INSIDE) _(LEAN_OWNER) _(LEAN_GIVE)                                     \
    _(GIVE_HELD) _(GIVE_OUT)                                                                                            \
    _(STOP_LOCK) _(STOP_AWAIT) _(STOP_UNLOCK)                                                                           \
    _(KNOCK_OWNER) _(KNOCK_CLEAR) _(KNOCK_MINE) _(KNOCK_LOCK) _(KNOCK_ROW) _(KNOCK_LAST) _(KNOCK_OWNED) _(KNOCK_STRIKE)
/* clang-format on */
#define AS_NAME(point) point,
enum point { POINTS(AS_NAME) };
#undef AS_NAME

struct thread {
    uint8_t at, call, bias; /* enum point, enum call */
    uint8_t seat;           /* the local one of the function it is in */
    uint8_t doubtful;       /* that of gr_ledger_stop */
    uint8_t barrier;        /* threads that the barrier has yet to pass, as bits */
    uint8_t calls;          /* made, if they are counted */
    uint8_t stores;         /* in the buffer, the oldest first; behind them it is 0 */
    struct {
        uint8_t cell, value;
    } store[BUFFER];
};

struct state {
    uint8_t memory[MEMORY];
    uint8_t in[BIASES]; /* who is: the truth that the lock is held against */
    uint8_t as[BIASES]; /* and as the owner with which seat */
    struct thread thread[THREADS];
};

enum fault { SOUND, NO_BARRIER, ONE_SEAT, AWAIT_HELD, NO_LOOK, LEAN_OUTSIDE };

enum { USES = 1 << TAKE, TRIES = 1 << TRY, STOPS = 1 << STOP, ALL = USES | TRIES | STOPS };

struct setup {
    const char *name;
    enum fault fault;
    const char *find; /* what is wrong then */
    int threads, biases, seats, earn;
    int buffer;       /* so many stores have room in it */
    int calls;        /* of each thread; 0: for ever */
    int may[THREADS]; /* USES, TRIES, STOPS */
};

/* One step of a thread, made in `state`, which is of no use when the thread is stuck. */
struct move {
    const struct setup *setup;
    struct state *state;
    struct thread *me;
    int self;          /* its number */
    int base;          /* where the memory of the bias begins */
    bool stuck;        /* the step cannot be taken, or not yet */
    const char *wrong; /* what must not be, or NULL */
};

/* A thread that chooses what to call, or whom the barrier passes next, has several choices, from 0. */
void bias_step(struct move *m, int choice);
int bias_choices(const struct thread *thread);

/* The oldest store reaches memory. */
void bias_drain(struct state *s, struct thread *thread);

#endif
