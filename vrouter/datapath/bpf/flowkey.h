/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which flow a packet belongs to: addresses, protocol and ports, seen from the
 * vif's workload, so that both directions have one key. Headers are copied out
 * of the frame by bpf_skb_load_bytes, which checks the frame's bounds. read_headers() refuses a
 * packet whose headers are not all in its IP length: a receiver ignores the padding behind it.
 */
#pragma once

#include "maps.h"
#include "trace.h"
#include "transport.h"
#include "verdict.h"

/* RFC 8200 4.1: hop-by-hop, destination, routing, fragment, destination. */
#define MAX_EXTENSIONS 5

#define TCP_F_FIN 0x01
#define TCP_F_SYN 0x02
#define TCP_F_RST 0x04
#define TCP_F_ACK 0x10
#define TCP_LENGTH_AT 12
#define TCP_FLAGS_AT 13

#define ND_HOPS 255 /* RFC 4861: the sender is on the link */

enum quoting { IN_PERSON, QUOTED };

enum part { PART_WHOLE, PART_HEAD, PART_LATER };

struct flow_packet {
	struct flow_key key;
	__u32 at;     /* offset of the header to read next; at last of an ICMP error's quote */
	__u32 end;    /* offset of the end of the IP packet, by its length field */
	__u32 id;     /* of the packet that a fragment is part of */
	__u8 whole;   /* protocol that is reassembled; IPv6: 0, RFC 8200 4.5 */
	__u8 part;
	__u8 family;
	__u8 hops;
	__u8 tcp;     /* flags */
	__u8 opens;   /* never a reply: a bare SYN, an ICMP request */
	__u8 error;   /* an ICMP error */
	__u8 inbound; /* 1: the packet goes to the workload */
	__u8 icmp;    /* ICMP: type */
};

/* A second fragment so early overwrites the first one's TCP flags (RFC 1858, 3128). */
static __always_inline int overlaps_flags(__u8 protocol, __u32 eighths)
{
	return protocol == IPPROTO_TCP && eighths == 1;
}

/* Stores the end of the IP packet at p->at, which has `length` bytes by its length field. The
 * field of a superpacket above 64 KiB is 0. The end of a quoted packet is the end of the packet
 * that quotes it. Returns 0 if the frame or the IP header does not fit. */
static __always_inline int find_end(struct __sk_buff *skb, struct flow_packet *p, __be16 field, __u32 length,
				    __u32 header, int quoted)
{
	if (!quoted)
		p->end = field || !skb->gso_size ? p->at + length : skb->len;
	return p->end <= skb->len && p->at + header <= p->end;
}

static __always_inline int read_header4(struct __sk_buff *skb, struct flow_packet *p, const struct iphdr *ip,
					int quoted)
{
	__u16 fragment = bpf_ntohs(ip->frag_off);

	if (ip->ihl < 5 || !find_end(skb, p, ip->tot_len, bpf_ntohs(ip->tot_len), ip->ihl * 4, quoted))
		return -DROP_MALFORMED;
	p->family = FAMILY_IPV4;
	mapped(&p->key.local, ip->saddr);
	mapped(&p->key.remote, ip->daddr);
	p->at += ip->ihl * 4;
	p->key.protocol = p->whole = ip->protocol;
	p->hops = ip->ttl;
	p->id = ip->id;
	if (overlaps_flags(ip->protocol, fragment & IP_OFFSET))
		return -DROP_MALFORMED;
	if (fragment & IP_OFFSET)
		p->part = PART_LATER;
	else if (fragment & IP_MF)
		p->part = PART_HEAD;
	return GO_ON;
}

