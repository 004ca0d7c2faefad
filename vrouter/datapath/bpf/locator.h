/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Addresses in locators (translate.h describes their parts). The map remotes has the locators
 * of other nodes, as addresses whose last 64 or 48 bits are 0.
 */
#pragma once

#include "maps.h"

struct translated_address {
	__be32 locator[2];
	__u16 adjustment; /* in a locator of 80 bits: its last 16 bits */
	__u16 network;    /* 0: the node's own address; the adjustment can be here too */
	__be32 last;
};

/* Returns 1 if an address is in this node's locator. */
static __always_inline int is_in_own_locator(const struct node_settings *s, const struct translated_address *a)
{
	return s->locator[0] && a->locator[0] == s->locator[0] && a->locator[1] == s->locator[1] &&
	       (a->adjustment & s->locator_mask) == s->locator_end;
}

/* Returns 1 for the entry of a node whose locator has 64 bits. */
static __always_inline int has_locator_of_64_bits(const struct remote *r)
{
	return r && (r->locators == LOCATORS_64_64 || r->locators == LOCATORS_80_64);
}

/* Returns the node whose locator contains an address; 0: there is no such node. *key becomes
 * the key of its entry. A locator of 80 bits is looked up second. If it ends with zeros, the
 * first lookup finds it too, also for addresses outside of it. */
static __always_inline struct remote *node_with_locator(const struct translated_address *a, struct address *key)
{
	struct translated_address *k = (void *)key;
	struct remote *r;

	__builtin_memset(key, 0, sizeof(*key));
	k->locator[0] = a->locator[0];
	k->locator[1] = a->locator[1];
	r = bpf_map_lookup_elem(&remotes, key);
	if (has_locator_of_64_bits(r))
		return r;
	k->adjustment = a->adjustment;
	r = bpf_map_lookup_elem(&remotes, key);
	return r && r->locators ? r : 0;
}
