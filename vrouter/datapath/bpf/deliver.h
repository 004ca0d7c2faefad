/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* To a workload on this node. */
#pragma once

#include "count.h"
#include "flow.h"
#include "mark.h"
#include "netkit.h"
#include "service.h"
#include "verdict.h"

static __always_inline const struct vif *vif_of(const struct nexthop *nh)
{
	__u32 ifindex = nh->oif;

	return bpf_map_lookup_elem(&vifs, &ifindex);
}

/*
 * Delivers the frame to a vif's workload. routed: the frame gets a new Ethernet header
 * with `protocol` (network order). raw: skb->protocol is wrong, so the kernel must
 * classify the frame again; a redirect to the peer would skip that.
 */
static __always_inline int deliver(struct __sk_buff *skb, const struct nexthop *nh, int routed,
				   __be16 protocol, int raw)
{
	int verdict, slow = 0;

	if (nh->flags & NH_F_POLICY && !is_of_known_flow(skb, nh->vif, 1)) {
		const struct vif *v = vif_of(nh);

		if (!v)
			return -DROP_VIF_GONE;
		verdict = v->flags & VIF_F_POLICY ? may_pass(skb, v, 1) : GO_ON;
		if (verdict < 0)
			return verdict;
		slow = 1; /* admit() has renewed one entry of the flow, and the other one needs that too */
	}
	if (nh->flags & NH_F_SERVICES && (slow || !from_service(skb, nh->vif, nh->flags))) {
		verdict = from_service_slowly(skb, nh->vif, nh->flags);
		if (verdict < 0)
			return verdict;
	}
	trace(TRACE_DELIVER, nh->vrf, nh->vif, nh->oif, 1);
	count_vif(skb, nh->vif, 1);
	if (routed) {
		struct ethhdr *eth = (void *)(long)skb->data;

		if ((void *)(eth + 1) > (void *)(long)skb->data_end)
			return -DROP_REDIRECT_FAILED;
		copy_mac(eth->h_dest, nh->dmac);
		copy_mac(eth->h_source, nh->smac);
		eth->h_proto = protocol;
	}
	if (raw)
		return bpf_redirect(nh->oif, redirect_flags(skb, nh->oif));
	/* A frame at netkit's hook has not entered a device yet. The kernel drops it if it is
	 * redirected to a peer. */
	if (!(nh->flags & NH_F_PEER) || !skb->ingress_ifindex)
		return bpf_redirect(nh->oif, 0);
	if (skb->pkt_type != PACKET_HOST)
		bpf_skb_change_type(skb, PACKET_HOST);
	return bpf_redirect_peer(nh->oif, 0);
}
