/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Removes the outer headers in tc: for packets that XDP has left to it. */
#pragma once

#include "arrive.h"
#include "checksum.h"
#include "ecn.h"
#include "loopback.h"
#include "outer.h"
#include "outside.h"
#include "sender.h"

/* What a decapsulation in tc must know of the inner packet before. */
struct opening {
	struct ethhdr eth;
	__u8 ip[2];
};

static __always_inline int read_opening(struct __sk_buff *skb, const struct outer *o, int ethernet, struct opening *in)
{
	void *end = (void *)(long)skb->data_end;
	__u8 *ip = (void *)(long)skb->data + bounded(o->length, 128); /* decapsulate checks this bound */
	struct ethhdr *eth = (void *)ip;

	if (!ethernet) {
		if (ip + 2 > (__u8 *)end)
			return bpf_skb_load_bytes(skb, o->length, in->ip, sizeof(in->ip));
		in->ip[0] = ip[0];
		in->ip[1] = ip[1];
		return 0;
	}
	ip = (void *)(eth + 1);
	if (ip + 2 > (__u8 *)end)
		return bpf_skb_load_bytes(skb, o->length, in, sizeof(*in)) &&
		       bpf_skb_load_bytes(skb, o->length, &in->eth, ETH_HLEN);
	copy_mac(in->eth.h_dest, eth->h_dest);
	copy_mac(in->eth.h_source, eth->h_source);
	in->eth.h_proto = eth->h_proto;
	in->ip[0] = ip[0];
	in->ip[1] = ip[1];
	return 0;
}

/* Removes bytes behind the Ethernet header. Linux before 6.3 refuses the flags that change the family;
 * bpf_skb_change_proto() then changes it, and removes or adds the difference of the IP headers. */
static __always_inline int remove_outer(struct __sk_buff *skb, int bytes, __u64 flags)
{
	const __u64 family = ADJ_ROOM_DECAP_L3_IPV4 | ADJ_ROOM_DECAP_L3_IPV6;
	const int difference = sizeof(struct ipv6hdr) - sizeof(struct iphdr);
	int to4 = !!(flags & ADJ_ROOM_DECAP_L3_IPV4);

	if (!bpf_skb_adjust_room(skb, -bytes, BPF_ADJ_ROOM_MAC, flags))
		return 0;
	if (!(flags & family) || bpf_skb_change_proto(skb, to4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6), 0))
		return -1;
	bytes += to4 ? -difference : difference;
	return bpf_skb_adjust_room(skb, -bytes, BPF_ADJ_ROOM_MAC, flags & ~family);
}

/* The outer headers come off in tc: inner IP alone, or an Ethernet frame. */
static __always_inline int decapsulate(struct __sk_buff *skb, struct outer *o, int ethernet, __u64 flags)
{
	struct opening in __attribute__((aligned(2))) = {};
	__u32 shrink;
	__u8 version;

	if (o->length < ETH_HLEN || o->length > OUTER_MOST)
		return -DROP_DECAP_FAILED;
	shrink = o->length - ETH_HLEN;
	if (read_opening(skb, o, ethernet, &in))
		return -DROP_BAD_INNER;
	if (ethernet) {
		shrink += ETH_HLEN;
		version = in.eth.h_proto == bpf_htons(ETH_P_IP) ? 4 : in.eth.h_proto == bpf_htons(ETH_P_IPV6) ? 6 : 0;
	} else {
		version = in.ip[0] >> 4;
	}
	/* Only with these flags the kernel updates skb->protocol. Only a change of the family needs
	 * them. */
	if (version == 4)
		flags |= o->family == FAMILY_IPV4 ? 0 : ADJ_ROOM_DECAP_L3_IPV4;
	else if (version == 6)
		flags |= o->family == FAMILY_IPV6 ? 0 : ADJ_ROOM_DECAP_L3_IPV6;
	else if (!ethernet)
		return -DROP_BAD_INNER;
	else if (o->family == FAMILY_IPV6 && skb->len < o->length + ETH_HLEN + sizeof(struct ipv6hdr))
		flags |= ADJ_ROOM_DECAP_L3_IPV4; /* else the kernel requires 40 bytes of payload, and ARP has 28 */
	if (remove_outer(skb, shrink, flags))
		return -DROP_DECAP_FAILED;
	if (ethernet && write_ethernet(skb, 0, &in.eth))
		return -DROP_DECAP_FAILED;
	if (!version || ecn_unchanged(o->tos, version == 4 ? in.ip[1] : in.ip[1] >> 4))
		return 0;
	return ecn_set(skb, o->tos);
}

/* Returns 1 if the payload is an IPv4 packet to be routed, and its source belongs to the
 * outer source. */
static __always_inline int is_from_sender(struct __sk_buff *skb, const struct outer *o, const struct target *t)
{
	__u32 length = o->length;
	struct nexthop *nh;
	struct iphdr *ip;

	if (t->ethernet || length > OUTER_MOST)
		return 0;
	ip = (void *)(long)skb->data + length;
	if ((void *)(ip + 1) > (void *)(long)skb->data_end || ip->version != 4)
		return 0;
	nh = nexthop_of(t->nexthop);
	return nh && nh->type == NH_VRF && is_from_far_end(nh->vrf, ip->saddr, o->encap, &o->source);
}

/* Removes the outer headers. Returns GO_ON and fills *a if the packet must be routed. */
static __always_inline int open_outer(struct __sk_buff *skb, const struct node_settings *s, struct outer *o,
				      struct arrival *a)
{
	struct target *t = target_of(o);
	__u32 nexthop;
	int ethernet, verdict, flags = 0;

	if (!t || !is_from_sender(skb, o, t)) { /* else o->remote stays 0: nothing more to check */
		verdict = find_sender(s, o);
		if (verdict != GO_ON)
			return verdict;
	}
	trace(o->encap == ENCAP_VXLAN ? TRACE_VNI : TRACE_LABEL, 0, o->label, t ? t->nexthop : 0, !!t);
	if (!t)
		return o->encap == ENCAP_VXLAN ? -DROP_UNKNOWN_VNI : -DROP_UNKNOWN_LABEL;
	nexthop = t->nexthop;
	ethernet = t->ethernet;
	if (o->checksum && !skb->gso_size) {
		flags = verify_checksum(skb, o, ethernet);
		if (flags < 0)
			return -DROP_OUTER_CHECKSUM;
	}
	if (is_train(skb, o, ethernet))
		return CUT;
	if (ethernet && may_ask(skb, o)) {
		verdict = answer_outside(skb, o, nexthop);
		if (verdict != GO_ON)
			return verdict;
	}
	verdict = decapsulate(skb, o, ethernet, BPF_F_ADJ_ROOM_FIXED_GSO | flags);
	if (verdict < 0)
		return verdict;
	return arrive_labelled(skb, a, nexthop, ethernet, o->encap, o->remote);
}
