/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Services: packets of a workload to the address of a service go to one of its backends, and the answers get
 * the service's address back when they are delivered to the workload. The source address stays. Policies see
 * the backend's address.
 *
 * A connection has two entries in the flow table: one with the service as the remote end (TO_BACKEND), and one
 * with the backend (FROM_BACKEND). Both have the other's remote end. TCP connections keep their backend. Other
 * flows get another one when theirs is deleted.
 *
 * If the workload itself is the backend, the packet returns to it from the service's address. So its answer
 * comes here again, and returns in the same way (TO_ITSELF, FROM_ITSELF).
 *
 * ICMP errors about a translated packet quote the packet as its sender knows it (RFC 5508, section 4).
 */
#pragma once

#include "icmp.h"
#include "nat.h"

#define BACKEND_TRIES 4

static __always_inline int is_in_service_range(const struct address *a)
{
	__u32 index = !is_mapped(a);
	struct service_range *r = bpf_map_lookup_elem(&service_ranges, &index);
	const __u32 *x = (const void *)a, *from, *mask;

	if (!r || !r->services)
		return 0;
	from = (const void *)&r->address;
	mask = (const void *)&r->mask;
	return !(((x[0] & mask[0]) ^ from[0]) | ((x[1] & mask[1]) ^ from[1]) |
		 ((x[2] & mask[2]) ^ from[2]) | ((x[3] & mask[3]) ^ from[3]));
}

struct backend_search {
	const struct backend *backend;
	__u32 service;
	__u32 found; /* index + 1 */
};

static __always_inline int same_backend(const struct backend *a, const struct backend *b)
{
	return a->port == b->port && same_address(&a->address, &b->address);
}

static long try_slot(__u32 i, struct backend_search *s)
{
	struct backend_key key = { .service = s->service, .index = i };
	struct backend *b = bpf_map_lookup_elem(&backends, &key);

	if (!b || !same_backend(b, s->backend))
		return 0;
	s->found = i + 1;
	return 1;
}

/* Returns 1 + the index of a backend; 0: the service does not have it. */
static __always_inline __u32 index_of_backend(const struct service *s, const struct backend *b)
{
	struct backend_search search = { .backend = b, .service = s->id };

	bpf_loop(s->backends, try_slot, &search, 0);
	return search.found;
}

static __always_inline struct service *service_of(struct serving *s)
{
	s->service.address = s->p.key.remote;
	s->service.port = s->p.key.remote_port;
	s->service.protocol = s->p.key.protocol;
	return bpf_map_lookup_elem(&services, &s->service);
}

/* Makes both entries of a flow to a backend. Returns 0; -EEXIST if the backend has another flow with the
 * workload's port; or another negative error. */
__noinline int begin_translation(__u32 service, __u32 index, __u32 vrf, __u32 entry_exists)
{
	struct backend_key bk = { .service = service, .index = index };
	struct backend *b = bpf_map_lookup_elem(&backends, &bk);
	__u64 now = bpf_ktime_get_coarse_ns();
	struct serving *s = the_serving();
	struct flow *old;
	int err;

	if (!b || !s)
		return -ENOENT;
	__builtin_memset(&s->flow, 0, sizeof(s->flow));
	renew_flow(&s->flow, now);
	s->flow.created_ns = now;
	s->flow.tcp = s->p.tcp & TCP_F_SYN ? FLOW_TCP_SYN : 0;
	s->flow.translation = same_address(&b->address, &s->p.key.local) ? TO_ITSELF : TO_BACKEND;
	s->flow.other = b->address;
	s->flow.other_port = b->port;
	s->affinity.backend = *b;
	s->affinity.seen_ns = now;
	other_key(&s->other, &s->p.key, &s->flow);
	old = bpf_map_lookup_elem(&flows, &s->other);
	if (old && !is_closed(old) && !is_forgotten(old, s->p.key.protocol, now) &&
	    (!old->translation || old->other_port != s->p.key.remote_port || !same_address(&old->other, &s->p.key.remote)))
		return -EEXIST;
	err = write_second(s, vrf, !!old);
	s->flow.translation--;
	s->flow.other = s->affinity.backend.address;
	s->flow.other_port = s->affinity.backend.port;
	return err ? : write_entry(&s->p.key, &s->flow, vrf, entry_exists);
}

