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
	Vifs     map[uint32]layout.Vif // by ifindex
	Ports    map[uint32]string     // names of the vifs, by id; not written to maps
	VRFs     map[uint32]layout.VRF // by VRF id
	Nexthops map[uint32]Nexthop    // by id
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

// NexthopType is the kind of a nexthop. The values are equal to the data path's.
type NexthopType uint8

const (
	Discard NexthopType = iota
	Receive
	Encap
	Tunnel
	Composite
	VRFTranslate
	L2Receive
)

// Nexthop says where packets are sent. Its Type decides which fields are used.
type Nexthop struct {
	Type          NexthopType
	VRF           uint32              // Encap, VRFTranslate, L2Receive
	Vif           uint32              // Encap: vif id
	Oif           uint32              // Encap: ifindex of the vif
	Peer          bool                // Encap: the device is a veth or netkit device; packets are delivered to its peer
	DMAC, SMAC    model.MAC           // Encap; DMAC of Tunnel with VXLAN
	MTU           uint16              // Encap, Tunnel: largest inner IP packet
	Encapsulation model.Encapsulation // Tunnel
	DF            bool                // Tunnel
	Remote        uint32              // Tunnel: Remote.ID of the node or gateway at the far end
	Port          uint16              // Tunnel over UDP
	Cut           bool                // Tunnel over UDP and IPv6: to a gateway, which may refuse packets without a checksum; the kernel cuts superpackets
	NAT           bool                // Encap: packets leave the network by the node, from an address of the pool. Tunnel: to a router that knows workloads by their floating addresses
	Fallback      uint32              // Tunnel with Translated or Direct: nexthop for packets that cannot be translated or restored; 0: none
	Paths         []Path              // Tunnel, 1 … 4, all of one family
	Multicast     bool                // Composite: replicate
	Members       []layout.Member     // Composite
	Name          string              // for people; not in the map
}

// Path is one route through the underlay.
type Path struct {
	Source, Destination netip.Addr
	Gateway             netip.Addr // next hop; if the destination is on the link, the destination
	Oif                 uint32     // 0: down
	Locators            uint8      // Tunnel with Translated
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
