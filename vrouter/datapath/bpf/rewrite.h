/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Replaces an address and a port of a packet, as the translation of its flow says. All checksums are
 * changed by the difference, so those that a NIC must still write (CHECKSUM_PARTIAL), and those that a
 * NIC has computed (CHECKSUM_COMPLETE), stay right. */
#pragma once

#include "flowkey.h"

#define MOST_HEADERS 256 /* the offset of a transport header is below this power of 2 */
#define BEHIND_IP_HEADER 1 /* the transport header follows an IP header without options */

static __always_inline int is_icmp_number(__u8 protocol)
{
	return protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6;
}

/* Returns the offset of the checksum in a transport header; 0: it has neither addresses nor ports (SCTP). A table, so that
 * the verifier walks the rest of a function once, not once for each offset. */
static __always_inline __u32 checksum_field(__u8 protocol)
{
	static const __u8 fields[IPPROTO_ICMPV6 + 1] = {
		[IPPROTO_ICMP] = 2, [IPPROTO_ICMPV6] = 2, [IPPROTO_TCP] = 16, [IPPROTO_UDP] = 6,
	};

	return protocol < sizeof(fields) ? fields[protocol] : 0;
}

/* Returns the offset of the source or destination port, or of an ICMP identifier. */
static __always_inline __u32 port_field(__u8 protocol, int destination)
{
	return is_icmp_number(protocol) ? 4 : destination ? 2 : 0;
}

/* Returns 1 if the translation of a flow replaces the source, and 0 if it replaces the destination. Without a branch,
 * as in is_tcp(). */
static __always_inline __u32 replaces_source(const struct flow *f)
{
	return ~f->translation & 1;
}

static __always_inline int exchanges(const struct flow *f)
{
	return f->translation >= TO_ITSELF;
}

static __always_inline __u16 changed_sum(__u16 check, __be32 from, __be32 to)
{
	__u64 sum = (__u64)(__u16)~check + (__u32)~from + to;

	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Replaces the source or the destination by the other address of f. *difference: what this adds to a sum of
 * 16-bit words over the header. */
static __always_inline int rewrite_address4(struct iphdr *ip, const struct flow *f, int source, __wsum *difference)
{
	__be32 *at = source ? &ip->saddr : &ip->daddr, to = *(const __be32 *)&f->other.bytes[12];

	ip->check = changed_sum(ip->check, *at, to);
	*difference = (__u64)(__u32)~*at + to;
	*difference += (__u32)~*at > *difference;
	*at = to;
	return 0;
}

static __always_inline int rewrite_address6(struct ipv6hdr *ip, const struct flow *f, int source, __wsum *difference)
{
	struct in6_addr *at = source ? &ip->saddr : &ip->daddr;
	__s64 sum = bpf_csum_diff((void *)at, 16, (void *)&f->other, 16, 0);

	if (sum < 0)
		return -1;
	*difference = sum;
	__builtin_memcpy(at, &f->other, 16);
	return 0;
}

static __always_inline void exchange4(struct iphdr *ip)
{
	__be32 source = ip->saddr;

	ip->saddr = ip->daddr;
	ip->daddr = source;
}

static __always_inline void exchange6(struct ipv6hdr *ip)
{
	struct in6_addr source = ip->saddr;

	ip->saddr = ip->daddr;
	ip->daddr = source;
}

/* Rewrites a packet whose IP header follows its Ethernet header. at: offset of its transport header; BEHIND_IP_HEADER; or 0:
 * a later fragment, which has none. Returns 0 if that succeeds. Global function: the verifier checks it once. */
__noinline int rewrite(struct __sk_buff *skb, const struct flow *f, __u32 at, __u32 protocol)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + ETH_HLEN;
	struct ipv6hdr *ip6 = (void *)ip;
	__u32 field = checksum_field(protocol);
	__u64 flags = field == 6 ? BPF_F_MARK_MANGLED_0 : 0;
	__wsum difference = 0;
	int source, exchange, six;
	__be16 old, port;

	if (!f || at >= MOST_HEADERS || (void *)(ip + 1) > end)
		return -1;
	source = replaces_source(f);
	exchange = exchanges(f);
	six = ip->version == 6;
	if (six) {
		if ((void *)(ip6 + 1) > end)
			return -1;
		if (exchange)
			exchange6(ip6);
		else if (rewrite_address6(ip6, f, source, &difference))
			return -1;
	} else if (exchange) {
		exchange4(ip);
	} else {
		rewrite_address4(ip, f, source, &difference);
	}
	if (!at)
		return 0;
	if (at == BEHIND_IP_HEADER)
		at = ETH_HLEN + (six ? sizeof(*ip6) : sizeof(*ip));
	port = f->other_port;
	source = port_field(protocol, !source);
	if (bpf_skb_load_bytes(skb, at + source, &old, 2) || (old != port && bpf_skb_store_bytes(skb, at + source, &port, 2, 0)))
		return -1;
	if (!field)
		return 0;
	if (protocol == IPPROTO_ICMP)
		difference = 0; /* its checksum does not include the addresses */
	if (difference && bpf_l4_csum_replace(skb, at + field, 0, difference, BPF_F_PSEUDO_HDR | flags))
		return -1;
	/* The helper also changes the sum that a NIC has computed. Over an IPv6 packet that sum stays the same. */
	if (six && difference)
		bpf_csum_update(skb, difference);
	return old != port ? bpf_l4_csum_replace(skb, at + field, old, port, 2 | flags) : 0;
}

