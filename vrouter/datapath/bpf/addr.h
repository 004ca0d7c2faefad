/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* IP addresses. In 16 bytes, an IPv4 address is IPv4-mapped (::ffff:a.b.c.d). */
#pragma once

#include "headers.h"
#include "types.h"

static __always_inline void mapped(struct address *a, __be32 v4)
{
	__builtin_memset(a->bytes, 0, 10);
	a->bytes[10] = a->bytes[11] = 0xff;
	__builtin_memcpy(a->bytes + 12, &v4, 4);
}

static __always_inline __be32 v4_of(const struct address *a)
{
	__be32 v4;

	__builtin_memcpy(&v4, a->bytes + 12, 4);
	return v4;
}

static __always_inline int is_mapped(const struct address *a)
{
	const __u32 *w = (const void *)a;

	return !w[0] && !w[1] && w[2] == bpf_htonl(0xffff);
}

/* Compares addresses of 16 bytes. */
static __always_inline int same_address(const void *a, const void *b)
{
	const __u32 *x = a, *y = b;

	return !((x[3] ^ y[3]) | (x[2] ^ y[2]) | (x[1] ^ y[1]) | (x[0] ^ y[0]));
}

static __always_inline int is_link_local6(const struct in6_addr *a)
{
	return a->s6_addr[0] == 0xfe && (a->s6_addr[1] & 0xc0) == 0x80;
}

static __always_inline int is_unspecified6(const struct in6_addr *a)
{
	return !(a->s6_addr32[0] | a->s6_addr32[1] | a->s6_addr32[2] | a->s6_addr32[3]);
}
