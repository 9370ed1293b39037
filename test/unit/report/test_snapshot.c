/* SPDX-License-Identifier: Apache-2.0
 * A snapshot has PyTorch's keys with PyTorch's types, says the same in both formats, agrees with the
 * statistics, and every moment of its history can be rebuilt from it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "support/fixture.h"
#include "support/written.h"
#include "tool/snapshot.h"

static granary *g;
static granary_stream held;
static struct written written, other;

static void teardown(void) {
    written_free(&written);
    written_free(&other);
}

static void all_history(struct granary_sim_config *sim, struct granary_options *options) {
    sim->memory_bytes = 256 * GR_MIB;
    options->history = GRANARY_HISTORY_ALL;
    options->history_stacks = GRANARY_STACKS_NONE; /* their names take time, and most tests look at none */
}
static void with_stacks(struct granary_sim_config *sim, struct granary_options *options) {
    all_history(sim, options);
    options->history_stacks = GRANARY_STACKS_C;
}
static void classic(struct granary_sim_config *sim, struct granary_options *options) {
    all_history(sim, options);
    options->expandable_segments = 0;
}
static void second_device(struct granary_sim_config *sim, struct granary_options *options) {
    all_history(sim, options);
    sim->devices = 2;
}

static void record(int level, int stacks, size_t entries) {
    struct granary_history_options options;
    granary_history_options_init(&options);
    options.level = level;
    options.stacks = stacks;
    options.entries = entries;
    ck_assert_int_eq(granary_record_history(g, &options), GRANARY_OK);
}

/* Live, pending, free, a private pool, two streams, an out-of-memory, a trim. */
static void traffic(void) {
    granary_stream s = fixture_stream(g);
    granary_pool pool;
    granary_scope scope;
    void *block[24], *ptr;
    ck_assert_int_eq(granary_set_tag("weights", NULL), GRANARY_OK);
    for (size_t i = 0; i < 24; i++)
        block[i] = fixture_alloc(g, (i + 1) * (i % 3 ? 3000 : 900000), i % 2 ? s : NULL);
    ck_assert_int_eq(granary_set_tag("", NULL), GRANARY_OK);
    ck_assert_int_eq(granary_pool_create(g, NULL, &pool), GRANARY_OK);
    ck_assert_int_eq(granary_scope_begin(g, pool, NULL, NULL, &scope), GRANARY_OK);
    (void)fixture_alloc(g, 5 * GR_MIB, NULL);
    ck_assert_int_eq(granary_scope_end(g, scope), GRANARY_OK);
    for (size_t i = 0; i < 24; i += 3) fixture_free(g, block[i]);
    ck_assert_int_eq(granary_alloc(g, GR_GIB, s, &ptr), GRANARY_OUT_OF_MEMORY);
    fixture_trim(g, 0);
    held = s;
    granary_sim_hold(s);
    ck_assert_int_eq(granary_sim_use(s, block[4], 3000, 1, 1, GRANARY_SIM_SITE), 0);
    ck_assert_int_eq(granary_record_stream(g, block[4], s), GRANARY_OK);
    fixture_free(g, block[4]);
    fixture_free(g, block[23]); /* beside free memory */
    fixture_free(g, block[22]);
}

static void end(void) {
    granary_sim_release(held);
    granary_sim_run_all();
    ck_assert_int_eq(granary_stream_destroy(g, held), GRANARY_OK);
    fixture_close(g);
}

/* ---- schema ----------------------------------------------------------------------------------- */

struct field {
    const char *key;
    enum value_kind kind;
    bool ours; /* not one of PyTorch's, and may be missing */
};

static const struct field segment_fields[] = {{"device", VALUE_INT, false},
                                              {"address", VALUE_INT, false},
                                              {"total_size", VALUE_INT, false},
                                              {"allocated_size", VALUE_INT, false},
                                              {"active_size", VALUE_INT, false},
                                              {"requested_size", VALUE_INT, false},
                                              {"stream", VALUE_INT, false},
                                              {"segment_type", VALUE_TEXT, false},
                                              {"segment_pool_id", VALUE_TUPLE, false},
                                              {"is_expandable", VALUE_BOOL, false},
                                              {"frames", VALUE_LIST, false},
                                              {"blocks", VALUE_LIST, false},
                                              {NULL, VALUE_NONE, false}};
