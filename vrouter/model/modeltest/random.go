// Package modeltest makes random valid desired states, for tests of properties of
// all states.
package modeltest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// Random returns a valid state with about size ports, and a few nodes,
// networks, routes, gateways and policies. The same source of randomness makes
// the same state.
func Random(r *rand.Rand, size int) model.State {
	m := maker{rand: r}
	m.s.Settings = model.Settings{AllowFragment: m.chance(4), AnySource: m.chance(4)}
	if m.chance(3) {
		m.s.Settings.VXLANPort = uint16(10000 + r.IntN(50000)) // above 6635, the port of MPLSoUDP
	}
	m.times(1+r.IntN(2+min(size/4, 8)), m.addNode)
	m.times(1+r.IntN(2+min(size/6, 10)), m.addNetwork)
	m.times(r.IntN(3), m.addPolicy)
	m.times(size, m.addPort)
	m.times(r.IntN(3), m.addGateway)
	m.times(r.IntN(2+min(size/4, 8)), m.addRoute)
	return m.s
}

// Mutate returns a valid state that differs from the given one in one added,
// deleted or changed object. It does not modify the given state.
func Mutate(r *rand.Rand, s model.State) model.State {
	changes := []func(*maker) bool{
		(*maker).addPort, (*maker).addPort, (*maker).deletePort, (*maker).deletePort, (*maker).movePort, (*maker).renumberPort,
		(*maker).addNode, (*maker).deleteNode, (*maker).addNetwork, (*maker).deleteNetwork, (*maker).changeNetwork,
		(*maker).addRoute, (*maker).deleteRoute, (*maker).addGateway, (*maker).deleteGateway,
		(*maker).addPolicy, (*maker).changePolicies, (*maker).changeSettings, (*maker).changePreference,
	}
	for {
		m := maker{rand: r, s: clone(s)}
		if changes[r.IntN(len(changes))](&m) && m.s.Validate() == nil {
			return m.s
		}
	}
}

// maker builds and changes a state. Its methods report whether they changed it.
type maker struct {
	rand *rand.Rand
	s    model.State
}

func (m *maker) chance(of int) bool { return m.rand.IntN(of) == 0 }

func (m *maker) times(n int, add func() bool) {
	for range n {
		add()
	}
}

func pick[E any](m *maker, all []E) (e E, ok bool) {
	if len(all) == 0 {
		return e, false
	}
	return all[m.rand.IntN(len(all))], true
}

// name returns the first free name of a kind.
func name(kind string, taken func(string) bool) string {
	for i := 1; ; i++ {
		if n := fmt.Sprintf("%s%d", kind, i); !taken(n) {
			return n
		}
	}
}

func (m *maker) addNode() bool {
	n := model.Node{Name: name("node", func(s string) bool { _, has := m.s.Node(s); return has })}
	// IPv4 always, so that all nodes reach each other; IPv6 sometimes.
	four, six := 1+m.rand.IntN(2), m.rand.IntN(3)
	for range four {
		n.Underlay = append(n.Underlay, m.freeUnderlay(netip.MustParsePrefix("172.16.0.0/16")))
	}
	for range six {
		n.Underlay = append(n.Underlay, m.freeUnderlay(netip.MustParsePrefix("fd00:172::/64")))
	}
	if m.chance(2) {
		n.Locator = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 0x77, 6: byte(len(m.s.Nodes) >> 8), byte(len(m.s.Nodes))}), model.LocatorBits)
		if slices.ContainsFunc(m.s.Nodes, func(other model.Node) bool { return other.Locator == n.Locator }) {
			n.Locator = netip.Prefix{} // the number of nodes is the same again after a deletion
		}
	}
	if !m.chance(3) {
		// All nodes have VXLAN, so that every pair of nodes has a common
		// encapsulation.
		n.Encapsulations = []model.Encapsulation{model.VXLAN}
		for _, e := range []model.Encapsulation{model.MPLSoGRE, model.MPLSoUDP, model.Direct} {
			if m.chance(2) {
				n.Encapsulations = append(n.Encapsulations, e)
			}
		}
		m.rand.Shuffle(len(n.Encapsulations), func(i, j int) {
			n.Encapsulations[i], n.Encapsulations[j] = n.Encapsulations[j], n.Encapsulations[i]
		})
	}
	m.s.Nodes = append(m.s.Nodes, n)
	return true
}

