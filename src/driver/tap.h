/* SPDX-License-Identifier: Apache-2.0
 * The tap: watches every call into the driver, and can refuse one.
 *
 * Counting is always on: one relaxed increment a call. A log and a plan of refusals are for tests;
 * they are switched on by the functions below and cost one predictable branch when off.
 *
 * A plan says: refuse the n-th call from now (of one entry, or of any) with this code, and the
 * next `times - 1` calls that match as well. The refused call does not reach the driver.
 *
 * Invariants
 *   T1  watching is set exactly while a plan has calls left to refuse, or a log is on
 *   T2  every call is in the log once: a refused one when it enters, another when it leaves
 *
 * Locks: plan and log have one mutex, taken only while either is on. It is held across no call into
 * the driver. A thread that is inside a call while the log is switched on or off may appear in it or
 * not; nothing else is uncertain. */
#ifndef GR_DRIVER_TAP_H
#define GR_DRIVER_TAP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/abi.h"

enum { GR_TAP_ANY = -1, GR_TAP_ENTRIES = 96 };

struct gr_tap_record {
    int entry;         /* enum gr_entry */
    gr_cu_result code; /* what was returned */
    bool refused;      /* by the tap */
};

struct gr_tap {
    atomic_uint_fast64_t count[GR_TAP_ENTRIES]; /* calls, refused ones included */
    atomic_bool watching;                       /* plan or log is on */
    /* under lock */
    pthread_mutex_t lock;
    int plan_entry;      /* GR_TAP_ANY or an entry; meaningful while plan_times > 0 */
    uint64_t plan_after; /* matching calls still let through */
    uint64_t plan_times; /* matching calls still to refuse */
    gr_cu_result plan_code;
    uint64_t refused;           /* calls refused since the plan was made */
    struct gr_tap_record *log;  /* NULL when off */
    size_t log_room, log_count; /* records kept; records seen (more than room: the rest was dropped) */
};

void gr_tap_init(struct gr_tap *tap);
void gr_tap_fini(struct gr_tap *tap);

/* The two halves of GR_DRIVE. enter counts, and returns SUCCESS to go on or the code of a planned
 * refusal; leave passes the driver's code through. */
gr_cu_result gr_tap_enter(struct gr_tap *tap, int entry);
gr_cu_result gr_tap_leave(struct gr_tap *tap, int entry, gr_cu_result code);

/* Plans the refusal of the n-th (from 1) matching call and of times - 1 more; replaces the plan
 * before. code must not be SUCCESS. clear drops the plan. refused: calls refused since then. */
void gr_tap_fail(struct gr_tap *tap, int entry, uint64_t n, uint64_t times, gr_cu_result code);
void gr_tap_clear(struct gr_tap *tap);
uint64_t gr_tap_refusals(struct gr_tap *tap);

/* Starts logging into room records given by the caller (who keeps them), or stops it with NULL.
 * Returns the records that the log before had seen. */
size_t gr_tap_log(struct gr_tap *tap, struct gr_tap_record *records, size_t room);

/* Calls so far: of one entry, of all. */
uint64_t gr_tap_count(struct gr_tap *tap, int entry);
uint64_t gr_tap_total(struct gr_tap *tap);

#endif
