/* SPDX-License-Identifier: Apache-2.0
 * Every host allocation and every driver call that the library makes around a capture is refused once,
 * and all from there on: calls may fail, but captures stay valid, no memory is used out of order, and
 * nothing is lost. */
#include <check.h>
#include <stdio.h>

#include "fault/host_wrap.h"
#include "support/captures.h"

enum { SIZE = 4 << 20, ROUNDS = 4 };
enum kind { HOST_ALLOCATION, DRIVER_CALL };

static int reuse, marker;

static void change(struct granary_sim_config *sim, struct granary_options *options) {
    (void)sim;
    options->capture_reuse = reuse;
    options->capture_marker = marker;
}

/* Made on `owner`, used there and on `user`, joined or not, freed. What fails is left out, as a user
 * would have to. */
static void share(granary_stream owner, granary_stream user, uint64_t id, bool join) {
    void *p;
    if (granary_alloc(g, SIZE, owner, &p) != GRANARY_OK) return;
    captures_use(owner, p, SIZE, id);
    if (granary_record_stream(g, p, user) == GRANARY_OK) {
        captures_link(owner, user);
        captures_use(user, p, SIZE, id);
        if (join) captures_link(user, owner);
    }
    fixture_free(g, p); /* never fails */
}

/* Calls that ask or wait. A growth that is refused half way may unmap what it has just mapped. */
static uint64_t asked(void) {
    return captures_forbidden() - gr_tap_count(&g->driver.tap, GR_ENTRY_cuMemUnmap);
}

static void scenario(granary_stream a, granary_stream b) {
    granary_pool pool;
    granary_capture capture;
    gr_cu_graph graph = NULL;
    uint64_t id = 1;
    share(a, b, id++, false);
    if (granary_pool_create(g, NULL, &pool) != GRANARY_OK) return;
    if (granary_capture_begin(g, pool, a, &capture) == GRANARY_OK) {
        RAN(cu.cuStreamBeginCapture(a, GLOBAL));
        uint64_t before = asked();
        captures_use(a, &capture, 0, 0);
        for (int i = 0; i < ROUNDS; i++) {
            share(a, b, id++, i % 2 == 0);
            captures_use(a, &capture, 0, 0);
        }
        captures_link(a, b);
        share(b, a, id++, true);
        captures_link(b, a);
        ck_assert_uint_eq(asked(), before);
        ck_assert_int_eq(cu.cuStreamEndCapture(a, &graph), 0);
        int status = granary_capture_end(g, capture);
        if (status == GRANARY_BUSY) status = granary_capture_end(g, capture); /* it could not be told */
        RAN(status);
        RAN(cu.cuGraphDestroy(graph));
    }
    share(b, a, id++, false);
    RAN(granary_pool_release(g, pool));
}

/* False when there is no k-th. */
static bool refuse(enum kind kind, uint64_t k, uint64_t times) {
    int64_t host_before = host_wrap_live();
    captures_open(change);
    granary_stream a = captures_stream(), b = captures_stream();
    if (kind == HOST_ALLOCATION)
        host_wrap_fail(k, times);
    else
        gr_tap_fail(&g->driver.tap, GR_TAP_ANY, k, times, GR_CU_UNKNOWN);
    scenario(a, b);
    uint64_t refused = kind == HOST_ALLOCATION ? host_wrap_refused() : gr_tap_refusals(&g->driver.tap);
    host_wrap_fail(0, 0);
    gr_tap_clear(&g->driver.tap);
    ck_assert_ptr_null(granary_verify(g));
    ck_assert_int_eq(fixture_stats(g).pending_blocks, 0);
    ck_assert_int_eq(fixture_stats(g).allocated_bytes.all.current, 0);
    (void)fixture_trim(g, 0);
    captures_close(); /* looks at the findings, and for what is left */
    ck_assert_int_eq(host_wrap_live(), host_before);
    return refused > 0;
}

static const struct {
    enum kind kind;
    uint64_t times;
    int reuse, marker;
} ways[] = {
    {HOST_ALLOCATION, 1, GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS},
    {HOST_ALLOCATION, 1, GRANARY_REUSE_GRAPH, GRANARY_MARKER_EMPTY_NODE},
    {HOST_ALLOCATION, 1000000, GRANARY_REUSE_GRAPH, GRANARY_MARKER_TERMINALS},
    {DRIVER_CALL, 1, GRANARY_REUSE_STREAM, GRANARY_MARKER_TERMINALS},
    {DRIVER_CALL, 1, GRANARY_REUSE_GRAPH, GRANARY_MARKER_EMPTY_NODE},
    {DRIVER_CALL, 1, GRANARY_REUSE_OFF, GRANARY_MARKER_TERMINALS},
    {DRIVER_CALL, 1, GRANARY_REUSE_STREAM, GRANARY_MARKER_EMPTY_NODE},
};

START_TEST(a_capture_survives_every_refusal) {
    uint64_t k = 1;
    reuse = ways[_i].reuse;
    marker = ways[_i].marker;
    while (refuse(ways[_i].kind, k, ways[_i].times)) k++;
    ck_assert_uint_gt(k, 10);
}
END_TEST

Suite *suite_order_faults(void);
Suite *suite_order_faults(void) {
    Suite *suite = suite_create("order_faults");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, a_capture_survives_every_refusal, 0, (int)GR_COUNT(ways));
    suite_add_tcase(suite, all);
    return suite;
}
