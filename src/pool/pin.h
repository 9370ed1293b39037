/* SPDX-License-Identifier: Apache-2.0
 * Pinning: an extent moves whole, so the first block that lies in it keeps all of it where it is.
 *
 *      FREE block          |   b                                    |
 *      extents         [ pinned  ][   whole   ][   whole   ][ pinned  ]
 *      a block here        |xxxxxx|                                       pins nothing more
 *      a block here        |xxxxxxxxx|                                    pins one extent more
 *
 * In a sparing pool (pool.h), a block goes where it pins least, so that what is idle stays free to move; and of
 * places that pin as much, into the company of blocks that were handed out most lately: what is handed out
 * together is often freed together, and then leaves whole extents.
 *
 * Locks: the pool's. */
#ifndef GR_POOL_PIN_H
#define GR_POOL_PIN_H

#include "block/index.h"
#include "memory/segment.h"

/* Granules of the extents that lie whole inside b, a FREE block on the range, and that a block at
 * [start, end) would be the first to touch. The part of it outside b does not count. */
size_t gr_pin_cost(const struct gr_range *range, const struct gr_block *b, gr_addr start, gr_addr end);

/* How long ago the younger of two neighbours was handed out, in blocks that the pool has handed out since (now: its
 * clock); UINT32_MAX if none is LIVE. Either may be NULL. */
uint32_t gr_pin_company(uint32_t now, const struct gr_block *left, const struct gr_block *right);

#endif
