/* SPDX-License-Identifier: Apache-2.0
 * The ring keeps the last events in order, counts what it drops, and can be read while it is written. */
#include "ledger/history.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct gr_history history;
static struct gr_place place;

static void resize(uint64_t room) {
    struct gr_ring ring;
    ck_assert(gr_ring_make(room, &ring));
    gr_history_exchange(&history, &ring);
    gr_ring_free(&ring);
}

static void setup(void) {
    gr_history_init(&history);
    gr_history_set_level(&history, GRANARY_HISTORY_ALL);
    place = (struct gr_place){.stream = 5, .heap = 3};
    gr_history_number(&history, &place);
}
static void teardown(void) {
    gr_history_fini(&history);
}

/* Events told in all. */
static uint64_t told_in_all(void) {
    return gr_history_span(&history).to;
}

/* All that is kept; how many. */
static size_t copy(struct gr_event *out) {
    const struct gr_span span = gr_history_span(&history);
    return gr_history_copy(&history, &span, out);
}

static void tell(uint64_t addr) {
    gr_history_tell(&history, GR_ALLOC, &place, addr, addr * 2, 0);
}

/* As a hit does. */
static void tell_shortly(uint64_t addr) {
    const uint64_t words = gr_history_words(0, GR_ALLOC, 0);
    struct gr_seat *seat;
    if (!gr_history_put_next(&history, &place, words, addr, addr * 2, &seat))
        gr_history_put(&history, seat, &place, words, addr, addr * 2);
}

/* The addresses of what is kept, in order; how many. */
static size_t kept(uint64_t *out, size_t room) {
    static struct gr_event event[4096];
    const struct gr_span span = gr_history_span(&history);
    ck_assert_uint_le(span.to - span.from, 4096);
    size_t count = gr_history_copy(&history, &span, event);
    for (size_t i = 0; i < count && i < room; i++) {
        ck_assert_uint_eq(event[i].size, event[i].addr * 2);
        ck_assert_uint_eq(event[i].place.stream, 5);
        ck_assert_uint_eq(event[i].place.heap, 3);
        out[i] = event[i].addr;
    }
    return count;
}

static void expect(size_t count, uint64_t first) {
    uint64_t addr[4096];
    ck_assert_uint_eq(kept(addr, 4096), count);
    for (size_t i = 0; i < count; i++) ck_assert_uint_eq(addr[i], first + i);
}

START_TEST(of_six_events_a_ring_of_four_keeps_the_last_four) {
    resize(4);
    for (uint64_t a = 1; a <= 6; a++) tell(a);
    expect(4, 3);
    ck_assert_uint_eq(told_in_all(), 6); /* so two were dropped */
}
END_TEST

START_TEST(a_ring_of_one_keeps_the_last_and_a_ring_of_none_counts) {
    resize(1);
    for (uint64_t a = 1; a <= 3; a++) tell(a);
    expect(1, 3);
    resize(0);
    tell(4);
    expect(0, 0);
    ck_assert_uint_eq(told_in_all(), 4);
    resize(2);
    expect(0, 0);
    tell(5);
    expect(1, 5);
}
END_TEST

START_TEST(a_change_of_size_keeps_what_fits) {
    resize(4);
    for (uint64_t a = 1; a <= 6; a++) tell(a);
    resize(100);
    expect(4, 3);
    for (uint64_t a = 7; a <= 150; a++) tell(a);
    expect(100, 51);
    resize(3);
    expect(3, 148);
    for (uint64_t a = 151; a <= 160; a++) tell(a);
    expect(3, 158);
    resize(7);
    for (uint64_t a = 161; a <= 163; a++) tell(a);
    expect(6, 158);
}
END_TEST

START_TEST(what_is_cleared_is_gone_and_does_not_count_as_dropped) {
    resize(4);
    for (uint64_t a = 1; a <= 6; a++) tell(a);
    gr_history_clear(&history);
    expect(0, 0);
    ck_assert_uint_eq(history.cleared, 6);
    tell(7);
    expect(1, 7);
}
END_TEST

