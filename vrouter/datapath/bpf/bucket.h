/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A token bucket that gains one token per nanosecond. */
#pragma once

#include "headers.h"

struct bucket {
	__u64 full_ns; /* bpf_ktime_get_ns at which all tokens are back */
};

#define BUCKET_ATTEMPTS 4

/* Takes `cost` tokens from a bucket of `size` tokens. Returns 0 if the bucket is empty,
 * or if other CPUs changed it in each attempt. */
static __always_inline int take_tokens(struct bucket *b, __u64 cost, __u64 size)
{
	__u64 now = bpf_ktime_get_ns(), full, from;
	int i;

	for (i = 0; i < BUCKET_ATTEMPTS; i++) {
		full = b->full_ns;
		from = full > now ? full : now;
		if (from - now >= size)
			return 0;
		if (__sync_val_compare_and_swap(&b->full_ns, full, from + cost) == full)
			return 1;
	}
	return 0;
}
