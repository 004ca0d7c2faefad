// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * A node's team of NICs, for kernels without bonding. Systems see the first NIC
 * alone. What they send on it is spread over all by flow, and what arrives on
 * another is handed to the first, so that one device sends and receives for all.
 * Flows are spread as bonding does by layer3+4 (bond_xmit_hash,
 * drivers/net/bonding/bond_main.c).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_LINKS 16
#define IP_FRAGMENT 0x3fff /* more fragments, or an offset */

/* Set by the loader: the first NIC, in the node's network namespace. */
volatile const __u32 first_nic = 0;

/* The NICs that have a carrier, in the order of their links. */
struct usable {
	__u32 count;
	__u32 nics[MAX_LINKS]; /* ifindex */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct usable);
} usable SEC(".maps");

static __always_inline int has_ports(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP ||
	       protocol == IPPROTO_UDPLITE || protocol == IPPROTO_DCCP;
}

/* The ports at an offset, both in one word as bonding has them; 0 where the
 * frame ends before. */
static __always_inline __u32 ports_at(struct __sk_buff *skb, __u32 offset)
{
	__u32 ports = 0;

	if (bpf_skb_load_bytes(skb, offset, &ports, sizeof(ports)))
		return 0;
	return ports;
}

static __always_inline __u32 words(const void *address)
{
	const __u32 *w = address;

	return w[0] ^ w[1] ^ w[2] ^ w[3];
}

/* 0 for what is no IP: ARP and the like go over the first link. Fragments are
 * spread by their addresses alone, since only the first of them has ports. */
static __always_inline __u32 flow_hash(struct __sk_buff *skb)
{
	__u32 hash = 0;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
			return 0;
		if (has_ports(ip.protocol) && !(ip.frag_off & bpf_htons(IP_FRAGMENT)))
			hash = ports_at(skb, ETH_HLEN + ip.ihl * 4);
		hash ^= ip.saddr ^ ip.daddr;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
			return 0;
		if (has_ports(ip.nexthdr))
			hash = ports_at(skb, ETH_HLEN + sizeof(ip));
		hash ^= words(&ip.saddr) ^ words(&ip.daddr);
	}
	hash ^= hash >> 16;
	hash ^= hash >> 8;
	return hash >> 1; /* the lowest bit of a client's ports hardly changes */
}

/* At the egress of the first NIC, before nic_transmit, which runs for a frame
 * on the NIC that sends it. */
SEC("tc")
int team_transmit(struct __sk_buff *skb)
{
	__u32 zero = 0, link, nic;
	struct usable *u = bpf_map_lookup_elem(&usable, &zero);

	if (!u || !u->count)
		return TC_ACT_UNSPEC;
	link = flow_hash(skb) % u->count;
	if (link >= MAX_LINKS)
		return TC_ACT_UNSPEC;
	nic = u->nics[link];
	if (!nic || nic == first_nic)
		return TC_ACT_UNSPEC;
	return bpf_redirect(nic, 0);
}

/* At the ingress of every other NIC, after GRO. */
SEC("tc")
int team_receive(struct __sk_buff *skb)
{
	return bpf_redirect(first_nic, BPF_F_INGRESS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
