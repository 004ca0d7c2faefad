package fib

import (
	"fmt"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// ports makes the vifs of this node's ports, and the routes to all ports of the
// networks that are here.
func (c *compiler) ports() {
	remote := map[string]map[string]bool{} // network → nodes with ports in it
	for i := range c.state.Ports {
		p := &c.state.Ports[i]
		n := c.byName[p.Network]
		switch {
		case n == nil:
		case p.Node == c.self.Name:
			c.localPort(p, n)
		default:
			c.remotePort(p, n)
			if remote[n.Name] == nil {
				remote[n.Name] = map[string]bool{}
			}
			remote[n.Name][p.Node] = true
		}
	}
	for i := range c.state.Nodes { // in the state's order, so that the lists are stable
		name := c.state.Nodes[i].Name
		t := c.tunnels[name]
		if t == nil {
			continue
		}
		for network, nodes := range remote {
			if n := c.byName[network]; nodes[name] && bridges(n) {
				c.flood[network] = append(c.flood[network], Member{Nexthop: t.ethernet, Label: c.ethernetLabel(t, n)})
			}
		}
	}
}

func (c *compiler) ipLabel(t *tunnel, n *model.Network) uint32 {
	if t.encap == model.VXLAN {
		return vni(n)
	}
	return n.Label()
}

func (c *compiler) ethernetLabel(t *tunnel, n *model.Network) uint32 {
	if t.encap == model.VXLAN {
		return vni(n)
	}
	return n.EthernetLabel()
}

func (c *compiler) remotePort(p *model.Port, n *model.Network) {
	t := c.tunnels[p.Node]
	if t == nil {
		return // warned of already
	}
	if routes(n) {
		for _, a := range p.IPs {
			r := Route{Nexthop: t.ip, Label: c.ipLabel(t, n)}
			if bridges(n) {
				r.MAC = p.MAC
			}
			c.host(n, a, r)
		}
	}
	if bridges(n) {
		c.t.Bridge[BridgeKey{VRF: n.ID, MAC: p.MAC}] = BridgeEntry{Nexthop: t.ethernet, Label: c.ethernetLabel(t, n)}
	}
}

func encapName(port string) string { return "encap " + port }

func (c *compiler) localPort(p *model.Port, n *model.Network) {
	fact, plugged := c.facts.Ports[p.Name]
	if !plugged {
		c.warn("port %q has no device yet", p.Name)
		return
	}
	id, err := c.ids.Get(kindVif, p.Name, c.facts.Limits.Vifs)
	if err != nil {
		c.fail(err)
		return
	}
	mtu := clampMTU(c.vifMTU(n))
	nexthop := c.nexthop(encapName(p.Name), Nexthop{
		Type: Encap, VRF: n.ID, Vif: id, Oif: fact.Ifindex, Peer: fact.Peer, DMAC: p.MAC, SMAC: model.RouterMAC, MTU: mtu,
	})
	v := Vif{
		ID: id, Name: p.Name, Device: fact.Device, VRF: n.ID, Nexthop: nexthop, L2: bridges(n), L3: routes(n),
		MTU: mtu, MAC: p.MAC, RouterMAC: model.RouterMAC,
	}
	for _, s := range n.Subnets {
		if g := gatewayOf(s); routes(n) && g.Is4() && !v.Gateway4.IsValid() {
			v.Gateway4 = g
		} else if routes(n) && g.Is6() && !v.Gateway6.IsValid() {
			v.Gateway6 = g
		}
	}
	for _, a := range p.IPs {
		v.Sources = append(v.Sources, netip.PrefixFrom(a, a.BitLen()))
	}
	v.Sources = append(v.Sources, p.AllowSources...)
	if policy, has := c.policy(p, n); has {
		v.Policy = true
		c.t.Policies[id] = policy
	}
	c.t.Vifs[fact.Ifindex] = v
	if routes(n) {
		for _, a := range p.IPs {
			r := Route{Nexthop: nexthop}
			if bridges(n) {
				r.MAC = p.MAC
			}
			c.host(n, a, r)
		}
	}
	if bridges(n) {
		c.t.Bridge[BridgeKey{VRF: n.ID, MAC: p.MAC}] = BridgeEntry{Nexthop: nexthop}
		c.flood[n.Name] = append(c.flood[n.Name], Member{Nexthop: nexthop})
	}
}

// vifMTU is what a workload's device may have: what fits the way with the
// least room, to any peer by any encapsulation of this node. It depends on
// the fabric and this node's offers alone, so that it does not change when
// peers come and go.
func (c *compiler) vifMTU(n *model.Network) int { return VifMTU(c.facts.MTU, *c.self, *n) }

// VifMTU is the MTU of a workload's device in a network, on a node whose fabric
// has an MTU.
func VifMTU(fabric int, node model.Node, n model.Network) int {
	v6 := !slices.ContainsFunc(node.Underlay, netip.Addr.Is4)
	most := 0
	for _, e := range node.Encapsulations {
		most = max(most, Overhead(e, v6, bridges(&n)))
	}
	return fabric - most
}

// policy merges a port's rules with its network's. Directions without a rule
// are open.
func (c *compiler) policy(p *model.Port, n *model.Network) (Policy, bool) {
	f := Policy{AllowIn: true, AllowOut: true}
	for _, name := range slices.Concat(p.Policies, n.Policies) {
		policy := c.policies[name]
		if policy == nil {
			c.fail(fmt.Errorf("port %q: policy %q does not exist", p.Name, name))
			continue
		}
		for _, r := range policy.Rules {
			rule, err := ruleOf(r)
			if err != nil {
				c.fail(fmt.Errorf("policy %q: %w", name, err))
				continue
			}
			if rule.Egress {
				f.AllowOut = false
			} else {
				f.AllowIn = false
			}
			f.Rules = append(f.Rules, rule)
		}
	}
	return f, len(f.Rules) > 0
}

func ruleOf(r model.Rule) (Rule, error) {
	first, last, err := r.PortRange()
	if err != nil {
		return Rule{}, err
	}
	protocol, err := r.ProtocolNumber()
	if err != nil {
		return Rule{}, err
	}
	return Rule{
		Egress: r.Direction == model.Egress, Allow: r.Action == model.Allow, Log: r.Log,
		Protocol: protocol, Remote: r.Remote, FirstPort: first, LastPort: last,
	}, nil
}

// floods makes the replication lists.
func (c *compiler) floods() {
	for i := range c.state.Networks {
		n, name := &c.state.Networks[i], c.state.Networks[i].Name
		members := c.flood[name]
		if len(members) == 0 {
			continue
		}
		if len(members) > mostFlood {
			c.fail(fmt.Errorf("network %q: %d places to replicate to, at most %d; make it l3, or split it", name, len(members), mostFlood))
			continue
		}
		vrf := c.t.VRFs[n.ID]
		vrf.Flood = c.nexthop("flood "+name, Nexthop{Type: Composite, VRF: n.ID, Multicast: true, Members: members})
		c.t.VRFs[n.ID] = vrf
	}
}

// staticRoutes are those of the state; with several ways they are ECMP.
func (c *compiler) staticRoutes() {
	for _, r := range c.state.Routes {
		n := c.byName[r.Network]
		if n == nil || !routes(n) {
			continue
		}
		key := RouteKey{VRF: n.ID, Prefix: r.Prefix.Masked()}
		if r.Discard {
			id := c.nexthop("discard", Nexthop{Type: Discard})
			c.t.Routes[key] = Route{Nexthop: id}
			continue
		}
		var members []Member
		for _, v := range r.Via {
			if m, ok := c.via(v, n); ok {
				members = append(members, m)
			}
		}
		switch {
		case len(members) == 0:
			c.warn("route %s of network %q has no way now", r.Prefix, r.Network)
		case len(r.Via) == 1:
			c.t.Routes[key] = Route{Nexthop: members[0].Nexthop, Label: members[0].Label}
		default:
			id := c.nexthop(fmt.Sprintf("ecmp %s %s", r.Network, r.Prefix), Nexthop{Type: Composite, VRF: n.ID, Members: members[:min(len(members), mostECMP)]})
			c.t.Routes[key] = Route{Nexthop: id}
		}
	}
}

// via is one way of a static route, as this node sees it.
func (c *compiler) via(v model.Via, n *model.Network) (Member, bool) {
	if v.Gateway != "" {
		t := c.foreign[v.Gateway]
		if t == nil {
			return Member{}, false
		}
		for _, g := range c.state.Gateways {
			for _, gn := range g.Networks {
				if g.Name == v.Gateway && gn.Network == n.Name {
					label, _ := gatewayLabels(t, gn, n)
					return Member{Nexthop: t.ip, Label: label}, true
				}
			}
		}
		return Member{}, false
	}
	p := c.portAt[v.Port]
	if p == nil {
		return Member{}, false
	}
	if p.Node == c.self.Name {
		if _, plugged := c.facts.Ports[p.Name]; !plugged {
			return Member{}, false
		}
		id, err := c.ids.Get(kindNexthop, encapName(p.Name), 0)
		return Member{Nexthop: id}, err == nil
	}
	t := c.tunnels[p.Node]
	if t == nil {
		return Member{}, false
	}
	return Member{Nexthop: t.ip, Label: c.ipLabel(t, n)}, true
}
