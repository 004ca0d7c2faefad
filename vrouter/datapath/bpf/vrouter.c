// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The vrouter's programs: from_workload at the tc ingress of each vif, and at netkit's hook
 * of the workload's end if the vif is a netkit device; fabric_xdp
 * and fabric_tc at the ingress of each fabric device, and fabric_out at its egress; looped at the
 * ingress of the loopback device.
 * Packets outside the overlay pass unchanged.
 */
#include "cache.h"
#include "egress.h"
#include "fabric.h"
#include "guard.h"
#include "log.h"
#include "loopback.h"
#include "mark.h"
#include "netkit.h"
#include "settings.h"
#include "workload.h"
#include "xdp.h"

SEC("tc")
int from_workload(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	struct vif *v;
	int verdict;

	if (skb->mark) {
		clear_foreign_mark(skb);
		if (skb->mark & RAW_MARK)
			return sent_raw(skb); /* it was counted when it came in */
		if (skb->mark == DELIVERY_MARK) {
			skb->mark = 0;
			return bpf_redirect(ifindex, 0); /* so was this one */
		}
	}
	v = vif_at(ifindex);
	if (!v)
		return finish(skb, 0, 0, -DROP_NO_VIF);
	if (is_for_ingress(skb, v))
		return TC_ACT_UNSPEC;
	trace(TRACE_VIF, v->vrf, v->id, ifindex, 1);
	if (skb->mark != CUT_MARK && !IS_COPY(skb->mark)) {
		count_vif(skb, v->id, 0);
		if (!within_egress(skb, v))
			return finish(skb, v->id, v->vrf, -DROP_EGRESS_LIMIT);
	}
	if (v->flags & VIF_F_AGENT && is_to_group(skb) && leave_to_agent(skb))
		return finish(skb, 0, 0, WENT(TC_ACT_OK, OUT_ANSWERED));
	verdict = judge(skb, v);
	return verdict == -CUT ? cut(skb, FROM_VIF) : finish(skb, v->id, v->vrf, verdict);
}

SEC("xdp.frags")
int fabric_xdp(struct xdp_md *ctx)
{
	struct node_settings *s = the_settings();

	return s ? decapsulate_xdp(ctx, s) : XDP_PASS;
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
	if (verdict == CUT)
		return cut(skb, FROM_FABRIC); /* its packets are counted when they come back */
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
	struct node_settings *s;
	int verdict;

	if (skb->mark != own_mark()) {
		s = the_settings();
		return s && is_tunnel_packet(s, skb) ? finish(skb, 0, 0, -DROP_OTHER_AGENT) : TC_ACT_UNSPEC;
	}
	verdict = send_looped(skb);
	return verdict < 0 ? finish(skb, 0, 0, verdict) : verdict; /* from_workload has counted the others */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
