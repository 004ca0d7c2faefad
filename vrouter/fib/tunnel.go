package fib

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// tunnel leads to another node or a gateway.
type tunnel struct {
	ip, ethernet uint32 // nexthops of IP and Ethernet payload; 0: not needed
	// nexthop of frames to a known MAC address; with bridges it differs from ethernet
	bridged uint32
	outer   uint32 // nexthop of IP payload with outer headers, if ip translates; 0: none
	formats
	v6    bool // the outer header is IPv6
	mtu   int  // of the outer IP packet
	plain int  // size of the largest IPv4 packet that can be translated, in bytes; 0: packets are not translated
	needs payloads
	// true: packets of networks above last use the tunnel beyond, because the node does not
	// receive the labels of these networks. If beyond is nil, they cannot be sent.
	limited bool
	last    uint32
	beyond  *tunnel
}

// in returns the tunnel for packets of a network; nil: they cannot be sent.
func (t *tunnel) in(n *network) *tunnel {
	if t != nil && t.limited && n.ID > t.last {
		return t.beyond
	}
	return t
}

// formats are the encapsulations of packets to another node. With direct they differ:
// it carries only IP packets between workloads, so other Ethernet frames need a tunnel.
type formats struct {
	encap  model.Encapsulation // of IP payload
	frames model.Encapsulation // of Ethernet payload; empty: no frames can be sent
	later  bool                // IP payload will use direct if the current test of the link succeeds
	// true: packets are translated, except packets that cannot be translated. These packets
	// use encap.
	translates bool
	awaited    bool // the locator is under test; IP packets will be translated if the test succeeds
	// true: frames to a known MAC address use direct, except frames that the other node
	// cannot restore. These frames use frames.
	bridges bool
	foreign bool   // the other end is a gateway or another router
	remote  string // name of the other end for remoteID; empty: the tunnel's name
}

// of returns the encapsulation of a payload.
func (f formats) of(ethernet bool) model.Encapsulation {
	if ethernet {
		return f.frames
	}
	return f.encap
}

// nexthop returns the tunnel's nexthop for a payload.
func (t *tunnel) nexthop(ethernet bool) uint32 {
	if ethernet {
		return t.ethernet
	}
	return t.ip
}

// nodePeers makes the tunnels to the nodes that share a network with this one.
// Every node becomes a remote, also without a common network: its state may be newer than the
// state of this node, so it may already send.
func (c *compiler) nodePeers() {
	for i := range c.state.Nodes {
		n := &c.state.Nodes[i]
		if n.Name == c.self.Name {
			continue
		}
		id := c.remoteID(n.Name)
		t := c.towards(n)
		if t != nil {
			c.peers[n.Name] = t
		}
		if t != nil && t.beyond != nil {
			t = &tunnel{ip: t.beyond.ip, ethernet: cmp.Or(t.beyond.ethernet, t.ethernet)} // the ones with outer headers
		}
		c.remote(n.Underlay, id, t, c.accepted(n))
		c.translate(n)
	}
}

// payloads are the kinds of payload that a tunnel must carry.
type payloads struct{ ip, ethernet bool }

// needsOf returns the payloads that a node receives in the networks whose id is first … last.
func (c *compiler) needsOf(n *model.Node, first, last uint32) payloads {
	return c.needs(func(of *network) bool { return of.members[n.Name] && of.ID >= first && of.ID <= last })
}

// needs returns the payloads that a peer receives in the networks for which has returns true.
func (c *compiler) needs(has func(*network) bool) (p payloads) {
	for _, n := range c.nets {
		if has(n) {
			p.ip = p.ip || n.Routes()
			p.ethernet = p.ethernet || n.Bridges() && c.here[n.Name] != nil
		}
	}
	return p
}

