// Package model defines and validates a fleet's desired state: nodes, virtual
// networks, ports, routes, gateways and policies. It uses no file, clock, socket or
// kernel.
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

// Settings apply to the whole fleet.
type Settings struct {
	VXLANPort     uint16 `yaml:"vxlan_port" json:"vxlan_port,omitempty"`         // default 4789
	AllowFragment bool   `yaml:"allow_fragment" json:"allow_fragment,omitempty"` // outer IPv4 headers without DF
	// Locators is an IPv6 prefix of at most 56 bits: the pool from which FreeLocator chooses. If
	// it has 32 bits, a node without a locator gets it followed by its first IPv4 underlay
	// address.
	Locators  netip.Prefix `yaml:"locators" json:"locators,omitzero"`
	AnySource bool         `yaml:"any_source" json:"any_source,omitempty"` // accept overlay packets from any underlay address, not only of nodes and gateways
	// FlowExport sends the flows of all nodes to a collector.
	FlowExport FlowExport `yaml:"flow_export" json:"flow_export,omitzero"`
}

// Encapsulation is the format of packets between nodes.
type Encapsulation string

const (
	// Direct is not a tunnel. Nodes on one Ethernet link send the IP packets of workloads
	// without outer headers. The MAC addresses contain labels, which identify the network
	// and the nodes.
	Direct   Encapsulation = "direct"
	MPLSoGRE Encapsulation = "mpls-gre" // RFC 4023
	MPLSoUDP Encapsulation = "mpls-udp" // RFC 7510
	VXLAN    Encapsulation = "vxlan"    // RFC 7348
	// Translated packets have IPv6 addresses that contain the node, the network and a part
	// of the workload's address. Two nodes use it if both have locators and offer Direct, but
	// frames of Direct do not pass between them. Translated cannot be in the encapsulations
	// of a node.
	Translated Encapsulation = "translated"
)

// Node is a compute node.
type Node struct {
	Name           string          `yaml:"name" json:"name"`
	Underlay       []netip.Addr    `yaml:"underlay" json:"underlay"`                       // several addresses of one family: parallel links
	Encapsulations []Encapsulation `yaml:"encapsulations" json:"encapsulations,omitempty"` // preferred first; default direct, vxlan, mpls-udp, mpls-gre
	// Locator is the IPv6 /64 or /80 prefix that the underlay routes to the node. With locators,
	// direct also works between nodes on different links.
	Locator netip.Prefix `yaml:"locator" json:"locator,omitzero"`
	BGP     *BGP         `yaml:"bgp" json:"bgp,omitempty"` // nil: the agent speaks no BGP
}

// Forwarding is the forwarding mode of a network.
type Forwarding string

const (
	L3   Forwarding = "l3"   // route IP only; the default
	L2   Forwarding = "l2"   // bridge only
	L2L3 Forwarding = "l2l3" // frames for the router's MAC are routed, others bridged
)

// Network is a virtual network. Its VRF has the same id.
type Network struct {
	Name       string         `yaml:"name" json:"name"`
	ID         uint32         `yaml:"id" json:"id"`                     // 1 … 4095: the number of the VRF; labels derive from it
	Tenant     string         `yaml:"tenant" json:"tenant,omitempty"`   // subnets of one tenant do not overlap
	Subnets    []netip.Prefix `yaml:"subnets" json:"subnets,omitempty"` // the first address of each is the gateway
	Ranges     []Range        `yaml:"ranges" json:"ranges,omitempty"`   // for allocation of addresses; default: the subnets
	VNI        uint32         `yaml:"vni" json:"vni,omitempty"`         // 1 … 2^24−1; default: id
	Forwarding Forwarding     `yaml:"forwarding" json:"forwarding,omitempty"`
	Policies   []string       `yaml:"policies" json:"policies,omitempty"`
	// NodeAccess connects each node that has ports of the network (Attachment.Host). Packets to
	// addresses outside the subnets go to the kernel of the sender's node.
	NodeAccess bool `yaml:"node_access" json:"node_access,omitempty"`
	// NATPool are prefixes of which each such node has an address of each family: packets that leave the
	// network have it as their source. Port.Floating are addresses of the pool, too.
	NATPool []netip.Prefix `yaml:"nat_pool" json:"nat_pool,omitempty"`
	// NATPorts is the number of source ports of a node. Nodes then share the addresses of the pool's first prefix of each
	// family; see NodeShare. 0: each node has its own address.
	NATPorts uint16 `yaml:"nat_ports" json:"nat_ports,omitempty"`
	// Import has the route targets of the routes that the network imports, and Export those of its own
	// routes. RD distinguishes its routes in BGP.
	Import []RouteTarget      `yaml:"import" json:"import,omitempty"`
	Export []RouteTarget      `yaml:"export" json:"export,omitempty"`
	RD     RouteDistinguisher `yaml:"rd" json:"rd,omitzero"`
	DHCP   bool               `yaml:"dhcp" json:"dhcp,omitempty"`     // each agent answers the DHCP clients of its ports
	DNS    []netip.Addr       `yaml:"dns" json:"dns,omitempty"`       // addresses, at most one of each family, at which each agent answers DNS queries of its ports
	Origin Origin             `yaml:"origin" json:"origin,omitempty"` // the client that created the network
}

