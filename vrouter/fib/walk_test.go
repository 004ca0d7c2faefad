package fib

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// packet is what travels, as far as tables look at it.
type packet struct {
	dmac   model.MAC
	smac   model.MAC  // of a bridged frame
	ip     netip.Addr // zero: no IP packet
	source netip.Addr // of an IP packet; zero in a routed packet: its source is not checked
	hash   [2]int     // of the flow, at the node that sends and at the one that gets it
}

// end is where a packet got to.
type end struct {
	node    string
	port    string    // a vif's; or
	gateway string    // one that is foreign, with
	encap   string    // what it gets, and
	label   uint32    // the label or VNI
	answer  bool      // the vrouter itself; or
	drop    string    // why not
	dmac    model.MAC // the frame's at the end
	smac    model.MAC // a bridged frame's
}

// outer is a packet on the underlay.
type outer struct {
	source, destination netip.Addr
	encap               model.Encapsulation
	label               uint32
	ethernet            bool
	inner               packet
}

// world is a fleet whose nodes do what their tables say, as bpf/ does.
type world struct {
	t      testing.TB
	state  model.State
	tables map[string]Tables
	leaks  map[string][]string // of model.Leaks

	crossed int // packets that reached a port of another network
}

// nexthop is a nexthop with its name and its members.
type nexthop struct {
	layout.Nexthop
	Name    string
	Members []layout.Member
}

func (t Tables) nexthop(id uint32) nexthop {
	return nexthop{t.Nexthops[id], t.Names[id], t.MembersOf(id)}
}

func (w *world) nexthop(node string, id uint32) nexthop {
	if id == 0 {
		return nexthop{}
	}
	if _, ok := w.tables[node].Nexthops[id]; !ok {
		w.t.Fatalf("node %s: nexthop %d does not exist", node, id)
	}
	return w.tables[node].nexthop(id)
}

// lookup is the longest prefix of a VRF that an address is in.
func (w *world) lookup(node string, vrf uint32, a netip.Addr) (layout.Route, bool) {
	for bits := a.BitLen(); bits >= 0; bits-- {
		p, _ := a.Prefix(bits)
		if r, ok := w.tables[node].Routes[RouteKey{VRF: vrf, Prefix: p}]; ok {
			return r, true
		}
	}
	return layout.Route{}, false
}

// fromWorkload is workload.h: judge, route_frame, bridge_frame.
func (w *world) fromWorkload(node string, v layout.Vif, p packet) []end {
	t := w.tables[node]
	if p.dmac == v.RouterMAC && v.Flags&layout.VifL3 != 0 && p.ip.IsValid() {
		return []end{w.routed(node, v, p)}
	}
	if v.Flags&layout.VifL2 == 0 {
		return []end{{drop: "unknown_mac"}}
	}
	b, known := t.Bridge[layout.BridgeKey{VRF: v.VRF, MAC: p.dmac}]
	if p.dmac.IsUnicast() && known {
		return []end{w.sendBridged(node, v, b, p)}
	}
	return w.flood(node, v.VRF, v.Nexthop, p)
}

func (w *world) routed(node string, v layout.Vif, p packet) end {
	r, ok := w.lookup(node, v.VRF, p.ip)
	if !ok {
		return end{drop: "no_route"}
	}
	n, id, label := w.nexthop(node, r.Nexthop), r.Nexthop, r.Label
	switch n.Type {
	case layout.Receive:
		return end{node: node, answer: true}
	case layout.Composite:
		m := n.Members[p.hash[0]%len(n.Members)]
		id, label = m.Nexthop, m.Label
	}
	return w.send(node, id, label, false, p)
}

// sendBridged is send_bridged: frames that the other node cannot restore take the fallback.
func (w *world) sendBridged(node string, v layout.Vif, b layout.BridgeEntry, p packet) end {
	n := w.nexthop(node, b.Nexthop)
	if n.Encapsulation() != model.Direct {
		return w.send(node, b.Nexthop, b.Label, true, p)
	}
	from, to := w.station(node, v.VRF, p.source), w.station(node, v.VRF, p.ip)
	if from.MAC == p.smac && from.Nexthop == v.Nexthop && to.MAC == p.dmac {
		return w.send(node, b.Nexthop, v.VRF, true, p)
	}
	return w.send(node, n.Fallback, b.Label, true, p)
}

// station returns the host route of an address; zero: there is none.
func (w *world) station(node string, vrf uint32, a netip.Addr) layout.Route {
	if !a.IsValid() {
		return layout.Route{}
	}
	return w.tables[node].Routes[RouteKey{VRF: vrf, Prefix: netip.PrefixFrom(a, a.BitLen())}]
}

