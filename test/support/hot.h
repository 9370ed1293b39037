/* SPDX-License-Identifier: Apache-2.0
 * Assertions for inner loops: Check's own write to a pipe each time, whether they hold or not. */
#ifndef SUPPORT_HOT_H
#define SUPPORT_HOT_H

#include <check.h>

#define HOT_ASSERT(condition) HOT_ASSERT_MSG(condition, "%s", #condition)
#define HOT_ASSERT_MSG(condition, ...)               \
    do {                                             \
        if (!(condition)) ck_abort_msg(__VA_ARGS__); \
    } while (0)

#endif
