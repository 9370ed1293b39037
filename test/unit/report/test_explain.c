/* SPDX-License-Identifier: Apache-2.0
 * Shortages: each kind made on purpose and named rightly, advice that really helps and is never to do what
 * is done already, and the words for facts made by hand. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "support/shortage.h"

static char text[2048];

static const char *explain(const struct granary_shortfall *s) {
    ck_assert_int_eq(granary_explain(s, text, sizeof text), GRANARY_OK);
    return text;
}

static bool says(const struct granary_shortfall *s, const char *words) {
    return strstr(explain(s), words) != NULL;
}

static struct granary_shortfall play(const struct shortage_scene *scene, const char *more) {
    struct granary_shortfall s;
    int line = shortage_play(scene, more, &s);
    ck_assert_msg(line == 0, "%s: line %d", scene->name, line);
    return s;
}

START_TEST(each_kind_is_named_rightly) {
    const struct shortage_scene *scene = &shortage_scenes[_i];
    struct granary_shortfall s = play(scene, NULL);
    ck_assert_uint_eq(s.struct_size, sizeof s);
    ck_assert_msg(granary_shortage_of(&s) == scene->kind, "%s is taken for %s", scene->name,
                  granary_shortage_name((int)granary_shortage_of(&s)));
    ck_assert_uint_eq(s.active_bytes + s.free_same_pool_bytes + s.free_other_class_bytes +
                          s.free_other_stream_bytes + s.free_private_bytes + s.free_graph_bytes,
                      s.reserved_bytes);
    ck_assert_uint_eq(s.reserved_bytes + s.device_free_bytes + s.foreign_bytes, s.device_total_bytes);
}
END_TEST

START_TEST(the_advice_helps_and_is_not_given_when_it_is_taken) {
    const struct shortage_scene *scene = &shortage_scenes[_i];
    char key[64] = "";
    struct granary_shortfall s = play(scene, NULL);
    if (!scene->help) {
        ck_assert_msg(!strstr(explain(&s), "True") && !strstr(text, "_mb:"), "%s", text);
        return;
    }
    (void)sscanf(scene->help, "%63[^:]", key);
    ck_assert_msg(says(&s, key), "%s does not name %s:\n%s", scene->name, key, text);
    s = play(scene, scene->help);
    ck_assert_msg(s.struct_size == 0, "with %s: %s", scene->help, explain(&s));
}
END_TEST

/* ---- facts made by hand ----------------------------------------------------------------------- */

/* 24 GiB, of which 20 are held and 10 live; 8 are asked for; all settings at their best. */
static struct granary_shortfall facts(void) {
    return (struct granary_shortfall){
        .struct_size = sizeof(struct granary_shortfall),
        .status = GRANARY_OUT_OF_MEMORY,
        .requested_bytes = 8 * GR_GIB,
        .rounded_bytes = 8 * GR_GIB,
        .grow_bytes = 8 * GR_GIB,
        .rungs = 1u << GRANARY_RUNG_POOL | 1u << GRANARY_RUNG_GROW,
        .allocated_bytes = 10 * GR_GIB,
        .active_bytes = 10 * GR_GIB,
        .reserved_bytes = 20 * GR_GIB,
        .limit_bytes = GRANARY_UNLIMITED,
        .device_free_bytes = 4 * GR_GIB,
        .device_total_bytes = 24 * GR_GIB,
        .expandable_segments = 1,
        .virtual_memory = 1,
        .reclaim = GRANARY_RECLAIM_PRESSURE,
        .capture_reuse = GRANARY_REUSE_STREAM,
        .extent_bytes = 2 * GR_MIB,
    };
}

START_TEST(the_place_that_holds_most_names_the_kind) {
    for (int i = 0; i < 5; i++) {
        static const enum granary_shortage kinds[] = {
            GRANARY_SHORTAGE_PENDING, GRANARY_SHORTAGE_FRAGMENTED, GRANARY_SHORTAGE_OTHER_CLASS,
            GRANARY_SHORTAGE_OTHER_STREAMS, GRANARY_SHORTAGE_PRIVATE_POOLS};
        struct granary_shortfall s = facts();
        size_t *places[] = {&s.pending_bytes, &s.free_same_pool_bytes, &s.free_other_class_bytes,
                            &s.free_other_stream_bytes, &s.free_graph_bytes};
        for (int k = 0; k < 5; k++) *places[k] = k == i ? 6 * GR_GIB : GR_GIB;
        ck_assert_int_eq(granary_shortage_of(&s), kinds[i]);
    }
}
END_TEST