static const struct field block_fields[] = {
    {"address", VALUE_INT, false}, {"size", VALUE_INT, false},    {"requested_size", VALUE_INT, false},
    {"state", VALUE_TEXT, false},  {"frames", VALUE_LIST, false}, {"tag", VALUE_TEXT, true},
    {NULL, VALUE_NONE, false}};
static const struct field entry_fields[] = {{"action", VALUE_TEXT, false},
                                            {"addr", VALUE_INT, true}, /* one of the two */
                                            {"device_free", VALUE_INT, true},
                                            {"size", VALUE_INT, false},
                                            {"stream", VALUE_INT, false},
                                            {"time_us", VALUE_INT, false},
                                            {"time_error_us", VALUE_INT, true},
                                            {"compile_context", VALUE_TEXT, false},
                                            {"user_metadata", VALUE_TEXT, false},
                                            {"frames", VALUE_LIST, false},
                                            {"pool_id", VALUE_TUPLE, true},
                                            {"tag", VALUE_TEXT, true},
                                            {NULL, VALUE_NONE, false}};
static const struct field frame_fields[] = {{"name", VALUE_TEXT, false},
                                            {"filename", VALUE_TEXT, false},
                                            {"line", VALUE_INT, false},
                                            {NULL, VALUE_NONE, false}};
static const struct field settings_fields[] = {{"PYTORCH_CUDA_ALLOC_CONF", VALUE_TEXT, false},
                                               {"max_split_size", VALUE_INT, false},
                                               {"garbage_collection_threshold", VALUE_FLOAT, false},
                                               {"expandable_segments", VALUE_BOOL, false},
                                               {"pinned_num_register_threads", VALUE_INT, false},
                                               {"release_lock_on_cudamalloc", VALUE_BOOL, false},
                                               {"pinned_use_cuda_host_register", VALUE_BOOL, false},
                                               {"graph_capture_record_stream_reuse", VALUE_BOOL, false},
                                               {"roundup_power2_divisions", VALUE_DICT, false},
                                               {NULL, VALUE_NONE, false}};
static const struct field annotation_fields[] = {
    {"stage", VALUE_TEXT, false},  {"name", VALUE_TEXT, false},        {"device", VALUE_INT, false},
    {"time_us", VALUE_INT, false}, {"time_error_us", VALUE_INT, true}, {NULL, VALUE_NONE, false}};
static const struct field top_fields[] = {{"segments", VALUE_LIST, false},
                                          {"device_traces", VALUE_LIST, false},
                                          {"allocator_settings", VALUE_DICT, false},
                                          {"external_annotations", VALUE_LIST, false},
                                          {"granary", VALUE_DICT, true},
                                          {NULL, VALUE_NONE, false}};

/* Has every field, each of its type, and no other. */
static void check_fields(const struct value *dict, const struct field *fields, const char *what) {
    size_t known = 0;
    ck_assert_msg(dict->kind == VALUE_DICT, "%s is a %s", what, value_kind_name(dict));
    for (const struct field *f = fields; f->key; f++) {
        const struct value *value = value_get(dict, f->key);
        if (!value && f->ours) continue;
        ck_assert_msg(value != NULL, "%s has no %s", what, f->key);
        ck_assert_msg(value->kind == (uint8_t)f->kind, "%s of %s is a %s", f->key, what,
                      value_kind_name(value));
        known++;
    }
    ck_assert_msg(dict->items.count == 2 * known, "%s has %zu keys, %zu are known", what,
                  dict->items.count / 2, known);
}

static void check_each(const struct value *list, const struct field *fields, const char *what) {
    for (size_t i = 0; i < list->items.count; i++) check_fields(list->items.at[i], fields, what);
}

