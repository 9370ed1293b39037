/* SPDX-License-Identifier: Apache-2.0
 * Counts, logs and refuses driver calls. */
#include "driver/tap.h"

#include <assert.h>

void gr_tap_init(struct gr_tap *tap) {
    for (int entry = 0; entry < GR_TAP_ENTRIES; entry++) atomic_init(&tap->count[entry], 0);
    atomic_init(&tap->watching, false);
    pthread_mutex_init(&tap->lock, NULL); /* without attributes it cannot fail here */
    tap->plan_entry = GR_TAP_ANY;
    tap->plan_after = tap->plan_times = 0;
    tap->plan_code = GR_CU_SUCCESS;
    tap->refused = 0;
    tap->log = NULL;
    tap->log_room = tap->log_count = 0;
}

void gr_tap_fini(struct gr_tap *tap) {
    pthread_mutex_destroy(&tap->lock);
}

/* Relaxed is enough: whoever sees the flag takes the lock, and who misses it was not told yet. */
static bool watching(struct gr_tap *tap) {
    return __builtin_expect(atomic_load_explicit(&tap->watching, memory_order_relaxed), false);
}

/* Under the lock, after plan or log changed. */
static void settle(struct gr_tap *tap) {
    atomic_store_explicit(&tap->watching, tap->plan_times > 0 || tap->log != NULL, memory_order_relaxed);
}

/* Under the lock. */
static void note(struct gr_tap *tap, int entry, gr_cu_result code, bool refused) {
    if (tap->log == NULL) return;
    if (tap->log_count < tap->log_room)
        tap->log[tap->log_count] = (struct gr_tap_record){.entry = entry, .code = code, .refused = refused};
    tap->log_count++;
}

gr_cu_result gr_tap_enter(struct gr_tap *tap, int entry) {
    atomic_fetch_add_explicit(&tap->count[entry], 1, memory_order_relaxed);
    if (!watching(tap)) return GR_CU_SUCCESS;

    gr_cu_result code = GR_CU_SUCCESS;
    pthread_mutex_lock(&tap->lock);
    if (tap->plan_times > 0 && (tap->plan_entry == GR_TAP_ANY || tap->plan_entry == entry)) {
        if (tap->plan_after > 0) {
            tap->plan_after--;
        } else {
            tap->plan_times--;
            tap->refused++;
            code = tap->plan_code;
            note(tap, entry, code, true);
            settle(tap);
        }
    }
    pthread_mutex_unlock(&tap->lock);
    return code;
}

gr_cu_result gr_tap_leave(struct gr_tap *tap, int entry, gr_cu_result code) {
    if (!watching(tap)) return code;
    pthread_mutex_lock(&tap->lock);
    note(tap, entry, code, false);
    pthread_mutex_unlock(&tap->lock);
    return code;
}

void gr_tap_fail(struct gr_tap *tap, int entry, uint64_t n, uint64_t times, gr_cu_result code) {
    assert(n > 0 && code != GR_CU_SUCCESS);
    pthread_mutex_lock(&tap->lock);
    tap->plan_entry = entry;
    tap->plan_after = n - 1;
    tap->plan_times = times;
    tap->plan_code = code;
    tap->refused = 0;
    settle(tap);
    pthread_mutex_unlock(&tap->lock);
}

void gr_tap_clear(struct gr_tap *tap) {
    pthread_mutex_lock(&tap->lock);
    tap->plan_times = 0;
    settle(tap);
    pthread_mutex_unlock(&tap->lock);
}

uint64_t gr_tap_refusals(struct gr_tap *tap) {
    pthread_mutex_lock(&tap->lock);
    uint64_t refused = tap->refused;
    pthread_mutex_unlock(&tap->lock);
    return refused;
}

size_t gr_tap_log(struct gr_tap *tap, struct gr_tap_record *records, size_t room) {
    pthread_mutex_lock(&tap->lock);
    size_t seen = tap->log_count;
    tap->log = records;
    tap->log_room = records != NULL ? room : 0;
    tap->log_count = 0;
    settle(tap);
    pthread_mutex_unlock(&tap->lock);
    return seen;
}

uint64_t gr_tap_count(struct gr_tap *tap, int entry) {
    return atomic_load_explicit(&tap->count[entry], memory_order_relaxed);
}

uint64_t gr_tap_total(struct gr_tap *tap) {
    uint64_t total = 0;
    for (int entry = 0; entry < GR_TAP_ENTRIES; entry++) total += gr_tap_count(tap, entry);
    return total;
}