// freeUnderlay is an address that no node and no gateway has.
func (m *maker) freeUnderlay(p netip.Prefix) netip.Addr {
	for {
		bytes := p.Addr().AsSlice()
		n := 1 + m.rand.IntN(60000)
		bytes[len(bytes)-2], bytes[len(bytes)-1] = byte(n>>8), byte(n)
		a, _ := netip.AddrFromSlice(bytes)
		taken := slices.ContainsFunc(m.s.Nodes, func(n model.Node) bool { return slices.Contains(n.Underlay, a) }) ||
			slices.ContainsFunc(m.s.Gateways, func(g model.Gateway) bool { return slices.Contains(g.Addresses, a) })
		if !taken {
			return a
		}
	}
}

// addNetwork adds a network with the same subnets as some others, in another tenant.
func (m *maker) addNetwork() bool {
	n := model.Network{Name: name("net", func(s string) bool { _, has := m.s.Network(s); return has })}
	for {
		n.ID = 1 + uint32(m.rand.IntN(model.MaxNetworkID))
		if !slices.ContainsFunc(m.s.Networks, func(o model.Network) bool { return o.ID == n.ID || o.VNI == n.ID }) {
			break
		}
	}
	if m.chance(2) {
		n.VNI = 5000 + n.ID
	}
	n.Forwarding = []model.Forwarding{"", model.L3, model.L2, model.L2L3}[m.rand.IntN(4)]
	n.Tenant = n.Name // networks have the same subnets
	at := byte(max(m.rand.IntN(5)-1, 0))
	n.Subnets = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, at}), 24)}
	if m.chance(2) {
		n.Subnets = append(n.Subnets, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, at, 4}), 28))
	}
	if !m.chance(3) {
		n.Subnets = append(n.Subnets, netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 3: 0x10, 5: at}), 64))
	}
	n.Import, n.Export = m.targets(), m.targets()
	if n.Forwarding == model.L2 && m.chance(3) {
		n.Subnets = nil
	}
	n.Policies = m.somePolicies()
	m.s.Networks = append(m.s.Networks, n)
	return true
}

// targets returns up to two route targets of three.
func (m *maker) targets() (all []model.RouteTarget) {
	for i := range byte(3) {
		if m.chance(4) && len(all) < 2 {
			all = append(all, model.RouteTarget{0, 2, 0xfc, 7: i})
		}
	}
	return all
}

func (m *maker) somePolicies() []string {
	if p, ok := pick(m, m.s.Policies); ok && m.chance(3) {
		return []string{p.Name}
	}
	return nil
}

func (m *maker) addPort() bool {
	network, ok1 := pick(m, m.s.Networks)
	node, ok2 := pick(m, m.s.Nodes)
	if !ok1 || !ok2 {
		return false
	}
	p := model.Port{Network: network.Name, Node: node.Name, Policies: m.somePolicies()}
	p.Name = name("port", func(s string) bool { _, has := m.s.Port(s); return has })
	p.Attach = model.Attachment{Netns: p.Name}
	if m.chance(4) {
		p.Attach = model.Attachment{Device: "tap-" + p.Name}
	}
	p, err := complete(m.s, p)
	if err != nil {
		return false // the network is full
	}
	if m.chance(6) && network.Forwarding != model.L2 {
		p.AllowSources = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	}
	m.s.Ports = append(m.s.Ports, p)
	return true
}

