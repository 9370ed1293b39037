/* SPDX-License-Identifier: Apache-2.0
 * Input files: a whole file in memory, unpacked when it is gzipped. */
#ifndef TOOL_SOURCE_H
#define TOOL_SOURCE_H

#include <stddef.h>

/* One sentence about what is wrong with an input, "file:line:column: what" where there is a line. */
struct problem {
    char text[512];
};

__attribute__((format(printf, 2, 3))) void problem_set(struct problem *problem, const char *format, ...);

/* Reads path ("-" is standard input) into *text, which ends with a 0 byte that *length does not
 * count; free it with free. Returns 0, or -1 with the problem, and nothing to free. A packed file may be
 * small and hold more than the machine can: what does not end within half of its memory is refused. */
int source_read(const char *path, char **text, size_t *length, struct problem *problem);
/* The same with another limit, to a step of 64 KiB. */
int source_read_most(const char *path, size_t most, char **text, size_t *length, struct problem *problem);

#endif
