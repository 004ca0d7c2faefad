/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Neighbour discovery (RFC 4861): ARP's rules, for IPv6. */
#pragma once

#include "count.h"
#include "route.h"
#include "source.h"
#include "sum.h"
#include "verdict.h"

#define ND_ROUTER_SOLICITATION 133
#define ND_ROUTER_ADVERTISEMENT 134
#define ND_NEIGHBOUR_SOLICITATION 135
#define ND_NEIGHBOUR_ADVERTISEMENT 136
#define ND_REDIRECT 137
#define ND_TARGET_LINK_LAYER 2
#define ND_ROUTER 0x80
#define ND_SOLICITED 0x40
#define ND_OVERRIDE 0x20

struct solicitation {
	struct ipv6hdr ip;
	__u8 type;
	__u8 code;
	__be16 checksum;
	__u8 flags;
	__u8 reserved[3];
	struct address target;
} __attribute__((packed));

struct advertisement {
	struct ethhdr eth;
	struct solicitation body;
	__u8 option;
	__u8 option_length; /* in units of 8 bytes */
	__u8 mac[6];
} __attribute__((packed));

/* The router's link-local address, by its MAC (RFC 4291, appendix A). */
static __always_inline int is_router_link_local(const struct vif *v, const __u8 *a)
{
	const __u8 *m = v->router_mac;

	return a[0] == 0xfe && a[1] == 0x80 && !(a[2] | a[3] | a[4] | a[5] | a[6] | a[7]) &&
	       a[8] == (m[0] ^ 2) && a[9] == m[1] && a[10] == m[2] && a[11] == 0xff &&
	       a[12] == 0xfe && a[13] == m[3] && a[14] == m[4] && a[15] == m[5];
}

/* ICMPv6's checksum over an advertisement with its option: 32 bytes. */
static __always_inline __u16 advertisement_sum(const struct advertisement *a)
{
	__u64 sum = SUM(&a->body.ip.saddr, 32) + SUM(&a->body.type, 32);

	return ~folded(sum + bpf_htons(32) + bpf_htons(IPPROTO_ICMPV6));
}

/* Writes the advertisement for a solicitation. at: offset of its Ethernet header. The frame must
 * have room. Returns 0 if that succeeds. */
static __always_inline long write_advertisement(struct __sk_buff *skb, __u32 at, const __u8 *to, const struct solicitation *s,
						const __u8 *mac, int router)
{
	struct advertisement a __attribute__((aligned(8))) = {};

	__builtin_memcpy(a.eth.h_dest, to, 6);
	__builtin_memcpy(a.eth.h_source, mac, 6);
	a.eth.h_proto = bpf_htons(ETH_P_IPV6);
	a.body.ip.version = 6;
	a.body.ip.payload_len = bpf_htons(32);
	a.body.ip.nexthdr = IPPROTO_ICMPV6;
	a.body.ip.hop_limit = 255;
	__builtin_memcpy(&a.body.ip.saddr, &s->target, 16);
	__builtin_memcpy(&a.body.ip.daddr, &s->ip.saddr, 16);
	a.body.type = ND_NEIGHBOUR_ADVERTISEMENT;
	a.body.flags = ND_SOLICITED | ND_OVERRIDE | (router ? ND_ROUTER : 0);
	a.body.target = s->target;
	a.option = ND_TARGET_LINK_LAYER;
	a.option_length = 1;
	__builtin_memcpy(a.mac, mac, 6);
	a.body.checksum = advertisement_sum(&a);
	return bpf_skb_store_bytes(skb, at, &a, sizeof(a), 0);
}

static __always_inline int send_advertisement(struct __sk_buff *skb, const struct vif *v,
					      const struct solicitation *s, const __u8 *mac, int router)
{
	if (bpf_skb_change_tail(skb, sizeof(struct advertisement), 0) || write_advertisement(skb, 0, v->mac, s, mac, router))
		return -DROP_ICMP_FAILED;
	return bpf_redirect(skb->ifindex, 0);
}

/* Returns 1 if a workload may send a neighbour advertisement for an address. These
 * are the workload's addresses, and each link-local address except the router's: the tables
 * do not have the workloads' link-local addresses. */
static __always_inline int may_advertise(const struct vif *v, const struct address *target)
{
	return may_send6(v, target) || (is_link_local6((const void *)target) && !is_router_link_local(v, target->bytes));
}

/*
 * Solicitations for addresses with a route are answered; duplicate address
 * detection (from ::) and questions for own addresses are not. Routers are not
 * advertised: a workload has its addresses and routes from its agent.
 */
static __noinline int answer_nd(struct __sk_buff *skb, const struct vif *v)
{
	struct solicitation s __attribute__((aligned(8)));
	int l2, link_local;
	struct route *r;

	if (!v || bpf_skb_load_bytes(skb, L3_OFFSET, &s, sizeof(s.ip) + 4))
		return -DROP_MALFORMED;
	l2 = v->flags & VIF_F_L2;
	if (s.ip.hop_limit != 255 || bpf_ntohs(s.ip.payload_len) < 8)
		return -DROP_MALFORMED;
	if ((s.type == ND_ROUTER_ADVERTISEMENT || s.type == ND_REDIRECT) && !(v->flags & VIF_F_ROUTER))
		return -DROP_ROGUE_ROUTER;
	if (s.type != ND_NEIGHBOUR_SOLICITATION && s.type != ND_NEIGHBOUR_ADVERTISEMENT)
		return l2 ? GO_ON : -DROP_LINK_LOCAL;
	if (bpf_skb_load_bytes(skb, L3_OFFSET, &s, sizeof(s)) || bpf_ntohs(s.ip.payload_len) < sizeof(s) - sizeof(s.ip))
		return -DROP_MALFORMED;
	if (s.type == ND_NEIGHBOUR_ADVERTISEMENT)
		return !may_advertise(v, &s.target) ? -DROP_SPOOFED_IP : l2 ? GO_ON : -DROP_LINK_LOCAL;
	if (is_unspecified6(&s.ip.saddr) || owns6(v, &s.target, 0))
		return l2 ? GO_ON : -DROP_ARP_UNKNOWN;
	link_local = is_router_link_local(v, s.target.bytes);
	r = link_local ? 0 : route6(v->vrf, &s.target);
	if (r && r->nexthop == v->nexthop) /* the route leads back to this workload */
		return l2 ? GO_ON : -DROP_ARP_UNKNOWN;
	if (link_local || (r && !l2) || (r && same_address(&s.target, &v->gateway6))) {
		trace(TRACE_ANSWER, v->vrf, 0, 0, 1);
		return send_advertisement(skb, v, &s, v->router_mac, 1);
	}
	if (r && r->flags & ROUTE_F_MAC) {
		trace(TRACE_ANSWER, v->vrf, 0, 0, 1);
		return send_advertisement(skb, v, &s, r->mac, 0);
	}
	trace(TRACE_ANSWER, v->vrf, 0, 0, 0);
	return l2 ? GO_ON : -DROP_ARP_UNKNOWN;
}
