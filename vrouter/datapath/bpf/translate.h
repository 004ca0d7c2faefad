/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Translation: nodes on different links send IP packets of workloads to each other as plain
 * IPv6 packets instead of in a tunnel. NICs can segment and merge these packets. IPv4 becomes
 * IPv6 (RFC 7915); of an IPv6 packet, only the addresses change. Each node has a locator: the
 * first 64 or 80 bits of its workloads' addresses in the underlay.
 *
 *   64 bits locator of the node   80 bits locator of the node
 *   16 bits adjustment
 *   16 bits network               16 bits network or adjustment
 *   32 bits last 32 bits of the workload's address
 *
 * The first 4 bits of the network are 0 for an IPv4 packet of a workload, and 8 for an IPv6
 * packet. The other 12 bits are the number of the VRF.
 *
 * The first 96 bits of a workload's IPv6 address are not in the packet. They must be equal to
 * prefix6 of the network (struct vrf), which is the same on all nodes.
 *
 * Because of the adjustments, the one's complement sum of the first 96 bits of both addresses
 * is equal to twice the sum of prefix6, or to 0 for IPv4. So all checksums behind the addresses
 * stay right (RFC 6052, section 4.1). If both locators have 64 bits, each address has its own
 * adjustment. If one has 64 bits, the address in it has the adjustment for both. If both have
 * 80 bits, the address in the lesser locator has the adjustment for both instead of the
 * network. So the addresses of two workloads are the same in both directions.
 *
 * A nexthop that translates has a fallback: a tunnel for all other packets.
 */
#pragma once

#include <stddef.h>

#include "arrive.h"
#include "direct.h"
#include "encap.h"
#include "fallback.h"
#include "flowkey.h"
#include "locator.h"

/* Packets with a lower TTL go by the fallback, so that routers of the underlay do not
 * reduce it to 0. */
#define TRANSLATED_TTL 32
/* Without DF, larger packets go by the fallback. Smaller ones fit every IPv6 link after
 * translation, which adds 20 bytes (RFC 7915, section 4). */
#define TRANSLATED_WITHOUT_DF 1260
#define ICMP6_ECHO 128       /* RFC 4443 */
#define ICMP6_ECHO_REPLY 129
#define ICMP6_INFORMATION 128 /* types below are errors */

#define TRANSLATED_IPV6 0x8000 /* in the field network */

