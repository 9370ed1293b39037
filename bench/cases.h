/* SPDX-License-Identifier: Apache-2.0
 * Four small programs whose least possible memory is known exactly. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include <stdint.h>
#include <stdio.h>

#include "recorded.h"
#include "tool/replay.h"

enum { CASES = 4, EAGER = MODES, CASE_MODES };

struct case_result {
    uint64_t reserved[CASE_MODES]; /* peak, in bytes: classic, expandable, expandable with reclaim:eager */
};

/* Returns 0, or -1 with the problem. driver is not AUTO. */
int cases_run(enum replay_driver driver, struct case_result results[CASES], struct problem *problem);
void cases_print(const struct case_result results[CASES]);
void cases_json(const struct case_result results[CASES], FILE *to);

#endif
