/* SPDX-License-Identifier: Apache-2.0
 * What the verbs say of options that they do not have. */
#ifndef TOOL_ARGUMENTS_H
#define TOOL_ARGUMENTS_H

/* The argument that getopt_long has just refused. */
const char *arguments_refused(int argc, char **argv);

#endif
