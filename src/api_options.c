/* SPDX-License-Identifier: Apache-2.0
 * The public functions on settings that need no handle: strings in, words out. */
#include <string.h>

#include "base/text.h"
#include "policy/config.h"
#include "policy/effective.h"

void granary_options_init(struct granary_options *options) {
    if (options) gr_options_init(options);
}

int granary_options_parse(struct granary_options *options, const char *string, const char *source,
                          struct granary_option_error *error) {
    return gr_config_parse(options, string, source, GR_CONFIG_STRICT, error);
}

int granary_options_parse_lenient(struct granary_options *options, const char *string, const char *source,
                                  struct granary_option_error *error) {
    return gr_config_parse(options, string, source, GR_CONFIG_LENIENT, error);
}

int granary_options_from_environment(struct granary_options *options, struct granary_option_error *error) {
    return gr_config_from_environment(options, error);
}

static bool is_set_up(const struct granary_options *options) {
    return options && options->struct_size >= sizeof *options;
}

int granary_options_effective(const struct granary_options *options, size_t index,
                              struct granary_option_info *out) {
    struct granary_option_info info = {.struct_size = 0};
    if (!is_set_up(options) || !out) return GRANARY_INVALID;
    const size_t theirs = out->struct_size;
    if (theirs < sizeof theirs || theirs > 65536) return GRANARY_INVALID;
    if (!gr_effective_info(options, index, &info)) return GRANARY_INVALID;
    info.struct_size = theirs;
    memcpy(out, &info, gr_min(theirs, sizeof info));
    if (theirs > sizeof info) memset((char *)out + sizeof info, 0, theirs - sizeof info);
    return GRANARY_OK;
}

int granary_options_warning(const struct granary_options *options, size_t index, char *text, size_t room) {
    if (!is_set_up(options) || !text || room == 0) return GRANARY_INVALID;
    return gr_effective_warning(options, index, text, room) ? GRANARY_OK : GRANARY_INVALID;
}
