/* SPDX-License-Identifier: Apache-2.0
 * The granary command: finds the verb and hands over. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <granary/granary.h>

#include "tool/tool.h"

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    void (*help)(void);
};

static const struct verb verbs[] = {
    {"replay", cmd_replay, cmd_replay_help},    {"explain", cmd_explain, cmd_explain_help},
    {"options", cmd_options, cmd_options_help}, {"summary", cmd_summary, cmd_summary_help},
    {"report", cmd_report, cmd_report_help},
};

static int help(void) {
    printf("granary %s: an expandable-segment allocator for GPU memory\n\n"
           "  granary VERB [OPTION]... [FILE]...\n"
           "  granary --help        this text\n"
           "  granary --version     the version\n\n",
           granary_version());
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (i > 0) putchar('\n');
        verbs[i].help();
    }
    printf("\nExit status: 0 fine; 1 the traffic ran out of memory; 2 wrong use or bad input, and one\n"
           "line on standard error says what and where.\n");
    return TOOL_FINE;
}

/* A standard stream that is closed stays so: the next file that is opened must not take its place. */
static void keep_closed(void) {
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY}; /* each the one that its user cannot use */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd) return;
}

int main(int argc, char **argv) {
    int rc = TOOL_WRONG;
    const char *verb = argc > 1 ? argv[1] : NULL;

    keep_closed();
    if (verb == NULL) {
        fprintf(stderr, "granary: a verb is missing; granary --help lists them\n");
        return TOOL_WRONG;
    }
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0) {
        rc = help();
    } else if (strcmp(verb, "--version") == 0 || strcmp(verb, "version") == 0) {
        printf("granary %s\n", granary_version());
        rc = TOOL_FINE;
    } else {
        size_t i = 0, count = sizeof verbs / sizeof verbs[0];
        while (i < count && strcmp(verbs[i].name, verb) != 0) i++;
        if (i < count)
            rc = verbs[i].run(argc - 1, argv + 1);
        else
            fprintf(stderr, "granary: there is no verb \"%s\"; granary --help lists them\n", verb);
    }
    /* Output that did not reach its reader must not look like success. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("granary: standard output");
        return TOOL_WRONG;
    }
    return rc;
}
