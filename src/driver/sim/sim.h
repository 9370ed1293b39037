/* SPDX-License-Identifier: Apache-2.0
 * The simulated driver, as the rest of the library sees it: a table (gr_sim_table, declared with the
 * seam) and a share in the process's one simulation.
 *
 * Tests and tools steer it through granary/sim.h; how it is made is told in internal.h. */
#ifndef GR_DRIVER_SIM_SIM_H
#define GR_DRIVER_SIM_SIM_H

#include "base/base.h"

/* Takes a share, and opens a simulation with the defaults when none is open.
 * Returns OK. */
GR_MUST int gr_sim_attach(void);

/* Gives the share back. The last one closes a simulation that attaching opened, unless something in
 * it is still held by others; one that was opened explicitly stays. */
void gr_sim_detach(void);

#endif
