package model

import "net/netip"

// CompactPort has the fields of a Port and needs less memory: an agent can have 100,000 ports of other nodes. It must not be
// changed, because several compact ports share a Place and a PortDetails.
type CompactPort struct {
	Name string `json:"name"`
	*Place
	MAC     MAC          `json:"mac"`
	NATSlot uint16       `json:"nat_slot,omitempty"`
	IPs     []netip.Addr `json:"ips,omitempty"`
	*PortDetails
}

// Place names a network and a node. All compact ports of this network on this node point to one Place.
type Place struct {
	Network string `json:"network"`
	Node    string `json:"node"`
}

// PortDetails has the fields that are empty in most ports. All compact ports in which they are empty point to one
// PortDetails.
type PortDetails struct {
	Floating     []netip.Addr   `json:"floating,omitempty"`
	Attach       Attachment     `json:"attach"`
	Policies     []string       `json:"policies,omitempty"`
	AllowSources []netip.Prefix `json:"allow_sources,omitempty"`
	Router       bool           `json:"router,omitempty"`
	Bandwidth    Bandwidth      `json:"bandwidth,omitzero"`
	Origin       Origin         `json:"origin,omitempty"`
	Owner        string         `json:"owner,omitempty"`
	OfPod        *Pod           `json:"pod,omitempty"`
}

var noDetails PortDetails

// Compact returns p as a compact port that points to at, which must have the network and the node of p. The slices of
// the result are those of p.
func (p *Port) Compact(at *Place) CompactPort {
	c := CompactPort{p.Name, at, p.MAC, p.NATSlot, p.IPs, &noDetails}
	if !c.Port().Equal(*p) {
		c.PortDetails = &PortDetails{p.Floating, p.Attach, p.Policies, p.AllowSources, p.Router, p.Bandwidth, p.Origin, p.Owner, p.OfPod}
	}
	return c
}

// Port returns c as a Port. The slices of the result are those of c.
func (c *CompactPort) Port() Port {
	return Port{
		Name: c.Name, Network: c.Network, Node: c.Node, MAC: c.MAC, NATSlot: c.NATSlot, IPs: c.IPs, Floating: c.Floating, Attach: c.Attach, Policies: c.Policies,
		AllowSources: c.AllowSources, Router: c.Router, Bandwidth: c.Bandwidth, Origin: c.Origin, Owner: c.Owner, OfPod: c.OfPod,
	}
}
