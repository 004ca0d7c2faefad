/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Answers ARP requests and neighbour solicitations that a gateway sends in Ethernet frames into a
 * network that routes. Each node answers for the router's addresses and, if the network does not bridge,
 * for its workloads, with the router's MAC address. The answer takes the way of the request back: only
 * addresses, the label or VNI, and the question change.
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

/* Returns 1 if a route leads to the router, or to a workload of this node in a network that does not
 * bridge: other workloads answer themselves. */
static __always_inline int is_answered_here(const struct route *r, const struct vrf *n)
{
	struct nexthop *nh = r ? nexthop_of(r->nexthop) : 0;

	return nh && (nh->type == NH_RECEIVE || (nh->type == NH_ENCAP && !(n->flags & VIF_F_L2)));
}

/* Writes the answer over the inner frame. Returns 1 if that succeeds. */
static __noinline int answer_outside_arp(struct __sk_buff *skb, __u32 at, __u32 vrf, const struct vrf *n)
{
	struct arp a;

	return n && !bpf_skb_load_bytes(skb, at + ETH_HLEN, &a, sizeof(a)) && is_arp_of_ip(&a) &&
	       a.operation == bpf_htons(ARP_REQUEST) && is_answered_here(route4(vrf, ip_at(a.target_ip)), n) &&
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
	       !is_unspecified6(&s.ip.saddr) && is_answered_here(route6(vrf, &s.target), n) && !bpf_skb_load_bytes(skb, at + ETH_ALEN, to, sizeof(to)) &&
	       !write_advertisement(skb, at, to, &s, n->router_mac, 1);
}

/* Returns 1 if the sender may send from the MAC address of the inner frame. */
static __noinline int is_from_station(struct __sk_buff *skb, const struct outer *o, __u32 vrf)
{
	struct bridge_key key = { .vrf = vrf };

	return o && !bpf_skb_load_bytes(skb, o->length + ETH_ALEN, key.mac, ETH_ALEN) && is_senders_station(&key, o->remote);
}

#define ANSWERED_ADDRESS (ETH_HLEN + 24) /* offset of the address that asked, in both kinds of answers */

/* Returns the label or VNI that the sender expects on the answer in hand: that of the bridge entry, or of
 * the route, of the address that asked. 0: unknown. */
static __noinline __u32 label_back(struct __sk_buff *skb, const struct outer *o, __u32 vrf)
{
	struct bridge_key key = { .vrf = vrf };
	struct address to = {};
	struct bridge_entry *b;
	struct route *r;
	__be16 type;

	if (!o || bpf_skb_load_bytes(skb, o->length, key.mac, ETH_ALEN) ||
	    bpf_skb_load_bytes(skb, o->length + 2 * ETH_ALEN, &type, sizeof(type)))
		return 0;
	b = bpf_map_lookup_elem(&bridge, &key);
	if (b && leads_to(b->nexthop, o->remote))
		return b->label;
	if (bpf_skb_load_bytes(skb, o->length + ANSWERED_ADDRESS, &to, type == bpf_htons(ETH_P_ARP) ? 4 : 16))
		return 0;
	r = type == bpf_htons(ETH_P_ARP) ? route4(vrf, *(__be32 *)&to) : route6(vrf, &to);
	return r && leads_to(r->nexthop, o->remote) ? r->label : 0;
}

/* Writes TUNNEL_TTL into the outer IP header. Returns 0 if that succeeds. */
static __always_inline long write_outer_ttl(struct __sk_buff *skb, const struct outer *o)
{
	__u32 at = L3_OFFSET + (o->family == FAMILY_IPV4 ? offsetof(struct iphdr, ttl) : offsetof(struct ipv6hdr, hop_limit));
	__u8 old[2] __attribute__((aligned(2))), new[2] __attribute__((aligned(2))) = { TUNNEL_TTL };

	if (bpf_skb_load_bytes(skb, at, old, sizeof(old)))
		return -1;
	new[1] = old[1];
	if (o->family == FAMILY_IPV4 && bpf_l3_csum_replace(skb, L3_OFFSET + offsetof(struct iphdr, check), *(__be16 *)old, *(__be16 *)new, 2))
		return -1;
	return bpf_skb_store_bytes(skb, at, new, 1, 0);
}

/* Sends a tunnel packet back to where it came from. label: that the gateway expects; 0: the same as that of
 * the packet. */
static __always_inline int send_outer_back(struct __sk_buff *skb, struct outer *o, __u32 label)
{
	__u32 length = o->family == FAMILY_IPV4 ? sizeof(__be32) : sizeof(struct in6_addr);
	__u32 from = L3_OFFSET + (o->family == FAMILY_IPV4 ? offsetof(struct iphdr, saddr) : offsetof(struct ipv6hdr, saddr));
	__be32 shim = bpf_htonl(o->encap == ENCAP_VXLAN ? label << 8 : label << LABEL_SHIFT | LABEL_BOTTOM | TUNNEL_TTL);
	__u8 a[32] __attribute__((aligned(4)));
	__u8 macs[2 * ETH_ALEN];

	if (bpf_skb_load_bytes(skb, 0, macs, sizeof(macs)) || bpf_skb_load_bytes(skb, from, a, 2 * length) ||
	    bpf_skb_store_bytes(skb, 0, macs + ETH_ALEN, ETH_ALEN, 0) || bpf_skb_store_bytes(skb, ETH_ALEN, macs, ETH_ALEN, 0) ||
	    bpf_skb_store_bytes(skb, from, a + length, length, 0) || bpf_skb_store_bytes(skb, from + length, a, length, 0) ||
	    write_outer_ttl(skb, o) ||
	    (label && bpf_skb_store_bytes(skb, o->length - 4, &shim, sizeof(shim), 0)) ||
	    /* A checksum that is left to a NIC has the sum of the addresses, which stays the same. */
	    (o->checksum && !is_left_to_nic(skb, outer_udp(o->family)) && write_udp_checksum(skb, outer_udp(o->family), outer_addresses(o->family), 0)))
		return -DROP_MALFORMED;
	skb->mark = own_mark();
	return WENT(bpf_redirect(skb->ifindex, 0), OUT_ANSWERED);
}

/* Answers a frame for which may_ask() returned 1. nexthop: where its label or VNI leads. Returns a
 * verdict, or GO_ON if the frame needs no answer. */
static __noinline int answer_outside(struct __sk_buff *skb, struct outer *o, __u32 nexthop)
{
	struct nexthop *nh = nexthop_of(nexthop);
	__u32 vrf = nh ? nh->vrf : 0;
	struct vrf *n = bpf_map_lookup_elem(&vrfs, &vrf);
	__be16 type;

	if (!o || !nh || (nh->type != NH_VRF && nh->type != NH_L2_RECEIVE) || !n || !(n->flags & VIF_F_L3) || skb->gso_size ||
	    bpf_skb_load_bytes(skb, o->length + 2 * ETH_ALEN, &type, sizeof(type)))
		return GO_ON;
	if (n->flags & VIF_F_L2 && !is_from_station(skb, o, vrf))
		return GO_ON; /* arrive_bridged() drops it */
	if (type == bpf_htons(ETH_P_ARP) ? !answer_outside_arp(skb, o->length, vrf, n) :
	    type != bpf_htons(ETH_P_IPV6) || !answer_outside_nd(skb, o->length, vrf, n))
		return GO_ON;
	trace(TRACE_ANSWER, vrf, 0, 0, 1);
	return send_outer_back(skb, o, label_back(skb, o, vrf));
}
