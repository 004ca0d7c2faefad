package model

import (
	"maps"
	"net/netip"
	"slices"
)

// ownedPrefix is a subnet of a network, or the underlay address of a node. Either
// network or node is set.
type ownedPrefix struct {
	netip.Prefix
	network, node string
}

// checkOverlaps refuses overlapping networks of one tenant, since their
// addresses would be ambiguous. It also refuses networks that contain an
// underlay address. Different tenants can use the same addresses.
func (v *validation) checkOverlaps() {
	byTenant := map[string][]ownedPrefix{}
	for _, n := range v.s.Networks {
		for _, s := range n.Subnets {
			if notCanonical(s) == "" && usable(s.Addr()) {
				byTenant[n.Tenant] = append(byTenant[n.Tenant], ownedPrefix{s, n.Name, ""})
			}
		}
	}
	v.checkAccess()
	v.checkHosts()
	for _, tenant := range slices.Sorted(maps.Keys(byTenant)) {
		v.checkTenant(byTenant[tenant])
	}
}

// checkTenant checks the subnets of one tenant together with the underlay
// addresses. It sorts them, so that a prefix comes directly before the prefixes
// that it contains.
func (v *validation) checkTenant(all []ownedPrefix) {
	for _, n := range v.s.Nodes {
		for _, a := range n.Underlay {
			if a.IsValid() {
				all = append(all, ownedPrefix{netip.PrefixFrom(a, a.BitLen()), "", n.Name})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ownedPrefix) int { return a.Compare(b.Prefix) })
	var open ownedPrefix // the latest subnet; it may contain the next prefix
	told := false        // an underlay address in open has been reported
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

// checkAccess refuses overlapping networks of different tenants with node_access: a node's
// kernel has one route to a prefix.
func (v *validation) checkAccess() {
	var access []*Network
	for i := range v.s.Networks {
		n := &v.s.Networks[i]
		if !n.NodeAccess {
			continue
		}
		for _, o := range access {
			for _, s := range n.Subnets {
				if o.Tenant != n.Tenant && slices.ContainsFunc(o.Subnets, s.Overlaps) {
					v.fail("network", n.Name, "node_access: %s overlaps a subnet of network %q, which has node_access too; change one of them, or remove node_access from one", s, o.Name)
				}
			}
		}
		access = append(access, n)
	}
}

// checkHosts reports an error if ports with attach.host connect a node to two networks that overlap and belong to
// different tenants. If both networks have node_access, checkAccess reports it.
func (v *validation) checkHosts() {
	hosts := map[string][]*Port{} // ports with attach.host, by node
	for i := range v.s.Ports {
		p := &v.s.Ports[i]
		n := v.networks[p.Network]
		if !p.Attach.Host || n == nil {
			continue
		}
		for _, other := range hosts[p.Node] {
			if o := v.networks[other.Network]; o.Tenant != n.Tenant && !(o.NodeAccess && n.NodeAccess) && n.Overlaps(*o) {
				v.fail("port", p.Name, "attach: host: network %q has addresses of network %q, to which port %q connects node %q; delete one of the ports, or change the subnets of one network", n.Name, o.Name, other.Name, p.Node)
			}
		}
		hosts[p.Node] = append(hosts[p.Node], p)
	}
}

// Overlaps reports whether the subnets of two networks have addresses in common.
func (n Network) Overlaps(o Network) bool {
	return slices.ContainsFunc(n.Subnets, func(s netip.Prefix) bool { return slices.ContainsFunc(o.Subnets, s.Overlaps) })
}
