/* SPDX-License-Identifier: Apache-2.0
 * Values of options: reading each kind with its range, and printing it. */
#include "policy/value.h"

#include <stdarg.h>
#include <string.h>

#include "base/text.h"

/* ---- pieces of a string ----------------------------------------------------------------------- */

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct gr_span gr_value_trim(struct gr_span s) {
    while (s.len > 0 && is_blank(s.at[0])) s.at++, s.len--;
    while (s.len > 0 && is_blank(s.at[s.len - 1])) s.len--;
    return s;
}

bool gr_value_is(struct gr_span s, const char *word) {
    return strlen(word) == s.len && memcmp(s.at, word, s.len) == 0;
}

int gr_value_refuse(const struct gr_reader *r, struct gr_span token, const char *words, ...) {
    struct granary_option_error *e = r->error;
    if (e == NULL) return GRANARY_OPTION;
    e->column = (size_t)(token.at - r->string) + 1;
    gr_text_quote(e->token, sizeof e->token, token.at, token.len);
    bool cut = token.len > 32; /* long rubbish must not push the words out of the sentence */
    gr_text_put(e->text, sizeof e->text, "%.40s: column %zu: '%.32s%s' ", r->source, e->column, e->token,
                cut ? "..." : "");
    va_list arguments;
    va_start(arguments, words);
    gr_text_add_list(e->text, sizeof e->text, words, arguments);
    va_end(arguments);
    return GRANARY_OPTION;
}

/* ---- plain values ----------------------------------------------------------------------------- */

static int read_bool(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                     int *out) {
    bool yes = gr_value_is(value, "True") || gr_value_is(value, "true") || gr_value_is(value, "1");
    bool no = gr_value_is(value, "False") || gr_value_is(value, "false") || gr_value_is(value, "0");
    if (!yes && !no) return gr_value_refuse(r, value, "is no value for %s: True or False", option->key);
    *out = yes;
    return GRANARY_OK;
}

/* Place of the value in the option's words, or -1. */
static int place_of(const struct gr_option *option, struct gr_span value) {
    const char *word = option->values;
    for (int place = 0; word; place++) {
        const char *bar = strchr(word, '|');
        size_t len = bar ? (size_t)(bar - word) : strlen(word);
        if (len == value.len && memcmp(word, value.at, len) == 0) return place;
        word = bar ? bar + 1 : NULL;
    }
    return -1;
}

static int read_choice(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                       int *out) {
    int place = place_of(option, value);
    if (place < 0) return gr_value_refuse(r, value, "is no value for %s: %s", option->key, option->values);
    *out = place;
    return GRANARY_OK;
}

static int check_range(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                       enum gr_text_result result, size_t number, const char *unit) {
    if (result == GR_TEXT_OVERFLOW || number > option->high)
        return gr_value_refuse(r, value, "is too large for %s: at most %zu%s", option->key, option->high,
                               unit);
    if (number < option->low)
        return gr_value_refuse(r, value, "is too small for %s: at least %zu%s", option->key, option->low,
                               unit);
    return GRANARY_OK;
}

static int read_count(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                      size_t *out) {
    size_t number = 0;
    enum gr_text_result result = gr_text_parse_whole(value.at, value.len, &number);
    if (result == GR_TEXT_SYNTAX)
        return gr_value_refuse(r, value, "is no value for %s: a whole number", option->key);
    int status = check_range(r, option, value, result, number, "");
    if (status == GRANARY_OK) *out = number;
    return status;
}

static int read_size(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                     size_t *out) {
    size_t number = 0;
    enum gr_text_result result = gr_text_parse_size(value.at, value.len, &number);
    if (result == GR_TEXT_SYNTAX)
        return gr_value_refuse(r, value, "is no value for %s: a size such as 512MiB, 10GiB or 1000000",
                               option->key);
    int status = check_range(r, option, value, result, number, option->low == 1 ? " byte" : " bytes");
    if (status == GRANARY_OK) *out = number;
    return status;
}

/* Whole MiB, as a number or as a size with its unit. */
static int read_mib(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                    size_t *out) {
    size_t number = 0, bytes = 0;
    enum gr_text_result result = gr_text_parse_whole(value.at, value.len, &number);
    if (result == GR_TEXT_SYNTAX) {
        result = gr_text_parse_size(value.at, value.len, &bytes);
        if (result == GR_TEXT_SYNTAX || (result == GR_TEXT_OK && bytes % GR_MIB != 0))
            return gr_value_refuse(r, value, "is no value for %s: a whole number of MiB, such as 512 or 4GiB",
                                   option->key);
        number = bytes / GR_MIB;
    }
    int status = check_range(r, option, value, result, number, " MiB");
    if (status == GRANARY_OK) *out = number * GR_MIB;
    return status;
}

