/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Proof that a quoted tunnel packet was sent by this node. An ICMP error quotes at
 * least the outer IP header and 8 bytes (RFC 792). Some bits of that header are a hash
 * with the node's nonce: in IPv4 the upper 10 bits of the identification, in IPv6 the
 * lower 10 bits of the flow label. A host that does not see the packets cannot know
 * them. Segmentation counts the identification's other bits up.
 */
#pragma once

#include "nonce.h"

#define COOKIE_MASK 0x3ff
#define COOKIE_SHIFT4 6
#define SPREAD_SHIFT6 10

static __always_inline __u32 cookie(__u32 destination, __u32 flow)
{
	__u32 x = (destination ^ nonce[1]) * 0x85ebca6b;

	x = ((x ^ x >> 15 ^ flow) * 0xc2b2ae35) + nonce[0];
	x = (x ^ x >> 13) * 0x9e3779b1;
	return (x ^ x >> 16) & COOKIE_MASK;
}

static __always_inline __u32 folded_address(const struct address *a)
{
	const __u32 *w = (const void *)a;

	return w[0] ^ w[1] ^ w[2] ^ w[3];
}

/* IPv4 identification, host order. port: the outer UDP source port; GRE: 0. */
static __always_inline __u16 cookie_id(__be32 destination, __be16 port)
{
	return cookie(destination, port) << COOKIE_SHIFT4;
}

static __always_inline __u32 label_of(const struct address *destination, __u32 spread)
{
	return spread << SPREAD_SHIFT6 | cookie(folded_address(destination), spread);
}

/* IPv6 flow label, host order. Its upper 10 bits spread flows over paths. They depend on
 * all bits of the hash, whose lower half is mixed badly (stirred()). */
static __always_inline __u32 cookie_label(const struct address *destination, __u32 hash)
{
	return label_of(destination, hash * 0x85ebca6b >> 22);
}
