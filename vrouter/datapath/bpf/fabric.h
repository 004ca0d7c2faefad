/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From the fabric. The outer headers are read by the same function in XDP and
 * in tc. XDP takes the plain case off before GRO, so that GRO merges the inner
 * packets; all that is unusual (a fragment, a checksum, a congestion mark, an
 * unknown label) is left to tc, which does the same work, and drops with a
 * reason.
 */
#pragma once

#include "count.h"
#include "deliver.h"
#include "ecn.h"
#include "flood.h"
#include "flow.h"
#include "nexthop.h"
#include "route.h"
#include "sender.h"
#include "verdict.h"

#define NOT_OURS 0x2000
#define CUT_TRAIN 0x2001 /* loopback.h */

/* What the outer headers say. */
struct outer {
	__u32 label;     /* or VNI */
	__u32 length;    /* from the frame's start to the payload */
	__be16 checksum; /* outer UDP's */
	__u16 datagram;  /* outer UDP's length */
	__u8 tos;
	__u8 family;
	__u8 encap;
	__u8 pad;
	__u32 frame;     /* length of the frame without padding, by the outer headers; 0: a superpacket */
	__u32 remote;    /* id of the sending node or gateway (struct remote); 0: unknown */
	struct address source;
};

static __always_inline int is_local4(const struct node_settings *s, __be32 a)
{
	return a == s->local4[0] || (s->local4[1] && (a == s->local4[1] ||
		a == s->local4[2] || a == s->local4[3]));
}

static __always_inline int is_local6(const struct node_settings *s, const struct in6_addr *a)
{
	return same6(&s->local6[0], a) || same6(&s->local6[1], a) ||
	       same6(&s->local6[2], a) || same6(&s->local6[3], a);
}

static __always_inline int read_label(struct outer *o, void *at, void *end)
{
	__u32 entry;

	if (at + 4 > end)
		return -DROP_OUTER_LENGTH;
	entry = bpf_ntohl(*(__be32 *)at);
	o->label = entry >> LABEL_SHIFT;
	if (!(entry & 0xff))
		return -DROP_OUTER_TTL;
	return entry & LABEL_BOTTOM ? GO_ON : -DROP_LABEL_STACK;
}

/* UDP or GRE at `at`, of an overlay port or protocol. fragment: a first fragment. */
static __always_inline int read_shim(struct outer *o, const struct node_settings *s, void *data,
				     void *at, void *end, __u8 protocol, int fragment)
{
	if (protocol == IPPROTO_GRE) {
		struct gre *gre = at;

		if ((void *)(gre + 1) > end)
			return NOT_OURS;
		if (gre->protocol != bpf_htons(ETH_P_MPLS_UC))
			return NOT_OURS;
		if (fragment)
			return -DROP_OUTER_FRAGMENT;
		if (gre->flags)
			return -DROP_BAD_GRE;
		o->encap = ENCAP_MPLS_GRE;
		o->length = at + sizeof(*gre) + 4 - data;
		return read_label(o, gre + 1, end);
	}
	if (protocol == IPPROTO_UDP) {
		struct udphdr *udp = at;
		struct vxlan *vxlan;

		if ((void *)(udp + 1) > end)
			return NOT_OURS;
		if (udp->dest != s->mpls_udp_port && udp->dest != s->vxlan_port)
			return NOT_OURS;
		if (fragment)
			return -DROP_OUTER_FRAGMENT;
		o->checksum = udp->check;
		o->datagram = bpf_ntohs(udp->len);
		if (udp->dest == s->mpls_udp_port) {
			o->encap = ENCAP_MPLS_UDP;
			o->length = at + sizeof(*udp) + 4 - data;
			return read_label(o, udp + 1, end);
		}
		vxlan = (void *)(udp + 1);
		if ((void *)(vxlan + 1) > end)
			return -DROP_OUTER_LENGTH;
		if (!(vxlan->flags & bpf_htonl(VXLAN_HAS_VNI)))
			return -DROP_BAD_VXLAN;
		o->encap = ENCAP_VXLAN;
		o->label = bpf_ntohl(vxlan->vni) >> 8;
		o->length = at + sizeof(*udp) + sizeof(*vxlan) - data;
		return GO_ON;
	}
	return NOT_OURS;
}

/* Stores the length of the frame. start: offset of the UDP or GRE header, which has `length` bytes
 * with its payload by the IP header. UDP's length must be the same. */
static __always_inline int find_frame(struct outer *o, __u32 start, __u32 length)
{
	o->frame = start + length;
	return o->frame < o->length || (o->encap != ENCAP_MPLS_GRE && o->datagram != length) ? -DROP_OUTER_LENGTH : GO_ON;
}

/* superpacket: lengths in the headers are the train's, and 0 above 64 KiB. The caller compares
 * o->frame with the frame's length. */
