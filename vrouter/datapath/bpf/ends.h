/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The addresses and the IP version of the packet in a frame without outer headers. */
#pragma once

#include "addr.h"

/* Source and destination address of an inner packet. */
struct ends {
	struct address from;
	struct address to;
};

/* Reads the inner addresses. Returns the IP family; 0: neither IPv4 nor IPv6. */
static __always_inline __u8 inner_family(struct __sk_buff *skb, struct ends *e)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + ETH_HLEN;

	if ((void *)(ip + 1) > end) {
		if (bpf_skb_pull_data(skb, ETH_HLEN + sizeof(*ip)))
			return 0;
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
		ip = data + ETH_HLEN;
		if ((void *)(ip + 1) > end)
			return 0;
	}
	if (ip->version == 4) {
		mapped(&e->from, ip->saddr);
		mapped(&e->to, ip->daddr);
		return FAMILY_IPV4;
	}
	if (ip->version == 6) {
		struct ipv6hdr *ip6 = (void *)ip;

		if ((void *)(ip6 + 1) > end)
			return bpf_skb_load_bytes(skb, ETH_HLEN + 8, e, sizeof(*e)) ? 0 : FAMILY_IPV6;
		__builtin_memcpy(e, &ip6->saddr, sizeof(*e));
		return FAMILY_IPV6;
	}
	return 0;
}

static __always_inline __be16 protocol_of(__u8 family)
{
	return family == FAMILY_IPV4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
}

static __always_inline int is_ip_type(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_IP) || protocol == bpf_htons(ETH_P_IPV6);
}