START_TEST(nothing_is_told_below_the_level_of_events) {
    resize(4);
    gr_history_set_level(&history, GRANARY_HISTORY_STATE);
    tell(1);
    expect(0, 0);
}
END_TEST

START_TEST(time_rises_and_the_action_stays_what_it_was) {
    struct gr_event event[GR_ANNOTATE_END + 1];
    resize(64);
    for (int a = GR_ALLOC; a <= GR_ANNOTATE_END; a++)
        gr_history_tell(&history, (enum gr_action)a, &place, UINT64_MAX - (uint64_t)a, (uint64_t)1 << 63, 0);
    ck_assert_uint_eq(copy(event), GR_ANNOTATE_END + 1);
    for (int a = GR_ALLOC; a <= GR_ANNOTATE_END; a++) {
        ck_assert_int_eq((int)event[a].action, a);
        ck_assert_uint_eq(event[a].addr, UINT64_MAX - (uint64_t)a);
        ck_assert_uint_eq(event[a].size, (uint64_t)1 << 63);
        ck_assert(a == 0 || event[a].time_ns >= event[a - 1].time_ns);
    }
}
END_TEST

/* The actions kept, one letter each: a, r, c; others as '?'. All have this address. */
static const char *told_of(uint64_t addr) {
    static struct gr_event event[64];
    static char letters[65];
    const struct gr_span span = gr_history_span(&history);
    ck_assert_uint_le(span.to - span.from, 64);
    size_t count = gr_history_copy(&history, &span, event);
    ck_assert_uint_eq(count, span.to - span.from);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(event[i].addr, addr);
        ck_assert_uint_eq(event[i].size, 9);
        ck_assert_uint_eq(event[i].place.stream, 5);
        ck_assert_uint_eq(event[i].place.heap, 3);
        letters[i] = event[i].action <= GR_FREE_COMPLETED ? "arc"[event[i].action] : '?';
    }
    letters[count] = '\0';
    return letters;
}

START_TEST(a_free_that_is_done_at_once_is_two_events_of_one_time) {
    struct gr_event event[2];
    resize(8);
    gr_history_tell_free(&history, &place, 7, 9, 0);
    ck_assert_str_eq(told_of(7), "rc");
    ck_assert_uint_eq(copy(event), 2);
    ck_assert_uint_eq(event[0].time_ns, event[1].time_ns);
}
END_TEST

START_TEST(the_two_events_of_a_free_may_stand_at_both_ends_of_the_ring) {
    static const char *const expected[] = {"", "c", "rc", "arc", "carc", "rcarc"};
    for (uint64_t room = 0; room <= 5; room++) {
        resize(room);
        gr_history_clear(&history);
        for (int i = 0; i < 10; i++) {
            (void)gr_history_tell_alloc(&history, &place, 7, 9);
            gr_history_tell_free(&history, &place, 7, 9, 0);
        }
        ck_assert_str_eq(told_of(7), expected[room]);
    }
    ck_assert_uint_eq(told_in_all(), 6 * 30);
}
END_TEST

START_TEST(any_ticket_finds_its_slot) {
    static const uint64_t first[] = {
        0, 1, 99999, UINT32_MAX, (uint64_t)1 << 52, GR_TICKETS_OWNED / 3, GR_TICKETS_OWNED - 900};
    static const uint64_t rooms[] = {1, 2, 3, 7, 64, 100, 513};
    for (size_t f = 0; f < sizeof first / sizeof first[0]; f++)
        for (size_t r = 0; r < sizeof rooms / sizeof rooms[0]; r++) {
            gr_tickets_init(&history.tickets, first[f]);
            gr_history_clear(&history);
            resize(0);
            resize(rooms[r]);
            for (uint64_t t = 0; t < 600; t++) {
                tell(first[f] + t);
                const struct gr_slot *slot = &history.ring.slot[t % rooms[r]];
                ck_assert_uint_eq(atomic_load(&slot->word[1]), first[f] + t);
                ck_assert_uint_eq(atomic_load(&slot->word[0]) >> GR_SLOT_ROUND, (t / rooms[r] + 1) % 256);
            }
            expect(rooms[r] < 600 ? rooms[r] : 600, first[f] + 600 - (rooms[r] < 600 ? rooms[r] : 600));
        }
}
END_TEST

