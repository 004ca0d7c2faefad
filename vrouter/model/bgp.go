package model

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/lists"
)

// BGP makes the agent of a node a BGP speaker. The agent announces the node's ports to its neighbours, and
// the node uses the routes that the neighbours announce.
type BGP struct {
	ASN       uint32      `yaml:"asn" json:"asn"`
	RouterID  netip.Addr  `yaml:"router_id" json:"router_id"`
	Port      uint16      `yaml:"port" json:"port,omitempty"`         // TCP port to listen on; 0: DefaultBGPPort
	Families  []BGPFamily `yaml:"families" json:"families,omitempty"` // empty: all
	Neighbors []Neighbor  `yaml:"neighbors" json:"neighbors"`
}

// Neighbor is a router with which a node exchanges routes.
type Neighbor struct {
	Address  netip.Addr `yaml:"address" json:"address"`
	ASN      uint32     `yaml:"asn" json:"asn,omitempty"`           // 0: that of the node: an internal neighbour
	Port     uint16     `yaml:"port" json:"port,omitempty"`         // TCP port to which the node connects; 0: DefaultBGPPort
	Password string     `yaml:"password" json:"password,omitempty"` // of TCP MD5 (RFC 2385)
	// Encapsulation is the encapsulation of packets by routes that announce none (RFC 9012). Empty: VXLAN for
	// EVPN routes if the node offers it; otherwise the first of MPLSoUDP and MPLSoGRE that the node offers.
	Encapsulation Encapsulation `yaml:"encapsulation" json:"encapsulation,omitempty"`
	// BFD is the interval of BFD packets (RFC 5880, 5881), with which the node finds out that the neighbour has failed.
	// 0: no BFD.
	BFD Duration `yaml:"bfd" json:"bfd,omitzero"`
	// MaximumPrefix is the maximum number of paths of the neighbour in a family. Its session ends if it announces more.
	// 0: DefaultMaximumPrefix.
	MaximumPrefix uint32 `yaml:"maximum_prefix" json:"maximum_prefix,omitempty"`
}

// BGPFamily is an address family of BGP.
type BGPFamily string

const (
	VPNv4 BGPFamily = "vpnv4" // RFC 4364
	VPNv6 BGPFamily = "vpnv6" // RFC 4659
	EVPN  BGPFamily = "evpn"  // RFC 7432, 8365, 9136
)

// BGPFamilies are all families.
var BGPFamilies = []BGPFamily{VPNv4, VPNv6, EVPN}

// DefaultBGPPort is the TCP port of BGP (RFC 4271).
const DefaultBGPPort = 179

// DefaultMaximumPrefix is the default of Neighbor.MaximumPrefix.
const DefaultMaximumPrefix = 1_000_000

// Limits of BGP.
const (
	maxNeighbors = 64
	maxPassword  = 80 // TCP_MD5SIG_MAXKEYLEN of Linux

	leastBFD = Duration(10 * time.Millisecond)
	mostBFD  = Duration(10 * time.Second)
)

// Tunnels returns the encapsulations that a node offers for packets to other routers.
func (n Node) Tunnels() []Encapsulation {
	return keep(n.Encapsulations, func(e Encapsulation) bool { return e != Direct })
}

// RouterMAC returns the inner destination MAC address of routed VXLAN packets to the node. Nodes with BGP
// have different ones, because Linux maps each MAC address to one tunnel endpoint.
func (n Node) RouterMAC() MAC {
	if n.BGP == nil {
		return RouterMAC
	}
	id := n.BGP.RouterID.As4()
	return MAC{0x02, 0x00, id[0], id[1], id[2], id[3]}
}

// checkBGP checks the BGP configuration of node n. routers maps router ids to the names of the nodes that were checked
// before. checkBGP adds n to routers.
func (v *validation) checkBGP(n Node, routers map[netip.Addr]string) {
	b := n.BGP
	if b == nil {
		return
	}
	fail := func(format string, args ...any) { v.fail("node", n.Name, "bgp: %s", fmt.Sprintf(format, args...)) }
	if b.ASN == 0 {
		fail("asn: 0 is not an AS number; write one such as 64512")
	}
	if !b.RouterID.Is4() || b.RouterID.IsUnspecified() || b.RouterID.IsMulticast() {
		fail("router_id: it must be an IPv4 address, such as an underlay address of the node")
	}
	if other, taken := routers[b.RouterID]; taken {
		fail("router_id: %s is already used by node %q; choose another", b.RouterID, other)
	}
	routers[b.RouterID] = n.Name
	if len(n.Tunnels()) == 0 {
		fail("the node offers no tunnel to other routers; add vxlan, mpls-udp or mpls-gre to its encapsulations")
	}
	for i, f := range b.Families {
		switch {
		case !slices.Contains(BGPFamilies, f):
			fail("families: %q is not a family; write one of %s", string(f), strings.Join(wordsOf(BGPFamilies), ", "))
		case slices.Contains(b.Families[:i], f):
			fail("families: %s is listed twice; remove one", f)
		}
	}
	switch {
	case len(b.Neighbors) == 0:
		fail("neighbors: at least one is required, such as {address: 192.0.2.254}")
	case len(b.Neighbors) > maxNeighbors:
		fail("neighbors: there are %d, but at most %d are allowed; use a route reflector", len(b.Neighbors), maxNeighbors)
	}
	seen := map[netip.Addr]bool{}
	for _, o := range b.Neighbors {
		switch {
		case !usable(o.Address):
			fail("neighbors: address: %s cannot be the address of a router; write a unicast one such as 192.0.2.254", o.Address)
		case slices.Contains(n.Underlay, o.Address):
			fail("neighbors: address: %s is the node's own address", o.Address)
		case seen[o.Address]:
			fail("neighbors: address: %s is listed twice; remove one", o.Address)
		}
		seen[o.Address] = true
		if len(o.Password) > maxPassword {
			fail("neighbor %s: password: it has %d characters, but at most %d are allowed", o.Address, len(o.Password), maxPassword)
		}
		if o.BFD != 0 && (o.BFD < leastBFD || o.BFD > mostBFD) {
			fail("neighbor %s: bfd: %s is not from %s to %s", o.Address, o.BFD, leastBFD, mostBFD)
		}
		if o.Encapsulation != "" && !slices.Contains(n.Tunnels(), o.Encapsulation) {
			fail("neighbor %s: encapsulation: %q is not a tunnel that the node offers; write one of %s", o.Address, string(o.Encapsulation), strings.Join(wordsOf(n.Tunnels()), ", "))
		}
	}
}

func wordsOf[S ~string](all []S) []string {
	return lists.Map(all, func(s S) string { return string(s) })
}
