/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Caches of each CPU for vifs and host routes. A hash lookup is a call of a function. An
 * array lookup is not: the verifier inlines it.
 *
 * cache_generation counts the changes of the tables. An entry is valid only if it has the present
 * generation. While the agent changes the tables, the generation is odd, and no entry is valid.
 * If the agent dies meanwhile, it stays odd. A program reads the generation before it reads a
 * table, so an entry with older data never has a later generation.
 *
 * Forwarding programs run with softirqs disabled, so on one CPU they do not interrupt each other.
 * On PREEMPT_RT kernels they do. A program could then change the entry that another one uses. So
 * the agent keeps the generation odd there (cache.go).
 */
#pragma once

#include "maps.h"
#include "trace.h"

#define CACHED_ROUTES 1024 /* powers of 2 */
#define CACHED_VIFS 64

#define HOST4_WORDS (sizeof(struct host4_key) / 4)
#define HOST6_WORDS (sizeof(struct host6_key) / 4)

struct cached_route {
	__u64 generation;
	__u32 key[HOST6_WORDS]; /* struct host4_key or host6_key */
	struct route route;
};

struct cached_vif {
	__u64 generation;
	__u32 ifindex;
	__u32 pad;
	struct vif vif;
};

MAP(cache_generation, BPF_MAP_TYPE_ARRAY, __u32, __u64, 1);
MAP(route4_cache, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct cached_route, CACHED_ROUTES);
MAP(route6_cache, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct cached_route, CACHED_ROUTES);
MAP(vif_cache, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct cached_vif, CACHED_VIFS);

#define NOT_CACHED 1 /* no valid generation is odd */

/* Returns the generation of valid entries; NOT_CACHED: no entry is valid. */
static __always_inline __u64 generation_of_caches(void)
{
	__u32 zero = 0;
	__u64 *generation = bpf_map_lookup_elem(&cache_generation, &zero);
	__u64 now = generation && !tracing ? *(volatile __u64 *)generation : NOT_CACHED;

	return now & 1 ? NOT_CACHED : now;
}

/* Returns the host route of a key of hosts4 or hosts6, which has this number of 32-bit words. Always returns a
 * pointer to the entry of the cache, also after a miss, so that the verifier checks one pointer type. After a miss
 * the entry may be invalid for later packets. */
static __always_inline struct route *host(void *cache, void *hosts, const __u32 *key, __u32 words)
{
	__u64 now = generation_of_caches();
	__u32 slot = 0, differs = 0, i;
	struct cached_route *c;
	struct route *r;

	for (i = 0; i < words; i++)
		slot ^= key[i];
	slot = slot * 0x9e3779b1 >> 22;
	c = bpf_map_lookup_elem(cache, &slot);
	if (!c)
		return 0;
	if (now != NOT_CACHED && c->generation == now) {
		for (i = 0; i < words; i++)
			differs |= c->key[i] ^ key[i];
		if (!differs)
			return &c->route;
	}
	r = bpf_map_lookup_elem(hosts, key);
	if (!r)
		return 0;
	/* The entry is invalid while it is written. barrier() makes the compiler keep the order of the
	 * writes. Only this CPU uses the entry, so the CPU needs no barrier. */
	c->generation = NOT_CACHED;
	barrier();
	for (i = 0; i < words; i++)
		c->key[i] = key[i];
	c->route = *r;
	barrier();
	c->generation = now;
	return &c->route;
}

static __always_inline struct route *host4(const struct host4_key *key)
{
	return host(&route4_cache, &hosts4, (const __u32 *)key, HOST4_WORDS);
}

/* A function, because the key takes much of the stack: up to Linux 6.1, fabric_tc and what it calls have no more. */
static __noinline struct route *host6(const struct host6_key *key)
{
	return host(&route6_cache, &hosts6, (const __u32 *)key, HOST6_WORDS);
}

/* Returns the vif of a device, from the cache or from the map vifs. */
static __always_inline struct vif *vif_at(__u32 ifindex)
{
	__u64 now = generation_of_caches();
	__u32 slot = ifindex & (CACHED_VIFS - 1);
	struct cached_vif *c = bpf_map_lookup_elem(&vif_cache, &slot);
	struct vif *v;

	if (!c)
		return 0;
	if (now != NOT_CACHED && c->generation == now && c->ifindex == ifindex)
		return &c->vif;
	v = bpf_map_lookup_elem(&vifs, &ifindex);
	if (!v)
		return 0;
	c->generation = NOT_CACHED;
	barrier();
	c->ifindex = ifindex;
	c->vif = *v;
	barrier();
	c->generation = now;
	return &c->vif;
}
