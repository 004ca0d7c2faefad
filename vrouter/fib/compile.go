package fib

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"windtunnel/vrouter/model"
)

// Facts are what the tables depend on beside the desired state.
type Facts struct {
	// Ports are this node's ports that have a device, by name. Others are left
	// out of the tables, with a warning.
	Ports map[string]PortFact
	// Way tells how packets get from one of this node's underlay addresses to
	// another node's: no paths where there is no way now. mtu is the smallest
	// of the paths', bytes of the outer IP packet.
	Way func(source, destination netip.Addr) (paths []Path, mtu int)
	// MTU is the fabric's own, for what has no way yet.
	MTU    int
	Limits Limits
	// Flow timeouts in seconds.
	FlowIdle, FlowClosed uint32
}

// PortFact is what is known of a port's device.
type PortFact struct {
	Ifindex uint32
	Device  string
	Peer    bool // a veth whose other end is the workload's
}

// Limits are the largest numbers; zero for none.
type Limits struct {
	Nexthops uint32 // ids 1 … Nexthops−1
	Vifs     uint32
}

// Kinds of numbers in IDs.
const (
	kindNexthop = "nexthop"
	kindVif     = "vif"
)

// mostMembers of an ECMP nexthop, and of a replication list.
const (
	mostECMP  = 16
	mostFlood = 128
)

// Compile derives a node's tables from a valid state with its defaults filled
// in. It takes numbers from ids. The warnings name what is left out for now.
func Compile(state model.State, node string, facts Facts, ids *IDs) (Tables, []string, error) {
	c := newCompiler(state, node, facts, ids)
	if c.self == nil {
		return Tables{}, nil, fmt.Errorf("node %q is not in the state, which has %s; apply the state of this node's fleet, or correct node in its configuration", node, names(state.Nodes))
	}
	c.settings()
	c.peers()
	c.gateways()
	c.networks()
	c.ports()
	c.floods()
	c.staticRoutes()
	if err := errors.Join(c.errs...); err != nil {
		return Tables{}, nil, err
	}
	return c.t, c.warnings, nil
}

func names(nodes []model.Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Name)
	}
	if len(all) > 8 {
		return fmt.Sprintf("%q and %d more", all[:8], len(all)-8)
	}
	return fmt.Sprintf("%q", all)
}

// compiler is the work of Compile.
type compiler struct {
	state model.State
	facts Facts
	ids   *IDs
	self  *model.Node
	t     Tables

	nodes    map[string]*model.Node
	byName   map[string]*model.Network // networks with ports here
	tunnels  map[string]*tunnel        // to nodes, by name
	foreign  map[string]*tunnel        // to gateways, by name
	portAt   map[string]*model.Port
	policies map[string]*model.Policy
	flood    map[string][]Member // by network
	mtus     []int               // inner MTUs of all tunnels

	warnings []string
	errs     []error
}

// tunnel is a way to another node or a gateway.
type tunnel struct {
	ip, ethernet  uint32 // nexthops for IP and Ethernet payload
	encap         model.Encapsulation
	mtuIP, mtuEth int
}

func newCompiler(state model.State, node string, facts Facts, ids *IDs) *compiler {
	c := &compiler{
		state: state, facts: facts, ids: ids,
		nodes: map[string]*model.Node{}, byName: map[string]*model.Network{}, tunnels: map[string]*tunnel{},
		foreign: map[string]*tunnel{}, portAt: make(map[string]*model.Port, len(state.Ports)),
		policies: map[string]*model.Policy{}, flood: map[string][]Member{},
		t: Tables{
			Vifs: map[uint32]Vif{}, VRFs: map[uint32]VRF{}, Nexthops: map[uint32]Nexthop{},
			Routes: make(map[RouteKey]Route, len(state.Ports)), Bridge: map[BridgeKey]BridgeEntry{},
			ILM: map[uint32]Target{}, VNIs: map[uint32]Target{}, Remotes: map[netip.Addr]uint32{}, Policies: map[uint32]Policy{},
		},
	}
	for i := range state.Nodes {
		c.nodes[state.Nodes[i].Name] = &state.Nodes[i]
	}
	c.self = c.nodes[node]
	for i := range state.Policies {
		c.policies[state.Policies[i].Name] = &state.Policies[i]
	}
	here := map[string]bool{}
	for i := range state.Ports {
		p := &state.Ports[i]
		c.portAt[p.Name] = p
		if p.Node == node {
			here[p.Network] = true
		}
	}
	for i := range state.Networks {
		if n := &state.Networks[i]; here[n.Name] {
			c.byName[n.Name] = n
		}
	}
	return c
}

func (c *compiler) fail(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *compiler) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// nexthop adds one under a name, and returns its id.
func (c *compiler) nexthop(name string, n Nexthop) uint32 {
	limit := c.facts.Limits.Nexthops
	if limit > 0 {
		limit-- // entry 0 is none
	}
	id, err := c.ids.Get(kindNexthop, name, limit)
	if err != nil {
		c.fail(err)
		return 0
	}
	n.Name = name
	c.t.Nexthops[id] = n
	return id
}

