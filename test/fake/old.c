/* SPDX-License-Identifier: Apache-2.0
 * A driver from before cuGetProcAddress. */
#include "driver/abi.h"

__attribute__((visibility("default"))) gr_cu_result cuDriverGetVersion(int *out);

gr_cu_result cuDriverGetVersion(int *out) {
    *out = 11020;
    return GR_CU_SUCCESS;
}