// Attachment is the device of a port.
type Attachment struct {
	Netns     string `yaml:"netns" json:"netns,omitempty"`         // name or path of a network namespace; the agent creates a pair of devices
	Interface string `yaml:"interface" json:"interface,omitempty"` // device in the namespace; default eth0
	Device    string `yaml:"device" json:"device,omitempty"`       // instead of Netns: an existing device of the node (tap, veth)
	// Host, instead of Netns and Device, gives the node itself an address in
	// the network. Workloads can only reply to the node, unless the port's
	// policies allow more.
	Host bool `yaml:"host" json:"host,omitempty"`
	// AcceptRA lets the workload's device take addresses and routes from router
	// advertisements.
	AcceptRA bool `yaml:"accept_ra" json:"accept_ra,omitempty"`
}

// Port is a workload's attachment to a network, on one node.
type Port struct {
	Name    string `yaml:"name" json:"name"`
	Network string `yaml:"network" json:"network"`
	Node    string `yaml:"node" json:"node"`
	MAC     MAC    `yaml:"mac" json:"mac"`
	// NATSlot, of a port that connects a node to a network with NATPorts, selects the node's share of the pool; 0: none.
	NATSlot uint16       `yaml:"nat_slot" json:"nat_slot,omitempty"`
	IPs     []netip.Addr `yaml:"ips" json:"ips,omitempty"`
	// Floating are addresses of the network's pool, at most one of a family, that stand for the port's outside
	// the network. All ports of a node share those of its port with Attachment.Host.
	Floating []netip.Addr `yaml:"floating" json:"floating,omitempty"`
	Attach   Attachment   `yaml:"attach" json:"attach"`
	Policies []string     `yaml:"policies" json:"policies,omitempty"` // checked before the network's
	// AllowSources are prefixes that the workload may send from in addition to its
	// addresses, for example as a router or a firewall.
	AllowSources []netip.Prefix `yaml:"allow_sources" json:"allow_sources,omitempty"`
	Router       bool           `yaml:"router" json:"router,omitempty"` // the workload may send router advertisements and answer DHCP
	Bandwidth    Bandwidth      `yaml:"bandwidth" json:"bandwidth,omitzero"`
	Origin       Origin         `yaml:"origin" json:"origin,omitempty"` // the client that created the port
	Owner        string         `yaml:"owner" json:"owner,omitempty"`   // the client's id of the port, such as a container id
	// OfPod is the port's Kubernetes pod; nil: none. Copies of a port share it, so it must not be changed.
	OfPod *Pod `yaml:"pod" json:"pod,omitempty"`
}

// Pod returns the port's Kubernetes pod; zero: none.
func (p Port) Pod() Pod {
	if p.OfPod == nil {
		return Pod{}
	}
	return *p.OfPod
}

// Pod is a Kubernetes pod.
type Pod struct {
	Namespace string `yaml:"namespace" json:"namespace"`
	Name      string `yaml:"name" json:"name"`
	UID       string `yaml:"uid" json:"uid,omitempty"`
}

// String is NAMESPACE/NAME, or "" without a pod.
func (p Pod) String() string {
	if p == (Pod{}) {
		return ""
	}
	return p.Namespace + "/" + p.Name
}

// PortRequest asks for a port. Empty name, MAC and addresses are allocated. The default node is
// that of the agent that is asked. A port without an attachment is only added to the state; a
// later change attaches it.
type PortRequest struct {
	Port
	// From are ranges, within the network's subnets, from which addresses are allocated; empty:
	// from all subnets.
	From []Range `json:"from,omitempty"`
	// Four and Six ask for an IPv4 or IPv6 address only. Neither: an address of each family of the
	// network's subnets.
	Four bool `json:"four,omitempty"`
	Six  bool `json:"six,omitempty"`
	// Replaces are ports that the same commit deletes. Their addresses are free for this port, and
	// no other port can take them in between.
	Replaces []string `json:"replaces,omitempty"`
}

// Origin is the client that created an object.
type Origin string

