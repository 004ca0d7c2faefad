// Package fib computes the forwarding tables of one node, which the agent writes to the data
// path's maps. Compile derives them from the fleet's desired state without side effects.
package fib

import (
	"net/netip"

	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Tables are the desired contents of all maps of one node.
type Tables struct {
	Settings layout.NodeSettings
	Vifs     map[uint32]layout.Vif              // by ifindex
	Ports    map[uint32]string                  // names of the vifs, by id; not written to maps
	VRFs     map[uint32]layout.VRF              // by VRF id
	Nexthops map[uint32]layout.Nexthop          // by id
	Members  map[layout.MemberKey]layout.Member // of composite nexthops
	Names    map[uint32]string                  // names of the nexthops, by id; not written to maps
	Routes   map[RouteKey]layout.Route
	Bridge   map[layout.BridgeKey]layout.BridgeEntry
	ILM      map[uint32]layout.Target           // by label
	VNIs     map[uint32]layout.Target           // by VNI
	Remotes  map[layout.Address]layout.Remote   // by underlay address, or first address of a locator
	Senders  map[layout.SenderKey]layout.Sender // additional sources that remotes may use; Routes and Bridge allow the others
	Policies map[uint32]Policy                  // by vif id
	Sets     Sets
	// NATs are the node's addresses in the pools of networks, by id of the vif that connects the node.
	NATs      map[uint32]layout.NAT
	Floatings map[layout.FloatingKey]layout.Floating // in both directions; and the other nodes that share an address of a pool
	Refused   []NetworkError                         // errors of networks, with Facts.Partial; not written to maps
}

// Kinds of a Problem.
const (
	kindRoute   = "route"  // its name has the network and the prefix
	kindTunnel  = "tunnel" // its name is a node, or a gatewayName
	kindNetwork = "network"
)

// Problem is an object that cannot be in force until the desired state or the underlay changes.
type Problem struct{ Kind, Name, Text string }

// NetworkError is an error that concerns only one network. The tables have the
// entries of that network that are valid.
type NetworkError struct {
	Network string
	Err     error
}

// SetMembers sets the members of a composite nexthop.
func (t *Tables) SetMembers(id uint32, all []layout.Member) {
	n := t.Nexthops[id]
	for i := range uint32(n.Members) {
		delete(t.Members, layout.MemberKey{Nexthop: id, Index: i})
	}
	n.Members = uint16(len(all))
	t.Nexthops[id] = n
	for i, m := range all {
		t.Members[layout.MemberKey{Nexthop: id, Index: uint32(i)}] = m
	}
}

// MembersOf returns the members of a nexthop.
func (t *Tables) MembersOf(id uint32) (all []layout.Member) {
	for i := range uint32(t.Nexthops[id].Members) {
		all = append(all, t.Members[layout.MemberKey{Nexthop: id, Index: i}])
	}
	return all
}

// Encapsulating returns the name of a nexthop that adds outer headers or translates; "" if there is none. It ignores tunnels
// that only carry the packets that direct cannot carry: these packets are few, and never TCP superpackets.
func (t *Tables) Encapsulating() (name string) {
	fallback := map[uint32]bool{}
	for _, n := range t.Nexthops {
		if n.Type == layout.Tunnel && n.Encapsulation() == model.Direct {
			fallback[n.Fallback] = true
		}
	}
	for id, n := range t.Nexthops {
		if n.Type == layout.Tunnel && n.Encapsulation() != model.Direct && !fallback[id] && (name == "" || t.Names[id] < name) {
			name = t.Names[id]
		}
	}
	return name
}

// RouteKey is a destination in a VRF. Host routes are in hash maps, and other prefixes in
// tries.
type RouteKey struct {
	VRF    uint32
	Prefix netip.Prefix
}

// Policy has the rules for the flows of a vif.
type Policy struct {
	AllowIn, AllowOut bool          // decision for flows that match no rule
	Rules             []layout.Rule // at most model.MaxRules
	Group             Group         // restricts what the rules allow
	Revision          uint32        // Grouping.Revision, if the policy has a group
}