START_TEST(what_does_not_fit_beside_live_memory_is_full_by_whoever_holds_it) {
    struct granary_shortfall s = facts();
    s.free_same_pool_bytes = 10 * GR_GIB; /* more than anything else, and not what is in the way */
    s.rounded_bytes = s.requested_bytes = 14 * GR_GIB;
    ck_assert_int_eq(granary_shortage_of(&s), GRANARY_SHORTAGE_FRAGMENTED); /* just fits */
    s.rounded_bytes += 512;
    ck_assert_int_eq(granary_shortage_of(&s), GRANARY_SHORTAGE_FULL);
    s.rounded_bytes = 9 * GR_GIB;
    s.limit_bytes = 18 * GR_GIB;
    ck_assert_int_eq(granary_shortage_of(&s), GRANARY_SHORTAGE_OVER_LIMIT);
    s.limit_bytes = GRANARY_UNLIMITED;
    s.foreign_bytes = 6 * GR_GIB;
    ck_assert_int_eq(granary_shortage_of(&s), GRANARY_SHORTAGE_FOREIGN);
    s.foreign_bytes = GR_GIB; /* CUDA itself: nobody to blame */
    s.rounded_bytes = 14 * GR_GIB;
    ck_assert_int_eq(granary_shortage_of(&s), GRANARY_SHORTAGE_FULL);
    s.rounded_bytes = 25 * GR_GIB;
    ck_assert_int_eq(granary_shortage_of(&s), GRANARY_SHORTAGE_TOO_LARGE);
    s.rounded_bytes = SIZE_MAX; /* nothing wraps */
    ck_assert_int_eq(granary_shortage_of(&s), GRANARY_SHORTAGE_TOO_LARGE);
    s.status = GRANARY_ADDRESS_SPACE;
    ck_assert_int_eq(granary_shortage_of(&s), GRANARY_SHORTAGE_ADDRESS_SPACE);
}
END_TEST

START_TEST(settings_that_are_on_or_cannot_be_had_are_not_advised) {
    struct granary_shortfall s = facts();
    s.free_same_pool_bytes = 10 * GR_GIB;
    ck_assert(!says(&s, "expandable_segments") && !says(&s, "extent_mb") && !says(&s, "reclaim:"));
    s.extent_bytes = 20 * GR_MIB;
    ck_assert(says(&s, "extent_mb:2 instead of 20"));
    s.reclaim = GRANARY_RECLAIM_OFF;
    ck_assert(says(&s, "extent_mb:2")); /* nothing is idle: reclaiming would not help */
    s.idle_bytes = GR_GIB;
    ck_assert(says(&s, "reclaim:pressure"));
    s.expandable_segments = 0;
    ck_assert(says(&s, "expandable_segments:True"));
    s.virtual_memory = 0;
    ck_assert(!says(&s, "expandable_segments") && !says(&s, "extent_mb"));
}
END_TEST

START_TEST(idle_memory_that_a_capture_holds_back_is_trimmed_before_it) {
    struct granary_shortfall s = facts();
    s.free_other_stream_bytes = s.idle_bytes = 10 * GR_GIB;
    s.open_captures = 1;
    ck_assert(says(&s, "granary_trim before the capture"));
}
END_TEST

START_TEST(a_private_pool_is_asked_to_lend_unless_it_does) {
    struct granary_shortfall s = facts();
    s.free_private_bytes = 10 * GR_GIB;
    ck_assert(says(&s, "use_on_shortage"));
    s.rungs |= 1u << GRANARY_RUNG_LENDING;
    ck_assert(!says(&s, "use_on_shortage"));
}
END_TEST

START_TEST(holders_and_streams_are_named_the_largest_first) {
    struct granary_shortfall s = facts();
    s.free_same_pool_bytes = 10 * GR_GIB;
    s.holders[0] = (struct granary_holder){.name = "optimizer", .bytes = 6 * GR_GIB, .blocks = 3};
    s.holders[1] = (struct granary_holder){.name = "weights", .bytes = 4 * GR_GIB, .blocks = 1};
    s.stream_count = 5;
    for (size_t i = 0; i < 5; i++)
        s.streams[i] = (struct granary_shortfall_stream){
            .stream = (granary_stream)(i + 1), .live_bytes = (5 - i) * GR_GIB, .pending_bytes = i * GR_MIB};
    const char *all = explain(&s), *first = strstr(all, "optimizer holds 6.00 GiB in 3 blocks");
    ck_assert_msg(first && strstr(first, "weights holds 4.00 GiB in 1 block\n"), "%s", all);
    ck_assert(strstr(all, "the default stream: 5.00 GiB live") != NULL);
    ck_assert(strstr(all, "stream 0x2: 4.00 GiB live, 0 B free, 1.00 MiB wait for it") != NULL);
    ck_assert(strstr(all, "and 2 more streams") != NULL);
    ck_assert(strstr(all, "Tried: the pool, the driver.") != NULL);
    s.stream_count = 4;
    ck_assert(says(&s, "and 1 more stream\n"));
}
END_TEST