// towards adds the tunnel to a node. It returns nil if no tunnel is necessary or possible.
func (c *compiler) towards(n *model.Node) *tunnel {
	needs := c.needsOf(n, 0, math.MaxUint32)
	if needs == (payloads{}) {
		return nil
	}
	common, recent := c.sendable(n)
	if len(common) == 0 {
		c.warn(kindTunnel, n.Name, "node %q offers none of this node's encapsulations %v: its ports cannot be reached", n.Name, c.self.Encapsulations)
		return nil
	}
	pairs := parallel(c.self.Underlay, n.Underlay)
	if len(pairs) == 0 {
		c.warn(kindTunnel, n.Name, "node %q has no underlay address of this node's families: its ports cannot be reached", n.Name)
		return nil
	}
	pairs = c.usable(n, pairs)
	link, locator := c.linkBy(pairs), c.locatorLink(n)
	f, ok := choose(common, recent, link, locator)
	if !ok {
		c.warn(kindTunnel, n.Name, "the ports of node %q cannot be reached: both nodes offer only the encapsulation direct, but they have no common Ethernet link with IPv4; add another encapsulation to both nodes", n.Name)
		return nil
	}
	if f.encap == model.Direct && link == LinkFails {
		c.warn(kindTunnel, n.Name, "the tests of direct to node %q fail, and both nodes offer only this encapsulation: packets to its ports may be lost; add another encapsulation to both nodes", n.Name)
	}
	if needs.ethernet && f.frames == "" {
		c.warn(kindTunnel, n.Name, "the ports of node %q in networks that bridge cannot be reached: both nodes offer only the encapsulation direct, which does not carry all Ethernet frames; add another encapsulation to both nodes", n.Name)
	}
	last := c.lastLabel(pairs)
	above := c.needsOf(n, last+1, math.MaxUint32)
	if f.encap != model.Direct && !f.later || above == (payloads{}) {
		return c.tunnel(n.Name, f, pairs, model.RouterMAC, needs)
	}
	t := c.tunnel(n.Name, f, pairs, model.RouterMAC, c.needsOf(n, 0, last))
	t.limited, t.last = true, last
	if other, ok := choose(common, recent, NoLink, locator); ok {
		t.beyond = c.tunnel(n.Name, other, pairs, model.RouterMAC, above)
	} else {
		c.warn(kindTunnel, n.Name, "the ports of node %q in networks whose id is above %d cannot be reached: both nodes offer only the encapsulation direct, and the node does not receive the labels of these networks; raise limits.link_labels in its configuration, or add another encapsulation to both nodes", n.Name, last)
	}
	return t
}

// usable returns the pairs that have a path and whose other end answers. If there is none, it
// returns all pairs.
func (c *compiler) usable(n *model.Node, pairs []pair) (use []pair) {
	for _, p := range pairs {
		if paths, _ := c.facts.Way(p.source, p.destination); len(paths) > 0 && !c.facts.Silent[p.destination] {
			use = append(use, p)
		}
	}
	if len(use) == 0 {
		return pairs
	}
	for _, p := range pairs {
		if c.facts.Silent[p.destination] {
			c.warn(kindTunnel, n.Name, "node %q does not answer at its underlay address %s: its packets take its other addresses", n.Name, p.destination)
		}
	}
	return use
}

// Pairs returns the underlay addresses of another node, each with the source address that packets
// from self to it have.
func Pairs(self, other model.Node) map[netip.Addr]netip.Addr {
	all := map[netip.Addr]netip.Addr{}
	for _, p := range parallel(self.Underlay, other.Underlay) {
		all[p.destination] = p.source
	}
	return all
}

// lastLabel returns the highest network whose label the destinations of all pairs receive.
func (c *compiler) lastLabel(pairs []pair) uint32 {
	last := uint32(math.MaxUint32 - 1)
	for _, p := range pairs {
		last = min(last, c.facts.LabelsOf(p.destination))
	}
	return last
}

// link returns the worst state of the links to the destinations of the pairs.
func (c *compiler) link(pairs []pair) Link {
	worst := LinkBridges
	for _, p := range pairs {
		worst = min(worst, c.facts.Link(p.destination, 0))
	}
	return worst
}

