/* SPDX-License-Identifier: Apache-2.0
 * Settings of an open handle: taking them over, changing them, remembering them.
 *
 *      granary.settings ── apply ──> sizing, limit, reclaim, extents, deferral, the kind of each pool
 *            ^    |
 *        pop |    | push
 *            |    v
 *      granary.saved: newest first
 *
 * The one door to granary.settings and to what is made from them. Switching expandable_segments puts the
 * pools of each route aside and the others in their place: requests go to pools of the kind that is asked
 * for, blocks find the pool that they came from.
 *
 * Locks: the miss lock, taken here but for init, fini and reserve. */
#ifndef GR_HEAP_SETTINGS_H
#define GR_HEAP_SETTINGS_H

#include "heap/heap.h"

struct gr_saved {
    struct gr_saved *older;
    struct granary_options settings;
};

/* When the handle opens and nothing has been allocated. The options were checked. */
void gr_settings_init(granary *g, const struct granary_options *options);
void gr_settings_fini(granary *g);

/* Reads a string into the settings. push: what was there is remembered first. OK, INVALID, OPTION,
 * UNSUPPORTED (the device has no expandable segments), HOST_MEMORY. */
GR_MUST int gr_settings_update(granary *g, const char *string, bool push, struct granary_option_error *error);
/* ORDER: nothing is remembered. */
GR_MUST int gr_settings_pop(granary *g);
void gr_settings_limit(granary *g, size_t bytes);
void gr_settings_read(granary *g, struct granary_options *out);

/* How many addresses ranges of the stream's pools are to reserve. Under the miss lock. */
const struct granary_reserve *gr_settings_reserve(const granary *g, const struct gr_stream *stream);
/* Names the class of a stream for that; the name was checked. OK or HOST_MEMORY. */
GR_MUST int gr_settings_class(granary *g, gr_cu_stream handle, const char *name);

#endif
