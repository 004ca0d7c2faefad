//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Runs the flow table and the policy by themselves, on the real maps. A test
 * says in the frame's mark which vif it passes (key of vifs), and in cb what
 * the function's other arguments are; cb[3] asks for the kernel's own flow hash
 * in place of cb[2]. The program's value is the function's; a
 * drop is counted as the vrouter's own programs count it.
 */
#include "../bpf/headers.h"
#include "../bpf/flow.h"

/* Keeps the type in the object's BTF, for the tests to name reasons by. */
const enum drop_reason *reasons __attribute__((unused));

SEC("tc")
int run_admit(struct __sk_buff *skb)
{
	__u32 ifindex = skb->mark;
	struct vif *v = bpf_map_lookup_elem(&vifs, &ifindex);
	int verdict = v && is_of_known_flow(skb, v->id, skb->cb[0]) ? 0 : admit(skb, v, skb->cb[0]);

	if (verdict < 0)
		count_drop(v ? v->id : 0, -verdict);
	return verdict;
}

SEC("tc")
int run_choose_member(struct __sk_buff *skb)
{
	__u32 ifindex = skb->mark;
	struct vif *v = bpf_map_lookup_elem(&vifs, &ifindex);

	return choose_member(skb, v, skb->cb[0], skb->cb[1],
			     skb->cb[3] ? bpf_get_hash_recalc(skb) : skb->cb[2]);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