func (c *compiler) settings() {
	c.t.Settings = Settings{
		Strict: !c.state.Settings.AnySource, VXLANPort: c.state.Settings.VXLANPort,
		Local: slices.Clone(c.self.Underlay), FlowIdle: c.facts.FlowIdle, FlowClosed: c.facts.FlowClosed,
	}
}

// peers makes the tunnels to the nodes that share a network with this one; all
// nodes may send.
func (c *compiler) peers() {
	shared := map[string]bool{}
	for i := range c.state.Ports {
		p := &c.state.Ports[i]
		if p.Node != c.self.Name && c.byName[p.Network] != nil {
			shared[p.Node] = true
		}
	}
	for i := range c.state.Nodes {
		n := &c.state.Nodes[i]
		if n.Name == c.self.Name || !shared[n.Name] {
			continue
		}
		encap, ok := Encapsulation(*c.self, *n)
		if !ok {
			c.warn("node %q offers none of this node's encapsulations %v", n.Name, c.self.Encapsulations)
			continue
		}
		pairs, ok := parallel(c.self.Underlay, n.Underlay)
		if !ok {
			c.warn("node %q has no underlay address of this node's families", n.Name)
			continue
		}
		t := c.tunnel("node "+n.Name, encap, pairs, model.RouterMAC)
		c.tunnels[n.Name] = t
		for _, a := range n.Underlay {
			c.t.Remotes[a] = t.ip
		}
	}
}

// Encapsulation chooses how two nodes talk: the smallest sum of ranks over both
// preference lists; of equals the one that the node preferred whose name sorts
// first, so that both choose the same.
func Encapsulation(a, b model.Node) (best model.Encapsulation, ok bool) {
	if b.Name < a.Name {
		a, b = b, a
	}
	least := -1
	for i, e := range a.Encapsulations {
		j := slices.Index(b.Encapsulations, e)
		if j >= 0 && (least < 0 || i+j < least) {
			best, least = e, i+j
		}
	}
	return best, least >= 0
}

// parallel pairs the addresses of two nodes: of IPv4 where both have it, else
// of IPv6; the first with the first, the second with the second.
func parallel(ours, theirs []netip.Addr) (pairs [][2]netip.Addr, ok bool) {
	for _, v4 := range []bool{true, false} {
		of := func(all []netip.Addr) (some []netip.Addr) {
			for _, a := range all {
				if a.Is4() == v4 {
					some = append(some, a)
				}
			}
			return some
		}
		x, y := of(ours), of(theirs)
		for i := range min(len(x), len(y)) {
			pairs = append(pairs, [2]netip.Addr{x[i], y[i]})
		}
		if len(pairs) > 0 {
			return pairs, true
		}
	}
	return nil, false
}

// mostPaths of a tunnel.
const mostPaths = 4

// tunnel makes the two nexthops of a way: for IP and for Ethernet payload,
// which leave different room. VXLAN has only the latter.
func (c *compiler) tunnel(name string, encap model.Encapsulation, pairs [][2]netip.Addr, router model.MAC) *tunnel {
	var paths []Path
	mtu := 0
	for _, p := range pairs {
		some, m := c.facts.Way(p[0], p[1])
		paths = append(paths, some...)
		if len(some) > 0 && (mtu == 0 || m < mtu) {
			mtu = m
		}
	}
	if len(paths) == 0 {
		c.warn("%s: no way through the underlay to %s", name, pairs[0][1])
		mtu = c.facts.MTU
	}
	paths = paths[:min(len(paths), mostPaths)]
	v6 := pairs[0][1].Is6()
	n := Nexthop{Type: Tunnel, Encapsulation: encap, DF: !v6 && !c.state.Settings.AllowFragment, DMAC: router, Paths: paths}
	switch encap {
	case model.MPLSoUDP:
		n.Port = 6635 // RFC 7510
	case model.VXLAN:
		n.Port = c.state.Settings.VXLANPort
	}
	t := &tunnel{encap: encap, mtuIP: mtu - Overhead(encap, v6, false), mtuEth: mtu - Overhead(encap, v6, true)}
	if t.mtuEth < leastMTU4 {
		c.fail(fmt.Errorf("%s: an underlay of MTU %d leaves %d bytes for packets in %s, less than %d; raise the underlay's MTU", name, mtu, t.mtuEth, encap, leastMTU4))
		return t
	}
	n.MTU = clampMTU(t.mtuIP)
	t.ip = c.nexthop("tunnel "+name+" "+string(encap), n)
	t.ethernet = t.ip
	if encap != model.VXLAN {
		n.MTU = clampMTU(t.mtuEth)
		t.ethernet = c.nexthop("tunnel "+name+" "+string(encap)+" ethernet", n)
	}
	return t
}

