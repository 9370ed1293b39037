/* SPDX-License-Identifier: Apache-2.0
 * The table of options (options.def) as data, and what holds for settings as a whole.
 *
 *      options.def ──> gr_options[] ──> value.h     one value read or printed
 *                                   ├─> config.h    strings and variables
 *                                   └─> effective.h what is in force, what has no effect
 *
 * Several keys may set one field. Its origin is kept once, with the first of them.
 *
 * No state, no locks. */
#ifndef GR_POLICY_OPTIONS_H
#define GR_POLICY_OPTIONS_H

#include <granary/options.h>

#include "base/base.h"

enum gr_option_kind {
    GR_OPTION_BOOL,
    GR_OPTION_CHOICE,
    GR_OPTION_MIB,
    GR_OPTION_SIZE,
    GR_OPTION_FRACTION,
    GR_OPTION_PART,
    GR_OPTION_DIVISIONS,
    GR_OPTION_RESERVE,
    GR_OPTION_CLASSES,
    GR_OPTION_COUNT,  /* a whole number; of ignored keys only */
    GR_OPTION_REFUSED /* a CHOICE of one; of ignored keys only */
};

enum { GR_OPTION_OPEN, GR_OPTION_ANY };

enum { GR_OPTIONS_HISTORY_ENTRIES = 100000 }; /* the default */

/* Smaller parts of anything, and larger multiples, are a mistake, and not worth the digits of printing them. */
#define GR_OPTION_LEAST 1e-6
#define GR_OPTION_MOST 1e17

struct gr_option {
    const char *key;
    enum gr_option_kind kind;
    bool ignored;
    bool changeable;
    size_t field; /* offset in struct granary_options; not of ignored ones */
    size_t low, high;
    const char *name; /* of the field */
    const char *values, *standard, *sentence;
};

extern const struct gr_option gr_options[];
extern const size_t gr_option_count;

/* Where a value came from. */
enum gr_origin {
    GR_FROM_DEFAULT,
    GR_FROM_STRING,
    GR_FROM_GRANARY_CONF,
    GR_FROM_PYTORCH_CUDA_ALLOC_CONF,
    GR_FROM_PYTORCH_ALLOC_CONF,
    GR_FROM_GRANARY_NO_CACHING,
    GR_FROM_PYTORCH_NO_CUDA_MEMORY_CACHING,
    GR_FROM_DEVICE
};

extern const struct granary_options gr_options_standard;
/* Fills in the defaults. */
void gr_options_init(struct granary_options *options);

/* The option of this key or alias, or NULL. */
const struct gr_option *gr_option_find(const char *key, size_t len);

/* Place of its origin in granary_options.origin. */
size_t gr_option_owner(const struct gr_option *option);

/* Bytes of its field. */
size_t gr_option_size(const struct gr_option *option);
static inline void *gr_option_field(const struct gr_option *option, struct granary_options *options) {
    return (char *)options + option->field;
}
static inline const void *gr_option_value(const struct gr_option *option,
                                          const struct granary_options *options) {
    return (const char *)options + option->field;
}

/* Is its field what the defaults have? */
bool gr_option_is_standard(const struct gr_option *option, const struct granary_options *options);

/* OK; or INVALID, when a field lies outside of what its key takes or does not go with another: reason says
 * which, with its value. */
GR_MUST int gr_options_check(const struct granary_options *options, char *reason, size_t room);

#endif
