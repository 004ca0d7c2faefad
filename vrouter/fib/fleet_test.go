package fib

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/model/modeltest"
)

// onLink is Facts.Way of an underlay in which all nodes are on one link.
func onLink(source, destination netip.Addr) ([]layout.Path, int) {
	return []layout.Path{layout.PathOf(source, destination, destination, 2)}, 9000
}

// linkOf is Facts.Link. One quarter of the nodes with IPv4 has each state of a common link.
func linkOf(a netip.Addr, _ uint32) Link {
	if !a.Is4() {
		return NoLink
	}
	return []Link{LinkFails, LinkUntested, LinkWorks, LinkBridges}[a.As4()[3]%4]
}

// compile returns the complete tables of a node.
func compile(s model.State, node string, facts Facts, ids *IDs) (Tables, []string, error) {
	c, err := Compile(s.Slice(node), node, facts, ids, nil)
	if err != nil {
		return Tables{}, nil, err
	}
	var warnings []string
	for _, w := range c.Warnings {
		warnings = append(warnings, w.Text)
	}
	all := c.All()
	if n := c.RouteCount(); n != len(all.Routes) {
		return all, warnings, fmt.Errorf("%d routes are counted, want %d", n, len(all.Routes))
	}
	return all, warnings, nil
}

// factsFor returns facts with a device for each port of a node, except the absent ones.
func factsFor(s model.State, node string, absent map[string]bool) Facts {
	f := Facts{Ports: map[string]PortFact{}, Way: onLink, MTU: 9000, Link: linkOf}
	for i, p := range s.Ports {
		if p.Node == node && !absent[p.Name] {
			f.Ports[p.Name] = PortFact{Ifindex: uint32(100 + i), Peer: i%2 == 0}
		}
	}
	return f
}

// worldOf compiles every node's tables, with ids that live on.
func worldOf(t testing.TB, s model.State, ids map[string]*IDs, absent map[string]bool) *world {
	t.Helper()
	s = s.WithDefaults()
	w := &world{t: t, state: s, tables: map[string]Tables{}, leaks: model.Leaks(s.Networks)}
	for _, n := range s.Nodes {
		if ids[n.Name] == nil {
			ids[n.Name] = &IDs{}
		}
		tables, _, err := compile(s, n.Name, factsFor(s, n.Name, absent), ids[n.Name])
		if err != nil {
			t.Fatalf("node %s: %v", n.Name, err)
		}
		w.tables[n.Name] = tables
	}
	return w
}

func (w *world) vif(p model.Port) (layout.Vif, bool) {
	for _, v := range w.tables[p.Node].Vifs {
		if w.tables[p.Node].Ports[v.ID] == p.Name {
			return v, true
		}
	}
	return layout.Vif{}, false
}

// check holds every promise of the tables against the state.
func (w *world) check(absent map[string]bool) {
	for _, from := range w.state.Ports {
		v, plugged := w.vif(from)
		if plugged == absent[from.Name] {
			w.t.Fatalf("port %s: absent %v, in the tables %v", from.Name, absent[from.Name], plugged)
		}
		if !plugged {
			continue
		}
		n, _ := w.state.Network(from.Network)
		if _, known := w.tables[from.Node].VRFs[v.VRF]; v.VRF != n.ID || !known {
			w.t.Fatalf("port %s is in VRF %d, its network is %d", from.Name, v.VRF, n.ID)
		}
		w.checkUnicast(from, v, n, absent)
		w.checkRoutes(from, v, n, absent)
		w.checkGateways(from, v, n)
		w.checkLeaks(from, v, n, absent)
		if n.Bridges() {
			w.checkFlood(from, v, n, absent)
		}
	}
	for node, t := range w.tables {
		w.checkReferences(node, t)
	}
}

// checkUnicast: every address and MAC of the network leads to its port, and
// others' lead nowhere.
func (w *world) checkUnicast(from model.Port, v layout.Vif, n model.Network, absent map[string]bool) {
	for _, to := range w.state.Ports {
		for _, a := range to.IPs {
			w.checkRouted(from, v, n, to, a, absent)
		}
		if to.Network != n.Name || !n.Bridges() || to.Name == from.Name {
			continue
		}
		if absent[to.Name] {
			continue // flooded, or dropped where it is not
		}
		frames := []packet{{dmac: to.MAC, smac: from.MAC}}
		for _, source := range from.IPs {
			for _, a := range slices.Concat(to.IPs, from.IPs) {
				frames = append(frames, packet{dmac: to.MAC, smac: from.MAC, ip: a, source: source})
			}
		}
		want := []end{{node: to.Node, port: to.Name, dmac: to.MAC, smac: from.MAC}}
		for _, p := range frames {
			if ends := w.fromWorkload(from.Node, v, p); !reflect.DeepEqual(ends, want) {
				w.t.Fatalf("a frame from %s (%s) to the MAC of %s (%s) gets to %+v", from.Name, p.source, to.Name, p.ip, ends)
			}
		}
	}
}

