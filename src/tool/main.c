/* SPDX-License-Identifier: Apache-2.0
 * The granary command: finds the verb and hands over. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <granary/granary.h>

#include "tool/tool.h"

struct verb {
    const char *name, *arguments, *what;
    int (*run)(int argc, char **argv);
    void (*help)(void);
};

static const struct verb verbs[] = {
    {"explain", "FILE...", "why a job ran out of GPU memory, and what would have helped", cmd_explain,
     cmd_explain_help},
    {"report", "FILE", "the same as a page for a browser, with memory over time", cmd_report,
     cmd_report_help},
    {"summary", "FILE...", "the table of PyTorch's memory_summary", cmd_summary, cmd_summary_help},
    {"replay", "FILE...", "what the traffic takes under other settings, on other cards", cmd_replay,
     cmd_replay_help},
    {"options", "", "every setting, its value, and where that came from", cmd_options, cmd_options_help},
};

enum { VERBS = sizeof verbs / sizeof verbs[0] };

static const struct verb *find_verb(const char *name) {
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    return NULL;
}

static int help(void) {
    printf("granary %s: what a job did with GPU memory, and what other settings would have done\n\n",
           granary_version());
    for (size_t i = 0; i < VERBS; i++)
        printf("  granary %s %-*s  %s\n", verbs[i].name, 16 - (int)strlen(verbs[i].name), verbs[i].arguments,
               verbs[i].what);
    fputs("\n"
          "  granary VERB --help        its options\n"
          "  granary --version          the version\n"
          "\n"
          "FILE is a snapshot that PyTorch (torch.cuda.memory._dump_snapshot) or granary wrote, or a trace\n"
          "(granary replay --help). It may be gzipped; - is standard input.\n"
          "\n"
          "Exit status: 0 fine; 1 the job ran out of memory (explain), or the replay (replay); 2 wrong use\n"
          "or bad input, and one line on standard error says what and where.\n",
          stdout);
    return TOOL_FINE;
}

static int no_verb(const char *name) {
    fprintf(stderr, "granary: there is no verb \"%s\"; there are:", name);
    for (size_t i = 0; i < VERBS; i++) fprintf(stderr, " %s", verbs[i].name);
    fputc('\n', stderr);
    return TOOL_WRONG;
}

static int help_on(const char *name) {
    const struct verb *verb = find_verb(name);
    if (verb == NULL) return no_verb(name);
    verb->help();
    return TOOL_FINE;
}

static bool is(const char *word, const char *either, const char *other) {
    return strcmp(word, either) == 0 || strcmp(word, other) == 0;
}

static int run(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : NULL;
    const struct verb *verb;
    if (word == NULL) {
        fprintf(stderr, "granary: a verb is missing; granary --help lists them\n");
        return TOOL_WRONG;
    }
    if (is(word, "--help", "-h")) return help();
    if (is(word, "help", "help")) return argc > 2 ? help_on(argv[2]) : help();
    if (is(word, "--version", "version")) {
        printf("granary %s\n", granary_version());
        return TOOL_FINE;
    }
    verb = find_verb(word);
    return verb != NULL ? verb->run(argc - 1, argv + 1) : no_verb(word);
}

/* A standard stream that is closed stays so: the next file that is opened must not take its place. */
static void keep_closed(void) {
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY}; /* each the one that its user cannot use */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd) return;
}

int main(int argc, char **argv) {
    int rc;
    keep_closed();
    rc = run(argc, argv);
    /* Output that did not reach its reader must not look like success. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("granary: standard output");
        return TOOL_WRONG;
    }
    return rc;
}
