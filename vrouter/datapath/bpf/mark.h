/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Marks with which a frame enters its vif once more. A mark does not come with
 * a frame out of a workload's namespace. A process on the node may set it, and
 * its frame comes with its socket; the programs' own frames are clones, which
 * have none.
 */
#pragma once

#include "types.h"

/* A copy for a member of a composite nexthop: the member's index below it. */
#define COPY_MARK 0x76721000
#define IS_COPY(mark) (((mark) & ~(MAX_MEMBERS - 1)) == COPY_MARK)

/* A finished outer packet: the nexthop's id below it. */
#define RAW_MARK 0x80000000

/* Takes internal marks off frames that are not the programs' own. */
static __always_inline void distrust_mark(struct __sk_buff *skb)
{
	if (skb->mark && skb->sk && (skb->mark & RAW_MARK || IS_COPY(skb->mark)))
		skb->mark = 0;
}