/* Returns the index of the backend that the client had last, if the service still has that backend; else the
 * index of a random backend. */
static __noinline __u32 choose_backend(const struct service *to, struct serving *s, __u64 now)
{
	struct affinity *a = to->affinity ? bpf_map_lookup_elem(&affinities, &s->client) : 0;
	__u32 last = a && now - a->seen_ns < to->affinity * NSEC_PER_SEC ? index_of_backend(to, &a->backend) : 0;

	return last ? last - 1 : bpf_get_prandom_u32() % to->backends;
}

/* Begins the flow of the packet in hand to a backend. old: its entry; 0: none. Returns GO_ON, a verdict, or 0
 * if the packet is not for a service. */
static __noinline int begin_service(struct __sk_buff *skb, const struct vif *v, struct serving *s, const struct flow *old)
{
	struct service *to = service_of(s);
	__u64 now = bpf_ktime_get_coarse_ns();
	int verdict = -ENOENT, i;

	if (!to || (s->p.key.protocol == IPPROTO_TCP && !s->p.opens))
		return 0; /* also a connection that began before vrouter had its service */
	trace6(TRACE_SERVICE, v->vrf, &s->p.key.remote, to->id, to->backends, 1);
	if (!to->backends) {
		verdict = to->flags & SERVICE_F_DROP ? -1 : icmp_error(skb, v, CAUSE_NO_PORT, 0);
		return verdict < 0 ? -DROP_NO_BACKEND : DROPPED_WITH_NOTICE(verdict, DROP_NO_BACKEND);
	}
	s->client.service = to->id;
	s->client.client = s->p.key.local;
	for (i = 0; i < BACKEND_TRIES && verdict && verdict != -EDQUOT; i++)
		verdict = begin_translation(to->id, choose_backend(to, s, i ? 0 : now), v->vrf, !!old);
	if (verdict)
		return refused(verdict);
	if (to->affinity && !tracing)
		bpf_map_update_elem(&affinities, &s->client, &s->affinity, BPF_ANY);
	return GO_ON;
}

/* Returns 1 if the service of a flow other than TCP no longer has the flow's backend. */
static __noinline int has_lost_backend(const struct flow *f, struct serving *s)
{
	struct service *to;

	if (s->p.key.protocol == IPPROTO_TCP || f->translation == FROM_ITSELF)
		return 0;
	to = service_of(s);
	s->affinity.backend.address = f->other;
	s->affinity.backend.port = f->other_port;
	return !to || !index_of_backend(to, &s->affinity.backend);
}

/* Sets *to to the destination of a translated packet from the workload, or returns the packet to the workload if
 * the workload is the backend. */
static __always_inline int send_to_backend(struct __sk_buff *skb, const struct vif *v, const struct flow *f, struct address *to)
{
	int verdict;

	if (f->translation == TO_BACKEND) {
		*to = f->other;
		return GO_ON;
	}
	count_vif(skb, v->id, 1);
	verdict = send_back(skb, v, is_mapped(&f->other) ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6));
	return verdict < 0 ? verdict : WENT(verdict, OUT_FORWARDED);
}

/* Like to_service, for packets that may change the state of their flow. Global function. */
__noinline int to_service_slowly(struct __sk_buff *skb, const struct vif *v, struct address *to)
{
	struct serving *s = the_serving();
	int verdict, error;
	struct flow *f;

	if (!v || !to || !s)
		return -DROP_NO_VIF;
	__builtin_memset(&s->p, 0, sizeof(s->p));
	s->p.key.vif = v->id;
	verdict = read_frame(skb, &s->p, 0);
	if (verdict < 0)
		return verdict;
	error = s->p.error;
	if (verdict != GO_ON || (error ? !translate_error(skb, 0, 0) : !has_ports(s->p.key.protocol)))
		return GO_ON;
	s->wire = wire_of(skb);
	f = bpf_map_lookup_elem(&flows, &s->p.key);
	if (error)
		return f ? send_to_backend(skb, v, f, to) : GO_ON;
	if (f && f->translation && !is_forgotten(f, s->p.key.protocol, bpf_ktime_get_coarse_ns()) &&
	    !(s->p.opens && is_closed(f)) && !has_lost_backend(f, s)) {
		if (follow_translation(s, f, 0, 1) && !replaces_source(f)) {
			s->flow = *f;
			verdict = write_second(s, v->vrf, 0);
			if (verdict)
				return refused(verdict);
		}
	} else {
		verdict = begin_service(skb, v, s, f);
		if (verdict != GO_ON)
			return verdict ? : GO_ON;
		f = &s->flow;
	}
	if (f->translation == FROM_BACKEND)
		return GO_ON;
	if (rewrite(skb, f, s->p.part == PART_LATER ? 0 : s->p.at, s->p.key.protocol))
		return -DROP_MALFORMED;
	return send_to_backend(skb, v, f, to);
}

