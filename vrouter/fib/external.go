package fib

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// External has the routes that routers outside the fleet announce. It is immutable.
type External struct{ Routes []ExternalRoute }

// Equal reports whether a and b have the same routes in the same order.
func (x *External) Equal(o *External) bool {
	return slices.EqualFunc(x.Routes, o.Routes, func(a, b ExternalRoute) bool {
		return a.ExternalDestination == b.ExternalDestination && slices.Equal(a.Via, b.Via) && slices.Equal(a.Backups, b.Backups)
	})
}

// ExternalRoute is a route to a destination outside the fleet.
type ExternalRoute struct {
	ExternalDestination
	Via     []ExternalVia // equal next hops: at most model.MaxECMP to a prefix, one to a MAC address
	Backups []netip.Addr  // next hops of other paths, which may also send packets into the network
}

// ExternalDestination is a prefix or the MAC address of a station. A destination with neither is for broadcast,
// unknown unicast and multicast: each next hop gets a copy.
type ExternalDestination struct {
	Network string
	Prefix  netip.Prefix
	MAC     model.MAC
}

// ExternalVia is a next hop, with the label or VNI that the router expects.
type ExternalVia struct {
	Endpoint
	Label uint32
}

// Endpoint is a tunnel endpoint outside the fleet.
type Endpoint struct {
	Address       netip.Addr
	Encapsulation model.Encapsulation
	RouterMAC     model.MAC // inner MAC address of routed VXLAN; zero: model.RouterMAC
}

// ExternalSender is a router that may send packets with any source address into a network.
type ExternalSender struct {
	Network string
	Address netip.Addr
}

// Senders returns who may send packets to each network: the next hops of its routes and of their backups, sorted, each once.
func (x *External) Senders() []ExternalSender {
	all, last := map[ExternalSender]bool{}, ExternalSender{}
	add := func(network string, a netip.Addr) {
		if s := (ExternalSender{network, a}); s != last {
			all[s], last = true, s
		}
	}
	for i := range x.Routes {
		r := &x.Routes[i]
		for _, v := range r.Via {
			add(r.Network, v.Address)
		}
		for _, a := range r.Backups {
			add(r.Network, a)
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b ExternalSender) int {
		return cmp.Or(strings.Compare(a.Network, b.Network), a.Address.Compare(b.Address))
	})
}

// routerPrefix is the prefix of the names of external routers in tables that also name nodes and gateways.
const routerPrefix = "router "

// tunnelPrefix is the prefix of the names of tunnels' nexthops.
const tunnelPrefix = "tunnel "

// external has the external routes of this node's networks, and the tunnels to the routers.
type external struct {
	routes  []*ExternalRoute
	tunnels map[Endpoint]*tunnel
	remotes map[netip.Addr]string // names of gateways by underlay address, for remoteID
}

// externalPeers adds the tunnels to external routers, and accepts the packets of these routers.
func (c *compiler) externalPeers() {
	if c.facts.External == nil {
		return
	}
	c.external = external{c.externalHere(), map[Endpoint]*tunnel{}, map[netip.Addr]string{}}
	for _, g := range c.state.Gateways {
		for _, a := range g.Addresses {
			c.external.remotes[a] = gatewayName(g.Name)
		}
	}
	needs, endpoints := map[Endpoint]*payloads{}, []Endpoint(nil)
	for _, r := range c.external.routes {
		for _, v := range r.Via {
			if needs[v.Endpoint] == nil {
				needs[v.Endpoint], endpoints = &payloads{}, append(endpoints, v.Endpoint)
			}
			needs[v.Endpoint].ip = needs[v.Endpoint].ip || r.Prefix.IsValid()
			needs[v.Endpoint].ethernet = needs[v.Endpoint].ethernet || !r.Prefix.IsValid()
		}
	}
	for _, e := range endpoints {
		c.externalTunnel(e, *needs[e])
	}
	for _, s := range c.facts.External.Senders() {
		if n := c.here[s.Network]; n != nil {
			c.externalRemote(s.Address, nil, c.self.Tunnels()...)
			c.allowAnySource(n, c.remoteID(c.remoteAt(s.Address)))
		}
	}
}

