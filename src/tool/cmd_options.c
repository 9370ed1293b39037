/* SPDX-License-Identifier: Apache-2.0
 * granary options: every option with the value in force, where it came from, and what has no effect. */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <granary/options.h>

#include "tool/arguments.h"
#include "tool/print.h"
#include "tool/tool.h"

void cmd_options_help(void) {
    fputs(
        "granary options [--conf STRING]... [--lenient] [--json]\n"
        "  Lists every option with its value, where that came from, and what it does; then the settings\n"
        "  that have no effect, and why.\n"
        "\n"
        "  --conf STRING   options as in GRANARY_CONF, instead of the environment; of several each on top\n"
        "                  of those before it. The environment is PYTORCH_CUDA_ALLOC_CONF, or else\n"
        "                  PYTORCH_ALLOC_CONF, and GRANARY_CONF on top of it\n"
        "  --lenient       keys of --conf that granary does not know are skipped, as those of the PyTorch\n"
        "                  variables are\n"
        "  --json          one object a line: key value origin default values changeable ignored note what;\n"
        "                  then one with a warning each\n",
        stdout);
}

static void print_table(const struct granary_options *options) {
    struct granary_option_info info = {.struct_size = sizeof info};
    struct table table;
    table_init(&table, 4);
    table_put(&table, "option");
    table_put(&table, "value");
    table_put(&table, "from");
    table_put(&table, "what it does");
    table_rule(&table);
    for (size_t i = 0; granary_options_effective(options, i, &info) == GRANARY_OK; i++) {
        if (info.ignored && strcmp(info.origin, "default") == 0) continue; /* nobody asked */
        table_put(&table, "%s", info.key);
        table_put(&table, "%s", info.value);
        table_put(&table, "%s", info.origin);
        table_put(&table, "%s", info.sentence);
    }
    table_fold(&table, stdout);
    table_print(&table, stdout, 4);
}

static void print_json(const struct granary_options *options) {
    struct granary_option_info info = {.struct_size = sizeof info};
    for (size_t i = 0; granary_options_effective(options, i, &info) == GRANARY_OK; i++) {
        const char *const fields[][2] = {{"{\"key\":", info.key},       {",\"value\":", info.value},
                                         {",\"origin\":", info.origin}, {",\"default\":", info.standard},
                                         {",\"values\":", info.values}, {",\"note\":", info.note},
                                         {",\"what\":", info.sentence}};
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
            fputs(fields[f][0], stdout);
            json_string(stdout, fields[f][1]);
        }
        printf(",\"changeable\":%s,\"ignored\":%s}\n", info.changeable ? "true" : "false",
               info.ignored ? "true" : "false");
    }
}

static void print_warnings(const struct granary_options *options, bool json) {
    char text[512];
    for (size_t i = 0; granary_options_warning(options, i, text, sizeof text) == GRANARY_OK; i++) {
        if (json) {
            fputs("{\"warning\":", stdout);
            json_string(stdout, text);
            puts("}");
        } else {
            printf("%s  %s\n", i == 0 ? "\nwarnings:\n" : "", text);
        }
    }
}

int cmd_options(int argc, char **argv) {
    static const struct option table[] = {{"conf", required_argument, NULL, 'c'},
                                          {"lenient", no_argument, NULL, 'l'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct granary_options options;
    struct granary_option_error error;
    struct problem problem;
    bool json = false, lenient = false, given = false;
    int c;

    granary_options_init(&options);
    optind = 0;
    while ((c = arguments_next(argc, argv, ":h", table, &problem)) != -1) {
        switch (c) {
        case 'c': {
            int status = lenient ? granary_options_parse_lenient(&options, optarg, "--conf", &error)
                                 : granary_options_parse(&options, optarg, "--conf", &error);
            if (status != GRANARY_OK) return arguments_wrong(argv[0], error.text);
            given = true;
            break;
        }
        case 'l': lenient = true; break;
        case 'j': json = true; break;
        case 'h': cmd_options_help(); return TOOL_FINE;
        default: return arguments_wrong(argv[0], problem.text);
        }
    }
    if (optind < argc) {
        problem_set(&problem, "it takes no file: %.200s", argv[optind]);
        return arguments_wrong(argv[0], problem.text);
    }
    if (!given && granary_options_from_environment(&options, &error) != GRANARY_OK)
        return arguments_wrong(argv[0], error.text);
    if (json)
        print_json(&options);
    else
        print_table(&options);
    print_warnings(&options, json);
    return TOOL_FINE;
}
