// Package system has the systems under test, which carry packets between two
// endpoints. Each system is one file and one line in the registry. Its code runs on
// each node, inside the node's agent.
package system

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"strings"
	"time"

	"windtunnel/internal/lists"
	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// System carries packets between endpoints.
type System interface {
	Name() string
	// About describes the system.
	About() About
	// Needs lists the kernel features and the installed programs that the system needs.
	// Package probe defines the names of the features.
	Needs() ([]string, []program.Program)
	// Attach brings the system up on one node. The endpoints' namespaces exist.
	Attach(n *Node) error
	// Detach removes everything that Attach made, and a change that is still in place. It also works after a
	// failed Attach.
	Detach(n *Node) error
	// Devices returns the devices on this node that the meter reads, in path order
	// from the endpoint to the fabric.
	Devices(n *Node) []Device
}

// About describes a system: what it is, and what it can do.
type About struct {
	Title       string // name in sentences, such as "the bridge"; if empty, sentences use Name
	Description string // for reports
	// SetUp is how much longer than a bridge it takes until traffic can flow. It is used to
	// estimate the duration of a run.
	SetUp time.Duration
	// Overhead is the number of bytes of the headers that the system adds to a packet of the
	// largest size. See MTU.
	Overhead int
	// PerPacket is 0 if each frame of the fabric carries one packet. If a frame can carry several packets, Overhead has two parts: one
	// that occurs once in a frame, and one that occurs once for each packet. PerPacket is the length of the second part, in bytes,
	// without the packet's Ethernet header.
	PerPacket int
	// LeastMTU is the smallest MTU of a fabric on which the system works. 0 means the sum of
	// suite.LeastMTU, which IPv6 needs, and Overhead.
	LeastMTU int
	// AddedBytes is the number of bytes that the system adds to each data packet, by IP
	// version. If it is nil, this number is the difference between the fabric's MTU and the
	// endpoints' MTU.
	AddedBytes map[int]int

	// Unusable is the reason why this machine cannot run the system; "" if it can.
	Unusable string
	// NotColocated is the reason why both endpoints cannot be on one node; "" if they can.
	NotColocated string
	Gateway      bool // connects workloads of the first node to hosts outside: placement gateway, and no other
	OneDevice    bool // uses one fabric device, such as a bond: frames would loop over parallel links
	OneLink      bool // uses one NIC and one route to each node

	OnNode    bool // the endpoints are the nodes themselves and not containers
	IPv4Only  bool // cannot carry IPv6
	VMs       bool // endpoints may be VMs: the system can connect their taps
	HostVNIC  bool // can give the nodes themselves a virtual NIC
	Publishes bool // another node reaches a container only by published ports of its node
	InCluster bool // is part of a Kubernetes cluster, and runs only there
}

// MTU returns the largest MTU of the endpoints' devices with which no packet is fragmented on a
// fabric of the given MTU.
func MTU(s System, fabric int) int { return fabric - s.About().Overhead }

// Supports returns nil if a system supports this placement and fabric, else the reason.
func Supports(s System, p suite.Placement, f suite.Fabric) error {
	switch about := s.About(); {
	case about.Unusable != "":
		return errors.New(about.Unusable)
	case about.NotColocated != "" && p == suite.Colocated:
		return fmt.Errorf("%s does not support placement colocated: %s", s.Name(), about.NotColocated)
	case about.Gateway != (p == suite.Gateway) && !about.OnNode:
		if about.Gateway {
			return fmt.Errorf("%s connects workloads to hosts outside the virtual network; set placement: gateway in a suite, as the suite gateway does", s.Name())
		}
		return fmt.Errorf("%s does not support placement gateway: it does not connect workloads to hosts outside the virtual network", s.Name())
	case about.OneLink && f.Links > 1:
		return fmt.Errorf("%s uses one NIC and one route to each node: it cannot use %d links", s.Name(), f.Links)
	case about.OneDevice && f.Links > 1 && f.Team != suite.Bond:
		return fmt.Errorf("%s uses one fabric device, and switched frames would loop over %d parallel links; set team: bond in the fabric", s.Name(), f.Links)
	}
	return nil
}