static void check_schema(const struct value *top) {
    check_fields(top, top_fields, "the snapshot");
    check_fields(value_get(top, "allocator_settings"), settings_fields, "allocator_settings");
    check_each(value_get(top, "external_annotations"), annotation_fields, "an annotation");
    const struct value *segments = value_get(top, "segments"), *traces = value_get(top, "device_traces");
    check_each(segments, segment_fields, "a segment");
    for (size_t s = 0; s < segments->items.count; s++) {
        check_each(value_get(segments->items.at[s], "blocks"), block_fields, "a block");
        check_each(value_get(segments->items.at[s], "frames"), frame_fields, "a frame");
    }
    for (size_t d = 0; d < traces->items.count; d++) {
        check_each(traces->items.at[d], entry_fields, "an entry");
        for (size_t i = 0; i < traces->items.at[d]->items.count; i++) {
            const struct value *entry = traces->items.at[d]->items.at[i];
            bool oom = strcmp(written_text(entry, "action"), "oom") == 0;
            ck_assert((value_get(entry, "device_free") != NULL) == oom);
            ck_assert((value_get(entry, "addr") != NULL) == !oom);
            check_each(value_get(entry, "frames"), frame_fields, "a frame");
        }
    }
}

START_TEST(it_has_the_keys_of_pytorch_with_their_types) {
    g = fixture_open(_i == 0 ? with_stacks : classic);
    traffic();
    ck_assert_int_eq(granary_annotate(g, "step", 1), GRANARY_OK);
    ck_assert_int_eq(granary_annotate(g, "step", 0), GRANARY_OK);
    const struct value *top = written_snapshot(&written, g, GRANARY_PICKLE);
    check_schema(top);
    ck_assert_uint_eq(value_get(top, "external_annotations")->items.count, 2);
    ck_assert_uint_eq(value_get(top, "device_traces")->items.count, 1);
    end();
}
END_TEST

START_TEST(without_history_it_is_complete_too) {
    g = fixture_open(NULL);
    const struct value *top = written_snapshot(&written, g, GRANARY_PICKLE);
    check_schema(top);
    ck_assert_uint_eq(value_get(top, "segments")->items.count, 0);
    (void)fixture_alloc(g, 1000, NULL);
    top = written_snapshot(&written, g, GRANARY_PICKLE);
    check_schema(top);
    ck_assert_uint_eq(value_get(top, "segments")->items.count, 1);
    ck_assert_uint_eq(value_get(top, "device_traces")->items.at[0]->items.count, 0);
    ck_assert_str_eq(written_text(top, "granary.history.level"), "off");
    fixture_close(g);
}
END_TEST

START_TEST(the_history_of_a_device_stands_at_its_place) {
    struct granary_options options;
    fixture_open_sim(second_device, &options);
    g = fixture_open_handle(&options, 1);
    (void)fixture_alloc(g, 1000, NULL);
    const struct value *top = written_snapshot(&written, g, GRANARY_PICKLE);
    ck_assert_uint_eq(value_get(top, "device_traces")->items.count, 2);
    ck_assert_uint_eq(value_get(top, "device_traces")->items.at[0]->items.count, 0);
    ck_assert_uint_gt(value_get(top, "device_traces")->items.at[1]->items.count, 0);
    ck_assert_int_eq(written_int(value_get(top, "segments")->items.at[0], "device"), 1);
    fixture_close(g);
}
END_TEST

/* ---- both formats ----------------------------------------------------------------------------- */

