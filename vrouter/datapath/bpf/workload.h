/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A packet from a workload: check its source and its policy, and find its route. */
#pragma once

#include "agent.h"
#include "arp.h"
#include "count.h"
#include "deliver.h"
#include "direct.h"
#include "encap.h"
#include "flood.h"
#include "flow.h"
#include "icmp.h"
#include "jumbo.h"
#include "mss.h"
#include "nd.h"
#include "nexthop.h"
#include "pmtu.h"
#include "route.h"
#include "service.h"
#include "source.h"
#include "translate.h"

/* Headers that judge() reads directly. */
#define INNER_MOST (ETH_HLEN + sizeof(struct ipv6hdr))

/* The state of from_workload for one frame. */
struct frame {
	struct ethhdr eth;
	struct inner in;
	__u32 l4;        /* offset of the transport header; 0: not known */
	__u8 family;     /* 4, 6, or 0 */
	__u8 tcp;
	__u8 icmp6;      /* ICMPv6 type, 0: none */
	__u8 protocol;   /* IPv6: the next header */
	__u8 jumbo;      /* a jumbo header is in front of the transport header */
};

/* Largest packet that leaves as this frame: a superpacket's segments. */
static __always_inline int fits(struct __sk_buff *skb, const struct frame *f, __u32 mtu)
{
	__u32 header;

	if (skb->len - ETH_HLEN <= mtu)
		return 1;
	if (!skb->gso_size)
		return 0;
	/* gso_size is payload: the length of TCP's header varies. */
	header = f->l4 - ETH_HLEN - (f->jumbo ? JUMBO_LENGTH : 0); /* segments have no jumbo header */
	if (!f->tcp)
		return header + sizeof(struct udphdr) + skb->gso_size <= mtu;
	if (header + TCP_MOST + skb->gso_size <= mtu)
		return 1;
	{
		__u8 offset;

		if (bpf_skb_load_bytes(skb, f->l4 + TCP_DATA_OFFSET, &offset, 1))
			return 0;
		return header + (offset >> 4) * 4 + skb->gso_size <= mtu;
	}
}

/* Joins a word to a hash; each bit of both has its say in the upper half. */
static __always_inline __u32 stirred(__u32 hash, __u32 word)
{
	hash = (hash ^ word) * 0x9e3779b1;
	return hash ^ hash >> 15;
}

static __always_inline __u32 stirred6(__u32 hash, const struct in6_addr *a)
{
	hash = stirred(stirred(hash, a->s6_addr32[0]), a->s6_addr32[1]);
	return stirred(stirred(hash, a->s6_addr32[2]), a->s6_addr32[3]);
}

/*
 * What spreads flows over ways and source ports: the sending socket's hash,
 * which changes when that finds its way dead (tcp_write_timeout), or else one of
 * addresses, flow label, protocol and ports.
 */
static __always_inline __u32 hash_of(struct __sk_buff *skb, const struct frame *f)
{
	return skb->hash ? : f->in.hash;
}

/* Ports join the hash where every packet of the flow has them, which fragments
 * have not. */
static __always_inline __u32 with_ports(__u32 hash, __u8 protocol, void *ports, void *end)
{
	return has_ports(protocol) && ports + 4 <= end ? stirred(hash, *(__u32 *)ports) : hash;
}

/* Reads the IPv4 header into f and its destination into *to. */
static __always_inline int read4(struct __sk_buff *skb, const struct vif *v, struct frame *f,
				 struct address *to)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + ETH_HLEN;
	__u32 header;

	if ((void *)(ip + 1) > end)
		return -DROP_MALFORMED;
	header = ip->ihl * 4;
	if (ip->version != 4 || header < sizeof(*ip) ||
	    (bpf_ntohs(ip->tot_len) > skb->len - ETH_HLEN && !skb->gso_size) ||
	    (bpf_ntohs(ip->tot_len) < header && !skb->gso_size))
		return -DROP_MALFORMED;
	if (!may_send4(v, ip->saddr) && skb->mark != CUT_MARK) /* to_router() has replaced the source of a superpacket */
		return -DROP_SPOOFED_IP;
	f->family = FAMILY_IPV4;
	f->in.is_ip = 1;
	f->in.hash = stirred(stirred(ip->saddr, ip->daddr), ip->protocol);
	if (header == sizeof(*ip) && !(ip->frag_off & bpf_htons(IP_OFFSET | IP_MF)))
		f->in.hash = with_ports(f->in.hash, ip->protocol, ip + 1, end);
	f->in.tos = ip->tos;
	f->in.ttl = ip->ttl;
	f->protocol = ip->protocol;
	if (!(ip->frag_off & bpf_htons(IP_OFFSET))) {
		f->l4 = ETH_HLEN + header;
		f->tcp = is_tcp(ip->protocol);
	}
	mapped(to, ip->daddr);
	return GO_ON;
}

