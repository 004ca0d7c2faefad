package fleet

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// neighbours is the part of the state that a changed object can contradict. Each object
// is there together with the objects that it refers to. So the time to check a change
// depends on the neighbours of the object, not on the size of the fleet.
type neighbours struct {
	view                             *View
	nodes, networks, ports, policies map[string]bool
	gateways                         map[string]bool // only with the networks in networks
	routes                           map[string]model.Route
	without                          []string // ports that are not added
}

func (v *View) neighbours(without ...string) *neighbours {
	set := func() map[string]bool { return map[string]bool{} }
	return &neighbours{v, set(), set(), set(), set(), set(), map[string]model.Route{}, without}
}

// state returns the neighbours as a document.
func (n *neighbours) state() model.State {
	s := model.State{Settings: n.view.settings, Nodes: chosen(n.view.nodes, n.nodes), Networks: chosen(n.view.networks, n.networks), Policies: chosen(n.view.policies, n.policies)}
	for _, p := range chosen(n.view.ports, n.ports) {
		s.Ports = append(s.Ports, p.Port())
	}
	for _, g := range chosen(n.view.gateways, n.gateways) {
		s.Gateways = append(s.Gateways, model.GatewayIn(g, n.networks))
	}
	for _, key := range slices.Sorted(maps.Keys(n.routes)) {
		s.Routes = append(s.Routes, n.routes[key])
	}
	return s
}

// chosen returns the objects with the given names, sorted by name.
func chosen[V any](all map[string]V, names map[string]bool) (list []V) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if o, is := all[name]; is {
			list = append(list, o)
		}
	}
	return list
}

func (n *neighbours) addNetwork(name string) {
	n.networks[name] = true
	n.addPolicies(n.view.networks[name].Policies)
}

func (n *neighbours) addPolicies(names []string) {
	for _, name := range names {
		n.policies[name] = true
	}
}

// addPort adds a port of the view; without such a port it does nothing.
func (n *neighbours) addPort(name string) {
	if p := n.view.ports[name]; p != nil && !slices.Contains(n.without, name) {
		n.ports[name], n.nodes[p.Node] = true, true
		n.addNetwork(p.Network)
		n.addPolicies(p.Policies)
	}
}

// addRoute adds a route with its next hops.
func (n *neighbours) addRoute(r model.Route) {
	n.routes[routeKey(r)] = r
	n.addNetwork(r.Network)
	for _, w := range r.Via {
		n.addPort(w.Port)
		n.gateways[w.Gateway] = true
	}
}

// addRoutes adds the routes of a network.
func (n *neighbours) addRoutes(network string) {
	for _, r := range n.view.routes[network] {
		n.addRoute(r)
	}
}

// addGateways adds the gateways of a network.
func (n *neighbours) addGateways(network string) {
	for name, g := range n.view.gateways {
		if _, serves := g.Network(network); serves {
			n.gateways[name] = true
		}
	}
}

// addReach adds a network with one port on each of its nodes, since these nodes must reach
// each other.
func (n *neighbours) addReach(network string) {
	n.addNetwork(network)
	for all := n.view.members[network]; len(all) > 0; {
		here := n.view.hosts[all[0].Node][network]
		for _, p := range all[:here] {
			if n.addPort(p.Name); n.ports[p.Name] {
				break
			}
		}
		all = all[here:]
	}
}

// addHosts adds the ports by which a node itself is connected to a network (attach.host).
func (n *neighbours) addHosts(network, node string) {
	for _, p := range n.view.membersOn(network, node) {
		if p.Attach.Host {
			n.addPort(p.Name)
		}
	}
}

// addHolder adds the port that has the address of a prefix, and the route to the prefix.
func (n *neighbours) addHolder(network string, p netip.Prefix) {
	if p.IsSingleIP() {
		n.addPort(n.view.index.get(addressOf(network, p.Addr())).name())
	}
	if r, is := n.view.routes[network][p]; is {
		n.addRoute(r)
	}
}

func (v *View) nearNode(node model.Node) *neighbours {
	n := v.neighbours()
	for name := range v.nodes { // their addresses and locators must differ
		n.nodes[name] = true
	}
	for name, network := range v.networks {
		if slices.ContainsFunc(node.Underlay, func(a netip.Addr) bool { _, is := network.Subnet(a); return is || network.InPool(a) }) {
			n.addNetwork(name)
		}
	}
	locator := v.locatorOf(node)
	for name, g := range v.gateways {
		if slices.ContainsFunc(g.Addresses, func(a netip.Addr) bool { return locator.Contains(a) || slices.Contains(node.Underlay, a) }) {
			n.gateways[name] = true
		}
	}
	for network := range v.hosts[node.Name] {
		n.addReach(network)
	}
	return n
}