START_TEST(a_slot_far_on_in_a_ring_is_found_by_the_same_rule) {
    static struct gr_slot ring[7];
    static const uint64_t since[] = {0, 6, 7, 48, UINT32_MAX, (uint64_t)1 << 40, GR_TICKETS_OWNED - 1};
    for (uint64_t room = 1; room <= 7; room++) {
        const struct gr_ring seven = {.slot = ring, .room = room, .inverse = UINT64_MAX / room, .start = 5};
        for (size_t i = 0; i < sizeof since / sizeof since[0]; i++) {
            const struct gr_spot at = gr_spot_of(&seven, since[i] + 5);
            ck_assert_uint_eq((uint64_t)(at.slot - ring), since[i] % room);
            ck_assert_uint_eq(at.round, (since[i] / room + 1) % 256);
            ck_assert_uint_eq(gr_spot_rest(&seven, at), room - since[i] % room);
        }
    }
}
END_TEST

START_TEST(a_ring_of_frees_changes_its_size_event_by_event) {
    for (uint64_t before = 1; before <= 9; before++)
        for (uint64_t after = 1; after <= 9; after++) {
            char expected[16] = "";
            resize(0);
            gr_history_clear(&history);
            resize(before);
            for (int i = 0; i < 7; i++) {
                (void)gr_history_tell_alloc(&history, &place, 7, 9);
                gr_history_tell_free(&history, &place, 7, 9, 0);
            }
            resize(after);
            uint64_t kept = before < after ? before : after;
            for (uint64_t i = 0; i < kept; i++) expected[i] = "arc"[(21 - kept + i) % 3];
            ck_assert_str_eq(told_of(7), expected);
            gr_history_tell_free(&history, &place, 7, 9, 0);
            ck_assert_str_eq(told_of(7) + strlen(told_of(7)) - (after > 1 ? 2 : 1), after > 1 ? "rc" : "c");
            ck_assert_uint_eq(strlen(told_of(7)), kept + 2 < after ? kept + 2 : after);
        }
}
END_TEST

START_TEST(what_has_no_room_in_a_slot_stands_aside_and_goes_where_the_slot_goes) {
    enum { KINDS = 4, EVENTS = 50 };
    struct gr_event event[EVENTS];
    struct gr_place other = {.stream = UINT64_MAX, .heap = 1 << 20}, unknown = {.stream = 77, .heap = 88};
    const struct gr_place *of[KINDS] = {&place, &unknown, &other, &unknown};
    gr_history_number(&history, &other);
    ck_assert_uint_ne(other.number, 0);
    resize(7);
    for (uint64_t i = 0; i < EVENTS; i++) {
        ck_assert_int_eq(gr_stacks_set_metadata(i % 3 == 1 ? "words" : "", NULL), GRANARY_OK);
        struct gr_note before = gr_history_enter(&history, false, NULL);
        gr_history_tell(&history, GR_MOVE, of[i % KINDS], i, 2 * i, 0);
        gr_stacks_leave(before);
        if (i == 30) resize(11);
        if (i == 40) resize(5);
        size_t count = copy(event);
        for (uint64_t k = i + 1 - count, e = 0; e < count; k++, e++) {
            ck_assert_uint_eq(event[e].addr, k);
            ck_assert_int_eq((int)event[e].action, GR_MOVE);
            ck_assert_uint_eq(event[e].place.stream, of[k % KINDS]->stream);
            ck_assert_uint_eq(event[e].place.heap, of[k % KINDS]->heap);
            ck_assert_uint_eq(event[e].metadata, k % 3 == 1 ? 1 : 0);
        }
        ck_assert_uint_eq(count, i < 7 ? i + 1 : i < 30 ? 7 : i < 40 ? (i < 34 ? i - 23 : 11) : 5);
    }
    ck_assert_int_eq(gr_stacks_set_metadata("", NULL), GRANARY_OK);
}
END_TEST

