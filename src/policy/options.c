/* SPDX-License-Identifier: Apache-2.0
 * The table of options, defaults, and the check of settings that a program filled in. */
#include "policy/options.h"

#include <string.h>

#include "base/text.h"
#include "policy/sizing.h"

const struct gr_option gr_options[] = {
#define GR_OPTION(key, type, field, low, high, values, standard, when, sentence) \
    {                                                                            \
        #key,                                                                    \
        GR_OPTION_##type,                                                        \
        false,                                                                   \
        GR_OPTION_##when,                                                        \
        offsetof(struct granary_options, field),                                 \
        low,                                                                     \
        high,                                                                    \
        #field,                                                                  \
        values,                                                                  \
        standard,                                                                \
        sentence},
#define GR_IGNORED(key, type, low, high, values, standard, sentence) \
    {#key, GR_OPTION_##type, true, true, 0, low, high, "", values, standard, sentence},
#define GR_ALIAS(other, key)
#include "policy/options.def"
#undef GR_OPTION
#undef GR_IGNORED
#undef GR_ALIAS
};

const size_t gr_option_count = GR_COUNT(gr_options);
_Static_assert(GR_COUNT(gr_options) <= GRANARY_OPTION_ROOM, "every key has a place for its origin");

static const char *const aliases[][2] = {
#define GR_OPTION(key, type, field, low, high, values, standard, when, sentence)
#define GR_IGNORED(key, type, low, high, values, standard, sentence)
#define GR_ALIAS(other, key) {#other, #key},
#include "policy/options.def"
#undef GR_OPTION
#undef GR_IGNORED
#undef GR_ALIAS
};

/* Static, so that padding is 0 too: settings are compared as bytes. */
const struct granary_options gr_options_standard = {
    .struct_size = sizeof(struct granary_options),
    .driver = GRANARY_DRIVER_CUDA,
    .expandable_segments = 1,
    .limit_bytes = GRANARY_UNLIMITED,
    .limit_fraction = 1,
    .max_split_size = GRANARY_UNLIMITED,
    .reclaim = GRANARY_RECLAIM_PRESSURE,
    .extent_bytes = 8 * GR_MIB,
    .trim_above = GRANARY_UNLIMITED,
    .capture_reuse = GRANARY_REUSE_STREAM,
    .capture_marker = GRANARY_MARKER_TERMINALS,
    .large_segment_size = GR_SIZING_LARGE_SEGMENT,
    .history_stacks = GRANARY_STACKS_ALL,
    .history_entries = GR_OPTIONS_HISTORY_ENTRIES,
};

void gr_options_init(struct granary_options *options) {
    memcpy(options, &gr_options_standard, sizeof *options);
}

static bool is(const char *word, const char *key, size_t len) {
    return strlen(word) == len && memcmp(word, key, len) == 0;
}

const struct gr_option *gr_option_find(const char *key, size_t len) {
    for (size_t i = 0; i < GR_COUNT(aliases); i++)
        if (is(aliases[i][0], key, len)) {
            key = aliases[i][1];
            len = strlen(key);
            break;
        }
    for (size_t i = 0; i < gr_option_count; i++)
        if (is(gr_options[i].key, key, len)) return &gr_options[i];
    return NULL;
}

size_t gr_option_owner(const struct gr_option *option) {
    size_t own = (size_t)(option - gr_options);
    for (size_t i = 0; i < own && !option->ignored; i++)
        if (!gr_options[i].ignored && gr_options[i].field == option->field) return i;
    return own;
}

size_t gr_option_size(const struct gr_option *option) {
    switch (option->kind) {
    case GR_OPTION_BOOL:
    case GR_OPTION_CHOICE: return sizeof(int);
    case GR_OPTION_MIB:
    case GR_OPTION_SIZE: return sizeof(size_t);
    case GR_OPTION_FRACTION:
    case GR_OPTION_PART: return sizeof(double);
    case GR_OPTION_DIVISIONS: return sizeof(uint32_t[GRANARY_SIZE_INTERVALS]);
    case GR_OPTION_RESERVE: return sizeof(struct granary_reserve);
    case GR_OPTION_CLASSES: return sizeof(struct granary_reserve_class[GRANARY_RESERVE_CLASSES]);
    case GR_OPTION_COUNT:
    case GR_OPTION_REFUSED: break;
    }
    return 0;
}

bool gr_option_is_standard(const struct gr_option *option, const struct granary_options *options) {
    return option->ignored ||
           memcmp(gr_option_value(option, options), gr_option_value(option, &gr_options_standard),
                  gr_option_size(option)) == 0;
}

/* ---- checking ----------------------------------------------------------------------------- */

/* A decimal that a string could have said; no NaN. */
static bool is_decimal(double number) {
    return number == 0 || (number >= GR_OPTION_LEAST && number <= GR_OPTION_MOST);
}

static bool is_reserve(const struct granary_reserve *reserve) {
    return is_decimal(reserve->fraction);
}

static bool are_classes(const struct granary_reserve_class *classes) {
    for (size_t i = 0; i < GRANARY_RESERVE_CLASSES && classes[i].name[0]; i++)
        if (!memchr(classes[i].name, 0, GRANARY_CLASS_ROOM) || !is_reserve(&classes[i].reserve)) return false;
    return true;
}

static bool are_divisions(const uint32_t *divisions) {
    for (size_t i = 0; i < GRANARY_SIZE_INTERVALS; i++)
        if (divisions[i] != 0 && !gr_is_power(divisions[i])) return false;
    return true;
}

/* True: the field is one that its key could have been given, or the default. Else its value is put into
 * words. */
static bool check_field(const struct gr_option *option, const struct granary_options *options, char *words,
                        size_t room) {
    const void *field = gr_option_value(option, options);
    double decimal;
    size_t size;
    int choice;
    if (gr_option_is_standard(option, options)) return true;
    gr_text_put(words, room, "not valid");
    switch (option->kind) {
    case GR_OPTION_CHOICE:
        choice = *(const int *)field;
        gr_text_put(words, room, "%d", choice);
        return choice >= 0 && (size_t)choice <= option->high;
    case GR_OPTION_MIB:
        size = *(const size_t *)field;
        gr_text_put(words, room, "%zu bytes", size);
        return size >= option->low * GR_MIB && size / GR_MIB <= option->high;
    case GR_OPTION_SIZE:
        size = *(const size_t *)field;
        gr_text_put(words, room, "%zu bytes", size);
        return size >= option->low && size <= option->high;
    case GR_OPTION_FRACTION:
        decimal = *(const double *)field;
        gr_text_put(words, room, "%g", decimal);
        return is_decimal(decimal) && decimal >= (double)option->low && decimal <= (double)option->high;
    case GR_OPTION_PART:
        decimal = *(const double *)field;
        gr_text_put(words, room, "%g", decimal);
        return is_decimal(decimal) && decimal > (double)option->low && decimal < (double)option->high;
    case GR_OPTION_DIVISIONS: return are_divisions(field);
    case GR_OPTION_RESERVE: return is_reserve(field);
    case GR_OPTION_CLASSES: return are_classes(field);
    case GR_OPTION_BOOL: /* anything but 0 is yes */
    case GR_OPTION_COUNT:
    case GR_OPTION_REFUSED: break;
    }
    return true;
}

int gr_options_check(const struct granary_options *options, char *reason, size_t room) {
    char words[64];
    for (size_t i = 0; i < gr_option_count; i++) {
        const struct gr_option *option = &gr_options[i];
        if (option->ignored || check_field(option, options, words, sizeof words)) continue;
        gr_text_put(reason, room, "options.%s is %s; %s: %s", option->name, words, option->key,
                    option->values);
        return GRANARY_INVALID;
    }
    if (options->large_segment_size % GR_SIZING_UNIT != 0) {
        gr_text_put(reason, room, "options.large_segment_size is %zu bytes, no multiple of %zu",
                    options->large_segment_size, GR_SIZING_UNIT);
        return GRANARY_INVALID;
    }
    size_t least = options->large_segment_size, rounding = options->max_non_split_rounding;
    if (options->max_split_size >= least && (rounding == 0 || rounding >= least)) return GRANARY_OK;
    bool split = options->max_split_size < least;
    gr_text_put(reason, room, "options.%s is %zu bytes; at least large_segment_size, which is %zu",
                split ? "max_split_size" : "max_non_split_rounding",
                split ? options->max_split_size : rounding, least);
    return GRANARY_INVALID;
}
