/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Quotas of the flow table. A network may open another flow if it has fewer flows than
 * the table has free entries. The difference is the network's remaining quota. A port may
 * open another flow if it has fewer flows than that. So one network
 * fills at most half of the table, and one port a third. Of several networks that fill
 * the table one after another, each takes half of the free entries.
 *
 * Programs count the flows that begin. Only the agent deletes flows, and it counts the
 * deletions. The difference is the current number of flows.
 */
#pragma once

#include "maps.h"

volatile const __u32 flow_limit; /* entries of the flow table; 0: no quotas */

#define WHOLE_TABLE 0 /* VRF 0 is the underlay, which has no flows */

MAP(vif_flows_begun, BPF_MAP_TYPE_ARRAY, __u32 /* vif id */, __u32, 4353);
MAP(vif_flows_ended, BPF_MAP_TYPE_ARRAY, __u32 /* vif id */, __u32, 4353);
MAP(vrf_flows_begun, BPF_MAP_TYPE_ARRAY, __u32 /* vrf */, __u32, MAX_VRFS);
MAP(vrf_flows_ended, BPF_MAP_TYPE_ARRAY, __u32 /* vrf */, __u32, MAX_VRFS);

static __always_inline __u32 flows_of(void *begun, void *ended, __u32 id)
{
	__u32 *b = bpf_map_lookup_elem(begun, &id), *e = bpf_map_lookup_elem(ended, &id);
	__s32 n = b && e ? *b - *e : 0;

	return n > 0 ? n : 0;
}

/* Global function: the verifier checks it once. */
__noinline int is_within_quota(__u32 vrf, __u32 vif)
{
	__u32 all, network;

	if (!flow_limit)
		return 1;
	all = flows_of(&vrf_flows_begun, &vrf_flows_ended, WHOLE_TABLE);
	network = flows_of(&vrf_flows_begun, &vrf_flows_ended, vrf);
	if (all + network >= flow_limit)
		return 0;
	return flows_of(&vif_flows_begun, &vif_flows_ended, vif) < flow_limit - all - network;
}

static __always_inline void add_one(void *begun, __u32 id)
{
	__u32 *n = bpf_map_lookup_elem(begun, &id);

	if (n)
		__sync_fetch_and_add(n, 1);
}

__noinline int count_begun(__u32 vrf, __u32 vif)
{
	add_one(&vrf_flows_begun, WHOLE_TABLE);
	add_one(&vrf_flows_begun, vrf);
	add_one(&vif_flows_begun, vif);
	return 0;
}
