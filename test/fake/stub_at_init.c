/* SPDX-License-Identifier: Apache-2.0
 * A stub that can be looked into: only cuInit says what it is. */
#define FAKE_VERSION 12020
#include "fake.h"

FAKE_EXPORT gr_cu_result cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags,
                                             int *why);

static gr_cu_result init(unsigned flags) {
    return GR_CU_STUB_LIBRARY;
}

gr_cu_result cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *why) {
    gr_cu_result (*stub)(unsigned) = init;
    *why = 0;
    *out = fake_find(symbol, version);
    if (strcmp(symbol, "cuInit") == 0) memcpy(out, &stub, sizeof stub);
    return GR_CU_SUCCESS;
}