// linkBy is like link, but also considers the devices to which the underlay's routes
// lead. It returns NoLink if one of these routes has a gateway.
func (c *compiler) linkBy(pairs []pair) Link {
	worst := c.link(pairs)
	for _, p := range pairs {
		paths, _ := c.facts.Way(p.source, p.destination)
		for _, w := range paths {
			if w.Gateway != w.Destination {
				return NoLink
			}
			worst = min(worst, c.facts.Link(w.Destination.Addr(), w.Oif))
		}
	}
	return worst
}

// choose selects the encapsulations for packets to a node. common and recent are the results of
// sendable, link and locator those of linkBy and locatorLink. A link whose test has no result yet is
// used if the other node may not know any of the tunnels yet. ok is false if IP packets cannot be
// sent.
func choose(common []model.Encapsulation, recent int, link, locator Link) (f formats, ok bool) {
	tunnels := slices.DeleteFunc(slices.Clone(common), func(e model.Encapsulation) bool { return e == model.Direct })
	if len(tunnels) > 0 {
		f.encap, f.frames = tunnels[0], tunnels[0]
	}
	if common[0] != model.Direct && len(tunnels) > 0 {
		return f, true
	}
	doubtful := len(tunnels) == recent // there is no tunnel, or the other node may not know any yet
	switch {
	case link >= LinkWorks, link == LinkUntested && doubtful:
		f.encap = model.Direct
		f.bridges = link == LinkBridges && f.frames != ""
	case locator == LinkWorks, locator == LinkUntested && doubtful:
		f.translates = true
		f.later = link == LinkUntested && len(tunnels) > 0
		f.encap = cmp.Or(f.encap, model.Translated)
	case link == LinkUntested:
		f.later = true
	case locator == LinkUntested:
		f.awaited = true
	case link == LinkFails && len(tunnels) == 0:
		f.encap = model.Direct
	}
	return f, f.encap != ""
}

// gatewayPeers adds the tunnels to the gateways of networks with ports on this node. Every
// gateway becomes a remote, also if no route of this node leads to it: it may send packets.
func (c *compiler) gatewayPeers() {
	routed := c.routedGateways()
	for i := range c.state.Gateways {
		g := &c.state.Gateways[i]
		needs, serves := c.gatewayNeeds(g, routed)
		var t *tunnel
		if serves {
			if pairs := each(c.self.Underlay, g.Addresses); len(pairs) > 0 {
				router := g.MAC
				if router.IsZero() {
					router = model.RouterMAC
				}
				t = c.tunnel(gatewayName(g.Name), formats{encap: g.Encapsulation, frames: g.Encapsulation, foreign: true}, pairs, router, needs)
				c.foreign[g.Name] = t
				if g.Floating {
					c.translateFloating(t)
				}
			} else {
				c.warn(kindTunnel, gatewayName(g.Name), "gateway %q has no underlay address of this node's families: it cannot be reached", g.Name)
			}
		}
		c.remote(g.Addresses, c.remoteID(gatewayName(g.Name)), t, []model.Encapsulation{g.Encapsulation})
	}
}

// gatewayNeeds returns the payloads that routes and bridge entries send to a gateway. It
// also reports whether the gateway serves a network with ports on this node.
func (c *compiler) gatewayNeeds(g *model.Gateway, routed map[gatewayIn]bool) (needs payloads, serves bool) {
	for _, gn := range g.Networks {
		n := c.nets[gn.Network]
		if n == nil {
			continue
		}
		serves = true
		if n.Routes() && (len(gn.Prefixes) > 0 || routed[gatewayIn{g.Name, n.Name}]) {
			needs.ip = true
		}
		if c.here[n.Name] != nil && n.Bridges() && (len(gn.MACs) > 0 || gn.Flood) {
			needs.ethernet = true
		}
	}
	return needs, serves
}

// gatewayIn is a gateway as next hop of a network's routes.
type gatewayIn struct{ gateway, network string }