/* Adds one's complement numbers. */
static __always_inline __u16 sum16(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static __always_inline __u32 sum_of32(__be32 word)
{
	return (word & 0xffff) + (word >> 16);
}

/* Returns the one's complement sum of the first 96 bits of a workload's address. */
static __always_inline __u16 sum_of_prefix(const __be32 *prefix)
{
	return sum16(sum_of32(prefix[0]) + sum_of32(prefix[1]) + sum_of32(prefix[2]));
}

/* Returns the sum of the first 96 bits of an address less the sum of the first 96 bits of the
 * workload's address. prefix: sum_of_prefix(), or 0 for IPv4. */
static __always_inline __u32 sum_of_difference(const struct translated_address *a, __u16 prefix)
{
	return sum_of32(a->locator[0]) + sum_of32(a->locator[1]) + a->adjustment + a->network + (__u16)~prefix;
}

/* Writes the first 96 bits of an address except the adjustment. */
static __always_inline void write_locator(struct translated_address *to, const struct address *locator, __u16 network)
{
	const struct translated_address *l = (const void *)locator;

	to->locator[0] = l->locator[0];
	to->locator[1] = l->locator[1];
	to->adjustment = l->adjustment; /* 0 for 64 bits */
	to->network = network;
}

/* Writes the first 96 bits of both addresses of a packet. network: in network order, with
 * TRANSLATED_IPV6 for IPv6. prefix: as in sum_of_difference(). */
static __always_inline void write_translated(struct ipv6hdr *h, const struct path *p, __u16 network, __u16 prefix)
{
	struct translated_address *from = (void *)&h->saddr, *to = (void *)&h->daddr;
	__u16 adjustment;

	write_locator(from, &p->source, p->locators == LOCATORS_80_ADJUSTMENT ? 0 : network);
	write_locator(to, &p->destination, p->locators == LOCATORS_80_NETWORK ? 0 : network);
	if (p->locators == LOCATORS_64_64) {
		from->adjustment = ~sum16(sum_of_difference(from, prefix));
		to->adjustment = ~sum16(sum_of_difference(to, prefix));
		return;
	}
	adjustment = ~sum16(sum_of_difference(from, prefix) + sum_of_difference(to, prefix));
	if (p->locators == LOCATORS_64_80) {
		from->adjustment = adjustment;
		return;
	}
	if (p->locators == LOCATORS_80_64) {
		to->adjustment = adjustment;
		return;
	}
	if (!adjustment) /* the same number in one's complement; network 0 means the node */
		adjustment = 0xffff;
	if (p->locators == LOCATORS_80_ADJUSTMENT)
		from->network = adjustment;
	else
		to->network = adjustment;
}

/* Returns 1 if the adjustments of both addresses of a packet are right. */
static __always_inline int is_adjusted(const struct translated_address *from, const struct translated_address *to, __u16 prefix)
{
	return sum16(sum_of_difference(from, prefix) + sum_of_difference(to, prefix)) == 0xffff;
}

/* Returns the sum of the pseudo-header of an ICMPv6 message, which ICMPv4 does not have. */
static __always_inline __u16 pseudo_header(const struct iphdr *ip, __u32 length)
{
	return sum16(sum16(sum_of32(ip->saddr) + sum_of32(ip->daddr)) + bpf_htons(length) + bpf_htons(IPPROTO_ICMPV6));
}

static __always_inline int has_prefix(const struct in6_addr *a, const __be32 *prefix)
{
	return a->s6_addr32[0] == prefix[0] && a->s6_addr32[1] == prefix[1] && a->s6_addr32[2] == prefix[2];
}

/* Returns 1 for IPv6 packets of a VRF that can be translated. The underlay must not treat such
 * a packet as a control message. So it has no options and no routing header, and if it is
 * ICMPv6, it is an echo. */
static __noinline int is_translatable6(struct __sk_buff *skb, __u32 vrf, int jumbo)
{
	struct vrf *n = bpf_map_lookup_elem(&vrfs, &vrf);
	struct ipv6hdr ip;
	__u8 type;

	if (!n || bpf_skb_load_bytes(skb, L3_OFFSET, &ip, sizeof(ip)) || ip.hop_limit < TRANSLATED_TTL ||
	    !has_prefix(&ip.saddr, n->prefix6) || !has_prefix(&ip.daddr, n->prefix6))
		return 0;
	if (ip.nexthdr == IPPROTO_ICMPV6)
		return bpf_ntohs(ip.payload_len) >= sizeof(struct icmp6hdr) && !bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(ip), &type, sizeof(type)) &&
		       (type == ICMP6_ECHO || type == ICMP6_ECHO_REPLY);
	return jumbo || ip.nexthdr == IPPROTO_FRAGMENT || !is_extension(ip.nexthdr);
}

/* Returns 1 for IPv4 packets that routers may fragment, and that may be too large for a link
 * after translation. A superpacket above 64 KiB has the length 0. */
static __always_inline int is_large_without_df(const struct iphdr *ip)
{
	__u16 length = bpf_ntohs(ip->tot_len);

	return !(ip->frag_off & bpf_htons(IP_DF)) && (!length || length > TRANSLATED_WITHOUT_DF);
}

/* Returns 1 for packets that can be translated without loss. IPv4 packets: without options
 * and whole, small or with DF, and TCP, UDP with a checksum, or an ICMP echo. jumbo: the packet
 * has a jumbo header, which the kernel removes when it cuts the packet. The helpers of the
 * kernel use skb->protocol, which a packet socket of a netkit device can set to another family. */
__noinline int is_translatable(struct __sk_buff *skb, __u8 family, __u32 vrf, int jumbo)
{
	struct iphdr ip;
	__be16 checksum;
	__u8 type;

	if (skb->protocol != protocol_of(family))
		return 0;
	if (family == FAMILY_IPV6)
		return is_translatable6(skb, vrf, jumbo);
	if (bpf_skb_load_bytes(skb, L3_OFFSET, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl != 5 ||
	    ip.frag_off & bpf_htons(IP_MF | IP_OFFSET) || ip.ttl < TRANSLATED_TTL || is_large_without_df(&ip) ||
	    !has_transport(ip.tot_len, sizeof(ip), ip.protocol))
		return 0;
	if (ip.protocol == IPPROTO_TCP)
		return 1;
	if (ip.protocol == IPPROTO_UDP) /* the kernel refuses to translate trains of datagrams */
		return !skb->gso_size && !bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(ip) + 6, &checksum, sizeof(checksum)) && checksum;
	return ip.protocol == IPPROTO_ICMP && !bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(ip), &type, sizeof(type)) &&
	       (type == ICMP_ECHO || type == ICMP_ECHOREPLY);
}

