// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The vrouter's programs: from_workload at the tc ingress of each vif, and at netkit's hook
 * of the workload's end if the vif is a netkit device; fabric_xdp
 * and fabric_tc at the ingress of each fabric device, and fabric_out at its egress; looped at the
 * ingress of the loopback device.
 * Packets outside the overlay pass unchanged.
 */
#include "headers.h"
#include "cache.h"
#include "checksum.h"
#include "direct.h"
#include "egress.h"
#include "fabric.h"
#include "guard.h"
#include "log.h"
#include "loopback.h"
#include "meta.h"
#include "outside.h"
#include "translate.h"
#include "workload.h"

/*
 * Returns 1 if from_workload runs at netkit's hook of the workload's end, and the frame must
 * not be routed. Such a frame continues to the ingress of the vif, where from_workload runs
 * again: the copies of a flooded frame enter there, and netkit would tell the sender that the
 * original was dropped. There the kernel also takes a VLAN tag out of the frame, so that judge()
 * finds it. The kernel sets ingress_ifindex at the ingress.
 */
static __always_inline int is_for_ingress(struct __sk_buff *skb, const struct vif *v)
{
	struct ethhdr *eth = (void *)(long)skb->data;

	return v->flags & VIF_F_NETKIT && !skb->ingress_ifindex &&
	       ((void *)(eth + 1) > (void *)(long)skb->data_end || !is_mac(eth->h_dest, v->router_mac) ||
		eth->h_proto == bpf_htons(ETH_P_8021Q) || eth->h_proto == bpf_htons(ETH_P_8021AD));
}

SEC("tc")
int from_workload(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	struct vif *v;

	clear_foreign_mark(skb);
	if (skb->mark & RAW_MARK)
		return sent_raw(skb); /* it was counted when it came in */
	if (skb->mark == DELIVERY_MARK) {
		skb->mark = 0;
		return bpf_redirect(ifindex, 0); /* so was this one */
	}
	v = vif_at(ifindex);
	if (!v)
		return finish(skb, 0, 0, -DROP_NO_VIF);
	if (is_for_ingress(skb, v))
		return TC_ACT_UNSPEC;
	trace(TRACE_VIF, v->vrf, v->id, ifindex, 1);
	if (!IS_COPY(skb->mark)) {
		count_vif(v->id, 0, segments(skb), skb->len);
		if (!within_egress(skb, v))
			return finish(skb, v->id, v->vrf, -DROP_EGRESS_LIMIT);
	}
	return finish(skb, v->id, v->vrf, judge(skb, v));
}

static __always_inline struct node_settings *the_settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&settings, &zero);
}