START_TEST(places_beyond_those_that_have_numbers_are_told_in_full) {
    struct gr_event event[8];
    gr_intern_fini(&history.places);
    gr_intern_init(&history.places, 2);
    resize(8);
    for (uint64_t p = 0; p < 4; p++)
        for (int again = 0; again < 2; again++) {
            struct gr_place at = {.stream = p, .heap = 100 + p};
            gr_history_number(&history, &at);
            ck_assert_uint_eq(at.number, p < 2 ? p + 1 : 0);
            gr_history_tell_free(&history, &at, p, 1, 0);
        }
    ck_assert_uint_eq(copy(event), 8);
    for (uint64_t e = 0; e < 8; e++) {
        ck_assert_uint_eq(event[e].place.stream, 2 + e / 4);
        ck_assert_uint_eq(event[e].place.heap, 102 + e / 4);
        ck_assert_uint_eq(event[e].metadata, 0);
    }
}
END_TEST

START_TEST(an_annotation_keeps_its_name) {
    struct gr_event event[2];
    resize(4);
    gr_history_annotate(&history, GR_ANNOTATE_START, 7);
    gr_history_annotate(&history, GR_ANNOTATE_END, UINT32_MAX);
    ck_assert_uint_eq(copy(event), 2);
    ck_assert_int_eq((int)event[0].action, GR_ANNOTATE_START);
    ck_assert_uint_eq(event[0].metadata, 7);
    ck_assert_int_eq((int)event[1].action, GR_ANNOTATE_END);
    ck_assert_uint_eq(event[1].metadata, UINT32_MAX);
}
END_TEST

START_TEST(slots_fill_cache_lines_and_a_room_that_no_host_has_is_refused) {
    struct gr_ring ring;
    for (uint64_t room = 1; room < 10; room++) {
        ck_assert(gr_ring_make(room, &ring));
        ck_assert_uint_eq((uintptr_t)ring.slot % 64, 0);
        ck_assert_uint_ge((uintptr_t)ring.aside, (uintptr_t)(ring.slot + room));
        memset(ring.slot, 0xFF, room * sizeof *ring.slot); /* all of it is its own */
        memset(ring.aside, 0xFF, room * sizeof *ring.aside);
        gr_ring_free(&ring);
        ck_assert_uint_eq(ring.room, 0);
    }
    ck_assert(!gr_ring_make(UINT64_MAX, &ring));
    ck_assert(!gr_ring_make(UINT64_MAX / 32, &ring));
}
END_TEST

START_TEST(an_allocation_returns_its_label_whether_or_not_it_is_told) {
    resize(4);
    ck_assert_int_eq(gr_stacks_set_tag("mine", NULL), GRANARY_OK);
    struct gr_note before = gr_history_enter(&history, false, NULL);
    uint32_t label = gr_history_label(&history);
    ck_assert_uint_ne(label, 0);
    ck_assert_uint_eq(gr_history_tell_alloc(&history, &place, 7, 9), label);
    gr_history_set_level(&history, GRANARY_HISTORY_STATE);
    ck_assert_uint_eq(gr_history_tell_alloc(&history, &place, 7, 9), label);
    gr_history_tell_free(&history, &place, 7, 9, label);
    gr_stacks_leave(before);
    ck_assert_int_eq(gr_stacks_set_tag("", NULL), GRANARY_OK);
    ck_assert_str_eq(told_of(7), "a");
}
END_TEST

