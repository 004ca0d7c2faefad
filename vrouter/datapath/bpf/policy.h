/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The decision of a vif's policy about a flow: the first rule that matches its first packet
 * decides, else the policy's default for that direction. If they allow the flow, the group of the
 * policy must allow it too, where it is closed.
 *
 * RULE_F_LOG has no effect here. The drop log has each denied packet with DROP_POLICY, and
 * the flow table has each allowed flow with its rule.
 */
#pragma once

#include "identity.h"

struct decision {
	__u32 generation;
	__u8 action; /* enum flow_action */
	__u8 rule;   /* index + 1; 0: the default */
	__u16 vrf;   /* VRF of the vif; the quotas need it */
};

struct rule_search {
	union {
		__u32 remote32[4];
		__u64 remote[2];
	};
	__u32 begin;    /* index of the first rule of the chunk */
	__u32 found;    /* index + 1 */
	__u16 port;     /* of the destination, host order */
	__u8 ported;    /* the protocol has ports */
	__u8 protocol;
	__u8 family;
	__u8 egress;    /* RULE_F_EGRESS or 0 */
	__u8 allowed;
	__u8 always;    /* RULE_F_ALWAYS or 0 */
};

/* No ports (0–0) and all ports (0–65535) match protocols without ports too. */
static __always_inline int port_matches(const struct rule *r, const struct rule_search *s)
{
	if (!r->first_port && (!r->last_port || r->last_port == 0xffff))
		return 1;
	return s->ported && s->port >= r->first_port && s->port <= r->last_port;
}

static __always_inline int rule_matches(const struct rule *r, const struct rule_search *s)
{
	const __u64 *remote = (const void *)&r->remote, *mask = (const void *)&r->mask;

	return (r->flags & RULE_F_EGRESS) == s->egress &&
	       (!r->protocol || r->protocol == s->protocol) &&
	       (!r->family || r->family == s->family) &&
	       port_matches(r, s) &&
	       (s->remote[0] & mask[0]) == remote[0] && (s->remote[1] & mask[1]) == remote[1];
}

/* Two pointers, because a global function cannot store a pointer in the memory of its caller. */
struct chunk_search {
	const struct rule_chunk *chunk;
	struct rule_search *s;
};

static long try_rule(__u32 i, struct chunk_search *c)
{
	struct rule_search *s = c->s;
	const struct rule *r;

	if (i >= CHUNK_RULES)
		return 1;
	r = &c->chunk->rule[i];
	if (!rule_matches(r, s))
		return 0;
	s->found = s->begin + i + 1;
	s->allowed = r->flags & RULE_F_ALLOW;
	s->always = r->flags & RULE_F_ALWAYS;
	return 1;
}

/* The policy has `rules` rules in this chunk and the chunks after it. Global function: the verifier checks it once. */
__noinline int try_chunk(const struct rule_chunk *chunk, __u32 rules, struct rule_search *s)
{
	struct chunk_search c = { chunk, s };

	if (chunk && s)
		bpf_loop(rules < CHUNK_RULES ? rules : CHUNK_RULES, try_rule, &c, 0);
	return 0;
}

/* Rules after the first chunk. A missing chunk denies the packet: the agent has just
 * replaced the policy. */
static __always_inline void try_more_rules(const struct policy *policy, __u32 vif, struct rule_search *s)
{
	struct rules_key key = { .vif = vif, .generation = policy->generation };
	struct rule_chunk *chunk;

	for (__u32 begin = CHUNK_RULES; begin < MAX_RULES; begin += CHUNK_RULES) {
		if (s->found || policy->rules <= begin)
			return;
		key.chunk = begin / CHUNK_RULES;
		chunk = bpf_map_lookup_elem(&more_rules, &key);
		if (!chunk) {
			s->allowed = 0;
			return;
		}
		s->begin = begin;
		try_chunk(chunk, policy->rules - begin, s);
	}
}

static __always_inline void ask_for(struct rule_search *s, const struct flow_packet *p, int to_workload)
{
	const __u32 *remote = (const void *)&p->key.remote;

	s->remote32[0] = remote[0];
	s->remote32[1] = remote[1];
	s->remote32[2] = remote[2];
	s->remote32[3] = remote[3];
	s->port = bpf_ntohs(to_workload ? p->key.local_port : p->key.remote_port);
	s->ported = has_ports(p->key.protocol);
	s->protocol = p->key.protocol;
	s->family = p->family;
	s->egress = to_workload ? 0 : RULE_F_EGRESS;
}

/* d->vrf is the vif's. Judges a flow whose first packet went to the workload, or came from it. Global function:
 * the verifier checks it once. */
__noinline int judge_flow(const struct policy *policy, const struct flow_packet *p,
			  int to_workload, struct decision *d)
{
	struct rule_search s = {};

	if (!policy || !p || !d)
		return 0;
	ask_for(&s, p, to_workload);
	s.allowed = to_workload ? policy->allow_in : policy->allow_out;
	try_chunk(&policy->first, policy->rules, &s);
	try_more_rules(policy, p->key.vif, &s);
	if (s.allowed && !s.always && (to_workload ? policy->closed_in : policy->closed_out))
		s.allowed = is_in_group(p, policy->group, d->vrf, to_workload);
	d->generation = policy->generation;
	d->action = s.allowed ? FLOW_FORWARD : FLOW_DROP;
	d->rule = s.found;
	return 0;
}
