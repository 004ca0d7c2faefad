package model

import "net/netip"

// CompactPort is a Port in less memory, for copies of the state with very many ports. It is read-only.
type CompactPort struct {
	Name string `json:"name"`
	*Place
	MAC     MAC          `json:"mac"`
	NATSlot uint16       `json:"nat_slot,omitempty"`
	IPs     []netip.Addr `json:"ips,omitempty"`
	*PortDetails
}

// Place is a network on a node. The compact ports of a place share it.
type Place struct {
	Network string `json:"network"`
	Node    string `json:"node"`
}

// PortDetails are the fields of a Port that few ports of a large state have. Compact ports without
// them share one value.
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

// Compact returns a port at a place, which must have the port's network and node. The results share the
// slices of p.
func (p *Port) Compact(at *Place) CompactPort {
	c := CompactPort{p.Name, at, p.MAC, p.NATSlot, p.IPs, &noDetails}
	if !c.Port().Equal(*p) {
		c.PortDetails = &PortDetails{p.Floating, p.Attach, p.Policies, p.AllowSources, p.Router, p.Bandwidth, p.Origin, p.Owner, p.OfPod}
	}
	return c
}

// Port returns the port with all fields. It shares the slices of c.
func (c *CompactPort) Port() Port {
	return Port{
		Name: c.Name, Network: c.Network, Node: c.Node, MAC: c.MAC, NATSlot: c.NATSlot, IPs: c.IPs, Floating: c.Floating, Attach: c.Attach, Policies: c.Policies,
		AllowSources: c.AllowSources, Router: c.Router, Bandwidth: c.Bandwidth, Origin: c.Origin, Owner: c.Owner, OfPod: c.OfPod,
	}
}