START_TEST(a_call_is_noted_when_there_is_something_to_say_of_it) {
    enum { OF_FREE = true };
    ck_assert(!gr_history_asks(&history, false) && !gr_history_asks(&history, OF_FREE));
    atomic_store(&history.sources, GRANARY_STACKS_C);
    ck_assert(gr_history_asks(&history, false) && gr_history_asks(&history, OF_FREE));
    gr_history_set_level(&history, GRANARY_HISTORY_ALLOC); /* a free has the stack of its block */
    ck_assert(gr_history_asks(&history, false) && !gr_history_asks(&history, OF_FREE));
    atomic_store(&history.sources, GRANARY_STACKS_NONE);
    ck_assert_int_eq(gr_stacks_set_metadata("words", NULL), GRANARY_OK);
    ck_assert(gr_history_asks(&history, false) && gr_history_asks(&history, OF_FREE));
    gr_history_set_level(&history, GRANARY_HISTORY_STATE); /* of a free nothing is told */
    ck_assert(gr_history_asks(&history, false) && !gr_history_asks(&history, OF_FREE));
    ck_assert_int_eq(gr_stacks_set_metadata("", NULL), GRANARY_OK);
    ck_assert(!gr_history_asks(&history, false));
    gr_history_set_level(&history, GRANARY_HISTORY_ALL);
    struct gr_note before = gr_history_enter(&history, false, NULL);
    ck_assert(gr_history_asks(&history, OF_FREE)); /* lest it be taken for the outer one */
    gr_stacks_leave(before);
    ck_assert(!gr_history_asks(&history, OF_FREE));
}
END_TEST

START_TEST(the_stack_is_the_calls_own_or_else_that_of_the_block) {
    struct gr_event event[3];
    resize(8);
    ck_assert_int_eq(gr_stacks_set_tag("first", NULL), GRANARY_OK);
    struct gr_note before = gr_history_enter(&history, false, NULL);
    uint32_t label = gr_history_label(&history);
    ck_assert_uint_ne(gr_label_tag(label), 0);
    gr_history_tell(&history, GR_ALLOC, &place, 1, 1, label);
    gr_stacks_leave(before);
    gr_history_tell(&history, GR_FREE_REQUESTED, &place, 1, 1, label);
    ck_assert_int_eq(gr_stacks_set_tag("second", NULL), GRANARY_OK);
    before = gr_history_enter(&history, true, NULL);
    gr_history_tell_of(&history, GR_FREE_COMPLETED, &place, 1, 1, label);
    gr_stacks_leave(before);
    ck_assert_int_eq(gr_stacks_set_tag("", NULL), GRANARY_OK);
    ck_assert_uint_eq(copy(event), 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(event[i].stack, gr_label_stack(label));
        ck_assert_uint_eq(event[i].tag, gr_label_tag(label));
    }
    ck_assert_uint_eq(gr_stacks_note(&history.stacks).label, 0);
}
END_TEST

START_TEST(a_note_inside_of_a_call_gives_the_outer_one_back) {
    ck_assert_int_eq(gr_stacks_set_tag("outer", NULL), GRANARY_OK);
    struct gr_note first = gr_history_enter(&history, false, NULL);
    uint32_t outer = gr_stacks_note(&history.stacks).label;
    ck_assert_int_eq(gr_stacks_set_tag("inner", NULL), GRANARY_OK);
    struct gr_note second = gr_history_enter(&history, false, NULL);
    ck_assert_uint_ne(gr_stacks_note(&history.stacks).label, outer);
    gr_stacks_leave(second);
    ck_assert_uint_eq(gr_stacks_note(&history.stacks).label, outer);
    gr_stacks_leave(first);
    ck_assert_uint_eq(gr_stacks_note(&history.stacks).label, 0);
    ck_assert_int_eq(gr_stacks_set_tag("", NULL), GRANARY_OK);
}
END_TEST