// The origins. `vrouter apply` replaces applied ports and keeps the others.
const (
	Applied Origin = ""
	Added   Origin = "added" // vrouter port add
	Docker  Origin = "docker"
	CNI     Origin = "cni"
	// NodeAccess is the agent, which connects its node to the networks with node_access.
	NodeAccess Origin = "node"
)

// String is the client's name for users.
func (o Origin) String() string {
	switch o {
	case Added:
		return "`vrouter port add`"
	case Docker:
		return "Docker"
	case CNI:
		return "CNI"
	case NodeAccess:
		return "the agent (node_access)"
	}
	return "`vrouter apply`"
}

// Route is a static route of a network. A route with several vias is an ECMP
// route.
type Route struct {
	Network string       `yaml:"network" json:"network"`
	Prefix  netip.Prefix `yaml:"prefix" json:"prefix"`
	Via     []Via        `yaml:"via" json:"via,omitempty"`
	Discard bool         `yaml:"discard" json:"discard,omitempty"` // instead of via
}

// Via is a next hop of a route: a port on any node, or a gateway.
type Via struct {
	Port    string `yaml:"port" json:"port,omitempty"`
	Gateway string `yaml:"gateway" json:"gateway,omitempty"`
}

// Gateway is a tunnel endpoint outside the fleet: a hardware router, or another
// overlay.
type Gateway struct {
	Name          string           `yaml:"name" json:"name"`
	Addresses     []netip.Addr     `yaml:"addresses" json:"addresses"`
	Encapsulation Encapsulation    `yaml:"encapsulation" json:"encapsulation"`
	MAC           MAC              `yaml:"mac" json:"mac,omitempty"`           // MAC of its router, for routed VXLAN; default 00:00:5e:00:01:00
	Floating      bool             `yaml:"floating" json:"floating,omitempty"` // hosts behind it know workloads by Port.Floating
	Networks      []GatewayNetwork `yaml:"networks" json:"networks"`
}

// GatewayNetwork has the values that a gateway uses for one network.
type GatewayNetwork struct {
	Network       string         `yaml:"network" json:"network"`
	Label         uint32         `yaml:"label" json:"label,omitempty"`                   // of IP payload, 16 … 2^20−1
	EthernetLabel uint32         `yaml:"ethernet_label" json:"ethernet_label,omitempty"` // of Ethernet payload
	VNI           uint32         `yaml:"vni" json:"vni,omitempty"`                       // default: the network's
	Prefixes      []netip.Prefix `yaml:"prefixes" json:"prefixes,omitempty"`             // reached through the gateway
	MACs          []MAC          `yaml:"macs" json:"macs,omitempty"`                     // MAC addresses of devices behind the gateway
	Flood         bool           `yaml:"flood" json:"flood,omitempty"`                   // receives copies of broadcast, unknown unicast and multicast
}

// Policy is a list of rules. The first rule that matches decides.
type Policy struct {
	Name  string `yaml:"name" json:"name"`
	Rules []Rule `yaml:"rules" json:"rules"`
}

// Action is the action of a rule.
type Action string

const (
	Allow Action = "allow"
	Deny  Action = "deny"
)

// Direction is the direction from the workload's view.
type Direction string

const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
)

// Rule matches the first packet of a flow. Replies of an allowed flow are allowed.
// A packet that matches no rule is denied if a rule has its direction, else
// allowed.
type Rule struct {
	Direction Direction    `yaml:"direction" json:"direction"`
	Action    Action       `yaml:"action" json:"action"`
	Protocol  string       `yaml:"protocol" json:"protocol,omitempty"` // tcp, udp, sctp, icmp, icmp6, gre or a number; empty: any
	Remote    netip.Prefix `yaml:"remote" json:"remote"`               // zero: any
	Ports     string       `yaml:"ports" json:"ports,omitempty"`       // destination port or range, "80", "8000-8080"
	Log       bool         `yaml:"log" json:"log,omitempty"`
}

// MAC is an Ethernet address; zero: absent. As text it is "02:00:00:00:00:01".
type MAC [6]byte

func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// IsZero reports whether the address is absent.
func (m MAC) IsZero() bool { return m == MAC{} }

// RouterMAC is the vrouter's address toward workloads, and its inner address in
// routed VXLAN: a VRRP address (RFC 9568), as in OpenContrail.
var RouterMAC = MAC{0x00, 0x00, 0x5e, 0x00, 0x01, 0x00}

// FirstLabel is the first MPLS label that RFC 3032 does not reserve.
const FirstLabel = 16

// Label is the MPLS label of this network's IP packets. It is the same on every
// node.
func (n Network) Label() uint32 { return FirstLabel + 2*n.ID }

// EthernetLabel is the label of this network's Ethernet frames.
func (n Network) EthernetLabel() uint32 { return FirstLabel + 2*n.ID + 1 }
