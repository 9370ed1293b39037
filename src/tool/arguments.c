/* SPDX-License-Identifier: Apache-2.0
 * What the verbs share in reading their arguments. */
#include "tool/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <granary/granary.h>

#include "tool/tool.h"

/* The argument that getopt_long has just refused. */
static const char *refused(int argc, char **argv) {
    /* It steps over an argument of several letters with the last of them only. */
    const char *next = optind < argc ? argv[optind] : "";
    if (optopt != 0 && next[0] == '-' && next[1] != '-' && strchr(next + 1, optopt) != NULL) return next;
    return argv[optind - 1];
}

int arguments_next(int argc, char **argv, const char *letters, const struct option *options,
                   struct problem *problem) {
    int c;
    opterr = 0;
    c = getopt_long(argc, argv, letters, options, NULL);
    if (c == ':')
        problem_set(problem, "%s: its value is missing", argv[optind - 1]);
    else if (c == '?')
        problem_set(problem, "there is no option \"%s\"; see granary %s --help", refused(argc, argv),
                    argv[0]);
    return c == ':' || c == '?' ? 0 : c;
}

/* The library reads sizes in option strings; this is the same reading. */
int arguments_size(const char *option, const char *text, size_t *out, struct problem *problem) {
    struct granary_options options;
    char string[64];
    granary_options_init(&options);
    if (strpbrk(text, ",:") == NULL &&
        (size_t)snprintf(string, sizeof string, "memory_limit:%s", text) < sizeof string &&
        granary_options_parse(&options, string, NULL, NULL) == GRANARY_OK && options.limit_bytes > 0) {
        *out = options.limit_bytes;
        return 0;
    }
    problem_set(problem, "%s: \"%.40s\" is not a size: write 512MiB, 10GiB or a number of bytes", option,
                text);
    return -1;
}

int arguments_number(const char *option, const char *text, long most, long *out, struct problem *problem) {
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno == 0 && *end == 0 && *text >= '0' && *text <= '9' && *out <= most) return 0;
    problem_set(problem, "%s: \"%.40s\" is not a number from 0 to %ld", option, text, most);
    return -1;
}

int arguments_missing(const char *verb, const char *what, struct problem *problem) {
    problem_set(problem, "%s is missing; see granary %s --help", what, verb);
    return -1;
}

int arguments_wrong(const char *verb, const char *text) {
    fprintf(stderr, "granary %s: %s\n", verb, text);
    return TOOL_WRONG;
}
