// Package model is a fleet's desired state in values: nodes, virtual networks,
// ports, routes, gateways and policies, and what makes them valid. It touches
// no file, clock, socket or kernel.
package model

import (
	"net"
	"net/netip"
)

// State is the desired state of a fleet, the same on every node.
type State struct {
	Settings Settings  `yaml:"settings" json:"settings"`
	Nodes    []Node    `yaml:"nodes" json:"nodes"`
	Networks []Network `yaml:"networks" json:"networks"`
	Ports    []Port    `yaml:"ports" json:"ports"`
	Routes   []Route   `yaml:"routes" json:"routes"`
	Gateways []Gateway `yaml:"gateways" json:"gateways"`
	Policies []Policy  `yaml:"policies" json:"policies"`
}

// Settings hold for the whole fleet.
type Settings struct {
	VXLANPort     uint16 `yaml:"vxlan_port" json:"vxlan_port,omitempty"`         // default 4789
	AllowFragment bool   `yaml:"allow_fragment" json:"allow_fragment,omitempty"` // outer IPv4 headers without DF
	AnySource     bool   `yaml:"any_source" json:"any_source,omitempty"`         // overlay packets from underlay sources that are no node or gateway
}

// Encapsulation is how packets travel between nodes.
type Encapsulation string

const (
	MPLSoGRE Encapsulation = "mpls-gre" // RFC 4023
	MPLSoUDP Encapsulation = "mpls-udp" // RFC 7510
	VXLAN    Encapsulation = "vxlan"    // RFC 7348
)

// Node is a compute node.
type Node struct {
	Name           string          `yaml:"name" json:"name"`
	Underlay       []netip.Addr    `yaml:"underlay" json:"underlay"`                       // one or more of a family: parallel links
	Encapsulations []Encapsulation `yaml:"encapsulations" json:"encapsulations,omitempty"` // preferred first; default mpls-udp, mpls-gre, vxlan
}

// Forwarding says what a network does with a frame.
type Forwarding string

const (
	L3   Forwarding = "l3"   // route IP only; the default
	L2   Forwarding = "l2"   // bridge only
	L2L3 Forwarding = "l2l3" // frames for the router's MAC are routed, others bridged
)

// Network is a virtual network, and the VRF of the same id.
type Network struct {
	Name       string         `yaml:"name" json:"name"`
	ID         uint32         `yaml:"id" json:"id"`                     // 1 … 4095: the VRF; labels follow from it
	Tenant     string         `yaml:"tenant" json:"tenant,omitempty"`   // whose it is; subnets of one tenant do not overlap
	Subnets    []netip.Prefix `yaml:"subnets" json:"subnets,omitempty"` // the first address of each is the gateway's
	Ranges     []Range        `yaml:"ranges" json:"ranges,omitempty"`   // from which addresses are chosen; default: the subnets
	VNI        uint32         `yaml:"vni" json:"vni,omitempty"`         // 1 … 2^24−1; default: id
	Forwarding Forwarding     `yaml:"forwarding" json:"forwarding,omitempty"`
	Policies   []string       `yaml:"policies" json:"policies,omitempty"`
	Origin     Origin         `yaml:"-" json:"origin,omitempty"` // by which door it came
}

// Attachment says where a port's device is.
type Attachment struct {
	Netns     string `yaml:"netns" json:"netns,omitempty"`         // named network namespace, or a path: a veth pair is made
	Interface string `yaml:"interface" json:"interface,omitempty"` // the workload's device there; default eth0
	Device    string `yaml:"device" json:"device,omitempty"`       // instead: an existing device on the node (tap, veth)
	// Host, instead: the node itself has an address in the network. Nobody there
	// reaches it but with replies, unless the port has policies that say so.
	Host bool `yaml:"host" json:"host,omitempty"`
	// AcceptRA lets the workload's device take addresses and routes from router
	// advertisements.
	AcceptRA bool `yaml:"accept_ra" json:"accept_ra,omitempty"`
}

// Port is a workload's attachment to a network, on one node.
type Port struct {
	Name     string       `yaml:"name" json:"name"`
	Network  string       `yaml:"network" json:"network"`
	Node     string       `yaml:"node" json:"node"`
	MAC      MAC          `yaml:"mac" json:"mac"`
	IPs      []netip.Addr `yaml:"ips" json:"ips,omitempty"`
	Attach   Attachment   `yaml:"attach" json:"attach"`
	Policies []string     `yaml:"policies" json:"policies,omitempty"` // asked before the network's
	// AllowSources are prefixes that the workload may send from beside its
	// addresses: a router, a firewall.
	AllowSources []netip.Prefix `yaml:"allow_sources" json:"allow_sources,omitempty"`
	Router       bool           `yaml:"router" json:"router,omitempty"` // it may advertise itself as a router and answer DHCP
	Bandwidth    Bandwidth      `yaml:"bandwidth" json:"bandwidth,omitzero"`
	// Origin and Owner say who made the port. They are no part of a document that
	// a person writes.
	Origin Origin `yaml:"-" json:"origin,omitempty"`
	Owner  string `yaml:"-" json:"owner,omitempty"` // what the port is to its origin, such as a container's id
}

