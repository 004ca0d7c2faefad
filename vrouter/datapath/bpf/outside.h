/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Answers ARP requests and neighbour solicitations that a gateway sends by VXLAN into a network
 * that only routes. Each node answers for its workloads and for the router's addresses, with the
 * router's MAC address. The answer takes the way of the request back: only addresses and the
 * question change. So its VNI is the network's. Other encapsulations carry no Ethernet frames into
 * such a network.
 */
#pragma once

#include "arp.h"
#include "checksum.h"
#include "mark.h"
#include "nd.h"
#include "nonce.h"

/* Returns 1 if a frame in a tunnel may be a question. */
static __always_inline int may_ask(struct __sk_buff *skb, const struct outer *o)
{
	struct ethhdr *eth = (void *)(long)skb->data + bounded(o->length, 128);

	return (void *)(eth + 1) > (void *)(long)skb->data_end || eth->h_dest[0] & 1 || eth->h_proto == bpf_htons(ETH_P_ARP);
}

/* Returns 1 if a route leads to a workload of this node, or to the router. */
static __always_inline int is_answered_here(const struct route *r)
{
	struct nexthop *nh = r ? nexthop_of(r->nexthop) : 0;

	return nh && (nh->type == NH_ENCAP || nh->type == NH_RECEIVE);
}

/* Writes the answer over the inner frame. Returns 1 if that succeeds. */
static __noinline int answer_outside_arp(struct __sk_buff *skb, __u32 at, __u32 vrf, const struct vrf *n)
{
	struct arp a;

	return n && !bpf_skb_load_bytes(skb, at + ETH_HLEN, &a, sizeof(a)) && is_arp_of_ip(&a) &&
	       a.operation == bpf_htons(ARP_REQUEST) && is_answered_here(route4(vrf, ip_at(a.target_ip))) &&
	       !write_arp_answer(skb, at, &a, n->router_mac);
}

/* The same for a solicitation, which must have the sender's MAC address as its only option: then
 * it is as long as the answer. */
static __noinline int answer_outside_nd(struct __sk_buff *skb, __u32 at, __u32 vrf, const struct vrf *n)
{
	struct solicitation s __attribute__((aligned(8)));
	__u8 to[ETH_ALEN] __attribute__((aligned(2)));

	return n && !bpf_skb_load_bytes(skb, at + ETH_HLEN, &s, sizeof(s)) && s.ip.nexthdr == IPPROTO_ICMPV6 &&
	       s.type == ND_NEIGHBOUR_SOLICITATION && s.ip.hop_limit == 255 &&
	       bpf_ntohs(s.ip.payload_len) == sizeof(struct advertisement) - ETH_HLEN - sizeof(s.ip) &&
	       !is_unspecified6(&s.ip.saddr) && is_answered_here(route6(vrf, &s.target)) && !bpf_skb_load_bytes(skb, at + ETH_ALEN, to, sizeof(to)) &&
	       !write_advertisement(skb, at, to, &s, n->router_mac, 1);
}

/* Sends a VXLAN packet back to where it came from. */
static __always_inline int send_outer_back(struct __sk_buff *skb, struct outer *o)
{
	__u32 length = o->family == FAMILY_IPV4 ? 4 : 16, from = L3_OFFSET + (o->family == FAMILY_IPV4 ? 12 : 8);
	__u8 a[32] __attribute__((aligned(4)));
	struct ethhdr eth, back;

	if (bpf_skb_load_bytes(skb, 0, &eth, sizeof(eth)) || bpf_skb_load_bytes(skb, from, a, 2 * length))
		return -DROP_MALFORMED;
	copy_mac(back.h_dest, eth.h_source);
	copy_mac(back.h_source, eth.h_dest);
	back.h_proto = eth.h_proto;
	if (bpf_skb_store_bytes(skb, 0, &back, sizeof(back), 0) || bpf_skb_store_bytes(skb, from, a + length, length, 0) ||
	    bpf_skb_store_bytes(skb, from + length, a, length, 0) ||
	    (o->checksum && write_udp_checksum(skb, outer_udp(o->family), outer_addresses(o->family), 0)))
		return -DROP_MALFORMED;
	skb->mark = own_mark();
	return WENT(bpf_redirect(skb->ifindex, 0), OUT_ANSWERED);
}

/* Answers a frame for which may_ask() returned 1. nexthop: where its VNI leads. Returns a verdict, or
 * GO_ON if the frame needs no answer. */
static __noinline int answer_outside(struct __sk_buff *skb, struct outer *o, __u32 nexthop)
{
	struct nexthop *nh = nexthop_of(nexthop);
	__u32 vrf = nh ? nh->vrf : 0;
	struct vrf *n = bpf_map_lookup_elem(&vrfs, &vrf);
	__be16 type;

	if (!o || !nh || nh->type != NH_VRF || !n || n->flags & VIF_F_L2 || skb->gso_size ||
	    bpf_skb_load_bytes(skb, o->length + 2 * ETH_ALEN, &type, sizeof(type)))
		return GO_ON;
	if (type == bpf_htons(ETH_P_ARP) ? !answer_outside_arp(skb, o->length, vrf, n) :
	    type != bpf_htons(ETH_P_IPV6) || !answer_outside_nd(skb, o->length, vrf, n))
		return GO_ON;
	trace(TRACE_ANSWER, vrf, 0, 0, 1);
	return send_outer_back(skb, o);
}
