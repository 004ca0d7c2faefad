/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The few protocol numbers and headers that the kernel's user headers lack. */
#pragma once

#include <linux/bpf.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* RFC 792. linux/icmp.h drags the C library's sockets in. */
struct icmphdr {
	__u8 type;
	__u8 code;
	__be16 checksum;
	union {
		struct {
			__be16 id;
			__be16 sequence;
		} echo;
		struct {
			__be16 unused;
			__be16 mtu;
		} frag;
		__be32 word;
	} un;
};
#define ICMP_ECHOREPLY 0
#define ICMP_DEST_UNREACH 3
#define ICMP_ECHO 8
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETERPROB 12
#define ICMP_FRAG_NEEDED 4

/* enum bpf_adj_room_flags since Linux 6.3. */
#define ADJ_ROOM_DECAP_L3_IPV4 (1ull << 7)
#define ADJ_ROOM_DECAP_L3_IPV6 (1ull << 8)

#define IP_DF 0x4000
#define IP_MF 0x2000
#define IP_OFFSET 0x1fff

#define MPLS_UDP_PORT 6635        /* RFC 7510 */
#define FIRST_ENTROPY_PORT 0xc000 /* 49152: the dynamic ports, RFC 7510 section 3 */

#define TUNNEL_TTL 64

#define TOS_ECN 3
#define ECN_ECT1 1
#define ECN_ECT0 2
#define ECN_CE 3

/* RFC 2784; no optional field is sent or taken. */
struct gre {
	__be16 flags;
	__be16 protocol;
};

/* RFC 3032: label 20, traffic class 3, bottom of stack 1, TTL 8 bits. */
#define LABEL_LENGTH 4
#define LABEL_SHIFT 12
#define LABEL_TC_SHIFT 9
#define LABEL_BOTTOM 0x100

/* RFC 7348. */
struct vxlan {
	__be32 flags;
	__be32 vni; /* 24 bits, then 8 reserved */
};
#define VXLAN_HAS_VNI 0x08000000

/* Longest headers between an outer IP header and the payload, and longest outer headers. */
#define SHIM_MOST (sizeof(struct udphdr) + sizeof(struct vxlan))
#define OUTER_MOST (ETH_HLEN + sizeof(struct ipv6hdr) + SHIM_MOST)

#define TCP_DATA_OFFSET 12 /* offset of the byte with the length of the header */
#define TCP_MOST 60        /* the longest TCP header */

/* Returns n, which must be 1 to limit, a power of 2. The verifier sees these bounds in the
 * result: before Linux 6.8 it does not conclude from a comparison that n is not 0. */
static __always_inline __u32 bounded(__u32 n, __u32 limit)
{
	asm volatile("" : "+r"(n));
	return ((n - 1) & (limit - 1)) + 1;
}

static __always_inline __u8 tos6(const struct ipv6hdr *ip)
{
	return bpf_ntohs(*(__be16 *)ip) >> 4;
}

static __always_inline int is_mac(const void *a, const void *b)
{
	const __u16 *x = a, *y = b;

	return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]));
}

/* Copies a MAC address. Both must have even addresses. */
static __always_inline void copy_mac(void *to, const void *from)
{
	__u16 *x = to;
	const __u16 *y = from;

	x[0] = y[0];
	x[1] = y[1];
	x[2] = y[2];
}
