/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A packet from another node, without its outer headers: check its sender, and deliver it. */
#pragma once

#include "count.h"
#include "deliver.h"
#include "ends.h"
#include "flood.h"
#include "flow.h"
#include "member.h"
#include "nexthop.h"
#include "outer.h"
#include "route.h"
#include "sender.h"
#include "verdict.h"

/* Stores the id of the sending node or gateway. r: its entry; 0: it is unknown. Returns GO_ON,
 * or a negative drop reason if the sender is unknown or must not use the encapsulation. */
static __always_inline int admit_sender(const struct node_settings *s, struct outer *o, const struct remote *r)
{
	if (!r)
		return s->flags & SET_F_STRICT ? -DROP_UNKNOWN_SOURCE : GO_ON;
	o->remote = r->id;
	return r->encaps >> o->encap & 1 ? GO_ON : -DROP_WRONG_ENCAPSULATION;
}

/* The same for the sender with the outer source address. */
static __always_inline int find_sender(const struct node_settings *s, struct outer *o)
{
	return admit_sender(s, o, bpf_map_lookup_elem(&remotes, &o->source));
}

/* The decapsulated frame in hand, as delivery sees it. */
struct arrival {
	__u32 vrf;
	__u32 vif;     /* vif whose delivery dropped the frame; 0: the frame did not get that far */
	__u8 encap;
	__u8 ethernet; /* it arrived with an inner Ethernet header */
	__be16 protocol; /* EtherType of a received frame without a tunnel header; else 0 */
	__u32 remote;  /* id of the sending node or gateway (struct remote); 0: unknown, or the inner source is checked */
};

/* Fills *a for a packet without a tunnel header that o->remote sent into a network. This node
 * must route the network. protocol: EtherType of the workload's packet. Returns GO_ON, or a
 * negative drop reason. */
static __always_inline int enter_network(const struct outer *o, __u32 vrf, __be16 protocol, struct arrival *a)
{
	struct vrf *n = bpf_map_lookup_elem(&vrfs, &vrf);

	trace(TRACE_LABEL, vrf, vrf, 0, n && n->flags & VIF_F_L3);
	if (!n || !(n->flags & VIF_F_L3))
		return -DROP_UNKNOWN_LABEL;
	a->vrf = vrf;
	a->encap = o->encap;
	a->remote = o->remote;
	a->protocol = protocol;
	return GO_ON;
}

static __always_inline int to_vif(struct __sk_buff *skb, const struct nexthop *nh,
				  struct arrival *a, int routed, __be16 protocol, int raw)
{
	int verdict;

	if (nh->type != NH_ENCAP)
		return nh->type == NH_TUNNEL ? -DROP_REFLECTED :
		       nh->type == NH_DISCARD ? -DROP_DISCARD : -DROP_NO_NEXTHOP;
	verdict = deliver(skb, nh, routed, protocol, raw);
	if (verdict < 0) {
		a->vif = nh->vif;
		return verdict;
	}
	count_arrived(skb, a->vrf, a->encap);
	return WENT(verdict, OUT_FORWARDED);
}

struct local_search {
	__u32 composite;
	__u32 start;
	__u32 count; /* members of the composite */
	__u32 found; /* nexthop */
};

static long try_local(__u32 i, struct local_search *s)
{
	__u32 id = member_at(s->composite, (s->start + i) % s->count);
	struct nexthop *nh = nexthop_of(id);

	if (!nh || nh->type != NH_ENCAP)
		return 0;
	s->found = id;
	return 1;
}

/* Returns a member of an ECMP group whose vif is on this node; 0: there is none. Packets from the
 * fabric do not return there. The verifier checks this function once, separately. */
__noinline int local_member(struct __sk_buff *skb, __u32 composite, __u32 members)
{
	struct local_search s = { .composite = composite, .start = bpf_get_hash_recalc(skb) };

	s.count = members < ECMP_WIDTH ? members : ECMP_WIDTH;
	bpf_loop(s.count, try_local, &s, 0);
	return s.found;
}

