/* SPDX-License-Identifier: Apache-2.0
 * Reads option strings into a copy of the options, which replaces the original when all was well. */
#include "policy/config.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum kind { BOOL, MIB, SIZE, FRACTION, PART, CHOICE };

struct option {
    const char *key;
    enum kind kind;
    size_t field; /* offset in struct granary_options */
    size_t low, high;
    const char *words; /* of a CHOICE */
};

static const struct option table[] = {
#define GR_OPTION(key, type, field, low, high, words, standard, sentence) \
    {#key, type, offsetof(struct granary_options, field), low, high, words},
#include "policy/options.def"
#undef GR_OPTION
};

/* A piece of the string. */
struct span {
    const char *at;
    size_t len;
};

struct reader {
    struct granary_options *options; /* the copy that is written to */
    const char *string;
    const char *source;
    bool lenient;
    struct granary_option_error *error; /* NULL: nobody listens */
};

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct span trim(struct span s) {
    while (s.len > 0 && is_blank(s.at[0])) s.at++, s.len--;
    while (s.len > 0 && is_blank(s.at[s.len - 1])) s.len--;
    return s;
}

static bool equals(struct span s, const char *word) {
    return strlen(word) == s.len && memcmp(s.at, word, s.len) == 0;
}

/* ---- saying what was wrong -------------------------------------------------------------------- */

/* Writes "SOURCE: column N: 'token' " followed by the words; returns OPTION. */
static int GR_PRINTF(3, 4) refuse(const struct reader *r, struct span token, const char *words, ...) {
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

static int refuse_key(const struct reader *r, struct span key) {
    char known[256] = "";
    for (size_t i = 0; i < GR_COUNT(table); i++)
        gr_text_add(known, sizeof known, "%s%s", i > 0 ? ", " : "", table[i].key);
    return refuse(r, key, "is no option; there are: %s", known);
}

/* ---- values ----------------------------------------------------------------------------------- */

static int read_bool(const struct reader *r, const struct option *option, struct span value, int *out) {
    bool yes = equals(value, "True") || equals(value, "true") || equals(value, "1");
    bool no = equals(value, "False") || equals(value, "false") || equals(value, "0");
    if (!yes && !no) return refuse(r, value, "is no value for %s: True or False", option->key);
    *out = yes;
    return GRANARY_OK;
}

/* A number of units, or a size with its own unit. */
static int read_size(const struct reader *r, const struct option *option, struct span value, size_t *out) {
    bool mib = option->kind == MIB;
    size_t number = 0;
    enum gr_text_result result = mib ? gr_text_parse_whole(value.at, value.len, &number)
                                     : gr_text_parse_size(value.at, value.len, &number);
    if (result == GR_TEXT_SYNTAX)
        return refuse(r, value, "is no value for %s: %s", option->key,
                      mib ? "a whole number of MiB" : "a size such as 512MiB, 10GiB or 1000000");
    if (result == GR_TEXT_OVERFLOW || number > option->high)
        return refuse(r, value, "is too large for %s", option->key);
    if (number < option->low)
        return refuse(r, value, "is too small for %s: at least %zu%s", option->key, option->low,
                      mib ? "" : " byte");
    *out = mib ? number * GR_MIB : number;
    return GRANARY_OK;
}

static int read_fraction(const struct reader *r, const struct option *option, struct span value,
                         double *out) {
    double number = 0;
    enum gr_text_result result = gr_text_parse_decimal(value.at, value.len, &number);
    if (result == GR_TEXT_SYNTAX)
        return refuse(r, value, "is no value for %s: a decimal number such as 0.8", option->key);
    if (result == GR_TEXT_OVERFLOW || number > (double)option->high)
        return refuse(r, value, "is too large for %s: at most %zu", option->key, option->high);
    if (option->kind == PART && number >= (double)option->high)
        return refuse(r, value, "is too large for %s: it must be below %zu", option->key, option->high);
    if (number <= (double)option->low)
        return refuse(r, value, "is too small for %s: it must be above %zu", option->key, option->low);
    *out = number;
    return GRANARY_OK;
}

static int read_choice(const struct reader *r, const struct option *option, struct span value, int *out) {
    const char *word = option->words;
    for (int place = 0; word; place++) {
        const char *bar = strchr(word, '|');
        size_t len = bar ? (size_t)(bar - word) : strlen(word);
        if (len == value.len && memcmp(word, value.at, len) == 0) {
            *out = place;
            return GRANARY_OK;
        }
        word = bar ? bar + 1 : NULL;
    }
    return refuse(r, value, "is no value for %s: %s", option->key, option->words);
}

static int read_value(const struct reader *r, const struct option *option, struct span value) {
    void *field = (char *)r->options + option->field;
    switch (option->kind) {
    case BOOL: return read_bool(r, option, value, field);
    case MIB:
    case SIZE: return read_size(r, option, value, field);
    case FRACTION:
    case PART: return read_fraction(r, option, value, field);
    case CHOICE: return read_choice(r, option, value, field);
    }
    return GRANARY_INVALID;
}

/* ---- entries ---------------------------------------------------------------------------------- */

static int read_entry(const struct reader *r, struct span entry) {
    const char *colon = memchr(entry.at, ':', entry.len);
    struct span key = trim((struct span){entry.at, colon != NULL ? (size_t)(colon - entry.at) : entry.len});
    if (key.len == 0) return refuse(r, entry, "has no key in front of the colon");

    const struct option *option = NULL;
    for (size_t i = 0; i < GR_COUNT(table); i++)
        if (equals(key, table[i].key)) option = &table[i];
    if (option == NULL) return r->lenient ? GRANARY_OK : refuse_key(r, key);

    if (colon == NULL) return refuse(r, key, "has no value; write %s:VALUE", option->key);
    struct span value = trim((struct span){colon + 1, (size_t)(entry.at + entry.len - colon - 1)});
    if (value.len == 0) return refuse(r, entry, "has no value; write %s:VALUE", option->key);
    return read_value(r, option, value);
}

/* Length of the entry at the start of rest: up to a comma outside of brackets. */
static int measure_entry(const struct reader *r, struct span rest, size_t *out) {
    size_t depth = 0, open = 0, i;
    for (i = 0; i < rest.len && (depth > 0 || rest.at[i] != ','); i++) {
        if (rest.at[i] == '[' && depth++ == 0) open = i;
        if (rest.at[i] == ']' && depth-- == 0)
            return refuse(r, trim((struct span){rest.at, i + 1}), "closes a bracket that was not opened");
    }
    if (depth > 0)
        return refuse(r, trim((struct span){rest.at + open, rest.len - open}),
                      "opens a bracket that is not closed");
    *out = i;
    return GRANARY_OK;
}

static int read_entries(const struct reader *r, struct span rest) {
    while (rest.len > 0) {
        size_t len = 0;
        int status = measure_entry(r, rest, &len);
        if (status != GRANARY_OK) return status;
        struct span entry = trim((struct span){rest.at, len});
        if (entry.len == 0) return refuse(r, (struct span){rest.at + len, 1}, "follows an empty entry");
        status = read_entry(r, entry);
        if (status != GRANARY_OK) return status;
        size_t step = len < rest.len ? len + 1 : len;
        rest = trim((struct span){rest.at + step, rest.len - step});
    }
    return GRANARY_OK;
}

/* Blanks, one pair of quotes, blanks. */
static struct span strip(const char *string) {
    struct span s = trim((struct span){string, strlen(string)});
    if (s.len >= 2 && (s.at[0] == '"' || s.at[0] == '\'') && s.at[s.len - 1] == s.at[0])
        s = trim((struct span){s.at + 1, s.len - 2});
    return s;
}

/* ---- from outside ----------------------------------------------------------------------------- */

void gr_config_init(struct granary_options *options) {
    *options = (struct granary_options){
        .struct_size = sizeof *options,
        .driver = GRANARY_DRIVER_CUDA,
        .expandable_segments = 1,
        .strict = 0,
        .limit_bytes = GRANARY_UNLIMITED,
        .limit_fraction = 1,
        .max_split_size = GRANARY_UNLIMITED,
        .handle_cache_bytes = 0,
        .rdma_capable = 0,
        .reclaim = GRANARY_RECLAIM_PRESSURE,
        .extent_bytes = 20 * GR_MIB,
        .capture_reuse = GRANARY_REUSE_STREAM,
        .capture_marker = GRANARY_MARKER_TERMINALS,
        .fault = NULL,
        .history = GRANARY_HISTORY_OFF,
        .history_stacks = GRANARY_STACKS_ALL,
        .history_entries = GR_CONFIG_HISTORY_ENTRIES,
        .oom_snapshot = NULL,
        .garbage_collection_threshold = 0,
        .no_caching = 0,
    };
}

static int invalid(struct granary_option_error *error, const char *words) {
    if (error != NULL) gr_text_put(error->text, sizeof error->text, "%s", words);
    return GRANARY_INVALID;
}

int gr_config_parse(struct granary_options *options, const char *string, const char *source, bool lenient,
                    struct granary_option_error *error) {
    if (error != NULL) *error = (struct granary_option_error){.column = 0};
    if (options == NULL || string == NULL) return invalid(error, "options and string must not be NULL");
    if (options->struct_size < sizeof *options)
        return invalid(error, "options was not set up with granary_options_init");

    struct granary_options copy = *options;
    struct reader r = {&copy, string, source != NULL ? source : "options", lenient, error};
    int status = read_entries(&r, strip(string));
    if (status == GRANARY_OK) *options = copy;
    return status;
}

/* The variables of their own that ask the driver for every block: 1, 0, or nothing at all. */
static int read_no_caching(struct granary_options *options, struct granary_option_error *error) {
    static const char *const names[] = {"GRANARY_NO_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING"};
    for (size_t i = 0; i < GR_COUNT(names); i++) {
        const char *string = getenv(names[i]);
        if (!string) continue;
        struct span value = trim((struct span){string, strlen(string)});
        const struct option named = {.key = names[i], .kind = BOOL};
        const struct reader r = {options, string, names[i], false, error};
        if (value.len == 0) return GRANARY_OK;
        return read_bool(&r, &named, value, &options->no_caching);
    }
    return GRANARY_OK;
}

int gr_config_from_environment(struct granary_options *options, struct granary_option_error *error) {
    static const struct {
        const char *name;
        bool lenient;
    } sources[] = {{"GRANARY_CONF", false}, {"PYTORCH_CUDA_ALLOC_CONF", true}, {"PYTORCH_ALLOC_CONF", true}};
    size_t i = 0;
    const char *string = NULL;
    while (i < GR_COUNT(sources) && (string = getenv(sources[i].name)) == NULL) i++;
    struct granary_options copy;
    int status = gr_config_parse(options, "", NULL, true, error);
    if (status != GRANARY_OK) return status;
    copy = *options;
    status = read_no_caching(&copy, error);
    if (status == GRANARY_OK && string)
        status = gr_config_parse(&copy, string, sources[i].name, sources[i].lenient, error);
    if (status == GRANARY_OK) *options = copy;
    return status;
}
