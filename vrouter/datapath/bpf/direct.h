/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Direct: nodes on one Ethernet link send IP packets of workloads to each other without
 * a tunnel. The MAC addresses of such frames are labels. A label identifies the network
 * and the node:
 *
 *   12 bits network (number of the VRF), low 8 bits in the second byte
 *    4 bits 0110: locally administered, unicast; 0010 in the source of a bridged frame of a
 *           network that also routes
 *   32 bits IPv4 underlay address of the node
 *
 * A bridged frame goes directly if its MAC addresses are the addresses of the workloads that
 * have its IP addresses. The receiver then restores them from its routes. A nexthop for
 * bridged frames has a fallback: a tunnel for all other frames.
 *
 * NICs can segment and merge these packets, because they have no tunnel headers.
 * PortLand (SIGCOMM 2009) also wrote a host's location into its MAC address.
 */
#pragma once

#include "arrive.h"
#include "encap.h"
#include "fallback.h"

#define LABEL_MAC 0x06
#define BRIDGED_MAC 0x02

static __always_inline int is_label_mac(const __u8 *mac)
{
	return (mac[0] & 0x0f) == LABEL_MAC;
}

static __always_inline __u32 label_network(const __u8 *mac)
{
	return (__u32)(mac[0] & 0xf0) << 4 | mac[1];
}

static __always_inline __be32 label_node(const __u8 *mac)
{
	union {
		__u16 words[2];
		__be32 node;
	} label;
	const __u16 *words = (const void *)mac;

	label.words[0] = words[1];
	label.words[1] = words[2];
	return label.node;
}

/* kind: LABEL_MAC, or BRIDGED_MAC for the source of a bridged frame of a network that also
 * routes. */
static __always_inline void write_label_mac(__u8 *mac, __u8 kind, __u32 network, const struct address *node)
{
	const __u16 *v4 = (const void *)(node->bytes + 12);
	__u16 *words = (void *)mac;

	words[0] = bpf_htons(((network & 0xf00) << 4) | kind << 8 | (network & 0xff));
	words[1] = v4[0];
	words[2] = v4[1];
}

/* Returns 1 for frames whose destination is a label of this node. */
static __always_inline int is_to_label(const struct node_settings *s, const struct ethhdr *eth)
{
	return is_label_mac(eth->h_dest) && is_local4(s, label_node(eth->h_dest));
}

/* Returns 1 for frames that carry a workload's packet without a tunnel. No network has
 * the number 0: agents use the label of network 0 to test links. */
static __always_inline int is_direct(const struct node_settings *s, const struct ethhdr *eth)
{
	return is_to_label(s, eth) && label_network(eth->h_dest);
}

/* Test frames of links; vrouter/direct/frame.go writes them. The programs do not compare
 * the 16 bytes between the Ethernet header and the kind. */
#define TEST_PROTOCOL 0x88b5
#define TEST_KIND (ETH_HLEN + 16) /* offset of the kind */
#define TEST_ABILITY (TEST_KIND + 9) /* offset of struct test_abilities */
#define TEST_BRIDGED 1 /* ability: the node restores bridged frames from BRIDGED_MAC */
#define TEST_ONE_LABEL 2 /* ability: also frames from LABEL_MAC, in a network that only bridges */
#define TEST_REQUEST 1
#define TEST_REPLY 2

/* In a reply: the abilities of the node that replies. */
struct test_abilities {
	__u8 abilities;
	__be16 last_label; /* node_settings.last_label */
} __attribute__((packed));

/* Answers a test request to this node's label of network 0, even if no agent runs on
 * this node. It does not answer nodes whose direct packets this node would refuse. Returns the
 * verdict, or GO_ON for other frames. */
static __noinline int answer_test(struct __sk_buff *skb)
{
	struct test_abilities own = { .abilities = TEST_BRIDGED | TEST_ONE_LABEL };
	struct outer o = { .encap = ENCAP_DIRECT };
	struct node_settings *s;
	struct ethhdr in, out;
	__u8 kind;

	s = the_settings();
	if (!s || bpf_skb_load_bytes(skb, 0, &in, sizeof(in)) || in.h_proto != bpf_htons(TEST_PROTOCOL) ||
	    !is_label_mac(in.h_source) || label_network(in.h_source) ||
	    bpf_skb_load_bytes(skb, TEST_KIND, &kind, 1) || kind != TEST_REQUEST)
		return GO_ON;
	mapped(&o.source, label_node(in.h_source));
	if (find_sender(s, &o) != GO_ON)
		return GO_ON;
	out.h_proto = in.h_proto;
	__builtin_memcpy(out.h_dest, in.h_source, ETH_ALEN);
	__builtin_memcpy(out.h_source, in.h_dest, ETH_ALEN);
	kind = TEST_REPLY;
	own.last_label = s->last_label;
	if (bpf_skb_store_bytes(skb, 0, &out, sizeof(out), 0) || bpf_skb_store_bytes(skb, TEST_KIND, &kind, 1, 0) ||
	    bpf_skb_store_bytes(skb, TEST_ABILITY, &own, sizeof(own), 0))
		return -DROP_MALFORMED;
	return WENT(bpf_redirect(skb->ifindex, 0), OUT_ANSWERED);
}

/* Sends a packet to a node on the same link. kind: as for write_label_mac(). label: the network's
 * number. The destination MAC address is a label, so no neighbour entry is needed. fabric_out lets
 * packets with this mark pass. Returns a tc action, or a negative drop reason. */
