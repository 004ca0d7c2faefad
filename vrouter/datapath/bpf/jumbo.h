/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Superpackets above 64 KiB (BIG TCP). Their length fields are too short, so the kernel
 * writes 0 there, and uses the length of the frame. Segments get their lengths when the kernel
 * or the NIC cuts the superpacket.
 *
 * Up to Linux 6.18, an IPv6 superpacket above 64 KiB also has a hop-by-hop header with the jumbo
 * payload option (RFC 2675) in front of its TCP header. When the kernel cuts the superpacket, it
 * removes this header, but it cannot do that inside a tunnel. So vrouter removes it there.
 */
#pragma once

#include "headers.h"
#include "verdict.h"

#define JUMBO_LENGTH 8
#define JUMBO_OPTION 0xc2 /* RFC 2675 */

/* Returns n as the length field of a packet. */
static __always_inline __be16 length_field(__u32 n)
{
	return n > 0xffff ? 0 : bpf_htons(n);
}

/* Returns 1 if the IPv6 packet is a TCP superpacket with a jumbo header. */
static __always_inline int is_jumbo(struct __sk_buff *skb, const struct ipv6hdr *ip, void *end)
{
	const __u8 *hop = (const void *)(ip + 1);

	return ip->nexthdr == IPPROTO_HOPOPTS && !ip->payload_len && skb->gso_size && (void *)(hop + 4) <= end &&
	       hop[0] == IPPROTO_TCP && !hop[1] && hop[2] == JUMBO_OPTION && hop[3] == 4;
}

/* Removes the jumbo header of a packet for which is_jumbo() returned 1. Returns 0, or a
 * negative drop reason. The verifier checks this function separately. */
__noinline int remove_jumbo(struct __sk_buff *skb)
{
	struct ipv6hdr *ip;

	if (bpf_skb_adjust_room(skb, -JUMBO_LENGTH, BPF_ADJ_ROOM_NET, BPF_F_ADJ_ROOM_FIXED_GSO))
		return -DROP_ENCAP_FAILED;
	ip = (void *)(long)skb->data + L3_OFFSET;
	if ((void *)(ip + 1) > (void *)(long)skb->data_end)
		return -DROP_ENCAP_FAILED;
	ip->nexthdr = IPPROTO_TCP;
	return 0;
}
