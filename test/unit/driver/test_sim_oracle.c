/* SPDX-License-Identifier: Apache-2.0
 * The oracle of the simulated driver: it finds each kind of mistake, with any clock, stays silent
 * about correct programs, and agrees with a naive model that always tells the truth. */
#include "test_sim_support.h"

static gr_cu_ptr p;
static gr_cu_stream s, o;
static gr_cu_event e;

static void begin(struct granary_sim_config config) {
    up(config);
    p = ready(2 * G);
    s = stream();
    o = stream();
    e = event();
}
static void begin_faithful(void) {
    struct granary_sim_config config = defaults();
    config.strict = 0;
    begin(config);
}
static void begin_manual(void) {
    struct granary_sim_config config = defaults();
    config.strict = 0;
    config.clock = GRANARY_SIM_MANUAL;
    begin(config);
}

static void end(void) {
    ck_assert_int_eq(granary_sim_set_sticky(0, 0), GRANARY_OK);
    (void)granary_sim_run_all();
    OK(cu.cuCtxSynchronize());
    OK(cu.cuEventDestroy(e));
    OK(cu.cuStreamDestroy(s));
    OK(cu.cuStreamDestroy(o));
    if (p) give(p, 2 * G);
    down();
}

static uint64_t found(enum granary_sim_finding kind) {
    struct granary_sim_findings f = findings();
    ck_assert_msg(f.count == f.by_kind[kind], "an unexpected finding: %s", f.last);
    return f.count;
}

/* ---- order -------------------------------------------------------------------------------- */

START_TEST(reuse_on_another_stream_without_a_wait_is_found) {
    OK(granary_sim_use(s, at(p + 512), 1024, 1, 1, "the old owner"));
    OK(granary_sim_use(o, at(p), 1024, 1, 2, "the new owner"));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    ck_assert_ptr_nonnull(strstr(findings().first, "the old owner"));
    ck_assert_ptr_nonnull(strstr(findings().first, "the new owner"));
    granary_sim_clear_findings();
    ck_assert_uint_eq(findings().count, 0);
    end();
}
END_TEST

START_TEST(bytes_that_only_lie_side_by_side_do_not_conflict) {
    OK(USE(s, p, 512, 1));
    OK(USE(o, p + 512, 512, 2));
    OK(USE(s, p + G, G, 3));
    OK(USE(o, p + 1024, G - 1024, 4));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 0);
    end();
}
END_TEST

START_TEST(reuse_in_the_order_of_one_stream_is_right) {
    OK(USE(s, p, 1024, 1));
    OK(USE(s, p, 1024, 2));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 0);
    end();
}
END_TEST

START_TEST(a_wait_for_an_event_orders_and_one_for_an_older_record_does_not) {
    OK(cu.cuEventRecord(e, s));
    OK(USE(s, p, 1024, 1));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    OK(USE(o, p, 512, 2));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    OK(USE(o, p + 512, 512, 3));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    end();
}
END_TEST

START_TEST(order_goes_through_third_streams) {
    gr_cu_stream third = stream();
    OK(USE(s, p, 1024, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamWaitEvent(third, e, 0));
    OK(cu.cuEventRecord(e, third));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    OK(USE(o, p, 1024, 2));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 0);
    OK(cu.cuStreamDestroy(third));
    end();
}
END_TEST

START_TEST(what_the_host_saw_complete_orders_what_it_submits_later) {
    OK(USE(s, p, 1024, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuEventQuery(e));
    OK(USE(o, p, 1024, 2));
    OK(cu.cuStreamSynchronize(o));
    OK(USE(s, p, 1024, 3));
    OK(cu.cuStreamQuery(s));
    OK(USE(o, p, 1024, 4));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 0);
    end();
}
END_TEST

START_TEST(completion_that_nobody_saw_orders_nothing) {
    OK(USE(s, p, 1024, 1));
    OK(cu.cuEventRecord(e, s));
    CODE(cu.cuEventQuery(e), 600);
    (void)granary_sim_run_all();
    OK(USE(o, p, 1024, 2));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    end();
}
END_TEST

START_TEST(one_allocation_may_be_used_by_streams_in_no_order) {
    OK(USE(s, p, 1024, 1));
    OK(USE(o, p, 1024, 1));
    OK(cu.cuEventRecord(e, o)); /* the next owner waits for one of the two only */
    OK(cu.cuStreamWaitEvent(GR_CU_STREAM_PER_THREAD, e, 0));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 0);
    OK(USE(GR_CU_STREAM_PER_THREAD, p, 1024, 2));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    end();
}
END_TEST