func (w *world) checkRouted(from model.Port, v layout.Vif, n model.Network, to model.Port, a netip.Addr, absent map[string]bool) {
	var ends []end
	for hash := range 3 {
		ends = w.fromWorkload(from.Node, v, packet{dmac: model.RouterMAC, ip: a, hash: [2]int{hash, hash}})
		w.checkTenant(from, ends)
	}
	if to.Network != n.Name || absent[to.Name] {
		return
	}
	if r, ok := w.lookup(from.Node, n.ID, a); n.Bridges() && (!ok || r.MAC != to.MAC) || n.Forwarding == model.L3 && !r.MAC.IsZero() {
		w.t.Fatalf("on node %s the route to %s of %s has stitched MAC %s", from.Node, a, to.Name, r.MAC)
	}
	want := end{node: to.Node, port: to.Name, dmac: to.MAC}
	if n.Routes() && !reflect.DeepEqual(ends, []end{want}) {
		w.t.Fatalf("a packet from %s to %s of %s gets to %+v", from.Name, a, to.Name, ends)
	}
}

// checkTenant: nothing ends in another network, except in those whose routes are imported by the network
// or by the one in which the packet arrives.
func (w *world) checkTenant(from model.Port, ends []end) {
	for _, e := range ends {
		if p, _ := w.state.Port(e.port); e.port != "" && p.Network != from.Network && !slices.ContainsFunc(append(w.leaks[from.Network], from.Network), func(arrival string) bool {
			return arrival == p.Network || slices.Contains(w.leaks[arrival], p.Network)
		}) {
			w.t.Fatalf("a packet from %s of network %s got to %s of network %s", from.Name, from.Network, e.port, p.Network)
		}
	}
}

// checkRoutes: every way of a static route is taken, and no other.
func (w *world) checkRoutes(from model.Port, v layout.Vif, n model.Network, absent map[string]bool) {
	for _, r := range w.state.Routes {
		if r.Network != n.Name {
			continue
		}
		want := map[string]bool{}
		for _, via := range r.Via {
			if p, ok := w.state.Port(via.Port); ok && !absent[p.Name] {
				want["port "+p.Name] = true
			}
			if g, ok := w.state.Gateway(via.Gateway); ok {
				gn, _ := g.Network(n.Name)
				want[gatewayEnd(g, gn, false)] = true
			}
		}
		if len(want) == 0 {
			want["discard"] = true
		}
		a := inside(r.Prefix)
		got := map[string]bool{}
		for i := range len(r.Via) + 1 {
			for j := range len(r.Via) + 1 {
				got[w.endOf(from, v, packet{dmac: model.RouterMAC, ip: a, hash: [2]int{i, j}})] = true
			}
		}
		// Ways whose port has no device are known on its own node alone.
		for _, via := range r.Via {
			if absent[via.Port] {
				delete(got, "no_route")
				delete(got, "reflected")
				delete(got, "discard")
				delete(want, "discard")
			}
		}
		if !reflect.DeepEqual(got, want) {
			w.t.Fatalf("from %s, route %s of %s with %+v leads to %v, want %v", from.Name, r.Prefix, n.Name, r.Via, got, want)
		}
	}
}

// inside is an address of a prefix that nothing longer in modeltest covers.
func inside(p netip.Prefix) netip.Addr {
	if p.IsSingleIP() {
		return p.Addr()
	}
	if p.Bits() == 0 && p.Addr().Is4() {
		return netip.MustParseAddr("100.64.9.9")
	}
	if p.Bits() == 0 {
		return netip.MustParseAddr("fd99::9")
	}
	return p.Addr().Next().Next().Next()
}

func (w *world) endOf(from model.Port, v layout.Vif, p packet) string {
	ends := w.fromWorkload(from.Node, v, p)
	w.checkTenant(from, ends)
	switch e := ends[0]; {
	case len(ends) != 1:
		return fmt.Sprintf("%d ends", len(ends))
	case e.port != "":
		return "port " + e.port
	case e.gateway != "":
		return fmt.Sprintf("gateway %s %s %d %s", e.gateway, e.encap, e.label, e.dmac)
	default:
		return e.drop
	}
}

