/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The checksum of an outer UDP header, over a frame of any length. */
#pragma once

#include "sum.h"
#include "maps.h"
#include "verdict.h"

#define CHUNK 512

static __always_inline __u32 outer_ip_length(__u8 family)
{
	return family == FAMILY_IPV4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
}

/* Returns the offset of an outer UDP header. */
static __always_inline __u32 outer_udp(__u8 family)
{
	return ETH_HLEN + outer_ip_length(family);
}

/* Returns the bytes of both outer addresses, which are in front of the UDP header. */
static __always_inline __u32 outer_addresses(__u8 family)
{
	return family == FAMILY_IPV4 ? 2 * sizeof(__be32) : 2 * sizeof(struct in6_addr);
}

struct chunk {
	__u8 bytes[CHUNK];
};

MAP(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct chunk, 1);

struct summing {
	struct __sk_buff *skb;
	struct chunk *chunk;
	__u64 sum;
	__u32 at;
	__u32 left;
};

static long add_chunk(__u32 index, struct summing *s)
{
	__u32 n = s->left;
	__s64 part;

	if (n >= CHUNK) {
		if (bpf_skb_load_bytes(s->skb, s->at, s->chunk->bytes, CHUNK))
			return 1;
		part = bpf_csum_diff(0, 0, (void *)s->chunk->bytes, CHUNK, 0);
		n = CHUNK;
	} else {
		__builtin_memset(s->chunk->bytes, 0, CHUNK);
		if (!n)
			return 1;
		n = bounded(n, CHUNK);
		if (bpf_skb_load_bytes(s->skb, s->at, s->chunk->bytes, n))
			return 1;
		part = bpf_csum_diff(0, 0, (void *)s->chunk->bytes, CHUNK, 0);
	}
	if (part < 0)
		return 1;
	s->sum += part;
	s->at += n;
	s->left -= n;
	return s->left == 0;
}

/* Starts the sum over a UDP datagram of `length` bytes and its pseudo-header. udp: offset of the UDP
 * header. n: bytes of both IP addresses, in front of it. Returns 0 if that fails. */
static __always_inline int begin_sum(struct summing *s, __u32 udp, __u32 n, __u32 length)
{
	__u32 zero = 0;
	__s64 part;

	s->chunk = bpf_map_lookup_elem(&scratch, &zero);
	if (!s->chunk || length < sizeof(struct udphdr))
		return 0;
	__builtin_memset(s->chunk->bytes, 0, 32);
	if (bpf_skb_load_bytes(s->skb, udp - n, s->chunk->bytes, n == 8 ? 8 : 32))
		return 0;
	part = bpf_csum_diff(0, 0, (void *)s->chunk->bytes, 32, 0);
	s->sum = part + bpf_htons(length) + bpf_htons(IPPROTO_UDP);
	s->at = udp;
	s->left = length;
	return part >= 0;
}

static __always_inline __u64 words(const void *p, int n)
{
	const __u16 *w = p;
	__u64 sum = 0;
	int i;

	for (i = 0; i < n / 2; i++)
		sum += w[i];
	return sum;
}

/*
 * Returns the sum of a UDP datagram and its pseudo-header without reading the payload. It is valid if the
 * checksum of the inner packet is right: the sum of its transport header and payload is then the complement of
 * its pseudo-header's sum ("Local Checksum Offload", Documentation/networking/checksum-offloads.rst).
 *
 * So a sender writes the outer checksum although a NIC may still have to write the inner one. If a receiver gets
 * the sum of a right checksum, then the outer and the inner checksum are both right or both wrong: it is
 * enough that the NIC has verified one, or that the receiver of the inner packet verifies that.
 *
 * udp, ip: offsets of the outer UDP and the inner IP header, with shim and Ethernet header between. n: bytes
 * of both outer addresses. length: of the datagram. Returns 0 if the inner packet is not TCP or UDP with a
 * checksum, or does not fill the datagram.
 */
