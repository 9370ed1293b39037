/* SPDX-License-Identifier: Apache-2.0
 * Counts the host allocations of the library, and refuses one. The runner is linked so that every
 * gr_host_take and gr_host_give of the library comes through here. */
#ifndef FAULT_HOST_WRAP_H
#define FAULT_HOST_WRAP_H

#include <stdint.h>

/* Allocations so far; and those not given back yet. */
uint64_t host_wrap_taken(void);
int64_t host_wrap_live(void);

/* Refuses the n-th allocation from now (from 1) and times - 1 more; 0 clears the plan. */
void host_wrap_fail(uint64_t n, uint64_t times);
uint64_t host_wrap_refused(void);

#endif
