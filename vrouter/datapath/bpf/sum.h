/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The Internet checksum (RFC 1071) over bytes on the stack. */
#pragma once

#include "headers.h"

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* of n bytes, a multiple of 4 that the compiler knows */
#define SUM(p, n) ((__u64)(__u32)bpf_csum_diff(0, 0, (void *)(p), n, 0))