static __always_inline int skip_extension(struct __sk_buff *skb, struct flow_packet *p)
{
	__u8 e[8]; /* the least that one has */
	__u16 fragment;

	if (bpf_skb_load_bytes(skb, p->at, e, sizeof(e)))
		return -DROP_MALFORMED;
	if (p->key.protocol != IPPROTO_FRAGMENT) {
		p->at += (e[1] + 1) * 8;
		p->key.protocol = e[0];
		return GO_ON;
	}
	fragment = e[2] << 8 | e[3];
	if (p->part != PART_WHOLE || overlaps_flags(e[0], fragment >> 3))
		return -DROP_MALFORMED;
	if (fragment >> 3)
		p->part = PART_LATER;
	else if (fragment & 1)
		p->part = PART_HEAD; /* neither: an atomic fragment, RFC 6946 */
	__builtin_memcpy(&p->id, e + 4, 4);
	p->at += sizeof(e);
	p->key.protocol = e[0];
	return GO_ON;
}

/* first: the header's first 8 bytes, or more. */
static __always_inline int read_header6(struct __sk_buff *skb, struct flow_packet *p, const __u8 *first, int quoted)
{
	__be16 field = *(__be16 *)(first + 4);
	__u32 header = sizeof(struct ipv6hdr);
	int i;

	if (!find_end(skb, p, field, header + bpf_ntohs(field), header, quoted))
		return -DROP_MALFORMED;
	/* Both addresses at once: they follow each other here as there. */
	if (bpf_skb_load_bytes(skb, p->at + 8, &p->key.local, 32))
		return -DROP_MALFORMED;
	/* Its key would be an IPv4 flow's. No such address is ever on a wire. */
	if (is_mapped(&p->key.local) && is_mapped(&p->key.remote))
		return -DROP_MALFORMED;
	p->family = FAMILY_IPV6;
	p->at += sizeof(struct ipv6hdr);
	p->key.protocol = first[6];
	p->hops = first[7];
	for (i = 0; i < MAX_EXTENSIONS; i++) {
		if (p->part == PART_LATER || !is_extension(p->key.protocol))
			return GO_ON;
		if (skip_extension(skb, p) != GO_ON)
			return -DROP_MALFORMED;
	}
	/* A longer chain only hides the transport header. */
	return p->part != PART_LATER && is_extension(p->key.protocol) ? -DROP_MALFORMED : GO_ON;
}

static __always_inline void read_tcp_flags(struct flow_packet *p, __u8 flags)
{
	p->tcp = flags;
	p->opens = (flags & (TCP_F_SYN | TCP_F_ACK | TCP_F_RST | TCP_F_FIN)) == TCP_F_SYN;
}

/* Echo, timestamp, information and mask come as requests and replies. */
static __always_inline void read_icmp4(struct flow_packet *p, __u8 type, __be16 id)
{
	p->error = type == ICMP_DEST_UNREACH || type == ICMP_TIME_EXCEEDED ||
		   type == ICMP_PARAMETERPROB;
	if (type == ICMP_ECHO || type == ICMP_ECHOREPLY || (type >= 13 && type <= 18))
		p->key.local_port = id;
	p->opens = !(type == ICMP_ECHOREPLY || type == 14 || type == 16 || type == 18);
}

static __always_inline void read_icmp6(struct flow_packet *p, __u8 type, __be16 id)
{
	p->error = type >= 1 && type <= 4;
	if (type == ICMPV6_ECHO_REQUEST || type == ICMPV6_ECHO_REPLY)
		p->key.local_port = id;
	p->opens = type != ICMPV6_ECHO_REPLY;
}