static __always_inline __u64 sum_by_headers(void *data, void *end, __u32 udp, __u32 n, __u32 ip, __u32 length)
{
	__u8 *a = data + bounded(udp - n, 32), *h = data + bounded(udp, 64), *in = data + bounded(ip, 128), protocol;
	struct ipv6hdr *v6 = (void *)in;
	struct iphdr *v4 = (void *)in;
	__u32 size = sizeof(*v4), packet;
	__u64 sum;

	ip -= udp;
	if (a + 32 > (__u8 *)end || h + 30 > (__u8 *)end || in + sizeof(*v4) + sizeof(struct udphdr) > (__u8 *)end)
		return 0;
	sum = words(a, 8) + words(h, 12); /* UDP header and label, or the first half of VXLAN's */
	if (n > 8)
		sum += words(a + 8, 24);
	if (ip > 12)
		sum += words(h + 12, 14);
	if (ip > 26)
		sum += words(h + 26, 4);
	if (v4->version == 4) {
		packet = bpf_ntohs(v4->tot_len);
		protocol = v4->protocol;
		if (v4->ihl != 5 || v4->frag_off & bpf_htons(IP_MF | IP_OFFSET))
			return 0;
		sum += words(v4, 12); /* the addresses are in the inner pseudo-header too */
	} else {
		size = sizeof(*v6);
		if (v6->version != 6 || in + sizeof(*v6) + sizeof(struct udphdr) > (__u8 *)end)
			return 0;
		packet = sizeof(*v6) + bpf_ntohs(v6->payload_len);
		protocol = v6->nexthdr;
		sum += words(v6, 8);
	}
	if (ip + packet != length || packet < size + sizeof(struct udphdr))
		return 0;
	if (protocol != IPPROTO_TCP && (protocol != IPPROTO_UDP || !((struct udphdr *)(in + size))->check))
		return 0;
	sum += bpf_htons(length) + bpf_htons(IPPROTO_UDP);
	return sum + (__u16)~folded(bpf_htons(packet - size) + bpf_htons(protocol));
}

/* Returns 1 if the kernel or a NIC must still write a checksum of the packet (CHECKSUM_PARTIAL). Then
 * bpf_l4_csum_replace() changes nothing. udp: offset of a UDP header. */
static __noinline int is_left_to_nic(struct __sk_buff *skb, __u32 udp)
{
	__u16 before = 0, after = 0;

	udp += 6;
	if (bpf_skb_load_bytes(skb, udp, &before, 2) || bpf_l4_csum_replace(skb, udp, 0, 1, 2) ||
	    bpf_skb_load_bytes(skb, udp, &after, 2))
		return 0;
	return before == after || bpf_skb_store_bytes(skb, udp, &before, 2, 0);
}

/* Writes the checksum of a UDP datagram that ends with the frame. ip: offset of the inner IP header,
 * if there is one; 0: none. Other arguments are begin_sum()'s. The checksum is 0 if a NIC must still write
 * one into a deeper header, such as that of a tunnel of the workload: the result would change. Returns 0 if
 * that succeeds. Global function: the verifier checks it once. */
__noinline int write_udp_checksum(struct __sk_buff *skb, __u32 udp, __u32 n, __u32 ip)
{
	struct summing s = { .skb = skb };
	__u16 field = 0;

	if (bpf_skb_store_bytes(skb, udp + 6, &field, 2, 0))
		return -1;
	if (ip)
		s.sum = sum_by_headers((void *)(long)skb->data, (void *)(long)skb->data_end, udp, n, ip, skb->len - udp);
	if (!s.sum) {
		if (is_left_to_nic(skb, udp))
			return 0;
		if (!begin_sum(&s, udp, n, skb->len - udp))
			return -1;
		bpf_loop(65536 / CHUNK, add_chunk, &s, 0);
		if (s.left)
			return -1;
	}
	field = ~folded(s.sum);
	if (!field)
		field = 0xffff; /* 0 means that there is no checksum */
	return bpf_skb_store_bytes(skb, udp + 6, &field, 2, 0);
}
