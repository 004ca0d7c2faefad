package netpol

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// Flow is the first packet of a flow, as an endpoint sends or receives it.
type Flow struct {
	Endpoint string // name
	Egress   bool   // from the endpoint; else to it
	Remote   netip.Addr
	Protocol uint8
	Port     uint16 // of the destination
}

// Denial reports whether policies deny a flow. by are the policies that select the endpoint's pod in the flow's
// direction, of which none allows it. If by is empty, the pod is not known. After a change of policies, namespaces or
// ipBlocks, Denial returns false until Compile is called.
func (c *Compiler) Denial(f Flow) (denied bool, by []Name) {
	e := c.endpoints[f.Endpoint]
	if e == nil || e.Pod == (Name{}) || c.tables == nil {
		return false, nil
	}
	k := c.class(e)
	if k == nil {
		return true, nil
	}
	remote := c.tables.of(e.VRF, f.Remote)
	allows := func(r rule) bool {
		return r.egress == f.Egress && slices.ContainsFunc(remote, func(id *identity) bool {
			return slices.ContainsFunc(r.allowed(k.ports, id), func(x portRange) bool { return x.has(f) })
		})
	}
	for p := range k.policies {
		if f.Egress && !p.egress || !f.Egress && !p.ingress {
			continue
		}
		by = append(by, p.name)
		if slices.ContainsFunc(p.rules, allows) {
			return false, nil
		}
	}
	slices.SortFunc(by, Name.compare)
	return len(by) > 0, by
}

// InForce returns the names of the policies that select pods of this node, sorted. Call it after Compile.
func (c *Compiler) InForce() []Name {
	all := map[Name]bool{}
	for _, g := range c.tables.groups {
		for _, p := range g.policies {
			all[p.name] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), Name.compare)
}

func (n Name) compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Namespace, o.Namespace), cmp.Compare(n.Name, o.Name))
}

// has reports whether the range, with a number, has a flow's port.
func (x portRange) has(f Flow) bool {
	return x.protocol == 0 || x.protocol == f.Protocol && (x.first == 0 || x.first <= f.Port && f.Port <= x.last)
}