// locatorOf returns the locator of a node: the one in its entry, or the one that is derived from
// settings.locators.
func (v *View) locatorOf(n model.Node) netip.Prefix {
	return model.State{Settings: v.settings, Nodes: []model.Node{n}}.WithDefaults().Nodes[0].Locator
}

func (v *View) nearNetwork(network model.Network) *neighbours {
	n := v.neighbours()
	for name, o := range v.networks {
		if o.ID == network.ID || o.VNI == network.VNI || o.VNI == network.ID || !o.RD.IsZero() && o.RD == network.RD || (o.Tenant == network.Tenant || o.NodeAccess && network.NodeAccess) && network.Overlaps(o) || len(o.NATPool)+len(network.NATPool) > 0 {
			n.addNetwork(name)
		}
	}
	n.addPolicies(network.Policies)
	for name, node := range v.nodes {
		if slices.ContainsFunc(node.Underlay, func(a netip.Addr) bool { _, is := network.Subnet(a); return is || network.InPool(a) }) {
			n.nodes[name] = true
		}
	}
	others := v.overlapping(network)
	for _, p := range v.members[network.Name] {
		n.addPort(p.Name)
		for _, o := range others {
			if p.Attach.Host {
				n.addHosts(o, p.Node)
			}
		}
	}
	n.addRoutes(network.Name)
	n.addGateways(network.Name)
	return n
}

// overlapping returns the names of the other tenants' networks whose subnets overlap with those of a network.
func (v *View) overlapping(network model.Network) (names []string) {
	for name, o := range v.networks {
		if name != network.Name && o.Tenant != network.Tenant && network.Overlaps(o) {
			names = append(names, name)
		}
	}
	return names
}

func (v *View) nearPolicy(p model.Policy) *neighbours {
	n := v.neighbours()
	for port := range v.users[p.Name] {
		n.addPort(port)
	}
	for name, network := range v.networks {
		if !slices.Contains(network.Policies, p.Name) {
			continue
		}
		n.addNetwork(name)
		for i, o := range v.members[name] {
			if i == 0 || len(o.Policies) > 0 || o.Attach.Host { // the other ports have as many rules as the first
				n.addPort(o.Name)
			}
		}
	}
	return n
}

func (v *View) nearGateway(g model.Gateway) *neighbours {
	n := v.neighbours()
	for name, node := range v.nodes {
		locator := v.locatorOf(node)
		if slices.ContainsFunc(g.Addresses, func(a netip.Addr) bool { return locator.Contains(a) || slices.Contains(node.Underlay, a) }) {
			n.nodes[name] = true
		}
	}
	for name, other := range v.gateways { // their addresses must differ
		if slices.ContainsFunc(g.Addresses, func(a netip.Addr) bool { return slices.Contains(other.Addresses, a) }) {
			n.gateways[name] = true
		}
	}
	for _, gn := range slices.Concat(g.Networks, v.gateways[g.Name].Networks) {
		n.addNetwork(gn.Network)
		n.addRoutes(gn.Network)
		n.addGateways(gn.Network)
		for _, p := range gn.Prefixes {
			n.addHolder(gn.Network, p)
		}
		for _, m := range gn.MACs {
			n.addPort(v.index.get(macOf(gn.Network, m)).name())
		}
	}
	return n
}

func (v *View) nearRoute(r model.Route) *neighbours {
	n := v.neighbours()
	n.addRoute(r)
	n.addGateways(r.Network)
	n.addHolder(r.Network, r.Prefix)
	return n
}

// nearPort returns the neighbours of a port, without the port and the ports that it
// replaces.
func (v *View) nearPort(p model.Port, replaced []model.Port) *neighbours {
	n := v.neighbours(p.Name)
	for _, o := range replaced {
		n.without = append(n.without, o.Name)
	}
	for _, o := range replaced {
		for _, r := range v.routes[o.Network] {
			if slices.Contains(r.Via, model.Via{Port: o.Name}) {
				n.addRoute(r)
			}
		}
	}
	n.addReach(p.Network)
	n.addGateways(p.Network)
	n.addPolicies(p.Policies)
	n.nodes[p.Node] = true
	n.addPort(v.index.get(macOf(p.Network, p.MAC)).name())
	for _, a := range p.Addresses() {
		n.addHolder(p.Network, netip.PrefixFrom(a, a.BitLen()))
	}
	for network := range v.hosts[p.Node] {
		for _, o := range v.membersOn(network, p.Node) {
			if samePlace(&o.Attach, &p.Attach) {
				n.addPort(o.Name)
			}
		}
	}
	return n
}

// samePlace reports whether two ports of a node may be attached at one place.
func samePlace(a, b *model.Attachment) bool {
	return a.Host && b.Host || a.Device != "" && a.Device == b.Device ||
		a.Netns != "" && a.Netns == b.Netns && cmp.Or(a.Interface, model.DefaultInterface) == cmp.Or(b.Interface, model.DefaultInterface)
}
