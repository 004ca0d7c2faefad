/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ICMP from the gateway's address: answers to ping, and errors (RFC 792, 1122,
 * 1191, 1812; RFC 4443, 8201 for IPv6). A network that only bridges has no gateway. There the
 * source of "too big" is the destination of the packet, because senders of TCP wait for it. */
#pragma once

#include "agent.h"
#include "arp.h"
#include "bucket.h"
#include "count.h"
#include "sum.h"
#include "verdict.h"

enum icmp_cause { CAUSE_TTL, CAUSE_TOO_BIG, CAUSE_NO_ROUTE, CAUSE_NO_PORT };

#define ANSWER_TTL 64
#define IP_MOST 60     /* the longest IPv4 header */
#define ICMP_QUOTED 8  /* bytes of the payload that an error quotes */
#define ICMPV6_ECHO_ASKED 128
#define ICMPV6_ECHO_ANSWERED 129

/* Errors to one vif: so many a second, so many at once. */
#define ERROR_INTERVAL_NS 1000000ull
#define ERROR_BURST 100

MAP(icmp_buckets, BPF_MAP_TYPE_ARRAY, __u32 /* vif id */, struct bucket, 4353);

static __always_inline int within_rate(__u32 vif)
{
	struct bucket *b = bpf_map_lookup_elem(&icmp_buckets, &vif);

	return tracing || (b && take_tokens(b, ERROR_INTERVAL_NS, ERROR_BURST * ERROR_INTERVAL_NS));
}

/* Sends the frame back to the workload that it came from. */
static __always_inline int send_back(struct __sk_buff *skb, const struct vif *v, __be16 protocol)
{
	struct ethhdr eth;

	__builtin_memcpy(eth.h_dest, v->mac, 6);
	__builtin_memcpy(eth.h_source, v->router_mac, 6);
	eth.h_proto = protocol;
	if (bpf_skb_store_bytes(skb, 0, &eth, sizeof(eth), 0))
		return -DROP_ICMP_FAILED;
	return bpf_redirect(skb->ifindex, 0);
}

struct error4 {
	struct iphdr ip;
	struct icmphdr icmp;
	__u8 quote[IP_MOST + ICMP_QUOTED];
};

#define SHORT_QUOTE (sizeof(struct iphdr) + ICMP_QUOTED)
#define SHORT_ERROR4 (sizeof(struct error4) - IP_MOST - ICMP_QUOTED + SHORT_QUOTE)

static __always_inline int may_answer4(struct __sk_buff *skb, const struct iphdr *ip)
{
	__u8 type;

	if (ip->frag_off & bpf_htons(IP_OFFSET) || (bpf_ntohl(ip->daddr) >> 28) == 14 ||
	    ip->daddr == 0xffffffff || !ip->saddr)
		return 0;
	if (ip->protocol != IPPROTO_ICMP)
		return 1;
	if (bpf_skb_load_bytes(skb, L3_OFFSET + ip->ihl * 4, &type, 1))
		return 0;
	return type == ICMP_ECHO || type == ICMP_ECHOREPLY;
}

static __always_inline void fill_error4(struct error4 *e, int cause, __u32 mtu)
{
	switch (cause) {
	case CAUSE_TTL:
		e->icmp.type = ICMP_TIME_EXCEEDED;
		break;
	case CAUSE_TOO_BIG:
		e->icmp.type = ICMP_DEST_UNREACH;
		e->icmp.code = ICMP_FRAG_NEEDED;
		e->icmp.un.frag.mtu = bpf_htons(mtu);
		break;
	case CAUSE_NO_ROUTE:
		e->icmp.type = ICMP_DEST_UNREACH;
		e->icmp.code = 1; /* host unreachable */
		break;
	default:
		e->icmp.type = ICMP_DEST_UNREACH;
		e->icmp.code = 3; /* port unreachable */
	}
}

