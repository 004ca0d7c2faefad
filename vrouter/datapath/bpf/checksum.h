/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The outer UDP checksum, where a sender fills it in. */
#pragma once

#include "outer.h"
#include "udpsum.h"

#define UDP_CHECKSUM 6 /* offset in the UDP header */

/* Outer headers, and those of the inner packet that sum_by_headers() reads. */
#define HEADERS_MOST (OUTER_MOST + ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

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

/* Returns 1 if the outer UDP checksum and the inner packet's are both right or both wrong: sum_by_headers().
 * ethernet: the payload is a frame. */
static __always_inline int are_checksums_equivalent(void *data, void *end, const struct outer *o, int ethernet)
{
	return folded(sum_by_headers(data, end, outer_udp(o->family), outer_addresses(o->family),
				     o->length + (ethernet ? ETH_HLEN : 0), o->datagram)) == 0xffff;
}

/*
 * Verifies the outer UDP checksum of a packet before the outer headers are removed. Reads the payload only if
 * the NIC has not verified it and the inner checksum cannot replace it. A checksum is right, too, if a sender
 * on the same host has left it to a NIC that does not exist. Returns flags for bpf_skb_adjust_room(), or -1 if the
 * checksum is wrong. Without a flag, that helper resets a verified checksum, so that the inner one is verified. Global
 * function: the verifier checks it once.
 */
__noinline int verify_checksum(struct __sk_buff *skb, struct outer *o, int ethernet)
{
	struct summing s = { .skb = skb };
	int level = bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY); /* of the checksums that the NIC has verified, less 1 */

	if (!o)
		return -1;
	bpf_skb_pull_data(skb, skb->len < HEADERS_MOST ? skb->len : HEADERS_MOST);
	if (are_checksums_equivalent((void *)(long)skb->data, (void *)(long)skb->data_end, o, ethernet)) {
		if (level > 0)
			bpf_csum_level(skb, BPF_CSUM_LEVEL_DEC);
		return BPF_F_ADJ_ROOM_NO_CSUM_RESET;
	}
	if (level >= 0 || is_left_to_nic(skb, outer_udp(o->family)))
		return 0;
	if (!begin_sum(&s, outer_udp(o->family), outer_addresses(o->family), o->datagram))
		return -1;
	bpf_loop(65536 / CHUNK, add_chunk, &s, 0);
	return !s.left && folded(s.sum) == 0xffff ? 0 : -1;
}