static __always_inline int is_nd(__u8 icmp6)
{
	return icmp6 >= ND_ROUTER_SOLICITATION && icmp6 <= ND_REDIRECT;
}

/* Returns 1 if a neighbour discovery message may be behind an extension header, where
 * answer_nd() would not check it (RFC 6980, RFC 7113). The packet of `ip` must have
 * an extension header. */
static __always_inline int hides_nd(const struct ipv6hdr *ip, void *end)
{
	const __u8 *next = (const void *)(ip + 1);

	return (void *)(next + 1) > end || *next == IPPROTO_ICMPV6 || is_extension(*next);
}

/* Returns 1 if a workload may send a packet from a link-local or unspecified address.
 * Policy rules with addresses do not match such a source. So a workload may use one
 * only for neighbour discovery, for multicast listener reports after a hop-by-hop
 * header (RFC 3810, section 5), and for duplicate address detection. Only the last
 * may use the unspecified address (RFC 4862, section 5.4). A port that may send from
 * any address has no such limit. */
__noinline int may_use_link_source(struct __sk_buff *skb, const struct vif *v)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ipv6hdr *ip = data + ETH_HLEN;
	__u8 *type = (void *)(ip + 1);

	if (!v || (void *)(type + 1) > end)
		return 0;
	if (may_send6(v, &ip->saddr))
		return 1;
	if (ip->nexthdr == IPPROTO_ICMPV6 && is_nd(*type) && ip->hop_limit == ND_HOPS)
		return is_link_local6(&ip->saddr) || *type == ND_NEIGHBOUR_SOLICITATION;
	return ip->nexthdr == IPPROTO_HOPOPTS && ip->daddr.s6_addr[0] == 0xff && ip->hop_limit == 1;
}

/* Returns 1 if an IPv6 packet must not be routed, because its source or destination
 * is link-local or its source is unspecified. */
static __noinline int stays_on_link(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ipv6hdr *ip = data + ETH_HLEN;

	return (void *)(ip + 1) > end || is_link_local6(&ip->saddr) || is_unspecified6(&ip->saddr) ||
	       is_link_local6(&ip->daddr);
}

static __always_inline int read6(struct __sk_buff *skb, const struct vif *v, struct frame *f,
				 struct address *to)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ipv6hdr *ip = data + ETH_HLEN;
	__u8 *type;

	if ((void *)(ip + 1) > end)
		return -DROP_MALFORMED;
	if (ip->version != 6 || (bpf_ntohs(ip->payload_len) + sizeof(*ip) > skb->len - ETH_HLEN && !skb->gso_size))
		return -DROP_MALFORMED;
	f->family = FAMILY_IPV6;
	f->in.is_ip = 1;
	f->in.tos = tos6(ip);
	f->in.ttl = ip->hop_limit;
	f->l4 = ETH_HLEN + sizeof(*ip);
	f->protocol = ip->nexthdr;
	f->tcp = is_tcp(ip->nexthdr);
	f->in.hash = stirred(stirred6(stirred6(ip->nexthdr, &ip->saddr), &ip->daddr), *(__be32 *)ip & bpf_htonl(0xfffff));
	f->in.hash = with_ports(f->in.hash, ip->nexthdr, ip + 1, end);
	__builtin_memcpy(to, &ip->daddr, 16);
	if (is_jumbo(skb, ip, end)) {
		f->jumbo = f->tcp = 1;
		f->protocol = IPPROTO_TCP;
		f->l4 += JUMBO_LENGTH;
	}
	if (ip->nexthdr == IPPROTO_ICMPV6) {
		type = (void *)(ip + 1);
		if ((void *)(type + 1) > end)
			return -DROP_MALFORMED;
		f->icmp6 = *type;
	}
	if (ip->hop_limit == ND_HOPS && is_extension(ip->nexthdr) && hides_nd(ip, end))
		return -DROP_LINK_LOCAL;
	if (!is_link_local6(&ip->saddr) && !is_unspecified6(&ip->saddr))
		return may_send6(v, &ip->saddr) || skb->mark == CUT_MARK ? GO_ON : -DROP_SPOOFED_IP;
	return may_use_link_source(skb, v) ? GO_ON : -DROP_LINK_LOCAL;
}

