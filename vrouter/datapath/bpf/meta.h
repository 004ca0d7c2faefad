/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What XDP leaves for tc on a fabric device: metadata in front of the frame. It
 * stays with the kernel's buffer: a packet that a workload or the node forwards
 * carries it on, to other nodes on the same host too. So it has a number that
 * only this node knows, tc believes it once, and an IP packet must have the
 * Ethernet header that XDP wrote.
 */
#pragma once

#include "nonce.h"
#include "types.h"

/* GRO merges only what agrees in it. The kernel's neighbour code may overwrite
 * its last 2 bytes, which is why the nonce comes first. */
struct meta {
	__u32 nonce[2];
	__u32 mark; /* encapsulation << 1 | ethernet */
	__u32 nexthop;
	__u32 remote; /* who sent it: struct remote */
};

/* The Ethernet header in front of an IP packet: unused addresses. Without
 * fabric_tc behind XDP the host's stack takes the frame for another host's. */
#define UNUSED_MAC { 2 }

static __always_inline void write_meta(struct meta *m, __u8 encap, int ethernet, __u32 nexthop,
				       __u32 remote)
{
	m->nonce[0] = nonce[0];
	m->nonce[1] = nonce[1];
	m->mark = encap << 1 | ethernet;
	m->nexthop = nexthop;
	m->remote = remote;
}

static __always_inline int is_unused_mac(const __u8 *mac)
{
	const __u16 *m = (const void *)mac;

	return !((m[0] ^ bpf_htons(0x0200)) | m[1] | m[2]);
}

/* Reads the metadata of the frame into *m, and ends its life. 0: it is not of
 * this frame. */
static __always_inline int take_meta(struct __sk_buff *skb, struct meta *m)
{
	struct meta *in = (void *)(long)skb->data_meta;
	struct ethhdr *eth = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if ((void *)(in + 1) > (void *)eth || in->nonce[0] != nonce[0] || in->nonce[1] != nonce[1])
		return 0;
	*m = *in;
	in->nonce[0] = 0;
	in->nonce[1] = 0;
	if (m->mark & 1)
		return 1;
	return (void *)(eth + 1) <= end && is_unused_mac(eth->h_dest) && is_unused_mac(eth->h_source);
}