// externalHere returns the external routes of this node's networks. It leaves out routes to an IP or MAC
// address that a port of the fleet has, and routes to a subnet or a part of it.
func (c *compiler) externalHere() []*ExternalRoute {
	hosts, stations := map[RouteKey]string{}, map[layout.BridgeKey]string{} // names of the ports that have the addresses
	all := c.facts.External.Routes
	routes := make([]*ExternalRoute, 0, len(all))
	for i := range all {
		r := &all[i]
		if n := c.here[r.Network]; n != nil {
			routes = append(routes, r)
			if r.Prefix.IsValid() && r.Prefix.IsSingleIP() {
				hosts[hostKey(n.ID, r.Prefix.Addr())] = ""
			} else if !r.MAC.IsZero() {
				stations[layout.BridgeKey{VRF: n.ID, MAC: r.MAC}] = ""
			}
		}
	}
	if len(hosts)+len(stations) > 0 {
		c.findOwners(hosts, stations)
	}
	return slices.DeleteFunc(routes, func(r *ExternalRoute) bool {
		n, owner := c.here[r.Network], ""
		if !r.Prefix.IsValid() {
			owner = stations[layout.BridgeKey{VRF: n.ID, MAC: r.MAC}]
		} else if r.Prefix.IsSingleIP() {
			owner = hosts[hostKey(n.ID, r.Prefix.Addr())]
		}
		of, subnet := n.subnetOver(r.Prefix)
		switch {
		case owner != "":
			c.ignoreExternal(r, fmt.Sprintf("port %q has the address", owner))
		case of != nil:
			c.ignoreExternal(r, fmt.Sprintf("network %q has the subnet %s, which comes first; within it, only routes to single addresses are used", of.Name, subnet))
		}
		return owner != "" || of != nil
	})
}

// findOwners sets the names of the ports that have the addresses of routes.
func (c *compiler) findOwners(hosts map[RouteKey]string, stations map[layout.BridgeKey]string) {
	own := func(vrf uint32, a netip.Addr, port string) {
		if _, is := hosts[hostKey(vrf, a)]; is {
			hosts[hostKey(vrf, a)] = port
		}
	}
	for _, p := range c.state.All {
		n := c.nets[p.Network]
		if n == nil {
			continue
		}
		for _, i := range n.importers {
			for _, a := range p.IPs {
				if i.imports(a) {
					own(i.vrf, a, p.Name)
				}
			}
		}
		if n = c.here[p.Network]; n == nil {
			continue
		}
		for _, a := range p.Addresses() {
			own(n.ID, a, p.Name)
		}
		if key := (layout.BridgeKey{VRF: n.ID, MAC: p.MAC}); len(stations) > 0 {
			if _, is := stations[key]; is {
				stations[key] = p.Name
			}
		}
	}
}

// subnetOver returns the subnet of the network, or of a network whose routes it imports, that comes before a route to a
// prefix. A route to a single address can lead to a host of the subnet behind another router.
func (n *network) subnetOver(p netip.Prefix) (of *network, subnet netip.Prefix) {
	if !p.IsValid() || !n.Routes() {
		return nil, subnet
	}
	covers := func(s netip.Prefix) bool {
		return s.Bits() <= p.Bits() && s.Overlaps(p) && (!p.IsSingleIP() || s.IsSingleIP())
	}
	if i := slices.IndexFunc(n.Subnets, covers); i >= 0 {
		return n, n.Subnets[i]
	}
	for _, of := range n.imported {
		if i := slices.IndexFunc(of.Subnets, covers); i >= 0 {
			return of, of.Subnets[i]
		}
	}
	return nil, subnet
}

// ignoreExternal warns about an external route that the node does not use because of an object of the fleet.
func (c *compiler) ignoreExternal(r *ExternalRoute, why string) {
	c.ignored[r.ExternalDestination] = why
	to := r.MAC.String()
	if r.Prefix.IsValid() {
		to = r.Prefix.String()
	}
	c.warn(kindRoute, r.Network+" "+to, "the BGP route to %s in network %q by %s is not used: %s", to, r.Network, r.Via[0].Address, why)
}

// remoteAt returns the name of the external router with an address, for remoteID. If a gateway has the
// address, it is the gateway's name.
func (c *compiler) remoteAt(a netip.Addr) string {
	return cmp.Or(c.external.remotes[a], routerPrefix+a.String())
}

// externalTunnel adds the tunnel to an endpoint, unless the endpoint is not reachable.
func (c *compiler) externalTunnel(e Endpoint, needs payloads) {
	pairs := each(c.self.Underlay, []netip.Addr{e.Address})
	if len(pairs) == 0 {
		c.warn(kindTunnel, routerPrefix+e.Address.String(), "router %s is not reachable: this node has no underlay address of the same IP version", e.Address)
		return
	}
	if paths, _ := c.facts.Way(pairs[0].source, pairs[0].destination); len(paths) == 0 {
		c.warn(kindTunnel, routerPrefix+e.Address.String(), "router %s: there is no way through the underlay from %s", e.Address, pairs[0].source)
		return
	}
	router, name := e.RouterMAC, routerPrefix+e.Address.String()
	if router.IsZero() {
		router = model.RouterMAC
	}
	if e.Encapsulation == model.VXLAN {
		name += " " + router.String()
	}
	f := formats{encap: e.Encapsulation, frames: e.Encapsulation, foreign: true, remote: c.remoteAt(e.Address)}
	t := c.tunnel(name, f, pairs, router, needs)
	c.translateFloating(t)
	c.external.tunnels[e] = t
	c.externalRemote(e.Address, t, e.Encapsulation)
}

