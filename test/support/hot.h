/* SPDX-License-Identifier: Apache-2.0
 * An assertion for inner loops: Check's own write to a pipe each time, whether they hold or not. */
#ifndef SUPPORT_HOT_H
#define SUPPORT_HOT_H

#include <check.h>

#define HOT_ASSERT(condition)                             \
    do {                                                  \
        if (!(condition)) ck_abort_msg("%s", #condition); \
    } while (0)

#endif
