/* SPDX-License-Identifier: Apache-2.0
 * Options out of strings: "key:value,key:value", the syntax of PYTORCH_CUDA_ALLOC_CONF.
 *
 *      string  := [ quote ] [ entry { "," entry } [ "," ] ] [ quote ]
 *      entry   := key ":" value
 *      value   := word | "[" entries in brackets "]"
 *
 * The rules, each with a test:
 *   - Blanks around anything are dropped, and so is one pair of quotes, ' or ", around the whole.
 *   - The empty string is fine, and one comma at the end; an empty entry elsewhere is an error.
 *   - Keys are matched exactly. A key that is not in options.def is an error, or in a lenient string
 *     (one meant for PyTorch) is skipped together with its value, and remembered for a warning.
 *   - The value of a known key is checked always: its kind, its range, and that nothing follows it.
 *   - Booleans are True, true, 1 and False, false, 0. Sizes may have a unit, also those in MiB.
 *   - The word default, and the word that the table has for the default, bring the default back.
 *   - A key given twice: the last one holds.
 *   - Only the named options change; on an error none does. The error names the source, the token
 *     and its column, counted in bytes from 1.
 *
 * No state, no locks. */
#ifndef GR_POLICY_CONFIG_H
#define GR_POLICY_CONFIG_H

#include "policy/options.h"

/* How a string is read. */
enum gr_config_way {
    GR_CONFIG_STRICT,  /* a key that is not known is an error */
    GR_CONFIG_LENIENT, /* it is skipped */
    GR_CONFIG_CHANGE   /* strict, and a key that is fixed at opening is an error */
};

/* Reads string into options. source names its origin in messages and may be NULL, as may error.
 * OK, INVALID (a pointer is NULL, or options was not set up), or OPTION. */
GR_MUST int gr_config_parse(struct granary_options *options, const char *string, const char *source,
                            enum gr_config_way way, struct granary_option_error *error);

/* Reads the environment, each on top of what comes before it:
 *   - the first of GRANARY_NO_CACHING and PYTORCH_NO_CUDA_MEMORY_CACHING that is set, to a boolean or nothing;
 *   - the first of PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF that is set, be it to nothing, leniently;
 *   - GRANARY_CONF. */
GR_MUST int gr_config_from_environment(struct granary_options *options, struct granary_option_error *error);

#endif
