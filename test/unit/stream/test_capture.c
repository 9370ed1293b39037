/* SPDX-License-Identifier: Apache-2.0
 * Reuse inside a capture: with both markers, by both rules and by none, whatever the mode; and what
 * is not proved waits for the end. The fixture asserts that captures are left alone. */
#include <check.h>

#include "support/captures.h"

enum { SIZE = 4 << 20 };

static int reuse, marker;
static granary_stream a, b;
static granary_pool pool;
static uint64_t ids;

static void options_of(struct granary_sim_config *sim, struct granary_options *options) {
    (void)sim;
    options->capture_reuse = reuse;
    options->capture_marker = marker;
}

static void open_with(int rule, int kind) {
    reuse = rule;
    marker = kind;
    captures_open(options_of);
    a = captures_stream();
    b = captures_stream();
    pool = captures_pool();
}

static void close_all(void) {
    RAN(granary_pool_release(g, pool));
    captures_close();
}

/* One iteration of the shape that matters: a block made on a, used on b, joined back or not, freed. */
static void *iterate(bool joined, bool node_after) {
    uint64_t id = ++ids;
    char *p = fixture_alloc(g, SIZE, a);
    captures_use(a, p, SIZE, id);
    captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    captures_use(b, p, SIZE, id);
    if (joined) captures_link(b, a);
    fixture_free(g, p);
    if (node_after) captures_use(a, p, 0, 0);
    return p;
}

static gr_cu_graph finish(struct capture *capture) {
    captures_link(b, a);
    gr_cu_graph graph = captures_end(capture, GR_CU_SUCCESS);
    ck_assert_ptr_nonnull(graph);
    ck_assert_int_eq(captures_pending(pool), 0);
    return graph;
}

/* ---- the two rules ---------------------------------------------------------------------------- */

static const struct {
    int reuse, marker, mode;
} ways[] = {
    {GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS, GLOBAL},
    {GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS, THREAD_LOCAL},
    {GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS, RELAXED},
    {GRANARY_REUSE_STREAM, GRANARY_MARKER_EMPTY_NODE, GLOBAL},
    {GRANARY_REUSE_STREAM, GRANARY_MARKER_EMPTY_NODE, RELAXED},
    {GRANARY_REUSE_GRAPH, GRANARY_MARKER_TERMINALS, GLOBAL},
    {GRANARY_REUSE_GRAPH, GRANARY_MARKER_TERMINALS, RELAXED},
    {GRANARY_REUSE_GRAPH, GRANARY_MARKER_EMPTY_NODE, GLOBAL},
};

START_TEST(a_joined_block_is_used_again_in_its_capture) {
    open_with(ways[_i].reuse, ways[_i].marker);
    struct capture capture = captures_begin(pool, a, ways[_i].mode);
    void *first = iterate(true, false);
    captures_link(b, a); /* the empty node of b is joined as well */
    for (int i = 0; i < 20; i++) {
        void *next = iterate(true, false);
        captures_link(b, a);
        ck_assert_ptr_eq(next, first);
    }
    ck_assert_uint_eq(captures_reserved(pool), SIZE);
    captures_is_valid(&capture);
    (void)finish(&capture);
    close_all();
}
END_TEST

START_TEST(a_block_that_is_not_joined_is_not_used_again) {
    open_with(ways[_i].reuse, ways[_i].marker);
    struct capture capture = captures_begin(pool, a, ways[_i].mode);
    void *first = iterate(false, true);
    ck_assert_ptr_ne(iterate(false, true), first);
    ck_assert_ptr_ne(iterate(false, true), first);
    ck_assert_uint_eq(captures_reserved(pool), 3 * SIZE);
    ck_assert_int_eq(captures_pending(pool), 3);
    (void)finish(&capture);
    close_all();
}
END_TEST