static __always_inline int send_direct(struct __sk_buff *skb, const struct nexthop *nh, __u8 kind, __u32 label,
				       __u32 hash)
{
	const struct path *p = choose_path(nh, hash);
	struct ethhdr *eth = (void *)(long)skb->data;

	if (!p)
		return -DROP_PATH_DOWN;
	if ((void *)(eth + 1) > (void *)(long)skb->data_end)
		return -DROP_ENCAP_FAILED;
	trace(TRACE_ENCAP, nh->vrf, nh->encap, label, 1);
	write_label_mac(eth->h_dest, LABEL_MAC, label, &p->destination);
	write_label_mac(eth->h_source, kind, label, &p->source);
	skb->mark = own_mark();
	return bpf_redirect(p->oif, 0);
}

/* Returns 1 if a receiver can restore the MAC addresses of a bridged frame from its IP
 * addresses: both addresses belong to the workloads that the MAC addresses belong to, and `own`
 * is the nexthop of the sending vif. */
static __noinline int is_restorable(struct __sk_buff *skb, const struct ethhdr *eth, __u32 vrf, __u32 own)
{
	struct route *from, *to;
	struct ends e = {};
	__u8 family;

	if (!eth || !is_ip_type(eth->h_proto))
		return 0;
	family = inner_family(skb, &e);
	from = station_route(vrf, &e.from, family);
	if (!from || from->nexthop != own || !is_mac(eth->h_source, from->mac))
		return 0;
	to = station_route(vrf, &e.to, family);
	return to && is_mac(eth->h_dest, to->mac);
}

/* Counts a frame for which is_restorable() returned 0. */
static __noinline void count_unrestorable(struct __sk_buff *skb, const struct ethhdr *eth, __u32 vrf, __u32 own)
{
	__u32 reason = FALLBACK_SOURCE;
	struct ends e = {};
	struct route *from;
	__u8 family;

	if (!eth)
		return;
	if (eth->h_dest[0] & 1) {
		reason = FALLBACK_FLOODED;
	} else if (!is_ip_type(eth->h_proto)) {
		reason = FALLBACK_NOT_IP;
	} else {
		family = inner_family(skb, &e);
		from = station_route(vrf, &e.from, family);
		if (from && from->nexthop == own && is_mac(eth->h_source, from->mac))
			reason = FALLBACK_DESTINATION;
	}
	count_fallback(skb, vrf, reason);
}

/* Delivers a bridged frame for which is_direct() returned 1. Its MAC addresses become the
 * addresses of the workloads that have its IP addresses. The source must be a workload of the
 * node in the source label. Returns a verdict. */
static __noinline int arrive_restored(struct __sk_buff *skb)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	struct outer o = { .encap = ENCAP_DIRECT };
	struct arrival a = { .encap = ENCAP_DIRECT };
	struct route *from, *to;
	struct node_settings *s;
	struct ends e = {};
	struct nexthop *nh;
	__u32 vrf;
	__be16 protocol;
	struct vrf *n;
	int verdict;
	__u8 family;

	s = the_settings();
	if (!s || (void *)(eth + 1) > (void *)(long)skb->data_end)
		return -DROP_BAD_INNER;
	vrf = label_network(eth->h_dest);
	protocol = eth->h_proto;
	if (((eth->h_source[0] & 0x0f) != BRIDGED_MAC && !is_label_mac(eth->h_source)) ||
	    label_network(eth->h_source) != vrf)
		return -DROP_UNKNOWN_SOURCE;
	mapped(&o.source, label_node(eth->h_source));
	verdict = find_sender(s, &o);
	if (verdict != GO_ON)
		return verdict;
	n = bpf_map_lookup_elem(&vrfs, &vrf);
	if (!n || !(n->flags & VIF_F_L2))
		return -DROP_UNKNOWN_LABEL;
	family = inner_family(skb, &e);
	if (!family || protocol != protocol_of(family))
		return -DROP_BAD_INNER;
	from = station_route(vrf, &e.from, family);
	if (!from || !leads_to(from->nexthop, o.remote))
		return -DROP_FORGED_SOURCE;
	to = station_route(vrf, &e.to, family);
	if (!to)
		return -DROP_NO_ROUTE;
	nh = nexthop_of(to->nexthop);
	eth = (void *)(long)skb->data;
	if (!nh || (void *)(eth + 1) > (void *)(long)skb->data_end)
		return -DROP_NO_NEXTHOP;
	copy_mac(eth->h_dest, to->mac);
	copy_mac(eth->h_source, from->mac);
	a.vrf = vrf;
	return to_vif(skb, nh, &a, 0, 0, 0);
}

/* Reads a frame for which is_direct() returned 1 into *a. The source label must have the
 * same network, and a node that may send without a tunnel. Delivers a bridged frame. Returns
 * GO_ON for a packet that must be routed, or a verdict. */
static __always_inline int read_direct(struct __sk_buff *skb, const struct node_settings *s, const struct ethhdr *eth,
				       void *end, struct arrival *a)
{
	struct outer o = { .encap = ENCAP_DIRECT };
	const struct iphdr *ip = (void *)(eth + 1);
	__u32 vrf = label_network(eth->h_dest);
	int verdict = GO_ON;

	if (!eth->h_proto) /* a->protocol 0 means that the frame had a tunnel header */
		return -DROP_BAD_INNER;
	if (!is_label_mac(eth->h_source) || label_network(eth->h_source) != vrf)
		return arrive_restored(skb);
	mapped(&o.source, label_node(eth->h_source));
	/* If the inner source is checked, o.remote stays 0. */
	if ((void *)(ip + 1) > end || ip->version != 4 || !is_from_far_end(vrf, ip->saddr, ENCAP_DIRECT, &o.source))
		verdict = find_sender(s, &o);
	if (verdict == GO_ON)
		verdict = enter_network(&o, vrf, eth->h_proto, a);
	return verdict == -DROP_UNKNOWN_LABEL ? arrive_restored(skb) : verdict; /* the network may only bridge */
}
