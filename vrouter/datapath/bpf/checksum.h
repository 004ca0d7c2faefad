/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The outer UDP checksum, where a sender fills it in. */
#pragma once

#include "outer.h"
#include "udpsum.h"

#define UDP_CHECKSUM 6 /* offset in the UDP header */

/* Where an inner packet's transport header is, and its checksum in it. */
struct transport {
	__u32 header;
	__u32 field;
};

static __always_inline int find_transport(struct __sk_buff *skb, __u32 at, int ethernet, struct transport *t)
{
	struct ipv6hdr ip6;
	struct iphdr *ip = (void *)&ip6;
	__u8 protocol;

	if (ethernet)
		at += ETH_HLEN;
	if (bpf_skb_load_bytes(skb, at, ip, sizeof(*ip)))
		return 0;
	if (ip->version == 4) {
		protocol = ip->protocol;
		t->header = at + ip->ihl * 4;
	} else {
		protocol = ip6.nexthdr;
		t->header = at + sizeof(ip6);
	}
	switch (protocol) {
	case IPPROTO_TCP:
		t->field = 16;
		return 1;
	case IPPROTO_UDP:
		t->field = UDP_CHECKSUM;
		return 1;
	case IPPROTO_ICMPV6:
		t->field = 2;
		return 1;
	}
	return 0;
}

/* Returns 1 if the UDP checksum is right, or if a sender on the same host has left a checksum to a NIC that
 * does not exist. Global function: the verifier checks it once. */
__noinline int checksum_is_right(struct __sk_buff *skb, struct outer *o)
{
	struct summing s = { .skb = skb };

	if (!o)
		return 0;
	if (is_left_to_nic(skb, outer_udp(o->family)))
		return 1;
	if (!begin_sum(&s, outer_udp(o->family), outer_addresses(o->family), o->datagram))
		return 0;
	bpf_loop(65536 / CHUNK, add_chunk, &s, 0);
	return !s.left && folded(s.sum) == 0xffff;
}
