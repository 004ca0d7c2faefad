/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ECMP: a flow keeps to the nexthop that it was given for as long as the
 * composite has it, wherever in the list it moves. flow.member is that
 * nexthop's id.
 */
#pragma once

#include "flowstate.h"

#define ECMP_WIDTH 16 /* widest composite that the model allows */

struct member_search {
	__u32 composite;
	__u32 nexthop;
	__u32 found; /* index + 1 */
};

static __always_inline __u32 member_at(__u32 composite, __u32 index)
{
	struct member_key key = { .nexthop = composite, .index = index };
	struct member *m = bpf_map_lookup_elem(&members, &key);

	return m ? m->nexthop : 0;
}

static long try_member(__u32 i, struct member_search *s)
{
	if (member_at(s->composite, i) != s->nexthop)
		return 0;
	s->found = i + 1;
	return 1;
}

/* On a vif without policy only this function keeps flows, and it sees only packets from
 * the workload. */
static __always_inline struct flow *own_flow(struct __sk_buff *skb, const struct vif *v,
					     struct flow_packet *p, struct flow *f)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	struct decision d = { .action = FLOW_FORWARD, .vrf = v->vrf };

	if (tracing)
		return f;
	if (!f || is_forgotten(f, p->key.protocol, now) || (p->tcp && p->opens && is_closed(f)))
		begin_counted(p, &d, 0, now, f);
	if (!f)
		f = bpf_map_lookup_elem(&flows, &p->key);
	if (!f)
		return 0;
	follow_tcp(f, p->tcp, 0, 1);
	count_flow(skb, f, 0, now);
	return f;
}

/* Returns the index of the member for the packet's flow. hash: of the flow. Packets without
 * a flow, and all packets while the table is full, use the hash alone. */
__noinline int choose_member(struct __sk_buff *skb, const struct vif *v, __u32 composite,
			     __u32 members, __u32 hash)
{
	struct member_search s = { .composite = composite };
	struct flow_packet p = {};
	struct flow *f;
	__u32 index;

	if (!v || !members)
		return 0;
	index = hash % members;
	p.key.vif = v->id;
	if (read_frame(skb, &p, 0) != GO_ON || p.error)
		return index;
	f = bpf_map_lookup_elem(&flows, &p.key);
	if (!(v->flags & VIF_F_POLICY))
		f = own_flow(skb, v, &p, f);
	if (!f)
		return index;
	s.nexthop = f->member;
	if (s.nexthop && f->composite == composite) {
		if (member_at(composite, index) == s.nexthop)
			return index;
		bpf_loop(members < ECMP_WIDTH ? members : ECMP_WIDTH, try_member, &s, 0);
		if (s.found)
			return s.found - 1;
	}
	if (!tracing) {
		f->member = member_at(composite, index);
		f->composite = composite;
	}
	return index;
}
