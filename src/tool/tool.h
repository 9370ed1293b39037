/* SPDX-License-Identifier: Apache-2.0
 * The verbs of the granary command and its exit status. */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

enum tool_exit {
    TOOL_FINE = 0,
    TOOL_OUT_OF_MEMORY = 1, /* the traffic ran out of memory */
    TOOL_WRONG = 2          /* wrong use or bad input: one line on standard error says what and where */
};

/* argv[0] is the verb. */
int cmd_replay(int argc, char **argv);
void cmd_replay_help(void);
int cmd_explain(int argc, char **argv);
void cmd_explain_help(void);
int cmd_options(int argc, char **argv);
void cmd_options_help(void);
int cmd_summary(int argc, char **argv);
void cmd_summary_help(void);
int cmd_report(int argc, char **argv);
void cmd_report_help(void);

#endif
