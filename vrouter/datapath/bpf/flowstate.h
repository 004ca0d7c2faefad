/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The life of an entry of the flow table: begin, follow TCP's state, count, expire.
 *
 * Two CPUs may use one entry. Packets and bytes are exact, except at the moment in which a
 * new flow takes an entry. The TCP state is written without a lock: if a bit is lost, the
 * entry stays until it is idle.
 */
#pragma once

#include <linux/errno.h>

#include "count.h"
#include "policy.h"
#include "quota.h"

#define NSEC_PER_SEC 1000000000ull
#define FLOW_TCP_FINS (FLOW_TCP_FIN_OUT | FLOW_TCP_FIN_IN)

static __always_inline int is_closed(const struct flow *f)
{
	return f->tcp & FLOW_TCP_RST || (f->tcp & FLOW_TCP_FINS) == FLOW_TCP_FINS;
}

/* Returns 1 if the other side has sent a packet, or if the entry cannot show that. It
 * cannot on a vif without a policy: there only the workload's packets are counted
 * (own_flow()). */
static __always_inline int is_answered(const struct flow *f)
{
	return !f->policy || (f->reply ? f->packets[0] : f->packets[1]);
}

/* Times in seconds after which flows expire; 0: never. */
volatile const __u32 flow_idle;
volatile const __u32 flow_closed;     /* a closed or half-open TCP flow */
volatile const __u32 flow_unanswered; /* a flow other than TCP whose other side never sent */

/* Least timeout of an established TCP connection: 2 hours and 4 minutes (RFC 5382). */
#define ESTABLISHED_S 7440

/* Returns the time after which an idle flow expires, in seconds; 0: never. isForgotten() in
 * flows.go does the same. */
static __always_inline __u32 timeout_of(const struct flow *f, __u8 protocol)
{
	if (protocol != IPPROTO_TCP)
		return is_answered(f) ? flow_idle : flow_unanswered;
	if (!(f->tcp & FLOW_TCP_ESTABLISHED) || is_closed(f))
		return flow_closed;
	return !flow_idle || flow_idle > ESTABLISHED_S || f->tcp & FLOW_TCP_FINS ? flow_idle : ESTABLISHED_S;
}

/* Returns 1 for an expired flow. Programs ignore its entry until the agent deletes it.
 * Global function: the verifier checks it once. */
__noinline int is_forgotten(const struct flow *f, __u8 protocol, __u64 now)
{
	__u64 seen, limit;

	if (!f)
		return 1;
	seen = f->seen_ns;
	limit = timeout_of(f, protocol);
	return limit && now > seen && now - seen > limit * NSEC_PER_SEC;
}

/* Records the time of a packet. */
static __always_inline void renew_flow(struct flow *f, __u64 now)
{
	f->seen_ns = now;
	f->seen_tick = bpf_jiffies64();
}

/*
 * Makes the entry of a flow from its first packet, or overwrites the entry `old`; then the
 * table needs no room. Returns 0 or the error of bpf_map_update_elem. It is static: before
 * Linux 6.2 a pointer from the argument of a global function cannot be a key.
 */
static __noinline int begin_flow(const struct flow_packet *p, const struct decision *d,
				 int to_workload, __u64 now, struct flow *old)
{
	struct flow f = { .created_ns = now, .reply = !!to_workload };

	renew_flow(&f, now);
	f.action = d->action;
	f.rule = d->rule;
	f.policy = d->generation;
	f.tcp = p->tcp & TCP_F_SYN ? FLOW_TCP_SYN : 0;
	f.icmp = p->icmp;
	if (!old)
		return bpf_map_update_elem(&flows, &p->key, &f, BPF_NOEXIST);
	*old = f;
	return 0;
}

/* Calls begin_flow() if the quotas allow another flow. Returns -EDQUOT if the port or its
 * network has too many flows. */
static __always_inline int begin_counted(const struct flow_packet *p, const struct decision *d,
					 int to_workload, __u64 now, struct flow *old)
{
	__u32 vrf = d->vrf, vif = p->key.vif;
	int err;

	if (!old && !is_within_quota(vrf, vif))
		return -EDQUOT;
	err = begin_flow(p, d, to_workload, now, old);
	if (!old && !err)
		count_begun(vrf, vif);
	return err;
}

/* answered: the other end has been heard, so an ACK ends the handshake. */
static __always_inline void follow_tcp(struct flow *f, __u8 flags, int to_workload, int answered)
{
	__u8 tcp = f->tcp;

	if (flags & TCP_F_SYN)
		tcp |= FLOW_TCP_SYN;
	else if (flags & TCP_F_ACK && !(flags & TCP_F_RST) && answered)
		tcp |= FLOW_TCP_ESTABLISHED;
	if (flags & TCP_F_FIN)
		tcp |= to_workload ? FLOW_TCP_FIN_IN : FLOW_TCP_FIN_OUT;
	if (flags & TCP_F_RST)
		tcp |= FLOW_TCP_RST;
	if (tcp != f->tcp)
		f->tcp = tcp;
}

/* A packet of a flow that was renewed at most this number of ticks before does not renew it.
 * These are 16 to 160 ms: a kernel has 100 to 1000 ticks in a second. */
#define FRESH_TICKS 16

static __always_inline int is_fresh(const struct flow *f)
{
	return (__u32)bpf_jiffies64() - f->seen_tick < FRESH_TICKS;
}

/* wire: wire_of() the packet. */
static __always_inline void add_to_flow(struct flow *f, int to_workload, __u64 wire)
{
	if (to_workload) {
		__sync_fetch_and_add(&f->packets[1], wire >> 32);
		__sync_fetch_and_add(&f->bytes[1], (__u32)wire);
	} else {
		__sync_fetch_and_add(&f->packets[0], wire >> 32);
		__sync_fetch_and_add(&f->bytes[0], (__u32)wire);
	}
}

static __always_inline void count_flow(struct __sk_buff *skb, struct flow *f, int to_workload, __u64 now)
{
	if (f->seen_ns != now)
		renew_flow(f, now);
	add_to_flow(f, to_workload, wire_of(skb));
}