static int read_fraction(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                         double *out) {
    double number = 0, low = (double)option->low, high = (double)option->high;
    enum gr_text_result result = gr_text_parse_decimal(value.at, value.len, &number);
    bool part = option->kind == GR_OPTION_PART;
    if (result == GR_TEXT_SYNTAX)
        return gr_value_refuse(r, value, "is no value for %s: a decimal number such as 0.8", option->key);
    if (result == GR_TEXT_OVERFLOW || number > high || (part && number >= high))
        return gr_value_refuse(r, value, "is too large for %s: %s %zu", option->key,
                               part ? "below" : "at most", option->high);
    if (number > 0 && number < GR_OPTION_LEAST)
        return gr_value_refuse(r, value, "is too small for %s: at least 0.000001", option->key);
    if (number < low || (part && number <= low))
        return gr_value_refuse(r, value, "is too small for %s: %s %zu", option->key,
                               part ? "above" : "at least", option->low);
    *out = number;
    return GRANARY_OK;
}

static int read_reserve(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                        struct granary_reserve *out) {
    double fraction = 0;
    size_t bytes = 0;
    enum gr_text_result result = gr_text_parse_decimal(value.at, value.len, &fraction);
    if (result == GR_TEXT_SYNTAX) result = gr_text_parse_size(value.at, value.len, &bytes);
    if (result == GR_TEXT_SYNTAX)
        return gr_value_refuse(
            r, value, "is no value for %s: a fraction such as 0.5, or a size such as 40GiB", option->key);
    if (result == GR_TEXT_OVERFLOW) return gr_value_refuse(r, value, "is too large for %s", option->key);
    if (fraction < GR_OPTION_LEAST && bytes == 0)
        return gr_value_refuse(r, value, "is too small for %s: at least 0.000001", option->key);
    *out = (struct granary_reserve){.bytes = bytes, .fraction = fraction};
    return GRANARY_OK;
}

/* ---- lists ------------------------------------------------------------------------------------ */

struct pair {
    struct gr_span name, value, whole;
};

/* Cuts "name:value" off the front of a list's inside. At its end whole.len is 0. */
static int next_pair(const struct gr_reader *r, const struct gr_option *option, struct gr_span *rest,
                     struct pair *out) {
    *out = (struct pair){.whole = gr_value_trim(*rest)};
    if (out->whole.len == 0) return GRANARY_OK;
    const char *comma = memchr(rest->at, ',', rest->len);
    struct gr_span entry = {rest->at, comma ? (size_t)(comma - rest->at) : rest->len};
    if (comma && gr_value_trim(entry).len == 0)
        return gr_value_refuse(r, (struct gr_span){comma, 1}, "follows an empty entry in the list of %s",
                               option->key);
    const char *colon = memchr(entry.at, ':', entry.len);
    out->whole = gr_value_trim(entry);
    if (colon) {
        out->name = gr_value_trim((struct gr_span){entry.at, (size_t)(colon - entry.at)});
        out->value = gr_value_trim((struct gr_span){colon + 1, (size_t)(entry.at + entry.len - colon - 1)});
    }
    if (out->name.len == 0 || out->value.len == 0)
        return gr_value_refuse(r, out->whole, "is no entry in the list of %s: %s", option->key,
                               option->values);
    size_t step = comma ? entry.len + 1 : entry.len;
    *rest = (struct gr_span){rest->at + step, rest->len - step};
    return GRANARY_OK;
}

static bool is_list(struct gr_span value, struct gr_span *inside) {
    if (value.len < 2 || value.at[0] != '[' || value.at[value.len - 1] != ']') return false;
    *inside = (struct gr_span){value.at + 1, value.len - 2};
    return true;
}

static int read_power(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                      size_t low, size_t high, size_t *out) {
    enum gr_text_result result = gr_text_parse_whole(value.at, value.len, out);
    if (result == GR_TEXT_SYNTAX || (result == GR_TEXT_OK && *out != 0 && !gr_is_power(*out)))
        return gr_value_refuse(r, value, "is no value for %s: a power of two", option->key);
    if (result == GR_TEXT_OVERFLOW || *out > high)
        return gr_value_refuse(r, value, "is too large for %s", option->key);
    if (*out < low) return gr_value_refuse(r, value, "is too small for %s: at least %zu", option->key, low);
    return GRANARY_OK;
}

static void fill(uint32_t *divisions, size_t from, size_t to, size_t value) {
    for (size_t i = from; i < to; i++) divisions[i] = (uint32_t)value;
}

