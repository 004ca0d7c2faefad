/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The fast path of policy, for most packets: a whole TCP segment without SYN, FIN and RST, or
 * a whole UDP datagram, without IP options or extension headers. The policy in force has
 * allowed its flow, and a packet of the flow was seen shortly before. Such a packet changes
 * only the counters of the flow. admit() judges all other packets, with the same result.
 */
#pragma once

#include "flowstate.h"

/* Reads the key of the packet's flow. Returns 1, or 0 if admit() must read the packet. */
static __always_inline int read_known(struct __sk_buff *skb, struct flow_key *k, int to_workload)
{
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = (void *)(long)skb->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct ipv6hdr *ip6 = (void *)ip;
	struct address *source = to_workload ? &k->remote : &k->local;
	struct address *destination = to_workload ? &k->local : &k->remote;
	__be16 *ports = (void *)(ip + 1);

	if ((void *)(ports + 4) > end || (eth->h_proto != bpf_htons(ETH_P_IP) && eth->h_proto != bpf_htons(ETH_P_IPV6)))
		return 0;
	if (*(__u8 *)ip == 0x45) { /* behind a decapsulation, h_proto can be the outer packet's */
		if (ip->frag_off & bpf_htons(IP_MF | IP_OFFSET) || !has_transport(ip->tot_len, sizeof(*ip), ip->protocol))
			return 0;
		mapped(source, ip->saddr);
		mapped(destination, ip->daddr);
		k->protocol = ip->protocol;
	} else {
		ports = (void *)(ip6 + 1);
		if (ip6->version != 6 || (void *)(ports + 4) > end || !has_transport(ip6->payload_len, 0, ip6->nexthdr))
			return 0;
		__builtin_memcpy(source, &ip6->saddr, 16);
		__builtin_memcpy(destination, &ip6->daddr, 16);
		if (is_mapped(source)) /* the key would be an IPv4 flow's */
			return 0;
		k->protocol = ip6->nexthdr;
	}
	if (k->protocol == IPPROTO_TCP) {
		__u8 *flags = (__u8 *)ports + TCP_FLAGS_AT;

		if ((void *)(flags + 1) > end || *flags & (TCP_F_SYN | TCP_F_FIN | TCP_F_RST))
			return 0;
	} else if (k->protocol != IPPROTO_UDP) {
		return 0;
	}
	k->local_port = ports[to_workload ? 1 : 0];
	k->remote_port = ports[to_workload ? 0 : 1];
	return 1;
}

/* Returns 1 if the frame may pass the vif, and counts it in its flow. Returns 0 if admit() must
 * judge the frame. vif: id. The verifier checks a global function once, independent of its
 * callers. Inlined, it would need too much stack. */
__noinline int is_of_known_flow(struct __sk_buff *skb, __u32 vif, int to_workload)
{
	struct flow_key k = { .vif = vif };
	__u32 *generation;
	struct flow *f;

	if (tracing || !read_known(skb, &k, to_workload))
		return 0;
	f = bpf_map_lookup_elem(&flows, &k);
	generation = bpf_map_lookup_elem(&policy_generations, &vif);
	if (!f || !generation || !*generation || f->policy != *generation || f->action != FLOW_FORWARD || !is_fresh(f) ||
	    (k.protocol == IPPROTO_TCP && !(f->tcp & FLOW_TCP_ESTABLISHED)))
		return 0;
	add_to_flow(f, to_workload, wire_of(skb));
	return 1;
}
