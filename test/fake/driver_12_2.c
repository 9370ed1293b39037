/* SPDX-License-Identifier: Apache-2.0
 * A driver with the new cuGetProcAddress that is too old for edge data; the old one must not be used. */
#define FAKE_VERSION 12020
#include "fake.h"

FAKE_EXPORT gr_cu_result cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags);
FAKE_EXPORT gr_cu_result cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                                             int *why);

gr_cu_result cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
    return GR_CU_UNKNOWN;
}

gr_cu_result cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *why) {
    if (version > FAKE_VERSION) return GR_CU_INVALID_VALUE;
    *out = fake_find(symbol, version);
    *why = *out != NULL ? 0 : 1;
    return GR_CU_SUCCESS;
}
