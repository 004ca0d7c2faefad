/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Marks of frames that the programs send through a vif again. The kernel clears the
 * mark of a frame that leaves a workload's namespace. A process on the node can set
 * any mark, but its frame has a socket. The programs' frames have no socket: clones, and
 * frames from the fabric that are not IP.
 */
#pragma once

#include "types.h"

/* A copy for a member of a composite nexthop. The low bits are the member's index. */
#define COPY_MARK 0x76721000
#define IS_COPY(mark) (((mark) & ~(MAX_MEMBERS - 1)) == COPY_MARK)

/* A complete outer packet. The low bits are the nexthop's id. */
#define RAW_MARK 0x80000000
#define RAW_ETHERNET 0x40000000 /* its payload is an Ethernet frame */

/* A frame to the workload of the vif. */
#define DELIVERY_MARK 0x76720000

/* A packet of a superpacket that was cut at the loopback device (loopback.h). The superpacket was counted and
 * admitted. */
#define CUT_MARK 0x76710000

/* A packet from the outside for a port of another node (nat.h). That node's policies judge it. */
#define NODE_MARK (CUT_MARK | 1)

/* Returns 1 if the policy of the vif does not judge the frame. */
static __always_inline int is_admitted(__u32 mark)
{
	return (mark & ~1) == CUT_MARK;
}

/* Clears internal marks of frames that the programs did not send. */
static __always_inline void clear_foreign_mark(struct __sk_buff *skb)
{
	if (skb->sk && (skb->mark & RAW_MARK || IS_COPY(skb->mark) || skb->mark == DELIVERY_MARK || is_admitted(skb->mark)))
		skb->mark = 0;
}
