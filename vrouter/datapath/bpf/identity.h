/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Flows that a group of policies allows. An address has up to two identities: that of pods, which
 * the same label selectors select, and that of addresses, which the same blocks contain. The map
 * allows has entries for groups and identities; an entry for identity 0 allows any address.
 */
#pragma once

#include "flowkey.h"
#include "maps.h"

/* Bits of an allow_key before its protocol, before its port, and in all. sets.go repeats the first two. */
#define ALLOW_BITS 72
#define ALLOW_BITS_PORT 80
#define ALLOW_BITS_ALL 96

SPARSE_MAP(identities, BPF_MAP_TYPE_LPM_TRIE, struct identity_key, struct identity, 262144);
SPARSE_MAP(allows, BPF_MAP_TYPE_LPM_TRIE, struct allow_key, struct allow, 262144);

/* Judges the first packet of a flow in a direction in which the group is closed. Global function:
 * the verifier checks it once. */
__noinline int is_in_group(const struct flow_packet *p, __u32 group, __u32 vrf, int to_workload)
{
	struct identity_key at = { .prefixlen = 160, .vrf = bpf_htonl(vrf) };
	struct allow_key key = { .prefixlen = ALLOW_BITS_ALL, .group = group, .egress = !to_workload };
	const struct identity *identity;

	if (!p)
		return 0;
	key.protocol = p->key.protocol;
	key.port = to_workload ? p->key.local_port : p->key.remote_port;
	if (bpf_map_lookup_elem(&allows, &key))
		return 1;
	at.address = p->key.remote;
	identity = bpf_map_lookup_elem(&identities, &at);
	if (!identity)
		return 0;
	key.identity = identity->pods;
	if (bpf_map_lookup_elem(&allows, &key))
		return 1;
	key.identity = identity->block;
	return !!bpf_map_lookup_elem(&allows, &key);
}
