/* SPDX-License-Identifier: Apache-2.0
 * The device that a benchmark runs on: the GPU when there is one, else the simulated one, with the
 * driver's entry points beside the allocator's. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <stdbool.h>

#include <granary/granary.h>

#include "driver/driver.h"

enum device_want { DEVICE_AUTO, DEVICE_CUDA, DEVICE_SIM };

struct device {
    bool simulated;
    struct gr_table call;  /* the driver's entry points */
    void *library;         /* libcuda, for those that the table lacks; NULL for the simulation */
    gr_cu_context context; /* the primary context, retained and current on the opening thread */
    char name[96];
};

/* "auto", "cuda", "sim". Returns 0, or -1 when it is none of them. */
int device_parse(const char *name, enum device_want *out);

/* Returns 0, or -1 with a sentence on standard error. */
int device_open(struct device *d, enum device_want want);
void device_close(struct device *d);

/* A handle with an option string ("" for the defaults) and a limit. Ends the program when it cannot
 * be had. */
granary *device_handle(const struct device *d, const char *conf, size_t limit);
granary_stream device_stream(granary *g);

/* Ends the program, with the words of the failure, unless status is GRANARY_OK. */
void device_must(granary *g, int status, const char *what);
/* The same for the driver's own codes. */
void device_drive(gr_cu_result code, const char *what);

#endif
