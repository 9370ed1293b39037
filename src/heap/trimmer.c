/* SPDX-License-Identifier: Apache-2.0
 * The trimmer: its thread, and one look. */
#include "heap/trimmer.h"

#include <signal.h>
#include <time.h>

#include "heap/reclaim.h"

enum { PERIOD_NS = 50 * 1000 * 1000, PAUSE_NS = 100 * 1000 };

/* One piece; false when there is nothing to give back. */
static bool shed(granary *g) {
    gr_lock_take(&g->miss);
    bool some = gr_heap_held(g) > g->trim_above && gr_reclaim_shed(g, g->trim_above) > 0;
    gr_lock_give(&g->miss);
    return some;
}

/* Sleeps, or until the bell; the mutex is held. True: it is time to stop. */
static bool rest(struct gr_trimmer *t, long ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!t->stop && pthread_cond_timedwait(&t->bell, &t->mutex, &until) == 0) continue;
    return t->stop;
}

static void *run(void *argument) {
    granary *g = argument;
    struct gr_trimmer *t = &g->trimmer;
    bool some = false;
    pthread_mutex_lock(&t->mutex);
    while (!rest(t, some ? PAUSE_NS : PERIOD_NS)) {
        pthread_mutex_unlock(&t->mutex);
        some = shed(g);
        pthread_mutex_lock(&t->mutex);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

int gr_trimmer_start(granary *g) {
    struct gr_trimmer *t = &g->trimmer;
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (g->trim_above == GRANARY_UNLIMITED) return GRANARY_OK;
    if (pthread_condattr_init(&monotonic) != 0) return GRANARY_HOST_MEMORY;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->bell, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    t->running = pthread_create(&t->thread, NULL, run, g) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (t->running) return GRANARY_OK;
    pthread_cond_destroy(&t->bell);
    pthread_mutex_destroy(&t->mutex);
    return GRANARY_HOST_MEMORY;
}

void gr_trimmer_stop(granary *g) {
    struct gr_trimmer *t = &g->trimmer;
    if (!t->running || gr_driver_forked(&g->driver)) return; /* a forked child has none of our threads */
    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_signal(&t->bell);
    pthread_mutex_unlock(&t->mutex);
    pthread_join(t->thread, NULL);
    t->running = false;
    pthread_cond_destroy(&t->bell);
    pthread_mutex_destroy(&t->mutex);
}
