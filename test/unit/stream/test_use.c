/* SPDX-License-Identifier: Apache-2.0
 * Uses: one event for each block and stream, no queue that stands behind another, and nothing asked
 * beyond the first that is not complete. */
#include <check.h>

#include "stream/use.h"
#include "support/captures.h"

static struct gr_uses uses;
static struct gr_stream a, b;
static struct gr_block block[4];

static void manual(struct granary_sim_config *sim, struct granary_options *options) {
    (void)options;
    sim->clock = GRANARY_SIM_MANUAL;
}

static void setup(void) {
    captures_open(manual);
    gr_uses_init(&uses, &g->driver);
    gr_stream_init(&a, captures_stream());
    gr_stream_init(&b, captures_stream());
    for (size_t i = 0; i < GR_COUNT(block); i++) block[i] = (struct gr_block){.state = GR_BLOCK_PENDING};
}

static void teardown(void) {
    gr_uses_fini(&uses);
    captures_close();
}

static struct gr_use *add(struct gr_block *of, struct gr_stream *stream) {
    struct gr_use *use;
    ck_assert_int_eq(gr_use_add(&uses, of, stream, &use), GRANARY_OK);
    return use;
}

/* A use whose event stands behind one more kernel of the stream. */
static struct gr_use *queued(struct gr_block *of, struct gr_stream *stream) {
    struct gr_use *use = add(of, stream);
    captures_use(stream->handle, &block, 0, 0);
    ck_assert_int_eq(gr_use_record(&uses, use), GRANARY_OK);
    gr_use_enqueue(&uses, use);
    return use;
}

static uint64_t queries(void) {
    return gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventQuery);
}

START_TEST(a_block_has_one_use_for_each_stream) {
    struct gr_use *first = add(&block[0], &a), *second = add(&block[0], &b);
    ck_assert_ptr_eq(gr_use_find(&block[0], &a), first);
    ck_assert_ptr_eq(gr_use_find(&block[0], &b), second);
    ck_assert_ptr_null(gr_use_find(&block[1], &a));
    gr_use_drop(&uses, first);
    ck_assert_ptr_null(gr_use_find(&block[0], &a));
    ck_assert_ptr_eq(gr_use_find(&block[0], &b), second);
    gr_use_drop(&uses, second);
    ck_assert_ptr_null(block[0].u.live.uses);
}
END_TEST

START_TEST(objects_and_events_are_used_again) {
    for (int i = 0; i < 100; i++) gr_use_drop(&uses, add(&block[i % 4], i % 2 ? &a : &b));
    ck_assert_uint_eq(uses.events, 1);
    ck_assert_uint_eq(gr_tap_count(&g->driver.tap, GR_ENTRY_cuEventCreate), 1);
}
END_TEST

START_TEST(complete_blocks_come_back_in_one_poll) {
    for (int i = 0; i < 4; i++) (void)queued(&block[i], &a);
    ck_assert_ptr_null(gr_uses_poll(&uses));
    granary_sim_run_all();
    size_t count = 0;
    for (struct gr_block *c = gr_uses_poll(&uses); c; c = c->u.live.parked) count++;
    ck_assert_uint_eq(count, 4);
    ck_assert(gr_list_empty(&uses.busy));
    ck_assert_ptr_null(gr_uses_poll(&uses));
}
END_TEST

START_TEST(a_block_of_two_streams_waits_for_both) {
    (void)queued(&block[0], &a);
    struct gr_use *other = add(&block[0], &b);
    captures_use(b.handle, &block, 0, 0);
    ck_assert_int_eq(gr_use_record(&uses, other), GRANARY_OK);
    gr_use_enqueue(&uses, other);
    granary_sim_run(a.handle, 8);
    ck_assert_ptr_null(gr_uses_poll(&uses));
    granary_sim_run(b.handle, 8);
    ck_assert_ptr_eq(gr_uses_poll(&uses), &block[0]);
}
END_TEST

