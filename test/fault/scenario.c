/* SPDX-License-Identifier: Apache-2.0
 * The scenarios of the sweep. */
#include "fault/scenario.h"

#include <granary/options.h>

/* ---- worlds ----------------------------------------------------------------------------------- */

static void of_64_mib(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 64 * GR_MIB;
}
static void classic(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 64 * GR_MIB;
    options->expandable_segments = 0;
}
static void limited(struct granary_sim_config *sim, struct granary_options *options) {
    (void)sim;
    options->limit_bytes = 64 * GR_MIB;
}
static void limited_classic(struct granary_sim_config *sim, struct granary_options *options) {
    limited(sim, options);
    options->expandable_segments = 0;
}
static void cached(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 64 * GR_MIB;
    options->handle_cache_bytes = 32 * GR_MIB;
}
static void two_devices(struct granary_sim_config *sim, struct granary_options *options) {
    of_64_mib(sim, options);
    sim->devices = 2;
}
static void short_ranges(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->memory_bytes = 64 * GR_MIB;
    sim->max_reserve_bytes = 16 * GR_MIB;
}

static void recorded(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 64 * GR_MIB;
    options->history = GRANARY_HISTORY_ALL;
    options->history_entries = 50;
}
static void garbage(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 64 * GR_MIB;
    options->garbage_collection_threshold = 0.25;
}
static void garbage_classic(struct granary_sim_config *sim, struct granary_options *options) {
    garbage(sim, options);
    options->expandable_segments = 0;
}
static void uncached(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 64 * GR_MIB;
    options->no_caching = 1;
}

/* ---- memory ----------------------------------------------------------------------------------- */

static uint64_t next_id;

static struct model_block take(struct world *w, size_t size, granary_stream stream) {
    struct model_block block = {.requested = size, .stream = stream, .pattern = ++next_id};
    block.addr = (gr_addr)(uintptr_t)fixture_alloc(w->g, size, stream);
    ck_assert_int_eq(granary_size_of(w->g, (void *)(uintptr_t)block.addr, &block.size), GRANARY_OK);
    ck_assert_int_eq(
        granary_sim_use(stream, (void *)(uintptr_t)block.addr, block.size, 1, block.pattern, "sweep"), 0);
    return block;
}

void world_live(struct world *w, size_t size, granary_stream stream) {
    struct model_block block = take(w, size, stream);
    model_fill(&block);
    ck_assert_ptr_null(model_add(&w->live, &block));
}

void world_idle(struct world *w, size_t size, granary_stream stream) {
    struct model_block block = take(w, size, stream);
    fixture_free(w->g, (void *)(uintptr_t)block.addr);
}

/* A request, whose block goes into the live ones. */
static int ask(struct world *w, size_t size, granary_stream stream) {
    void *ptr = &ptr;
    int status = granary_alloc(w->g, size, stream, &ptr);
    if (status != GRANARY_OK) return ptr == NULL ? status : GRANARY_OK + 1; /* a failure writes NULL */
    struct model_block block = {
        .addr = (gr_addr)(uintptr_t)ptr, .requested = size, .stream = stream, .pattern = ++next_id};
    ck_assert_int_eq(granary_size_of(w->g, ptr, &block.size), GRANARY_OK);
    model_fill(&block);
    ck_assert_ptr_null(model_add(&w->live, &block));
    /* The oracle aborts when the memory came without the order that it needs. */
    ck_assert_int_eq(granary_sim_use(stream, ptr, block.size, 1, block.pattern, "sweep"), 0);
    return status;
}

/* ---- states ----------------------------------------------------------------------------------- */

static void nothing(struct world *w) {
    (void)w;
}

static void one_of_each(struct world *w) {
    world_live(w, 3000, w->a);
    world_live(w, 6 * GR_MIB, w->a);
}

