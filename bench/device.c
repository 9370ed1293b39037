/* SPDX-License-Identifier: Apache-2.0
 * The device that a benchmark runs on: the GPU when there is one, else the simulated one. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <granary/sim.h>

int device_parse(const char *name, enum device_want *out) {
    static const char *const names[] = {[DEVICE_AUTO] = "auto", [DEVICE_CUDA] = "cuda", [DEVICE_SIM] = "sim"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (enum device_want)i;
        return 0;
    }
    return -1;
}

/* Retains the primary context and makes it current. */
static int start(struct device *d) {
    gr_cu_device device;
    if (d->call.cuInit(0) != GR_CU_SUCCESS || d->call.cuDeviceGet(&device, 0) != GR_CU_SUCCESS ||
        d->call.cuDeviceGetName(d->name, (int)sizeof d->name, device) != GR_CU_SUCCESS ||
        d->call.cuDevicePrimaryCtxRetain(&d->context, device) != GR_CU_SUCCESS)
        return -1;
    return d->call.cuCtxPushCurrent(d->context) == GR_CU_SUCCESS ? 0 : -1;
}

int device_open(struct device *d, enum device_want want) {
    char reason[GR_REASON_ROOM] = "the driver has no device 0";
    *d = (struct device){0};
    if (want != DEVICE_SIM) {
        if (gr_load_table(&d->call, &d->library, reason) == GRANARY_OK && start(d) == 0) return 0;
        if (want == DEVICE_CUDA) {
            fprintf(stderr, "bench: no GPU: %s\n", reason);
            return -1;
        }
    }
    *d = (struct device){.simulated = true};
    struct granary_sim_config config;
    granary_sim_config_init(&config);
    config.oracle = 0; /* its book-keeping is not what is measured */
    if (granary_sim_open(&config) != GRANARY_OK) return -1;
    gr_sim_table(&d->call);
    return start(d);
}

void device_close(struct device *d) {
    d->call.cuCtxPopCurrent(&d->context);
    d->call.cuDevicePrimaryCtxRelease(0);
    if (d->simulated) granary_sim_close();
    *d = (struct device){0};
}

void device_must(granary *g, int status, const char *what) {
    struct granary_fault fault = {.struct_size = sizeof fault};
    if (status == GRANARY_OK) return;
    if (g != NULL) granary_last_fault(g, &fault);
    fprintf(stderr, "bench: %s: %s: %s\n", what, granary_status_name(status), fault.text);
    exit(EXIT_FAILURE);
}

void device_drive(gr_cu_result code, const char *what) {
    if (code == GR_CU_SUCCESS) return;
    fprintf(stderr, "bench: %s: the driver answered %d\n", what, code);
    exit(EXIT_FAILURE);
}

granary *device_handle(const struct device *d, const char *conf, size_t limit) {
    struct granary_option_error error = {0};
    struct granary_fault fault = {.struct_size = sizeof fault};
    struct granary_options options;
    granary *g = NULL;
    granary_options_init(&options);
    if (conf[0] != 0 && granary_options_parse(&options, conf, "--conf", &error) != GRANARY_OK) {
        fprintf(stderr, "bench: %s\n", error.text);
        exit(EXIT_FAILURE);
    }
    options.driver = d->simulated ? GRANARY_DRIVER_SIM : GRANARY_DRIVER_CUDA;
    options.fault = &fault;
    if (limit < options.limit_bytes) options.limit_bytes = limit;
    int status = granary_open(0, &options, &g);
    if (status != GRANARY_OK) {
        fprintf(stderr, "bench: opening: %s: %s\n", granary_status_name(status), fault.text);
        exit(EXIT_FAILURE);
    }
    return g;
}

granary_stream device_stream(granary *g) {
    granary_stream stream = NULL;
    device_must(g, granary_stream_create(g, &stream), "a stream");
    return stream;
}
