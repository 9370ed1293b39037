/* SPDX-License-Identifier: Apache-2.0
 * The runner: collects the suites of one folder and runs them under Check. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/suites.h"

/* Tests that die on purpose say so on standard error, which nobody wants to read when all is well.
 * It is kept aside and shown when a test failed. A run in one process might not come back to show it. */
static FILE *hide_stderr(int *saved) {
    const char *fork = getenv("CK_FORK");
    FILE *aside;
    *saved = -1;
    if (getenv("CK_VERBOSITY") != NULL || (fork != NULL && strcmp(fork, "no") == 0)) return NULL;
    aside = tmpfile();
    if (aside == NULL) return NULL;
    *saved = dup(STDERR_FILENO);
    if (*saved >= 0 && dup2(fileno(aside), STDERR_FILENO) >= 0) return aside;
    fclose(aside);
    return NULL;
}

static void show_stderr(FILE *aside, int saved, int failed) {
    int c;
    if (aside == NULL) return;
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(aside);
    while (failed > 0 && (c = fgetc(aside)) != EOF) fputc(c, stderr);
    fclose(aside);
}

/* RUNNER_SHARD=i/n runs each n-th suite, from the i-th (from 0), so that n processes share the work.
 * CK_RUN_SUITE, CK_RUN_CASE, CK_FORK and the other variables of Check hold as usual. */
int main(void) {
    const char *verbosity = getenv("CK_VERBOSITY"), *shard = getenv("RUNNER_SHARD");
    struct timespec start, end;
    SRunner *runner = srunner_create(NULL);
    FILE *aside;
    int ran, failed, saved, suites = 0, first = 0, step = 1;

    /* Options of the person who runs the tests must not change what they test. */
    unsetenv("GRANARY_CONF");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    unsetenv("PYTORCH_ALLOC_CONF");

    if (shard != NULL && (sscanf(shard, "%d/%d", &first, &step) != 2 || first < 0 || step < 1)) {
        fprintf(stderr, "RUNNER_SHARD=%s is not i/n\n", shard);
        return EXIT_FAILURE;
    }
    for (int i = 0; runner_suites[i] != NULL; i++) {
        if (i % step != first) continue;
        srunner_add_suite(runner, runner_suites[i]());
        suites++;
    }
    aside = hide_stderr(&saved);
    clock_gettime(CLOCK_MONOTONIC, &start);
    srunner_run_all(runner, verbosity != NULL ? CK_ENV : CK_SILENT);
    clock_gettime(CLOCK_MONOTONIC, &end);

    ran = srunner_ntests_run(runner);
    failed = srunner_ntests_failed(runner);
    show_stderr(aside, saved, failed);
    if (verbosity == NULL) {
        TestResult **bad = srunner_failures(runner);
        for (int i = 0; i < failed; i++)
            printf("%s:%d: %s: %s\n", tr_lfile(bad[i]), tr_lno(bad[i]), tr_tcname(bad[i]), tr_msg(bad[i]));
        free(bad);
    }
    printf("%s: %d suites, %d tests, %d failed, %.1f s\n", runner_kind, suites, ran, failed,
           (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