/* Live, hole of 2, free of 1, hole of 2, live; granules. */
static void two_holes(struct world *w) {
    struct model_block hole[2], middle;
    world_live(w, 2 * GR_MIB, w->a);
    hole[0] = take(w, 4 * GR_MIB, w->a);
    middle = take(w, 2 * GR_MIB, w->a);
    hole[1] = take(w, 4 * GR_MIB, w->a);
    world_live(w, 2 * GR_MIB, w->a);
    for (int i = 0; i < 2; i++) fixture_free(w->g, (void *)(uintptr_t)hole[i].addr);
    (void)fixture_trim(w->g, 0);
    fixture_free(w->g, (void *)(uintptr_t)middle.addr);
}

/* 40 of 64 MiB idle in pieces between live blocks of stream a. */
static void idle_in_pieces(struct world *w) {
    void *idle[4];
    for (int i = 0; i < 4; i++) {
        idle[i] = (void *)(uintptr_t)take(w, 10 * GR_MIB, w->a).addr;
        world_live(w, 2 * GR_MIB, w->a);
    }
    for (int i = 0; i < 4; i++) fixture_free(w->g, idle[i]);
}

/* A full card. Of stream a: 4 MiB idle; and a piece of a granule beside a hole, so that 2.5 MiB miss one
 * granule there. */
static void piece_beside_a_hole(struct world *w) {
    struct model_block idle = take(w, 4 * GR_MIB, w->a), cut;
    world_live(w, 2 * GR_MIB, w->a);
    cut = take(w, 4 * GR_MIB, w->a);
    world_live(w, 54 * GR_MIB, w->a);
    fixture_free(w->g, (void *)(uintptr_t)cut.addr);
    world_live(w, 1408 * 1024, w->a);
    world_live(w, 2 * GR_MIB, w->b);
    fixture_free(w->g, (void *)(uintptr_t)idle.addr);
}

static void idle_whole(struct world *w) {
    world_live(w, 20 * GR_MIB, w->b);
    world_idle(w, 30 * GR_MIB, w->a);
}

static void idle_everywhere(struct world *w) {
    one_of_each(w);
    world_idle(w, 20 * GR_MIB, w->a);
    world_idle(w, 10 * GR_MIB, w->b);
    world_idle(w, 100, w->b);
}

static void something_cached(struct world *w) {
    struct gr_extent *extent[2];
    one_of_each(w);
    gr_lock_take(&w->g->miss);
    ck_assert(gr_extents_reserve(&w->g->extents, 2));
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(gr_extents_get(&w->g->extents, 5 - i, &extent[i]), GRANARY_OK);
    for (size_t i = 0; i < 2; i++) gr_extents_put(&w->g->extents, extent[i]);
    gr_lock_give(&w->g->miss);
}

static void nearly_full_range(struct world *w) {
    world_live(w, 14 * GR_MIB, w->a); /* of 16 */
}

static void two_to_free(struct world *w) {
    one_of_each(w);
    w->spare[0] = (void *)(uintptr_t)take(w, 5000, w->a).addr;
    w->spare[1] = (void *)(uintptr_t)take(w, 5 * GR_MIB, w->b).addr;
}

static void a_stream(struct world *w) {
    one_of_each(w);
    w->made = fixture_stream(w->g);
}

static void switched_to_classic(struct world *w) {
    idle_in_pieces(w);
    ck_assert_int_eq(granary_update_options(w->g, "expandable_segments:False", NULL), GRANARY_OK);
}

static void switched_to_expandable(struct world *w) {
    idle_whole(w);
    ck_assert_int_eq(granary_update_options(w->g, "expandable_segments:True", NULL), GRANARY_OK);
}

/* In a segment of its own, which a growth on ranges cannot take. */
static void idle_in_a_segment(struct world *w) {
    const struct granary_pool_options options = {.struct_size = sizeof options, .no_split = 1};
    granary_scope scope;
    one_of_each(w);
    ck_assert_int_eq(granary_pool_create(w->g, &options, &w->pool), GRANARY_OK);
    ck_assert_int_eq(granary_scope_begin(w->g, w->pool, NULL, NULL, &scope), GRANARY_OK);
    world_idle(w, 40 * GR_MIB, w->a);
    ck_assert_int_eq(granary_scope_end(w->g, scope), GRANARY_OK);
}

/* ---- calls ------------------------------------------------------------------------------------ */

