// Package bgp exchanges the routes of virtual networks with routers outside the fleet: VPNv4 and
// VPNv6 (RFC 4364, 4659) and EVPN (RFC 7432, 8365, 9136). Export returns the paths that a node
// announces. Resolve chooses the routes that a node uses from the paths that it received. Both are pure.
// table has the received paths, and Speaker implements the sessions with GoBGP.
package bgp

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/lists"
	"windtunnel/vrouter/model"
)

// Kind is the kind of a path's destination.
type Kind string

const (
	VPN       Kind = "vpn"       // a prefix, with a label
	Station   Kind = "mac"       // EVPN type 2: a MAC address, with or without an IP address
	Multicast Kind = "multicast" // EVPN type 3: a router that receives broadcast, unknown unicast and multicast
	Prefix    Kind = "prefix"    // EVPN type 5: a prefix, with a VNI or label
)

// Path is a route as BGP announces it.
type Path struct {
	Family model.BGPFamily          `json:"family"`
	Kind   Kind                     `json:"kind"`
	RD     model.RouteDistinguisher `json:"rd"`
	// Prefix is the destination of a VPN or Prefix path. Of a Station path it is the IP address; invalid if
	// the path has none.
	Prefix netip.Prefix `json:"prefix,omitzero"`
	MAC    model.MAC    `json:"mac,omitzero"` // of Station
	// Origin is the address of the router that announced a Multicast path.
	Origin  netip.Addr `json:"origin,omitzero"`
	NextHop netip.Addr `json:"next_hop"`
	// Label is the label of a VPN path. Of an EVPN path it has 24 bits: a VNI, or a label in the first 20
	// bits (RFC 8365 section 5.1.3).
	Label       uint32              `json:"label"`
	RoutedLabel uint32              `json:"routed_label,omitempty"` // second label of a Station path, for routed packets; 0: none
	RouterMAC   model.MAC           `json:"router_mac,omitzero"`    // inner MAC address of routed VXLAN (RFC 9135 section 8.1)
	Targets     []model.RouteTarget `json:"targets"`
	Tunnels     []bgp.TunnelType    `json:"tunnels,omitempty"`  // encapsulations (RFC 9012); empty: not announced
	Unusable    string              `json:"unusable,omitempty"` // why vrouter cannot use the path, whatever the node's configuration
	// Communities are those of RFC 1997, the large ones (RFC 8092), and the extended ones that have no field above.
	Communities []string `json:"communities,omitempty"`

	// Fields that only received paths have.
	Neighbor  netip.Addr `json:"neighbor,omitzero"`
	LocalPref uint32     `json:"local_pref,omitempty"`
	MED       uint32     `json:"med,omitempty"`
	ASPath    int        `json:"as_path,omitempty"` // length
	Source    uint8      `json:"source,omitempty"`  // attribute ORIGIN
	External  bool       `json:"external,omitempty"`
	Stale     bool       `json:"-"` // received before the agent restarted, and not announced again since
	Kept      bool       `json:"-"` // the neighbour restarts gracefully, and has not announced the path again (RFC 4724)
	// LongLivedStale means that the path has the community LLGR_STALE: the session over which a router learned it has been
	// down for longer than the restart time (RFC 9494).
	LongLivedStale bool `json:"long_lived_stale,omitempty"`
}

// Key identifies a path among the paths of all neighbours.
type Key struct {
	Neighbor netip.Addr
	Family   model.BGPFamily
	Kind     Kind
	RD       model.RouteDistinguisher
	Prefix   netip.Prefix
	MAC      model.MAC
	Origin   netip.Addr
}

// Key returns the fields that identify the path in a withdrawal.
func (p *Path) Key() Key {
	return Key{p.Neighbor, p.Family, p.Kind, p.RD, p.Prefix, p.MAC, p.Origin}
}

// Destination returns the path's destination as text.
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

// better compares two paths to one destination by the rules of RFC 4271 section 9.1, the better path
// first. A path with LLGR_STALE comes after all paths without it (RFC 9494, section 4.3). better does not break ties: equal paths are used together. It also compares the
// MEDs of different neighbouring ASes.
func better(a, b *Path) int {
	return cmp.Or(
		toInt(a.LongLivedStale)-toInt(b.LongLivedStale),
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

// tunnelTypes has the tunnel types (RFC 9012) with which a node announces its encapsulations.
var tunnelTypes = map[model.Encapsulation]bgp.TunnelType{
	model.VXLAN: bgp.TUNNEL_TYPE_VXLAN, model.MPLSoUDP: bgp.TUNNEL_TYPE_MPLS_IN_UDP, model.MPLSoGRE: bgp.TUNNEL_TYPE_MPLS_IN_GRE,
}

// encapsulationOf returns the encapsulation of a tunnel type; "" if vrouter does not have it. Some
// routers announce MPLS over GRE as GRE.
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

// TunnelNames returns the encapsulations that the path announces as text.
func (p *Path) TunnelNames() string {
	return strings.Join(lists.Map(p.Tunnels, tunnelName), " ")
}

// tunnelName returns the encapsulation of a tunnel type, or the type's number and name.
func tunnelName(t bgp.TunnelType) string {
	if e := encapsulationOf(t); e != "" {
		return string(e)
	}
	return fmt.Sprintf("tunnel type %d (%s)", uint16(t), t)
}
