package modeltest

import (
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// clone copies the lists that mutations modify in place.
func clone(s model.State) model.State {
	s.Nodes, s.Networks, s.Ports = slices.Clone(s.Nodes), slices.Clone(s.Networks), slices.Clone(s.Ports)
	s.Gateways, s.Policies = slices.Clone(s.Gateways), slices.Clone(s.Policies)
	s.Routes = slices.Clone(s.Routes)
	return s
}

// drop removes an element from a list.
func drop[E any](m *maker, all *[]E) (e E, ok bool) {
	if len(*all) == 0 {
		return e, false
	}
	i := m.rand.IntN(len(*all))
	e = (*all)[i]
	*all = slices.Delete(*all, i, i+1)
	return e, true
}

func (m *maker) deletePort() bool {
	p, ok := drop(m, &m.s.Ports)
	m.unroute(func(v model.Via) bool { return v.Port == p.Name })
	return ok
}

// unroute removes the vias for which gone returns true. It deletes routes that
// have no other via.
func (m *maker) unroute(gone func(model.Via) bool) {
	var kept []model.Route
	for _, r := range m.s.Routes {
		r.Via = slices.DeleteFunc(slices.Clone(r.Via), gone)
		if r.Discard || len(r.Via) > 0 {
			kept = append(kept, r)
		}
	}
	m.s.Routes = kept
}

func (m *maker) movePort() bool {
	node, ok := pick(m, m.s.Nodes)
	if !ok || len(m.s.Ports) == 0 {
		return false
	}
	p := &m.s.Ports[m.rand.IntN(len(m.s.Ports))]
	moved := p.Node != node.Name
	p.Node = node.Name
	return moved
}

// renumberPort gives a port other addresses and another MAC.
func (m *maker) renumberPort() bool {
	if len(m.s.Ports) == 0 {
		return false
	}
	i := m.rand.IntN(len(m.s.Ports))
	p := m.s.Ports[i]
	p.IPs, p.MAC = nil, model.MAC{}
	p, err := complete(m.s, p)
	m.s.Ports[i] = p
	return err == nil
}

func (m *maker) deleteNode() bool {
	if len(m.s.Nodes) < 2 {
		return false
	}
	n, _ := drop(m, &m.s.Nodes)
	m.s.Ports = slices.DeleteFunc(m.s.Ports, func(p model.Port) bool { return p.Node == n.Name })
	m.unroute(func(v model.Via) bool { _, has := m.s.Port(v.Port); return v.Port != "" && !has })
	return true
}

func (m *maker) deleteNetwork() bool {
	if len(m.s.Networks) < 2 {
		return false
	}
	n, _ := drop(m, &m.s.Networks)
	m.s.Ports = slices.DeleteFunc(m.s.Ports, func(p model.Port) bool { return p.Network == n.Name })
	m.s.Routes = slices.DeleteFunc(m.s.Routes, func(r model.Route) bool { return r.Network == n.Name })
	for i := range m.s.Gateways {
		g := &m.s.Gateways[i]
		g.Networks = slices.DeleteFunc(slices.Clone(g.Networks), func(gn model.GatewayNetwork) bool { return gn.Network == n.Name })
	}
	return true
}

// changeNetwork changes the forwarding mode, the VNI or the route targets of a network, if its
// objects allow that.
func (m *maker) changeNetwork() bool {
	if len(m.s.Networks) == 0 {
		return false
	}
	n := &m.s.Networks[m.rand.IntN(len(m.s.Networks))]
	if m.chance(2) {
		n.VNI = 10000 + uint32(m.rand.IntN(1000000))
		return true
	}
	if m.chance(2) {
		was := *n
		n.Import, n.Export = m.targets(), m.targets()
		return !slices.Equal(n.Import, was.Import) || !slices.Equal(n.Export, was.Export)
	}
	was := n.Forwarding
	n.Forwarding = []model.Forwarding{model.L3, model.L2, model.L2L3}[m.rand.IntN(3)]
	return was != n.Forwarding
}

func (m *maker) deleteRoute() bool { _, ok := drop(m, &m.s.Routes); return ok }

func (m *maker) deleteGateway() bool {
	g, ok := drop(m, &m.s.Gateways)
	m.unroute(func(v model.Via) bool { return v.Gateway == g.Name && ok })
	return ok
}

func (m *maker) addPolicy() bool {
	p := model.Policy{Name: name("policy", func(s string) bool { _, has := m.s.Policy(s); return has })}
	for range m.rand.IntN(6) {
		p.Rules = append(p.Rules, m.rule())
	}
	m.s.Policies = append(m.s.Policies, p)
	return true
}

func (m *maker) rule() model.Rule {
	r := model.Rule{Direction: model.Ingress, Action: model.Allow, Log: m.chance(4)}
	if m.chance(2) {
		r.Direction = model.Egress
	}
	if m.chance(3) {
		r.Action = model.Deny
	}
	r.Protocol, _ = pick(m, []string{"", "tcp", "udp", "icmp", "icmp6", "47"})
	if r.Protocol == "tcp" || r.Protocol == "udp" {
		r.Ports, _ = pick(m, []string{"", "80", "8000-8080", "1-65535"})
	}
	switch r.Protocol {
	case "icmp6":
		r.Remote = netip.MustParsePrefix("fd00:10::/64")
	case "tcp", "icmp":
		r.Remote = netip.MustParsePrefix("10.0.0.0/25")
	}
	return r
}

// changePolicies changes the policies of a port.
func (m *maker) changePolicies() bool {
	if len(m.s.Ports) == 0 || len(m.s.Policies) == 0 {
		return false
	}
	p := &m.s.Ports[m.rand.IntN(len(m.s.Ports))]
	was := p.Policies
	p.Policies = m.somePolicies()
	return !slices.Equal(was, p.Policies)
}

func (m *maker) changeSettings() bool {
	m.s.Settings.AllowFragment = !m.s.Settings.AllowFragment
	return true
}

// changePreference changes the order of a node's encapsulations.
func (m *maker) changePreference() bool {
	if len(m.s.Nodes) == 0 {
		return false
	}
	n := &m.s.Nodes[m.rand.IntN(len(m.s.Nodes))]
	if len(n.Encapsulations) < 2 {
		return false
	}
	n.Encapsulations = slices.Clone(n.Encapsulations)
	slices.Reverse(n.Encapsulations)
	return true
}
