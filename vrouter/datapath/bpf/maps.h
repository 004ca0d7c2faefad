/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Every map. The sizes here are least ones: the loader sets them from the
 * node's limits before it creates the maps, and pins them by their names.
 */
#pragma once

#include "headers.h"
#include "types.h"

#define MAP(name, kind, k, v, n)             \
	struct {                             \
		__uint(type, kind);          \
		__uint(max_entries, n);      \
		__type(key, k);              \
		__type(value, v);            \
	} name SEC(".maps")

/* The agent maps the memory of these arrays, because it reads all entries every few seconds. */
#define MAPPED_ARRAY(name, v, n)                  \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, n);           \
		__uint(map_flags, BPF_F_MMAPABLE);\
		__type(key, __u32);               \
		__type(value, v);                 \
	} name SEC(".maps")

#define SPARSE_MAP(name, kind, k, v, n)              \
	struct {                                     \
		__uint(type, kind);                  \
		__uint(max_entries, n);              \
		__uint(map_flags, BPF_F_NO_PREALLOC);\
		__type(key, k);                      \
		__type(value, v);                    \
	} name SEC(".maps")

MAP(settings, BPF_MAP_TYPE_ARRAY, __u32, struct node_settings, 1);
MAP(vifs, BPF_MAP_TYPE_HASH, __u32 /* ifindex */, struct vif, 4352);
MAPPED_ARRAY(vrfs /* by VRF */, struct vrf, MAX_VRFS);
MAPPED_ARRAY(nexthop_entries /* by id */, __u32 /* key of nexthops: id * 2 or id * 2 + 1 */, 8192);
MAPPED_ARRAY(nexthops, struct nexthop, 2 * 8192);
SPARSE_MAP(members, BPF_MAP_TYPE_HASH, struct member_key, struct member, 65536);
SPARSE_MAP(hosts4, BPF_MAP_TYPE_HASH, struct host4_key, struct route, 262144);
SPARSE_MAP(hosts6, BPF_MAP_TYPE_HASH, struct host6_key, struct route, 262144);
SPARSE_MAP(lpm4, BPF_MAP_TYPE_LPM_TRIE, struct lpm4_key, struct route, 65536);
SPARSE_MAP(lpm6, BPF_MAP_TYPE_LPM_TRIE, struct lpm6_key, struct route, 65536);
SPARSE_MAP(bridge, BPF_MAP_TYPE_HASH, struct bridge_key, struct bridge_entry, 262144);
MAPPED_ARRAY(ilm /* by label */, struct target, FIRST_LABEL + 2 * MAX_VRFS);
SPARSE_MAP(vnis, BPF_MAP_TYPE_HASH, __u32 /* VNI */, struct target, 8192);
SPARSE_MAP(remotes, BPF_MAP_TYPE_HASH, struct address, struct remote, 8192);
SPARSE_MAP(senders, BPF_MAP_TYPE_LPM_TRIE, struct sender_key, struct sender, 65536);
MAP(learned_mtus, BPF_MAP_TYPE_ARRAY, __u32 /* nexthop */, struct learned_mtu, 8192);
SPARSE_MAP(policies, BPF_MAP_TYPE_HASH, __u32 /* vif id */, struct policy, 4352);
SPARSE_MAP(more_rules, BPF_MAP_TYPE_HASH, struct rules_key, struct rule_chunk, 3 * 4352);
/* Generations of the policies. The common path reads this array, not the policies. The agent
 * writes it after the policies. */
MAPPED_ARRAY(policy_generations /* by vif id */, __u32, 4353);
/* Not an LRU: a flood of new flows must be refused with its reason, and may
 * never evict the flows that are alive. The agent removes idle entries. */
SPARSE_MAP(flows, BPF_MAP_TYPE_HASH, struct flow_key, struct flow, 524288);
SPARSE_MAP(services, BPF_MAP_TYPE_HASH, struct service_key, struct service, 32768);
SPARSE_MAP(backends, BPF_MAP_TYPE_HASH, struct backend_key, struct backend, 131072);
MAP(service_ranges, BPF_MAP_TYPE_ARRAY, __u32 /* 0: IPv4, 1: IPv6 */, struct service_range, 2);
MAP(affinities, BPF_MAP_TYPE_LRU_HASH, struct affinity_key, struct affinity, 8192);
SPARSE_MAP(nats, BPF_MAP_TYPE_HASH, __u32 /* vif id */, struct nat, 4096);
SPARSE_MAP(floatings, BPF_MAP_TYPE_HASH, struct floating_key, struct floating, 26112);
/* Each vif has separate entries, so fragments of other vifs cannot replace them. */
MAP(fragments, BPF_MAP_TYPE_ARRAY, __u32 /* vif id * 2 + direction */, struct fragment_heads, 2 * 4353);

MAP(vif_stats, BPF_MAP_TYPE_PERCPU_ARRAY, __u32 /* vif id */, struct vif_counters, 4353);
MAP(vrf_stats, BPF_MAP_TYPE_PERCPU_ARRAY, __u32 /* vrf */, struct vrf_counters, MAX_VRFS);
SPARSE_MAP(drops, BPF_MAP_TYPE_PERCPU_HASH, struct drop_key, __u64, 65536);
SPARSE_MAP(fallbacks, BPF_MAP_TYPE_PERCPU_HASH, struct fallback_key, __u64 /* wire packets */, 65536);
MAP(outcomes, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct outcome_counters, 1);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} drop_log SEC(".maps");
