/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Packets that the agent answers on vifs with VIF_F_AGENT: DHCP (RFC 2131, RFC 8415), router
 * solicitations (RFC 4861) and DNS. The agent reads them from sockets on the vif's device. */
#pragma once

#include "nd.h"

#define DNS_PORT 53
#define DHCP_PORT 67
#define DHCPV6_PORT 547

/* Returns 1 for broadcast and multicast frames without a VLAN tag. */
static __always_inline int is_to_group(struct __sk_buff *skb)
{
	struct ethhdr *eth = (void *)(long)skb->data;

	return (void *)(eth + 1) <= (void *)(long)skb->data_end && eth->h_dest[0] & 1 && !skb->vlan_present;
}

/*
 * Returns 1 if the agent answers a packet. The caller must let the packet pass. Only the agent's
 * sockets receive it: it gets the type PACKET_OTHERHOST, which the node's IP stack ignores. Global
 * function: the verifier checks it once.
 */
__noinline int leave_to_agent(struct __sk_buff *skb)
{
	struct {
		__be16 unused, protocol; /* the last 4 bytes of the Ethernet header */
		struct iphdr ip;
	} head;
	__u32 at = L3_OFFSET + sizeof(struct ipv6hdr);
	__be16 port, dhcp = bpf_htons(DHCPV6_PORT);
	__u8 protocol;

	if (bpf_skb_load_bytes(skb, L3_OFFSET - 4, &head, sizeof(head)))
		return 0;
	if (head.protocol == bpf_htons(ETH_P_IP)) {
		at = L3_OFFSET + head.ip.ihl * 4;
		dhcp = bpf_htons(DHCP_PORT);
		protocol = head.ip.protocol;
		if (head.ip.frag_off & bpf_htons(IP_OFFSET | IP_MF))
			return 0;
	} else if (head.protocol == bpf_htons(ETH_P_IPV6)) {
		protocol = ((struct ipv6hdr *)&head.ip)->nexthdr;
	} else {
		return 0;
	}
	if (protocol == IPPROTO_ICMPV6) {
		if (bpf_skb_load_bytes(skb, at, &protocol, 1) || protocol != ND_ROUTER_SOLICITATION)
			return 0;
	} else if (protocol != IPPROTO_UDP || bpf_skb_load_bytes(skb, at + 2, &port, sizeof(port)) ||
		   (port != dhcp && port != bpf_htons(DNS_PORT))) {
		return 0;
	}
	return !bpf_skb_change_type(skb, PACKET_OTHERHOST);
}
