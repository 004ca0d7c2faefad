/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The egress limit of a port. A queue of the workload's own device delays packets to
 * this rate, but the workload can bypass or remove that queue. So packets above the
 * rate are dropped here. The bucket is larger and fills faster than the queue's, so
 * that it drops nothing which the queue has sent.
 */
#pragma once

#include "bucket.h"
#include "maps.h"
#include "trace.h"

#define EGRESS_BURST_NS 20000000ull
#define EGRESS_BURST_BYTES (128ull * 1024)

MAP(egress_buckets, BPF_MAP_TYPE_ARRAY, __u32 /* vif id */, struct bucket, 4353);

static __always_inline int within_egress(struct __sk_buff *skb, const struct vif *v)
{
	__u64 rate = v->egress + v->egress / 64;
	struct bucket *b;
	__u32 id = v->id;

	if (!rate || tracing)
		return 1;
	b = bpf_map_lookup_elem(&egress_buckets, &id);
	return !b || take_tokens(b, skb->len * 1000000000ull / rate,
				 EGRESS_BURST_NS + EGRESS_BURST_BYTES * 1000000000ull / rate);
}