static __always_inline int is_icmp(const struct flow_packet *p)
{
	return p->key.protocol == (p->family == FAMILY_IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

/* Returns the bytes of the transport header that a packet must have. A first fragment has all of
 * them (RFC 7112), but an ICMP error need not quote more than 8 (RFC 792). */
static __always_inline __u32 transport_length(const struct flow_packet *p, int quoted)
{
	if (p->key.protocol == IPPROTO_TCP && !quoted)
		return sizeof(struct tcphdr);
	return has_ports(p->key.protocol) || is_icmp(p) ? 8 : 0;
}

/* 0: neighbour discovery, which belongs to no flow. */
static __always_inline int read_transport(struct __sk_buff *skb, struct flow_packet *p, int quoted)
{
	__u8 t[TCP_FLAGS_AT + 1] __attribute__((aligned(4)));
	int flags = p->key.protocol == IPPROTO_TCP && !quoted;

	if (!has_ports(p->key.protocol) && !is_icmp(p))
		return GO_ON;
	if (flags ? bpf_skb_load_bytes(skb, p->at, t, sizeof(t)) : bpf_skb_load_bytes(skb, p->at, t, 8))
		return -DROP_MALFORMED;
	if (has_ports(p->key.protocol)) {
		p->key.local_port = *(__be16 *)t;
		p->key.remote_port = *(__be16 *)(t + 2);
		if (flags)
			read_tcp_flags(p, t[TCP_FLAGS_AT]);
		return GO_ON;
	}
	p->at += 8;
	p->icmp = t[0];
	if (p->family == FAMILY_IPV4) {
		read_icmp4(p, t[0], *(__be16 *)(t + 4));
		return GO_ON;
	}
	if (t[0] >= 133 && t[0] <= 137 && p->hops == ND_HOPS && p->part == PART_WHOLE)
		return 0;
	read_icmp6(p, t[0], *(__be16 *)(t + 4));
	return GO_ON;
}

/*
 * Reads the packet whose IP header begins at p->at, as its sender sees it: the
 * local end is its source. A later fragment has no ports. Global function: the verifier checks it once.
 */
__noinline int read_headers(struct __sk_buff *skb, struct flow_packet *p, int quoted)
{
	struct iphdr ip;
	int verdict;

	if (!p || bpf_skb_load_bytes(skb, p->at, &ip, sizeof(ip)))
		return -DROP_MALFORMED;
	/* Behind a decapsulation the Ethernet type may still be the outer packet's. */
	if (ip.version == 4)
		verdict = read_header4(skb, p, &ip, quoted);
	else if (ip.version == 6)
		verdict = read_header6(skb, p, (const void *)&ip, quoted);
	else
		verdict = -DROP_MALFORMED;
	if (verdict != GO_ON)
		return verdict;
	if (p->part == PART_LATER)
		return p->at <= p->end ? GO_ON : -DROP_MALFORMED;
	if (p->at + transport_length(p, quoted) > p->end)
		return -DROP_MALFORMED;
	return read_transport(skb, p, quoted);
}

static __always_inline struct fragment_heads *heads_of(const struct flow_packet *p)
{
	__u32 index = p->key.vif * 2 + p->inbound;

	return bpf_map_lookup_elem(&fragments, &index);
}

/* Returns 1 if f is the first fragment of the packet of p. It makes no copy of the key,
 * because the callers have little stack left. */
static __always_inline int is_head_of(const struct fragment *f, const struct flow_packet *p)
{
	const __u32 *a = (const void *)&f->source, *b = (const void *)&p->key.local;
	__u32 differs = f->whole ^ p->whole;
	int i;

	for (i = 0; i < 8; i++) /* both addresses */
		differs |= a[i] ^ b[i];
	return !differs;
}

/* Stores the ports of a first fragment (head). admit() and choose_member() can store the
 * same head; it gets one entry. The lock prevents a mixture of two heads, which would give
 * a fragment the wrong flow. The verifier checks this function separately. */
__noinline int keep_head(const struct flow_packet *p)
{
	struct fragment_heads *all;
	struct fragment *f;

	if (tracing || !p)
		return 0;
	all = heads_of(p);
	if (!all)
		return 0;
	bpf_spin_lock(&all->lock);
	f = &all->head[(all->begun - 1) % FRAGMENT_HEADS];
	if (f->id != p->id || !is_head_of(f, p)) {
		f = &all->head[all->begun % FRAGMENT_HEADS];
		all->begun++;
	}
	f->source = p->key.local;
	f->destination = p->key.remote;
	f->id = p->id;
	f->whole = p->whole;
	f->source_port = p->key.local_port;
	f->destination_port = p->key.remote_port;
	f->protocol = p->key.protocol;
	bpf_spin_unlock(&all->lock);
	return 0;
}

/* Reads the ports of a later fragment from its first fragment. The verifier checks this
 * function separately. */
__noinline int find_head(struct flow_packet *p)
{
	struct fragment_heads *all;
	int verdict = -DROP_FRAGMENT_WITHOUT_HEAD, i;

	if (!p)
		return verdict;
	all = heads_of(p);
	if (!all)
		return verdict;
	bpf_spin_lock(&all->lock);
#pragma clang loop unroll(disable)
	for (i = 0; i < FRAGMENT_HEADS; i++) {
		struct fragment *f = &all->head[i];

		if (f->id != p->id || !is_head_of(f, p))
			continue;
		p->key.local_port = f->source_port;
		p->key.remote_port = f->destination_port;
		p->key.protocol = f->protocol;
		verdict = GO_ON;
	}
	bpf_spin_unlock(&all->lock);
	return verdict;
}

/* From the sender's view to the receiver's. An ICMP identifier has no side. */
static __always_inline void turn_flow(struct flow_packet *p)
{
	struct flow_key *k = &p->key;
	struct address a = k->local;
	__be16 port = k->local_port;

	k->local = k->remote;
	k->remote = a;
	if (is_icmp(p))
		return;
	k->local_port = k->remote_port;
	k->remote_port = port;
}

/* Completes p. The caller sets the vif's id and `at`, for a quoted packet also `end`; the other
 * fields are zero. Returns GO_ON, or 0 if the packet has no flow. */
static __noinline int read_flow(struct __sk_buff *skb, struct flow_packet *p, int to_workload, int quoted)
{
	int verdict;

	p->inbound = !!to_workload;
	verdict = read_headers(skb, p, quoted);
	if (verdict == GO_ON && p->part == PART_LATER)
		verdict = find_head(p);
	else if (verdict == GO_ON && p->part == PART_HEAD && !quoted)
		keep_head(p);
	if (verdict == GO_ON && to_workload)
		turn_flow(p);
	return verdict;
}

/* Reads the packet that the ICMP error in p quotes. told: the address that gets the error, which must be the
 * quoted packet's sender. Returns GO_ON or a negative drop reason. */
static __always_inline int read_quoted(struct __sk_buff *skb, struct flow_packet *p, int to_workload,
				       const struct address *told)
{
	__u32 at = p->at, end = p->end, vif = p->key.vif;
	const __u32 *a, *b;
	int verdict;

	__builtin_memset(p, 0, sizeof(*p));
	p->key.vif = vif;
	p->at = at;
	p->end = end;
	verdict = read_flow(skb, p, !to_workload, QUOTED);
	if (verdict < 0)
		return verdict;
	a = (const void *)told;
	b = (const void *)(to_workload ? &p->key.local : &p->key.remote);
	if (verdict != GO_ON || p->error || a[0] != b[0] || a[1] != b[1] || a[2] != b[2] || a[3] != b[3])
		return -DROP_POLICY;
	return GO_ON;
}

/* Like read_flow, for a frame that starts with its Ethernet header. Returns 0 also for
 * packets other than IP. */
static __always_inline int read_frame(struct __sk_buff *skb, struct flow_packet *p, int to_workload)
{
	__be16 type;

	if (bpf_skb_load_bytes(skb, 2 * ETH_ALEN, &type, sizeof(type)))
		return -DROP_MALFORMED;
	if (type != bpf_htons(ETH_P_IP) && type != bpf_htons(ETH_P_IPV6))
		return 0;
	p->at = L3_OFFSET;
	return read_flow(skb, p, to_workload, IN_PERSON);
}