START_TEST(without_reuse_every_block_waits_for_the_end) {
    open_with(GRANARY_REUSE_OFF, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    for (int i = 0; i < 8; i++) (void)iterate(true, true);
    ck_assert_uint_eq(captures_reserved(pool), 8 * SIZE);
    ck_assert_int_eq(captures_pending(pool), 8);
    (void)finish(&capture);
    close_all();
}
END_TEST

START_TEST(blocks_without_foreign_uses_are_used_again_at_once) {
    open_with(_i, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *first = fixture_alloc(g, SIZE, a);
    captures_use(a, first, SIZE, ++ids);
    fixture_free(g, first);
    for (int i = 0; i < 10; i++) {
        void *p = fixture_alloc(g, SIZE, a);
        ck_assert_ptr_eq(p, first);
        captures_use(a, p, SIZE, ++ids);
        fixture_free(g, p);
    }
    (void)captures_end(&capture, GR_CU_SUCCESS);
    close_all();
}
END_TEST

START_TEST(four_streams_must_all_be_joined) {
    granary_stream c, d;
    open_with(GRANARY_REUSE_STREAM, ways[_i].marker);
    c = captures_stream();
    d = captures_stream();
    granary_stream users[] = {b, c, d};
    struct capture capture = captures_begin(pool, a, ways[_i].mode);
    char *p = fixture_alloc(g, SIZE, a);
    captures_use(a, p, SIZE, 1);
    for (int i = 0; i < 3; i++) {
        captures_link(a, users[i]);
        RAN(granary_record_stream(g, p, users[i]));
        captures_use(users[i], p, SIZE, 1);
    }
    fixture_free(g, p);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_ne(fixture_alloc(g, SIZE, a), p); /* held live: the next cannot be the same */
        captures_link(users[i], a);
    }
    char *again = fixture_alloc(g, SIZE, a);
    ck_assert_ptr_eq(again, p);
    captures_use(a, again, SIZE, 2);
    (void)finish(&capture);
    close_all();
}
END_TEST

START_TEST(by_the_rule_of_the_stream_another_stream_gets_nothing) {
    open_with(GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = iterate(true, true);
    captures_link(a, b);
    ck_assert_ptr_ne(fixture_alloc(g, SIZE, b), p);
    (void)finish(&capture);
    close_all();
}
END_TEST

START_TEST(by_the_rule_of_the_graph_another_stream_gets_what_all_have_reached) {
    open_with(GRANARY_REUSE_GRAPH, ways[_i].marker);
    struct capture capture = captures_begin(pool, a, ways[_i].mode);
    void *p = iterate(true, true);
    captures_link(b, a);
    char *q = fixture_alloc(g, SIZE, b); /* not behind a's last node, but behind every use */
    captures_link(a, b);
    char *r = fixture_alloc(g, SIZE, b);
    ck_assert(q == p || r == p);
    captures_use(b, r, SIZE, 77);
    captures_use(b, q, SIZE, 78);
    fixture_free(g, r);
    fixture_free(g, q);
    captures_link(b, a);
    captures_use(a, r, 0, 0);
    char *s = fixture_alloc(g, SIZE, a); /* and back to its own stream, behind b's use */
    captures_use(a, s, SIZE, 79);
    (void)finish(&capture);
    close_all();
}
END_TEST

START_TEST(a_block_lent_to_another_stream_waits_for_what_that_stream_does_after_the_capture) {
    open_with(GRANARY_REUSE_GRAPH, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = iterate(true, true);
    captures_link(a, b);
    char *q = fixture_alloc(g, SIZE, b);
    ck_assert_ptr_eq(q, p);
    (void)finish(&capture);
    granary_sim_hold(b);
    captures_use(b, q, SIZE, 5); /* it is b's own: no record_stream needed */
    fixture_free(g, q);
    ck_assert_int_eq(captures_pending(pool), 1);
    granary_sim_release(b);
    ck_assert_int_eq(captures_pending(pool), 0);
    close_all();
}
END_TEST

/* ---- what cannot be proved -------------------------------------------------------------------- */

/* Freed while `spoil` makes a proof impossible: not used again before the end, and then at once. */
static void check_deferred(void (*spoil)(void *p), bool b_in_capture) {
    open_with(GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    char *p = fixture_alloc(g, SIZE, a);
    captures_use(a, p, SIZE, 1);
    if (b_in_capture) captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    spoil(p);
    fixture_free(g, p);
    if (b_in_capture) captures_link(b, a);
    captures_use(a, p, 0, 0);
    ck_assert_ptr_ne(fixture_alloc(g, SIZE, a), p);
    captures_use(a, p, 0, 0);
    ck_assert_ptr_ne(fixture_alloc(g, SIZE, a), p);
    ck_assert_int_eq(captures_pending(pool), 1);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    ck_assert_int_eq(captures_pending(pool), 0);
    close_all();
}

static void set(granary_stream stream, gr_cu_node *nodes, const struct gr_cu_edge *edges, size_t count) {
    RAN(cu.cuStreamUpdateCaptureDependencies(stream, nodes, edges, count, GR_CU_DEPENDENCIES_SET));
}

static void no_change(void *p) {
    (void)p;
}
static void empty_the_user(void *p) {
    captures_use(b, p, SIZE, 1);
    set(b, NULL, NULL, 0);
}
static void hold_by_a_programmatic_edge(void *p) {
    static const struct gr_cu_edge edge = {.type = GR_CU_EDGE_PROGRAMMATIC, .from_port = 1};
    struct gr_capture_info info;
    captures_use(b, p, SIZE, 1);
    gr_capture_ask(&g->driver, b, &info);
    gr_cu_node node = info.nodes[0];
    set(b, &node, &edge, 1);
}

START_TEST(a_user_outside_the_capture_defers) {
    check_deferred(no_change, false);
}
END_TEST
START_TEST(a_user_without_terminals_defers) {
    check_deferred(empty_the_user, true);
}
END_TEST
START_TEST(a_terminal_behind_a_programmatic_edge_defers) {
    check_deferred(hold_by_a_programmatic_edge, true);
}
END_TEST

START_TEST(an_owner_that_dropped_work_defers_every_later_free) {
    open_with(GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    char *p[2];
    captures_use(a, &ids, 0, 0);
    captures_link(a, b);
    for (int i = 0; i < 2; i++) {
        p[i] = fixture_alloc(g, SIZE, a);
        RAN(granary_record_stream(g, p[i], b));
        captures_use(b, p[i], SIZE, 1);
    }
    captures_use(a, &ids, 0, 0);
    fixture_free(g, p[0]); /* the terminals of a are seen */
    set(a, NULL, NULL, 0);
    captures_link(b, a); /* its last node is dropped for good */
    fixture_free(g, p[1]);
    captures_use(a, &ids, 0, 0);
    char *q = fixture_alloc(g, SIZE, a);
    ck_assert(q != p[0] && q != p[1]);
    ck_assert_int_eq(captures_pending(pool), 2);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    close_all();
}
END_TEST

START_TEST(a_marker_that_is_dropped_after_the_free_takes_the_proof_back) {
    open_with(GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = iterate(true, false); /* proved already: b is joined */
    set(a, NULL, NULL, 0);
    captures_use(a, p, 0, 0); /* comes after nothing */
    ck_assert_ptr_ne(fixture_alloc(g, SIZE, a), p);
    captures_link(b, a);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    close_all();
}
END_TEST

START_TEST(a_block_used_before_the_capture_waits_for_an_event_after_it) {
    granary_scope scope;
    open_with(GRANARY_REUSE_STREAM, ways[_i].marker);
    RAN(granary_scope_begin(g, pool, NULL, NULL, &scope));
    char *p = fixture_alloc(g, SIZE, a);
    RAN(granary_scope_end(g, scope));
    captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    granary_sim_hold(b);
    captures_use(b, p, SIZE, 1);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    captures_use(a, p, 0, 0);
    captures_link(a, b); /* b is in the capture now, but its work from before is not */
    captures_use(b, p, 0, 0);
    captures_link(b, a);
    fixture_free(g, p);
    captures_use(a, p, 0, 0);
    ck_assert_ptr_ne(fixture_alloc(g, SIZE, a), p);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    ck_assert_int_eq(captures_pending(pool), 1); /* b is held */
    granary_sim_release(b);
    ck_assert_int_eq(captures_pending(pool), 0);
    close_all();
}
END_TEST

START_TEST(a_use_from_an_earlier_capture_does_not_count_as_over_in_the_next) {
    open_with(GRANARY_REUSE_STREAM, ways[_i].marker);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    char *p = fixture_alloc(g, SIZE, a);
    captures_use(a, p, SIZE, 1);
    captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    captures_use(b, p, SIZE, 1);
    (void)finish(&capture);
    capture = captures_begin(pool, a, GLOBAL);
    captures_use(a, p, SIZE, 1);
    captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    captures_use(b, p, SIZE, 1); /* not joined */
    fixture_free(g, p);
    char *q = fixture_alloc(g, SIZE, a);
    ck_assert_ptr_ne(q, p);
    captures_use(a, q, SIZE, 2);
    (void)finish(&capture);
    close_all();
}
END_TEST

START_TEST(a_use_declared_in_a_capture_covers_work_after_it) {
    open_with(GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    char *p = fixture_alloc(g, SIZE, a);
    captures_use(a, p, SIZE, 1);
    captures_link(a, b);
    RAN(granary_record_stream(g, p, b));
    (void)finish(&capture);
    granary_sim_hold(b);
    captures_use(b, p, SIZE, 1);
    fixture_free(g, p);
    ck_assert_int_eq(captures_pending(pool), 1);
    granary_sim_release(b);
    ck_assert_int_eq(captures_pending(pool), 0);
    close_all();
}
END_TEST

/* ---- ends ------------------------------------------------------------------------------------- */

START_TEST(an_invalidated_capture_gives_everything_back) {
    open_with(GRANARY_REUSE_STREAM, ways[_i].marker);
    struct capture capture = captures_begin(pool, a, ways[_i].mode);
    (void)iterate(true, true);
    (void)iterate(false, true);
    char *live = fixture_alloc(g, SIZE, a);
    RAN(granary_record_stream(g, live, b));
    ck_assert_int_ne(cu.cuStreamQuery(a), 0); /* the user breaks it */
    fixture_free(g, live);                    /* nothing can be asked of a dead graph */
    char *after = fixture_alloc(g, SIZE, a);  /* the stream is no part of a valid capture: own memory */
    fixture_free(g, after);
    ck_assert_ptr_null(captures_end(&capture, GR_CU_STREAM_CAPTURE_INVALIDATED));
    ck_assert_int_eq(captures_pending(pool), 0);
    ck_assert_int_eq(captures_stats(pool).active_bytes, 0);
    ck_assert_int_eq(captures_stats(pool).captures, 0);
    close_all();
}
END_TEST

START_TEST(what_was_deferred_is_there_for_the_next_capture) {
    open_with(GRANARY_REUSE_OFF, GRANARY_MARKER_TERMINALS);
    struct capture capture = captures_begin(pool, a, GLOBAL);
    void *p = iterate(true, true);
    (void)finish(&capture);
    capture = captures_begin(pool, a, GLOBAL);
    ck_assert_ptr_eq(fixture_alloc(g, SIZE, a), p);
    captures_use(a, p, 0, 0);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    close_all();
}
END_TEST

/* Bodies of conditional nodes are captures of their own, with ids of their own. */
START_TEST(nodes_of_another_capture_prove_nothing) {
    granary_stream inner;
    open_with(GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS);
    inner = captures_stream();
    struct capture capture = captures_begin(pool, a, RELAXED);
    char *p = fixture_alloc(g, SIZE, a);
    captures_use(a, p, SIZE, 1);
    struct capture body = captures_begin(pool, inner, RELAXED);
    ck_assert_int_eq(granary_record_stream(g, p, inner), GRANARY_WRONG_CAPTURE);
    captures_use(inner, p, 0, 0);
    char *q = fixture_alloc(g, SIZE, inner);
    ck_assert_int_eq(captures_stats(pool).captures, 2);
    fixture_free(g, q);
    body.before = captures_forbidden();
    (void)captures_end(&body, GR_CU_SUCCESS);
    fixture_free(g, p);
    captures_is_valid(&capture);
    (void)captures_end(&capture, GR_CU_SUCCESS);
    close_all();
}
END_TEST

START_TEST(a_capture_that_nobody_told_us_of_is_left_alone) {
    open_with(GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS);
    granary_stream c = captures_stream();
    char *p = fixture_alloc(g, SIZE, a);
    RAN(granary_record_stream(g, p, b));
    RAN(cu.cuStreamBeginCapture(c, _i));
    fixture_free(g, p); /* an event is recorded and asked, in relaxed mode */
    char *q = fixture_alloc(g, 512 * GR_MIB, c);
    fixture_free(g, q);
    struct capture capture = {.origin = c};
    captures_is_valid(&capture);
    gr_cu_graph graph;
    RAN(cu.cuStreamEndCapture(c, &graph));
    RAN(cu.cuGraphDestroy(graph));
    close_all();
}
END_TEST

Suite *suite_capture(void);
Suite *suite_capture(void) {
    const int all = (int)GR_COUNT(ways);
    Suite *suite = suite_create("capture");
    TCase *rules = tcase_create("rules"), *unproved = tcase_create("unproved"), *ends = tcase_create("ends");
    tcase_add_loop_test(rules, a_joined_block_is_used_again_in_its_capture, 0, all);
    tcase_add_loop_test(rules, a_block_that_is_not_joined_is_not_used_again, 0, all);
    tcase_add_test(rules, without_reuse_every_block_waits_for_the_end);
    tcase_add_loop_test(rules, blocks_without_foreign_uses_are_used_again_at_once, 0, 3);
    tcase_add_loop_test(rules, four_streams_must_all_be_joined, 0, 3);
    tcase_add_test(rules, by_the_rule_of_the_stream_another_stream_gets_nothing);
    tcase_add_loop_test(rules, by_the_rule_of_the_graph_another_stream_gets_what_all_have_reached, 5, all);
    tcase_add_test(rules, a_block_lent_to_another_stream_waits_for_what_that_stream_does_after_the_capture);
    tcase_add_test(unproved, a_user_outside_the_capture_defers);
    tcase_add_test(unproved, a_user_without_terminals_defers);
    tcase_add_test(unproved, a_terminal_behind_a_programmatic_edge_defers);
    tcase_add_test(unproved, an_owner_that_dropped_work_defers_every_later_free);
    tcase_add_test(unproved, a_marker_that_is_dropped_after_the_free_takes_the_proof_back);
    tcase_add_loop_test(unproved, a_block_used_before_the_capture_waits_for_an_event_after_it, 0, 5);
    tcase_add_loop_test(unproved, a_use_from_an_earlier_capture_does_not_count_as_over_in_the_next, 0, 5);
    tcase_add_test(unproved, a_use_declared_in_a_capture_covers_work_after_it);
    tcase_add_loop_test(ends, an_invalidated_capture_gives_everything_back, 0, all);
    tcase_add_test(ends, what_was_deferred_is_there_for_the_next_capture);
    tcase_add_test(ends, nodes_of_another_capture_prove_nothing);
    tcase_add_loop_test(ends, a_capture_that_nobody_told_us_of_is_left_alone, 0, MODES);
    suite_add_tcase(suite, rules);
    suite_add_tcase(suite, unproved);
    suite_add_tcase(suite, ends);
    return suite;
}
