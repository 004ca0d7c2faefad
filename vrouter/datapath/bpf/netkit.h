/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Netkit devices, which do not classify the frames that they deliver. */
#pragma once

#include "mark.h"
#include "maps.h"

/*
 * Returns 1 if from_workload runs at netkit's hook of the workload's end, and the frame must
 * not be routed. Such a frame continues to the ingress of the vif, where from_workload runs
 * again: the copies of a flooded frame enter there, and netkit would tell the sender that the
 * original was dropped. There the kernel also takes a VLAN tag out of the frame, so that judge()
 * finds it. The kernel sets ingress_ifindex at the ingress.
 */
static __always_inline int is_for_ingress(struct __sk_buff *skb, const struct vif *v)
{
	struct ethhdr *eth = (void *)(long)skb->data;

	return v->flags & VIF_F_NETKIT && !skb->ingress_ifindex &&
	       ((void *)(eth + 1) > (void *)(long)skb->data_end || !is_mac(eth->h_dest, v->router_mac) ||
		eth->h_proto == bpf_htons(ETH_P_8021Q) || eth->h_proto == bpf_htons(ETH_P_8021AD));
}

/*
 * Returns the flags of a redirect to the device of a vif. After decapsulation in tc, the
 * kernel has the outer packet's protocol for a frame that is not IP. It classifies frames to
 * veth devices again, but not frames to netkit devices. So such a frame enters the netkit
 * device, where the kernel classifies it. From there from_workload sends it to the workload.
 * The verifier checks this function once, separately.
 */
__noinline int redirect_flags(struct __sk_buff *skb, __u32 ifindex)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	struct vif *v = bpf_map_lookup_elem(&vifs, &ifindex);

	if (!v || !(v->flags & VIF_F_NETKIT) || (void *)(eth + 1) > (void *)(long)skb->data_end ||
	    eth->h_proto == skb->protocol ||
	    (skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6)))
		return 0;
	skb->mark = DELIVERY_MARK;
	return BPF_F_INGRESS;
}
