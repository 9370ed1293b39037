/* SPDX-License-Identifier: Apache-2.0
 * Statistics, history and snapshots agree: replaying the events gives, at every look, the blocks and the
 * memory that the snapshot of that moment shows, and the figures that were counted; each allocation is
 * freed once and completed once; and so it is while several threads allocate. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "report/dump.h"
#include "support/fixture.h"
#include "support/hot.h"
#include "support/rng.h"

enum { OPERATIONS = 100000, LIVE = 300, STREAMS = 3, LOOKS = 12, EVENTS = 1 << 19, MEMORY = 128 };

static granary *g;
static struct rng rng;
static granary_stream streams[STREAMS];
static granary_pool pool;
static bool classic;
static void *live[LIVE];
static size_t live_count;

static void configure(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = MEMORY * GR_MIB;
    sim->backing = GRANARY_SIM_ACCOUNTING;
    sim->oracle = 0;
    sim->clock = GRANARY_SIM_MANUAL;
    options->expandable_segments = !classic;
    options->history = GRANARY_HISTORY_ALL;
    options->history_stacks = GRANARY_STACKS_NONE;
    options->history_entries = EVENTS;
}

/* ---- replaying -------------------------------------------------------------------------------- */

/* A set of intervals, by address: small and sorted. */
struct interval {
    uint64_t addr, size;
    bool pending;
};
struct set {
    struct interval at[4096];
    size_t count;
};

