/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counters. Every frame handed to a program ends in exactly one outcome. */
#pragma once

#include "trace.h"
#include "verdict.h"

static __always_inline void count_outcome(__u32 outcome)
{
	struct outcome_counters *c;
	__u32 zero = 0;

	if (tracing || outcome >= OUTCOMES)
		return;
	c = bpf_map_lookup_elem(&outcomes, &zero);
	if (c)
		c->count[outcome]++;
}

/* The end of a frame that a tc program was handed. */
static __always_inline void count_end(__u32 outcome)
{
	struct outcome_counters *c;
	__u32 zero = 0;

	if (tracing)
		return;
	c = bpf_map_lookup_elem(&outcomes, &zero);
	if (!c)
		return;
	c->count[OUT_RECEIVED]++;
	if (outcome < OUTCOMES)
		c->count[outcome]++;
}

static __always_inline void count_vif(__u32 id, int to_workload, __u32 packets, __u32 bytes)
{
	struct vif_counters *s;

	if (tracing)
		return;
	s = bpf_map_lookup_elem(&vif_stats, &id);
	if (!s)
		return;
	if (to_workload) {
		s->tx_packets += packets;
		s->tx_bytes += bytes;
	} else {
		s->rx_packets += packets;
		s->rx_bytes += bytes;
	}
}

/* encap: enum encapsulation; ENCAP_NONE between two vifs of this node. */
static __always_inline void count_vrf(__u32 vrf, __u32 encap, int received, __u32 packets, __u32 bytes)
{
	struct vrf_counters *s;

	if (tracing || encap >= ENCAPS)
		return;
	s = bpf_map_lookup_elem(&vrf_stats, &vrf);
	if (!s)
		return;
	if (received) {
		s->rx_packets[encap] += packets;
		s->rx_bytes[encap] += bytes;
	} else {
		s->tx_packets[encap] += packets;
		s->tx_bytes[encap] += bytes;
	}
}

/* The end of a forwarded frame: counts it in its VRF. action: a tc action, or a negative drop
 * reason. Other arguments are count_vrf()'s. Returns the verdict. */
static __always_inline int forwarded(int action, __u32 vrf, __u32 encap, int received, __u32 packets, __u32 bytes)
{
	if (action < 0)
		return action;
	count_vrf(vrf, encap, received, packets, bytes);
	return WENT(action, OUT_FORWARDED);
}

/* Segments that an skb stands for on the wire. */
static __always_inline __u32 segments(struct __sk_buff *skb)
{
	return skb->gso_segs ? skb->gso_segs : 1;
}

/* Adds to a counter of a per-CPU hash map. The counter may not exist yet. */
static __always_inline void add_to(void *map, const void *key, __u64 packets)
{
	__u64 *n = bpf_map_lookup_elem(map, key);

	if (n)
		*n += packets;
	else if (bpf_map_update_elem(map, key, &packets, BPF_NOEXIST) && (n = bpf_map_lookup_elem(map, key)))
		*n += packets;
}

static __noinline void count_drop(__u32 vif, __u32 reason)
{
	struct drop_key key = { .vif = vif, .reason = reason };

	add_to(&drops, &key, 1);
}
