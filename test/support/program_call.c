/* SPDX-License-Identifier: Apache-2.0
 * Random programs: calls that a second thread makes. They are made one after the other, so that a
 * seed is the same program every time; what differs is whose thread it is. */
#include <pthread.h>
#include <stdlib.h>

#include "support/program.h"

struct helper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct program_call *call; /* to be made */
    bool done, stop;
    granary *g;
};

static void make(granary *g, struct program_call *call) {
    if (call->kind == PROGRAM_ALLOC) call->status = granary_alloc(g, call->size, call->stream, &call->ptr);
    if (call->kind == PROGRAM_FREE) call->status = granary_free(g, call->ptr);
    if (call->kind == PROGRAM_RECORD_STREAM) call->status = granary_record_stream(g, call->ptr, call->stream);
}

static void *help(void *argument) {
    struct helper *helper = argument;
    pthread_mutex_lock(&helper->lock);
    while (!helper->stop) {
        if (helper->call && !helper->done) {
            make(helper->g, helper->call);
            helper->done = true;
            pthread_cond_broadcast(&helper->changed);
        }
        pthread_cond_wait(&helper->changed, &helper->lock);
    }
    pthread_mutex_unlock(&helper->lock);
    return NULL;
}

int program_call(struct program *p, struct program_call *call) {
    struct helper *helper = p->helper;
    if (!p->helped || rng_once_in(&p->rng, 2)) {
        make(p->g, call);
        return call->status;
    }
    pthread_mutex_lock(&helper->lock);
    helper->call = call;
    helper->done = false;
    pthread_cond_broadcast(&helper->changed);
    while (!helper->done) pthread_cond_wait(&helper->changed, &helper->lock);
    helper->call = NULL;
    pthread_mutex_unlock(&helper->lock);
    return call->status;
}

struct helper *program_helper_start(granary *g) {
    struct helper *helper = calloc(1, sizeof *helper);
    if (!helper) abort();
    helper->g = g;
    pthread_mutex_init(&helper->lock, NULL);
    pthread_cond_init(&helper->changed, NULL);
    if (pthread_create(&helper->thread, NULL, help, helper) != 0) abort();
    return helper;
}

void program_helper_stop(struct helper *helper) {
    pthread_mutex_lock(&helper->lock);
    helper->stop = true;
    pthread_cond_broadcast(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
    pthread_join(helper->thread, NULL);
    free(helper);
}
