/* SPDX-License-Identifier: Apache-2.0
 * Reads option strings into a copy of the options, which replaces the original when all was well. */
#include "policy/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/value.h"

/* ---- keys that are not known ------------------------------------------------------------------ */

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

enum { KEY_ROOM = 40 };

/* Letters to change, add or leave out to make one of the other, where that may be less than `least`;
 * capitals are the same letters. */
static size_t distance(struct gr_span a, const char *b, size_t least) {
    size_t row[KEY_ROOM + 1], columns = strlen(b);
    if (columns > KEY_ROOM || a.len >= columns + least || columns >= a.len + least) return least;
    for (size_t j = 0; j <= columns; j++) row[j] = j;
    for (size_t i = 0; i < a.len; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < columns; j++) {
            size_t change = corner + (lower(a.at[i]) != b[j]);
            corner = row[j + 1];
            row[j + 1] = gr_min(change, gr_min(row[j], corner) + 1);
        }
    }
    return row[columns];
}

/* ", key" for each key that sets something. */
static const char known_keys[] =
#define GR_OPTION(key, type, field, low, high, values, standard, when, sentence) ", " #key
#define GR_IGNORED(key, type, low, high, values, standard, sentence)
#define GR_ALIAS(other, key)
#include "policy/options.def"
#undef GR_OPTION
#undef GR_IGNORED
#undef GR_ALIAS
    ;

static int refuse_key(const struct gr_reader *r, struct gr_span key) {
    const struct gr_option *nearest = NULL;
    size_t least = 4;
    if (r->error == NULL) return GRANARY_OPTION;
    for (size_t i = 0; i < gr_option_count; i++) {
        size_t far = distance(key, gr_options[i].key, least);
        if (far >= least) continue;
        least = far;
        nearest = &gr_options[i];
    }
    if (nearest != NULL)
        return gr_value_refuse(r, key, "is no option; %s is near, `granary options` lists all", nearest->key);
    return gr_value_refuse(r, key, "is no option; there are: %s", known_keys + 2);
}

/* KEY=VALUE: the key, or NULL. */
static const struct gr_option *key_before_equals(struct gr_span entry) {
    const char *equals = memchr(entry.at, '=', entry.len);
    if (equals == NULL) return NULL;
    struct gr_span key = gr_value_trim((struct gr_span){entry.at, (size_t)(equals - entry.at)});
    return gr_option_find(key.at, key.len);
}

/* ---- entries ---------------------------------------------------------------------------------- */

static int skip_key(const struct gr_reader *r, struct gr_span key) {
    char *skipped = r->options->skipped;
    char name[sizeof r->options->skipped];
    gr_text_quote(name, sizeof name, key.at, key.len);
    gr_text_add(skipped, sizeof r->options->skipped, "%s%s", skipped[0] ? ", " : "", name);
    return GRANARY_OK;
}

static int read_entry(struct gr_reader *r, struct gr_span entry) {
    const char *colon = memchr(entry.at, ':', entry.len);
    struct gr_span key =
        gr_value_trim((struct gr_span){entry.at, colon != NULL ? (size_t)(colon - entry.at) : entry.len});
    if (key.len == 0) return gr_value_refuse(r, entry, "has no key in front of the colon");

    const struct gr_option *option = gr_option_find(key.at, key.len);
    if (option == NULL && r->lenient) return skip_key(r, key);
    if (option == NULL) {
        const struct gr_option *meant = key_before_equals(entry);
        return meant ? gr_value_refuse(r, entry, "has no colon behind its key; write %s:VALUE", meant->key)
                     : refuse_key(r, key);
    }
    if (r->changing && !option->changeable)
        return gr_value_refuse(r, key, "is fixed when a handle is opened; set it before");

    if (colon == NULL) return gr_value_refuse(r, key, "has no value; write %s:VALUE", option->key);
    struct gr_span value =
        gr_value_trim((struct gr_span){colon + 1, (size_t)(entry.at + entry.len - colon - 1)});
    if (value.len == 0) return gr_value_refuse(r, entry, "has no value; write %s:VALUE", option->key);
    return gr_value_read(r, option, value);
}

/* Length of the entry at the start of rest: up to a comma outside of brackets. */
static int measure_entry(const struct gr_reader *r, struct gr_span rest, size_t *out) {
    size_t depth = 0, open = 0, i;
    for (i = 0; i < rest.len && (depth > 0 || rest.at[i] != ','); i++) {
        if (rest.at[i] == '[' && depth++ == 0) open = i;
        if (rest.at[i] == ']' && depth-- == 0)
            return gr_value_refuse(r, gr_value_trim((struct gr_span){rest.at, i + 1}),
                                   "closes a bracket that was not opened");
    }
    if (depth > 0)
        return gr_value_refuse(r, gr_value_trim((struct gr_span){rest.at + open, rest.len - open}),
                               "opens a bracket that is not closed");
    *out = i;
    return GRANARY_OK;
}

static int read_entries(struct gr_reader *r, struct gr_span rest) {
    while (rest.len > 0) {
        size_t len = 0;
        int status = measure_entry(r, rest, &len);
        if (status != GRANARY_OK) return status;
        struct gr_span entry = gr_value_trim((struct gr_span){rest.at, len});
        if (entry.len == 0)
            return gr_value_refuse(r, (struct gr_span){rest.at + len, 1}, "follows an empty entry");
        status = read_entry(r, entry);
        if (status != GRANARY_OK) return status;
        size_t step = len < rest.len ? len + 1 : len;
        rest = gr_value_trim((struct gr_span){rest.at + step, rest.len - step});
    }
    return GRANARY_OK;
}

