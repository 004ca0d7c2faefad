// Package system has the systems under test, which carry packets between two
// endpoints. Each system is one file and one line in the registry. Its code runs on
// each node, inside the node's agent.
package system

import (
	"fmt"
	"iter"
	"net"
	"net/netip"
	"strings"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// System carries packets between endpoints.
type System interface {
	Name() string
	// Describe describes the system for reports.
	Describe() string
	// Features lists the kernel features that the system needs. Package probe
	// defines their names.
	Features() []string
	// Supports returns nil if the system supports this placement and fabric, else
	// the reason.
	Supports(p suite.Placement, f suite.Fabric) error
	// MTU returns the largest MTU of the endpoints' devices with which no packet is
	// fragmented on a fabric of the given MTU.
	MTU(fabric int) int
	// OnNode reports whether the endpoints are the nodes themselves and not
	// containers.
	OnNode() bool
	// Attach brings the system up on one node. The endpoints' namespaces exist.
	Attach(n *Node) error
	// Detach removes everything that Attach made. It also works after a failed
	// Attach.
	Detach(n *Node) error
	// Devices returns the devices on this node that the meter reads, in path order
	// from the endpoint to the fabric.
	Devices(n *Node) []Device
}

// Programmed is implemented by systems that need installed programs.
type Programmed interface{ Programs() []program.Program }

// Programs returns the executables that a system needs.
func Programs(s System) []program.Program {
	if p, ok := s.(Programmed); ok {
		return p.Programs()
	}
	return nil
}

// SetUps returns, by system name, how much longer a system takes than a bridge until
// traffic can flow. Only systems with a method SetUp have an entry.
func SetUps() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, s := range Registry() {
		if slow, says := s.(interface{ SetUp() time.Duration }); says {
			all[s.Name()] = slow.SetUp()
		}
	}
	return all
}

// Titles returns the titles of the systems that have a method Title, by system
// name. Sentences use the titles.
func Titles() map[string]string {
	all := map[string]string{}
	for _, s := range Registry() {
		if titled, says := s.(interface{ Title() string }); says {
			all[s.Name()] = titled.Title()
		}
	}
	return all
}

// AddedBytes returns the number of bytes that a system adds to each data packet of an IP version
// (4 or 6). ok is false if this number is the difference between the fabric's MTU and the
// endpoints' MTU. That is so for most systems.
func AddedBytes(s System, ipVersion int) (bytes int, ok bool) {
	if a, has := s.(interface{ AddedBytes(int) (int, bool) }); has {
		return a.AddedBytes(ipVersion)
	}
	return 0, false
}

// IPv4Only reports whether a system cannot carry IPv6. Such a system has a method
// IPv4Only.
func IPv4Only(s System) bool {
	_, only := s.(interface{ IPv4Only() })
	return only
}

// OnNode reports whether the endpoints of the named system are the nodes themselves.
func OnNode(name string) bool {
	s, err := ByName(name)
	return err == nil && s.OnNode()
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
		VXLAN{},
		Macvlan{},
		EVPN{},
		OVS{"vxlan"},
		OVS{"gre"},
		VRouter{Encap: "mpls-gre"},
		VRouter{Encap: "mpls-udp"},
		VRouter{Encap: "direct"},
		VRouter{Encap: "direct", Rules: 100},
		VRouter{Encap: "direct", Netkit: true},
		VRouter{Encap: vrouterTranslated},
		VRouter{Encap: "vxlan"},
		VRouterDocker{},
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
	var names []string
	for _, s := range Registry() {
		names = append(names, s.Name())
	}
	return names
}