// addRoute adds a route to ports or gateways, or a route that discards packets.
func (m *maker) addRoute() bool {
	n, ok := pick(m, m.s.Networks)
	if !ok || n.Forwarding == model.L2 {
		return false
	}
	r := model.Route{Network: n.Name, Prefix: m.prefix(n)}
	r.Discard = m.chance(6)
	for _, p := range m.s.Ports {
		if p.Network == n.Name && !r.Discard && len(r.Via) < model.MaxECMP-2 && m.chance(3) {
			r.Via = append(r.Via, model.Via{Port: p.Name})
		}
	}
	for _, g := range m.s.Gateways {
		gn, serves := g.Network(n.Name)
		if serves && !r.Discard && m.chance(2) && (g.Encapsulation == model.VXLAN || gn.Label != 0) {
			r.Via = append(r.Via, model.Via{Gateway: g.Name})
		}
	}
	if !r.Discard && len(r.Via) == 0 {
		return false
	}
	m.s.Routes = append(m.s.Routes, r)
	if m.s.Validate() != nil { // the prefix is taken
		m.s.Routes = m.s.Routes[:len(m.s.Routes)-1]
		return false
	}
	return true
}

// prefix returns a prefix outside the network's subnets, of one of their families.
func (m *maker) prefix(n model.Network) netip.Prefix {
	all := []string{"0.0.0.0/0", "192.168.0.0/16", "192.168.7.0/24", "198.51.100.7/32"}
	if slices.ContainsFunc(n.Subnets, func(s netip.Prefix) bool { return s.Addr().Is6() }) {
		all = append(all, "::/0", "2001:db8::/32", "2001:db8:7::7/128")
	}
	p, _ := pick(m, all)
	return netip.MustParsePrefix(p)
}

// addGateway adds a gateway for some of the networks.
func (m *maker) addGateway() bool {
	g := model.Gateway{Name: name("gateway", func(s string) bool { _, has := m.s.Gateway(s); return has })}
	g.Addresses = []netip.Addr{m.freeUnderlay(netip.MustParsePrefix("172.16.0.0/16"))}
	if m.chance(3) {
		g.Addresses = append(g.Addresses, m.freeUnderlay(netip.MustParsePrefix("172.16.0.0/16")))
	}
	g.Encapsulation = m.common()
	g.Floating = len(m.s.Gateways)%2 == 1
	if g.Encapsulation == model.VXLAN && m.chance(2) {
		g.MAC = model.MAC{0x00, 0x1c, 0x73, 0, 0, byte(1 + m.rand.IntN(200))}
	}
	for _, n := range m.s.Networks {
		if !m.chance(2) {
			continue
		}
		g.Networks = append(g.Networks, m.gatewayNetwork(g, n, len(m.s.Gateways)))
	}
	if len(g.Networks) == 0 {
		return false
	}
	m.s.Gateways = append(m.s.Gateways, g)
	if m.s.Validate() != nil { // another object has its prefix or MAC
		m.s.Gateways = m.s.Gateways[:len(m.s.Gateways)-1]
		return false
	}
	return true
}

// common returns an encapsulation of all nodes.
func (m *maker) common() model.Encapsulation {
	for _, e := range []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE} {
		lacks := func(n model.Node) bool {
			return len(n.Encapsulations) > 0 && !slices.Contains(n.Encapsulations, e)
		}
		if !slices.ContainsFunc(m.s.Nodes, lacks) {
			return e
		}
	}
	return model.VXLAN
}

func (m *maker) gatewayNetwork(g model.Gateway, n model.Network, number int) model.GatewayNetwork {
	gn := model.GatewayNetwork{Network: n.Name}
	if g.Encapsulation == model.VXLAN {
		if m.chance(2) {
			gn.VNI = 1 + uint32(m.rand.IntN(model.MaxVNI))
		}
	} else {
		gn.Label = model.FirstLabel + uint32(m.rand.IntN(model.MaxLabel-model.FirstLabel))
		gn.EthernetLabel = model.FirstLabel + uint32(m.rand.IntN(model.MaxLabel-model.FirstLabel))
	}
	if n.Routes() {
		gn.Prefixes = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, byte(number), 0}), 24)}
	}
	if n.Bridges() {
		gn.MACs = []model.MAC{{0x06, 0, 0, byte(number), 0, byte(m.rand.IntN(256))}}
		gn.Flood = m.chance(2)
	}
	return gn
}
