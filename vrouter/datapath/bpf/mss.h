/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Lowers TCP's maximum segment size to the MTU of the path. */
#pragma once

#include "verdict.h"

#define TCP_SYN 0x02
#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_MSS 2
#define MAX_OPTIONS 40

struct mss_search {
	struct __sk_buff *skb;
	__u32 at;   /* of the next option */
	__u32 end;
	__u32 tcp;
	__u32 most;
};

static __always_inline void lower_mss(struct mss_search *s)
{
	__be16 old, new = bpf_htons(s->most);

	if (bpf_skb_load_bytes(s->skb, s->at + 2, &old, 2) || bpf_ntohs(old) <= s->most)
		return;
	/* A value at an odd offset is summed with its bytes swapped. */
	if ((s->at - s->tcp) & 1)
		bpf_l4_csum_replace(s->skb, s->tcp + offsetof(struct tcphdr, check), __builtin_bswap16(old), __builtin_bswap16(new), 2);
	else
		bpf_l4_csum_replace(s->skb, s->tcp + offsetof(struct tcphdr, check), old, new, 2);
	bpf_skb_store_bytes(s->skb, s->at + 2, &new, 2, 0);
}

static long mss_step(__u32 i, struct mss_search *s)
{
	__u8 option[2];

	if (s->at + 2 > s->end || bpf_skb_load_bytes(s->skb, s->at, option, 2) ||
	    option[0] == TCP_OPTION_END)
		return 1;
	if (option[0] == TCP_OPTION_NOP) {
		s->at++;
		return 0;
	}
	if (option[0] == TCP_OPTION_MSS && option[1] == 4) {
		if (s->at + 4 <= s->end)
			lower_mss(s);
		return 1;
	}
	s->at += option[1] < 2 ? 2 : option[1];
	return 0;
}

/* l4: offset of the TCP header. Only a SYN has the option, which is never increased.
 * Global function: the verifier checks it once. */
__noinline int clamp_mss(struct __sk_buff *skb, __u32 l4, __u32 most)
{
	struct mss_search s = { .skb = skb, .tcp = l4, .at = l4 + sizeof(struct tcphdr), .most = most };
	__u8 head[2]; /* data offset, flags */

	if (bpf_skb_load_bytes(skb, l4 + TCP_DATA_OFFSET, head, 2) || !(head[1] & TCP_SYN))
		return 0;
	s.end = l4 + (head[0] >> 4) * 4;
	bpf_loop(MAX_OPTIONS, mss_step, &s, 0);
	return 0;
}