/* Translates a packet from the workload of v to *to, which becomes its new destination. Returns GO_ON or a
 * verdict. The verifier checks a global function once, independent of its callers. */
__noinline int to_service(struct __sk_buff *skb, const struct vif *v, struct address *to)
{
	struct serving *s = the_serving(); /* on the stack, the key would be too much for Linux 6.1 */
	struct flow_key *k = &s->p.key;
	struct flow *f;

	if (!v || !to || !s)
		return -DROP_NO_VIF;
	if (!(v->flags & VIF_F_NODE) && !is_in_service_range(to))
		return GO_ON;
	__builtin_memset(k, 0, sizeof(*k));
	k->vif = v->id;
	if (!tracing && read_known(skb, k, 0)) {
		f = bpf_map_lookup_elem(&flows, k);
		if (f && f->translation && f->translation != FROM_BACKEND && is_steady(f, k->protocol)) {
			add_to_flow(f, 0, wire_of(skb));
			return rewrite(skb, f, BEHIND_IP_HEADER, k->protocol) ? -DROP_MALFORMED : send_to_backend(skb, v, f, to);
		}
	}
	return v->flags & VIF_F_NODE ? from_outside(skb, v, to) : to_service_slowly(skb, v, to);
}

/* Like from_service, for packets that may change the state of their flow, and for ICMP errors about packets to a
 * backend. Returns 0 or a negative drop reason. Global function. */
__noinline int from_service_slowly(struct __sk_buff *skb, __u32 vif, __u32 flags)
{
	struct serving *s = the_serving();
	struct flow *f;
	int verdict;

	if (!s)
		return 0;
	__builtin_memset(&s->p, 0, sizeof(s->p));
	s->p.key.vif = vif;
	flags &= NH_F_NAT;
	verdict = read_frame(skb, &s->p, 1);
	if (verdict != GO_ON)
		return verdict < 0 && flags ? verdict : 0;
	if (s->p.error) {
		translate_error(skb, 1, !!flags);
		return 0;
	}
	if (flags)
		return to_outside(skb);
	if (!has_ports(s->p.key.protocol))
		return 0;
	f = bpf_map_lookup_elem(&flows, &s->p.key);
	if (!f || f->translation != FROM_BACKEND)
		return 0;
	if (is_closed(f) && s->p.tcp & TCP_F_SYN) { /* after the connection, the workload opens one to the backend itself */
		f->translation = 0;
		return 0;
	}
	/* Other packets than the answer to a SYN are of a connection to the backend itself, which has the same ports and,
	 * without a policy, no entry. */
	if (s->p.key.protocol == IPPROTO_TCP && !(f->tcp & FLOW_TCP_ESTABLISHED) && !f->packets[1] &&
	    !(s->p.tcp & (TCP_F_SYN | TCP_F_RST)))
		return 0;
	s->wire = wire_of(skb);
	follow_translation(s, f, 1, 1);
	rewrite(skb, f, s->p.part == PART_LATER ? 0 : s->p.at, s->p.key.protocol);
	return 0;
}

/* If a frame to the workload of a vif is the answer of a backend, gives it the service's address as its source.
 * flags: those of the nexthop. Returns 0 if from_service_slowly() must do that. Global function. */
__noinline int from_service(struct __sk_buff *skb, __u32 vif, __u32 flags)
{
	struct flow_key k = { .vif = vif };
	struct flow *f;

	if (tracing || !read_known(skb, &k, 1))
		return 0;
	f = bpf_map_lookup_elem(&flows, &k);
	if (!f || f->translation != FROM_BACKEND)
		return !(flags & NH_F_NAT);
	if (!is_steady(f, k.protocol))
		return 0;
	if (!f->policy)
		add_to_flow(f, 1, wire_of(skb));
	rewrite(skb, f, BEHIND_IP_HEADER, k.protocol);
	return 1;
}