/* Differences that are meant: lists for tuples, places for stacks, and what one snapshot does to the next. */
static void compare(const struct value *pickle, const struct value *json, const struct value *stacks,
                    const char *key) {
    if (strcmp(key, "frames") == 0) {
        ck_assert_int_eq(json->kind, VALUE_INT);
        json = stacks->items.at[json->number];
    }
    bool moved = strncmp(key, "time_", 5) == 0 || strcmp(key, "kept") == 0 || strcmp(key, "recorded") == 0;
    uint8_t kind = pickle->kind == VALUE_TUPLE ? VALUE_LIST : pickle->kind;
    ck_assert_msg(kind == json->kind, "%s: %s and %s", key, value_kind_name(pickle), value_kind_name(json));
    switch ((enum value_kind)kind) {
    case VALUE_BOOL: ck_assert_int_eq(pickle->truth, json->truth); break;
    case VALUE_INT: ck_assert_msg(moved || pickle->number == json->number, "%s", key); break;
    case VALUE_FLOAT: ck_assert(pickle->real == json->real); break;
    case VALUE_TEXT: ck_assert_str_eq(pickle->text.bytes, json->text.bytes); break;
    case VALUE_LIST:
        ck_assert_msg(pickle->items.count <= json->items.count, "%s", key); /* the other snapshot, told */
        for (size_t i = 0; i < pickle->items.count; i++)
            compare(pickle->items.at[i], json->items.at[i], stacks, "");
        break;
    case VALUE_DICT:
        for (size_t i = 0; i < pickle->items.count; i += 2) {
            const char *name = pickle->items.at[i]->text.bytes;
            const struct value *twin = value_get(json, name);
            if (strcmp(name, "time_error_us") == 0) continue;
            ck_assert_msg(twin != NULL, "no %s", name);
            compare(pickle->items.at[i + 1], twin, stacks, name);
        }
        break;
    default: ck_assert_int_eq(kind, VALUE_NONE);
    }
}

START_TEST(both_formats_say_the_same) {
    g = fixture_open(_i == 0 ? with_stacks : classic);
    traffic();
    const struct value *pickle = written_snapshot(&written, g, GRANARY_PICKLE);
    const struct value *json = written_snapshot(&other, g, GRANARY_JSON);
    compare(pickle, json, written_at(json, "stacks", VALUE_LIST), "");
    end();
}
END_TEST

/* ---- it agrees -------------------------------------------------------------------------------- */

static void check_sums(const struct value *top) {
    int64_t allocated = 0, active = 0, requested = 0, total = 0, last = 0;
    const struct value *segments = value_get(top, "segments");
    for (size_t s = 0; s < segments->items.count; s++) {
        const struct value *segment = segments->items.at[s], *blocks = value_get(segment, "blocks");
        int64_t at = written_int(segment, "address");
        bool free_before = false;
        ck_assert_int_ge(at, last);
        for (size_t b = 0; b < blocks->items.count; b++) {
            ck_assert_int_eq(written_int(blocks->items.at[b], "address"), at);
            at += written_int(blocks->items.at[b], "size");
            bool free = strcmp(written_text(blocks->items.at[b], "state"), "inactive") == 0;
            ck_assert(!free || !free_before); /* the one freed last is joined, too */
            free_before = free;
        }
        last = written_int(segment, "address") + written_int(segment, "total_size");
        ck_assert_int_eq(at, last);
        allocated += written_int(segment, "allocated_size");
        active += written_int(segment, "active_size");
        requested += written_int(segment, "requested_size");
        total += written_int(segment, "total_size");
    }
    ck_assert_int_eq(allocated, written_int(top, "granary.statistics.allocated_bytes.all.current"));
    ck_assert_int_eq(active, written_int(top, "granary.statistics.active_bytes.all.current"));
    ck_assert_int_eq(requested, written_int(top, "granary.statistics.requested_bytes.all.current"));
    ck_assert_int_eq(total, written_int(top, "granary.statistics.reserved_bytes.all.current"));
}

START_TEST(segments_and_statistics_agree) {
    g = fixture_open(_i == 0 ? all_history : classic);
    traffic();
    check_sums(written_snapshot(&written, g, GRANARY_PICKLE));
    struct granary_stats stats = fixture_stats(g);
    const struct value *top = written_read(&written, GRANARY_PICKLE);
    ck_assert_int_eq(written_int(top, "granary.statistics.active_bytes.all.current"),
                     stats.active_bytes.all.current);
    ck_assert_int_eq(written_int(top, "granary.statistics.pending_blocks"), 1);
    end();
}
END_TEST

