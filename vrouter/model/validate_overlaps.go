package model

import (
	"maps"
	"net/netip"
	"slices"
)

// subnetOf is a subnet with whose it is; without a network it is a node's
// underlay address.
type subnetOf struct {
	netip.Prefix
	network, node string
}

// checkOverlaps refuses networks of one tenant that share addresses, and
// networks that have an underlay address: their workloads could not tell who is
// meant. Different tenants may have the same addresses.
func (v *validation) checkOverlaps() {
	byTenant := map[string][]subnetOf{}
	for _, n := range v.s.Networks {
		for _, s := range n.Subnets {
			if notCanonical(s) == "" && usable(s.Addr()) {
				byTenant[n.Tenant] = append(byTenant[n.Tenant], subnetOf{s, n.Name, ""})
			}
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(byTenant)) {
		v.checkTenant(byTenant[tenant])
	}
}

// checkTenant goes through the subnets and the nodes' addresses in order: a
// prefix that contains another comes right before those that it contains.
func (v *validation) checkTenant(all []subnetOf) {
	for _, n := range v.s.Nodes {
		for _, a := range n.Underlay {
			if a.IsValid() {
				all = append(all, subnetOf{netip.PrefixFrom(a, a.BitLen()), "", n.Name})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b subnetOf) int { return a.Compare(b.Prefix) })
	var open subnetOf // the last one that may contain the next
	told := false     // of a node in it: one is enough
	for _, s := range all {
		if !open.IsValid() || !open.Overlaps(s.Prefix) {
			if s.network != "" {
				open, told = s, false
			}
			continue
		}
		switch {
		case s.node != "" && told:
		case s.node != "":
			told = true
			v.fail("network", open.network, "subnets: %s has node %q's underlay address %s; choose another subnet", open.Prefix, s.node, s.Addr())
		case s.network != open.network: // within a network checkSubnets tells
			v.fail("network", s.network, "subnets: %s overlaps %s of network %q; make them apart, or give the networks different tenants", s.Prefix, open.Prefix, open.network)
		}
	}
}