/* Returns the reason why is_translatable() returned 0. It is a separate function, so that packets
 * that can be translated take no further instruction. */
static __always_inline __u32 untranslatable(struct __sk_buff *skb, __u8 family, int jumbo)
{
	struct ipv6hdr ip6;
	struct iphdr ip;
	__u8 type = 0;

	if (skb->protocol != protocol_of(family))
		return FALLBACK_PROTOCOL;
	if (family == FAMILY_IPV6) {
		if (bpf_skb_load_bytes(skb, L3_OFFSET, &ip6, sizeof(ip6)))
			return FALLBACK_PREFIX;
		if (ip6.hop_limit < TRANSLATED_TTL)
			return FALLBACK_LOW_TTL;
		if (ip6.nexthdr == IPPROTO_ICMPV6) {
			bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(ip6), &type, sizeof(type));
			return type == ICMP6_ECHO || type == ICMP6_ECHO_REPLY ? FALLBACK_PREFIX : FALLBACK_ICMP;
		}
		return !jumbo && ip6.nexthdr != IPPROTO_FRAGMENT && is_extension(ip6.nexthdr) ?
			       FALLBACK_EXTENSION_HEADER : FALLBACK_PREFIX;
	}
	if (bpf_skb_load_bytes(skb, L3_OFFSET, &ip, sizeof(ip)))
		return FALLBACK_PROTOCOL;
	if (ip.ihl != 5)
		return FALLBACK_IP_OPTIONS;
	if (ip.frag_off & bpf_htons(IP_MF | IP_OFFSET))
		return FALLBACK_FRAGMENT;
	if (ip.ttl < TRANSLATED_TTL)
		return FALLBACK_LOW_TTL;
	if (is_large_without_df(&ip))
		return FALLBACK_WITHOUT_DF;
	if (ip.protocol == IPPROTO_UDP)
		return skb->gso_size ? FALLBACK_UDP_SEGMENTS : FALLBACK_NO_CHECKSUM;
	return ip.protocol == IPPROTO_ICMP ? FALLBACK_ICMP : FALLBACK_PROTOCOL;
}

/* Counts a packet for which is_translatable() returned 0. */
__noinline int count_untranslatable(struct __sk_buff *skb, __u8 family, __u32 vrf, int jumbo)
{
	count_fallback(skb, vrf, untranslatable(skb, family, jumbo));
	return 0;
}

/* Changes the type and checksum of an ICMP echo behind a header of `header` bytes. pseudo:
 * pseudo_header(), or its complement to remove it from the checksum. */
static __always_inline int change_echo(struct __sk_buff *skb, __u32 header, __u8 old, __u8 type, __u16 pseudo)
{
	__u32 checksum = L3_OFFSET + header + 2;

	return bpf_l4_csum_replace(skb, checksum, bpf_htons(old << 8), bpf_htons(type << 8), 2) ||
	       bpf_l4_csum_replace(skb, checksum, 0, pseudo, BPF_F_PSEUDO_HDR) ||
	       bpf_skb_store_bytes(skb, L3_OFFSET + header, &type, sizeof(type), 0);
}

/* Makes room for an IPv6 header in front of the payload of an IPv4 packet. Writes the fields
 * of this header to *h, except the flow label and the first 96 bits of the addresses. */
