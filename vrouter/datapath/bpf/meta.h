/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Metadata that XDP writes in front of a frame, for tc on the same fabric device.
 * The kernel keeps the metadata with the packet's buffer: if a workload or the node
 * forwards the packet, the metadata reaches other devices, also those of other
 * nodes on the same host. Three checks prevent that it is used there. The metadata
 * has a random number that only this node knows. tc uses it once and clears the
 * number. An IP packet must have the Ethernet header that XDP wrote.
 */
#pragma once

#include "nonce.h"
#include "verdict.h"

/* GRO merges only packets with equal metadata. The kernel's neighbour code may
 * overwrite the last 2 bytes, so the nonce comes first. */
struct meta {
	__u32 nonce[2];
	__u16 magic;
	__u8 encap;
	__u8 ethernet; /* the payload is an Ethernet frame */
	__u32 nexthop;
	__u32 remote; /* id of the sending node or gateway (struct remote) */
};

/* Source and destination address that XDP writes in front of an IP packet. No device
 * has this address. If fabric_tc is missing, the host's stack therefore drops the
 * frame. */
#define UNUSED_MAC { 2 }

#define META_MAGIC 0x7672 /* in all metadata of vrouter's programs */

static __always_inline void write_meta(struct meta *m, __u8 encap, int ethernet, __u32 nexthop,
				       __u32 remote)
{
	m->nonce[0] = nonce[0];
	m->nonce[1] = nonce[1];
	m->magic = META_MAGIC;
	m->encap = encap;
	m->ethernet = ethernet;
	m->nexthop = nexthop;
	m->remote = remote;
}

static __always_inline int is_unused_mac(const __u8 *mac)
{
	const __u16 *m = (const void *)mac;

	return !((m[0] ^ bpf_htons(0x0200)) | m[1] | m[2]);
}

/* Copies the frame's metadata into *m and clears its nonce, so that it is used only
 * once. Returns GO_ON; NOT_OURS if the metadata is missing or belongs to another frame; or a
 * negative drop reason if another agent's XDP program wrote it, and that agent's fabric_tc is
 * missing. */
static __always_inline int take_meta(struct __sk_buff *skb, struct meta *m)
{
	struct meta *in = (void *)(long)skb->data_meta;
	struct ethhdr *eth = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if ((void *)(in + 1) > (void *)eth || in->magic != META_MAGIC || !in->nonce[0])
		return NOT_OURS;
	if (in->nonce[0] != nonce[0] || in->nonce[1] != nonce[1])
		return -DROP_OTHER_AGENT;
	*m = *in;
	in->nonce[0] = 0;
	in->nonce[1] = 0;
	if (m->ethernet)
		return GO_ON;
	return (void *)(eth + 1) <= end && is_unused_mac(eth->h_dest) && is_unused_mac(eth->h_source) ? GO_ON : NOT_OURS;
}