static int ask_small(struct world *w) {
    return ask(w, 1000, w->a);
}
static int ask_large(struct world *w) {
    return ask(w, 5 * GR_MIB, w->a);
}
static int ask_granule_and_piece(struct world *w) {
    return ask(w, 5 * GR_MIB / 2, w->a);
}
static int ask_more_than_a_quarter(struct world *w) {
    return ask(w, 44 * GR_MIB, w->a); /* in several extents */
}
static int ask_five_granules(struct world *w) {
    return ask(w, 10 * GR_MIB, w->a);
}
static int ask_of_the_other_stream(struct world *w) {
    return ask(w, 40 * GR_MIB, w->b);
}
static int ask_many_small(struct world *w) {
    int status = GRANARY_OK;
    while (status == GRANARY_OK && w->live.count < 8) status = ask(w, GR_MIB, w->a);
    return status;
}
static int trim_all(struct world *w) {
    return granary_trim(w->g, 0, NULL);
}
static int trim_some(struct world *w) {
    return granary_trim(w->g, 20 * GR_MIB, NULL);
}
static int free_both(struct world *w) {
    for (int i = 0; i < 2; i++) {
        int status = w->spare[i] ? granary_free(w->g, w->spare[i]) : GRANARY_OK;
        if (status != GRANARY_OK) return status;
        w->spare[i] = NULL;
    }
    return GRANARY_OK;
}
static int allow_peer(struct world *w) {
    return granary_allow_peer(w->g, 1);
}
static int make_stream(struct world *w) {
    return granary_stream_create(w->g, &w->made);
}
static int end_stream(struct world *w) {
    int status = granary_stream_destroy(w->g, w->made);
    if (status == GRANARY_OK) w->made = NULL;
    return status;
}
static int read_figures(struct world *w) {
    struct granary_stats stats = {.struct_size = sizeof stats};
    struct granary_facts facts = {.struct_size = sizeof facts};
    int status = granary_get_stats(w->g, &stats);
    return status == GRANARY_OK ? granary_get_facts(w->g, &facts) : status;
}

static int swallow(void *context, const void *bytes, size_t size) {
    (void)context, (void)bytes, (void)size;
    return 0;
}
static int write_snapshot(struct world *w) {
    return granary_snapshot(w->g, GRANARY_PICKLE, swallow, NULL);
}
static int write_json(struct world *w) {
    return granary_snapshot(w->g, GRANARY_JSON, swallow, NULL);
}
static int summarise(struct world *w) {
    char text[GRANARY_SUMMARY_ROOM];
    struct granary_holder holder[2];
    size_t count;
    int status = granary_summary(w->g, 0, text, sizeof text);
    return status == GRANARY_OK ? granary_get_holders(w->g, GRANARY_BY_STACK, holder, 2, &count) : status;
}
static int start_history(struct world *w) {
    struct granary_history_options options;
    granary_history_options_init(&options);
    options.entries = 20;
    return granary_record_history(w->g, &options);
}
static int annotate(struct world *w) {
    return granary_annotate(w->g, "a mark", 1);
}
static int push_settings(struct world *w) {
    return granary_push_options(w->g, "reclaim:off,expandable_segments:False", NULL);
}
static int set_class(struct world *w) {
    return granary_stream_set_class(w->g, w->made, "kv");
}

/* It has nothing to give, and is called. */
static int relieve(granary *g, size_t size, granary_stream stream, void *context) {
    (void)g, (void)size, (void)stream;
    (*(int *)context)++;
    return 0;
}
static int ask_with_a_callback(struct world *w) {
    granary_callback name;
    int called = 0, status = granary_relief_add(w->g, relieve, &called, &name);
    if (status != GRANARY_OK) return status;
    status = ask(w, 44 * GR_MIB, w->a);
    ck_assert_int_eq(called, 1);
    ck_assert_int_eq(granary_callback_remove(w->g, name), GRANARY_OK);
    return status;
}