func clampMTU(n int) uint16 { return uint16(min(max(n, 0), 65535)) }

// gateways makes the tunnels to those of networks that have ports here.
func (c *compiler) gateways() {
	for _, g := range c.state.Gateways {
		if !slices.ContainsFunc(g.Networks, func(n model.GatewayNetwork) bool { return c.byName[n.Network] != nil }) {
			continue
		}
		pairs := c.towards(g.Addresses)
		if len(pairs) == 0 {
			c.warn("gateway %q has no underlay address of this node's families", g.Name)
			continue
		}
		router := g.MAC
		if router.IsZero() {
			router = model.RouterMAC
		}
		t := c.tunnel("gateway "+g.Name, g.Encapsulation, pairs, router)
		c.foreign[g.Name] = t
		for _, a := range g.Addresses {
			c.t.Remotes[a] = t.ip
		}
	}
}

// towards pairs each address of a gateway with this node's first of its family.
func (c *compiler) towards(addresses []netip.Addr) (pairs [][2]netip.Addr) {
	v4 := addresses[0].Is4()
	i := slices.IndexFunc(c.self.Underlay, func(a netip.Addr) bool { return a.Is4() == v4 })
	if i < 0 {
		return nil
	}
	for _, a := range addresses {
		if a.Is4() == v4 {
			pairs = append(pairs, [2]netip.Addr{c.self.Underlay[i], a})
		}
	}
	return pairs
}

func routes(n *model.Network) bool  { return n.Forwarding != model.L2 }
func bridges(n *model.Network) bool { return n.Forwarding == model.L2 || n.Forwarding == model.L2L3 }

// vni of a network.
func vni(n *model.Network) uint32 {
	if n.VNI != 0 {
		return n.VNI
	}
	return n.ID
}

// networks makes VRFs, what labels and VNIs lead to, and gateways' routes.
func (c *compiler) networks() {
	for i := range c.state.Networks {
		n := &c.state.Networks[i]
		if c.byName[n.Name] == nil {
			continue
		}
		c.t.VRFs[n.ID] = VRF{Name: n.Name, L2: bridges(n), L3: routes(n), RouterMAC: model.RouterMAC}
		ethernet := Target{Ethernet: true}
		if routes(n) {
			translate := c.nexthop("vrf "+n.Name, Nexthop{Type: VRFTranslate, VRF: n.ID})
			c.t.ILM[n.Label()] = Target{Nexthop: translate}
			ethernet.Nexthop = translate
		}
		if bridges(n) {
			ethernet.Nexthop = c.nexthop("l2 "+n.Name, Nexthop{Type: L2Receive, VRF: n.ID})
			c.t.ILM[n.EthernetLabel()] = ethernet
		}
		c.t.VNIs[vni(n)] = ethernet
		if routes(n) {
			for _, s := range n.Subnets {
				id := c.nexthop("receive "+n.Name, Nexthop{Type: Receive, VRF: n.ID})
				c.host(n, gatewayOf(s), Route{Nexthop: id})
			}
		}
	}
	for _, g := range c.state.Gateways {
		t := c.foreign[g.Name]
		if t == nil {
			continue
		}
		for _, gn := range g.Networks {
			if n := c.byName[gn.Network]; n != nil {
				c.gatewayNetwork(t, gn, n)
			}
		}
	}
}

// gatewayOf is a subnet's first address, the router's.
func gatewayOf(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

func (c *compiler) host(n *model.Network, a netip.Addr, r Route) {
	c.t.Routes[RouteKey{VRF: n.ID, Prefix: netip.PrefixFrom(a, a.BitLen())}] = r
}

// labels that a gateway wants on IP and on Ethernet payload.
func gatewayLabels(t *tunnel, gn model.GatewayNetwork, n *model.Network) (ip, ethernet uint32) {
	if t.encap == model.VXLAN {
		id := gn.VNI
		if id == 0 {
			id = vni(n)
		}
		return id, id
	}
	return gn.Label, gn.EthernetLabel
}

func (c *compiler) gatewayNetwork(t *tunnel, gn model.GatewayNetwork, n *model.Network) {
	ip, ethernet := gatewayLabels(t, gn, n)
	if routes(n) {
		for _, p := range gn.Prefixes {
			c.t.Routes[RouteKey{VRF: n.ID, Prefix: p.Masked()}] = Route{Nexthop: t.ip, Label: ip}
		}
	}
	if bridges(n) {
		for _, m := range gn.MACs {
			c.t.Bridge[BridgeKey{VRF: n.ID, MAC: m}] = BridgeEntry{Nexthop: t.ethernet, Label: ethernet}
		}
		if gn.Flood {
			c.flood[n.Name] = append(c.flood[n.Name], Member{Nexthop: t.ethernet, Label: ethernet})
		}
	}
}
