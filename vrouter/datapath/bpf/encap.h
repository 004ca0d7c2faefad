/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The way into a tunnel: MPLS over GRE (RFC 4023), MPLS over UDP (RFC 7510)
 * and VXLAN (RFC 7348), over IPv4 and IPv6, with IP or Ethernet payload.
 *
 * The flags tell the kernel the added headers, so that it can segment superpackets in
 * software: BPF_F_ADJ_ROOM_ENCAP_L2 counts only the inner link-layer bytes
 * that touch the inner IP header: 4 for a label, 14 for an Ethernet header. A
 * label or VXLAN header in front of that Ethernet header is tunnel header.
 */
#pragma once

#include <linux/errno.h>

#include "cookie.h"
#include "jumbo.h"
#include "mark.h"
#include "nexthop.h"
#include "nonce.h"
#include "settings.h"
#include "udpsum.h"
#include "verdict.h"

/* What the outer headers say of the inner packet. */
struct inner {
	__u32 hash;
	__u8 tos;
	__u8 ttl;
	__u8 is_ip;    /* the frame is IP: superpackets are possible */
	__u8 ethernet; /* the payload is the whole frame */
};

static __always_inline __be16 entropy_port(__u32 hash)
{
	return bpf_htons(FIRST_ENTROPY_PORT | ((hash ^ hash >> 16) & 0x3fff));
}

/* Bytes between the outer IP header and the payload. */
static __always_inline __u32 shim_length(__u8 encap)
{
	switch (encap) {
	case ENCAP_MPLS_GRE:
		return sizeof(struct gre) + LABEL_LENGTH;
	case ENCAP_MPLS_UDP:
		return sizeof(struct udphdr) + LABEL_LENGTH;
	default:
		return sizeof(struct udphdr) + sizeof(struct vxlan);
	}
}

static __always_inline __be32 label_entry(__u32 label, const struct inner *in)
{
	/* The traffic class is the DSCP's first three bits (RFC 5462). */
	return bpf_htonl(label << LABEL_SHIFT | (__u32)(in->tos >> 5) << LABEL_TC_SHIFT |
			 LABEL_BOTTOM | in->ttl);
}

/* Writes GRE or UDP, then label or VXLAN header, at `shim`.
 * length: from the UDP header to the end of the packet. */
static __always_inline void write_shim(__u8 *shim, const struct nexthop *nh, __u32 label,
					const struct inner *in, __u32 length)
{
	struct udphdr *udp = (void *)shim;

	if (nh->encap == ENCAP_MPLS_GRE) {
		struct gre *gre = (void *)shim;

		gre->flags = 0;
		gre->protocol = bpf_htons(ETH_P_MPLS_UC);
		*(__be32 *)(shim + sizeof(*gre)) = label_entry(label, in);
		return;
	}
	udp->source = entropy_port(in->hash);
	udp->dest = nh->port;
	udp->len = length_field(length);
	udp->check = 0; /* finish_tunnel() writes the checksum that IPv6 needs */
	if (nh->encap == ENCAP_MPLS_UDP) {
		*(__be32 *)(shim + sizeof(*udp)) = label_entry(label, in);
	} else {
		struct vxlan *vxlan = (void *)(shim + sizeof(*udp));

		vxlan->flags = bpf_htonl(VXLAN_HAS_VNI);
		vxlan->vni = bpf_htonl(label << 8);
	}
}

