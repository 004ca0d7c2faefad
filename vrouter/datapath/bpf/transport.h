/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The protocols behind an IP header. */
#pragma once

#include "headers.h"

static __always_inline int is_extension(__u8 protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_DSTOPTS || protocol == IPPROTO_FRAGMENT;
}

static __always_inline int has_ports(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP ||
	       protocol == IPPROTO_UDPLITE || protocol == IPPROTO_DCCP;
}

/* Returns 1 if a packet has n bytes and its transport header, by its length field. The field of a
 * superpacket above 64 KiB is 0. */
static __always_inline int has_transport(__be16 field, __u32 n, __u8 protocol)
{
	n += protocol == IPPROTO_TCP ? sizeof(struct tcphdr) : sizeof(struct udphdr);
	return (__u16)(bpf_ntohs(field) - 1) >= n - 1;
}

/* Without a branch: the verifier would walk all that follows once for each result. */
static __always_inline __u8 is_tcp(__u8 protocol)
{
	__u32 other = protocol ^ IPPROTO_TCP;

	asm volatile("" : "+r"(other));
	return (other - 1) >> 31;
}