/* Global function, as icmp_error6(): the verifier checks it once. */
__noinline int icmp_error4(struct __sk_buff *skb, const struct vif *v, int cause, __u32 mtu)
{
	struct error4 e __attribute__((aligned(8))) = {};
	struct iphdr *cause_ip = (void *)e.quote;
	int whole;

	if (!v || (!v->gateway4 && cause != CAUSE_TOO_BIG) || bpf_skb_load_bytes(skb, L3_OFFSET, e.quote, SHORT_QUOTE))
		return -DROP_ICMP_FAILED;
	if (!may_answer4(skb, cause_ip))
		return -DROP_ICMP_FAILED;
	if (!within_rate(v->id))
		return -DROP_ICMP_LIMITED;
	/* Only a header with options needs the longer quote. */
	whole = cause_ip->ihl > 5 && !bpf_skb_load_bytes(skb, L3_OFFSET, e.quote, sizeof(e.quote));
	e.ip.version = 4;
	e.ip.ihl = 5;
	e.ip.tos = 0xc0; /* internetwork control (RFC 1812, section 4.3.2.5) */
	e.ip.tot_len = bpf_htons(whole ? sizeof(e) : SHORT_ERROR4);
	e.ip.ttl = ANSWER_TTL;
	e.ip.protocol = IPPROTO_ICMP;
	e.ip.saddr = v->gateway4 ? : cause_ip->daddr;
	e.ip.daddr = cause_ip->saddr;
	e.ip.check = ~folded(SUM(&e.ip, sizeof(e.ip)));
	fill_error4(&e, cause, mtu);
	if (whole) {
		e.icmp.checksum = ~folded(SUM(&e.icmp, sizeof(e.icmp) + sizeof(e.quote)));
		if (bpf_skb_change_tail(skb, ETH_HLEN + sizeof(e), 0) ||
		    bpf_skb_store_bytes(skb, L3_OFFSET, &e, sizeof(e), 0))
			return -DROP_ICMP_FAILED;
	} else {
		e.icmp.checksum = ~folded(SUM(&e.icmp, sizeof(e.icmp) + SHORT_QUOTE));
		if (bpf_skb_change_tail(skb, ETH_HLEN + SHORT_ERROR4, 0) ||
		    bpf_skb_store_bytes(skb, L3_OFFSET, &e, SHORT_ERROR4, 0))
			return -DROP_ICMP_FAILED;
	}
	return send_back(skb, v, bpf_htons(ETH_P_IP));
}

struct error6 {
	struct ipv6hdr ip;
	__u8 type;
	__u8 code;
	__be16 checksum;
	__be32 value;
	__u8 quote[sizeof(struct ipv6hdr) + ICMP_QUOTED];
};

static __always_inline int may_answer6(struct __sk_buff *skb, const struct ipv6hdr *ip, int cause)
{
	__u8 type;

	/* Only "packet too big" may answer a packet to a group. */
	if (ip->daddr.s6_addr[0] == 0xff && cause != CAUSE_TOO_BIG)
		return 0;
	if (ip->nexthdr != IPPROTO_ICMPV6)
		return 1;
	return !bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(*ip), &type, 1) && type & 0x80;
}

__noinline int icmp_error6(struct __sk_buff *skb, const struct vif *v, int cause, __u32 mtu)
{
	struct error6 e __attribute__((aligned(8))) = {};
	struct ipv6hdr *cause_ip = (void *)e.quote;
	struct address none = {};
	int gateway = v && !same_address(&v->gateway6, &none);

	if (!v || bpf_skb_load_bytes(skb, L3_OFFSET, e.quote, sizeof(e.quote)) ||
	    (!gateway && (cause != CAUSE_TOO_BIG || cause_ip->daddr.s6_addr[0] == 0xff)))
		return -DROP_ICMP_FAILED;
	if (!may_answer6(skb, cause_ip, cause))
		return -DROP_ICMP_FAILED;
	if (!within_rate(v->id))
		return -DROP_ICMP_LIMITED;
	e.ip.version = 6;
	e.ip.payload_len = bpf_htons(sizeof(e) - sizeof(e.ip));
	e.ip.nexthdr = IPPROTO_ICMPV6;
	e.ip.hop_limit = ANSWER_TTL;
	__builtin_memcpy(&e.ip.saddr, gateway ? (const void *)&v->gateway6 : &cause_ip->daddr, 16);
	__builtin_memcpy(&e.ip.daddr, &cause_ip->saddr, 16);
	switch (cause) {
	case CAUSE_TTL:
		e.type = 3;
		break;
	case CAUSE_TOO_BIG:
		e.type = 2;
		e.value = bpf_htonl(mtu);
		break;
	case CAUSE_NO_ROUTE:
		e.type = 1; /* code 0: no route */
		break;
	default:
		e.type = 1;
		e.code = 4; /* port unreachable */
	}
	e.checksum = ~folded(SUM(&e.ip.saddr, 32) + SUM(&e.type, sizeof(e) - sizeof(e.ip)) +
			     e.ip.payload_len + bpf_htons(IPPROTO_ICMPV6));
	if (bpf_skb_change_tail(skb, ETH_HLEN + sizeof(e), 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET, &e, sizeof(e), 0))
		return -DROP_ICMP_FAILED;
	return send_back(skb, v, bpf_htons(ETH_P_IPV6));
}

/* Tells the sender why its packet cannot go on; mtu: for CAUSE_TOO_BIG, the
 * largest inner IP packet. */
