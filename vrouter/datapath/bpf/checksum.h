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

/*
 * A sender on the same host leaves the inner checksum to a NIC, and computes the
 * outer one as if the NIC had done its work: the sum of
 * the packet from the inner transport header on is then the complement of the inner field
 * (Documentation/networking/checksum-offloads.rst, "Local Checksum Offload").
 * pseudo: the outer pseudo-header's sum.
 */
static __always_inline int inner_is_left_to_nic(struct __sk_buff *skb, struct chunk *chunk, __u64 pseudo,
						__u32 udp, __u32 payload, int ethernet)
{
	struct transport t;
	__u16 field;
	__s64 part;
	__u32 n;

	if (!find_transport(skb, payload, ethernet, &t) || bpf_skb_load_bytes(skb, t.header + t.field, &field, 2))
		return 0;
	n = t.header - udp;
	if (n > 128 || !n)
		return 0;
	__builtin_memset(chunk->bytes, 0, 128);
	n = bounded(n, 128);
	if (bpf_skb_load_bytes(skb, udp, chunk->bytes, n))
		return 0;
	part = bpf_csum_diff(0, 0, (void *)chunk->bytes, 128, 0);
	return part >= 0 && folded(pseudo + part + (__u16)~field) == 0xffff;
}

/*
 * Whether the UDP checksum is right. A sender on the same host may have left
 * the sum over the payload to a NIC that does not exist (CHECKSUM_PARTIAL):
 * then the field of this packet or of the inner packet has the sum of the pseudo-header,
 * which counts as right.
 * Global function: the verifier checks it once.
 */
__noinline int checksum_is_right(struct __sk_buff *skb, struct outer *o, int ethernet)
{
	struct summing s = { .skb = skb };
	__u16 field;

	if (!o || !begin_sum(&s, outer_udp(o->family), outer_addresses(o->family), o->datagram) ||
	    bpf_skb_load_bytes(skb, outer_udp(o->family) + 6, &field, 2))
		return 0;
	if (field == folded(s.sum) || inner_is_left_to_nic(skb, s.chunk, s.sum, s.at, o->length, ethernet))
		return 1;
	bpf_loop(65536 / CHUNK, add_chunk, &s, 0);
	return !s.left && folded(s.sum) == 0xffff;
}
