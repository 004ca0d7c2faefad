/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How a frame ends: its outcome counted, a drop counted under its reason and
 * shown on the drop log. */
#pragma once

#include "count.h"
#include "verdict.h"

static __noinline int capture(struct __sk_buff *skb, struct drop_event *e)
{
	__u32 n = skb->len;

	if (!e)
		return 0;
	if (n > DROP_SNAP)
		n = DROP_SNAP;
	e->length = skb->len;
	e->ifindex = skb->ifindex;
	e->captured = 0;
	n = bounded(n, DROP_SNAP);
	if (!bpf_skb_load_bytes(skb, 0, e->data, n))
		e->captured = n;
	return 0;
}

static __always_inline void log_drop(struct __sk_buff *skb, __u32 vif, __u32 vrf, __u32 reason)
{
	struct drop_event *e = bpf_ringbuf_reserve(&drop_log, sizeof(*e), 0);

	if (!e)
		return; /* the reader is missing or too slow; the counters are exact */
	e->time_ns = bpf_ktime_get_ns();
	e->reason = reason;
	e->vif = vif;
	e->vrf = vrf;
	capture(skb, e);
	bpf_ringbuf_submit(e, 0);
}

__noinline int dropped(struct __sk_buff *skb, __u32 vif, __u32 vrf, __u32 reason)
{
	trace(TRACE_DROP, vrf, reason, vif, 1);
	if (!tracing) {
		count_drop(vif, reason);
		log_drop(skb, vif, vrf, reason);
	}
	return 0;
}

/* Turns a verdict into the program's return value. */
static __always_inline int finish(struct __sk_buff *skb, __u32 vif, __u32 vrf, int verdict)
{
	if (verdict < 0) {
		dropped(skb, vif, vrf, -verdict);
		count_end(OUT_DROPPED);
		return TC_ACT_SHOT;
	}
	if (VERDICT_REASON(verdict))
		dropped(skb, vif, vrf, VERDICT_REASON(verdict));
	count_end(VERDICT_OUTCOME(verdict));
	return VERDICT_ACTION(verdict);
}