START_TEST(the_legacy_stream_orders_blocking_streams) {
    gr_cu_stream a, b;
    OK(cu.cuStreamCreate(&a, 0));
    OK(cu.cuStreamCreate(&b, 0));
    OK(USE(a, p, 1024, 1));
    OK(USE(NULL, p, 1024, 2));
    OK(USE(b, p, 1024, 3));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 0);
    OK(USE(s, p, 1024, 4));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    OK(cu.cuStreamDestroy(a));
    OK(cu.cuStreamDestroy(b));
    end();
}
END_TEST

START_TEST(memory_is_followed_to_where_it_is_mapped_next) {
    gr_cu_ptr q = reserve(G);
    gr_cu_handle h = create(G);
    OK(cu.cuMemMap(q, G, 0, h, 0));
    OK(cu.cuMemSetAccess(q, G, &BOTH, 1));
    gr_cu_ptr alias = reserve(G);
    OK(cu.cuMemMap(alias, G, 0, h, 0));
    OK(cu.cuMemSetAccess(alias, G, &BOTH, 1));
    OK(cu.cuMemRelease(h));
    OK(USE(s, q, 1024, 1));
    OK(USE(o, alias + 512, 1024, 2));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    OK(cu.cuCtxSynchronize());
    give(q, G);
    give(alias, G);
    end();
}
END_TEST

START_TEST(classic_memory_is_watched_too) {
    gr_cu_ptr q;
    OK(cu.cuMemAlloc(&q, G));
    OK(USE(s, q, 1024, 1));
    OK(USE(o, q, 1024, 2));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    OK(cu.cuMemFree(q));
    end();
}
END_TEST

START_TEST(a_reused_stream_value_is_not_the_old_stream) {
    gr_cu_stream old = o;
    OK(USE(o, p, 1024, 1));
    OK(cu.cuStreamDestroy(o));
    o = stream();
    ck_assert_ptr_eq(o, old);
    OK(USE(o, p, 1024, 2));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    end();
}
END_TEST

START_TEST(the_oracle_can_be_switched_off) {
    struct granary_sim_config config = defaults();
    config.oracle = 0;
    begin(config);
    OK(USE(s, p, 1024, 1));
    OK(USE(o, p, 1024, 2));
    ck_assert_uint_eq(findings().count, 0);
    end();
}
END_TEST

/* ---- mappings ----------------------------------------------------------------------------- */

START_TEST(work_on_unmapped_bytes_faults_and_sticks) {
    size_t a, b;
    gr_cu_handle h;
    gr_cu_ptr q = reserve(G);
    OK(USE(s, q, 16, 1));
    ck_assert_uint_eq(found(GRANARY_SIM_UNMAPPED), 1);
    CODE(cu.cuStreamSynchronize(s), 700);
    CODE(cu.cuCtxSynchronize(), 700);
    CODE(cu.cuMemGetInfo(&a, &b), 700);
    OK(cu.cuMemCreate(&h, G, &PROP, 0));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemAddressFree(q, G));
    end();
}
END_TEST

START_TEST(work_without_access_faults) {
    gr_cu_ptr q = reserve(G);
    gr_cu_handle h = create(G);
    struct gr_cu_access read = BOTH;
    read.flags = GR_CU_ACCESS_READ;
    OK(cu.cuMemMap(q, G, 0, h, 0));
    OK(cu.cuMemRelease(h));
    OK(USE(s, q, 16, 1));
    ck_assert_uint_eq(found(GRANARY_SIM_UNMAPPED), 1);
    ck_assert_int_eq(granary_sim_set_sticky(0, 0), GRANARY_OK);
    OK(cu.cuMemSetAccess(q, G, &read, 1));
    OK(granary_sim_use(s, at(q), 16, 0, 1, NULL));
    ck_assert_uint_eq(found(GRANARY_SIM_UNMAPPED), 1);
    OK(USE(s, q, 16, 1));
    ck_assert_uint_eq(found(GRANARY_SIM_UNMAPPED), 2);
    ck_assert_int_eq(granary_sim_set_sticky(0, 0), GRANARY_OK);
    OK(cu.cuStreamSynchronize(s));
    give(q, G);
    end();
}
END_TEST