START_TEST(a_stream_that_is_stuck_holds_nobody_back_and_is_asked_once) {
    (void)queued(&block[0], &a);
    (void)queued(&block[1], &a);
    (void)queued(&block[2], &b);
    granary_sim_run(b.handle, 8);
    uint64_t before = queries();
    ck_assert_ptr_eq(gr_uses_poll(&uses), &block[2]);
    ck_assert_uint_eq(queries() - before, 2); /* the head of each queue */
    before = queries();
    ck_assert_ptr_null(gr_uses_poll(&uses));
    ck_assert_uint_eq(queries() - before, 1); /* the head alone, however long the queue */
    granary_sim_run(a.handle, 2);             /* the first kernel and its event */
    before = queries();
    ck_assert_ptr_eq(gr_uses_poll(&uses), &block[0]);
    ck_assert_uint_eq(queries() - before, 2);
    granary_sim_run_all();
    ck_assert_ptr_eq(gr_uses_poll(&uses), &block[1]);
}
END_TEST

START_TEST(nothing_is_recorded_on_a_stream_that_is_captured) {
    struct gr_use *use = add(&block[0], &a);
    gr_cu_graph graph;
    RAN(cu.cuStreamBeginCapture(a.handle, GLOBAL));
    ck_assert_int_eq(gr_use_record(&uses, use), GRANARY_BUSY);
    ck_assert(!use->recorded);
    RAN(cu.cuStreamEndCapture(a.handle, &graph));
    RAN(cu.cuGraphDestroy(graph));
    ck_assert_int_eq(gr_use_record(&uses, use), GRANARY_OK);
    ck_assert(use->recorded);
    gr_use_drop(&uses, use);
}
END_TEST

START_TEST(an_event_that_went_into_a_capture_is_recorded_again_behind_it) {
    struct gr_use *use = add(&block[0], &a);
    gr_cu_graph graph;
    RAN(cu.cuStreamBeginCapture(a.handle, GLOBAL));
    RAN(cu.cuEventRecord(use->event, a.handle)); /* as if the capture had begun in between */
    use->recorded = true;
    gr_use_enqueue(&uses, use);
    RAN(cu.cuStreamEndCapture(a.handle, &graph));
    RAN(cu.cuGraphDestroy(graph));
    captures_use(a.handle, &block, 0, 0);
    ck_assert_ptr_null(gr_uses_poll(&uses));
    granary_sim_run_all();
    ck_assert_ptr_eq(gr_uses_poll(&uses), &block[0]);
}
END_TEST

START_TEST(a_queue_is_in_the_order_of_recording) {
    struct gr_use *first = add(&block[0], &a), *second = add(&block[1], &a);
    captures_use(a.handle, &block, 0, 0);
    ck_assert_int_eq(gr_use_record(&uses, first), GRANARY_OK);
    captures_use(a.handle, &block, 0, 0);
    ck_assert_int_eq(gr_use_record(&uses, second), GRANARY_OK);
    gr_use_enqueue(&uses, second); /* its block was freed first; the stream is going, say */
    gr_use_enqueue(&uses, first);
    granary_sim_run(a.handle, 2);
    ck_assert_ptr_eq(gr_uses_poll(&uses), &block[0]);
    granary_sim_run_all();
    ck_assert_ptr_eq(gr_uses_poll(&uses), &block[1]);
}
END_TEST

START_TEST(a_refused_event_leaves_the_block_as_it_was) {
    struct gr_use *use = NULL;
    gr_tap_fail(&g->driver.tap, GR_ENTRY_cuEventCreate, 1, 1, GR_CU_OUT_OF_MEMORY);
    ck_assert_int_ne(gr_use_add(&uses, &block[0], &a, &use), GRANARY_OK);
    ck_assert_ptr_null(block[0].u.live.uses);
    ck_assert(gr_list_empty(&a.waiting));
    ck_assert_uint_eq(uses.events, 0);
    gr_use_drop(&uses, add(&block[0], &a));
}
END_TEST

Suite *suite_use(void);
Suite *suite_use(void) {
    Suite *suite = suite_create("use");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, a_block_has_one_use_for_each_stream);
    tcase_add_test(all, objects_and_events_are_used_again);
    tcase_add_test(all, complete_blocks_come_back_in_one_poll);
    tcase_add_test(all, a_block_of_two_streams_waits_for_both);
    tcase_add_test(all, a_stream_that_is_stuck_holds_nobody_back_and_is_asked_once);
    tcase_add_test(all, nothing_is_recorded_on_a_stream_that_is_captured);
    tcase_add_test(all, an_event_that_went_into_a_capture_is_recorded_again_behind_it);
    tcase_add_test(all, a_queue_is_in_the_order_of_recording);
    tcase_add_test(all, a_refused_event_leaves_the_block_as_it_was);
    suite_add_tcase(suite, all);
    return suite;
}