static __always_inline int icmp_error(struct __sk_buff *skb, const struct vif *v, int cause, __u32 mtu)
{
	__u8 version;

	if (bpf_skb_load_bytes(skb, L3_OFFSET, &version, 1))
		return -DROP_ICMP_FAILED;
	return version >> 4 == 6 ? icmp_error6(skb, v, cause, mtu) : icmp_error4(skb, v, cause, mtu);
}

/* Swaps the addresses, so that sums over them stay right. */
static __noinline int echo4(struct __sk_buff *skb, const struct vif *v)
{
	__be16 old, new;
	struct iphdr ip;
	__be32 asked;
	__u8 type;

	if (!v || bpf_skb_load_bytes(skb, L3_OFFSET, &ip, sizeof(ip)))
		return -DROP_MALFORMED;
	if (v->flags & VIF_F_AGENT && leave_to_agent(skb))
		return TC_ACT_OK;
	if (ip.protocol != IPPROTO_ICMP)
		return icmp_error4(skb, v, CAUSE_NO_PORT, 0);
	/* A later fragment has no ICMP header: its addresses alone are swapped. */
	if (!(ip.frag_off & bpf_htons(IP_OFFSET))) {
		__u32 at = L3_OFFSET + ip.ihl * 4;

		if (bpf_ntohs(ip.tot_len) < ip.ihl * 4 + sizeof(struct icmphdr) || bpf_skb_load_bytes(skb, at, &type, 1) ||
		    type != ICMP_ECHO)
			return -DROP_ICMP_FAILED;
		type = ICMP_ECHOREPLY;
		if (bpf_l4_csum_replace(skb, at + (__u32)offsetof(struct icmphdr, checksum), bpf_htons(ICMP_ECHO << 8), bpf_htons(ICMP_ECHOREPLY << 8), 2) ||
		    bpf_skb_store_bytes(skb, at, &type, 1, 0))
			return -DROP_ICMP_FAILED;
	}
	old = *(__be16 *)&ip.ttl;
	ip.ttl = ANSWER_TTL;
	new = *(__be16 *)&ip.ttl;
	asked = ip.daddr;
	ip.daddr = ip.saddr;
	ip.saddr = asked;
	if (bpf_l3_csum_replace(skb, L3_OFFSET + offsetof(struct iphdr, check), old, new, 2) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct iphdr, ttl), &ip.ttl, 1, 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct iphdr, saddr), &ip.saddr, 8, 0))
		return -DROP_ICMP_FAILED;
	return send_back(skb, v, bpf_htons(ETH_P_IP));
}

static __noinline int echo6(struct __sk_buff *skb, const struct vif *v)
{
	struct ipv6hdr ip __attribute__((aligned(8)));
	struct address asked;
	__u8 type, limit = ANSWER_TTL;

	if (!v || bpf_skb_load_bytes(skb, L3_OFFSET, &ip, sizeof(ip)))
		return -DROP_MALFORMED;
	if (v->flags & VIF_F_AGENT && leave_to_agent(skb))
		return TC_ACT_OK;
	if (ip.nexthdr != IPPROTO_ICMPV6)
		return icmp_error6(skb, v, CAUSE_NO_PORT, 0);
	if (bpf_ntohs(ip.payload_len) < sizeof(struct icmp6hdr) || bpf_skb_load_bytes(skb, L3_OFFSET + sizeof(ip), &type, 1) ||
	    type != ICMPV6_ECHO_ASKED)
		return -DROP_ICMP_FAILED;
	type = ICMPV6_ECHO_ANSWERED;
	__builtin_memcpy(&asked, &ip.daddr, 16);
	if (bpf_l4_csum_replace(skb, L3_OFFSET + sizeof(ip) + offsetof(struct icmp6hdr, icmp6_cksum), bpf_htons(ICMPV6_ECHO_ASKED << 8),
				bpf_htons(ICMPV6_ECHO_ANSWERED << 8), 2) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + sizeof(ip), &type, 1, 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, hop_limit), &limit, 1, 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, saddr), &asked, 16, 0) ||
	    bpf_skb_store_bytes(skb, L3_OFFSET + offsetof(struct ipv6hdr, daddr), &ip.saddr, 16, 0))
		return -DROP_ICMP_FAILED;
	return send_back(skb, v, bpf_htons(ETH_P_IPV6));
}

/* A packet to the router's address: ping gets an answer, and the agent answers DHCP and DNS. Other packets
 * get an error. */
static __always_inline int answer_echo(struct __sk_buff *skb, const struct vif *v)
{
	__u8 version;

	if (bpf_skb_load_bytes(skb, L3_OFFSET, &version, 1))
		return -DROP_MALFORMED;
	trace(TRACE_ANSWER, v->vrf, 0, 0, 1);
	return version >> 4 == 6 ? echo6(skb, v) : echo4(skb, v);
}
