/* SPDX-License-Identifier: Apache-2.0
 * A driver that answers every look-up with success and no function. */
#include <stddef.h>

#include "driver/abi.h"

__attribute__((visibility("default"))) gr_cu_result
cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *why);

gr_cu_result cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *why) {
    (void)symbol, (void)version, (void)flags;
    *out = NULL;
    *why = 1;
    return GR_CU_SUCCESS;
}
