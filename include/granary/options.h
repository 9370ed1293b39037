/* SPDX-License-Identifier: Apache-2.0
 * granary: settings in words. What may be set, what is set, where it came from, what has no effect; and
 * changing the settings of a handle that is in use.
 *
 *      struct granary_options options = {.struct_size = sizeof options};
 *      struct granary_option_info info = {.struct_size = sizeof info};
 *      granary_get_options(g, &options);
 *      for (size_t i = 0; granary_options_effective(&options, i, &info) == GRANARY_OK; i++)
 *          printf("%s = %s (%s)\n", info.key, info.value, info.origin);
 *
 * Two settings that quarrel are never obeyed in silence: granary_options_warning says which one has no
 * effect, and why. */
#ifndef GRANARY_OPTIONS_H
#define GRANARY_OPTIONS_H

#include <granary/granary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Like granary_options_parse, for strings that were written for PyTorch: a key that granary does not know
 * is skipped with its value. The values of known keys are checked all the same.
 * Driver: never.  Capture: allowed.  Fails: INVALID, OPTION. */
GRANARY_API int granary_options_parse_lenient(struct granary_options *options, const char *string,
                                              const char *source, struct granary_option_error *error);

/* One key. The texts behind pointers live as long as the library. */
struct granary_option_info {
    size_t struct_size;
    const char *key;
    const char *sentence; /* what it does; of a key that is ignored, why */
    const char *values;   /* what may be written */
    const char *standard; /* the default */
    const char *origin;   /* "default", "program", "string", the name of a variable, "device" */
    int changeable;       /* 1: granary_update_options takes it */
    int ignored;          /* 1: a key of PyTorch's that sets nothing here; value is what is so all the same */
    char value[512];      /* in force, as one would write it */
    char note[256];       /* what keeps it from having its effect, as these settings stand; or "" */
};

/* The index-th key, from 0.
 * Driver: never.  Capture: allowed.  Fails: INVALID: past the last; a pointer is NULL; not set up. */
GRANARY_API int granary_options_effective(const struct granary_options *options, size_t index,
                                          struct granary_option_info *out);

/* The index-th thing, from 0, that was said and is not done: keys that were skipped or are ignored, variables
 * that were not read, settings that have no effect beside others. One sentence, cut to fit in room bytes.
 * Driver: never.  Capture: allowed.  Fails: INVALID: past the last; a pointer is NULL; not set up. */
GRANARY_API int granary_options_warning(const struct granary_options *options, size_t index, char *text,
                                        size_t room);

/* ---- of an open handle -------------------------------------------------------------------- */

/* The settings in force. When the device has no expandable segments, they read as off, by "device".
 * Driver: never.  Capture: allowed.  Fails: INVALID. */
GRANARY_API int granary_get_options(granary *g, struct granary_options *out);

/* Changes the settings that string names, and no others; what is held already stays as it is, and what is
 * made from now on follows the change. Keys that are fixed at opening are refused, at their column. With
 * expandable_segments switched, blocks of the other kind stay valid; their free memory waits for the switch
 * back, or is given back when memory is short. error may be NULL.
 * Driver: only to give back what a smaller handle_cache has no room for.  Capture: allowed.
 * Fails: INVALID, OPTION, UNSUPPORTED: the device has no expandable segments. */
GRANARY_API int granary_update_options(granary *g, const char *string, struct granary_option_error *error);

/* push remembers the settings and then updates them; pop brings back, exactly, those that the last push
 * remembered, and so takes back every update and granary_set_limit in between.
 * Driver: like update.  Capture: allowed.
 * Fails: INVALID; push: like update, HOST_MEMORY; pop: ORDER: nothing is remembered. */
GRANARY_API int granary_push_options(granary *g, const char *string, struct granary_option_error *error);
GRANARY_API int granary_pop_options(granary *g);

/* Puts a stream in a class of expandable_segments_reserve_by_class, for the ranges that its pools reserve
 * from now on; "" takes it out. A class that the settings do not know reserves like a stream without one.
 * Driver: never.  Capture: allowed.  Fails: INVALID: the name is too long; HOST_MEMORY. */
GRANARY_API int granary_stream_set_class(granary *g, granary_stream stream, const char *name);

#ifdef __cplusplus
}
#endif
#endif
