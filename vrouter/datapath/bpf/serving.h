/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the translations of services (service.h) and of packets that leave a network (nat.h) share. A translated
 * connection has two entries in the flow table of one vif: TO_BACKEND, whose remote end is the one that the workload of
 * the vif knows, and FROM_BACKEND, whose remote end is the other one. Each has the other's remote end.
 */
#pragma once

#include "known.h"
#include "rewrite.h"

/* The packet, and the entries that are made for it. They are not on the stack, which is almost full. */
struct serving {
	struct flow_packet p;
	struct flow_key other; /* key of the second entry; of an ICMP error: its own key */
	struct flow flow;
	struct service_key service;
	struct affinity_key client;
	struct affinity affinity;
	__u32 vrf;
	__u64 wire; /* wire_of() the packet */
};

MAP(serving, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct serving, 1);

static __always_inline struct serving *the_serving(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&serving, &zero);
}

/* Returns 1 if a packet of the flow without SYN, FIN and RST does not change the flow's state. */
static __always_inline int is_steady(const struct flow *f, __u8 protocol)
{
	return is_fresh(f) && (protocol != IPPROTO_TCP || f->tcp & FLOW_TCP_ESTABLISHED);
}

/* The port of a key that a translation replaces: the remote end's, or an ICMP identifier. */
static __always_inline __be16 *translated_port(struct flow_key *k)
{
	return is_icmp_number(k->protocol) ? &k->local_port : &k->remote_port;
}

/* The key of the other entry of a flow with a translation. */
static __always_inline void other_key(struct flow_key *to, const struct flow_key *k, const struct flow *f)
{
	*to = *k;
	if (f->translation == TO_ITSELF) {
		to->local_port = f->other_port;
		to->remote_port = k->local_port;
	} else if (f->translation == FROM_ITSELF) {
		to->local_port = k->remote_port;
		to->remote_port = f->other_port;
	} else {
		to->remote = f->other;
		*translated_port(to) = f->other_port;
	}
}

/* Writes one entry. Returns 0 or a negative error. */
static __noinline int write_entry(const struct flow_key *k, const struct flow *f, __u32 vrf, int old)
{
	__u32 vif = k->vif;
	int err;

	if (tracing)
		return 0;
	if (!old && !is_within_quota(vrf, vif))
		return -EDQUOT;
	err = bpf_map_update_elem(&flows, k, f, BPF_ANY);
	if (!old && !err)
		count_begun(vrf, vif);
	return err;
}

/* Writes the second entry of a flow with a service. The flow's first entry is in s->flow, which becomes the second.
 * Returns 0 or a negative error. */
static __always_inline int write_second(struct serving *s, __u32 vrf, int old)
{
	s->flow.translation++;
	s->flow.other = s->p.key.remote;
	s->flow.other_port = *translated_port(&s->p.key);
	return write_entry(&s->other, &s->flow, vrf, old);
}

/* Returns the drop reason, negative, for an error of a translation's entries. */
static __always_inline int refused(int err)
{
	return err == -EDQUOT ? -DROP_FLOW_QUOTA : err == -EEXIST ? -DROP_SERVICE_CLASH :
	       err == -ENOENT ? -DROP_NO_BACKEND : -DROP_FLOW_TABLE_FULL;
}

/* Updates both entries of a flow for a packet. The policy of the vif updates the entry with the backend too. That
 * entry can expire first: a policy gives a flow without answers less time. answered: an ACK ends the handshake. Returns 1
 * if the other entry is missing. */
static __noinline int follow_translation(struct serving *s, struct flow *f, int to_workload, int answered)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	struct flow *other;
	int into; /* as the other entry sees the packet */

	if (tracing)
		return 0;
	other_key(&s->other, &s->p.key, f);
	other = bpf_map_lookup_elem(&flows, &s->other);
	follow_tcp(f, s->p.tcp, to_workload, answered);
	if (!f->policy)
		add_to_flow(f, to_workload, s->wire);
	renew_flow(f, now);
	if (!other)
		return 1;
	into = to_workload || exchanges(f);
	/* An ACK of the workload alone must not establish a connection that a policy judges. */
	follow_tcp(other, s->p.tcp, into, into ? answered : !!other->packets[1]);
	if (into)
		add_to_flow(other, 1, s->wire);
	renew_flow(other, now);
	return 0;
}