SEC("xdp.frags")
int fabric_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct node_settings *s = the_settings();
	struct outer o = {};
	struct target *t;
	struct meta *m;
	struct ethhdr *eth;
	__be16 protocol;
	__u32 nexthop;
	int ethernet, outer;

	/* The IP header of a direct frame is written by a workload. Its destination can be
	 * equal to an underlay address of this node. */
	eth = data;
	if (!s || (void *)(eth + 1) > end || is_direct(s, eth))
		return XDP_PASS;
	if (read_outer(&o, s, data, end, 0) != GO_ON || o.checksum || find_sender(s, &o) != GO_ON)
		return XDP_PASS;
	/* tc removes padding. Only a frame with fragments is longer than its linear part. */
	if (o.frame != end - data && o.frame != bpf_xdp_get_buff_len(ctx))
		return XDP_PASS;
	t = target_of(&o);
	if (!t)
		return XDP_PASS;
	nexthop = t->nexthop;
	ethernet = t->ethernet;

	/* The inner header, where the verifier can follow: o.length is one of few. */
	if (o.length > 14 + 40 + 8 + 8)
		return XDP_PASS;
	data += o.length;
	if (ethernet) {
		eth = data;
		if ((void *)(eth + 1) > end)
			return XDP_PASS;
		protocol = eth->h_proto;
		if (o.encap == ENCAP_VXLAN && (eth->h_dest[0] & 1 || protocol == bpf_htons(ETH_P_ARP)))
			return XDP_PASS; /* tc may answer it */
		data += ETH_HLEN;
	} else {
		if (data + 1 > end)
			return XDP_PASS;
		protocol = *(__u8 *)data >> 4 == 4 ? bpf_htons(ETH_P_IP) :
			   *(__u8 *)data >> 4 == 6 ? bpf_htons(ETH_P_IPV6) : 0;
	}
	if (data + 2 > end)
		return XDP_PASS;
	if (protocol == bpf_htons(ETH_P_IP)) {
		if (!ecn_unchanged(o.tos, ((__u8 *)data)[1]))
			return XDP_PASS;
	} else if (protocol == bpf_htons(ETH_P_IPV6)) {
		if (!ecn_unchanged(o.tos, ((__u8 *)data)[1] >> 4))
			return XDP_PASS;
	} else if (!ethernet) {
		return XDP_PASS;
	}

	outer = ethernet ? (int)o.length : (int)o.length - ETH_HLEN;
	if (bpf_xdp_adjust_head(ctx, outer))
		return XDP_PASS;
	/* Some drivers have no metadata. The outer headers are still there: fabric_tc
	 * gets the frame as it came. If the metadata came first, moving the head would copy it. */
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*m)))
		return bpf_xdp_adjust_head(ctx, -outer) ? XDP_DROP : XDP_PASS;
	m = (void *)(long)ctx->data_meta;
	eth = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if ((void *)(m + 1) > (void *)eth || (void *)(eth + 1) > end)
		return XDP_DROP;
	write_meta(m, o.encap, ethernet, nexthop, o.remote);
	if (!ethernet) {
		struct ethhdr unused = { .h_dest = UNUSED_MAC, .h_source = UNUSED_MAC, .h_proto = protocol };

		*eth = unused;
	}
	count_outcome(OUT_DECAPPED);
	return XDP_PASS;
}

/* What a decapsulation in tc must know of the inner packet before. */
struct opening {
	struct ethhdr eth;
	__u8 ip[2];
};

static __always_inline int read_opening(struct __sk_buff *skb, const struct outer *o, int ethernet, struct opening *in)
{
	void *end = (void *)(long)skb->data_end;
	__u8 *ip = (void *)(long)skb->data + bounded(o->length, 128); /* decapsulate checks this bound */
	struct ethhdr *eth = (void *)ip;

	if (!ethernet) {
		if (ip + 2 > (__u8 *)end)
			return bpf_skb_load_bytes(skb, o->length, in->ip, sizeof(in->ip));
		in->ip[0] = ip[0];
		in->ip[1] = ip[1];
		return 0;
	}
	ip = (void *)(eth + 1);
	if (ip + 2 > (__u8 *)end)
		return bpf_skb_load_bytes(skb, o->length, in, sizeof(*in)) &&
		       bpf_skb_load_bytes(skb, o->length, &in->eth, ETH_HLEN);
	copy_mac(in->eth.h_dest, eth->h_dest);
	copy_mac(in->eth.h_source, eth->h_source);
	in->eth.h_proto = eth->h_proto;
	in->ip[0] = ip[0];
	in->ip[1] = ip[1];
	return 0;
}

