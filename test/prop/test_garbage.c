/* SPDX-License-Identifier: Apache-2.0
 * Garbage collection in classic mode, operation for operation beside a model of PyTorch's rules. */
#include <stdio.h>

#include "heap/heap.h"
#include "support/classic.h"
#include "support/fixture.h"
#include "support/rng.h"
#include "tool/trace.h"

static struct {
    size_t limit;
    double threshold;
} world;

static void classic_card(struct granary_sim_config *sim, struct granary_options *options) {
    granary_sim_config_init(sim);
    options->expandable_segments = 0;
    options->limit_bytes = world.limit;
    options->garbage_collection_threshold = world.threshold;
}

struct pair { /* one block, in both */
    void *ptr;
    struct classic_block *block;
};

static void alloc_both(granary *g, struct classic *c, struct pair *pair, size_t size, int number,
                       granary_stream stream) {
    int status = granary_alloc(g, size, stream, &pair->ptr);
    ck_assert_msg(status == GRANARY_OK, "alloc of %zu: %d", size, status);
    pair->block = classic_alloc(c, size, number, (uint64_t)(uintptr_t)pair->ptr);
    ck_assert_ptr_nonnull(pair->block);
}

static void free_both(granary *g, struct classic *c, struct pair *pair) {
    fixture_free(g, pair->ptr);
    classic_free(c, pair->block);
    *pair = (struct pair){0};
}

static void same(granary *g, const struct classic *c, size_t op) {
    size_t reserved = gr_ledger_reserved(&g->ledger);
    ck_assert_msg(reserved == c->reserved, "op %zu: %zu bytes reserved, the model has %zu", op, reserved,
                  c->reserved);
}

static bool every_trace(void) {
    return getenv("GRANARY_TRACES") != NULL;
}

static void end(granary *g, struct classic *c, const char *name) {
    struct granary_stats stats = fixture_stats(g);
    const struct granary_stat *segments = &stats.segments.all;
    ck_assert_int_eq(stats.reserved_bytes.all.peak, (int64_t)c->peak_reserved);
    ck_assert_int_eq(segments->total_up, (int64_t)c->segments_made);
    ck_assert_int_eq(segments->total_down, (int64_t)c->segments_freed);
    ck_assert_int_eq(stats.collected_bytes, (int64_t)c->collected);
    ck_assert_uint_gt(c->collected, 0);
    if (every_trace())
        printf("garbage: %s, limit %zu, threshold %g: peak reserved %zu, %zu segments made, %zu freed, "
               "%zu bytes collected\n",
               name, world.limit, world.threshold, c->peak_reserved, c->segments_made, c->segments_freed,
               c->collected);
    fixture_close(g);
    classic_fini(c);
}

static const struct {
    const char *name;
    size_t limit_mib;
} traces[] = /* the short ones; GRANARY_TRACES=all takes the others as well, and prints the totals */
    {{"gnn", 48000},       {"moe", 21000},        {"prefetch", 1900},
     {"detection", 24000}, {"gpt_varlen", 40000}, {"generate", 2500}};

START_TEST(a_trace_reserves_what_the_rules_say_after_every_operation) {
    struct trace trace;
    struct problem problem;
    char path[64];
    snprintf(path, sizeof path, "bench/traces/%s.trace.gz", traces[_i / 2].name);
    ck_assert_msg(trace_read(path, &trace, &problem) == 0, "%s", problem.text);
    world.limit = traces[_i / 2].limit_mib * GR_MIB;
    world.threshold = _i % 2 ? 0.5 : 0.8;
    granary *g = fixture_open(classic_card);
    struct classic c = {.limit = world.limit, .threshold = world.threshold};
    struct pair *pairs = calloc(trace.blocks + 1, sizeof *pairs);
    granary_stream streams[2] = {fixture_stream(g), fixture_stream(g)};
    ck_assert(pairs != NULL && trace.streams <= 2);
    for (size_t i = 0; i < trace.count; i++) {
        const struct trace_op *op = &trace.ops[i];
        if (op->kind == TRACE_ALLOC)
            alloc_both(g, &c, &pairs[op->block], (size_t)op->size, op->stream, streams[op->stream]);
        else if (op->kind == TRACE_FREE)
            free_both(g, &c, &pairs[op->block]);
        same(g, &c, i);
    }
    for (size_t i = 0; i < trace.blocks; i++)
        if (pairs[i].ptr) free_both(g, &c, &pairs[i]);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(granary_stream_destroy(g, streams[i]), GRANARY_OK);
    end(g, &c, traces[_i / 2].name);
    free(pairs);
    trace_free(&trace);
}
END_TEST

START_TEST(random_traffic_reserves_what_the_rules_say_after_every_operation) {
    enum { BLOCKS = 200 };
    struct rng rng = {(uint64_t)_i};
    struct pair pairs[BLOCKS] = {{0}};
    world.limit = 4 * GR_GIB;
    world.threshold = 0.1 * (double)rng_between(&rng, 1, 6);
    granary *g = fixture_open(classic_card);
    struct classic c = {.limit = world.limit, .threshold = world.threshold};
    granary_stream streams[2] = {fixture_stream(g), fixture_stream(g)};
    for (size_t i = 0; i < 4000; i++) {
        struct pair *pair = &pairs[rng_below(&rng, BLOCKS)];
        int s = (int)rng_below(&rng, 2);
        size_t size = rng_once_in(&rng, 3) ? rng_between(&rng, 1, GR_MIB)
                                           : rng_between(&rng, GR_MIB, 40 * GR_MIB);
        if (pair->ptr)
            free_both(g, &c, pair);
        else if (c.reserved + 64 * GR_MIB < c.limit)
            alloc_both(g, &c, pair, size, s, streams[s]);
        same(g, &c, i);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        if (pairs[i].ptr) free_both(g, &c, &pairs[i]);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(granary_stream_destroy(g, streams[i]), GRANARY_OK);
    end(g, &c, "random");
}
END_TEST

Suite *suite_garbage(void) {
    Suite *suite = suite_create("garbage");
    TCase *cases = tcase_create("garbage");
    if (every_trace()) tcase_set_timeout(cases, 30);
    tcase_add_loop_test(cases, a_trace_reserves_what_the_rules_say_after_every_operation, 0,
                        every_trace() ? 2 * (int)GR_COUNT(traces) : 6);
    tcase_add_loop_test(cases, random_traffic_reserves_what_the_rules_say_after_every_operation, 1, 21);
    suite_add_tcase(suite, cases);
    return suite;
}
