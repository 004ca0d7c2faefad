/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The steps that `vrouter trace` shows are taken by the programs themselves.
 * In the programs that forward packets `tracing` is 0 and frozen, so the
 * verifier removes every trace.
 */
#pragma once

#include "addr.h"
#include "maps.h"

volatile const __u32 tracing = 0;

#define MAX_STEPS 64

struct trace {
	__u32 count;
	__u32 pad;
	struct trace_step step[MAX_STEPS];
};

MAP(traces, BPF_MAP_TYPE_ARRAY, __u32, struct trace, 1);

static __always_inline struct trace_step *next_step(void)
{
	__u32 zero = 0, i;
	struct trace *t = bpf_map_lookup_elem(&traces, &zero);

	if (!t || t->count >= MAX_STEPS)
		return 0;
	i = t->count++;
	return &t->step[i & (MAX_STEPS - 1)];
}

/* Not inlined, because programs that forward packets never call it: the verifier then has fewer
 * instructions to remove. Calls can have 5 arguments, so `found` is the lowest bit of kind_found. */
static __noinline int add_step(__u32 kind_found, __u32 vrf, __u32 id, __u32 value, const struct address *address)
{
	struct trace_step *s = next_step();

	if (!s)
		return 0;
	s->kind = kind_found >> 1;
	s->found = kind_found & 1;
	s->vrf = vrf;
	s->id = id;
	s->value = value;
	if (address)
		s->address = *address;
	return 0;
}

static __always_inline void trace6(__u32 kind, __u32 vrf, const struct address *address,
				   __u32 id, __u32 value, __u32 found)
{
	if (tracing)
		add_step(kind << 1 | found, vrf, id, value, address);
}

static __noinline int add_step4(__u32 kind_found, __u32 vrf, __u32 id, __u32 value, __be32 v4)
{
	struct address address;

	mapped(&address, v4);
	return add_step(kind_found, vrf, id, value, &address);
}

static __always_inline void trace4(__u32 kind, __u32 vrf, __be32 address,
				   __u32 id, __u32 value, __u32 found)
{
	if (tracing)
		add_step4(kind << 1 | found, vrf, id, value, address);
}

static __always_inline void trace(__u32 kind, __u32 vrf, __u32 id, __u32 value, __u32 found)
{
	if (tracing)
		add_step(kind << 1 | found, vrf, id, value, 0);
}