// translateFloating makes routed packets to a tunnel leave with the floating addresses of their workloads.
func (c *compiler) translateFloating(t *tunnel) {
	if n, has := c.t.Nexthops[t.ip]; has {
		n.Flags |= layout.NexthopNAT
		c.t.Nexthops[t.ip] = n
	}
}

// externalRemote accepts packets with some encapsulations from a router. t is the tunnel to it; nil if there
// is none.
func (c *compiler) externalRemote(a netip.Addr, t *tunnel, encaps ...model.Encapsulation) {
	was, known := c.t.Remotes[layout.AddressOf(a)]
	if !known {
		c.remote([]netip.Addr{a}, c.remoteID(c.remoteAt(a)), t, encaps)
		return
	}
	was.Encaps |= layout.Bits(encaps...)
	c.t.Remotes[layout.AddressOf(a)] = was
}

// externalStations adds the bridge entries and flood destinations of external routers.
func (c *compiler) externalStations() {
	for _, r := range c.external.routes {
		n := c.here[r.Network]
		if r.Prefix.IsValid() || !n.Bridges() {
			continue
		}
		for _, v := range r.Via {
			t := c.external.tunnels[v.Endpoint]
			if t == nil {
				continue
			}
			if r.MAC.IsZero() {
				n.flood = append(n.flood, layout.Member{Nexthop: t.ethernet, Label: v.Label})
				continue
			}
			key := layout.BridgeKey{VRF: n.ID, MAC: r.MAC}
			if _, has := c.t.Bridge[key]; has {
				c.ignoreExternal(r, "a gateway has the MAC address")
			} else {
				c.t.Bridge[key] = layout.BridgeEntry{Nexthop: t.ethernet, Label: v.Label}
			}
			break
		}
	}
}

// externalRoutes adds the routes to external prefixes. A route of the fleet to the same prefix takes
// precedence. Routes with the same next hops share a composite nexthop.
func (c *compiler) externalRoutes() {
	var members []layout.Member
	for _, r := range c.external.routes {
		n := c.here[r.Network]
		if !r.Prefix.IsValid() || !n.Routes() {
			continue
		}
		key := RouteKey{VRF: n.ID, Prefix: r.Prefix.Masked()}
		if _, has := c.t.Routes[key]; has {
			c.ignoreExternal(r, "the fleet has a route to the same prefix")
			continue
		}
		members = members[:0]
		for _, v := range r.Via {
			if t := c.external.tunnels[v.Endpoint]; t != nil {
				members = append(members, layout.Member{Nexthop: t.ip, Label: v.Label})
			}
		}
		switch len(members) {
		case 0:
		case 1:
			c.t.Routes[key] = layout.Route{Nexthop: members[0].Nexthop, Label: members[0].Label}
		default:
			name := "ecmp " + r.Network + " routers"
			for _, m := range members {
				name += fmt.Sprintf(" %d/%d", m.Nexthop, m.Label)
			}
			c.t.Routes[key] = layout.Route{Nexthop: c.nexthop(name, layout.Nexthop{Type: layout.Composite, VRF: n.ID}, members...)}
		}
	}
}

// Without returns the tables without some external routers as members of composite nexthops that have other members,
// and reports whether they differ. It takes a time that depends on the number of nexthops only.
func (c *Compiled) Without(routers map[netip.Addr]bool) (*Compiled, bool) {
	gone := map[uint32]bool{}
	for id, n := range c.Nexthops {
		if strings.HasPrefix(c.Names[id], tunnelPrefix+routerPrefix) && n.Paths > 0 && routers[n.Path[0].Destination.Addr()] {
			gone[id] = true
		}
	}
	without, differs := *c, false
	without.Nexthops, without.Members = maps.Clone(c.Nexthops), maps.Clone(c.Members)
	for id, n := range c.Nexthops {
		left := slices.DeleteFunc(c.MembersOf(id), func(m layout.Member) bool { return gone[m.Nexthop] })
		if len(left) < int(n.Members) && len(left) > 0 {
			without.SetMembers(id, left)
			differs = true
		}
	}
	return &without, differs
}
