/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Removes the outer headers before GRO, so that GRO merges the inner packets. XDP does this only
 * for packets that need no other change. All others, such as fragments, packets whose outer
 * checksum must be verified, packets with a congestion mark, and unknown labels, pass to tc. There
 * the same functions read the headers, and each dropped packet has a reason.
 */
#pragma once

#include "arrive.h"
#include "checksum.h"
#include "count.h"
#include "direct.h"
#include "ecn.h"
#include "meta.h"
#include "outer.h"

/* Returns 1 if XDP can remove the outer headers in front of a payload. Stores the payload's
 * EtherType. */
static __always_inline int is_plain(const struct outer *o, void *payload, void *end, int ethernet, __be16 *protocol)
{
	struct ethhdr *eth = payload;
	__u8 *ip = payload;

	if (ethernet) {
		if ((void *)(eth + 1) > end)
			return 0;
		*protocol = eth->h_proto;
		if (eth->h_dest[0] & 1 || *protocol == bpf_htons(ETH_P_ARP))
			return 0; /* tc may answer it */
		ip = (void *)(eth + 1);
	}
	if ((void *)(ip + 2) > end)
		return 0;
	if (!ethernet)
		*protocol = *ip >> 4 == 4 ? bpf_htons(ETH_P_IP) : *ip >> 4 == 6 ? bpf_htons(ETH_P_IPV6) : 0;
	if (*protocol == bpf_htons(ETH_P_IP))
		return ecn_unchanged(o->tos, ip[1]);
	if (*protocol == bpf_htons(ETH_P_IPV6))
		return ecn_unchanged(o->tos, ip[1] >> 4);
	return ethernet;
}

/*
 * Returns 1 if XDP can remove an outer UDP header with a checksum. The state of the packet's checksum then
 * becomes that of the inner checksum. If the NIC has verified the outer one, the stack does not verify the
 * inner one, which is right too. Else the stack verifies the inner one, as behind GRE. Global
 * function: the verifier checks it once.
 */
__noinline int needs_one_checksum(struct xdp_md *ctx, struct outer *o, int ethernet)
{
	return o && are_checksums_equivalent((void *)(long)ctx->data, (void *)(long)ctx->data_end, o, ethernet);
}

/* Removes the outer headers, and writes metadata for tc. Returns the program's value. */
static __always_inline int strip(struct xdp_md *ctx, const struct outer *o, int ethernet, __u32 nexthop, __be16 protocol)
{
	int n = ethernet ? (int)o->length : (int)o->length - ETH_HLEN;
	struct ethhdr *eth;
	struct meta *m;

	if (bpf_xdp_adjust_head(ctx, n))
		return XDP_PASS;
	/* Some drivers have no metadata. The outer headers are still there: fabric_tc
	 * gets the frame as it came. If the metadata came first, moving the head would copy it. */
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*m)))
		return bpf_xdp_adjust_head(ctx, -n) ? XDP_DROP : XDP_PASS;
	m = (void *)(long)ctx->data_meta;
	eth = (void *)(long)ctx->data;
	if ((void *)(m + 1) > (void *)eth || (void *)(eth + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	write_meta(m, o->encap, ethernet, nexthop, o->remote);
	if (!ethernet) {
		struct ethhdr unused = { .h_dest = UNUSED_MAC, .h_source = UNUSED_MAC, .h_proto = protocol };

		*eth = unused;
	}
	count_outcome(OUT_DECAPPED);
	return XDP_PASS;
}

static __always_inline int decapsulate_xdp(struct xdp_md *ctx, const struct node_settings *s)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct outer o = {};
	struct target *t;
	__be16 protocol;
	__u32 nexthop;
	int ethernet;

	/* The IP header of a direct frame is written by a workload. Its destination can be
	 * equal to an underlay address of this node. */
	if ((void *)(eth + 1) > end || is_direct(s, eth))
		return XDP_PASS;
	if (read_outer(&o, s, data, end, 0) != GO_ON || find_sender(s, &o) != GO_ON)
		return XDP_PASS;
	/* tc removes padding. Only a frame with fragments is longer than its linear part. */
	if (o.frame != end - data && o.frame != bpf_xdp_get_buff_len(ctx))
		return XDP_PASS;
	t = target_of(&o);
	if (!t || o.length > OUTER_MOST)
		return XDP_PASS;
	nexthop = t->nexthop;
	ethernet = t->ethernet;
	if (!is_plain(&o, data + o.length, end, ethernet, &protocol))
		return XDP_PASS;
	if (o.checksum && !needs_one_checksum(ctx, &o, ethernet))
		return XDP_PASS;
	return strip(ctx, &o, ethernet, nexthop, protocol);
}
