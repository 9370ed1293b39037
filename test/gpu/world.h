/* SPDX-License-Identifier: Apache-2.0
 * A world of the scenarios: one driver, what is said of it, and the few steps that all of them take. */
#ifndef GPU_WORLD_H
#define GPU_WORLD_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <granary/granary.h>

#include "base/base.h"
#include "driver/driver.h"

struct world { /* one driver */
    bool simulated;
    int devices; /* of the simulation */
    struct gr_table call;
    gr_cu_context context;
    int failures;
    char line[512]; /* figures of the scenario that runs */
};

static void say(struct world *w, const char *format, ...) {
    size_t used = strlen(w->line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(w->line + used, sizeof(w->line) - used, format, arguments);
    va_end(arguments);
}

#define EXPECT(w, condition)                                                                        \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            (w)->failures++;                                                                        \
            fprintf(stderr, "%s: line %d: not so: %s\n", (w)->simulated ? "sim" : "cuda", __LINE__, \
                    #condition);                                                                    \
        }                                                                                           \
    } while (0)

#define OK(w, g, call)                                                                                     \
    do {                                                                                                   \
        int status_ = (call);                                                                              \
        if (status_ != GRANARY_OK) {                                                                       \
            struct granary_fault fault_ = {.struct_size = sizeof(fault_)};                                 \
            granary_last_fault(g, &fault_);                                                                \
            (w)->failures++;                                                                               \
            fprintf(stderr, "%s: line %d: %s: %s: %s\n", (w)->simulated ? "sim" : "cuda", __LINE__, #call, \
                    granary_status_name(status_), fault_.text);                                            \
        }                                                                                                  \
    } while (0)

/* With these options, and the world's driver. */
static granary *open_on(struct world *w, int device, struct granary_options *options) {
    struct granary_fault fault = {.struct_size = sizeof(fault)};
    granary *g = NULL;
    options->driver = w->simulated ? GRANARY_DRIVER_SIM : GRANARY_DRIVER_CUDA;
    options->fault = &fault;
    if (granary_open(device, options, &g) != GRANARY_OK) fprintf(stderr, "open: %s\n", fault.text);
    return g;
}
static granary *open_as(struct world *w, struct granary_options *options) {
    return open_on(w, 0, options);
}

static granary *open_with(struct world *w, int expandable, size_t limit) {
    struct granary_options options;
    granary_options_init(&options);
    options.expandable_segments = expandable;
    options.limit_bytes = limit;
    return open_as(w, &options);
}

static struct granary_stats stats_of(granary *g) {
    struct granary_stats stats = {.struct_size = sizeof(stats)};
    granary_get_stats(g, &stats);
    return stats;
}

static void finish(struct world *w, granary *g) {
    const char *broken = granary_verify(g);
    if (broken) fprintf(stderr, "%s broken\n", broken);
    EXPECT(w, broken == NULL);
    granary_close(g);
}

static void fill(struct world *w, const void *ptr, size_t size, int value, granary_stream stream) {
    EXPECT(w, w->call.cuMemsetD8Async((gr_cu_ptr)(uintptr_t)ptr, (unsigned char)value, size, stream) ==
                  GR_CU_SUCCESS);
}

/* First, middle and last bytes of the block. */
static void check(struct world *w, const void *ptr, size_t size, int value) {
    const size_t at[] = {0, size / 2, size - 1};
    for (size_t i = 0; i < GR_COUNT(at); i++) {
        unsigned char byte = 0;
        EXPECT(w, w->call.cuMemcpyDtoH(&byte, (gr_cu_ptr)(uintptr_t)ptr + at[i], 1) == GR_CU_SUCCESS);
        EXPECT(w, byte == (unsigned char)value);
    }
}

static size_t driver_free(struct world *w) {
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT(w, w->call.cuMemGetInfo(&free_bytes, &total_bytes) == GR_CU_SUCCESS);
    return free_bytes;
}

#endif
