// Package bgp exchanges the routes of virtual networks with routers outside the fleet: VPNv4 and
// VPNv6 (RFC 4364, 4659) and EVPN (RFC 7432, 8365, 9136). Export makes the paths that a node
// announces, and Resolve chooses the routes of received paths. Both are pure. Table keeps the
// received paths, and Speaker speaks the protocol, with GoBGP.
package bgp

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/vrouter/model"
)

// Kind is the kind of a path's destination.
type Kind string

const (
	VPN       Kind = "vpn"       // a prefix, with a label
	Station   Kind = "mac"       // EVPN type 2: a MAC address, and an IP address or none
	Multicast Kind = "multicast" // EVPN type 3: copies of broadcast, unknown unicast and multicast
	Prefix    Kind = "prefix"    // EVPN type 5: a prefix, with a VNI or label
)

// Path is a route as BGP announces it.
type Path struct {
	Family model.BGPFamily          `json:"family"`
	Kind   Kind                     `json:"kind"`
	RD     model.RouteDistinguisher `json:"rd"`
	// Prefix is the destination of VPN and Prefix. Of Station it is the IP address, or invalid.
	Prefix netip.Prefix `json:"prefix,omitzero"`
	MAC    model.MAC    `json:"mac,omitzero"` // of Station
	// Origin is the address of the router that announced a Multicast, part of the path's key.
	Origin  netip.Addr `json:"origin,omitzero"`
	NextHop netip.Addr `json:"next_hop"`
	// Label is the label of a VPN path. Of EVPN it has 24 bits, and is a VNI, or a label in the
	// first 20 bits (RFC 8365 section 5.1.3).
	Label       uint32              `json:"label"`
	RoutedLabel uint32              `json:"routed_label,omitempty"` // of Station: that of routed packets; 0: none
	RouterMAC   model.MAC           `json:"router_mac,omitzero"`    // inner MAC address of routed VXLAN (RFC 9135 section 8.1)
	Targets     []model.RouteTarget `json:"targets"`
	Tunnels     []bgp.TunnelType    `json:"tunnels,omitempty"` // encapsulations (RFC 9012); empty: not announced
	Unusable    string              `json:"unusable,omitempty"`

	// Fields that only received paths have.
	Neighbor  netip.Addr `json:"neighbor,omitzero"`
	LocalPref uint32     `json:"local_pref,omitempty"`
	MED       uint32     `json:"med,omitempty"`
	ASPath    int        `json:"as_path,omitempty"` // length
	Source    uint8      `json:"source,omitempty"`  // attribute ORIGIN
	External  bool       `json:"external,omitempty"`
	Stale     bool       `json:"-"` // of a session that ended, or of a former run of the agent
}

// Key identifies a path among those of all neighbours.
type Key struct {
	Neighbor netip.Addr
	Family   model.BGPFamily
	Kind     Kind
	RD       model.RouteDistinguisher
	Prefix   netip.Prefix
	MAC      model.MAC
	Origin   netip.Addr
}

// Key returns the fields by which a withdrawal names the path.
func (p *Path) Key() Key {
	return Key{p.Neighbor, p.Family, p.Kind, p.RD, p.Prefix, p.MAC, p.Origin}
}

// Destination is the path's destination, for users.
func (p *Path) Destination() string {
	switch {
	case p.Kind == Multicast:
		return "broadcast"
	case p.Kind == Station && p.Prefix.IsValid():
		return p.MAC.String() + " " + p.Prefix.Addr().String()
	case p.Kind == Station:
		return p.MAC.String()
	}
	return p.Prefix.String()
}

// better orders paths to one destination, best first, by the rules of RFC 4271 section 9.1 that
// distinguish routers. Paths that it does not distinguish are used together. MEDs of different
// neighbouring networks are compared too.
func better(a, b *Path) int {
	return cmp.Or(
		cmp.Compare(b.LocalPref, a.LocalPref), cmp.Compare(a.ASPath, b.ASPath), cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.MED, b.MED), cmp.Compare(toInt(b.External), toInt(a.External)),
	)
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tunnelTypes are the types of RFC 9012 of the encapsulations, as this program announces them.
var tunnelTypes = map[model.Encapsulation]bgp.TunnelType{
	model.VXLAN: bgp.TUNNEL_TYPE_VXLAN, model.MPLSoUDP: bgp.TUNNEL_TYPE_MPLS_IN_UDP, model.MPLSoGRE: bgp.TUNNEL_TYPE_MPLS_IN_GRE,
}

// encapsulationOf returns the encapsulation of a tunnel type; "": there is none. Some routers
// announce MPLS over GRE as GRE.
func encapsulationOf(t bgp.TunnelType) model.Encapsulation {
	if t == bgp.TUNNEL_TYPE_GRE {
		return model.MPLSoGRE
	}
	for e, of := range tunnelTypes {
		if of == t {
			return e
		}
	}
	return ""
}

// TunnelNames lists the encapsulations that the path announces, for users.
func (p *Path) TunnelNames() string {
	var names []string
	for _, t := range p.Tunnels {
		names = append(names, tunnelName(t))
	}
	return strings.Join(names, " ")
}

// tunnelName is the name of a tunnel type, for users.
func tunnelName(t bgp.TunnelType) string {
	if e := encapsulationOf(t); e != "" {
		return string(e)
	}
	return fmt.Sprintf("tunnel type %d (%s)", uint16(t), t)
}