/*
 * Undoes the translation in the packet that an ICMP error quotes, so that its sender recognises it. icmp: offset of the
 * ICMP header, which has 8 bytes. p: the quoted packet; at p->at is its transport header, of which the error may have
 * only 8 bytes (RFC 792). outer: 1 if rewrite() replaces an address of the error, too, which is the quoted packet's. The sums are written directly: if the kernel must still write
 * the checksum of the packet that became the error, bpf_l4_csum_replace() changes nothing. Returns 0 if that succeeds.
 * Global function: the verifier checks it once.
 */
__noinline int rewrite_quoted(struct __sk_buff *skb, const struct flow *f, const struct flow_packet *p, __u32 icmp, int outer)
{
	__u32 source, field, at;
	__wsum difference = 0;
	struct icmphdr *error;
	struct ipv6hdr *ip6;
	struct iphdr *ip;
	void *data, *end;
	__be16 *port, *check, old;
	__u16 sum;

	if (!f || !p)
		return -1;
	source = replaces_source(f);
	field = checksum_field(p->key.protocol);
	at = p->at;
	if (icmp >= MOST_HEADERS || at >= MOST_HEADERS || bpf_skb_pull_data(skb, skb->len))
		return -1;
	/* So that the verifier sees the bounds. */
	asm volatile("" : "+r"(icmp), "+r"(at));
	icmp &= MOST_HEADERS - 1;
	at &= MOST_HEADERS - 1;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	error = data + icmp;
	ip = (void *)(error + 1);
	ip6 = (void *)ip;
	port = data + at + port_field(p->key.protocol, source);
	check = data + at + field;
	if ((void *)(ip + 1) > end || (void *)(port + 1) > end)
		return -1;
	sum = error->checksum;
	if (ip->version == 6) {
		if ((void *)(ip6 + 1) > end)
			return -1;
		if (exchanges(f))
			exchange6(ip6);
		else if (rewrite_address6(ip6, f, !source, &difference))
			return -1;
		sum = changed_sum(sum, 0, difference);
		if (outer)
			sum = changed_sum(sum, 0, difference);
	} else if (exchanges(f)) {
		exchange4(ip);
	} else {
		rewrite_address4(ip, f, !source, &difference); /* the change of the IP checksum cancels that of the address */
	}
	old = *port;
	*port = f->other_port;
	sum = changed_sum(sum, old, *port);
	if (field && (void *)(check + 1) <= end && *check) {
		sum = changed_sum(sum, *check, 0);
		*check = changed_sum(changed_sum(*check, 0, p->key.protocol == IPPROTO_ICMP ? 0 : difference), old, *port);
		sum = changed_sum(sum, 0, *check);
	}
	error->checksum = sum;
	return 0;
}