// Origin is by which door an object came.
type Origin string

// The origins. Applying a state replaces the ports that were applied and leaves
// the others.
const (
	Applied Origin = ""
	Added   Origin = "added" // vrouter port add
	Docker  Origin = "docker"
	CNI     Origin = "cni"
)

// String says it for people.
func (o Origin) String() string {
	switch o {
	case Added:
		return "`vrouter port add`"
	case Docker:
		return "Docker"
	case CNI:
		return "CNI"
	}
	return "`vrouter apply`"
}

// Route is a static route of a network; more than one via is ECMP.
type Route struct {
	Network string       `yaml:"network" json:"network"`
	Prefix  netip.Prefix `yaml:"prefix" json:"prefix"`
	Via     []Via        `yaml:"via" json:"via,omitempty"`
	Discard bool         `yaml:"discard" json:"discard,omitempty"` // instead of via
}

// Via names one way: a port (on any node) or a gateway.
type Via struct {
	Port    string `yaml:"port" json:"port,omitempty"`
	Gateway string `yaml:"gateway" json:"gateway,omitempty"`
}

// Gateway is a foreign tunnel endpoint: a hardware router, or another overlay.
type Gateway struct {
	Name          string           `yaml:"name" json:"name"`
	Addresses     []netip.Addr     `yaml:"addresses" json:"addresses"`
	Encapsulation Encapsulation    `yaml:"encapsulation" json:"encapsulation"`
	MAC           MAC              `yaml:"mac" json:"mac,omitempty"` // its router MAC, for routed VXLAN; default 00:00:5e:00:01:00
	Networks      []GatewayNetwork `yaml:"networks" json:"networks"`
}

// GatewayNetwork is what a gateway expects for one network.
type GatewayNetwork struct {
	Network       string         `yaml:"network" json:"network"`
	Label         uint32         `yaml:"label" json:"label,omitempty"`                   // of IP payload, 16 … 2^20−1
	EthernetLabel uint32         `yaml:"ethernet_label" json:"ethernet_label,omitempty"` // of Ethernet payload
	VNI           uint32         `yaml:"vni" json:"vni,omitempty"`                       // default: the network's
	Prefixes      []netip.Prefix `yaml:"prefixes" json:"prefixes,omitempty"`             // reached through it
	MACs          []MAC          `yaml:"macs" json:"macs,omitempty"`                     // bridged to it
	Flood         bool           `yaml:"flood" json:"flood,omitempty"`                   // gets copies of broadcast, unknown and multicast
}

// Policy is a list of rules, asked in order; the first that matches decides.
type Policy struct {
	Name  string `yaml:"name" json:"name"`
	Rules []Rule `yaml:"rules" json:"rules"`
}

// Action is what a rule does.
type Action string

const (
	Allow Action = "allow"
	Deny  Action = "deny"
)

// Direction is seen from the workload.
type Direction string

const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
)

// Rule matches the first packet of a flow; replies pass with it. What no rule
// matches is denied in a direction in which a rule exists, else allowed.
type Rule struct {
	Direction Direction    `yaml:"direction" json:"direction"`
	Action    Action       `yaml:"action" json:"action"`
	Protocol  string       `yaml:"protocol" json:"protocol,omitempty"` // tcp, udp, icmp, icmp6, a number; empty: any
	Remote    netip.Prefix `yaml:"remote" json:"remote"`               // zero: any
	Ports     string       `yaml:"ports" json:"ports,omitempty"`       // destination port or range, "80", "8000-8080"
	Log       bool         `yaml:"log" json:"log,omitempty"`
}

// MAC is an Ethernet address that reads and writes as text; zero when absent.
type MAC [6]byte

func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// IsZero reports whether the address is absent.
func (m MAC) IsZero() bool { return m == MAC{} }

// RouterMAC is the vrouter's address toward every workload, and its inner
// address on routed VXLAN: a VRRP address (RFC 9568), as OpenContrail uses.
var RouterMAC = MAC{0x00, 0x00, 0x5e, 0x00, 0x01, 0x00}

// FirstLabel is the first MPLS label that RFC 3032 leaves free.
const FirstLabel = 16

// Label is the MPLS label by which every node knows this network's IP packets.
func (n Network) Label() uint32 { return FirstLabel + 2*n.ID }

// EthernetLabel is the label of this network's Ethernet frames.
func (n Network) EthernetLabel() uint32 { return FirstLabel + 2*n.ID + 1 }
