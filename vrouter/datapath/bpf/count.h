/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counters. Every frame handed to a program ends in exactly one outcome. */
#pragma once

#include "flowkey.h"
#include "jumbo.h"
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

/* Returns a superpacket's bytes on the wire, with the headers of each segment, and in the upper 32 bits its
 * segments. A superpacket of a virtual machine has no number of segments, nor has one after bpf_skb_adjust_room()
 * (bpf_skb_net_shrink() in net/core/filter.c). The segments of an IPv6 superpacket above 64 KiB lack its extension
 * header. The verifier checks this function separately. */
__noinline __u64 on_the_wire(struct __sk_buff *skb)
{
	__u32 headers = ETH_HLEN, segments = skb->gso_segs, size = skb->gso_size;
	struct ipv6hdr ip; /* or the first bytes of an IPv4 packet */
	__u8 protocol, b = 0; /* b: length of the TCP header */
	__u32 extra = 0;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return 1ull << 32 | skb->len;
	if (ip.version == 6) {
		headers += sizeof(ip);
		protocol = ip.nexthdr;
		if (protocol == IPPROTO_HOPOPTS) { /* see jumbo.h */
			protocol = IPPROTO_TCP;
			extra = JUMBO_LENGTH;
		}
	} else {
		headers += (*(__u8 *)&ip & 0xf) * 4;
		protocol = ((struct iphdr *)&ip)->protocol;
	}
	if (protocol != IPPROTO_TCP)
		headers += sizeof(struct udphdr);
	else if (!bpf_skb_load_bytes(skb, headers + extra + TCP_LENGTH_AT, &b, 1))
		headers += (b >> 4) * 4;
	if (!segments && size)
		segments = (skb->len - extra - headers + size - 1) / size;
	return (__u64)segments << 32 | (skb->len - extra + (segments - 1) * headers);
}

/* Returns a packet's bytes on the wire, and in the upper 32 bits the number of packets. */
static __always_inline __u64 wire_of(struct __sk_buff *skb)
{
	__u64 wire = 1ull << 32 | skb->len;

	if (skb->gso_size)
		wire = on_the_wire(skb);
	asm volatile("" : "+r"(wire));
	return wire;
}

/* Packets on the wire that an skb stands for. */
static __always_inline __u32 segments(struct __sk_buff *skb)
{
	return wire_of(skb) >> 32;
}

/* Counts the packet in hand at a vif. The verifier checks this function separately. */
__noinline int count_vif(struct __sk_buff *skb, __u32 id, int to_workload)
{
	__u32 packets = segments(skb), bytes = skb->len;
	struct vif_counters *s;

	if (tracing)
		return 0;
	s = bpf_map_lookup_elem(&vif_stats, &id);
	if (!s)
		return 0;
	if (to_workload) {
		s->tx_packets += packets;
		s->tx_bytes += bytes;
	} else {
		s->rx_packets += packets;
		s->rx_bytes += bytes;
	}
	return 0;
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