static __always_inline int to_ip6(struct __sk_buff *skb, struct ipv6hdr *h)
{
	struct iphdr ip;
	__u32 length;
	__u8 type;

	if (bpf_skb_load_bytes(skb, L3_OFFSET, &ip, sizeof(ip)))
		return -DROP_MALFORMED;
	/* Frames that are not superpackets may have padding. */
	length = (skb->gso_size ? skb->len - ETH_HLEN : bpf_ntohs(ip.tot_len)) - sizeof(ip);
	if (ip.protocol == IPPROTO_ICMP) {
		if (bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(ip), &type, sizeof(type)))
			return -DROP_MALFORMED;
		if (change_echo(skb, sizeof(ip), type, type == ICMP_ECHO ? ICMP6_ECHO : ICMP6_ECHO_REPLY,
				pseudo_header(&ip, length)))
			return -DROP_ENCAP_FAILED;
		ip.protocol = IPPROTO_ICMPV6;
	}
	if (bpf_skb_change_proto(skb, bpf_htons(ETH_P_IPV6), 0))
		return -DROP_ENCAP_FAILED;
	*(__be32 *)h = bpf_htonl(6u << 28 | (__u32)ip.tos << 20);
	h->payload_len = length_field(length);
	h->nexthdr = ip.protocol;
	h->hop_limit = ip.ttl;
	h->saddr.s6_addr32[3] = ip.saddr;
	h->daddr.s6_addr32[3] = ip.daddr;
	return GO_ON;
}

/* Sends a packet for which is_translatable() returned 1. network: number of the VRF.
 * Returns a tc action, or a negative drop reason. */
static __noinline int send_translated(struct __sk_buff *skb, __u32 id, __u32 network, __u32 hash)
{
	struct nexthop *nh = nexthop_of(id);
	const struct path *p;
	struct ipv6hdr h;
	__u16 prefix = 0;

	if (!nh)
		return -DROP_NO_NEXTHOP;
	p = choose_path(nh, hash);
	if (!p)
		return -DROP_PATH_DOWN;
	trace(TRACE_ENCAP, nh->vrf, nh->encap, network, 1);
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct vrf *n = bpf_map_lookup_elem(&vrfs, &network);

		if (!n || bpf_skb_load_bytes(skb, L3_OFFSET, &h, sizeof(h)))
			return -DROP_MALFORMED;
		network |= TRANSLATED_IPV6;
		prefix = sum_of_prefix(n->prefix6);
	} else {
		int verdict = to_ip6(skb, &h);

		if (verdict != GO_ON)
			return verdict;
	}
	*(__be32 *)&h = (*(__be32 *)&h & bpf_htonl(0xfff00000)) | bpf_htonl(cookie_label(p, hash));
	h.hop_limit--;
	write_translated(&h, p, bpf_htons(network), prefix);
	trace6(TRACE_TRANSLATED, nh->vrf, (void *)&h.saddr, id, 0, 1);
	trace6(TRACE_TRANSLATED, nh->vrf, (void *)&h.daddr, id, 1, 1);
	if (bpf_skb_store_bytes(skb, L3_OFFSET, &h, sizeof(h), 0))
		return -DROP_ENCAP_FAILED;
	return send_to_neighbour(skb, p);
}

/* Returns 1 for packets to an address of this node's locator. */
static __always_inline int is_to_locator(const struct node_settings *s, const struct ethhdr *eth, void *end)
{
	const struct ipv6hdr *ip = (void *)(eth + 1);

	return (void *)(ip + 1) <= end && eth->h_proto == bpf_htons(ETH_P_IPV6) && is_in_own_locator(s, (void *)&ip->daddr);
}

/* Returns 1 for packets to a workload's address. eth: of a packet for which
 * is_to_locator() returned 1. Network 0 has the node's own address, to which other nodes
 * send tests. */
static __always_inline int is_translated(const struct ethhdr *eth)
{
	const struct ipv6hdr *ip = (void *)(eth + 1);

	return !!((const struct translated_address *)&ip->daddr)->network;
}

/* A test of the way to a locator: an ICMPv6 echo; vrouter/direct/echo.go writes it. */
#define ECHO_ID 0x7664
struct locator_test {
	struct ipv6hdr ip;
	struct icmp6hdr icmp;
	__u8 magic[16];
	__be16 kind; /* TEST_REQUEST or TEST_REPLY; the kernel's own reply still has TEST_REQUEST */
} __attribute__((packed));

/* Answers a test to the node's own address in its locator, even if no agent runs on this
 * node. It does not answer nodes whose translated packets this node would refuse. Returns the
 * verdict, or GO_ON for other packets. */
