/* SPDX-License-Identifier: Apache-2.0
 * Streams that are destroyed: their memory serves others, their handles come back as other streams, and they leave
 * nothing behind. */
#include <check.h>

#include "heap/heap.h"
#include "support/two_streams.h"

static size_t routes_of(const struct gr_heap *heap) {
    size_t count = 0;
    GR_ROUTE_FOR(route, heap) count++;
    return count;
}

START_TEST(a_stream_that_was_destroyed_does_not_keep_its_memory) {
    /* As its work is over: the block was freed, the stream destroyed, the device is idle. */
    open_with(manual_64_mib);
    granary_stream gone = fixture_stream(g);
    void *p = fixture_alloc(g, 60 * GR_MIB, gone);
    use(gone, p, 4096, 1);
    fixture_free(g, p);
    granary_sim_run_all();
    ck_assert_int_eq(granary_stream_destroy(g, gone), GRANARY_OK);
    (void)fixture_alloc(g, 60 * GR_MIB, a);
    close_all();
}
END_TEST

START_TEST(a_stream_with_the_value_of_a_destroyed_one_is_ordered_after_its_work) {
    open_with(manual_64_mib);
    granary_stream old = fixture_stream(g);
    void *p = fixture_alloc(g, 4 * GR_MIB, old);
    use(old, p, 4096, 1);
    fixture_free(g, p);
    ck_assert_int_eq(granary_stream_destroy(g, old), GRANARY_OK);
    granary_stream new = fixture_stream(g);
    ck_assert_ptr_eq(new, old); /* as real drivers do */
    void *q = fixture_alloc(g, 4 * GR_MIB, new);
    use(new, q, 4096, 2); /* the strict oracle aborts when q == p and nothing orders the two */
    ck_assert_int_eq(granary_stream_destroy(g, new), GRANARY_OK);
    close_all();
}
END_TEST

/* One after the other, each with memory of its own, in a private pool too, and used by another. */
START_TEST(a_thousand_streams_that_come_and_go_leave_no_more_behind_than_a_few) {
    granary_pool pool;
    granary_scope scope;
    open_with(of_64_mib);
    ck_assert_int_eq(granary_pool_create(g, NULL, &pool), GRANARY_OK);
    for (int n = 0; n < 1000; n++) {
        granary_stream stream = fixture_stream(g);
        void *p = fixture_alloc(g, 3 * GR_MIB, stream);
        ck_assert_int_eq(granary_scope_begin(g, pool, NULL, NULL, &scope), GRANARY_OK);
        void *q = fixture_alloc(g, 4096, stream);
        ck_assert_int_eq(granary_scope_end(g, scope), GRANARY_OK);
        ck_assert_int_eq(granary_record_stream(g, p, a), GRANARY_OK);
        fixture_free(g, p);
        fixture_free(g, q);
        ck_assert_int_eq(granary_stream_destroy(g, stream), GRANARY_OK);
    }
    ck_assert_uint_le(routes_of(&g->own), 40);
    ck_assert_uint_le(routes_of(GR_CONTAINER(g->heaps.next, struct gr_heap, link)), 40);
    ck_assert_uint_le(fixture_held().events, 160);
    ck_assert_uint_le(fixture_stats(g).ranges, 80);
    ck_assert_int_eq(granary_pool_release(g, pool), GRANARY_OK);
    close_all();
}
END_TEST

/* A block that is live keeps the stream that it waits for, or belongs to, from becoming another. */
START_TEST(a_destroyed_stream_that_something_waits_for_stays_itself) {
    open_with(manual_64_mib);
    granary_stream owner = fixture_stream(g), user = fixture_stream(g);
    void *p = fixture_alloc(g, 4 * GR_MIB, owner), *q = fixture_alloc(g, 4 * GR_MIB, a);
    use(user, q, 4096, 1);
    ck_assert_int_eq(granary_record_stream(g, q, user), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroyed(g, owner), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroyed(g, user), GRANARY_OK);
    granary_stream fresh = fixture_stream(g);
    fixture_free(g, fixture_alloc(g, 4 * GR_MIB, fresh));
    fixture_free(g, q);
    ck_assert_int_eq(fixture_stats(g).pending_blocks, 1); /* the work on `user` has not run */
    granary_sim_run_all();
    ck_assert_int_eq(fixture_stats(g).pending_blocks, 0);
    fixture_free(g, p);
    ck_assert_int_eq(granary_stream_destroy(g, owner), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, user), GRANARY_OK);
    ck_assert_int_eq(granary_stream_destroy(g, fresh), GRANARY_OK);
    close_all();
}
END_TEST

Suite *suite_streams(void) {
    Suite *suite = suite_create("streams");
    TCase *cases = tcase_create("streams");
    tcase_add_test(cases, a_stream_that_was_destroyed_does_not_keep_its_memory);
    tcase_add_test(cases, a_stream_with_the_value_of_a_destroyed_one_is_ordered_after_its_work);
    tcase_add_test(cases, a_thousand_streams_that_come_and_go_leave_no_more_behind_than_a_few);
    tcase_add_test(cases, a_destroyed_stream_that_something_waits_for_stays_itself);
    suite_add_tcase(suite, cases);
    return suite;
}