START_TEST(unmapping_under_pending_work_succeeds_and_the_work_faults) {
    OK(USE(s, p, 16, 1));
    give(p, 2 * G);
    p = 0;
    ck_assert_uint_eq(found(GRANARY_SIM_EARLY_UNMAP), 1);
    ck_assert_ptr_nonnull(strstr(findings().first, "pending"));
    CODE(cu.cuStreamSynchronize(s), 700);
    ck_assert_uint_eq(findings().by_kind[GRANARY_SIM_UNMAPPED], 1);
    end();
}
END_TEST

START_TEST(unmapping_needs_a_host_that_saw_the_last_use) {
    OK(USE(s, p, 16, 1)); /* at once: complete, but who knows? */
    give(p, 2 * G);
    ck_assert_uint_eq(found(GRANARY_SIM_EARLY_UNMAP), 1);
    p = ready(2 * G);
    OK(USE(s, p, 16, 1));
    OK(cu.cuEventRecord(e, s));
    OK(cu.cuEventSynchronize(e));
    give(p, 2 * G);
    ck_assert_uint_eq(found(GRANARY_SIM_EARLY_UNMAP), 1);
    p = 0;
    end();
}
END_TEST

START_TEST(work_notices_other_memory_at_its_address) {
    gr_cu_handle h = create(2 * G);
    OK(USE(s, p, 16, 1));
    OK(cu.cuMemUnmap(p, 2 * G));
    OK(cu.cuMemMap(p, 2 * G, 0, h, 0));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemSetAccess(p, 2 * G, &BOTH, 1));
    CODE(cu.cuStreamSynchronize(s), 700);
    ck_assert_uint_eq(findings().by_kind[GRANARY_SIM_MOVED], 1);
    end();
}
END_TEST

/* ---- graphs ------------------------------------------------------------------------------- */

/* Captures a use of the bytes by s and one by o, joined back; ordered or not. */
static gr_cu_graph fork_and_join(bool ordered, uint64_t first, uint64_t second) {
    gr_cu_graph graph;
    OK(cu.cuStreamBeginCapture(s, GR_CU_CAPTURE_MODE_GLOBAL));
    OK(USE(s, p + G, 16, 99));
    if (!ordered) OK(cu.cuEventRecord(e, s));
    OK(USE(s, p, 1024, first));
    if (ordered) OK(cu.cuEventRecord(e, s));
    OK(cu.cuStreamWaitEvent(o, e, 0));
    OK(USE(o, p + 512, 1024, second));
    OK(cu.cuEventRecord(e, o));
    OK(cu.cuStreamWaitEvent(s, e, 0));
    OK(cu.cuStreamEndCapture(s, &graph));
    return graph;
}

START_TEST(a_finished_graph_is_checked_over_its_paths) {
    OK(cu.cuGraphDestroy(fork_and_join(true, 1, 2)));
    OK(cu.cuGraphDestroy(fork_and_join(false, 1, 1)));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 0);
    OK(cu.cuGraphDestroy(fork_and_join(false, 1, 2)));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    end();
}
END_TEST

START_TEST(a_programmatic_edge_is_no_completion) {
    const struct gr_cu_edge programmatic = {1, 0, GR_CU_EDGE_PROGRAMMATIC, {0}};
    gr_cu_graph graph;
    for (int i = 0; i < 2; i++) {
        int status;
        const gr_cu_node *nodes;
        const struct gr_cu_edge *edges;
        size_t count;
        OK(cu.cuStreamBeginCapture(s, GR_CU_CAPTURE_MODE_GLOBAL));
        OK(USE(s, p, 1024, 1));
        OK(cu.cuStreamGetCaptureInfo(s, &status, NULL, NULL, &nodes, &edges, &count));
        gr_cu_node node = nodes[0];
        OK(cu.cuStreamUpdateCaptureDependencies(s, &node, i ? &programmatic : NULL, 1,
                                                GR_CU_DEPENDENCIES_SET));
        OK(USE(s, p, 1024, 2));
        OK(cu.cuStreamEndCapture(s, &graph));
        OK(cu.cuGraphDestroy(graph));
        ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), (uint64_t)i);
    }
    end();
}
END_TEST