START_TEST(a_tag_may_be_exchanged_in_place) {
    char tag[GRANARY_TAG_ROOM] = "inside";
    ck_assert_int_eq(gr_stacks_set_tag("around", NULL), GRANARY_OK);
    ck_assert_int_eq(gr_stacks_set_tag(tag, tag), GRANARY_OK);
    ck_assert_str_eq(tag, "around");
    ck_assert_int_eq(gr_stacks_set_tag(tag, tag), GRANARY_OK);
    ck_assert_str_eq(tag, "inside");
    ck_assert_int_eq(gr_stacks_set_tag("", NULL), GRANARY_OK);
}
END_TEST

/* ---- threads ---------------------------------------------------------------------------------- */

enum { WRITERS = 3, ENOUGH = 30000, ROOM = 64 };
static atomic_bool stop;
static atomic_uint_fast64_t told;

static void *write_events(void *argument) {
    uint64_t base = (uint64_t)(uintptr_t)argument << 32;
    for (uint64_t i = 1; !atomic_load(&stop); i++) {
        tell_shortly(base | i);
        atomic_fetch_add(&told, 1);
    }
    return NULL;
}

/* _i: owners come and go often, and have rows that share a reading. */
START_TEST(a_reader_among_writers_sees_whole_events_in_the_order_of_each_thread) {
    static struct gr_event event[ROOM];
    pthread_t thread[WRITERS];
    uint64_t seen = 0;
    if (_i) history.pace.dense = UINT64_MAX / GR_PACE_SHARE;
    if (_i && history.tickets.earn != UINT64_MAX) history.tickets.earn = GR_PACE_SHARE + 1;
    resize(ROOM);
    atomic_store(&stop, false);
    atomic_store(&told, 0);
    for (uintptr_t t = 0; t < WRITERS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, write_events, (void *)t), 0);
    do {
        uint64_t last[WRITERS] = {0};
        size_t count = copy(event);
        seen += count;
        for (size_t i = 0; i < count; i++) {
            uint64_t writer = event[i].addr >> 32, step = event[i].addr & UINT32_MAX;
            if (event[i].size != event[i].addr * 2 || writer >= WRITERS || step <= last[writer] ||
                event[i].place.stream != 5 || event[i].place.heap != 3)
                ck_abort_msg("event %zu is torn or out of order", i);
            last[writer] = step;
        }
    } while (seen < ENOUGH || atomic_load(&told) < ENOUGH);
    atomic_store(&stop, true);
    for (int t = 0; t < WRITERS; t++) pthread_join(thread[t], NULL);
    ck_assert_uint_eq(told_in_all(), atomic_load(&told));
    ck_assert_uint_eq(copy(event), ROOM); /* at rest none is missing */
}
END_TEST

static void *write_some(void *argument) {
    for (int i = 0; i < *(int *)argument; i++) tell(7);
    atomic_store(&stop, true);
    return NULL;
}

/* Of a slot of the ring. */
static uint64_t round_of(int slot) {
    return atomic_load(&history.ring.slot[slot].word[0]) >> GR_SLOT_ROUND;
}
static void set_round(int slot, uint64_t round) {
    uint64_t rest = atomic_load(&history.ring.slot[slot].word[0]) << 8 >> 8;
    atomic_store(&history.ring.slot[slot].word[0], rest | round << GR_SLOT_ROUND);
}

START_TEST(a_writer_waits_for_the_one_a_round_before) {
    pthread_t thread;
    int once = 1;
    resize(2);
    tell(1);
    tell(2);
    set_round(0, 0); /* as if the slot of ticket 0 were not written yet */
    atomic_store(&stop, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, write_some, &once), 0);
    usleep(20000);
    ck_assert(!atomic_load(&stop));
    ck_assert_uint_eq(atomic_load(&history.ring.slot[0].word[1]), 1);
    set_round(0, 1);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(round_of(0), 2);
    ck_assert_uint_eq(atomic_load(&history.ring.slot[0].word[1]), 7);
}
END_TEST

