/* SPDX-License-Identifier: Apache-2.0
 * Four jobs that run out of memory on a simulated card of 1 GiB, each for a reason of its own, and leave a
 * snapshot:   jobs leak|fragment|peak|strand FILE
 *
 * The line that a diagnosis must find in each carries a comment with the job's name. */
#include <stdio.h>
#include <string.h>

#include <granary/granary.h>
#include <granary/sim.h>

#define MIB ((size_t)1 << 20)

enum { CARD = 1024 };

static granary *g;

/* Not inlined and not static, so that its name is in every stack, with debug information or without. */
#define STEP __attribute__((noinline)) int

STEP keep_result(void) {
    void *result;
    int status = granary_alloc(g, 4 * MIB, NULL, &result); /* leak */
    return status;
}

/* Each step keeps its result, as a list of losses with their graphs would. */
STEP leak(void) {
    void *scratch;
    int status = GRANARY_OK;
    while (status == GRANARY_OK) {
        status = granary_alloc(g, 64 * MIB, NULL, &scratch);
        if (status == GRANARY_OK) status = keep_result();
        if (status == GRANARY_OK) status = granary_free(g, scratch);
    }
    return status;
}

STEP keep_small(granary_stream stream) {
    void *small;
    int status = granary_alloc(g, 16 * MIB, stream, &small); /* fragment, strand */
    return status;
}

enum { PINS = 15 };

/* A small block stays at the start of each large segment, whose rest becomes free again in the end. */
static int pin(granary_stream stream, void **rest) {
    void *large;
    int status = granary_alloc(g, 64 * MIB, stream, &large);
    if (status == GRANARY_OK) status = granary_free(g, large);
    if (status == GRANARY_OK) status = keep_small(stream);
    return status == GRANARY_OK ? granary_alloc(g, 48 * MIB, stream, rest) : status;
}

static int pin_all(const granary_stream *streams, int count) {
    void *rests[PINS];
    int status = GRANARY_OK;
    for (int i = 0; i < PINS && status == GRANARY_OK; i++) status = pin(streams[i % count], &rests[i]);
    for (int i = 0; i < PINS && status == GRANARY_OK; i++) status = granary_free(g, rests[i]);
    return status;
}

STEP fragment(void) {
    granary_stream stream = NULL;
    void *batch;
    int status = pin_all(&stream, 1);
    return status == GRANARY_OK ? granary_alloc(g, 96 * MIB, NULL, &batch) : status;
}

STEP activations(void) {
    void *layer;
    int status = granary_alloc(g, 80 * MIB, NULL, &layer); /* peak */
    return status;
}

/* The last of many layers does not fit. */
STEP peak(void) {
    void *weights;
    int status = granary_alloc(g, 200 * MIB, NULL, &weights);
    for (int i = 0; i < 11 && status == GRANARY_OK; i++) status = activations();
    return status;
}

/* What is free lies in pools of other streams. */
STEP strand(void) {
    granary_stream streams[3];
    void *batch;
    int status = GRANARY_OK;
    for (int i = 0; i < 3 && status == GRANARY_OK; i++) status = granary_stream_create(g, &streams[i]);
    if (status == GRANARY_OK) status = pin_all(streams, 3);
    return status == GRANARY_OK ? granary_alloc(g, 96 * MIB, NULL, &batch) : status;
}

static const struct {
    const char *name, *conf;
    int (*run)(void);
} jobs[] = {
    {"leak", "", leak},
    {"fragment", "expandable_segments:False", fragment},
    {"peak", "", peak},
    {"strand", "expandable_segments:False", strand},
};

int main(int argc, char **argv) {
    struct granary_options options;
    struct granary_sim_config card;
    struct granary_option_error error;
    size_t i = 0;
    int status;
    while (argc == 3 && i < sizeof jobs / sizeof jobs[0] && strcmp(jobs[i].name, argv[1]) != 0) i++;
    if (argc != 3 || i == sizeof jobs / sizeof jobs[0]) {
        fprintf(stderr, "usage: %s leak|fragment|peak|strand FILE\n", argv[0]);
        return 2;
    }
    granary_sim_config_init(&card);
    card.memory_bytes = CARD * MIB;
    if (granary_sim_open(&card) != GRANARY_OK) return 2;
    granary_options_init(&options);
    options.driver = GRANARY_DRIVER_SIM;
    options.history = GRANARY_HISTORY_ALL;
    options.history_stacks = GRANARY_STACKS_C;
    options.oom_snapshot = argv[2];
    if (granary_options_parse(&options, jobs[i].conf, "jobs", &error) != GRANARY_OK) return 2;
    if (granary_open(0, &options, &g) != GRANARY_OK) return 2;
    status = jobs[i].run();
    printf("%s: %s\n", argv[1], granary_status_name(status));
    granary_close(g);
    granary_sim_close();
    return status == GRANARY_OUT_OF_MEMORY || status == GRANARY_OVER_LIMIT ? 0 : 2;
}