/* Sizes that must not be below large_segment_size: refused at whichever of the two the string names. */
static int check_segment(const struct gr_reader *r, const char *key, size_t bytes) {
    const struct gr_option *option = gr_option_find(key, strlen(key));
    const struct gr_option *segment = gr_option_find("large_segment_size_mb", 21);
    struct gr_span mine = r->named[gr_option_owner(option)], other = r->named[gr_option_owner(segment)];
    size_t least = r->options->large_segment_size;
    if (bytes >= least || (mine.len == 0 && other.len == 0)) return GRANARY_OK;
    if (mine.len > 0)
        return gr_value_refuse(r, mine, "is too small for %s: at least large_segment_size_mb, which is %zu",
                               key, least / GR_MIB);
    return gr_value_refuse(r, other, "is too large for %s: at most %s, which is %zu", segment->key, key,
                           bytes / GR_MIB);
}

static int check_segments(const struct gr_reader *r) {
    size_t rounding = r->options->max_non_split_rounding;
    int status = check_segment(r, "max_split_size_mb", r->options->max_split_size);
    if (status != GRANARY_OK || rounding == 0) return status;
    return check_segment(r, "max_non_split_rounding_mb", rounding);
}

/* Blanks, one pair of quotes, blanks. */
static struct gr_span strip(const char *string) {
    struct gr_span s = gr_value_trim((struct gr_span){string, strlen(string)});
    if (s.len >= 2 && (s.at[0] == '"' || s.at[0] == '\'') && s.at[s.len - 1] == s.at[0])
        s = gr_value_trim((struct gr_span){s.at + 1, s.len - 2});
    return s;
}

/* ---- from outside ----------------------------------------------------------------------------- */

static int invalid(struct granary_option_error *error, const char *words) {
    if (error != NULL) gr_text_put(error->text, sizeof error->text, "%s", words);
    return GRANARY_INVALID;
}

static int prepare(struct granary_options *options, struct granary_option_error *error) {
    if (error != NULL) *error = (struct granary_option_error){.column = 0};
    if (options == NULL) return invalid(error, "options and string must not be NULL");
    if (options->struct_size < sizeof *options)
        return invalid(error, "options was not set up with granary_options_init");
    return GRANARY_OK;
}

static int parse(struct granary_options *options, const char *string, const char *source,
                 enum gr_origin origin, enum gr_config_way way, struct granary_option_error *error) {
    struct granary_options copy = *options;
    struct gr_reader r = {.options = &copy,
                          .string = string,
                          .source = source != NULL ? source : "options",
                          .lenient = way == GR_CONFIG_LENIENT,
                          .changing = way == GR_CONFIG_CHANGE,
                          .origin = (uint8_t)origin,
                          .error = error};
    int status = read_entries(&r, strip(string));
    if (status == GRANARY_OK) status = check_segments(&r);
    if (status == GRANARY_OK) *options = copy;
    return status;
}

int gr_config_parse(struct granary_options *options, const char *string, const char *source,
                    enum gr_config_way way, struct granary_option_error *error) {
    int status = prepare(options, error);
    if (status == GRANARY_OK && string == NULL)
        status = invalid(error, "options and string must not be NULL");
    return status == GRANARY_OK ? parse(options, string, source, GR_FROM_STRING, way, error) : status;
}

/* The variables of their own that ask the driver for every block: a boolean, or nothing at all. */
static int read_no_caching(struct granary_options *options, struct granary_option_error *error) {
    static const char *const names[] = {"GRANARY_NO_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING"};
    for (size_t i = 0; i < GR_COUNT(names); i++) {
        const char *string = getenv(names[i]);
        if (!string) continue;
        struct gr_span value = gr_value_trim((struct gr_span){string, strlen(string)});
        struct gr_reader r = {.options = options,
                              .string = string,
                              .source = names[i],
                              .origin = (uint8_t)(GR_FROM_GRANARY_NO_CACHING + i),
                              .error = error};
        return value.len ? gr_value_read(&r, gr_option_find("no_caching", 10), value) : GRANARY_OK;
    }
    return GRANARY_OK;
}

int gr_config_from_environment(struct granary_options *options, struct granary_option_error *error) {
    const char *cuda = getenv("PYTORCH_CUDA_ALLOC_CONF"), *pytorch = getenv("PYTORCH_ALLOC_CONF"),
               *ours = getenv("GRANARY_CONF");
    struct granary_options copy;
    int status = prepare(options, error);
    if (status != GRANARY_OK) return status;
    copy = *options;
    copy.unread = cuda && pytorch && strcmp(cuda, pytorch) != 0;
    status = read_no_caching(&copy, error);
    if (status == GRANARY_OK && cuda)
        status = parse(&copy, cuda, "PYTORCH_CUDA_ALLOC_CONF", GR_FROM_PYTORCH_CUDA_ALLOC_CONF,
                       GR_CONFIG_LENIENT, error);
    else if (status == GRANARY_OK && pytorch)
        status =
            parse(&copy, pytorch, "PYTORCH_ALLOC_CONF", GR_FROM_PYTORCH_ALLOC_CONF, GR_CONFIG_LENIENT, error);
    if (status == GRANARY_OK && ours)
        status = parse(&copy, ours, "GRANARY_CONF", GR_FROM_GRANARY_CONF, GR_CONFIG_STRICT, error);
    if (status == GRANARY_OK) *options = copy;
    return status;
}