START_TEST(every_moment_can_be_rebuilt) {
    struct snapshot snapshot;
    struct snapshot_moment moment;
    struct problem problem;
    g = fixture_open(_i == 0 ? all_history : classic);
    traffic();
    (void)written_snapshot(&written, g, GRANARY_PICKLE);
    ck_assert_msg(snapshot_parse("x", written.bytes, written.size, &snapshot, &problem) == 0, "%s",
                  problem.text);
    ck_assert_uint_eq(snapshot.device_count, 1);
    const struct snapshot_device *device = &snapshot.devices[0];
    ck_assert_uint_eq(device->unexplained, 0);
    ck_assert_uint_eq(device->before_count, 0);
    ck_assert_uint_eq(device->reserved_before, 0);
    for (size_t e = 0; e <= device->entry_count; e++) {
        ck_assert_int_eq(snapshot_rebuild(&snapshot, device, e, &moment, &problem), 0);
        ck_assert_uint_eq(moment.unplaced, 0);
        ck_assert(e > 0 || moment.reserved == 0);
        snapshot_moment_free(&moment);
    }
    snapshot_free(&snapshot);
    end();
}
END_TEST

START_TEST(history_is_kept_from_the_start_when_an_option_says_so) {
    struct granary_options options;
    struct granary_option_error error;
    struct granary_history history = {.struct_size = sizeof history};
    fixture_open_sim(NULL, &options);
    ck_assert_int_eq(granary_options_parse(&options, "history:alloc,history_stacks:python,history_entries:7",
                                           NULL, &error),
                     GRANARY_OK);
    g = fixture_open_handle(&options, 0);
    ck_assert_int_eq(granary_get_history(g, &history), GRANARY_OK);
    ck_assert_int_eq(history.level, GRANARY_HISTORY_ALLOC);
    ck_assert_int_eq(history.stacks, GRANARY_STACKS_PYTHON);
    ck_assert_int_eq(history.entries, 7);
    fixture_close(g);
}
END_TEST

START_TEST(an_overflown_ring_says_so_and_live_blocks_are_all_there) {
    g = fixture_open(NULL);
    record(GRANARY_HISTORY_ALL, GRANARY_STACKS_NONE, 4);
    for (int i = 0; i < 6; i++) (void)fixture_alloc(g, 1000, NULL);
    struct granary_history history = {.struct_size = sizeof history};
    ck_assert_int_eq(granary_get_history(g, &history), GRANARY_OK);
    ck_assert_int_eq(history.recorded, 7); /* the memory was mapped, too */
    ck_assert_int_eq(history.kept, 4);
    ck_assert_int_eq(history.dropped, 3);
    const struct value *top = written_snapshot(&written, g, GRANARY_PICKLE);
    const struct value *trace = value_get(top, "device_traces")->items.at[0];
    ck_assert_uint_eq(trace->items.count, 4);
    ck_assert_str_eq(written_text(trace->items.at[3], "action"), "snapshot");
    ck_assert_int_eq(written_int(top, "granary.history.dropped"), 4);
    ck_assert_uint_eq(value_get(value_get(top, "segments")->items.at[0], "blocks")->items.count, 7);
    record(GRANARY_HISTORY_STATE, GRANARY_STACKS_NONE, 4); /* what is recorded changes, what was stays */
    (void)fixture_alloc(g, 1000, NULL);
    top = written_snapshot(&written, g, GRANARY_PICKLE);
    ck_assert_uint_eq(value_get(top, "device_traces")->items.at[0]->items.count, 4);
    ck_assert_int_eq(granary_clear_history(g), GRANARY_OK);
    ck_assert_int_eq(granary_get_history(g, &history), GRANARY_OK);
    ck_assert_int_eq(history.recorded, 0);
    fixture_close(g);
}
END_TEST

/* ---- who asked -------------------------------------------------------------------------------- */

