package fib

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Kinds of numbers in IDs.
const (
	kindNexthop = "nexthop"
	kindVif     = "vif"
	kindRemote  = "remote"
)

// Compile derives a node's tables from a valid slice whose defaults are filled in. The
// tables have the networks that have ports on the node, and the routes that these import from other
// networks. Compile allocates numbers in ids, even if it returns an error: to try a slice, use a Clone. If the ids of vifs or nexthops
// are all in use, the error is a *LimitError. With facts.Partial, the errors of single
// networks are in Tables.Refused. Equal inputs result in equal tables.
//
// The cost depends on the ports that differ from the ports of last, an earlier result for the
// node. If last is nil, the cost depends on all ports.
//
// Nexthop 0 discards packets; no table has it.
func Compile(s model.Slice, node string, facts Facts, ids *IDs, last *Compiled) (*Compiled, error) {
	c := newCompiler(s, node, facts.withDefaults(), ids, last)
	if c.self == nil {
		var names []string
		for _, n := range s.Nodes {
			names = append(names, n.Name)
		}
		return nil, fmt.Errorf("node %q is not in the state, which has %s; apply the state of this node's fleet, or correct node in its configuration", node, phrase.Some(names, 8))
	}
	c.settings()
	c.grouping()
	c.nodePeers()
	c.gatewayPeers()
	c.importers()
	c.externalPeers()
	c.senders()
	c.room()
	c.networks()
	c.externalStations()
	c.ports()
	c.floods()
	c.staticRoutes()
	c.externalRoutes()
	c.nodeRoutes()
	c.leakedRoutes()
	c.subnets()
	if c.accepts(model.VXLAN) {
		c.t.Settings.VXLANPort = layout.Network16(c.state.Settings.VXLANPort)
	}
	c.t.Settings.Flags |= layout.If[uint32](c.hasOneEncapsulation(), layout.SettingsOneEncapsulation) |
		layout.If[uint32](c.accepts(model.MPLSoUDP), layout.SettingsMPLSUDP) | layout.If[uint32](c.accepts(model.MPLSoGRE), layout.SettingsMPLSGRE)
	c.limits()
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return &Compiled{Tables: c.t, Warnings: c.warnings, Ignored: c.ignored, slice: c.state, count: c.count, legs: c.legs()}, nil
}

// compiler holds the inputs and the intermediate results of Compile.
type compiler struct {
	state model.Slice
	facts Facts
	ids   *IDs
	self  *model.Node
	t     Tables

	here     map[string]*network // networks that have ports on this node, by name
	nets     map[string]*network // these, and the networks whose routes they import
	peers    map[string]*tunnel  // tunnels to nodes that share a network with this node, by name
	foreign  map[string]*tunnel  // tunnels to gateways of a network in here, by name
	external external
	ignored  map[ExternalDestination]string
	count    map[place]tally
	policies map[string]*model.Policy
	encaps   map[string]uint32 // nexthops of the ports that have a device, by name

	lacking  map[string]int // how many numbers were missing, by kind
	warnings []Problem
	errs     []error
}

// network is a network with ports on this node.
type network struct {
	model.Network
	members map[string]bool // names of the other nodes with ports of the network
	host    *model.Port     // with NodeAccess: the port that connects this node itself; nil: none
	flood   []layout.Member
	mtu     uint16 // MTU of its ports, bytes

	imported  []*network // networks whose routes it imports, by id
	claims    []claim    // prefixes of its own and of these networks, in their order; nil: it imports no routes
	importers []importer // networks on this node that import its routes
}

// speaks6 reports whether the network has an IPv6 subnet.
func (n *network) speaks6() bool {
	return slices.ContainsFunc(n.Subnets, func(p netip.Prefix) bool { return p.Addr().Is6() })
}

func newCompiler(state model.Slice, node string, facts Facts, ids *IDs, last *Compiled) *compiler {
	here := len(state.Ports) // number of ports on this node: it decides how large these maps become
	c := &compiler{
		state: state, facts: facts, ids: ids, count: last.countPorts(state.All),
		here: map[string]*network{}, nets: map[string]*network{}, peers: map[string]*tunnel{}, foreign: map[string]*tunnel{},
		policies: map[string]*model.Policy{}, encaps: make(map[string]uint32, here), lacking: map[string]int{}, ignored: map[ExternalDestination]string{},
		t: Tables{
			Vifs: make(map[uint32]layout.Vif, here), Ports: make(map[uint32]string, here), VRFs: map[uint32]layout.VRF{}, Nexthops: make(map[uint32]layout.Nexthop, here), Members: map[layout.MemberKey]layout.Member{}, Names: make(map[uint32]string, here), Routes: make(map[RouteKey]layout.Route, last.size()),
			Bridge: map[layout.BridgeKey]layout.BridgeEntry{}, ILM: map[uint32]layout.Target{}, VNIs: map[uint32]layout.Target{},
			NATs: map[uint32]layout.NAT{}, Floatings: map[layout.FloatingKey]layout.Floating{}, Remotes: map[layout.Address]layout.Remote{}, Senders: map[layout.SenderKey]layout.Sender{}, Policies: map[uint32]Policy{},
			Sets: Sets{Identities: map[RouteKey]layout.Identity{}, Allows: map[Allow]bool{}},
		},
	}
	for i := range state.Nodes {
		if state.Nodes[i].Name == node {
			c.self = &state.Nodes[i]
		}
	}
	for i := range state.Policies {
		c.policies[state.Policies[i].Name] = &state.Policies[i]
	}
	c.findNetworks(node)
	return c
}

