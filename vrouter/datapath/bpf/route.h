/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Where to: exact host routes first, the trie behind them. */
#pragma once

#include "cache.h"
#include "maps.h"
#include "trace.h"

/* The keys of the exact tables are the last members of the trie's keys. */
static __always_inline struct route *route4(__u32 vrf, __be32 destination)
{
	struct lpm4_key key = { .prefixlen = 64, .vrf = vrf, .address = destination };
	struct route *r = host4((void *)&key.vrf);

	trace4(TRACE_ROUTE_HOST, vrf, destination, r ? r->nexthop : 0, r ? r->label : 0, !!r);
	if (r)
		return r;
	key.vrf = bpf_htonl(vrf);
	r = bpf_map_lookup_elem(&lpm4, &key);
	trace4(TRACE_ROUTE_LPM, vrf, destination, r ? r->nexthop : 0, r ? r->label : 0, !!r);
	return r;
}

static __always_inline struct route *route6(__u32 vrf, const struct address *destination)
{
	struct lpm6_key key = { .prefixlen = 160, .vrf = vrf, .address = *destination };
	struct route *r = host6((void *)&key.vrf);

	trace6(TRACE_ROUTE_HOST, vrf, destination, r ? r->nexthop : 0, r ? r->label : 0, !!r);
	if (r)
		return r;
	key.vrf = bpf_htonl(vrf);
	r = bpf_map_lookup_elem(&lpm6, &key);
	trace6(TRACE_ROUTE_LPM, vrf, destination, r ? r->nexthop : 0, r ? r->label : 0, !!r);
	return r;
}

static __always_inline struct route *route_to(__u32 vrf, const struct address *to, __u8 family)
{
	return family == FAMILY_IPV4 ? route4(vrf, v4_of(to)) : route6(vrf, to);
}

/* Returns the host route of an address. Valid until the next one is looked up. */
static __always_inline struct route *host_route(__u32 vrf, const struct address *to, __u8 family)
{
	if (family == FAMILY_IPV4) {
		struct host4_key key = { .vrf = vrf, .address = v4_of(to) };

		return host4(&key);
	} else {
		struct host6_key key = { .vrf = vrf, .address = *to };

		return host6(&key);
	}
}

/* Returns the route of a workload's address if this route has the workload's MAC address. It is not
 * from the cache, where the next route may replace it: callers use two of them at once. */
static __always_inline struct route *station_route(__u32 vrf, const struct address *to, __u8 family)
{
	struct host4_key key4 = { .vrf = vrf, .address = v4_of(to) };
	struct host6_key key6 = { .vrf = vrf, .address = *to };
	struct route *r = family == FAMILY_IPV4 ? bpf_map_lookup_elem(&hosts4, &key4) : bpf_map_lookup_elem(&hosts6, &key6);

	return r && r->flags & ROUTE_F_MAC ? r : 0;
}
