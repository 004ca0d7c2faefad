package fib

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Compiled is the result of Compile for one node. It does not store the entries of ports on
// other nodes. All and Since derive them from the ports.
type Compiled struct {
	Tables             // without the entries of ports on other nodes
	Warnings []Problem // objects that the tables omit, in the state's order
	// Ignored says why the tables have no route of Facts.External to a destination: an object of the fleet comes first.
	Ignored map[ExternalDestination]string

	slice model.Slice
	count map[place]tally
	legs  map[place]leg
}

// place is a network on a node.
type place struct{ node, network string }

// tally counts the ports of a place and their addresses.
type tally struct{ ports, addresses int }

func placeOf(p *model.CompactPort) place { return place{p.Node, p.Network} }

// size returns the number of routes without those to ports on other nodes. c can be nil.
func (c *Compiled) size() int {
	if c == nil {
		return 0
	}
	return len(c.Routes)
}

// countPorts counts the ports of each place. c, which can be nil, has earlier counts.
func (c *Compiled) countPorts(ports []*model.CompactPort) map[place]tally {
	count, before := map[place]tally{}, []*model.CompactPort(nil)
	if c != nil && c.count != nil {
		count, before = maps.Clone(c.count), c.slice.All
	}
	add := func(p *model.CompactPort, n int) {
		if p != nil {
			t := count[placeOf(p)]
			count[placeOf(p)] = tally{t.ports + n, t.addresses + n*len(p.IPs)}
		}
	}
	model.DiffPorts(before, ports, func(was, is *model.CompactPort) {
		add(was, -1)
		add(is, 1)
	})
	maps.DeleteFunc(count, func(_ place, t tally) bool { return t.ports == 0 })
	return count
}

// RouteCount returns the number of all routes, also of the routes to ports on other nodes.
func (c *Compiled) RouteCount() int {
	n := len(c.Routes)
	for at, l := range c.legs {
		if !l.unreachable && l.vrf != 0 {
			n += c.count[at].addresses
		}
		for _, i := range l.importers {
			switch {
			case l.leaked == 0:
			case len(i.without) == 0:
				n += c.count[at].addresses
			default:
				for _, p := range c.slice.On(at.network, at.node) {
					n += len(slices.DeleteFunc(slices.Clone(p.IPs), func(a netip.Addr) bool { return !i.imports(a) }))
				}
			}
		}
	}
	return n
}

// leg has the values that all routes to the ports of a network on one node share.
type leg struct {
	hop
	importers []importer
}

func (l leg) equal(o leg) bool {
	return l.hop == o.hop && slices.EqualFunc(l.importers, o.importers, importer.equal)
}

// hop is the part of a leg that == compares.
type hop struct {
	vrf                  uint32 // 0: the network has no ports on this node
	bridges              bool
	remote               uint32 // id of the other node; 0: this node
	unreachable          bool
	shares               bool   // the node may have a share of the pool
	routed, label        uint32 // nexthop of routes, and its label
	leaked               uint32 // nexthop of the routes of other networks, with the same label; 0: unreachable from them
	bridged, framesLabel uint32 // nexthop of bridge entries, and its label
}

// legs returns a leg for each other node and network. A node that cannot be reached has the
// leg unreachable; nodePeers has already warned about it.
func (c *compiler) legs() map[place]leg {
	all := map[place]leg{}
	for at := range c.count {
		n := c.nets[at.network]
		if n == nil || at.node == c.self.Name {
			continue
		}
		l := leg{hop{bridges: n.Bridges(), remote: c.remoteID(at.node), unreachable: true}, n.importers}
		if c.here[at.network] != nil {
			l.vrf, l.shares = n.ID, n.NATPorts > 0
		}
		if t := c.peers[at.node].in(n); t != nil {
			l.unreachable = false
			l.routed, l.label = t.nexthop(!n.Routes()), t.label(n, !n.Routes())
			l.leaked = t.leaked()
			l.bridged, l.framesLabel = t.bridged, t.label(n, true)
		}
		all[at] = l
	}
	return all
}

// addTo adds the routes and the bridge entry of a port to t. mac and ips are the port's addresses. In a network that bridges,
// each route also has the MAC address, with which vrouter answers ARP requests and neighbour solicitations.
func (l leg) addTo(t *Tables, mac model.MAC, ips []netip.Addr) {
	if l.unreachable {
		return
	}
	r := layout.Route{Nexthop: l.routed, Label: l.label}
	if l.bridges && l.vrf != 0 {
		r.MAC, r.Flags = mac, layout.RouteMAC
		t.Bridge[layout.BridgeKey{VRF: l.vrf, MAC: mac}] = layout.BridgeEntry{Nexthop: l.bridged, Label: l.framesLabel}
	}
	for _, a := range ips {
		if l.vrf != 0 {
			t.Routes[hostKey(l.vrf, a)] = r
		}
		for _, i := range l.importers {
			if l.leaked != 0 && i.imports(a) {
				t.Routes[hostKey(i.vrf, a)] = layout.Route{Nexthop: l.leaked, Label: l.label}
			}
		}
	}
}

// addSenders adds the allow_sources of a port on another node to tables. If nodes share addresses of a pool, a node also
// sends packets from outside the network, which have arrived for ports of this node.
func (l leg) addSenders(t *Tables, p *model.CompactPort) {
	if l.shares && p.NATSlot > 0 {
		for _, s := range everything {
			t.Senders[layout.SenderOf(l.vrf, l.remote, s)] = layout.Sender{Known: 1}
		}
	}
	for _, s := range p.AllowSources {
		if l.vrf != 0 {
			t.Senders[layout.SenderOf(l.vrf, l.remote, s)] = layout.Sender{Known: 1}
		}
		for _, i := range l.importers {
			t.Senders[layout.SenderOf(i.vrf, l.remote, s)] = layout.Sender{Known: 1}
		}
	}
}