/* Drops a packet, and tells its sender why if an answer is allowed. A sender without DF learns the
 * MTU too: Linux then cuts its packets into fragments. */
static __always_inline int refuse(struct __sk_buff *skb, const struct vif *v, int cause,
				  __u32 mtu, int reason)
{
	int verdict = icmp_error(skb, v, cause, mtu);

	if (verdict < 0)
		return -reason;
	if (v->flags & VIF_F_SERVICES)
		from_service_slowly(skb, v->id, v->flags & VIF_F_NODE ? NH_F_NAT : 0); /* the error quotes the packet to the backend */
	return DROPPED_WITH_NOTICE(verdict, reason);
}

/* One hop less to live; the header's checksum follows (RFC 1624). */
static __always_inline int lower_ttl(struct __sk_buff *skb, struct frame *f)
{
	struct iphdr *ip = (void *)(long)skb->data + L3_OFFSET;

	if ((void *)(ip + 1) > (void *)(long)skb->data_end)
		return -DROP_MALFORMED;
	f->in.ttl--;
	if (f->family == FAMILY_IPV4) {
		__u32 sum = ip->check + bpf_htons(0x0100);

		ip->check = sum + (sum >> 16);
		ip->ttl = f->in.ttl;
	} else {
		((struct ipv6hdr *)ip)->hop_limit = f->in.ttl;
	}
	return 0;
}

static __always_inline int into_tunnel(struct __sk_buff *skb, const struct vif *v,
				       const struct nexthop *nh, __u32 id, __u32 label,
				       struct frame *f, int bridged)
{
	__u32 packets = segments(skb), bytes = skb->len; /* the inner frame's */
	int verdict;

	f->in.hash = hash_of(skb, f);
	if (f->jumbo && remove_jumbo(skb))
		return -DROP_ENCAP_FAILED;
	verdict = bridged ? encapsulate_bridged(skb, id, label, &f->in, &f->eth) :
			    encapsulate(skb, nh, id, label, &f->in, &f->eth);
	if (verdict < 0)
		return verdict;
	count_vrf(v->vrf, nh->encap, 0, packets, bytes);
	if (verdict == TC_ACT_REDIRECT && is_unfinished(skb, nh))
		return finish_tunnel(skb, id, f->in.ethernet);
	return WENT(verdict, OUT_FORWARDED);
}

/* A routed packet: router to router. */
static __always_inline int send_routed(struct __sk_buff *skb, const struct vif *v, struct frame *f,
				       struct nexthop *nh, __u32 id, __u32 label)
{
	__u32 mtu, packets, bytes;
	int verdict;

	trace(TRACE_NEXTHOP, v->vrf, id, nh->type, 1);
	if (nh->encap == ENCAP_TRANSLATED && !is_translatable(skb, f->family, v->vrf, f->jumbo)) {
		count_untranslatable(skb, f->family, v->vrf, f->jumbo);
		trace(TRACE_FALLBACK, v->vrf, nh->fallback, 0, !!nh->fallback);
		if (!nh->fallback)
			return -DROP_UNTRANSLATABLE;
		id = nh->fallback;
		nh = nexthop_of(id);
		if (!nh)
			return -DROP_NO_NEXTHOP;
		trace(TRACE_NEXTHOP, v->vrf, id, nh->type, 1);
	}
	if (nh->type != NH_ENCAP && nh->type != NH_TUNNEL)
		return nh->type == NH_DISCARD ? -DROP_DISCARD : -DROP_NO_NEXTHOP;
	if (f->in.ttl <= 1 && skb->mark != CUT_MARK)
		return refuse(skb, v, CAUSE_TTL, 0, DROP_TTL_EXCEEDED);
	mtu = nh->type == NH_TUNNEL ? tunnel_mtu(nh, id, f->family, 0) : nh->mtu;
	if (!fits(skb, f, mtu)) {
		trace(TRACE_MTU, v->vrf, id, mtu, 0);
		return refuse(skb, v, CAUSE_TOO_BIG, mtu, DROP_TOO_BIG);
	}
	if (f->tcp && !skb->gso_size)
		clamp_mss(skb, f->l4, mtu - (f->l4 - ETH_HLEN) - sizeof(struct tcphdr));
	packets = segments(skb);
	bytes = skb->len;
	if (nh->encap == ENCAP_TRANSLATED) {
		verdict = send_translated(skb, id, v->vrf, hash_of(skb, f));
		return forwarded(verdict, v->vrf, ENCAP_TRANSLATED, packets, bytes);
	}
	verdict = skb->mark == CUT_MARK ? GO_ON : lower_ttl(skb, f); /* the superpacket's was lowered */
	if (verdict < 0)
		return verdict;
	if (nh->type == NH_ENCAP) {
		verdict = deliver(skb, nh, 1, f->eth.h_proto, 0);
		return forwarded(verdict, v->vrf, ENCAP_NONE, packets, bytes);
	}
	if (nh->encap == ENCAP_DIRECT) {
		verdict = send_direct(skb, nh, LABEL_MAC, label, nh->paths > 1 ? hash_of(skb, f) : 0);
		return forwarded(verdict, v->vrf, ENCAP_DIRECT, packets, bytes);
	}
	if (v->flags & VIF_F_FLOATING && nh->flags & NH_F_NAT) {
		verdict = from_service_slowly(skb, v->id, NH_F_NAT);
		if (verdict < 0)
			return verdict;
	}
	if (nh->encap == ENCAP_VXLAN) {
		f->in.ethernet = 1;
		copy_mac(f->eth.h_dest, nh->dmac);
		copy_mac(f->eth.h_source, v->router_mac);
	}
	return into_tunnel(skb, v, nh, id, label, f, 0);
}

