package bgp

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/vrouter/model"
)

// families has GoBGP's value of each family.
var families = map[model.BGPFamily]bgp.Family{model.VPNv4: bgp.RF_IPv4_VPN, model.VPNv6: bgp.RF_IPv6_VPN, model.EVPN: bgp.RF_EVPN}

func familyOf(f bgp.Family) model.BGPFamily {
	for name, is := range families {
		if is == f {
			return name
		}
	}
	return ""
}

// toWire converts an announced path to GoBGP's form.
func (p *Path) toWire() (*apiutil.Path, error) {
	nlri, err := p.nlri()
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", p.Destination(), err)
	}
	reach, err := bgp.NewPathAttributeMpReachNLRI(families[p.Family], []bgp.PathNLRI{{NLRI: nlri}}, p.NextHop)
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", p.Destination(), err)
	}
	attributes := []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(bgp.BGP_ORIGIN_ATTR_TYPE_IGP), reach}
	var communities []bgp.ExtendedCommunityInterface
	for _, t := range p.Targets {
		c, err := bgp.ParseExtended(t[:])
		if err != nil {
			return nil, fmt.Errorf("announce %s: route target %s: %w", p.Destination(), t, err)
		}
		communities = append(communities, c)
	}
	for _, t := range p.Tunnels {
		communities = append(communities, bgp.NewEncapExtended(t))
	}
	if !p.RouterMAC.IsZero() {
		communities = append(communities, bgp.NewRoutersMacExtended(p.RouterMAC.String()))
	}
	attributes = append(attributes, bgp.NewPathAttributeExtendedCommunities(communities))
	if p.Kind == Multicast {
		id, err := bgp.NewIngressReplTunnelID(p.NextHop)
		if err != nil {
			return nil, fmt.Errorf("announce %s: %w", p.Destination(), err)
		}
		attributes = append(attributes, bgp.NewPathAttributePmsiTunnel(bgp.PMSI_TUNNEL_TYPE_INGRESS_REPL, false, p.Label, id))
	}
	return &apiutil.Path{Family: families[p.Family], Nlri: nlri, Attrs: attributes}, nil
}

// nlri returns the NLRI of the path: the part that names its destination.
func (p *Path) nlri() (bgp.NLRI, error) {
	rd := bgp.GetRouteDistinguisher(p.RD[:])
	switch p.Kind {
	case VPN:
		return bgp.NewLabeledVPNIPAddrPrefix(p.Prefix, *bgp.NewMPLSLabelStack(p.Label), rd)
	case Station:
		labels := []uint32{p.Label}
		if p.RoutedLabel != 0 {
			labels = append(labels, p.RoutedLabel)
		}
		return bgp.NewEVPNMacIPAdvertisementRoute(rd, bgp.EthernetSegmentIdentifier{}, 0, p.MAC.String(), p.Prefix.Addr(), labels)
	case Multicast:
		return bgp.NewEVPNMulticastEthernetTagRoute(rd, 0, p.Origin)
	}
	noGateway := netip.IPv4Unspecified()
	if p.Prefix.Addr().Is6() {
		noGateway = netip.IPv6Unspecified()
	}
	return bgp.NewEVPNIPPrefixRoute(rd, bgp.EthernetSegmentIdentifier{}, 0, uint8(p.Prefix.Bits()), p.Prefix.Addr(), noGateway, p.Label)
}

// fromWire converts a received path from GoBGP's form. It returns false if vrouter does not use the family
// or the type of the path.
func fromWire(w *apiutil.Path) (p Path, ok bool) {
	p = Path{Family: familyOf(w.Family), Neighbor: w.PeerAddress.Unmap(), LocalPref: defaultLocalPref}
	if p.Family == "" || !p.setDestination(w.Nlri) { // GoBGP takes VPN routes of family multicast, too
		return p, false
	}
	p.Kept = w.Stale
	for _, a := range w.Attrs {
		p.setAttribute(a)
	}
	return p, true
}

// defaultLocalPref is the preference of paths without the attribute LOCAL_PREF, such as paths of external
// neighbours.
const defaultLocalPref = 100

// setDestination sets the fields that the NLRI has. It returns false if vrouter does not use the type of
// the NLRI.
func (p *Path) setDestination(nlri bgp.NLRI) bool {
	switch n := nlri.(type) {
	case *bgp.LabeledVPNIPAddrPrefix:
		p.Kind, p.Prefix = VPN, n.Prefix.Masked()
		p.setRD(n.RD)
		switch len(n.Labels.Labels) {
		case 0: // a withdrawal
		case 1:
			p.Label = n.Labels.Labels[0]
		default:
			p.Unusable = fmt.Sprintf("it has %d labels, but only one is supported", len(n.Labels.Labels))
		}
		return true
	case *bgp.EVPNNLRI:
		return p.setEVPN(n)
	}
	return false
}

