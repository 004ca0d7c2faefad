/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Recognises quoted tunnel packets that this node has sent. An ICMP error quotes at
 * least the outer IP header and 8 bytes (RFC 792). Some bits of that header are the
 * cookie of the destination: in IPv4 the upper 10 bits of the identification, in IPv6
 * the lower 10 bits of the flow label. The cookie is a keyed hash of the destination; the
 * key is the node's nonce (nonce.go). So a host that sees the cookie of one tunnel does
 * not learn the cookies of other tunnels. Segmentation increments the other bits of the
 * identification.
 */
#pragma once

#include "types.h"

#define COOKIE_MASK 0x3ff
#define COOKIE_SHIFT4 6
#define SPREAD_SHIFT6 10

/* Returns the identification of an outer IPv4 header, in host order. */
static __always_inline __u16 cookie_id(const struct path *p)
{
	return p->cookie << COOKIE_SHIFT4;
}

/* Returns the flow label of an outer IPv6 header, in host order. Its upper 10 bits spread
 * flows over paths. They depend on all bits of the hash, because its lower bits alone
 * differ too little between flows (stirred()). */
static __always_inline __u32 cookie_label(const struct path *p, __u32 hash)
{
	return hash * 0x85ebca6b >> 22 << SPREAD_SHIFT6 | p->cookie;
}