static __always_inline int route_frame(struct __sk_buff *skb, const struct vif *v, struct frame *f,
				       const struct address *to)
{
	struct route *r = route_to(v->vrf, to, f->family);
	struct nexthop *nh;
	__u32 id, label;

	if (!r)
		return refuse(skb, v, CAUSE_NO_ROUTE, 0, DROP_NO_ROUTE);
	id = r->nexthop;
	label = r->label;
	nh = nexthop_of(id);
	if (!nh)
		return -DROP_NO_NEXTHOP;
	if (nh->type == NH_RECEIVE) {
		int verdict = answer_echo(skb, v);

		return verdict < 0 ? verdict : WENT(verdict, OUT_ANSWERED);
	}
	if (nh->type == NH_COMPOSITE) {
		struct member_key key = { .nexthop = id };
		struct member *m;

		key.index = choose_member(skb, v, id, nh->members, hash_of(skb, f));
		m = bpf_map_lookup_elem(&members, &key);
		if (!m)
			return -DROP_NO_NEXTHOP;
		trace(TRACE_MEMBER, v->vrf, m->nexthop, key.index, 1);
		id = m->nexthop;
		label = m->label;
		nh = nexthop_of(id);
		if (!nh)
			return -DROP_NO_NEXTHOP;
	}
	return send_routed(skb, v, f, nh, id, label);
}

/* A bridged frame: the receiver delivers it as it is. */
__noinline int send_bridged(struct __sk_buff *skb, const struct vif *v, struct frame *f,
			    __u32 id, __u32 label)
{
	struct nexthop *nh = nexthop_of(id);
	__u32 mtu;
	int verdict;

	if (!nh || !v || !f)
		return -DROP_NO_NEXTHOP;
	trace(TRACE_NEXTHOP, v->vrf, id, nh->type, 1);
	if (nh->encap == ENCAP_DIRECT && !is_restorable(skb, &f->eth, v->vrf, v->nexthop)) {
		count_unrestorable(skb, &f->eth, v->vrf, v->nexthop);
		id = nh->fallback;
		nh = nexthop_of(id);
		if (!nh)
			return -DROP_NO_NEXTHOP;
		trace(TRACE_NEXTHOP, v->vrf, id, nh->type, 1);
	}
	if (nh->type != NH_ENCAP && nh->type != NH_TUNNEL)
		return nh->type == NH_DISCARD ? -DROP_DISCARD : -DROP_NO_NEXTHOP;
	mtu = nh->type == NH_TUNNEL ? tunnel_mtu(nh, id, f->family, 1) : nh->mtu;
	if (!fits(skb, f, mtu)) {
		trace(TRACE_MTU, v->vrf, id, mtu, 0);
		return refuse(skb, v, CAUSE_TOO_BIG, mtu, DROP_TOO_BIG);
	}
	if (f->tcp && !skb->gso_size)
		clamp_mss(skb, f->l4, mtu - (f->l4 - ETH_HLEN) - sizeof(struct tcphdr));
	if (nh->encap == ENCAP_DIRECT) {
		__u32 packets = segments(skb), bytes = skb->len;

		/* The other nodes send to LABEL_MAC. So switches learn it from frames of this node. */
		verdict = send_direct(skb, nh, v->flags & VIF_F_L3 ? BRIDGED_MAC : LABEL_MAC, v->vrf, nh->paths > 1 ? hash_of(skb, f) : 0);
		return forwarded(verdict, v->vrf, ENCAP_DIRECT, packets, bytes);
	}
	if (nh->type == NH_TUNNEL) {
		f->in.ethernet = 1;
		return into_tunnel(skb, v, nh, id, label, f, 1);
	}
	verdict = deliver(skb, nh, 0, 0, !f->in.is_ip);
	return forwarded(verdict, v->vrf, ENCAP_NONE, segments(skb), skb->len);
}

