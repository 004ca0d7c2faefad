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
#define GSO_HEADERS (ETH_HLEN + sizeof(struct iphdr) + sizeof(struct tcphdr)) /* shortest headers of a TCP segment */

struct egress_bucket {
	struct bucket bucket;
	__u64 rate; /* limit for which the bucket was last used */
};

MAP(egress_buckets, BPF_MAP_TYPE_ARRAY, __u32 /* vif id */, struct egress_bucket, 4353);

/* Returns the bytes of a packet as the workload's queue counts them: with the headers of
 * each segment. */
static __always_inline __u64 queued_bytes(struct __sk_buff *skb)
{
	__u32 size = skb->gso_size;

	if (!size)
		return skb->len;
	return skb->len + (__u64)((skb->len - 1) / size) * GSO_HEADERS;
}

static __always_inline int within_egress(struct __sk_buff *skb, const struct vif *v)
{
	__u64 rate = v->egress + v->egress / 64;
	struct egress_bucket *b;
	__u32 id = v->id;

	if (!rate || tracing)
		return 1;
	b = bpf_map_lookup_elem(&egress_buckets, &id);
	if (!b)
		return 1;
	if (b->rate != rate) { /* the limit has changed, or another port has the id now */
		b->rate = rate;
		b->bucket.full_ns = 0;
	}
	return take_tokens(&b->bucket, queued_bytes(skb) * 1000000000ull / rate,
			   EGRESS_BURST_NS + EGRESS_BURST_BYTES * 1000000000ull / rate);
}
