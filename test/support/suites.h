/* SPDX-License-Identifier: Apache-2.0
 * The list of suites of one runner, which the Makefile writes from the names of the test files. */
#ifndef SUPPORT_SUITES_H
#define SUPPORT_SUITES_H

#include <check.h>

typedef Suite *(*runner_maker)(void);

/* Ends with NULL. */
extern const runner_maker runner_suites[];

/* "unit", "prop" or "fault". */
extern const char *const runner_kind;

#endif