START_TEST(a_launch_is_ordered_like_any_work) {
    gr_cu_graph graph = fork_and_join(true, 1, 2);
    gr_cu_graph_exec exec;
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(USE(s, p, 16, 7));
    OK(cu.cuGraphLaunch(exec, s));
    OK(cu.cuGraphLaunch(exec, s));
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 0);
    OK(USE(o, p, 16, 8)); /* the launch used it as allocation 1, in no order with o */
    ck_assert_uint_eq(found(GRANARY_SIM_UNORDERED), 1);
    OK(cu.cuCtxSynchronize());
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphDestroy(graph));
    end();
}
END_TEST

START_TEST(a_replay_over_moved_memory_is_found) {
    gr_cu_graph graph = fork_and_join(true, 1, 2);
    gr_cu_graph_exec exec;
    OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.cuGraphLaunch(exec, s));
    OK(cu.cuStreamSynchronize(s));
    OK(cu.cuMemUnmap(p, 2 * G));
    gr_cu_handle h = create(2 * G);
    OK(cu.cuMemMap(p, 2 * G, 0, h, 0));
    OK(cu.cuMemRelease(h));
    OK(cu.cuMemSetAccess(p, 2 * G, &BOTH, 1));
    OK(cu.cuGraphLaunch(exec, s));
    ck_assert_uint_eq(found(GRANARY_SIM_MOVED), 1);
    OK(cu.cuGraphExecDestroy(exec));
    OK(cu.cuGraphDestroy(graph));
    end();
}
END_TEST

/* ---- strict ------------------------------------------------------------------------------- */

static void unordered_reuse(void) {
    begin(defaults());
    OK(USE(s, p, 1024, 1));
    (void)USE(o, p, 1024, 2);
}

START_TEST(strict_mode_stops_unordered_reuse) {
    stops(unordered_reuse);
}
END_TEST

static void an_early_unmap(void) {
    begin(defaults());
    OK(USE(s, p, 1024, 1));
    (void)cu.cuMemUnmap(p, 2 * G);
}

START_TEST(strict_mode_stops_an_early_unmap) {
    stops(an_early_unmap);
}
END_TEST

/* ---- against a model ---------------------------------------------------------------------- */

enum { STREAMS = 3, STEPS = 48, UNITS = 6 };

/* The naive model: each step's full set of steps that happen before it, as bits. */
struct model {
    uint64_t behind[STEPS]; /* of a use: itself and all before it */
    size_t first[STEPS], end[STEPS];
    uint64_t owner[STEPS]; /* 0: not a use */
    uint64_t stream[STREAMS], event[STREAMS], host;
    bool conflict;
};

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void model_use(struct model *m, unsigned step, unsigned which, size_t first, size_t last,
                      uint64_t owner) {
    m->stream[which] |= m->host;
    m->behind[step] = m->stream[which] |= (uint64_t)1 << step;
    m->first[step] = first;
    m->end[step] = last;
    m->owner[step] = owner;
    for (unsigned i = 0; i < step; i++) {
        bool overlap = m->owner[i] && m->first[i] < last && first < m->end[i];
        if (overlap && m->owner[i] != owner && !(m->behind[step] >> i & 1)) m->conflict = true;
    }
}

