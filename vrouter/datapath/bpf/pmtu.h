/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The largest packet that a tunnel carries: by configuration, and by the ICMP errors
 * of the underlay's routers (RFC 1191, RFC 8201). Only an error that quotes a packet
 * of this node counts (cookie.h). After another error, all errors for the tunnel are
 * ignored for a second, so that an attacker cannot quickly guess a cookie.
 */
#pragma once

#include "encap.h"
#include "locator.h"
#include "settings.h"

#define MTU_LIFETIME_NS (600ull * 1000000000)
#define IGNORE_NS 1000000000ull
#define LEAST_MTU4 576  /* RFC 791: every host accepts packets of this size */
#define LEAST_MTU6 1280 /* RFC 8200 */

/* Returns the size of the largest inner IP packet, in bytes. id is the tunnel's nexthop,
 * family is the inner packet's, or 0. A learned MTU is never less than IP needs. */
static __always_inline __u32 tunnel_mtu(const struct nexthop *nh, __u32 id, __u8 family, int ethernet)
{
	struct learned_mtu *l = bpf_map_lookup_elem(&learned_mtus, &id);
	__u32 overhead, least = family == FAMILY_IPV6 ? LEAST_MTU6 : LEAST_MTU4, mtu;

	if (nh->encap == ENCAP_DIRECT || !l || !l->mtu || bpf_ktime_get_ns() > l->until_ns)
		return nh->mtu;
	if (nh->encap == ENCAP_TRANSLATED)
		overhead = family == FAMILY_IPV6 ? 0 : sizeof(struct ipv6hdr) - sizeof(struct iphdr);
	else
		overhead = outer_ip_length(nh->family) + shim_length(nh->encap);
	if (ethernet || nh->encap == ENCAP_VXLAN)
		overhead += ETH_HLEN;
	mtu = l->mtu < least + overhead ? least : l->mtu - overhead;
	return mtu < nh->mtu ? mtu : nh->mtu;
}

static __always_inline void store_mtu(__u32 id, __u32 mtu, __u64 now)
{
	struct learned_mtu *l = bpf_map_lookup_elem(&learned_mtus, &id);

	if (!l)
		return;
	l->until_ns = now + MTU_LIFETIME_NS;
	l->mtu = mtu < LEAST_MTU4 ? LEAST_MTU4 : mtu; /* routers older than RFC 1191 report 0 */
}

/* Learns the path MTU to a remote from an ICMP error. cookie: the cookie of the quoted
 * packet. larger: the quoted packet was larger than that MTU. */
static __always_inline void learn_for(const struct address *remote, __u32 mtu, __u32 cookie, int larger)
{
	struct remote *r = bpf_map_lookup_elem(&remotes, remote);
	__u64 now = bpf_ktime_get_ns();
	struct learned_mtu *l;
	__u32 id;

	if (!r)
		return;
	id = r->nexthop;
	l = bpf_map_lookup_elem(&learned_mtus, &id);
	if (!l || now < l->ignore_ns)
		return;
	if (!larger || cookie != r->cookie) {
		l->ignore_ns = now + IGNORE_NS;
		return;
	}
	store_mtu(r->nexthop, mtu, now);
	if (r->ethernet)
		store_mtu(r->ethernet, mtu, now);
}

/* The 4 bytes behind a quoted IP header: UDP's ports, or GRE's flags and protocol. */
struct shim_start {
	__be16 source;
	__be16 destination;
};

/* Returns 1 if a quoted packet belongs to the overlay, and not to another program of
 * the node. */
static __always_inline int is_overlay(__u8 protocol, const struct shim_start *start)
{
	struct node_settings *s = the_settings();

	if (!s)
		return 0;
	if (protocol == IPPROTO_GRE)
		return is_tunnel_gre(s, start->destination);
	return protocol == IPPROTO_UDP && is_tunnel_port(s, start->destination);
}

struct too_big4 {
	struct icmphdr icmp;
	struct iphdr quoted;
	struct shim_start start;
} __attribute__((packed));

/* The host's stack gets the error too. */
static __noinline int learn_mtu4(struct __sk_buff *skb)
{
	struct too_big4 e;
	struct shim_start start;
	struct address remote;
	__u16 mtu;

	if (bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(struct iphdr), &e, sizeof(e)))
		return 0;
	if (e.icmp.type != ICMP_DEST_UNREACH || e.icmp.code != ICMP_FRAG_NEEDED)
		return 0;
	start = e.start;
	if (!is_overlay(e.quoted.protocol, &start))
		return 0;
	mapped(&remote, e.quoted.daddr);
	mtu = bpf_ntohs(e.icmp.un.frag.mtu);
	learn_for(&remote, mtu, bpf_ntohs(e.quoted.id) >> COOKIE_SHIFT4, mtu < bpf_ntohs(e.quoted.tot_len));
	return 0;
}

struct too_big6 {
	struct icmp6hdr icmp;
	struct ipv6hdr quoted;
	struct shim_start start;
} __attribute__((packed));

/* Returns 1 if an address is a workload's address in this node's locator (translate.h). */
static __always_inline int is_own_workload(const struct translated_address *a)
{
	struct node_settings *s = the_settings();

	return s && a->network && is_in_own_locator(s, a);
}

static __noinline int learn_mtu6(struct __sk_buff *skb)
{
	struct too_big6 e;
	struct shim_start start;
	struct address remote = {};
	struct translated_address source, destination;
	__u32 mtu, label;

	if (bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(struct ipv6hdr), &e, sizeof(e)))
		return 0;
	if (e.icmp.icmp6_type != ICMPV6_PKT_TOOBIG)
		return 0;
	start = e.start;
	__builtin_memcpy(&source, &e.quoted.saddr, sizeof(source));
	__builtin_memcpy(&destination, &e.quoted.daddr, sizeof(destination));
	if (is_own_workload(&source))
		node_with_locator(&destination, &remote);
	else if (is_overlay(e.quoted.nexthdr, &start))
		__builtin_memcpy(&remote, &e.quoted.daddr, 16);
	else
		return 0;
	mtu = bpf_ntohl(e.icmp.icmp6_mtu);
	label = e.quoted.flow_lbl[1] << 8 | e.quoted.flow_lbl[2];
	learn_for(&remote, mtu, label & COOKIE_MASK, mtu < bpf_ntohs(e.quoted.payload_len) + sizeof(e.quoted));
	return 0;
}

static __always_inline void learn(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + ETH_HLEN;
	struct ipv6hdr *ip6 = data + ETH_HLEN;

	if ((void *)(ip + 1) > end)
		return;
	if (eth->h_proto == bpf_htons(ETH_P_IP) && ip->protocol == IPPROTO_ICMP && ip->ihl == 5 &&
	    bpf_ntohs(ip->tot_len) >= sizeof(*ip) + sizeof(struct too_big4))
		learn_mtu4(skb);
	else if (eth->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end &&
		 ip6->nexthdr == IPPROTO_ICMPV6 && bpf_ntohs(ip6->payload_len) >= sizeof(struct too_big6))
		learn_mtu6(skb);
}
