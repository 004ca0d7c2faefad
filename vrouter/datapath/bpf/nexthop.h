/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Nexthops change while packets use them. Each nexthop therefore has two entries. The
 * agent writes the unused entry, and then sets nexthop_entries to its key. A program reads
 * the old nexthop or the new nexthop, never a mixture. Before the agent writes the old
 * entry again, it waits until no program can use that entry.
 */
#pragma once

#include "maps.h"

static __always_inline struct nexthop *nexthop_of(__u32 id)
{
	__u32 *entry = bpf_map_lookup_elem(&nexthop_entries, &id);

	if (!entry)
		return 0;
	id = *entry;
	return bpf_map_lookup_elem(&nexthops, &id);
}