func (p *Path) setEVPN(n *bgp.EVPNNLRI) bool {
	tag := uint32(0)
	switch r := n.RouteTypeData.(type) {
	case *bgp.EVPNMacIPAdvertisementRoute:
		if len(r.MacAddress) != len(p.MAC) {
			return false
		}
		p.Kind, p.MAC, tag = Station, model.MAC(r.MacAddress), r.ETag
		p.setRD(r.RD)
		if a := r.IPAddress.Unmap(); a.IsValid() {
			p.Prefix = netip.PrefixFrom(a, a.BitLen())
		}
		if len(r.Labels) > 0 {
			p.Label = r.Labels[0]
		}
		if len(r.Labels) > 1 {
			p.RoutedLabel = r.Labels[1]
		}
	case *bgp.EVPNMulticastEthernetTagRoute:
		p.Kind, p.Origin, tag = Multicast, r.IPAddress, r.ETag
		p.setRD(r.RD)
	case *bgp.EVPNIPPrefixRoute:
		p.Kind, p.Label, tag = Prefix, r.Label, r.ETag
		p.Prefix = netip.PrefixFrom(r.IPPrefix, int(r.IPPrefixLength)).Masked()
		p.setRD(r.RD)
		if !r.GWIPAddress.IsUnspecified() {
			p.Unusable = fmt.Sprintf("it has the gateway address %s, which is not supported (RFC 9136 section 4.1)", r.GWIPAddress)
		}
	default:
		return false
	}
	if tag != 0 {
		p.Unusable = fmt.Sprintf("its Ethernet tag is %d, but VLAN-aware bundles are not supported", tag)
	}
	return true
}

func (p *Path) setRD(rd bgp.RouteDistinguisherInterface) {
	if rd == nil {
		return
	}
	if b, err := rd.Serialize(); err == nil && len(b) == len(p.RD) {
		p.RD = model.RouteDistinguisher(b)
	}
}

func (p *Path) setAttribute(a bgp.PathAttributeInterface) {
	switch a := a.(type) {
	case *bgp.PathAttributeMpReachNLRI:
		p.NextHop = a.Nexthop.Unmap()
	case *bgp.PathAttributeNextHop:
		p.NextHop = a.Value.Unmap()
	case *bgp.PathAttributeOrigin:
		p.Source = a.Value
	case *bgp.PathAttributeLocalPref:
		p.LocalPref = a.Value
	case *bgp.PathAttributeMultiExitDisc:
		p.MED = a.Value
	case *bgp.PathAttributeAsPath:
		for _, segment := range a.Value {
			p.ASPath += segment.ASLen()
		}
	case *bgp.PathAttributePmsiTunnel:
		if p.Label = a.Label; a.TunnelType != bgp.PMSI_TUNNEL_TYPE_INGRESS_REPL {
			p.Unusable = fmt.Sprintf("it asks for broadcast by %s, but only ingress replication is supported", a.TunnelType)
		}
	case *bgp.PathAttributeCommunities:
		for _, c := range a.Value {
			p.LongLivedStale = p.LongLivedStale || bgp.WellKnownCommunity(c) == bgp.COMMUNITY_LLGR_STALE
			name, known := bgp.WellKnownCommunityNameMap[bgp.WellKnownCommunity(c)]
			if !known {
				name = fmt.Sprintf("%d:%d", c>>16, uint16(c))
			}
			p.Communities = append(p.Communities, name)
		}
	case *bgp.PathAttributeLargeCommunities:
		for _, c := range a.Values {
			p.Communities = append(p.Communities, c.String())
		}
	case *bgp.PathAttributeExtendedCommunities:
		for _, c := range a.Value {
			p.setCommunity(c)
		}
	}
}

func (p *Path) setCommunity(c bgp.ExtendedCommunityInterface) {
	switch c := c.(type) {
	case *bgp.EncapExtended:
		p.Tunnels = append(p.Tunnels, c.TunnelType)
	case *bgp.RouterMacExtended:
		if len(c.Mac) == len(p.RouterMAC) {
			p.RouterMAC = model.MAC(c.Mac)
		}
	default:
		// The first byte is the type: 0 with an AS number of 2 bytes, 1 with an IPv4 address, 2 with an AS
		// number of 4 bytes.
		if b, err := c.Serialize(); err == nil && len(b) == len(model.RouteTarget{}) && b[0] <= 2 && b[1] == byte(bgp.EC_SUBTYPE_ROUTE_TARGET) {
			if t := model.RouteTarget(b); !slices.Contains(p.Targets, t) {
				p.Targets = append(p.Targets, t)
			}
		} else if err == nil {
			p.Communities = append(p.Communities, c.String())
		}
	}
}
