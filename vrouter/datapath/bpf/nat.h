/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Packets that leave a network by this node, and their answers. The node's kernel forwards them. Packets of a workload
 * get the node's address in the network's pool as their source, and a port that no other connection to the same
 * destination has. The entries in the flow table are those of the vif that connects the node: its "workload" is the
 * outside. So the workload's address is that of the backend, and the address in the pool is that of the service
 * (serving.h).
 *
 * Several nodes can share an address of the pool. Each has a range of ports. A node sends packets for a port of another node
 * to that node. There they enter the network at the vif that connects the node (enter_network_at()).
 *
 * A floating address replaces the address of one workload in both directions, and needs no flow. Routers outside the
 * fleet, to which BGP announces floating addresses, exchange these packets by tunnels (to_router(), from_router()).
 */
#pragma once

#include "nexthop.h"
#include "route.h"
#include "serving.h"

#define PORT_TRIES 64
#define FIRST_NAT_PORT 1024 /* of all nodes that share an address */
#define ICMP_ASKED 8 /* echo; RFC 792 and 950: timestamp 13, information 15, mask 17 */

static __always_inline struct nat *nat_of(__u32 vif)
{
	return bpf_map_lookup_elem(&nats, &vif);
}

/* Returns the node's address in the pool for packets of the same IP version as those of `a`. */
static __always_inline const struct address *pool_address(const struct nat *n, const struct address *a)
{
	return is_mapped(a) ? &n->address4 : &n->address6;
}

static __always_inline int is_zero(const struct address *a)
{
	const __u32 *w = (const void *)a;

	return !(w[0] | w[1] | w[2] | w[3]);
}

/* Returns 1 for a protocol that is translated with a port. */
static __always_inline int is_translated_protocol(const struct flow_packet *p)
{
	return p->key.protocol == IPPROTO_TCP || p->key.protocol == IPPROTO_UDP || p->key.protocol == IPPROTO_SCTP || is_icmp(p);
}

/* Returns 1 if a packet without a flow begins a connection to the outside. Other packets answer the outside: the node's
 * kernel knows their connection, for example one to a mapped port. */
static __always_inline int begins_outside(const struct flow_packet *p)
{
	return p->opens || (p->key.protocol != IPPROTO_TCP && !is_icmp(p));
}

/* Returns 1 for an ICMP request with an identifier. */
static __always_inline int has_identifier(struct __sk_buff *skb, const struct flow_packet *p)
{
	__u8 type;

	if (bpf_skb_load_bytes(skb, transport_at(p), &type, 1))
		return 0;
	return p->family == FAMILY_IPV6 ? type == ICMPV6_ECHO_REQUEST :
					  type == ICMP_ASKED || type == 13 || type == 15 || type == 17;
}

/* Takes a port of the pool for the flow in the_serving(): makes the entry with the address in the pool. Returns 0;
 * -EEXIST if the port is in use; or another negative error. */
static __always_inline int take_port(__u32 port)
{
	struct serving *s = the_serving();
	__u64 seen, now;
	struct flow *old;
	int err;

	if (!s)
		return -ENOENT;
	*translated_port(&s->other) = bpf_htons(port);
	if (tracing)
		return 0;
	now = s->flow.seen_ns;
	old = bpf_map_lookup_elem(&flows, &s->other);
	if (!old) {
		err = bpf_map_update_elem(&flows, &s->other, &s->flow, BPF_NOEXIST);
		if (!err)
			count_begun(s->vrf, s->other.vif);
		return err;
	}
	seen = old->seen_ns;
	if (!is_forgotten(old, s->other.protocol, now) || __sync_val_compare_and_swap(&old->seen_ns, seen, now) != seen)
		return -EEXIST; /* in use, or another CPU has taken it */
	*old = s->flow;
	return 0;
}

struct port_search {
	__u32 first;  /* port of the node in the pool */
	__u32 ports;
	__u32 own;    /* port of the workload */
	__u32 random;
	int err;
};

/* Tries the workload's port, and then ports from a random one on. */
static long try_port(__u32 i, struct port_search *s)
{
	__u32 port = i ? s->first + (s->random + i) % s->ports : s->own;

	if (port - s->first < s->ports)
		s->err = take_port(port);
	return s->err != -EEXIST;
}

/* Makes both entries of a connection to the outside. old: the entry with the workload's address; 0: there is none.
 * Returns 0 or a negative error; -EEXIST: all ports that were tried are in use. */