static const struct value *entry_of(const struct value *top, const char *action, int64_t addr) {
    const struct value *trace = value_get(top, "device_traces")->items.at[0];
    for (size_t i = trace->items.count; i-- > 0;)
        if (strcmp(written_text(trace->items.at[i], "action"), action) == 0 &&
            written_int(trace->items.at[i], "addr") == addr)
            return trace->items.at[i];
    ck_abort_msg("no %s of that address", action);
}

static void __attribute__((noinline)) free_elsewhere(void *ptr) {
    fixture_free(g, ptr);
    __asm__ volatile("" ::: "memory");
}

START_TEST(frees_show_the_stack_of_their_block_or_at_level_all_their_own) {
    g = fixture_open(NULL);
    for (int level = GRANARY_HISTORY_ALLOC; level <= GRANARY_HISTORY_ALL; level++) {
        record(level, GRANARY_STACKS_C, 100);
        void *ptr = fixture_alloc(g, 1000, NULL);
        free_elsewhere(ptr);
        const struct value *top = written_snapshot(&written, g, GRANARY_PICKLE);
        const struct value *alloc = value_get(entry_of(top, "alloc", (int64_t)(uintptr_t)ptr), "frames");
        const struct value *freed =
            value_get(entry_of(top, "free_requested", (int64_t)(uintptr_t)ptr), "frames");
        const struct value *done =
            value_get(entry_of(top, "free_completed", (int64_t)(uintptr_t)ptr), "frames");
        ck_assert_uint_gt(alloc->items.count, 0);
        ck_assert_ptr_eq(done, alloc); /* stored once */
        if (level == GRANARY_HISTORY_ALLOC) ck_assert_ptr_eq(freed, alloc);
        if (level == GRANARY_HISTORY_ALL) ck_assert_ptr_ne(freed, alloc);
    }
    fixture_close(g);
}
END_TEST

START_TEST(a_live_block_knows_who_asked_as_long_as_history_was_kept_then) {
    g = fixture_open(NULL);
    (void)fixture_alloc(g, 1000, NULL);
    record(GRANARY_HISTORY_STATE, GRANARY_STACKS_C, 0);
    ck_assert_int_eq(granary_set_tag("tagged", NULL), GRANARY_OK);
    (void)fixture_alloc(g, 1000, NULL);
    record(GRANARY_HISTORY_OFF, GRANARY_STACKS_C, 0);
    (void)fixture_alloc(g, 1000, NULL);
    ck_assert_int_eq(granary_set_tag("", NULL), GRANARY_OK);
    const struct value *top = written_snapshot(&written, g, GRANARY_PICKLE);
    const struct value *blocks = value_get(value_get(top, "segments")->items.at[0], "blocks");
    ck_assert_uint_eq(value_get(blocks->items.at[0], "frames")->items.count, 0);
    ck_assert_uint_gt(value_get(blocks->items.at[1], "frames")->items.count, 0);
    ck_assert_str_eq(written_text(blocks->items.at[1], "tag"), "tagged");
    ck_assert_uint_eq(value_get(blocks->items.at[2], "frames")->items.count, 0);
    ck_assert_ptr_null(value_get(blocks->items.at[2], "tag"));
    fixture_close(g);
}
END_TEST

