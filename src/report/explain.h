/* SPDX-License-Identifier: Apache-2.0
 * Explanations: from the facts of a shortfall to sentences.
 *
 *      facts ──> kind (one of GRANARY_SHORTAGE_MAP) ──> sentence, places, holders, rungs, one piece of advice
 *
 * How the kind is told. If live memory and the request together do not fit, the card or the limit is
 * full, and the question is only by whose memory. If they do fit, something that is not live stands in
 * the way, and the kind is the place where most of it lies.
 *
 * Reads nothing but the struct, which may come from another process. No state, no locks. */
#ifndef GR_REPORT_EXPLAIN_H
#define GR_REPORT_EXPLAIN_H

#include <granary/granary.h>

#include "base/base.h"

enum granary_shortage gr_explain_kind(const struct granary_shortfall *s);

/* One sentence: what did not fit, and why. */
void gr_explain_line(char *buffer, size_t room, const struct granary_shortfall *s);
/* All of it, some ten lines. */
void gr_explain_all(char *buffer, size_t room, const struct granary_shortfall *s);

#endif