START_TEST(explanations_are_cut_to_fit_and_bad_arguments_refused) {
    struct granary_shortfall s = facts();
    char small[20];
    memset(small, 'x', sizeof small);
    ck_assert_int_eq(granary_explain(&s, small, sizeof small), GRANARY_OK);
    ck_assert_uint_eq(strlen(small), sizeof small - 1);
    ck_assert_int_eq(granary_explain(NULL, small, sizeof small), GRANARY_INVALID);
    ck_assert_int_eq(granary_explain(&s, NULL, 1), GRANARY_INVALID);
    ck_assert_int_eq(granary_explain(&s, small, 0), GRANARY_INVALID);
    s.struct_size = 8;
    ck_assert_int_eq(granary_explain(&s, small, sizeof small), GRANARY_INVALID);
    ck_assert_str_eq(granary_shortage_name(GRANARY_SHORTAGE_PENDING), "GRANARY_SHORTAGE_PENDING");
    ck_assert_ptr_nonnull(granary_shortage_name(99));
    ck_assert_ptr_nonnull(granary_shortage_sentence(99));
}
END_TEST

/* As much as there can be, in the room that the header promises to be enough. */
START_TEST(the_longest_explanation_fits) {
    struct granary_shortfall s = facts();
    char room[8192];
    size_t *places[] = {&s.pending_bytes,           &s.free_same_pool_bytes, &s.free_other_class_bytes,
                        &s.free_other_stream_bytes, &s.free_private_bytes,   &s.free_graph_bytes,
                        &s.handle_cache_bytes,      &s.foreign_bytes};
    for (size_t i = 0; i < GR_COUNT(places); i++) *places[i] = 1023 * GR_MIB;
    for (size_t i = 0; i < GR_COUNT(s.holders); i++) {
        memset(s.holders[i].name, 'w', sizeof s.holders[i].name - 1);
        s.holders[i].bytes = s.holders[i].blocks = SIZE_MAX;
    }
    for (size_t i = 0; i < GR_COUNT(s.streams); i++)
        s.streams[i] = (struct granary_shortfall_stream){(granary_stream)UINTPTR_MAX, SIZE_MAX, SIZE_MAX, 1};
    s.stream_count = SIZE_MAX;
    s.limit_bytes = 23 * GR_GIB;
    s.rungs = ~0u;
    ck_assert_int_eq(granary_explain(&s, room, sizeof room), GRANARY_OK);
    ck_assert_uint_lt(strlen(room), 2048);
}
END_TEST

/* Facts of another process, which are not to be trusted. */
START_TEST(a_name_without_an_end_is_cut) {
    struct granary_shortfall s = facts();
    char room[8192];
    memset(&s.holders[0], 'w', sizeof s.holders[0]);
    ck_assert_int_eq(granary_explain(&s, room, sizeof room), GRANARY_OK);
    const char *name = strstr(room, "  ww");
    ck_assert_ptr_nonnull(name);
    ck_assert_uint_eq(strspn(name + 2, "w"), sizeof s.holders[0].name - 1);
}
END_TEST

Suite *suite_explain(void) {
    Suite *suite = suite_create("explain");
    TCase *cases = tcase_create("explain");
    int count = 0;
    while (shortage_scenes[count].name) count++;
    TCase *scenes = tcase_create("scenes");
    tcase_set_tags(scenes, "large");
    tcase_add_loop_test(scenes, each_kind_is_named_rightly, 0, count);
    tcase_add_loop_test(scenes, the_advice_helps_and_is_not_given_when_it_is_taken, 0, count);
    suite_add_tcase(suite, scenes);
    tcase_add_test(cases, the_place_that_holds_most_names_the_kind);
    tcase_add_test(cases, what_does_not_fit_beside_live_memory_is_full_by_whoever_holds_it);
    tcase_add_test(cases, settings_that_are_on_or_cannot_be_had_are_not_advised);
    tcase_add_test(cases, idle_memory_that_a_capture_holds_back_is_trimmed_before_it);
    tcase_add_test(cases, a_private_pool_is_asked_to_lend_unless_it_does);
    tcase_add_test(cases, holders_and_streams_are_named_the_largest_first);
    tcase_add_test(cases, explanations_are_cut_to_fit_and_bad_arguments_refused);
    tcase_add_test(cases, the_longest_explanation_fits);
    tcase_add_test(cases, a_name_without_an_end_is_cut);
    suite_add_tcase(suite, cases);
    return suite;
}
