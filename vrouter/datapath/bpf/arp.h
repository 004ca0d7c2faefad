/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ARP (RFC 826): the vrouter answers for the addresses in its tables. */
#pragma once

#include "count.h"
#include "route.h"
#include "source.h"
#include "verdict.h"

struct arp {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_length;
	__u8 protocol_length;
	__be16 operation;
	__u8 sender_mac[6];
	__u8 sender_ip[4];
	__u8 target_mac[6];
	__u8 target_ip[4];
} __attribute__((packed));

#define ARP_REQUEST 1
#define ARP_REPLY 2

static __always_inline __be32 ip_at(const __u8 *p)
{
	__be32 ip;

	__builtin_memcpy(&ip, p, 4);
	return ip;
}

static __always_inline int is_arp_of_ip(const struct arp *a)
{
	return a->hardware == bpf_htons(1) && a->protocol == bpf_htons(ETH_P_IP) && a->hardware_length == 6 &&
	       a->protocol_length == 4;
}

/* Turns the request in place into the answer to its sender. at: offset of its Ethernet header.
 * Returns 0 if that succeeds. */
static __always_inline long write_arp_answer(struct __sk_buff *skb, __u32 at, const struct arp *a, const __u8 *mac)
{
	struct {
		struct ethhdr eth;
		struct arp arp;
	} __attribute__((packed)) answer;

	__builtin_memcpy(answer.eth.h_dest, a->sender_mac, 6);
	__builtin_memcpy(answer.eth.h_source, mac, 6);
	answer.eth.h_proto = bpf_htons(ETH_P_ARP);
	answer.arp = *a;
	answer.arp.operation = bpf_htons(ARP_REPLY);
	__builtin_memcpy(answer.arp.sender_mac, mac, 6);
	__builtin_memcpy(answer.arp.sender_ip, a->target_ip, 4);
	__builtin_memcpy(answer.arp.target_mac, a->sender_mac, 6);
	__builtin_memcpy(answer.arp.target_ip, a->sender_ip, 4);
	return bpf_skb_store_bytes(skb, at, &answer, sizeof(answer), 0);
}

/*
 * A request for an address with a route is answered: with the workload's own
 * MAC where the network bridges and the route has it, else with the router's,
 * so that all of an L3 network's traffic is routed. Requests of a workload for the
 * workload's address (gratuitous ARP, probes of RFC 5227) get no answer: it would look
 * like a duplicate address.
 */
static __noinline int answer_arp(struct __sk_buff *skb, const struct vif *v)
{
	struct arp a;
	struct route *r;
	__be32 target;
	int l2;

	if (!v || bpf_skb_load_bytes(skb, L3_OFFSET, &a, sizeof(a)))
		return -DROP_MALFORMED;
	if (!is_arp_of_ip(&a))
		return -DROP_MALFORMED;
	if (!is_mac(a.sender_mac, v->mac))
		return -DROP_SPOOFED_MAC;
	if (ip_at(a.sender_ip) && !may_send4(v, ip_at(a.sender_ip)))
		return -DROP_SPOOFED_IP;
	l2 = v->flags & VIF_F_L2;
	target = ip_at(a.target_ip);
	if (a.operation != bpf_htons(ARP_REQUEST))
		return l2 ? GO_ON : -DROP_ARP_UNKNOWN;
	if (owns4(v, target, 0) || target == ip_at(a.sender_ip))
		return l2 ? GO_ON : -DROP_ARP_UNKNOWN;
	r = route4(v->vrf, target);
	if (r && r->nexthop == v->nexthop) /* the route leads back to this workload */
		return l2 ? GO_ON : -DROP_ARP_UNKNOWN;
	if (!r || (l2 && !(r->flags & ROUTE_F_MAC) && target != v->gateway4)) {
		trace(TRACE_ANSWER, v->vrf, 0, 0, 0);
		return l2 ? GO_ON : -DROP_ARP_UNKNOWN;
	}
	trace(TRACE_ANSWER, v->vrf, 0, 0, 1);
	if (l2 && r->flags & ROUTE_F_MAC ? write_arp_answer(skb, 0, &a, r->mac) : write_arp_answer(skb, 0, &a, v->router_mac))
		return -DROP_MALFORMED;
	return bpf_redirect(skb->ifindex, 0);
}
