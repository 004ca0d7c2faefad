/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reasons why direct cannot carry a packet. The packet then takes the nexthop's fallback. */
#pragma once

#include "count.h"

enum fallback_reason {
#define FALLBACK(name, text) FALLBACK_##name,
#include "fallback.list.h"
#undef FALLBACK
	FALLBACK_REASONS,
};

static __noinline void count_fallback(struct __sk_buff *skb, __u32 vrf, __u32 reason)
{
	struct fallback_key key = { .vrf = vrf, .reason = reason };

	if (!tracing)
		add_to(&fallbacks, &key, segments(skb));
}
