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
// direction, of which none allows it. If by is empty, the pod is not known.
func (c *Compiler) Denial(f Flow) (denied bool, by []Name) {
	e := c.endpoints[f.Endpoint]
	if e == nil || e.Pod == (Name{}) {
		return false, nil
	}
	k := c.class(e)
	if k == nil {
		return true, nil
	}
	var remote *class
	for _, o := range c.endpoints {
		if o.VRF == e.VRF && o.Pod != (Name{}) && slices.Contains(o.IPs, f.Remote) {
			remote = c.class(o)
		}
	}
	for p := range k.policies {
		if f.Egress && !p.egress || !f.Egress && !p.ingress {
			continue
		}
		by = append(by, p.name)
		if slices.ContainsFunc(p.rules, func(r rule) bool { return r.allows(f, k, remote) }) {
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

// allows reports whether the rule allows a flow between pods of a class and a remote address. remote is the class
// of the pod there; nil: there is none.
func (r rule) allows(f Flow, k, remote *class) bool {
	if r.egress != f.Egress || !r.all && !slices.ContainsFunc(r.peers, func(p *peer) bool { return p.has(f.Remote, remote) }) {
		return false
	}
	var named []Port // of the destination
	switch {
	case !f.Egress:
		named = k.ports
	case remote != nil:
		named = remote.ports
	}
	for _, x := range r.ports {
		for _, n := range x.resolve(named) {
			if n.protocol == f.Protocol && (n.first == 0 || n.first <= f.Port && f.Port <= n.last) {
				return true
			}
		}
	}
	return len(r.ports) == 0
}

// has reports whether the peer has an address, which is that of pods of a class; nil: of no pod.
func (p *peer) has(a netip.Addr, k *class) bool {
	if p.pods != nil {
		return k != nil && k.peers[p]
	}
	return p.block.Contains(a) && !slices.ContainsFunc(p.except, func(e netip.Prefix) bool { return e.Contains(a) })
}
