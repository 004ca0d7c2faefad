/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Checks the inner source of tunnel packets. The outer source address identifies a
 * node or gateway; `remote` is its id. The inner source is valid if a route or
 * bridge entry for it leads to that remote, or if the map senders allows it and it does
 * not belong to another next hop. With remote 0 the sender is unknown or the source is
 * already checked, and every inner source is valid.
 */
#pragma once

#include "cache.h"
#include "maps.h"
#include "nexthop.h"
#include "route.h"

static __always_inline int leads_to(__u32 nexthop, __u32 remote)
{
	struct nexthop *nh = nexthop_of(nexthop);

	return nh && nh->type == NH_TUNNEL && nh->remote == remote;
}

/* Returns 1 if the host route of an inner IPv4 source leads to a tunnel of this encapsulation,
 * and `outer` is the far end of that tunnel. Then find_sender() and is_senders_address() would
 * accept the packet, too. */
static __always_inline int is_from_far_end(__u32 vrf, __be32 source, __u8 encap, const struct address *outer)
{
	struct host4_key key = { .vrf = vrf, .address = source };
	struct route *r = host4(&key);
	struct nexthop *nh = r ? nexthop_of(r->nexthop) : 0;
	int i;

	if (!nh || nh->type != NH_TUNNEL || nh->encap != encap || !nh->remote)
		return 0;
	for (i = 0; i < MAX_PATHS; i++)
		if (i < nh->paths && same_address(&nh->path[i].destination, outer))
			return 1;
	return 0;
}

static __always_inline int may_send_from(__u32 vrf, __u32 remote, const struct address *source, __u8 family)
{
	struct sender_key key = {
		.prefixlen = 192, .remote = bpf_htonl(remote), .vrf = bpf_htons(vrf), .family = family,
		.address = *source
	};

	return !!bpf_map_lookup_elem(&senders, &key);
}

/* Returns 1 if a route has one next hop, which is a node, a gateway or a vif. Then the prefix
 * belongs to this next hop. With several next hops, each of them may have the prefix. */
static __always_inline int has_owner(const struct route *r)
{
	struct nexthop *nh = nexthop_of(r->nexthop);

	return nh && (nh->type == NH_TUNNEL || nh->type == NH_ENCAP);
}

/* Returns 1 if senders allows the remote an inner source address. A node can write any
 * prefix into allow_sources of its ports. So an address that belongs to another next hop
 * (`owned`) is refused even if senders has such a prefix. A gateway may send from this address
 * too: one of its entries in senders has no prefix, and allows every MAC address. */
__noinline int is_allowed_address(__u32 vrf, __u32 remote, const struct address *source, __u8 family, int owned)
{
	struct address none = {};

	if (!source || (owned && !may_send_from(vrf, remote, &none, 0)))
		return 0;
	return may_send_from(vrf, remote, source, family);
}

/* Returns 1 if the remote may send packets from an inner source address. */
static __always_inline int is_senders_address(__u32 vrf, __u32 remote, const struct address *source, __u8 family)
{
	struct route *r;

	if (!remote)
		return 1;
	r = host_route(vrf, source, family);
	if (r && leads_to(r->nexthop, remote))
		return 1;
	return is_allowed_address(vrf, remote, source, family, r && has_owner(r));
}

/* Returns 1 if the remote may send frames from the inner source MAC address of `key`. */
static __always_inline int is_senders_station(const struct bridge_key *key, __u32 remote)
{
	struct address none = {};
	struct bridge_entry *b;

	if (!remote)
		return 1;
	b = bpf_map_lookup_elem(&bridge, key);
	return (b && leads_to(b->nexthop, remote)) || may_send_from(key->vrf, remote, &none, 0);
}