/* Each stream uses its own allocation, which it exchanges for a new one now and then. */
START_TEST(the_oracle_agrees_with_a_naive_model_on_random_programs) {
    gr_cu_stream streams[STREAMS] = {s, o, stream()};
    gr_cu_event events[STREAMS] = {e, event(), event()};
    uint64_t state = (uint64_t)_i + 1, right = 0, wrong = 0, id = 1;
    for (int program = 0; program < 150; program++) {
        struct model m = {0};
        uint64_t own[STREAMS] = {id, id + 1, id + 2};
        id += 3;
        OK(cu.cuCtxSynchronize());
        for (int i = 0; i < STREAMS; i++) OK(cu.cuEventRecord(events[i], streams[i]));
        granary_sim_clear_findings();
        unsigned steps = 4 + (unsigned)next(&state) % (STEPS - 4);
        for (unsigned step = 0; step < steps; step++) {
            unsigned a = (unsigned)next(&state) % STREAMS, b = (unsigned)next(&state) % STREAMS,
                     what = (unsigned)next(&state) % 16;
            if (what < 4) {
                size_t first = next(&state) % UNITS, last = first + 1 + next(&state) % (UNITS - first);
                if (next(&state) % 3 == 0) own[a] = id++;
                /* units of 1 MiB: uses lie within a granule, across two, or cover both */
                OK(USE(streams[a], p + (GR_MIB * 4 * first) / UNITS / 512 * 512,
                       (GR_MIB * 4 * last) / UNITS / 512 * 512 - (GR_MIB * 4 * first) / UNITS / 512 * 512,
                       own[a]));
                model_use(&m, step, a, first, last, own[a]);
            } else if (what < 9) {
                OK(cu.cuEventRecord(events[b], streams[a]));
                m.stream[a] |= m.host;
                m.event[b] = m.stream[a];
            } else if (what < 14) {
                OK(cu.cuStreamWaitEvent(streams[a], events[b], 0));
                m.stream[a] |= m.host | m.event[b];
            } else if (what == 14) {
                OK(cu.cuEventSynchronize(events[b]));
                m.host |= m.event[b];
            } else if (next(&state) % 4 == 0) {
                OK(cu.cuStreamSynchronize(streams[a]));
                m.host |= m.stream[a];
            }
        }
        ck_assert_msg((found(GRANARY_SIM_UNORDERED) > 0) == m.conflict, "seed %d, program %d: %s", _i,
                      program, m.conflict ? "a mistake was missed" : findings().first);
        *(m.conflict ? &wrong : &right) += 1;
    }
    ck_assert_msg(right > 10 && wrong > 10, "%d right, %d wrong: the programs prove little", (int)right,
                  (int)wrong);
    for (int i = 1; i < STREAMS; i++) OK(cu.cuEventDestroy(events[i]));
    OK(cu.cuStreamDestroy(streams[2]));
    granary_sim_clear_findings();
    end();
}
END_TEST

Suite *suite_sim_oracle(void);
Suite *suite_sim_oracle(void) {
    Suite *suite = suite_create("sim_oracle");
    TCase *faithful = tcase_create("faithful");
    tcase_add_checked_fixture(faithful, begin_faithful, NULL);
    tcase_add_test(faithful, reuse_on_another_stream_without_a_wait_is_found);
    tcase_add_test(faithful, bytes_that_only_lie_side_by_side_do_not_conflict);
    tcase_add_test(faithful, reuse_in_the_order_of_one_stream_is_right);
    tcase_add_test(faithful, a_wait_for_an_event_orders_and_one_for_an_older_record_does_not);
    tcase_add_test(faithful, order_goes_through_third_streams);
    tcase_add_test(faithful, what_the_host_saw_complete_orders_what_it_submits_later);
    tcase_add_test(faithful, one_allocation_may_be_used_by_streams_in_no_order);
    tcase_add_test(faithful, the_legacy_stream_orders_blocking_streams);
    tcase_add_test(faithful, memory_is_followed_to_where_it_is_mapped_next);
    tcase_add_test(faithful, classic_memory_is_watched_too);
    tcase_add_test(faithful, a_reused_stream_value_is_not_the_old_stream);
    tcase_add_test(faithful, work_on_unmapped_bytes_faults_and_sticks);
    tcase_add_test(faithful, work_without_access_faults);
    tcase_add_test(faithful, unmapping_needs_a_host_that_saw_the_last_use);
    tcase_add_test(faithful, a_finished_graph_is_checked_over_its_paths);
    tcase_add_test(faithful, a_programmatic_edge_is_no_completion);
    tcase_add_test(faithful, a_launch_is_ordered_like_any_work);
    tcase_add_test(faithful, a_replay_over_moved_memory_is_found);
    tcase_add_loop_test(faithful, the_oracle_agrees_with_a_naive_model_on_random_programs, 0, 4);
    suite_add_tcase(suite, faithful);
    TCase *by_hand = tcase_create("manual");
    tcase_add_checked_fixture(by_hand, begin_manual, NULL);
    tcase_add_test(by_hand, completion_that_nobody_saw_orders_nothing);
    tcase_add_test(by_hand, unmapping_under_pending_work_succeeds_and_the_work_faults);
    tcase_add_test(by_hand, work_notices_other_memory_at_its_address);
    suite_add_tcase(suite, by_hand);
    TCase *configured = tcase_create("configured");
    tcase_add_test(configured, the_oracle_can_be_switched_off);
    suite_add_tcase(suite, configured);
    TCase *strict = tcase_create("strict");
    tcase_add_test(strict, strict_mode_stops_unordered_reuse);
    tcase_add_test(strict, strict_mode_stops_an_early_unmap);
    suite_add_tcase(suite, strict);
    return suite;
}
