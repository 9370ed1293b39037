/* SPDX-License-Identifier: Apache-2.0
 * The options that size classic segments, operation for operation beside a model of PyTorch's rules: the same
 * bytes reserved, and the same addresses. */
#include <stdio.h>

#include "heap/heap.h"
#include "support/classic.h"
#include "support/fixture.h"
#include "support/hot.h"
#include "support/rng.h"
#include "tool/trace.h"

static const struct {
    const char *conf; /* for the library */
    struct classic c; /* the same, for the model */
} settings[] = {
    {"", {0}},
    {"max_split_size_mb:20", {.max_split = 20 * GR_MIB}},
    {"max_split_size_mb:128", {.max_split = 128 * GR_MIB}},
    {"max_split_size_mb:64,max_non_split_rounding_mb:200", {.max_split = 64 * GR_MIB, .slack = 200 * GR_MIB}},
    {"roundup_power2_divisions:[1:16,2:4,4:2,8:8,16:4,32:1,64:8,256:4,1024:2,>:1]",
     {.divisions = {16, 4, 2, 8, 4, 1, 8, 0, 4, 0, 2, 1, 1, 1, 1, 1}}},
    {"large_segment_size_mb:64,max_split_size_mb:256,roundup_power2_divisions:8",
     {.large_segment = 64 * GR_MIB,
      .max_split = 256 * GR_MIB,
      .divisions = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}}},
};
enum { SETTINGS = GR_COUNT(settings) };
static size_t current; /* of them */

static void classic_card(struct granary_sim_config *sim, struct granary_options *options) {
    granary_sim_config_init(sim);
    sim->memory_bytes = 1024 * GR_GIB; /* nothing is ever short: the rules of sizes alone */
    options->expandable_segments = 0;
    ck_assert_int_eq(granary_options_parse(options, settings[current].conf, NULL, NULL), GRANARY_OK);
}

struct pair { /* one block, in both */
    void *ptr;
    struct classic_block *block;
};

static void alloc_both(granary *g, struct classic *c, struct pair *pair, size_t size, int number,
                       granary_stream stream) {
    HOT_ASSERT(granary_alloc(g, size, stream, &pair->ptr) == GRANARY_OK);
    pair->block = classic_alloc(c, size, number, (uint64_t)(uintptr_t)pair->ptr);
    HOT_ASSERT(pair->block && classic_addr(pair->block) == (uint64_t)(uintptr_t)pair->ptr);
    HOT_ASSERT(gr_ledger_reserved(&g->ledger) == c->reserved);
}

static void free_both(granary *g, struct classic *c, struct pair *pair) {
    HOT_ASSERT(granary_free(g, pair->ptr) == GRANARY_OK);
    classic_free(c, pair->block);
    *pair = (struct pair){0};
}

static void end(granary *g, struct classic *c, const char *name) {
    struct granary_stats stats = fixture_stats(g);
    ck_assert_int_eq(stats.reserved_bytes.all.peak, (int64_t)c->peak_reserved);
    ck_assert_int_eq(stats.segments.all.total_up, (int64_t)c->segments_made);
    if (getenv("GRANARY_TRACES"))
        printf("classic: %s, %s: peak reserved %zu\n", name, settings[current].conf, c->peak_reserved);
    fixture_close(g);
    classic_fini(c);
}

static const char *const traces[] = /* the short ones; GRANARY_TRACES=all takes the others as well */
    {"moe", "prefetch", "detection", "gnn", "gpt_varlen", "generate"};

START_TEST(a_trace_gets_the_addresses_that_the_rules_say) {
    const char *name = traces[_i / SETTINGS];
    struct trace trace;
    struct problem problem;
    char path[64];
    snprintf(path, sizeof path, "bench/traces/%s.trace.gz", name);
    ck_assert_msg(trace_read(path, &trace, &problem) == 0, "%s", problem.text);
    current = (size_t)_i % SETTINGS;
    granary *g = fixture_open(classic_card);
    struct classic c = settings[current].c;
    c.limit = SIZE_MAX;
    struct pair *pairs = calloc(trace.blocks + 1, sizeof *pairs);
    granary_stream streams[2] = {fixture_stream(g), fixture_stream(g)};
    ck_assert(pairs != NULL && trace.streams <= 2);
    for (size_t i = 0; i < trace.count; i++) {
        const struct trace_op *op = &trace.ops[i];
        if (op->kind == TRACE_ALLOC)
            alloc_both(g, &c, &pairs[op->block], (size_t)op->size, op->stream, streams[op->stream]);
        else if (op->kind == TRACE_FREE)
            free_both(g, &c, &pairs[op->block]);
    }
    for (size_t i = 0; i < trace.blocks; i++)
        if (pairs[i].ptr) free_both(g, &c, &pairs[i]);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(granary_stream_destroy(g, streams[i]), GRANARY_OK);
    end(g, &c, name);
    free(pairs);
    trace_free(&trace);
}
END_TEST

START_TEST(random_traffic_gets_the_addresses_that_the_rules_say) {
    enum { BLOCKS = 300 };
    struct rng rng = {(uint64_t)_i};
    struct pair pairs[BLOCKS] = {{0}};
    current = (size_t)_i % SETTINGS;
    granary *g = fixture_open(classic_card);
    struct classic c = settings[current].c;
    c.limit = SIZE_MAX;
    granary_stream streams[2] = {fixture_stream(g), fixture_stream(g)};
    for (size_t i = 0; i < 5000; i++) {
        struct pair *pair = &pairs[rng_below(&rng, BLOCKS)];
        int s = (int)rng_below(&rng, 2);
        if (pair->ptr)
            free_both(g, &c, pair);
        else
            alloc_both(g, &c, pair, 1 + rng_below(&rng, (size_t)1 << rng_between(&rng, 8, 29)), s,
                       streams[s]);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        if (pairs[i].ptr) free_both(g, &c, &pairs[i]);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(granary_stream_destroy(g, streams[i]), GRANARY_OK);
    end(g, &c, "random");
}
END_TEST

Suite *suite_classic(void) {
    Suite *suite = suite_create("classic");
    TCase *cases = tcase_create("classic");
    bool all = getenv("GRANARY_TRACES") != NULL;
    if (all) tcase_set_timeout(cases, 30);
    tcase_add_loop_test(cases, a_trace_gets_the_addresses_that_the_rules_say, 0,
                        (all ? (int)GR_COUNT(traces) : 2) * SETTINGS);
    tcase_add_loop_test(cases, random_traffic_gets_the_addresses_that_the_rules_say, 0, 4 * SETTINGS);
    suite_add_tcase(suite, cases);
    return suite;
}