static __always_inline int arrive_routed(struct __sk_buff *skb, struct arrival *a)
{
	struct ends e = {};
	struct nexthop *nh;
	struct route *r;
	__u8 family;
	__u32 id;

	family = inner_family(skb, &e);
	if (!family || (a->protocol && a->protocol != protocol_of(family)))
		return -DROP_BAD_INNER;
	if (!is_senders_address(a->vrf, a->remote, &e.from, family))
		return -DROP_FORGED_SOURCE;
	r = route_to(a->vrf, &e.to, family);
	if (!r)
		return -DROP_NO_ROUTE;
	id = r->nexthop;
	if (r->flags & ROUTE_F_FLOATING) {
		int verdict = from_router(skb, id, &e.to);

		if (verdict < 0)
			return verdict;
		if (!verdict) {
			count_arrived(skb, a->vrf, a->encap);
			return WENT(TC_ACT_REDIRECT, OUT_FORWARDED);
		}
		id = verdict;
	}
	nh = nexthop_of(id);
	if (nh && nh->type == NH_COMPOSITE) {
		id = local_member(skb, id, nh->members);
		nh = id ? nexthop_of(id) : 0;
		if (!nh)
			return -DROP_REFLECTED;
	}
	if (!nh)
		return -DROP_NO_NEXTHOP;
	return to_vif(skb, nh, a, 1, protocol_of(family), 0);
}

/* Returns 1 for the router's MAC address that all nodes share (RouterMAC in package model). A
 * network can have another one beside it, for routers outside the fleet. */
static __always_inline int is_shared_router(const __u8 *m)
{
	return !m[0] && !m[1] && m[2] == 0x5e && !m[3] && m[4] == 1 && !m[5];
}

/* Returns 1 if the frame in hand is for the router of its network. */
static __always_inline int is_for_router(struct __sk_buff *skb, const struct arrival *a)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	__u32 vrf = a->vrf;
	struct vrf *n = bpf_map_lookup_elem(&vrfs, &vrf);

	return n && n->flags & VIF_F_L3 && (void *)(eth + 1) <= (void *)(long)skb->data_end &&
	       is_ip_type(eth->h_proto) && (is_mac(eth->h_dest, n->router_mac) || is_shared_router(eth->h_dest));
}

static __noinline int arrive_bridged(struct __sk_buff *skb, struct arrival *a)
{
	struct bridge_key key = {};
	struct bridge_entry *b;
	struct nexthop *nh;
	struct ethhdr *eth = (void *)(long)skb->data;
	struct vrf *n;
	__u32 vrf, id;
	int is_ip;

	if (!a || (void *)(eth + 1) > (void *)(long)skb->data_end)
		return -DROP_BAD_INNER;
	vrf = a->vrf;
	n = bpf_map_lookup_elem(&vrfs, &vrf);
	if (!n)
		return -DROP_NO_NEXTHOP;
	if (!(n->flags & VIF_F_L2))
		return -DROP_UNKNOWN_MAC;
	is_ip = is_ip_type(eth->h_proto);
	key.vrf = vrf;
	copy_mac(key.mac, eth->h_source);
	if (!is_senders_station(&key, a->remote))
		return -DROP_FORGED_SOURCE;
	copy_mac(key.mac, eth->h_dest);
	b = key.mac[0] & 1 ? 0 : bpf_map_lookup_elem(&bridge, &key);
	if (!b)
		return flood(skb, vrf, 0);
	id = b->nexthop;
	nh = nexthop_of(id);
	if (!nh)
		return -DROP_NO_NEXTHOP;
	return to_vif(skb, nh, a, 0, 0, !is_ip);
}

/* Delivers the decapsulated frame in hand, or returns GO_ON if it must be routed. nh: where
 * its label or VNI leads. */
static __always_inline int arrive(struct __sk_buff *skb, const struct nexthop *nh, struct arrival *a)
{
	switch (nh->type) {
	case NH_VRF:
	case NH_L2_RECEIVE:
		/* Ethernet payload of a network that only routes is for the router, too. */
		if (a->ethernet && !is_for_router(skb, a))
			return arrive_bridged(skb, a);
		if (!a->ethernet && nh->type == NH_L2_RECEIVE)
			return -DROP_BAD_INNER;
		return GO_ON;
	case NH_ENCAP: {
		struct ends e = {};
		__u8 family = a->ethernet ? 0 : inner_family(skb, &e);

		if (!a->ethernet && !family)
			return -DROP_BAD_INNER;
		return to_vif(skb, nh, a, !a->ethernet, protocol_of(family), a->ethernet);
	}
	case NH_DISCARD:
		return -DROP_DISCARD;
	}
	return -DROP_NO_NEXTHOP;
}

/* Fills *a for a decapsulated frame, and delivers it unless it must be routed. id: where its
 * label or VNI leads. Returns GO_ON for a packet that arrive_routed() must deliver. */
static __always_inline int arrive_labelled(struct __sk_buff *skb, struct arrival *a, __u32 id, int ethernet,
					   __u8 encap, __u32 remote)
{
	struct nexthop *nh = nexthop_of(id);

	if (!nh)
		return -DROP_NO_NEXTHOP;
	a->vrf = nh->vrf;
	a->encap = encap;
	a->ethernet = ethernet;
	a->remote = remote;
	return arrive(skb, nh, a);
}