static size_t place(const struct set *set, uint64_t addr) {
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->at[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low; /* the first beyond addr */
}

static struct interval *find(struct set *set, uint64_t addr) {
    size_t i = place(set, addr);
    return i > 0 && set->at[i - 1].addr == addr ? &set->at[i - 1] : NULL;
}

static void insert(struct set *set, uint64_t addr, uint64_t size) {
    size_t i = place(set, addr);
    HOT_ASSERT(set->count < GR_COUNT(set->at));
    HOT_ASSERT(i == 0 || set->at[i - 1].addr + set->at[i - 1].size <= addr);
    HOT_ASSERT(i == set->count || addr + size <= set->at[i].addr);
    memmove(&set->at[i + 1], &set->at[i], (set->count - i) * sizeof set->at[0]);
    set->at[i] = (struct interval){addr, size, false};
    set->count++;
}

static void erase(struct set *set, struct interval *interval) {
    size_t i = (size_t)(interval - set->at);
    memmove(interval, interval + 1, (set->count - i - 1) * sizeof *interval);
    set->count--;
}

/* Memory comes in runs and goes in other ones: kept in granules, classic segments as they are. */
static void map(struct set *memory, const struct gr_event *e, bool come) {
    const uint64_t step = e->action == GR_SEGMENT_MAP || e->action == GR_SEGMENT_UNMAP ? 2 * GR_MIB : e->size;
    for (uint64_t addr = e->addr; addr < e->addr + e->size; addr += step) {
        struct interval *found = find(memory, addr);
        HOT_ASSERT((found == NULL) == come);
        if (come)
            insert(memory, addr, step);
        else
            erase(memory, found);
    }
}

static struct set blocks, memory;

static void replay(const struct gr_dump *dump) {
    blocks.count = memory.count = 0;
    for (size_t i = 0; i < dump->event_count; i++) {
        const struct gr_event *e = &dump->events[i];
        struct interval *block = find(&blocks, e->addr);
        switch (e->action) {
        case GR_ALLOC:
            HOT_ASSERT(e->addr != 0 && e->size > 0);
            insert(&blocks, e->addr, e->size);
            break;
        case GR_FREE_REQUESTED:
            HOT_ASSERT(block && !block->pending && block->size == e->size);
            block->pending = true;
            break;
        case GR_FREE_COMPLETED:
            HOT_ASSERT(block && block->pending && block->size == e->size);
            erase(&blocks, block);
            break;
        case GR_SEGMENT_ALLOC:
        case GR_SEGMENT_MAP: map(&memory, e, true); break;
        case GR_SEGMENT_FREE:
        case GR_SEGMENT_UNMAP: map(&memory, e, false); break;
        default: break;
        }
    }
}

static uint64_t bytes_of(const struct set *set) {
    uint64_t sum = 0;
    for (size_t i = 0; i < set->count; i++) sum += set->at[i].size;
    return sum;
}

/* The replay against the segments and blocks of the same moment, and against the figures. */
static void compare(const struct gr_dump *dump) {
    size_t seen = 0, mapped = 0, allocations = 0;
    for (size_t i = 0; i < dump->block_count; i++) {
        const struct gr_dump_block *b = &dump->blocks[i];
        if (b->state == GR_BLOCK_FREE) continue;
        const struct interval *told = find(&blocks, b->addr);
        HOT_ASSERT_MSG(told != NULL, "the block at %p was not told of", (void *)(uintptr_t)b->addr);
        HOT_ASSERT(told->size == b->requested && told->pending == (b->state == GR_BLOCK_PENDING));
        allocations += b->state == GR_BLOCK_LIVE;
        seen++;
    }
    HOT_ASSERT(seen == blocks.count);
    for (size_t s = 0; s < dump->segment_count; s++) mapped += dump->segments[s].size;
    HOT_ASSERT(mapped == bytes_of(&memory));
    HOT_ASSERT((int64_t)mapped == dump->stats.reserved_bytes.all.current);
    HOT_ASSERT(mapped <= MEMORY * GR_MIB);
    HOT_ASSERT((int64_t)bytes_of(&blocks) == dump->stats.requested_bytes.all.current);
    HOT_ASSERT((int64_t)blocks.count == dump->stats.active_blocks.all.current);
    HOT_ASSERT((int64_t)allocations == dump->stats.allocations.all.current);
    HOT_ASSERT(dump->history.dropped == 0 && dump->history.kept == (int64_t)dump->event_count);
}

static void look(void) {
    struct gr_dump dump;
    HOT_ASSERT(gr_dump_take(g, true, &dump) == GRANARY_OK);
    replay(&dump);
    compare(&dump);
    gr_dump_fini(&dump);
}

/* ---- one thread ------------------------------------------------------------------------------- */

static size_t any_size(void) {
    return rng_between(&rng, 1, (size_t)1 << rng_between(&rng, 9, rng_once_in(&rng, 20) ? 24 : 20));
}

static void free_one(void) {
    size_t i = rng_below(&rng, live_count);
    if (rng_once_in(&rng, 5)) {
        granary_stream s = streams[rng_below(&rng, STREAMS)];
        HOT_ASSERT(granary_record_stream(g, live[i], s) == GRANARY_OK);
    }
    HOT_ASSERT(granary_free(g, live[i]) == GRANARY_OK);
    live[i] = live[--live_count];
}

static void alloc_one(void) {
    granary_scope scope;
    void *ptr;
    bool private = rng_once_in(&rng, 10);
    if (private) HOT_ASSERT(granary_scope_begin(g, pool, NULL, NULL, &scope) == GRANARY_OK);
    int status = granary_alloc(g, rng_once_in(&rng, 500) ? MEMORY * GR_MIB : any_size(),
                               streams[rng_below(&rng, STREAMS)], &ptr);
    if (private) HOT_ASSERT(granary_scope_end(g, scope) == GRANARY_OK);
    HOT_ASSERT(status == GRANARY_OK || status == GRANARY_OUT_OF_MEMORY);
    if (status == GRANARY_OK) live[live_count++] = ptr;
}

START_TEST(a_hundred_thousand_random_operations_replay_to_what_is_there) {
    rng.state = 77 + (uint64_t)_i;
    classic = _i == 1;
    live_count = 0;
    g = fixture_open(configure);
    for (int s = 0; s < STREAMS; s++) streams[s] = s ? fixture_stream(g) : NULL;
    HOT_ASSERT(granary_pool_create(g, NULL, &pool) == GRANARY_OK);
    for (int n = 1; n <= OPERATIONS; n++) {
        if (live_count > 0 && (live_count == LIVE || rng_once_in(&rng, 2)))
            free_one();
        else
            alloc_one();
        if (rng_once_in(&rng, 30)) granary_sim_run_all();
        if (rng_once_in(&rng, 5000)) (void)granary_trim(g, 0, NULL);
        if (n % (OPERATIONS / LOOKS) == 0) look();
    }
    while (live_count > 0) free_one();
    granary_sim_run_all();
    look();
    HOT_ASSERT(blocks.count == 0);
    HOT_ASSERT(granary_pool_release(g, pool) == GRANARY_OK);
    for (int s = 1; s < STREAMS; s++) HOT_ASSERT(granary_stream_destroy(g, streams[s]) == GRANARY_OK);
    fixture_close(g);
}
END_TEST

/* ---- threads ---------------------------------------------------------------------------------- */

enum { THREADS = 3, EACH = 12000, HELD = 40 };
static atomic_int running;

static void *traffic(void *argument) {
    struct rng own = {(uint64_t)(uintptr_t)argument + 5};
    void *mine[HELD] = {NULL};
    granary_stream stream = streams[(uintptr_t)argument % STREAMS];
    char tag[8] = {'t', (char)('0' + (uintptr_t)argument), '\0'};
    HOT_ASSERT(granary_set_tag(tag, NULL) == GRANARY_OK);
    for (int n = 0; n < EACH; n++) {
        size_t i = rng_below(&own, HELD);
        if (mine[i]) HOT_ASSERT(granary_free(g, mine[i]) == GRANARY_OK);
        mine[i] = NULL;
        int status =
            granary_alloc(g, rng_between(&own, 1, (size_t)1 << rng_between(&own, 9, 21)), stream, &mine[i]);
        HOT_ASSERT(status == GRANARY_OK || status == GRANARY_OUT_OF_MEMORY);
    }
    for (int i = 0; i < HELD; i++)
        if (mine[i]) HOT_ASSERT(granary_free(g, mine[i]) == GRANARY_OK);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* Levels and sizes change while others write; then the ring is as it was. */
static void change_history(void) {
    struct granary_history_options options;
    granary_history_options_init(&options);
    options.entries = EVENTS;
    options.stacks = GRANARY_STACKS_NONE;
    HOT_ASSERT(granary_record_history(g, &options) == GRANARY_OK);
    options.entries = EVENTS + 1;
    HOT_ASSERT(granary_record_history(g, &options) == GRANARY_OK);
}

static int nowhere(void *context, const void *bytes, size_t size) {
    (void)bytes;
    *(size_t *)context += size;
    return 0;
}

START_TEST(snapshots_among_threads_show_one_moment) {
    pthread_t thread[THREADS];
    size_t size = 0, looks = 0;
    classic = false;
    g = fixture_open(configure);
    for (int s = 0; s < STREAMS; s++) streams[s] = s ? fixture_stream(g) : NULL;
    atomic_store(&running, THREADS);
    for (uintptr_t t = 0; t < THREADS; t++)
        HOT_ASSERT(pthread_create(&thread[t], NULL, traffic, (void *)t) == 0);
    do {
        struct granary_holder holder[4];
        size_t count;
        look();
        change_history();
        HOT_ASSERT(granary_get_holders(g, GRANARY_BY_TAG, holder, 4, &count) == GRANARY_OK);
        HOT_ASSERT(granary_annotate(g, "look", 1) == GRANARY_OK);
        if (looks++ == 0) HOT_ASSERT(granary_snapshot(g, GRANARY_JSON, nowhere, &size) == GRANARY_OK);
    } while (atomic_load(&running) > 0);
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    look();
    HOT_ASSERT(blocks.count == 0 && size > 0);
    for (int s = 1; s < STREAMS; s++) HOT_ASSERT(granary_stream_destroy(g, streams[s]) == GRANARY_OK);
    fixture_close(g);
}
END_TEST

Suite *suite_recording(void) {
    Suite *suite = suite_create("recording");
    TCase *cases = tcase_create("recording");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, a_hundred_thousand_random_operations_replay_to_what_is_there, 0, 2);
    tcase_add_test(cases, snapshots_among_threads_show_one_moment);
    suite_add_tcase(suite, cases);
    return suite;
}
