/* SPDX-License-Identifier: Apache-2.0
 * What the verbs share in reading their arguments: the next option, values, and words of a refusal. */
#ifndef TOOL_ARGUMENTS_H
#define TOOL_ARGUMENTS_H

#include <getopt.h>
#include <stddef.h>

#include "tool/source.h"

/* The next option, as getopt_long tells it: its letter, or -1 behind the last; 0 with the problem when it is
 * refused. argv[0] is the verb. letters begins with a colon. The first call of a verb has optind 0. */
int arguments_next(int argc, char **argv, const char *letters, const struct option *options,
                   struct problem *problem);

/* Values. They return 0, or -1 with the problem, which begins with the name of the option. */
int arguments_size(const char *option, const char *text, size_t *out, struct problem *problem);
int arguments_number(const char *option, const char *text, long most, long *out, struct problem *problem);

/* What is to be done is missing: "a file to explain". Returns -1 with the problem. */
int arguments_missing(const char *verb, const char *what, struct problem *problem);

/* "granary VERB: TEXT" on standard error. Returns TOOL_WRONG. */
int arguments_wrong(const char *verb, const char *text);

#endif