// send is send_routed and send_bridged.
func (w *world) send(node string, id, label uint32, bridged bool, p packet) end {
	n := w.nexthop(node, id)
	switch n.Type {
	case layout.Discard:
		return end{drop: "discard"}
	case layout.Encap:
		return w.deliver(node, n, bridged, p)
	case layout.Tunnel:
	default:
		return end{drop: fmt.Sprintf("no_nexthop: type %d", n.Type)}
	}
	if len(n.Ways()) == 0 {
		return end{drop: "path_down"}
	}
	path := n.Ways()[p.hash[0]%len(n.Ways())]
	o := outer{path.Source.Addr(), path.Destination.Addr(), n.Encapsulation(), label, bridged || n.Encapsulation() == model.VXLAN, p}
	if o.ethernet && !bridged {
		o.inner.dmac = n.DMAC
	}
	return w.underlay(node, n, o)
}

// underlay carries an outer packet to whose address it has.
func (w *world) underlay(from string, n nexthop, o outer) end {
	if !isLocal(w.tables[from].Settings, o.source) {
		w.t.Fatalf("node %s sends from %s, which is not its own", from, o.source)
	}
	for _, node := range w.state.Nodes {
		if slices.Contains(node.Underlay, o.destination) {
			if node.Name == from {
				w.t.Fatalf("node %s sends to itself", from)
			}
			ends := w.fromFabric(node.Name, o)
			if len(ends) != 1 {
				return end{node: node.Name, drop: fmt.Sprintf("%d copies", len(ends))}
			}
			return ends[0]
		}
	}
	for _, g := range w.state.Gateways {
		if slices.Contains(g.Addresses, o.destination) {
			kind := string(o.encap)
			if o.ethernet && o.encap != model.VXLAN {
				kind += " ethernet"
			}
			return end{gateway: g.Name, encap: kind, label: o.label, dmac: o.inner.dmac}
		}
	}
	w.t.Fatalf("node %s sends to %s (%s), where nobody is", from, o.destination, n.Name)
	return end{}
}

// fromFabric is open_outer of decap.h, and arrive of arrive.h.
func (w *world) fromFabric(node string, o outer) []end {
	t := w.tables[node]
	sender, known := t.Remotes[layout.AddressOf(o.source)]
	if t.Settings.Flags&layout.SettingsStrict != 0 && !known {
		return []end{{node: node, drop: "unknown_source"}}
	}
	if known && !sender.Accepts(o.encap) {
		return []end{{node: node, drop: "wrong_encapsulation"}}
	}
	if o.encap == model.Direct {
		vrf, known := t.VRFs[o.label]
		if !known || !o.ethernet && vrf.Flags&layout.VifL3 == 0 || o.ethernet && vrf.Flags&layout.VifL2 == 0 {
			return []end{{node: node, drop: "unknown_label"}}
		}
		if o.ethernet {
			from, to := w.station(node, o.label, o.inner.source), w.station(node, o.label, o.inner.ip)
			if w.nexthop(node, from.Nexthop).Remote != sender.ID || from.MAC.IsZero() || to.MAC.IsZero() {
				return []end{{node: node, drop: "forged_source"}}
			}
			return []end{w.deliver(node, w.nexthop(node, to.Nexthop), true, packet{dmac: to.MAC, smac: from.MAC})}
		}
		return []end{w.arriveFrom(node, sender, o.label, o.inner)}
	}
	targets := t.ILM
	if o.encap == model.VXLAN {
		targets = t.VNIs
	}
	target, ok := targets[o.label]
	if !ok {
		return []end{{node: node, drop: "unknown_label"}}
	}
	if (target.Ethernet == 1) != o.ethernet {
		return []end{{node: node, drop: "bad_inner"}}
	}
	n := w.nexthop(node, target.Nexthop)
	vrf, known := t.VRFs[n.VRF]
	if !known {
		w.t.Fatalf("node %s: %s leads to VRF %d, which is not there", node, n.Name, n.VRF)
	}
	switch {
	case n.Type == layout.VRFTranslate && !o.ethernet:
		return []end{w.arriveFrom(node, sender, n.VRF, o.inner)}
	case (n.Type == layout.VRFTranslate || n.Type == layout.L2Receive) && o.ethernet:
		return w.arriveBridged(node, sender, n.VRF, vrf, o.inner)
	}
	return []end{{node: node, drop: "no_nexthop"}}
}