/* A number for all sizes; or by size, where the first entry also holds below it, '>' above the last one, and
 * what is not named is rounded to units. */
static int read_divisions(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                          uint32_t *out) {
    uint32_t divisions[GRANARY_SIZE_INTERVALS] = {0};
    size_t number, last = 0, interval;
    struct gr_span rest;
    struct pair pair;
    int status = GRANARY_OK;
    if (!is_list(value, &rest)) {
        status = read_power(r, option, value, 1, UINT32_MAX, &number);
        if (status == GRANARY_OK) fill(out, 0, GRANARY_SIZE_INTERVALS, number);
        return status;
    }
    for (bool first = true;; first = false) {
        status = next_pair(r, option, &rest, &pair);
        if (status != GRANARY_OK) return status;
        if (pair.whole.len == 0 && first)
            return gr_value_refuse(r, value, "is an empty list for %s", option->key);
        if (pair.whole.len == 0) break;
        status = read_power(r, option, pair.value, 0, UINT32_MAX, &number);
        if (status != GRANARY_OK) return status;
        if (gr_value_is(pair.name, ">")) {
            fill(divisions, last + 1, GRANARY_SIZE_INTERVALS, number);
            continue;
        }
        status = read_power(r, option, pair.name, 1, SIZE_MAX, &interval);
        if (status != GRANARY_OK) return status;
        last = gr_min(gr_log2(interval), GRANARY_SIZE_INTERVALS - 1);
        if (first) fill(divisions, 0, last, number);
        fill(divisions, last, last + 1, number);
    }
    memcpy(out, divisions, sizeof divisions);
    return GRANARY_OK;
}

static bool is_name(struct gr_span s) {
    bool good = s.len < GRANARY_CLASS_ROOM;
    for (size_t i = 0; i < s.len && good; i++)
        good = s.at[i] > ' ' && s.at[i] <= '~' && s.at[i] != '[' && s.at[i] != ']';
    return good;
}

static int read_classes(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                        struct granary_reserve_class *out) {
    struct granary_reserve_class classes[GRANARY_RESERVE_CLASSES];
    struct gr_span rest;
    struct pair pair;
    size_t count = 0, i;
    memset(classes, 0, sizeof classes);
    if (!is_list(value, &rest))
        return gr_value_refuse(r, value, "is no value for %s: %s", option->key, option->values);
    for (;;) {
        int status = next_pair(r, option, &rest, &pair);
        if (status != GRANARY_OK) return status;
        if (pair.whole.len == 0) break;
        if (!is_name(pair.name))
            return gr_value_refuse(r, pair.name, "is no name of a class: up to %d letters, digits and signs",
                                   GRANARY_CLASS_ROOM - 1);
        for (i = 0; i < count && !gr_value_is(pair.name, classes[i].name);) i++;
        if (i == GRANARY_RESERVE_CLASSES)
            return gr_value_refuse(r, pair.whole, "is one class too many for %s: at most %d", option->key,
                                   GRANARY_RESERVE_CLASSES);
        status = read_reserve(r, option, pair.value, &classes[i].reserve);
        if (status != GRANARY_OK) return status;
        memcpy(classes[i].name, pair.name.at, pair.name.len);
        if (i == count) count++;
    }
    memcpy(out, classes, sizeof classes);
    return GRANARY_OK;
}

/* ---- keys that set nothing here --------------------------------------------------------------- */

/* *same: what was asked for is so anyway. */
static int read_ignored(const struct gr_reader *r, const struct gr_option *option, struct gr_span value,
                        bool *same) {
    size_t count;
    int choice = 0, status = GRANARY_OK;
    *same = false;
    switch (option->kind) {
    case GR_OPTION_BOOL:
        status = read_bool(r, option, value, &choice);
        *same = choice && strcmp(option->standard, "True") == 0;
        return status;
    case GR_OPTION_COUNT: return read_count(r, option, value, &count);
    case GR_OPTION_CHOICE: return read_choice(r, option, value, &choice);
    default: /* REFUSED */
        *same = place_of(option, value) == 0;
        if (*same || r->lenient) return GRANARY_OK;
        return gr_value_refuse(r, value, "is no value for %s: %s", option->key, option->sentence);
    }
}

/* ---- all kinds -------------------------------------------------------------------------------- */

