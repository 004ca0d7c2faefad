/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The settings of the node, and its underlay addresses and ports. */
#pragma once

#include "addr.h"
#include "maps.h"

static __always_inline struct node_settings *the_settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&settings, &zero);
}

static __always_inline int is_local4(const struct node_settings *s, __be32 a)
{
	return a == s->local4[0] || (s->local4[1] && (a == s->local4[1] ||
		a == s->local4[2] || a == s->local4[3]));
}

static __always_inline int is_local6(const struct node_settings *s, const struct in6_addr *a)
{
	return same_address(&s->local6[0], a) || same_address(&s->local6[1], a) ||
	       same_address(&s->local6[2], a) || same_address(&s->local6[3], a);
}

/* Returns 1 if UDP packets to a port are tunnel packets. Without VXLAN its port is 0, which packets can have. */
static __always_inline int is_tunnel_port(const struct node_settings *s, __be16 port)
{
	return port == bpf_htons(MPLS_UDP_PORT) ? s->flags & SET_F_MPLS_UDP : port && port == s->vxlan_port;
}

/* The same for GRE packets with a protocol. */
static __always_inline int is_tunnel_gre(const struct node_settings *s, __be16 protocol)
{
	return protocol == bpf_htons(ETH_P_MPLS_UC) && s->flags & SET_F_MPLS_GRE;
}
