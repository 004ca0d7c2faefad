/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Superpackets that the kernel must cut on the node:
 *
 * - superpackets whose packets need an outer UDP checksum, which only a program can write;
 * - superpackets from a workload that had, or have, the headers of another tunnel (make_room_again()). The
 *   kernel can cut a superpacket of one tunnel, not of a tunnel in a tunnel;
 * - trains of datagrams (UDP_SEGMENT) that arrive in a tunnel over UDP. Virtual devices carry a
 *   superpacket whole. The kernel drops a train whose outer headers a program has removed, because
 *   it still has the mark of a UDP tunnel (skb_udp_tunnel_segment). No helper clears the mark.
 *
 * The programs send such a superpacket, with its outer headers, out of the loopback device, which
 * cannot carry a superpacket of a tunnel: the kernel cuts it. `looped` at the ingress of that device
 * sends each packet to the next hop, or back to the device that it came from. The packets have the
 * programs' secret mark. Their priority is the id of their nexthop with RAW_ETHERNET (mark.h), or
 * FROM_FABRIC or FROM_VIF with the device.
 */
#pragma once

#include "checksum.h"
#include "encap.h"

#define FROM_FABRIC 0x80000000
#define FROM_VIF 0x20000000 /* RAW_ETHERNET is 0x40000000 */

/* Returns 1 for a train of datagrams in a tunnel over UDP. */
static __always_inline int is_train(struct __sk_buff *skb, const struct outer *o, int ethernet)
{
	struct transport t;

	return skb->gso_size && o->encap != ENCAP_MPLS_GRE && find_transport(skb, o->length, ethernet, &t) &&
	       t.field == UDP_CHECKSUM;
}

/* Sends a superpacket out of the loopback device, from where it comes back as packets. from: FROM_FABRIC or
 * FROM_VIF. */
static __always_inline int cut(struct __sk_buff *skb, __u32 from)
{
	skb->mark = own_mark();
	skb->priority = from | skb->ifindex;
	return bpf_redirect(LOOPBACK, 0);
}

/* The path of an outer packet: encapsulate() has chosen it. */
static __always_inline const struct path *path_of(struct __sk_buff *skb, const struct nexthop *nh)
{
	struct {
		struct address source;
		struct address destination;
	} outer = {};
	__be32 v4[2];
	int i;

	if (nh->family == FAMILY_IPV4) {
		if (bpf_skb_load_bytes(skb, L3_OFFSET + offsetof(struct iphdr, saddr), v4, sizeof(v4)))
			return 0;
		mapped(&outer.source, v4[0]);
		mapped(&outer.destination, v4[1]);
	} else if (bpf_skb_load_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, saddr), &outer, sizeof(outer))) {
		return 0;
	}
	for (i = 0; i < MAX_PATHS; i++)
		if (i < nh->paths && nh->path[i].oif && same_address(&nh->path[i].source, &outer.source) &&
		    same_address(&nh->path[i].destination, &outer.destination))
			return &nh->path[i];
	return 0;
}

/* Sends an outer packet that came back by the loopback device. Returns a tc action, or a negative
 * drop reason. */
static __always_inline int send_looped(struct __sk_buff *skb)
{
	__u32 id = skb->priority & ~RAW_ETHERNET;
	int ethernet = !!(skb->priority & RAW_ETHERNET);
	struct nexthop *nh = nexthop_of(id);
	const struct path *p;

	skb->priority = 0;
	if (id & (FROM_FABRIC | FROM_VIF)) {
		skb->mark = id & FROM_VIF ? CUT_MARK : 0;
		return bpf_redirect(id & ~(FROM_FABRIC | FROM_VIF), BPF_F_INGRESS);
	}
	if (!nh || nh->type != NH_TUNNEL)
		return -DROP_NO_NEXTHOP;
	p = path_of(skb, nh);
	if (!p)
		return -DROP_PATH_DOWN;
	if (!skb->gso_size && is_unfinished(skb, nh) && finish_tunnel(skb, id, ethernet) < 0)
		return -DROP_ENCAP_FAILED;
	return send_to_neighbour(skb, p);
}
