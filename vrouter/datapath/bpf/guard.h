/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Recognises tunnel packets that leave a node by a fabric device. Only these eBPF
 * programs may send tunnel packets to other nodes and gateways. A process on the
 * node, or a container behind the node's masquerading, also has the node's address,
 * and could write any label. The programs put a secret mark on their packets, so
 * fabric_out drops tunnel packets without it.
 */
#pragma once

#include "direct.h"
#include "locator.h"
#include "nonce.h"

static __always_inline int is_to_tunnel_port(const struct node_settings *s, struct __sk_buff *skb, __u32 at)
{
	__be16 ports[2];

	return !bpf_skb_load_bytes(skb, at, ports, sizeof(ports)) && is_tunnel_port(s, ports[1]);
}

static __always_inline int is_mpls_gre(const struct node_settings *s, struct __sk_buff *skb, __u32 at)
{
	struct gre gre;

	return !bpf_skb_load_bytes(skb, at, &gre, sizeof(gre)) && is_tunnel_gre(s, gre.protocol);
}

/* Returns 1 for packets that read_outer() at a known receiver treats as tunnel
 * packets. */
static __always_inline int is_tunnel_packet(const struct node_settings *s, struct __sk_buff *skb)
{
	struct address to = {};
	struct ethhdr eth;
	struct iphdr ip;
	struct translated_address in_locator;
	__u8 protocol;
	__u32 at;

	if (!bpf_skb_load_bytes(skb, 0, &eth, sizeof(eth)) && is_label_mac(eth.h_dest) &&
	    label_network(eth.h_dest)) {
		mapped(&to, label_node(eth.h_dest));
		if (bpf_map_lookup_elem(&remotes, &to))
			return 1;
	}
	if (bpf_skb_load_bytes(skb, L3_OFFSET, &ip, sizeof(ip)))
		return 0;
	if (ip.version == 4) {
		protocol = ip.protocol;
		at = L3_OFFSET + sizeof(ip);
		if (ip.ihl != 5 || ip.frag_off & bpf_htons(IP_OFFSET))
			return 0;
	} else {
		/* Packets to a workload's address in a locator are tunnel packets too (translate.h). */
		if (!bpf_skb_load_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, daddr), &in_locator, sizeof(in_locator)) &&
		    in_locator.network && node_with_locator(&in_locator, &to))
			return 1;
		protocol = ((struct ipv6hdr *)&ip)->nexthdr;
		at = L3_OFFSET + sizeof(struct ipv6hdr);
	}
	if (protocol == IPPROTO_UDP ? !is_to_tunnel_port(s, skb, at) :
	    protocol != IPPROTO_GRE || !is_mpls_gre(s, skb, at))
		return 0;
	if (ip.version == 4)
		mapped(&to, ip.daddr);
	else if (bpf_skb_load_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, daddr), &to, sizeof(to)))
		return 0;
	return !!bpf_map_lookup_elem(&remotes, &to);
}