/* Returns 1 for packets from the UDP port of a DHCP server (RFC 2131, RFC 8415), and for packets
 * whose extension headers may hide that port (RFC 7610). */
__noinline int is_dhcp_answer(struct __sk_buff *skb, const struct frame *f)
{
	__be16 port;

	if (f && f->family == FAMILY_IPV6 && is_extension(f->protocol)) {
		struct flow_packet p = { .at = L3_OFFSET };

		return read_headers(skb, &p, IN_PERSON) < 0 ||
		       (p.key.protocol == IPPROTO_UDP && p.key.local_port == bpf_htons(547));
	}
	if (!f || f->protocol != IPPROTO_UDP || !f->l4 || bpf_skb_load_bytes(skb, f->l4, &port, sizeof(port)))
		return 0;
	return port == bpf_htons(f->family == FAMILY_IPV4 ? 67 : 547);
}

static __always_inline int bridge_frame(struct __sk_buff *skb, const struct vif *v, struct frame *f)
{
	struct bridge_key key = { .vrf = v->vrf };
	struct bridge_entry *b = 0;

	if (!(v->flags & VIF_F_L2))
		return f->eth.h_dest[0] & 1 ? -DROP_LINK_LOCAL : -DROP_UNKNOWN_MAC;
	if (!(f->eth.h_dest[0] & 1)) {
		copy_mac(key.mac, f->eth.h_dest);
		b = bpf_map_lookup_elem(&bridge, &key);
		trace(TRACE_BRIDGE, v->vrf, b ? b->nexthop : 0, b ? b->label : 0, !!b);
	}
	if (!b)
		return flood(skb, v->vrf, v->nexthop);
	if (b->nexthop == v->nexthop)
		return -DROP_REFLECTED;
	return send_bridged(skb, v, f, b->nexthop, b->label);
}

/* A copy of a frame to be flooded, on its way to one member. */
static __noinline int send_copy(struct __sk_buff *skb, const struct vif *v, struct frame *f)
{
	struct member_key key = { .index = skb->mark & (MAX_MEMBERS - 1) };
	__u32 vrf;
	struct vrf *n;
	struct member *m;
	int verdict;

	if (!v || !f)
		return -DROP_NO_VIF;
	vrf = v->vrf;
	skb->mark = 0;
	n = bpf_map_lookup_elem(&vrfs, &vrf);
	if (!n)
		return -DROP_NO_FLOOD;
	key.nexthop = n->flood;
	m = bpf_map_lookup_elem(&members, &key);
	if (!m)
		return -DROP_NO_FLOOD;
	verdict = send_bridged(skb, v, f, m->nexthop, m->label);
	if (verdict == -CUT) /* its packets would be flooded again */
		return -DROP_ENCAP_FAILED;
	return verdict < 0 ? verdict : WENT(VERDICT_ACTION(verdict), OUT_FORWARDED);
}

/* Returns 1 if a frame that is neither IP nor ARP may be bridged. A frame with a length in place
 * of an EtherType can have IP, ARP or a VLAN tag behind an LLC/SNAP header, where no check reads
 * them. So of these frames only spanning tree (IEEE 802.1D) and IS-IS may pass. */
static __noinline int may_bridge(struct __sk_buff *skb, __be16 type)
{
	__u32 length = bpf_ntohs(type);
	__u8 llc[3]; /* destination, source, control */

	if (length >= ETH_P_802_3_MIN)
		return 1;
	return length + ETH_HLEN <= skb->len && !bpf_skb_load_bytes(skb, ETH_HLEN, llc, sizeof(llc)) &&
	       (llc[0] == 0x42 || llc[0] == 0xfe) && llc[1] == llc[0] && llc[2] == 3;
}

/* Returns 1 if the node may forward a packet into a network: the route to the packet's source
 * leads to a port of this node. Such sources are this node's workloads, and addresses outside
 * the network, whose route leads back to the node. Global function: the verifier checks it once. */