const struct scenario scenarios[] = {
    {"first small block of a stream", of_64_mib, nothing, ask_small, false, false},
    {"first large block of a stream", of_64_mib, nothing, ask_large, false, false},
    {"first small block of a stream, classic", classic, nothing, ask_small, false, false},
    {"first large block of a stream, classic", classic, nothing, ask_large, false, false},
    {"growth into a hole", of_64_mib, one_of_each, ask_large, false, false},
    {"growth into a hole with several extents", of_64_mib, one_of_each, ask_more_than_a_quarter, false,
     false},
    {"growth over several holes", of_64_mib, two_holes, ask_five_granules, false, false},
    {"growth of a small pool, block by block", of_64_mib, nothing, ask_many_small, false, false},
    {"growth from the handle cache", cached, something_cached, ask_more_than_a_quarter, true, false},
    {"growth into another range", short_ranges, nearly_full_range, ask_large, false, false},
    {"second segment, classic", classic, one_of_each, ask_many_small, false, false},
    {"idle memory of the pool itself", of_64_mib, idle_in_pieces, ask_more_than_a_quarter, true, false},
    {"idle memory of another stream, full card", of_64_mib, idle_in_pieces, ask_of_the_other_stream, true,
     false},
    {"idle memory of another stream, under a limit", limited, idle_in_pieces, ask_of_the_other_stream, true,
     false},
    {"idle segment of another stream, classic", classic, idle_whole, ask_of_the_other_stream, true, false},
    {"idle segment of another stream, under a limit, classic", limited_classic, idle_whole,
     ask_of_the_other_stream, true, false},
    {"growth though a block fits", of_64_mib, piece_beside_a_hole, ask_granule_and_piece, true, false},
    {"trim to nothing", of_64_mib, idle_everywhere, trim_all, true, false},
    {"trim to an amount", of_64_mib, idle_everywhere, trim_some, true, false},
    {"trim with a handle cache", cached, something_cached, trim_all, true, false},
    {"trim, classic", classic, idle_everywhere, trim_all, true, false},
    {"garbage of another stream", garbage, idle_in_pieces, ask_small, true, false},
    {"garbage of another stream, classic", garbage_classic, idle_whole, ask_of_the_other_stream, true, false},
    {"a segment that is trimmed", of_64_mib, idle_in_a_segment, ask_more_than_a_quarter, true, false},
    {"a miss that calls back", of_64_mib, one_of_each, ask_with_a_callback, false, false},
    {"no caching, small", uncached, one_of_each, ask_small, false, false},
    {"no caching, large", uncached, one_of_each, ask_large, false, false},
    {"no caching, free", uncached, two_to_free, free_both, false, true},
    {"free", of_64_mib, two_to_free, free_both, false, true},
    {"free, classic", classic, two_to_free, free_both, false, true},
    {"reading figures", of_64_mib, one_of_each, read_figures, false, true},
    {"letting a peer in", two_devices, idle_everywhere, allow_peer, false, false},
    {"making a stream", of_64_mib, one_of_each, make_stream, false, false},
    {"remembering settings", of_64_mib, one_of_each, push_settings, false, false},
    {"naming a stream's class", of_64_mib, a_stream, set_class, false, false},
    {"growth after a switch to classic segments", of_64_mib, switched_to_classic, ask_more_than_a_quarter,
     true, false},
    {"growth after a switch to expandable segments", classic, switched_to_expandable, ask_more_than_a_quarter,
     true, false},
    {"ending a stream", of_64_mib, a_stream, end_stream, false, false},
    {"beginning to record", of_64_mib, one_of_each, start_history, false, false},
    {"recording otherwise", recorded, one_of_each, start_history, false, false},
    {"first large block, recorded", recorded, nothing, ask_large, false, false},
    {"free, recorded", recorded, two_to_free, free_both, false, true},
    {"idle memory of another stream, recorded", recorded, idle_in_pieces, ask_of_the_other_stream, true,
     false},
    {"a mark", recorded, one_of_each, annotate, false, false},
    {"a snapshot, pickled", recorded, two_to_free, write_snapshot, false, false},
    {"a snapshot as JSON", recorded, two_to_free, write_json, false, false},
    {"a summary", recorded, two_to_free, summarise, false, false},
    {0}};