// findNetworks finds the networks with ports on this node, the networks whose routes these import, and
// the other nodes with ports of them.
func (c *compiler) findNetworks(node string) {
	for _, n := range c.state.Networks {
		if c.count[place{node, n.Name}].ports > 0 {
			c.here[n.Name] = &network{Network: n, members: map[string]bool{}}
			c.nets[n.Name] = c.here[n.Name]
		}
	}
	c.findLeaks()
	for at := range c.count {
		if n := c.nets[at.network]; n != nil && at.node != node {
			n.members[at.node] = true
		}
	}
	for i := range c.state.Ports {
		p := &c.state.Ports[i]
		if n := c.here[p.Network]; n != nil && n.NodeAccess && n.Routes() && p.Attach.Host {
			n.host = p
		}
	}
}

func (c *compiler) warn(kind, name, format string, args ...any) {
	c.warnings = append(c.warnings, Problem{kind, name, fmt.Sprintf(format, args...)})
}

// refuse records an error that concerns a single network.
func (c *compiler) refuse(n *network, err error) {
	if c.facts.Partial {
		c.t.Refused = append(c.t.Refused, NetworkError{n.Name, err})
	} else {
		c.errs = append(c.errs, err)
	}
}

// number returns the id of a name. If all ids are in use, it returns 0, and limits adds the
// error.
func (c *compiler) number(kind, name string, limit uint32) uint32 {
	id, ok := c.ids.get(kind, name, limit)
	if !ok {
		c.lacking[kind]++
	}
	return id
}

// lastNexthop returns the largest id of a nexthop; 0: the table has no entries.
func (c *compiler) lastNexthop() uint32 { return max(c.facts.Limits.Nexthops, 1) - 1 }

// nexthop adds a nexthop with a name to the tables, and returns its id. A composite has members.
func (c *compiler) nexthop(name string, n layout.Nexthop, members ...layout.Member) uint32 {
	id := c.number(kindNexthop, name, c.lastNexthop())
	if id != 0 {
		c.t.Nexthops[id], c.t.Names[id] = n, name
		c.t.SetMembers(id, members)
	}
	return id
}

// limits adds an error if there were too few ids for the vifs or nexthops.
func (c *compiler) limits() {
	if n := c.lacking[kindVif]; n > 0 {
		c.errs = append(c.errs, &LimitError{Table: "vifs", What: "vifs", Setting: "limits.vifs", Want: len(c.t.Vifs) + n, Limit: c.facts.Limits.Vifs})
	}
	if n := c.lacking[kindNexthop]; n > 0 {
		c.errs = append(c.errs, &LimitError{Table: "nexthops", What: "nexthops", Setting: "limits.nexthops", Want: len(c.t.Nexthops) + n, Limit: c.lastNexthop()})
	}
}

func (c *compiler) settings() {
	s := &c.t.Settings
	s.Flags, s.LastLabel = layout.If[uint32](!c.state.Settings.AnySource, layout.SettingsStrict), layout.Network16(uint16(c.facts.LastLabel))
	if c.self.Locator.IsValid() {
		s.SetLocator(c.self.Locator)
	}
	if err := s.SetLocal(c.self.Underlay); err != nil {
		c.errs = append(c.errs, fmt.Errorf("node %q: %w", c.self.Name, err))
	}
}

func (c *compiler) hasOneEncapsulation() bool {
	used := map[model.Encapsulation]bool{}
	for _, n := range c.t.Nexthops {
		if e := n.Encapsulation(); n.Type == layout.Tunnel && e != model.Direct && e != model.Translated {
			used[e] = true
		}
	}
	return len(used) == 1
}

// accepts reports whether this node accepts packets of an encapsulation. If it does not, it leaves them
// to other programs.
func (c *compiler) accepts(e model.Encapsulation) bool {
	if c.state.Settings.AnySource && slices.Contains(c.self.Encapsulations, e) {
		return true
	}
	for _, r := range c.t.Remotes {
		if r.Accepts(e) {
			return true
		}
	}
	return false
}