static int read_field(const struct gr_reader *r, const struct gr_option *option, struct gr_span value) {
    void *field = gr_option_field(option, r->options);
    switch (option->kind) {
    case GR_OPTION_BOOL: return read_bool(r, option, value, field);
    case GR_OPTION_CHOICE: return read_choice(r, option, value, field);
    case GR_OPTION_MIB: return read_mib(r, option, value, field);
    case GR_OPTION_SIZE: return read_size(r, option, value, field);
    case GR_OPTION_FRACTION:
    case GR_OPTION_PART: return read_fraction(r, option, value, field);
    case GR_OPTION_DIVISIONS: return read_divisions(r, option, value, field);
    case GR_OPTION_RESERVE: return read_reserve(r, option, value, field);
    case GR_OPTION_CLASSES: return read_classes(r, option, value, field);
    case GR_OPTION_COUNT:
    case GR_OPTION_REFUSED: break;
    }
    return GRANARY_INVALID;
}

int gr_value_read(struct gr_reader *r, const struct gr_option *option, struct gr_span value) {
    uint8_t *origin = &r->options->origin[gr_option_owner(option)];
    int status = GRANARY_OK;
    if (gr_value_is(value, "default") || gr_value_is(value, option->standard)) {
        if (!option->ignored)
            memcpy(gr_option_field(option, r->options), gr_option_value(option, &gr_options_standard),
                   gr_option_size(option));
        *origin = gr_value_is(value, "default") || option->ignored ? GR_FROM_DEFAULT : r->origin;
    } else if (option->ignored) {
        bool same;
        status = read_ignored(r, option, value, &same);
        *origin = same ? GR_FROM_DEFAULT : r->origin;
    } else {
        status = read_field(r, option, value);
        *origin = r->origin;
    }
    r->named[gr_option_owner(option)] = value;
    return status;
}

/* ---- printing --------------------------------------------------------------------------------- */

static void print_reserve(const struct granary_reserve *reserve, char *buffer, size_t room) {
    if (reserve->bytes)
        gr_text_add_exact(buffer, room, reserve->bytes);
    else
        gr_text_add_decimal(buffer, room, reserve->fraction);
}

static void print_divisions(const uint32_t *divisions, char *buffer, size_t room) {
    bool same = true;
    for (size_t i = 1; i < GRANARY_SIZE_INTERVALS; i++) same = same && divisions[i] == divisions[0];
    if (same) {
        gr_text_add(buffer, room, "%u", (unsigned)divisions[0]);
        return;
    }
    for (size_t i = 0; i < GRANARY_SIZE_INTERVALS; i++)
        if (i == 0 || divisions[i] != 0)
            gr_text_add(buffer, room, "%s%u:%u", i == 0 ? "[" : ",", 1u << i, (unsigned)divisions[i]);
    gr_text_add(buffer, room, "]");
}

static void print_choice(const struct gr_option *option, int place, char *buffer, size_t room) {
    const char *word = option->values;
    for (; place > 0; place--) word = strchr(word, '|') + 1;
    gr_text_add(buffer, room, "%.*s", (int)strcspn(word, "|"), word);
}

static void print_classes(const struct granary_reserve_class *classes, char *buffer, size_t room) {
    for (size_t i = 0; i < GRANARY_RESERVE_CLASSES && classes[i].name[0]; i++) {
        gr_text_add(buffer, room, "%s%s:", i == 0 ? "[" : ",", classes[i].name);
        print_reserve(&classes[i].reserve, buffer, room);
    }
    gr_text_add(buffer, room, "]");
}

void gr_value_print(const struct granary_options *options, const struct gr_option *option, char *buffer,
                    size_t room) {
    const void *field = gr_option_value(option, options);
    buffer[0] = '\0';
    if (gr_option_is_standard(option, options)) {
        gr_text_add(buffer, room, "%s", option->standard);
        return;
    }
    switch (option->kind) {
    case GR_OPTION_BOOL: gr_text_add(buffer, room, *(const int *)field ? "True" : "False"); break;
    case GR_OPTION_CHOICE: print_choice(option, *(const int *)field, buffer, room); break;
    case GR_OPTION_MIB:
        if (*(const size_t *)field % GR_MIB == 0)
            gr_text_add(buffer, room, "%zu", *(const size_t *)field / GR_MIB);
        else
            gr_text_add_exact(buffer, room, *(const size_t *)field);
        break;
    case GR_OPTION_SIZE: gr_text_add_exact(buffer, room, *(const size_t *)field); break;
    case GR_OPTION_FRACTION:
    case GR_OPTION_PART: gr_text_add_decimal(buffer, room, *(const double *)field); break;
    case GR_OPTION_DIVISIONS: print_divisions(field, buffer, room); break;
    case GR_OPTION_RESERVE: print_reserve(field, buffer, room); break;
    case GR_OPTION_CLASSES: print_classes(field, buffer, room); break;
    case GR_OPTION_COUNT:
    case GR_OPTION_REFUSED: break;
    }
}
