/* SPDX-License-Identifier: Apache-2.0
 * The toolkit's link-time stub: every call says so. */
#include <stddef.h>

#include "driver/abi.h"

__attribute__((visibility("default"))) gr_cu_result
cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *why);

gr_cu_result cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *why) {
    (void)symbol, (void)out, (void)version, (void)flags, (void)why;
    return GR_CU_STUB_LIBRARY;
}