static __noinline int answer_locator(struct __sk_buff *skb)
{
	struct outer o = { .encap = ENCAP_TRANSLATED };
	struct locator_test t;
	struct node_settings *s;
	struct in6_addr source;
	struct ethhdr eth;
	__u32 checksum = L3_OFFSET + sizeof(t.ip) + 2;
	__u8 type = ICMP6_ECHO_REPLY, hops = 64;
	__be16 kind = bpf_htons(TEST_REPLY);

	s = the_settings();
	if (!s || bpf_skb_load_bytes(skb, 0, &eth, sizeof(eth)) || bpf_skb_load_bytes(skb, L3_OFFSET, &t, sizeof(t)) ||
	    t.ip.nexthdr != IPPROTO_ICMPV6 || bpf_ntohs(t.ip.payload_len) < sizeof(t) - sizeof(t.ip) || t.icmp.icmp6_type != ICMP6_ECHO ||
	    t.icmp.icmp6_identifier != bpf_htons(ECHO_ID) || t.kind != bpf_htons(TEST_REQUEST))
		return GO_ON;
	if (admit_sender(s, &o, node_with_locator((void *)&t.ip.saddr, &o.source)) != GO_ON)
		return GO_ON;
	source = t.ip.saddr;
	if (bpf_l4_csum_replace(skb, checksum, bpf_htons(ICMP6_ECHO << 8), bpf_htons(ICMP6_ECHO_REPLY << 8), 2) ||
	    bpf_l4_csum_replace(skb, checksum, bpf_htons(TEST_REQUEST), bpf_htons(TEST_REPLY), 2) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + sizeof(t.ip), &type, sizeof(type), 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct locator_test, kind), &kind, sizeof(kind), 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, hop_limit), &hops, sizeof(hops), 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, saddr), &t.ip.daddr, 16, 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, daddr), &source, 16, 0) ||
	    bpf_skb_store_bytes(skb, 0, eth.h_source, ETH_ALEN, 0) ||
	    bpf_skb_store_bytes(skb, ETH_ALEN, eth.h_dest, ETH_ALEN, 0))
		return -DROP_MALFORMED;
	return WENT(bpf_redirect(skb->ifindex, 0), OUT_ANSWERED);
}

/* Returns 1 for ICMPv6 errors. Routers of the underlay send them to the source of a
 * translated packet. eth: of a packet for which is_to_locator() returned 1. */
static __always_inline int is_icmp6_error(const struct ethhdr *eth, void *end)
{
	const struct ipv6hdr *ip = (void *)(eth + 1);
	const __u8 *type = (void *)(ip + 1);

	return (void *)(type + 1) <= end && ip->nexthdr == IPPROTO_ICMPV6 && *type < ICMP6_INFORMATION;
}

/* Changes the IPv6 header in hand into IPv4. */
static __noinline int to_ip4(struct __sk_buff *skb, const struct ipv6hdr *h)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .frag_off = bpf_htons(IP_DF) };
	__u32 length, sum;
	long err;

	if (!h)
		return -DROP_BAD_INNER;
	length = bpf_ntohs(h->payload_len);
	ip.tot_len = bpf_htons(length + sizeof(ip));
	ip.tos = tos6(h);
	ip.ttl = h->hop_limit;
	ip.protocol = h->nexthdr;
	ip.saddr = h->saddr.s6_addr32[3];
	ip.daddr = h->daddr.s6_addr32[3];
	if (h->nexthdr == IPPROTO_ICMPV6) {
		__u8 type, type4;

		if (bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(*h), &type, sizeof(type)) ||
		    (type != ICMP6_ECHO && type != ICMP6_ECHO_REPLY))
			return -DROP_UNTRANSLATABLE;
		type4 = type == ICMP6_ECHO ? ICMP_ECHO : ICMP_ECHOREPLY;
		ip.protocol = IPPROTO_ICMP;
		if (change_echo(skb, sizeof(*h), type, type4, ~pseudo_header(&ip, length)))
			return -DROP_DECAP_FAILED;
	}
	sum = bpf_htons(0x4500 | ip.tos) + ip.tot_len + ip.frag_off + bpf_htons(ip.ttl << 8 | ip.protocol) +
	      sum_of32(ip.saddr) + sum_of32(ip.daddr);
	ip.check = ~sum16(sum);
	/* bpf_skb_change_proto refuses trains of datagrams. */
	if (skb->gso_size && h->nexthdr == IPPROTO_UDP)
		err = bpf_skb_adjust_room(skb, (int)sizeof(ip) - (int)sizeof(*h), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO | ADJ_ROOM_DECAP_L3_IPV4);
	else
		err = bpf_skb_change_proto(skb, bpf_htons(ETH_P_IP), 0);
	if (err || bpf_skb_store_bytes(skb, L3_OFFSET, &ip, sizeof(ip), BPF_F_RECOMPUTE_CSUM))
		return -DROP_DECAP_FAILED;
	return GO_ON;
}