/* Returns the other address of a workload with a floating address, or of a floating address; 0: there is none. port: 0, or
 * the first port of another node that shares the address. */
static __always_inline struct floating *floating_of(__u32 vif, const struct address *a, __u32 port)
{
	struct floating_key key = { .vif = vif, .address = *a, .port = port };

	return bpf_map_lookup_elem(&floatings, &key);
}

/* Returns the offset of the transport header of a packet. */
static __always_inline __u32 transport_at(const struct flow_packet *p)
{
	return is_icmp(p) ? p->at - sizeof(struct icmphdr) : p->at;
}

/* Returns a flow that translates the packet with the key s->p.key by a floating address and keeps its ports; 0: there is
 * no such address. destination: offset of the port is that of a destination. s->p.at: offset of the transport header; 0: the
 * packet has none. */
static __noinline struct flow *floating_flow(struct __sk_buff *skb, struct serving *s, int to_workload, int destination)
{
	struct floating *other = floating_of(s->p.key.vif, &s->p.key.remote, 0);

	if (!other)
		return 0;
	__builtin_memset(&s->flow, 0, sizeof(s->flow));
	s->flow.translation = to_workload ? FROM_BACKEND : TO_BACKEND;
	s->flow.other = other->other;
	if (s->p.at && bpf_skb_load_bytes(skb, s->p.at + port_field(s->p.key.protocol, destination), &s->flow.other_port, 2))
		return 0;
	return &s->flow;
}

/* Changes the checksum of an ICMPv6 error from a router as if the packet's destination had sent it. icmp: offset of its
 * header. */
static __noinline int take_over_error(struct __sk_buff *skb, const struct address *router, const struct address *destination, __u32 icmp)
{
	__s64 difference = bpf_csum_diff((void *)router, 16, (void *)destination, 16, 0);
	__u16 sum;

	if (difference < 0 || bpf_skb_load_bytes(skb, icmp + 2, &sum, sizeof(sum)))
		return -1;
	sum = changed_sum(sum, 0, difference);
	return bpf_skb_store_bytes(skb, icmp + 2, &sum, sizeof(sum), 0);
}

/* Translates an ICMP error, whose headers are in the_serving()->p, if the packet that it quotes is of a translated
 * flow. Then the key in p is the flow's. nat: the error leaves the network, where no one knows its routers. Returns 1 for such an error, 0 for other errors. Global function. */
__noinline int translate_error(struct __sk_buff *skb, int to_workload, int nat)
{
	struct serving *s = the_serving();
	struct flow_key *k;
	struct flow *f;
	__u32 icmp;
	int outer;

	if (!s)
		return 0;
	k = &s->p.key;
	icmp = s->p.at - sizeof(struct icmphdr);
	s->other = *k;
	if (read_quoted(skb, &s->p, to_workload, to_workload ? &s->other.local : &s->other.remote) != GO_ON ||
	    s->p.part == PART_LATER || (!has_ports(k->protocol) && !is_icmp(&s->p)))
		return 0;
	s->p.at = transport_at(&s->p);
	f = bpf_map_lookup_elem(&flows, k);
	if (!f || !f->translation || (f->translation == FROM_BACKEND) != to_workload) {
		f = floating_flow(skb, s, to_workload, to_workload);
		if (!f)
			return 0;
	}
	/* Errors of routers keep their source. */
	outer = !to_workload || same_address(&s->other.remote, &k->remote);
	if (!outer && nat) {
		outer = 1;
		if (!is_mapped(&k->remote) && take_over_error(skb, &s->other.remote, &k->remote, icmp))
			return 0;
	}
	return !rewrite_quoted(skb, f, &s->p, icmp, outer) && (!outer || !rewrite(skb, f, 0, 0));
}