static __always_inline void write_ip4(struct iphdr *ip, const struct nexthop *nh,
				      const struct path *p, const struct inner *in, __u32 length)
{
	__u32 sum, source = v4_of(&p->source), destination = v4_of(&p->destination);
	__be16 *words = (void *)ip, first = bpf_htons(0x4500 | in->tos), id, frag_off = 0, last;

	if (nh->flags & NH_F_DF) {
		id = bpf_htons(cookie_id(p));
		frag_off = bpf_htons(IP_DF);
	} else {
		/* Without DF an identification is needed (RFC 6864). */
		id = bpf_get_prandom_u32();
	}
	last = bpf_htons(TUNNEL_TTL << 8 | (nh->encap == ENCAP_MPLS_GRE ? IPPROTO_GRE : IPPROTO_UDP));
	sum = first + length_field(length) + id + frag_off + last +
	      (source & 0xffff) + (source >> 16) + (destination & 0xffff) + (destination >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	words[0] = first;
	ip->tot_len = length_field(length);
	ip->id = id;
	ip->frag_off = frag_off;
	words[4] = last; /* TTL and protocol */
	ip->check = ~sum;
	ip->saddr = source;
	ip->daddr = destination;
}

static __always_inline void write_ip6(struct ipv6hdr *ip, const struct nexthop *nh,
				      const struct path *p, const struct inner *in, __u32 length)
{
	*(__be32 *)ip = bpf_htonl(6u << 28 | (__u32)in->tos << 20 | cookie_label(p, in->hash));
	ip->payload_len = length_field(length - sizeof(*ip));
	ip->nexthdr = nh->encap == ENCAP_MPLS_GRE ? IPPROTO_GRE : IPPROTO_UDP;
	ip->hop_limit = TUNNEL_TTL;
	__builtin_memcpy(&ip->saddr, &p->source, 16);
	__builtin_memcpy(&ip->daddr, &p->destination, 16);
}

/*
 * Makes room behind the Ethernet header of a frame that was encapsulated before: a
 * workload forwards a packet from a tunnel, and the kernel still has the frame
 * marked as encapsulated, so make_room() fails. No BPF helper clears that mark. But the
 * kernel's offsets of the inner headers are still right. Its type of segmentation is
 * right if all tunnels have one encapsulation; a packet that needs no segmentation has
 * no type. Returns -EALREADY for other superpackets: the workload itself has added the headers of a
 * tunnel, such as VXLAN between containers, if the packet is not TCP.
 */
static __always_inline long make_room_again(struct __sk_buff *skb, __u32 room)
{
	struct node_settings *s = the_settings();
	__u8 ip[10] = {};

	if (skb->gso_size && (!s || !(s->flags & SET_F_ONE_ENCAP) || bpf_skb_load_bytes(skb, L3_OFFSET, ip, sizeof(ip)) ||
			      (ip[0] >> 4 == 4 ? ip[9] : ip[6]) != IPPROTO_TCP))
		return -EALREADY;
	return bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO);
}

/* Makes room behind the Ethernet header of an IP frame. */
static __always_inline long make_room(struct __sk_buff *skb, const struct nexthop *nh,
				      const struct inner *in, __u32 room)
{
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;

	flags |= nh->family == FAMILY_IPV4 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 : BPF_F_ADJ_ROOM_ENCAP_L3_IPV6;
	flags |= nh->encap == ENCAP_MPLS_GRE ? BPF_F_ADJ_ROOM_ENCAP_L4_GRE : BPF_F_ADJ_ROOM_ENCAP_L4_UDP;
	if (in->ethernet)
		flags |= BPF_F_ADJ_ROOM_ENCAP_L2(ETH_HLEN) | BPF_F_ADJ_ROOM_ENCAP_L2_ETH;
	else
		flags |= BPF_F_ADJ_ROOM_ENCAP_L2(LABEL_LENGTH);
	return bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, flags);
}

/* Sends an outer packet to the next hop of a path. The mark lets the packet pass
 * fabric_out at the fabric device (guard.h). */
static __always_inline int send_to_neighbour(struct __sk_buff *skb, const struct path *p)
{
	struct bpf_redir_neigh to = {};

	skb->mark = own_mark();
	if (p->gateway_family == FAMILY_IPV4) {
		to.nh_family = 2; /* AF_INET */
		to.ipv4_nh = v4_of(&p->gateway);
	} else {
		to.nh_family = 10; /* AF_INET6 */
		__builtin_memcpy(to.ipv6_nh, &p->gateway, 16);
	}
	return bpf_redirect_neigh(p->oif, &to, sizeof(to), 0);
}

/* The agent keeps paths that are down out of the nexthop. */
static __always_inline const struct path *choose_path(const struct nexthop *nh, __u32 hash)
{
	__u32 i = 0;

	if (nh->paths > 1)
		i = hash % nh->paths & (MAX_PATHS - 1);
	asm volatile("" : "+r"(i)); /* the bound must be on the index register */
	i &= MAX_PATHS - 1;
	return nh->path[i].oif ? &nh->path[i] : 0;
}

/*
 * Sends an encapsulated frame whose inner protocol is not IP. Into such a frame the
 * kernel cannot insert headers; it can only add them in front. The kernel still
 * has the frame's old protocol then, and does not look up a neighbour for it. So a
 * clone of the outer packet enters the vif again, with the nexthop's id in its
 * mark. The kernel then sees an IP packet, and sent_raw sends it.
 */