// SetUps returns About.SetUp of each system, by name.
func SetUps() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, s := range Registry() {
		if setUp := s.About().SetUp; setUp > 0 {
			all[s.Name()] = setUp
		}
	}
	return all
}

// LeastMTUs returns the smallest MTU of a fabric on which each system works, by name.
func LeastMTUs() map[string]int {
	all := map[string]int{}
	for _, s := range Registry() {
		about := s.About()
		all[s.Name()] = cmp.Or(about.LeastMTU, suite.LeastMTU+about.Overhead)
	}
	return all
}

// Titles returns the titles of the systems that have one, by name.
func Titles() map[string]string {
	all := map[string]string{}
	for _, s := range Registry() {
		if title := s.About().Title; title != "" {
			all[s.Name()] = title
		}
	}
	return all
}

// Node is the node on which a system is attached.
type Node struct {
	Index     int          // from 0
	Name      string       // name of its namespace; names of its containers' namespaces begin with it
	Space     *space.Space // the node's namespace
	Fabric    []string     // fabric devices, one for each link; if links are bonded, the bond
	Team      []string     // if links are bonded: the NICs below Fabric[0], which the meter counts
	Underlay  []netip.Addr // IPv4 address of each node, by node index
	MTU       int          // of the fabric devices
	CPUs      []int
	Steer     bool // receive work arrives on CPUs of other nodes and must be steered
	Endpoints []Endpoint
	// Everywhere has the containers of all nodes, including this one, for systems
	// with a control plane.
	Everywhere []NodeEndpoint
	// Spare is the container that joins and leaves the network if the workload has `change: ports`. Spares has those of
	// all nodes.
	Spare  Endpoint
	Spares []NodeEndpoint

	daemons []*running
}

// peers yields the underlay addresses of the other nodes: node index → address.
func (n *Node) peers() iter.Seq2[int, netip.Addr] {
	return func(yield func(int, netip.Addr) bool) {
		for i, addr := range n.Underlay {
			if i != n.Index && !yield(i, addr) {
				return
			}
		}
	}
}

// NodeEndpoint is a container and its node.
type NodeEndpoint struct {
	Node   int
	Name   string // "c1"
	V4, V6 netip.Prefix
	MAC    net.HardwareAddr
}

// Endpoint is a container on the node, or the node itself with a virtual NIC.
type Endpoint struct {
	Name   string       // "c1"; empty for the node itself
	Space  *space.Space // the node's for the node itself; nil for a VM
	Guest  *Guest       // of a VM; nil for a container
	V4, V6 netip.Prefix
	MAC    net.HardwareAddr
}

// Device is one hop.
type Device struct {
	Endpoint string // container's name, empty for the node
	Name     string
	Role     string // endpoint, vif, bridge, tunnel, fabric
}

// EndpointDevice is the name of a container's network device.
const EndpointDevice = "eth0"

// Registry lists every system.
func Registry() []System {
	return []System{
		Raw{},
		Bridge{},
		BridgeNAT{},
		VXLAN{},
		Macvlan{},
		EVPN{},
		OVS{"vxlan"},
		OVS{"gre"},
		VRouter{Encap: "mpls-gre"},
		VRouter{Encap: "mpls-udp"},
		VRouter{Encap: "mpls-udp", Checksum: true},
		VRouter{Encap: "direct", BigTCP: true},
		VRouter{Encap: "direct"},
		VRouter{Encap: "direct", Rules: 100},
		VRouter{Encap: "direct", Netkit: true},
		VRouter{Encap: vrouterTranslated},
		VRouter{Encap: "vxlan"},
		VRouterDocker{},
		VRouterGateway{ByNAT},
		VRouterGateway{ByKernel},
		VRouterGateway{ByEVPN},
		Flannel{flannelVXLAN},
		Flannel{flannelUDP},
		Flannel{flannelHostGW},
		Weave{},
		WireGuard{},
		DockerOverlay{},
		DockerBridge{},
		Host{},
		CNI{},
		ServiceIP{},
	}
}

// ByName finds a system.
func ByName(name string) (System, error) {
	for _, s := range Registry() {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("there is no system %q; systems: %s", name, strings.Join(Names(), ", "))
}

// Names lists the systems' names.
func Names() []string {
	return lists.Map(Registry(), System.Name)
}
