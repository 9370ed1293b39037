/* SPDX-License-Identifier: Apache-2.0
 * Settings in words: each key with its value and origin, and what was said but is not done.
 *
 * No state, no locks. */
#ifndef GR_POLICY_EFFECTIVE_H
#define GR_POLICY_EFFECTIVE_H

#include "policy/options.h"

/* The index-th key; false past the last. struct_size of out is left alone. */
GR_MUST bool gr_effective_info(const struct granary_options *options, size_t index,
                               struct granary_option_info *out);

/* The index-th warning; false past the last. */
GR_MUST bool gr_effective_warning(const struct granary_options *options, size_t index, char *text,
                                  size_t room);

#endif