__noinline int is_behind_node(struct __sk_buff *skb, __u32 vrf)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + ETH_HLEN;
	struct address from;
	struct nexthop *nh;
	struct route *r;
	__u8 family = FAMILY_IPV4;

	if ((void *)(ip + 1) > end)
		return 0;
	if (ip->version == 6) {
		struct ipv6hdr *ip6 = (void *)ip;

		if ((void *)(ip6 + 1) > end)
			return 0;
		if (is_link_local6(&ip6->saddr) || is_unspecified6(&ip6->saddr))
			return 1; /* never routed */
		__builtin_memcpy(&from, &ip6->saddr, 16);
		family = FAMILY_IPV6;
	} else {
		mapped(&from, ip->saddr);
	}
	r = route_to(vrf, &from, family);
	nh = r ? nexthop_of(r->nexthop) : 0;
	return nh && nh->type == NH_ENCAP;
}

static __always_inline int judge(struct __sk_buff *skb, const struct vif *v)
{
	void *data, *end;
	struct frame f = { .in = { .tos = 0, .ttl = TUNNEL_TTL } };
	struct address to = {};
	__u32 head = skb->len < INNER_MOST ? skb->len : INNER_MOST;
	int verdict;

	/* The kernel stores a VLAN tag outside the frame's bytes. After encapsulation
	 * it would be the tag of the outer frame and select a VLAN of the underlay. */
	if (skb->vlan_present)
		return -DROP_VLAN;
	/* One check of the length is enough for the verifier. Shorter frames are pulled whole. */
	if ((void *)(long)skb->data + INNER_MOST > (void *)(long)skb->data_end &&
	    (head < ETH_HLEN || bpf_skb_pull_data(skb, head)))
		return -DROP_MALFORMED;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (data + ETH_HLEN > end)
		return -DROP_MALFORMED;
	copy_mac(f.eth.h_dest, data);
	copy_mac(f.eth.h_source, data + ETH_ALEN);
	f.eth.h_proto = ((struct ethhdr *)data)->h_proto;
	if (!is_mac(f.eth.h_source, v->mac))
		return -DROP_SPOOFED_MAC;

	switch (f.eth.h_proto) {
	case bpf_htons(ETH_P_IP):
		verdict = read4(skb, v, &f, &to);
		break;
	case bpf_htons(ETH_P_IPV6):
		verdict = read6(skb, v, &f, &to);
		break;
	case bpf_htons(ETH_P_ARP):
		if (IS_COPY(skb->mark))
			return send_copy(skb, v, &f);
		verdict = answer_arp(skb, v);
		if (verdict != GO_ON)
			return verdict < 0 ? verdict : WENT(verdict, OUT_ANSWERED);
		return bridge_frame(skb, v, &f);
	default:
		if (!(v->flags & VIF_F_L2) || !may_bridge(skb, f.eth.h_proto))
			return -DROP_UNSUPPORTED_PROTOCOL;
		verdict = GO_ON;
	}
	if (verdict != GO_ON)
		return verdict;
	if (IS_COPY(skb->mark))
		return send_copy(skb, v, &f);
	if (!f.in.is_ip)
		return bridge_frame(skb, v, &f);
	if (v->flags & VIF_F_NODE && !is_behind_node(skb, v->vrf))
		return -DROP_SPOOFED_IP;
	if (is_nd(f.icmp6)) {
		verdict = answer_nd(skb, v);
		if (verdict != GO_ON)
			return verdict < 0 ? verdict : WENT(verdict, OUT_ANSWERED);
	}
	if (v->flags & VIF_F_SERVICES) {
		verdict = to_service(skb, v, &to);
		if (verdict != GO_ON)
			return verdict;
	}
	if (v->flags & VIF_F_POLICY && !is_admitted(skb->mark) && !is_of_known_flow(skb, v->id, 0)) {
		verdict = may_pass(skb, v, 0);
		if (verdict < 0)
			return verdict;
	}
	if (is_mac(f.eth.h_dest, v->router_mac) && (v->flags & VIF_F_L3))
		return f.family == FAMILY_IPV6 && stays_on_link(skb) ? -DROP_LINK_LOCAL : route_frame(skb, v, &f, &to);
	if (!(v->flags & VIF_F_ROUTER) && is_dhcp_answer(skb, &f))
		return -DROP_ROGUE_ROUTER;
	return bridge_frame(skb, v, &f);
}
