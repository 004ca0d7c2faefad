/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A frame from the fabric in tc: decapsulated by XDP, direct, translated, in a tunnel, or the host's. */
#pragma once

#include "decap.h"
#include "direct.h"
#include "meta.h"
#include "pmtu.h"
#include "translate.h"

/* Returns 1 if a frame has a VLAN tag with an id. Such a frame belongs to a VLAN
 * device: on the fabric device, the underlay is untagged. XDP cannot check this,
 * because it does not see a tag that the NIC has removed. */
static __always_inline int has_vlan(struct __sk_buff *skb)
{
	return skb->vlan_present && (skb->vlan_tci & 0xfff);
}

/* Takes a frame from the fabric. Returns GO_ON and fills *a if the packet must be routed to
 * a workload; NOT_OURS for the host's frames. */
static __always_inline int take_frame(struct __sk_buff *skb, struct arrival *a)
{
	__u32 head = OUTER_MOST;
	void *data, *end;
	struct node_settings *s;
	struct outer o = {};
	struct ethhdr *eth;
	struct meta m;
	int verdict;

	verdict = take_meta(skb, &m);
	if (verdict == GO_ON)
		return has_vlan(skb) ? -DROP_VLAN : arrive_labelled(skb, a, m.nexthop, m.ethernet, m.encap, m.remote);
	if (verdict != NOT_OURS)
		return verdict;
	s = the_settings();
	if (!s || has_vlan(skb))
		return NOT_OURS;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	eth = data;
	if ((void *)(eth + 1) <= end && is_to_label(s, eth)) {
		if (label_network(eth->h_dest))
			return read_direct(skb, s, eth, end, a);
		verdict = answer_test(skb);
		if (verdict != GO_ON)
			return verdict;
	}
	if (data + head > end) {
		if (head > skb->len)
			head = skb->len;
		bpf_skb_pull_data(skb, head);
	}
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (is_to_locator(s, data, end) && !is_icmp6_error(data, end)) {
		if (is_translated(data))
			return read_translated(skb, a);
		verdict = answer_locator(skb);
		return verdict == GO_ON ? NOT_OURS : verdict;
	}
	verdict = read_outer(&o, s, data, end, skb->gso_size != 0);
	if (verdict == NOT_OURS)
		learn(skb);
	if (verdict != GO_ON)
		return verdict;
	/* Without its padding, the frame has nothing behind the outer packet. */
	if (o.frame && o.frame != skb->len && (o.frame > skb->len || bpf_skb_change_tail(skb, o.frame, 0)))
		return -DROP_OUTER_LENGTH;
	return open_outer(skb, s, &o, a);
}