/* The outer headers come off in tc: inner IP alone, or an Ethernet frame. */
static __always_inline int decapsulate(struct __sk_buff *skb, struct outer *o, int ethernet)
{
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;
	struct opening in __attribute__((aligned(2))) = {};
	__u32 shrink;
	__u8 version;

	if (o->length < ETH_HLEN || o->length > 14 + 40 + 8 + 8)
		return -DROP_DECAP_FAILED;
	shrink = o->length - ETH_HLEN;
	if (read_opening(skb, o, ethernet, &in))
		return -DROP_BAD_INNER;
	if (ethernet) {
		shrink += ETH_HLEN;
		version = in.eth.h_proto == bpf_htons(ETH_P_IP) ? 4 : in.eth.h_proto == bpf_htons(ETH_P_IPV6) ? 6 : 0;
	} else {
		version = in.ip[0] >> 4;
	}
	/* Only with these flags the kernel updates skb->protocol. Older kernels refuse the
	 * flags, and only a change of the family needs them. */
	if (version == 4)
		flags |= o->family == FAMILY_IPV4 ? 0 : ADJ_ROOM_DECAP_L3_IPV4;
	else if (version == 6)
		flags |= o->family == FAMILY_IPV6 ? 0 : ADJ_ROOM_DECAP_L3_IPV6;
	else if (!ethernet)
		return -DROP_BAD_INNER;
	else if (o->family == FAMILY_IPV6 && skb->len < o->length + ETH_HLEN + sizeof(struct ipv6hdr))
		flags |= ADJ_ROOM_DECAP_L3_IPV4; /* else the kernel requires 40 bytes of payload, and ARP has 28 */
	if (bpf_skb_adjust_room(skb, -(int)shrink, BPF_ADJ_ROOM_MAC, flags))
		return -DROP_DECAP_FAILED;
	if (ethernet && write_ethernet(skb, 0, &in.eth))
		return -DROP_DECAP_FAILED;
	if (!version || ecn_unchanged(o->tos, version == 4 ? in.ip[1] : in.ip[1] >> 4))
		return 0;
	return ecn_set(skb, o->tos);
}

/* Returns 1 if the payload is an IPv4 packet to be routed, and its source belongs to the
 * outer source. */
static __always_inline int is_from_sender(struct __sk_buff *skb, const struct outer *o, const struct target *t)
{
	__u32 length = o->length;
	struct nexthop *nh;
	struct iphdr *ip;

	if (t->ethernet || length > 14 + 40 + 8 + 8)
		return 0;
	ip = (void *)(long)skb->data + length;
	if ((void *)(ip + 1) > (void *)(long)skb->data_end || ip->version != 4)
		return 0;
	nh = nexthop_of(t->nexthop);
	return nh && nh->type == NH_VRF && is_from_far_end(nh->vrf, ip->saddr, o->encap, &o->source);
}

/* Removes the outer headers. Returns GO_ON and fills *a if the packet must be routed. */
static __always_inline int open_outer(struct __sk_buff *skb, const struct node_settings *s, struct outer *o,
				      struct arrival *a)
{
	struct target *t = target_of(o);
	__u32 nexthop;
	int ethernet, verdict;

	if (!t || !is_from_sender(skb, o, t)) { /* else o->remote stays 0: nothing more to check */
		verdict = find_sender(s, o);
		if (verdict != GO_ON)
			return verdict;
	}
	trace(o->encap == ENCAP_VXLAN ? TRACE_VNI : TRACE_LABEL, 0, o->label, t ? t->nexthop : 0, !!t);
	if (!t)
		return o->encap == ENCAP_VXLAN ? -DROP_UNKNOWN_VNI : -DROP_UNKNOWN_LABEL;
	nexthop = t->nexthop;
	ethernet = t->ethernet;
	/* A level means that the NIC has checked the checksum. */
	if (o->checksum && !skb->gso_size && bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) < 0 &&
	    !checksum_is_right(skb, o, ethernet))
		return -DROP_OUTER_CHECKSUM;
	if (is_train(skb, o, ethernet))
		return CUT_TRAIN;
	if (o->encap == ENCAP_VXLAN && may_ask(skb, o)) {
		verdict = answer_outside(skb, o, nexthop);
		if (verdict != GO_ON)
			return verdict;
	}
	verdict = decapsulate(skb, o, ethernet);
	if (verdict < 0)
		return verdict;
	return arrive_labelled(skb, a, nexthop, ethernet, o->encap, o->remote);
}

