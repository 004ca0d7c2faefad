/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How large a packet a tunnel takes: by configuration, and by what the
 * underlay's routers said (RFC 1191, RFC 8201). */
#pragma once

#include "encap.h"

#define MTU_LIFETIME_NS (600ull * 1000000000)
#define LEAST_OUTER4 576
#define LEAST_OUTER6 1280

/* Largest inner IP packet. id: of the tunnel's nexthop. */
static __always_inline __u32 tunnel_mtu(const struct nexthop *nh, __u32 id)
{
	struct learned_mtu *l = bpf_map_lookup_elem(&learned_mtus, &id);
	__u32 overhead, mtu = nh->mtu;

	if (!l || !l->mtu || bpf_ktime_get_ns() > l->until_ns)
		return mtu;
	overhead = outer_ip_length(nh->family) + shim_length(nh->encap);
	if (nh->encap == ENCAP_VXLAN)
		overhead += ETH_HLEN;
	return l->mtu - overhead < mtu ? l->mtu - overhead : mtu;
}

static __always_inline void learn_for(const struct address *remote, __u32 mtu, __u32 least)
{
	struct remote *r = bpf_map_lookup_elem(&remotes, remote);
	struct learned_mtu *l;
	__u32 id;

	if (!r || mtu > 0xffff)
		return;
	id = r->nexthop;
	l = bpf_map_lookup_elem(&learned_mtus, &id);
	if (!l)
		return;
	l->until_ns = bpf_ktime_get_ns() + MTU_LIFETIME_NS;
	l->mtu = mtu < least ? least : mtu;
}

struct too_big4 {
	struct icmphdr icmp;
	struct iphdr quoted;
} __attribute__((packed));

/* An ICMP "fragmentation needed" for a packet that we sent into a tunnel is
 * noted; the host's stack gets it too. */
static __noinline int learn_mtu4(struct __sk_buff *skb)
{
	struct too_big4 e;
	struct address remote;

	if (bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(struct iphdr), &e, sizeof(e)))
		return 0;
	if (e.icmp.type != ICMP_DEST_UNREACH || e.icmp.code != ICMP_FRAG_NEEDED ||
	    (e.quoted.protocol != IPPROTO_UDP && e.quoted.protocol != IPPROTO_GRE))
		return 0;
	mapped(&remote, e.quoted.daddr);
	learn_for(&remote, bpf_ntohs(e.icmp.un.frag.mtu), LEAST_OUTER4);
	return 0;
}

struct too_big6 {
	struct icmp6hdr icmp;
	struct ipv6hdr quoted;
} __attribute__((packed));

static __noinline int learn_mtu6(struct __sk_buff *skb)
{
	struct too_big6 e;
	struct address remote;

	if (bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(struct ipv6hdr), &e, sizeof(e)))
		return 0;
	if (e.icmp.icmp6_type != ICMPV6_PKT_TOOBIG ||
	    (e.quoted.nexthdr != IPPROTO_UDP && e.quoted.nexthdr != IPPROTO_GRE))
		return 0;
	__builtin_memcpy(&remote, &e.quoted.daddr, 16);
	learn_for(&remote, bpf_ntohl(e.icmp.icmp6_mtu), LEAST_OUTER6);
	return 0;
}