/* Writes the addresses of workloads into an IPv6 packet. h: the header in hand. The flow
 * label becomes 0, because a workload must not learn the sender's cookie. */
static __always_inline int to_inner_ip6(struct __sk_buff *skb, struct ipv6hdr *h, const __be32 *prefix)
{
	*(__be32 *)h &= bpf_htonl(0xfff00000);
	__builtin_memcpy(&h->saddr, prefix, 12);
	__builtin_memcpy(&h->daddr, prefix, 12);
	return bpf_skb_store_bytes(skb, L3_OFFSET, h, sizeof(*h), BPF_F_RECOMPUTE_CSUM) ? -DROP_DECAP_FAILED : GO_ON;
}

/* Returns the field with the network. from_node: the node with the source address; 0: it is
 * unknown. The result is 0 if the fields of the two addresses contradict each other. */
static __always_inline __u16 network_of(const struct translated_address *from, const struct translated_address *to,
					const struct remote *from_node)
{
	if (from_node && from_node->locators == LOCATORS_80_ADJUSTMENT)
		return from->network;
	return (from_node && from_node->locators == LOCATORS_80_NETWORK) || from->network == to->network ? to->network : 0;
}

/* Reads a packet for which is_translated() returned 1 into *a, and changes it to the
 * workload's packet. The source must have the same network, and the locator of a node that
 * may send translated packets. Returns GO_ON, or a negative drop reason. */
static __noinline int read_translated(struct __sk_buff *skb, struct arrival *a)
{
	struct outer o = { .encap = ENCAP_TRANSLATED };
	const struct translated_address *from, *to;
	struct node_settings *s;
	struct ipv6hdr h;
	__u32 vrf, length;
	struct vrf *n = 0;
	__u16 prefix = 0, network;
	const struct remote *sender;
	int verdict, v6;

	s = the_settings();
	if (!a || !s || bpf_skb_load_bytes(skb, L3_OFFSET, &h, sizeof(h)))
		return -DROP_BAD_INNER;
	from = (void *)&h.saddr;
	to = (void *)&h.daddr;
	sender = node_with_locator(from, &o.source);
	network = bpf_ntohs(network_of(from, to, sender));
	if (!network)
		return -DROP_UNKNOWN_SOURCE;
	verdict = admit_sender(s, &o, sender);
	if (verdict != GO_ON)
		return verdict;
	vrf = network & ~TRANSLATED_IPV6;
	v6 = network & TRANSLATED_IPV6;
	verdict = enter_network(&o, vrf, v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP), a);
	if (verdict != GO_ON)
		return verdict;
	if (!h.hop_limit)
		return -DROP_OUTER_TTL;
	length = bpf_ntohs(h.payload_len);
	if (!skb->gso_size && length + ETH_HLEN + sizeof(h) > skb->len)
		return -DROP_OUTER_LENGTH;
	if (v6) {
		n = bpf_map_lookup_elem(&vrfs, &vrf);
		if (!n)
			return -DROP_UNKNOWN_LABEL;
		prefix = sum_of_prefix(n->prefix6);
	}
	if (!is_adjusted(from, to, prefix))
		return -DROP_UNTRANSLATABLE;
	if (n)
		return to_inner_ip6(skb, &h, n->prefix6);
	if (length < 8 || length > 65535 - sizeof(struct iphdr))
		return -DROP_OUTER_LENGTH;
	if (h.nexthdr != IPPROTO_TCP && h.nexthdr != IPPROTO_UDP && h.nexthdr != IPPROTO_ICMPV6)
		return -DROP_UNTRANSLATABLE;
	return to_ip4(skb, &h);
}