START_TEST(a_slot_whose_next_ticket_was_drawn_is_not_read) {
    struct gr_event event[200];
    resize(100);
    for (uint64_t a = 1; a <= 100; a++) tell(a);
    const struct gr_span span = gr_history_span(&history);
    for (size_t drawn = 0; drawn <= 110; drawn++) { /* nobody has written there yet */
        size_t left = drawn < 100 ? 100 - drawn : 0;
        ck_assert_uint_eq(gr_history_copy(&history, &span, event), left);
        for (size_t i = 0; i < left; i++) ck_assert_uint_eq(event[i].addr, drawn + 1 + i);
        (void)!gr_tickets_draw_shared(&history.tickets, false);
    }
}
END_TEST

START_TEST(writers_a_whole_round_apart_leave_the_newest_events) {
    pthread_t thread[WRITERS];
    struct gr_event event[3];
    int count = 2000;
    resize(3);
    for (int round = 0; round < 20; round++) {
        for (int t = 0; t < WRITERS; t++)
            ck_assert_int_eq(pthread_create(&thread[t], NULL, write_some, &count), 0);
        for (int t = 0; t < WRITERS; t++) pthread_join(thread[t], NULL);
        ck_assert_uint_eq(copy(event), 3);
    }
}
END_TEST

Suite *suite_history(void) {
    Suite *suite = suite_create("history");
    TCase *cases = tcase_create("history");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, of_six_events_a_ring_of_four_keeps_the_last_four);
    tcase_add_test(cases, a_ring_of_one_keeps_the_last_and_a_ring_of_none_counts);
    tcase_add_test(cases, a_change_of_size_keeps_what_fits);
    tcase_add_test(cases, what_is_cleared_is_gone_and_does_not_count_as_dropped);
    tcase_add_test(cases, nothing_is_told_below_the_level_of_events);
    tcase_add_test(cases, time_rises_and_the_action_stays_what_it_was);
    tcase_add_test(cases, a_free_that_is_done_at_once_is_two_events_of_one_time);
    tcase_add_test(cases, the_two_events_of_a_free_may_stand_at_both_ends_of_the_ring);
    tcase_add_test(cases, any_ticket_finds_its_slot);
    tcase_add_test(cases, a_slot_far_on_in_a_ring_is_found_by_the_same_rule);
    tcase_add_test(cases, a_ring_of_frees_changes_its_size_event_by_event);
    tcase_add_test(cases, what_has_no_room_in_a_slot_stands_aside_and_goes_where_the_slot_goes);
    tcase_add_test(cases, places_beyond_those_that_have_numbers_are_told_in_full);
    tcase_add_test(cases, an_annotation_keeps_its_name);
    tcase_add_test(cases, slots_fill_cache_lines_and_a_room_that_no_host_has_is_refused);
    tcase_add_test(cases, an_allocation_returns_its_label_whether_or_not_it_is_told);
    tcase_add_test(cases, a_call_is_noted_when_there_is_something_to_say_of_it);
    tcase_add_test(cases, the_stack_is_the_calls_own_or_else_that_of_the_block);
    tcase_add_test(cases, a_note_inside_of_a_call_gives_the_outer_one_back);
    tcase_add_test(cases, a_tag_may_be_exchanged_in_place);
    tcase_add_test(cases, a_writer_waits_for_the_one_a_round_before);
    tcase_add_test(cases, a_slot_whose_next_ticket_was_drawn_is_not_read);
    tcase_add_test(cases, writers_a_whole_round_apart_leave_the_newest_events);
    suite_add_tcase(suite, cases);
    TCase *threads = tcase_create("threads"); /* valgrind runs one at a time, and they wait for each other */
    tcase_set_tags(threads, "large");
    tcase_add_checked_fixture(threads, setup, teardown);
    tcase_add_loop_test(threads, a_reader_among_writers_sees_whole_events_in_the_order_of_each_thread, 0, 2);
    suite_add_tcase(suite, threads);
    return suite;
}