static __always_inline void learn(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + ETH_HLEN;
	struct ipv6hdr *ip6 = data + ETH_HLEN;

	if ((void *)(ip + 1) > end)
		return;
	if (eth->h_proto == bpf_htons(ETH_P_IP) && ip->protocol == IPPROTO_ICMP && ip->ihl == 5 &&
	    bpf_ntohs(ip->tot_len) >= sizeof(*ip) + sizeof(struct too_big4))
		learn_mtu4(skb);
	else if (eth->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(ip6 + 1) <= end &&
		 ip6->nexthdr == IPPROTO_ICMPV6 && bpf_ntohs(ip6->payload_len) >= sizeof(struct too_big6))
		learn_mtu6(skb);
}

/* Returns 1 if a frame has a VLAN tag with an id. Such a frame belongs to a VLAN
 * device: on the fabric device, the underlay is untagged. XDP cannot check this,
 * because it does not see a tag that the NIC has removed. */
static __always_inline int has_vlan(struct __sk_buff *skb)
{
	return skb->vlan_present && (skb->vlan_tci & 0xfff);
}

/* Takes a frame from the fabric. Returns GO_ON and fills *a if the packet must be routed to
 * a workload; NOT_OURS for the host's frames. */
static __always_inline int take_frame(struct __sk_buff *skb, struct arrival *a)
{
	__u32 head = 14 + 40 + 8 + 8;
	void *data, *end;
	struct node_settings *s;
	struct outer o = {};
	struct ethhdr *eth;
	struct meta m;
	int verdict;

	if (take_meta(skb, &m))
		return has_vlan(skb) ? -DROP_VLAN :
		       arrive_labelled(skb, a, m.nexthop, m.mark & 1, (m.mark >> 1) & 7, m.remote);
	s = the_settings();
	if (!s || has_vlan(skb))
		return NOT_OURS;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	eth = data;
	if ((void *)(eth + 1) <= end && is_to_label(s, eth)) {
		if (label_network(eth->h_dest))
			return read_direct(skb, s, eth, end, a);
		verdict = answer_test(skb);
		if (verdict != GO_ON)
			return verdict;
	}
	if (data + head > end) {
		if (head > skb->len)
			head = skb->len;
		bpf_skb_pull_data(skb, head);
	}
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (is_to_locator(s, data, end) && !is_icmp6_error(data, end)) {
		if (is_translated(data))
			return read_translated(skb, a);
		verdict = answer_locator(skb);
		return verdict == GO_ON ? NOT_OURS : verdict;
	}
	verdict = read_outer(&o, s, data, end, skb->gso_size != 0);
	if (verdict == NOT_OURS)
		learn(skb);
	if (verdict != GO_ON)
		return verdict;
	/* Without its padding, the frame has nothing behind the outer packet. */
	if (o.frame && o.frame != skb->len && (o.frame > skb->len || bpf_skb_change_tail(skb, o.frame, 0)))
		return -DROP_OUTER_LENGTH;
	return open_outer(skb, s, &o, a);
}

SEC("tc")
int fabric_tc(struct __sk_buff *skb)
{
	struct arrival a = {};
	int verdict = take_frame(skb, &a);

	if (verdict == NOT_OURS) {
		count_end(OUT_PASSED);
		return TC_ACT_UNSPEC;
	}
	if (verdict == CUT_TRAIN)
		return cut_train(skb); /* its packets are counted when they come back */
	if (verdict == GO_ON)
		verdict = arrive_routed(skb, &a);
	return finish(skb, a.vif, a.vrf, verdict);
}

SEC("tc")
int fabric_out(struct __sk_buff *skb)
{
	struct node_settings *s;

	/* Do not clear the mark: a later program may clone the packet, and the clone
	 * then passes this program again. */
	if (skb->mark == own_mark())
		return TC_ACT_UNSPEC;
	s = the_settings();
	if (!s || !is_tunnel_packet(s, skb))
		return TC_ACT_UNSPEC;
	return finish(skb, 0, 0, -DROP_FORGED_TUNNEL);
}

SEC("tc")
int looped(struct __sk_buff *skb)
{
	int verdict;

	if (skb->mark != own_mark())
		return TC_ACT_UNSPEC;
	verdict = send_looped(skb);
	return verdict < 0 ? finish(skb, 0, 0, verdict) : verdict; /* from_workload has counted the others */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
