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

/* Counts packets of a VRF. encap: enum encapsulation; ENCAP_NONE between two vifs of this node. The verifier checks
 * this function separately. */
__noinline int count_vrf(__u32 vrf, __u32 encap, int received, __u32 packets, __u32 bytes)
{
	struct vrf_counters *s;

	if (tracing || encap >= ENCAPS)
		return 0;
	s = bpf_map_lookup_elem(&vrf_stats, &vrf);
	if (!s)
		return 0;
	if (received) {
		s->rx_packets[encap] += packets;
		s->rx_bytes[encap] += bytes;
	} else {
		s->tx_packets[encap] += packets;
		s->tx_bytes[encap] += bytes;
	}
	return 0;
}

/* The end of a frame that a workload of a VRF sent: counts it. action: a tc action, or a negative drop reason. Other
 * arguments are count_vrf()'s. Returns the verdict. */
static __always_inline int forwarded(int action, __u32 vrf, __u32 encap, __u32 packets, __u32 bytes)
{
	if (action < 0)
		return action;
	count_vrf(vrf, encap, 0, packets, bytes);
	return WENT(action, OUT_FORWARDED);
}

/* Returns two numbers about a superpacket. The lower 32 bits have its bytes on the wire, with the headers of each
 * segment; the upper 32 bits have the number of its segments. gso_segs is 0 in a superpacket of a virtual machine, and after
 * bpf_skb_adjust_room() (bpf_skb_net_shrink() in net/core/filter.c). An IPv6 superpacket above 64 KiB has an extension
 * header that its segments lack. The verifier checks this function separately. */
__noinline __u64 on_the_wire(struct __sk_buff *skb)
{
	__u32 headers = ETH_HLEN, segments = skb->gso_segs, size = skb->gso_size;
	__u8 protocol = 0, b = 0; /* b: version and length of the IP header, then length of the TCP header */
	__u32 extra = 0;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &b, 1))
		return 1ull << 32 | skb->len;
	/* Reads single bytes and not the header, because all nested calls together have 512 bytes of stack. */
	if (b >> 4 == 6) {
		bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, nexthdr), &protocol, 1);
		headers += sizeof(struct ipv6hdr);
		if (protocol == IPPROTO_HOPOPTS) { /* see jumbo.h */
			protocol = IPPROTO_TCP;
			extra = JUMBO_LENGTH;
		}
	} else {
		bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct iphdr, protocol), &protocol, 1);
		headers += (b & 0xf) * 4;
	}
	b = 0;
	if (protocol != IPPROTO_TCP)
		headers += sizeof(struct udphdr);
	else if (!bpf_skb_load_bytes(skb, headers + extra + TCP_LENGTH_AT, &b, 1))
		headers += (b >> 4) * 4;
	if (!segments && size)
		segments = (skb->len - extra - headers + size - 1) / size;
	return (__u64)segments << 32 | (skb->len - extra + (segments - 1) * headers);
}

/* Returns a packet's bytes on the wire in the lower 32 bits, and the number of packets on the wire in the upper 32 bits. */
static __always_inline __u64 wire_of(struct __sk_buff *skb)
{
	__u64 wire = 1ull << 32 | skb->len;

	if (skb->gso_size)
		wire = on_the_wire(skb);
	asm volatile("" : "+r"(wire));
	return wire;
}

/* Returns the number of packets on the wire. */
static __always_inline __u32 segments(struct __sk_buff *skb)
{
	return wire_of(skb) >> 32;
}

/* Counts a frame from the fabric in its VRF. It is not inlined, so that fabric_tc needs less stack. The verifier checks
 * this function separately. */
__noinline int count_arrived(struct __sk_buff *skb, __u32 vrf, __u32 encap)
{
	return count_vrf(vrf, encap, 1, segments(skb), skb->len);
}

/* Counts a packet at a vif. The verifier checks this function separately. */
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
