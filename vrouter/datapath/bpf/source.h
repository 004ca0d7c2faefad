/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The addresses from which a workload may send. */
#pragma once

#include "maps.h"

/* Returns 1 if an address is one of the workload's own. If prefixes is set, each address
 * in a prefix from which the workload may send counts, too. Such a prefix can contain
 * the gateway's address. */
static __always_inline int owns4(const struct vif *v, __be32 ip, int prefixes)
{
	__u32 i;

	for (i = 0; i < MAX_SOURCES; i++) {
		__be32 mask = v->source4[i].mask;

		if (i >= v->sources4)
			break;
		if ((ip & mask) == v->source4[i].address && (prefixes || !~mask))
			return 1;
	}
	return 0;
}

static __always_inline int may_send4(const struct vif *v, __be32 ip)
{
	return owns4(v, ip, 1);
}

/* owns4() for IPv6. */
static __always_inline int owns6(const struct vif *v, const void *ip, int prefixes)
{
	const __u64 *s = ip;
	__u32 i;

	for (i = 0; i < MAX_SOURCES; i++) {
		const __u64 *a = (const void *)&v->source6[i].address;
		const __u64 *m = (const void *)&v->source6[i].mask;

		if (i >= v->sources6)
			break;
		if ((s[0] & m[0]) == a[0] && (s[1] & m[1]) == a[1] && (prefixes || !~(m[0] & m[1])))
			return 1;
	}
	return 0;
}

static __always_inline int may_send6(const struct vif *v, const void *ip)
{
	return owns6(v, ip, 1);
}