// routedGateways returns the gateways that are next hops of static routes.
func (c *compiler) routedGateways() map[gatewayIn]bool {
	routed := map[gatewayIn]bool{}
	for _, r := range c.state.Routes {
		for _, v := range r.Via {
			if v.Gateway != "" {
				routed[gatewayIn{v.Gateway, r.Network}] = true
			}
		}
	}
	return routed
}

// remote allows a node or gateway to send from its underlay addresses. It also records
// the tunnels to it: a learned MTU applies to these.
func (c *compiler) remote(addresses []netip.Addr, id uint32, t *tunnel, encaps []model.Encapsulation) {
	r := layout.Remote{ID: id, Encaps: layout.Bits(encaps...)}
	if t != nil {
		r.Nexthop = cmp.Or(t.ip, t.ethernet)
		if t.ethernet != r.Nexthop {
			r.Ethernet = t.ethernet
		}
	}
	for _, a := range addresses {
		c.t.Remotes[layout.AddressOf(a)] = r
	}
}

// gatewayName returns the name of a gateway in tables that also have names of nodes.
func gatewayName(gateway string) string { return "gateway " + gateway }

// remoteID returns the Remote.ID of a node or gateway. Give a gateway's gatewayName.
func (c *compiler) remoteID(name string) uint32 {
	return c.number(kindRemote, name, 0) // 0: no limit of ids; Limits.Remotes limits the addresses
}

// commonEncapsulations returns the encapsulations that both nodes offer, best first. It
// sorts them by the sum of their ranks in the two preference lists. If sums are equal,
// the list of the node whose name sorts first decides. So both nodes get the same order.
func commonEncapsulations(a, b model.Node) []model.Encapsulation {
	if b.Name < a.Name {
		a, b = b, a
	}
	common := slices.DeleteFunc(slices.Clone(a.Encapsulations), func(e model.Encapsulation) bool {
		return !slices.Contains(b.Encapsulations, e)
	})
	rank := func(e model.Encapsulation) int {
		return slices.Index(a.Encapsulations, e) + slices.Index(b.Encapsulations, e)
	}
	slices.SortStableFunc(common, func(x, y model.Encapsulation) int { return cmp.Compare(rank(x), rank(y)) })
	return common
}

// pair has the two ends of a path through the underlay.
type pair struct{ source, destination netip.Addr }

// parallel pairs the addresses of two nodes in order. It takes IPv4 addresses if both nodes
// have some, else IPv6 addresses.
func parallel(ours, theirs []netip.Addr) (pairs []pair) {
	x, y := common(ours, theirs)
	for i := range min(len(x), len(y)) {
		pairs = append(pairs, pair{x[i], y[i]})
	}
	return pairs
}

// each pairs every address of a gateway with an address of this node. If the gateway has
// more addresses, the node's addresses are used in turns.
func each(ours, theirs []netip.Addr) (pairs []pair) {
	x, y := common(ours, theirs)
	for i := range y {
		pairs = append(pairs, pair{x[i%len(x)], y[i]})
	}
	return pairs
}

// common returns the addresses of a family that both ends have: of IPv4, else of IPv6. It
// returns none if no such family exists.
func common(ours, theirs []netip.Addr) (x, y []netip.Addr) {
	for _, is := range []func(netip.Addr) bool{netip.Addr.Is4, netip.Addr.Is6} {
		of := func(all []netip.Addr) (some []netip.Addr) {
			for _, a := range all {
				if is(a) {
					some = append(some, a)
				}
			}
			return some
		}
		x, y = of(ours), of(theirs)
		if len(x) > 0 && len(y) > 0 {
			return x, y
		}
	}
	return nil, nil
}