static __always_inline int begin_nat(const struct nat *n, struct serving *s, struct flow *old)
{
	struct port_search search = { .first = n->first_port, .ports = n->last_port - n->first_port + 1, .err = -EEXIST };
	struct flow_key *k = &s->p.key;

	if (!tracing && !is_within_quota(n->vrf, k->vif))
		return -EDQUOT;
	__builtin_memset(&s->flow, 0, sizeof(s->flow));
	renew_flow(&s->flow, bpf_ktime_get_coarse_ns());
	s->flow.created_ns = s->flow.seen_ns;
	s->flow.tcp = s->p.tcp & TCP_F_SYN ? FLOW_TCP_SYN : 0;
	s->flow.reply = 1;
	s->flow.translation = TO_BACKEND;
	s->flow.other = k->remote;
	s->flow.other_port = *translated_port(k);
	s->vrf = n->vrf;
	s->other = *k;
	s->other.remote = *pool_address(n, &k->remote);
	search.own = bpf_ntohs(s->flow.other_port);
	search.random = bpf_get_prandom_u32();
	bpf_loop(k->protocol == IPPROTO_SCTP ? 1 : 1 + PORT_TRIES, try_port, &search, 0); /* SCTP's checksum includes the ports */
	if (search.err)
		return search.err;
	s->flow.translation = FROM_BACKEND;
	s->flow.other = s->other.remote;
	s->flow.other_port = *translated_port(&s->other);
	if (!old)
		return write_entry(k, &s->flow, n->vrf, 0);
	s->flow.action = old->action; /* a policy of the node's port has judged it */
	s->flow.rule = old->rule;
	s->flow.policy = old->policy;
	s->flow.icmp = old->icmp;
	s->flow.created_ns = old->created_ns; /* and has counted the packet */
	__builtin_memcpy(s->flow.packets, old->packets, sizeof(s->flow.packets));
	__builtin_memcpy(s->flow.bytes, old->bytes, sizeof(s->flow.bytes));
	if (!tracing)
		*old = s->flow;
	return 0;
}

/* Returns 1 if the other entry of a translated flow exists and is not of another flow. A closed connection that opens
 * again begins anew in both entries. */
static __noinline int has_pair(struct serving *s, struct flow *f)
{
	struct flow *other;

	other_key(&s->other, &s->p.key, f);
	other = bpf_map_lookup_elem(&flows, &s->other);
	if (!other || other->other_port != *translated_port(&s->p.key) || !same_address(&other->other, &s->p.key.remote))
		return 0;
	if (s->p.opens && is_closed(f) && !tracing)
		f->tcp = other->tcp = 0;
	return 1;
}

/* Stores the offset of the transport header that rewrite() changes; 0: there is none. */
static __always_inline void find_transport_header(struct flow_packet *p)
{
	p->at = p->part == PART_LATER || (!has_ports(p->key.protocol) && !is_icmp(p)) ? 0 : transport_at(p);
}

/* Begins the connection of a packet that leaves the network, or finds the floating address of its workload. f: its
 * entry; 0: none. Returns GO_ON if s->flow is the translation, 0 if the packet is not translated, or a negative drop reason. */
static __noinline int leave_anew(struct __sk_buff *skb, const struct nat *n, struct serving *s, struct flow *f)
{
	int asks = is_icmp(&s->p) && s->p.part != PART_LATER && s->p.opens, err;

	if (asks && !has_identifier(skb, &s->p))
		asks = -1;
	find_transport_header(&s->p);
	if (floating_flow(skb, s, 1, 0))
		return GO_ON;
	if (!is_translated_protocol(&s->p) || asks < 0)
		return -DROP_NAT_PROTOCOL;
	if (!begins_outside(&s->p))
		return 0;
	if (is_zero(pool_address(n, &s->p.key.remote)))
		return -DROP_NAT_PORTS;
	err = begin_nat(n, s, f);
	return !err ? GO_ON : err == -EEXIST ? -DROP_NAT_PORTS : refused(err);
}

/* Gives the packet in the_serving(), which a workload sends to a router outside the fleet, the workload's floating address
 * as its source, if it has one. Returns 0 or a negative drop reason. */
static __always_inline int to_router(struct __sk_buff *skb, struct serving *s)
{
	struct flow *f;

	find_transport_header(&s->p);
	f = floating_flow(skb, s, 1, 0);
	return f && rewrite(skb, f, s->p.at, s->p.key.protocol) ? -DROP_MALFORMED : 0;
}

/* Gives the packet in the_serving(), which leaves the network, an address of the pool as its source. Returns 0 or a
 * negative drop reason. Global function. */
__noinline int to_outside(struct __sk_buff *skb)
{
	struct serving *s = the_serving();
	struct flow *f, *other;
	struct flow_key *k;
	struct nat *n;
	int verdict;

	if (!s)
		return 0;
	k = &s->p.key;
	n = nat_of(k->vif);
	if (!n) /* not the vif that connects the node, but that of the workload */
		return to_router(skb, s);
	f = is_translated_protocol(&s->p) ? bpf_map_lookup_elem(&flows, k) : 0;
	if (f && f->translation == FROM_BACKEND && !is_forgotten(f, k->protocol, bpf_ktime_get_coarse_ns()) && has_pair(s, f)) {
		other = bpf_map_lookup_elem(&flows, &s->other);
		/* An ACK of the workload alone does not establish a connection. */
		s->wire = wire_of(skb);
		follow_translation(s, f, 1, other && other->packets[0]);
		find_transport_header(&s->p);
	} else {
		verdict = leave_anew(skb, n, s, f);
		if (verdict != GO_ON)
			return verdict;
		f = &s->flow;
	}
	trace6(TRACE_NAT, n->vrf, &f->other, bpf_ntohs(f->other_port), 0, 1);
	return rewrite(skb, f, s->p.at, k->protocol) ? -DROP_MALFORMED : 0;
}

