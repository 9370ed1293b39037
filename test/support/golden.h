/* SPDX-License-Identifier: Apache-2.0
 * Files of test/golden, and plain data as text to compare. */
#ifndef SUPPORT_GOLDEN_H
#define SUPPORT_GOLDEN_H

#include <stddef.h>

struct value;

/* The path of a golden file, in a buffer that the next call overwrites. The folder is
 * $GRANARY_TEST_GOLDEN, else test/golden. */
const char *golden_path(const char *name);

/* A whole file, unpacked; free it with free. Fails the test when it cannot be read. */
char *golden_read(const char *name, size_t *length);

/* Plain data in Python's manner: {'a': [1, (2,), None]}. A whole number that does not fit 64 bits is BIG.
 * Cut to fit. What is nested deeper than a few levels is "...". Returns buffer. */
const char *golden_plain(const struct value *value, char *buffer, size_t room);

#endif
