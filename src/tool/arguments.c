/* SPDX-License-Identifier: Apache-2.0
 * Which argument getopt_long means when it refuses one. */
#include "tool/arguments.h"

#include <getopt.h>
#include <string.h>

const char *arguments_refused(int argc, char **argv) {
    /* It steps over an argument of several letters with the last of them only. */
    const char *next = optind < argc ? argv[optind] : "";
    if (optopt != 0 && next[0] == '-' && next[1] != '-' && strchr(next + 1, optopt) != NULL) return next;
    return argv[optind - 1];
}