// add adds the entries of a port to t, if it is on another node.
func (c *Compiled) add(t *Tables, p *model.CompactPort) {
	if l, ok := c.legs[placeOf(p)]; ok {
		l.addTo(t, p.MAC, p.IPs)
		l.addSenders(t, p)
	}
}

// All returns the tables with the entries of all ports.
func (c *Compiled) All() Tables {
	t := c.Tables
	t.Routes = make(map[RouteKey]layout.Route, len(c.Routes)+len(c.slice.All))
	maps.Copy(t.Routes, c.Routes)
	t.Bridge, t.Senders = maps.Clone(c.Bridge), maps.Clone(c.Senders)
	for _, p := range c.slice.All {
		c.add(&t, p)
	}
	return t
}

// Since compares c with last, an earlier result for the node. It returns the tables of last and of c without the
// vifs, nexthops, routes, bridge entries, senders and sets that are equal in both. There is one exception: if a vif differs, or a
// nexthop that leads to it, the results contain the vif and all nexthops that lead to it. The other tables are complete.
func (c *Compiled) Since(last *Compiled) (before, after Tables) {
	before, after = last.Tables, c.Tables
	before.Vifs, after.Vifs = differing(last.Vifs, c.Vifs)
	before.Nexthops, after.Nexthops = differing(last.Nexthops, c.Nexthops)
	changed := map[uint32]bool{} // by ifindex
	before.addDevices(changed)
	after.addDevices(changed)
	before.addVifs(last.Tables, changed)
	after.addVifs(c.Tables, changed)
	before.Routes, after.Routes = differing(last.Routes, c.Routes)
	before.Bridge, after.Bridge = differing(last.Bridge, c.Bridge)
	before.Senders, after.Senders = differing(last.Senders, c.Senders)
	before.Sets.Identities, after.Sets.Identities = differing(last.Sets.Identities, c.Sets.Identities)
	before.Sets.Allows, after.Sets.Allows = differing(last.Sets.Allows, c.Sets.Allows)
	again := map[place]bool{} // places whose ports are all added
	model.DiffPorts(last.slice.All, c.slice.All, func(was, is *model.CompactPort) {
		if was != nil {
			last.add(&before, was)
			again[placeOf(was)] = again[placeOf(was)] || len(was.AllowSources) > 0 || was.NATSlot > 0 // ports of a place can share a sender
		}
		if is != nil {
			c.add(&after, is)
			again[placeOf(is)] = again[placeOf(is)] || len(is.AllowSources) > 0 || is.NATSlot > 0
		}
	})
	for at := range c.count {
		again[at] = again[at] || last.count[at].ports > 0 && !last.legs[at].equal(c.legs[at])
	}
	c.addSharers(last, again)
	for at, all := range again {
		if all {
			last.addPlace(&before, at)
			c.addPlace(&after, at)
		}
	}
	return before, after
}

// addSharers adds places to again. If a network imports the routes of several others, ports of one node
// in these can have the same prefix in allow_sources, and then they share an entry in Senders.
func (c *Compiled) addSharers(last *Compiled, again map[place]bool) {
	leaking, nodes := map[string]bool{}, map[string]bool{}
	for _, legs := range []map[place]leg{last.legs, c.legs} {
		for at, l := range legs {
			leaking[at.node] = leaking[at.node] || len(l.importers) > 0
		}
	}
	for at, all := range again {
		nodes[at.node] = nodes[at.node] || all && leaking[at.node]
	}
	for _, count := range []map[place]tally{last.count, c.count} {
		for at := range count {
			again[at] = again[at] || nodes[at.node]
		}
	}
}

func (c *Compiled) addPlace(t *Tables, at place) {
	for _, p := range c.slice.On(at.network, at.node) {
		c.add(t, p)
	}
}

// addDevices adds the ifindexes of the vifs in t, and of the vifs to which nexthops in t lead.
func (t *Tables) addDevices(ifindexes map[uint32]bool) {
	for i := range t.Vifs {
		ifindexes[i] = true
	}
	for _, n := range t.Nexthops {
		if n.Type == layout.Encap {
			ifindexes[n.Oif] = true
		}
	}
}

// addVifs copies the vifs with these ifindexes, and the nexthops that lead to them, from another set of tables to t.
func (t *Tables) addVifs(from Tables, ifindexes map[uint32]bool) {
	for i := range ifindexes {
		if v, has := from.Vifs[i]; has {
			t.Vifs[i] = v
		}
	}
	for id, n := range from.Nexthops {
		if n.Type == layout.Encap && ifindexes[n.Oif] {
			t.Nexthops[id] = n
		}
	}
}

// differing returns copies of two maps without the entries that are equal in both.
func differing[K, V comparable](a, b map[K]V) (onlyA, onlyB map[K]V) {
	onlyA, onlyB = map[K]V{}, map[K]V{}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
		return onlyA, onlyB // the same map
	}
	for k, v := range a {
		if w, has := b[k]; !has || w != v {
			onlyA[k] = v
		}
	}
	for k, v := range b {
		if w, has := a[k]; !has || w != v {
			onlyB[k] = v
		}
	}
	return onlyA, onlyB
}