// gatewayEnd is what a gateway expects to see.
func gatewayEnd(g model.Gateway, gn model.GatewayNetwork, ethernet bool) string {
	dmac := model.RouterMAC
	label, kind := gn.Label, string(g.Encapsulation)
	switch {
	case g.Encapsulation == model.VXLAN:
		label, dmac = gn.VNI, g.MAC
	case ethernet:
		label, kind = gn.EthernetLabel, kind+" ethernet"
	}
	return fmt.Sprintf("gateway %s %s %d %s", g.Name, kind, label, dmac)
}

// checkGateways: prefixes and MACs behind them are reached with their labels.
func (w *world) checkGateways(from model.Port, v layout.Vif, n model.Network) {
	for _, g := range w.state.Gateways {
		gn, serves := g.Network(n.Name)
		if !serves {
			continue
		}
		for _, p := range gn.Prefixes {
			got := w.endOf(from, v, packet{dmac: model.RouterMAC, ip: inside(p)})
			if want := gatewayEnd(g, gn, false); got != want {
				w.t.Fatalf("from %s to %s: %s, want %s", from.Name, p, got, want)
			}
		}
		for _, m := range gn.MACs {
			got := w.endOf(from, v, packet{dmac: m})
			gn, g := gn, g
			g.MAC = m // a bridged frame keeps its own
			want := gatewayEnd(g, gn, true)
			if g.Encapsulation != model.VXLAN {
				want = fmt.Sprintf("gateway %s %s ethernet %d %s", g.Name, g.Encapsulation, gn.EthernetLabel, m)
			}
			if got != want {
				w.t.Fatalf("from %s to %s: %s, want %s", from.Name, m, got, want)
			}
		}
	}
}

// checkFlood: a broadcast reaches every other port of the network once, and
// the gateways that want copies.
func (w *world) checkFlood(from model.Port, v layout.Vif, n model.Network, absent map[string]bool) {
	got := map[string]int{}
	for _, e := range w.fromWorkload(from.Node, v, packet{dmac: model.MAC{255, 255, 255, 255, 255, 255}}) {
		switch {
		case e.port != "":
			got["port "+e.port]++
		case e.gateway != "":
			got[fmt.Sprintf("gateway %s %s %d", e.gateway, e.encap, e.label)]++
		case e.drop != "no_flood": // nobody of the network has a device there
			got[e.drop]++
		}
	}
	want := map[string]int{}
	for _, p := range w.state.Ports {
		if p.Network == n.Name && p.Name != from.Name && !absent[p.Name] {
			want["port "+p.Name] = 1
		}
	}
	for _, g := range w.state.Gateways {
		gn, _ := g.Network(n.Name)
		switch {
		case gn.Flood && g.Encapsulation == model.VXLAN:
			want[fmt.Sprintf("gateway %s vxlan %d", g.Name, gn.VNI)] = 1
		case gn.Flood:
			want[fmt.Sprintf("gateway %s %s ethernet %d", g.Name, g.Encapsulation, gn.EthernetLabel)] = 1
		}
	}
	if !reflect.DeepEqual(got, want) {
		w.t.Fatalf("a broadcast from %s gets to %v, want %v", from.Name, got, want)
	}
}

// checkReferences: nothing points at what is not there, ids are dense enough to
// fit, and what a vif may send fits its tunnels.
func (w *world) checkReferences(node string, t Tables) {
	used := map[uint32]bool{0: true}
	for k, r := range t.Routes {
		used[r.Nexthop] = true
		if _, known := t.VRFs[k.VRF]; !known || k.Prefix != k.Prefix.Masked() {
			w.t.Fatalf("node %s: route %v", node, k)
		}
	}
	for k, b := range t.Bridge {
		used[b.Nexthop] = true
		if t.VRFs[k.VRF].Flags&layout.VifL2 == 0 {
			w.t.Fatalf("node %s: bridge entry %v in a VRF that does not bridge", node, k)
		}
	}
	for _, targets := range []map[uint32]layout.Target{t.ILM, t.VNIs} {
		for _, target := range targets {
			used[target.Nexthop] = true
		}
	}
	for _, v := range t.VRFs {
		used[v.Flood] = true
	}
	for _, r := range t.Remotes {
		used[r.Nexthop] = true
	}
	ids := map[uint32]bool{}
	for _, v := range t.Vifs {
		used[v.Nexthop] = true
		if ids[v.ID] || v.ID == 0 || (v.Flags&layout.VifPolicy != 0) != (len(t.Policies[v.ID].Rules) > 0) {
			w.t.Fatalf("node %s: vif %+v", node, v)
		}
		ids[v.ID] = true
	}
	for id, n := range t.Nexthops {
		used[n.Fallback] = true
		for _, m := range t.MembersOf(id) {
			used[m.Nexthop] = true
			w.checkMember(node, t, t.nexthop(id), m)
		}
		if id == 0 || t.Names[id] == "" {
			w.t.Fatalf("node %s: nexthop %d is %q", node, id, t.Names[id])
		}
	}
	for id := range used {
		w.nexthop(node, id)
	}
	for id, name := range t.Names {
		if !used[id] {
			w.t.Fatalf("node %s: nothing leads to nexthop %q", node, name)
		}
	}
}