/* Sets *to to the node that has the port of the packet in hand, if this node shares the address *to with it. Returns GO_ON,
 * or a negative drop reason. Global function. */
__noinline int to_other_node(struct __sk_buff *skb, struct address *to)
{
	struct serving *s = the_serving();
	struct nat *n = s ? nat_of(s->p.key.vif) : 0;
	struct floating *node = 0;
	__u32 port, ports;

	if (!n || !to)
		return -DROP_NAT_UNKNOWN;
	port = bpf_ntohs(*translated_port(&s->p.key));
	ports = n->last_port - n->first_port + 1;
	if (port >= FIRST_NAT_PORT)
		node = floating_of(s->p.key.vif, to, port - (port - FIRST_NAT_PORT) % ports);
	if (!node)
		return -DROP_NAT_UNKNOWN;
	*to = node->other;
	if (skb->mark != CUT_MARK)
		skb->mark = NODE_MARK;
	trace6(TRACE_NAT, n->vrf, to, port, 0, 1);
	return GO_ON;
}

/* Translates a packet from outside to an address of the pool, or to a floating address. *to: its destination, which
 * becomes the workload's address, or another node's. Returns GO_ON or a negative drop reason. Global function. */
__noinline int from_outside(struct __sk_buff *skb, const struct vif *v, struct address *to)
{
	struct serving *s = the_serving();
	struct floating *floating;
	struct flow *f;
	struct nat *n;
	int verdict;

	if (!v || !to || !s)
		return -DROP_NO_VIF;
	n = nat_of(v->id);
	floating = n ? floating_of(v->id, to, 0) : 0;
	if (!n || (!floating && !same_address(to, pool_address(n, to))))
		return GO_ON;
	__builtin_memset(&s->p, 0, sizeof(s->p));
	s->p.key.vif = v->id;
	verdict = read_frame(skb, &s->p, 0);
	if (verdict != GO_ON)
		return verdict < 0 ? verdict : GO_ON;
	if (s->p.error) {
		if (!translate_error(skb, 0, 1))
			return to_other_node(skb, to);
		f = floating ? 0 : bpf_map_lookup_elem(&flows, &s->p.key);
		*to = floating ? floating->other : f ? f->other : *to;
		return GO_ON;
	}
	f = is_translated_protocol(&s->p) ? bpf_map_lookup_elem(&flows, &s->p.key) : 0;
	find_transport_header(&s->p);
	if (f && f->translation == TO_BACKEND && !is_forgotten(f, s->p.key.protocol, bpf_ktime_get_coarse_ns())) {
		s->wire = wire_of(skb);
		if (follow_translation(s, f, 0, 1)) {
			s->flow = *f;
			verdict = write_second(s, v->vrf, 0);
			if (verdict)
				return refused(verdict);
		}
	} else {
		f = floating_flow(skb, s, 0, 1);
		if (!f)
			return to_other_node(skb, to);
	}
	trace6(TRACE_NAT, v->vrf, &f->other, bpf_ntohs(f->other_port), 0, 1);
	*to = f->other;
	return rewrite(skb, f, s->p.at, s->p.key.protocol) ? -DROP_MALFORMED : GO_ON;
}

/* Lets a packet of a tunnel enter the network at the ingress of the vif that connects the node, as if the node's kernel had
 * sent it. Returns 0 or a negative drop reason. */
static __always_inline int enter_network_at(struct __sk_buff *skb, const struct vif *v, __u32 ifindex, __be16 protocol)
{
	struct ethhdr *eth = (void *)(long)skb->data;

	if ((void *)(eth + 1) > (void *)(long)skb->data_end)
		return -DROP_REDIRECT_FAILED;
	copy_mac(eth->h_dest, v->router_mac);
	copy_mac(eth->h_source, v->mac);
	eth->h_proto = protocol;
	return bpf_redirect(ifindex, BPF_F_INGRESS) == TC_ACT_REDIRECT ? 0 : -DROP_REDIRECT_FAILED;
}

/* Translates a packet of a tunnel to the floating address *to. id: the nexthop out of the network. Returns the nexthop
 * of the workload; 0 if *to is an address of the node in the pool, and the packet enters the network; or a negative drop
 * reason. Global function. */
__noinline int from_router(struct __sk_buff *skb, __u32 id, struct address *to)
{
	struct nexthop *nh = nexthop_of(id);
	__u32 ifindex = nh ? nh->oif : 0;
	struct vif *v = bpf_map_lookup_elem(&vifs, &ifindex);
	struct route *r;
	struct nat *n;
	int verdict;

	if (!v || !to)
		return -DROP_VIF_GONE;
	n = nat_of(v->id);
	if (n && same_address(to, pool_address(n, to)))
		return enter_network_at(skb, v, ifindex, is_mapped(to) ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6));
	verdict = from_outside(skb, v, to);
	if (verdict != GO_ON)
		return verdict;
	r = route_to(v->vrf, to, is_mapped(to) ? FAMILY_IPV4 : FAMILY_IPV6);
	return r ? r->nexthop : -DROP_NO_ROUTE;
}