static __always_inline int send_raw(struct __sk_buff *skb, __u32 nexthop, __u8 family, int ethernet)
{
	struct ethhdr eth = { .h_dest = { 2 }, .h_source = { 2 } };

	eth.h_proto = bpf_htons(family == FAMILY_IPV4 ? ETH_P_IP : ETH_P_IPV6);
	if (bpf_skb_store_bytes(skb, 0, &eth, sizeof(eth), 0))
		return -DROP_ENCAP_FAILED;
	skb->mark = RAW_MARK | (ethernet ? RAW_ETHERNET : 0) | nexthop;
	return bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS) ? -DROP_ENCAP_FAILED : TC_ACT_SHOT;
}

/* Clears the addresses of the outer Ethernet header: bpf_redirect_neigh refuses a multicast
 * destination, and writes other addresses. */
static __always_inline int clear_ethernet(struct __sk_buff *skb, __be16 protocol)
{
	struct ethhdr *eth = (void *)(long)skb->data;

	if ((void *)(eth + 1) > (void *)(long)skb->data_end)
		return -1;
	__builtin_memset(eth, 0, 2 * ETH_ALEN);
	eth->h_proto = protocol;
	return 0;
}

/* Returns 1 for an outer packet that finish_tunnel() must finish: a superpacket which the kernel must
 * cut before it leaves the node (loopback.h), or another packet that needs a UDP checksum. */
static __always_inline int is_unfinished(struct __sk_buff *skb, const struct nexthop *nh)
{
	return nh->flags & (skb->gso_size ? NH_F_CUT : NH_F_CHECKSUM);
}

#define LOOPBACK 1 /* ifindex in each network namespace */

/*
 * Sends a superpacket out of the loopback device, where the kernel cuts it. Writes the outer UDP
 * checksum of another packet: receivers drop datagrams without one over IPv6, unless they are told
 * to take them (RFC 6935). The kernel writes a checksum into the packets of a superpacket only if it
 * has the type SKB_GSO_UDP_TUNNEL_CSUM (__skb_udp_tunnel_segment), and bpf_skb_adjust_room() sets
 * SKB_GSO_UDP_TUNNEL (bpf_skb_net_grow). id: of the nexthop. ethernet: the payload is a frame. Returns the verdict of a packet that was forwarded, or a negative
 * drop reason. The verifier checks this function once, separately.
 */
__noinline int finish_tunnel(struct __sk_buff *skb, __u32 id, int ethernet)
{
	struct nexthop *nh = nexthop_of(id);

	if (!nh)
		return -DROP_NO_NEXTHOP;
	if (!skb->gso_size)
		return write_udp_checksum(skb, outer_udp(nh->family), outer_addresses(nh->family),
					  outer_udp(nh->family) + shim_length(nh->encap) + (ethernet ? ETH_HLEN : 0)) ?
			       -DROP_ENCAP_FAILED : WENT(TC_ACT_REDIRECT, OUT_FORWARDED);
	if (clear_ethernet(skb, bpf_htons(nh->family == FAMILY_IPV4 ? ETH_P_IP : ETH_P_IPV6)))
		return -DROP_ENCAP_FAILED;
	skb->mark = own_mark();
	skb->priority = id | (ethernet ? RAW_ETHERNET : 0);
	return WENT(bpf_redirect(LOOPBACK, 0), OUT_FORWARDED);
}

/* The second half: the outer packet, on its way to its neighbour. */
static __noinline int sent_raw(struct __sk_buff *skb)
{
	__u32 id = skb->mark & ~(RAW_MARK | RAW_ETHERNET);
	int ethernet = !!(skb->mark & RAW_ETHERNET);
	struct nexthop *nh = nexthop_of(id);
	const struct path *p;

	skb->mark = 0;
	if (!nh || nh->type != NH_TUNNEL)
		return TC_ACT_SHOT;
	if (is_unfinished(skb, nh)) {
		if (finish_tunnel(skb, id, ethernet) < 0)
			return TC_ACT_SHOT;
		if (skb->gso_size)
			return TC_ACT_REDIRECT;
	}
	p = choose_path(nh, 0);
	return p ? send_to_neighbour(skb, p) : TC_ACT_SHOT;
}

/*
 * Writes outer IP header and shim behind the outer Ethernet header. Every frame with
 * room for them has at least SHIM_MOST bytes behind the outer IP header, all in
 * the linear part. Returns -1 for other frames.
 */
