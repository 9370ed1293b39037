/* SPDX-License-Identifier: Apache-2.0
 * Any string at all as options: taken or refused whole, with token and column; and what is taken can be
 * printed and read again. The input: a line of settings to begin with, and a string that is read on top
 * of them; without a line end the defaults begin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fuzz/fuzz.h"
#include "policy/config.h"

/* In a block of exactly its size, so that a sanitizer sees one byte too far. */
static char *copy_string(const uint8_t *data, size_t size) {
    char *string = malloc(size + 1);
    if (string == NULL) abort();
    memcpy(string, data, size);
    string[size] = '\0';
    return string;
}

static void check_refusal(const char *string, const struct granary_option_error *error) {
    char token[sizeof error->token], place[64];
    size_t len = strlen(string);
    FUZZ_ASSERT(error->column >= 1 && error->column <= len);
    FUZZ_ASSERT(error->token[0] != '\0');
    size_t token_len = strlen(error->token);
    FUZZ_ASSERT(error->column - 1 + token_len <= len);
    gr_text_quote(token, sizeof token, string + error->column - 1, token_len);
    FUZZ_ASSERT(strcmp(token, error->token) == 0);
    snprintf(place, sizeof place, "CONF: column %zu: '%.32s", error->column, error->token);
    FUZZ_ASSERT(strncmp(error->text, place, strlen(place)) == 0);
    FUZZ_ASSERT(strlen(error->text) > strlen(place) + 3); /* words follow */
}

/* Every value in force, written as a string, gives the same settings. */
static void check_reading_back(const struct granary_options *options) {
    struct granary_options again;
    struct granary_option_info info = {.struct_size = sizeof info};
    struct granary_option_error error;
    char string[8192] = "";
    for (size_t i = 0; granary_options_effective(options, i, &info) == GRANARY_OK; i++) {
        FUZZ_ASSERT(info.value[0] != '\0' && strlen(info.value) < sizeof info.value - 1);
        if (info.ignored || strcmp(info.key, "graph_capture_record_stream_reuse") == 0) continue;
        gr_text_add(string, sizeof string, "%s:%s,", info.key, info.value);
    }
    gr_options_init(&again);
    FUZZ_ASSERT(gr_config_parse(&again, string, NULL, GR_CONFIG_STRICT, &error) == GRANARY_OK);
    for (size_t i = 0; i < gr_option_count; i++)
        if (!gr_options[i].ignored)
            FUZZ_ASSERT(memcmp(gr_option_value(&gr_options[i], options),
                               gr_option_value(&gr_options[i], &again), gr_option_size(&gr_options[i])) == 0);
}

static void check_warnings(const struct granary_options *options) {
    char text[512];
    for (size_t i = 0; granary_options_warning(options, i, text, sizeof text) == GRANARY_OK; i++)
        FUZZ_ASSERT(text[0] != '\0' && i < gr_option_count + 3);
}

static void read_one(struct granary_options *options, const char *string, enum gr_config_way way) {
    struct granary_option_error error;
    struct granary_options before = *options;
    char reason[256];
    int status = gr_config_parse(options, string, "CONF", way, &error);
    if (status != GRANARY_OK) {
        FUZZ_ASSERT(status == GRANARY_OPTION);
        FUZZ_ASSERT(memcmp(&before, options, sizeof before) == 0);
        check_refusal(string, &error);
        return;
    }
    FUZZ_ASSERT(error.column == 0 && error.text[0] == '\0');
    FUZZ_ASSERT(gr_options_check(options, reason, sizeof reason) == GRANARY_OK);
    if (way != GR_CONFIG_LENIENT || memcmp(&before, options, offsetof(struct granary_options, skipped)) == 0)
        return; /* once is enough */
    check_reading_back(options);
    check_warnings(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct granary_options options;
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    gr_options_init(&options);
    if (line) {
        char *first = copy_string(data, (size_t)(line - data));
        read_one(&options, first, GR_CONFIG_LENIENT);
        free(first);
        size -= (size_t)(line + 1 - data);
        data = line + 1;
    }
    char *string = copy_string(data, size);
    for (enum gr_config_way way = GR_CONFIG_STRICT; way <= GR_CONFIG_CHANGE; way++) {
        struct granary_options on_top = options;
        read_one(&on_top, string, way);
    }
    free(string);
    return 0;
}