static __always_inline int read_outer(struct outer *o, const struct node_settings *s, void *data,
				      void *end, int superpacket)
{
	struct ethhdr *eth = data;
	int verdict;

	if ((void *)(eth + 1) > end)
		return NOT_OURS;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(eth + 1);
		__u32 length;

		if ((void *)(ip + 1) > end || ip->ihl != 5 || !is_local4(s, ip->daddr) ||
		    (ip->protocol != IPPROTO_UDP && ip->protocol != IPPROTO_GRE) ||
		    (ip->frag_off & bpf_htons(IP_OFFSET)))
			return NOT_OURS;
		o->family = FAMILY_IPV4;
		o->tos = ip->tos;
		mapped(&o->source, ip->saddr);
		verdict = read_shim(o, s, data, ip + 1, end, ip->protocol, !!(ip->frag_off & bpf_htons(IP_MF)));
		if (verdict != GO_ON)
			return verdict;
		if (!ip->ttl)
			return -DROP_OUTER_TTL;
		if (superpacket)
			return GO_ON;
		length = bpf_ntohs(ip->tot_len);
		return length < sizeof(*ip) ? -DROP_OUTER_LENGTH : find_frame(o, ETH_HLEN + sizeof(*ip), length - sizeof(*ip));
	}
	if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > end || !is_local6(s, &ip->daddr) ||
		    (ip->nexthdr != IPPROTO_UDP && ip->nexthdr != IPPROTO_GRE))
			return NOT_OURS;
		o->family = FAMILY_IPV6;
		o->tos = tos6(ip);
		__builtin_memcpy(&o->source, &ip->saddr, 16);
		verdict = read_shim(o, s, data, ip + 1, end, ip->nexthdr, 0);
		if (verdict != GO_ON)
			return verdict;
		if (!ip->hop_limit)
			return -DROP_OUTER_TTL;
		return superpacket ? GO_ON : find_frame(o, ETH_HLEN + sizeof(*ip), bpf_ntohs(ip->payload_len));
	}
	return NOT_OURS;
}

static __always_inline struct target *target_of(const struct outer *o)
{
	__u32 label = o->label;
	struct target *t = o->encap == ENCAP_VXLAN ? bpf_map_lookup_elem(&vnis, &label) :
						     bpf_map_lookup_elem(&ilm, &label);

	return t && t->used ? t : 0;
}

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
	count_vrf(a->vrf, a->encap, 1, segments(skb), skb->len);
	return WENT(verdict, OUT_FORWARDED);
}

/* Of an ECMP group only this node's own members are of use here. */
static __noinline int local_member(struct __sk_buff *skb, __u32 composite, __u32 count)
{
	__u32 start = bpf_get_hash_recalc(skb), i;

	if (count > 16)
		count = 16;
	for (i = 0; i < 16; i++) {
		struct member_key key = { .nexthop = composite };
		struct member *m;
		struct nexthop *nh;
		__u32 id;

		if (i >= count)
			break;
		key.index = (start + i) % count;
		m = bpf_map_lookup_elem(&members, &key);
		if (!m)
			continue;
		id = m->nexthop;
		nh = nexthop_of(id);
		if (nh && nh->type == NH_ENCAP)
			return id;
	}
	return 0;
}

/* Source and destination address of an inner packet. */
struct ends {
	struct address from;
	struct address to;
};

/* Reads the inner addresses. Returns the IP family; 0: neither IPv4 nor IPv6. */
static __always_inline __u8 inner_family(struct __sk_buff *skb, struct ends *e)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + ETH_HLEN;

	if ((void *)(ip + 1) > end) {
		if (bpf_skb_pull_data(skb, ETH_HLEN + sizeof(*ip)))
			return 0;
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
		ip = data + ETH_HLEN;
		if ((void *)(ip + 1) > end)
			return 0;
	}
	if (ip->version == 4) {
		mapped(&e->from, ip->saddr);
		mapped(&e->to, ip->daddr);
		return FAMILY_IPV4;
	}
	if (ip->version == 6) {
		struct ipv6hdr *ip6 = (void *)ip;

		if ((void *)(ip6 + 1) > end)
			return bpf_skb_load_bytes(skb, ETH_HLEN + 8, e, sizeof(*e)) ? 0 : FAMILY_IPV6;
		__builtin_memcpy(e, &ip6->saddr, sizeof(*e));
		return FAMILY_IPV6;
	}
	return 0;
}

static __always_inline __be16 protocol_of(__u8 family)
{
	return family == FAMILY_IPV4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
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
	if (family == FAMILY_IPV4) {
		__be32 v4;

		__builtin_memcpy(&v4, e.to.bytes + 12, 4);
		r = route4(a->vrf, v4);
	} else {
		r = route6(a->vrf, &e.to);
	}
	if (!r)
		return -DROP_NO_ROUTE;
	id = r->nexthop;
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

static __always_inline int is_ip_type(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_IP) || protocol == bpf_htons(ETH_P_IPV6);
}

/* Returns 1 if the frame in hand is for the router of its network. */
static __always_inline int is_for_router(struct __sk_buff *skb, const struct arrival *a)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	__u32 vrf = a->vrf;
	struct vrf *n = bpf_map_lookup_elem(&vrfs, &vrf);

	return n && n->flags & VIF_F_L3 && (void *)(eth + 1) <= (void *)(long)skb->data_end &&
	       is_ip_type(eth->h_proto) && is_mac(eth->h_dest, n->router_mac);
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
