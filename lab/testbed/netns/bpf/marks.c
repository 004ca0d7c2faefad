// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Counts the bytes that enter the wire by port and by the DSCP of the frame's
 * outer IP header. It is loaded only if the workload has a DSCP.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAX_PORTS 64
#define CODEPOINTS 64

struct mark {
	__u32 port; /* ifindex */
	__u32 dscp;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, MAX_PORTS * CODEPOINTS);
	__type(key, struct mark);
	__type(value, __u64); /* bytes, with the Ethernet header */
} marked SEC(".maps");

/* At the ingress of a port, before the program wire. A superframe has one header,
 * which the frames that are cut from it repeat. */
SEC("tc")
int read_mark(struct __sk_buff *skb)
{
	struct mark m = { .port = skb->ifindex };
	__u64 bytes = skb->len, *sum;
	__be16 head; /* version, IHL and TOS; or version, traffic class and flow label */

	if (skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_UNSPEC;
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &head, sizeof(head)))
		return TC_ACT_UNSPEC;
	m.dscp = skb->protocol == bpf_htons(ETH_P_IP) ? (bpf_ntohs(head) & 0xff) >> 2 : bpf_ntohs(head) >> 6 & 0x3f;
	sum = bpf_map_lookup_elem(&marked, &m);
	if (sum)
		*sum += bytes;
	else
		bpf_map_update_elem(&marked, &m, &bytes, BPF_NOEXIST);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