static __always_inline int write_outer4(struct __sk_buff *skb, const struct nexthop *nh,
					const struct path *p, __u32 label, const struct inner *in)
{
	struct iphdr *ip = (void *)(long)skb->data + L3_OFFSET;
	__u32 length = skb->len - ETH_HLEN;

	if ((void *)(ip + 1) + SHIM_MOST > (void *)(long)skb->data_end)
		return -1;
	write_ip4(ip, nh, p, in, length);
	write_shim((void *)(ip + 1), nh, label, in, length - sizeof(*ip));
	return 0;
}

static __always_inline int write_outer6(struct __sk_buff *skb, const struct nexthop *nh,
					const struct path *p, __u32 label, const struct inner *in)
{
	struct ipv6hdr *ip = (void *)(long)skb->data + L3_OFFSET;
	__u32 length = skb->len - ETH_HLEN;

	if ((void *)(ip + 1) + SHIM_MOST > (void *)(long)skb->data_end)
		return -1;
	write_ip6(ip, nh, p, in, length);
	write_shim((void *)(ip + 1), nh, label, in, length - sizeof(*ip));
	return 0;
}

/* Writes an Ethernet header at `offset`, which is at most OUTER_MOST. */
static __always_inline int write_ethernet(struct __sk_buff *skb, __u32 offset, const struct ethhdr *eth)
{
	struct ethhdr *at = (void *)(long)skb->data + offset;

	if ((void *)(at + 1) > (void *)(long)skb->data_end)
		return -1;
	copy_mac(at->h_dest, eth->h_dest);
	copy_mac(at->h_source, eth->h_source);
	at->h_proto = eth->h_proto;
	return 0;
}

/*
 * Sends a frame into a tunnel. With IP payload the Ethernet header
 * is removed; with Ethernet payload the receiver sees `eth`.
 * nh, id: of the tunnel. Counts nothing.
 * Returns a tc action, a negative drop reason, or -CUT.
 */
static __always_inline int encapsulate(struct __sk_buff *skb, const struct nexthop *nh, __u32 id, __u32 label,
				       const struct inner *in, const struct ethhdr *eth)
{
	const struct path *p;
	__be16 protocol;
	__u32 room;
	long err;

	p = choose_path(nh, in->is_ip ? in->hash : 0);
	if (!p)
		return -DROP_PATH_DOWN;
	room = outer_ip_length(nh->family) + shim_length(nh->encap);
	trace(TRACE_ENCAP, nh->vrf, nh->encap, label, 1);

	if (!in->is_ip) {
		/* The frame stays whole behind the new headers. */
		if (bpf_skb_change_head(skb, ETH_HLEN + room, 0))
			return -DROP_ENCAP_FAILED;
	} else {
		err = make_room(skb, nh, in, room + (in->ethernet ? ETH_HLEN : 0));
		if (err == -EALREADY)
			err = make_room_again(skb, room + (in->ethernet ? ETH_HLEN : 0));
		if (err)
			return err == -EALREADY && skb->mark != CUT_MARK ? -CUT : -DROP_ENCAP_FAILED;
	}

	if (nh->family == FAMILY_IPV4 ? write_outer4(skb, nh, p, label, in) :
					write_outer6(skb, nh, p, label, in))
		return -DROP_ENCAP_FAILED;
	if (!in->is_ip)
		return send_raw(skb, id, nh->family, in->ethernet);

	protocol = bpf_htons(nh->family == FAMILY_IPV4 ? ETH_P_IP : ETH_P_IPV6);
	if (in->ethernet && (write_ethernet(skb, L3_OFFSET + room, eth) || clear_ethernet(skb, protocol)))
		return -DROP_ENCAP_FAILED;
	/* After make_room_again() the kernel still has the inner protocol. */
	if (skb->protocol != protocol)
		return send_raw(skb, id, nh->family, in->ethernet);
	return send_to_neighbour(skb, p);
}

/* The same for bridged frames. The verifier checks this function once, separately. */
__noinline int encapsulate_bridged(struct __sk_buff *skb, __u32 id, __u32 label,
				   const struct inner *in, const struct ethhdr *eth)
{
	struct nexthop *nh = nexthop_of(id);

	return nh && in && eth ? encapsulate(skb, nh, id, label, in, eth) : -DROP_NO_NEXTHOP;
}
