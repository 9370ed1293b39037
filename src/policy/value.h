/* SPDX-License-Identifier: Apache-2.0
 * One value of an option: read from a piece of a string into its field, and printed back. What is printed
 * can be read again and gives the same field. Whoever refuses names the token and its column.
 *
 * No state, no locks. */
#ifndef GR_POLICY_VALUE_H
#define GR_POLICY_VALUE_H

#include "policy/options.h"

/* A piece of the string. */
struct gr_span {
    const char *at;
    size_t len;
};

struct gr_reader {
    struct granary_options *options; /* a copy, which replaces the original when all was well */
    const char *string;
    const char *source;
    bool lenient;                       /* written for PyTorch: unknown keys are skipped */
    bool changing;                      /* of a handle in use: keys that are fixed at opening are refused */
    uint8_t origin;                     /* enum gr_origin of what is read */
    struct granary_option_error *error; /* NULL: nobody listens */
    struct gr_span named[GRANARY_OPTION_ROOM]; /* the value each option was given last */
};

struct gr_span gr_value_trim(struct gr_span s);
bool gr_value_is(struct gr_span s, const char *word);

/* Writes "SOURCE: column N: 'token' " followed by the words; returns OPTION. */
int gr_value_refuse(const struct gr_reader *r, struct gr_span token, const char *words, ...) GR_PRINTF(3, 4);

/* OK or OPTION. The value is not empty. */
GR_MUST int gr_value_read(struct gr_reader *r, const struct gr_option *option, struct gr_span value);

/* As one would write it; of an ignored key, what is so whatever is written. */
void gr_value_print(const struct granary_options *options, const struct gr_option *option, char *buffer,
                    size_t room);

#endif
