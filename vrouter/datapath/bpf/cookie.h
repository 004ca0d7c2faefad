/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Recognises quoted tunnel packets that this node has sent. An ICMP error quotes at
 * least the outer IP header and 8 bytes (RFC 792). Some bits of that header are a hash
 * with the node's nonce: in IPv4 the upper 10 bits of the identification, in IPv6 the
 * lower 10 bits of the flow label. A host that does not see the packets cannot know
 * them. Segmentation increments the other bits of the identification.
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

/* Returns the identification of an outer IPv4 header, in host order. port is the outer UDP
 * source port; GRE: 0. */
static __always_inline __u16 cookie_id(__be32 destination, __be16 port)
{
	return cookie(destination, port) << COOKIE_SHIFT4;
}

static __always_inline __u32 label_of(const struct address *destination, __u32 spread)
{
	return spread << SPREAD_SHIFT6 | cookie(folded_address(destination), spread);
}

/* Returns the flow label of an outer IPv6 header, in host order. Its upper 10 bits spread
 * flows over paths. They depend on all bits of the hash, because its lower bits alone
 * differ too little between flows (stirred()). */
static __always_inline __u32 cookie_label(const struct address *destination, __u32 hash)
{
	return label_of(destination, hash * 0x85ebca6b >> 22);
}
