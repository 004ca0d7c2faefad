/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Congestion marks across a tunnel (RFC 6040): copied on the way in, joined on
 * the way out. */
#pragma once

#include "verdict.h"

/* The table of RFC 6040, section 4.2: the inner mark that results, or minus a
 * drop reason. */
static __always_inline int ecn_joined(__u8 outer, __u8 inner)
{
	outer &= TOS_ECN;
	inner &= TOS_ECN;
	if (outer == ECN_CE)
		return inner ? ECN_CE : -DROP_ECN;
	if (outer == ECN_ECT1 && inner == ECN_ECT0)
		return ECN_ECT1;
	return inner;
}

static __always_inline int ecn_unchanged(__u8 outer, __u8 inner)
{
	return ecn_joined(outer, inner) == (inner & TOS_ECN);
}

/* Sets the inner mark of a frame that was decapsulated. */
static __noinline int ecn_set(struct __sk_buff *skb, __u8 outer)
{
	__u8 first[2];
	__be16 word;
	int mark;

	if (bpf_skb_load_bytes(skb, L3_OFFSET, first, 2))
		return -DROP_BAD_INNER;
	if (first[0] >> 4 == 4) {
		mark = ecn_joined(outer, first[1]);
		if (mark < 0 || mark == (first[1] & TOS_ECN))
			return mark < 0 ? mark : 0;
		__builtin_memcpy(&word, first, 2);
		first[1] = (first[1] & ~TOS_ECN) | mark;
		if (bpf_l3_csum_replace(skb, L3_OFFSET + offsetof(struct iphdr, check), word, *(__be16 *)first, 2))
			return -DROP_BAD_INNER;
	} else if (first[0] >> 4 == 6) {
		mark = ecn_joined(outer, first[1] >> 4);
		if (mark < 0 || mark == (first[1] >> 4 & TOS_ECN))
			return mark < 0 ? mark : 0;
		first[1] = (first[1] & ~(TOS_ECN << 4)) | mark << 4;
	} else {
		return 0;
	}
	return bpf_skb_store_bytes(skb, L3_OFFSET, first, 2, 0) ? -DROP_BAD_INNER : 0;
}
