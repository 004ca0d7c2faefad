/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The outer headers of a packet from the fabric. XDP and tc read them with the same functions. */
#pragma once

#include "settings.h"
#include "verdict.h"

/* What the outer headers say. */
struct outer {
	__u32 label;     /* or VNI */
	__u32 length;    /* from the frame's start to the payload */
	__be16 checksum; /* outer UDP's */
	__u16 datagram;  /* outer UDP's length */
	__u8 tos;
	__u8 family;
	__u8 encap;
	__u8 pad;
	__u32 frame;     /* length of the frame without padding, by the outer headers; 0: a superpacket */
	__u32 remote;    /* id of the sending node or gateway (struct remote); 0: unknown */
	struct address source;
};

static __always_inline int read_label(struct outer *o, void *at, void *end)
{
	__u32 entry;

	if (at + LABEL_LENGTH > end)
		return -DROP_OUTER_LENGTH;
	entry = bpf_ntohl(*(__be32 *)at);
	o->label = entry >> LABEL_SHIFT;
	if (!(entry & 0xff))
		return -DROP_OUTER_TTL;
	return entry & LABEL_BOTTOM ? GO_ON : -DROP_LABEL_STACK;
}

/* UDP or GRE at `at`, of an overlay port or protocol. fragment: a first fragment. */
static __always_inline int read_shim(struct outer *o, const struct node_settings *s, void *data,
				     void *at, void *end, __u8 protocol, int fragment)
{
	if (protocol == IPPROTO_GRE) {
		struct gre *gre = at;

		if ((void *)(gre + 1) > end)
			return NOT_OURS;
		if (!is_tunnel_gre(s, gre->protocol))
			return NOT_OURS;
		if (fragment)
			return -DROP_OUTER_FRAGMENT;
		if (gre->flags)
			return -DROP_BAD_GRE;
		o->encap = ENCAP_MPLS_GRE;
		o->length = at + sizeof(*gre) + LABEL_LENGTH - data;
		return read_label(o, gre + 1, end);
	}
	if (protocol == IPPROTO_UDP) {
		struct udphdr *udp = at;
		struct vxlan *vxlan;

		if ((void *)(udp + 1) > end)
			return NOT_OURS;
		if (!is_tunnel_port(s, udp->dest))
			return NOT_OURS;
		if (fragment)
			return -DROP_OUTER_FRAGMENT;
		o->checksum = udp->check;
		o->datagram = bpf_ntohs(udp->len);
		if (udp->dest == bpf_htons(MPLS_UDP_PORT)) {
			o->encap = ENCAP_MPLS_UDP;
			o->length = at + sizeof(*udp) + LABEL_LENGTH - data;
			return read_label(o, udp + 1, end);
		}
		vxlan = (void *)(udp + 1);
		if ((void *)(vxlan + 1) > end)
			return -DROP_OUTER_LENGTH;
		if (!(vxlan->flags & bpf_htonl(VXLAN_HAS_VNI)))
			return -DROP_BAD_VXLAN;
		o->encap = ENCAP_VXLAN;
		o->label = bpf_ntohl(vxlan->vni) >> 8;
		o->length = at + sizeof(*udp) + sizeof(*vxlan) - data;
		return GO_ON;
	}
	return NOT_OURS;
}

/* Stores the length of the frame. start: offset of the UDP or GRE header, which has `length` bytes
 * with its payload by the IP header. UDP's length must be the same. */
static __always_inline int find_frame(struct outer *o, __u32 start, __u32 length)
{
	o->frame = start + length;
	return o->frame < o->length || (o->encap != ENCAP_MPLS_GRE && o->datagram != length) ? -DROP_OUTER_LENGTH : GO_ON;
}

/* superpacket: lengths in the headers are the train's, and 0 above 64 KiB. The caller compares
 * o->frame with the frame's length. */
static __always_inline int read_outer(struct outer *o, const struct node_settings *s, void *data,
				      void *end, int superpacket)
{
	struct ethhdr *eth = data;
	int verdict;

	if ((void *)(eth + 1) > end)
		return NOT_OURS;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(eth + 1);
		__u32 length;

		if ((void *)(ip + 1) > end || ip->ihl != 5 || !is_local4(s, ip->daddr) ||
		    (ip->protocol != IPPROTO_UDP && ip->protocol != IPPROTO_GRE) ||
		    (ip->frag_off & bpf_htons(IP_OFFSET)))
			return NOT_OURS;
		o->family = FAMILY_IPV4;
		o->tos = ip->tos;
		mapped(&o->source, ip->saddr);
		verdict = read_shim(o, s, data, ip + 1, end, ip->protocol, !!(ip->frag_off & bpf_htons(IP_MF)));
		if (verdict != GO_ON)
			return verdict;
		if (!ip->ttl)
			return -DROP_OUTER_TTL;
		if (superpacket)
			return GO_ON;
		length = bpf_ntohs(ip->tot_len);
		return length < sizeof(*ip) ? -DROP_OUTER_LENGTH : find_frame(o, ETH_HLEN + sizeof(*ip), length - sizeof(*ip));
	}
	if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > end || !is_local6(s, &ip->daddr) ||
		    (ip->nexthdr != IPPROTO_UDP && ip->nexthdr != IPPROTO_GRE))
			return NOT_OURS;
		o->family = FAMILY_IPV6;
		o->tos = tos6(ip);
		__builtin_memcpy(&o->source, &ip->saddr, 16);
		verdict = read_shim(o, s, data, ip + 1, end, ip->nexthdr, 0);
		if (verdict != GO_ON)
			return verdict;
		if (!ip->hop_limit)
			return -DROP_OUTER_TTL;
		return superpacket ? GO_ON : find_frame(o, ETH_HLEN + sizeof(*ip), bpf_ntohs(ip->payload_len));
	}
	return NOT_OURS;
}

static __always_inline struct target *target_of(const struct outer *o)
{
	__u32 label = o->label;
	struct target *t = o->encap == ENCAP_VXLAN ? bpf_map_lookup_elem(&vnis, &label) :
						     bpf_map_lookup_elem(&ilm, &label);

	return t && t->nexthop ? t : 0;
}
