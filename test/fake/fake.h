/* SPDX-License-Identifier: Apache-2.0
 * A driver that knows every entry up to one version and does next to nothing.
 *
 * A file that includes this defines FAKE_VERSION first and exports a cuGetProcAddress made from
 * fake_find. The device it shows has no virtual memory. */
#ifndef FAKE_FAKE_H
#define FAKE_FAKE_H

#include <string.h>

#include "driver/abi.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define FAKE_EXPORT __attribute__((visibility("default")))

#define GR_ENTRY(symbol, version, need, kind, parameters) \
    static gr_cu_result nothing_##symbol parameters {     \
        return GR_CU_SUCCESS;                             \
    }
#include "driver/entries.def"
#undef GR_ENTRY

static gr_cu_result get_version(int *out) {
    *out = FAKE_VERSION;
    return GR_CU_SUCCESS;
}
static gr_cu_result get_count(int *out) {
    *out = 1;
    return GR_CU_SUCCESS;
}
static gr_cu_result get_name(char *out, int size, gr_cu_device device) {
    strncpy(out, "fake", (size_t)size);
    return GR_CU_SUCCESS;
}
static gr_cu_result get_attribute(int *out, int attribute, gr_cu_device device) {
    *out = 0;
    return GR_CU_SUCCESS;
}
static gr_cu_result get_total(size_t *out, gr_cu_device device) {
    *out = (size_t)1 << 30;
    return GR_CU_SUCCESS;
}

/* The function, or NULL when the fake does not know that symbol in that version. */
static void *fake_find(const char *symbol, int version) {
    static const struct {
        const char *symbol;
        void (*function)(void);
        int version;
    } table[] = {
        {"cuDriverGetVersion", (void (*)(void))get_version, 0},
        {"cuDeviceGetCount", (void (*)(void))get_count, 0},
        {"cuDeviceGetName", (void (*)(void))get_name, 0},
        {"cuDeviceGetAttribute", (void (*)(void))get_attribute, 0},
        {"cuDeviceTotalMem", (void (*)(void))get_total, 0},
#define GR_ENTRY(symbol, version, need, kind, parameters) \
    {#symbol, (void (*)(void))nothing_##symbol, version},
#include "driver/entries.def"
#undef GR_ENTRY
    };
    void *found = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0] && found == NULL; i++)
        if (strcmp(table[i].symbol, symbol) == 0 && table[i].version <= FAKE_VERSION &&
            version <= FAKE_VERSION)
            memcpy(&found, &table[i].function, sizeof found);
    return found;
}

#endif