func (w *world) checkMember(node string, t Tables, composite nexthop, m layout.Member) {
	n := w.nexthop(node, m.Nexthop)
	if n.Type != layout.Encap && n.Type != layout.Tunnel || n.Type == layout.Encap && n.VRF != composite.VRF {
		w.t.Fatalf("node %s: %s has member %q", node, composite.Name, n.Name)
	}
	for _, v := range t.Vifs {
		if v.VRF == composite.VRF && n.Type == layout.Tunnel && n.MTU < v.MTU && !slices.ContainsFunc(n.Ways(), func(p layout.Path) bool { return linkOf(p.Destination.Addr(), 0) == LinkUntested }) {
			w.t.Fatalf("node %s: vif %d may send %d bytes, %s takes %d", node, v.ID, v.MTU, n.Name, n.MTU)
		}
	}
}

func TestEveryPacketReachesTheDestinationOfTheState(t *testing.T) {
	leaks := 0 // to ports of other networks
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := worldOf(t, modeltest.Random(r, int(seed%36)), map[string]*IDs{}, nil)
		w.check(nil)
		if leaks += w.crossed; t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if leaks < 300 {
		t.Errorf("only %d packets were sent to ports of networks whose routes are imported", leaks)
	}
}

func TestPacketsReachTheirDestinationWhilePortsHaveNoDevice(t *testing.T) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := modeltest.Random(r, 24)
		absent := map[string]bool{}
		for _, p := range s.Ports {
			if r.IntN(4) == 0 {
				absent[p.Name] = true
			}
		}
		worldOf(t, s, map[string]*IDs{}, absent).check(absent)
	}
}

func TestPacketsReachTheirDestinationAfterEveryChangeAndNumbersStay(t *testing.T) {
	for seed := range uint64(must.Rounds(20)) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := modeltest.Random(r, 20)
		ids := map[string]*IDs{}
		before := worldOf(t, s, ids, nil)
		for range 25 {
			s = modeltest.Mutate(r, s)
			after := worldOf(t, s, ids, nil)
			after.check(nil)
			for node, tables := range after.tables {
				sameNumbers(t, before.tables[node], tables)
				ids[node].Prune()
			}
			before = after
		}
	}
}

// sameNumbers: what is in both tables has the same number.
func sameNumbers(t *testing.T, before, after Tables) {
	t.Helper()
	numbers := map[string]uint32{}
	for id, name := range before.Names {
		numbers[name] = id
	}
	for id, name := range after.Names {
		if was, had := numbers[name]; had && was != id {
			t.Fatalf("nexthop %q had number %d, now %d", name, was, id)
		}
	}
	vifs := map[string]uint32{}
	for id, name := range before.Ports {
		vifs[name] = id
	}
	for id, name := range after.Ports {
		if was, had := vifs[name]; had && was != id {
			t.Fatalf("vif %q had number %d, now %d", name, was, id)
		}
	}
}

func TestEqualInputMakesEqualTables(t *testing.T) {
	for seed := range uint64(40) {
		s := modeltest.Random(rand.New(rand.NewPCG(seed, 6)), 30).WithDefaults()
		node := s.Nodes[0].Name
		var first Tables
		var warned []string
		for i := range 3 {
			tables, warnings, err := compile(s, node, factsFor(s, node, nil), &IDs{})
			must.Succeed(t, err)
			if i > 0 && (!reflect.DeepEqual(first, tables) || !slices.Equal(warned, warnings)) {
				t.Fatalf("seed %d: the tables differ from one time to the next", seed)
			}
			first, warned = tables, warnings
		}
	}
}
