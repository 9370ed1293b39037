/* SPDX-License-Identifier: Apache-2.0
 * The oldest driver that is good enough: cuGetProcAddress with four arguments. */
#define FAKE_VERSION 11030
#include "fake.h"

FAKE_EXPORT gr_cu_result cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags);

gr_cu_result cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags) {
    *out = fake_find(symbol, version);
    return *out != NULL ? GR_CU_SUCCESS : GR_CU_NOT_FOUND;
}
