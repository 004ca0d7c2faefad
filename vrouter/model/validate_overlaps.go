package model

import (
	"maps"
	"net/netip"
	"slices"
)

// subnetOf is a subnet of a network, or the underlay address of a node.
type subnetOf struct {
	netip.Prefix
	network, node string
}

// checkOverlaps refuses overlapping networks of one tenant, and networks that
// contain an underlay address, since the addresses would be ambiguous. Different
// tenants can use the same addresses.
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

// checkTenant walks the sorted subnets and node addresses. A prefix comes directly
// before the prefixes that it contains.
func (v *validation) checkTenant(all []subnetOf) {
	for _, n := range v.s.Nodes {
		for _, a := range n.Underlay {
			if a.IsValid() {
				all = append(all, subnetOf{netip.PrefixFrom(a, a.BitLen()), "", n.Name})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b subnetOf) int { return a.Compare(b.Prefix) })
	var open subnetOf // the last subnet that may contain the next prefix
	told := false     // one node per subnet has been reported
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
		case s.network != open.network: // checkSubnets reports overlaps within a network
			v.fail("network", s.network, "subnets: %s overlaps %s of network %q; change one of them, or give the networks different tenants", s.Prefix, open.Prefix, open.network)
		}
	}
}
