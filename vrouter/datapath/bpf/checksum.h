/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The outer UDP checksum, where a sender fills it in. */
#pragma once

#include "fabric.h"
#include "sum.h"

#define CHUNK 512

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
		asm volatile("" : "+r"(n));
		n &= CHUNK - 1;
		if (!n || bpf_skb_load_bytes(s->skb, s->at, s->chunk->bytes, n))
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

/*
 * Whether the UDP checksum is right. A sender on the same host may have left
 * the sum over the payload to a NIC that does not exist (CHECKSUM_PARTIAL):
 * then the field holds the pseudo-header's sum, which is taken as right.
 * A function of its own to the verifier.
 */
__noinline int checksum_is_right(struct __sk_buff *skb, __u32 udp, __u32 length, __u8 family)
{
	struct summing s = { .skb = skb, .at = udp, .left = length };
	__u32 zero = 0;
	__u8 addresses[32];
	__u16 field;
	__s64 part;

	s.chunk = bpf_map_lookup_elem(&scratch, &zero);
	if (!s.chunk || length < sizeof(struct udphdr))
		return 0;
	if (family == FAMILY_IPV4) {
		if (bpf_skb_load_bytes(skb, L3_OFFSET + 12, addresses, 8))
			return 0;
		part = bpf_csum_diff(0, 0, (void *)addresses, 8, 0);
	} else {
		if (bpf_skb_load_bytes(skb, L3_OFFSET + 8, addresses, 32))
			return 0;
		part = bpf_csum_diff(0, 0, (void *)addresses, 32, 0);
	}
	if (part < 0 || bpf_skb_load_bytes(skb, udp + 6, &field, 2))
		return 0;
	s.sum = part + bpf_htons(length) + bpf_htons(IPPROTO_UDP);
	if (field == folded(s.sum))
		return 1;
	bpf_loop(65536 / CHUNK, add_chunk, &s, 0);
	return !s.left && folded(s.sum) == 0xffff;
}
