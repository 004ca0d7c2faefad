/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Replication of broadcast, unknown unicast and multicast at the node where it
 * enters the overlay. A frame that came from the fabric goes to this node's
 * vifs alone; none returns to where it came from.
 *
 * A frame cannot be encapsulated twice. So each copy for a tunnel enters the source
 * vif again, with the index of its composite member in its mark.
 */
#pragma once

#include "count.h"
#include "deliver.h"
#include "encap.h"
#include "mark.h"
#include "nexthop.h"

static __always_inline int flood_to_vif(struct __sk_buff *skb, const struct nexthop *nh)
{
	const struct vif *v = vif_of(nh);
	long failed;

	if (!v || ((v->flags & VIF_F_POLICY) && may_pass(skb, v, 1) < 0))
		return 0;
	failed = bpf_clone_redirect(skb, nh->oif, redirect_flags(skb, nh->oif));
	skb->mark = 0;
	if (failed)
		return 0;
	count_vif(skb, v->id, 1);
	count_outcome(OUT_REPLICAS);
	return 1;
}

struct replication {
	struct __sk_buff *skb;
	__u32 composite;
	__u32 own;    /* nexthop of the vif that it came from; 0: from the fabric */
	__u32 copied; /* 1: at least one copy was sent. With a count, the verifier would walk the loop for each value */
};

static long flood_to_member(__u32 index, struct replication *r)
{
	struct member_key key = { .nexthop = r->composite, .index = index };
	struct member *m = bpf_map_lookup_elem(&members, &key);
	struct __sk_buff *skb = r->skb;
	struct nexthop *nh;
	__u32 id;

	if (!m || m->nexthop == r->own)
		return 0;
	id = m->nexthop;
	nh = nexthop_of(id);
	if (!nh)
		return 0;
	trace(TRACE_MEMBER, nh->vrf, id, m->label, 1);
	if (tracing) {
		r->copied = 1;
		return 0;
	}
	if (nh->type == NH_ENCAP) {
		if (flood_to_vif(skb, nh))
			r->copied = 1;
		return 0;
	}
	if (nh->type != NH_TUNNEL || !r->own)
		return 0;
	skb->mark = COPY_MARK | (index & (MAX_MEMBERS - 1));
	if (!bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS))
		r->copied = 1;
	skb->mark = 0;
	return 0;
}

/* Global function: the verifier checks it once. */
__noinline int flood(struct __sk_buff *skb, __u32 vrf, __u32 own)
{
	struct replication r = { .skb = skb, .own = own };
	struct vrf *f = bpf_map_lookup_elem(&vrfs, &vrf);
	struct nexthop *nh;

	if (!f || !f->flood)
		return -DROP_NO_FLOOD;
	r.composite = f->flood;
	nh = nexthop_of(r.composite);
	if (!nh || nh->type != NH_COMPOSITE)
		return -DROP_NO_FLOOD;
	bpf_loop(nh->members < MAX_MEMBERS ? nh->members : MAX_MEMBERS, flood_to_member, &r, 0);
	return r.copied ? WENT(TC_ACT_SHOT, OUT_REPLICATED) : -DROP_NO_FLOOD;
}
