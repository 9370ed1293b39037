/* SPDX-License-Identifier: Apache-2.0
 * Stream order, by random programs that the oracle watches: no memory is handed out before its last
 * use is over, nothing is lost, and captures are left alone.
 *
 *      GRANARY_SEED=n       runs the batch of that seed up to it, and nothing else; says what it does
 *      GRANARY_PROGRAMS=n   how many programs (default below)
 *      GRANARY_FIRST=n      the first seed (default 1) */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "support/program.h"

#if GR_CHECK > 0 /* builds that check, sanitizers among them, take their time */
enum { PROGRAMS = 20000 };
#else
enum { PROGRAMS = 120000 };
#endif
enum { PROGRESS = 500000 };

static uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void add(struct program_tally *sum, const struct program_tally *one) {
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)one;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i];
}

/* Runs the seeds of one batch, from its first to `last`. False: the words are printed. */
static bool run_batch(uint64_t first, uint64_t last, bool loud, struct program_tally *sum) {
    static struct program p;
    program_open(&p, first);
    for (uint64_t seed = first; seed <= last; seed++) {
        p.loud = loud && seed == last;
        if (!program_run(&p, seed)) break;
    }
    if (!p.words[0]) program_close(&p);
    add(sum, &p.tally);
    if (p.words[0])
        printf("order: %s\norder: run it again with GRANARY_SEED=%llu\n", p.words,
               (unsigned long long)p.seed);
    fflush(stdout);
    return !p.words[0];
}

/* Worker `me` of `all`: every all-th batch. Its tally goes through the pipe. */
static int work(int me, int all, uint64_t first, uint64_t count, int pipe_end) {
    struct program_tally sum = {0};
    double began = seconds();
    uint64_t shown = 0, begin = first / PROGRAM_BATCH,
             end = (first + count + PROGRAM_BATCH - 1) / PROGRAM_BATCH;
    bool good = true;
    for (uint64_t batch = begin + (uint64_t)me; batch < end && good; batch += (uint64_t)all) {
        good = run_batch(batch * PROGRAM_BATCH, batch * PROGRAM_BATCH + PROGRAM_BATCH - 1, false, &sum);
        if (me == 0 && sum.programs * (uint64_t)all / PROGRESS > shown) {
            shown = sum.programs * (uint64_t)all / PROGRESS;
            printf("order: about %llu programs, %.0f s\n", (unsigned long long)(shown * PROGRESS),
                   seconds() - began);
            fflush(stdout);
        }
    }
    if (write(pipe_end, &sum, sizeof sum) != (ssize_t)sizeof sum) return 2;
    return good ? 0 : 1;
}

START_TEST(random_programs_use_no_memory_out_of_order) {
    struct program_tally sum = {0}, one;
    uint64_t seed = from_environment("GRANARY_SEED", UINT64_MAX),
             first = from_environment("GRANARY_FIRST", 1);
    uint64_t count = from_environment("GRANARY_PROGRAMS", PROGRAMS);
    if (seed != UINT64_MAX) {
        ck_assert(run_batch(seed / PROGRAM_BATCH * PROGRAM_BATCH, seed, true, &sum));
        return;
    }
    int workers = (int)gr_min(64, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN)), ends[2], failed = 0;
    double began = seconds();
    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    pid_t child[64] = {0};
    for (int i = 0; i < workers; i++) {
        child[i] = fork();
        ck_assert_int_ge(child[i], 0);
        if (child[i] == 0) _exit(work(i, workers, first, count, ends[1]));
    }
    for (int i = 0; i < workers; i++) {
        int status = 0;
        pid_t ended = wait(&status);
        ck_assert_int_gt(ended, 0);
        bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        for (int j = 0; j < workers; j++) {
            if (child[j] == ended) child[j] = 0;
            if (!good && !failed && child[j] > 0) kill(child[j], SIGKILL); /* one finding is enough */
        }
        failed += !good;
    }
    close(ends[1]);
    while (read(ends[0], &one, sizeof one) == (ssize_t)sizeof one) add(&sum, &one);
    close(ends[0]);
    printf("order: %llu programs from seed %llu: %llu operations, %llu kernels (%llu foreign, %llu nodes), "
           "%llu captures "
           "(%llu broken), %llu launches, %llu reused in capture, %llu out of memory; %.1f s\n",
           (unsigned long long)sum.programs, (unsigned long long)first, (unsigned long long)sum.operations,
           (unsigned long long)sum.kernels, (unsigned long long)sum.foreign, (unsigned long long)sum.nodes,
           (unsigned long long)sum.captures, (unsigned long long)sum.broken, (unsigned long long)sum.launches,
           (unsigned long long)sum.reused, (unsigned long long)sum.failed, seconds() - began);
    fflush(stdout);
    ck_assert_int_eq(failed, 0);
    /* Programs that try nothing prove nothing. */
    if (count >= 1000)
        ck_assert(sum.foreign > count && sum.nodes > count / 2 && sum.launches > count / 8 && sum.failed > 0);
}
END_TEST

Suite *suite_order(void) {
    Suite *suite = suite_create("order");
    TCase *random = tcase_create("random");
    tcase_set_timeout(random, 6 * 3600);
    tcase_add_test(random, random_programs_use_no_memory_out_of_order);
    suite_add_tcase(suite, random);
    return suite;
}