// tunnel adds one nexthop for IP payload and one for Ethernet payload, because their
// headers differ in size. VXLAN always carries Ethernet, so it has one nexthop for both.
// Without payload the tunnel has no nexthop, but still an MTU: a workload's MTU must not
// change when a route is added.
func (c *compiler) tunnel(name string, f formats, pairs []pair, router model.MAC, needs payloads) *tunnel {
	t := &tunnel{formats: f, v6: pairs[0].destination.Is6(), needs: needs}
	n := layout.Nexthop{Type: layout.Tunnel, Remote: c.remoteID(cmp.Or(f.remote, name)), Flags: layout.If[uint8](!t.v6 && !c.state.Settings.AllowFragment, layout.NexthopDF), DMAC: router}
	paths, mtu := c.ways(pairs)
	n.SetPaths(paths...)
	if t.mtu = mtu; len(paths) == 0 {
		c.warn(kindTunnel, name, "%s: there is no way through the underlay from %s to %s", named(name), pairs[0].source, pairs[0].destination)
		t.mtu = c.facts.MTU
	}
	if f.encap == model.Translated {
		return t // the caller adds the nexthop with translate
	}
	if f.encap == model.VXLAN && needs != (payloads{}) {
		t.ip = c.encapsulated(n, t, name, true)
		t.ethernet, t.bridged = t.ip, t.ip
		return t
	}
	if needs.ip {
		t.ip = c.encapsulated(n, t, name, false)
	}
	if needs.ethernet && f.frames != "" {
		t.ethernet = c.encapsulated(n, t, name, true)
		t.bridged = t.ethernet
	}
	if needs.ethernet && f.bridges {
		// Frames that fit the tunnel fit the link. If the link fails, they do not become too large.
		n.Encap, n.MTU, n.Fallback = layout.Number(model.Direct), clampMTU(t.inner(true)), t.ethernet
		n.Flags = 0
		t.bridged = c.nexthop(tunnelPrefix+name+" "+string(model.Direct)+" ethernet", n)
	}
	return t
}

// encapsulated adds the nexthop of a tunnel for IP or Ethernet payload, and returns its
// id. n has the fields that do not depend on the payload.
func (c *compiler) encapsulated(n layout.Nexthop, t *tunnel, name string, ethernet bool) uint32 {
	encap := t.of(ethernet)
	n.Encap = layout.Number(encap)
	cut := layout.If[uint8](t.v6 && t.foreign, layout.NexthopCut)
	switch encap {
	case model.MPLSoUDP:
		n.Port, n.Flags = layout.Network16(6635), n.Flags|cut // RFC 7510
	case model.VXLAN:
		n.Port, n.Flags = layout.Network16(c.state.Settings.VXLANPort), n.Flags|cut
	case model.Direct:
		n.Flags = 0
	}
	n.MTU = clampMTU(t.inner(ethernet))
	full := tunnelPrefix + name + " " + string(encap)
	if ethernet && encap != model.VXLAN {
		full += " ethernet"
	}
	return c.nexthop(full, n)
}

// inner returns the largest IP packet that fits into the tunnel, in bytes.
func (t *tunnel) inner(ethernet bool) int { return t.mtu - Overhead(t.of(ethernet), t.v6, ethernet) }

// ways returns the paths of all pairs. The first path of each pair comes first, so that
// every parallel link is used.
func (c *compiler) ways(pairs []pair) (paths []layout.Path, mtu int) {
	var all [][]layout.Path
	for _, p := range pairs {
		some, m := c.facts.Way(p.source, p.destination)
		if len(some) == 0 {
			continue
		}
		all = append(all, some)
		if mtu == 0 || m < mtu {
			mtu = m
		}
	}
	for i := 0; len(paths) < layout.MaxPaths; i++ {
		more := false
		for _, some := range all {
			if i < len(some) && len(paths) < layout.MaxPaths {
				paths, more = append(paths, some[i]), true
			}
		}
		if !more {
			break
		}
	}
	return paths, mtu
}

// clampMTU fits an MTU into 16 bits: the loopback device has an MTU of 65536.
func clampMTU(n int) uint16 { return uint16(min(max(n, 0), 65535)) }