START_TEST(tags_and_metadata_are_those_of_the_thread_at_the_time) {
    char before[GRANARY_TAG_ROOM], text[GRANARY_METADATA_ROOM], longer[GRANARY_METADATA_ROOM + 1];
    g = fixture_open(NULL);
    record(GRANARY_HISTORY_ALL, GRANARY_STACKS_NONE, 100);
    ck_assert_int_eq(granary_set_tag("one", before), GRANARY_OK);
    ck_assert_str_eq(before, "");
    ck_assert_int_eq(granary_set_metadata("caf\xC3\xA9 \"\xFF\"", NULL), GRANARY_OK);
    void *ptr = fixture_alloc(g, 1000, NULL);
    ck_assert_int_eq(granary_set_tag("two", before), GRANARY_OK);
    ck_assert_str_eq(before, "one");
    memset(longer, 'x', sizeof longer);
    longer[GRANARY_METADATA_ROOM] = '\0';
    ck_assert_int_eq(granary_set_metadata(longer, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_set_tag(longer, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_set_tag(NULL, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_set_metadata("", text), GRANARY_OK);
    ck_assert_str_eq(text, "caf\xC3\xA9 \"\xFF\"");
    fixture_free(g, ptr);
    ck_assert_int_eq(granary_set_tag("", NULL), GRANARY_OK);
    const struct value *top = written_snapshot(&written, g, GRANARY_PICKLE);
    const struct value *alloc = entry_of(top, "alloc", (int64_t)(uintptr_t)ptr);
    const struct value *freed = entry_of(top, "free_requested", (int64_t)(uintptr_t)ptr);
    ck_assert_str_eq(written_text(alloc, "tag"), "one");
    ck_assert_str_eq(written_text(alloc, "user_metadata"), "caf\xC3\xA9 \"\xEF\xBF\xBD\"");
    ck_assert_str_eq(written_text(freed, "tag"), "one"); /* of its block */
    ck_assert_str_eq(written_text(freed, "user_metadata"), "");
    fixture_close(g);
}
END_TEST

/* ---- stacks stored once ----------------------------------------------------------------------- */

static void __attribute__((noinline)) pair_at(int depth) {
    if (depth > 0)
        pair_at(depth - 1);
    else
        fixture_free(g, fixture_alloc(g, 1000, NULL));
    __asm__ volatile("" ::: "memory");
}

START_TEST(thousands_of_entries_with_ten_stacks_stay_small) {
    enum { ENTRIES = 10000 };
    struct granary_history history = {.struct_size = sizeof history};
    g = fixture_open(NULL);
    record(GRANARY_HISTORY_ALLOC, GRANARY_STACKS_C, ENTRIES);
    for (int i = 0; i < ENTRIES / 3; i++) pair_at(i % 10);
    ck_assert_int_eq(granary_get_history(g, &history), GRANARY_OK);
    ck_assert_int_eq(history.distinct_stacks, 10);
    written_clear(&written);
    ck_assert_int_eq(granary_snapshot(g, (enum granary_format)_i, written_take, &written), GRANARY_OK);
    ck_assert_uint_lt(written.size, (size_t)ENTRIES * (_i == GRANARY_PICKLE ? 70 : 220) + 30000);
    fixture_close(g);
}
END_TEST

/* ---- uninitialised bytes ---------------------------------------------------------------------- */

static void __attribute__((noinline)) dirty_the_stack(int byte) {
    volatile char junk[64 * 1024];
    for (size_t i = 0; i < sizeof junk; i++) junk[i] = (char)byte;
    void *heap = malloc(200000);
    if (heap) memset(heap, byte, 200000);
    free(heap);
}

/* Everything but the times and the events that snapshots are told as. */
static size_t write_dirty(int byte, struct written *out) {
    dirty_the_stack(byte);
    written_clear(out);
    ck_assert_int_eq(granary_snapshot(g, (enum granary_format)GRANARY_JSON, written_take, out), GRANARY_OK);
    for (char *at = out->bytes; (at = strstr(at, "\"time_us\":")) != NULL;)
        for (at += 10; *at >= '0' && *at <= '9'; at++) *at = '0';
    return out->size;
}

START_TEST(the_same_state_is_the_same_bytes_whatever_memory_held_before) {
    g = fixture_open(all_history);
    traffic();
    record(GRANARY_HISTORY_OFF, GRANARY_STACKS_C, 100000);
    size_t first = write_dirty(0xAA, &written), second = write_dirty(0x55, &other);
    ck_assert_uint_eq(first, second);
    ck_assert_mem_eq(written.bytes, other.bytes, first);
    end();
}
END_TEST

/* ---- failures --------------------------------------------------------------------------------- */

static int refuse(void *context, const void *bytes, size_t size) {
    (void)context, (void)bytes, (void)size;
    return 1;
}

/* A writer may use the handle: no lock is held. */
static int allocate(void *context, const void *bytes, size_t size) {
    (void)context, (void)bytes, (void)size;
    void *ptr;
    ck_assert_int_eq(granary_alloc(g, 100 * GR_MIB, NULL, &ptr), GRANARY_OK);
    ck_assert_int_eq(granary_free(g, ptr), GRANARY_OK);
    ck_assert_int_eq(granary_clear_history(g), GRANARY_OK);
    return 0;
}

START_TEST(bad_arguments_and_writers_are_told) {
    struct granary_history_options options;
    struct granary_history history = {.struct_size = 0};
    g = fixture_open(all_history);
    ck_assert_int_eq(granary_snapshot(g, (enum granary_format)2, refuse, NULL), GRANARY_INVALID);
    ck_assert_str_eq(fixture_fault(g).text, "format is 2; it is GRANARY_PICKLE or GRANARY_JSON");
    ck_assert_int_eq(granary_snapshot(g, GRANARY_JSON, NULL, NULL), GRANARY_INVALID);
    ck_assert_int_eq(granary_snapshot(g, GRANARY_JSON, refuse, NULL), GRANARY_WRITE);
    ck_assert_int_eq(granary_snapshot(g, GRANARY_JSON, allocate, NULL), GRANARY_OK);
    ck_assert_int_eq(granary_snapshot_file(g, GRANARY_JSON, "/nowhere/at/all.json"), GRANARY_WRITE);
    ck_assert_str_eq(fixture_fault(g).text,
                     "/nowhere/at/all.json could not be written: No such file or directory");
    ck_assert_int_eq(granary_snapshot_file(g, GRANARY_JSON, ""), GRANARY_INVALID);
    granary_history_options_init(&options);
    options.level = 4;
    ck_assert_int_eq(granary_record_history(g, &options), GRANARY_INVALID);
    ck_assert_str_eq(fixture_fault(g).text, "options.level is 4 and stacks 3; the most are 3 and 3");
    options.struct_size = 3;
    ck_assert_int_eq(granary_record_history(g, &options), GRANARY_INVALID);
    ck_assert_int_eq(granary_get_history(g, &history), GRANARY_INVALID);
    ck_assert_int_eq(granary_annotate(g, NULL, 1), GRANARY_INVALID);
    granary_history_options_init(&options);
    options.entries = SIZE_MAX / 8;
    ck_assert_int_eq(granary_record_history(g, &options), GRANARY_HOST_MEMORY);
    fixture_close(g);
}
END_TEST

Suite *suite_snapshot(void) {
    Suite *suite = suite_create("snapshot");
    TCase *cases = tcase_create("snapshot");
    tcase_add_checked_fixture(cases, NULL, teardown);
    tcase_add_loop_test(cases, it_has_the_keys_of_pytorch_with_their_types, 0, 2);
    tcase_add_test(cases, without_history_it_is_complete_too);
    tcase_add_test(cases, the_history_of_a_device_stands_at_its_place);
    tcase_add_loop_test(cases, both_formats_say_the_same, 0, 2);
    tcase_add_loop_test(cases, segments_and_statistics_agree, 0, 2);
    tcase_add_loop_test(cases, every_moment_can_be_rebuilt, 0, 2);
    tcase_add_test(cases, history_is_kept_from_the_start_when_an_option_says_so);
    tcase_add_test(cases, an_overflown_ring_says_so_and_live_blocks_are_all_there);
    tcase_add_test(cases, frees_show_the_stack_of_their_block_or_at_level_all_their_own);
    tcase_add_test(cases, a_live_block_knows_who_asked_as_long_as_history_was_kept_then);
    tcase_add_test(cases, tags_and_metadata_are_those_of_the_thread_at_the_time);
    tcase_add_test(cases, the_same_state_is_the_same_bytes_whatever_memory_held_before);
    tcase_add_test(cases, bad_arguments_and_writers_are_told);
    tcase_add_loop_test(cases, thousands_of_entries_with_ten_stacks_stay_small, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
