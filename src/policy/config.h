/* SPDX-License-Identifier: Apache-2.0
 * Options out of strings: "key:value,key:value", the syntax of PYTORCH_CUDA_ALLOC_CONF.
 *
 *      string  := [ quote ] [ entry { "," entry } [ "," ] ] [ quote ]
 *      entry   := key ":" value
 *      value   := word | "[" anything in balanced brackets "]"
 *
 * The rules, each with a test:
 *   - Blanks around anything are dropped, and so is one pair of quotes, ' or ", around the whole.
 *   - The empty string is fine, and one comma at the end; an empty entry elsewhere is an error.
 *   - Keys are matched exactly. A key that is not in options.def is an error, or in a lenient string
 *     (one meant for PyTorch) is skipped together with its value.
 *   - The value of a known key is checked always: its kind, its range, and that nothing follows it.
 *   - Booleans are True, true, 1 and False, false, 0.
 *   - A key given twice: the last one holds.
 *   - Only the named options change; on an error none does. The error names the source, the token
 *     and its column, counted in bytes from 1.
 *
 * No state, no locks. */
#ifndef GR_POLICY_CONFIG_H
#define GR_POLICY_CONFIG_H

#include <granary/granary.h>

#include "base/base.h"

enum { GR_CONFIG_HISTORY_ENTRIES = 100000 }; /* the default */

/* Fills in the defaults. */
void gr_config_init(struct granary_options *options);

/* Reads string into options. source names its origin in messages and may be NULL, as may error.
 * OK, INVALID (a pointer is NULL, or options was not set up), or OPTION. */
GR_MUST int gr_config_parse(struct granary_options *options, const char *string, const char *source,
                            bool lenient, struct granary_option_error *error);

/* Reads the first of GRANARY_CONF, PYTORCH_CUDA_ALLOC_CONF and PYTORCH_ALLOC_CONF that is set, be it
 * to nothing; the latter two leniently. */
GR_MUST int gr_config_from_environment(struct granary_options *options, struct granary_option_error *error);

#endif