func (w *world) arriveRouted(node string, vrf uint32, p packet) end {
	r, ok := w.lookup(node, vrf, p.ip)
	if !ok {
		return end{node: node, drop: "no_route"}
	}
	n := w.nexthop(node, r.Nexthop)
	if n.Type == layout.Composite {
		for i := range n.Members {
			m := w.nexthop(node, n.Members[(p.hash[1]+i)%len(n.Members)].Nexthop)
			if m.Type == layout.Encap {
				return w.deliver(node, m, false, p)
			}
		}
	}
	if n.Type != layout.Encap {
		return end{node: node, drop: "reflected"}
	}
	return w.deliver(node, n, false, p)
}

// arriveFrom is is_senders_address of sender.h, and arrive_routed.
func (w *world) arriveFrom(node string, sender layout.Remote, vrf uint32, p packet) end {
	if from := w.nexthop(node, w.station(node, vrf, p.source).Nexthop); p.source.IsValid() && (from.Type != layout.Tunnel || from.Remote != sender.ID) {
		return end{node: node, drop: "forged_source"}
	}
	return w.arriveRouted(node, vrf, p)
}

func (w *world) arriveBridged(node string, sender layout.Remote, id uint32, vrf layout.VRF, p packet) []end {
	if vrf.Flags&layout.VifL3 != 0 && p.ip.IsValid() && p.dmac == vrf.RouterMAC {
		return []end{w.arriveFrom(node, sender, id, p)}
	}
	if vrf.Flags&layout.VifL2 == 0 {
		return []end{{node: node, drop: "unknown_mac"}}
	}
	b, known := w.tables[node].Bridge[layout.BridgeKey{VRF: id, MAC: p.dmac}]
	if !p.dmac.IsUnicast() || !known {
		return w.flood(node, id, 0, p)
	}
	n := w.nexthop(node, b.Nexthop)
	if n.Type != layout.Encap {
		return []end{{node: node, drop: "reflected"}}
	}
	return []end{w.deliver(node, n, true, p)}
}

// flood is flood.h; own is the nexthop of the vif that the frame is from, 0
// for the fabric.
func (w *world) flood(node string, vrf, own uint32, p packet) (ends []end) {
	id := w.tables[node].VRFs[vrf].Flood
	if id == 0 {
		return []end{{node: node, drop: "no_flood"}}
	}
	n := w.nexthop(node, id)
	if n.Type != layout.Composite || n.Flags&layout.NexthopMulticast == 0 {
		w.t.Fatalf("node %s: VRF %d floods to a nexthop of type %d", node, vrf, n.Type)
	}
	for _, m := range n.Members {
		if m.Nexthop == own {
			continue
		}
		to := w.nexthop(node, m.Nexthop)
		if to.Encapsulation() == model.Direct { // broadcast cannot be restored
			to = w.nexthop(node, to.Fallback)
		}
		switch {
		case to.Type == layout.Encap:
			ends = append(ends, w.deliver(node, to, true, p))
		case to.Type == layout.Tunnel && own != 0:
			path := to.Ways()[p.hash[0]%len(to.Ways())]
			o := outer{path.Source.Addr(), path.Destination.Addr(), to.Encapsulation(), m.Label, true, p}
			if g := w.gatewayAt(o.destination); g != "" {
				ends = append(ends, w.underlay(node, to, o))
				continue
			}
			for _, other := range w.state.Nodes {
				if slices.Contains(other.Underlay, o.destination) {
					ends = append(ends, w.fromFabric(other.Name, o)...)
				}
			}
		}
	}
	return ends
}

// isLocal reports whether an address is an underlay address of the node with these settings.
func isLocal(s layout.NodeSettings, a netip.Addr) bool {
	return a.Is4() && slices.Contains(s.Local4[:], layout.Network4(a)) || slices.Contains(s.Local6[:], layout.AddressOf(a))
}

func (w *world) gatewayAt(a netip.Addr) string {
	for _, g := range w.state.Gateways {
		if slices.Contains(g.Addresses, a) {
			return g.Name
		}
	}
	return ""
}

// deliver is deliver.h.
func (w *world) deliver(node string, n nexthop, bridged bool, p packet) end {
	v, ok := w.tables[node].Vifs[n.Oif]
	if !ok || v.ID != n.Vif || v.VRF != n.VRF {
		w.t.Fatalf("node %s: %s leads to vif %d on device %d, where vif %d is", node, n.Name, n.Vif, n.Oif, v.ID)
	}
	e := end{node: node, port: w.tables[node].Ports[v.ID], dmac: p.dmac, smac: p.smac}
	if !bridged {
		e.dmac, e.smac = n.DMAC, model.MAC{}
	}
	return e
}
