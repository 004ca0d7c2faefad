/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Decides whether a packet may pass its vif. The vif's policy judges the first packet of a
 * flow. The flow's entry then decides for later packets of both directions.
 *
 * If the entry is lost or too old, a TCP packet within a connection is judged like a first
 * packet, by the rules of its direction: a rule for one direction never opens the other.
 */
#pragma once

#include "flowstate.h"
#include "known.h"
#include "member.h"

enum standing {
	PART_OF_IT,   /* the entry speaks for the packet */
	BEGINS_ANEW,  /* the entry is of a flow that has ended, or of another one */
	STANDS_ALONE, /* judged by itself, and the entry stays as it is */
};

/*
 * A denial holds only for the judged direction: a denied sender must not block connections
 * that the other side may open. But later packets of a connection that was denied or cut
 * do not open it again.
 */
static __always_inline int standing_of_denied(const struct flow *f, const struct flow_packet *p,
					      int to_workload)
{
	if (f->reply == to_workload)
		return PART_OF_IT;
	if (p->key.protocol != IPPROTO_TCP || p->opens)
		return BEGINS_ANEW;
	return f->tcp & (FLOW_TCP_SYN | FLOW_TCP_ESTABLISHED) ? PART_OF_IT : BEGINS_ANEW;
}

static __always_inline int standing_of(const struct flow *f, const struct flow_packet *p,
				       int to_workload, __u64 now)
{
	if (is_forgotten(f, p->key.protocol, now))
		return BEGINS_ANEW;
	if (f->action == FLOW_DROP)
		return standing_of_denied(f, p, to_workload);
	if (!p->opens)
		return PART_OF_IT;
	if (p->key.protocol == IPPROTO_TCP)
		return is_closed(f) ? BEGINS_ANEW : PART_OF_IT;
	/* An ICMP request is no reply to one, even with the same identifier. */
	return f->reply == to_workload ? PART_OF_IT : STANDS_ALONE;
}

static __always_inline int verdict_of(__u8 action)
{
	return action == FLOW_DROP ? -DROP_POLICY : 0;
}

static __always_inline void trace_flow(const struct vif *v, const struct flow_packet *p, const struct flow *f)
{
	trace6(TRACE_FLOW, v->vrf, &p->key.remote, f ? f->rule : 0, f ? f->action : 0, !!f);
}

/* If the rules have changed, the flow is judged again in the direction of its first
 * packet. Without a policy no new flow passes, and existing flows keep their decision. */
static __always_inline int admit_packet(struct __sk_buff *skb, const struct vif *v,
					struct flow_packet *p, int to_workload)
{
	struct flow *f = bpf_map_lookup_elem(&flows, &p->key);
	__u64 now = bpf_ktime_get_coarse_ns();
	int standing = f ? standing_of(f, p, to_workload, now) : BEGINS_ANEW;
	__u32 id = v->id;
	struct policy *policy = bpf_map_lookup_elem(&policies, &id);
	struct decision d = { .vrf = v->vrf };
	int err = 0;

	trace_flow(v, p, f);
	if (!policy && standing != PART_OF_IT)
		return -DROP_POLICY;
	if (policy && (standing != PART_OF_IT || !f || f->policy != policy->generation)) {
		judge_flow(policy, p, standing == PART_OF_IT && f ? f->reply : to_workload, &d);
		trace6(TRACE_POLICY, v->vrf, &p->key.remote, d.rule, d.action == FLOW_FORWARD, !!d.rule);
		if (standing == STANDS_ALONE || tracing)
			return verdict_of(d.action);
		if (!f && d.action == FLOW_DROP)
			return -DROP_POLICY; /* no entry: denied packets must not fill the table */
		if (standing == BEGINS_ANEW) {
			err = begin_counted(p, &d, to_workload, now, f);
		} else if (f) {
			f->action = d.action;
			f->rule = d.rule;
			f->policy = d.generation;
		}
	}
	if (!f && (!err || err == -EEXIST)) /* ours, or another CPU's: it came first */
		f = bpf_map_lookup_elem(&flows, &p->key);
	if (!f)
		return err == -EDQUOT ? -DROP_FLOW_QUOTA : -DROP_FLOW_TABLE_FULL;
	if (tracing)
		return verdict_of(f->action);
	if (f->action == FLOW_FORWARD)
		follow_tcp(f, p->tcp, to_workload, !!f->packets[to_workload ? 0 : 1]);
	count_flow(skb, f, to_workload, now);
	return verdict_of(f->action);
}

/*
 * An ICMP error goes with the packet that it quotes, which went the other way
 * and whose sender it tells. It is not counted in the flow, and does not keep
 * it alive.
 */
static __always_inline int admit_error(struct __sk_buff *skb, const struct vif *v,
				       struct flow_packet *p, int to_workload)
{
	struct address told = to_workload ? p->key.local : p->key.remote;
	__u32 id = v->id;
	struct policy *policy;
	struct decision d = { .vrf = v->vrf };
	struct flow *f;
	int verdict;

	verdict = read_quoted(skb, p, to_workload, &told);
	if (verdict != GO_ON)
		return verdict;
	f = bpf_map_lookup_elem(&flows, &p->key);
	trace_flow(v, p, f);
	if (!f || is_forgotten(f, p->key.protocol, bpf_ktime_get_coarse_ns()))
		return -DROP_POLICY;
	policy = bpf_map_lookup_elem(&policies, &id);
	if (!policy || policy->generation == f->policy)
		return verdict_of(f->action);
	judge_flow(policy, p, f->reply, &d);
	return verdict_of(d.action);
}

/* The packet that admit() judges. It is not on the stack: Linux 6.1 rounds the stack of
 * each nested call up to a multiple of 32 bytes, and their sum must not exceed 512. */
MAP(judged, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct flow_packet, 1);

/*
 * Returns 0, or minus the reason to drop the frame, which starts with its Ethernet header.
 * v is a vif with VIF_F_POLICY. Neighbour discovery and packets other than IP pass: the
 * check of sources guards addresses.
 *
 * The verifier checks a global function once, independent of its callers.
 */
__noinline int admit(struct __sk_buff *skb, const struct vif *v, int to_workload)
{
	__u32 zero = 0;
	struct flow_packet *p = bpf_map_lookup_elem(&judged, &zero);
	int verdict;

	if (!v || !p)
		return -DROP_NO_VIF;
	__builtin_memset(p, 0, sizeof(*p));
	to_workload = !!to_workload;
	p->key.vif = v->id;
	verdict = read_frame(skb, p, to_workload);
	if (verdict != GO_ON)
		return verdict;
	if (p->error)
		return admit_error(skb, v, p, to_workload);
	return admit_packet(skb, v, p, to_workload);
}

/* Like admit(), but with VIF_F_OPEN all frames pass. */
static __always_inline int may_pass(struct __sk_buff *skb, const struct vif *v, int to_workload)
{
	int verdict = admit(skb, v, to_workload);

	return verdict < 0 && v->flags & VIF_F_OPEN ? 0 : verdict;
}
